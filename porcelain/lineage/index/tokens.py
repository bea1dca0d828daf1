"""The tokens of facts: two facts that may bear on one another have one in common, or are connected through others.

A token is a signed number of 64 bits. That two things get the same one by chance makes a group larger than it need be,
and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

from porcelain.lineage.derived.statements import repo_move
from porcelain.lineage.facts.identity import fact_id, session_id
from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.relations.nodes import is_path, native_id_of_path, whole_path
from porcelain.lineage.tables.columns import FILE_EVIDENCE

_LINKS = ("base", "forked_from", "parent", "session")
_PATHS = ("from", "to", "path", "current", "key")


def of_id(name: str) -> int:
    """The token of the thing with this fact id."""
    return _of(name.encode())


def of_path(path: str) -> int:
    """The token of a file, on whatever host."""
    return _of(b"path:" + path.encode())


def of_folder(cwd: str) -> int:
    """The token of a working directory."""
    return _of(b"cwd:" + cwd.encode())


def _of(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big", signed=True)


def tokens(one: Fact, uris: Mapping[str, str]) -> list[int]:
    """The tokens of a fact, that of what it is about first; none for one that goes with no group. ``uris`` are those of
    the sources. Labels of working directories have that of the directory too (see ``folders``)."""
    columns = one.columns
    match one.kind:
        case "session" | "batch_operation" | "repo_event":
            return [of_id(one.id)]
        case "observation":
            return list(_observed(one, uris))
        case "label":
            return (
                [of_id(columns["target_id"])] if columns["target_type"] in ("session", "observation") else []
            )
        case "evidence":
            if columns["kind"] == FILE_EVIDENCE:
                return [of_id(columns["target_id"])] if "target_id" in columns else []
            return list(_stated(columns["data"])) if "says" in columns["data"] else []
        case "edge":
            return [of_id(columns["source_observation_id"]), of_id(columns["target_observation_id"])]
        case "mark":
            return [of_id(columns["observation_id"])]
        case "classification":
            return [of_id(columns["target_id"]), *_stated(columns.get("metadata", {}))]
    return []


def _observed(one: Fact, uris: Mapping[str, str]) -> Iterator[int]:
    columns = one.columns
    yield of_id(one.id)
    yield of_id(columns["session_id"]) if "session_id" in columns else of_id(one.id)
    provider = None
    if "path" in columns:
        yield of_path(whole_path(uris.get(columns.get("source_id", ""), ""), columns["path"]))
    links = columns.get("metadata", {}).get("links", {})
    if links:
        provider = one.provenance.removesuffix("-import")
    for name in _LINKS:
        for value in links.get(name, ()):
            if is_path(value):
                yield of_path(value)
            yield of_id(session_id(provider or "", native_id_of_path(value) if is_path(value) else value))
    for values in links.get("moved_from", ()):
        for value in values.split("\n"):
            yield of_path(value)


def _stated(data: Mapping[str, Any]) -> Iterator[int]:
    """The tokens of a statement: every file, session, observation, operation and event that it names."""
    for name in _PATHS:
        path = data.get(name)
        if isinstance(path, str):
            yield of_path(path)
            yield of_id(session_id("pi", data.get("native_id") or native_id_of_path(path)))
    native = data.get("native_id")
    if isinstance(native, str):
        yield of_id(native)
        yield of_id(session_id("pi", native))
    if isinstance(data.get("observation"), str):
        yield of_id(data["observation"])
    if isinstance(data.get("batch"), str):
        yield of_id(fact_id("batch_operation", [data["batch"]]))
    moved = repo_move(data)
    if moved is not None:
        yield of_id(moved[0])
