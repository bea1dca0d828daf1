"""The fold: the state of a chain, or of several joined, is for each frame id its highest revision.

Across chains the fold is a join: for each id the highest (revision, object id) wins, whatever the order in which chains
and rounds are taken. Other frames of the winning revision stay visible as conflicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from objstore.chain import entries, frame_keys
from objstore.errors import CheckFailed, NotFound
from objstore.kinds import MAX_SAFE_INTEGER
from objstore.snapshot import Snapshot


class Envelope(Struct, frozen=True):
    """What every frame has."""

    id: Annotated[str, Meta(min_length=1)]
    revision: Annotated[int, Meta(ge=0, le=MAX_SAFE_INTEGER)]
    tombstone: bool = False


_ENVELOPE = msgspec.json.Decoder(Envelope)


class Claim(Struct, frozen=True):
    """The frames of the highest revision seen for one id: ``keys`` ascending, the last one wins; ``removed`` says
    whether the winner is a tombstone."""

    revision: int
    keys: tuple[bytes, ...]
    removed: bool

    @property
    def winner(self) -> bytes:
        """The key of the frame that counts."""
        return self.keys[-1]


class Fold:
    """State by frame id. Joining is commutative, associative and idempotent."""

    def __init__(self) -> None:
        self._claims: dict[str, Claim] = {}

    def absorb(self, frame: Envelope, key: bytes) -> None:
        """Take one frame in."""
        known = self._claims.get(frame.id)
        if known is None or frame.revision > known.revision:
            self._claims[frame.id] = Claim(frame.revision, (key,), frame.tombstone)
        elif frame.revision == known.revision and key not in known.keys:
            keys = tuple(sorted((*known.keys, key)))
            self._claims[frame.id] = Claim(
                frame.revision, keys, frame.tombstone if keys[-1] == key else known.removed
            )

    def join(self, other: Fold) -> None:
        """Take another fold in."""
        for frame_id, claim in other._claims.items():
            known = self._claims.get(frame_id)
            if known is None or claim.revision > known.revision:
                self._claims[frame_id] = claim
            elif claim.revision == known.revision:
                keys = tuple(sorted({*known.keys, *claim.keys}))
                removed = claim.removed if keys[-1] == claim.winner else known.removed
                self._claims[frame_id] = Claim(claim.revision, keys, removed)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fold) and self._claims == other._claims

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return sum(not claim.removed for claim in self._claims.values())

    def get(self, frame_id: str) -> Claim | None:
        """The claim for an id, removed ones included, or None."""
        return self._claims.get(frame_id)

    def ids(self) -> list[str]:
        """All ids, removed ones included, in order."""
        return sorted(self._claims)

    def live(self) -> Iterator[tuple[str, bytes]]:
        """Ids and winning keys of what is there (not removed), in order of id."""
        for frame_id in sorted(self._claims):
            claim = self._claims[frame_id]
            if not claim.removed:
                yield frame_id, claim.winner

    def conflicts(self) -> Iterator[tuple[str, Claim]]:
        """Ids for which several frames have the winning revision, in order of id."""
        for frame_id in sorted(self._claims):
            if len(self._claims[frame_id].keys) > 1:
                yield frame_id, self._claims[frame_id]


def absorb_entry(view: Snapshot, fold: Fold, kind_name: str, entry: object) -> None:
    """Take all frames of one chain entry in."""
    for key in frame_keys(view, kind_name, entry):
        found = view.get(key)
        if found is None:
            raise NotFound(f"{key.hex()}: a round names this frame, and it is not here")
        try:
            fold.absorb(_ENVELOPE.decode(found.data), key)
        except msgspec.ValidationError as error:
            raise CheckFailed(f"{key.hex()}: is not a frame: {error}") from None


def fold_chains(view: Snapshot, heads: Iterable[bytes], *, at: int | None = None) -> Fold:
    """The joined fold of the chains that ``heads`` end; ``at`` takes only the first so many entries of each."""
    fold = Fold()
    for head in heads:
        chain = entries(view, head)
        for key, entry in chain if at is None else chain[:at]:
            kind = view.kind(key)
            assert kind is not None
            absorb_entry(view, fold, kind, entry)
    return fold
