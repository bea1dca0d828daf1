"""Names for objects: the grammar of ref names, how foreign ids enter them, and which refs are special.

A ref name is a path of at least two components by the rules of ``git check-ref-format``, at most 400 bytes of UTF-8.
Some names are *derived* (read-only, computed from others), some *local* (kept apart and never packed).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from objstore.errors import UsageError

if TYPE_CHECKING:
    from objstore.snapshot import Snapshot

MAX_NAME = 400
#: Longest quoted component that is kept as it is; beyond it a hash takes the place of the rest.
_MAX_COMPONENT = 160
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|\.lock(?:/|$)|(?:^|/)\.|\.$|\.(?=/)|^/|/$")
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")


class RefMove(NamedTuple):
    """One ref to be moved: to ``new`` (None deletes it) if it stands at ``old`` (None: if there is no such ref;
    ``ANY``: wherever it stands)."""

    name: str
    new: str | None
    old: str | None
    why: str


#: For ``RefMove.old``: do not compare.
ANY = "*"


class ReflogEntry(NamedTuple):
    """One move of a ref. ``old`` and ``new`` are ids or None; ``time`` is RFC 3339 UTC."""

    name: str
    number: int
    old: str | None
    new: str | None
    time: str
    who: str
    why: str


def check_name(name: str) -> str:
    """``name``, or ``UsageError`` saying which rule it breaks."""
    if "/" not in name:
        raise UsageError(f"{name}: not a ref name: needs at least two parts, such as tag/{name or 'name'}")
    if len(name.encode("utf-8", "surrogatepass")) > MAX_NAME:
        raise UsageError(f"{name[:40]}...: not a ref name: longer than {MAX_NAME} bytes")
    bad = _FORBIDDEN.search(name)
    if bad or not name.isprintable():
        shown = repr(bad.group()) if bad else "an unprintable character"
        raise UsageError(f"{name!r}: not a ref name: may not hold {shown} there")
    return name


def quote(component: str) -> str:
    """A foreign id as one component of a ref name: everything but letters, digits and ``. _ -`` as ``%XX`` of its
    UTF-8 bytes; what would be too long keeps its beginning and ends in ``=`` and a hash."""
    raw = component.encode("utf-8", "surrogatepass")
    text = "".join(chr(b) if b in _PLAIN else f"%{b:02X}" for b in raw)
    text = text.replace("..", "%2E%2E")
    if text.startswith("."):
        text = "%2E" + text[1:]
    if text.endswith("."):
        text = text[:-1] + "%2E"
    if text.endswith(".lock"):
        text = text[:-5] + "%2Elock"
    if len(text) > _MAX_COMPONENT:
        from objstore.digest import hash_bytes

        head = text[: _MAX_COMPONENT - 33]
        cut = head.rfind("%", len(head) - 2)
        text = (head if cut < 0 else head[:cut]) + "=" + hash_bytes(raw).hex()[:32]
    return text or "%"


def unquote(component: str) -> str:
    """What ``quote`` was given, unless that was too long to keep."""
    pieces = component.split("%")
    raw = bytearray(pieces[0].encode())
    for piece in pieces[1:]:
        raw += bytes.fromhex(piece[:2]) if len(piece) >= 2 else b""
        raw += piece[2:].encode()
    return raw.decode("utf-8", "surrogatepass")


class _Special(NamedTuple):
    pattern: re.Pattern[str]
    resolve: Callable[[Snapshot, str], str | None] | None


_special: list[_Special] = []


def register_local(pattern: str) -> None:
    """Names that match ``pattern`` (a regular expression for the whole name) are kept on this machine only."""
    _special.append(_Special(re.compile(pattern), None))


def register_derived(pattern: str, resolve: Callable[[Snapshot, str], str | None]) -> None:
    """Names that match ``pattern`` are read-only: ``resolve(snapshot, name)`` gives the id, or None."""
    _special.append(_Special(re.compile(pattern), resolve))


def is_local(name: str) -> bool:
    """Whether ``name`` is kept on this machine only."""
    return any(s.resolve is None and s.pattern.fullmatch(name) for s in _special)


def derived_resolver(name: str) -> Callable[[Snapshot, str], str | None] | None:
    """The function that computes the derived ref ``name``, or None when it is an ordinary one."""
    for special in _special:
        if special.resolve is not None and special.pattern.fullmatch(name):
            return special.resolve
    return None
