"""Ids of frames: parts joined with ``/``, a ``/`` inside a part written as ``_``, empty parts left out.

Made from names that the records hold, or from the place of the one record a frame stands for; never from an order.
"""

from __future__ import annotations

from porcelain.flow.assembly.entries import Entry


def part(text: str) -> str:
    """One part of an id."""
    return text.replace("/", "_")


def joined(*parts: str) -> str:
    """An id of several parts."""
    return "/".join(part(text) for text in parts if text)


def at(prefix: str, entry: Entry) -> str:
    """The id of a node that stands for one record."""
    return f"{prefix}/{entry.seq}/{entry.row}"


def place(entry: Entry) -> str:
    """The place of a record as one part of an id."""
    return f"at_{entry.seq}_{entry.row}"


def call_id(call: str) -> str:
    """The id of a model call's node."""
    return f"call/{part(call)}"


def tool_id(tool: str) -> str:
    """The id of the node of a tool use, whether it is a plain tool or starts a child."""
    return f"tool/{part(tool)}"


def stream_id(stream: str) -> str:
    """The id of a stream's node."""
    return f"stream/{part(stream)}"


def session_id(session: str) -> str:
    """The id of the session's node."""
    return f"session/{part(session)}"


def relation_id(type_: str, from_: str, to: str) -> str:
    """The id of a relation between two nodes."""
    return f"rel/{type_}/{part(from_)}/{part(to)}"
