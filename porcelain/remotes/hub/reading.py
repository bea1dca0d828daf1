"""Reading a hub: who wrote there, what they say, and packs. What was read is kept, since most of it never changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from objstore.errors import CheckFailed, Conflict, NotFound
from objstore.pack.reader import Source
from objstore.sync.transport import Traffic
from porcelain.remotes.hub.files import PACKS, SEGMENTS, WRITERS, Files, Lost
from porcelain.remotes.hub.ranges import holds, united
from porcelain.remotes.hub.records import (
    Merge,
    Record,
    Writer,
    decode_merge,
    decode_records,
    decode_writer,
)
from porcelain.remotes.hub.standing import Hub

#: How often what others change meanwhile is looked at again.
TRIES = 200
#: Files that are asked for at once.
AHEAD = 8

T = TypeVar("T")


class _Changed(Exception):
    """What was listed is no longer there, since somebody merged it meanwhile."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Reading:
    """The reading of one hub. ``writers`` are their files at the last look, ``tags`` what they stood at."""

    def __init__(self, files: Files, traffic: Traffic) -> None:
        self.files = files
        self.traffic = traffic
        self.tags: Mapping[str, str] = {}
        self.writers: dict[str, Writer] = {}
        self._hub: Hub | None = None
        self._known: dict[tuple[str, str], Writer] = {}
        self._segments: dict[str, list[Record]] = {}
        self._merges: dict[str, Merge] = {}

    def look(self) -> Mapping[str, Writer]:
        """Read anew which writers there are, and what has changed of them."""
        for _ in range(TRIES):
            self.traffic.requests += 1
            tags = self.files.list(WRITERS)
            try:
                for name, tag in tags.items():
                    if (name, tag) not in self._known:
                        self._known[name, tag] = decode_writer(name, self._get(name, tag))
            except Lost:
                continue  # somebody pushed just now
            self.writers = {name[len(WRITERS) :]: self._known[name, tag] for name, tag in tags.items()}
            if tags != self.tags:
                self.tags, self._hub = tags, None
            return self.writers
        raise busy()

    def hub(self) -> Hub:
        """All that stood there at the last look; where some of that has gone since, at a later one."""
        for _ in range(TRIES):
            if self._hub is not None:
                return self._hub
            try:
                self._hub = self._load()
            except _Changed as gone:
                self.look_again(gone.name)
        raise busy()

    def look_again(self, name: str) -> None:
        """Look again, since a file is not there that should be. Raises ``CheckFailed`` where nothing has changed."""
        before = self.tags
        self.look()
        if self.tags == before:
            raise CheckFailed(f"{name}: is not there, and what stands in the hub builds on it")

    def note(self, name: str, made: list[Record] | Merge) -> None:
        """Remember the contents of a segment or merge that was just made."""
        if isinstance(made, Merge):
            self._merges[name] = made
        else:
            self._segments[name] = made

    def segment(self, name: str) -> list[Record]:
        """The records of a segment that was read."""
        return self._segments[name]

    def _load(self) -> Hub:
        writers = self.writers
        listed = [name for writer in writers.values() for name in writer.merges]
        self._read(listed, self._merges, decode_merge)
        merges = {name: self._merges[name] for name in listed if name in self._merges}
        replaced = {name for merge in merges.values() for name in merge.replaces}
        for name in listed:
            if name not in merges and name not in replaced:
                raise _Changed(SEGMENTS + name)
        covered = united(merge.covers for merge in merges.values())
        wanted: list[tuple[str, int, str, int]] = []
        counts: dict[str, int] = {}
        for writer, file in writers.items():
            at = 0
            for segment in file.segments:
                if isinstance(segment, str):
                    wanted.append((writer, -1, segment, -1))
                    continue
                if not holds(covered, {writer: [(at, at + segment.count)]}):
                    if not segment.name:
                        raise _Changed(f"a merge of what {writer} pushed")
                    wanted.append((writer, at, segment.name, segment.count))
                at += segment.count
            counts[writer] = at
        self._read([name for _, _, name, _ in wanted], self._segments, decode_records)
        records: dict[str, dict[int, Record]] = {}
        for writer, at, name, count in wanted:
            found = self._segments.get(name)
            if found is None:
                raise _Changed(SEGMENTS + name)
            if at < 0:  # of format 1
                at = counts[writer]
                counts[writer] += len(found)
            elif len(found) != count:
                raise CheckFailed(f"{SEGMENTS}{name}: has {len(found)} records, and should have {count}")
            records.setdefault(writer, {}).update(enumerate(found, at))
        return Hub(writers, merges, records, counts)

    def _read(self, names: Iterable[str], into: dict[str, T], decode: Callable[[str, bytes], T]) -> None:
        """Read those that are not known yet; what is not there is left out."""
        missing = [name for name in dict.fromkeys(names) if name not in into]
        for name, data in zip(missing, self.get_all([SEGMENTS + name for name in missing]), strict=True):
            if data is not None:
                into[name] = decode(name, data)

    def _get(self, name: str, tag: str | None = None) -> bytes:
        self.traffic.requests += 1
        data = self.files.get(name, tag)
        self.traffic.received += len(data)
        return data

    def get_all(self, names: Sequence[str]) -> list[bytes | None]:
        """What these files hold, several asked for at once; None for what is not there."""

        def get(name: str) -> bytes | None:
            try:
                return self.files.get(name)
            except NotFound:
                return None

        self.traffic.requests += len(names)
        if len(names) < 2:
            found = [get(name) for name in names]
        else:
            with ThreadPoolExecutor(max_workers=AHEAD, thread_name_prefix="hub") as pool:
                found = list(pool.map(get, names))
        self.traffic.received += sum(len(data) for data in found if data is not None)
        return found

    def whole(self, record: Record) -> bytes:
        """A small pack; raises ``CheckFailed`` for one that is longer than was said, and ``NotFound``."""
        data = b""
        with self.files.open(PACKS + record.pack) as source:
            while part := source.read(record.size + 1 - len(data)):
                data += part
        if len(data) > record.size:
            raise CheckFailed(
                f"{PACKS}{record.pack}: is longer than the {record.size} bytes that it should have"
            )
        return data


class Counted:
    """A source whose bytes are counted."""

    def __init__(self, source: Source, traffic: Traffic) -> None:
        self._source = source
        self._traffic = traffic

    def read(self, size: int, /) -> bytes:
        data = self._source.read(size)
        self._traffic.received += len(data)
        return data


def busy() -> Conflict:
    """That a race was lost too often."""
    return Conflict("others push there all the time: gave up", hint="try again")
