"""A hub that is nothing but files: a bucket, or a branch. Every writer has a small file of its own there, the only kind
that is ever replaced; all else is named by its SHA-256 and never changes. Readers join what they find.

=======================  ==============================================================================================
``writers/<id>``         JSON: the hash that keys objects, the writer's segments in order, and what stood here joined
``segments/<sha256>``    MessagePack: records, one for each pack that the writer pushed
``packs/<sha256>``       a pack
=======================  ==============================================================================================

A record says which refs its pack offers, which older ids each of them goes back to, and how much of every writer stood
here when it was made: what the pack presumes is in that. So what is joined follows from the records alone, in whatever
order they are read, and no pack has to be opened for it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import lru_cache
from hashlib import sha256
from io import BytesIO
from itertools import islice
from tempfile import TemporaryFile
from typing import Any, Protocol

import msgspec
from msgspec import Struct, structs

from objstore import kinds
from objstore.closure import CONTENT_KINDS, CONTENT_REFS
from objstore.digest import ALGORITHMS
from objstore.errors import CheckFailed, Conflict, StorageError, UsageError
from objstore.pack.reader import PackReader, Source
from objstore.sync.joining import Place, place_of, place_of_name, set_apart
from objstore.sync.manifest import Manifest, Node, Scope
from objstore.sync.transport import Hello, Receipt, Traffic
from porcelain.remotes.config import Pusher

#: A hub has no id of its own.
NO_STORE = ""
FORMAT = 1
WRITERS = "writers/"
_SEGMENTS, _PACKS = "segments/", "packs/"
#: How often a race for the writer's own file is run again.
_TRIES = 200
#: Bytes of an id that say that a ref went back to it, and how many of them are kept for one ref.
_BEFORE_KEY = 16
_MOST_BEFORE = 4096
#: So many names are perhaps not all that the receiver lacks.
_MANY = 50_000
_ROOTS = (False, True)
#: Packs that are asked for at once, and bytes of one up to which it is.
_AHEAD = 8
_SMALL = 256 * 1024

Ref = tuple[str, bytes]


class Lost(Exception):
    """A race was lost: the file is no longer what it was."""


class Files(Protocol):
    """The files of a hub. A ``tag`` stands for one state of a file. All raise ``StorageError`` where the hub cannot be
    reached. ``open`` is called by several threads at once."""

    def list(self, prefix: str) -> Mapping[str, str]:
        """The files below ``prefix``, and their tags."""

    def get(self, name: str, tag: str | None = None) -> bytes:
        """What a file holds; raises ``NotFound``, and ``Lost`` where it does not stand at ``tag`` (None: wherever)."""

    def open(self, name: str) -> AbstractContextManager[Source]:
        """A file to be read bit by bit; raises ``NotFound``."""

    def create(self, name: str, source: Source, size: int) -> None:
        """Make a file; where it is there already, it stays as it is. It need not be seen before ``replace``."""

    def replace(self, name: str, data: bytes, tag: str | None) -> None:
        """Write a file that stands at ``tag`` (None: that is not there); raises ``Lost``."""


class Offered(Struct, frozen=True, array_like=True):
    """A ref that a pack offers; ``before`` are the first bytes of ids that it goes back to, run together; ``said``
    whether it leads to what was said by itself."""

    name: str
    key: bytes
    before: bytes
    said: bool


class Record(Struct, frozen=True, array_like=True):
    """One pack: its name and size, whether it was made with content, its objects, its refs, and for each writer how
    many records of that one stood here."""

    pack: str
    size: int
    content: bool
    objects: int
    refs: list[Offered]
    seen: dict[str, int]


class Writer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file of a writer. ``joined`` has the roots of the joined manifest of all refs (without and with content) and
    ``over`` what they were made from, so that who finds the same needs nothing else."""

    format: int
    hash: str
    joined: list[str]
    over: str
    segments: list[str]


_RECORDS = msgspec.msgpack.Decoder(list[Record])
_WRITER = msgspec.json.Decoder(Writer)


class _Hub:
    """All that stands in a hub at one moment."""

    def __init__(self, writers: Mapping[str, Writer], records: Callable[[str], list[Record]]) -> None:
        self.writers = writers
        self._segment = records
        self._records: dict[str, list[Record]] | None = None
        self._manifests: dict[Scope, Manifest] = {}

    @property
    def records(self) -> dict[str, list[Record]]:
        """The records of each writer, in order."""
        if self._records is None:
            self._records = {
                name: [record for segment in writer.segments for record in self._segment(segment)]
                for name, writer in self.writers.items()
            }
        return self._records

    @property
    def over(self) -> str:
        """What stands for all that was pushed."""
        segments = sorted((name, writer.segments) for name, writer in self.writers.items())
        return sha256(msgspec.json.encode(segments)).hexdigest()

    def known_root(self, scope: Scope) -> bytes | None:
        """The root of the manifest, where a writer has said it of just this state."""
        if not scope.patterns:
            for writer in self.writers.values():
                if writer.over == self.over:
                    return bytes.fromhex(writer.joined[scope.content])
        return None

    def manifest(self, scope: Scope) -> Manifest:
        """The joined refs."""
        found = self._manifests.get(scope)
        if found is None:
            matches = scope.matcher()
            found = self._manifests[scope] = Manifest(
                (name, key) for name, key in self._joined(content=scope.content) if matches(name)
            )
        return found

    def _joined(self, *, content: bool) -> Iterator[Ref]:
        groups: dict[Place, set[bytes]] = {}
        before: dict[Place, set[bytes]] = {}
        for records in self.records.values():
            for record in records:
                for ref in record.refs:
                    if content or not ref.said:
                        place = _place(ref.name, ref.key)
                        groups.setdefault(place, set()).add(ref.key)
                        before.setdefault(place, set()).update(_cut(ref.before))
        for place, keys in groups.items():
            heads = {key for key in keys if key[:_BEFORE_KEY] not in before[place]}
            for key in heads:
                if place.is_member:
                    yield place.group + key.hex(), key
                else:
                    yield place.group if len(heads) == 1 else set_apart(place, key), key


@lru_cache(maxsize=200_000)
def _place(name: str, key: bytes) -> Place:
    """``place_of``, which every look at a hub asks of all that was ever pushed."""
    return place_of(name, key)


def _cut(data: bytes) -> list[bytes]:
    return [data[at : at + _BEFORE_KEY] for at in range(0, len(data), _BEFORE_KEY)]


class PlainTransport:
    """The hub of ``files`` as a transport. ``pusher`` is the store that pushes (None: nobody does), under its id; two
    that go by one id get in each other's way, and lose nothing."""

    def __init__(self, files: Files, pusher: Pusher | None) -> None:
        self.traffic = Traffic()
        self._files = files
        self._writer = pusher.store if pusher is not None else None
        self._algorithm = pusher.algorithm if pusher is not None else ALGORITHMS[0]
        self._segments: dict[str, list[Record]] = {}
        self._tags: Mapping[str, str] = {}
        self._known: dict[tuple[str, str], Writer] = {}
        self._hub = _Hub({}, self._segment)
        self._passed: set[str] = set()

    # -- what stands there --------------------------------------------------------------------------------------------

    def _look(self) -> _Hub:
        """Read anew what has changed."""
        for _ in range(_TRIES):
            self.traffic.requests += 1
            self._tags = self._files.list(WRITERS)
            try:
                for name, tag in self._tags.items():
                    if (name, tag) not in self._known:
                        self._known[name, tag] = self._read_writer(name, tag)
            except Lost:
                continue  # somebody pushed just now
            writers = {name[len(WRITERS) :]: self._known[name, tag] for name, tag in self._tags.items()}
            self._hub = _Hub(writers, self._segment)
            return self._hub
        raise _busy()

    def _read_writer(self, name: str, tag: str) -> Writer:
        data = self._get(name, tag)
        try:
            found = _WRITER.decode(data)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise StorageError(f"{name}: not the file of a writer: {error}") from None
        if found.format > FORMAT:
            raise StorageError(f"{name}: format {found.format} of the hub: upgrade objstore")
        if len(found.joined) != len(_ROOTS) or any(len(root) != 64 for root in found.joined):
            raise StorageError(f"{name}: not the file of a writer: its roots are wrong")
        return found

    def _segment(self, digest: str) -> list[Record]:
        found = self._segments.get(digest)
        if found is None:
            data = self._get(_SEGMENTS + digest)
            if sha256(data).hexdigest() != digest:
                raise CheckFailed(f"{_SEGMENTS}{digest}: damaged: it does not have the hash that names it")
            try:
                found = self._segments[digest] = _RECORDS.decode(data)
            except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
                raise CheckFailed(f"{_SEGMENTS}{digest}: no list of packs: {error}") from None
        return found

    def _get(self, name: str, tag: str | None = None) -> bytes:
        self.traffic.requests += 1
        data = self._files.get(name, tag)
        self.traffic.received += len(data)
        return data

    # -- the transport ------------------------------------------------------------------------------------------------

    def hello(self, scope: Scope) -> Hello:
        hub = self._look()
        hashes = {writer.hash for writer in hub.writers.values()} or {self._algorithm}
        if len(hashes) > 1:
            raise StorageError("stores of different hashes were pushed here: " + ", ".join(sorted(hashes)))
        root = hub.known_root(scope)
        return Hello(
            content=True,
            hash=hashes.pop(),
            refs=len(hub.writers) if root is not None else len(hub.manifest(scope)),
            root=hub.manifest(scope).root if root is None else root,
            store=NO_STORE,
        )

    def nodes(self, scope: Scope, prefixes: Sequence[str]) -> Sequence[Node]:
        manifest = self._hub.manifest(scope)
        return [manifest.node(prefix) for prefix in prefixes]

    def entries(self, names: Sequence[str]) -> list[bytes]:
        places = {place_of_name(name).group for name in names}
        found: dict[bytes, None] = {}
        for record in self._all():
            for ref in record.refs:
                if place_of_name(ref.name).group in places:
                    found[ref.key] = None
        return list(found)

    def _all(self) -> Iterator[Record]:
        for records in self._hub.records.values():
            yield from records

    def fetch(self, scope: Scope, names: Sequence[str], have: Sequence[bytes], most: int) -> Iterator[Source]:
        records = [one for one in _wanted(self._hub, scope, names, have) if one.pack not in self._passed]
        rest = iter(records)
        coming: deque[tuple[Record, Future[bytes] | None]] = deque()
        pool = ThreadPoolExecutor(max_workers=_AHEAD, thread_name_prefix="hub")
        try:
            while True:
                for record in islice(rest, _AHEAD - len(coming)):
                    small = record.size <= _SMALL
                    got = pool.submit(self._whole, record) if small else None
                    coming.append((record, got))
                if not coming:
                    return
                record, got = coming.popleft()
                self._passed.add(record.pack)
                self.traffic.requests += 1
                if got is not None:
                    yield _Counted(BytesIO(got.result()), self.traffic)
                else:
                    with self._files.open(_PACKS + record.pack) as source:
                        yield _Counted(source, self.traffic)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _whole(self, record: Record) -> bytes:
        """A small pack; raises ``CheckFailed`` for one that is longer than was said."""
        data = b""
        with self._files.open(_PACKS + record.pack) as source:
            while part := source.read(record.size + 1 - len(data)):
                data += part
        if len(data) > record.size:
            raise CheckFailed(
                f"{_PACKS}{record.pack}: is longer than the {record.size} bytes that it should have"
            )
        return data

    def push(self, pack: Iterable[bytes]) -> Receipt:
        if self._writer is None:
            raise UsageError("nothing is pushed here: it was opened for reading")
        seen = {name: len(records) for name, records in self._hub.records.items()}
        before = dict(self._hub.manifest(Scope(content=True)).refs())
        with TemporaryFile() as file:
            digest, size = _spool(file, pack)
            record = _read_record(file, digest, size, seen)
            if not _adds(self._hub, record):
                return Receipt(added=0, diverged=[], moved=[])
            file.seek(0)
            self.traffic.requests += 1
            self._files.create(_PACKS + digest, file, size)
            self.traffic.sent += size
        self._publish(record)
        after = dict(self._hub.manifest(Scope(content=True)).refs())
        heads = Counter(place_of(name, key) for name, key in after.items())
        offered = {_place(ref.name, ref.key): ref for ref in record.refs}
        return Receipt(
            added=record.objects,
            diverged=sorted(
                place.group.rstrip("/")
                for place, ref in offered.items()
                if heads[place] > 1 and (ref.before or not place.is_member)
            ),
            moved=[
                name
                for name, key in sorted(after.items())
                if before.get(name) != key and place_of(name, key) in offered
            ],
        )

    def close(self) -> None:
        return

    # -- writing ------------------------------------------------------------------------------------------------------

    def _publish(self, record: Record) -> None:
        """Add a record to the writer's own file, whoever else goes by that name. Segments are run together so that each
        has more records than the next, and there are few."""
        assert self._writer is not None
        name = WRITERS + self._writer
        for _ in range(_TRIES):
            mine = self._hub.writers.get(self._writer)
            segments, records = [*(mine.segments if mine is not None else ())], [record]
            while segments and len(last := self._segment(segments[-1])) <= len(records):
                segments.pop()
                records = [*last, *records]
            segments.append(self._put_segment(records))
            changed = Writer(format=FORMAT, hash=self._algorithm, joined=[], over="", segments=segments)
            hub = _Hub({**self._hub.writers, self._writer: changed}, self._segment)
            roots = [hub.manifest(Scope(content=content)).root.hex() for content in _ROOTS]
            changed = structs.replace(changed, joined=roots, over=hub.over)
            data = msgspec.json.encode(changed)
            self.traffic.requests += 1
            self.traffic.sent += len(data)
            try:
                self._files.replace(name, data, self._tags.get(name))
            except Lost:
                # Perhaps to oneself: a request whose answer did not come may have been made again.
                if record in self._look().records.get(self._writer, ()):
                    return
                continue
            self._look()
            return
        raise _busy()

    def _put_segment(self, records: list[Record]) -> str:
        data = msgspec.msgpack.encode(records)
        digest = sha256(data).hexdigest()
        self._segments[digest] = records
        self.traffic.requests += 1
        self.traffic.sent += len(data)
        self._files.create(_SEGMENTS + digest, BytesIO(data), len(data))
        return digest


def _busy() -> Conflict:
    return Conflict("others push there all the time: gave up", hint="try again")


def _adds(hub: _Hub, record: Record) -> bool:
    """Whether a pack brings anything: one without objects does when it offers what nobody has."""
    if record.objects:
        return True
    known = {(ref.name, ref.key) for records in hub.records.values() for one in records for ref in one.refs}
    return any((ref.name, ref.key) not in known for ref in record.refs)


def _spool(file: Any, pack: Iterable[bytes]) -> tuple[str, int]:
    """Write a pack to a file; its digest and its size."""
    digest, size = sha256(), 0
    try:
        for piece in pack:
            digest.update(piece)
            size += len(piece)
            file.write(piece)
        file.seek(0)
    except OSError as error:
        raise StorageError(f"cannot write to the folder for temporary files: {error.strerror}") from None
    return digest.hexdigest(), size


def _read_record(file: Source, digest: str, size: int, seen: dict[str, int]) -> Record:
    """Check a pack, and say what others must know of it. Raises ``PackRefused``."""
    reader = PackReader(file)
    reader.presumed()
    refs = reader.refs()
    previous: dict[bytes, list[bytes]] = {}
    of_kind: dict[bytes, str] = {}
    targets = {key for _, key in refs}
    for block in reader.entries():
        for name, key, data in block:
            if key in targets:
                of_kind[key] = name
            kind = kinds.lookup(name)
            if kind.previous is not None:
                previous[key] = [bytes.fromhex(text) for text in kind.previous(kinds.decode(name, data))]
    reader.finish()
    offered = [
        Offered(
            name,
            key,
            b"".join(one[:_BEFORE_KEY] for one in _gone_back(previous, key)),
            name.startswith(CONTENT_REFS) or of_kind.get(key) in CONTENT_KINDS,
        )
        for name, key in refs
    ]
    return Record(digest, size, reader.header.content, reader.header.entries, offered, seen)


def _gone_back(previous: Mapping[bytes, list[bytes]], key: bytes) -> list[bytes]:
    """The entries before ``key`` in a pack and the last ones before those, the nearest first."""
    found: dict[bytes, None] = {}
    waiting = list(previous.get(key, ()))
    while waiting and len(found) < _MOST_BEFORE:
        upcoming: list[bytes] = []
        for one in waiting:
            if one not in found:
                found[one] = None
                upcoming += previous.get(one, ())
        waiting = upcoming
    return list(found)


def _wanted(hub: _Hub, scope: Scope, names: Sequence[str], have: Sequence[bytes]) -> list[Record]:
    """The records whose packs bring ``names`` to one who has ``have``: those that offer them and all that these build
    on, but for those whose refs the receiver has all, or something later of each; what is needed comes first."""
    joined = dict(hub.manifest(scope).refs())
    absent = {place_of(name, joined[name]) for name in names if name in joined}
    reached = _reached(hub, have)
    matches = scope.matcher()
    partial = len(names) >= _MANY

    def has(ref: Offered) -> bool:
        if ref.key[:_BEFORE_KEY] in reached or (ref.said and not scope.content):
            return True
        return not partial and matches(ref.name) and _place(ref.name, ref.key) not in absent

    missing = {
        (writer, at)
        for writer, records in hub.records.items()
        for at, record in enumerate(records)
        if not all(map(has, record.refs))
    }
    keys = {joined[name] for name in names if name in joined}
    waiting = [
        (writer, at) for writer, at in missing if any(ref.key in keys for ref in hub.records[writer][at].refs)
    ]
    needed: set[tuple[str, int]] = set(waiting)
    while waiting:
        writer, at = waiting.pop()
        limits = {**hub.records[writer][at].seen, writer: at}
        for one in missing - needed:
            if one[1] < limits.get(one[0], 0):
                needed.add(one)
                waiting.append(one)
    chosen = _in_order(hub, needed)
    if not scope.content and any(record.content for record in chosen):
        raise UsageError(
            "what is wanted was pushed there with content, and can only be had with it",
            hint="fetch with --content, or have it pushed without",
        )
    return chosen


def _reached(hub: _Hub, have: Sequence[bytes]) -> set[bytes]:
    """What ``have`` goes back to, as far as the records say; each by the first bytes of its id."""
    before: dict[bytes, list[bytes]] = {}
    for records in hub.records.values():
        for record in records:
            for ref in record.refs:
                before.setdefault(ref.key[:_BEFORE_KEY], []).append(ref.before)
    waiting = [key[:_BEFORE_KEY] for key in have]
    reached = set(waiting)
    while waiting:
        for older in before.get(waiting.pop(), ()):
            fresh = [key for key in _cut(older) if key not in reached]
            reached.update(fresh)
            waiting += fresh
    return reached


def _in_order(hub: _Hub, chosen: set[tuple[str, int]]) -> list[Record]:
    """Records, each after those that it builds on: these have all seen less."""

    def seen(one: tuple[str, int]) -> tuple[int, tuple[str, int]]:
        writer, at = one
        counts = {**hub.records[writer][at].seen, writer: at}
        return sum(counts.values()), one

    return [hub.records[writer][at] for writer, at in sorted(chosen, key=seen)]


class _Counted:
    """A source whose bytes are counted."""

    def __init__(self, source: Source, traffic: Traffic) -> None:
        self._source = source
        self._traffic = traffic

    def read(self, size: int, /) -> bytes:
        data = self._source.read(size)
        self._traffic.received += len(data)
        return data
