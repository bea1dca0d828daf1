"""Moving all sessions of a folder at once: what to record, and, when told, copying the files.

A move records one operation and, for each transcript, one statement that it was moved. Nothing is ever deleted, and a
session's file is never changed: a copy is written beside it, in the bucket of the new folder, and never over a file
that is there.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from msgspec import Struct

from objstore.errors import StorageError
from porcelain.lineage.derived.lineage import Lineage
from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.facts.making import fact
from porcelain.lineage.facts.statements import statement
from porcelain.lineage.relations.nodes import Node

TOOL = "objstore"
#: Agents whose sessions lie in a bucket named after the folder.
BUCKETS = ("claude", "pi")
_RELOCATED = "_relocated_"


class Move(Struct, frozen=True, kw_only=True):
    """One transcript to be moved: where it is, where its copy goes, and the folders it belongs to."""

    node: Node
    destination: str
    from_cwd: str
    to_cwd: str


class Plan(Struct, frozen=True, kw_only=True):
    """A move of a folder: ``moves`` are to be recorded, ``known`` were recorded by an earlier run of the same
    operation, ``left`` cannot be moved, for their agent has no buckets or their file is gone."""

    operation: str
    from_cwd: str
    to_cwd: str
    moves: tuple[Move, ...]
    known: tuple[Move, ...]
    left: tuple[Node, ...]


def plan_move(found: Lineage, host: str, from_cwd: str, to_cwd: str, operation: str | None = None) -> Plan:
    """What moving the sessions of ``from_cwd`` and of the folders below it to ``to_cwd`` means. Without an
    ``operation`` id, the same two folders are the same operation."""
    before, after = from_cwd.rstrip("/") or "/", to_cwd.rstrip("/") or "/"
    name = operation or "move-" + hashlib.sha256(f"{host}\0{before}\0{after}".encode()).hexdigest()[:16]
    recorded = {
        (one.columns["data"]["from"], one.columns["data"]["to"])
        for one in found.said.statements("relocation")
        if one.columns["data"].get("batch") == name and one.columns["data"]["host"] == host
    }
    copies = {to for _, to in recorded}
    moves: list[Move] = []
    known: list[Move] = []
    left: list[Node] = []
    for node in sorted(found.nodes, key=lambda node: (node.path, node.id)):
        cwd = node.cwds[-1] if node.cwds else None
        if node.host != host or node.older or node.guest_of is not None or node.path in copies:
            continue
        if cwd is None or not _within(cwd, before):
            continue
        if node.provider not in BUCKETS or not node.present:
            left.append(node)
            continue
        target = after + cwd[len(before) :] if before != "/" else after.rstrip("/") + cwd
        move = Move(node=node, destination=destination(node, target), from_cwd=cwd, to_cwd=target)
        (known if (node.path, move.destination) in recorded else moves).append(move)
    return Plan(
        operation=name,
        from_cwd=before,
        to_cwd=after,
        moves=tuple(moves),
        known=tuple(known),
        left=tuple(left),
    )


def destination(node: Node, to_cwd: str) -> str:
    """Where the copy of a transcript goes: the bucket of the new folder beside the old one. A file name of Pi's tells
    copies apart by a hash of where they come from."""
    path = PurePosixPath(node.path)
    if node.provider == "claude":
        return str(path.parent.parent / re.sub(r"[^A-Za-z0-9]", "-", to_cwd) / path.name)
    bucket = "--" + re.sub(r"[/\\:]", "-", to_cwd.removeprefix("/")) + "--"
    base = path.stem.partition(_RELOCATED)[0][:80]
    mark = hashlib.sha256(node.path.encode()).hexdigest()[:12]
    return str(path.parent.parent / bucket / f"{base}{_RELOCATED}{mark}.jsonl")


def facts_of_move(plan: Plan, host: str, when: str, copied: bool) -> list[Fact]:
    """The operation and one statement for each transcript that no earlier run has recorded."""
    if not plan.moves:
        return []
    operation = fact(
        "batch_operation",
        {
            "operation_id": plan.operation,
            "operation_type": "bucket_relocation",
            "source_path": plan.from_cwd,
            "destination_path": plan.to_cwd,
            "timestamp": when,
            "status": "applied",
            "counts": {"sessions": len(plan.moves) + len(plan.known)},
            "metadata": {"copied": copied},
        },
        provenance=TOOL,
        confidence="authoritative",
    )
    return [operation, *(_statement(plan, move, host, when) for move in plan.moves)]


def _statement(plan: Plan, move: Move, host: str, when: str) -> Fact:
    fields = {
        "batch": plan.operation,
        "from": move.node.path,
        "from_cwd": move.from_cwd,
        "mode": "move",
        "native_id": move.node.native_id,
        "operation": "bucket_relocation",
        "source_lines": move.node.records,
        "to": move.destination,
        "to_cwd": move.to_cwd,
        "tool": TOOL,
        "ts": when,
    }
    return statement(
        "relocation",
        host,
        fields,
        "moved with its folder",
        provenance=TOOL,
        trust="authoritative",
        time=when,
    )


def copy_files(moves: Iterable[Move]) -> list[Move]:
    """Copy the transcripts, the old folder's path replaced by the new one's wherever it stands; those that were copied.
    A file that is there already is left alone. Raises ``StorageError``."""
    done = []
    for move in moves:
        target = Path(move.destination)
        if target.exists():
            continue
        try:
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _copy(Path(move.node.path), target, move.from_cwd, move.to_cwd)
        except OSError as error:
            raise StorageError(f"{target}: cannot copy: {error.strerror or error}") from None
        done.append(move)
    return done


def _copy(source: Path, target: Path, from_cwd: str, to_cwd: str) -> None:
    """Write the copy under another name and give it its own when it is whole. Lines are short enough to be held."""
    pairs = [
        (from_cwd.encode(), to_cwd.encode()),
        (from_cwd.replace("/", "\\/").encode(), to_cwd.replace("/", "\\/").encode()),
    ]
    partial = target.with_name(f".{target.name}.partial")
    try:
        with source.open("rb") as before, partial.open("xb") as after:
            for line in before:
                for old, new in pairs:
                    line = line.replace(old, new)
                after.write(line)
            after.flush()
            os.fsync(after.fileno())
        os.link(partial, target)  # unlike a rename, never over a file that is there
    finally:
        partial.unlink(missing_ok=True)


def _within(cwd: str, folder: str) -> bool:
    return cwd == folder or cwd.startswith(folder.rstrip("/") + "/")
