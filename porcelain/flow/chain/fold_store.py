"""The fold of a chain as a store gives it: from the newest round whose fold was saved, and the rounds after that.

A saved fold stands in the derived part of the store under ``flow-fold/`` and the key of its round's object. It holds
the lines of the frames as they are in ``.sf`` files; a frame is decoded when it is asked for. One that is missing,
damaged or of another version is as good as none: rounds are the authority, and a fold is only where reading them led.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from objstore.garbage import without_gc
from objstore.snapshot import Snapshot
from objstore.store import load
from porcelain.flow.assembly import Written
from porcelain.flow.chain.folding import Fold, apply
from porcelain.flow.chain.frames import F, Frames
from porcelain.flow.chain.kinds import FlowRound, to_header
from porcelain.flow.chain.sealing import sealed, unsealed
from porcelain.flow.chain.store import stored_round
from porcelain.flow.formats.sf import SfNode, SfRelation, SfUnresolved

VERSION = 1
#: Rounds after a saved fold from which on it is saved anew.
MOST_ROUNDS = 64
#: Steps of a conversation from which on its fold is not saved: it would take more memory than assembly itself.
MOST_STEPS = 200_000
_PREFIX = b"flow-fold/"


class _Group(Struct, array_like=True):
    """Frames of one sort: their ids, and their lines in the same order, with a newline between them."""

    ids: list[str]
    lines: bytes


class _Saved(Struct, array_like=True):
    version: int
    groups: tuple[_Group, _Group, _Group]


_News = dict[str, bytes | None]
_SAVED = msgspec.msgpack.Decoder(_Saved)
_ENCODER = msgspec.json.Encoder()


class Lines:
    """Frames by id as lines of a file: nodes, relations, unresolved entries; None for a tombstone."""

    def __init__(self) -> None:
        self.rounds = 0
        self.too_many = False
        self.groups: tuple[_News, _News, _News] = ({}, {}, {})

    def take(self, written: Written) -> None:
        """Take in the next round."""
        self.rounds += 1
        round_ = written.round
        self.too_many = (round_.header.steps or 0) > MOST_STEPS
        if self.too_many:
            self.groups = ({}, {}, {})
            return
        _take(self.groups[0], round_.nodes)
        _take(self.groups[1], round_.relations)
        _take(self.groups[2], round_.unresolved)


def _take(group: _News, frames: Sequence[F]) -> None:
    # Not the lines of the file: there attributes are escaped, and a fold's are as the store has them.
    for frame, line in zip(frames, _ENCODER.encode_lines(frames).splitlines(), strict=True):
        group[frame.id] = None if frame.tombstone else line


def stored_fold(view: Snapshot, head: bytes | None) -> Fold:
    """The fold of a chain; an empty one for None."""
    if head is None:
        return Fold()
    # Frames refer to nothing that refers to them: looking through all of them for cycles, again and again as they
    # come, would take a tenth of the time.
    with without_gc():
        since, fold = _since_saved(view, head)
        for entry in reversed(since):
            apply(fold, stored_round(view, entry))
    return fold


def saved_fold(view: Snapshot, before: bytes | None, made: str, lines: Lines) -> dict[bytes, bytes | None]:
    """What to write into the derived part of the store after rounds with ``lines`` came to the chain whose head was
    ``before``; ``made`` is its new head (hex). Nothing, as long as little has changed since a fold was saved."""
    saved, rounds = _last_saved(view, before)
    if saved is not None and rounds + lines.rounds < MOST_ROUNDS:
        return {}
    values: dict[bytes, bytes | None] = {} if saved is None else {_PREFIX + saved: None}
    if lines.too_many:
        # An empty value, which is as good as none, marks where to look again.
        return values | {_PREFIX + bytes.fromhex(made): b""}
    fold = stored_fold(view, before)
    groups = (
        _group(fold.nodes, lines.groups[0]),
        _group(fold.relations, lines.groups[1]),
        _group(fold.unresolved, lines.groups[2]),
    )
    values[_PREFIX + bytes.fromhex(made)] = sealed(msgspec.msgpack.encode(_Saved(VERSION, groups)))
    return values


def _last_saved(view: Snapshot, head: bytes | None) -> tuple[bytes | None, int]:
    """The last round whose fold was saved, and how many came after it."""
    rounds = 0
    while head is not None:
        if view.derived(_PREFIX + head) is not None:
            return head, rounds
        entry: FlowRound = load(view, head, "flow-round")
        head = bytes.fromhex(entry.previous) if isinstance(entry.previous, str) else None
        rounds += 1
    return None, rounds


def _since_saved(view: Snapshot, head: bytes) -> tuple[list[FlowRound], Fold]:
    """The rounds since the last saved fold, newest first, and that fold."""
    since: list[FlowRound] = []
    key: bytes | None = head
    while key is not None:
        entry: FlowRound = load(view, key, "flow-round")
        fold = _saved(view, key, entry)
        if fold is not None:
            return since, fold
        since.append(entry)
        key = bytes.fromhex(entry.previous) if isinstance(entry.previous, str) else None
    return since, Fold()


def _saved(view: Snapshot, key: bytes, entry: FlowRound) -> Fold | None:
    data = unsealed(view.derived(_PREFIX + key))
    if data is None:
        return None
    try:
        saved = _SAVED.decode(data)
    except msgspec.DecodeError:
        return None
    if saved.version != VERSION:
        return None
    nodes, relations, unresolved = saved.groups
    return Fold(
        entry.round,
        entry.commit,
        to_header(entry),
        Frames(SfNode, nodes.ids, nodes.lines),
        Frames(SfRelation, relations.ids, relations.lines),
        Frames(SfUnresolved, unresolved.ids, unresolved.lines),
    )


def _group(frames: Mapping[str, F], news: _News) -> _Group:
    """Frames as lines, and what came to them."""
    lines: _News = {**frames.lines()} if isinstance(frames, Frames) else {}
    if not lines:
        _take(lines, list(frames.values()))
    lines.update(news)
    left = {name: line for name, line in lines.items() if line is not None}
    return _Group(list(left), b"\n".join(left.values()))
