"""What the readers of JSON lines share: decoding that survives unexpected types, and the parts that text becomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from objstore.kinds import MAX_SAFE_INTEGER
from porcelain.providers.content import ContentSink
from porcelain.providers.records import Part

#: Longest id, name or model that is taken; a longer one is none.
NAME_LENGTH = 256
#: Longest path that is taken.
PATH_LENGTH = 4096
#: The value of a field that a line does not state and that would be kept as source bytes.
NONE = Raw()

S = TypeVar("S", bound=Struct)
_FIELDS = msgspec.json.Decoder(dict[str, Raw])
_ITEMS = msgspec.json.Decoder(list[Raw])


class Shape(Generic[S]):
    """Decodes JSON objects as the Struct ``struct``, fast where every field has the type that is known.

    Where one has not, the object is read field by field and such fields count as not stated. ``nested`` names the
    Structs of the fields (by attribute name, at any depth) that are then read in the same way; ``items`` those of
    fields that hold lists.
    """

    def __init__(
        self,
        struct: type[S],
        *,
        nested: Mapping[str, type[Struct]] | None = None,
        items: Mapping[str, type[Struct]] | None = None,
    ) -> None:
        self._struct = struct
        self._decoder = msgspec.json.Decoder(struct)
        self._nested = nested or {}
        self._items = items or {}

    def decode(self, data: bytes | Raw) -> S:
        """``data`` as the Struct; raises ``msgspec.DecodeError`` when it is no JSON object."""
        try:
            return self._decoder.decode(data)
        except msgspec.ValidationError:
            found = self._loosely(self._struct, data)
            assert isinstance(found, self._struct)
            return found

    def _loosely(self, struct: type[Struct], data: bytes | Raw) -> Struct:
        stated = _FIELDS.decode(data)
        kept: dict[str, Any] = {}
        for known in msgspec.structs.fields(struct):
            value = stated.get(known.encode_name)
            if value is None:
                continue
            try:
                kept[known.name] = msgspec.json.decode(value, type=known.type)
            except msgspec.ValidationError:
                first = bytes(value)[:1]
                if first == b"{" and known.name in self._nested:
                    kept[known.name] = self._loosely(self._nested[known.name], value)
                elif first == b"[" and known.name in self._items:
                    kept[known.name] = [
                        self._loose_item(self._items[known.name], item) for item in _ITEMS.decode(value)
                    ]
        return struct(**kept)

    def _loose_item(self, struct: type[Struct], value: Raw) -> Struct | str:
        """An item of a list; what is neither text nor an object becomes a Struct with nothing stated."""
        match bytes(value)[:1]:
            case b'"':
                return msgspec.json.decode(value, type=str)
            case b"{":
                return self._loosely(struct, value)
            case _:
                return struct()


def name(text: str | None) -> str | UnsetType:
    """``text`` where it can be an id or a name, else unset."""
    return text if text and len(text) <= NAME_LENGTH else UNSET


def count(number: int | None) -> int:
    """``number`` where it is a count that every JSON library keeps exactly, else 0."""
    return number if number and 0 < number <= MAX_SAFE_INTEGER else 0


def size(text: str) -> int:
    """Bytes of ``text`` in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8"))


def text_part(text: str, sink: ContentSink) -> Part:
    return Part(k="text", content=sink.text(text), bytes=size(text))


def data_part(source: str, sink: ContentSink) -> Part:
    """A part that holds ``source``, JSON source text."""
    return Part(k="data", data=sink.text(source), bytes=size(source))


def line_part(data: bytes, without: tuple[str, ...], sink: ContentSink, of: str | None = None) -> Part:
    """The JSON object ``data`` less some of its fields, as data; ``of`` names the entry that it speaks about."""
    fields = _FIELDS.decode(data)
    for key in without:
        fields.pop(key, None)
    source = msgspec.json.encode(fields).decode("utf-8")
    return Part(k="data", data=sink.text(source), bytes=size(source), of=name(of))
