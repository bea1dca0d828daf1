"""A hub as a transport: what stands there answers in the place of a store; a push adds a pack and a record of it."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from hashlib import sha256
from io import BytesIO
from itertools import islice
from tempfile import TemporaryFile
from typing import Any

from objstore.digest import ALGORITHMS
from objstore.errors import NotFound, StorageError, UsageError
from objstore.pack.reader import Source
from objstore.sync.joining import Place, place_of_name
from objstore.sync.manifest import Node, Scope
from objstore.sync.transport import Hello, Receipt, Traffic
from porcelain.remotes.config import Pusher
from porcelain.remotes.hub.files import PACKS, Files
from porcelain.remotes.hub.reading import AHEAD, Counted, Reading
from porcelain.remotes.hub.records import BEFORE_KEY, Record, cut, place, read_record
from porcelain.remotes.hub.standing import Hub, known_root
from porcelain.remotes.hub.wanting import wanted
from porcelain.remotes.hub.writing import Writing

#: A hub has no id of its own.
NO_STORE = ""
#: Bytes of a pack up to which it is asked for while others still come.
SMALL = 256 * 1024


class HubTransport:
    """The hub of ``files`` as a transport. ``pusher`` is the store that pushes (None: nobody does), under its id; two
    that go by one id get in each other's way, and lose nothing."""

    def __init__(self, files: Files, pusher: Pusher | None) -> None:
        self.traffic = Traffic()
        self._files = files
        self._reading = Reading(files, self.traffic)
        self._algorithm = pusher.algorithm if pusher is not None else ALGORITHMS[0]
        self._writing = Writing(self._reading, pusher) if pusher is not None else None
        self._passed: set[str] = set()
        self._pushed = False

    def hello(self, scope: Scope) -> Hello:
        writers = self._reading.look()
        self._pushed = False
        hashes = {writer.hash for writer in writers.values()} or {self._algorithm}
        if len(hashes) > 1:
            raise StorageError("stores of different hashes were pushed here: " + ", ".join(sorted(hashes)))
        root, refs = known_root(writers, scope), len(writers)
        if root is None:
            manifest = self._reading.hub().manifest(scope)
            root, refs = manifest.root, len(manifest)
        return Hello(content=True, hash=hashes.pop(), refs=refs, root=root, store=NO_STORE)

    def nodes(self, scope: Scope, prefixes: Sequence[str]) -> Sequence[Node]:
        manifest = self._reading.hub().manifest(scope)
        return [manifest.node(prefix) for prefix in prefixes]

    def entries(self, names: Sequence[str]) -> list[bytes]:
        places = {place_of_name(name).group for name in names}
        found: dict[bytes, None] = {}
        for element in self._reading.hub().elements:
            for ref in element.record.refs:
                if place_of_name(ref.name).group in places:
                    found.update(dict.fromkeys((ref.key, *cut(ref.former, len(ref.key)))))
        return list(found)

    def fetch(self, scope: Scope, names: Sequence[str], have: Sequence[bytes], most: int) -> Iterator[Source]:
        while True:
            records = wanted(self._reading.hub(), scope, names, have)
            try:
                yield from self._packs([one for one in records if one.pack not in self._passed])
                return
            except _Gone as gone:  # somebody merged it, and the time for old readers is over
                self._reading.look_again(gone.name)

    def _packs(self, records: Sequence[Record]) -> Iterator[Source]:
        """The packs of ``records``, small ones asked for ahead; raises ``_Gone`` for one that is not there."""
        rest = iter(records)
        coming: deque[tuple[Record, Future[bytes] | None]] = deque()
        pool = ThreadPoolExecutor(max_workers=AHEAD, thread_name_prefix="hub")
        try:
            while True:
                for record in islice(rest, AHEAD - len(coming)):
                    got = pool.submit(self._reading.whole, record) if record.size <= SMALL else None
                    coming.append((record, got))
                if not coming:
                    return
                record, got = coming.popleft()
                self.traffic.requests += 1
                if got is not None:
                    try:
                        data = got.result()
                    except NotFound:
                        raise _Gone(PACKS + record.pack) from None
                    self._passed.add(record.pack)
                    yield Counted(BytesIO(data), self.traffic)
                else:
                    yield from self._large(record)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _large(self, record: Record) -> Iterator[Source]:
        with ExitStack() as stack:
            try:
                source = stack.enter_context(self._files.open(PACKS + record.pack))
            except NotFound:
                raise _Gone(PACKS + record.pack) from None
            self._passed.add(record.pack)
            yield Counted(source, self.traffic)

    def push(self, pack: Iterable[bytes]) -> Receipt:
        if self._writing is None:
            raise UsageError("nothing is pushed here: it was opened for reading")
        hub = self._reading.hub()
        seen = {name: count for name, count in hub.counts.items() if count}
        before = dict(hub.manifest(Scope(content=True)).refs())
        with TemporaryFile() as file:
            digest, size = _spool(file, pack)
            # What follows in the same push may build on what goes before.
            record = read_record(file, size, seen, narrow=not self._pushed)
            if not _adds(hub, record):
                return Receipt(added=0, diverged=[], moved=[])
            self._writing.add(record, digest, file)
        self._pushed = True
        self._writing.merge_when_many()
        after = dict(self._reading.hub().manifest(Scope(content=True)).refs())
        heads = Counter(place(name, key) for name, key in after.items())
        offered = {place(ref.name, ref.key): ref for ref in record.refs}
        return Receipt(
            added=record.objects,
            diverged=sorted(
                where.group.rstrip("/")
                for where, ref in offered.items()
                if heads[where] > 1 and (ref.before or not where.is_member)
            ),
            moved=[
                name
                for name, key in sorted(after.items())
                if before.get(name) != key and place(name, key) in offered
            ],
        )

    def close(self) -> None:
        return

    def merge(self) -> tuple[int, int]:
        """Merge small packs: how many were, and into how many."""
        if self._writing is None:
            raise UsageError("nothing is pushed here: it was opened for reading")
        self._reading.look()
        return self._writing.merge()


class _Gone(Exception):
    """A pack that was listed is no longer there."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def _adds(hub: Hub, record: Record) -> bool:
    """Whether a pack brings anything: one without objects does when it offers what nobody offered in that place, nor
    anything that goes back to it."""
    if record.objects:
        return True
    known: dict[Place, set[bytes]] = {place(ref.name, ref.key): set() for ref in record.refs}
    for element in hub.elements:
        for ref in element.record.refs:
            there = known.get(place(ref.name, ref.key))
            if there is not None:
                there.update((ref.key[:BEFORE_KEY], *cut(ref.before)))
    return any(ref.key[:BEFORE_KEY] not in known[place(ref.name, ref.key)] for ref in record.refs)


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
