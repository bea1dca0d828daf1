"""From the text of a JSON document to an object of its kind, for many documents."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from objstore import kinds
from objstore.fastcanonical import canonicalize, parse
from objstore.objects import kind_name


class _Typed(msgspec.Struct):
    """What is read of a document to learn its kind."""

    type: str | UnsetType = UNSET


_TYPED = msgspec.json.Decoder(_Typed)


def check_document(text: bytes) -> tuple[str, bytes]:
    """Kind and canonical bytes of the object that a JSON text holds: ``objects.check_object`` of its value, without
    building it. Raises ``CheckFailed``."""
    data = canonicalize(text)
    try:
        name = _TYPED.decode(data).type
    except msgspec.ValidationError:
        name = UNSET
    if name is UNSET:
        name = kind_name(parse(data))
    kinds.decode(name, data)
    return name, data
