"""What stands in a hub at one moment, and what follows from it: the joined refs, and which packs stand for all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256

import msgspec
from msgspec import Struct

from objstore.sync.joining import Place, set_apart
from objstore.sync.manifest import Manifest, Scope
from porcelain.remotes.hub.files import PACKS, SEGMENTS
from porcelain.remotes.hub.ranges import holds, united
from porcelain.remotes.hub.records import (
    BEFORE_KEY,
    Merge,
    Offered,
    Ranges,
    Record,
    Segment,
    Start,
    Writer,
    cut,
    place,
)

Ref = tuple[str, bytes]


class Element(Struct, frozen=True):
    """A pack that readers go by: its record, the records that it stands for (itself, where it is no merge) and the
    place of the first of them in the order of all, and below which numbers of each writer is all that it builds on.
    ``merge`` is the name of the merge, or "".

    An element builds only on elements whose ``start`` is before its own, since merges are made of neighbours in that
    order: so read in it, what is needed comes first."""

    record: Record
    covers: Ranges
    start: Start
    limits: Mapping[str, int]
    merge: str = ""


class Hub:
    """All that stands in a hub: the files of the writers, the merges that they list by name (but for those that are
    gone, since others replace them), and of each writer's records, by number, at least those that no merge covers."""

    def __init__(
        self,
        writers: Mapping[str, Writer],
        merges: Mapping[str, Merge],
        records: Mapping[str, Mapping[int, Record]],
        counts: Mapping[str, int],
    ) -> None:
        self.writers = writers
        self.merges = merges
        self.counts = counts
        self._records = records
        self._manifests: dict[Scope, Manifest] = {}

    def with_record(self, writer: str, number: int, record: Record) -> Hub:
        """This hub once a writer has added a record."""
        records = {**self._records, writer: {**self._records.get(writer, {}), number: record}}
        return Hub(self.writers, self.merges, records, {**self.counts, writer: number + 1})

    def with_merge(self, name: str, merge: Merge) -> Hub:
        """This hub once somebody has added a merge."""
        return Hub(self.writers, {**self.merges, name: merge}, self._records, self.counts)

    def record(self, writer: str, number: int) -> Record | None:
        """A record, where it was read."""
        return self._records.get(writer, {}).get(number)

    @cached_property
    def covered(self) -> Ranges:
        """The records that merges stand for."""
        return united(merge.covers for merge in self.merges.values())

    def is_covered(self, writer: str, first: int, behind: int) -> bool:
        """Whether merges stand for all of these records."""
        return holds(self.covered, {writer: [(first, behind)]})

    @cached_property
    def elements(self) -> list[Element]:
        """The packs that readers go by, each behind those that it builds on."""
        merged = [_merged(name, self.merges[name]) for name in standing(self.merges)]
        loose = [
            _loose(writer, number, record)
            for writer, records in self._records.items()
            for number, record in records.items()
            if not self.is_covered(writer, number, number + 1)
        ]
        return sorted([*merged, *loose], key=lambda element: (element.start, element.merge))

    def needed(self, writers: Mapping[str, Writer]) -> set[str]:
        """The names of all segments and packs that somebody needs who finds this hub with these files of writers."""
        found = {PACKS + element.record.pack for element in self.elements}
        found |= {SEGMENTS + element.merge for element in self.elements if element.merge}
        for name, writer in writers.items():
            at = 0
            for segment in writer.segments:
                if isinstance(segment, str):
                    found.add(SEGMENTS + segment)  # to count the records, all have to be read
                else:
                    if segment.name and not self.is_covered(name, at, at + segment.count):
                        found.add(SEGMENTS + segment.name)
                    at += segment.count
        return found

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
        offered = [ref for element in self.elements for ref in element.record.refs if content or not ref.said]
        for where, keys in heads(offered).items():
            for key in keys:
                yield name_in(where, key, alone=len(keys) == 1), key

    def reached(self, have: Sequence[bytes]) -> set[bytes]:
        """What ``have`` goes back to, as far as the records say; each by the first bytes of its id."""
        waiting = [key[:BEFORE_KEY] for key in have]
        reached = set(waiting)
        while waiting:
            for older in self._before.get(waiting.pop(), ()):
                fresh = [key for key in cut(older) if key not in reached]
                reached.update(fresh)
                waiting += fresh
        return reached

    @cached_property
    def _before(self) -> dict[bytes, list[bytes]]:
        found: dict[bytes, list[bytes]] = {}
        for element in self.elements:
            for ref in element.record.refs:
                found.setdefault(ref.key[:BEFORE_KEY], []).append(ref.before)
        return found


def over(writers: Mapping[str, Writer]) -> str:
    """What stands for all that was pushed."""
    pushed = [
        (name, writer.segments if writer.format == 1 else count(writer))
        for name, writer in sorted(writers.items())
    ]
    return sha256(msgspec.json.encode(pushed)).hexdigest()


def count(writer: Writer) -> int:
    """How many records a writer has, where its file says that (not in format 1)."""
    return sum(segment.count for segment in writer.segments if isinstance(segment, Segment))


def known_root(writers: Mapping[str, Writer], scope: Scope) -> bytes | None:
    """The root of the manifest, where a writer has said it of just this state."""
    if not scope.patterns:
        now = over(writers)
        for writer in writers.values():
            if writer.over == now:
                return bytes.fromhex(writer.joined[scope.content])
    return None


def heads(offered: Sequence[Offered]) -> dict[Place, list[bytes]]:
    """Of what is offered in each place, what nothing else there goes back to."""
    groups: dict[Place, dict[bytes, None]] = {}
    before: dict[Place, set[bytes]] = {}
    for ref in offered:
        where = place(ref.name, ref.key)
        groups.setdefault(where, {})[ref.key] = None
        before.setdefault(where, set()).update(cut(ref.before))
    return {
        where: [key for key in keys if key[:BEFORE_KEY] not in before[where]]
        for where, keys in groups.items()
    }


def name_in(where: Place, key: bytes, *, alone: bool) -> str:
    """The name of a ref to ``key`` in a place, ``alone`` or beside others."""
    if where.is_member:
        return where.group + key.hex()
    return where.group if alone else set_apart(where, key)


def standing(merges: Mapping[str, Merge]) -> list[str]:
    """The names of the merges that no other one covers; of two alike the first."""
    return [
        name
        for name, merge in merges.items()
        if not any(
            holds(other.covers, merge.covers) and (name > twin or not holds(merge.covers, other.covers))
            for twin, other in merges.items()
            if twin != name
        )
    ]


def _merged(name: str, merge: Merge) -> Element:
    return Element(merge.record, merge.covers, merge.start, merge.record.seen, name)


def _loose(writer: str, number: int, record: Record) -> Element:
    limits = {**record.seen, writer: number}
    start = (sum(limits.values()), writer, number)
    return Element(record, {writer: [(number, number + 1)]}, start, limits)
