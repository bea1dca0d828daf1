"""Names for objects: the grammar of ref names, how foreign ids enter them, and which refs are special.

A ref name is a path of at least two components by the rules of ``git check-ref-format``, at most 400 bytes of UTF-8.
Some names are *derived* (read-only, computed from others), some *local* (kept apart and never packed).
"""

from __future__ import annotations

from collections import namedtuple

from objstore.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NamedTuple

    from objstore.snapshot import Snapshot

MAX_NAME = 400
#: Longest quoted component that is kept as it is; beyond it a hash takes the place of the rest.
_MAX_COMPONENT = 160
_FORBIDDEN = frozenset("~^:?*[\\")
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")


if TYPE_CHECKING:

    class RefMove(NamedTuple):
        """One ref to be moved: to ``new`` (None deletes it) if it stands at ``old`` (None: if there is no such ref;
        ``ANY``: wherever it stands)."""

        name: str
        new: str | None
        old: str | None
        why: str

    class ReflogEntry(NamedTuple):
        """One move of a ref. ``old`` and ``new`` are ids or None; ``time`` is RFC 3339 UTC."""

        name: str
        number: int
        old: str | None
        new: str | None
        time: str
        who: str
        why: str
else:
    RefMove = namedtuple("RefMove", "name new old why")
    ReflogEntry = namedtuple("ReflogEntry", "name number old new time who why")


#: For ``RefMove.old``: do not compare.
ANY = "*"


def check_name(name: str) -> str:
    """``name``, or ``UsageError`` saying which rule it breaks."""
    if "/" not in name:
        raise UsageError(f"{name}: not a ref name: needs at least two parts, such as tag/{name or 'name'}")
    if len(name.encode("utf-8", "surrogatepass")) > MAX_NAME:
        raise UsageError(f"{name[:40]}...: not a ref name: longer than {MAX_NAME} bytes")
    wrong = _broken_rule(name)
    if wrong:
        raise UsageError(f"{name!r}: not a ref name: {wrong}")
    return name


def _broken_rule(name: str) -> str | None:
    if not name.isprintable() or " " in name:
        return "may not hold blanks or unprintable characters"
    for character in name:
        if character in _FORBIDDEN:
            return f"may not hold {character!r}"
    for text in ("..", "@{", "//"):
        if text in name:
            return f"may not hold {text!r}"
    for part in name.split("/"):
        if not part:
            return "may not begin or end with '/'"
        if part[0] == "." or part[-1] == "." or part.endswith(".lock"):
            return f"no part may begin or end with '.' or end in '.lock': {part!r}"
    return None


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


#: Patterns of special names: their parts, of which "*" stands for any one, and how to compute a derived one.
_special: list[tuple[list[str], Callable[[Snapshot, str], str | None] | None]] = []
#: Patterns of derived names that stand for no object, and what to print for one.
_shown: list[tuple[list[str], Callable[[Snapshot, str], object]]] = []
#: Patterns of names of which this store may have removed some for good, and whether it has.
_declining: list[tuple[list[str], Callable[[Snapshot, str], bool]]] = []


def register_local(pattern: str) -> None:
    """Names like ``pattern`` (``session/*/current``) are kept on this machine only."""
    _special.append((pattern.split("/"), None))


def register_derived(
    pattern: str,
    resolve: Callable[[Snapshot, str], str | None],
    *,
    show: Callable[[Snapshot, str], object] | None = None,
) -> None:
    """Names like ``pattern`` are read-only: ``resolve(snapshot, name)`` gives the id, or None. Where that is the id of
    no object, ``show`` gives the JSON value that stands behind it."""
    _special.append((pattern.split("/"), resolve))
    if show is not None:
        _shown.append((pattern.split("/"), show))


def register_declined(pattern: str, is_declined: Callable[[Snapshot, str], bool]) -> None:
    """Of names like ``pattern``, those for which ``is_declined(snapshot, name)`` holds are not taken from other stores:
    they were removed from this one on purpose."""
    _declining.append((pattern.split("/"), is_declined))


def is_declined(view: Snapshot, name: str) -> bool:
    """Whether ``name`` is not taken from other stores."""
    return any(declined(view, name) for pattern, declined in _declining if _matches(pattern, name))


def _matches(pattern: list[str], name: str) -> bool:
    parts = name.split("/")
    return len(parts) == len(pattern) and all(
        want in ("*", part) for want, part in zip(pattern, parts, strict=True)
    )


def is_local(name: str) -> bool:
    """Whether ``name`` is kept on this machine only."""
    return any(resolve is None and _matches(pattern, name) for pattern, resolve in _special)


def derived_document(name: str) -> Callable[[Snapshot, str], object] | None:
    """The function that gives what stands behind the derived ref ``name``, where that is no object; else None."""
    return next((show for pattern, show in _shown if _matches(pattern, name)), None)


def derived_resolver(name: str) -> Callable[[Snapshot, str], str | None] | None:
    """The function that computes the derived ref ``name``, or None when it is an ordinary one."""
    for pattern, resolve in _special:
        if resolve is not None and _matches(pattern, name):
            return resolve
    return None
