"""Stage 1, canonical records: each record once, and only those that make up the conversation.

Of the copies of a record the first counts, except where a source grows its records in place: there the last one does,
at the place of the first.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from porcelain.flow.assembly.entries import REVISED, Entry

#: Files that say something about the conversation without being part of it.
ASIDE = frozenset(("changes", "provider_body", "execution"))


class Canonical(Struct):
    """``entries`` in landed order without repeats; ``by_id`` is the first record of each id; ``changes``, ``added`` and
    ``removed`` count the distinct workspace changes and their lines."""

    entries: list[Entry]
    by_id: dict[str, Entry]
    changes: int
    added: int
    removed: int


def canonical(entries: Iterable[Entry], through: int) -> Canonical:
    """Leave out later copies of a record id, rows past ``through``, and files that stand aside."""
    kept: list[Entry] = []
    by_id: dict[str, Entry] = {}
    places: dict[str, int] = {}
    lines: dict[str, tuple[int, int]] = {}
    for entry in entries:
        if entry.seq > through:
            continue
        for change in entry.changed:
            lines.setdefault(change.key, (change.added, change.removed))
        kind = entry.kind
        if entry.id and kind != "provider_body":
            first = by_id.setdefault(entry.id, entry)
            if first is not entry:
                if entry.flags & REVISED and entry.stream == first.stream and entry.id in places:
                    by_id[entry.id] = kept[places[entry.id]] = entry
                continue
        if kind not in ASIDE:
            if entry.id:
                places[entry.id] = len(kept)
            kept.append(entry)
    return Canonical(
        kept,
        by_id,
        len(lines),
        sum(added for added, _ in lines.values()),
        sum(removed for _, removed in lines.values()),
    )
