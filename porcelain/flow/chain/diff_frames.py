"""Frames as plain values, and what changed from one to another."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Raw, Struct, UnsetType

from porcelain.flow.chain.folding import Fold
from porcelain.flow.formats.sf import Ref, SfNode, SfRelation, SfUnresolved

Frame = SfNode | SfRelation | SfUnresolved
Json = dict[str, Any]
#: What tells frames apart, or says when they were written, and is no change by itself.
_ENVELOPE = ("frame", "id", "revision", "tombstone")


class Change(Struct, frozen=True):
    """What became of one entity: ``added``, ``removed`` or ``changed``. ``fields`` has the old and the new value of
    what differs, None for what is not there; fields of attributes are called ``attrs.<name>``."""

    kind: str
    frame: Json
    fields: dict[str, tuple[Any, Any]]


def frame_value(frame: Frame) -> Json:
    """A frame as JSON: its keys as in a round, and ``frame``, its type."""
    values: Json = {"frame": type(frame).__name__.removeprefix("Sf").lower()}
    for name in frame.__struct_fields__:
        value = getattr(frame, name)
        if isinstance(value, UnsetType):
            continue
        if isinstance(value, Raw):
            value = json.loads(bytes(value))
        elif isinstance(value, Ref):
            value = place(value)
        elif isinstance(value, list):
            value = [place(one) for one in value]
        values[name.rstrip("_")] = value
    return values


def place(ref: Ref) -> Json:
    """A position as JSON."""
    value = {"seq": ref.seq, "row": ref.row}
    return value | {"block": ref.block} if isinstance(ref.block, int) else value


def compare(old: Frame | None, new: Frame | None) -> Change | None:
    """What changed, revisions aside; None where nothing did."""
    before = frame_value(old) if old is not None and not old.tombstone else None
    after = frame_value(new) if new is not None and not new.tombstone else None
    if before is None and after is None:
        return None
    if before is None or after is None:
        kind, known = ("added", after) if before is None else ("removed", before)
        return Change(kind, known or {}, {})
    flat = _flat(before), _flat(after)
    fields = {
        name: (flat[0].get(name), flat[1].get(name))
        for name in sorted(flat[0].keys() | flat[1].keys())
        if flat[0].get(name) != flat[1].get(name)
    }
    return Change("changed", after, fields) if fields else None


def compare_folds(old: Fold, new: Fold) -> Iterator[Change]:
    """What changed between two states of one conversation: nodes, relations, unresolved, each in order of id."""
    groups: tuple[tuple[Mapping[str, Frame], Mapping[str, Frame]], ...] = (
        (old.nodes, new.nodes),
        (old.relations, new.relations),
        (old.unresolved, new.unresolved),
    )
    for before, after in groups:
        for name in sorted(before.keys() | after.keys()):
            one, other = before.get(name), after.get(name)
            change = None if one is other else compare(one, other)
            if change is not None:
                yield change


def _flat(value: Json) -> Json:
    attrs = value.get("attrs")
    flat = {key: one for key, one in value.items() if key not in _ENVELOPE and key != "attrs"}
    if isinstance(attrs, dict):
        flat |= {f"attrs.{key}": one for key, one in attrs.items()}
    elif attrs is not None:
        flat["attrs"] = attrs
    return flat


def change_value(change: Change) -> Json:
    """A change as JSON."""
    return {
        "change": change.kind,
        **change.frame,
        "fields": {name: {"old": old, "new": new} for name, (old, new) in change.fields.items()},
    }


def change_lines(value: Json) -> Iterator[str]:
    """The text of a change that ``change_value`` made."""
    mark = {"added": "+", "removed": "-", "changed": "~"}[value["change"]]
    kind = value.get("type") if value["frame"] == "relation" else value.get("kind")
    yield f"{mark} {value['frame']} {value['id']}" + (f"  {kind}" if kind else "")
    for name, both in value["fields"].items():
        yield f"    {name}: {shown(both['old'])} -> {shown(both['new'])}"


def shown(value: Any) -> str:
    """A value on one line; ``-`` for none."""
    if value is None:
        return "-"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
