"""A home folder with Pi sessions, written by the tests that need it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class PiHome:
    """Sessions by name: each file lies in the bucket of its folder ``/home/ines/<folder>``."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.agent = home / ".pi" / "agent"

    def path(self, name: str, folder: str = "garden") -> Path:
        bucket = self.agent / "sessions" / f"--home-ines-{folder}--"
        return bucket / f"2026-03-01T10-00-00-000Z_{self.native(name)}.jsonl"

    @staticmethod
    def native(name: str) -> str:
        return f"{name:0>8}-0000-7000-8000-000000000001"

    @staticmethod
    def entries(name: str, count: int, start: int = 0, text: str = "") -> list[dict[str, Any]]:
        found = []
        for number in range(start, count):
            found.append(
                {
                    "type": "message",
                    "id": f"{name}{number:07x}",
                    "parentId": f"{name}{number - 1:07x}" if number else None,
                    "timestamp": f"2026-03-01T10:{number // 60:02}:{number % 60:02}.000Z",
                    "message": {
                        "role": "assistant" if number % 2 else "user",
                        "content": [{"type": "text", "text": text or f"{name} says {number}"}],
                    },
                }
            )
        return found

    def write(
        self,
        name: str,
        entries: list[dict[str, Any]],
        folder: str = "garden",
        path: Path | None = None,
        **header: Any,
    ) -> Path:
        first = {
            "type": "session",
            "version": 3,
            "id": self.native(name),
            "timestamp": "2026-03-01T09:59:00.000Z",
            "cwd": f"/home/ines/{folder}",
            **header,
        }
        target = path or self.path(name, folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("".join(json.dumps(row) + "\n" for row in (first, *entries)))
        return target

    def move(self, source: Path, before: str, after: str, more: list[dict[str, Any]] | None = None) -> Path:
        """Copy as Pi's session tools do: the old folder replaced by the new one wherever it stands."""
        text = source.read_text().replace(f"/home/ines/{before}", f"/home/ines/{after}")
        target = (
            source.parent.parent / f"--home-ines-{after}--" / f"{source.stem}_relocated_0a1b2c3d4e5f.jsonl"
        )
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text + "".join(json.dumps(row) + "\n" for row in more or ()))
        return target

    def manifest(self, *records: dict[str, Any], name: str = "relocations.jsonl") -> Path:
        target = self.agent / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("a") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)
        return target

    @staticmethod
    def moved(source: Path, target: Path, before: str, after: str, **more: Any) -> dict[str, Any]:
        return {
            "ts": "2026-03-02T12:00:00.000Z",
            "fromCwd": f"/home/ines/{before}",
            "toCwd": f"/home/ines/{after}",
            "sourceSession": str(source),
            "destinationSession": str(target),
            "parent": str(source),
            "replacements": 3,
            "mode": "move",
            "operationType": "session_relocation",
            "tool": "pi-session-move",
            **more,
        }
