"""OpenCode: its sessions as landed records (dialect ``opencode/1``).

A message and its parts are one record under the message's id; each tool part that came to an end is another one, its
result, under the part's id. Where they were read (tree of files, database) does not show in a record. Forks have new
ids throughout and no link: equal ids of tool calls, equal parts and the title tell. What the session says of itself
(id, folder, version, project, parent, number of the fork) is surroundings.

What becomes what:

==================================  =========================================================================
entry                               record
==================================  =========================================================================
session                             runtime; its title as content; data of what is reverted, archived, shared
message user, typed                 external, trigger external, flag ``external_input``; opens a run
message user, of the program's own  external, trigger unknown, flag ``injected``; goes on with the talk
making (synthetic parts alone)
message user with ``compaction``    external, trigger unknown, flag ``context_reset``
message assistant                   agent; call = its id; usage of the message, never of its steps
message assistant, ``summary``      the same, flag ``reset_summary``
part ``tool``                       a ``call`` part of its message; when done a record of its own with the
                                    ``result``, changed lines, and for ``task`` the child session
part ``text``, ``reasoning``        part of the same name; what the program wrote itself says so
part ``file`` with its bytes        a ``media`` part
any other part                      a data part of that name
==================================  =========================================================================
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

import msgspec
from msgspec import UNSET, UnsetType

from porcelain.providers import opencode_database, opencode_tree
from porcelain.providers.content import ContentSink
from porcelain.providers.decoding import PATH_LENGTH, count, line_part, name
from porcelain.providers.documents_landing import ABOUT, Documents
from porcelain.providers.documents_landing import land_documents as land
from porcelain.providers.opencode_discover import PARSER, discover, discover_known, is_container, recognise
from porcelain.providers.opencode_parts import MESSAGE, PART, Message, Parts, SourcePart, TokenCounts
from porcelain.providers.opencode_tree import About
from porcelain.providers.reader import Entry, ReaderState, Source
from porcelain.providers.records import Part, Record, Usage
from porcelain.providers.times import from_milliseconds

__all__ = [
    "DIALECT",
    "NAME",
    "PARSER",
    "TITLE_ENTRY",
    "discover",
    "discover_known",
    "is_container",
    "land",
    "open_documents",
    "read_documents",
    "read_line",
    "recognise",
]

NAME = "opencode"
DIALECT = "opencode/1"
TITLE_ENTRY = "session"

_FORK = re.compile(r" \(fork #(\d{1,9})\)\Z")
_ABOUT = msgspec.json.Decoder(About)
#: What stands in a record or its surroundings already.
_ABOUT_ONLY = ("id", "parent", "project", "directory", "title", "version", "created")
_MESSAGE_ONLY = ("id", "sessionID", "parentID", "role")
#: Parts that stand for something that a person did.
_TYPED = frozenset({"file", "agent", "subtask"})


def read_line(
    line: bytes, source: Source, state: ReaderState, sink: ContentSink, *, fit: bool = False
) -> Iterable[Entry]:
    """Nothing: no source of this agent has lines."""
    return ()


def open_documents(source: Source) -> AbstractContextManager[Documents]:
    """The session ``source``, in a tree or a database; raises ``OSError``."""
    container, session = os.path.split(source.path)
    return _database(container, session) if os.path.isfile(container) else _tree(container, session)


@contextmanager
def _database(path: str, session: str) -> Iterator[Documents]:
    with opencode_database.open_database(path) as connection:
        yield opencode_database.DatabaseDocuments(connection, session)


@contextmanager
def _tree(messages: str, session: str) -> Iterator[Documents]:
    storage = os.path.dirname(messages)
    file = opencode_tree.session_files(storage).get(session, "")
    yield opencode_tree.TreeDocuments(storage, session, file)


def read_documents(
    key: str, documents: Mapping[str, bytes], source: Source, state: ReaderState, sink: ContentSink
) -> list[tuple[str, Record]]:
    """The records of one message with its parts, or (``ABOUT``) of the session itself; each with the native id of the
    document that it is about. Raises ``msgspec.DecodeError`` without the message's own document."""
    own = documents.get(key)
    if own is None:
        raise msgspec.DecodeError("the document is missing")
    if key == ABOUT:
        return [(key, _about(own, state, sink))]
    message = MESSAGE.decode(own)
    parts = Parts(key, state.values.get("session"), sink)
    known: list[SourcePart] = []
    for part_id in sorted(documents):
        if part_id != key:
            part = PART.decode(documents[part_id])
            known.append(part)
            parts.add(part_id, documents[part_id], part)
    return [(key, _message(key, own, message, known, parts, source, sink)), *parts.results]


def _about(data: bytes, state: ReaderState, sink: ContentSink) -> Record:
    about = _ABOUT.decode(data)
    fork = _FORK.search(about.title)
    reverted = _reverted(about)
    stated = {
        "session": about.id,
        "cwd": about.directory,
        "version": about.version,
        "project": about.project,
        "parent": about.parent,
        "fork": fork.group(1) if fork else "",
        "reverted": reverted,
        "archived": (from_milliseconds(about.archived) if about.archived else None) or "",
    }
    state.values = {key: value for key, value in stated.items() if value and len(value) <= PATH_LENGTH}
    rest = line_part(data, _ABOUT_ONLY, sink, of=reverted or None)
    return Record(
        entry="session",
        id=name(about.id),
        label_content=sink.text(about.title) if about.title else UNSET,
        parts=[rest] if rest.bytes > len("{}") else UNSET,
        time=_time(about.created),
    )


def _reverted(about: About) -> str:
    """The message from which on everything is hidden, "" for none."""
    if not about.revert:
        return ""
    try:
        found = msgspec.json.decode(about.revert, type=dict[str, object]).get("messageID")
    except msgspec.ValidationError:
        return ""
    return found if isinstance(found, str) else ""


def _message(
    key: str,
    data: bytes,
    message: Message,
    known: list[SourcePart],
    parts: Parts,
    source: Source,
    sink: ContentSink,
) -> Record:
    role = message.role or ""
    flags: list[str] = []
    trigger = run = None
    is_response = role == "assistant"
    if is_response:
        if bytes(message.summary) == b"true":
            flags.append("reset_summary")
        if message.finish:
            flags.append("finished")
        if message.error:
            flags.append("error")
    elif role == "user":
        run = key
        if any(part.type == "compaction" for part in known):
            trigger = "unknown"
            flags.append("context_reset")
        elif not _is_typed(known):
            trigger = "unknown"
            flags.append("injected")
        elif source.stream == "main":
            trigger = "external"
            flags.append("external_input")
    found: list[Part] = [*parts.parts, line_part(data, _MESSAGE_ONLY, sink)]
    return Record(
        call=name(key) if is_response else UNSET,
        dropped=parts.dropped or UNSET,
        entry=name(f"message/{role}" if role else "message"),
        flags=flags or UNSET,
        from_="agent" if is_response else "external" if role == "user" else "runtime",
        id=name(key),
        model=name(message.model) if is_response else UNSET,
        parent=name(message.parent),
        parts=found,
        role=name(role),
        run=name(run),
        time=_time(message.time.created if message.time else None),
        trigger=trigger or UNSET,
        usage=_usage(message.tokens) if is_response and message.tokens is not None else UNSET,
    )


def _is_typed(parts: list[SourcePart]) -> bool:
    """Whether a person has a share in a user's message; one whose parts have not been written yet counts as typed."""
    if not parts:
        return True
    return any(part.type in _TYPED or (part.type == "text" and not part.synthetic) for part in parts)


def _usage(tokens: TokenCounts) -> Usage:
    cache = tokens.cache
    return Usage(
        in_=count(tokens.input),
        out=count(tokens.output),
        cache_read=count(cache.read) if cache else 0,
        cache_write=count(cache.write) if cache else 0,
        reasoning=count(tokens.reasoning),
    )


def _time(milliseconds: int | None) -> str | UnsetType:
    return (from_milliseconds(milliseconds) if milliseconds else None) or UNSET
