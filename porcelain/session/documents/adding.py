"""Adding documents to a store: files, folders and imported conversations.

A place that was added before costs one ``stat``: what its file looked like is kept in ``local``, together with what was
read from it. A file that vanished stays a source until it is removed. A file that cannot be read is reported and the
others go on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct, field

from objstore.errors import NotFound, ObjstoreError, UsageError
from objstore.refs import quote
from objstore.snapshot import Snapshot
from objstore.store import Store
from porcelain.flow.chain.naming import best_heads, find_conversation
from porcelain.importing.cursors import load_cursor
from porcelain.providers.redaction import RULES, redact_text
from porcelain.session.documents import conversations
from porcelain.session.documents.chunking import CHUNKING
from porcelain.session.documents.documents import put_document
from porcelain.session.documents.extractors import (
    DOCUMENT_SUFFIXES,
    MAX_FILE,
    Extracted,
    clean_title,
    extract,
)
from porcelain.session.documents.kinds import SourceAdded
from porcelain.session.documents.sources import (
    KnownSources,
    Source,
    added,
    live_sources,
    removed,
    source_id,
    until_unmoved,
)

_CURSOR = b"source-cursor/"
#: A transaction holds about this many bytes of text, or this many documents.
_TRANSACTION_BYTES = 8 * 1024 * 1024
_TRANSACTION_DOCUMENTS = 512
_READ_UNDER = f"{RULES} {CHUNKING}"


class Unread(Struct, frozen=True):
    """A place that could not be added, why, and what to do about it."""

    path: str
    reason: str
    hint: str | None = None


class Added(Struct):
    """What adding did. ``new`` and ``changed`` are titles in order; ``bytes`` counts the text that was read anew."""

    new: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unchanged: int = 0
    missing: int = 0
    bytes: int = 0
    problems: list[Unread] = field(default_factory=list)


class _Cursor(Struct, frozen=True):
    """What a file looked like when it was last read, and the document that it gave."""

    path: str
    device: int
    inode: int
    size: int
    mtime_ns: int
    read_under: str
    source: str


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(_Cursor)


def _cursor_key(path: str) -> bytes:
    return _CURSOR + sha256(os.fsencode(path)).digest()[:16]


class _Pending(Struct):
    extracted: Extracted
    uri: str
    title: str
    cursor: _Cursor | None = None


class _Writer:
    """Stores what was read in transactions of bounded size."""

    def __init__(self, store: Store, report: Added) -> None:
        self._store = store
        self._report = report
        self._known = KnownSources()
        self._pending: list[_Pending] = []
        self._bytes = 0

    def add(self, item: _Pending) -> None:
        self._pending.append(item)
        self._bytes += len(item.extracted.text)
        if self._bytes >= _TRANSACTION_BYTES or len(self._pending) >= _TRANSACTION_DOCUMENTS:
            self.flush()

    def flush(self) -> None:
        if not self._pending:
            return
        pending, self._pending, self._bytes = self._pending, [], 0
        until_unmoved(lambda: self._commit(pending))

    def _commit(self, pending: list[_Pending]) -> None:
        batch = self._store.batch()
        frames: dict[str, SourceAdded] = {}
        sizes: dict[str, int] = {}
        for item in pending:
            text = item.extracted
            made = put_document(batch.put, text.text, media_type=text.media_type, extractor=text.extractor)
            frame = added(source_id(self._store, item.uri), item.uri, item.title, made.id)
            frames[frame.id] = frame
            sizes[frame.id] = made.document.size
            if item.cursor is not None:
                stamped = msgspec.structs.replace(item.cursor, source=frame.id)
                batch.set_local(_cursor_key(stamped.path), _ENCODER.encode(stamped))
        with self._store.snapshot() as view:
            self._known.refresh(view)
            before = dict(self._known.frames)
            news = self._known.append(batch, view, self._store, list(frames.values()))
        self._store.commit(batch)
        with self._store.snapshot() as view:
            self._known.learn(view, news)
        self._report.unchanged += len(frames) - len(news)
        for frame in news:
            known = before.get(frame.id)
            is_new = known is None or known.tombstone is True
            (self._report.new if is_new else self._report.changed).append(frame.title)
            self._report.bytes += sizes[frame.id]


def add_sources(
    store: Store, paths: Sequence[str | os.PathLike[str]], *, on_file: Callable[[str], None] | None = None
) -> Added:
    """Add files and folders (their documents at any depth; hidden ones and links to folders are passed over).

    A ``.jsonl`` file that was imported is added as the conversation that it holds. ``on_file`` is told the path of each
    file before it is read. Raises ``NotFound`` for a path that does not exist, before anything is added; a single file
    that cannot be read is reported in ``problems``.
    """
    wanted = [os.path.abspath(path) for path in paths]
    for path in wanted:
        if not os.path.exists(path):
            raise NotFound(f"{path}: no such file or folder")
    report = Added()
    writer = _Writer(store, report)
    with store.snapshot() as view:
        live = {source.id for source in live_sources(view)}
        known = {cursor.path: cursor for cursor in _cursors(view) if cursor.source in live}
    told: set[str] = set()
    for path, named in _files(wanted, report.problems):
        if path in told:
            continue
        told.add(path)
        if named and path.endswith(".jsonl"):
            _add_landed(store, path, writer, report)
            continue
        try:
            status = os.stat(path)
            if _is_same(known.get(path), status):
                report.unchanged += 1
                continue
            if on_file is not None:
                on_file(path)
            writer.add(_read_file(path, status.st_size))
        except OSError as error:
            report.problems.append(Unread(path, error.strerror or type(error).__name__))
        except ObjstoreError as error:
            report.problems.append(Unread(path, error.message, error.hint))
    writer.flush()
    report.missing = sum(
        path not in told and not os.path.lexists(path) for path in known if _is_below(path, wanted)
    )
    return report


def _cursors(view: Snapshot) -> Iterator[_Cursor]:
    for _, value in view.local_items(_CURSOR):
        yield _DECODER.decode(value)


def _is_same(cursor: _Cursor | None, status: os.stat_result) -> bool:
    return cursor is not None and (
        cursor.device,
        cursor.inode,
        cursor.size,
        cursor.mtime_ns,
        cursor.read_under,
    ) == (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, _READ_UNDER)


def _is_below(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip(os.sep) + os.sep) for folder in folders)


def _files(paths: Iterable[str], problems: list[Unread]) -> Iterator[tuple[str, bool]]:
    """Every file to look at, in order of path, and whether it was named itself."""
    for start in paths:
        if not os.path.isdir(start):
            yield start, True
            continue
        waiting = [start]
        while waiting:
            folder = waiting.pop()
            try:
                with os.scandir(folder) as found:
                    entries = sorted(found, key=lambda entry: os.fsencode(entry.name))
            except OSError as error:
                problems.append(Unread(folder, error.strerror or type(error).__name__))
                continue
            folders = []
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif os.path.splitext(entry.name)[1].lower() in DOCUMENT_SUFFIXES and entry.is_file():
                    yield entry.path, False
            waiting += reversed(folders)


def _read_file(path: str, size: int) -> _Pending:
    if size > MAX_FILE:
        raise UsageError(f"is larger than {MAX_FILE // (1024 * 1024)} MiB")
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        data = file.read(MAX_FILE + 1)
    found = extract(os.path.basename(path), data)
    uri = redact_text(Path(path).as_uri())
    cursor = _Cursor(
        path=os.fsencode(path).decode("utf-8", "replace"),
        device=status.st_dev,
        inode=status.st_ino,
        size=len(data),
        mtime_ns=status.st_mtime_ns,
        read_under=_READ_UNDER,
        source="",
    )
    fallback = os.fsencode(os.path.splitext(os.path.basename(path))[0]).decode("utf-8", "replace")
    return _Pending(found, uri, _title(found.title) or _title(fallback) or "untitled", cursor)


def _title(text: str | None) -> str | None:
    return clean_title(redact_text(text)) if text else None


# -- conversations ----------------------------------------------------------------------------------------------------


def add_conversations(store: Store, names: Iterable[str]) -> Added:
    """Add imported conversations by id, beginning of an id, or ``provider/id``. Raises ``NotFound`` or ``UsageError``
    for a name; a conversation without kept content is reported in ``problems``."""
    report = Added()
    writer = _Writer(store, report)
    with store.snapshot() as view:
        found = [find_conversation(view, name) for name in names]
    for provider, conversation in found:
        _add_conversation(store, provider, conversation, writer, report)
    writer.flush()
    return report


def all_conversations(store: Store) -> list[str]:
    """The names, for ``add_conversations``, of every conversation that was imported."""
    with store.snapshot() as view:
        return [f"{provider}/{conversation}" for provider, conversation in best_heads(view, "landed")]


def _add_landed(store: Store, path: str, writer: _Writer, report: Added) -> None:
    with store.snapshot() as view:
        providers = {provider for provider, _ in best_heads(view, "landed")}
        for provider in sorted(providers):
            cursor = load_cursor(view, provider, path)
            if cursor is not None and cursor.conversation:
                found = provider, quote(cursor.conversation)
                break
        else:
            report.problems.append(
                Unread(path, "is no imported conversation", "run: objstore import, with content kept")
            )
            return
    _add_conversation(store, *found, writer, report)


def _add_conversation(store: Store, provider: str, conversation: str, writer: _Writer, report: Added) -> None:
    with store.snapshot() as view:
        text = conversations.conversation_text(view, provider, conversation)
    name = f"{provider}/{conversation}"
    if not text:
        hint = "turn keeping on and import again: objstore config content.keep on"
        report.problems.append(Unread(name, "its content is not kept here", hint))
        return
    extracted = Extracted(text, None, conversations.MEDIA_TYPE, conversations.EXTRACTOR)
    uri = conversations.conversation_uri(provider, conversation)
    writer.add(_Pending(extracted, uri, clean_title(f"Conversation {name}") or name))


# -- removing ---------------------------------------------------------------------------------------------------------


def remove_sources(store: Store, names: Sequence[str]) -> list[Source]:
    """Take places off the list, and give those that were: by path of a file or folder, URI, title, or fact id (or the
    beginning of one). Raises ``NotFound`` for a name that no source has; nothing is removed then."""
    return until_unmoved(lambda: _remove(store, names))


def _remove(store: Store, names: Sequence[str]) -> list[Source]:
    batch = store.batch()
    with store.snapshot() as view:
        live = list(live_sources(view))
        gone: dict[str, Source] = {}
        for name in names:
            found = [source for source in live if _is_named(source, name)]
            if not found:
                raise NotFound(
                    f"{name[:200]}: no such source", hint="list them with: objstore session source list"
                )
            gone |= {source.id: source for source in found}
        known = KnownSources()
        known.refresh(view)
        known.append(batch, view, store, [removed(source) for source in gone.values()])
        for cursor in _cursors(view):
            if cursor.source in gone:
                batch.set_local(_cursor_key(cursor.path), None)
    store.commit(batch)
    return list(gone.values())


def _is_named(source: Source, name: str) -> bool:
    if name in (source.uri, source.title) or (name.startswith("source_") and source.id.startswith(name)):
        return True
    if not name:
        return False
    uri = redact_text(Path(os.path.abspath(name)).as_uri())
    return source.uri == uri or source.uri.startswith(uri.rstrip("/") + "/")
