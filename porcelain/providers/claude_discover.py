"""Where Claude Code keeps its conversations, and which files make up one.

``projects/<folder>/<session>.jsonl`` is a conversation; its sub-agents stand in ``<session>/subagents/`` (since 2.1)
or beside it as ``agent-<8 hex>.jsonl`` and name their session in their records (2.0); workflow runs stand in
``<session>/workflows/`` and ``<session>/subagents/workflows/``. The folder's name is a lossy form of a path and is
never decoded. Files of one session found in several folders are one conversation.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct, field

from porcelain.providers.files import open_file
from porcelain.providers.jsonlines import HEAD_BLOCK, is_blank, parse, read_lines
from porcelain.providers.reader import Conversation, LeftOut, Seen, Source, SourceKind, nothing_seen

#: Of the reader: files that another one read are read again.
PARSER = "1"

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z")
_AGENT = re.compile(r"agent-(.+)\.jsonl\Z")
_META = re.compile(r"agent-(.+)\.meta\.json\Z")
_RUN_FOLDER = re.compile(r"wf_.+\Z")
_RUN_MANIFEST = re.compile(r"(wf_.+)\.json\Z")
_RUN_SCRIPT = re.compile(r".+-(wf_.+)\.js\Z")


class _Message(Struct):
    content: msgspec.Raw = msgspec.Raw()


class _Head(Struct):
    """What tells a conversation record from the rest of a file."""

    type: str | None = None
    uuid: str | None = None
    session: str | None = field(default=None, name="sessionId")
    message: _Message | None = None


class _Sniffed(Struct):
    """What the head of a transcript says. ``foreign``: none of its lines looks like this agent's."""

    session: str | None = None
    warmup: bool = False
    conversation: bool = False
    foreign: bool = True


_HEAD = msgspec.json.Decoder(_Head)
#: Types of lines without ``uuid`` that only Claude Code writes and that name no session.
_OWN_TYPES = frozenset(
    {"summary", "file-history-snapshot", "custom-title", "ai-title", "queue-operation", "last-prompt"}
)


def discover(root: Path, seen: Seen = nothing_seen) -> Iterator[Conversation | LeftOut]:
    """All conversations in ``root`` (a ``projects`` folder, its parent, or any folder of transcripts), by native id."""
    if (root / "projects").is_dir():
        root = root / "projects"
    place = str(root)
    mains: dict[str, tuple[Source, ...]] = {}
    others: dict[str, list[Source]] = {}
    for folder, names, files in os.walk(root):
        names.sort()
        inside = os.path.join(folder, "")
        owner = _owner_folder(folder, place)
        for name in sorted(files):
            path = inside + name
            if owner is not None:
                source = _attached_source(path, owner)
                if source is None:
                    continue
                if not seen.has_bytes(path):
                    yield LeftOut(path=path, reason="empty")
                else:
                    others.setdefault(os.path.basename(owner), []).append(source)
            elif name.endswith(".jsonl"):
                found = _transcript(path, name, seen)
                if isinstance(found, LeftOut):
                    yield found
                    continue
                native_id, source = found
                if source.stream == "main":
                    mains[native_id] = (*mains.get(native_id, ()), source)
                else:
                    others.setdefault(native_id, []).append(source)
    for native_id in sorted(mains.keys() | others.keys()):
        yield Conversation(
            provider="claude",
            native_id=native_id,
            root=place,
            sources=mains.get(native_id, ()) + tuple(others.get(native_id, ())),
        )


def recognise(path: Path) -> Conversation | None:
    """The conversation of one transcript with the files that belong to it; None when it is not Claude Code's."""
    if path.suffix != ".jsonl" or not path.is_file():
        return None
    found = _transcript(str(path), path.name, nothing_seen)
    if isinstance(found, LeftOut):
        return None
    native_id, main = found
    attached: list[Source] = []
    owner = path.with_suffix("")
    if main.stream == "main":
        for folder, names, files in os.walk(owner):
            names.sort()
            for name in sorted(files):
                source = _attached_source(os.path.join(folder, name), str(owner))
                if source is not None:
                    attached.append(source)
    return Conversation(
        provider="claude", native_id=native_id, root=str(path.parent), sources=(main, *attached)
    )


def _owner_folder(folder: str, root: str) -> str | None:
    """The session folder that files in ``folder`` are of, by the layout ``<session>/subagents|workflows|tool-results``
    and what is below."""
    if folder == root:
        return None
    parts = folder.removeprefix(os.path.join(root, "")).split(os.sep)
    for index in range(1, len(parts)):
        if parts[index] in ("subagents", "workflows", "tool-results"):
            return os.path.join(root, *parts[:index])
    return None


def _attached_source(path: str, owner: str) -> Source | None:
    """The source that a file in a session's folder is; None for files that hold no records (spilled tool output)."""
    inside = path.removeprefix(os.path.join(owner, "")).split(os.sep)
    name = inside[-1]
    src = "/".join(inside)
    run = next((part for part in inside[:-1] if _RUN_FOLDER.match(part)), None)
    kind: SourceKind
    if inside[0] == "subagents":
        if agent := _AGENT.match(name):
            return Source(path=path, src=src, stream=agent.group(1), batch=run)
        if meta := _META.match(name):
            return Source(
                path=path, src=src, kind="agent_meta", shape="document", stream=meta.group(1), batch=run
            )
        if name == "journal.jsonl":
            return Source(path=path, src=src, kind="journal", stream=None, batch=run)
    elif inside[0] == "workflows":
        for pattern, kind in _WORKFLOW_FILES:
            if named := pattern.match(name):
                return Source(
                    path=path, src=src, kind=kind, shape="document", stream=None, batch=named.group(1)
                )
    return None


_WORKFLOW_FILES: tuple[tuple[re.Pattern[str], SourceKind], ...] = (
    (_RUN_MANIFEST, "workflow_manifest"),
    (_RUN_SCRIPT, "workflow_script"),
)


def _transcript(path: str, name: str, seen: Seen) -> tuple[str, Source] | LeftOut:
    """Native id and source of a transcript that stands by itself in a project folder; ``name`` is that of its file."""
    agent = _AGENT.match(name)
    stream = agent.group(1) if agent else "main"
    known = seen(path)
    if known == "":
        return LeftOut(path=path, reason="no-conversation")
    if known is None:
        try:
            stat = os.stat(path)
            if not stat.st_size:
                return LeftOut(path=path, reason="empty")
            sniffed = _sniff(path)
        except OSError:
            return LeftOut(path=path, reason="unreadable")
        reason = None
        if sniffed.foreign:
            reason = "other-agent"
        elif not sniffed.conversation:
            reason = "no-conversation"
        elif agent and sniffed.warmup:
            reason = "warmup"
        if reason is not None:
            return LeftOut(path=path, reason=reason, size=stat.st_size, mtime_ns=stat.st_mtime_ns)
        stem = name.removesuffix(".jsonl")
        known = stem if _UUID.match(stem) and not agent else sniffed.session or stem
    return known, Source(path=path, src=name, stream=stream)


def _sniff(path: str) -> _Sniffed:
    """Read ``path`` up to its first conversation record."""
    found = _Sniffed()
    with open_file(path) as file:
        for line in read_lines(file, 0, 1, os.fstat(file.fileno()).st_size, HEAD_BLOCK):
            if is_blank(line.data):
                continue
            try:
                head = parse(_HEAD, line.data)
            except msgspec.DecodeError:
                continue
            if head.session or head.uuid or head.type in _OWN_TYPES:
                found.foreign = False
            found.session = found.session or head.session
            if head.type in ("user", "assistant", "system", "attachment", "progress") and (
                head.uuid or head.message is not None or head.type == "attachment"
            ):
                found.foreign = False
                found.conversation = True
                content = bytes(head.message.content) if head.message is not None else b""
                found.warmup = head.type == "user" and content == b'"Warmup"'
                break
    return found
