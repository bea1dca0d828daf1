"""Reading the answer of a chat-completions endpoint: a stream of events, or one JSON document.

Everything in it is foreign: sizes are bounded, bytes must be UTF-8, and what cannot be read raises ``BadReply``.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any

from objstore.errors import ObjstoreError
from porcelain.providers.redaction import redact_text

#: Longest line of a stream, and longest JSON document, in bytes.
MAX_LINE = 1024 * 1024
_SHOWN = 200


class BadReply(ObjstoreError):
    """The endpoint's answer is not what such an endpoint sends."""

    exit_code = 5


class CutOff(BadReply):
    """The reply ended before it said that it does."""


class ReplyError(ObjstoreError):
    """The endpoint says that something went wrong; the text is its own words, shortened."""

    exit_code = 5


def said(value: Any) -> str:
    """What a server says of an error, as a short line that is safe to print."""
    if isinstance(value, dict):
        value = value.get("message") or value.get("error") or value.get("code") or "no reason given"
        if isinstance(value, dict):
            return said(value)
    line = " ".join("".join(c if c.isprintable() else " " for c in str(value)).split())
    return redact_text(line)[:_SHOWN] or "no reason given"


def printable(text: str) -> str:
    """``text`` without control and invisible formatting characters other than line breaks, and without halves of
    surrogate pairs: what a model writes reaches a terminal."""
    return "".join(
        c if c == "\n" or unicodedata.category(c) not in ("Cc", "Cf", "Cs") else " " if c in "\t\r" else ""
        for c in text
    )


def _value(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise BadReply("the endpoint sent text that is not UTF-8") from None
    except (ValueError, RecursionError):
        raise BadReply("the endpoint sent something that is not JSON") from None
    if not isinstance(value, dict):
        raise BadReply("the endpoint sent JSON of another shape than a chat completion")
    if value.get("error"):
        raise ReplyError(f"the endpoint reports an error: {said(value['error'])}")
    return value


def _choice(value: dict[str, Any], part: str) -> tuple[str, str | None]:
    """The text of the first choice, and why it ended (None while it goes on)."""
    choices = value.get("choices")
    if choices == [] or choices is None:
        return "", None  # a list of figures, or a sign of life
    try:
        content = choices[0].get(part, {}).get("content")
        reason = choices[0].get("finish_reason")
    except (AttributeError, IndexError, KeyError, TypeError):
        raise BadReply("the endpoint sent JSON of another shape than a chat completion") from None
    if not (content is None or isinstance(content, str)) or not (reason is None or isinstance(reason, str)):
        raise BadReply("the endpoint sent JSON of another shape than a chat completion")
    return content or "", reason


def lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Lines without their ends; one that is longer than ``MAX_LINE`` raises ``BadReply``."""
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        if max(map(len, (*whole, rest))) > MAX_LINE:
            raise BadReply(f"the endpoint sent a line of more than {MAX_LINE} bytes")
        for line in whole:
            yield line.rstrip(b"\r")
    if rest:
        yield rest


def streamed(pieces: Iterable[bytes]) -> Iterator[str]:
    """The text of a stream of server-sent events, as it comes. Ends well only where the stream says that it ends."""
    reason: str | None = None
    for line in lines(pieces):
        if not line.startswith(b"data:"):
            continue
        data = line[5:].strip()
        if data == b"[DONE]":
            _finished(reason or "stop")
            return
        text, why = _choice(_value(data), "delta")
        reason = why or reason
        if text:
            yield text
    if reason is None:
        raise CutOff("the connection was closed in the middle of the answer")
    _finished(reason)


def whole(pieces: Iterable[bytes]) -> str:
    """The text of a reply that came as one JSON document."""
    data = b""
    for piece in pieces:
        data += piece
        if len(data) > MAX_LINE:
            raise BadReply(f"the endpoint sent more than {MAX_LINE} bytes")
    text, reason = _choice(_value(data), "message")
    _finished(reason or "stop")
    return text


def _finished(reason: str) -> None:
    if reason == "length":
        raise BadReply("the answer was cut off at the model's limit of tokens", hint="allow more tokens")
    if reason == "content_filter":
        raise ReplyError("the endpoint withheld the answer (content_filter)")
