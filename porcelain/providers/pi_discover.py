"""Where Pi keeps its conversations, and how a file of Pi is told from one of oh-my-pi.

``sessions/--<folder>--/<time>_<id>.jsonl``, one conversation a file. The id is the header's (first line): in versions
0.27 to 0.30 the file name carries another one. oh-my-pi writes the same format with more in it and may share the
folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from porcelain.providers.files import open_file
from porcelain.providers.jsonlines import first_objects
from porcelain.providers.reader import Conversation, LeftOut, Seen, Source, nothing_seen

#: Of the reader: files that another one read are read again.
PARSER = "1"

_OWN_TYPES = frozenset(
    {
        "session",
        "message",
        "model_change",
        "thinking_level_change",
        "compaction",
        "branch_summary",
        "custom",
        "custom_message",
        "label",
        "session_info",
        "usage",
        "context_edit",
    }
)
_OTHER_TYPES = frozenset(
    {
        "session_start",
        "title",
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
    timestamp: str | None = None
    title: Raw | UnsetType = UNSET
    title_source: Raw | UnsetType = field(default=UNSET, name="titleSource")
    model: Raw | UnsetType = UNSET
    model_id: Raw | UnsetType = field(default=UNSET, name="modelId")
    message: Raw | UnsetType = UNSET


class _Sniffed(Struct):
    session: str | None = None
    entries: int = 0
    own: bool = False
    other: bool = False


_HEAD = msgspec.json.Decoder(_Head)


def discover(root: Path, seen: Seen = nothing_seen) -> Iterator[Conversation | LeftOut]:
    """All conversations in ``root`` (a ``sessions`` folder, its parent, or any folder of transcripts), by path."""
    if (root / "sessions").is_dir():
        root = root / "sessions"
    for folder, names, files in os.walk(root):
        names.sort()
        inside = os.path.join(folder, "")
        for name in sorted(files):
            if name.endswith(".jsonl"):
                yield _conversation(inside + name, name, str(root), seen)


def recognise(path: Path) -> Conversation | None:
    """The conversation of one file; None when it is not Pi's."""
    if path.suffix != ".jsonl" or not path.is_file():
        return None
    found = _conversation(str(path), path.name, str(path.parent), nothing_seen)
    return found if isinstance(found, Conversation) else None


def _conversation(path: str, name: str, root: str, seen: Seen) -> Conversation | LeftOut:
    known = seen(path)
    if known == "":
        return LeftOut(path=path, reason="no-conversation")
    if known is None:
        try:
            stat = os.stat(path)
            sniffed = _sniff(path)
        except OSError:
            return LeftOut(path=path, reason="unreadable")
        reason = None
        if sniffed is None:
            return LeftOut(path=path, reason="empty")
        if sniffed.other or not sniffed.own:
            reason = "other-agent"
        elif not sniffed.entries:
            reason = "no-conversation"
        if reason is not None:
            return LeftOut(path=path, reason=reason, size=stat.st_size, mtime_ns=stat.st_mtime_ns)
        # Without a readable header the name is the best there is: <time>_<id>.jsonl.
        known = sniffed.session or name.removesuffix(".jsonl").rpartition("_")[2]
    return Conversation(provider="pi", native_id=known, root=root, sources=(Source(path=path, src=name),))


def _sniff(path: str) -> _Sniffed | None:
    """Read the first lines of ``path``; None when there is not one byte."""
    found = _Sniffed()
    with open_file(path) as file:
        if not os.fstat(file.fileno()).st_size:
            return None
        for _, head in first_objects(file, _HEAD):
            _weigh(head, found)
    return found


def _weigh(head: _Head, found: _Sniffed) -> None:
    if head.type in _OTHER_TYPES or head.title_source is not UNSET:
        found.other = True
    if head.type == "model_change" and head.model is not UNSET and head.model_id is UNSET:
        found.other = True
    if head.type == "session":
        if head.id:
            found.own = True
            found.session = found.session or head.id
        if head.title is not UNSET:
            found.other = True
    elif head.type in _OWN_TYPES:
        found.entries += 1
        if head.timestamp and (head.type != "message" or head.message is not UNSET):
            found.own = True
