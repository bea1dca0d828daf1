"""Verification: every stored byte, key, kind, reference, ref and chain.

The objects are split by arrival number among worker processes, each with a snapshot of its own; a worker that crashes
on a damaged page is itself reported as damage. What is checked of each object: its checksum, its key, its kind, that
its bytes are canonical and obey the kind's rules, that ``ids`` leads to it, and that the objects it needs are there.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable
from itertools import islice, pairwise
from typing import Any
from zlib import crc32

import msgspec

from objstore import kinds
from objstore.canonical import MAX_SIZE
from objstore.compression import decompress, unpack_all
from objstore.database import Database, LmdbSnapshot
from objstore.digest import hasher, hasher_of_many, is_object_id
from objstore.errors import CheckFailed, NotFound, ObjstoreError, StorageError
from objstore.kind_modules import declarations, declare
from objstore.objects import check_stored
from objstore.refs import check_name
from objstore.values import CHECKED, CHECKSUM, CODEC, HEADER, KIND, is_sound
from objstore.workers import Serve, run_tasks

#: Objects from which on worker processes pay for their start.
_PARALLEL_FROM = 40_000
_SLICES_PER_PROCESS = 4
#: Objects in one slice, at most about twice as many.
_SLICE_OBJECTS = 32_000
#: Objects that are checked together.
_GROUP = 1024
#: Problems of one slice that are listed; more are only counted.
_LISTED = 1000


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong: ``where`` (an object id, ref name or place), ``rule`` (a stable word), ``what``."""

    where: str
    rule: str
    what: str


class Report(msgspec.Struct, frozen=True):
    """What a verification looked at and found."""

    objects: int
    refs: int
    chains: int
    problems: list[Problem]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def verify(
    database: Database,
    *,
    processes: int = 0,
    since: int = 1,
    on_progress: Callable[[int], None] | None = None,
) -> Report:
    """Check a whole store, or only objects from arrival number ``since`` on (refs and chains always).

    ``processes`` 0 chooses by size and cores; 1 works in this process. ``on_progress`` is told how many more objects
    were checked.
    """
    with database.snapshot() as view:
        stop = view.next_arrival()
        count = view.count()
        indexed = view.index_count()
    problems: list[Problem] = []
    if count != indexed:
        problems.append(Problem("ids", "index-count", f"{indexed} index entries for {count} objects"))
    checked = 0
    if processes == 0:
        processes = (os.cpu_count() or 1) if stop - since >= _PARALLEL_FROM else 1
    slices = _slices(since, stop, processes)
    work = (
        (check_slice(database, *bounds) for bounds in slices)
        if processes == 1
        else _in_processes(database, slices, processes)
    )
    for done, found in work:
        checked += done
        problems += found
        if on_progress is not None:
            on_progress(done)
    with database.snapshot() as view:
        refs, chains, found = _check_refs(view)
    if since == 1 and checked != count and not problems:
        problems.append(Problem("objects", "object-count", f"{checked} objects read, {count} counted"))
    return Report(checked, refs, chains, problems + found)


def check_slice(database: Database, first: int, stop: int) -> tuple[int, list[Problem]]:
    """Check the objects with arrival numbers ``first`` up to but not ``stop``: how many, and what is wrong."""
    problems: list[Problem] = []
    entries: list[bytes] = []
    needed: dict[str, bytes] = {}
    with database.snapshot() as view:
        check = _ValueCheck(view.kind_names(), database.meta_text("hash"))
        values = view.values(first, stop)
        while group := list(islice(values, _GROUP)):
            entries += [entry for entry, _ in group]
            if not check.all_sound([value for _, value in group], needed):
                for entry, value in group:
                    problem = check.one(entry, value, needed)
                    if problem is not None:
                        problems.append(problem)
        count = len(entries)
        for entry in view.not_indexed(entries):
            arrival = int.from_bytes(entry[-5:], "big")
            problems.append(Problem(f"arrival {arrival}", "index", f"ids does not lead to arrival {arrival}"))
        for text in sorted(needed):
            if not is_object_id(text) or bytes.fromhex(text) not in view:
                problems.append(Problem(needed[text].hex(), "reference", f"needs {text}, which is not here"))
    return count, problems[:_LISTED]


class _ValueCheck:
    """The check of stored values: of many at once, which says only whether all are sound, and of one, which says what
    is wrong. ``names`` are those of kinds by number."""

    def __init__(self, names: list[str], algorithm: str) -> None:
        self._names = names
        self._make_key = hasher(algorithm)
        self._make_keys = hasher_of_many(algorithm)

    def all_sound(self, values: list[bytes], needed: dict[str, bytes]) -> bool:
        """Whether nothing is wrong with any of ``values``; what they need goes into ``needed``.

        Every step is one pass over all values, in C where that can be: this is what verification spends its time on.
        """
        try:
            sums = [int.from_bytes(value[CHECKSUM:CHECKED], "big") for value in values]
            if [crc32(value[CHECKED:]) for value in values] != sums:
                return False
            groups: dict[tuple[int, int], list[bytes]] = {}
            for value in values:
                groups.setdefault((value[KIND], value[CODEC]), []).append(value)
            for (number, codec), group in groups.items():
                datas = unpack_all(codec, [value[HEADER:] for value in group])
                if max(map(len, datas)) > MAX_SIZE:
                    return False
                keys = [value[:CHECKSUM] for value in group]
                if self._make_keys(datas) != keys:
                    return False
                name = self._names[number]
                objects = kinds.decode_all(name, datas)
                if objects is None:
                    return False
                needs = kinds.lookup(name).needs
                if needs is not kinds.nothing:
                    for key, obj in zip(keys, objects, strict=True):
                        for text in needs(obj):
                            needed[text] = key
        except (ObjstoreError, IndexError):
            return False
        return True

    def one(self, entry: bytes, value: bytes, needed: dict[str, bytes]) -> Problem | None:
        """What is wrong with one value, or None."""
        whole = len(value) >= CHECKSUM
        where = value[:CHECKSUM].hex() if whole else f"arrival {int.from_bytes(entry[-5:], 'big')}"
        try:
            for text in self._needs(value):
                needed[text] = value[:CHECKSUM]
        except _Damage as error:
            return Problem(where, error.rule, error.message)
        except ObjstoreError as error:
            return Problem(where, "kind", error.message)
        return None

    def _needs(self, value: bytes) -> Iterable[str]:
        if len(value) < HEADER:
            raise _Damage("value", "the stored value is cut short")
        if not is_sound(value):
            raise _Damage("checksum", "the stored bytes do not match their checksum")
        try:
            data = decompress(value[CODEC], value[HEADER:])
        except StorageError as error:
            raise _Damage("unpack", error.message) from None
        if len(data) > MAX_SIZE:
            raise _Damage("size", f"{len(data):,} bytes: at most {MAX_SIZE:,} can be one object")
        if self._make_key(data) != value[:CHECKSUM]:
            raise _Damage("key", "the bytes do not hash to the key")
        if value[KIND] >= len(self._names):
            raise _Damage("kind-number", f"kind number {value[KIND]} is unknown to this store")
        name = self._names[value[KIND]]
        return kinds.lookup(name).needs(check_stored(name, data))


class _Damage(CheckFailed):
    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.rule = rule


def _slices(first: int, stop: int, processes: int) -> list[tuple[int, int]]:
    """Ranges of arrival numbers, several for each process, so that none waits long for the others."""
    pieces = max(processes * _SLICES_PER_PROCESS, (stop - first) // _SLICE_OBJECTS)
    bounds = [first + (stop - first) * i // pieces for i in range(pieces + 1)]
    return list(pairwise(bounds))


class _Share(msgspec.Struct):
    """What a worker process is told once: the store, and which module registers which kind."""

    path: str
    declared: dict[str, str]


def _in_processes(
    database: Database, slices: list[tuple[int, int]], processes: int
) -> Iterable[tuple[int, list[Problem]]]:
    share = msgspec.msgpack.encode(_Share(database.path, declarations()))
    tasks = [msgspec.msgpack.encode(bounds) for bounds in slices]
    for number, result in run_tasks("objstore.verify:serve_slices", share, tasks, processes):
        if result is not None:
            yield msgspec.msgpack.decode(result, type=tuple[int, list[Problem]])
        else:
            first, stop = slices[number]
            reason = "the process that read them died: a page is damaged"
            yield 0, [Problem(f"arrivals {first}-{stop - 1}", "page", reason)]


def serve_slices(argument: bytes) -> Serve:
    """What a worker process does: ``check_slice`` of each task."""
    share = msgspec.msgpack.decode(argument, type=_Share)
    for name, module in share.declared.items():
        declare(module, [name])
    database = Database.open(share.path, read_only=True)
    gc.disable()  # what is decoded holds no cycles, and looking for them would cost a tenth of the time

    def serve(task: bytes) -> Iterable[bytes]:
        first, stop = msgspec.msgpack.decode(task, type=tuple[int, int])
        yield msgspec.msgpack.encode(check_slice(database, first, stop))

    return serve


def _check_refs(view: LmdbSnapshot) -> tuple[int, int, list[Problem]]:
    problems: list[Problem] = []
    refs = chains = 0
    linked: set[bytes] = set()
    for name, key in view.refs():
        refs += 1
        try:
            check_name(name)
        except ObjstoreError as error:
            problems.append(Problem(name, "ref-name", error.message))
        kind_name = view.kind(key)
        if kind_name is None:
            problems.append(Problem(name, "ref-target", f"names {key.hex()}, which is not here"))
            continue
        last = None
        for entry in view.reflog(name):
            last = entry
        if last is not None and last.new != key.hex():
            problems.append(
                Problem(name, "reflog", f"the reflog ends at {last.new}, the ref stands at {key.hex()}")
            )
        try:
            if kinds.lookup(kind_name).previous is not None:
                chains += 1
                _check_chain(view, key, linked)
        except ObjstoreError as error:
            problems.append(Problem(name, "chain", error.message))
    return refs, chains, problems


def _check_chain(view: LmdbSnapshot, head: bytes, linked: set[bytes]) -> None:
    """Check each entry against the ones before it; entries in ``linked`` were checked with another ref."""
    waiting = [head]
    while waiting:
        key = waiting.pop()
        if key in linked:
            continue
        linked.add(key)
        found = view.get(key)
        if found is None:
            raise NotFound(f"{key.hex()}: a chain names this entry, and it is not here")
        kind = kinds.lookup(found.kind)
        if kind.previous is None:
            raise CheckFailed(f"{key.hex()}: a {found.kind} is not the entry of a chain")
        entry = kinds.decode(found.kind, found.data)
        before: list[Any] = []
        for text in kind.previous(entry):
            previous = view.get(bytes.fromhex(text))
            if previous is None:
                raise NotFound(f"{key.hex()}: names {text} as previous, which is not here")
            before.append(kinds.decode(previous.kind, previous.data))
            waiting.append(bytes.fromhex(text))
        if kind.check_link is not None:
            kind.check_link(entry, before)
