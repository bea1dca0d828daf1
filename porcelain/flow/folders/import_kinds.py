"""What a store keeps of an imported folder beside its structure: one entry a file, in a chain of their own.

An entry says what the file was called and how its bytes are written again from pages, records and rounds. Whether that
is possible depends on the content that the store keeps; the entry is the same in every store.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from objstore.core import ObjectId
from objstore.errors import CheckFailed
from objstore.kinds import MAX_SAFE_INTEGER, Kind, register

Count = Annotated[int, Meta(ge=0, le=MAX_SAFE_INTEGER)]
#: ``own``: the form in which we write landed files ourselves, without text. ``text``, ``html``: with text, in the newer
#: or the older escaping. ``lines``: a round, some lines kept as they were. ``whole``: the bytes as they were.
#: ``withheld``: the file holds a secret, so that its bytes are not kept.
Form = Literal["own", "text", "html", "lines", "whole", "withheld"]


class KeptLine(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line, counted from 1, that the round's structure does not give: ``content`` holds it, without its newline."""

    content: ObjectId
    line: Count


class FlowFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file of an imported folder. ``number`` is the ``seq`` of a landed file, or the number of a round; ``path`` is
    relative to the root. ``content`` holds the bytes where ``form`` is ``whole``; ``digest`` is their SHA-256."""

    bytes: Count
    content: ObjectId | UnsetType = UNSET
    digest: ObjectId
    form: Form
    format: Literal["sd", "sf"]
    lines: list[KeptLine] | UnsetType = UNSET
    number: Count
    path: str
    previous: ObjectId | UnsetType = UNSET
    type: Literal["flow-file"] = "flow-file"


def _previous(entry: FlowFile) -> list[str]:
    return [entry.previous] if isinstance(entry.previous, str) else []


def _names(entry: FlowFile) -> list[str]:
    found = [line.content for line in entry.lines or ()]
    return [*found, entry.content] if isinstance(entry.content, str) else found


def check_path(entry: FlowFile) -> None:
    """A path that leaves the root, on any system, is never written to."""
    parts = entry.path.split("/")
    outside = any(part in ("", ".", "..") for part in parts) or "\\" in entry.path or ":" in parts[0]
    if outside or not entry.path.isprintable():
        raise CheckFailed(f"{entry.path[:80]!r}: is no path below a root")


def _no_frames(_entry: Any) -> list[str]:
    return []


FILE = register(
    Kind(
        name="flow-file",
        struct=FlowFile,
        needs=_previous,
        names=_names,
        check=check_path,
        previous=_previous,
        frames=_no_frames,
    )
)
