"""From the text of a JSON document to an object of its kind, for many documents."""

from __future__ import annotations

from functools import cache

import msgspec
from msgspec import UNSET, UnsetType, inspect

from objstore import kinds
from objstore.canonical import MAX_DEPTH, MAX_INTEGER, MAX_SIZE
from objstore.errors import CheckFailed
from objstore.fastcanonical import are_canonical, canonicalize, parse
from objstore.objects import check_ids, keys_of, kind_name


class _Typed(msgspec.Struct):
    """What is read of a document to learn its kind."""

    type: str | UnsetType = UNSET


_TYPED = msgspec.json.Decoder(_Typed)


def check_document(text: bytes) -> tuple[str, bytes]:
    """Kind and canonical bytes of the object that a JSON text holds: ``objects.check_object`` of its value, without
    building it. Raises ``CheckFailed``."""
    name = _if_canonical(text)
    if name is not None:
        return name, text
    data = canonicalize(text)
    try:
        named = _TYPED.decode(data).type
    except msgspec.ValidationError:
        named = UNSET
    name = named if isinstance(named, str) else kind_name(parse(data))
    check_ids(name, kinds.decode(name, data))
    return name, data


def check_documents(texts: list[bytes]) -> list[tuple[str, bytes] | None]:
    """``check_document`` of many at once; None for each that has to be looked at alone, to say what is wrong with it or
    because it is not canonical as it stands."""
    found: list[tuple[str, bytes] | None] = [None] * len(texts)
    try:
        named = _TYPED.decode_lines(b"\n".join(texts))
    except (msgspec.DecodeError, RecursionError):
        return found
    if len(named) != len(texts):
        return found
    places: dict[str, list[int]] = {}
    for at, one in enumerate(named):
        if isinstance(one.type, str) and len(texts[at]) <= MAX_SIZE:
            places.setdefault(one.type, []).append(at)
    for name, same in places.items():
        if _are_canonical(name, [texts[at] for at in same]):
            for at in same:
                found[at] = name, texts[at]
    return found


def _are_canonical(name: str, texts: list[bytes]) -> bool:
    """Whether each of ``texts`` is, word for word, an object of the kind ``name``; False where in doubt."""
    try:
        # Without ``Raw`` the types themselves bound how deep a text is nested.
        known = _is_closed(name) and (not kinds.lookup(name).checks_raw or all(map(_is_shallow, texts)))
        objects = kinds.decode_all(name, texts) if known or are_canonical(texts) else None
    except CheckFailed:  # no such kind
        return False
    if objects is None:
        return False
    kind = kinds.lookup(name)
    refers = [refer for refer in (kind.needs, kind.names) if refer is not kinds.nothing]
    return keys_of([text for refer in refers for obj in objects for text in refer(obj)]) is not None


def _if_canonical(text: bytes) -> str | None:
    """The kind of the object that ``text`` is word for word, or None where that is not plain to see.

    Where the types of a kind allow nothing that canonical JSON refuses, a text that its Struct is written back as is
    canonical; most of what programs send is.
    """
    try:
        name = _TYPED.decode(text).type
        if (
            isinstance(name, str)
            and len(text) <= MAX_SIZE
            and _is_closed(name)
            and _is_shallow(text)
            and kinds.encode(obj := kinds.decode(name, text)) == text
        ):
            check_ids(name, obj)
            return name
    except (CheckFailed, msgspec.DecodeError, RecursionError):
        pass  # the long way tells what is wrong
    return None


@cache
def _is_closed(name: str) -> bool:
    """Whether the types of a kind admit only values of canonical JSON, with keys known beforehand."""
    kind = kinds.lookup(name)
    return _admits_only_canonical(inspect.type_info(kind.struct), raw=kind.checks_raw)


def _is_shallow(text: bytes) -> bool:
    """Whether ``text`` is surely not nested too deeply, whatever stands in its parts."""
    return text.count(b"{") + text.count(b"[") <= MAX_DEPTH


def _admits_only_canonical(type_: inspect.Type, *, raw: bool) -> bool:
    """``raw`` says whether the kind sees to what stands in fields of the type ``Raw``."""
    match type_:
        case inspect.RawType():
            return raw
        case inspect.IntType(ge=low, le=high):
            return low is not None and high is not None and low >= -MAX_INTEGER and high <= MAX_INTEGER
        case inspect.StrType() | inspect.BoolType() | inspect.NoneType() | inspect.LiteralType():
            return True
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            return _admits_only_canonical(item, raw=raw)
        case inspect.TupleType(item_types=types) | inspect.UnionType(types=types):
            return all(_admits_only_canonical(one, raw=raw) for one in types)
        case inspect.StructType(fields=fields):
            return all(_admits_only_canonical(field.type, raw=raw) for field in fields)
    return False
