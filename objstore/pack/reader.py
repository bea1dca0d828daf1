"""Reading a pack from a stream. Nothing in it is trusted: every length, count and hash is checked before it is used,
and no more than a few blocks are held. What the objects say is checked by ``checking``.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from itertools import pairwise
from typing import Protocol

import zstandard

from objstore import kinds
from objstore.canonical import MAX_SIZE
from objstore.digest import hasher_of_many
from objstore.errors import CheckFailed, ObjstoreError
from objstore.pack.format import (
    BLOCK,
    END,
    ENTRIES,
    ENTRY,
    FINAL,
    HEAD,
    INDEX,
    INDEX_KEY,
    LEAST_ENTRY,
    MAGIC,
    MAX_HEADER,
    MAX_RAW,
    MAX_STORED,
    NAME,
    PLACE,
    PRESUMED,
    REFS,
    VERSION,
    Header,
    Limits,
    PackRefused,
    decode_header,
)
from objstore.refs import MAX_NAME, check_name

#: One entry: the name of its kind, its key, its bytes.
Entry = tuple[str, bytes, bytes]


class Source(Protocol):
    """Where a pack comes from: ``read`` gives up to ``size`` bytes, and none at the end."""

    def read(self, size: int, /) -> bytes: ...


class PackReader:
    """A pack being read. The parts must be taken in order: ``header``, ``presumed``, ``refs``, ``entries``, ``finish``;
    each raises ``PackRefused`` for what is wrong with it.
    """

    def __init__(self, source: Source, limits: Limits | None = None) -> None:
        self._source = source
        self._limits = limits or Limits()
        self._closing = sha256()
        self._identity = sha256()
        self._index = bytearray()
        self._block_start = 0
        self._offset = 0
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 23)
        self._tag = b""
        self.header: Header = self._read_header()
        self._names = self._known_kinds()

    # -- bytes -------------------------------------------------------------------------------------------------------

    def _take(self, size: int) -> bytes:
        """Exactly ``size`` bytes, which were checked to be few."""
        parts: list[bytes] = []
        missing = size
        while missing:
            part = self._source.read(missing)
            if not part:
                raise PackRefused(f"it ends after {self._offset + size - missing} bytes, in the middle")
            parts.append(part)
            missing -= len(part)
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        self._offset += size
        return data

    def _hashed(self, size: int) -> bytes:
        data = self._take(size)
        self._closing.update(data)
        return data

    def _read_header(self) -> Header:
        if self._hashed(len(MAGIC)) != MAGIC:
            raise PackRefused("it is no pack", hint="a pack is written by: objstore bundle create FILE")
        version, size = HEAD.unpack(self._hashed(HEAD.size))
        if version != VERSION:
            raise PackRefused(
                f"its format is {version}, and this program knows {VERSION}",
                hint="it was written by a newer objstore: upgrade",
            )
        if size > MAX_HEADER:
            raise PackRefused(f"its header has {size} bytes: more than {MAX_HEADER}")
        return decode_header(self._hashed(size), self._limits)

    def _known_kinds(self) -> list[str]:
        for name, since in self.header.kinds:
            try:
                kinds.lookup(name)
            except CheckFailed:
                raise PackRefused(
                    f"it holds objects of the kind {name}, which objstore {since} knows and this one does not",
                    hint=f"upgrade to objstore {self.header.least} or newer",
                ) from None
        return [name for name, _ in self.header.kinds]

    # -- blocks ------------------------------------------------------------------------------------------------------

    def _blocks(self, tag: bytes) -> Iterator[bytes]:
        """The raw bytes of the blocks that come next, as long as they have ``tag``."""
        while True:
            if not self._tag:
                self._tag = self._hashed(1)
            if self._tag != tag:
                return
            self._tag = b""
            self._block_start = self._offset - 1
            _, stored, size = BLOCK.unpack(tag + self._hashed(BLOCK.size - 1))
            if not 0 < size <= MAX_RAW or not 0 < stored <= MAX_STORED:
                raise PackRefused(f"a block says that it has {stored} bytes and {size} unpacked")
            yield self._unpack(self._hashed(stored), size)

    def _unpack(self, frame: bytes, size: int) -> bytes:
        try:
            # Without this a frame could make the library reserve what it claims to unpack to.
            if zstandard.frame_content_size(frame) != size:
                raise PackRefused("a block does not unpack to the size that it states")
            raw = self._decompressor.decompress(frame, max_output_size=size, allow_extra_data=False)
        except zstandard.ZstdError as error:
            raise PackRefused(f"a block does not unpack: {error}") from None
        if len(raw) != size:
            raise PackRefused("a block does not unpack to the size that it states")
        return raw

    # -- parts -------------------------------------------------------------------------------------------------------

    def presumed(self) -> list[bytes]:
        """The ids that the receiver must have."""
        found: list[bytes] = []
        for raw in self._blocks(PRESUMED):
            if len(raw) % 32 or len(found) + len(raw) // 32 > self.header.presumes:
                raise PackRefused("its list of presumed objects is not as long as it says")
            found += [raw[at : at + 32] for at in range(0, len(raw), 32)]
        if len(found) != self.header.presumes or any(a >= b for a, b in pairwise(found)):
            raise PackRefused("its list of presumed objects is not as long as it says, or not in order")
        return found

    def refs(self) -> list[tuple[str, bytes]]:
        """The refs on offer, by name; their names are by the rules of names."""
        found: list[tuple[str, bytes]] = []
        last = b""
        for raw in self._blocks(REFS):
            at = 0
            while at < len(raw):
                size = NAME.unpack_from(raw, at)[0] if at + NAME.size <= len(raw) else 0
                stop = at + NAME.size + size
                name, key = raw[at + NAME.size : stop], raw[stop : stop + 32]
                if not 0 < size <= MAX_NAME or len(key) != 32:
                    raise PackRefused("the name of a ref is longer than it may be, or cut short")
                if name <= last:
                    raise PackRefused("its refs are not in order")
                if len(found) == self.header.refs:
                    raise PackRefused(f"it holds more refs than the {self.header.refs} that it states")
                found.append((_checked_name(name), key))
                last, at = name, stop + 32
        if len(found) != self.header.refs:
            raise PackRefused(f"it holds {len(found)} refs and states {self.header.refs}")
        return found

    def entries(self) -> Iterator[list[Entry]]:
        """The entries, a block at a time."""
        make_keys = hasher_of_many(self.header.hash)
        stated = self.header.entries
        count = total = 0
        for raw in self._blocks(ENTRIES):
            start = self._block_start
            total += len(raw)
            if total > self._limits.bytes:
                raise PackRefused(f"its objects have more than the {self._limits.bytes} bytes that are taken")
            self._identity.update(raw)
            names, datas = self._cut(raw)
            keys = make_keys(datas)
            count += len(keys)
            if count > stated:
                raise PackRefused(f"it holds more objects than the {stated} that it states")
            self._index += PLACE.pack(start, len(keys))
            self._index += b"".join([key[:INDEX_KEY] for key in keys])
            yield list(zip(names, keys, datas, strict=True))
        if count != stated:
            raise PackRefused(f"it holds {count} objects and states {stated}")

    def _cut(self, raw: bytes) -> tuple[list[str], list[bytes]]:
        """The kinds and bytes of the entries of a block."""
        unpack, size_of_head, known = ENTRY.unpack_from, ENTRY.size, len(self._names)
        names: list[str] = []
        datas: list[bytes] = []
        at, end = 0, len(raw)
        while at < end:
            if end - at < size_of_head:
                raise PackRefused("an entry is cut short")
            number, size = unpack(raw, at)
            at += size_of_head
            stop = at + size
            if not LEAST_ENTRY <= size <= MAX_SIZE or stop > end:
                raise PackRefused(f"an entry says that it has {size} bytes")
            if number >= known:
                raise PackRefused(f"an entry is of kind {number}, and the pack states {known} kinds")
            names.append(self._names[number])
            datas.append(raw[at:stop])
            at = stop
        return names, datas

    def finish(self) -> bytes:
        """Check the index and the end; the identity of the pack (32 bytes)."""
        start = self._offset - len(self._tag)
        place = 0
        for raw in self._blocks(INDEX):
            if self._index[place : place + len(raw)] != raw:
                raise PackRefused("its index does not lead to its objects")
            place += len(raw)
        if place != len(self._index):
            raise PackRefused("its index does not lead to all of its objects")
        if self._tag != FINAL:
            raise PackRefused(f"a block has the tag {self._tag!r}, which does not belong there")
        end = self._take(END.size)
        self._closing.update(end[:-32])
        index, identity, closing = END.unpack(end)
        if index != start:
            raise PackRefused("it does not say where its index stands")
        if identity != self._identity.digest():
            raise PackRefused("its objects are not those that its identity stands for")
        if closing != self._closing.digest():
            raise PackRefused("its bytes do not match their closing SHA-256")
        if self._source.read(1):
            raise PackRefused("there is something behind its end")
        return bytes(identity)


def _checked_name(raw: bytes) -> str:
    try:
        return check_name(raw.decode())
    except (UnicodeDecodeError, ObjstoreError) as error:
        reason = error.message if isinstance(error, ObjstoreError) else "a name is not UTF-8"
        raise PackRefused(reason) from None
