"""Requests and answers as frames in a stream of bytes: a tag (1 byte), a length (4, big-endian), a body.

======  =================================================================================
``Q``   a request: MessagePack of its name and its arguments
``V``   the answer: MessagePack of the value
``X``   the answer where it failed: MessagePack of exit code, message and hint
``D``   a piece of a pack, behind the request or the answer that it belongs to
``E``   the end of that pack
======  =================================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct as Layout
from typing import Any, Protocol

import msgspec

from objstore.errors import CheckFailed, Conflict, NotFound, ObjstoreError, StorageError, UsageError
from objstore.pack.reader import Source

HEAD = Layout(">cI")
REQUEST, VALUE, FAILURE, PIECE, END = b"Q", b"V", b"X", b"D", b"E"
#: Longest body of a frame: pieces are cut, and no request or answer is longer.
MAX_BODY = 64 * 1024 * 1024
PIECE_BYTES = 256 * 1024

_ERRORS: dict[int, type[ObjstoreError]] = {
    error.exit_code: error for error in (CheckFailed, UsageError, NotFound, Conflict, StorageError)
}


class Sink(Protocol):
    """Where frames go."""

    def write(self, data: bytes, /) -> object: ...

    def flush(self) -> object: ...


def write_frame(sink: Sink, tag: bytes, body: bytes = b"") -> int:
    """Write a frame; how many bytes it had."""
    sink.write(HEAD.pack(tag, len(body)) + body)
    return HEAD.size + len(body)


def read_frame(source: Source) -> tuple[bytes, bytes] | None:
    """The next frame, tag and body; None where the stream ended between frames. Raises ``StorageError`` where it ended
    within one, or what came is no frame."""
    head = _take(source, HEAD.size, may_end=True)
    if not head:
        return None
    tag, size = HEAD.unpack(head)
    if size > MAX_BODY:
        raise StorageError(
            "the other side sent what is no objstore protocol", hint="is objstore installed there?"
        )
    return tag, _take(source, size)


def _take(source: Source, size: int, *, may_end: bool = False) -> bytes:
    parts: list[bytes] = []
    missing = size
    while missing:
        part = source.read(missing)
        if not part:
            if may_end and missing == size:
                return b""
            raise StorageError("the connection was cut", hint="try again: what was complete is kept")
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def write_pieces(sink: Sink, pieces: Iterable[bytes]) -> int:
    """Write the pieces of a pack and its end; how many bytes."""
    sent = 0
    for piece in pieces:
        for start in range(0, len(piece), PIECE_BYTES):
            sent += write_frame(sink, PIECE, piece[start : start + PIECE_BYTES])
    return sent + write_frame(sink, END)


def read_pieces(source: Source) -> Iterator[bytes]:
    """The pieces of a pack up to its end. Raises what the other side says went wrong meanwhile."""
    while True:
        frame = read_frame(source)
        if frame is None:
            raise StorageError("the connection was cut", hint="try again: what was complete is kept")
        tag, body = frame
        if tag == END:
            return
        if tag == FAILURE:
            raise failure(body)
        if tag != PIECE:
            raise StorageError(f"the other side sent a frame {tag!r} in the middle of a pack")
        yield body


def failure_body(error: ObjstoreError) -> bytes:
    """What is sent of an error."""
    return msgspec.msgpack.encode((error.exit_code, error.message, error.hint))


def failure(body: bytes) -> ObjstoreError:
    """The error that the other side sent, to be raised here."""
    try:
        code, message, hint = msgspec.msgpack.decode(body, type=tuple[int, str, str | None])
    except (msgspec.ValidationError, msgspec.DecodeError):
        return StorageError("the other side failed and did not say how")
    return _ERRORS.get(code, StorageError)(f"the other side says: {message[:2000]}", hint=hint)


def decode(body: bytes, type: Any) -> Any:
    """The value of a request or an answer; raises ``StorageError`` for what is none."""
    try:
        return msgspec.msgpack.decode(body, type=type)
    except (msgspec.ValidationError, msgspec.DecodeError, RecursionError) as error:
        raise StorageError(f"the other side sent what is no objstore protocol: {error}") from None
