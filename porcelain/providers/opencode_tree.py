"""OpenCode's tree of JSON files (up to 1.1): one file a session, a message and a part.

``session/<project>/ses_*.json``, ``message/<session>/msg_*.json``, ``part/<message>/prt_*.json``; older trees have the
parts directly in ``part/``. What the session's file says and what the session's row in a database says take one form
here, ``About``, so that both make one record.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator
from hashlib import blake2b

import msgspec
from msgspec import Raw, Struct, field

from objstore.nesting import is_too_deep
from porcelain.providers.decoding import NONE, Shape
from porcelain.providers.documents_landing import ABOUT
from porcelain.providers.jsonlines import parse, repair

_NATIVE = re.compile(r"(?:ses|msg|prt)_[0-9a-f]{12}[0-9A-Za-z]{14}\Z")


class About(Struct, omit_defaults=True):
    """A session without what changes at every turn; times are milliseconds since 1970."""

    id: str = ""
    parent: str = ""
    project: str = ""
    directory: str = ""
    title: str = ""
    version: str = ""
    created: int = 0
    archived: int = 0
    share: str = ""
    permission: Raw = NONE
    revert: Raw = NONE


class Times(Struct):
    created: int | None = None
    updated: int | None = None
    archived: int | None = None


class _Share(Struct):
    url: str | None = None


class _Session(Struct):
    id: str | None = None
    parent: str | None = field(default=None, name="parentID")
    project: str | None = field(default=None, name="projectID")
    directory: str | None = None
    title: str | None = None
    version: str | None = None
    time: Times | None = None
    share: _Share | None = None
    permission: Raw = NONE
    revert: Raw = NONE


class _Head(Struct):
    """What a message or a part says of itself."""

    id: str | None = None
    message: str | None = field(default=None, name="messageID")
    time: Times | None = None


_SESSION = Shape(_Session, nested={"time": Times, "share": _Share})
_HEAD = Shape(_Head, nested={"time": Times})


def compact(data: bytes) -> bytes:
    """JSON text without white space between its tokens; what is not JSON as it is."""
    clean, _ = repair(data)
    if is_too_deep(clean):
        return data
    try:
        return msgspec.json.format(clean, indent=-1)
    except msgspec.DecodeError:
        return data


def digest(text: str | bytes) -> str:
    """A short hash that stands for ``text`` in a stamp."""
    return blake2b(text.encode() if isinstance(text, str) else text, digest_size=9).hexdigest()


def about(data: bytes) -> About:
    """The description in a session's file; raises ``msgspec.DecodeError`` for what is no JSON object."""
    stated = parse(_SESSION, compact(data))
    time = stated.time or Times()
    return About(
        id=stated.id or "",
        parent=stated.parent or "",
        project=stated.project or "",
        directory=stated.directory or "",
        title=stated.title or "",
        version=stated.version or "",
        created=time.created or 0,
        archived=time.archived or 0,
        share=(stated.share.url if stated.share else None) or "",
        permission=_object(stated.permission),
        revert=_object(stated.revert),
    )


def _object(value: Raw) -> Raw:
    return NONE if bytes(value) == b"null" else value


def is_tree(folder: str) -> bool:
    """Whether ``folder`` holds sessions and messages in this layout."""
    return all(os.path.isdir(os.path.join(folder, name)) for name in ("session", "message"))


def session_files(storage: str) -> dict[str, str]:
    """The file of each session by native id, in order of it. A session that moved from one project to another may stand
    in both; the file that was written last counts. Raises ``OSError``."""
    found: dict[str, tuple[int, str]] = {}
    for project in _folders(os.path.join(storage, "session")):
        for stem, path, stat in _files(project):
            native = stem
            if not _NATIVE.match(stem):
                native = _head(path).id or stem
            found[native] = max(found.get(native, (-1, "")), (stat.st_mtime_ns, path))
    return {native: path for native, (_, path) in sorted(found.items())}


class TreeDocuments:
    """What a tree holds of one session: the documents of ``providers.documents_landing``. ``size`` is how many bytes
    there are, after ``stamps`` was asked."""

    def __init__(self, storage: str, session: str, path: str) -> None:
        self._session = session
        self._path = path
        self._messages = os.path.join(storage, "message", session)
        self._parts = os.path.join(storage, "part")
        self._found: dict[str, list[tuple[str, str]]] = {}
        self._changed = 0
        self.size = 0

    def stamps(self) -> dict[str, str]:
        """From names, sizes and times of the files alone."""
        stamps: dict[str, str] = {}
        self._found, self._changed, self.size = {}, 0, 0
        if self._path:
            own = os.stat(self._path)
            self._note(own)
            stamps[ABOUT] = _stamp(own)
        loose = _loose_parts(self._parts)
        for stem, path, stat in _files(self._messages):
            native = stem if _NATIVE.match(stem) else _head(path).id or stem
            files = [(native, path)]
            states = [_stamp(stat)]
            self._note(stat)
            parts = [*loose.get(native, ()), *_files(os.path.join(self._parts, native))]
            for part, part_path, part_stat in sorted(parts, key=lambda part: part[0]):
                files.append((part, part_path))
                self._note(part_stat)
                states.append(f"{part}.{_stamp(part_stat)}")
            self._found[native] = files
            stamps[native] = digest(" ".join(states))
        return stamps

    def _note(self, stat: os.stat_result) -> None:
        self._changed = max(self._changed, stat.st_mtime_ns)
        self.size += stat.st_size

    def changed(self) -> int:
        return self._changed

    def made(self, key: str) -> int:
        time = _head(self._found[key][0][1]).time
        return (time.created if time else None) or 0

    def read(self, key: str) -> dict[str, bytes]:
        if key == ABOUT:
            with open(self._path, "rb") as file:
                data = file.read()
            try:
                return {ABOUT: msgspec.json.encode(about(data))}
            except msgspec.DecodeError:
                return {ABOUT: data}
        found: dict[str, bytes] = {}
        for name, path in self._found[key]:
            try:
                with open(path, "rb") as file:
                    found[name] = compact(file.read())
            except FileNotFoundError:
                continue  # the agent took the part away since it was listed
        return found


def _head(path: str) -> _Head:
    try:
        with open(path, "rb") as file:
            return parse(_HEAD, file.read())
    except (FileNotFoundError, msgspec.DecodeError):
        return _Head()


def _stamp(stat: os.stat_result) -> str:
    return f"{stat.st_size}.{stat.st_mtime_ns}"


def _folders(parent: str) -> Iterator[str]:
    with os.scandir(parent) as entries:
        yield from sorted(entry.path for entry in entries if entry.is_dir())


def _files(folder: str) -> list[tuple[str, str, os.stat_result]]:
    """The JSON files in ``folder`` by name: name without its ending, path, stat; none where there is no such folder."""
    found: list[tuple[str, str, os.stat_result]] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".json") and entry.is_file():
                    found.append((entry.name.removesuffix(".json"), entry.path, entry.stat()))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(found, key=lambda one: one[0])


def _loose_parts(folder: str) -> dict[str, list[tuple[str, str, os.stat_result]]]:
    """Parts that stand directly in ``folder``, by the message that they name."""
    try:
        return _loose_parts_of(folder, os.stat(folder).st_mtime_ns)
    except FileNotFoundError:
        return {}


@functools.lru_cache(maxsize=4)
def _loose_parts_of(folder: str, _mtime_ns: int) -> dict[str, list[tuple[str, str, os.stat_result]]]:
    found: dict[str, list[tuple[str, str, os.stat_result]]] = {}
    for one in _files(folder):
        message = _head(one[1]).message
        if message:
            found.setdefault(message, []).append(one)
    return found
