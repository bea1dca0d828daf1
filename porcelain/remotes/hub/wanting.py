"""Which packs of a hub bring what is wanted."""

from __future__ import annotations

from collections.abc import Sequence

from objstore.errors import UsageError
from objstore.sync.joining import Place
from objstore.sync.manifest import Scope
from porcelain.remotes.hub.ranges import holds_below
from porcelain.remotes.hub.records import BEFORE_KEY, Offered, Record, place
from porcelain.remotes.hub.standing import Element, Hub

#: So many names are perhaps not all that the receiver lacks.
_MANY = 50_000


def wanted(hub: Hub, scope: Scope, names: Sequence[str], have: Sequence[bytes]) -> list[Record]:
    """The records whose packs bring ``names`` to one who has ``have``: those that offer them and all that these build
    on, but for those whose refs the receiver has all, or something later of each; what is needed comes first.

    Raises ``UsageError`` where content would have to come along that is not in ``scope``."""
    joined = dict(hub.manifest(scope).refs())
    absent = {place(name, joined[name]) for name in names if name in joined}
    reached = hub.reached(have)
    matches = scope.matcher()
    partial = len(names) >= _MANY

    def has(ref: Offered) -> bool:
        if ref.key[:BEFORE_KEY] in reached or (ref.said and not scope.content):
            return True
        return not partial and matches(ref.name) and place(ref.name, ref.key) not in absent

    lacking: list[tuple[Element, set[Place]]] = []
    keys = {joined[name] for name in names if name in joined}
    needed: set[int] = set()
    for element in hub.elements:
        places = {place(ref.name, ref.key) for ref in element.record.refs if not has(ref)}
        if places:
            if any(ref.key in keys for ref in element.record.refs):
                needed.add(len(lacking))
            lacking.append((element, places))
    # Each builds only on earlier ones, so that one pass from the last on finds all.
    for at in range(len(lacking) - 1, -1, -1):
        if at in needed:
            element, _ = lacking[at]
            own = {place(ref.name, ref.key) for ref in element.record.refs}
            for before in range(at):
                other, places = lacking[before]
                if (
                    before not in needed
                    and other.start < element.start
                    and (not element.record.narrow or not own.isdisjoint(places))
                    and holds_below(other.covers, element.limits, element.covers)
                ):
                    needed.add(before)
    chosen = [lacking[at][0].record for at in sorted(needed)]
    if not scope.content and any(record.content for record in chosen):
        raise UsageError(
            "what is wanted was pushed there with content, and can only be had with it",
            hint="fetch with --content, or have it pushed without",
        )
    return chosen
