"""The pack format: equal objects give equal bytes, what is written is read, and what is wrong is refused whole."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

import porcelain  # noqa: F401  (declares the kinds of objects)
from objstore import closure
from objstore.closure import Selection, select
from objstore.errors import CheckFailed, ObjstoreError
from objstore.pack import writer
from objstore.pack.checking import PackCheck
from objstore.pack.format import BLOCK, ENTRY, HEAD, MAGIC, Header, Limits, PackRefused, encode_head
from objstore.pack.reader import PackReader
from objstore.pack.writer import pack_stream
from objstore.store import Store
from objstore.sync.receiving import receive
from objstore.sync.transport import PieceSource
from tests.objstore.sync.building import add_round, ask, new_session, opened, put_list, put_node, state

Packed = dict[bytes, tuple[str, bytes]]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store with a chain of two rounds, a session of two turns, and a tag."""
    with opened(tmp_path / "store") as made:
        fill(made)
        yield made


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    with opened(tmp_path / "target") as made:
        yield made


def fill(store: Store) -> None:
    add_round(store, "flow/1111111111111111/test/x", "one", "two")
    add_round(store, "flow/1111111111111111/test/x", "three")
    sid = new_session(store, created_at="2026-03-04T05:06:07Z", random=bytes)[0]
    ask(store, sid, "Who?")
    ask(store, sid, "When?")
    store.update_ref("tag/x", put_node(store, "a text that stands under a tag"), None)


def packed(store: Store, **options: Any) -> bytes:
    with store.snapshot() as view:
        selection = select(view, list(view.refs()), **options)
        return b"".join(pack_stream(view, selection, store.algorithm))


def read(data: bytes, limits: Limits | None = None, step: int = 1 << 20) -> tuple[list[Any], PackReader]:
    """All objects of a pack, checked, from a source that gives ``step`` bytes at a time."""
    source = PieceSource(data[at : at + step] for at in range(0, len(data), step))
    reader = PackReader(source, limits)
    check = PackCheck(reader.presumed(), take_content=False)
    reader.refs()
    found = []
    for block in reader.entries():
        check.check(block)
        found += block
    check.finish()
    reader.finish()
    return found, reader


def refused(data: bytes, target: Store, match: str, **options: Any) -> ObjstoreError:
    """Receive what must not be taken; nothing may have changed."""
    before = (state(target), count(target))
    with pytest.raises((PackRefused, CheckFailed), match=match) as caught:
        receive(target, PieceSource([data]), take_content=options.pop("take_content", False), **options)
    assert (state(target), count(target)) == before
    return caught.value


def count(store: Store) -> int:
    with store.snapshot() as view:
        return view.count()


# -- making packs by hand ----------------------------------------------------------------------------------------------


def block(tag: bytes, raw: bytes, *, size: int | None = None, frame: bytes | None = None) -> bytes:
    frame = zstandard.ZstdCompressor().compress(raw) if frame is None else frame
    return BLOCK.pack(tag, len(frame), len(raw) if size is None else size) + frame


def by_hand(
    entries: list[tuple[str, bytes]],
    *,
    refs: list[tuple[bytes, bytes]] | None = None,
    presumes: list[bytes] | None = None,
    change: Callable[[dict[str, Any]], None] = lambda header: None,
    entry_blocks: list[bytes] | None = None,
    index: Callable[[bytes], bytes] = lambda raw: raw,
) -> bytes:
    """A pack with these entries as they come, whatever the rules; ``change`` gets at its header."""
    names = sorted({kind for kind, _ in entries})
    header = {
        "content": False,
        "entries": len(entries),
        "hash": "sha256",
        "kinds": [(name, "0.1.0") for name in names],
        "least": "0.1.0" if names else "0.0.0",
        "presumes": len(presumes or []),
        "refs": len(refs or []),
    }
    change(header)
    encoded = msgspec.json.encode(header)
    out = MAGIC + HEAD.pack(1, len(encoded)) + encoded
    if presumes:
        out += block(b"P", b"".join(presumes))
    if refs:
        out += block(b"R", b"".join(struct.pack(">H", len(name)) + name + key for name, key in refs))
    raw = b"".join(ENTRY.pack(names.index(kind), len(data)) + data for kind, data in entries)
    place = len(out)
    out += b"".join(entry_blocks) if entry_blocks is not None else block(b"E", raw) if raw else b""
    start = len(out)
    ids = b"".join(sha256(data).digest()[:4] for _, data in entries)
    if entries:
        out += block(b"I", index(struct.pack(">QI", place, len(entries)) + ids))
    out += b"Z" + struct.pack(">Q", start) + sha256(raw).digest()
    return out + sha256(out).digest()


def text(value: str) -> tuple[str, bytes]:
    return "document-chunk", b'{"text":"%s","type":"document-chunk"}' % value.encode()


def in_order(*entries: tuple[str, bytes]) -> list[tuple[str, bytes]]:
    return sorted(entries, key=lambda entry: (entry[0], sha256(entry[1]).digest()))


# -- what is written is read -------------------------------------------------------------------------------------------


def test_a_pack_made_by_hand_is_taken(target: Store) -> None:
    one, two = text("one"), text("two")
    key = sha256(one[1]).digest()
    result = receive(
        target, PieceSource([by_hand(in_order(one, two), refs=[(b"tag/x", key)])]), take_content=False
    )
    assert (result.added, result.moved) == (2, ["tag/x"])
    assert target.ref("tag/x") == key.hex()


@pytest.mark.parametrize("step", [1, 7, 1 << 20])
def test_what_is_written_is_read_in_pieces_of_any_size(store: Store, step: int) -> None:
    found, reader = read(packed(store), step=step)
    with store.snapshot() as view:
        for kind, key, data in found:
            stored = view.get(key)
            assert stored is not None and (stored.kind, stored.data) == (kind, data)
        assert {key for _, key, _ in found} == {key for key, _ in view.objects()}
        assert reader.header.refs == len(list(view.refs()))


def test_a_pack_makes_a_store_the_same_and_comes_back_as_nothing_new(store: Store, target: Store) -> None:
    data = packed(store)
    result = receive(target, PieceSource([data]), take_content=False)
    assert result.added == result.objects == count(store)
    assert state(target) == state(store)
    assert target.verify(processes=1).ok
    for again in (target, store):
        result = receive(again, PieceSource([data]), take_content=False)
        assert (result.added, result.moved) == (0, [])


def test_the_same_objects_give_the_same_bytes_in_whatever_order_they_came(
    store: Store, target: Store, tmp_path: Path
) -> None:
    receive(target, PieceSource([packed(store)]), take_content=False)
    assert packed(target) == packed(store)


@pytest.mark.parametrize("room", [0, 1500])
def test_objects_that_a_selection_does_not_hold_are_looked_up_again(
    store: Store, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = packed(store)
    monkeypatch.setattr(closure, "_HELD_BYTES", room)
    monkeypatch.setattr(closure, "_GROUP", 2)
    with store.snapshot() as view:
        selection = select(view, list(view.refs()))
        assert len(selection.held) < len(selection.order) and bool(selection.held) == bool(room)
        assert b"".join(pack_stream(view, selection, store.algorithm)) == whole


def test_the_identity_does_not_depend_on_compression(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    first = packed(store)
    monkeypatch.setattr(writer, "LEVEL", 1)
    second = packed(store)
    assert first != second
    with Store.init(Path(store.database.path).parent / "t") as other:  # type: ignore[union-attr]
        results = [
            receive(other, PieceSource([data]), take_content=False, dry_run=True) for data in (first, second)
        ]
        assert results[0].identity == results[1].identity
        assert count(other) == 0


def test_needs_come_first_and_blocks_are_of_bounded_size(target: Store) -> None:
    batch = target.batch()
    ids = [batch.put(*text(f"{number:06} " + "x" * 400)) for number in range(2000)]
    target.commit(batch)
    target.update_ref("tag/x", put_list(target, *ids), None)
    found, _ = read(packed(target))
    assert found[-1][0] == "list"
    places = []
    reader = PackReader(PieceSource([packed(target)]))
    reader.presumed(), reader.refs()
    for entries in reader.entries():
        places.append(sum(len(data) for _, _, data in entries))
    assert len(places) > 5 and max(places[:-1]) < 70_000  # the last one ends with a list of 2,000 ids


def test_an_empty_pack(target: Store) -> None:
    with target.snapshot() as view:
        nothing = Selection(content=False, kinds=frozenset(), order=[], presumes=[], refs=[])
        data = b"".join(pack_stream(view, nothing, "sha256"))
    assert receive(target, PieceSource([data]), take_content=False).objects == 0


# -- refusals ----------------------------------------------------------------------------------------------------------


def test_a_pack_cut_short_anywhere_is_refused(store: Store, target: Store) -> None:
    data = packed(store)
    for size in range(len(data)):
        with pytest.raises(PackRefused):
            read(data[:size])
    refused(data[:-1], target, "ends after")
    refused(data + b"x", target, "behind its end")
    refused(b"", target, "ends after 0 bytes")


def test_any_flipped_bit_is_found(store: Store, target: Store) -> None:
    data = packed(store)
    before = (state(target), count(target))
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 1 << (at % 8)
        with pytest.raises(ObjstoreError):
            receive(target, PieceSource([bytes(changed)]), take_content=False)
    assert (state(target), count(target)) == before


def test_what_is_no_pack_or_of_another_version_or_hash(store: Store, target: Store) -> None:
    refused(b"PK\3\4" + bytes(100), target, "it is no pack")
    data = packed(store)
    refused(data[:8] + b"\0\2" + data[10:], target, "its format is 2, and this program knows 1")
    refused(by_hand([], change=lambda h: h.update(hash="blake3")), target, "keyed by blake3")


def test_a_header_that_lies_is_refused(target: Store) -> None:
    one = [text("one")]
    for change, match in (
        ({"entries": 2}, "holds 1 objects and states 2"),
        ({"entries": 0}, "more objects than the 0"),
        ({"refs": 1}, "holds 0 refs and states 1"),
        ({"presumes": 1}, "presumed objects is not as long"),
        ({"least": "9.0.0"}, "least version"),
        ({"kinds": [("document-chunk", "x")]}, "no version"),
        ({"kinds": [("document-chunk", "0.1.0")] * 2}, "list of kinds"),
        ({"kinds": [("../x", "0.1.0")]}, "list of kinds"),
        ({"entries": 2**33}, "header is wrong"),
        ({"more": 1}, "header is wrong"),
        ({"hash": "md5"}, "a hash that is not known"),
    ):
        refused(by_hand(one, change=lambda header, change=change: header.update(change)), target, match)


def test_a_kind_that_is_not_known_is_refused_with_the_version_that_knows_it(target: Store) -> None:
    data = by_hand([("zebra", b"{}")], change=lambda h: h.update(kinds=[("zebra", "7.1.0")], least="7.1.0"))
    error = refused(data, target, "kind zebra, which objstore 7.1.0 knows")
    assert error.hint is not None and "7.1.0" in error.hint


def test_limits(store: Store, target: Store) -> None:
    data = packed(store)
    refused(data, target, "entries: more than the 3", limits=Limits(entries=3))
    refused(data, target, "refs: more than the 1", limits=Limits(refs=1))
    refused(data, target, "more than the 100 bytes", limits=Limits(bytes=100))
    huge = MAGIC + HEAD.pack(1, 1 << 31)
    refused(huge + bytes(1000), target, "header has 2147483648 bytes")


def test_blocks_that_lie_about_their_length(target: Store) -> None:
    one = text("one")
    raw = ENTRY.pack(0, len(one[1])) + one[1]
    bomb = zstandard.ZstdCompressor().compress(bytes(200 << 20))
    assert len(bomb) < 100_000
    for entries, match in (
        (block(b"E", raw, size=len(raw) + 1), "does not unpack to the size"),
        (block(b"E", raw, size=0), "a block says that it has"),
        (block(b"E", raw, size=1 << 31), "a block says that it has"),
        (block(b"E", raw, frame=bomb), "does not unpack to the size"),
        (block(b"E", raw, frame=bomb, size=1_000_000), "does not unpack to the size"),
        (block(b"E", raw, frame=b"nonsense"), "does not unpack"),
        (block(b"E", raw, frame=zstandard.ZstdCompressor(write_content_size=False).compress(raw)), "unpack"),
        (block(b"E", raw, frame=zstandard.ZstdCompressor().compress(raw) + b"x"), "does not unpack"),
        (BLOCK.pack(b"E", 1 << 31, 100), "a block says that it has"),
        (block(b"E", raw[:3]), "an entry is cut short"),
        (block(b"E", ENTRY.pack(0, 1 << 30) + one[1]), "an entry says that it has 1073741824 bytes"),
        (block(b"E", ENTRY.pack(9, len(one[1])) + one[1]), "an entry is of kind 9"),
        (block(b"Q", raw), "holds 0 objects and states 1"),
    ):
        refused(by_hand([one], entry_blocks=[entries]), target, match)


def test_a_million_empty_entries(target: Store) -> None:
    entries = block(b"E", ENTRY.pack(0, 0) * 10_000)
    data = by_hand([text("one")], entry_blocks=[entries] * 100, change=lambda h: h.update(entries=1_000_000))
    refused(data, target, "an entry says that it has 0 bytes")


def test_objects_that_break_a_rule_are_named(target: Store) -> None:
    one, two = in_order(text("one"), text("two"))
    for entries, at_fault, match in (
        ([two, one], one, "is out of order"),
        ([one, one], one, "comes twice"),
        ([("document-chunk", b'{"text":1,"type":"document-chunk"}')], None, "Expected `str`"),
        ([("document-chunk", b'{"type":"document-chunk","text":"x"}')], None, "not canonical"),
        ([("document-chunk", b'{"text":"x","type":"document-chunk","z":1}')], None, "unknown field"),
        ([("list", b'{"items":["%s"],"type":"list"}' % (b"ab" * 32))], None, f"needs {'ab' * 32}"),
        ([("list", b'{"items":["%s"],"type":"list"}' % (b"AB" * 32))], None, "is not an object id"),
        ([("list", b'{"items":["%s"],"type":"list"}' % (b"xy" * 32))], None, "is not an object id"),
    ):
        at_fault = at_fault or entries[0]
        error = refused(by_hand(entries), target, match)
        assert isinstance(error, PackRefused) and error.object == sha256(at_fault[1]).hexdigest()


def test_what_a_stranger_wrote_is_spelled_out_in_one_short_line(target: Store) -> None:
    odd = b'{"items":[],"type":"list","x\\n\\u202e' + b"y" * 2000 + b'":1}'
    error = refused(by_hand([("list", odd)]), target, "unknown field")
    assert error.message.isprintable() and len(error.message) < 700


def test_a_needed_object_must_come_first(target: Store) -> None:
    one = text("one")
    inner = ("list", b'{"items":["%s"],"type":"list"}' % sha256(one[1]).hexdigest().encode())
    outer = ("list", b'{"items":["%s"],"type":"list"}' % sha256(inner[1]).hexdigest().encode())
    assert read(by_hand([one, inner, outer]))
    refused(by_hand([one, outer, inner]), target, "neither in the pack before it nor presumed")


def test_a_pack_that_lacks_what_it_presumes_names_it(store: Store, target: Store) -> None:
    ref = "flow/1111111111111111/test/x"
    with store.snapshot() as view:
        before = view.ref(ref)
    assert before is not None
    add_round(store, ref, "four")
    data = packed(store, have=[before])
    error = refused(data, target, "builds on it")
    assert isinstance(error, PackRefused) and error.object == before.hex()


def test_an_index_that_leads_elsewhere(target: Store) -> None:
    one = [text("one")]
    refused(by_hand(one, index=lambda raw: raw[:-1] + b"\0"), target, "index does not lead")
    refused(by_hand(one, index=lambda raw: raw[:-1]), target, "index does not lead")
    refused(by_hand(one, index=lambda raw: raw + b"xxxx"), target, "index does not lead")


def test_refs_that_may_not_come(target: Store) -> None:
    one = text("one")
    key = sha256(one[1]).digest()
    for refs, match in (
        ([(b"tag/../x", key)], "may not hold '..'"),
        ([(b"tag", key)], "at least two parts"),
        ([(b"tag/x\xff", key)], "not UTF-8"),
        ([(b"tag/b", key), (b"tag/a", key)], "not in order"),
        ([(b"tag/a", key), (b"tag/a", key)], "not in order"),
        ([(b"tag/x", bytes(32))], "neither in the pack nor here"),
        ([(b"session/s/current", key)], "not exchanged"),
        ([(b"session/s/heads/" + b"0" * 64, key)], "its name says something else"),
        ([(b"content/1111111111111111", key)], "keeps none"),
        ([(b"t/" + b"x" * 400, key)], "longer than it may be"),
    ):
        refused(by_hand([one], refs=refs), target, match)


def test_a_chain_whose_entries_do_not_follow_each_other(target: Store) -> None:
    empty = ("list", b'{"items":[],"type":"list"}')
    frames = sha256(empty[1]).hexdigest().encode()
    first = ("round", b'{"chain":"x","frames":["%s"],"round":1,"type":"round"}' % frames)
    previous = sha256(first[1]).hexdigest().encode()
    second = (
        "round",
        b'{"chain":"x","frames":["%s"],"previous":"%s","round":3,"type":"round"}' % (frames, previous),
    )
    error = refused(by_hand([empty, first, second]), target, "round 3 of x follows round 1")
    assert isinstance(error, PackRefused) and error.object == sha256(second[1]).hexdigest()


def test_content_is_refused_by_a_store_that_keeps_none(target: Store) -> None:
    said = ("text", b'{"text":"said","type":"text"}')
    key = sha256(said[1]).digest()
    error = refused(by_hand([said], refs=[(b"tag/x", key)]), target, "is content")
    assert isinstance(error, PackRefused) and error.object == key.hex()
    refused(by_hand([said], change=lambda h: h.update(content=True)), target, "made with content")
    result = receive(target, PieceSource([by_hand([said])]), take_content=True)
    assert result.added == 1


# -- fuzz --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a small pack."""
    with opened(tmp_path_factory.mktemp("sample") / "store") as made:
        fill(made)
        return packed(made)


@settings(max_examples=300)
@given(st.data())
def test_a_pack_that_was_tampered_with_is_refused_in_one_way(sample: bytes, data: st.DataObject) -> None:
    changed = bytearray(sample)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(changed) - 1))
        how = data.draw(st.sampled_from(("set", "cut", "repeat", "insert")))
        size = data.draw(st.integers(1, 40))
        if how == "set":
            changed[at] = data.draw(st.integers(0, 255))
        elif how == "cut":
            del changed[at : at + size]
        elif how == "repeat":
            changed[at:at] = changed[at : at + size]
        else:
            changed[at:at] = data.draw(st.binary(min_size=size, max_size=size))
        if not changed:
            break
    if bytes(changed) == sample:
        return
    with pytest.raises(PackRefused):
        read(bytes(changed), Limits(bytes=1 << 20))


@settings(max_examples=200)
@given(st.data())
def test_a_pack_with_any_entries_and_right_hashes_is_taken_or_refused(data: st.DataObject) -> None:
    """Past the hashes, which a forger can make right: the objects, the blocks and the order."""
    bodies = st.one_of(
        st.sampled_from([text("one"), text("two"), ("list", b'{"items":[],"type":"list"}')]),
        st.tuples(
            st.sampled_from(["list", "round", "document-chunk", "session-event"]), st.binary(max_size=60)
        ),
        st.tuples(
            st.sampled_from(["list", "round", "fact"]),
            st.dictionaries(
                st.sampled_from(["type", "items", "round", "chain", "frames", "id"]),
                st.one_of(st.integers(), st.text(max_size=5), st.lists(st.text(max_size=3), max_size=2)),
            ).map(msgspec.json.encode),
        ),
    )
    made = by_hand(data.draw(st.lists(bodies, max_size=5)))
    try:
        found, _ = read(made)
    except PackRefused:
        return
    assert [sha256(body).digest() for _, _, body in found] == [key for _, key, _ in found]


def test_the_header_is_what_encode_head_writes() -> None:
    header = Header(content=False, entries=0, hash="sha256", kinds=[], least="0.0.0", presumes=0, refs=0)
    assert by_hand([]).startswith(encode_head(header))
