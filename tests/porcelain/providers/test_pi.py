from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from objstore.kinds import encode
from porcelain.providers import pi
from porcelain.providers.content import ContentSink
from porcelain.providers.reader import Entry, LeftOut, ReaderState, Source
from porcelain.providers.records import Changes, Part, Record, Usage

HEADER = {
    "type": "session",
    "version": 3,
    "id": "s1",
    "timestamp": "2026-03-04T05:06:07.080Z",
    "cwd": "/home/mira/kiln",
}
ENTRY = {"id": "e1", "parentId": "e0", "timestamp": "2026-03-04T05:06:08.000Z"}


def entries_of(*lines: dict[str, Any] | bytes, sink: ContentSink | None = None) -> list[Entry]:
    state = ReaderState()
    source = Source(path="/nowhere", src="x.jsonl")
    found: list[Entry] = []
    for line in lines:
        data = line if isinstance(line, bytes) else json.dumps(line).encode()
        found += pi.read_line(data, source, state, sink or ContentSink(keep=False))
    return found


def record_of(line: dict[str, Any] | bytes) -> Record:
    (entry,) = entries_of(line)
    assert entry.record is not None
    return entry.record


def message(role: str, content: Any = UNSET, **fields: Any) -> dict[str, Any]:
    stated = {"role": role, "timestamp": 1_772_600_768_000, **fields}
    if content is not UNSET:
        stated["content"] = content
    return {"type": "message", **ENTRY, "message": stated}


def entry(kind: str, /, **fields: Any) -> dict[str, Any]:
    return {"type": kind, **ENTRY, **fields}


def text_id(text: str) -> str:
    return ContentSink(keep=False).text(text)


def parts_of(record: Record) -> list[Part]:
    assert not isinstance(record.parts, type(UNSET))
    return record.parts


def test_the_header_gives_the_surroundings_of_all_lines() -> None:
    found = entries_of({**HEADER, "parentSession": "/home/mira/old.jsonl"}, message("user", "hi"))
    values = {
        "session": "s1",
        "cwd": "/home/mira/kiln",
        "version": "3",
        "forked_from": "/home/mira/old.jsonl",
    }
    assert [dict(e.values) for e in found] == [values, values]
    for e in found:
        assert e.record is not None
        assert b"s1" not in encode(e.record) and b"mira" not in encode(e.record)


def test_a_header_of_version_1() -> None:
    (found,) = entries_of(
        {
            "type": "session",
            "id": "s",
            "timestamp": "x",
            "cwd": "/c",
            "modelId": "m",
            "branchedFrom": "/old.jsonl",
        }
    )
    assert dict(found.values) == {"session": "s", "cwd": "/c", "version": "1", "forked_from": "/old.jsonl"}
    assert found.record is not None
    assert (found.record.model, found.record.time) == ("m", UNSET)


@pytest.mark.parametrize("content", ["hi", [{"type": "text", "text": "hi"}]])
def test_a_prompt(content: Any) -> None:
    assert record_of(message("user", content)) == Record(
        entry="message/user",
        flags=["external_input"],
        from_="external",
        id="e1",
        parent="e0",
        parts=[Part(k="text", content=text_id("hi"), bytes=2)],
        role="user",
        run="e1",
        time="2026-03-04T05:06:08.000Z",
        trigger="external",
    )


def test_a_run_is_what_follows_a_prompt() -> None:
    answer = {**message("assistant", "yes"), "id": "e2"}
    again = {**message("user", "more"), "id": "e3"}
    found = entries_of(HEADER, entry("model_change"), message("user", "hi"), answer, again, answer)
    assert [e.record.run for e in found if e.record is not None] == [UNSET, UNSET, "e1", "e1", "e3", "e3"]
    assert all(set(e.values) == {"session", "cwd", "version"} for e in found)
    old = {"type": "message", "message": {"role": "user", "content": "hi"}, "timestamp": "x"}
    assert [e.record.run for e in entries_of(old, old) if e.record is not None] == ["prompt-1", "prompt-2"]


def test_an_answer() -> None:
    record = record_of(
        message(
            "assistant",
            [
                {"type": "thinking", "thinking": "hm", "thinkingSignature": "c2ln"},
                {"type": "text", "text": "Done."},
                {"type": "toolCall", "id": "t1", "name": "bash", "arguments": {"command": "ls"}},
                {"type": "novel", "x": 1},
            ],
            model="m-1",
            stopReason="toolUse",
            responseId="r1",
            usage={
                "input": 1,
                "output": 2,
                "cacheRead": 3,
                "cacheWrite": 4,
                "reasoning": 1,
                "cost": {"total": 0.1},
            },
        )
    )
    assert (record.call, record.model, record.flags, record.from_) == ("r1", "m-1", ["finished"], "agent")
    assert record.usage == Usage(in_=1, out=2, cache_read=3, cache_write=4, reasoning=1)
    assert [p.k for p in parts_of(record)] == ["reasoning", "text", "call", "unknown"]
    call, novel = parts_of(record)[2:]
    assert (call.id, call.name, call.data) == ("t1", "bash", text_id('{"command": "ls"}'))
    assert novel.data == text_id('{"type": "novel", "x": 1}')


def test_a_failed_answer_is_told_by_its_entry_id() -> None:
    record = record_of(message("assistant", [], stopReason="error", usage={"input": 0, "output": 0}))
    assert (record.call, record.flags, record.usage, record.parts) == ("e1", ["error"], Usage(), UNSET)


def test_a_tool_result() -> None:
    diff = "  1 same\n- 2 old\n+ 2 new\n+ 3 more"
    record = record_of(
        message(
            "toolResult",
            [{"type": "text", "text": "ok"}, {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}],
            toolCallId="t1",
            toolName="edit",
            isError=False,
            details={"diff": diff},
        )
    )
    result, image = parts_of(record)
    assert (result.k, result.of, result.name, result.failed) == ("result", "t1", "edit", False)
    assert (result.content, result.data) == (text_id("ok"), text_id(json.dumps({"diff": diff})))
    assert (image.k, image.media, image.bytes) == ("media", "image/png", 5)
    assert record.changes == Changes(added=2, files=1, removed=1)
    failed = record_of(message("toolResult", "no", isError=True, details={}))
    assert (failed.changes, parts_of(failed)[0].data, parts_of(failed)[0].failed) == (UNSET, UNSET, True)


@pytest.mark.parametrize(
    ("role", "from_", "flags"),
    [
        ("bashExecution", "external", ["command"]),
        ("system", "runtime", ["injected"]),
        ("custom", "runtime", ["injected"]),
        ("hookMessage", "runtime", ["injected"]),
    ],
)
def test_other_roles_are_kept_whole(role: str, from_: str, flags: list[str]) -> None:
    line = message(role, command="ls", output="x")
    record = record_of(line)
    assert (record.from_, record.flags, record.role, record.trigger) == (from_, flags, role, UNSET)
    assert [p.data for p in parts_of(record)] == [text_id(json.dumps(line["message"]))]


def test_a_compaction_and_the_summary_of_a_branch() -> None:
    compaction = record_of(
        entry(
            "compaction",
            summary="So far",
            firstKeptEntryId="e7",
            tokensBefore=9,
            usage={"input": 5, "output": 6},
        )
    )
    assert (compaction.flags, compaction.continues) == (["context_reset", "reset_summary"], "e0")
    assert compaction.usage == Usage(in_=5, out=6)
    assert [(p.k, p.of, p.content) for p in parts_of(compaction)] == [
        ("text", UNSET, text_id("So far")),
        ("data", "e7", UNSET),
    ]
    branch = record_of(entry("branch_summary", summary="There", fromId="e3"))
    assert (branch.flags, parts_of(branch)[1].of) == (["notice"], "e3")
    assert b"So far" not in encode(compaction) and b"There" not in encode(branch)


def test_names_and_labels_that_a_person_gave_are_in_clear() -> None:
    title = record_of(entry("session_info", name="Raku tests"))
    assert (title.label, title.entry, title.parts) == ("Raku tests", pi.TITLE_ENTRY, UNSET)
    assert record_of(entry("session_info", name="")).label == ""
    label = record_of(entry("label", targetId="e5", label="checkpoint"))
    assert (label.label, parts_of(label)[0].of) == ("checkpoint", "e5")
    assert record_of(entry("label", targetId="e5")).label is UNSET


def test_other_entries() -> None:
    change = record_of(entry("model_change", provider="p", modelId="m-2"))
    assert (change.model, change.entry, [p.k for p in parts_of(change)]) == ("m-2", "model_change", ["data"])
    injected = record_of(entry("custom_message", customType="x", content="Note", display=True))
    assert (injected.flags, parts_of(injected)[0].content) == (["injected"], text_id("Note"))
    usage = record_of(entry("usage", kind="title", model="m", usage={"input": 1, "output": 2}))
    assert (usage.usage, usage.model) == (Usage(in_=1, out=2), "m")


def test_entries_of_version_1_have_no_ids_and_fall_back_to_the_messages_time() -> None:
    record = record_of(
        {"type": "message", "message": {"role": "user", "content": "x", "timestamp": 1_772_600_768_009}}
    )
    assert (record.id, record.parent, record.time) == (UNSET, UNSET, "2026-03-04T05:06:08.009Z")


def test_fields_of_unexpected_types_are_left_out() -> None:
    record = record_of(
        {**message("user", [1, {"type": "text", "text": "t"}], usage={"input": "x", "output": 1}), "id": 7}
    )
    assert (record.id, record.usage) == (UNSET, Usage(out=1))
    assert [p.k for p in parts_of(record)] == ["unknown", "text"]


def test_a_cut_line_before_a_whole_one() -> None:
    whole = json.dumps(message("user", "x")).encode()
    cut = b'{"type":"message","id":"e9","mess'
    assert [(e.start, e.damage) for e in entries_of(cut + whole)] == [(0, "cut-record"), (len(cut), None)]


# -- discovery -------------------------------------------------------------------------------------------------------


def write(path: Path, *lines: dict[str, Any] | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in lines))
    return path


def test_discovery(tmp_path: Path) -> None:
    folder = tmp_path / "sessions" / "--home-mira--"
    prompt = message("user", "x")
    slot = {"type": "title", "v": 1, "title": "t", "updatedAt": "u", "pad": " "}
    write(folder / "2026_a.jsonl", HEADER, prompt)
    write(folder / "2026_b-file.jsonl", "not a header", prompt)
    write(folder / "2026_c.jsonl", HEADER)
    write(folder / "2026_d.jsonl", {**HEADER, "titleSource": "user"}, prompt)
    write(folder / "2026_e.jsonl", slot, HEADER, prompt)
    write(folder / "2026_f.jsonl", HEADER, entry("model_change", model="p/m"), prompt)
    write(folder / "2026_g.jsonl")
    write(folder / "2026_h.jsonl", {"type": "user", "uuid": "u", "sessionId": "s"})
    write(folder / "notes.txt", HEADER)
    found = list(pi.discover(tmp_path))
    names = {
        Path(f.path if isinstance(f, LeftOut) else f.sources[0].path).name: f.reason
        if isinstance(f, LeftOut)
        else f.native_id
        for f in found
    }
    assert names == {
        "2026_a.jsonl": "s1",
        "2026_b-file.jsonl": "b-file",
        "2026_c.jsonl": "no-conversation",
        "2026_d.jsonl": "other-agent",
        "2026_e.jsonl": "other-agent",
        "2026_f.jsonl": "other-agent",
        "2026_g.jsonl": "empty",
        "2026_h.jsonl": "other-agent",
    }


def test_discovery_reads_nothing_that_was_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.jsonl", HEADER, message("user", "x"))

    def refuse(path: str) -> Any:
        raise AssertionError(f"read {path}")

    monkeypatch.setattr("porcelain.providers.pi_discover._sniff", refuse)
    (found,) = pi.discover(tmp_path, {str(path): "native"}.get)
    assert not isinstance(found, LeftOut)
    assert found.native_id == "native"


def test_recognising_one_file(tmp_path: Path) -> None:
    found = pi.recognise(write(tmp_path / "x.jsonl", HEADER, message("user", "x")))
    assert found is not None
    assert (found.native_id, [s.src for s in found.sources]) == ("s1", ["x.jsonl"])
    assert pi.recognise(tmp_path) is None
    assert pi.recognise(tmp_path / "absent.jsonl") is None


# -- samples ---------------------------------------------------------------------------------------------------------


def test_every_sample_gives_what_an_independent_count_of_it_gives(shared: Path) -> None:
    files = sorted((shared / "samples" / "pi").rglob("*.jsonl"))
    assert len(files) > 15
    for path in files:
        conversation = pi.recognise(path)
        assert conversation is not None, path.name
        lines = [line for line in path.read_bytes().split(b"\n") if line.strip()]
        objects = []
        for line in lines:
            try:
                objects.append(json.loads(line))
            except ValueError:
                continue
        assert conversation.native_id == objects[0]["id"], path.name
        entries = entries_of(*lines)
        records = [e.record for e in entries if e.record is not None]
        assert len(records) == len(objects), path.name
        assert len(entries) == len(lines), path.name
        tree = [o for o in objects if o["type"] != "session"]
        assert [r.id for r in records[1:]] == [o.get("id", UNSET) for o in tree], path.name
        assert [r.parent for r in records[1:]] == [o.get("parentId") or UNSET for o in tree], path.name
        messages = [o["message"] for o in tree if o["type"] == "message"]
        calls = [
            b["id"]
            for m in messages
            if isinstance(m.get("content"), list)
            for b in m["content"]
            if b["type"] == "toolCall"
        ]
        given = [p.id for r in records if r.parts for p in parts_of(r) if p.k == "call"]
        assert given == calls, path.name
        results = [m["toolCallId"] for m in messages if m["role"] == "toolResult"]
        assert [p.of for r in records if r.parts for p in parts_of(r) if p.k == "result"] == results, (
            path.name
        )
        roles = Counter(m["role"] for m in messages)
        assert Counter(r.role for r in records if isinstance(r.role, str)) == roles, path.name
        stated = sum(holder["usage"]["output"] for holder in [*messages, *tree] if holder.get("usage"))
        assert sum(r.usage.out for r in records if isinstance(r.usage, Usage)) == stated, path.name


def test_a_fork_shares_the_records_of_its_source(shared: Path) -> None:
    folder = shared / "samples" / "pi" / "local-1.6.0" / "sessions" / "--home-dev-projects-demo--"
    found = []
    for stamp in ("11-07-25", "11-07-28", "11-07-29"):
        (path,) = folder.glob(f"*T{stamp}-*.jsonl")
        lines = path.read_bytes().splitlines()
        found.append(
            {
                json.loads(line)["id"]: encode(e.record)
                for line, e in zip(lines[1:], entries_of(*lines)[1:], strict=True)
                if e.record is not None
            }
        )
    source, fork, clone = found
    assert len(source.keys() & fork.keys()) == 26
    assert len(fork.keys() & clone.keys()) == 30
    assert all(source[i] == fork[i] for i in source.keys() & fork.keys())
    assert all(fork[i] == clone[i] for i in fork.keys() & clone.keys())


def test_files_of_oh_my_pi_are_not_taken(shared: Path) -> None:
    files = sorted((shared / "samples" / "oh-my-pi" / "local-14.9.9").rglob("*.jsonl"))
    assert files
    assert [path.name for path in files if pi.recognise(path) is not None] == []


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    folder = tmp_path / "sessions" / "--x--"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "2026-01-01T00-00-00-000Z_a.jsonl")
    assert [one.reason for one in pi.discover(tmp_path / "sessions") if isinstance(one, LeftOut)] == [
        "unreadable"
    ]
