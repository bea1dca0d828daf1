"""Making facts and giving them revisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, Protocol

import msgspec
from msgspec import UNSET

from objstore import kinds
from objstore.digest import hash_bytes
from objstore.fastcanonical import encode
from porcelain.lineage.facts.kinds import Confidence, Fact, check_columns, check_envelope, identity_of

#: A fact with the object id (hex) that it is stored under.
Stored = tuple[str, Fact]


class Known(Protocol):
    """The joined fold of all lineage chains by fact id, withdrawn facts included. A plain dict is one."""

    def get(self, fact_id: str, /) -> Fact | None: ...


def fact(
    kind: str,
    columns: Mapping[str, Any],
    *,
    provenance: str,
    confidence: Confidence,
    evidence: Iterable[str] = (),
    revision: int = 0,
) -> Fact:
    """A fact of ``kind`` under its own id; columns that are None are left out, keys are put in canonical order.

    Raises ``FactRefused`` for what its kind does not allow, ``CanonicalError`` for what JSON objects cannot hold.
    """
    known = {name: value for name, value in columns.items() if value is not None}
    ordered: dict[str, Any] = msgspec.json.decode(encode(known))
    check_columns(kind, ordered, kind)
    made = Fact(
        columns=ordered,
        confidence=confidence,
        evidence=sorted(set(evidence)),
        id=identity_of(kind, ordered, provenance),
        kind=kind,
        provenance=provenance,
        revision=revision,
    )
    check_envelope(made)
    return made


def object_id(item: Fact, algorithm: str = "sha256") -> str:
    """The id (hex) of the object that holds ``item``, stored or not."""
    data = kinds.encode(item)
    return sha256(data).hexdigest() if algorithm == "sha256" else hash_bytes(data, algorithm).hex()


def withdrawn(item: Fact) -> Fact:
    """``item`` with a tombstone, for ``news`` to give a revision to."""
    return msgspec.structs.replace(item, tombstone=True)


def news(said: Iterable[Fact], known: Known) -> list[Fact]:
    """Those of ``said`` that ``known`` (the joined fold, by fact id) does not hold yet, with their revisions.

    The revision is one more than the highest in sight. A fact of which only the revision would change is no news. An
    observation keeps its own revision, its record count, and is news only above the one that is known: what else
    differs (a touched file) would make two facts of one revision. Of two facts of one id the later one counts.
    """
    new: list[Fact] = []
    for item in {item.id: item for item in said}.values():
        old = known.get(item.id)
        if old is None:
            if item.tombstone is not True:
                new.append(item if item.kind == "observation" else _revised(item, 1))
        elif item.kind == "observation" and item.tombstone is old.tombstone is UNSET:
            if item.revision > old.revision:
                new.append(item)
        elif _revised(item, old.revision) != old:
            new.append(_revised(item, max(item.revision, old.revision + 1)))
    return new


def _revised(item: Fact, revision: int) -> Fact:
    return msgspec.structs.replace(item, revision=revision)
