"""Where Factory Droid keeps its sessions, and how its transcripts are told from other files.

``sessions/<folder>/<uuid>.jsonl`` (older: directly in ``sessions/``) with ``<uuid>.settings.json`` beside it. The
folder's name is a lossy form of a path and is never decoded. A sub-agent is a session of its own whose settings name
the session and the tool use that started it; it becomes a stream of that session's conversation. What ``droid exec -o
stream-json`` printed, saved as ``.jsonl``, is another format and is left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from porcelain.providers.decoding import Shape
from porcelain.providers.files import open_file
from porcelain.providers.jsonlines import first_objects, parse
from porcelain.providers.reader import Conversation, LeftOut, Seen, Source, nothing_seen

#: Of the reader: files that another one read are read again.
PARSER = "1"

SETTINGS = ".settings.json"
#: Ends the native id in the name of a conversation of which there are several.
_COPY = "~"
_STREAM_TYPES = frozenset({"system", "tool_call", "tool_result", "completion"})
_ROLES = frozenset({"user", "assistant"})


class _Head(Struct):
    type: str
    id: str | None = None
    session: str | None = field(default=None, name="session_id")
    text: Raw | UnsetType = UNSET
    role: str | None = None


class _Sniffed(Struct):
    """What the head of a file says. ``records`` counts lines other than the header, ``flat`` messages of the older
    variant, which has none; ``stream``: there is what only the printed form has."""

    session: str | None = None
    header: bool = False
    records: int = 0
    flat: int = 0
    stream: bool = False


class Metadata(Struct):
    session: str | None = field(default=None, name="callingSessionId")
    tool: str | None = field(default=None, name="callingToolUseId")


class Tag(Struct):
    name: str | None = None
    metadata: Metadata | None = None


class Tags(Struct):
    tags: list[Tag] | None = None


_HEAD = msgspec.json.Decoder(_Head)
_TAGS = Shape(Tags, items={"tags": Tag})


class _Found(Struct):
    """A transcript: its native id, the session that started it ("" for none), its files."""

    native_id: str
    caller: str
    path: str
    settings: str | None


def caller(tags: list[Tag] | None) -> Metadata | None:
    """Which session and tool use started a sub-agent, by the tags in its settings."""
    for tag in tags or ():
        if tag.name == "subagent" and tag.metadata is not None:
            return tag.metadata
    return None


def discover(root: Path, seen: Seen = nothing_seen) -> Iterator[Conversation | LeftOut]:
    """All conversations in ``root`` (a ``sessions`` folder, its parent, or any folder of transcripts), by path;
    children go with the session that started them where that is there."""
    if (root / "sessions").is_dir():
        root = root / "sessions"
    found: list[_Found] = []
    for folder, names, files in os.walk(root):
        names.sort()
        here = frozenset(files)
        inside = os.path.join(folder, "")
        for name in sorted(files):
            if name.endswith(".jsonl"):
                settings = name.removesuffix(".jsonl") + SETTINGS
                one = _transcript(
                    inside + name,
                    inside + settings if settings in here else None,
                    seen,
                )
                if isinstance(one, LeftOut):
                    yield one
                else:
                    found.append(one)
    yield from _conversations(found, str(root))


def recognise(path: Path) -> Conversation | None:
    """The conversation of one transcript with its settings; None when it is not Factory Droid's."""
    if path.suffix != ".jsonl" or not path.is_file():
        return None
    settings = path.with_name(path.stem + SETTINGS)
    found = _transcript(str(path), str(settings) if settings.is_file() else None, nothing_seen)
    if isinstance(found, LeftOut):
        return None
    return next(_conversations([found], str(path.parent)))


def _conversations(found: list[_Found], root: str) -> Iterator[Conversation]:
    callers: dict[str, str] = {}
    for one in found:  # of copies of one session the first that says
        callers[one.native_id] = callers.get(one.native_id) or one.caller
    children: dict[str, list[_Found]] = {}
    mains: list[_Found] = []
    for one in found:
        main = _main(one.native_id, callers)
        if main == one.native_id:
            mains.append(one)
        else:
            children.setdefault(main, []).append(one)
    for one in mains:
        sources = _sources(one, "main")
        for child in children.pop(one.native_id, ()):
            sources += _sources(child, child.native_id)
        yield Conversation(provider="factory", native_id=one.native_id, root=root, sources=tuple(sources))


def _main(native_id: str, callers: Mapping[str, str]) -> str:
    """The session at the top of the calls that led to ``native_id``; itself where they go round in a circle."""
    walked = [native_id]
    while (above := callers.get(walked[-1])) and above in callers:
        if above in walked:
            return native_id
        walked.append(above)
    return walked[-1]


def _sources(one: _Found, stream: str) -> list[Source]:
    name = os.path.basename(one.path)
    folder = "" if stream == "main" else "subagents/"
    sources = [Source(path=one.path, src=folder + name, stream=stream)]
    if one.settings is not None:
        # What a session's own settings say belongs to no stream; those of a child say what started it.
        owner = None if stream == "main" else stream
        src = folder + os.path.basename(one.settings)
        sources.append(Source(path=one.settings, src=src, kind="agent_meta", shape="document", stream=owner))
    return sources


def _transcript(path: str, settings: str | None, seen: Seen) -> _Found | LeftOut:
    known = seen(path)
    if known == "":
        return LeftOut(path=path, reason="no-conversation")
    stem = os.path.basename(path).removesuffix(".jsonl")
    if known == stem:
        return _Found(stem, "", path, settings)
    stream = seen.stream(path)
    if known is not None and stream is not None and stream != "main":
        return _Found(stream, known.partition(_COPY)[0], path, settings)
    try:
        stat = os.stat(path)
        sniffed = _sniff(path)
    except OSError:
        return LeftOut(path=path, reason="unreadable")
    if sniffed is None:
        return LeftOut(path=path, reason="empty")
    reason = None
    if sniffed.stream and not sniffed.header:
        reason = "other-format"
    elif not sniffed.header and not sniffed.flat:
        reason = "other-agent"
    elif not sniffed.records:
        reason = "no-conversation"
    if reason is not None:
        return LeftOut(path=path, reason=reason, size=stat.st_size, mtime_ns=stat.st_mtime_ns)
    # One that was landed as a conversation of its own, before what started it was found, stays one.
    started_by = _caller(settings) if settings is not None and stream != "main" else ""
    return _Found(sniffed.session or stem, started_by, path, settings)


def _caller(settings: str) -> str:
    """The session that started the one with these settings; "" for none, and where they do not parse."""
    try:
        with open_file(settings) as file:
            found = caller(parse(_TAGS, file.read()).tags)
    except (OSError, msgspec.DecodeError):
        return ""
    return (found.session or "") if found is not None else ""


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
    if head.type == "session_start":
        found.header = True
        found.session = head.id or found.session
        return
    found.records += 1
    if head.type in _STREAM_TYPES:
        found.stream = True
    elif head.type == "message" and head.text is not UNSET and head.role in _ROLES and head.session:
        found.flat += 1
        found.session = found.session or head.session
