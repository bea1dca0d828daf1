"""Runs of a chain of events, checked many at a time.

Nearly every event of a session adds one node, and the text of such an event is fixed but for numbers and hashes: one
pattern says that it is canonical and of the right form, in a fifth of the time that reading it into a Struct takes. So
it is with nodes, but for question and label. What the patterns do not match (a first event, labels, a graft that names
two heads) is in no run, nor is anything else that is not in order: whoever checks a chain goes through that one by one,
and so learns what is wrong.

Which events there may be comes from the index; nothing else is believed of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import pairwise
from operator import lt
from typing import NamedTuple, TypeVar

from objstore.digest import DIGEST_SIZE, hasher_of_many
from objstore.errors import StorageError
from objstore.merkle import leaf_hash
from objstore.objects import SESSION_NODE
from objstore.snapshot import Snapshot
from porcelain.session.tree.events import KIND, ZERO_ROOT, Event
from porcelain.session.tree.identity import is_time
from porcelain.session.tree.index import index_prefix
from porcelain.session.tree.nodes import AUDIT_MODES
from porcelain.session.tree.replay import Run, read_event

_HEX = b"0123456789abcdef"
#: Canonical text in quotes, without NUL; that it is UTF-8 is left open.
_TEXT = r'"[^"\\\x00-\x1f]*(?:\\(?:["\\bfnrt]|u00(?:0[1-7bef]|1[0-9a-f]))[^"\\\x00-\x1f]*)*"'


class Texts(NamedTuple):
    """What differs from one event that adds a node to another, in the order of its text; one entry for each event."""

    body: Sequence[bytes]
    answer: Sequence[bytes]
    bates: Sequence[bytes]
    created_at: Sequence[bytes]
    grafted_from: Sequence[bytes]
    node_hash: Sequence[bytes]
    parent: Sequence[bytes]
    prev_root: Sequence[bytes]
    session_root: Sequence[bytes]
    event_hash: Sequence[bytes]
    previous: Sequence[bytes]
    number: Sequence[bytes]


class EventRun(NamedTuple):
    """Events that follow each other, each of which adds a node: their ids, the number of the last, what they say."""

    keys: Sequence[bytes]
    last_seq: int
    texts: Texts

    @property
    def previous(self) -> str:
        """The id of the event before the first."""
        return self.texts.previous[0].decode()


AnyRun = TypeVar("AnyRun", EventRun, Run)
#: Ids and events, oldest first.
Single = list[tuple[str, Event]]


def chain_in_runs(view: Snapshot, head: str, runs: Mapping[str, AnyRun]) -> list[AnyRun | Single]:
    """The main chain of a head in parts, oldest first; ``runs`` are those there are, by the id of their last event.

    Raises ``Broken`` as ``main_chain`` does.
    """
    parts: list[AnyRun | Single] = []
    single: Single = []
    key, expected = head, None
    while True:
        run = runs.get(key)
        if run is not None and expected in (None, run.last_seq):
            parts += [single[::-1], run] if single else [run]
            single = []
            key, expected = run.previous, run.last_seq - len(run.keys)
            continue
        event = read_event(view, key, expected)
        single.append((key, event))
        if not event.previous:
            parts.append(single[::-1])
            return parts[::-1]
        key, expected = event.previous[0], event.seq - 1


def one_by_one(view: Snapshot, run: Run) -> Single:
    """Ids and events of a run, oldest first."""
    numbered = enumerate(run.keys, run.last_seq - len(run.keys) + 1)
    return [(key.hex(), read_event(view, key.hex(), number)) for number, key in numbered]


def likely_events(view: Snapshot, sid: str) -> list[bytes]:
    """Keys of the events that brought the nodes of a session, as its index has them, in the order of the nodes."""
    return [key for _, key in view.derived_items(index_prefix(sid) + b"e") if len(key) == DIGEST_SIZE]


class Patterns(NamedTuple):
    """Match each line that is the canonical text of an event of a session which adds a node and follows one event, or
    of a node that is not the root. They leave open whether hashes are hexadecimal, times are times, and numbers go
    together."""

    event: re.Pattern[bytes]
    node: re.Pattern[bytes]


def patterns_of(sid: str) -> Patterns:
    """The patterns for a session."""
    digest, time, session = "(.{64})", "(.{20})", re.escape(sid)
    body = (
        f'{{"answer":"{digest}","bates":"({session}-[0-9]{{6}})","created_at":"{time}","event_type":"node_added",'
        f'(?:"grafted_from":"{digest}",)?"node_hash":"{digest}","parent_bates":"{session}-([0-9]{{6}})",'
        f'"prev_root":"{digest}","session_root":"{digest}"}}'
    )
    event = (
        f'{{"body":({body}),"event_hash":"{digest}","previous":\\["{digest}"\\],"seq":([1-9][0-9]{{0,14}}),'
        f'"session_id":"{session}","type":"session-event"}}'
    )
    node = (
        f'{{"audit_mode":"(?:{"|".join(AUDIT_MODES)})","bates":"({session}-[0-9]{{6}})","cache_key":"{digest}",'
        f'"created_at":"{time}","label":(?:null|{_TEXT}),"parent_node_hash":"{digest}","question":{_TEXT}}}'
    )
    return Patterns(*[re.compile(f"^{one}$".encode(), re.MULTILINE) for one in (event, node)])


def read_runs(view: Snapshot, patterns: Patterns, keys: Sequence[bytes]) -> list[Run]:
    """The runs among the events ``keys`` of the session that ``patterns`` are for. All is in order in a run by itself;
    how it goes on from the event before, and whether its nodes stand where they say, is not looked at."""
    runs = (_with_nodes(view, patterns, events) for events in read_event_runs(view, patterns, keys))
    return [run for run in runs if run is not None]


def read_event_runs(view: Snapshot, patterns: Patterns, keys: Sequence[bytes]) -> list[EventRun]:
    """As ``read_runs``, but of the events alone: no node is read."""
    columns = _columns(view, keys, KIND, patterns.event)
    if columns is None:
        return []
    texts = Texts._make(columns)
    cuts = []
    if b"".join(texts.previous[1:]) != _hex(b"".join(keys[:-1])):  # it seldom is: then look where
        cuts = [at for at in range(1, len(keys)) if texts.previous[at] != _hex(keys[at - 1])]
    runs = (
        EventRun(keys[a:b], int(texts.number[b - 1]), Texts._make([column[a:b] for column in texts]))
        for a, b in pairwise([0, *cuts, len(keys)])
    )
    return [run for run in runs if _is_in_order(run)]


def _columns(
    view: Snapshot, keys: Sequence[bytes], kind: str, pattern: re.Pattern[bytes]
) -> list[tuple[bytes, ...]] | None:
    """What the groups of ``pattern`` match in objects of a kind, one column for each group; None where an object
    cannot be had, does not hash to its key or does not match."""
    try:
        datas = view.get_verified(keys, kind, hasher_of_many("sha256"))
    except StorageError:
        return None
    if not datas:
        return None
    # No object goes over a line's end, so as many matches as objects are one match for each.
    lines = b"\n".join(datas)
    found = pattern.findall(lines) if lines.count(b"\n") == len(datas) - 1 and _is_utf8(lines) else []
    return list(zip(*found, strict=True)) if len(found) == len(datas) else None


def _is_in_order(run: EventRun) -> bool:
    """Whether events that name each other as previous hold together in all else."""
    texts, first = run.texts, int(run.texts.number[0])
    if (
        first < 2
        or list(map(int, texts.number)) != list(range(first, first + len(run.keys)))
        or texts.prev_root[1:] != texts.session_root[:-1]
        or ZERO_ROOT.encode() in texts.prev_root
        or not all(map(lt, texts.parent, [bates[-6:] for bates in texts.bates]))
        or not _are_times(texts.created_at)
        or not _are_hex(texts.answer, texts.grafted_from, texts.node_hash, texts.session_root)
        or not _are_hex(texts.event_hash[:1], texts.previous[:1], texts.prev_root[:1])
    ):
        return False
    digest = bytes.fromhex(texts.event_hash[0].decode())
    chained = [digest := sha256(digest + body).digest() for body in texts.body[1:]]
    return b"".join(texts.event_hash[1:]) == _hex(b"".join(chained))


def _with_nodes(view: Snapshot, patterns: Patterns, run: EventRun) -> Run | None:
    """The run with the nodes that its events name; None where anything is wrong with those."""
    texts = run.texts
    hashes = _digests(texts.node_hash)
    columns = _columns(view, hashes, SESSION_NODE, patterns.node)
    if columns is None:
        return None
    bates, cache_keys, times, above = columns
    seqs = [int(one[-6:]) for one in bates]
    if (
        bates != tuple(texts.bates)
        or not all(map(lt, seqs, seqs[1:]))
        or not _are_hex(cache_keys, above)
        or not _are_times(times)
    ):
        return None
    return Run(
        keys=list(run.keys),
        last_seq=run.last_seq,
        last_hash=bytes.fromhex(texts.event_hash[-1].decode()),
        root=texts.session_root[-1].decode(),
        previous=run.previous,
        prev_root=texts.prev_root[0].decode(),
        body=texts.body[0],
        first_hash=bytes.fromhex(texts.event_hash[0].decode()),
        seqs=seqs,
        parents=list(map(int, texts.parent)),
        hashes=hashes,
        leaves=list(map(leaf_hash, hashes)),
        above=_digests(above),
    )


def _hex(data: bytes) -> bytes:
    return data.hex().encode()


def _digests(column: Sequence[bytes]) -> list[bytes]:
    """The raw digests that a column of 64 hexadecimal digits each stands for."""
    joined = bytes.fromhex(b"".join(column).decode())
    return [joined[at : at + DIGEST_SIZE] for at in range(0, len(joined), DIGEST_SIZE)]


def _are_hex(*columns: Sequence[bytes]) -> bool:
    """Whether nothing but lower-case hexadecimal digits is in any of these."""
    return not any(b"".join(column).translate(None, _HEX) for column in columns)


def _are_times(column: Sequence[bytes]) -> bool:
    return all(is_time(time.decode("ascii", "replace")) for time in set(column))


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
