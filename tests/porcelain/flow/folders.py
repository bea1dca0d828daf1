"""Folders in the published layout for the tests of flow, as another tool would write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from porcelain.flow.assembly import rounds
from porcelain.flow.assembly.entries import Landed, from_sd
from porcelain.flow.chain.folding import Fold
from porcelain.flow.folders.layout import landed_path, round_path
from porcelain.flow.formats.sd import SdHeader, SdPart, SdRecord, SdUsage, write_sd
from porcelain.flow.formats.sd_reading import read_sd
from tests.porcelain.flow.sample import at

SESSION = "0f0f0f0f-1111-4222-8333-444444444444"


def text(said: str) -> SdPart:
    return SdPart("text", said, state="available", bytes=len(said.encode()))


def header(seq: int, kind: str = "transcript", stream: str = "main", **more: Any) -> SdHeader:
    """The header of a landed file that a tool called quill wrote."""
    return replace(
        SdHeader(1, "sd/1", seq, at(0), kind, "quill/0.1", "quill/1", f"src/{stream}", SESSION, stream),
        **more,
    )


def rows(*records: SdRecord, ord: int = 1, off: int = 0) -> list[SdRecord]:
    """Records placed one after another in their source."""
    placed = []
    for record in records:
        placed.append(replace(record, ord=ord, off=off))
        ord, off = ord + 1, off + record.bytes + 1
    return placed


def row(**fields: Any) -> SdRecord:
    return SdRecord(1, 0, "0123456789ab", 40, **fields)


def asked(name: str, run: str, second: float, said: str) -> SdRecord:
    return row(
        id=name,
        run=run,
        from_="external",
        time=at(second),
        trigger="external",
        flags=["external_input"],
        parts=[text(said)],
    )


def called(name: str, call: str, parent: str, second: float, *parts: SdPart) -> SdRecord:
    return row(
        id=name,
        parent=parent,
        call=call,
        from_="agent",
        time=at(second),
        flags=["finished"],
        usage=SdUsage(2, 40),
        model="claude-opus-5",
        parts=list(parts),
    )


def answered(name: str, run: str, second: float, tool: str, said: str) -> SdRecord:
    part = SdPart("result", said, Raw(b'{"code":0,"<note>":"a & b"}'), of=tool, state="available", bytes=9)
    return row(id=name, run=run, from_="external", time=at(second), parts=[part])


def landed_files() -> list[bytes]:
    """Three landed files: a start, a child with its sidecar, and the rest of the transcript."""
    use = SdPart("call", data=Raw(b'{"q":1.50}'), id="t1", name="Bash", state="available", bytes=10)
    spawn = SdPart("call", data=Raw(b'{"who":"kid"}'), id="t2", name="Agent", state="available", bytes=13)
    start = rows(
        row(label="mend <the> roof", from_="runtime"),
        asked("u1", "r1", 1, "Is the roof \u2028 tight?"),
        called("a1", "c1", "u1", 2, text("I shall look."), use),
        answered("x1", "r1", 3, "t1", "it is & is not"),
        called("a2", "c2", "x1", 4, spawn),
    )
    child = rows(
        row(id="k1", run="kr", from_="external", time=at(5), parts=[text("look")]),
        called("k2", "kc", "k1", 6, text("Three tiles are gone.")),
    )
    ack = SdPart("result", "done", of="t2", state="available", bytes=4)
    rest = rows(
        row(
            id="x2",
            run="r1",
            from_="external",
            time=at(7),
            child="kid",
            flags=["launch_ack"],
            parts=[ack],
        ),
        called("a3", "c3", "x2", 8, text("Three tiles are missing.")),
        asked("u2", "r2", 9, "Thank you."),
        ord=6,
        off=5 * 41,
    )
    return [
        write_sd(header(1), start),
        write_sd(header(2, stream="kid"), child, html=True),
        write_sd(header(3), rest),
    ]


def place(root: Path, data: bytes) -> Path:
    """Write a landed file where it belongs."""
    head = read_sd(data).header
    path = root / landed_path(head.session, head.kind, head.stream or "", head.batch or "", head.at, head.seq)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def place_round(root: Path, data: bytes, number: int, digest: str) -> Path:
    """Write a round where it belongs."""
    path = root / round_path(SESSION, number, digest)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def chain(files: list[bytes], *ends: int) -> list[tuple[bytes, str]]:
    """Bytes and digests of rounds that end at these files."""
    landed: list[Landed] = [from_sd(read_sd(data)) for data in files]
    fold = Fold()
    written = []
    for end in ends:
        for one in rounds(landed[:end], fold, conversation=SESSION, session=SESSION):
            written.append((one.data, one.round.digest))
    return written


def build(root: Path, files: list[bytes] | None = None, ends: tuple[int, ...] = (1, 3)) -> Path:
    """A whole root: landed files and the chain over them."""
    files = landed_files() if files is None else files
    for data in files:
        place(root, data)
    for number, (data, digest) in enumerate(chain(files, *ends), 1):
        place_round(root, data, number, digest)
    return root


def tree(root: Path) -> dict[str, bytes]:
    """Every file below ``root`` by its path."""
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}
