"""Reading a session from a SQLite file and checking every hash in it.

Nothing is believed: the types of all values, the columns of every event against its body, the chain, each node hash,
parent link and subtree hash, and the root. Events are replayed from the rows, with the label that a node bore at the
time taken from the events that changed it, so that the node an event names can be made again even where a later label
replaced it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from objstore import kinds
from objstore.errors import CheckFailed, NotFound, StorageError
from objstore.merkle import ZERO_HASH, SiblingOrder
from porcelain.providers.redaction import redact_text
from porcelain.session.exchange.sqlite_view import EVENT_COLUMNS, META_COLUMNS, NODE_COLUMNS
from porcelain.session.integrity.checking import Check
from porcelain.session.tree.events import KEYS, RULES, ZERO_ROOT, Body, check_body, event_hash
from porcelain.session.tree.identity import bates_of, is_sid, is_time, seq_of, split_bates
from porcelain.session.tree.nodes import MAX_LABEL, MAX_QUESTION, Node, check_node
from porcelain.session.tree.replay import Broken, Reason, Tree, apply

#: Longest text in a cell: a body is below 4 KiB, a question below 64 KiB.
_MAX_TEXT = 256 * 1024
_INTEGERS = frozenset({"next_seq", "seq"})
_NULLABLE = frozenset({"label", "parent_bates"})


class Recorded(NamedTuple):
    """A session as a file has it: ``session_meta``, ``nodes`` and ``session_audit_events`` as rows by column name."""

    meta: dict[str, Any]
    nodes: list[dict[str, Any]]
    events: list[dict[str, Any]]


class Verified(NamedTuple):
    """A session that was found to be in order: bodies and hashes of its events, its tree, and every node that any event
    names (canonical bytes by digest)."""

    sid: str
    bodies: list[Body]
    hashes: list[str]
    tree: Tree
    minted: dict[bytes, bytes]
    current: int
    root: str


def read_session(path: Path) -> Recorded:
    """The rows in ``path``. Raises ``NotFound``, ``StorageError`` for what is no file, or ``Broken`` for one
    that does not hold the tables."""
    if not path.exists():
        raise NotFound(f"{path}: no such file")
    if not path.is_file():
        raise StorageError(f"{path}: is not a file that holds a session")
    try:
        uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_TEXT)
            connection.execute("PRAGMA trusted_schema=OFF")
            for (finding,) in connection.execute("PRAGMA integrity_check(1)"):
                if finding != "ok":
                    raise Broken("unparseable", str(path), f"not a sound database: {finding}")
            metas = _rows(connection, "session_meta", META_COLUMNS, "session_id")
            nodes = _rows(connection, "nodes", NODE_COLUMNS, "seq")
            events = _rows(connection, "session_audit_events", EVENT_COLUMNS, "seq")
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise Broken("unparseable", str(path), f"not a session database: {error}") from None
    if len(metas) != 1:
        raise Broken("unparseable", "session_meta", f"has {len(metas)} rows, not one")
    return Recorded(metas[0], nodes, events)


def _rows(
    connection: sqlite3.Connection, table: str, columns: tuple[str, ...], order: str
) -> list[dict[str, Any]]:
    found = connection.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY {order}").fetchall()
    rows = []
    for row in found:
        for column, value in zip(columns, row, strict=True):
            wanted = int if column in _INTEGERS else str
            if type(value) is not wanted and not (value is None and column in _NULLABLE):
                raise Broken("unparseable", f"{table}.{column}", f"holds a {type(value).__name__}")
        rows.append(dict(zip(columns, row, strict=True)))
    return rows


def verify_recorded(recorded: Recorded) -> Verified:
    """The session that the rows hold. Raises ``Broken`` with the first thing that is wrong."""
    meta = recorded.meta
    sid = meta["session_id"]
    if not is_sid(sid):
        raise Broken("unparseable", "session_meta.session_id", "not a session id")
    if not recorded.events:
        raise Broken("unparseable", "session_audit_events", "has no events", 0)
    rows = {row["bates"]: row for row in recorded.nodes}
    bodies = _bodies(recorded.events)
    minted: dict[bytes, bytes] = {}
    tree = _replay(sid, bodies, rows, minted)
    _compare(sid, tree, rows)
    root = bodies[-1].session_root
    try:
        subtrees = tree.subtree_hashes()
    except SiblingOrder as error:
        raise Broken("root_mismatch", "nodes", error.message) from None
    for seq, digest in subtrees.items():
        bates = bates_of(sid, seq)
        if rows[bates]["subtree_hash"] != digest.hex():
            raise Broken("hash_mismatch", f"nodes[{bates}].subtree_hash", "is not what the rows hash to")
    if subtrees[0].hex() != root:
        raise Broken(
            "root_mismatch", sid, "the last event states another root than the rows have", len(bodies) - 1
        )
    expected = {
        "root_bates": bates_of(sid, 0),
        "session_root": root,
        "next_seq": tree.last + 1,
        "created_at": bodies[0].created_at,
        "updated_at": bodies[-1].created_at,
    }
    for column, value in expected.items():
        if meta[column] != value:
            reason: Reason = "root_mismatch" if column == "session_root" else "hash_mismatch"
            raise Broken(reason, f"session_meta.{column}", "does not agree with the nodes and events")
    if meta["current_bates"] not in rows:
        raise Broken("hash_mismatch", "session_meta.current_bates", "names no node")
    minted |= tree.minted
    hashes = [row["event_hash"] for row in recorded.events]
    return Verified(sid, bodies, hashes, tree, minted, seq_of(meta["current_bates"]), root)


def _bodies(events: list[dict[str, Any]]) -> list[Body]:
    """The bodies of all events, in an unbroken chain."""
    bodies: list[Body] = []
    before_hash, before_root = ZERO_HASH, ZERO_ROOT
    decoder = msgspec.json.Decoder(Body)
    for index, row in enumerate(events):
        place = f"session_audit_events[{index + 1}]"
        if row["seq"] != index + 1:
            raise Broken("prev_mismatch", f"{place}.seq", f"is {row['seq']}", index)
        text = row["body"].encode()
        digest = event_hash(before_hash, text)
        if digest.hex() != row["event_hash"]:
            raise Broken(
                "hash_mismatch", f"{place}.event_hash", "does not follow from body and event before", index
            )
        try:
            body = decoder.decode(text)
            if kinds.encode(body) != text:
                raise CheckFailed("is not canonical JSON")
            if body.event_type == "session_init" and body.rules != RULES:
                raise Broken(
                    "unknown_rules", f"{place}.body", "the session was made by rules unknown here", index
                )
            check_body(body)
        except Broken:
            raise
        except (msgspec.DecodeError, msgspec.ValidationError, CheckFailed) as error:
            raise Broken(_reason(text, index), f"{place}.body", str(error), index) from None
        for column in ("event_type", "bates", "prev_root", "session_root", "created_at"):
            if row[column] != getattr(body, column):
                raise Broken("hash_mismatch", f"{place}.{column}", "is not what the body says", index)
        if body.prev_root != before_root:
            raise Broken("prev_mismatch", f"{place}.prev_root", "is not the root before it", index)
        bodies.append(body)
        before_hash, before_root = digest, body.session_root
    return bodies


def _reason(text: bytes, index: int) -> Reason:
    """Why a body cannot be read: by other rules, if it is a first one that is otherwise whole."""
    try:
        said = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return "unparseable"
    known = isinstance(said, dict) and said.get("event_type") in KEYS
    return "unknown_rules" if index == 0 and known and "rules" not in said else "unparseable"


def _replay(
    sid: str, bodies: list[Body], rows: Mapping[str, dict[str, Any]], minted: dict[bytes, bytes]
) -> Tree:
    first_labels: dict[str, str | None] = {}
    for body in bodies:
        if body.event_type == "node_labelled" and (body.old_label is None or isinstance(body.old_label, str)):
            first_labels.setdefault(body.bates, body.old_label)
    tree = Tree()

    def node_of(body: Body) -> Node:
        row = rows.get(body.bates)
        if row is None:
            raise Broken("hash_mismatch", f"nodes[{body.bates}]", "the node of an event is not there")
        parent = None if seq_of(body.bates) == 0 else tree.hashes.get(seq_of(str(body.parent_bates)))
        node = Node(
            audit_mode=row["audit_mode"],
            bates=row["bates"],
            cache_key=row["cache_key"],
            created_at=row["created_at"],
            label=first_labels.get(body.bates, row["label"]),
            parent_node_hash=None if parent is None else parent.hex(),
            question=row["question"],
        )
        _check_row(row, node)
        data = kinds.encode(node)
        minted[bytes.fromhex(body.node_hash)] = data
        return node

    for index, body in enumerate(bodies):
        if split_bates(body.bates)[0] != sid:
            raise Broken(
                "prev_mismatch", f"session_audit_events[{index + 1}].bates", "is of another session", index
            )
        try:
            apply(tree, "", body, node_of)
        except Broken as broken:
            raise Broken(broken.reason, broken.place, broken.what, index) from None
    return tree


def _check_row(row: dict[str, Any], node: Node) -> None:
    """Raise ``Broken`` for a row that no node can have."""
    try:
        check_node(node)
    except CheckFailed as error:
        raise Broken("hash_mismatch", f"nodes[{row['bates']}]", error.message) from None
    if len(node.question.encode()) > MAX_QUESTION or len((node.label or "").encode()) > MAX_LABEL:
        raise Broken(
            "unparseable", f"nodes[{row['bates']}]", "its question or label is longer than one may be"
        )
    if not is_time(node.created_at):
        raise Broken("hash_mismatch", f"nodes[{row['bates']}].created_at", "is not a time")


def _compare(sid: str, tree: Tree, rows: Mapping[str, dict[str, Any]]) -> None:
    """Each row against the node that the events made."""
    for bates, row in rows.items():
        seq = seq_of(bates) if bates.startswith(sid + "-") and bates[-6:].isdigit() else -1
        node = tree.nodes.get(seq)
        if node is None or node.bates != bates:
            raise Broken("hash_mismatch", f"nodes[{bates[:40]}]", "no event brought this node")
        above = tree.parents[seq]
        expected = {
            "seq": seq,
            "parent_bates": None if above is None else bates_of(sid, above),
            "label": node.label,
            "node_hash": tree.hashes[seq].hex(),
        }
        for column, value in expected.items():
            if row[column] != value:
                raise Broken("hash_mismatch", f"nodes[{bates}].{column}", "is not what the events made of it")


def check_file(path: Path) -> Check:
    """What a check of a file finds, in the words of a chain check."""
    sid, count = str(path), 0
    try:
        recorded = read_session(path)
        sid, count = recorded.meta["session_id"], len(recorded.events)
        if not count:
            return Check(sid=sid, head=None, status="unchained", events=0, nodes=len(recorded.nodes))
        found = verify_recorded(recorded)
    except Broken as broken:
        return Check(
            sid=sid,
            head=None,
            status="corrupted",
            events=broken.index or 0,
            nodes=0,
            index=broken.index,
            reason=broken.reason,
            place=broken.place,
            what=broken.what,
        )
    return Check(
        sid=sid, head=None, status="verified", events=count, nodes=len(found.tree.hashes), root=found.root
    )


def secrets_in(verified: Verified) -> list[str]:
    """The Bates ids of nodes whose question or label holds what looks like a secret, ascending."""
    nodes = verified.tree.nodes.values()
    together = "\n".join(f"{node.question}\n{node.label or ''}" for node in nodes)
    if redact_text(together) == together:
        return []
    return sorted(
        node.bates
        for node in nodes
        if any(redact_text(text) != text for text in (node.question, node.label or ""))
    )
