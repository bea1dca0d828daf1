from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from objstore.kinds import encode
from porcelain.flow.assembly import assemble
from porcelain.flow.assembly.entries import Landed, from_page
from porcelain.flow.formats.sd import sd_bytes
from porcelain.providers import codex, codex_dialect
from porcelain.providers.chunks import LandedChunk, LandingOptions
from porcelain.providers.content import ContentSink
from porcelain.providers.cursor import Cursor
from porcelain.providers.jsonlines import is_blank
from porcelain.providers.landing import land_conversation
from porcelain.providers.reader import Conversation, Entry, LeftOut, ReaderState, Seen, Source
from porcelain.providers.records import Changes, Part, Record, Usage
from porcelain.providers.redaction import redact
from porcelain.providers.unpacking import open_source

#: Threads and turns; the first half of a UUIDv7 is its time, so that these are in order of time.
PARENT = "01970000-0000-7000-8000-00000000000a"
TURN_1 = "01970000-0001-7000-8000-000000000001"
TURN_2 = "01970000-0002-7000-8000-000000000002"
FORK = "01970000-0100-7000-8000-00000000000b"
TURN_3 = "01970000-0101-7000-8000-000000000003"
CHILD = "01970000-0003-7000-8000-00000000000c"


def line(kind: str, payload: dict[str, Any], second: int = 0, **envelope: Any) -> dict[str, Any]:
    return {
        "timestamp": f"2026-05-01T10:{second // 60:02d}:{second % 60:02d}.000Z",
        **envelope,
        "type": kind,
        "payload": payload,
    }


def meta(thread: str = PARENT, **fields: Any) -> dict[str, Any]:
    return line(
        "session_meta",
        {"id": thread, "timestamp": "2026-05-01T09:59:59.000Z", "cwd": "/home/mira/kiln", **fields},
    )


def item(kind: str, second: int = 0, **fields: Any) -> dict[str, Any]:
    return line("response_item", {"type": kind, **fields}, second)


def event(kind: str, second: int = 0, **fields: Any) -> dict[str, Any]:
    return line("event_msg", {"type": kind, **fields}, second)


def said(role: str, text: str, second: int = 0, **fields: Any) -> dict[str, Any]:
    content = [{"type": "output_text" if role == "assistant" else "input_text", "text": text}]
    return item("message", second, role=role, content=content, **fields)


def call(name: str, call_id: str, second: int = 0, **arguments: Any) -> dict[str, Any]:
    return item("function_call", second, name=name, call_id=call_id, arguments=json.dumps(arguments))


def output(call_id: str, text: Any, second: int = 0) -> dict[str, Any]:
    return item("function_call_output", second, call_id=call_id, output=text)


def turn(turn_id: str, second: int = 0) -> dict[str, Any]:
    return event("task_started", second, turn_id=turn_id)


def context(turn_id: str | None = None, second: int = 0, **fields: Any) -> dict[str, Any]:
    named = {"turn_id": turn_id} if turn_id else {}
    return line("turn_context", {**named, "cwd": "/home/mira/kiln", "model": "m-1", **fields}, second)


def tokens(given: int, out: int, cached: int = 0, reasoning: int = 0) -> dict[str, int]:
    return {
        "input_tokens": given,
        "cached_input_tokens": cached,
        "output_tokens": out,
        "reasoning_output_tokens": reasoning,
        "total_tokens": given + out,
    }


def count(
    total: dict[str, int] | None, last: dict[str, int] | None = None, second: int = 0
) -> dict[str, Any]:
    info = {"total_token_usage": total, "last_token_usage": last}
    return event("token_count", second, info={key: value for key, value in info.items() if value})


def data_of(lines: Iterable[dict[str, Any] | bytes]) -> list[bytes]:
    return [one if isinstance(one, bytes) else json.dumps(one).encode() for one in lines]


def entries_of(*lines: dict[str, Any] | bytes, sink: ContentSink | None = None) -> list[Entry]:
    state = ReaderState()
    source = Source(path="/nowhere", src="x.jsonl")
    found: list[Entry] = []
    for one in data_of(lines):
        found += codex.read_line(one, source, state, sink or ContentSink(keep=False))
    return found


def records_of(*lines: dict[str, Any] | bytes) -> list[Record]:
    return [entry.record for entry in entries_of(*lines) if entry.record is not None]


def record_of(one: dict[str, Any] | bytes) -> Record:
    (record,) = records_of(one)
    return record


def parts_of(record: Record) -> list[Part]:
    assert record.parts is not UNSET
    return list(record.parts)


def text_id(text: str) -> str:
    return ContentSink(keep=False).text(text)


def usage_of(*files: Iterable[Record]) -> Usage:
    """The tokens of all model calls, each once, the last statement of them counting."""
    calls: dict[str, Usage] = {}
    for records in files:
        for record in records:
            if record.usage is not UNSET:
                assert record.call is not UNSET
                calls[record.call] = record.usage
    return Usage(
        in_=sum(one.in_ for one in calls.values()),
        out=sum(one.out for one in calls.values()),
        cache_read=sum(one.cache_read for one in calls.values()),
        reasoning=sum(one.reasoning for one in calls.values()),
    )


def total_of(*files: Iterable[Record]) -> int:
    used = usage_of(*files)
    return used.in_ + used.out


def rollout(folder: Path, thread: str, *lines: dict[str, Any] | bytes, end: str = ".jsonl") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"rollout-2026-05-01T10-00-00-{thread}{end}"
    data = b"".join(one + b"\n" for one in data_of(lines))
    path.write_bytes(zstandard.compress(data) if end.endswith(".zst") else data)
    return path


def found_in(root: Path) -> list[Conversation]:
    return [one for one in codex.discover(root) if isinstance(one, Conversation)]


class Landings:
    """What a store keeps of one conversation between imports."""

    def __init__(self) -> None:
        self.cursors: dict[str, Cursor] = {}
        self.files: list[Landed] = []
        self.records: list[Record] = []
        self.chunks: list[LandedChunk] = []
        self.ids: dict[str, list[str]] = {}

    def land(self, conversation: Conversation, keep: bool = False) -> int:
        """Land what is new; how many rows that is."""
        options = LandingOptions(
            redact=redact,
            rules="r1",
            key=b"key",
            sd_bytes=sd_bytes,
            landed_records=lambda path: iter(self.ids.get(path, [])),
        )
        before = len(self.records)
        for chunk in land_conversation(
            conversation, self.cursors, codex, ContentSink(keep=keep), options, len(self.files) + 1
        ):
            self.chunks.append(chunk)
            for landed in chunk.pages:
                self.files.append(from_page(landed.page, landed.records))
                self.records += landed.records
                path = next(s.path for s in conversation.sources if s.src == landed.page.src)
                ids = landed.page.records
                self.ids.setdefault(path, []).extend(ids[i : i + 64] for i in range(0, len(ids), 64))
            self.cursors.update((cursor.path, cursor) for cursor in chunk.cursors)
        return len(self.records) - before

    def kinds(self) -> Counter[str]:
        entries = [entry for landed in self.files for entry in landed.entries]
        assembled = assemble(entries, conversation="c", session_name="c", revision=1, through=len(self.files))
        return Counter(node.kind for node in assembled.nodes)


# -- the thread and its surroundings ---------------------------------------------------------------------------------


def test_the_first_meta_is_the_identity_and_states_the_origin_once() -> None:
    own = meta(
        FORK,
        cli_version="0.148.0",
        forked_from_id=PARENT,
        git={"branch": "main", "commit_hash": "ab12"},
        base_instructions={"text": "Be kind."},
    )
    first, second, third = entries_of(own, meta(cwd="/elsewhere"), said("user", "hi"))
    assert first.record is not None and second.record is not None
    assert dict(first.values) == {
        "session": FORK,
        "cwd": "/home/mira/kiln",
        "version": "0.148.0",
        "branch": "main",
        "commit": "ab12",
        "forked_from": PARENT,
    }
    assert dict(second.values) == {"session": FORK, "cwd": "/home/mira/kiln", "repeats": PARENT}
    assert third.values["session"] == FORK
    assert first.record.time == "2026-05-01T09:59:59.000Z"
    assert parts_of(first.record)[0].content == text_id("Be kind.")
    for entry in (first, second):
        assert entry.record is not None
        assert b"mira" not in encode(entry.record) and FORK.encode() not in encode(entry.record)


def test_what_a_paginated_fork_builds_on() -> None:
    base = {"thread_id": PARENT, "end_ordinal_exclusive": 70, "end_byte_offset": 88_344}
    own = {**meta(FORK, forked_from_id=PARENT, history_base=base, forked_from_ordinal_exclusive=70)}
    (entry,) = entries_of({**own, "ordinal": 70})
    values = {key: entry.values[key] for key in entry.values if key not in ("session", "cwd")}
    assert values == {
        "forked_from": PARENT,
        "forked_at": "70",
        "base": PARENT,
        "base_ordinal": "70",
        "base_offset": "88344",
        "ordinal": "70",
    }


def test_the_time_of_the_envelope_is_no_part_of_a_record() -> None:
    one, two = (entries_of(meta(), said("user", "hi", second))[1] for second in (5, 50))
    assert one.record == two.record
    assert (one.values["time"], two.values["time"]) == (
        "2026-05-01T10:00:05.000Z",
        "2026-05-01T10:00:50.000Z",
    )
    stated = said("user", "hi", internal_chat_message_metadata_passthrough={"create_time": 1777629605.25})
    (entry,) = entries_of(stated)
    assert entry.record is not None
    assert (entry.record.time, "time" in entry.values) == ("2026-05-01T10:00:05.250Z", False)


# -- messages, calls, results ----------------------------------------------------------------------------------------


def test_a_turn() -> None:
    found = records_of(
        meta(),
        turn(TURN_1),
        said("developer", "<permissions instructions>"),
        said("user", "<environment_context>\n</environment_context>"),
        said("user", "Look."),
        item("reasoning", summary=[{"type": "summary_text", "text": "Hm."}], encrypted_content="c2VjcmV0"),
        said("assistant", "Looking."),
        call("exec_command", "c1", cmd="ls"),
        output("c1", "Chunk ID: 1\nWall time: 0.1\nProcess exited with code 2\nOutput:\nno\n"),
        said("assistant", "Done."),
    )
    developer, environment, prompt, thought, answer, asked, result, last = found[2:]
    assert {record.run for record in found[1:]} == {TURN_1}
    assert (developer.flags, environment.flags) == (["injected"], ["injected"])
    assert (prompt.from_, prompt.trigger, prompt.flags) == ("external", "external", ["external_input"])
    assert {thought.call, answer.call, asked.call} == {f"{TURN_1}.0"}
    assert last.call == f"{TURN_1}.0.1"
    assert parts_of(thought) == [Part(k="reasoning", content=text_id("Hm."), bytes=3)]
    assert thought.dropped is not UNSET and thought.dropped[0].bytes == 8
    assert parts_of(asked) == [
        Part(k="call", id="c1", name="exec_command", data=text_id('{"cmd": "ls"}'), bytes=13)
    ]
    (shown,) = parts_of(result)
    assert (result.from_, shown.of, shown.failed) == ("external", "c1", True)
    assert [record.parent for record in found[3:]] == [record.id for record in found[2:-1]]


@pytest.mark.parametrize(
    ("given", "failed", "text"),
    [
        ("Exit code: 0\nWall time: 0\nOutput:\nok", False, "Exit code: 0\nWall time: 0\nOutput:\nok"),
        ('{"output":"no","metadata":{"exit_code":1}}', True, '{"output":"no","metadata":{"exit_code":1}}'),
        ("Plan updated", UNSET, "Plan updated"),
        ({"content": "bad", "success": False}, True, "bad"),
        ([{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}], UNSET, "a\nb"),
        ({"type": "input_text", "text": "one"}, UNSET, "one"),
        ("Output of a tool: Exit code: 3\n", UNSET, "Output of a tool: Exit code: 3\n"),
    ],
)
def test_what_a_tool_returned(given: Any, failed: Any, text: str) -> None:
    (part,) = parts_of(record_of(output("c1", given)))
    assert (part.failed, part.content, part.bytes) == (failed, text_id(text), len(text))


def test_other_calls() -> None:
    found = records_of(
        item("custom_tool_call", name="apply_patch", call_id="c1", input="*** Begin Patch"),
        item("local_shell_call", call_id="c2", action={"type": "exec", "command": ["ls"]}),
        item("function_call", name="mcp__kiln__fire", call_id="c3", arguments="{}"),
        item("function_call", name="fire", namespace="mcp__kiln", call_id="c4", arguments="{}"),
        item("web_search_call", id="ws1", status="completed", action={"type": "search", "query": "q"}),
        item("image_generation_call", id="ig1", status="completed", result="aGVsbG8="),
        item("tool_search_call", call_id="c5", arguments={"query": "q"}),
        item("tool_search_output", call_id="c5", tools=[{"name": "x"}]),
    )
    patch, shell, joined, spaced, search, image, sought, tools = (parts_of(record) for record in found)
    assert (patch[0].content, patch[0].data) == (text_id("*** Begin Patch"), UNSET)
    assert (shell[0].name, shell[0].data) == (
        "local_shell",
        text_id('{"type": "exec", "command": ["ls"]}'),
    )
    assert (joined[0].server, joined[0].server_tool) == (spaced[0].server, spaced[0].server_tool)
    assert (spaced[0].server, spaced[0].server_tool) == ("kiln", "fire")
    assert [(part.k, part.id or part.of, part.state) for part in search] == [
        ("call", "ws1", "available"),
        ("result", "ws1", "unavailable"),
    ]
    assert [part.k for part in image] == ["call", "result", "media"]
    assert (image[2].media, image[2].bytes) == ("image/png", 5)
    assert (sought[0].name, tools[0].of, tools[0].data) == ("tool_search", "c5", text_id('[{"name": "x"}]'))


def test_images() -> None:
    content = [
        {"type": "input_text", "text": "see"},
        {"type": "input_image", "image_url": "data:image/jpeg;base64,aGVsbG8="},
        {"type": "input_image", "image_url": "https://example.invalid/a.png"},
        {"type": "input_image", "image_url": None},
        {"type": "novel", "x": 1},
    ]
    parts = parts_of(record_of(item("message", role="user", content=content)))
    assert [(part.k, part.state) for part in parts] == [
        ("text", "available"),
        ("media", "available"),
        ("media", "omitted"),
        ("media", "unavailable"),
        ("unknown", "available"),
    ]
    assert (parts[1].media, parts[1].bytes) == ("image/jpeg", 5)
    assert parts[4].data == text_id('{"type": "novel", "x": 1}')


@pytest.mark.parametrize(
    ("text", "flags", "trigger"),
    [
        ("# AGENTS.md instructions for /x\n", ["injected"], UNSET),
        ("<user_instructions>\nx", ["injected"], UNSET),
        ("<turn_aborted>\nx", ["injected"], UNSET),
        ("<skills_instructions>\nx", ["injected"], UNSET),
        ("<user_shell_command>\nls", ["command"], UNSET),
        (f'<subagent_notification>\n{{"agent_path":"{CHILD}"}}', UNSET, "notification"),
        ("<b>bold</b> question", ["external_input"], "external"),
        ("Tell me about AGENTS.md", ["external_input"], "external"),
    ],
)
def test_who_wrote_a_user_message(text: str, flags: Any, trigger: Any) -> None:
    record = record_of(said("user", text))
    assert (record.flags, record.trigger) == (flags, trigger)
    assert record.child == (CHILD if trigger == "notification" else UNSET)


def test_the_kinds_of_a_message_say_more_than_its_text() -> None:
    passed = {"turn_id": TURN_1, "content_item_kinds": ["user.text"]}
    record = record_of(said("user", "<skills> are what?", internal_chat_message_metadata_passthrough=passed))
    assert (record.trigger, record.run) == ("external", TURN_1)
    passed = {"turn_id": TURN_1, "content_item_kinds": ["environments.environment_context"]}
    record = record_of(said("user", "Now in /x", internal_chat_message_metadata_passthrough=passed))
    assert (record.trigger, record.flags) == (UNSET, ["injected"])


def test_a_compaction_keeps_no_message_twice() -> None:
    history = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "old words"}]}]
    found = entries_of(
        meta(), said("user", "hi"), line("compacted", {"message": "So far", "replacement_history": history})
    )
    sink = ContentSink(keep=True)
    entries_of(line("compacted", {"message": "So far", "replacement_history": history}), sink=sink)
    record = found[2].record
    assert record is not None and found[1].record is not None
    assert (record.flags, record.continues) == (["context_reset", "reset_summary"], found[1].record.id)
    assert parts_of(record)[0].content == text_id("So far")
    assert record.dropped is not UNSET and record.dropped[0].bytes == len(json.dumps(history))
    assert not any(b"old words" in data for _kind, data in sink.found)


def test_rolling_back_goes_back_before_the_prompt() -> None:
    found = records_of(
        meta(),
        turn(TURN_1),
        said("user", "one"),
        said("assistant", "1"),
        turn(TURN_2),
        said("user", "two"),
        said("assistant", "2"),
        event("thread_rolled_back", num_turns=1),
        said("user", "two again"),
    )
    first_answer, back, again = found[3], found[7], found[8]
    assert (back.flags, back.parent) == (["notice"], first_answer.id)
    assert again.parent == first_answer.id
    assert parts_of(back)[0].k == "data"


def test_what_is_shown_again_lands_without_a_mark() -> None:
    found = records_of(
        meta(),
        said("user", "hi"),
        event("user_message", message="hi"),
        said("assistant", "yo"),
        event("agent_message", message="yo"),
        event(
            "item_completed",
            item={"type": "AgentMessage", "id": "m1", "content": [{"type": "Text", "text": "yo"}]},
            completed_at_ms=1777629605250,
        ),
    )
    prompt, shown, answer, again, item_ = found[1:]
    assert [record.entry for record in (shown, again, item_)] == [
        "event_msg/user_message",
        "event_msg/agent_message",
        "event_msg/AgentMessage",
    ]
    for record, original in ((shown, prompt), (again, answer), (item_, answer)):
        assert (record.from_, record.flags, record.call, record.trigger) == ("runtime", UNSET, UNSET, UNSET)
        assert parts_of(record)[0].content == parts_of(original)[0].content
    assert item_.time == "2026-05-01T10:00:05.250Z"


def test_other_events() -> None:
    diff = "--- a\n+++ b\n@@ -1 +1,2 @@\n-old\n+new\n+more\n"
    files = {
        "/a": {"type": "update", "unified_diff": diff},
        "/b": {"type": "add", "content": "x\ny\n"},
        "/c": {"type": "delete", "content": "gone"},
    }
    found = records_of(
        event("patch_apply_end", call_id="c1", success=True, changes=files),
        event("patch_apply_end", call_id="c2", success=False, changes=files),
        event(
            "item_completed", item={"type": "FileChange", "id": "c3", "status": "completed", "changes": files}
        ),
        event("task_complete", turn_id=TURN_1, duration_ms=12, completed_at=1777629605),
        event("turn_aborted", reason="interrupted"),
        event("stream_error", message="lost"),
        event("collab_agent_spawn_end", call_id="c4", new_thread_id=CHILD),
    )
    applied, failed, changed, ended, aborted, error, spawned = found
    assert applied.changes == changed.changes == Changes(added=4, files=3, removed=2)
    assert (applied.tool, failed.changes, changed.tool) == ("c1", UNSET, "c3")
    assert (ended.flags, ended.time) == (["turn_duration"], "2026-05-01T10:00:05.000Z")
    assert (aborted.flags, error.flags) == (["notice"], ["error"])
    assert (spawned.tool, spawned.child) == ("c4", CHILD)


def test_a_name_is_clear_unless_it_is_the_prompt() -> None:
    found = records_of(
        meta(),
        said("user", "Fire the kiln"),
        event("thread_name_updated", thread_name="Fire the kiln"),
        event("thread_name_updated", thread_name="Glazes"),
    )
    automatic, given_ = found[2:]
    assert (automatic.label, automatic.label_content) == (UNSET, text_id("Fire the kiln"))
    assert (given_.label, given_.label_content) == ("Glazes", UNSET)
    assert given_.entry in codex.TITLE_ENTRY.split()


def test_unknown_lines_are_kept() -> None:
    found = records_of(
        line("world_state", {"full": True}), line("novel", {"x": 1}), b'{"record_type":"state"}', b'{"x":1}'
    )
    assert [record.entry for record in found] == ["world_state", "novel", "state", "unknown"]


def test_damage_is_set_aside() -> None:
    good = json.dumps(said("user", "hi")).encode()
    found = entries_of(good[:40] + good, b"\0" * 30 + good)
    assert [entry.damage for entry in found] == ["cut-record", None, "nul-run", None]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda x: st.lists(x, max_size=3)
    )
)
def test_fields_of_any_type_are_survived(value: Any) -> None:
    for kind in (
        "session_meta",
        "response_item",
        "event_msg",
        "turn_context",
        "compacted",
        "token_usage_record",
    ):
        payload = {
            key: value
            for key in (
                "id",
                "type",
                "role",
                "content",
                "call_id",
                "output",
                "turn_id",
                "info",
                "usage",
                "item",
            )
        }
        typed = {**payload, "type": "function_call_output", "call_id": "c"}
        for one in (payload, typed):
            assert len(records_of(line(kind, one))) == 1
        assert (
            len(records_of({"timestamp": value, "ordinal": value, "type": kind, "payload": {"x": value}}))
            == 1
        )


# -- older files -----------------------------------------------------------------------------------------------------


def test_bare_lines() -> None:
    found = entries_of(
        {"id": PARENT, "timestamp": "2026-05-01T10:00:00.000Z", "instructions": None, "git": {"branch": "b"}},
        {"record_type": "state"},
        {"type": "message", "id": None, "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "yo"}],
        },
        {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c1"},
        {"type": "function_call_output", "call_id": "c1", "output": "ok"},
    )
    records = [entry.record for entry in found]
    assert all(record is not None for record in records)
    head, _state, prompt, answer, asked, result = (record for record in records if record is not None)
    assert (found[0].values["session"], found[0].values["branch"]) == (PARENT, "b")
    assert (head.entry, prompt.entry, prompt.trigger, prompt.time) == (
        "session_meta",
        "message",
        "external",
        UNSET,
    )
    assert prompt.id and prompt.id.startswith("~") and {answer.run, asked.run, result.run} == {prompt.id}
    assert answer.call == asked.call == f"{prompt.id}.0"


def document(*items: dict[str, Any], saved: str = "2026-05-01T10:00:00.000Z") -> bytes:
    session = {"timestamp": saved, "id": PARENT, "instructions": ""}
    return json.dumps({"session": session, "items": items}, indent=2).encode()


HELLO = {"role": "user", "content": [{"type": "input_text", "text": "hello"}], "type": "message"}
REPLY = {
    "type": "message",
    "id": "m1",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "hi"}],
}


def test_a_document_lands_what_was_not_there_before(tmp_path: Path) -> None:
    sessions = tmp_path / "sessions"
    sessions.mkdir()
    path = sessions / f"rollout-2026-05-01-{PARENT}.json"
    path.write_bytes(document(HELLO))
    store = Landings()
    (conversation,) = found_in(tmp_path)
    assert conversation.native_id == PARENT
    assert store.land(conversation) == 2
    path.write_bytes(document(HELLO, REPLY, saved="2026-05-01T11:00:00.000Z"))
    assert store.land(conversation) == 2  # the answer, and when it was saved
    assert store.land(conversation) == 0
    path.write_bytes(document(HELLO, REPLY)[:-9])
    assert store.land(conversation) == 0
    assert [record.entry for record in store.records] == [
        "session_meta",
        "message",
        "session_meta",
        "message",
    ]
    assert store.kinds()["llm.call"] == store.kinds()["message.external"] == 1


def test_a_document_saved_on_two_days_is_one_conversation(tmp_path: Path) -> None:
    sessions = tmp_path / "sessions"
    sessions.mkdir()
    for day, items in (("01", [HELLO]), ("02", [HELLO, REPLY])):
        (sessions / f"rollout-2026-05-{day}-{PARENT}.json").write_bytes(document(*items))
    (conversation,) = found_in(tmp_path)
    store = Landings()
    store.land(conversation)
    assert (len(conversation.sources), store.kinds()["message.external"]) == (2, 1)


# -- tokens: public reports ------------------------------------------------------------------------------------------


def test_r17_totals_that_are_stated_again() -> None:
    """Two calls, the first one's totals stated three times: 3,300."""
    first, second = tokens(1000, 100), tokens(2000, 200)
    both = tokens(3000, 300)
    found = records_of(
        meta(),
        context(),
        count(first, first, 1),
        count(first, first, 2),
        count(first, first, 3),
        count(both, second, 4),
    )
    assert total_of(found) == 3300


def test_r17_one_call_stated_twice() -> None:
    used = tokens(100, 30, cached=20, reasoning=5)
    assert total_of(records_of(meta(), context(), count(used, used, 1), count(used, used, 2))) == 130


def test_r17_snapshots_of_rate_limits() -> None:
    first, second = tokens(1000, 100), tokens(300, 40)
    both = tokens(1300, 140)
    found = records_of(
        meta(), event("token_count", info=None), count(first, first), count(first, first), count(both, second)
    )
    assert total_of(found) == 1440


def test_r17_totals_alone_are_told_by_their_difference() -> None:
    found = records_of(meta(), count(tokens(100, 10)), count(tokens(150, 15)), count(tokens(20, 2)))
    assert [record.usage for record in found[1:]] == [
        Usage(in_=100, out=10),
        Usage(in_=50, out=5),
        Usage(in_=20, out=2),  # totals that fell began anew
    ]


def test_equal_calls_both_count() -> None:
    one, two = tokens(100, 10), tokens(200, 20)
    assert total_of(records_of(meta(), count(one, one), count(two, one))) == 220


@pytest.mark.parametrize(
    ("used", "total"),
    [
        (tokens(100, 50, reasoning=20), 150),
        (tokens(123_302, 1_944, cached=120_000, reasoning=1_500), 125_246),
    ],
)
def test_r18_cached_is_within_input_and_reasoning_within_output(used: dict[str, int], total: int) -> None:
    found = records_of(meta(), count(used, used))
    assert total_of(found) == total
    assert usage_of(found).reasoning == used["reasoning_output_tokens"]


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_r18_of_any_record(given_: int, out: int, cached: int, reasoning: int) -> None:
    used = tokens(given_ + cached, out + reasoning, cached, reasoning)
    record = {"response_id": "r1", "turn_id": TURN_1, "usage": used}
    assert total_of(records_of(meta(), line("token_usage_record", record))) == used["total_tokens"]


def answered(
    turn_id: str, text: str, total: dict[str, int], last: dict[str, int], second: int
) -> list[dict[str, Any]]:
    """A turn of one call."""
    return [
        turn(turn_id, second),
        context(turn_id, second),
        said("user", f"{text}?", second),
        said("assistant", f"{text}!", second),
        count(total, last, second),
    ]


def parent_lines() -> list[dict[str, Any]]:
    used = tokens(1000, 100), tokens(2000, 200)
    return [
        *answered(TURN_1, "one", used[0], used[0], 1),
        *answered(TURN_2, "two", tokens(3000, 300), used[1], 5),
    ]


def restamped(lines: list[dict[str, Any]], start: int, step: int = 0) -> list[dict[str, Any]]:
    return [
        {
            **one,
            "timestamp": f"2026-05-01T11:{(start + step * n) // 60:02d}:{(start + step * n) % 60:02d}.000Z",
        }
        for n, one in enumerate(lines)
    ]


@pytest.mark.parametrize("step", [0, 7])
def test_r19_a_fork_that_repeats_its_parent_over_any_time(step: int) -> None:
    """What is repeated are the parent's records, however long the repeating took; what is new counts."""
    parent = records_of(meta(), *parent_lines())
    fork = records_of(
        meta(FORK, forked_from_id=PARENT),
        *restamped([meta(), *parent_lines()], 0, step),
        *answered(TURN_3, "three", tokens(7000, 700), tokens(4000, 400), 600),
    )
    assert fork[1 : 1 + len(parent)] == parent
    assert total_of(parent) == 3300
    assert total_of(parent, fork) == 3300 + 4400
    assert total_of(fork) == 3300 + 4400  # the parent's file may be gone


def test_r19_files_that_name_no_turns() -> None:
    def old(text: str, total: dict[str, int], last: dict[str, int]) -> list[dict[str, Any]]:
        return [said("user", text), context(), said("assistant", "Ok."), count(total, last)]

    one, two = tokens(100, 10), tokens(200, 20)
    lines = [meta(), *old("first", one, one), *old("again", two, one)]
    parent = records_of(*lines)
    fork = records_of(
        meta(FORK, forked_from_id=PARENT),
        *restamped(lines, 9),
        *old("more", tokens(600, 60), tokens(400, 40)),
    )
    assert fork[1 : 1 + len(lines)] == parent
    assert (total_of(parent), total_of(parent, fork)) == (220, 660)


@pytest.mark.parametrize(("calls", "total"), [((23_062, 23_291), 46_353), ((21_458, 21_722), 43_180)])
def test_r19_a_subagent_under_its_parents_meta_without_its_lines(calls: tuple[int, int], total: int) -> None:
    """Nothing is repeated, so that all calls are the child's own, also the first one."""
    first, second = tokens(calls[0] - 62, 62), tokens(calls[1] - 62, 62)
    both = tokens(sum(calls) - 124, 124)
    own = meta(CHILD, parent_thread_id=PARENT, forked_from_id=PARENT, thread_source="subagent")
    child = records_of(own, meta(), count(first, first, 12), count(both, second, 24))
    parent = records_of(meta(), count(tokens(69_000, 254), tokens(69_000, 254)))
    assert total_of(child) == total
    assert total_of(parent, child) == total + 69_254


def test_a_subagent_that_inherits_totals_begins_at_them() -> None:
    """The parent's running totals, stated before any answer, are nobody's call."""
    inherited, last = tokens(3_000_000, 9_000), tokens(9_000, 35)
    own = meta(CHILD, parent_thread_id=PARENT, forked_from_id=PARENT, thread_source="subagent")
    found = records_of(
        own,
        meta(),
        turn(TURN_3),
        count(inherited, last),
        said("assistant", "Ok."),
        count(tokens(3_000_500, 9_050), tokens(500, 50)),
    )
    assert total_of(found) == 550


def test_a_call_with_a_record_of_its_own_counts_once() -> None:
    used = tokens(500, 50, cached=100, reasoning=7)
    found = records_of(
        meta(),
        turn(TURN_1),
        context(TURN_1),
        said("user", "hi"),
        said("assistant", "yo"),
        line("token_usage_record", {"turn_id": TURN_1, "response_id": "resp_1", "usage": used}),
        count(used, used),
    )
    record = found[5]
    assert (record.call, record.id, record.model, record.flags) == (
        found[4].call,
        "resp_1",
        "m-1",
        ["finished"],
    )
    assert (total_of(found), found[6].usage) == (550, UNSET)
    repeated = records_of(
        meta(FORK), meta(), turn(TURN_1), said("user", "hi"), said("assistant", "yo"), count(used, used)
    )
    assert total_of(found, repeated) == 550


def test_an_import_in_pieces_counts_as_one_in_a_row(tmp_path: Path) -> None:
    lines = [meta(), *parent_lines()]
    whole, pieces = Landings(), Landings()
    path = rollout(tmp_path, PARENT, *lines)
    (conversation,) = found_in(tmp_path)
    whole.land(conversation)
    data = path.read_bytes()
    for end in range(0, len(data), 150):
        path.write_bytes(data[:end])
        pieces.land(conversation)
    path.write_bytes(data)
    pieces.land(conversation)
    assert pieces.records == whole.records
    assert total_of(pieces.records) == 3300


# -- files and conversations -----------------------------------------------------------------------------------------


def test_only_rollouts_are_opened(tmp_path: Path) -> None:
    rollout(tmp_path / "sessions" / "2026" / "05" / "01", PARENT, meta(), said("user", "hi"))
    rollout(tmp_path / "sessions", FORK, meta(FORK), said("user", "hi"))
    for name in ("auth.json", "config.toml", "history.jsonl", "state_5.sqlite"):
        (tmp_path / name).mkdir()  # opening one would fail
    (tmp_path / "worktrees" / "sessions").mkdir(parents=True)
    found = list(codex.discover(tmp_path))
    assert [one.native_id for one in found if isinstance(one, Conversation)] == [PARENT, FORK]
    assert len(found) == 2


def test_files_without_a_conversation_are_left_out(tmp_path: Path) -> None:
    settings = event("thread_settings_applied", thread_settings={})
    rollout(tmp_path, FORK, meta(FORK, forked_from_id=PARENT), settings)
    (tmp_path / "empty.jsonl").write_bytes(b"")
    (tmp_path / "pi.jsonl").write_bytes(b'{"type":"session","id":"x","timestamp":"t","cwd":"/"}\n')
    (tmp_path / "claude.jsonl").write_bytes(b'{"type":"user","uuid":"u","message":{"role":"user"}}\n')
    reasons = sorted(one.reason for one in codex.discover(tmp_path) if isinstance(one, LeftOut))
    assert (reasons, found_in(tmp_path)) == (["empty", "no-conversation", "other-agent", "other-agent"], [])


def test_r09_without_a_readable_meta_the_name_gives_the_id(tmp_path: Path) -> None:
    path = rollout(tmp_path, PARENT, b'{"timestamp":"2026', said("user", "hi"))
    before = path.read_bytes()
    (conversation,) = found_in(tmp_path)
    assert (conversation.native_id, path.read_bytes()) == (PARENT, before)


def test_r21_two_metas_in_one_file(tmp_path: Path) -> None:
    own = meta(CHILD, session_id=PARENT, cwd="/home/mira/a", forked_from_id=PARENT)
    path = rollout(tmp_path, CHILD, own, meta(PARENT, cwd="/home/mira/b"), *parent_lines())
    (conversation,) = found_in(tmp_path)
    assert conversation.native_id == CHILD
    store = Landings()
    store.land(conversation)
    facts = store.cursors[str(path)].facts
    assert list(facts.values["session"]) == [CHILD]
    assert list(facts.values["cwd"]) == ["/home/mira/a"]
    assert list(facts.values["repeats"]) == list(facts.values["forked_from"]) == [PARENT]


def based_on(thread: str, base: str, *lines: dict[str, Any]) -> list[dict[str, Any]]:
    own = meta(
        thread,
        forked_from_id=base,
        history_base={"thread_id": base, "end_ordinal_exclusive": 3, "end_byte_offset": 400},
    )
    return [own, *lines]


def test_r22_threads_that_build_on_each_other(tmp_path: Path) -> None:
    """Three threads in a chain, one over two files; and a circle, which is told and not followed."""
    third = "01970000-0200-7000-8000-00000000000d"
    rollout(tmp_path / "a", PARENT, meta(), said("user", "one"))
    rollout(tmp_path / "b", PARENT, meta(), said("user", "one"), said("assistant", "1")).rename(
        tmp_path / "b" / f"rollout-2026-05-02T10-00-00-{PARENT}.jsonl"
    )
    rollout(tmp_path, FORK, *based_on(FORK, PARENT, said("user", "two")))
    rollout(tmp_path, third, *based_on(third, FORK, said("user", "three")))
    found = {one.native_id: one for one in found_in(tmp_path)}
    assert {name: len(one.sources) for name, one in found.items()} == {PARENT: 2, FORK: 1, third: 1}
    bases = {}
    for name, one in found.items():
        store = Landings()
        store.land(one)
        bases[name] = [list(c.facts.values.get("base", {})) for c in store.cursors.values()]
        if name == PARENT:
            assert store.kinds()["message.external"] == 1
    assert bases == {PARENT: [[], []], FORK: [[PARENT]], third: [[FORK]]}

    circle = tmp_path / "circle"
    rollout(circle, FORK, *based_on(FORK, third, said("user", "two")))
    rollout(circle, third, *based_on(third, FORK, said("user", "three")))
    assert [one.native_id for one in found_in(circle)] == [FORK, third]


def test_subagents_belong_to_the_thread_at_the_top(tmp_path: Path) -> None:
    grandchild = "01970000-0004-7000-8000-00000000000e"
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": CHILD}}}
    rollout(
        tmp_path,
        PARENT,
        meta(),
        turn(TURN_1),
        said("user", "Delegate."),
        call("spawn_agent", "c1", message="look"),
        output("c1", json.dumps({"agent_id": CHILD, "nickname": "Bo"})),
    )
    rollout(
        tmp_path,
        CHILD,
        meta(CHILD, session_id=PARENT, parent_thread_id=PARENT, thread_source="subagent"),
        turn(TURN_2),
        said("user", "look"),
        said("assistant", "seen"),
    )
    rollout(tmp_path, grandchild, meta(grandchild, source=spawn), turn(TURN_3), said("user", "deeper"))
    (conversation,) = found_in(tmp_path)
    assert [(one.stream, one.src.startswith("subagents/")) for one in conversation.sources] == [
        ("main", False),
        (CHILD, True),
        (grandchild, True),
    ]
    store = Landings()
    store.land(conversation)
    prompts = [record for record in store.records if record.role == "user"]
    assert [record.trigger for record in prompts] == ["external", UNSET, UNSET]
    kinds = store.kinds()
    assert (kinds["agent.call"], kinds["stream"], kinds["agent.output"]) == (1, 3, 1)
    assert kinds["message.external"] == 1


def test_subagents_without_their_parent_wait_under_its_id(tmp_path: Path) -> None:
    own = meta(CHILD, parent_thread_id=PARENT, thread_source="subagent")
    rollout(tmp_path, CHILD, own, said("user", "look"))
    (conversation,) = found_in(tmp_path)
    assert (conversation.native_id, [one.stream for one in conversation.sources]) == (PARENT, [CHILD])
    for one, other in ((CHILD, FORK), (FORK, CHILD)):
        rollout(
            tmp_path / "circle",
            one,
            meta(one, parent_thread_id=other, thread_source="subagent"),
            said("user", "x"),
        )
    assert [len(one.sources) for one in found_in(tmp_path / "circle")] == [2]


def test_a_subagent_with_its_parents_history(tmp_path: Path) -> None:
    """What it repeats are the parent's records, which stay where they were; its own lines begin at an ordinal."""
    lines = [
        {**one, "ordinal": n}
        for n, one in enumerate(
            [
                meta(
                    CHILD, parent_thread_id=PARENT, thread_source="subagent", subagent_history_start_ordinal=4
                ),
                meta(),
                turn(TURN_1),
                said("user", "Delegate.", id="msg_1"),
                turn(TURN_2),
                said("user", "look", id="msg_2"),
                said("assistant", "seen", id="msg_3"),
            ]
        )
    ]
    rollout(tmp_path, CHILD, *lines)
    rollout(tmp_path, PARENT, meta(), turn(TURN_1), said("user", "Delegate.", id="msg_1"))
    (conversation,) = found_in(tmp_path)
    store = Landings()
    store.land(conversation)
    assert store.records[2] == store.records[6]
    kinds = store.kinds()
    assert (kinds["message.external"], kinds["llm.call"], kinds["run"]) == (1, 1, 2)


def test_r31_compressed_and_archived(tmp_path: Path) -> None:
    """One session through all three states, also while two files of it are there."""
    store = Landings()
    lines = [meta(), *parent_lines()]
    live = rollout(tmp_path / "sessions" / "2026" / "05" / "01", PARENT, *lines[:6])

    def land() -> tuple[str, str, int, int]:
        (conversation,) = found_in(tmp_path)
        store.land(conversation)
        (source,) = conversation.sources
        kinds = store.kinds()
        assert kinds["message.external"] == kinds["llm.call"] == len(turns)
        return (
            conversation.native_id,
            source.src,
            len({encode(r) for r in store.records}),
            total_of(store.records),
        )

    turns = [TURN_1]
    assert land() == (PARENT, live.name, 6, 1100)
    turns.append(TURN_2)
    packed = rollout(live.parent, PARENT, *lines, end=".jsonl.zst")
    assert [one.sources[0].path for one in found_in(tmp_path)] == [str(live)]
    live.unlink()
    assert land() == (PARENT, live.name, 11, 3300)
    archived = rollout(tmp_path / "archived_sessions", PARENT, *lines)
    assert [one.sources[0].path for one in found_in(tmp_path)] == [str(archived)]
    packed.unlink()
    assert land() == (PARENT, live.name, 11, 3300)


def test_a_compressed_log_is_read_on_from_where_it_stood(tmp_path: Path) -> None:
    lines = [meta(), *parent_lines()]
    path = rollout(tmp_path, PARENT, *lines[:6], end=".jsonl.zst")
    (conversation,) = found_in(tmp_path)
    store = Landings()
    assert store.land(conversation) == 6
    rollout(tmp_path, PARENT, *lines, end=".jsonl.zst")
    assert store.land(conversation) == 5
    assert store.land(conversation) == 0
    assert not any(chunk.reread for chunk in store.chunks)
    whole = path.read_bytes()
    path.write_bytes(whole[:-6])  # still being written
    with open_source(str(path)) as (file, stat, size):
        assert (stat.st_size, len(file.read())) == (len(whole) - 6, size)
    path.write_bytes(b"no zstandard")
    store.land(conversation)
    assert [problem.reason for problem in store.chunks[-1].problems] == ["not a zstandard file"]


class SeenAs(Seen):
    """Every file is of the conversation ``name`` and has not changed."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, path: str) -> str:
        return self.name


def test_a_file_that_has_not_changed_is_not_opened(tmp_path: Path) -> None:
    rollout(tmp_path, PARENT, meta(), said("user", "hi"))
    rollout(tmp_path, CHILD, meta(CHILD, parent_thread_id=PARENT), said("user", "look"))
    before = found_in(tmp_path)
    for one in tmp_path.iterdir():
        one.write_bytes(b"not looked at")
    assert list(codex.discover(tmp_path, SeenAs(PARENT))) == before
    left_out = [LeftOut(path=str(one), reason="no-conversation") for one in sorted(tmp_path.iterdir())]
    assert list(codex.discover(tmp_path, SeenAs(""))) == left_out


def test_the_index_names_threads(tmp_path: Path) -> None:
    """The first name is the program's; later ones are a person's. The file is one for all threads."""

    def named(thread: str, title: str, minute: int) -> dict[str, Any]:
        time = f"2026-05-01T12:{minute:02d}:00.5Z"
        return {"id": thread, "thread_name": title, "updated_at": time}

    def write(*names: dict[str, Any] | bytes) -> None:
        index.write_bytes(b"".join(one + b"\r\n" for one in data_of(names)))

    index = tmp_path / "session_index.jsonl"
    rollout(tmp_path / "sessions", PARENT, meta(), said("user", "fire the kiln"))
    other = rollout(tmp_path / "sessions", FORK, meta(FORK), said("user", "hi"))
    first = named(PARENT, "fire the kiln", 1)
    write(first, named(FORK, "hi", 2), b"{damaged", named(CHILD, "elsewhere", 3))
    store = Landings()
    conversation = found_in(tmp_path)[0]
    assert [one.src for one in conversation.sources][1:] == ["session_index.jsonl"]
    assert store.land(conversation) == 3
    assert (store.records[-1].label, store.records[-1].label_content) == (UNSET, text_id("fire the kiln"))
    assert store.land(found_in(tmp_path)[0]) == 0

    write(first, named(FORK, "hi", 2), b"{damaged", named(CHILD, "elsewhere", 3), named(FORK, "Bisque", 4))
    assert store.land(found_in(tmp_path)[0]) == 0
    write(first, named(PARENT, "Glazes", 5))
    assert store.land(found_in(tmp_path)[0]) == 1
    cursor = store.cursors[str(index / PARENT)]
    assert cursor.facts.titles == [("Glazes", "2026-05-01T12:05:00.5Z")]
    assert (cursor.state, cursor.facts.damage_count) == ("active", 0)
    entries = [entry for landed in store.files for entry in landed.entries]
    through = len(store.files)
    assembled = assemble(entries, conversation="c", session_name="c", revision=1, through=through)
    assert assembled.title == "Glazes"
    assert codex.recognise(other) is not None and codex.recognise(index) is None


def test_one_file_by_itself(tmp_path: Path) -> None:
    path = rollout(tmp_path, PARENT, meta(), said("user", "hi"))
    found = codex.recognise(path)
    assert found is not None and (found.native_id, found.root) == (PARENT, str(tmp_path))
    other = tmp_path / "other.jsonl"
    other.write_bytes(b'{"type":"session","id":"x"}\n')
    assert codex.recognise(other) is None
    assert codex.recognise(tmp_path / "notes.txt") is None


def test_the_glossary_names_every_word_once() -> None:
    words = [(of, word) for of, word, _native, _where in codex_dialect.TERMS]
    assert len(set(words)) == len(words)
    assert {of for of, _word in words} == {"record", "structure", "step"}


# -- samples ---------------------------------------------------------------------------------------------------------


def sample_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a sample, read by Python's own parser."""
    if path.suffix == ".json":
        whole = json.loads(path.read_bytes())
        return [{"payload": one} for one in (whole["session"], *whole["items"])]
    return [json.loads(one) for one in path.read_bytes().split(b"\n") if not is_blank(one)]


def samples(shared: Path) -> list[Path]:
    inside = shared / "samples" / "codex"
    found = [*inside.glob("**/*.jsonl"), *inside.glob("*/sessions/*.json")]
    return sorted(path for path in found if path.name not in ("history.jsonl", "session_index.jsonl"))


def test_samples_agree_with_an_independent_count(shared: Path) -> None:
    paths = samples(shared)
    assert len(paths) == 29
    for path in paths:
        lines = sample_lines(path)
        payloads = [one.get("payload", one) for one in lines]
        shape = "document" if path.suffix == ".json" else "log"
        source = Source(path=str(path), src=path.name, shape=shape)  # type: ignore[arg-type]
        state, sink = ReaderState(), ContentSink(keep=False)
        data = [path.read_bytes()] if shape == "document" else path.read_bytes().split(b"\n")
        entries = [e for one in data if not is_blank(one) for e in codex.read_line(one, source, state, sink)]
        records = [entry.record for entry in entries if entry.record is not None]
        assert len(records) == len(entries) == len(lines), path

        parts = Counter(
            part.k for record in records for part in record.parts or () if part.k in ("call", "result")
        )
        types = Counter(
            p.get("type") for p, one in zip(payloads, lines, strict=True) if one.get("type") != "event_msg"
        )
        calls = sum(n for kind, n in types.items() if kind and kind.endswith("_call"))
        results = sum(
            isinstance(p.get("call_id"), str) and str(p.get("type")).endswith(("_output", "_result"))
            for p, one in zip(payloads, lines, strict=True)
            if one.get("type") in ("response_item", "function_call_output", None)
        )
        by_server = [p for p in payloads if p.get("type") in ("web_search_call", "image_generation_call")]
        results += sum("id" in p and p.get("status") not in ("in_progress", "failed") for p in by_server)
        assert (parts["call"], parts["result"]) == (calls, results), path
        compacted = sum(one.get("type") == "compacted" for one in lines)
        assert sum("context_reset" in (record.flags or ()) for record in records) == compacted, path
        prompts = sum(
            p.get("type") == "user_message" or (p.get("item") or {}).get("type") == "UserMessage"
            for p in payloads
            if isinstance(p.get("item") or {}, dict)
        )
        if path.parts[-2] != "public-fixtures" and prompts and not is_subagent(payloads[0]):
            assert sum("external_input" in (record.flags or ()) for record in records) == prompts, path
        assert usage_of(records) == expected_usage(payloads), path


def is_subagent(payload: dict[str, Any]) -> bool:
    return "parent_thread_id" in payload


def expected_usage(payloads: list[dict[str, Any]]) -> Usage:
    """What the file's own thread used: its records of calls, and the growth of its running totals before the first."""
    keys = ("input_tokens", "output_tokens", "cached_input_tokens", "reasoning_output_tokens")
    used: Counter[str] = Counter()
    before: Counter[str] = Counter()
    recorded = False
    for payload in payloads:
        if "response_id" in payload:
            recorded = True
            used.update({key: payload["usage"][key] for key in keys})
        elif payload.get("type") == "token_count" and not recorded:
            total = (payload.get("info") or {}).get("total_token_usage")
            if total:
                fell = any(total[key] < before[key] for key in keys)
                used.update({key: total[key] - (0 if fell else before[key]) for key in keys})
                before = Counter({key: total[key] for key in keys})
    return Usage(
        in_=used["input_tokens"],
        out=used["output_tokens"],
        cache_read=used["cached_input_tokens"],
        reasoning=used["reasoning_output_tokens"],
    )


def test_a_migrated_file_has_the_names_it_had_before(shared: Path) -> None:
    inside = shared / "samples" / "codex"
    folders = inside / "local-0.110.0", inside / "local-0.110.0-migrated-by-0.171.0"
    for before, after in zip(*(sorted(folder.glob("**/*.jsonl")) for folder in folders), strict=True):
        old, new = (records_of(*path.read_bytes().splitlines()) for path in (before, after))
        items = [[r for r in records if str(r.entry).startswith("response_item")] for records in (old, new)]
        assert items[0] == items[1] and items[0]
        assert total_of(old) == total_of(new) == total_of(old, new)


def test_samples_come_out_as_trees(shared: Path) -> None:
    inside = shared / "samples" / "codex" / "local-0.171.0"
    kinds: Counter[str] = Counter()
    found = found_in(inside)
    for conversation in found:
        store = Landings()
        store.land(conversation)
        kinds += store.kinds()
    lines = [one for path in samples(shared) if "local-0.171.0" in str(path) for one in sample_lines(path)]
    assert (len(found), kinds["session"]) == (6, 6)
    assert kinds["stream"] - kinds["session"] == kinds["agent.call"] == 2
    assert kinds["epoch.boundary"] == sum(one["type"] == "compacted" for one in lines)
    assert kinds["llm.call"] == sum(one["type"] == "token_usage_record" for one in lines)


def test_the_times_of_lines_reach_the_structure(tmp_path: Path) -> None:
    stated = said("user", "hi", 5, internal_chat_message_metadata_passthrough={"create_time": 1777629700.5})
    rollout(tmp_path, PARENT, meta(), said("user", "one", 2), said("assistant", "1", 2), stated)
    store = Landings()
    store.land(found_in(tmp_path)[0])
    times = [entry.time for landed in store.files for entry in landed.entries]
    assert times == [
        1777629599_000_000_000,
        1777629602_000_000_000,
        1777629602_000_000_000,
        1777629700_500_000_000,
    ]
