from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from objstore.digest import hash_bytes
from objstore.kinds import encode
from porcelain.providers import claude
from porcelain.providers.content import ContentSink
from porcelain.providers.reader import Conversation, Entry, LeftOut, ReaderState, Source
from porcelain.providers.records import Changes, Part, Record, Usage

SESSION = "6f1e1c9a-51a4-4c39-9d0e-2a7a54d1b001"
ENVELOPE = {
    "parentUuid": "u0",
    "isSidechain": False,
    "userType": "external",
    "cwd": "/home/mira/kiln",
    "sessionId": SESSION,
    "version": "2.1.300",
    "gitBranch": "glaze",
    "uuid": "u1",
    "timestamp": "2026-03-04T05:06:07.080Z",
}


def entries_of(
    *lines: dict[str, Any] | bytes, kind: Any = "transcript", sink: ContentSink | None = None, **source: Any
) -> list[Entry]:
    state = ReaderState()
    where = Source(path="/nowhere", src="x.jsonl", kind=kind, **source)
    found: list[Entry] = []
    for line in lines:
        data = line if isinstance(line, bytes) else json.dumps(line).encode()
        found += claude.read_line(data, where, state, sink or ContentSink(keep=False))
    return found


def record_of(line: dict[str, Any] | bytes, **more: Any) -> Record:
    (entry,) = entries_of(line, **more)
    assert entry.record is not None
    return entry.record


def user(content: Any, **fields: Any) -> dict[str, Any]:
    return {**ENVELOPE, "type": "user", "message": {"role": "user", "content": content}, **fields}


def assistant(*blocks: dict[str, Any], **message: Any) -> dict[str, Any]:
    return {
        **ENVELOPE,
        "type": "assistant",
        "message": {"role": "assistant", "id": "msg_1", "model": "m-1", "content": list(blocks), **message},
    }


def text_id(text: str) -> str:
    return ContentSink(keep=False).text(text)


def parts_of(record: Record) -> list[Part]:
    assert not isinstance(record.parts, type(UNSET))
    return record.parts


# -- messages --------------------------------------------------------------------------------------------------------


def test_a_typed_prompt() -> None:
    record = record_of(user("Wie heiß?", promptId="p1", origin={"kind": "human"}))
    assert record == Record(
        entry="user",
        flags=["external_input"],
        from_="external",
        id="u1",
        parent="u0",
        parts=[Part(k="text", content=text_id("Wie heiß?"), bytes=10)],
        role="user",
        run="p1",
        time="2026-03-04T05:06:07.080Z",
        trigger="external",
    )


def test_nothing_that_a_copy_states_differently_is_in_the_record() -> None:
    original = user("hello")
    copy = user(
        "hello",
        sessionId="other",
        cwd="/elsewhere",
        version="9",
        gitBranch="b",
        session_id="other",
        forkedFrom={"sessionId": SESSION, "messageUuid": "u1"},
    )
    system = {**ENVELOPE, "type": "system", "subtype": "turn_duration", "durationMs": 5}
    for one, other in ((original, copy), (system, {**system, "sessionId": "o", "cwd": "/e", "version": "9"})):
        assert encode(record_of(one)) == encode(record_of(other))


def test_surroundings_are_the_same_dict_until_they_change() -> None:
    found = entries_of(
        user("a"),
        {"type": "last-prompt", "sessionId": SESSION},
        user("b", forkedFrom={"sessionId": "s0", "messageUuid": "u1"}),
        user("c", gitBranch=""),
        {"type": "mode", "mode": "normal", "sessionId": "other"},
    )
    own = {"session": SESSION, "cwd": "/home/mira/kiln", "branch": "glaze", "version": "2.1.300"}
    assert [dict(entry.values) for entry in found] == [
        own,
        own,
        own | {"forked_from": "s0"},
        {key: value for key, value in own.items() if key != "branch"},
        {"session": "other"},
    ]
    assert found[0].values is found[1].values


def test_an_assistant_message() -> None:
    record = record_of(
        assistant(
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "thinking", "thinking": ""},
            {"type": "redacted_thinking", "data": "x"},
            {"type": "text", "text": "Done."},
            {"type": "tool_use", "id": "t1", "name": "mcp__kilns__fire", "input": {"cone": 6}},
            {"type": "tool_use", "id": "t2", "name": "mcp__a__b__c", "input": {}},
            {"type": "novel", "payload": [1]},
            stop_reason="tool_use",
            usage={
                "input_tokens": 3,
                "output_tokens": 40,
                "cache_read_input_tokens": 5,
                "cache_creation_input_tokens": 6,
                "output_tokens_details": {"thinking_tokens": 7},
                "service_tier": "standard",
            },
        )
    )
    assert (record.from_, record.call, record.model, record.flags) == ("agent", "msg_1", "m-1", ["finished"])
    assert record.usage == Usage(in_=3, out=40, cache_read=5, cache_write=6, reasoning=7)
    assert [(p.k, p.state) for p in parts_of(record)] == [
        ("reasoning", "available"),
        ("reasoning", "unavailable"),
        ("reasoning", "redacted"),
        ("text", "available"),
        ("call", "available"),
        ("call", "available"),
        ("unknown", "available"),
    ]
    fire, other, novel = parts_of(record)[4:]
    assert (fire.id, fire.name, fire.server, fire.server_tool) == ("t1", "mcp__kilns__fire", "kilns", "fire")
    assert fire.data == text_id('{"cone": 6}') and fire.bytes == 11
    assert (other.server, other.server_tool) == (UNSET, UNSET)
    assert novel.data == text_id('{"type": "novel", "payload": [1]}')
    assert not isinstance(record.dropped, type(UNSET))
    assert [(d.what, d.bytes) for d in record.dropped] == [("reasoning signature", 4)]


def test_a_synthetic_message_has_its_flag_and_an_empty_usage() -> None:
    record = record_of(assistant(model="<synthetic>", usage={"input_tokens": 0}))
    assert record.flags == ["synthetic"]
    assert record.usage == Usage()


def result_line(structured: Any, content: Any = "ok", **block: Any) -> dict[str, Any]:
    return user(
        [{"type": "tool_result", "tool_use_id": "t1", "content": content, **block}], toolUseResult=structured
    )


def test_a_tool_result_has_its_text_and_its_structured_form() -> None:
    record = record_of(
        result_line(
            {"stdout": "ok"}, [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], is_error=True
        )
    )
    (part,) = parts_of(record)
    assert (part.k, part.of, part.failed) == ("result", "t1", True)
    assert part.content == text_id("a\nb")
    assert part.data == text_id('{"stdout": "ok"}')
    assert part.bytes == 3 + 16
    assert record.trigger is UNSET and record.flags is UNSET


def test_a_result_that_is_a_bare_string_repeats_the_text_and_is_left_out() -> None:
    (part,) = parts_of(record_of(result_line("Error: no", "no")))
    assert (part.content, part.data) == (text_id("no"), UNSET)


def test_a_result_without_text_keeps_its_own_content_as_data() -> None:
    content = [{"type": "tool_reference", "tool_name": "Kiln"}]
    (part,) = parts_of(record_of(result_line(None, content)))
    assert (part.content, part.data) == (UNSET, text_id(json.dumps(content)))


def test_images_are_parts_of_their_own() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}}
    broken = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "%%"}}
    sink = ContentSink(keep=False)
    for record in (record_of(user([image])), record_of(result_line(None, [image]))):
        part = parts_of(record)[-1]
        assert (part.k, part.media, part.bytes) == ("media", "image/png", 5)
        assert part.content == sink.blob(b"hello", "image/png")
    assert [p.k for p in parts_of(record_of(user([broken])))] == ["unknown"]


@pytest.mark.parametrize(
    ("structured", "changes"),
    [
        (
            {
                "filePath": "/f",
                "structuredPatch": [{"lines": [" a", "-b", "+c", "+d"]}, {"lines": ["+e", "-f", "-g"]}],
            },
            Changes(added=3, files=1, removed=3),
        ),
        (
            {"type": "create", "filePath": "/f", "content": "a\nb\n", "structuredPatch": []},
            Changes(added=2, files=1),
        ),
        (
            {"type": "create", "filePath": "/f", "content": "a\nb", "structuredPatch": []},
            Changes(added=2, files=1),
        ),
        ({"type": "create", "filePath": "/f", "content": "", "structuredPatch": []}, Changes(files=1)),
        ({"filePath": "/f", "stdout": ""}, UNSET),
    ],
)
def test_changes_are_counted_from_the_structured_result(structured: Any, changes: Any) -> None:
    assert record_of(result_line(structured)).changes == changes


def test_a_sub_agent_is_named_by_the_result_that_launched_it_or_ended_it() -> None:
    launched = record_of(result_line({"status": "async_launched", "agentId": "a1", "isAsync": True}))
    assert (launched.child, launched.flags) == ("a1", ["launch_ack"])
    ended = record_of(
        result_line({"status": "completed", "agentId": "a1", "runId": "wf_1", "toolUseId": "t9"})
    )
    assert (ended.child, ended.flags, ended.batch, ended.tool) == ("a1", ["child_result"], "wf_1", "t9")
    shell = record_of(result_line({"status": "completed", "shellId": "s"}))
    assert (shell.child, shell.flags) == (UNSET, UNSET)


def test_a_notification_names_agent_and_tool() -> None:
    agent = "a0123456789abcdef"
    text = (
        f"<task-notification>\n<task-id>{agent}</task-id>\n<tool-use-id>t7</tool-use-id></task-notification>"
    )
    record = record_of(user(text, origin={"kind": "task-notification"}))
    assert (record.child, record.tool, record.trigger, record.flags) == (agent, "t7", "notification", UNSET)


@pytest.mark.parametrize(
    ("fields", "trigger", "flags"),
    [
        ({"origin": {"kind": "human"}}, "external", ["external_input"]),
        ({"origin": {"kind": "robot"}}, "unknown", UNSET),
        ({"promptSource": "sdk"}, "external", ["external_input"]),
        ({"promptSource": "system"}, UNSET, UNSET),
        ({"promptSource": "sdk", "isMeta": True}, UNSET, ["injected"]),
        ({"isCompactSummary": True}, UNSET, ["reset_summary"]),
        ({"isSidechain": True}, UNSET, UNSET),
        ({}, "external", ["external_input"]),
        ({"message": {"role": "user", "content": "[Request interrupted by user]"}}, UNSET, UNSET),
        ({"message": {"role": "user", "content": "<command-name>/clear</command-name>"}}, UNSET, UNSET),
        (
            {"message": {"role": "user", "content": [{"type": "text", "text": "hi"}]}},
            "external",
            ["external_input"],
        ),
    ],
)
def test_what_triggered_a_user_record(fields: dict[str, Any], trigger: Any, flags: Any) -> None:
    record = record_of(user("fire it", **fields))
    assert (record.trigger, record.flags) == (trigger, flags)


# -- other lines -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "entry", "flags"),
    [
        (
            {"type": "system", "subtype": "compact_boundary", "logicalParentUuid": "u9"},
            None,
            ["context_reset"],
        ),
        ({"type": "system", "subtype": "api_error"}, None, ["error"]),
        ({"type": "system", "subtype": "turn_duration"}, None, ["turn_duration"]),
        ({"type": "system", "subtype": "local_command"}, None, ["command"]),
        ({"type": "system", "subtype": "away_summary"}, None, ["notice"]),
        ({"type": "progress", "data": {"type": "hook_progress"}}, "progress/hook_progress", UNSET),
        ({"type": "queue-operation", "operation": "enqueue"}, "queue-operation/enqueue", UNSET),
        ({"type": "api-request-shape", "shape": {"system": []}}, "api-request-shape", UNSET),
    ],
)
def test_lines_without_a_message_are_one_data_part(
    line: dict[str, Any], entry: str | None, flags: Any
) -> None:
    record = record_of({**ENVELOPE, **line})
    assert record.entry == (entry or f"system/{line['subtype']}")
    assert (record.flags, record.from_, record.role) == (flags, "runtime", UNSET)
    assert record.continues == line.get("logicalParentUuid", UNSET)
    kept = {
        key: value
        for key, value in {**ENVELOPE, **line}.items()
        if key not in ("sessionId", "cwd", "gitBranch", "version")
    }
    sink = ContentSink(keep=True)
    record_of({**ENVELOPE, **line}, sink=sink)
    assert [json.loads(json.loads(data)["text"]) for _kind, data in sink.found] == [kept]


@pytest.mark.parametrize(
    ("attachment", "flags", "text"),
    [
        ({"type": "queued_command", "commandMode": "prompt", "prompt": "wait"}, ["external_input"], "wait"),
        ({"type": "date", "date": "2026-03-04"}, ["injected"], None),
        ({"type": "model", "text": "You are"}, ["injected"], "You are"),
        ({"type": "skill_listing", "content": "- fire"}, ["injected"], "- fire"),
        ({"type": "hook_success", "content": ""}, ["injected"], None),
        ({"type": "prompt_snapshot", "systemPrompt": ["x"]}, ["injected", "system_prompt"], None),
    ],
)
def test_attachments(attachment: dict[str, Any], flags: list[str], text: str | None) -> None:
    record = record_of({**ENVELOPE, "type": "attachment", "attachment": attachment})
    assert (record.entry, record.flags) == (f"attachment/{attachment['type']}", flags)
    (part,) = parts_of(record)
    if text is None:
        assert (part.k, part.data) == ("data", text_id(json.dumps(attachment)))
    else:
        assert (part.k, part.content) == ("text", text_id(text))


def test_only_a_title_that_a_person_gave_is_in_clear() -> None:
    given = record_of({"type": "custom-title", "customTitle": "Raku tests", "sessionId": SESSION})
    assert (given.label, given.label_content, given.entry) == ("Raku tests", UNSET, claude.TITLE_ENTRY)
    for title in ("my first prompt (Branch)", "my first prompt (Branch 2)"):
        branched = record_of({"type": "custom-title", "customTitle": title, "sessionId": SESSION})
        assert (branched.label, branched.label_content) == (UNSET, text_id(title))
    for kind, field in (("ai-title", "aiTitle"), ("agent-name", "agentName"), ("summary", "summary")):
        record = record_of({"type": kind, field: "Model's words", "sessionId": SESSION})
        assert (record.label, record.label_content) == (UNSET, text_id("Model's words"))
        assert b"Model" not in encode(record)


def test_no_content_is_in_a_record() -> None:
    secret = "quartz inversion"
    lines = [
        user(secret),
        assistant(
            {"type": "text", "text": secret}, {"type": "thinking", "thinking": secret, "signature": secret}
        ),
        assistant({"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": secret}}),
        result_line({"stdout": secret}, secret),
        {**ENVELOPE, "type": "system", "subtype": "informational", "content": secret},
        {**ENVELOPE, "type": "attachment", "attachment": {"type": "file", "content": {"x": secret}}},
        {"type": "last-prompt", "lastPrompt": secret, "sessionId": SESSION},
        {"type": "summary", "summary": secret, "leafUuid": "u1"},
    ]
    for line in lines:
        assert secret.encode() not in encode(record_of(line))


def test_fields_of_unexpected_types_are_left_out_and_the_line_still_lands() -> None:
    record = record_of(
        {
            **user("hello"),
            "uuid": 5,
            "isMeta": "no",
            "origin": "human",
            "timestamp": "soon",
            "message": {
                "role": ["user"],
                "content": [7, "plain", {"type": "text", "text": "t"}, {"type": "text", "text": 1}],
                "usage": {"input_tokens": "many", "output_tokens": 2},
            },
        }
    )
    assert (record.id, record.time, record.role, record.parent) == (UNSET, UNSET, UNSET, "u0")
    assert [p.k for p in parts_of(record)] == ["unknown", "text", "text", "unknown"]
    odd = record_of(
        {**ENVELOPE, "type": "assistant", "message": {"usage": {"input_tokens": -1, "output_tokens": 2}}}
    )
    assert odd.usage == Usage(out=2)
    assert record_of({**ENVELOPE, "type": "user", "message": "not an object"}).parts is not UNSET
    assert record_of({"type": 3, "uuid": "u"}).entry is UNSET


def test_ids_that_are_no_ids_are_not_taken() -> None:
    record = record_of(user("x", uuid="u" * 300, promptId=""))
    assert (record.id, record.run) == (UNSET, UNSET)


def test_a_lone_surrogate_gives_the_same_record_as_the_replacement_character() -> None:
    line = json.dumps(user("a\ud83d")).encode()
    assert rb"\ud83d" in line
    assert record_of(line) == record_of(user("a\ufffd"))


def test_damaged_lines_are_set_aside_with_their_place() -> None:
    whole = json.dumps(user("x")).encode()
    cut = b'{"type":"pr-link","sessionId":"s","prNu'
    found = entries_of(cut + whole)
    assert [(e.start, e.length, e.damage) for e in found] == [
        (0, len(cut), "cut-record"),
        (len(cut), len(whole), None),
    ]
    # A content block is an object with a type, but no record of a conversation.
    block = b'{"type":"text","text":"x"}'
    assert [e.damage for e in entries_of(b'{"a":"' + block)] == ["cut-record"]
    assert [e.damage for e in entries_of(block + whole)] == ["cut-record", None]


# -- sidecars --------------------------------------------------------------------------------------------------------


def test_the_sidecar_of_an_agent() -> None:
    record = record_of(
        {"agentType": "Explore", "description": "Look", "toolUseId": "t3", "parentAgentId": "a0"},
        kind="agent_meta",
        shape="document",
        stream="a1",
    )
    assert (record.child, record.tool, record.started_by) == ("a1", "t3", "a0")
    assert (record.entry, record.label, record.label_content) == ("agent_meta", UNSET, text_id("Look"))


def test_a_journal() -> None:
    started, ended = (
        record_of(line, kind="journal", stream=None, batch="wf_1")
        for line in (
            {"type": "started", "key": "k", "agentId": "a1"},
            {"type": "result", "key": "k", "agentId": "a1", "result": {"ok": True}},
        )
    )
    assert (started.entry, started.child, started.batch, started.flags) == (
        "journal/started",
        "a1",
        "wf_1",
        UNSET,
    )
    assert (ended.entry, ended.flags) == ("journal/result", ["child_result"])


def test_a_manifest_and_a_script() -> None:
    manifest = record_of({"workflowName": "Fire"}, kind="workflow_manifest", stream=None, batch="wf_1")
    assert (manifest.batch, manifest.label_content) == ("wf_1", text_id("Fire"))
    script = record_of(b"run()\n", kind="workflow_script", stream=None, batch="wf_1")
    assert [(p.k, p.content) for p in parts_of(script)] == [("unknown", text_id("run()\n"))]


# -- discovery -------------------------------------------------------------------------------------------------------


def write(path: Path, *lines: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def found_in(root: Path, **seen: Any) -> tuple[dict[str, list[tuple[str, str, str | None]]], dict[str, str]]:
    conversations: dict[str, list[tuple[str, str, str | None]]] = {}
    left: dict[str, str] = {}
    for found in claude.discover(root, **seen):
        if isinstance(found, LeftOut):
            left[Path(found.path).name] = found.reason
        else:
            conversations[found.native_id] = [(s.src, s.kind, s.stream) for s in found.sources]
    return conversations, left


def test_discovery(tmp_path: Path) -> None:
    projects = tmp_path / "projects"
    folder = projects / "-home-mira-kiln"
    write(folder / f"{SESSION}.jsonl", {"type": "mode", "sessionId": SESSION}, user("x"))
    write(folder / "agent-0a1b2c3d.jsonl", user("y", agentId="0a1b2c3d", isSidechain=True))
    write(folder / "agent-ffffffff.jsonl", user("Warmup", agentId="ffffffff", isSidechain=True))
    write(folder / "only-summaries.jsonl", {"type": "summary", "summary": "s", "leafUuid": "u"})
    write(folder / "foreign.jsonl", {"type": "session", "id": "p"}, {"role": "user"})
    write(folder / "empty.jsonl")
    inside = folder / SESSION
    write(inside / "subagents" / "agent-a1.jsonl", user("z"))
    write(inside / "subagents" / "agent-a1.meta.json", {"agentType": "Explore"})
    write(inside / "subagents" / "agent-a2.jsonl")
    run = inside / "subagents" / "workflows" / "wf_9"
    write(run / "agent-a3.jsonl", user("w"))
    write(run / "journal.jsonl", {"type": "started", "key": "k", "agentId": "a3"})
    write(inside / "workflows" / "wf_9.json", {"workflowName": "Fire"})
    write(inside / "workflows" / "scripts" / "my-wf_old-wf_9.js")
    (inside / "workflows" / "scripts" / "my-wf_old-wf_9.js").write_text("run()")
    write(inside / "tool-results" / "t.txt", {})
    # Sub-agents of a session whose own file is elsewhere, or not there.
    write(projects / "-home-mira-other" / "lost" / "subagents" / "agent-a4.jsonl", user("v"))
    conversations, left = found_in(tmp_path)
    assert conversations == {
        SESSION: [
            (f"{SESSION}.jsonl", "transcript", "main"),
            ("agent-0a1b2c3d.jsonl", "transcript", "0a1b2c3d"),
            ("subagents/agent-a1.jsonl", "transcript", "a1"),
            ("subagents/agent-a1.meta.json", "agent_meta", "a1"),
            ("subagents/workflows/wf_9/agent-a3.jsonl", "transcript", "a3"),
            ("subagents/workflows/wf_9/journal.jsonl", "journal", None),
            ("workflows/wf_9.json", "workflow_manifest", None),
            ("workflows/scripts/my-wf_old-wf_9.js", "workflow_script", None),
        ],
        "lost": [("subagents/agent-a4.jsonl", "transcript", "a4")],
    }
    assert left == {
        "agent-ffffffff.jsonl": "warmup",
        "only-summaries.jsonl": "no-conversation",
        "foreign.jsonl": "other-agent",
        "empty.jsonl": "empty",
        "agent-a2.jsonl": "empty",
    }
    batches = {
        s.src: s.batch
        for found in claude.discover(tmp_path)
        if isinstance(found, Conversation)
        for s in found.sources
        if s.batch is not None
    }
    assert set(batches.values()) == {"wf_9"} and len(batches) == 4


def test_discovery_reads_nothing_that_was_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a.jsonl", user("x"))
    write(tmp_path / "b.jsonl", {"type": "summary", "summary": "s"})

    def refuse(path: str) -> Any:
        raise AssertionError(f"read {path}")

    monkeypatch.setattr("porcelain.providers.claude_discover._sniff", refuse)
    known = {str(tmp_path / "a.jsonl"): "native", str(tmp_path / "b.jsonl"): ""}
    conversations, left = found_in(tmp_path, seen=known.get)
    assert conversations == {"native": [("a.jsonl", "transcript", "main")]}
    assert left == {"b.jsonl": "no-conversation"}


def test_a_file_that_is_not_named_by_its_session_takes_the_id_from_its_records(tmp_path: Path) -> None:
    for name, native_id in (("export.jsonl", SESSION), ("11111111-2222-4333-8444-555555555555.jsonl", None)):
        found = claude.recognise(write(tmp_path / name, {"type": "summary", "summary": "s"}, user("x")))
        assert found is not None
        assert found.native_id == (native_id or name.removesuffix(".jsonl"))


def test_recognising_one_file_takes_what_belongs_to_it(tmp_path: Path) -> None:
    main = write(tmp_path / f"{SESSION}.jsonl", user("x"))
    write(tmp_path / SESSION / "subagents" / "agent-a1.jsonl", user("y"))
    found = claude.recognise(main)
    assert found is not None
    assert [s.src for s in found.sources] == [main.name, "subagents/agent-a1.jsonl"]
    assert claude.recognise(tmp_path / "absent.jsonl") is None
    assert claude.recognise(tmp_path) is None
    assert claude.recognise(write(tmp_path / "pi.jsonl", {"type": "session", "id": "p"})) is None


# -- samples ---------------------------------------------------------------------------------------------------------


def objects_of(data: bytes) -> tuple[list[dict[str, Any]], int]:
    """The objects in a file by the standard library alone, and how many lines hold something else."""
    objects: list[dict[str, Any]] = []
    bad = 0
    for line in data.split(b"\n"):
        text = line.decode().strip()
        at = 0
        while at < len(text):
            try:
                value, at = json.JSONDecoder().raw_decode(text, at)
            except ValueError:
                bad += 1
                break
            if isinstance(value, dict):
                objects.append(value)
            else:
                bad += 1
    return objects, bad


def blocks_of(line: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    message = line.get("message")
    content = (
        message.get("content")
        if isinstance(message, dict) and line.get("type") in ("user", "assistant")
        else ()
    )
    return [b for b in content or () if isinstance(b, dict) and b.get("type") == kind]


def test_every_sample_gives_what_an_independent_count_of_it_gives(shared: Path) -> None:
    files = sorted((shared / "samples" / "claude").rglob("*.jsonl"))
    assert len(files) > 20
    for path in files:
        data = path.read_bytes()
        source = Source(path=str(path), src=path.name)
        state = ReaderState()
        sink = ContentSink(keep=False)
        entries = [
            entry
            for line in data.split(b"\n")
            if line.strip()
            for entry in claude.read_line(line, source, state, sink)
        ]
        records = [entry.record for entry in entries if entry.record is not None]
        objects, bad = objects_of(data)
        assert len(records) == len(objects), path.name
        assert sum(entry.damage is not None for entry in entries) == bad, path.name
        assert [r.id for r in records] == [o.get("uuid") or UNSET for o in objects], path.name
        assert [r.parent for r in records] == [o.get("parentUuid") or UNSET for o in objects], path.name
        for kind, part, name in (("tool_use", "call", "id"), ("tool_result", "result", "of")):
            expected = [
                b.get("id" if kind == "tool_use" else "tool_use_id", UNSET)
                for o in objects
                for b in blocks_of(o, kind)
            ]
            given = [getattr(p, name) for r in records if r.parts for p in parts_of(r) if p.k == part]
            assert given == expected, path.name
        tokens = Counter[str]()
        stated = Counter[str]()
        for record, line in zip(records, objects, strict=True):
            if isinstance(record.usage, Usage):
                tokens.update(
                    {"in": record.usage.in_, "out": record.usage.out, "read": record.usage.cache_read}
                )
            usage = line["message"].get("usage") if line.get("type") == "assistant" else None
            if usage:
                stated.update(
                    {
                        "in": usage.get("input_tokens") or 0,
                        "out": usage.get("output_tokens") or 0,
                        "read": usage.get("cache_read_input_tokens") or 0,
                    }
                )
        assert tokens == stated, path.name


def test_a_branch_shares_the_records_of_the_conversation_it_was_made_from(shared: Path) -> None:
    folder = shared / "samples" / "claude" / "local-2.1.332-tui" / "projects" / "-home-dev-projects-demo"
    ids: list[dict[str, str]] = []
    parents: list[dict[str, str]] = []
    for name in ("2025efba-07b3-479c-a156-d6f91e9b3516.jsonl", "fbaf870f-0496-4ad7-b1f9-027057c2e124.jsonl"):
        lines = [line for line in (folder / name).read_bytes().split(b"\n") if line]
        found, above = {}, {}
        for line, entry in zip(lines, entries_of(*lines), strict=True):
            assert entry.record is not None
            stated = json.loads(line)
            if uuid := stated.get("uuid"):
                found[uuid] = hash_bytes(encode(entry.record)).hex()
                above[uuid] = stated["parentUuid"]
        ids.append(found)
        parents.append(above)
    copied = ids[0].keys() & ids[1].keys()
    assert len(copied) == 50
    # Around the compaction the program links three copies to other parents than the originals have.
    relinked = {uuid for uuid in copied if parents[0][uuid] != parents[1][uuid]}
    assert {uuid for uuid in copied if ids[0][uuid] != ids[1][uuid]} == relinked
    assert len(relinked) == 3
