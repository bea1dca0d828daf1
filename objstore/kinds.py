"""The registry of object kinds: what an object of a given ``type`` must look like and which objects it refers to.

A kind is a frozen ``msgspec.Struct`` whose fields are declared in the order of their encoded names, so that the plain
encoder writes canonical bytes. A module registers its kinds when it is imported; ``kind_modules`` says which module
that is, so that nothing is loaded before it is needed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from objstore.errors import CheckFailed
from objstore.kind_modules import declarations, declare, module_of

#: Integers that every JSON library keeps exactly.
MAX_SAFE_INTEGER = 2**53 - 1
_ENCODER = msgspec.json.Encoder(order="deterministic")


def nothing(_obj: Any) -> Iterable[str]:
    """The ``needs`` and ``names`` of a kind that refers to nothing."""
    return ()


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of object.

    ``needs`` lists the ids (hex) without which the object is incomplete; ``names`` the ids that it only mentions, and
    whose absence is no error (content, old nodes). ``check`` raises ``CheckFailed`` for what types alone cannot say.
    ``check_all``, where there is one, does so for many at once and need not say which of them it is; ``checks_raw``
    says that both refuse what is not canonical JSON in fields of the type ``Raw``. ``previous`` and ``frames`` are set
    for the entries of chains: the ids of the predecessors, and of the frames (or of ``list`` objects that hold them).
    ``check_link`` is given an entry and the list of its predecessors (objects) and raises ``CheckFailed`` when it does
    not follow them.
    """

    name: str
    struct: type[msgspec.Struct]
    needs: Callable[[Any], Iterable[str]] = nothing
    names: Callable[[Any], Iterable[str]] = nothing
    check: Callable[[Any], None] | None = None
    check_all: Callable[[list[Any]], None] | None = None
    checks_raw: bool = False
    previous: Callable[[Any], Iterable[str]] | None = None
    frames: Callable[[Any], Iterable[str]] | None = None
    check_link: Callable[[Any, list[Any]], None] | None = None
    since: str = "0.1.0"


class _Decoders(dict[str, msgspec.json.Decoder[Any]]):
    """The decoders of kinds by name, each made when the first object of the kind is read: that takes a while."""

    def __missing__(self, name: str) -> msgspec.json.Decoder[Any]:
        made = self[name] = msgspec.json.Decoder(lookup(name).struct)
        return made


_registered: dict[str, Kind] = {}
_decoders = _Decoders()


def register(kind: Kind) -> Kind:
    """Add ``kind``; registering the same name twice is a programming error."""
    if kind.name in _registered:
        raise ValueError(f"kind {kind.name!r} is registered twice")
    _registered[kind.name] = kind
    declare(kind.struct.__module__, [kind.name])
    return kind


def lookup(name: str) -> Kind:
    """The kind called ``name``; raises ``CheckFailed`` for one that this program does not know."""
    kind = _registered.get(name)
    if kind is None and (module := module_of(name)) is not None:
        importlib.import_module(module)
        kind = _registered.get(name)
    if kind is None:
        raise CheckFailed(
            f"{name}: unknown kind of object",
            hint="a newer objstore may know it; this one does not",
        )
    return kind


def known_names() -> list[str]:
    """The names of all kinds, registered or declared, sorted."""
    return sorted(declarations())


def encode(obj: msgspec.Struct) -> bytes:
    """Canonical bytes of a kind's Struct (fields are declared in canonical order)."""
    return _ENCODER.encode(obj)


def encode_all(objs: list[Any]) -> list[bytes]:
    """``encode`` of each, in one call where it can be: canonical bytes hold no raw line feed."""
    lines = _ENCODER.encode_lines(objs).split(b"\n")
    lines.pop()
    return lines if len(lines) == len(objs) else [_ENCODER.encode(obj) for obj in objs]


def decode_all(name: str, values: list[bytes]) -> list[Any] | None:
    """The Structs of many objects of one kind at once, or None where any of them breaks the kind's rules or is not
    canonical: then ``decode`` says which. Canonical bytes hold no raw line feed, so they can be joined by it."""
    kind = lookup(name)
    joined = b"\n".join(values)
    try:
        objects = _decoders[name].decode_lines(joined)
        if len(objects) != len(values) or _ENCODER.encode_lines(objects) != joined + b"\n":
            return None
        if kind.check_all is not None:
            kind.check_all(objects)
        elif kind.check is not None:
            for obj in objects:
                kind.check(obj)
    except (msgspec.ValidationError, msgspec.DecodeError, RecursionError, CheckFailed):
        return None
    return objects


def decode(name: str, data: bytes) -> Any:
    """The Struct of kind ``name`` that ``data`` (canonical bytes) holds; raises ``CheckFailed``."""
    kind = lookup(name)
    try:
        obj = _decoders[name].decode(data)
    except (msgspec.ValidationError, msgspec.DecodeError, RecursionError) as error:
        raise CheckFailed(f"{name}: {error}") from None
    if kind.check is not None:
        kind.check(obj)
    return obj
