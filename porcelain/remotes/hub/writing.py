"""Writing to a hub: packs, records and merges, and the writer's own file, which makes them known. Each step leaves the
hub whole: files that nobody knows of come first, then the one conditional write."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from io import BytesIO
from typing import Any, Protocol

import msgspec
from msgspec import structs

from objstore.errors import ObjstoreError
from objstore.sync.manifest import Scope
from porcelain.remotes.config import Pusher
from porcelain.remotes.hub.files import PACKS, SEGMENTS, WRITERS, Lost, name_of
from porcelain.remotes.hub.merging import FEW, chosen, loose, merged
from porcelain.remotes.hub.reading import TRIES, Reading, busy
from porcelain.remotes.hub.records import FORMAT, ROOTS, Merge, Record, Segment, Writer
from porcelain.remotes.hub.standing import Element, Hub, over, standing
from porcelain.remotes.hub.sweeping import sweep

#: How often a merge that somebody else's push got in the way of is tried again; a later push may do it as well.
_MERGE_TRIES = 8


class Spooled(Protocol):
    """A file that can be read from its beginning again."""

    def read(self, size: int, /) -> bytes: ...

    def seek(self, offset: int, /) -> Any: ...


class Writing:
    """What the store ``pusher`` writes to the hub that ``reading`` reads."""

    def __init__(self, reading: Reading, pusher: Pusher) -> None:
        self._reading = reading
        self._files = reading.files
        self._traffic = reading.traffic
        self._me = pusher.store
        self._algorithm = pusher.algorithm

    # -- pushing ------------------------------------------------------------------------------------------------------

    def add(self, record: Record, digest: str, file: Spooled) -> None:
        """Add the pack in ``file`` and its record, whoever else goes by that name."""
        for _ in range(TRIES):
            hub = self._reading.hub()
            number = hub.counts.get(self._me, 0)
            name = name_of(digest, self._me, self._turn(hub))
            if name != record.pack:
                record = structs.replace(record, pack=name)
                file.seek(0)
                self._create(PACKS + name, file, record.size)
            after = hub.with_record(self._me, number, record)
            if self._publish(after, self._appended(after, number, record)):
                return
            # Perhaps lost to oneself: a request whose answer did not come may have been made again.
            if self._reading.hub().record(self._me, number) == record:
                return
        raise busy()

    def _appended(self, hub: Hub, number: int, record: Record) -> list[Segment]:
        """The writer's segments with one more record. They are run together so that each has more records than the
        next, and there are few."""
        segments, records = self._segments(hub), [record]
        while segments and segments[-1].name and segments[-1].count <= len(records):
            records = [*self._reading.segment(segments.pop().name), *records]
        first = number + 1 - len(records)
        passed = 0
        while passed < len(records) - 1 and hub.is_covered(self._me, first, first + passed + 1):
            passed += 1
        name = self._put(msgspec.msgpack.encode(records[passed:]), self._turn(hub))
        self._reading.note(name, records[passed:])
        return _without_gaps([*segments, Segment("", passed), Segment(name, len(records) - passed)])

    # -- merging ------------------------------------------------------------------------------------------------------

    def merge_when_many(self) -> None:
        """Merge packs, where a push just made them too many. It is not part of the push: where it fails, a later push
        will do it."""
        count = loose(self._reading.hub())
        if count and count % FEW == 0:
            with suppress(ObjstoreError):
                self._merge_once()
                self._sweep()

    def merge(self) -> tuple[int, int]:
        """Merge packs as long as there are any to merge: how many were, and into how many."""
        packs = merges = 0
        while count := self._merge_once():
            packs, merges = packs + count, merges + 1
        self._sweep()
        return packs, merges

    def _merge_once(self) -> int:
        """Merge what should be merged next; how many packs."""
        run: list[Element] = []
        pack, merge = b"", None
        for _ in range(_MERGE_TRIES):
            hub = self._reading.hub()
            if merge is None or any(element not in hub.elements for element in run):
                run = chosen(hub)
                if not run:
                    return 0
                names = [PACKS + element.record.pack for element in run]
                packs = self._reading.get_all(names)
                if None in packs:
                    self._reading.look_again(names[packs.index(None)])
                    continue
                pack, merge = merged(hub, run, [data or b"" for data in packs], self._algorithm)
            if self._publish_merge(hub, pack, merge):
                return len(run)
        raise busy()

    def _publish_merge(self, hub: Hub, pack: bytes, merge: Merge) -> bool:
        turn = self._turn(hub)
        name = name_of(sha256(pack).hexdigest(), self._me, turn)
        self._create(PACKS + name, BytesIO(pack), len(pack))
        merge = structs.replace(merge, record=structs.replace(merge.record, pack=name))
        name = self._put(msgspec.msgpack.encode(merge), turn)
        self._reading.note(name, merge)
        after = hub.with_merge(name, merge)
        return self._publish(after, self._segments(after), made=name)

    def _sweep(self) -> None:
        """Remove what was not needed any more some time ago; who may not remove anything leaves it there."""
        with suppress(ObjstoreError):
            sweep(self._files, self._traffic, self._reading.hub())

    # -- the writer's file --------------------------------------------------------------------------------------------

    def _turn(self, hub: Hub) -> int:
        mine = hub.writers.get(self._me)
        return mine.turn + 1 if mine is not None else 1

    def _segments(self, hub: Hub) -> list[Segment]:
        """The writer's segments, but for those that merges stand for."""
        mine = hub.writers.get(self._me)
        found: list[Segment] = []
        at = 0
        for segment in mine.segments if mine is not None else ():
            if isinstance(segment, str):
                segment = Segment(segment, len(self._reading.segment(segment)))
            if hub.is_covered(self._me, at, at + segment.count):
                segment = Segment("", segment.count)
            found.append(segment)
            at += segment.count
        return _without_gaps(found)

    def _publish(self, hub: Hub, segments: Sequence[Segment], made: str | None = None) -> bool:
        """Write the writer's own file, so that ``hub`` is what stands there, with the merge ``made``; whether nobody
        was faster. Either way it is looked at anew."""
        mine = hub.writers.get(self._me)
        merges = [*(mine.merges if mine is not None else ()), *([made] if made is not None else ())]
        stand = set(standing(hub.merges))
        writer = Writer(
            format=FORMAT,
            hash=self._algorithm,
            joined=[hub.manifest(Scope(content=content)).root.hex() for content in ROOTS],
            over="",
            segments=list(segments),
            turn=self._turn(hub),
            merges=[name for name in merges if name in stand],
        )
        writers = {**hub.writers, self._me: writer}
        data = msgspec.json.encode(structs.replace(writer, over=over(writers)))
        name = WRITERS + self._me
        self._traffic.requests += 1
        self._traffic.sent += len(data)
        won = True
        try:
            self._files.replace(name, data, self._reading.tags, hub.needed(writers))
        except Lost:
            won = False
        self._reading.look()
        return won

    def _put(self, data: bytes, turn: int) -> str:
        """Make the file of a segment or a merge; its name."""
        name = name_of(sha256(data).hexdigest(), self._me, turn)
        self._create(SEGMENTS + name, BytesIO(data), len(data))
        return name

    def _create(self, name: str, source: Any, size: int) -> None:
        self._traffic.requests += 1
        self._traffic.sent += size
        self._files.create(name, source, size)


def _without_gaps(segments: Sequence[Segment]) -> list[Segment]:
    """Segments without files run together, and none that has no records."""
    found: list[Segment] = []
    for segment in segments:
        if not segment.name and found and not found[-1].name:
            found[-1] = Segment("", found[-1].count + segment.count)
        elif segment.count:
            found.append(segment)
    return found
