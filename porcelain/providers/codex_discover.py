"""Where Codex keeps its conversations, and which files make up one.

``sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl`` is a thread (early versions had no folders of dates, the first
program wrote ``.json``); archiving moves it to ``archived_sessions/``, and it may be compressed to ``.jsonl.zst``. Of
several files of one name that moment leaves behind, the plain one counts, and the one in ``sessions`` before the
archived one. A thread's id is that of its first ``session_meta``; later ones are copied from the threads that it came
from.

A conversation is a thread with all sub-agents that it or they started; a sub-agent whose parent is not there stands
under the parent's id until it comes. Several files of one thread are pages of it, in order of their names; what the
index of names says of it comes last. Nothing else in Codex's folder (keys, settings, databases, prompt history) is
opened.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from porcelain.providers.agents import CODEX_FOLDERS
from porcelain.providers.codex_items import META, subagent_parent
from porcelain.providers.codex_names import INDEX, index_stamp, known_names, name_source, read_index
from porcelain.providers.cursor import CursorHead, KnownFiles
from porcelain.providers.decoding import NONE
from porcelain.providers.jsonlines import is_blank, parse, read_lines, repair
from porcelain.providers.reader import Container, Conversation, LeftOut, Seen, Source, nothing_seen
from porcelain.providers.unpacking import COMPRESSED, open_source, read_head

#: Of the reader: files that another one read are read again.
PARSER = "1"

_ROLLOUT = re.compile(
    r"rollout-.*?([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})\.(?:jsonl|json)(?:\.zst)?\Z"
)
_ENDINGS = (".jsonl", ".jsonl.zst")
_DOCUMENT = re.compile(r"rollout-.*\.json\Z")
#: Bytes that are looked at for what tells a rollout from another agent's file.
_HEAD_BYTES = 1024 * 1024
#: Bytes that are read first: enough for nearly all.
_FIRST_BYTES = 64 * 1024
_ENVELOPES = frozenset(
    {
        "session_meta",
        "response_item",
        "event_msg",
        "turn_context",
        "compacted",
        "world_state",
        "token_usage_record",
    }
)
#: Lines that a thread has before anybody said anything.
_PREPARED = frozenset({"session_meta", "turn_context", "world_state", "state"})
_SETTINGS = frozenset({"thread_settings_applied", "thread_name_updated"})
_COPY = "~"


class _Head(Struct):
    type: str | None = None
    payload: Raw = NONE
    record_type: str | None = None
    id: str | None = None
    timestamp: str | None = None
    instructions: Raw | UnsetType = UNSET
    role: str | None = None
    created_at: str | None = None


class _Kind(Struct):
    type: str | None = None


class _Document(Struct):
    session: Raw
    items: list[Raw]


class _Thread(Struct):
    """What a file says about itself: its thread, what started that, and whether anything was said in it."""

    thread: str | None = None
    parent: str | None = None
    root: str | None = None
    own: bool = False
    said: bool = False


class _File(Struct, frozen=True):
    """A rollout: ``owner`` is the conversation it belongs to where that is known from before."""

    path: str
    thread: str
    parent: str | None
    root: str | None
    owner: str | None


_HEAD = msgspec.json.Decoder(_Head)
_KIND = msgspec.json.Decoder(_Kind)
_WHOLE = msgspec.json.Decoder(_Document)


def discover(root: Path, seen: Seen = nothing_seen) -> Iterator[Conversation | LeftOut]:
    """All conversations in ``root`` (Codex's folder, or any folder of rollouts), by native id."""
    return (one for one in _discover(root, seen, {}) if not isinstance(one, Container))


def discover_known(root: Path, known: KnownFiles) -> Iterator[Conversation | LeftOut | Container]:
    """As ``discover``, and the index of names; what is ``known`` from earlier imports keeps what has not changed from
    being opened."""
    return _discover(root, known, known.cursors)


def _discover(
    root: Path, seen: Seen, cursors: Mapping[str, CursorHead]
) -> Iterator[Conversation | LeftOut | Container]:
    folders = [root / name for name in CODEX_FOLDERS if (root / name).is_dir()] or [root]
    files: list[_File] = []
    for path in _rollouts(folders):
        found = _file(path, seen)
        if isinstance(found, LeftOut):
            yield found
        else:
            files.append(found)
    stamp = index_stamp(root)
    known = cursors.get(str(root / INDEX))
    # A rollout that has come or grown may have a name that stood in the index before.
    if known is not None and known.stamp == stamp and all(file.owner is not None for file in files):
        names = known_names(root, cursors)
    else:
        names = {thread: name_source(root, thread, lines) for thread, lines in read_index(root).items()}
    yield from _conversations(files, root, names)
    if stamp:
        yield Container(path=str(root / INDEX), stamp=stamp)


def recognise(path: Path) -> Conversation | None:
    """The conversation of one rollout alone; None when it is not Codex's."""
    if not path.is_file() or not (path.name.endswith(_ENDINGS) or path.suffix == ".json"):
        return None
    found = _file(str(path), nothing_seen)
    if isinstance(found, LeftOut):
        return None
    return next(_conversations([found], path.parent, {}))


def _rollouts(folders: list[Path]) -> list[str]:
    """The rollouts below ``folders``, one of each name, by name."""
    found: dict[str, tuple[tuple[bool, int], str]] = {}
    for rank, top in enumerate(folders):
        for folder, names, files in os.walk(top):
            names.sort()
            inside = os.path.join(folder, "")
            for name in sorted(files):
                if name == INDEX or not (name.endswith(_ENDINGS) or _DOCUMENT.match(name)):
                    continue
                path = inside + name
                plain = name.removesuffix(COMPRESSED)
                key = plain if _ROLLOUT.match(plain) else path.removesuffix(COMPRESSED)
                worth = (name != plain, rank)
                if key not in found or worth < found[key][0]:
                    found[key] = (worth, path)
    return sorted((path for _worth, path in found.values()), key=lambda path: (os.path.basename(path), path))


def _file(path: str, seen: Seen) -> _File | LeftOut:
    known = seen(path)
    if known == "":
        return LeftOut(path=path, reason="no-conversation")
    name = os.path.basename(path)
    named = _ROLLOUT.match(name)
    if known is not None and named is not None:
        return _File(path, named.group(1), None, None, known)
    try:
        stat = os.stat(path)
        if not stat.st_size:
            return LeftOut(path=path, reason="empty")
        thread = _sniff_document(path) if path.endswith(".json") else _sniff(path)
    except OSError:
        return LeftOut(path=path, reason="unreadable")
    if not thread.own or not thread.said:
        reason = "no-conversation" if thread.own else "other-agent"
        return LeftOut(path=path, reason=reason, size=stat.st_size, mtime_ns=stat.st_mtime_ns)
    # Without a readable session_meta the name is the best there is.
    named_id = named.group(1) if named else name.removesuffix(COMPRESSED).rpartition(".")[0]
    return _File(path, thread.thread or named_id, thread.parent, thread.root, known)


def _conversations(files: list[_File], root: Path, names: Mapping[str, Source]) -> Iterator[Conversation]:
    """The conversations that ``files`` make up; ``names`` has what the index says of each thread."""
    parents = {file.thread: file for file in files}
    groups: dict[str, list[_File]] = {}
    for file in files:
        groups.setdefault(_owner(file, parents), []).append(file)
    for owner in sorted(groups):
        native = owner.partition(_COPY)[0]
        members = sorted(groups[owner], key=lambda file: file.thread != native)
        sources = [_source(file, native) for file in members]
        if native in names:
            sources.append(names[native])
        yield Conversation(provider="codex", native_id=owner, root=str(root), sources=tuple(sources))


def _owner(file: _File, threads: Mapping[str, _File]) -> str:
    """The conversation that a file belongs to: its own thread, or that at the top of those that started it."""
    visited: set[str] = set()
    while file.owner is None and file.parent is not None and file.thread not in visited:
        visited.add(file.thread)
        above = threads.get(file.parent)
        if above is None:
            top = threads.get(file.root) if file.root is not None else None
            return (top.owner if top is not None else None) or file.root or file.parent
        file = above
    return file.owner or (min(visited) if file.thread in visited else file.thread)


def _source(file: _File, native: str) -> Source:
    name = os.path.basename(file.path).removesuffix(COMPRESSED)
    main = file.thread == native
    return Source(
        path=file.path,
        src=name if main else f"subagents/{name}",
        shape="document" if file.path.endswith(".json") else "log",
        stream="main" if main else file.thread,
    )


def _sniff(path: str) -> _Thread:
    """Read ``path`` up to the first line in which something is said."""
    for most in (_FIRST_BYTES, _HEAD_BYTES):
        found = _Thread()
        head = read_head(path, most)
        _weigh_lines(io.BytesIO(head), len(head), found)
        if (found.said and found.thread is not None) or len(head) < most:
            break
    if found.own and not found.said and len(head) == _HEAD_BYTES:
        with open_source(path) as (file, _stat, size):
            _weigh_lines(file, size, found)
    return found


def _weigh_lines(file: io.BytesIO | object, size: int, found: _Thread) -> None:
    for line in read_lines(file, 0, 1, size):  # type: ignore[arg-type]
        if is_blank(line.data):
            continue
        try:
            head = parse(_HEAD, line.data)
        except msgspec.DecodeError:
            continue
        _weigh(line.data, head, found)
        if found.said and found.thread is not None:
            return


def _weigh(data: bytes, head: _Head, found: _Thread) -> None:
    payload = bytes(head.payload)
    if payload[:1] == b"{" and head.type in _ENVELOPES:
        found.own = True
        if head.type == "session_meta":
            _take_meta(payload, found)
        elif head.type == "event_msg":
            found.said = found.said or _KIND.decode(payload).type not in _SETTINGS
        else:
            found.said = found.said or head.type not in _PREPARED
    elif head.record_type is not None:
        found.own = True
    elif head.type is None and head.id and head.timestamp and head.instructions is not UNSET:
        found.own = True
        _take_meta(repair(data)[0], found)
    elif found.own or head.created_at:
        found.said = found.said or head.type is not None or head.role is not None


def _take_meta(payload: bytes, found: _Thread) -> None:
    if found.thread is not None:
        return
    meta = META.decode(payload)
    subagent, parent = subagent_parent(meta)
    found.thread = meta.id
    if subagent and parent != meta.id:
        found.parent = parent
        found.root = meta.session_id if meta.session_id != meta.id else None


def _sniff_document(path: str) -> _Thread:
    found = _Thread()
    try:
        document = parse(_WHOLE, Path(path).read_bytes())
        _take_meta(bytes(document.session), found)
    except msgspec.DecodeError:
        return found
    found.own, found.said = True, bool(document.items)
    return found
