"""Which pages are those of a file: also when a line was rewritten in place, and after a rewrite of the whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.porcelain.importing.driving import succeed

NATIVE = "0123456789abcdef"


def slot(title: str) -> str:
    row = {"type": "title", "v": 1, "title": title, "updatedAt": "2026-03-01T10:00:00.000Z", "pad": ""}
    row["pad"] = " " * (255 - len(json.dumps(row, separators=(",", ":"))))
    return json.dumps(row, separators=(",", ":")) + "\n"


def lines(name: str, count: int, start: int = 0) -> str:
    found: list[dict[str, Any]] = []
    if not start:
        found.append(
            {
                "type": "session",
                "version": 3,
                "id": NATIVE,
                "timestamp": "2026-03-01T09:59:00.000Z",
                "cwd": "/home/ines/garden",
            }
        )
    for row in range(start, count):
        found.append(
            {
                "type": "message",
                "id": f"{name}{row:07x}",
                "parentId": None,
                "timestamp": f"2026-03-01T10:00:{row:02}.000Z",
                "message": {"role": "user", "content": [{"type": "text", "text": f"{name} {row}"}]},
            }
        )
    return "".join(json.dumps(row) + "\n" for row in found)


def counts(store: Path) -> list[tuple[int, int]]:
    """Records and events of each file."""
    query = (
        "SELECT json_extract(metadata_json, '$.records') AS records, (SELECT count(*) FROM events e "
        "WHERE e.observation_id = o.id) AS events FROM session_observations o ORDER BY 1"
    )
    out = succeed(store, "lineage", "sql", "--events", "--json", query).out
    return [tuple(json.loads(line).values()) for line in out.splitlines()]


def test_a_title_that_is_rewritten_in_place_parts_nothing(tmp_path: Path) -> None:
    store, home = tmp_path / "store", tmp_path / "home"
    path = home / ".omp" / "agent" / "sessions" / "-garden" / f"2026-03-01T09-59-00-000Z_{NATIVE}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(slot("one") + lines("a", 5))
    succeed(store, "import", home=home)
    assert counts(store) == [(7, 7)]
    path.write_text(slot("two") + lines("a", 5) + lines("a", 8, 5))
    succeed(store, "import", home=home)
    assert counts(store) == [(11, 11)]
    path.write_text(slot("three") + lines("a", 5) + lines("a", 8, 5))
    succeed(store, "import", home=home)
    assert counts(store) == [(12, 12)]
    path.write_text(slot("three") + lines("a", 5) + lines("a", 9, 5))
    succeed(store, "import", home=home)
    assert counts(store) == [(13, 13)]
    assert succeed(store, "import", "--check", "--json", home=home).json["records"] == 0


def test_a_file_that_was_rewritten_is_another_reading(tmp_path: Path) -> None:
    store, home = tmp_path / "store", tmp_path / "home"
    path = home / ".omp" / "agent" / "sessions" / "-garden" / f"2026-03-01T09-59-00-000Z_{NATIVE}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(slot("one") + lines("a", 5))
    succeed(store, "import", home=home)
    path.write_text(slot("one") + lines("a", 3) + lines("b", 9, 3))
    succeed(store, "import", home=home)
    assert counts(store) == [(7, 7), (11, 11)]
