"""The store: what is put is got back, refs move by compare-and-swap, and the database on disk behaves as its twin."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import lmdb
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from objstore.batch import Batch
from objstore.core import ListOf, Text
from objstore.digest import hasher_of_many
from objstore.errors import (
    AmbiguousId,
    CheckFailed,
    Conflict,
    NotFound,
    RefMoved,
    StorageError,
    UsageError,
)
from objstore.kinds import encode
from objstore.memory import MemoryDatabase
from objstore.refs import ANY
from objstore.store import Store

MIB = 1 << 20


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store.init(tmp_path / "store") as opened:
        yield opened


def text(value: str) -> dict[str, str]:
    return {"text": value, "type": "text"}


def test_put_get_and_ids_are_sha256_of_canonical_json(store: Store) -> None:
    import hashlib
    import json

    value = text("grüße 🦊")
    found = store.put(value)
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    assert found == hashlib.sha256(canonical).hexdigest()
    assert store.get(found) == value
    assert store.get_bytes(found[:12]) == canonical


def test_equal_content_is_stored_once(store: Store) -> None:
    assert store.put(text("once")) == store.put(text("once"))
    batch = store.batch()
    batch.put("text", encode(Text(text="once")))
    batch.put("text", encode(Text(text="twice")))
    assert store.commit(batch) == 1
    with store.snapshot() as view:
        assert view.count() == 2


def test_an_absent_object_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound):
        store.get("ab" * 32)
    with pytest.raises(NotFound):
        store.get("abcdef")
    with pytest.raises(UsageError):
        store.get("abc")
    with pytest.raises(UsageError):
        store.get("not hex")
    with pytest.raises(NotFound):
        store.get("tag/none")


def test_an_object_of_unknown_kind_or_shape_is_refused(store: Store) -> None:
    for value in (
        {"type": "nonsense"},
        {"text": "no type"},
        [1],
        {"type": "text"},
        {"type": "text", "text": "x", "y": 1},
    ):
        with pytest.raises(CheckFailed):
            store.put(value)
    with store.snapshot() as view:
        assert view.count() == 0


def test_abbreviated_ids_odd_even_ambiguous(store: Store) -> None:
    ids = [store.put(text(str(i))) for i in range(2000)]
    for digits in (8, 9, 15, 16, 17, 18, 33, 64):
        for full in ids[:50]:
            same = [i for i in ids if i.startswith(full[:digits])]
            if len(same) == 1:
                with store.snapshot() as view:
                    from objstore.snapshot import expand_id

                    assert expand_id(view, full[:digits].upper()).hex() == full
    groups: dict[str, list[str]] = {}
    for full in ids:
        groups.setdefault(full[:4], []).append(full)
    prefix, members = next((p, m) for p, m in groups.items() if len(m) > 1)
    with pytest.raises(AmbiguousId) as caught:
        store.get(prefix)
    assert set(caught.value.candidates) <= set(members)


def test_keys_that_agree_in_their_first_bytes_are_told_apart(tmp_path: Path) -> None:
    """Such keys cannot be made from real bytes, so a batch is given them ready hashed."""
    from objstore.compression import PLAIN

    first, second = bytes(8) + b"a" * 24, bytes(8) + b"b" * 24
    with Store.init(tmp_path / "s") as store:
        batch = store.batch()
        batch.add_prepared([(first, "text", PLAIN, b"one"), (second, "text", PLAIN, b"two")])
        assert store.commit(batch) == 2
        assert store.commit(batch) == 0
        with store.snapshot() as view:
            got_first, got_second = view.get(first), view.get(second)
            assert got_first is not None and got_first.data == b"one"
            assert got_second is not None and got_second.data == b"two"
            assert view.get(bytes(8) + b"c" * 24) is None
            asked = [second, bytes(8) + b"c" * 24, first]
            assert [found is not None for found in view.kept(asked)] == [True, False, True]
            assert view.get_many(asked) == [view.get(key) for key in asked]
            assert sorted(view.keys_from(bytes(8), None)) == [first, second]


def test_many_objects_are_read_and_verified_at_once(tmp_path: Path) -> None:
    digests = hasher_of_many("sha256")
    values = ["", "a", "long " * 500, *(f"text {i}" for i in range(40))]  # stored plain and compressed
    with Store.init(tmp_path / "store") as disk:
        for store in (disk, Store(MemoryDatabase())):
            keys = [bytes.fromhex(store.put(text(value))) for value in values][::-1]
            other = bytes.fromhex(store.put({"base64": "", "media_type": "x/y", "type": "blob"}))
            with store.snapshot() as view:
                found = view.get_verified(keys, "text", digests)
                assert found == [view.get(key).data for key in keys]  # type: ignore[union-attr]
                assert view.get_verified([*keys, b"\0" * 32], "text", digests) is None
                asked = [other, *keys, b"\0" * 32, keys[0]]
                assert view.get_many(asked) == [view.get(key) for key in asked]
                kept = view.kept(asked)
                assert [None if one is None else one[0] for one in kept] == [view.kind(key) for key in asked]
                here = [one for one in kept if one is not None]
                assert view.unpack(here) == [found for found in view.get_many(asked) if found is not None]
                assert view.get_verified([*keys, other], "text", digests) is None
                assert view.get_verified(keys, "blob", digests) is None
                assert view.get_verified(keys, "unheard-of", digests) is None
                assert view.get_verified(keys, "text", hasher_of_many("blake3")) is None


def test_refs_compare_and_swap_with_reflog(store: Store) -> None:
    one, two = store.put(text("1")), store.put(text("2"))
    store.update_ref("tag/x", one, None, "made")
    with pytest.raises(RefMoved) as caught:
        store.update_ref("tag/x", two, None)
    assert (caught.value.expected, caught.value.found) == (None, one)
    with pytest.raises(RefMoved):
        store.update_ref("tag/x", one, two)
    store.update_ref("tag/x", two, one, "moved")
    store.update_ref("tag/x", None, ANY, "deleted")
    assert store.ref("tag/x") is None
    with store.snapshot() as view:
        log = list(view.reflog("tag/x"))
    assert [(e.old, e.new, e.why) for e in log] == [
        (None, one, "made"),
        (one, two, "moved"),
        (two, None, "deleted"),
    ]
    assert [e.number for e in log] == sorted({e.number for e in log})


def test_a_ref_cannot_name_an_absent_object_and_nothing_of_the_batch_stays(store: Store) -> None:
    batch = store.batch()
    batch.put("text", encode(Text(text="lost")))
    batch.move_ref("tag/a", "00" * 32, None, "")
    with pytest.raises(NotFound):
        store.commit(batch)
    with store.snapshot() as view:
        assert view.count() == 0
    assert store.refs() == {}


def test_several_refs_move_together_or_not_at_all(store: Store) -> None:
    one = store.put(text("1"))
    store.update_ref("tag/b", one, None)
    batch = store.batch()
    two = batch.put("text", encode(Text(text="2")))
    batch.move_ref("tag/a", two, None, "")
    batch.move_ref("tag/b", two, None, "")
    with pytest.raises(RefMoved):
        store.commit(batch)
    assert store.refs() == {"tag/b": one}


@pytest.mark.parametrize(
    "name",
    ["x", "/a", "a/", "a//b", "a/.b", "a/b.", "a/b..c", "a/b.lock", "a/b c", "a/b~", "a/b^", "a/b:", "a/b?", "a/b*",
     "a/b[", "a/b\\", "a/b@{c", "a/b\x7f", "a/b\n", "tag/" + "n" * 400, "a.lock/b", "a./b"],
)  # fmt: skip
def test_bad_ref_names(store: Store, name: str) -> None:
    with pytest.raises(UsageError):
        store.update_ref(name, store.put(text("1")), None)


@pytest.mark.skipif(not __import__("shutil").which("git"), reason="git is not installed")
@pytest.mark.parametrize(
    "name", ["a/b", "landed/0f/claude/x@1+2", "a/b-c_d.e", "é/ü", "a/{b", "a/@", "a/%2E"]
)
def test_names_that_git_accepts_too(store: Store, name: str) -> None:
    assert subprocess.run(["git", "check-ref-format", name], check=False).returncode == 0
    store.update_ref(name, store.put(text("1")), None)


def test_quoted_foreign_ids_are_legal_and_distinct() -> None:
    from objstore.refs import check_name, quote

    names = [
        "..",
        ".",
        "a.lock",
        "a/b",
        "a b",
        "ü",
        "a" * 500,
        "a" * 501,
        "%2E",
        "",
        "\ud800",
        "\n",
        "x.",
        "ü" * 200,
    ]
    quoted = [quote(n) for n in names]
    assert len(set(quoted)) == len(names)
    for one in quoted:
        check_name("landed/" + one)


def test_read_only_opening(tmp_path: Path) -> None:
    with Store.init(tmp_path / "s") as store:
        found = store.put(text("1"))
    with Store.open(tmp_path / "s", read_only=True) as store:
        assert store.get(found) == text("1")
        with pytest.raises(StorageError, match="reading only"):
            store.put(text("2"))


def test_a_store_is_opened_once_a_process(tmp_path: Path) -> None:
    with Store.init(tmp_path / "s"), pytest.raises(UsageError, match="already open"):
        Store.open(tmp_path / "s")


def test_init_twice_and_open_of_nothing(tmp_path: Path) -> None:
    Store.init(tmp_path / "s").close()
    with pytest.raises(Conflict):
        Store.init(tmp_path / "s")
    with pytest.raises(NotFound):
        Store.open(tmp_path / "none")
    (tmp_path / "file").write_text("x")
    with pytest.raises(NotFound):
        Store.open(tmp_path / "file")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "data.mdb").write_bytes(b"not a database" * 1000)
    with pytest.raises(StorageError, match="not a database"):
        Store.open(tmp_path / "odd")


def test_a_store_of_a_newer_format_is_refused_politely(tmp_path: Path) -> None:
    Store.init(tmp_path / "s").close()
    with lmdb.open(str(tmp_path / "s"), max_dbs=16) as env:
        meta = env.open_db(b"meta")
        with env.begin(write=True) as txn:
            txn.put(b"format", b"2", db=meta)
    with pytest.raises(StorageError, match="store format 2") as caught:
        Store.open(tmp_path / "s")
    assert "upgrade" in (caught.value.hint or "")


def test_blake3_store(tmp_path: Path) -> None:
    blake3 = pytest.importorskip("blake3")
    with Store.init(tmp_path / "s", algorithm="blake3") as store:
        found = store.put(text("1"))
        assert found == blake3.blake3(b'{"text":"1","type":"text"}').hexdigest()
        assert store.verify(processes=1).ok
    with pytest.raises(UsageError):
        Store.init(tmp_path / "t", algorithm="md5")
    assert not (tmp_path / "t").exists()


def test_a_full_map_grows_and_other_processes_follow(tmp_path: Path) -> None:
    """With a map of 256 KiB, writing 2 MiB of incompressible text must grow it while another process has it open."""
    Store.init(tmp_path / "s", map_size=MIB // 4).close()
    child = subprocess.Popen(
        [sys.executable, "-c",
         "import sys\n"
         "from objstore.store import Store\n"
         "s = Store.open(sys.argv[1], map_size=1 << 18)\n"
         "print('open', flush=True); sys.stdin.readline()\n"
         "print(len(s.refs()), s.get('tag/last')['text'][:4], flush=True)\n"
         "print(s.put({'type': 'text', 'text': 'from the child'}), flush=True)\n",
         str(tmp_path / "s")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdin and child.stdout
    assert child.stdout.readline() == "open\n"
    with Store.open(tmp_path / "s", map_size=MIB // 4) as store:
        batch = store.batch()
        for _ in range(64):
            last = batch.put("text", encode(Text(text="last" + os.urandom(16384).hex())))
        batch.move_ref("tag/last", last, None, "")
        assert store.commit(batch) == 64
        child.stdin.write("go\n")
        child.stdin.flush()
        assert child.stdout.readline() == "1 last\n"
        from_child = child.stdout.readline().strip()
        assert child.wait(30) == 0
        assert store.get(from_child)["text"] == "from the child"
        assert store.verify(processes=1).ok


def test_a_locked_store_waits_says_so_and_gives_up(tmp_path: Path) -> None:
    from objstore.lock import writer_lock

    Store.init(tmp_path / "s").close()
    waits: list[str] = []
    with Store.open(tmp_path / "s", lock_timeout=0.2, on_wait=lambda: waits.append("waiting")) as store:
        with (
            writer_lock(str(tmp_path / "s" / "write.lock"), 1),
            pytest.raises(Conflict, match="locked by another writer"),
        ):
            store.put(text("1"))
        assert waits == ["waiting"]
        held, done = threading.Event(), threading.Event()

        def hold() -> None:
            with writer_lock(str(tmp_path / "s" / "write.lock"), 1):
                held.set()
                done.wait(0.1)

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait(5)
        store.database.lock_timeout = 20  # type: ignore[union-attr]
        assert store.put(text("1"))
        thread.join()


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    Store.init(tmp_path / "s").close()
    program = (
        "import sys\n"
        "from objstore.store import Store\n"
        "with Store.open(sys.argv[1]) as s:\n"
        "    for i in range(40):\n"
        "        found = s.put({'type': 'text', 'text': sys.argv[2] + str(i)})\n"
        "        s.update_ref(f'tag/{sys.argv[2]}/{i}', found, None)\n"
        "        s.put({'type': 'text', 'text': 'both' + str(i)})\n"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "s"), name]) for name in ("a", "b")
    ]
    assert [c.wait(60) for c in children] == [0, 0]
    with Store.open(tmp_path / "s") as store:
        assert len(store.refs("tag/")) == 80
        with store.snapshot() as view:
            assert view.count() == 120
        assert store.verify(processes=1).ok


def test_a_killed_writer_leaves_the_last_commit(tmp_path: Path) -> None:
    Store.init(tmp_path / "s").close()
    program = (
        "import sys, os\n"
        "from objstore.store import Store\n"
        "from objstore.writing import append, write_transaction\n"
        "s = Store.open(sys.argv[1])\n"
        "s.put({'type': 'text', 'text': 'kept'})\n"
        'b = s.batch(); b.put(\'text\', b\'{"text":"lost","type":"text"}\')\n'
        "with write_transaction(s.database) as txn:\n"
        "    append(txn, s.database, b.prepared())\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", program, str(tmp_path / "s")], check=False).returncode == -9
    with Store.open(tmp_path / "s", lock_timeout=1) as store:
        with store.snapshot() as view:
            assert [stored.data for _, stored in view.objects()] == [b'{"text":"kept","type":"text"}']
        store.put(text("after"))
        assert store.verify(processes=1).ok


def test_the_bulk_writer_equals_putting_one_by_one(tmp_path: Path) -> None:
    datas = [encode(Text(text=f"line {i % 7000}")) for i in range(9000)]
    with Store.init(tmp_path / "s") as store:
        with store.writer() as writer:
            ids = [writer.put("text", d) for d in datas]
        assert writer.added == 7000
        assert [store.get_bytes(i) for i in ids[:3000:7]] == datas[:3000:7]
        with store.snapshot() as view:
            assert view.count() == 7000
        assert store.verify(processes=1).ok


def test_derived_and_local_refs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from objstore import refs

    monkeypatch.setattr(refs, "_special", list(refs._special))
    refs.register_local("test/*/here")
    refs.register_derived(
        "test/*/first", lambda view, name: next((k.hex() for _, k in view.refs("test/")), None)
    )
    with Store.init(tmp_path / "s") as store:
        one = store.put(text("1"))
        with pytest.raises(NotFound):
            store.get("test/a/first")
        store.update_ref("test/a/heads", one, None)
        store.update_ref("test/a/here", one, None)
        assert store.get("test/a/first") == text("1")
        assert store.refs() == {"test/a/heads": one}
        assert store.ref("test/a/here") == one
        with pytest.raises(UsageError, match="derived"):
            store.update_ref("test/a/first", one, None)
        with store.snapshot() as view:
            assert list(view.reflog("test/a/here")) == []


names = st.sampled_from(["tag/a", "tag/b", "x/y/z"])
values = st.text(max_size=40)


class TwinMachine(RuleBasedStateMachine):
    """Any sequence of commits leaves the database on disk and its twin in memory in the same state."""

    @initialize(tmp=st.just(None))
    def start(self, tmp: None) -> None:
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        self.disk = Store.init(os.path.join(self.folder.name, "s"), now=lambda: "t")
        self.memory = Store(MemoryDatabase(), now=lambda: "t")
        self.ids: list[str] = []

    @rule(
        texts=st.lists(values, max_size=4),
        moves=st.lists(st.tuples(names, st.integers(0, 20), st.booleans(), st.booleans()), max_size=3),
        key=st.sampled_from([b"k1", b"k2"]),
        value=st.one_of(st.none(), st.binary(min_size=1, max_size=8)),
    )
    def commit(
        self, texts: list[str], moves: list[tuple[str, int, bool, bool]], key: bytes, value: bytes | None
    ) -> None:
        def build(store: Store) -> Batch:
            batch = store.batch()
            fresh = [batch.put("text", encode(Text(text=t))) for t in texts]
            batch.put("list", encode(ListOf(items=fresh)))
            for name, pick, delete, right in moves:
                pool = self.ids + fresh
                new = None if delete or not pool else pool[pick % len(pool)]
                batch.move_ref(name, new, store.ref(name) if right else ANY if pick % 2 else "00" * 32, "why")
            batch.set_local(key, value)
            batch.set_derived(key, value)
            return batch

        outcomes = []
        for store in (self.disk, self.memory):
            batch = build(store)
            try:
                outcomes.append(("added", store.commit(batch)))
            except (RefMoved, NotFound) as error:
                outcomes.append((type(error).__name__, 0))
        assert outcomes[0] == outcomes[1]
        if outcomes[0][0] == "added":
            with self.memory.snapshot() as view:
                self.ids = [k.hex() for k, s in view.objects() if s.kind == "text"]

    @invariant()
    def same(self) -> None:
        if not hasattr(self, "disk"):
            return
        with self.disk.snapshot() as ours, self.memory.snapshot() as model:
            assert sorted(ours.objects()) == sorted(model.objects())
            assert list(ours.refs()) == list(model.refs())
            for name in ("tag/a", "tag/b", "x/y/z"):
                assert [e[2:] for e in ours.reflog(name)] == [e[2:] for e in model.reflog(name)]
            assert list(ours.local_items(b"")) == list(model.local_items(b""))
            assert list(ours.derived_items(b"k")) == list(model.derived_items(b"k"))

    def teardown(self) -> None:
        if hasattr(self, "disk"):
            assert self.disk.verify(processes=1).ok
            self.disk.close()
            self.folder.cleanup()


TestTwin = TwinMachine.TestCase
TestTwin.settings = settings(max_examples=25, stateful_step_count=12, deadline=None)
