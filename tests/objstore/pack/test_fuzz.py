"""The reader of packs under random damage that knows the format: whatever comes is refused in one way, or is sound.

Damage is done on every layer, and all above it is then made to fit again (lengths, compression, index, hashes), so that
each check is met and not only the last hash. ``-m soak`` goes on for ``OBJSTORE_FUZZ_SECONDS`` of processor time (an
hour) and prints how many packs of which outcome there were.
"""

from __future__ import annotations

import os
import random
import shutil
import struct
import time
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard
from msgspec import Struct

from objstore.errors import CheckFailed
from objstore.pack.format import BLOCK, BLOCK_BYTES, ENTRY, HEAD, MAGIC, PLACE, Limits
from objstore.pack.reader import PackReader
from objstore.store import Store
from objstore.sync.receiving import receive
from objstore.sync.transport import PieceSource
from tests.objstore.pack.test_pack import fill, packed
from tests.objstore.sync.building import TIME, add_fact, opened, sound, state

_LIMITS = Limits(entries=10_000, refs=1000, presumes=1000, bytes=1 << 22)


class Parts(Struct):
    """A pack taken apart: its header as JSON, what it presumes, its refs, and its entries with the number of a kind."""

    header: dict[str, Any]
    presumed: list[bytes]
    refs: list[tuple[bytes, bytes]]
    entries: list[tuple[int, bytes]]


def take_apart(data: bytes) -> Parts:
    size = HEAD.unpack_from(data, len(MAGIC))[1]
    start = len(MAGIC) + HEAD.size
    reader = PackReader(PieceSource([data]))
    numbers = {name: number for number, (name, _) in enumerate(reader.header.kinds)}
    return Parts(
        header=msgspec.json.decode(data[start : start + size]),
        presumed=reader.presumed(),
        refs=[(name.encode(), key) for name, key in reader.refs()],
        entries=[(numbers[kind], body) for block in reader.entries() for kind, _, body in block],
    )


def put_together(parts: Parts, chance: random.Random, damage: str) -> bytes:
    """The pack of ``parts``, right in all that follows from them but for ``damage``."""
    made = bytearray()

    def block(tag: bytes, raw: bytes) -> None:
        here = damage == "block" and chance.random() < 0.4
        if here and chance.random() < 0.5:
            raw = spoil(raw, chance)
        frame = zstandard.ZstdCompressor(level=chance.choice((1, 3))).compress(raw)
        size = len(raw)
        if here:
            way = chance.randrange(5)
            if way == 0:
                size = chance.choice((0, 1, size + 1, 1 << 31, BLOCK_BYTES * 40))
            elif way == 1:
                frame = spoil(frame, chance)
            elif way == 2:
                frame = zstandard.ZstdCompressor(write_content_size=False).compress(raw)
            elif way == 3:
                frame += zstandard.ZstdCompressor().compress(b"more")
            else:
                tag = chance.choice((b"P", b"R", b"E", b"I", b"Z", b"x"))
        made.extend(BLOCK.pack(tag, len(frame), size) + frame)

    header = msgspec.json.encode(parts.header)
    if damage == "header bytes":
        header = spoil(header, chance)
    made += MAGIC + HEAD.pack(1, len(header)) + header
    if parts.presumed:
        block(b"P", b"".join(parts.presumed))
    if parts.refs:
        block(b"R", b"".join(struct.pack(">H", len(name)) + name + key for name, key in parts.refs))
    index, rest = b"", list(parts.entries)
    raws = b""
    while rest:
        count = chance.randrange(1, len(rest) + 1) if damage == "cut blocks" else len(rest)
        group, rest = rest[:count], rest[count:]
        raw = b"".join(ENTRY.pack(number & 255, len(body)) + body for number, body in group)
        index += PLACE.pack(len(made), len(group)) + b"".join(sha256(body).digest()[:4] for _, body in group)
        raws += raw
        block(b"E", raw)
    start = len(made)
    if damage == "index":
        index = spoil(index, chance)
    if index:
        block(b"I", index)
    made += b"Z" + struct.pack(">Q", start) + sha256(raws).digest()
    return bytes(made) + sha256(made).digest()


def spoil(data: bytes, chance: random.Random) -> bytes:
    """Some bytes other than they were, gone, doubled or new."""
    out = bytearray(data)
    for _ in range(chance.randrange(1, 4)):
        at, size = chance.randrange(len(out) + 1), chance.choice((1, 1, 2, 4, 9, 40))
        way = chance.randrange(4)
        if way == 0 and at < len(out):
            out[at] ^= 1 << chance.randrange(8)
        elif way == 1:
            del out[at : at + size]
        elif way == 2:
            out[at:at] = out[at : at + size]
        else:
            out[at:at] = chance.randbytes(size)
    return bytes(out)


def damaged(parts: Parts, data: bytes, chance: random.Random) -> bytes:
    """A pack that is wrong somewhere, or perhaps not."""
    damage = chance.choice(
        ("raw", "header", "header bytes", "block", "cut blocks", "index", "body", "order", "refs")
    )
    if damage == "raw":
        return spoil(data, chance)
    made = msgspec.msgpack.decode(msgspec.msgpack.encode(parts), type=Parts)
    if damage == "header":
        name = chance.choice(list(made.header))
        made.header[name] = chance.choice(
            (0, 1, -1, 2**32, 2**63, "", "sha256", True, None, [], [["x", "1.0.0"]], "9.9.9")
        )
    elif damage == "body" and made.entries:
        at = chance.randrange(len(made.entries))
        number, body = made.entries[at]
        made.entries[at] = (chance.choice((number, chance.randrange(256))), spoil(body, chance))
    elif damage == "order" and made.entries:
        at, to = chance.randrange(len(made.entries)), chance.randrange(len(made.entries))
        way = chance.randrange(3)
        if way == 0:
            made.entries[at], made.entries[to] = made.entries[to], made.entries[at]
        elif way == 1:
            made.entries.insert(to, made.entries[at])
            made.header["entries"] += 1
        else:
            del made.entries[at]
            made.header["entries"] -= 1
    elif damage == "refs":
        way = chance.randrange(4)
        if way == 0 and made.refs:
            at = chance.randrange(len(made.refs))
            made.refs[at] = (spoil(made.refs[at][0], chance), made.refs[at][1])
        elif way == 1 and made.refs:
            at = chance.randrange(len(made.refs))
            made.refs[at] = (made.refs[at][0], chance.choice((chance.randbytes(32), made.refs[-1][1])))
        elif way == 2:
            made.presumed = sorted({*made.presumed, chance.randbytes(32)})
            made.header["presumes"] = len(made.presumed)
        else:
            chance.shuffle(made.refs)
    return put_together(made, chance, damage)


class Fuzz:
    """Packs that are damaged and offered to a store, one after the other."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._chance = random.Random(seed)
        self.outcomes: Counter[str] = Counter()
        with opened(folder / "source") as source:
            fill(source)
            add_fact(source, "/home/x")
            data = packed(source)
        self._samples = [(take_apart(data), data)]
        assert put_together(self._samples[0][0], self._chance, "none")
        with opened(folder / "first"):
            pass

    def run(self) -> Iterator[None]:
        """Offer one more each time."""
        while True:
            with self._fresh() as target:
                before = state(target)
                for _ in range(500):
                    parts, data = self._samples[0]
                    pack = damaged(parts, data, self._chance)
                    outcome = self._offer(target, pack)
                    self.outcomes[outcome] += 1
                    if outcome == "taken":
                        sound(target)
                        break  # the next ones are offered to an empty store again
                    if self._chance.random() < 0.01:
                        assert state(target) == before
                    yield
                assert outcome == "taken" or state(target) == before
            yield

    def _fresh(self) -> Store:
        shutil.rmtree(self._folder / "target", ignore_errors=True)
        shutil.copytree(self._folder / "first", self._folder / "target")
        return Store.open(self._folder / "target", now=lambda: TIME)

    def _offer(self, target: Store, pack: bytes) -> str:
        pieces = [pack[at : at + 700] for at in range(0, len(pack), 700)]
        try:
            receive(target, PieceSource(pieces), take_content=self._chance.random() < 0.5, limits=_LIMITS)
        except CheckFailed as error:
            assert "\n" not in error.message and len(error.message) < 700, error.message
            return type(error).__name__
        return "taken"


def test_damaged_packs_are_refused_or_sound(tmp_path: Path) -> None:
    fuzz = Fuzz(tmp_path, seed=11)
    for _, _ in zip(range(1500), fuzz.run(), strict=False):
        pass
    assert fuzz.outcomes["PackRefused"] > 1000 and fuzz.outcomes["taken"] > 10, fuzz.outcomes


@pytest.mark.soak
def test_damaged_packs_for_long(tmp_path: Path) -> None:
    seconds = float(os.environ.get("OBJSTORE_FUZZ_SECONDS", "3600"))
    seed = int.from_bytes(os.urandom(4), "big")
    fuzz = Fuzz(tmp_path, seed)
    began = time.process_time()
    for _ in fuzz.run():
        if time.process_time() - began > seconds:
            break
    print(f"\nseed {seed}: {sum(fuzz.outcomes.values()):,} packs in {seconds:g} s: {dict(fuzz.outcomes)}")
