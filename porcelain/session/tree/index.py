"""The derived index of a session: one row a node, so that an insert reads and writes the ancestors and nothing else.

Keys begin with ``session/<sid>/``; ``seq`` is 4 bytes, big-endian:

=========================  ===========================================================================================
``s``                      CRC-32 and state (``State``, JSON): the head that the index was made for, what it comes to
``n`` + seq                parent's seq (all ones: none), ``node_hash``, ``subtree_hash``; then, for each child in
                           ascending order of subtree hash, that hash and its seq
``e`` + seq                id of the event that brought the node
``r`` + root               number of the event after which this was the session's root
``l`` + hash + seq         a label: the first 16 bytes of its SHA-256
=========================  ===========================================================================================

The index is checked as it is used: every row that is changed must first agree with the hash it states. One that is
damaged, missing or made for another head is made again from the objects.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from hashlib import sha256
from zlib import crc32

import msgspec
from msgspec import Struct

from objstore.batch import Batch
from objstore.errors import CheckFailed
from objstore.snapshot import Snapshot
from porcelain.session.tree.nodes import hash_over
from porcelain.session.tree.replay import Broken, Tree, main_chain, replay

_NONE = 0xFFFFFFFF
_HEAD = 68
_CHILD = 36


class IndexDamaged(CheckFailed):
    """A row of the index disagrees with itself or with its neighbours."""


class State(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a session stands: ids and roots are hex, times as stored in its objects."""

    created_at: str
    event_count: int
    head: str
    next_seq: int
    node_count: int
    root: str
    updated_at: str


_STATE = msgspec.json.Decoder(State)


def index_prefix(sid: str) -> bytes:
    """What the keys of a session's index begin with."""
    return b"session/" + sid.encode() + b"/"


def read_state(view: Snapshot, sid: str) -> State | None:
    """The state in the index, whatever head it was made for, or None."""
    data = view.derived(index_prefix(sid) + b"s")
    if data is None or crc32(data[4:]).to_bytes(4, "big") != data[:4]:
        return None
    try:
        return _STATE.decode(data[4:])
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None


def _seq(seq: int) -> bytes:
    return seq.to_bytes(4, "big")


def _label_key(label: str) -> bytes:
    return b"l" + sha256(label.encode()).digest()[:16]


def pack_row(parent: int | None, node_hash: bytes, children: list[tuple[bytes, int]]) -> bytes:
    """A row from scratch; ``children`` are (subtree hash, seq) in ascending order."""
    tail = b"".join([digest + _seq(seq) for digest, seq in children])
    return _seq(_NONE if parent is None else parent) + node_hash + _subtree(node_hash, tail) + tail


def _subtree(node_hash: bytes, tail: bytes) -> bytes:
    return _over(sha256(b"\x00" + node_hash).digest(), tail)


def _over(leaf: bytes, tail: bytes) -> bytes:
    """The subtree hash of a node with this leaf hash and the children of this row."""
    return hash_over(leaf, [tail[at : at + 32] for at in range(0, len(tail), _CHILD)])


def _replaced(tail: bytes, seq: int, old: bytes | None, new: bytes) -> bytes:
    """The children of a row with one more, or with one whose hash changed."""
    if old is not None and len(tail) == _CHILD:
        if tail != old + _seq(seq):
            raise IndexDamaged(f"node {seq}: is not where its parent's row should name it")
        return new + tail[32:]
    entries = [tail[at : at + _CHILD] for at in range(0, len(tail), _CHILD)]
    if old is not None:
        entry = old + _seq(seq)
        at = bisect_left(entries, entry)
        if at == len(entries) or entries[at] != entry:
            raise IndexDamaged(f"node {seq}: is not where its parent's row should name it")
        del entries[at]
    entry = new + _seq(seq)
    entries.insert(bisect_left(entries, entry), entry)
    return b"".join(entries)


class TreeIndex:
    """The rows of one session's tree: read from the store as they are asked for, changed in memory, written at once.

    ``view`` None makes one in memory alone. ``is_whole`` says that all rows are in memory, made from the objects.
    """

    def __init__(self, view: Snapshot | None, sid: str) -> None:
        self.sid = sid
        self._view = view
        self._prefix = index_prefix(sid)
        self._rows: dict[int, bytes] = {}
        self._values: dict[bytes, bytes | None] = {}
        self.is_whole = view is None

    @classmethod
    def of_tree(cls, sid: str, tree: Tree, view: Snapshot | None = None) -> TreeIndex:
        """All rows of a tree that was replayed; with ``view``, ``write`` replaces what the store has."""
        index = cls(view, sid)
        index.is_whole = True
        rows = index._rows
        for seq in sorted(tree.hashes, reverse=True):
            children = sorted((rows[one][36:_HEAD], one) for one in tree.children.get(seq, ()))
            rows[seq] = pack_row(tree.parents[seq], tree.hashes[seq], children)
        for seq, event in tree.events.items():
            index.set_event(seq, event)
        for seq, node in tree.nodes.items():
            if node.label is not None:
                index.add_label(node.label, seq)
        return index

    # -- reading ------------------------------------------------------------------------------------------------------

    def _row(self, seq: int) -> bytes:
        row = self._rows.get(seq)
        if row is None:
            row = (
                None
                if self.is_whole or self._view is None
                else self._view.derived(self._prefix + b"n" + _seq(seq))
            )
            if row is None or len(row) < _HEAD or (len(row) - _HEAD) % _CHILD:
                raise IndexDamaged(f"{self.sid}: no row of node {seq} in the index")
        return row

    def __contains__(self, seq: object) -> bool:
        if not isinstance(seq, int) or not 0 <= seq < _NONE:
            return False
        if seq in self._rows or self.is_whole or self._view is None:
            return seq in self._rows
        return self._view.derived(self._prefix + b"n" + _seq(seq)) is not None

    def parent(self, seq: int) -> int | None:
        """The parent's seq; None for the root."""
        above = int.from_bytes(self._row(seq)[:4], "big")
        if above == _NONE:
            return None
        if above >= seq:
            raise IndexDamaged(f"{self.sid}: node {seq} cannot stand under node {above}")
        return above

    def node_hash(self, seq: int) -> bytes:
        """The node's hash, which is its key as an object."""
        return self._row(seq)[4:36]

    def subtree_hash(self, seq: int) -> bytes:
        """The hash of the node and what is below it."""
        return self._row(seq)[36:_HEAD]

    def children(self, seq: int) -> list[tuple[bytes, int]]:
        """(subtree hash, seq) of each child, ascending by hash."""
        tail = self._row(seq)[_HEAD:]
        return [
            (tail[at : at + 32], int.from_bytes(tail[at + 32 : at + _CHILD], "big"))
            for at in range(0, len(tail), _CHILD)
        ]

    def path(self, seq: int) -> list[int]:
        """``seq`` and its ancestors, the root last."""
        found = [seq]
        while (above := self.parent(found[-1])) is not None:
            found.append(above)
        return found

    def descendants(self, seq: int) -> list[int]:
        """``seq`` and everything below it, parents before children."""
        found = [seq]
        for at in found:
            found += sorted(one for _, one in self.children(at))
        return found

    def seqs(self) -> list[int]:
        """All nodes, ascending."""
        found = set(self._rows)
        if not self.is_whole and self._view is not None:
            start = self._prefix + b"n"
            found.update(
                int.from_bytes(key[len(start) :], "big") for key, _ in self._view.derived_items(start)
            )
        return sorted(found)

    def rows(self) -> Iterator[tuple[int, int | None, bytes, bytes, int]]:
        """seq, parent's seq, node hash, subtree hash and number of children of every node, ascending by seq."""
        for seq, row in self._all_rows():
            above = int.from_bytes(row[:4], "big")
            yield (
                seq,
                None if above == _NONE else above,
                row[4:36],
                row[36:_HEAD],
                (len(row) - _HEAD) // _CHILD,
            )

    def _all_rows(self) -> Iterable[tuple[int, bytes]]:
        if self.is_whole or self._view is None:
            return sorted(self._rows.items())
        start = self._prefix + b"n"
        stored = {
            int.from_bytes(key[len(start) :], "big"): row for key, row in self._view.derived_items(start)
        }
        return sorted((stored | self._rows).items())

    def event(self, seq: int) -> str:
        """Id of the event that brought the node."""
        found = self._value(b"e" + _seq(seq))
        if found is None or len(found) != 32:
            raise IndexDamaged(f"{self.sid}: no event of node {seq} in the index")
        return found.hex()

    def event_number(self, root: bytes) -> int | None:
        """The ``seq`` of an event after which ``root`` was the session's root, or None if it never was."""
        found = self._value(b"r" + root)
        return None if found is None else int.from_bytes(found, "big")

    def labelled(self, label: str) -> list[int]:
        """The nodes that may bear ``label`` (compare the node itself), ascending."""
        return sorted(seq for _, seq in self._labels(_label_key(label)))

    def labels(self) -> list[int]:
        """The nodes that bear any label, ascending."""
        return sorted({seq for _, seq in self._labels(b"l")})

    def _labels(self, start: bytes) -> set[tuple[bytes, int]]:
        found: set[bytes] = set()
        if not self.is_whole and self._view is not None:
            prefix = self._prefix + start
            found = {key[len(self._prefix) :] for key, _ in self._view.derived_items(prefix)}
        for key, value in self._values.items():
            if key.startswith(start):
                (found.discard if value is None else found.add)(key)
        return {(key[:-4], int.from_bytes(key[-4:], "big")) for key in found}

    def _value(self, key: bytes) -> bytes | None:
        if key in self._values:
            return self._values[key]
        return None if self.is_whole or self._view is None else self._view.derived(self._prefix + key)

    # -- changing -----------------------------------------------------------------------------------------------------

    def insert(self, seq: int, parent: int | None, node_hash: bytes) -> None:
        """Add a leaf; the hashes of its ancestors follow. Raises ``IndexDamaged``."""
        row = pack_row(parent, node_hash, [])
        self._rows[seq] = row
        if parent is not None:
            self._raise(parent, seq, None, row[36:_HEAD])

    def remint(self, hashes: dict[int, bytes]) -> None:
        """Give nodes other node hashes: one node and everything below it. Raises ``IndexDamaged``."""
        top = min(hashes)
        old = self.subtree_hash(top)
        for seq in sorted(hashes, reverse=True):
            row = self._row(seq)
            if _subtree(row[4:36], row[_HEAD:]) != row[36:_HEAD]:
                raise self._does_not_add_up(seq)
            children = sorted((self._rows[one][36:_HEAD], one) for _, one in self.children(seq))
            self._rows[seq] = pack_row(self.parent(seq), hashes[seq], children)
        above = self.parent(top)
        if above is not None:
            self._raise(above, top, old, self.subtree_hash(top))

    def _raise(self, at: int | None, child: int, old: bytes | None, new: bytes) -> None:
        """Carry the changed hash of ``child`` up to the root."""
        rows = self._rows
        while at is not None:
            row = self._row(at)
            tail, before = row[_HEAD:], row[36:_HEAD]
            leaf = sha256(b"\x00" + row[4:36]).digest()
            if at not in rows and _over(leaf, tail) != before:
                raise self._does_not_add_up(at)
            tail = _replaced(tail, child, old, new)
            new = _over(leaf, tail)
            rows[at] = row[:36] + new + tail
            above = int.from_bytes(row[:4], "big")
            if above == _NONE:
                return
            if above >= at:
                raise IndexDamaged(f"{self.sid}: node {at} cannot stand under node {above}")
            old, child, at = before, at, above

    def _does_not_add_up(self, seq: int) -> IndexDamaged:
        return IndexDamaged(f"{self.sid}: the row of node {seq} in the index does not add up")

    def set_event(self, seq: int, event: str) -> None:
        """Note which event brought a node."""
        self._values[b"e" + _seq(seq)] = bytes.fromhex(event)

    def set_root(self, root: str, number: int) -> None:
        """Note that ``root`` was the root after the event ``number``."""
        self._values[b"r" + bytes.fromhex(root)] = number.to_bytes(4, "big")

    def add_label(self, label: str, seq: int) -> None:
        """Note that a node bears a label."""
        self._values[_label_key(label) + _seq(seq)] = b""

    def drop_label(self, label: str, seq: int) -> None:
        """Note that a node does not bear a label any more."""
        self._values[_label_key(label) + _seq(seq)] = None

    def write(self, batch: Batch, state: State) -> None:
        """Put what changed, or all of it if it was made anew, into ``batch``."""
        if self.is_whole and self._view is not None:
            drop_index(batch, self._view, self.sid)
        for seq, row in self._rows.items():
            batch.set_derived(self._prefix + b"n" + _seq(seq), row)
        for key, value in self._values.items():
            batch.set_derived(self._prefix + key, value)
        data = msgspec.json.encode(state)
        batch.set_derived(self._prefix + b"s", crc32(data).to_bytes(4, "big") + data)


def drop_index(batch: Batch, view: Snapshot, sid: str) -> None:
    """Remove a session's index."""
    for key, _ in view.derived_items(index_prefix(sid)):
        batch.set_derived(key, None)


def rebuild(view: Snapshot, sid: str, head: str) -> tuple[TreeIndex, State, Tree]:
    """The index for a head, made from the objects. Raises ``Broken`` where they do not hold together."""
    chain = main_chain(view, bytes.fromhex(head))
    tree = replay(view, chain)
    index = TreeIndex.of_tree(sid, tree, view)
    for _, event in chain:
        index.set_root(event.body.session_root, event.seq)
    last = chain[-1][1]
    state = State(
        created_at=chain[0][1].body.created_at,
        event_count=last.seq,
        head=head,
        next_seq=tree.last + 1,
        node_count=len(tree.hashes),
        root=last.body.session_root,
        updated_at=last.body.created_at,
    )
    if index.subtree_hash(0).hex() != state.root:
        raise Broken(
            "root_mismatch",
            sid,
            "the tree does not hash to the root that its last event states",
            last.seq - 1,
        )
    return index, state, tree
