"""Writing a pack: a stream of bytes out of one snapshot, in bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import islice
from typing import Any

import zstandard

from objstore import kinds
from objstore.closure import Selection
from objstore.errors import NotFound
from objstore.pack.format import (
    BLOCK,
    BLOCK_BYTES,
    END,
    ENTRIES,
    ENTRY,
    FINAL,
    INDEX,
    INDEX_KEY,
    NAME,
    PLACE,
    PRESUMED,
    REFS,
    Header,
    encode_head,
    version_key,
)
from objstore.snapshot import Kept, Snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Future

#: As small as 3 for blocks of objects, and a third less work.
LEVEL = 2
#: Objects that are read at a time, and blocks that are compressed in one call.
_READ = 512
_TOGETHER = 16
#: Calls that may be on their way.
_AHEAD = 2

#: A raw block, and what stands in the index about its entries.
_Raw = tuple[bytes, list[bytes]]


def pack_stream(view: Snapshot, selection: Selection, algorithm: str) -> Iterator[bytes]:
    """The bytes of the pack of ``selection``, which ``closure.select`` made from ``view``, in pieces.

    Raises ``NotFound`` when an object has gone meanwhile, which a store never lets happen.
    """
    names = sorted(selection.kinds)
    since = [kinds.lookup(name).since for name in names]
    header = Header(
        content=selection.content,
        entries=len(selection.order),
        hash=algorithm,
        kinds=list(zip(names, since, strict=True)),
        least=max(since, key=version_key, default="0.0.0"),
        presumes=len(selection.presumes),
        refs=len(selection.refs),
    )
    return _Writing(view, selection, header).pieces()


class _Writing:
    """One pack being written: how far it has come, its hashes, and its index."""

    def __init__(self, view: Snapshot, selection: Selection, header: Header) -> None:
        self._view = view
        self._selection = selection
        self._header = header
        self._numbers = {name: number for number, (name, _) in enumerate(header.kinds)}
        self._closing = sha256()
        self._identity = sha256()
        self._offset = 0
        self._index: list[bytes] = []

    def pieces(self) -> Iterator[bytes]:
        selection = self._selection
        yield self._counted(encode_head(self._header))
        yield from self._blocks(PRESUMED, _cut(selection.presumes))
        yield from self._blocks(REFS, _cut(map(_ref, selection.refs)))
        yield from self._blocks(ENTRIES, self._entries())
        start = self._offset
        yield from self._blocks(INDEX, _cut(self._index))
        head = self._counted(FINAL + END.pack(start, self._identity.digest(), b"")[:-32])
        yield head + self._closing.digest()

    def _counted(self, data: bytes) -> bytes:
        self._closing.update(data)
        self._offset += len(data)
        return data

    def _entries(self) -> Iterator[_Raw]:
        numbers, head = self._numbers, ENTRY.pack
        rest = iter(self._selection.order)
        parts: list[bytes] = []
        ids: list[bytes] = []
        size = 0
        while keys := list(islice(rest, _READ)):
            objects = self._view.unpack(self._kept(keys))
            entries = [head(numbers[kind], len(data)) + data for kind, data in objects]
            short = [key[:INDEX_KEY] for key in keys]
            start = 0
            for stop, entry in enumerate(entries, 1):
                size += len(entry)
                if size >= BLOCK_BYTES:
                    parts += entries[start:stop]
                    ids += short[start:stop]
                    yield b"".join(parts), ids
                    parts, ids, size, start = [], [], 0, stop
            parts += entries[start:]
            ids += short[start:]
        if parts:
            yield b"".join(parts), ids

    def _kept(self, keys: list[bytes]) -> list[Kept]:
        """Objects as the store keeps them; those that the selection does not hold are looked up."""
        held = self._selection.held.get
        kept = [held(key) for key in keys]
        if None in kept:
            missing = sorted(key for key, one in zip(keys, kept, strict=True) if one is None)
            found = dict(zip(missing, self._view.kept(missing), strict=True))
            kept = [one or found[key] for key, one in zip(keys, kept, strict=True)]
        here = [one for one in kept if one is not None]
        if len(here) < len(keys):
            gone = keys[kept.index(None)]
            raise NotFound(f"{gone.hex()}: no such object")
        return here

    def _blocks(self, tag: bytes, raws: Iterable[_Raw]) -> Iterator[bytes]:
        """Blocks of these raw bytes; compressed in another thread, while this one reads what comes next, where there is
        more than is compressed in one call."""
        compressor = zstandard.ZstdCompressor(level=LEVEL)
        rest = iter(raws)
        group = list(islice(rest, _TOGETHER))
        if len(group) < _TOGETHER:
            if group:
                yield self._finish(tag, group, _compress(compressor, group))
            return
        from concurrent.futures import ThreadPoolExecutor

        waiting: deque[tuple[list[_Raw], Future[list[bytes]]]] = deque()
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="pack") as pool:
            while group:
                waiting.append((group, pool.submit(_compress, compressor, group)))
                group = list(islice(rest, _TOGETHER))
                if len(waiting) > _AHEAD:
                    done, task = waiting.popleft()
                    yield self._finish(tag, done, task.result())
            for done, task in waiting:
                yield self._finish(tag, done, task.result())

    def _finish(self, tag: bytes, group: list[_Raw], frames: list[bytes]) -> bytes:
        parts: list[bytes] = []
        for (raw, ids), frame in zip(group, frames, strict=True):
            if tag == ENTRIES:
                self._identity.update(raw)
                self._index.append(PLACE.pack(self._offset, len(ids)) + b"".join(ids))
            parts.append(self._counted(BLOCK.pack(tag, len(frame), len(raw)) + frame))
        return b"".join(parts)


def _compress(compressor: Any, group: list[_Raw]) -> list[bytes]:
    raws = [raw for raw, _ in group]
    return [frame.tobytes() for frame in compressor.multi_compress_to_buffer(raws, threads=1)]


def _ref(ref: tuple[str, bytes]) -> bytes:
    name = ref[0].encode()
    return NAME.pack(len(name)) + name + ref[1]


def _cut(pieces: Iterable[bytes]) -> Iterator[_Raw]:
    """``pieces`` run together into blocks; a piece may span several only where it is longer than one."""
    parts: list[bytes] = []
    size = 0
    for piece in pieces:
        for start in range(0, len(piece), BLOCK_BYTES):
            part = piece[start : start + BLOCK_BYTES]
            parts.append(part)
            size += len(part)
            if size >= BLOCK_BYTES:
                yield b"".join(parts), []
                parts, size = [], 0
    if parts:
        yield b"".join(parts), []
