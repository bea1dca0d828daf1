"""Taking packs in while things go wrong: a process that is killed, a disk that is full, indexes that follow."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from objstore.closure import select
from objstore.pack.writer import pack_stream
from objstore.store import Store
from objstore.sync import receiving
from objstore.sync.receiving import receive
from objstore.sync.transport import PieceSource
from porcelain.lineage.facts.store import KnownFacts, all_facts
from tests.objstore.sync.building import add_fact, opened, put_tags, sound, state, unite

ROOT = Path(__file__).resolve().parents[3]
UNPACK = "import sys; from porcelain.main import main; sys.exit(main(sys.argv[1:]))"


def pack(store: Store) -> bytes:
    with store.snapshot() as view:
        return b"".join(pack_stream(view, select(view, list(view.refs())), store.algorithm))


def start(*argv: str, before: str = "") -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", before + UNPACK, *argv],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def test_a_receiver_that_is_killed_at_any_moment(tmp_path: Path) -> None:
    with opened(tmp_path / "from") as source:
        put_tags(source, 20_000)
        (tmp_path / "p.objpack").write_bytes(pack(source))
        whole = state(source)
    with opened(tmp_path / "into") as store:
        empty = state(store)
    began = time.monotonic()
    argv = ["--store", str(tmp_path / "into"), "unpack", str(tmp_path / "p.objpack")]
    chance = random.Random(7)
    with opened(tmp_path / "timed"):
        pass
    process = start("--store", str(tmp_path / "timed"), "unpack", str(tmp_path / "p.objpack"))
    assert process.wait(60) == 0
    duration = time.monotonic() - began
    for _ in range(6):
        process = start(*argv)
        time.sleep(chance.uniform(0.3, 1.0) * duration)
        process.send_signal(signal.SIGKILL)
        process.wait()
        with Store.open(tmp_path / "into") as store:
            found = state(store)
            assert found in (empty, whole)
            sound(store)
            if found == whole:
                break
    assert start(*argv).wait(60) == 0
    with Store.open(tmp_path / "into") as store:
        assert state(store) == whole
    # What a killed process had spooled is gone with it.
    assert {one.name for one in (tmp_path / "into").iterdir()} == {"data.mdb", "lock.mdb", "write.lock"}


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
def test_a_full_disk_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    with opened(tmp_path / "from") as source:
        put_tags(source, 5_000)
        (tmp_path / "p.objpack").write_bytes(pack(source))
        whole = state(source)
    with opened(tmp_path / "into") as store:
        empty = state(store)
    argv = ["--store", str(tmp_path / "into"), "unpack", str(tmp_path / "p.objpack")]
    limit = (tmp_path / "into" / "data.mdb").stat().st_size + 200_000
    before = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}));"
    )
    process = start(*argv, before=before)
    _, said = process.communicate()
    assert process.returncode == 5, said
    assert said.count(b"\n") <= 2 and b"Traceback" not in said
    with Store.open(tmp_path / "into") as store:
        assert state(store) == empty
        sound(store)
    assert start(*argv).wait(60) == 0
    with Store.open(tmp_path / "into") as store:
        assert state(store) == whole


def test_large_packs_go_through_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiving, "_HELD_BYTES", 1000)
    monkeypatch.setattr(receiving, "_GROUP_OBJECTS", 10)
    with opened(tmp_path / "from") as source, opened(tmp_path / "into") as store:
        put_tags(source, 500)
        unite(store, source)
        assert state(store) == state(source)
        sound(store)


def test_an_import_after_a_fetch_knows_the_facts_that_came(tmp_path: Path) -> None:
    with opened(tmp_path / "a") as a, opened(tmp_path / "b") as b:
        add_fact(a, "/home/x", revision=3)
        add_fact(b, "/home/x", revision=2)
        add_fact(b, "/home/y")
        unite(b, a)
        with b.snapshot() as view:
            known = dict(KnownFacts(view))
            assert {one.columns["value"]: one.revision for one in known.values()} == {
                "/home/x": 3,
                "/home/y": 1,
            }
            assert {one.id for _, one in all_facts(view)} == known.keys()


def test_a_writer_in_between_makes_no_difference(tmp_path: Path) -> None:
    """Refs are joined with what stands there when the transaction begins, not when the pack arrived."""
    with opened(tmp_path / "a") as a, opened(tmp_path / "b") as b:
        put_tags(a, 3)
        data = pack(a)

        def pieces():
            yield data[:-10]
            b.update_ref("tag/0001", b.put({"text": "mine", "type": "document-chunk"}), None)
            yield data[-10:]

        result = receive(b, PieceSource(pieces()), take_content=False)
        assert result.diverged == ["tag/0001"]
        assert len(b.refs("tag/0001")) == 2
