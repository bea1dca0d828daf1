"""From the text of a JSON document to an object of its kind, for many documents."""

from __future__ import annotations

from functools import cache

import msgspec
from msgspec import UNSET, UnsetType, inspect

from objstore import kinds
from objstore.canonical import MAX_INTEGER, MAX_SIZE
from objstore.errors import CheckFailed
from objstore.fastcanonical import canonicalize, parse
from objstore.objects import check_ids, kind_name


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
    return _admits_only_canonical(inspect.type_info(kinds.lookup(name).struct))


def _admits_only_canonical(type_: inspect.Type) -> bool:
    match type_:
        case inspect.IntType(ge=low, le=high):
            return low is not None and high is not None and low >= -MAX_INTEGER and high <= MAX_INTEGER
        case inspect.StrType() | inspect.BoolType() | inspect.NoneType() | inspect.LiteralType():
            return True
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            return _admits_only_canonical(item)
        case inspect.TupleType(item_types=types) | inspect.UnionType(types=types):
            return all(map(_admits_only_canonical, types))
        case inspect.StructType(fields=fields):
            return all(_admits_only_canonical(field.type) for field in fields)
    return False
