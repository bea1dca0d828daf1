"""Merging packs of a hub: which, and what comes of it.

The packs that readers go by stand in one order, in which each builds only on earlier ones; those that are merged are
neighbours there, so that this stays so. Packs grow by the powers of two, as those of ``git repack --geometric``: each
is to be at least as large as all smaller ones behind it together. So there are few, and none is written often.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import BytesIO
from itertools import groupby

from objstore.closure import select_all
from objstore.memory import MemoryDatabase
from objstore.pack.format import Limits
from objstore.pack.reader import PackReader
from objstore.pack.writer import pack_stream
from objstore.snapshot import Stored
from objstore.sync.joining import Place
from porcelain.remotes.hub.ranges import holds, united
from porcelain.remotes.hub.records import (
    BEFORE_KEY,
    MOST_BEFORE,
    Merge,
    Offered,
    Ranges,
    Record,
    cut,
    gone_back,
    place,
)
from porcelain.remotes.hub.standing import Element, Hub, heads, name_in

#: So many packs that were never merged are too many.
FEW = 16
#: Bytes of a pack from which on it is left as it is, and of all that are merged at once.
LARGE = 4 * 1024 * 1024
MOST = 2 * LARGE
#: Bytes that they may unpack to.
_MOST_RAW = 32 * MOST
#: How many of the ids that were offered in one place are kept, the latest.
_FORMER = 32


def loose(hub: Hub) -> int:
    """How many packs could be merged and never were."""
    return sum(not element.merge and element.record.size < LARGE for element in hub.elements)


def chosen(hub: Hub) -> list[Element]:
    """What should be merged next; nothing where all is well. Packs with and without content stay apart, since not
    everybody may have both."""
    elements = hub.elements
    best: list[Element] = []
    for (small, _), group in groupby(range(len(elements)), lambda at: _sort(elements[at])):
        if small:
            run = list(group)
            first = _first(elements, run)
            if first is not None and len(run) - first > len(best):
                best = [elements[at] for at in run[first:]]
    return best


def _sort(element: Element) -> tuple[bool, bool]:
    return element.record.size < LARGE, element.record.content


def _first(elements: Sequence[Element], run: Sequence[int]) -> int | None:
    """Where to begin in a run of small packs, so that all from there on are merged."""
    found, behind = None, 0
    for at in range(len(run) - 1, -1, -1):
        size = elements[run[at]].record.size
        if size + behind > MOST:
            break
        alone = run[at] == 0 or elements[run[at] - 1].start < elements[run[at]].start
        if size < behind and alone:
            found = at
        behind += size
    return found


def merged(hub: Hub, run: Sequence[Element], packs: Iterable[bytes], algorithm: str) -> tuple[bytes, Merge]:
    """The pack that has all that ``packs``, those of ``run``, have; and the merge, but for the name of its pack. Raises
    ``PackRefused`` for a pack that is damaged."""
    database = MemoryDatabase(algorithm)
    presumed: set[bytes] = set()
    for data in packs:
        reader = PackReader(BytesIO(data), Limits(bytes=_MOST_RAW))
        presumed.update(reader.presumed())
        reader.refs()
        for block in reader.entries():
            for kind, key, body in block:
                database.objects[key] = Stored(kind, body)
        reader.finish()
    refs = _offered(hub, run)
    content = run[0].record.content
    with database.snapshot() as view:
        selection = select_all(
            view,
            [(ref.name, ref.key) for ref in refs],
            presumes=presumed - database.objects.keys(),
            content=content,
        )
        pack = b"".join(pack_stream(view, selection, algorithm))
    limits: dict[str, int] = {}
    for element in run:
        for writer, limit in element.limits.items():
            limits[writer] = max(limit, limits.get(writer, 0))
    covers = united(element.covers for element in run)
    narrow = all(element.record.narrow for element in run)
    record = Record("", len(pack), content, len(selection.order), refs, limits, narrow)
    return pack, Merge(record, covers, run[0].start, _replaced(hub, covers))


def _replaced(hub: Hub, covers: Ranges) -> list[str]:
    """The merges that are still listed somewhere and that one of ``covers`` stands for."""
    listed = {name for writer in hub.writers.values() for name in writer.merges}
    within = {name: merge for name, merge in hub.merges.items() if holds(covers, merge.covers)}
    return sorted(
        {*within, *(name for merge in within.values() for name in merge.replaces if name in listed)}
    )


def _offered(hub: Hub, run: Sequence[Element]) -> list[Offered]:
    """What a merge of ``run`` offers, by name: the heads of each place, each with what it goes back to."""
    refs = [ref for element in reversed(run) for ref in element.record.refs]  # the latest is the nearest
    of_place: dict[Place, list[Offered]] = {}
    for ref in refs:
        of_place.setdefault(place(ref.name, ref.key), []).append(ref)
    asked: dict[Place, set[bytes]] = {where: set() for where in of_place}
    for element in hub.elements:
        for ref in element.record.refs:
            asked.get(place(ref.name, ref.key), set()).add(ref.key[:BEFORE_KEY])
    found = []
    for where, keys in heads(refs).items():
        for key in keys:
            found.append(_head(where, key, of_place[where], asked[where], alone=len(keys) == 1))
    return sorted(found, key=lambda ref: ref.name.encode())


def _head(where: Place, key: bytes, refs: Sequence[Offered], asked: set[bytes], *, alone: bool) -> Offered:
    """The head ``key`` of a place in which ``refs`` are offered, the latest first. It must be told from ``asked``."""
    previous: dict[bytes, list[bytes]] = {}
    for ref in refs:
        previous.setdefault(ref.key[:BEFORE_KEY], []).extend(cut(ref.before))
    before = gone_back(previous, key[:BEFORE_KEY], None)
    kept = [one for at, one in enumerate(before) if at < MOST_BEFORE or one in asked]
    behind = set(before)
    keys = [one for ref in refs for one in (ref.key, *cut(ref.former, len(ref.key)))]
    former = [one for one in dict.fromkeys(keys) if one[:BEFORE_KEY] in behind]
    said = any(ref.said for ref in refs if ref.key == key)
    return Offered(name_in(where, key, alone=alone), key, b"".join(kept), said, b"".join(former[:_FORMER]))
