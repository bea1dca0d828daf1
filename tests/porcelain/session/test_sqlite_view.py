"""A session as a SQLite file: out, in, and verified by a program that knows nothing of this one."""

from __future__ import annotations

import json
import os
import runpy
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from objstore import kinds
from objstore.errors import CheckFailed, NotFound, StorageError
from objstore.memory import MemoryDatabase
from objstore.store import Store
from porcelain.session.exchange.sqlite_import import import_session
from porcelain.session.exchange.sqlite_reading import check_file, read_session, verify_recorded
from porcelain.session.exchange.sqlite_view import export_session
from porcelain.session.integrity.checking import chain_check
from porcelain.session.tree import names
from porcelain.session.tree.change import open_session
from porcelain.session.tree.events import Body, event_hash
from porcelain.session.tree.names import is_removed
from porcelain.session.tree.places import move_to
from porcelain.session.tree.replay import Broken
from porcelain.session.tree.retention import collect
from porcelain.session.tree.store import (
    Turn,
    add_turn,
    add_turns,
    new_session,
    set_label,
)

Make = Callable[..., Turn]
VERIFIER = Path(__file__).resolve().parents[3] / "fixtures" / "verify_session_db.py"


def twin() -> Store:
    return Store(MemoryDatabase(store="1" * 16), now=lambda: "2026-05-05T05:05:05Z")


@pytest.fixture
def asked(store: Store, turn: Make) -> str:
    sid, _ = new_session(store, random=lambda n: b"\1\2")
    times = [f"2026-03-04T05:07:0{i}Z" for i in range(5)]
    odd = ('a "quoted"\n\\ question', "line\u2028break\x7f\t")
    questions = ("Who wrote the note?", "Qui l'a écrit ?", "who is the 🦊?", *odd)
    for i, parent in enumerate((0, 1, 1, 2, 0)):
        add_turn(
            store, sid, turn(store, questions[i], parent, created_at=times[i], label="x" if i == 2 else None)
        )
    set_label(store, sid, 1, "one", created_at="2026-03-04T05:08:00Z")
    set_label(store, sid, 2, "zwei", created_at="2026-03-04T05:08:01Z")
    set_label(store, sid, 1, "uno", created_at="2026-03-04T05:08:02Z")
    add_turn(store, sid, turn(store, "and then?", 4, created_at="2026-03-04T05:09:00Z"))
    move_to(store, sid, "zwei")
    return sid


def export(store: Store, sid: str, path: Path) -> Path:
    with store.snapshot() as view:
        export_session(view, open_session(view, sid), path)
    return path


def rows(path: Path) -> list[list[tuple[Any, ...]]]:
    with closing(sqlite3.connect(path)) as connection:
        return [
            connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()
            for table in ("session_meta", "nodes", "session_audit_events")
        ]


def edit(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def stand_alone(path: Path) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, str(VERIFIER), str(path)], capture_output=True, text=True, check=False
    )
    return done.returncode, (done.stdout + done.stderr).strip()


def test_the_schema_is_the_public_one(store: Store, asked: str, tmp_path: Path) -> None:
    path = export(store, asked, tmp_path / "s.db")
    with closing(sqlite3.connect(path)) as connection:
        tables = {
            table: [(c[1], c[2], c[3], c[5]) for c in connection.execute(f"PRAGMA table_info({table})")]
            for (table,) in connection.execute(
                "SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"
            )
        }
        assert next(connection.execute("PRAGMA foreign_key_list(nodes)"))[2:5] == (
            "nodes",
            "parent_bates",
            "bates",
        )
        assert list(connection.execute("PRAGMA foreign_key_check")) == []
        assert "AUTOINCREMENT" in str(connection.execute("SELECT sql FROM sqlite_master").fetchall())
    text = "TEXT"
    assert tables == {
        "session_meta": [
            ("session_id", text, 0, 1),
            ("root_bates", text, 1, 0),
            ("session_root", text, 1, 0),
            ("current_bates", text, 1, 0),
            ("next_seq", "INTEGER", 1, 0),
            ("created_at", text, 1, 0),
            ("updated_at", text, 1, 0),
        ],
        "nodes": [
            ("bates", text, 0, 1),
            ("seq", "INTEGER", 1, 0),
            ("parent_bates", text, 0, 0),
            ("question", text, 1, 0),
            ("cache_key", text, 1, 0),
            ("audit_mode", text, 1, 0),
            ("created_at", text, 1, 0),
            ("label", text, 0, 0),
            ("node_hash", text, 1, 0),
            ("subtree_hash", text, 1, 0),
        ],
        "session_audit_events": [
            ("seq", "INTEGER", 0, 1),
            ("event_type", text, 1, 0),
            ("bates", text, 0, 0),
            ("prev_root", text, 1, 0),
            ("session_root", text, 1, 0),
            ("body", text, 1, 0),
            ("event_hash", text, 1, 0),
            ("created_at", text, 1, 0),
        ],
    }


def test_an_export_of_an_import_is_the_same(store: Store, asked: str, tmp_path: Path) -> None:
    first = export(store, asked, tmp_path / "a.db")
    other = twin()
    done = import_session(other, first)
    assert (done.sid, done.outcome, done.nodes, done.events) == (asked, "new", 7, 10)
    second = export(other, asked, tmp_path / "b.db")
    assert rows(first) == rows(second)
    assert first.read_bytes() == second.read_bytes()
    assert rows(first)[0][0][3:5] == (f"{asked}-000002", 7)
    assert other.refs("session/") == store.refs("session/")
    with other.snapshot() as view:
        assert [one.status for one in chain_check(view, asked, replay=True)] == ["verified"]
        assert other.database.derived == store.database.derived  # type: ignore[union-attr]
    assert import_session(other, first).outcome == "known"


def test_an_imported_session_lacks_nothing(store: Store, asked: str, tmp_path: Path) -> None:
    path = export(store, asked, tmp_path / "a.db")
    with Store.init(tmp_path / "store") as other:
        import_session(other, path)
        assert other.verify().ok


def test_an_import_goes_on_from_what_is_here_or_stands_beside_it(
    store: Store, asked: str, turn: Make, tmp_path: Path
) -> None:
    early = export(store, asked, tmp_path / "early.db")
    other = twin()
    import_session(other, early)
    add_turn(store, asked, turn(store, "later", 1))
    late = export(store, asked, tmp_path / "late.db")
    assert import_session(other, late).outcome == "continued"
    assert other.refs("session/") == store.refs("session/")
    assert import_session(other, early).outcome == "known"
    third = twin()
    import_session(third, early)
    add_turn(third, asked, turn(third, "elsewhere", 1))
    assert import_session(third, late).outcome == "diverged"
    with third.snapshot() as view:
        assert len(names.heads(view, asked)) == 2
        with pytest.raises(names.Diverged):
            open_session(view, asked)
        assert [one.status for one in chain_check(view, asked, replay=True)] == ["verified", "verified"]
    assert import_session(third, late).outcome == "known"


def test_an_import_brings_back_what_was_collected(store: Store, asked: str, tmp_path: Path) -> None:
    path = export(store, asked, tmp_path / "a.db")
    collect(store, 0, confirmed=True)
    with store.snapshot() as view:
        assert is_removed(view, asked)
    assert import_session(store, path).outcome == "new"
    with store.snapshot() as view:
        assert not is_removed(view, asked)
        assert open_session(view, asked).state.node_count == 7


def test_the_stand_alone_verifier_agrees(store: Store, asked: str, tmp_path: Path) -> None:
    path = export(store, asked, tmp_path / "a.db")
    with store.snapshot() as view:
        root = open_session(view, asked).state.root
    assert stand_alone(path) == (0, f"verified {root}")
    assert check_file(path).status == "verified"
    text = VERIFIER.read_text()
    assert len(text.splitlines()) < 80
    assert {line.split()[1] for line in text.splitlines() if line.startswith(("import", "from"))} == {
        "hashlib",
        "json",
        "sqlite3",
    }


DAMAGE = {
    "question": "UPDATE nodes SET question = question || ' ' WHERE seq = 3",
    "label": "UPDATE nodes SET label = NULL WHERE seq = 3",
    "no label": "UPDATE nodes SET label = 'x' WHERE seq = 4",
    "cache_key": "UPDATE nodes SET cache_key = replace(cache_key, '1', '2') WHERE seq = 1",
    "audit_mode": "UPDATE nodes SET audit_mode = 'HYBRID' WHERE seq = 1",
    "node time": "UPDATE nodes SET created_at = '2026-03-04T05:07:09Z' WHERE seq = 1",
    "parent": "UPDATE nodes SET parent_bates = (SELECT bates FROM nodes WHERE seq = 0) WHERE seq = 2",
    "no parent": "UPDATE nodes SET parent_bates = NULL WHERE seq = 2",
    "seq": "UPDATE nodes SET seq = 8 WHERE seq = 6",
    "bates": "UPDATE nodes SET bates = substr(bates, 1, 26) || '9' WHERE seq = 6",
    "node_hash": "UPDATE nodes SET node_hash = (SELECT node_hash FROM nodes WHERE seq = 3) WHERE seq = 2",
    "subtree_hash": "UPDATE nodes SET subtree_hash = (SELECT subtree_hash FROM nodes WHERE seq = 3) WHERE seq = 2",
    "lost node": "DELETE FROM nodes WHERE seq = 6",
    "lost event": "DELETE FROM session_audit_events WHERE seq = 3",
    "lost last event": "DELETE FROM session_audit_events WHERE seq = 10",
    "swapped events": "UPDATE session_audit_events SET seq = CASE seq WHEN 3 THEN 99 ELSE seq END",
    "event type": "UPDATE session_audit_events SET event_type = 'node_labelled' WHERE seq = 2",
    "event bates": "UPDATE session_audit_events SET bates = NULL WHERE seq = 2",
    "prev_root": "UPDATE session_audit_events SET prev_root = session_root WHERE seq = 2",
    "event root": "UPDATE session_audit_events SET session_root = prev_root WHERE seq = 2",
    "body": "UPDATE session_audit_events SET body = replace(body, '05:07:00', '05:07:01') WHERE seq = 2",
    "body spaces": "UPDATE session_audit_events SET body = body || ' ' WHERE seq = 2",
    "event_hash": "UPDATE session_audit_events SET event_hash = prev_root WHERE seq = 10",
    "event time": "UPDATE session_audit_events SET created_at = '2026-03-04T05:07:09Z' WHERE seq = 2",
    "session_root": "UPDATE session_meta SET session_root = (SELECT prev_root FROM session_audit_events WHERE seq=10)",
    "current": "UPDATE session_meta SET current_bates = session_id || '-000099'",
    "next_seq": "UPDATE session_meta SET next_seq = 9",
    "began": "UPDATE session_meta SET created_at = updated_at",
    "updated": "UPDATE session_meta SET updated_at = created_at",
    "root": "UPDATE session_meta SET root_bates = session_id || '-000001'",
    "sid": "UPDATE session_meta SET session_id = '20260304-050607-0000'",
    "no meta": "DELETE FROM session_meta",
    "no table": "DROP TABLE nodes",
}


@pytest.mark.parametrize("statement", DAMAGE.values(), ids=DAMAGE.keys())
def test_damage_is_found_by_import_and_by_the_stand_alone_verifier(
    store: Store, asked: str, tmp_path: Path, statement: str
) -> None:
    path = export(store, asked, tmp_path / "a.db")
    whole = path.read_bytes()
    edit(path, statement)
    assert path.read_bytes() != whole
    found = check_file(path)
    assert found.status == "corrupted"
    assert found.reason and found.place and found.what
    other = twin()
    with pytest.raises(Broken):
        import_session(other, path)
    assert other.refs() == {}
    with other.snapshot() as view:
        assert view.count() == 0
    code, said = stand_alone(path)
    assert code == 1
    assert said.startswith("damaged: ")


def test_the_stand_alone_verifier_takes_any_name_and_says_what_is_missing(
    store: Store, asked: str, tmp_path: Path
) -> None:
    path = export(store, asked, tmp_path / "a?b#c%41.db")
    code, said = stand_alone(path)
    assert (code, said.split()[0]) == (0, "verified")
    code, said = stand_alone(tmp_path / "missing.db")
    assert (code, said) == (1, "damaged: unable to open database file")
    path.write_bytes(b"not a database, and longer than nothing " * 100)
    code, said = stand_alone(path)
    assert (code, said) == (1, "damaged: file is not a database")


def test_a_flipped_byte_anywhere_in_the_file_is_found_or_changes_no_row(
    store: Store, asked: str, tmp_path: Path
) -> None:
    path = export(store, asked, tmp_path / "a.db")
    whole = path.read_bytes()
    expected = read_session(path)
    alone: dict[str, Any] = runpy.run_path(str(VERIFIER))
    found = 0
    for at in range(0, len(whole), 61):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        try:
            recorded = read_session(path)
            verify_recorded(recorded)
        except Broken as broken:
            assert broken.place and broken.what
            found += 1
            with pytest.raises((ValueError, LookupError, TypeError, AttributeError, sqlite3.Error)):
                alone["verify"](str(path))
        else:
            current = recorded.meta["current_bates"]
            assert recorded._replace(meta=recorded.meta | {"current_bates": current}) == recorded
            assert recorded.meta | {"current_bates": ""} == expected.meta | {"current_bates": ""}
            assert recorded[1:] == expected[1:]
    assert found > 50


def rechained(path: Path, change: Callable[[int, dict[str, Any]], None]) -> None:
    """Write all events of a file again with changed bodies, hashes made to fit."""
    with closing(sqlite3.connect(path)) as connection, connection:
        before = bytes(32)
        for seq, text in connection.execute(
            "SELECT seq, body FROM session_audit_events ORDER BY seq"
        ).fetchall():
            body = json.loads(text)
            change(seq, body)
            data = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            before = event_hash(before, data.encode())
            columns = ("event_type", "prev_root", "session_root", "created_at")
            connection.execute(
                "UPDATE session_audit_events SET body=?, event_hash=?, event_type=?, prev_root=?, session_root=?, "
                "created_at=? WHERE seq=?",
                (data, before.hex(), *(body[column] for column in columns), seq),
            )


@pytest.mark.parametrize("fault", ["blank", "prev_root"])
def test_a_last_event_that_does_not_follow_is_found_though_its_hash_fits(
    store: Store, asked: str, tmp_path: Path, fault: str
) -> None:
    path = export(store, asked, tmp_path / "a.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        (before,), (text,) = (
            connection.execute(
                f"SELECT {column} FROM session_audit_events ORDER BY seq DESC LIMIT 1 OFFSET {offset}"
            ).fetchone()
            for column, offset in (("event_hash", 1), ("body", 0))
        )
        body = json.loads(text)
        if fault == "blank":
            text = text.replace("{", "{ ", 1)
        else:
            text = text.replace(body["prev_root"], "12" * 32)
            connection.execute(
                "UPDATE session_audit_events SET prev_root=? WHERE seq=(SELECT max(seq) FROM session_audit_events)",
                ("12" * 32,),
            )
        connection.execute(
            "UPDATE session_audit_events SET body=?, event_hash=? WHERE seq="
            "(SELECT max(seq) FROM session_audit_events)",
            (text, event_hash(bytes.fromhex(before), text.encode()).hex()),
        )
    found = check_file(path)
    assert (found.status, found.reason) == (
        "corrupted",
        {"blank": "unparseable", "prev_root": "prev_mismatch"}[fault],
    )
    assert stand_alone(path)[0] == 1


def test_a_chain_that_was_written_anew_is_found_where_it_lies(
    store: Store, asked: str, tmp_path: Path
) -> None:
    def no_rules(seq: int, body: dict[str, Any]) -> None:
        body.pop("rules", None)

    def other_rules(seq: int, body: dict[str, Any]) -> None:
        if "rules" in body:
            body["rules"]["event"] = "prev-hex-1"

    def extra(seq: int, body: dict[str, Any]) -> None:
        if seq == 4:
            body["note"] = "x"

    def other_parent(seq: int, body: dict[str, Any]) -> None:
        if seq == 5:
            body["parent_bates"] = f"{asked}-000000"

    def other_node(seq: int, body: dict[str, Any]) -> None:
        if seq == 5:
            body["node_hash"] = "ab" * 32

    def old_label(seq: int, body: dict[str, Any]) -> None:
        if seq == 9:
            body["old_label"] = "another"

    for change, reason, index in (
        (no_rules, "unknown_rules", 0),
        (other_rules, "unknown_rules", 0),
        (extra, "unparseable", 3),
        (other_parent, "hash_mismatch", 4),
        (other_node, "hash_mismatch", 4),
        (old_label, "prev_mismatch", 8),
    ):
        path = export(store, asked, tmp_path / f"{change.__name__}.db")
        rechained(path, change)
        found = check_file(path)
        assert (found.status, found.reason, found.index) == ("corrupted", reason, index), change


def test_a_secret_in_a_file_is_not_taken_in_unasked(store: Store, tmp_path: Path, turn: Make) -> None:
    sid, _ = new_session(store)
    add_turn(store, sid, turn(store, "harmless"))
    path = export(store, sid, tmp_path / "a.db")
    secret = "ghp_" + "a1B2" * 9
    recorded = read_session(path)
    forged = _with_question(recorded, secret)
    with closing(sqlite3.connect(path)) as connection, connection:
        for table, found in zip(("session_meta", "nodes", "session_audit_events"), forged, strict=True):
            connection.execute(f"DELETE FROM {table}")
            for row in found:
                places = ", ".join("?" * len(row))
                connection.execute(
                    f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", list(row.values())
                )
    assert check_file(path).status == "verified"
    with pytest.raises(CheckFailed, match="secret") as caught:
        import_session(twin(), path)
    assert secret not in str(caught.value)
    assert import_session(twin(), path, allow_secrets=True).outcome == "new"


def _with_question(recorded: Any, question: str) -> list[list[dict[str, Any]]]:
    """The rows of a session of one turn with another question, every hash made to fit."""
    from objstore.merkle import hash_combine, leaf_hash
    from porcelain.session.tree.nodes import Node, node_hash

    root, turn = recorded.nodes[0], recorded.nodes[1] | {"question": question}
    names_ = Node.__struct_fields__
    node = Node(**{n: turn[n] for n in names_ if n in turn}, parent_node_hash=root["node_hash"])
    digest = node_hash(node)
    turn |= {"node_hash": digest.hex(), "subtree_hash": leaf_hash(digest).hex()}
    top = hash_combine(leaf_hash(bytes.fromhex(root["node_hash"])), leaf_hash(digest)).hex()
    first, event = recorded.events[0], recorded.events[1]
    body = json.loads(event["body"]) | {"node_hash": digest.hex(), "session_root": top}
    text = kinds.encode(Body(**body))
    event |= {
        "body": text.decode(),
        "event_hash": event_hash(bytes.fromhex(first["event_hash"]), text).hex(),
        "session_root": top,
    }
    return [
        [recorded.meta | {"session_root": top}],
        [root | {"subtree_hash": top}, turn],
        [first, event],
    ]


def test_files_that_are_no_exports_are_refused_and_kept(store: Store, asked: str, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        import_session(store, tmp_path / "nowhere.db")
    for data in (b"", b"not a database at all", os.urandom(5000)):
        path = tmp_path / "x.db"
        path.write_bytes(data)
        assert check_file(path).reason == "unparseable"
    notes = tmp_path / "notes.txt"
    notes.write_text("mine")
    with store.snapshot() as view:
        session = open_session(view, asked)
        with pytest.raises(StorageError):
            export_session(view, session, notes)
        assert notes.read_text() == "mine"
        export_session(view, session, notes, overwrite=True)
        export_session(view, session, notes)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["notes.txt", "x.db"]


def test_a_file_without_events_is_unchained(store: Store, asked: str, tmp_path: Path) -> None:
    path = export(store, asked, tmp_path / "a.db")
    edit(path, "DELETE FROM session_audit_events")
    assert check_file(path).status == "unchained"


def test_equal_siblings_are_refused(store: Store, turn: Make, tmp_path: Path) -> None:
    """Two rows of one node under two names: the self-paired last element of a layer would hide the second."""
    sid, _ = new_session(store)
    add_turns(store, sid, [turn(store, f"q{i}", 0) for i in range(3)])
    path = export(store, sid, tmp_path / "a.db")
    edit(
        path,
        "INSERT INTO nodes SELECT substr(bates, 1, 26) || '9', 9, parent_bates, question, cache_key, audit_mode, "
        "created_at, label, node_hash, subtree_hash FROM nodes WHERE subtree_hash = "
        "(SELECT max(subtree_hash) FROM nodes WHERE seq > 0)",
    )
    assert check_file(path).status == "corrupted"
    assert stand_alone(path)[0] == 1
