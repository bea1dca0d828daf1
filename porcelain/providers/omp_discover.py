"""Where oh-my-pi keeps its conversations, which files make up one, and how they are told from Pi's.

``sessions/<folder>/<time>_<id>.jsonl`` is a conversation; its sub-agents stand in the folder ``<time>_<id>/`` beside it
as ``<n>-<Name>.jsonl``, theirs in ``<n>-<Name>/`` in turn. They are that conversation's also where its own file is not
there, or says nothing yet. The id is that of the header, which is the first line or, where there is a slot for the
title, the second. Pi may keep its conversations in the same folder: a file is oh-my-pi's
when something in its first lines is written by oh-my-pi alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from porcelain.providers.files import open_file
from porcelain.providers.jsonlines import first_objects
from porcelain.providers.reader import Conversation, LeftOut, Seen, Source, nothing_seen

#: Of the reader: files that another one read are read again.
PARSER = "1"

#: The name of a session's folder, with the session's id.
_SESSION = re.compile(r"\d{4}-\d\d-\d\dT[\d-]+Z_(.+)\Z")
_AGENT = re.compile(r"(\d+-.+)\.jsonl\Z")
_OWN_TYPES = frozenset(
    {
        "title_change",
        "model_usage",
        "service_tier_change",
        "ttsr_injection",
        "session_init",
        "mode_change",
        "credential_pin",
        "reset_boundary",
    }
)


class _Head(Struct):
    type: str
    id: str | None = None
    pad: Raw | UnsetType = UNSET
    title: Raw | UnsetType = UNSET
    title_source: Raw | UnsetType = field(default=UNSET, name="titleSource")
    previous: Raw | UnsetType = field(default=UNSET, name="previousSessionFiles")
    model: Raw | UnsetType = UNSET
    model_id: Raw | UnsetType = field(default=UNSET, name="modelId")


class _Sniffed(Struct):
    """What the head of a file says; ``slot`` is the length of a title slot, newline included."""

    session: str | None = None
    own: bool = False
    entries: int = 0
    slot: int = 0


_HEAD = msgspec.json.Decoder(_Head)


def discover(root: Path, seen: Seen = nothing_seen) -> Iterator[Conversation | LeftOut]:
    """All conversations in ``root`` (a ``sessions`` folder, what holds it, or any folder of transcripts), by path."""
    for inside in ("sessions", os.path.join("agent", "sessions")):
        if (root / inside).is_dir():
            root = root / inside
            break
    for folder, names, files in os.walk(root):
        transcripts = sorted(name for name in files if name.endswith(".jsonl"))
        folders = frozenset(names)
        owners = {name for name in names if _SESSION.match(name)}
        inside = os.path.join(folder, "")
        for name in transcripts:
            stem = name.removesuffix(".jsonl")
            found = _conversation(inside + name, name, str(root), seen, has_folder=stem in folders)
            yield found
            if isinstance(found, Conversation):
                owners.discard(stem)
        for name in sorted(owners):
            if agents := tuple(_agents(path := inside + name + ".jsonl", seen)):
                yield _without_file(path, str(root), agents)
        # The folder of a session's file belongs to that conversation.
        stems = {name.removesuffix(".jsonl") for name in transcripts}
        names[:] = sorted(set(names) - stems - owners)


def recognise(path: Path) -> Conversation | None:
    """The conversation of one file with its sub-agents; None when it is not oh-my-pi's."""
    if path.suffix != ".jsonl" or not path.is_file():
        return None
    found = _conversation(str(path), path.name, str(path.parent), nothing_seen, has_folder=True)
    return found if isinstance(found, Conversation) else None


def _conversation(path: str, name: str, root: str, seen: Seen, *, has_folder: bool) -> Conversation | LeftOut:
    """The conversation of the file at ``path``; ``has_folder``: there may be one of its sub-agents."""
    known = seen(path)
    if known == "":
        return LeftOut(path=path, reason="no-conversation")
    slot = 0
    if known is None:
        try:
            stat = os.stat(path)
            if not stat.st_size:
                return LeftOut(path=path, reason="empty")
            sniffed = _sniff(path)
        except OSError:
            return LeftOut(path=path, reason="unreadable")
        if not sniffed.own or not sniffed.entries:
            reason = "no-conversation" if sniffed.own else "other-agent"
            return LeftOut(path=path, reason=reason, size=stat.st_size, mtime_ns=stat.st_mtime_ns)
        # Without a readable header the name is the best there is: <time>_<id>.jsonl.
        known = sniffed.session or name.removesuffix(".jsonl").rpartition("_")[2]
        slot = sniffed.slot
    main = Source(path=path, src=name, slot=slot)
    agents = _agents(path, seen) if has_folder else ()
    return Conversation(provider="oh-my-pi", native_id=known, root=root, sources=(main, *agents))


def _without_file(path: str, root: str, agents: tuple[Source, ...]) -> Conversation:
    """The conversation whose file would be ``path``, of its sub-agents alone."""
    name = os.path.basename(path).removesuffix(".jsonl")
    return Conversation(provider="oh-my-pi", native_id=name.rpartition("_")[2], root=root, sources=agents)


def _agents(path: str, seen: Seen) -> Iterator[Source]:
    """The sub-agents of the session whose file is ``path``, theirs behind them."""
    owner = os.path.join(path.removesuffix(".jsonl"), "")
    for folder, names, files in os.walk(owner):
        names.sort()
        inside = os.path.join(folder, "")
        for name in sorted(files):
            one = inside + name
            if _AGENT.match(name) is None or not seen.has_bytes(one):
                continue
            stream = one.removeprefix(owner).removesuffix(".jsonl").replace(os.sep, "/")
            yield Source(path=one, src=f"subagents/{stream}.jsonl", stream=stream)


def _sniff(path: str) -> _Sniffed:
    found = _Sniffed()
    with open_file(path) as file:
        for line, head in first_objects(file, _HEAD):
            if head.type == "title" and head.pad is not UNSET:
                found.own = True
                if line.ord == 1 and line.ended:
                    found.slot = len(line.data) + 1
            else:
                _weigh(head, found)
    return found


def _weigh(head: _Head, found: _Sniffed) -> None:
    if head.type == "session":
        found.session = found.session or head.id
        stated = (head.title, head.title_source, head.previous)
        found.own = found.own or any(value is not UNSET for value in stated)
        return
    found.entries += 1
    if head.type in _OWN_TYPES or (
        head.type == "model_change" and head.model is not UNSET and head.model_id is UNSET
    ):
        found.own = True
