from __future__ import annotations

import base64
import hashlib
import json
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from objstore.digest import hash_bytes
from objstore.kinds import encode
from porcelain.flow.assembly import assemble
from porcelain.flow.assembly.entries import from_page
from porcelain.flow.formats.sd import sd_bytes
from porcelain.main import main
from porcelain.providers import (
    opencode,
    opencode_database,
    opencode_discover,
    opencode_tree,
)
from porcelain.providers.chunks import LandedChunk, LandingOptions
from porcelain.providers.content import ContentSink
from porcelain.providers.cursor import Cursor, KnownFiles, container_cursor
from porcelain.providers.opencode_dialect import TERMS
from porcelain.providers.pages import LandedPage
from porcelain.providers.reader import Container, Conversation, LeftOut, ReaderState, Source
from porcelain.providers.records import Changes, Part, Record, Usage, page_record_ids
from porcelain.providers.redaction import redact

START = 1_772_600_768_000
PROJECT = "5d1f0c3a9b8e7d6c5b4a39281706f5e4d3c2b1a0"


def native(kind: str, number: int) -> str:
    return f"{kind}_{number:012x}Abcdefghijklmn"


SESSION = native("ses", 900)
CHILD = native("ses", 800)

# -- sessions written by us, in both forms ---------------------------------------------------------------------------


def about(session: str = SESSION, **fields: Any) -> dict[str, Any]:
    return {
        "id": session,
        "slug": "calm-kiln",
        "version": "1.1.65",
        "projectID": PROJECT,
        "directory": "/home/mira/kiln",
        "title": "Glaze table",
        "time": {"created": START, "updated": START + 9},
        **fields,
    }


def message(number: int, role: str, session: str = SESSION, **fields: Any) -> dict[str, Any]:
    stated = {"id": native("msg", number), "sessionID": session, "role": role}
    return {**stated, "time": {"created": START + number * 1000}, **fields}


def part(number: int, of: dict[str, Any], kind: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": native("prt", number),
        "sessionID": of["sessionID"],
        "messageID": of["id"],
        "type": kind,
        **fields,
    }


def answer(number: int, to: dict[str, Any], **fields: Any) -> dict[str, Any]:
    stated = {
        "parentID": to["id"],
        "modelID": "m-1",
        "providerID": "mill",
        "mode": "build",
        "path": {"cwd": "/home/mira/kiln", "root": "/home/mira/kiln"},
        "cost": 0.25,
        "tokens": {"input": 10, "output": 4, "reasoning": 1, "cache": {"read": 7, "write": 2}},
        "finish": "stop",
    }
    return message(number, "assistant", to["sessionID"], **{**stated, **fields})


def tool(number: int, of: dict[str, Any], name: str = "bash", **state: Any) -> dict[str, Any]:
    stated = {"status": "completed", "input": {"command": "ls"}, "output": "a\n", "title": "ls"}
    times = {"start": START, "end": START + number * 1000 + 5}
    return part(
        number,
        of,
        "tool",
        callID=f"call_{number}",
        tool=name,
        state={**stated, "metadata": {"exit": 0}, "time": times, **state},
    )


class Talk:
    """A session with its documents."""

    def __init__(self, session: dict[str, Any], *documents: dict[str, Any]) -> None:
        self.session = session
        self.messages = [one for one in documents if "messageID" not in one]
        self.parts = [one for one in documents if "messageID" in one]


def talk(session: str = SESSION, turns: int = 3, base: int = 0, **fields: Any) -> Talk:
    """Prompts, each with an answer that runs a tool."""
    documents: list[dict[str, Any]] = []
    for turn in range(turns):
        asked = message(base + 10 * turn + 1, "user", session, agent="build")
        said = answer(base + 10 * turn + 2, asked)
        documents += [
            asked,
            part(base + 10 * turn + 1, asked, "text", text=f"Fire kiln {turn}"),
            said,
            part(base + 10 * turn + 2, said, "step-start", snapshot="5" * 40),
            part(base + 10 * turn + 3, said, "text", text=f"It is hot {turn}"),
            tool(base + 10 * turn + 4, said),
            part(base + 10 * turn + 5, said, "step-finish", reason="stop", tokens=said["tokens"]),
        ]
    return Talk(about(session, **fields), *documents)


def write_json(path: Path, value: Any) -> None:
    """Write a file, if that changes it."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def write_tree(storage: Path, *talks: Talk) -> Path:
    for one in talks:
        session = one.session["id"]
        write_json(storage / "session" / one.session["projectID"] / f"{session}.json", one.session)
        (storage / "message").mkdir(parents=True, exist_ok=True)
        for document in one.messages:
            write_json(storage / "message" / session / f"{document['id']}.json", document)
        for document in one.parts:
            write_json(storage / "part" / document["messageID"] / f"{document['id']}.json", document)
    return storage


SCHEMA = """
CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text, directory text,
  title text, version text, share_url text, revert text, permission text, time_created integer, time_updated integer,
  time_compacting integer, time_archived integer{extra});
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer, time_updated integer,
  data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, time_created integer,
  time_updated integer, data text NOT NULL);
CREATE INDEX part_message_id_id_idx ON part (message_id, id);
CREATE INDEX part_session_idx ON part (session_id);
CREATE TABLE event (id text PRIMARY KEY, data text);
"""


def open_for_writing(path: Path, extra: str = "", journal: str = "wal") -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA journal_mode = {journal}")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute("PRAGMA synchronous = OFF")
    if not connection.execute("SELECT 1 FROM sqlite_master").fetchone():
        connection.executescript(SCHEMA.format(extra=extra))
    return connection


def dumps(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def write_rows(connection: sqlite3.Connection, *talks: Talk, now: int = START + 99) -> None:
    connection.execute("BEGIN")
    for one in talks:
        session = one.session
        row = {
            "id": session["id"],
            "project_id": session["projectID"],
            "parent_id": session.get("parentID"),
            "directory": session["directory"],
            "title": session["title"],
            "version": session["version"],
            "revert": dumps(session["revert"]) if "revert" in session else None,
            "permission": dumps(session["permission"]) if "permission" in session else None,
            "time_created": session["time"]["created"],
            "time_updated": session["time"]["updated"],
            "time_archived": session["time"].get("archived"),
        }
        marks = ", ".join("?" * len(row))
        connection.execute(
            f"INSERT OR REPLACE INTO session ({', '.join(row)}) VALUES ({marks})", [*row.values()]
        )
        for document in one.messages:
            data = {key: value for key, value in document.items() if key not in ("id", "sessionID")}
            connection.execute(
                "INSERT OR REPLACE INTO message VALUES (?, ?, ?, ?, ?)",
                (document["id"], session["id"], document["time"]["created"], now, dumps(data)),
            )
        for document in one.parts:
            data = {k: v for k, v in document.items() if k not in ("id", "sessionID", "messageID")}
            connection.execute(
                "INSERT OR REPLACE INTO part VALUES (?, ?, ?, ?, ?, ?)",
                (document["id"], document["messageID"], session["id"], now, now, dumps(data)),
            )
    connection.execute("COMMIT")


def write_database(path: Path, *talks: Talk, **options: Any) -> Path:
    connection = open_for_writing(path, **options)
    write_rows(connection, *talks)
    connection.close()
    return path


# -- landing, as an import does it -----------------------------------------------------------------------------------


class Store:
    """What a store keeps between imports of one root, in memory."""

    def __init__(self, root: Path, keep: bool = False, **options: Any) -> None:
        self.root = root
        self.keep = keep
        self.cursors: dict[str, Cursor] = {}
        self.pages: dict[str, list[LandedPage]] = {}
        self.content: dict[str, bytes] = {}
        self.left_out: list[LeftOut] = []
        self.problems: list[str] = []
        self.options = LandingOptions(
            **{"redact": redact, "rules": "r1", "key": b"key", "sd_bytes": sd_bytes, **options}
        )

    def found(self) -> list[Conversation]:
        found = list(opencode.discover_known(self.root, KnownFiles(self.cursors)))
        self.left_out = [one for one in found if isinstance(one, LeftOut)]
        self.containers = [one for one in found if isinstance(one, Container)]
        return [one for one in found if isinstance(one, Conversation)]

    def land(self, chunks: int | None = None) -> list[str]:
        """Ids (in their records) of what was new; ``chunks``: die after that many of each conversation."""
        new: list[str] = []
        for conversation in self.found():
            taken = self._chunks(conversation)
            for number, chunk in enumerate(taken):
                if chunks is not None and number >= chunks:
                    break
                new += [str(record.id) for landed in chunk.pages for record in landed.records]
        if chunks is None and not self.problems:
            for container in self.containers:
                self.cursors[container.path] = container_cursor("opencode", container)
        return new

    def _chunks(self, conversation: Conversation) -> Iterator[LandedChunk]:
        pages = self.pages.setdefault(conversation.native_id, [])
        sink = ContentSink(keep=self.keep)
        for chunk in opencode.land(conversation, self.cursors, opencode, sink, self.options, len(pages) + 1):
            pages += chunk.pages
            self.problems += [problem.reason for problem in chunk.problems]
            self.content.update((hash_bytes(data).hex(), data) for _kind, data in chunk.content)
            for cursor in chunk.cursors:
                self.cursors[cursor.path] = msgspec.json.decode(msgspec.json.encode(cursor), type=Cursor)
            yield chunk

    def records(self, conversation: str = SESSION, stream: str = "main") -> list[Record]:
        return [r for p in self.pages[conversation] if p.page.stream == stream for r in p.records]

    def ids(self, conversation: str = SESSION) -> list[str]:
        return [i for landed in self.pages[conversation] for i in page_record_ids(landed.page)]

    def all_ids(self) -> list[str]:
        return sorted(i for conversation in self.pages for i in self.ids(conversation))

    def facts(self, path: Path) -> Any:
        return self.cursors[str(path)].facts

    def flow(self, conversation: str = SESSION) -> Counter[str]:
        pages = self.pages[conversation]
        entries = [e for p in pages for e in from_page(p.page, p.records).entries]
        found = assemble(
            entries, conversation=conversation, session_name=conversation, revision=1, through=len(pages)
        )
        counts = Counter(node.kind for node in found.nodes)
        counts.update(f"unresolved {gap.kind}" for gap in found.unresolved)
        counts.update(f"relation {relation.type}" for relation in found.relations)
        return counts


def landed(root: Path, **options: Any) -> Store:
    store = Store(root, **options)
    store.land()
    assert not store.problems
    return store


def state_of(folder: Path) -> dict[str, tuple[str, int, int]]:
    """Every file's bytes and times, and every folder's times."""
    found = {}
    for path in sorted([folder, *folder.rglob("*")]):
        data = path.read_bytes() if path.is_file() else b""
        stat = path.stat()
        found[str(path)] = (hashlib.sha256(data).hexdigest(), stat.st_mtime_ns, stat.st_size)
    return found


def text_id(text: str) -> str:
    return ContentSink(keep=False).text(text)


def parts_of(record: Record) -> list[Part]:
    assert not isinstance(record.parts, type(UNSET))
    return record.parts


def read(own: dict[str, Any], *parts: dict[str, Any], stream: str = "main") -> list[Record]:
    """The records of one message, read by itself."""
    documents = {one["id"]: dumps(one).encode() for one in (own, *parts)}
    state = ReaderState(values={"session": own["sessionID"]})
    source = Source(path="/x/y", src="y", stream=stream)
    found = opencode.read_documents(own["id"], documents, source, state, ContentSink(keep=False))
    return [record for _, record in found]


# -- records ---------------------------------------------------------------------------------------------------------


def test_a_prompt() -> None:
    own = message(1, "user", agent="build", summary={"title": "T", "diffs": []})
    (record,) = read(own, part(1, own, "text", text="Fire it"))
    info = dumps(
        {"time": {"created": START + 1000}, "agent": "build", "summary": {"title": "T", "diffs": []}}
    )
    assert record == Record(
        entry="message/user",
        flags=["external_input"],
        from_="external",
        id=own["id"],
        parts=[
            Part(k="text", content=text_id("Fire it"), bytes=7),
            Part(k="data", data=text_id(info), bytes=len(info)),
        ],
        role="user",
        run=own["id"],
        time="2026-03-04T05:06:09.000Z",
        trigger="external",
    )


def test_an_answer_and_the_result_of_its_tool() -> None:
    asked = message(1, "user")
    said = answer(2, asked)
    record, result = read(
        said,
        part(3, said, "reasoning", text="Hm.", metadata={"mill": {"signature": "c2ln"}}),
        part(4, said, "text", text="Hot."),
        tool(5, said),
        part(6, said, "step-finish", tokens=said["tokens"]),
    )
    assert (record.call, record.parent, record.model) == (said["id"], asked["id"], "m-1")
    assert (record.from_, record.flags, record.run, record.trigger) == ("agent", ["finished"], UNSET, UNSET)
    assert record.usage == Usage(in_=10, out=4, reasoning=1, cache_read=7, cache_write=2)
    assert [(p.k, p.name) for p in parts_of(record)] == [
        ("reasoning", UNSET),
        ("text", UNSET),
        ("call", "bash"),
        ("data", "step-finish"),
        ("data", UNSET),
    ]
    assert [(d.what, d.bytes) for d in record.dropped or ()] == [("reasoning metadata", 29)]
    more = dumps({"title": "ls", "metadata": {"exit": 0}})
    assert result == Record(
        entry="part/tool",
        from_="external",
        id=native("prt", 5),
        parent=said["id"],
        parts=[
            Part(
                k="result",
                of="call_5",
                name="bash",
                failed=False,
                content=text_id("a\n"),
                data=text_id(more),
                bytes=2 + len(more),
            )
        ],
        time="2026-03-04T05:06:13.005Z",
    )


@pytest.mark.parametrize("status", ["pending", "running"])
def test_a_tool_that_goes_on_has_no_result_yet(status: str) -> None:
    said = answer(2, message(1, "user"))
    (record,) = read(said, tool(5, said, status=status))
    assert [p.k for p in parts_of(record)] == ["call", "data"]


def test_a_failed_tool() -> None:
    said = answer(2, message(1, "user"))
    one = tool(5, said, status="error", error="No such file", metadata={"filediff": {"additions": 3}})
    del one["state"]["output"]
    _, result = read(said, one)
    (shown,) = parts_of(result)
    assert (shown.failed, shown.content, result.changes) == (True, text_id("No such file"), UNSET)


@pytest.mark.parametrize(
    ("input_", "metadata", "changes"),
    [
        ({}, {"filediff": {"additions": 2, "deletions": 1}}, Changes(added=2, files=1, removed=1)),
        ({}, {"results": [{"filediff": {"additions": 2}}, {"filediff": {"deletions": 4}}]}, (2, 2, 4)),
        ({}, {"files": [{"additions": 1, "deletions": 0}, {"additions": 5, "deletions": 2}]}, (6, 2, 2)),
        ({"content": "a\nb\n"}, {"exists": False}, Changes(added=2, files=1)),
        ({"content": "a\nb"}, {"exists": False}, Changes(added=2, files=1)),
        ({"content": "a\nb"}, {"exists": True}, UNSET),
        ({"command": "ls"}, {"exit": 0}, UNSET),
        ({}, {"filediff": "none"}, UNSET),
    ],
)
def test_changed_lines(input_: Any, metadata: Any, changes: Any) -> None:
    said = answer(2, message(1, "user"))
    _, result = read(said, tool(5, said, "edit", input=input_, metadata=metadata))
    if isinstance(changes, tuple):
        changes = Changes(added=changes[0], files=changes[1], removed=changes[2])
    assert result.changes == changes


def test_a_task_names_its_child_but_not_in_a_fork() -> None:
    said = answer(2, message(1, "user"))
    _, own = read(said, tool(5, said, "task", metadata={"sessionId": CHILD, "parentSessionId": SESSION}))
    _, old = read(said, tool(5, said, "task", metadata={"sessionId": CHILD}))
    _, copied = read(said, tool(5, said, "task", metadata={"sessionId": CHILD, "parentSessionId": "ses_x"}))
    assert (own.child, own.tool, own.flags) == (CHILD, "call_5", ["child_result"])
    assert (old.child, old.tool) == (CHILD, "call_5")
    assert (copied.child, copied.tool, copied.flags) == (UNSET, UNSET, UNSET)


def test_compaction() -> None:
    asked = message(1, "user")
    (boundary,) = read(asked, part(1, asked, "compaction", auto=False))
    assert (boundary.flags, boundary.trigger) == (["context_reset"], "unknown")
    (summary,) = read(answer(2, asked, summary=True, mode="compaction"))
    assert summary.flags == ["reset_summary", "finished"]


@pytest.mark.parametrize(
    ("parts", "flags", "trigger"),
    [
        ([{"kind": "text", "text": "x", "synthetic": True}], ["injected"], "unknown"),
        ([{"kind": "text", "text": "x", "synthetic": True}, {"kind": "text", "text": "y"}], None, "external"),
        ([{"kind": "file", "mime": "image/png", "url": "file:///x.png"}], None, "external"),
        ([{"kind": "subtask", "prompt": "p"}], None, "external"),
        ([], None, "external"),
    ],
)
def test_what_a_person_had_a_share_in(parts: Any, flags: Any, trigger: str) -> None:
    own = message(1, "user")
    (record,) = read(own, *(part(number, own, **one) for number, one in enumerate(parts)))
    assert (record.flags, record.trigger) == (flags or ["external_input"], trigger)


def test_the_prompt_of_a_child_is_not_a_persons() -> None:
    own = message(1, "user", CHILD)
    (record,) = read(own, part(1, own, "text", text="Look"), stream=CHILD)
    assert (record.trigger, record.flags, record.run) == (UNSET, UNSET, own["id"])


def test_an_error() -> None:
    (record,) = read(answer(2, message(1, "user"), finish=None, error={"name": "APIError", "data": {}}))
    assert record.flags == ["error"]


def test_bytes_of_files() -> None:
    image = base64.b64encode(b"\x89PNG").decode()
    own = message(1, "user")
    (record,) = read(
        own,
        part(1, own, "file", mime="image/png", url=f"data:image/png;base64,{image}"),
        part(2, own, "file", mime="text/plain", url="data:text/plain,a%20b"),
        part(3, own, "file", mime="text/plain", url="data:text/plain;base64,***"),
        part(4, own, "file", mime="text/plain", url="file:///home/mira/a.txt", filename="a.txt"),
    )
    found = [(p.k, p.media, p.bytes if p.k == "media" else None) for p in parts_of(record)]
    assert found == [
        ("media", "image/png", 4),
        ("media", "text/plain", 3),
        ("data", UNSET, None),
        ("data", UNSET, None),
        ("data", UNSET, None),
    ]
    said = answer(2, own)
    _, result = read(said, tool(5, said, attachments=[{"mime": "image/png", "url": f"data:;base64,{image}"}]))
    assert [(p.k, p.bytes) for p in parts_of(result)][1:] == [("media", 4)]
    assert image.encode() not in encode(result)


def test_values_of_other_types_than_known_are_left_alone() -> None:
    own = message(1, "assistant", tokens={"input": "many", "output": 3}, modelID=7, summary="s", finish=1)
    (record,) = read(own, {**part(1, own, "text", text=5), "state": []})
    assert (record.usage, record.model) == (Usage(out=3), UNSET)
    assert [p.k for p in parts_of(record)] == ["data", "data"]


def test_no_record_says_where_it_was_read() -> None:
    own = message(1, "user")
    for record in read(own, part(1, own, "text", text="x"), part(2, own, "agent", name="plan")):
        assert SESSION.encode() not in encode(record)


def test_what_a_session_says_of_itself() -> None:
    state = ReaderState()
    sink = ContentSink(keep=True)
    stated = {
        "id": SESSION,
        "parent": CHILD,
        "project": PROJECT,
        "directory": "/home/mira/kiln",
        "title": "Glaze table (fork #2)",
        "version": "1.2",
        "created": START,
        "archived": START + 5,
        "revert": {"messageID": native("msg", 4), "diff": ""},
    }
    source = Source(path="/x/y", src="y")
    ((_, record),) = opencode.read_documents("", {"": dumps(stated).encode()}, source, state, sink)
    assert state.values == {
        "session": SESSION,
        "cwd": "/home/mira/kiln",
        "version": "1.2",
        "project": PROJECT,
        "parent": CHILD,
        "fork": "2",
        "reverted": native("msg", 4),
        "archived": "2026-03-04T05:06:08.005Z",
    }
    assert (record.id, record.label, record.label_content) == (
        SESSION,
        UNSET,
        text_id("Glaze table (fork #2)"),
    )
    (rest,) = parts_of(record)
    assert rest.of == native("msg", 4)
    kept = [json.loads(data)["text"] for _, data in sink.found]
    assert json.loads(kept[0]) == {"archived": START + 5, "revert": stated["revert"]}
    assert b"kiln" not in encode(record) and PROJECT.encode() not in encode(record)


# -- one record from both forms --------------------------------------------------------------------------------------

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(input_=st.dictionaries(st.text(), JSON_VALUES), text=st.text(), extra=JSON_VALUES)
def test_a_message_is_the_same_record_from_both_forms(input_: Any, text: str, extra: Any) -> None:
    asked = message(1, "user")
    said = answer(2, asked, variant=extra)
    parts = [part(3, said, "text", text=text), tool(4, said, input=input_, output=text)]
    indented = {
        one["id"]: opencode_tree.compact(json.dumps(one, indent=2).encode()) for one in (said, *parts)
    }
    rows = {
        one["id"]: json.dumps(
            {k: v for k, v in one.items() if k not in ("id", "sessionID", "messageID")},
            separators=(",", ":"),
        ).encode()
        for one in (said, *parts)
    }
    source, sink = Source(path="/x/y", src="y"), ContentSink(keep=False)
    from_tree, from_rows = (
        opencode.read_documents(said["id"], documents, source, ReaderState(), sink)
        for documents in (indented, rows)
    )
    assert from_tree == from_rows


def test_a_session_is_the_same_from_both_forms(tmp_path: Path) -> None:
    one = talk(
        permission=[{"permission": "task", "pattern": "*", "action": "deny"}],
        revert={"messageID": native("msg", 21), "snapshot": "1" * 40, "diff": ""},
        time={"created": START, "updated": START + 7, "archived": START + 8},
    )
    write_tree(tmp_path / "a" / "storage", one)
    write_database(tmp_path / "b" / "opencode.db", one)
    tree, database = landed(tmp_path / "a"), landed(tmp_path / "b")
    assert tree.ids() == database.ids()
    assert len(tree.ids()) == 1 + 6 + 3
    assert tree.cursors.keys().isdisjoint(database.cursors)


def test_both_together_are_one(tmp_path: Path) -> None:
    one = talk()
    storage = write_tree(tmp_path / "storage", one)
    alone = landed(tmp_path)
    database = write_database(tmp_path / "opencode.db", one)
    assert alone.land() == []
    store = landed(tmp_path)
    assert sorted(store.ids()) == sorted(alone.ids())
    for path in (storage / "message" / SESSION, database / SESSION):
        assert (store.facts(path).records, store.facts(path).lines) == (10, 7)
        assert store.facts(path) == alone.facts(path)
    assert store.facts(database / SESSION).first_record == store.ids()[0]
    assert store.flow() == alone.flow()


@pytest.mark.parametrize("first", ["tree", "database"])
@pytest.mark.parametrize("what", ["sessions", "messages", "parts"])
def test_a_migration_that_stopped_after_15_percent(tmp_path: Path, what: str, first: str) -> None:
    """R32: the union of both, no turn twice, whichever was imported first."""
    talks = [talk(native("ses", 500 + n), turns=4, base=1000 * n) for n in range(20)]
    write_tree(tmp_path / "whole" / "storage", *talks)
    whole = landed(tmp_path / "whole")
    partly: list[Talk] = []
    for one in talks:
        done = Talk(one.session)
        done.messages, done.parts = list(one.messages), list(one.parts)
        if what == "messages":
            done.messages = one.messages[:1]
        if what in ("messages", "parts"):
            kept = {m["id"] for m in done.messages}
            done.parts = [p for p in one.parts if p["messageID"] in kept][
                : max(1, len(one.parts) * 15 // 100)
            ]
        partly.append(done)
    data = tmp_path / "opencode"
    store = Store(data)
    if first == "database":
        write_database(data / "opencode.db", *(partly[:3] if what == "sessions" else partly))
        store.land()
        write_tree(data / "storage", *talks)
    else:
        write_tree(data / "storage", *talks)
        store.land()
        write_database(data / "opencode.db", *(partly[:3] if what == "sessions" else partly))
    store.land()
    assert store.land() == []
    assert set(store.all_ids()) >= set(whole.all_ids())
    if first == "tree":
        assert store.all_ids() == whole.all_ids()
    for one in talks:
        session = one.session["id"]
        turns = [r.id for r in store.records(session) if r.trigger == "external"]
        if what != "parts" or first == "tree":
            assert sorted(map(str, turns)) == [m["id"] for m in one.messages if m["role"] == "user"]
        assert {r.id for r in store.records(session)} == {r.id for r in whole.records(session)}


def test_a_session_with_a_changed_project_stays_one(tmp_path: Path) -> None:
    """R35: first no repository, then one; in the tree the file moves, in the database a column changes."""
    before, after = talk(projectID="global"), talk(projectID=PROJECT)
    tree = tmp_path / "tree"
    write_tree(tree / "storage", before)
    store = landed(tree)
    ids = store.ids()
    (tree / "storage" / "session" / "global" / f"{SESSION}.json").unlink()
    write_tree(tree / "storage", after)
    store.land()
    assert (list(store.pages), store.ids()) == ([SESSION], ids)
    # A file that is in both places is still one session.
    write_tree(tree / "storage", before)
    assert [one.native_id for one in store.found()] == [SESSION]

    database = tmp_path / "database" / "opencode.db"
    write_database(database, before)
    store = landed(database.parent)
    write_database(database, after)
    store.land()
    assert (list(store.pages), store.ids()) == ([SESSION], ids)


def test_a_fork_is_matched_by_content_and_order(tmp_path: Path) -> None:
    """R16: a fork of 20 messages has new ids; what they say, in order, and the ids of calls are equal."""
    origin = talk(turns=10)
    fork = native("ses", 100)
    renamed = {m["id"]: native("msg", 5000 + n) for n, m in enumerate(origin.messages)}
    copies = [
        {**m, "id": renamed[m["id"]], "sessionID": fork}
        | ({"parentID": renamed[m["parentID"]]} if "parentID" in m else {})
        for m in origin.messages
    ]
    parts = [
        {**p, "id": native("prt", 5000 + n), "messageID": renamed[p["messageID"]], "sessionID": fork}
        for n, p in enumerate(origin.parts)
    ]
    copied = Talk(about(fork, title="Glaze table (fork #1)"), *copies, *parts)
    write_database(tmp_path / "opencode.db", origin, copied)
    store = landed(tmp_path)
    assert sorted(store.pages) == sorted([SESSION, fork])
    one, other = ([r for r in store.records(s) if r.entry != "session"] for s in (SESSION, fork))
    assert len(one) == len(other) == 30
    assert not {r.id for r in one} & {r.id for r in other}
    assert [r.parts for r in one] == [r.parts for r in other]
    assert [(r.time, r.usage) for r in one] == [(r.time, r.usage) for r in other]
    assert store.facts(tmp_path / "opencode.db" / fork).values["fork"] == {"1": "2026-03-04T05:06:08Z"}
    assert "fork" not in store.facts(tmp_path / "opencode.db" / SESSION).values


# -- only what is new ------------------------------------------------------------------------------------------------


@pytest.fixture(params=["tree", "database"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Writes sessions in one of the two forms; ``path`` is the cursor's."""

    class Place:
        root = tmp_path / "opencode"
        clock = START + 100

        def write(self, *talks: Talk) -> None:
            self.clock += 1
            if request.param == "tree":
                write_tree(self.root / "storage", *talks)
                return
            connection = open_for_writing(self.root / "opencode.db")
            for one in talks:
                for table, documents in (("message", one.messages), ("part", one.parts)):
                    for document in documents:
                        data = {
                            k: v for k, v in document.items() if k not in ("id", "sessionID", "messageID")
                        }
                        old = connection.execute(
                            f"SELECT data FROM {table} WHERE id = ?", (document["id"],)
                        ).fetchone()
                        if old is None or old[0] != dumps(data):
                            only = Talk(one.session, document)
                            write_rows(connection, only, now=self.clock)
                write_rows(connection, Talk(one.session), now=self.clock)
            connection.close()

        @property
        def path(self) -> Path:
            below = "storage/message" if request.param == "tree" else "opencode.db"
            return self.root / below / SESSION

    return Place()


def test_nothing_is_read_of_what_has_not_changed(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    place.write(talk(), talk(CHILD, parentID=SESSION, base=500))
    store = landed(place.root)
    cursors = dict(store.cursors)

    def refuse(*_arguments: Any) -> Any:
        raise AssertionError("opened")

    monkeypatch.setattr(opencode_database, "open_database", refuse)
    monkeypatch.setattr("porcelain.providers.opencode_tree.TreeDocuments.read", refuse)
    monkeypatch.setattr("porcelain.providers.opencode_tree.about", refuse)
    assert [len(one.sources) for one in store.found()] == [2]
    assert store.land() == []
    assert store.cursors == cursors


def test_a_new_message_alone_is_read(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one = talk(turns=30)
    place.write(one)
    store = landed(place.root)
    asked = message(900, "user")
    one.messages.append(asked)
    one.parts.append(part(900, asked, "text", text="And now?"))
    place.write(one)
    asked_for: list[str] = []
    read_documents = opencode.read_documents

    def watch(key: str, *arguments: Any) -> Any:
        asked_for.append(key)
        return read_documents(key, *arguments)

    monkeypatch.setattr(opencode, "read_documents", watch)
    assert store.land() == [asked["id"]]
    assert set(asked_for) - {""} <= {asked["id"], *(m["id"] for m in one.messages if place.path.suffix)}
    assert asked["id"] in asked_for
    assert store.facts(place.path).records == len(store.ids()) == 1 + 90 + 1
    assert store.land() == []


def test_an_answer_grows_and_its_tool_comes_to_an_end(place: Any) -> None:
    asked = message(1, "user")
    said = answer(2, asked, finish=None)
    running = tool(4, said, status="running")
    one = Talk(about(), asked, part(1, asked, "text", text="Go"), said, running)
    place.write(one)
    store = landed(place.root)
    assert [r.id for r in store.records()] == [SESSION, asked["id"], said["id"]]
    one.parts[1] = tool(4, said)
    one.messages[1] = {**said, "finish": "stop"}
    place.write(one)
    assert store.land() == [said["id"], native("prt", 4)]
    assert store.records()[-2].flags == ["finished"]
    # Now the answer alone changes: its result is known.
    one.parts.append(part(5, said, "text", text="More."))
    place.write(one)
    assert store.land() == [said["id"]]
    assert store.facts(place.path).records == 6


def test_a_version_that_comes_back_is_landed_again(place: Any) -> None:
    one, renamed = talk(turns=1), talk(turns=1, title="Other")
    place.write(one)
    store = landed(place.root)
    place.write(renamed)
    assert store.land() == [SESSION]
    place.write(one)
    assert store.land() == [SESSION]
    ids = store.ids()
    assert ids[0] == ids[-1] != ids[-2]


def test_what_the_agent_deleted_stays(place: Any) -> None:
    one = talk(turns=2)
    place.write(one)
    store = landed(place.root)
    ids = store.ids()
    last = one.messages.pop()
    if place.path.parent.suffix:
        connection = open_for_writing(place.path.parent)
        connection.execute("DELETE FROM part WHERE message_id = ?", (last["id"],))
        connection.execute("DELETE FROM message WHERE id = ?", (last["id"],))
        connection.close()
    else:
        (place.path / f"{last['id']}.json").unlink()
        shutil.rmtree(place.root / "storage" / "part" / last["id"])
    assert store.land() == []
    assert store.ids() == ids
    assert store.cursors[str(place.path)].state == "active"


def test_a_run_that_died_between_chunks_is_continued(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    place.write(talk(turns=12), talk(CHILD, turns=12, base=5000, parentID=SESSION))
    whole = landed(place.root)
    monkeypatch.setattr("porcelain.providers.chunks.CHUNK_BYTES", 1500)
    store = Store(place.root)
    runs = 0
    while store.land(chunks=1):
        runs += 1
    assert runs > 5
    assert store.ids() == whole.ids()
    for path, cursor in whole.cursors.items():
        assert store.cursors.get(path, cursor).facts == cursor.facts
    assert [p.page.seq for p in store.pages[SESSION]] == [*range(1, len(store.pages[SESSION]) + 1)]


def test_other_rules_and_another_parser(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    place.write(talk())
    store = landed(place.root)
    facts = store.facts(place.path)
    store.options = msgspec.structs.replace(store.options, rules="r2")
    assert store.land() == []
    assert store.cursors[str(place.path)].rules == "r2"
    assert store.facts(place.path) == facts
    store.options = msgspec.structs.replace(
        store.options, rules="r3", redact=lambda data: data.replace(b"hot 1", b"xxx 1")
    )
    assert store.land() == [native("msg", 12)]
    monkeypatch.setattr(opencode, "PARSER", "next")
    assert store.land() == []
    assert store.cursors[str(place.path)].parser == "next"


def test_content_that_is_wanted_later(place: Any) -> None:
    place.write(talk())
    store = landed(place.root)
    assert not store.content
    store.keep = True
    assert store.land() == []
    assert text_id("It is hot 2") in store.content
    assert store.cursors[str(place.path)].content
    count = len(store.content)
    assert (store.land(), len(store.content)) == ([], count)


def test_secrets_are_replaced_in_both_forms(place: Any) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    asked = message(1, "user")
    place.write(Talk(about(), asked, part(1, asked, "text", text=f"use {secret} please")))
    store = landed(place.root, keep=True)
    kept = b"".join(store.content.values())
    assert b"please" in kept and secret.encode() not in kept
    assert text_id(f"use {secret} please") not in store.content


def test_a_document_that_does_not_parse_is_pending(place: Any) -> None:
    one = talk(turns=1)
    place.write(one)
    broken = '{"role":"user","time":'
    if place.path.parent.suffix:
        connection = open_for_writing(place.path.parent)
        connection.execute("UPDATE part SET data = ? WHERE id = ?", (broken, native("prt", 3)))
        connection.execute("INSERT INTO message VALUES (?, ?, 0, 0, ?)", (native("msg", 77), SESSION, broken))
        connection.close()
    else:
        (place.root / "storage" / "part" / native("msg", 2) / f"{native('prt', 3)}.json").write_text(broken)
        (place.path / f"{native('msg', 77)}.json").write_text(broken)
    store = landed(place.root)
    assert {r.id for r in store.records()} == {SESSION, native("msg", 1), native("msg", 2), native("prt", 4)}
    assert [p.k for p in store.records()[2].parts or ()] == ["data", "call", "data", "data"]
    cursor = store.cursors[str(place.path)]
    assert (cursor.state, cursor.facts.pending_bytes > 0) == ("pending", True)
    asked = message(77, "user")
    one.messages.append(asked)
    place.write(one)
    assert set(store.land()) == {native("msg", 2), asked["id"]}
    assert store.cursors[str(place.path)].state == "active"


def test_rows_of_a_page_say_where_they_stood(tmp_path: Path) -> None:
    write_database(tmp_path / "opencode.db", talk(turns=1))
    store = landed(tmp_path)
    (page,) = (one.page for one in store.pages[SESSION])
    assert (page.src, page.dialect, page.adapter) == (
        f"opencode.db/{SESSION}",
        "opencode/1",
        "opencode-local/1",
    )
    assert page.records == "".join(hash_bytes(encode(r)).hex() for r in store.records())
    connection = sqlite3.connect(tmp_path / "opencode.db")
    rows = connection.execute("SELECT length(data) FROM part WHERE id = ?", (native("prt", 4),)).fetchall()
    connection.close()
    # The result of a tool is found inside its message, at the length of its part.
    assert [(page.lengths[-1],)] == rows
    ((row, ord_, offset),) = page.jumps or [(0, 0, 0)]
    assert (row, ord_) == (3, 3)
    assert page.offset < offset < sum(page.lengths[:3]) + 3
    assert [span.row for span in page.spans or ()] == [0]


# -- the database as it lies there -----------------------------------------------------------------------------------


class Agent:
    """Another process that has the database open; processes do not share what SQLite knows of a file."""

    def __init__(self, database: Path) -> None:
        program = (
            "import json, sqlite3, sys\n"
            "connection = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
            "connection.execute('PRAGMA wal_autocheckpoint = 0')\n"
            "for line in sys.stdin:\n"
            "    print(json.dumps(connection.execute(*json.loads(line)).fetchall()), flush=True)\n"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-c", program, str(database)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.execute("SELECT count(*) FROM session")

    def execute(self, statement: str, values: Any = ()) -> Agent:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([statement, list(values)]) + "\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline().startswith("[")
        return self

    def write(self, one: Talk, now: int = START + 99) -> None:
        write_rows(self, one, now=now)  # type: ignore[arg-type]

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait() == 0


STATES = ["closed", "live", "crashed", "log only", "log in part", "rollback"]


@pytest.mark.parametrize("state", STATES)
def test_a_database_is_read_with_its_log_and_left_as_it_was(tmp_path: Path, state: str) -> None:
    data = tmp_path / "opencode"
    database = data / "opencode.db"
    open_for_writing(database, journal="delete" if state == "rollback" else "wal").close()
    agent = Agent(database)
    agent.write(talk(turns=1))
    if state == "log in part":
        agent.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    agent.write(talk(turns=3))
    if state in ("crashed", "log only"):
        data = tmp_path / "copy"
        shutil.copytree(database.parent, data)
        if state == "log only":
            (data / "opencode.db-shm").unlink()
    if state in ("closed", "rollback"):
        agent.close()
    files = {path.name for path in data.iterdir()}
    assert ("opencode.db-wal" in files) == (state not in ("closed", "rollback"))
    before = state_of(data)
    store = landed(data)
    assert len(store.ids()) == 1 + 9
    assert state_of(data) == before
    if state in ("live", "log in part"):
        # The agent goes on while we know the database, and clears its log away.
        agent.write(talk(turns=4), now=START + 500)
        before = state_of(data)
        assert len(store.land()) == 3
        assert state_of(data) == before
        agent.write(talk(turns=5), now=START + 600)
        agent.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert len(store.land()) == 3
    if state not in ("closed", "rollback"):
        agent.close()
    if data == database.parent:
        # Nothing of ours kept the agent from putting its log away.
        assert not (data / "opencode.db-wal").exists()
        assert store.land() == []


def test_a_tree_is_left_as_it_was(tmp_path: Path) -> None:
    write_tree(tmp_path / "storage", talk())
    before = state_of(tmp_path)
    landed(tmp_path)
    assert state_of(tmp_path) == before


def test_a_copy_is_not_taken_during_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = tmp_path / "opencode.db"
    connection = open_for_writing(database)
    write_rows(connection, talk(turns=2))
    copied: list[str] = []
    copyfile = shutil.copyfile

    def copy_while_writing(source: str, target: str) -> None:
        copyfile(source, target)
        copied.append(source)
        if copied == [str(database)]:
            # Right behind the copy of the database the log goes into it, and begins anew.
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            write_rows(connection, talk(turns=3))

    (tmp_path / "opencode.db-shm").rename(tmp_path / "aside")
    monkeypatch.setattr(shutil, "copyfile", copy_while_writing)
    store = Store(tmp_path)
    store.land()
    assert copied.count(str(database)) > 1
    assert len(store.ids()) == 1 + 9
    connection.close()


def test_no_copy_stays_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    private = tmp_path / "private"
    private.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(private))
    write_database(tmp_path / "opencode" / "opencode.db", talk())
    assert len(landed(tmp_path / "opencode").ids()) == 10
    assert list(private.iterdir()) == []


@pytest.mark.parametrize("data", [b"", b"not a database at all", b"SQLite format 3\0" + b"\1" * 200])
def test_what_is_no_database_is_said_to_be_unreadable(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "opencode.db").write_bytes(data)
    write_tree(tmp_path / "storage", talk())
    store = landed(tmp_path)
    assert [(one.path, one.reason) for one in store.left_out] == [
        (str(tmp_path / "opencode.db"), "unreadable")
    ]
    assert len(store.ids()) == 10


def test_a_database_of_another_form_is_unreadable(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "opencode.db")
    connection.execute("CREATE TABLE session (id text)")
    connection.close()
    assert [one.reason for one in opencode.discover(tmp_path) if isinstance(one, LeftOut)] == ["unreadable"]


def test_a_database_that_cannot_be_read_for_once_loses_nothing(tmp_path: Path) -> None:
    database = write_database(tmp_path / "opencode.db", talk())
    store = landed(tmp_path)
    database.write_bytes(b"broken")
    assert [one.native_id for one in store.found()] == [SESSION]
    assert [one.reason for one in store.left_out] == ["unreadable"]
    assert store.land() == []


def test_columns_of_other_versions(tmp_path: Path) -> None:
    extra = ", path text, cost real DEFAULT 0 NOT NULL, tokens_input integer DEFAULT 0 NOT NULL, agent text"
    write_database(tmp_path / "a" / "opencode.db", talk(), extra=extra)
    write_database(tmp_path / "b" / "opencode.db", talk())
    assert landed(tmp_path / "a").ids() == landed(tmp_path / "b").ids()


# -- where sessions are ----------------------------------------------------------------------------------------------


def test_children_are_streams_of_the_session_that_started_them(tmp_path: Path) -> None:
    grandchild = native("ses", 700)
    lost = native("ses", 600)
    data = tmp_path / "opencode"
    write_tree(data / "storage", talk(), talk(CHILD, base=500, parentID=SESSION))
    write_database(
        data / "opencode-next.db",
        talk(grandchild, base=1000, parentID=CHILD),
        talk(lost, base=1500, parentID=native("ses", 1)),
    )
    (data / "snapshot").mkdir()
    write_database(data / "snapshot" / "opencode.db", talk(native("ses", 3)))
    found = [one for one in opencode.discover(data) if isinstance(one, Conversation)]
    assert {one.native_id: [(s.src, s.stream) for s in one.sources] for one in found} == {
        SESSION: [
            (f"storage/{SESSION}", "main"),
            (f"storage/{CHILD}", CHILD),
            (f"opencode-next.db/{grandchild}", grandchild),
        ],
        lost: [(f"opencode-next.db/{lost}", "main")],
    }
    for root in (tmp_path, data):
        assert len(landed(root).pages) == 2


def test_a_session_whose_parent_is_found_later_stays_what_it_was(tmp_path: Path) -> None:
    write_tree(tmp_path / "storage", talk(CHILD, parentID=SESSION))
    store = landed(tmp_path)
    write_tree(tmp_path / "storage", talk(base=500))
    store.land()
    assert sorted(store.pages) == sorted([CHILD, SESSION])
    assert [len(one.sources) for one in store.found()] == [1, 1]


def test_sessions_that_started_each_other(tmp_path: Path) -> None:
    write_tree(tmp_path / "storage", talk(parentID=CHILD), talk(CHILD, base=500, parentID=SESSION))
    assert len([one for one in opencode.discover(tmp_path) if isinstance(one, Conversation)]) == 2


def test_a_session_without_a_message_is_none(place: Any) -> None:
    place.write(Talk(about()))
    assert Store(place.root).found() == []


def test_one_session_by_its_file(tmp_path: Path) -> None:
    storage = write_tree(tmp_path / "storage", talk(), talk(CHILD, base=500, parentID=SESSION))
    file = storage / "session" / PROJECT / f"{SESSION}.json"
    for path in (file, storage / "message" / CHILD, file.with_name(f"{CHILD}.json")):
        found = opencode.recognise(path)
        assert found is not None and found.native_id == SESSION and len(found.sources) == 2
    assert opencode.recognise(storage / "session" / PROJECT / "ses_none.json") is None
    assert opencode.recognise(tmp_path / "other.json") is None
    database = write_database(tmp_path / "any.db", talk())
    assert opencode.is_container(database) and not opencode.is_container(file)
    (container, conversation) = opencode.discover_known(database, KnownFiles({}))
    assert isinstance(container, Container) and isinstance(conversation, Conversation)
    assert conversation.sources[0].src == f"any.db/{SESSION}"


def test_discovery_skips_what_may_be_large() -> None:
    assert {"snapshot", "part", "log"} <= opencode_discover._SKIPPED


def test_every_flag_and_step_of_the_glossary_is_told_once() -> None:
    assert len({row[:2] for row in TERMS}) == len(TERMS)


# -- real ones -------------------------------------------------------------------------------------------------------


def counted(rows: Iterator[tuple[str, str, dict[str, Any], list[dict[str, Any]]]]) -> dict[str, Counter[str]]:
    """Turns, calls, tools, thoughts, compactions and children by session, counted apart from the reader."""
    found: dict[str, Counter[str]] = {}
    for session, parent, own, parts in rows:
        counts = found.setdefault(session, Counter({"records": 1, "parent " + parent: 1}))
        kinds = Counter(p["type"] for p in parts)
        done = [
            p for p in parts if p["type"] == "tool" and p["state"]["status"] not in ("pending", "running")
        ]
        counts["records"] += 1 + len(done)
        if own["role"] == "user" and not kinds["compaction"]:
            counts["turns"] += not all(p.get("synthetic") for p in parts) if parts else 1
        if own["role"] == "user":
            counts["compactions"] += kinds["compaction"] > 0
        else:
            counts["llm.call"] += 1
            counts["thinking"] += kinds["reasoning"]
            counts["texts"] += kinds["text"]
            counts["error.api"] += "error" in own
            tokens = own.get("tokens", {})
            counts["out"] += tokens.get("output", 0)
            counts["cache"] += tokens.get("cache", {}).get("read", 0)
        counts["tools"] += kinds["tool"]
    return found


def rows_of_tree(storage: Path) -> Iterator[tuple[str, str, dict[str, Any], list[dict[str, Any]]]]:
    parents = {}
    for file in storage.glob("session/*/*.json"):
        stated = json.loads(file.read_text())
        parents[stated["id"]] = stated.get("parentID") or ""
    parts = [(p.parent.name, json.loads(p.read_text())) for p in storage.glob("part/**/*.json")]
    for file in sorted(storage.glob("message/*/*.json")):
        own = json.loads(file.read_text())
        named = [p for folder, p in parts if own["id"] in (folder, p.get("messageID"))]
        yield own["sessionID"], parents[own["sessionID"]], own, named


def rows_of_database(path: Path) -> Iterator[tuple[str, str, dict[str, Any], list[dict[str, Any]]]]:
    connection = sqlite3.connect(path)
    for message_id, session, data, parent in connection.execute(
        "SELECT m.id, m.session_id, m.data, s.parent_id FROM message m JOIN session s ON s.id = m.session_id"
    ).fetchall():
        parts = connection.execute("SELECT data FROM part WHERE message_id = ?", (message_id,)).fetchall()
        yield session, parent or "", json.loads(data), [json.loads(p[0]) for p in parts]
    connection.close()


def check(store: Store, expected: dict[str, Counter[str]]) -> None:
    tops = {s for s, c in expected.items() if c["parent "]}
    assert set(store.pages) == tops
    for top in tops:
        children = [s for s, c in expected.items() if c["parent " + top]]
        flow = store.flow(top)
        total: Counter[str] = sum((expected[s] for s in (top, *children)), Counter())
        assert sum(len(p.records) for p in store.pages[top]) == total["records"]
        assert flow["message.external"] == expected[top]["turns"]
        assert flow["talk"] == expected[top]["turns"] + len(children)
        assert flow["llm.call"] == total["llm.call"]
        assert flow["thinking"] == total["thinking"]
        assert flow["message.assistant"] == total["texts"]
        assert flow["error.api"] == total["error.api"]
        assert flow["tool"] + flow["agent.call"] == total["tools"]
        assert flow["stream"] == 1 + len(children)
        assert flow["relation starts"] == flow["agent.call"] == len(children)
        assert flow["epoch.boundary"] == total["compactions"]
        assert flow["epoch.summary"] == total["compactions"]
        usages = [r.usage for p in store.pages[top] for r in p.records if isinstance(r.usage, Usage)]
        assert sum(u.out for u in usages) == total["out"]
        assert sum(u.cache_read for u in usages) == total["cache"]


def private(shared: Path, name: str, target: Path) -> Path:
    """A copy of a sample, which may itself not be opened by the counts."""
    shutil.copytree(shared / "samples" / "opencode" / name, target)
    for path in [target, *target.rglob("*")]:
        path.chmod(0o700)
    return target


@pytest.mark.parametrize(
    ("name", "conversations", "records"),
    [
        ("local-1.1.65/opencode/storage", 2, 47),
        ("public-fixtures/jazzyalex/storage_legacy", 1, 4),
        ("public-fixtures/jazzyalex/storage_v2", 2, 10),
    ],
)
def test_sample_trees(shared: Path, name: str, conversations: int, records: int) -> None:
    storage = shared / "samples" / "opencode" / name
    store = landed(storage)
    check(store, counted(rows_of_tree(storage)))
    assert (len(store.pages), len(store.all_ids())) == (conversations, records)


def test_sample_database(shared: Path, tmp_path: Path) -> None:
    sample = shared / "samples" / "opencode" / "local-1.18.33"
    before = state_of(sample)
    store = landed(sample)
    assert state_of(sample) == before
    copy = private(shared, "local-1.18.33", tmp_path / "copy")
    expected = counted(rows_of_database(copy / "opencode" / "opencode.db"))
    assert sum(c["records"] for c in expected.values()) == len(store.all_ids()) == 72
    check(store, expected)


def test_a_migrated_sample_has_the_same_records_in_both_forms(shared: Path, tmp_path: Path) -> None:
    sample = shared / "samples" / "opencode"
    tree = landed(sample / "local-1.1.65" / "opencode")
    both = landed(sample / "local-1.1.65-migrated-by-1.2.27" / "opencode")
    copy = private(shared, "local-1.1.65-migrated-by-1.2.27", tmp_path / "copy")
    check(both, counted(rows_of_database(copy / "opencode" / "opencode.db")))
    shutil.rmtree(copy / "opencode" / "storage")
    database = landed(copy)
    assert tree.all_ids() == database.all_ids() == both.all_ids()
    assert len(tree.all_ids()) == 47


def test_the_fork_in_the_sample_has_the_calls_of_its_origin(shared: Path) -> None:
    store = landed(shared / "samples" / "opencode" / "local-1.18.33")

    def calls(session: str) -> list[str]:
        return [str(p.id) for r in store.records(session) for p in r.parts or () if p.k == "call" and p.id]

    origin = "ses_dd3c19de7ffe0KcAFwLK0EEtgc"
    forks = sorted(s for s in store.pages if s != origin)
    assert len(forks) == 2
    for fork in forks:
        shared_calls = [c for c in calls(fork) if c in calls(origin)]
        assert shared_calls and shared_calls == calls(origin)[: len(shared_calls)]
        assert store.flow(fork)["unresolved child_stream"] == 0


def test_import_and_verify(shared: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    store = ["--store", str(tmp_path / "store")]
    samples = shared / "samples" / "opencode"

    def run(*argv: str) -> bytes:
        assert main([*store, *argv]) == 0
        return b"".join(capsysbinary.readouterr())

    run("init")
    first = json.loads(run("import", "--provider", "opencode", "--json", str(samples)))
    assert first["records"] == 72 + 47 + 14
    assert [(p["conversations"], p["files"], p["leftOut"]) for p in first["places"]] == [(8, 16, 0)]
    again = json.loads(run("import", "--provider", "opencode", "--json", str(samples)))
    assert (again["records"], again["objects"]) == (0, 0)
    assert b"checked 8 conversations" in run("flow", "verify")
