"""Objects against Git: writing, verifying, reading at random, bytes on disk. Git stores the same canonical bytes as
blobs, by its own bulk importer, in one pack."""

from __future__ import annotations

import gc
import hashlib
import random
import shutil
import subprocess
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from msgspec import Struct

from bench import corpus
from bench.measure import command, disk_bytes, interleaved, run, timed
from bench.table import Row, rate
from objstore import kinds
from objstore.store import Store

#: Objects that are decoded at a time for writing from Structs; the store is flushed after each lot.
_LOT = 250_000
_READS = 200_000
_SEED = 7


class Workload:
    """The objects, as each program wants them, in files under ``folder``."""

    def __init__(self, folder: Path, count: int) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.count = count
        self.store, self.piped_store = folder / "store", folder / "piped-store"
        self.git, self.packed_git = folder / "fresh.git", folder / "repacked.git"
        self.lines, self.stream = folder / "objects.jsonl", folder / "fast-import"
        self.ids, self.git_ids = folder / "ids", folder / "git-ids"
        self.objects = list(corpus.objects(count))
        self.size = sum(len(data) for _, data in self.objects)
        with open(self.lines, "wb") as lines, open(self.stream, "wb") as stream:
            for _, data in self.objects:
                lines.write(data + b"\n")
                stream.write(b"blob\ndata %d\n%s\n" % (len(data), data))
        sample = random.Random(_SEED).sample(self.objects, min(count, _READS))
        self.wanted = [hashlib.sha256(data).digest() for _, data in sample]
        self.ids.write_text("".join(key.hex() + "\n" for key in self.wanted))
        self.git_ids.write_text("".join(_git_id(data) + "\n" for _, data in sample))
        gc.collect()
        gc.freeze()  # what the harness holds is no part of the work

    # -- writing -----------------------------------------------------------------------------------------------------

    def write_bytes(self) -> float:
        """Canonical bytes through the library."""
        with _fresh(self.store) as store:
            return timed(lambda: _write(store, self.objects))

    def write_structs(self) -> float:
        """Structs through the library, made canonical on the way."""
        seconds = 0.0
        with _fresh(self.store) as store:
            for start in range(0, self.count, _LOT):
                lot = [(kind, kinds.decode(kind, data)) for kind, data in self.objects[start : start + _LOT]]
                seconds += timed(partial(_write_structs, store, lot))
        return seconds

    def write_piped(self) -> float:
        """JSON lines through the command, parsed, checked and made canonical."""
        shutil.rmtree(self.piped_store, ignore_errors=True)
        run([*command(), "--store", str(self.piped_store), "init"])
        return run(
            [*command(), "--store", str(self.piped_store), "hash-object", "-w", "--stdin", "--batch"],
            stdin=self.lines,
        ).seconds

    def write_git(self) -> float:
        """``git fast-import``; not durable by default."""
        shutil.rmtree(self.git, ignore_errors=True)
        run(["git", "init", "--quiet", "--bare", str(self.git)])
        return run(["git", "-C", str(self.git), "fast-import", "--quiet"], stdin=self.stream).seconds

    # -- verifying and reading ---------------------------------------------------------------------------------------

    def verify(self) -> float:
        return run([*command(), "--store", str(self.store), "verify", "--processes=2"]).seconds

    def verify_git(self) -> float:
        return run(["git", "-C", str(self.git), "fsck", "--no-dangling", "--no-progress"]).seconds

    def read(self) -> float:
        """Objects at random through the library, in one snapshot."""
        with Store.open(self.store, read_only=True) as store, store.snapshot() as view:
            get = view.get
            return timed(lambda: [None for key in self.wanted if get(key) is None])

    def read_piped(self) -> float:
        return run([*command(), "--store", str(self.store), "cat", "--batch"], stdin=self.ids).seconds

    def read_git(self, repository: Path, *options: str) -> float:
        arguments = ["git", "-C", str(repository), "cat-file", "--batch", *options]
        return run(arguments, stdin=self.git_ids).seconds

    def repack(self) -> None:
        shutil.rmtree(self.packed_git, ignore_errors=True)
        shutil.copytree(self.git, self.packed_git)
        subprocess.run(["git", "-C", str(self.packed_git), "repack", "-adkFq"], check=True)


def measure(folder: Path, count: int, repetitions: int) -> list[Row]:
    """All rows about ``count`` objects; the files stay under ``folder``."""
    work = Workload(folder, count)
    write = interleaved(
        {
            "bytes": work.write_bytes,
            "structs": work.write_structs,
            "git": work.write_git,
            "piped": work.write_piped,
        },
        repetitions,
    )
    verify = interleaved({"ours": work.verify, "git": work.verify_git}, repetitions)
    work.repack()
    read = interleaved(
        {
            "ours": work.read,
            "fresh": lambda: work.read_git(work.git),
            "piped": work.read_piped,
            "repacked": lambda: work.read_git(work.packed_git),
            "buffered": lambda: work.read_git(work.packed_git, "--buffer"),
        },
        repetitions,
    )
    ours, theirs = disk_bytes(work.store), disk_bytes(work.git / "objects")
    reads = len(work.wanted)
    return [
        rate("write, library, from bytes", count, write["bytes"], "git fast-import", write["git"], 4),
        rate("write, library, from structs", count, write["structs"], "git fast-import", write["git"]),
        rate("write, hash-object -w --batch", count, write["piped"], "git fast-import", write["git"], 2.5),
        rate("verify, 2 processes", count, verify["ours"], "git fsck", verify["git"], 5),
        rate("read, library", reads, read["ours"], "cat-file --batch, repacked", read["repacked"], 2),
        rate("read, library", reads, read["ours"], "the same --buffer", read["buffered"]),
        rate("read, cat --batch", reads, read["piped"], "cat-file --batch, fresh", read["fresh"], 2),
        Row(
            work="bytes on disk / data",
            ours=f"{ours / work.size:.3f}",
            peer="git fast-import",
            theirs=f"{theirs / work.size:.3f}",
            ratio=theirs / ours,
            goal=1,
        ),
    ]


def _fresh(path: Path) -> Store:
    shutil.rmtree(path, ignore_errors=True)
    return Store.init(path)


def _write(store: Store, objects: Iterable[tuple[str, bytes]]) -> None:
    with store.writer() as writer:
        put = writer.put
        for kind, data in objects:
            put(kind, data)


def _write_structs(store: Store, objects: Iterable[tuple[str, Struct]]) -> None:
    encode = kinds.encode
    _write(store, ((kind, encode(obj)) for kind, obj in objects))


def _git_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0%s" % (len(data), data), usedforsecurity=False).hexdigest()
