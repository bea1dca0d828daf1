from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from objstore.kinds import encode
from porcelain.flow.assembly import assemble
from porcelain.flow.assembly.entries import Landed, from_page
from porcelain.flow.formats.sd import sd_bytes
from porcelain.providers import omp, omp_dialect, pi
from porcelain.providers.chunks import LandedChunk, LandingOptions
from porcelain.providers.content import ContentSink
from porcelain.providers.cursor import Cursor, KnownFiles
from porcelain.providers.landing import land_conversation
from porcelain.providers.reader import Conversation, Entry, LeftOut, ReaderState, Seen, Source
from porcelain.providers.records import Part, Record, Usage
from porcelain.providers.redaction import redact

HEADER = {
    "type": "session",
    "version": 3,
    "id": "s1",
    "timestamp": "2026-03-04T05:06:07.080Z",
    "cwd": "/home/mira/kiln",
}
MODEL = {"type": "model_change", "id": "m0", "parentId": None, "timestamp": "x", "model": "p/m-1"}


def entry(kind: str, number: int = 1, **fields: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "id": f"e{number}",
        "parentId": f"e{number - 1}",
        "timestamp": f"2026-03-04T05:07:{number:02d}.000Z",
        **fields,
    }


def message(role: str, content: Any = UNSET, number: int = 1, **fields: Any) -> dict[str, Any]:
    stated = {"role": role, **fields}
    if content is not UNSET:
        stated["content"] = content
    return entry("message", number, message=stated)


def slot(title: str, source: str = "user") -> bytes:
    """A line for the title, 256 bytes long with its newline."""
    stated = {
        "type": "title",
        "v": 1,
        "title": title,
        "source": source,
        "updatedAt": "2026-03-04T06:00:00.000Z",
    }
    short = len(json.dumps({**stated, "pad": ""}))
    return json.dumps({**stated, "pad": " " * (255 - short)}).encode()


def data_of(*lines: dict[str, Any] | bytes) -> list[bytes]:
    return [one if isinstance(one, bytes) else json.dumps(one).encode() for one in lines]


def entries_of(
    *lines: dict[str, Any] | bytes, stream: str = "main", sink: ContentSink | None = None
) -> list[Entry]:
    state = ReaderState()
    source = Source(path="/nowhere", src="x.jsonl", stream=stream)
    found: list[Entry] = []
    for one in data_of(*lines):
        found += omp.read_line(one, source, state, sink or ContentSink(keep=False))
    return found


def records_of(*lines: dict[str, Any] | bytes, stream: str = "main") -> list[Record]:
    return [one.record for one in entries_of(*lines, stream=stream) if one.record is not None]


def parts_of(record: Record) -> list[Part]:
    assert record.parts is not UNSET
    return list(record.parts)


def text_id(text: str) -> str:
    return ContentSink(keep=False).text(text)


def transcript(path: Path, *lines: dict[str, Any] | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(one + b"\n" for one in data_of(*lines)))
    return path


def found_in(root: Path) -> list[Conversation]:
    return [one for one in omp.discover(root) if isinstance(one, Conversation)]


class Landings:
    """What a store keeps of one conversation between imports."""

    def __init__(self) -> None:
        self.cursors: dict[str, Cursor] = {}
        self.files: list[Landed] = []
        self.records: list[Record] = []
        self.chunks: list[LandedChunk] = []

    def land(self, conversation: Conversation) -> list[str]:
        """Land what is new; the entries of its rows."""
        options = LandingOptions(redact=redact, rules="r1", key=b"key", sd_bytes=sd_bytes)
        before = len(self.records)
        for chunk in land_conversation(
            conversation, self.cursors, omp, ContentSink(keep=False), options, len(self.files) + 1
        ):
            self.chunks.append(chunk)
            for landed in chunk.pages:
                self.files.append(from_page(landed.page, landed.records))
                self.records += landed.records
            self.cursors.update((cursor.path, cursor) for cursor in chunk.cursors)
        return [str(record.entry) for record in self.records[before:]]

    def kinds(self) -> Counter[str]:
        entries = [one for landed in self.files for one in landed.entries]
        assembled = assemble(entries, conversation="c", session_name="c", revision=1, through=len(self.files))
        return Counter(node.kind for node in assembled.nodes)


# -- lines -----------------------------------------------------------------------------------------------------------


def test_the_header() -> None:
    header = {
        **HEADER,
        "title": "Glazes",
        "titleSource": "user",
        "parentSession": "s0",
        "previousSessionFiles": ["/home/mira/a.jsonl", "C:\\kiln\\b.jsonl"],
        "additionalDirectories": ["/home/mira/clay"],
    }
    (found,) = entries_of(header)
    assert dict(found.values) == {
        "session": "s1",
        "cwd": "/home/mira/kiln",
        "version": "3",
        "forked_from": "s0",
        "moved_from": "/home/mira/a.jsonl\nC:\\kiln\\b.jsonl",
    }
    record = found.record
    assert record is not None
    assert (record.entry, record.label, record.time) == ("session", "Glazes", "2026-03-04T05:06:07.080Z")
    assert parts_of(record)[0].data == text_id(
        '{"type":"session","additionalDirectories":["/home/mira/clay"]}'
    )
    assert b"mira" not in encode(record)


@pytest.mark.parametrize("line", ["header", "slot", "change"])
@pytest.mark.parametrize(("source", "clear"), [("user", True), ("auto", False)])
def test_a_title_is_clear_only_where_a_person_gave_it(line: str, source: str, clear: bool) -> None:
    one: dict[str, Any] | bytes
    if line == "header":
        one = {**HEADER, "title": "Glazes", "titleSource": source}
    elif line == "slot":
        one = slot("Glazes", source)
    else:
        one = entry("title_change", title="Glazes", source=source)
    (record,) = records_of(one)
    assert record.entry in omp.TITLE_ENTRY.split()
    assert record.label == ("Glazes" if clear else UNSET)
    assert record.label_content == (UNSET if clear else text_id("Glazes"))
    assert (b"Glazes" in encode(record)) is clear


def test_the_hash_of_an_account_is_dropped() -> None:
    sink = ContentSink(keep=True)
    pin = entry("credential_pin", provider="p", hash="f00dfeedf00dfeed")
    (found,) = entries_of(pin, sink=sink)
    assert found.record is not None and found.record.dropped is not UNSET
    assert (found.record.dropped[0].what, found.record.parts) == ("account hash", UNSET)
    assert sink.found == [] and b"f00d" not in encode(found.record)


def test_what_agents_write_into_user_messages_is_no_prompt() -> None:
    found = records_of(
        HEADER,
        message("user", "hi", 1, attribution="user"),
        message("assistant", "yo", 2, responseId="r1", usage={"input": 5, "output": 3, "reasoningTokens": 2}),
        message("user", "<system-reminder>", 3, attribution="agent"),
        message("assistant", "ok", 4),
        message("user", "again", 5),
    )
    prompt, answer, reminder, more, again = found[1:]
    assert (prompt.trigger, again.trigger, reminder.trigger) == ("external", "external", UNSET)
    assert (reminder.from_, reminder.flags) == ("runtime", ["injected"])
    assert [record.run for record in found[1:]] == ["e1", "e1", "e1", "e1", "e5"]
    assert (answer.call, answer.usage) == ("r1", Usage(in_=5, out=3, reasoning=2))
    assert more.call == "e4"
    task = records_of(HEADER, message("user", "do", 1, attribution="agent"), message("assistant", "ok", 2))
    assert [record.run for record in task[1:]] == ["e1", "e1"]


def test_other_entries() -> None:
    found = records_of(
        MODEL,
        entry("compaction", summary="So far", shortSummary="Far", firstKeptEntryId="e9", tokensBefore=7),
        entry("reset_boundary"),
        entry("session_init", systemPrompt="Be kind.", task="Look."),
        entry("ttsr_injection", injectedRules=["x"]),
        entry("model_usage", purpose="title", usage={"input": 4, "output": 2}),
        message("pythonExecution", code="1", output="1"),
        message("fileMention", files=[]),
        entry("novel", x=1),
    )
    model, compaction, reset, init, rules, used, python, mention, novel = found
    assert model.model == "p/m-1"
    assert (compaction.flags, compaction.continues) == (["context_reset", "reset_summary"], "e0")
    assert parts_of(compaction)[0].content == text_id("So far")
    assert b"Far" not in encode(compaction)
    assert (reset.flags, reset.continues) == (["context_reset"], "e0")
    assert (init.flags, rules.flags) == (["injected"], ["injected"])
    assert used.usage == Usage(in_=4, out=2)
    assert (python.flags, python.from_) == (["command"], "external")
    assert mention.flags == ["injected"]
    assert parts_of(novel)[0].k == "data"


def test_large_images_are_named_by_reference() -> None:
    name = "blob:sha256:" + "ab" * 32
    (record,) = records_of(message("user", [{"type": "image", "data": name, "mimeType": "image/png"}]))
    assert parts_of(record) == [Part(k="media", id=name, media="image/png", state="omitted")]


def test_the_sub_agents_of_a_task() -> None:
    details = {"results": [{"id": "0-Look"}, {"id": "1-Find"}, {"exitCode": 1}]}
    line = message("toolResult", "ok", 3, toolName="task", toolCallId="t1", details=details)
    first, second = entries_of(line)
    assert first.record is not None and second.record is not None
    assert (first.record.child, parts_of(first.record)[0].of) == ("0-Look", "t1")
    assert (second.record.child, second.record.tool, second.record.parts) == ("1-Find", "t1", UNSET)
    assert (first.start, first.length) == (second.start, second.length) == (0, len(json.dumps(line)))
    assert [record.child for record in records_of(line, stream="0-A")] == ["0-A/0-Look", "0-A/1-Find"]
    for odd in ("text", {"results": 1}, {"results": [1]}):
        assert len(records_of(message("toolResult", "ok", details=odd))) == 1


def test_a_copied_entry_is_the_same_record() -> None:
    lines = [MODEL, message("user", "hi", 1), message("assistant", "yo", 2)]
    first = records_of(HEADER, *lines)
    fork = records_of({**HEADER, "id": "s2", "cwd": "/elsewhere", "parentSession": "/a.jsonl"}, *lines)
    assert [encode(record) for record in first[1:]] == [encode(record) for record in fork[1:]]


# -- files -----------------------------------------------------------------------------------------------------------


def test_files_of_pi_are_left_to_pi(tmp_path: Path) -> None:
    ours = transcript(tmp_path / "-kiln" / "t_s1.jsonl", HEADER, MODEL, message("user", "hi"))
    theirs = {**MODEL, "modelId": "m-1", "provider": "p"}
    transcript(tmp_path / "-kiln" / "t_s2.jsonl", {**HEADER, "id": "s2"}, theirs, message("user", "hi"))
    transcript(tmp_path / "-kiln" / "t_s3.jsonl", {**HEADER, "id": "s3", "title": "x"})
    found = list(omp.discover(tmp_path))
    assert [one.native_id for one in found if isinstance(one, Conversation)] == ["s1"]
    assert [one.reason for one in found if isinstance(one, LeftOut)] == ["other-agent", "no-conversation"]
    assert [one.native_id for one in pi.discover(tmp_path) if isinstance(one, Conversation)] == ["s2"]
    assert omp.recognise(ours) is not None and pi.recognise(ours) is None


def test_sub_agents_stand_in_the_folder_of_their_session(tmp_path: Path) -> None:
    task = message("assistant", [{"type": "toolCall", "id": "t1", "name": "task", "arguments": {}}], 2)
    details = {"results": [{"id": "0-Look"}]}
    done = message("toolResult", "ok", 3, toolName="task", toolCallId="t1", details=details)
    transcript(tmp_path / "-kiln" / "t_s1.jsonl", HEADER, MODEL, message("user", "go", 1), task, done)
    inside = tmp_path / "-kiln" / "t_s1"
    call = {"type": "toolCall", "id": "t2", "name": "task", "arguments": {}}
    deep = {"results": [{"id": "0-In"}]}
    transcript(
        inside / "0-Look.jsonl",
        {**HEADER, "id": "c1"},
        entry("session_init", 11, task="x"),
        message("user", "look", 12, attribution="agent"),
        message("assistant", [call], 13),
        message("toolResult", "ok", 14, toolName="task", toolCallId="t2", details=deep),
    )
    transcript(
        inside / "0-Look" / "0-In.jsonl",
        {**HEADER, "id": "c2"},
        entry("session_init", 21),
        message("assistant", "in", 22),
    )
    (inside / "0-Look.md").write_text("seen")
    transcript(inside / "notes.jsonl", HEADER)
    (conversation,) = found_in(tmp_path)
    assert [(one.stream, one.src) for one in conversation.sources] == [
        ("main", "t_s1.jsonl"),
        ("0-Look", "subagents/0-Look.jsonl"),
        ("0-Look/0-In", "subagents/0-Look/0-In.jsonl"),
    ]
    store = Landings()
    store.land(conversation)
    kinds = store.kinds()
    assert (kinds["stream"], kinds["agent.call"], kinds["tool"]) == (3, 2, 0)
    assert kinds["message.external"] == kinds["talk"] - 2 == 1
    alone = omp.recognise(tmp_path / "-kiln" / "t_s1.jsonl")
    assert alone is not None and alone.sources == conversation.sources


def test_r09_a_slot_for_the_title_and_a_broken_header(tmp_path: Path) -> None:
    whole = transcript(tmp_path / "t_s1.jsonl", slot("Glazes"), HEADER, MODEL, message("user", "hi"))
    broken = transcript(tmp_path / "t_s2.jsonl", slot("Clay"), b'{"type":"session","id":"s2', MODEL)
    before = broken.read_bytes()
    first, second = found_in(tmp_path)
    assert (first.native_id, second.native_id) == ("s1", "s2")
    assert first.sources[0].slot == 256 == len(whole.read_bytes().split(b"\n")[0]) + 1
    store = Landings()
    assert store.land(first) == ["title", "session", "model_change", "message/user"]
    store = Landings()
    assert store.land(second) == ["title", "model_change"]
    facts = store.cursors[str(broken)].facts
    assert (facts.damage_count, broken.read_bytes()) == (1, before)


def test_a_title_rewritten_in_place_is_no_rewritten_file(tmp_path: Path) -> None:
    lines: list[dict[str, Any] | bytes] = [HEADER, MODEL, message("user", "hi")]
    path = transcript(tmp_path / "t_s1.jsonl", slot("Glazes"), *lines)
    store = Landings()
    store.land(found_in(tmp_path)[0])
    transcript(path, slot("Ash glazes"), *lines)
    assert store.land(found_in(tmp_path)[0]) == ["title"]
    transcript(path, slot("Ash glazes"), *lines, message("assistant", "yo", 2))
    assert store.land(found_in(tmp_path)[0]) == ["message/assistant"]
    assert store.land(found_in(tmp_path)[0]) == []
    transcript(path, slot("Slips"), *lines, message("assistant", "yo", 2), message("user", "more", 3))
    assert store.land(found_in(tmp_path)[0]) == ["title", "message/user"]
    cursor = store.cursors[str(path)]
    assert (cursor.state, cursor.observation) == ("active", 0)
    assert [title for title, _time in cursor.facts.titles] == ["Glazes", "Ash glazes", "Slips"]
    assert not any(chunk.reread for chunk in store.chunks)
    last = store.chunks[-1].pages[0].page
    assert (last.ord, last.offset, last.jumps) == (1, 0, [(1, 6, path.stat().st_size - last.lengths[1] - 1)])

    transcript(path, slot("Slips"), {**HEADER, "cwd": "/away"}, *lines[1:], message("assistant", "yo", 2))
    store.land(found_in(tmp_path)[0])
    assert store.cursors[str(path)].state == "conflict"


def test_a_slot_is_no_change_when_an_unchanged_file_is_read_again(tmp_path: Path) -> None:
    """Discovery opens nothing that it knows, and so does not say where the slot ends."""
    path = transcript(tmp_path / "t_s1.jsonl", slot("Glazes"), HEADER, MODEL, message("user", "hi"))
    store = Landings()
    store.land(found_in(tmp_path)[0])
    (known,) = omp.discover(tmp_path, KnownFiles(store.cursors))
    assert isinstance(known, Conversation) and known.sources[0].slot == 0
    for keep, rules, reason, pages in ((True, "r1", "content", 0), (False, "r2", "rules", 1)):
        options = LandingOptions(redact=redact, rules=rules, key=b"key", sd_bytes=sd_bytes)
        (*_, chunk) = land_conversation(known, store.cursors, omp, ContentSink(keep=keep), options, 2)
        assert (chunk.reread, len(chunk.pages)) == ({str(path): reason}, pages)
        assert (chunk.cursors[-1].state, chunk.cursors[-1].slot) == ("active", store.cursors[str(path)].slot)


def test_a_moved_session_says_where_it_was(tmp_path: Path) -> None:
    old = transcript(tmp_path / "-kiln" / "t_s1.jsonl", HEADER, MODEL, message("user", "hi"))
    store = Landings()
    store.land(found_in(tmp_path)[0])
    moved = {**HEADER, "cwd": "/home/mira/clay", "previousSessionFiles": [str(old)]}
    new = transcript(tmp_path / "-clay" / "t_s1.jsonl", moved, MODEL, message("user", "hi"))
    old.unlink()
    (conversation,) = found_in(tmp_path)
    assert conversation.native_id == "s1"
    store.land(conversation)
    assert list(store.cursors[str(new)].facts.values["moved_from"]) == [str(old)]
    assert store.records[1:3] == store.records[4:6]
    assert store.kinds()["message.external"] == 1


class SeenAs(Seen):
    """Every file is of the conversation ``name`` and has not changed."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, path: str) -> str:
        return self.name


def test_a_file_that_has_not_changed_is_not_opened(tmp_path: Path) -> None:
    path = transcript(tmp_path / "t_s1.jsonl", HEADER, MODEL)
    path.write_bytes(b"not looked at")
    (known,) = omp.discover(tmp_path, SeenAs("s1"))
    assert isinstance(known, Conversation) and known.native_id == "s1"
    assert list(omp.discover(tmp_path, SeenAs(""))) == [LeftOut(path=str(path), reason="no-conversation")]


def test_the_glossary_names_every_word_once() -> None:
    for terms in (omp_dialect.PI_TERMS, omp_dialect.TERMS):
        words = [(of, word) for of, word, _native, _where in terms]
        assert len(set(words)) == len(words)
        assert {of for of, _word in words} == {"record", "structure", "step"}


# -- samples ---------------------------------------------------------------------------------------------------------


def test_samples_agree_with_an_independent_count(shared: Path) -> None:
    inside = shared / "samples" / "oh-my-pi" / "local-14.9.9"
    paths = sorted(inside.glob("**/*.jsonl"))
    found = found_in(inside)
    assert sum(len(one.sources) for one in found) == len(paths) == 6
    assert (len(found), sum(one.stream != "main" for c in found for one in c.sources)) == (5, 1)
    kinds: Counter[str] = Counter()
    rows = 0
    for conversation in found:
        store = Landings()
        rows += len(store.land(conversation))
        kinds += store.kinds()
    lines = [json.loads(one) for path in paths for one in path.read_bytes().splitlines()]
    messages = [one["message"] for one in lines if one["type"] == "message"]
    blocks = [b for one in messages for b in (one.get("content") or ()) if isinstance(b, dict)]
    calls = sum(block["type"] == "toolCall" for block in blocks)
    assert rows == len(lines)
    assert kinds["message.external"] == sum(one.get("attribution") == "user" for one in messages)
    assert kinds["llm.call"] == sum(one["role"] == "assistant" for one in messages)
    assert kinds["tool"] + kinds["agent.call"] == calls
    assert kinds["agent.call"] == 1
    assert kinds["epoch.boundary"] == sum(one["type"] == "compaction" for one in lines)
    assert kinds["control.command"] == sum(one["role"] == "bashExecution" for one in messages)


def test_published_sessions_of_pi_are_pis(shared: Path) -> None:
    inside = shared / "samples" / "oh-my-pi" / "public"
    assert found_in(inside) == []
    found = [one for one in pi.discover(inside) if isinstance(one, Conversation)]
    assert len(found) == len(list(inside.glob("*.jsonl"))) == 2


def test_a_branch_shares_the_records_of_its_source(shared: Path) -> None:
    inside = shared / "samples" / "oh-my-pi" / "local-14.9.9"
    stems = {one.native_id: one.sources[0].path for one in found_in(inside)}
    records = {name: records_of(*Path(path).read_bytes().splitlines()) for name, path in stems.items()}
    source = next(records[name] for name in records if name.startswith("01a22c29-d8c7"))
    branch = next(records[name] for name in records if name.startswith("01a22c2a-cf16"))
    shared_ids = {encode(record) for record in source} & {encode(record) for record in branch}
    assert len(shared_ids) == 17
