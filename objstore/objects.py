"""Turning a JSON value into an object of its kind, and checking stored bytes against kind and canonical form."""

from __future__ import annotations

from typing import Any

from objstore import kinds
from objstore.digest import is_object_id
from objstore.errors import CheckFailed

#: The one kind that carries no ``type``: its body is exactly the keys that its published hash covers.
SESSION_NODE = "session-node"
_NODE_KEYS = frozenset(
    {"audit_mode", "bates", "cache_key", "created_at", "label", "parent_node_hash", "question"}
)


def kind_name(value: Any) -> str:
    """The name of the kind that a JSON value claims to be; raises ``CheckFailed`` when it claims none."""
    if not isinstance(value, dict):
        raise CheckFailed(f"an object is a JSON object, not a {type(value).__name__}")
    name = value.get("type")
    if isinstance(name, str):
        return name
    if name is None and value.keys() == _NODE_KEYS:
        return SESSION_NODE
    raise CheckFailed('an object needs a "type"', hint="known types: " + " ".join(kinds.known_names()))


def check_object(value: Any) -> tuple[str, bytes]:
    """Kind and canonical bytes of a JSON value; raises ``CheckFailed`` (or a canonical error) for what is no object."""
    from objstore.fastcanonical import encode

    data = encode(value)
    name = kind_name(value)
    check_ids(name, kinds.decode(name, data))
    return name, data


def check_ids(kind: str, obj: Any) -> None:
    """Raise ``CheckFailed`` unless every id that ``obj`` needs or names is one."""
    described = kinds.lookup(kind)
    for refer in (described.needs, described.names):
        for text in refer(obj):
            if not is_object_id(text):
                raise CheckFailed(f"{kind}: {text[:64]!r} is not an object id")


def keys_of(ids: list[str]) -> bytes | None:
    """The keys that ids stand for, run together, or None where one of them is none."""
    joined = "".join(ids)
    try:
        raw = bytes.fromhex(joined)
    except ValueError:
        return None
    return raw if raw.hex() == joined and {64}.issuperset(map(len, ids)) else None


def check_stored(kind: str, data: bytes) -> Any:
    """The Struct that stored bytes hold; raises ``CheckFailed`` when they break its rules or are not canonical."""
    obj = kinds.decode(kind, data)
    if kinds.encode(obj) != data:
        raise CheckFailed(f"{kind}: the bytes are not canonical")
    check_ids(kind, obj)
    return obj
