from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Struct

from objstore.digest import hash_bytes
from porcelain.providers import claude, pages, pi, rows
from porcelain.providers.chunks import LandedChunk, LandingOptions
from porcelain.providers.content import ContentSink
from porcelain.providers.cursor import Cursor, KnownFiles, gone_sources, left_out_cursor
from porcelain.providers.landing import land_conversation
from porcelain.providers.reader import Conversation, LeftOut, Provider, Source
from porcelain.providers.records import Damage, Page, Record, page_record_ids
from porcelain.providers.redaction import redact

SESSION = "6f1e1c9a-51a4-4c39-9d0e-2a7a54d1b001"


def line(number: int, text: str = "x", **fields: Any) -> bytes:
    stated = {
        "type": "user",
        "uuid": f"u{number}",
        "sessionId": SESSION,
        "cwd": "/home/mira/kiln",
        "timestamp": f"2026-03-04T05:{number // 60:02d}:{number % 60:02d}.000Z",
        "message": {"role": "user", "content": text},
        **fields,
    }
    return json.dumps(stated, ensure_ascii=False).encode()


def sd_bytes(page: Page, records: list[Record]) -> bytes:
    assert page.digest == pages.NO_DIGEST
    return repr((page.seq, page.at, page.records, len(records))).encode()


class Row(Struct):
    ord: int
    offset: int
    length: int
    digest: str
    record_id: str
    values: dict[str, str]


def rows_of(page: Page) -> list[Row]:
    """The rows of a page by the rules that its docstring states."""
    jumps = {row: (ord, offset) for row, ord, offset in page.jumps or ()}
    spans = {span.row: span.values for span in page.spans or ()}
    rows: list[Row] = []
    ord, offset, values = page.ord, page.offset, {}
    for index, record_id in enumerate(page_record_ids(page)):
        ord, offset = jumps.get(index, (ord, offset))
        values = spans.get(index, values)
        digest = page.digests[12 * index : 12 * index + 12]
        rows.append(Row(ord, offset, page.lengths[index], digest, record_id, values))
        ord, offset = ord + 1, offset + page.lengths[index] + 1
    return rows


class Store:
    """What a store keeps between runs, in memory."""

    def __init__(self, *sources: Source, keep: bool = False, **options: Any) -> None:
        self.cursors: dict[str, Cursor] = {}
        self.pages: list[pages.LandedPage] = []
        self.chunks: list[LandedChunk] = []
        self.content: dict[str, bytes] = {}
        self.next_seq = 1
        self.keep = keep
        self.provider: Provider = claude
        self.conversation = Conversation(provider="claude", native_id=SESSION, root="/", sources=sources)
        self.options = LandingOptions(
            **{"redact": redact, "rules": "r1", "key": b"key", "sd_bytes": sd_bytes, **options}
        )

    def land(self) -> list[LandedChunk]:
        sink = ContentSink(keep=self.keep)
        new: list[LandedChunk] = []
        for chunk in land_conversation(
            self.conversation, self.cursors, self.provider, sink, self.options, self.next_seq
        ):
            new.append(chunk)
            self.pages += chunk.pages
            self.content.update((hash_bytes(data).hex(), data) for _kind, data in chunk.content)
            # A cursor is kept as JSON.
            for cursor in chunk.cursors:
                self.cursors[cursor.path] = msgspec.json.decode(msgspec.json.encode(cursor), type=Cursor)
            self.next_seq += len(chunk.pages)
        self.chunks += new
        return new

    def record_ids(self) -> list[str]:
        return [i for landed in self.pages for i in page_record_ids(landed.page)]

    def rows(self) -> list[Row]:
        return [row for landed in self.pages for row in rows_of(landed.page)]

    def damage(self) -> list[Damage]:
        return [d for landed in self.pages for d in landed.page.damage or ()]

    def cursor(self) -> Cursor:
        (cursor,) = self.cursors.values()
        return cursor


def log(path: Path, *lines: bytes, end: bytes = b"\n") -> Source:
    path.write_bytes(b"\n".join(lines) + end)
    return Source(path=str(path), src=path.name)


def store_of(tmp_path: Path, *lines: bytes, end: bytes = b"\n", **options: Any) -> Store:
    return Store(log(tmp_path / "a.jsonl", *lines, end=end), **options)


def append(tmp_path: Path, data: bytes) -> None:
    with open(tmp_path / "a.jsonl", "ab") as file:
        file.write(data)


# -- pages -----------------------------------------------------------------------------------------------------------


def test_a_page_says_where_each_record_stood(tmp_path: Path) -> None:
    texts = [line(1), line(2, "é"), b"", line(3, gitBranch="b"), line(4) + b"\r"]
    store = store_of(tmp_path, *texts)
    (chunk,) = store.land()
    (landed,) = chunk.pages
    page = landed.page
    assert (page.seq, page.src, page.stream, page.kind) == (1, "a.jsonl", "main", "transcript")
    assert (page.adapter, page.dialect, page.provider, page.rules) == (
        "claude-local/1",
        "claude-code/1",
        "claude",
        "r1",
    )
    assert page.digest == hashlib.sha256(repr((1, page.at, page.records, 4)).encode()).hexdigest()
    assert page.at == "2026-03-04T05:00:04Z"
    data = (tmp_path / "a.jsonl").read_bytes()
    rows = store.rows()
    assert [row.ord for row in rows] == [1, 2, 4, 5]
    assert [data[row.offset : row.offset + row.length] for row in rows] == [t for t in texts if t]
    assert [row.digest for row in rows] == [hashlib.sha256(t).hexdigest()[:12] for t in texts if t]
    assert [row.values.get("branch") for row in rows] == [None, None, "b", None]
    assert [hash_bytes(data).hex() for data in landed.encoded] == page_record_ids(page)
    assert [record.id for record in landed.records] == ["u1", "u2", "u3", "u4"]
    assert page.jumps == [(2, 4, rows[2].offset)]


def test_pages_are_cut_by_records_and_by_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(line(1)) + 1
    monkeypatch.setattr(pages, "PAGE_RECORDS", 3)
    monkeypatch.setattr(pages, "PAGE_BYTES", 5 * size)
    store = store_of(tmp_path, *(line(n) for n in range(1, 8)), line(8, "y" * 9 * size), line(9))
    store.land()
    assert [len(landed.records) for landed in store.pages] == [3, 3, 1, 1, 1]
    assert [landed.page.seq for landed in store.pages] == [1, 2, 3, 4, 5]
    assert [row.ord for row in store.rows()] == list(range(1, 10))
    assert all(landed.page.spans is not UNSET for landed in store.pages)


def test_a_page_without_times_takes_the_newest_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "PAGE_RECORDS", 1)
    store = store_of(
        tmp_path,
        line(1, timestamp="never"),
        line(2, timestamp="2026-03-04T07:00:00.250+01:00"),
        line(3, timestamp="2026-03-04T06:00:00Z"),
        line(4, timestamp=None),
    )
    store.land()
    append(tmp_path, line(5, timestamp=None) + b"\n")
    store.land()
    assert [landed.page.at for landed in store.pages] == [
        "1970-01-01T00:00:00Z",
        "2026-03-04T06:00:00.25Z",
        "2026-03-04T06:00:00Z",
        "2026-03-04T06:00:00.25Z",
        "2026-03-04T06:00:00.25Z",
    ]


def test_chunks_are_bounded_and_each_can_be_continued_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [line(n, "text " * 40) for n in range(40)]
    size = len(lines[0]) + 1
    monkeypatch.setattr(pages, "PAGE_RECORDS", 4)
    monkeypatch.setattr("porcelain.providers.chunks.CHUNK_BYTES", 8 * size)
    whole = store_of(tmp_path, *lines, keep=True)
    chunks = whole.land()
    assert len(chunks) > 3
    assert max(chunk.source_bytes for chunk in chunks) <= 13 * size
    for crash in range(len(chunks)):
        store = Store(*whole.conversation.sources, keep=True)
        pieces = land_conversation(
            store.conversation, {}, claude, ContentSink(keep=True), store.options, store.next_seq
        )
        for _ in range(crash):
            chunk = next(pieces)
            store.pages += chunk.pages
            store.content.update((hash_bytes(data).hex(), data) for _kind, data in chunk.content)
            store.cursors.update({cursor.path: cursor for cursor in chunk.cursors})
            store.next_seq += len(chunk.pages)
        store.land()
        assert store.record_ids() == whole.record_ids()
        assert store.content == whole.content
        assert [landed.page.seq for landed in store.pages] == list(range(1, len(store.pages) + 1))
        assert store.cursor() == whole.cursor()


# -- reading only what is new ----------------------------------------------------------------------------------------


def test_an_unchanged_file_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = store_of(tmp_path, line(1), line(2))
    store.land()

    def refuse(*_args: Any, **_kwargs: Any) -> Any:
        raise AssertionError("opened")

    monkeypatch.setattr("builtins.open", refuse)
    assert store.land() == []
    assert KnownFiles(store.cursors)(str(tmp_path / "a.jsonl")) == SESSION


def test_an_appended_line_is_read_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = store_of(tmp_path, line(1), line(2))
    store.land()
    append(tmp_path, line(3) + b"\n")
    assert KnownFiles(store.cursors)(str(tmp_path / "a.jsonl")) == SESSION
    (chunk,) = store.land()
    assert chunk.source_bytes == len(line(3)) + 1
    assert chunk.reread == {}
    assert [row.ord for row in rows_of(chunk.pages[0].page)] == [3]
    assert store.cursor().facts.records == 3


def test_a_touched_file_and_one_with_another_inode_are_no_conflict(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    store = store_of(tmp_path, line(1), line(2))
    store.land()
    os.utime(path, ns=(1, 1))
    (chunk,) = store.land()
    assert (chunk.pages, chunk.reread, store.cursor().state) == ([], {}, "active")
    copy = tmp_path / "copy"
    copy.write_bytes(path.read_bytes() + line(3) + b"\n")
    os.replace(copy, path)
    (chunk,) = store.land()
    assert (len(chunk.pages), chunk.reread) == (1, {})
    assert len(store.record_ids()) == 3
    assert store.land() == []


@pytest.mark.parametrize("size", ["shorter", "same", "longer"])
def test_a_rewritten_file_is_a_new_observation_beside_the_old(tmp_path: Path, size: str) -> None:
    store = store_of(
        tmp_path, line(1), line(2), line(3), landed_records=lambda _path: iter(store.record_ids())
    )
    store.land()
    before = store.record_ids()
    lines = {"shorter": [line(1), line(7)], "same": [line(1), line(7), line(3)]}.get(
        size, [line(1), line(7), line(3), line(4)]
    )
    log(tmp_path / "a.jsonl", *lines)
    (chunk,) = store.land()
    assert chunk.reread == {str(tmp_path / "a.jsonl"): "rewritten"}
    assert store.record_ids()[:3] == before
    new = store.record_ids()[3:]
    assert len(new) == len(lines)
    assert [landed.page.seq for landed in store.pages] == [1, 2]
    cursor = store.cursor()
    assert (cursor.state, cursor.observation, cursor.facts.records) == ("conflict", 1, len(lines))
    assert cursor.facts.differs == new[1]
    # It stays a conflict until a person clears it, and is read on as any other file.
    append(tmp_path, line(9) + b"\n")
    (chunk,) = store.land()
    assert (chunk.reread, len(chunk.pages[0].records)) == ({}, 1)
    assert (store.cursor().state, store.cursor().observation) == ("conflict", 1)


def test_another_set_of_rules_and_another_parser_read_everything_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_of(tmp_path, line(1), line(2))
    store.land()
    before = store.record_ids()
    store.options = msgspec.structs.replace(store.options, rules="r2")
    (chunk,) = store.land()
    assert set(chunk.reread.values()) == {"rules"}
    assert (store.cursor().state, store.cursor().rules) == ("active", "r2")
    monkeypatch.setattr(claude, "PARSER", "2")
    (chunk,) = store.land()
    assert set(chunk.reread.values()) == {"parser"}
    assert store.record_ids() == before * 3
    assert store.land() == []


def test_turning_content_on_reads_again_for_the_content_alone(tmp_path: Path) -> None:
    private = store_of(tmp_path, line(1, "one"), b"garbage", line(2, "two"))
    keeping = Store(*private.conversation.sources, keep=True)
    private.land()
    keeping.land()
    assert private.content == {}
    assert private.record_ids() == keeping.record_ids()
    assert private.damage() == keeping.damage()
    append(tmp_path, line(3, "three") + b"\n")
    private.keep = True
    (chunk,) = private.land()
    keeping.land()
    assert set(chunk.reread.values()) == {"content"}
    assert [r.id for landed in chunk.pages for r in landed.records] == ["u3"]
    assert private.record_ids() == keeping.record_ids()
    assert private.content == keeping.content
    named = {p.content for landed in private.pages for r in landed.records for p in r.parts or ()}
    named |= {d.content for d in private.damage()}
    assert named == set(private.content)
    assert private.land() == []
    private.keep = False
    assert private.land() == []


# -- torn and damaged lines ------------------------------------------------------------------------------------------


def test_a_torn_last_line_is_pending_and_imported_once_when_complete(tmp_path: Path) -> None:
    whole = line(2)
    store = store_of(tmp_path, line(1), whole[:20], end=b"")
    store.land()
    assert (store.cursor().state, store.cursor().facts.pending_bytes) == ("pending", 20)
    assert len(store.record_ids()) == 1
    assert store.land() == []
    append(tmp_path, whole[20:] + b"\n" + line(3) + b"\n")
    store.land()
    assert [row.ord for row in store.rows()] == [1, 2, 3]
    assert (store.cursor().state, store.cursor().facts.pending_bytes, store.damage()) == ("active", 0, [])


def test_an_append_after_a_torn_line_is_a_cut_record_before_a_whole_one(tmp_path: Path) -> None:
    store = store_of(tmp_path, line(1), line(2)[:20], end=b"")
    store.land()
    append(tmp_path, line(3) + b"\n")
    store.land()
    at = len(line(1)) + 1
    (damage,) = store.damage()
    assert (damage.offset, damage.bytes, damage.ord, damage.reason) == (at, 20, 2, "cut-record")
    assert damage.content == ContentSink(keep=False).blob(line(2)[:20], rows.OCTETS)
    assert [(row.ord, row.offset) for row in store.rows()] == [(1, 0), (2, at + 20)]
    assert (store.cursor().facts.damage_count, store.cursor().facts.damage_bytes) == (1, 20)


def test_a_whole_last_line_without_a_newline_is_a_record(tmp_path: Path) -> None:
    store = store_of(tmp_path, line(1), line(2), end=b"")
    store.land()
    assert len(store.record_ids()) == 2
    assert (store.cursor().state, store.cursor().open_line) == ("active", True)
    assert store.land() == []
    append(tmp_path, b"\r\n" + line(3) + b"\n")
    store.land()
    assert [row.ord for row in store.rows()] == [1, 2, 3]
    assert store.cursor().facts.lines == 3
    assert store.damage() == []


def test_a_record_glued_behind_an_unfinished_line_is_imported(tmp_path: Path) -> None:
    store = store_of(tmp_path, line(1), end=b"")
    store.land()
    append(tmp_path, line(2) + b"\n" + line(3))
    store.land()
    assert [(row.ord, row.offset) for row in store.rows()] == [
        (1, 0),
        (1, len(line(1))),
        (2, len(line(1) + line(2)) + 1),
    ]
    assert store.cursor().facts.lines == 2


def test_a_file_of_garbage_is_a_page_of_damage(tmp_path: Path) -> None:
    store = store_of(tmp_path, b"garbage", bytes(300), b"", b"[1]")
    store.land()
    assert store.record_ids() == []
    assert [(d.ord, d.offset, d.bytes, d.reason) for d in store.damage()] == [
        (1, 0, 7, "not-json"),
        (2, 8, 300, "nul-run"),
        (4, 310, 3, "not-an-object"),
    ]


def test_byte_order_mark_and_wrong_utf8(tmp_path: Path) -> None:
    wrong = line(2, "caf?").replace(b"?", b"\xe9")
    store = store_of(tmp_path, b"\xef\xbb\xbf" + line(1), wrong)
    store.land()
    assert [(row.ord, row.offset, row.length) for row in store.rows()] == [
        (1, 3, len(line(1))),
        (2, 4 + len(line(1)), len(wrong)),
    ]
    (damage,) = store.damage()
    assert (damage.reason, damage.bytes, damage.offset) == (
        "not-utf8",
        1,
        4 + len(line(1)) + wrong.index(b"\xe9"),
    )


_LINES = st.lists(
    st.sampled_from(
        [
            line(1),
            line(2, "é\u2028😀"),
            line(3) + b"\r",
            line(4) + line(5),
            b"",
            b"  ",
            bytes(9),
            bytes(5) + line(6),
            line(7)[:30] + line(8),
            line(9)[:25],
            b"garbage",
            b"null",
        ]
    ),
    max_size=6,
)


@given(_LINES, st.sampled_from([b"", b"\n", b"\r\n"]), st.data())
def test_a_file_cut_anywhere_and_completed_later_gives_the_same_records_once(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], end: bytes, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    whole = b"\n".join(lines) + end
    (folder / "whole.jsonl").write_bytes(whole)
    once = Store(Source(path=str(folder / "whole.jsonl"), src="a.jsonl"))
    once.land()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=3)))
    growing = Store(Source(path=str(folder / "a.jsonl"), src="a.jsonl"))
    for cut in [*cuts, len(whole)]:
        (folder / "a.jsonl").write_bytes(whole[:cut])
        growing.land()
    assert growing.record_ids() == once.record_ids()
    assert [(d.offset, d.bytes, d.reason) for d in growing.damage()] == [
        (d.offset, d.bytes, d.reason) for d in once.damage()
    ]
    assert growing.cursor().observation == 0
    assert growing.cursor().facts.lines == once.cursor().facts.lines
    assert growing.cursor().facts.pending_bytes == once.cursor().facts.pending_bytes
    for row, other in zip(growing.rows(), once.rows(), strict=True):
        assert (row.ord, row.offset, row.values) == (other.ord, other.offset, other.values)


# -- secrets ---------------------------------------------------------------------------------------------------------

SECRET = "ghp_" + "Zk3xQ9bT1mWv" * 3


def test_secrets_are_replaced_before_hashing_and_places_are_those_of_the_source(tmp_path: Path) -> None:
    token = SECRET[:40]
    glued = line(2, f"use {token}") + line(3)
    cut = line(4, token)[:-3]
    store = store_of(tmp_path, line(1, f"token {token}"), glued, cut + line(5), keep=True)
    store.land()
    data = (tmp_path / "a.jsonl").read_bytes()
    assert token.encode() in data
    assert [data[row.offset : row.offset + row.length] for row in store.rows()] == [
        line(1, f"token {token}"),
        line(2, f"use {token}"),
        line(3),
        line(5),
    ]
    assert [row.digest for row in store.rows()] == [
        hashlib.sha256(redact(t)).hexdigest()[:12]
        for t in (line(1, f"token {token}"), line(2, f"use {token}"), line(3), line(5))
    ]
    (damage,) = store.damage()
    assert data[damage.offset : damage.offset + damage.bytes] == cut
    assert not any(token.encode() in content for content in store.content.values())
    assert sum(b"redacted:" in content for content in store.content.values()) >= 2


# -- documents and trouble -------------------------------------------------------------------------------------------


def test_a_document_is_one_record_and_a_new_version_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "agent-a1.meta.json"
    path.write_text('{\n "agentType": "Explore"\n}\n')
    store = Store(
        Source(path=str(path), src="subagents/x", kind="agent_meta", shape="document", stream="a1"), keep=True
    )
    store.land()
    assert store.land() == []
    os.utime(path, ns=(1, 1))
    (chunk,) = store.land()
    assert chunk.pages == []
    path.write_text('{"agentType": "Explore", "descr')
    store.land()
    assert (store.cursor().state, len(store.pages)) == ("pending", 1)
    path.write_text('{"agentType": "Explore", "description": "Look"}')
    store.land()
    assert [(row.ord, row.offset, row.length) for row in store.rows()] == [(1, 0, 28), (1, 0, 47)]
    assert (store.cursor().state, store.pages[1].page.kind, store.pages[1].page.stream) == (
        "active",
        "agent_meta",
        "a1",
    )


def test_what_cannot_be_read_is_reported_and_the_rest_is_landed(tmp_path: Path) -> None:
    (tmp_path / "folder.jsonl").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")
    names = ("absent.jsonl", "folder.jsonl", "pipe.jsonl")
    store = Store(
        *(Source(path=str(tmp_path / name), src=name) for name in names), log(tmp_path / "a.jsonl", line(1))
    )
    (chunk,) = store.land()
    assert [Path(problem.path).name for problem in chunk.problems] == list(names)
    assert len(store.record_ids()) == 1


def test_a_record_with_more_parts_than_an_object_holds_keeps_the_line_as_one(tmp_path: Path) -> None:
    blocks = [{"type": "text", "text": str(n)} for n in range(9000)]
    store = store_of(tmp_path, line(1, blocks))  # type: ignore[arg-type]
    store.land()
    (record,) = store.pages[0].records
    assert (record.id, [p.k for p in record.parts or ()]) == ("u1", ["unknown"])


def test_facts_for_lineage(tmp_path: Path) -> None:
    title = json.dumps({"type": "custom-title", "customTitle": "Raku", "sessionId": SESSION}).encode()
    store = store_of(tmp_path, line(2), title, title, line(1, cwd="/home/mira/glaze", version="9"))
    store.land()
    append(tmp_path, line(3, sessionId="other") + b"\n")
    store.land()
    facts = store.cursor().facts
    assert (facts.lines, facts.records, facts.first_record) == (5, 5, store.record_ids()[0])
    assert (facts.first_time, facts.last_time) == ("2026-03-04T05:00:01Z", "2026-03-04T05:00:03Z")
    assert facts.titles == [("Raku", "")]
    assert facts.values == {
        "session": {SESSION: "2026-03-04T05:00:02Z", "other": "2026-03-04T05:00:03Z"},
        "cwd": {"/home/mira/kiln": "2026-03-04T05:00:02Z", "/home/mira/glaze": "2026-03-04T05:00:01Z"},
        "version": {"9": "2026-03-04T05:00:01Z"},
    }


def test_cursors_of_what_was_left_out_and_of_what_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b'{"type":"summary","summary":"s","leafUuid":"u"}\n')
    (left,) = claude.discover(tmp_path)
    assert isinstance(left, LeftOut)
    cursor = left_out_cursor("claude", left)
    assert cursor is not None
    assert KnownFiles({str(path): cursor})(str(path)) == ""
    path.write_bytes(line(1))
    assert KnownFiles({str(path): cursor})(str(path)) is None
    assert left_out_cursor("claude", left) is None
    store = Store(Source(path=str(path), src="s.jsonl"))
    store.land()
    assert gone_sources(store.cursors.values()) == []
    path.unlink()
    assert gone_sources(store.cursors.values()) == [str(path)]
    assert left_out_cursor("claude", left) is None


# -- samples ---------------------------------------------------------------------------------------------------------


def conversations(provider: Provider, folder: Path) -> Iterator[Conversation]:
    for root in sorted(folder.iterdir()):
        for found in provider.discover(root):
            if isinstance(found, Conversation):
                yield found


@pytest.mark.parametrize(("name", "provider"), [("claude", claude), ("pi", pi)])
def test_samples_land_whole_and_alike_with_and_without_content(
    shared: Path, name: str, provider: Provider
) -> None:
    for conversation in conversations(provider, shared / "samples" / name):
        stores = []
        for keep in (False, True):
            store = Store(keep=keep)
            store.provider, store.conversation = provider, conversation
            store.land()
            assert store.land() == []
            stores.append(store)
        private, keeping = stores
        assert private.record_ids() == keeping.record_ids()
        assert private.content == {} and keeping.content
        for landed, other in zip(private.pages, keeping.pages, strict=True):
            assert landed.page == other.page
        for source in conversation.sources:
            data = Path(source.path).read_bytes()
            cursor = keeping.cursors[source.path]
            pending = cursor.facts.pending_bytes
            assert cursor.offset == len(data) - pending
            assert pending == 0 or "truncated" in source.src
            rows = [r for p in keeping.pages if p.page.src == source.src for r in rows_of(p.page)]
            if source.shape == "log":
                covered = sum(1 for part in data.split(b"\n") if part.strip()) - bool(pending)
                assert cursor.facts.lines == covered
            assert len(rows) == cursor.facts.records or len(conversation.sources) > 1
            for row in (
                rows if len({s.src for s in conversation.sources}) == len(conversation.sources) else ()
            ):
                stood = data[row.offset : row.offset + row.length]
                assert row.digest == hashlib.sha256(redact(stood)).hexdigest()[:12]
