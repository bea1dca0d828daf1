"""Where OpenCode keeps its sessions, and which of them make up one conversation.

The data folder holds ``storage/``, a tree of JSON files, or since 1.2 ``opencode.db`` (``opencode-<channel>.db``), and
after the change both, with the same ids. A session is found by its id wherever it stands; sub-agents' sessions name
the one that started them and are streams of its conversation.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from porcelain.providers import opencode_database, opencode_tree
from porcelain.providers.agents import OPENCODE_DATABASE
from porcelain.providers.cursor import CursorHead, KnownFiles
from porcelain.providers.files import open_file
from porcelain.providers.reader import Container, Conversation, LeftOut, Seen, Source, nothing_seen

#: Of the reader: files that another one read are read again.
PARSER = "1"

#: Folders of a data folder that hold no session and may be large.
_SKIPPED = frozenset({"bin", "log", "node_modules", "part", "repos", "snapshot", "tool-output", "worktree"})
#: Ends the native id in the name of a conversation of which there are several.
_COPY = "~"


class _Found(Struct):
    """A session in one container; ``parent`` is the session that started it, "" for none."""

    session: str
    parent: str
    path: str
    src: str
    stamp: str
    size: int = 0


def is_container(path: Path) -> bool:
    """Whether ``path`` is a file that may hold many conversations."""
    return path.is_file() and path.suffix == ".db"


def discover(root: Path, seen: Seen = nothing_seen) -> Iterator[Conversation | LeftOut]:
    """All conversations in ``root``: a data folder, a ``storage`` folder, a database, or any folder that holds such."""
    return (one for one in discover_known(root, KnownFiles({})) if not isinstance(one, Container))


def discover_known(root: Path, known: KnownFiles) -> Iterator[Conversation | LeftOut | Container]:
    """As ``discover``, and the databases; what is ``known`` from earlier imports keeps what has not changed from being
    opened."""
    cursors = known.cursors
    found: list[_Found] = []
    for kind, path in _containers(str(root)):
        name = os.path.relpath(path, root).replace(os.sep, "/")
        if name == ".":
            name = os.path.basename(path)
        try:
            if kind == "tree":
                found += _in_tree(path, name, cursors)
            else:
                stamp = opencode_database.file_stamp(path)
                found += _in_database(path, name, stamp, cursors)
                yield Container(path=path, stamp=stamp)
        except OSError:
            yield LeftOut(path=path, reason="unreadable")
            found += _known_in(path, cursors)
    yield from _conversations(found, str(root), cursors)


def recognise(path: Path) -> Conversation | None:
    """The conversation whose session file, or folder of messages, ``path`` is; None for anything else."""
    for storage in path.parents:
        if opencode_tree.is_tree(str(storage)):
            break
    else:
        return None
    for one in discover(storage):
        if isinstance(one, Conversation) and any(
            os.path.basename(source.path) == path.name.removesuffix(".json") for source in one.sources
        ):
            return one
    return None


def _containers(root: str) -> Iterator[tuple[str, str]]:
    """Trees, then databases: what both hold counts as the database has it."""
    if os.path.isfile(root):
        yield "database", root
        return
    trees: list[str] = []
    databases: list[str] = []
    storage = os.path.join(root, "storage")
    walk = os.walk(root)
    for folder, names, files in walk:
        databases += [
            os.path.join(folder, name) for name in files if fnmatch.fnmatch(name, OPENCODE_DATABASE)
        ]
        if opencode_tree.is_tree(folder):
            trees.append(folder)
            names.clear()
        elif folder == root and (databases or opencode_tree.is_tree(storage)):
            names[:] = [name for name in names if name == "storage"]
        names[:] = sorted(set(names) - _SKIPPED)
    yield from (("tree", path) for path in sorted(trees))
    yield from (("database", path) for path in sorted(databases))


def _in_tree(storage: str, name: str, cursors: Mapping[str, CursorHead]) -> Iterator[_Found]:
    for session, file in opencode_tree.session_files(storage).items():
        path = os.path.join(storage, "message", session)
        documents = opencode_tree.TreeDocuments(storage, session, file)
        stamps = documents.stamps()
        if len(stamps) < 2:
            continue  # no message yet
        stamp = opencode_tree.digest(" ".join(f"{key}.{value}" for key, value in stamps.items()))
        cursor = cursors.get(path)
        if cursor is not None and cursor.stamp == stamp:
            parent = _parent(cursor, session)
        else:
            with open_file(file) as opened:
                data = opened.read()
            try:
                parent = opencode_tree.about(data).parent
            except msgspec.DecodeError:
                parent = ""
        yield _Found(session, parent, path, f"{name}/{session}", stamp, documents.size)


def _in_database(path: str, name: str, stamp: str, cursors: Mapping[str, CursorHead]) -> list[_Found]:
    cursor = cursors.get(path)
    if cursor is not None and cursor.stamp == stamp:
        return _known_in(path, cursors)
    size = opencode_database.file_size(path)
    with opencode_database.open_database(path) as connection:
        return [
            _Found(
                row.id,
                row.parent,
                os.path.join(path, row.id),
                f"{name}/{row.id}",
                row.stamp,
                int(size * row.share),
            )
            for row in opencode_database.sessions(connection)
            if row.id and row.messages
        ]


def _known_in(container: str, cursors: Mapping[str, CursorHead]) -> list[_Found]:
    """The sessions that earlier imports found in a container, as they were."""
    inside = container + os.sep
    found: list[_Found] = []
    for path, cursor in sorted(cursors.items()):
        if path.startswith(inside) and cursor.state not in ("gone", "left-out"):
            session = os.path.basename(path)
            found.append(_Found(session, _parent(cursor, session), path, cursor.src, cursor.stamp))
    return found


def _parent(cursor: CursorHead, session: str) -> str:
    """The session at the head of the conversation that this one was landed in; "" for itself."""
    return "" if cursor.stream == "main" else cursor.conversation.partition(_COPY)[0]


def _conversations(
    found: list[_Found], root: str, cursors: Mapping[str, CursorHead]
) -> Iterator[Conversation]:
    parents: dict[str, str] = {}
    for one in found:
        parents[one.session] = one.parent or parents.get(one.session, "")
        cursor = cursors.get(one.path)
        if cursor is not None and cursor.stream == "main" and cursor.state != "gone":
            # It was landed as a conversation of its own before its parent was found, and stays one.
            parents[one.session] = ""
    streams: dict[str, list[Source]] = {}
    for one in sorted(found, key=lambda one: _head(one.session, parents) != one.session):
        head = _head(one.session, parents)
        stream = "main" if one.session == head else one.session
        streams.setdefault(head, []).append(
            Source(
                path=one.path,
                src=one.src,
                shape="document",
                stream=stream,
                stamp=one.stamp,
                size=one.size,
            )
        )
    for head in sorted(streams):
        yield Conversation(provider="opencode", native_id=head, root=root, sources=tuple(streams[head]))


def _head(session: str, parents: Mapping[str, str]) -> str:
    """The session at the top of those that started ``session``; itself where they go round in a circle."""
    walked = [session]
    while (above := parents.get(walked[-1])) and above in parents:
        if above in walked:
            return session
        walked.append(above)
    return walked[-1]
