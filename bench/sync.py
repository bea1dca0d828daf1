"""Sync against Git: a clone, a push of little, finding that there is nothing to do, and the size of packs.

The store is served over loopback HTTP by ``objstore serve`` and cloned by the command. Git clones the same bytes, as
blobs that one commit holds, the way that costs it least: from a path, through a pipe, without a working tree.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import corpus
from bench.measure import command, interleaved, run
from bench.table import Row, rate
from objstore import kinds
from objstore.closure import select
from objstore.core import ListOf
from objstore.objects import check_object
from objstore.pack.writer import pack_stream
from objstore.store import Store
from objstore.sync.exchange import fetch, push
from objstore.sync.manifest import Scope
from objstore.sync.transport import Traffic
from porcelain.remotes.http_client import HttpTransport, parse_http

#: Objects that one ref holds, by way of a list.
_LISTED = 4096
#: Objects of a small push, and refs of a store with many.
_NEW = 1000
_REFS = 100_000


class Workload:
    """The objects as each program has them, below ``folder``."""

    def __init__(self, folder: Path, count: int) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.count = count
        self.store, self.clone = folder / "store", folder / "clone"
        self.git, self.git_clone = folder / "fresh.git", folder / "clone.git"
        self._write_store()
        self._write_git()

    def _write_store(self) -> None:
        ids: list[str] = []
        with Store.init(self.store) as store:
            with store.writer() as writer:
                ids += [writer.put(kind, data) for kind, data in corpus.objects(self.count)]
            batch = store.batch()
            for start in range(0, len(ids), _LISTED):
                made = batch.put("list", kinds.encode(ListOf(items=ids[start : start + _LISTED])))
                batch.move_ref(f"tag/{start // _LISTED:05}", made, None, "")
            store.commit(batch)

    def _write_git(self) -> None:
        run(["git", "init", "--quiet", "--bare", "-b", "main", str(self.git)])
        _import(self.git, (data for _, data in corpus.objects(self.count)))

    def clone_ours(self, url: str) -> float:
        shutil.rmtree(self.clone, ignore_errors=True)
        return run([*command(), "--quiet", "--store", str(self.clone), "clone", url]).seconds

    def clone_git(self) -> float:
        shutil.rmtree(self.git_clone, ignore_errors=True)
        words = ["git", "clone", "--quiet", "--bare", f"file://{self.git}", str(self.git_clone)]
        return run(words).seconds

    # -- a push of little --------------------------------------------------------------------------------------------

    def add(self, number: int) -> int:
        """Add objects to the clone; their size as the store compresses them, in bytes."""
        with Store.open(self.clone) as store:
            with store.snapshot() as view:
                first = view.next_arrival()  # type: ignore[attr-defined]
            batch = store.batch()
            ids = [batch.put(*check_object(_fresh(number, at))) for at in range(_NEW - 1)]
            made = batch.put("list", kinds.encode(ListOf(items=ids)))
            batch.move_ref(f"tag/new{number}", made, None, "")
            store.commit(batch)
            with store.snapshot() as view:
                return sum(len(value) for _, value in view.arrivals(first, first + _NEW))  # type: ignore[attr-defined]

    def push_ours(self, number: int, url: str) -> float:
        self.add(number)
        return run([*command(), "--quiet", "--store", str(self.clone), "push", url]).seconds

    def push_git(self, number: int) -> float:
        blobs = (_bytes(_fresh(number, at)) for at in range(_NEW))
        _import(self.git_clone, blobs, onto=True)
        return run(["git", "-C", str(self.git_clone), "push", "--quiet", "origin", "main"]).seconds

    # -- sizes ---------------------------------------------------------------------------------------------------------

    def pack_size(self) -> int:
        with Store.open(self.store, read_only=True) as store, store.snapshot() as view:
            return sum(map(len, pack_stream(view, select(view, list(view.refs())), store.algorithm)))

    def git_sizes(self) -> tuple[int, int]:
        """Bytes of Git's pack as it was imported and as it is cloned, and after Git took all pains."""
        fresh = _packed(self.git)
        packed = self.git.with_name("repacked.git")
        shutil.rmtree(packed, ignore_errors=True)
        shutil.copytree(self.git, packed)
        subprocess.run(["git", "-C", str(packed), "repack", "-adFq"], check=True)
        return fresh, _packed(packed)


def _bytes(value: object) -> bytes:
    """The canonical bytes of an object."""
    return check_object(value)[1]


def _fresh(number: int, at: int) -> object:
    """An object that was nowhere before."""
    chance = random.Random(number * _NEW + at)
    words = " ".join(f"{chance.getrandbits(24):x}" for _ in range(40))
    return {"text": f"note {number} {at}: {words}", "type": "document-chunk"}


def _import(repository: Path, blobs: Iterator[bytes], *, onto: bool = False) -> None:
    with subprocess.Popen(
        ["git", "-C", str(repository), "fast-import", "--quiet"], stdin=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        count = 0
        for count, data in enumerate(blobs, 1):
            process.stdin.write(b"blob\nmark :%d\ndata %d\n%s\n" % (count, len(data), data))
        head = "commit refs/heads/main\ncommitter bench <bench@localhost> 0 +0000\ndata 1\nx\n"
        parent = "from refs/heads/main^0\n" if onto else ""
        folder = f"new{_packed(repository)}/" if onto else ""
        process.stdin.write((head + parent).encode())
        for number in range(1, count + 1):
            process.stdin.write(f"M 100644 :{number} {folder}{number // _LISTED:03x}/{number:06x}\n".encode())
    if process.returncode:
        raise RuntimeError("git fast-import failed")


def _packed(repository: Path) -> int:
    return sum(path.stat().st_size for path in (repository / "objects" / "pack").glob("*.pack"))


@contextmanager
def _served(store: Path) -> Iterator[str]:
    """``objstore serve`` of a store that takes pushes, and its URL."""
    process = subprocess.Popen(
        [*command(), "--quiet", "--store", str(store), "serve", "--port", "0", "--write"],
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().decode().strip()
    finally:
        process.terminate()
        process.communicate()


def measure(folder: Path, count: int, repetitions: int) -> list[Row]:
    """All rows about ``count`` objects."""
    work = Workload(folder, count)
    with _served(work.store) as url:
        clone = interleaved({"ours": lambda: work.clone_ours(url), "git": work.clone_git}, repetitions)
        numbers = iter(range(1_000_000))
        small = interleaved(
            {"ours": lambda: work.push_ours(next(numbers), url), "git": lambda: work.push_git(next(numbers))},
            max(repetitions, 5),
        )
        traffic = _traffic(work, next(numbers), url)
    ours = work.pack_size()
    fresh, repacked = work.git_sizes()
    size = f"{ours / count:.0f} B each"
    pace, little = count / clone["ours"], f"sync: push {_NEW:,} on top, command"
    return [
        rate("sync: clone over HTTP", count, clone["ours"], "git clone, from a path", clone["git"], 3),
        _budget("sync: clone over HTTP", f"{pace / 1000:.1f} k/s", "60 k/s", pace / 60_000),
        _budget(
            little,
            f"{small['ours'] * 1000:.0f} ms",
            "300 ms",
            0.3 / small["ours"],
        ),
        Row(
            work=little,
            ours=f"{small['ours'] * 1000:.0f} ms",
            peer="git push, to a path",
            theirs=f"{small['git'] * 1000:.0f} ms",
            ratio=small["git"] / small["ours"],
        ),
        *traffic,
        _against("sync: pack", size, "git fast-import's", fresh / count, fresh / ours),
        _against("sync: pack", size, "git repack -adF's", repacked / count, repacked / ours),
        *_many_refs(folder),
    ]


def _budget(work: str, ours: str, theirs: str, ratio: float) -> Row:
    return Row(work=work, ours=ours, peer="budget", theirs=theirs, ratio=ratio, goal=1)


def _against(work: str, ours: str, peer: str, each: float, ratio: float) -> Row:
    return Row(work=work, ours=ours, peer=peer, theirs=f"{each:.0f} B each", ratio=ratio, goal=1)


def _traffic(work: Workload, number: int, url: str) -> list[Row]:
    """Bytes of a small push, and what it takes to find that there is nothing to do."""
    compressed = work.add(number)
    with Store.open(work.clone) as store:
        sent = _exchange(url, lambda way: push(store, way, Scope()))
        nothing = _exchange(
            url, lambda way: (fetch(store, way, Scope(), keeps_content=False), push(store, way, Scope()))
        )
    return [
        _budget(
            f"sync: push {_NEW:,} on top, sent",
            f"{sent.sent:,} B",
            f"1.2 x {compressed:,} B",
            1.2 * compressed / sent.sent,
        ),
        *_idle("sync: nothing to do", nothing),
    ]


def _idle(work: str, traffic: Traffic) -> list[Row]:
    moved = traffic.sent + traffic.received
    requests = traffic.requests
    return [
        _budget(work, f"{requests} requests", "10 requests", 10 / requests),
        _budget(work, f"{moved:,} B", "4,096 B", 4096 / moved),
    ]


def _both(store: Store, way: HttpTransport) -> None:
    fetch(store, way, Scope(), keeps_content=False)
    push(store, way, Scope())


def _exchange(url: str, work: Callable[[HttpTransport], object]) -> Traffic:
    target = parse_http(url)
    way = HttpTransport(target, target.token)
    try:
        work(way)
    finally:
        way.close()
    return way.traffic


def _many_refs(folder: Path) -> list[Row]:
    """Nothing to do, with many refs."""
    place, twin = folder / "refs", folder / "refs-twin"
    with Store.init(place) as store:
        batch = store.batch()
        made = batch.put("list", kinds.encode(ListOf(items=[])))
        for number in range(_REFS):
            batch.move_ref(f"tag/{number}", made, None, "")
        store.commit(batch)
    shutil.copytree(place, twin)
    with _served(place) as url, Store.open(twin) as store:
        traffic = _exchange(url, lambda way: _both(store, way))
    return _idle(f"sync: nothing to do, {_REFS:,} refs", traffic)
