from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from objstore.kinds import encode
from porcelain.flow.assembly import assemble
from porcelain.flow.assembly.entries import from_page
from porcelain.flow.formats.sd import sd_bytes
from porcelain.main import main
from porcelain.providers import factory
from porcelain.providers.chunks import LandingOptions
from porcelain.providers.content import ContentSink
from porcelain.providers.cursor import Cursor, KnownFiles
from porcelain.providers.factory_dialect import TERMS
from porcelain.providers.landing import land_conversation
from porcelain.providers.pages import LandedPage
from porcelain.providers.reader import Conversation, Entry, LeftOut, ReaderState, Source
from porcelain.providers.records import Changes, Part, Record, Usage
from porcelain.providers.redaction import redact

SESSION = "0f8fad5b-d9cb-469f-a165-70867728950e"
CHILD = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
MAIN = Source(path="/nowhere", src=f"{SESSION}.jsonl")


def header(session: str = SESSION, **fields: Any) -> dict[str, Any]:
    stated = {"id": session, "title": "Fire the kiln", "owner": "mira", "version": 2}
    return {"type": "session_start", **stated, "cwd": "/home/mira/kiln", **fields}


def message(number: int, role: str, content: Any, /, outer: Any = (), **fields: Any) -> dict[str, Any]:
    return {
        "type": "message",
        "id": f"m{number}",
        "parentId": f"m{number - 1}",
        "timestamp": f"2026-03-04T05:06:{number:02d}.000Z",
        "message": {"role": role, "content": content, **fields},
        **dict(outer),
    }


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def use(name: str, number: int = 1) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"t{number}", "name": name, "input": {"command": "ls"}}


def result(content: Any, number: int = 1, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": f"t{number}", "content": content, **fields}


def conversation() -> list[dict[str, Any]]:
    return [
        header(),
        message(1, "user", [text("<system-reminder>x</system-reminder>")], visibility="llm_only"),
        message(2, "user", [text("Fire it")]),
        message(3, "assistant", [text("Yes."), use("Execute")], modelId="mill-1", openaiMessageId="r1"),
        message(4, "user", [result("a\n", is_error=False)]),
        message(5, "assistant", [text("Hot.")], modelId="mill-1", openaiMessageId="r2"),
        {"type": "agent_turn_outcome", "turnId": "m2", "reason": "completed", "resultKind": "text"},
    ]


def entries_of(*lines: dict[str, Any] | bytes, source: Source = MAIN) -> list[Entry]:
    state = ReaderState()
    found: list[Entry] = []
    for line in lines:
        data = line if isinstance(line, bytes) else json.dumps(line).encode()
        found += factory.read_line(data, source, state, ContentSink(keep=False))
    return found


def record_of(line: dict[str, Any] | bytes, source: Source = MAIN) -> Record:
    (entry,) = entries_of(line, source=source)
    assert entry.record is not None
    return entry.record


def parts_of(record: Record) -> list[Part]:
    assert not isinstance(record.parts, type(UNSET))
    return record.parts


def text_id(said: str) -> str:
    return ContentSink(keep=False).text(said)


# -- records ---------------------------------------------------------------------------------------------------------


def test_the_header_gives_the_surroundings_of_all_lines() -> None:
    found = entries_of(header(parent="0f0f", forkedAtMessageId="m9"), message(2, "user", [text("Go")]))
    values = {
        "session": SESSION,
        "cwd": "/home/mira/kiln",
        "version": "2",
        "forked_from": "0f0f",
        "forked_at": "m9",
    }
    assert [dict(e.values) for e in found] == [values, values]
    record = found[0].record
    assert record is not None
    assert (record.entry, record.id, record.time) == ("session_start", UNSET, UNSET)
    assert (record.label, record.label_content) == (UNSET, text_id("Fire the kiln"))
    for entry in found:
        assert entry.record is not None
        assert SESSION.encode() not in encode(entry.record) and b"mira" not in encode(entry.record)


def test_a_title_in_clear_only_where_a_person_gave_it() -> None:
    given = record_of(header(sessionTitle="Kilns", isSessionTitleManuallySet=True))
    assert (given.label, given.label_content, given.entry) == ("Kilns", UNSET, factory.TITLE_ENTRY)
    made = record_of(header(sessionTitle="Kilns"))
    assert (made.label, made.label_content) == (UNSET, text_id("Kilns"))


def test_a_prompt() -> None:
    assert record_of(message(2, "user", [text("Fire it")], interactionMode="auto")) == Record(
        entry="message/user",
        flags=["external_input"],
        from_="external",
        id="m2",
        parent="m1",
        parts=[Part(k="text", content=text_id("Fire it"), bytes=7)],
        role="user",
        run="m2",
        time="2026-03-04T05:06:02.000Z",
        trigger="external",
    )


REMINDER = "<system-reminder>\nBe brief.\n</system-reminder>"


@pytest.mark.parametrize(
    ("line", "typed"),
    [
        (message(2, "user", [text(REMINDER)]), False),
        (message(2, "user", [text(REMINDER), text(REMINDER + "\n" + REMINDER)]), False),
        (message(2, "user", [text(REMINDER + "\n\nDo it")]), True),
        (message(2, "user", [text(REMINDER), text("Do it")]), True),
        (message(2, "user", "Do it"), True),
        (message(2, "user", [text("Do it")], visibility="llm_only"), False),
        (message(2, "user", [text("Do it")], outer={"visibility": "llm_only"}), False),
        (message(2, "user", [{"type": "image", "source": {"data": "eA=="}}]), True),
    ],
)
def test_what_a_person_typed(line: dict[str, Any], typed: bool) -> None:
    record = record_of(line)
    assert (record.trigger, record.flags) == (
        ("external", ["external_input"]) if typed else (UNSET, ["injected"])
    )


def test_the_prompt_of_a_child_is_not_a_persons() -> None:
    source = Source(path="/nowhere", src=f"subagents/{CHILD}.jsonl", stream=CHILD)
    record = record_of(message(2, "user", [text("Look")]), source)
    assert (record.trigger, record.flags, record.run) == (UNSET, UNSET, "m2")


def test_an_answer() -> None:
    record = record_of(
        message(
            3,
            "assistant",
            [
                {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
                {"type": "thinking", "thinking": "", "signature": "c2ln"},
                text("Yes."),
                use("Execute"),
                {"type": "novel", "x": 1},
            ],
            modelId="mill-1",
            openaiMessageId="r1",
        )
    )
    assert (record.call, record.model, record.from_, record.flags) == ("r1", "mill-1", "agent", UNSET)
    assert [(p.k, p.state) for p in parts_of(record)] == [
        ("reasoning", "available"),
        ("reasoning", "unavailable"),
        ("text", "available"),
        ("call", "available"),
        ("unknown", "available"),
    ]
    call, novel = parts_of(record)[3:]
    assert (call.id, call.name, call.data) == ("t1", "Execute", text_id('{"command": "ls"}'))
    assert novel.data == text_id('{"type": "novel", "x": 1}')
    assert record_of(message(3, "assistant", [])).call == "m3"


def test_results() -> None:
    image = base64.b64encode(b"\x89PNG").decode()
    record = record_of(
        message(
            4,
            "user",
            [
                result("a\n", is_error=False),
                result([text("x"), text("y"), {"type": "image", "source": {"data": image}}], 2),
                result({"exit": 3}, 3, is_error=True),
                result(None, 4),
            ],
        )
    )
    assert (record.trigger, record.flags, record.from_) == (UNSET, UNSET, "external")
    assert [(p.k, p.of, p.failed, p.bytes) for p in parts_of(record)] == [
        ("result", "t1", False, 2),
        ("result", "t2", UNSET, 3),
        ("media", UNSET, UNSET, 4),
        ("result", "t3", True, 11),
        ("result", "t4", UNSET, 0),
    ]
    assert parts_of(record)[1].content == text_id("x\ny")


def test_changed_lines() -> None:
    def edited(**counts: int) -> str:
        return json.dumps({"success": True, "diffLines": [], **counts})

    record = record_of(
        message(
            4,
            "user",
            [
                result(edited(linesAdded=3, linesRemoved=1)),
                result(edited(linesAdded=2), 2),
                result(edited(linesAdded=9), 3, is_error=True),
                result('{"linesAdded": "many"}', 4),
            ],
        )
    )
    assert record.changes == Changes(added=5, files=2, removed=1)
    assert record_of(message(4, "user", [result('{"success": true}')])).changes is UNSET


def test_other_lines() -> None:
    compaction = record_of(
        {
            "type": "compaction_state",
            "id": "c1",
            "timestamp": "2026-03-04T05:06:07Z",
            "summaryText": "We fired.",
            "removedCount": 4,
        }
    )
    assert (compaction.flags, compaction.id) == (["context_reset", "reset_summary"], "c1")
    assert [p.k for p in parts_of(compaction)] == ["text", "data"]
    assert parts_of(compaction)[0].content == text_id("We fired.")
    older = record_of({"type": "compaction_state", "id": "c1", "summary": {"deep": 1}})
    assert [p.k for p in parts_of(older)] == ["data"]
    outcome = record_of({"type": "agent_turn_outcome", "turnId": "m2", "reason": "completed"})
    assert (outcome.flags, outcome.run, outcome.from_) == (["notice"], "m2", "runtime")
    end = record_of({"type": "session_end", "timestamp": 1_772_600_768_000, "finalText": "Done"})
    assert (end.flags, end.time) == (["notice"], "2026-03-04T05:06:08.000Z")
    todo = record_of({"type": "todo_state", "id": "x", "todos": []})
    assert (todo.entry, todo.flags) == ("todo_state", UNSET)


def test_the_flat_variant() -> None:
    stated = {"type": "message", "session_id": CHILD, "timestamp": 1_772_600_768_000}
    asked, said = entries_of(
        {**stated, "role": "user", "text": "Look"}, {**stated, "role": "assistant", "text": "Seen"}
    )
    assert dict(asked.values) == dict(said.values) == {"session": CHILD}
    assert asked.record is not None and said.record is not None
    assert (asked.record.time, asked.record.trigger) == ("2026-03-04T05:06:08.000Z", "external")
    assert (said.record.from_, parts_of(said.record)[0].content) == ("agent", text_id("Seen"))


def test_the_settings() -> None:
    stated = {
        "model": "mill-1",
        "tokenUsage": {
            "inputTokens": 9,
            "outputTokens": 4,
            "cacheCreationTokens": 2,
            "cacheReadTokens": 7,
            "thinkingTokens": 1,
            "factoryCredits": 3,
        },
        "inclusiveTokenUsage": {"inputTokens": 900},
        "tags": [
            {"name": "exec"},
            {"name": "subagent", "metadata": {"callingSessionId": SESSION, "callingToolUseId": "t1"}},
        ],
    }
    own = Source(path="/x", src=f"{SESSION}.settings.json", kind="agent_meta", shape="document", stream=None)
    record = record_of(stated, own)
    assert record.usage == Usage(in_=9, out=4, cache_write=2, cache_read=7, reasoning=1)
    assert (record.id, record.model, record.child, record.tool) == (
        f"{SESSION}/settings",
        "mill-1",
        UNSET,
        UNSET,
    )
    child = record_of(stated, msgspec.structs.replace(own, stream=CHILD))
    assert (child.child, child.tool, child.started_by) == (CHILD, "t1", SESSION)
    assert record_of({"model": "m"}, own).usage is UNSET


def test_damage_is_set_aside() -> None:
    one, other = (json.dumps(message(n, "user", [text("x")])).encode() for n in (2, 3))
    found = entries_of(one + other, one[:40] + other, b"\0\0" + one, b"nonsense")
    assert [(e.record.id if e.record else None, e.damage) for e in found] == [
        ("m2", None),
        ("m3", None),
        (None, "cut-record"),
        ("m3", None),
        (None, "nul-run"),
        ("m2", None),
        (None, "not-json"),
    ]


def test_values_of_other_types_than_known_are_left_alone() -> None:
    record = record_of({**message(2, "user", [7, text("x")]), "parentId": 5, "timestamp": {}})
    assert (record.id, record.parent, record.time) == ("m2", UNSET, UNSET)
    assert [p.k for p in parts_of(record)] == ["unknown", "text"]


# -- where sessions are ----------------------------------------------------------------------------------------------


def write(path: Path, *lines: dict[str, Any], settings: dict[str, Any] | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    if settings is not None:
        path.with_name(f"{path.stem}.settings.json").write_text(json.dumps(settings))
    return path


def started_by(session: str, tool: str = "t1") -> dict[str, Any]:
    metadata = {"callingSessionId": session, "callingToolUseId": tool}
    return {"tags": [{"name": "subagent", "metadata": metadata}], "tokenUsage": {"inputTokens": 5}}


def found_in(root: Path, **seen: Any) -> tuple[dict[str, Conversation], dict[str, str]]:
    conversations: dict[str, Conversation] = {}
    left_out: dict[str, str] = {}
    for one in factory.discover(root, **seen):
        if isinstance(one, LeftOut):
            left_out[Path(one.path).name] = one.reason
        else:
            conversations[one.native_id] = one
    return conversations, left_out


def test_sessions_with_their_settings(tmp_path: Path) -> None:
    sessions = tmp_path / "sessions"
    path = write(sessions / "-home-mira-kiln" / f"{SESSION}.jsonl", *conversation(), settings={"model": "m"})
    (path.parent / f"{SESSION}.settings.json.bak").write_text("{}")
    write(sessions / "older.jsonl", header("0e0e"), message(1, "user", "x"))
    for root in (tmp_path, sessions):
        conversations, left_out = found_in(root)
        assert left_out == {}
        assert [(s.src, s.kind, s.shape, s.stream) for s in conversations[SESSION].sources] == [
            (f"{SESSION}.jsonl", "transcript", "log", "main"),
            (f"{SESSION}.settings.json", "agent_meta", "document", None),
        ]
        assert [s.src for s in conversations["0e0e"].sources] == ["older.jsonl"]
    recognised = factory.recognise(path)
    assert recognised is not None and recognised.sources == conversations[SESSION].sources
    assert factory.recognise(tmp_path / "none.jsonl") is None
    assert factory.recognise(path.with_suffix(".settings.json")) is None


def test_files_that_hold_no_session(tmp_path: Path) -> None:
    write(tmp_path / "only-a-header.jsonl", header())
    write(tmp_path / "empty.jsonl")
    stream = {"session_id": "s", "timestamp": "2026-03-04T05:06:07Z"}
    write(
        tmp_path / "printed.jsonl",
        {"type": "message", **stream, "role": "user", "text": "x"},
        {"type": "tool_call", **stream, "toolCallId": "c"},
    )
    write(
        tmp_path / "pi.jsonl", {"type": "session", "id": "p", "version": 3}, message(1, "user", [text("x")])
    )
    write(tmp_path / "other.jsonl", {"type": "user", "uuid": "u", "sessionId": "s"})
    conversations, left_out = found_in(tmp_path)
    assert conversations == {}
    assert left_out == {
        "only-a-header.jsonl": "no-conversation",
        "empty.jsonl": "empty",
        "printed.jsonl": "other-format",
        "pi.jsonl": "other-agent",
        "other.jsonl": "other-agent",
    }
    assert factory.recognise(tmp_path / "printed.jsonl") is None


def test_sessions_with_a_hook_event_alone_are_imported_without_a_turn(tmp_path: Path) -> None:
    """R37: three files with no turn, only a hook event."""
    for number in range(3):
        event = {"type": "hook_event", "id": f"h{number}", "timestamp": "2026-03-04T05:06:07Z"}
        write(tmp_path / f"{number}.jsonl", header(f"id-{number}"), event)
    conversations, left_out = found_in(tmp_path)
    assert (sorted(conversations), left_out) == (["id-0", "id-1", "id-2"], {})
    for found in conversations.values():
        pages = land(found)
        assert [r.entry for p in pages for r in p.records] == ["session_start", "hook_event"]
        flow = flow_of(found.native_id, pages)
        assert (flow["talk"], flow["message.external"], flow["llm.call"]) == (0, 0, 0)


def test_flat_transcripts(tmp_path: Path) -> None:
    line = {"type": "message", "role": "user", "text": "x", "timestamp": 1_772_600_768_000}
    write(tmp_path / "a.jsonl", {**line, "session_id": CHILD})
    assert list(found_in(tmp_path)[0]) == [CHILD]


def test_children_are_streams_of_the_session_that_started_them(tmp_path: Path) -> None:
    task = [
        header(),
        message(2, "user", [text("Fire it")]),
        message(3, "assistant", [use("Task")], openaiMessageId="r1"),
        message(4, "user", [result("seen")]),
    ]
    write(tmp_path / f"{SESSION}.jsonl", *task, settings={"tokenUsage": {"inputTokens": 3}})
    work = [
        header(CHILD),
        {**message(1, "user", [text("Look")]), "id": "c1"},
        {**message(2, "assistant", [text("Seen")]), "id": "c2", "parentId": "c1"},
    ]
    write(tmp_path / f"{CHILD}.jsonl", *work, settings=started_by(SESSION))
    write(tmp_path / "deep.jsonl", header("deep"), *work[1:], settings=started_by(CHILD, "t9"))
    write(tmp_path / "lost.jsonl", header("lost"), *work[1:], settings=started_by("gone"))
    write(tmp_path / "round.jsonl", header("round"), *work[1:], settings=started_by("round"))
    conversations, _ = found_in(tmp_path)
    assert {name: [s.stream for s in one.sources] for name, one in conversations.items()} == {
        SESSION: ["main", None, CHILD, CHILD, "deep", "deep"],
        "lost": ["main", None],
        "round": ["main", None],
    }
    assert conversations[SESSION].sources[2].src == f"subagents/{CHILD}.jsonl"
    flow = flow_of(SESSION, land(conversations[SESSION]))
    assert (flow["stream"], flow["talk"], flow["message.external"]) == (3, 3, 1)
    assert (flow["agent.call"], flow["tool"], flow["relation starts"]) == (1, 0, 1)
    assert flow["unresolved spawn_call"] == 1


def test_nothing_is_read_of_what_has_not_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / f"{SESSION}.jsonl", *conversation(), settings={"model": "m"})
    seen = {str(path): SESSION, str(tmp_path / "b.jsonl"): ""}
    write(tmp_path / "b.jsonl", header("b"))
    monkeypatch.setattr("porcelain.providers.factory_discover._sniff", lambda _path: 1 / 0)
    conversations, left_out = found_in(tmp_path, seen=seen.get)
    assert (list(conversations), left_out) == ([SESSION], {"b.jsonl": "no-conversation"})


def test_nothing_is_read_of_a_subagent_that_has_not_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its cursor says whose stream it is, and so what its settings would."""
    write(tmp_path / f"{SESSION}.jsonl", *conversation(), settings={"model": "m"})
    prompt = message(1, "user", [text("Look.")])
    write(tmp_path / f"{CHILD}.jsonl", header(CHILD), prompt, settings=started_by(SESSION))
    (before,) = found_in(tmp_path)[0].values()
    cursors: dict[str, Cursor] = {}
    land(before, cursors)
    for name in ("_sniff", "_caller"):
        monkeypatch.setattr(f"porcelain.providers.factory_discover.{name}", lambda _path: 1 / 0)
    assert list(factory.discover(tmp_path, KnownFiles(cursors))) == [before]


# -- landing and flow ------------------------------------------------------------------------------------------------


def land(conversation: Conversation, cursors: dict[str, Cursor] | None = None) -> list[LandedPage]:
    options = LandingOptions(redact=redact, rules="r1", key=b"key", sd_bytes=sd_bytes)
    known = cursors if cursors is not None else {}
    pages: list[LandedPage] = []
    for chunk in land_conversation(conversation, known, factory, ContentSink(keep=False), options, 1):
        assert not chunk.problems
        pages += chunk.pages
        known.update((cursor.path, cursor) for cursor in chunk.cursors)
    return pages


def flow_of(name: str, pages: list[LandedPage]) -> Counter[str]:
    entries = [e for p in pages for e in from_page(p.page, p.records).entries]
    found = assemble(entries, conversation=name, session_name=name, revision=1, through=len(pages))
    counts = Counter(node.kind for node in found.nodes)
    counts.update(f"relation {relation.type}" for relation in found.relations)
    counts.update(f"unresolved {gap.kind}" for gap in found.unresolved)
    return counts


def test_a_conversation(tmp_path: Path) -> None:
    path = write(tmp_path / f"{SESSION}.jsonl", *conversation())
    found = factory.recognise(path)
    assert found is not None
    cursors: dict[str, Cursor] = {}
    pages = land(found, cursors)
    flow = flow_of(SESSION, pages)
    expected = {"talk": 1, "run": 1, "llm.call": 2, "tool": 1, "message.external": 1}
    assert {kind: flow[kind] for kind in expected} == expected
    assert (flow["context.injection"], flow["control.notice"], flow["message.assistant"]) == (1, 1, 2)
    assert not [kind for kind in flow if kind.startswith("unresolved")]
    assert land(found, cursors) == []
    with path.open("a") as file:
        file.write(json.dumps(message(6, "user", [text("More")])) + "\n")
    assert [r.id for p in land(found, cursors) for r in p.records] == ["m6"]


def test_new_settings_are_a_revision(tmp_path: Path) -> None:
    path = write(tmp_path / f"{SESSION}.jsonl", *conversation(), settings={"model": "m"})
    found = factory.recognise(path)
    assert found is not None
    cursors: dict[str, Cursor] = {}
    land(found, cursors)
    write(path, *conversation(), settings={"model": "m", "tokenUsage": {"outputTokens": 4}})
    (page,) = land(found, cursors)
    assert [(r.id, r.usage) for r in page.records] == [(f"{SESSION}/settings", Usage(out=4))]
    assert cursors[found.sources[1].path].state == "active"


def test_every_word_of_the_glossary_is_told_once() -> None:
    assert len({row[:2] for row in TERMS}) == len(TERMS)


# -- real ones -------------------------------------------------------------------------------------------------------

SAMPLES = {
    "75dc6923-87c0-49f0-a4ff-43ffe4610fdc": 1,
    "8ebe11a0-93df-494f-9466-cbd5c070dfe2": 1,
    "b464d09b-760e-4eb2-a4e0-e7ce92c7bbd9": 2,
    "c30c1e48-1aaf-42af-8b08-37307861cbc8": 1,
    "droid_large": 2,
    "droid_drift": 1,
    "droid_s1": 1,
}


def test_samples(shared: Path) -> None:
    folder = shared / "samples" / "factory"
    before = {path: hashlib.sha256(path.read_bytes()).digest() for path in folder.rglob("*.json*")}
    conversations, left_out = found_in(folder)
    assert set(conversations) == set(SAMPLES)
    assert left_out == {
        f"stream_json_{name}.jsonl": "other-format" for name in ("large", "schema_drift", "small")
    }
    for name, found in conversations.items():
        lines = [json.loads(x) for x in Path(found.sources[0].path).read_text().splitlines() if x.strip()]
        said = [line["message"] for line in lines if line["type"] == "message"]
        blocks = [(m["role"], b["type"], b) for m in said for b in m["content"]]
        counted = Counter((role, kind) for role, kind, _ in blocks)
        pages = land(found)
        flow = flow_of(name, pages)
        assert sum(len(p.records) for p in pages) == len(lines) + len(found.sources) - 1
        assert flow["talk"] == flow["message.external"] == SAMPLES[name]
        assert flow["llm.call"] == sum(m["role"] == "assistant" for m in said)
        assert flow["message.assistant"] == counted["assistant", "text"]
        assert flow["tool"] == counted["assistant", "tool_use"]
        assert flow["context.injection"] == sum(
            m.get("visibility") == "llm_only" or line.get("visibility") == "llm_only"
            for line in lines
            if (m := line.get("message", {}))
        )
        assert not [kind for kind in flow if kind.startswith("unresolved")]
        results = [p for page in pages for r in page.records for p in r.parts or () if p.k == "result"]
        assert len(results) == counted["user", "tool_result"]
        failed = [b for _, kind, b in blocks if kind == "tool_result" and b.get("is_error")]
        assert sum(p.failed is True for p in results) == len(failed)
        if len(found.sources) > 1:
            stated = json.loads(Path(found.sources[1].path).read_text())["tokenUsage"]
            (usage,) = (r.usage for p in pages for r in p.records if isinstance(r.usage, Usage))
            assert (usage.in_, usage.out) == (stated["inputTokens"], stated["outputTokens"])
            assert usage.cache_read == stated["cacheReadTokens"]
    assert before == {path: hashlib.sha256(path.read_bytes()).digest() for path in folder.rglob("*.json*")}


def test_a_fork_in_the_samples_has_the_very_records_of_its_origin(shared: Path) -> None:
    conversations, _ = found_in(shared / "samples" / "factory")
    origin = land(conversations["c30c1e48-1aaf-42af-8b08-37307861cbc8"])
    fork = land(conversations["b464d09b-760e-4eb2-a4e0-e7ce92c7bbd9"])
    messages = [r for p in origin for r in p.records if r.entry and r.entry.startswith("message/")]
    copied = [r for p in fork for r in p.records if r.entry and r.entry.startswith("message/")]
    assert copied[: len(messages)] == messages and len(messages) == 15
    assert len(copied) == len(messages) + 4
    assert [e for p in fork for s in p.page.spans or () for e in (s.values.get("forked_from"),)][:1] == [
        "c30c1e48-1aaf-42af-8b08-37307861cbc8"
    ]


def test_import_and_verify(shared: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    store = ["--store", str(tmp_path / "store")]
    samples = shared / "samples" / "factory"

    def run(*argv: str) -> bytes:
        assert main([*store, *argv]) == 0
        return b"".join(capsysbinary.readouterr())

    run("init")
    first = json.loads(run("import", "--provider", "factory", "--json", str(samples)))
    assert [(p["conversations"], p["files"], p["leftOut"]) for p in first["places"]] == [(7, 11, 3)]
    assert (first["records"], first["rounds"]) == (72, 7)
    again = json.loads(run("import", "--provider", "factory", "--json", str(samples)))
    assert (again["records"], again["objects"]) == (0, 0)
    assert b"checked 7 conversations" in run("flow", "verify")
