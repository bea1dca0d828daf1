"""The view document: one conversation with its text, as JSON or YAML, in the shape that the public tool publishes.

Keys stand in the published order. Inside trees what is absent, zero or empty is left out; elsewhere it is null.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Raw, UnsetType

from porcelain.flow.formats.sf import Ref, SfHeader, SfNode, SfRelation
from porcelain.flow.views.source import Source, ViewFile, ViewRound, milliseconds, span, text_of

FORMAT = "asz.view"
VERSION = "1.0"
_CONTAINERS = frozenset({"conversation", "segment", "session", "stream", "epoch", "talk", "run"})
_TOOLS = frozenset({"tool", "agent.call"})
#: Levels of a tree below a talk.
_DEPTH = 12
#: Injections that are looked at for a talk's label where nobody typed anything.
_LABEL_INJECTIONS = 3
_CAPTURED = frozenset({"system_prompt", "tool_schemas"})
Json = dict[str, Any]


def view_document(source: Source) -> Json:
    """The document of a conversation. ``source`` has at least one round that folds."""
    header = source.fold.header
    assert header is not None
    return _Document(source, header).build()


class _Document:
    """The document in the making: the fold by parent, and what relations and change documents say about nodes."""

    def __init__(self, source: Source, header: SfHeader) -> None:
        self._source = source
        self._fold = source.fold
        self._header = header
        self._children: dict[str, list[SfNode]] = {}
        for node in self._fold.nodes.values():
            if isinstance(node.parent, str):
                self._children.setdefault(node.parent, []).append(node)
        for children in self._children.values():
            children.sort(key=before)
        self._relations = sorted(self._fold.relations.values(), key=lambda one: one.id)
        self._edges: dict[str, list[Json]] = {}
        for relation in self._relations:
            for end, other, direction in (
                (relation.from_, relation.to, "out"),
                (relation.to, relation.from_, "in"),
            ):
                edge = {"type": relation.type, "other": other, "dir": direction, "quality": relation.quality}
                self._edges.setdefault(end, []).append(_present(edge | {"via": relation.via}))
        self._segments = {r.from_: r.to for r in self._relations if r.type == "in_segment"}
        self._changes = self._documents("changes/1")
        self._executions = self._documents("execution/1")

    def build(self) -> Json:
        """The whole document."""
        source, header = self._source, self._header
        talks = [self._talk(node) for node in self._of_kind("talk")]
        talks.sort(key=lambda talk: talk.get("at") or 0)
        return {
            "format": FORMAT,
            "version": VERSION,
            "conversation": header.conversation,
            "sessions": [header.session],
            "head": {"round": self._fold.round, "digest": self._fold.digest},
            "parser": header.parser,
            "policy": header.policy,
            "summary": self._summary(),
            "rounds": [_round(one) for one in source.rounds],
            "files": [
                *(_landed(source.files[seq]) for seq in sorted(source.files)),
                *(_round_file(one) for one in source.rounds),
            ],
            "streams": [self._stream(node, talks) for node in self._of_kind("stream")],
            "segments": [self._segment(node, talks) for node in self._of_kind("segment")],
            "talks": talks,
            "loose": [self._node(node, 1) for node in self._loose()],
            "relations": [_relation(one) for one in self._relations],
            "unresolved": [
                _present({"id": u.id, "kind": u.kind, "ref": u.ref, "reason": u.reason, "state": u.state})
                for u in sorted(self._fold.unresolved.values(), key=lambda one: one.id)
            ],
            "workspace_changes": [one for many in self._changes.values() for one in many],
            "tool_executions": [one for many in self._executions.values() for one in many],
        }

    # -- parts -------------------------------------------------------------------------------------------------------

    def _of_kind(self, kind: str) -> list[SfNode]:
        return sorted((node for node in self._fold.nodes.values() if node.kind == kind), key=before)

    def _summary(self) -> Json:
        header, source = self._header, self._source
        kinds = Counter(node.kind for node in self._fold.nodes.values())
        open_ = sum(entry.state == "open" for entry in self._fold.unresolved.values())
        steps = sum(count for kind, count in kinds.items() if kind not in _CONTAINERS)
        rows = [row for file in source.files.values() for row in file.rows]
        mismatch = any("does not" in problem for problem in source.problems)
        return {
            "title": header.title or "",
            "state": "mismatch" if mismatch else "incomplete" if source.problems else "verified",
            "problems": source.problems,
            "talks": _count(header.talks, kinds["talk"]),
            "steps": _count(header.steps, steps),
            "streams": _count(header.streams, kinds["stream"]),
            "segments": _count(header.segments, kinds["segment"]),
            "rounds": self._fold.round,
            "unresolved": _count(header.unresolved, open_),
            "changes": _count(header.changes, sum(map(len, self._changes.values()))),
            "provider_bodies": sum(
                len(file.rows) for file in source.files.values() if file.kind == "provider_body"
            ),
            "captured_prompts": sum(bool(_CAPTURED.intersection(row.flags or ())) for row in rows),
            "from": milliseconds(header.session_from_time or header.from_time),
            "to": milliseconds(header.session_through_time or header.through_time),
            "kinds": dict(sorted(kinds.items())),
            "relation_types": dict(sorted(Counter(one.type for one in self._relations).items())),
            "quality": dict(sorted(Counter(one.quality for one in self._relations).items())),
        }

    def _stream(self, node: SfNode, talks: list[Json]) -> Json:
        attrs = _attrs(node)
        mine = [talk for talk in talks if talk.get("stream") == node.stream]
        opened = [
            {
                "step": one.from_,
                "stream": _text(self._node_of(one.from_), "stream"),
                "talk": self._talk_of(one.from_),
                "quality": one.quality,
            }
            for one in self._relations
            if one.type == "starts" and one.to == node.id
        ]
        return {
            "id": node.id,
            "name": node.stream or "",
            "role": attrs.get("role", ""),
            "label": attrs.get("label", ""),
            "parent": opened[0]["stream"] if opened else "",
            "records": attrs.get("records", 0),
            "steps": sum(talk.get("steps", 0) for talk in mine),
            "talk": mine[0]["id"] if mine else "",
            "named_by": "",
            "opened_by": opened,
        }

    def _segment(self, node: SfNode, talks: list[Json]) -> Json:
        attrs = _attrs(node)
        mine = [talk for talk in talks if talk.get("segment") == node.id]
        first, last = span(time for talk in mine for time in (talk.get("from"), talk.get("to")))
        return {
            "id": node.id,
            "state": attrs.get("state", ""),
            "committable": attrs.get("committable", False),
            "talks": sum(segment == node.id for segment in self._segments.values()),
            "from": first,
            "to": last,
        }

    def _loose(self) -> list[SfNode]:
        """Runs and steps that stand under no talk."""
        found = [
            node
            for node in self._fold.nodes.values()
            if (node.kind not in _CONTAINERS or node.kind == "run")
            and ((parent := self._node_of(node.parent or "")) is None or parent.kind in ("epoch", "stream"))
        ]
        return sorted(found, key=before)

    # -- trees -------------------------------------------------------------------------------------------------------

    def _talk(self, node: SfNode) -> Json:
        below = list(self._below(node))
        external = [one for one in below if one.kind == "message.external"]
        injected = [one for one in below if one.kind == "context.injection"][:_LABEL_INJECTIONS]
        replies = [one for one in below if one.kind in ("message.assistant", "agent.output")]
        labels = [self._said(one) for one in (external[:1] or injected)]
        first, last = span(
            self._source.time(ref) for one in (node, *below) for ref in (one.ref, *(one.refs or ()))
        )
        stream = self._fold.nodes.get(f"stream/{node.stream}")
        more = {
            "label": next((label for label in labels if label), ""),
            "reply": self._said(replies[-1]) if replies else "",
            "runs": sum(one.kind == "run" for one in below),
            "steps": sum(one.kind not in _CONTAINERS for one in below),
            "tools": sum(one.kind in _TOOLS for one in below),
            "from": first,
            "to": last,
            "child": stream is not None and _attrs(stream).get("role") != "main",
            "segment": self._segments.get(node.id),
        }
        return self._node(node, 0, more)

    def _below(self, node: SfNode) -> Iterator[SfNode]:
        for child in self._children.get(node.id, ()):
            yield child
            yield from self._below(child)

    def _said(self, node: SfNode) -> str:
        part = self._source.part(node.ref)
        return text_of(part) if part is not None else ""

    def _node(self, node: SfNode, depth: int, more: Json | None = None) -> Json:
        attrs = _attrs(node)
        values: Json = {
            "id": node.id,
            "kind": node.kind,
            "parent": node.parent,
            "stream": node.stream,
            "at": self._source.time(node.ref),
            "ref": _place(node.ref) if isinstance(node.ref, Ref) else None,
            "refs": [_place(ref) for ref in node.refs or ()],
            "attrs": attrs,
        }
        if more is not None:
            values |= more
        elif node.kind == "llm.call":
            values["usage"] = self._usage(attrs)
        elif node.kind not in _CONTAINERS:
            values |= self._step(node, attrs)
        if depth < _DEPTH:
            values["children"] = [self._node(child, depth + 1) for child in self._children.get(node.id, ())]
        values["edges"] = self._edges.get(node.id, [])
        return _present(values)

    def _usage(self, attrs: Json) -> Json:
        at = attrs.get("usage_at")
        row = self._source.row(Ref(at["seq"], at["row"])) if isinstance(at, dict) else None
        if row is None or not row.usage:
            return {}
        usage = row.usage
        return _present(
            {
                "in": usage.in_,
                "out": usage.out,
                "cache_read": usage.cache_read,
                "cache_write": usage.cache_write,
            }
        )

    def _step(self, node: SfNode, attrs: Json) -> Json:
        row, part = self._source.row(node.ref), self._source.part(node.ref)
        values: Json = {
            "text": text_of(part) if part is not None else None,
            "state": part.state if part is not None else None,
            "bytes": part.bytes if part is not None else None,
            "flags": list(row.flags or ()) if row is not None else None,
            "dropped": [
                _present({"what": one.what, "bytes": one.bytes, "why": one.why}) for one in row.dropped or ()
            ]
            if row is not None
            else None,
        }
        if node.kind not in _TOOLS:
            return values
        answer = node.refs[1] if node.refs and len(node.refs) > 1 else None
        values["name"] = attrs.get("name")
        if answer is not None and attrs.get("result") == "available":
            result = self._source.part(answer)
            asked, answered = self._source.time(node.ref), self._source.time(answer)
            values |= {
                "failed": result.failed or None if result is not None else None,
                "result": text_of(result) if result is not None else None,
                "result_state": result.state if result is not None else None,
                "result_bytes": result.bytes if result is not None else None,
                "request_to_result_ms": answered - asked if None not in (asked, answered) else None,  # type: ignore[operator]
                "request_to_result_join": attrs.get("result_join"),
            }
        values["changes"] = [one["id"] for one in self._changes.get(node.id, ()) if "id" in one]
        values["executions"] = [one["id"] for one in self._executions.get(node.id, ()) if "id" in one]
        return values

    # -- documents in records ----------------------------------------------------------------------------------------

    def _documents(self, schema: str) -> dict[str, list[Json]]:
        """Documents of a schema that records carry as data, by the step they belong to, in landed order."""
        found: dict[str, list[Json]] = {}
        mark = json.dumps(schema).encode()
        for seq in sorted(self._source.files):
            for row, record in enumerate(self._source.files[seq].rows, 1):
                for block, part in enumerate(record.parts or ()):
                    if not isinstance(part.data, Raw) or mark not in bytes(part.data):
                        continue
                    document = json.loads(bytes(part.data))
                    if not isinstance(document, dict) or document.get("schema") != schema:
                        continue
                    tool = document.get("tool") or record.tool or record.id
                    step = f"tool/{str(tool).replace('/', '_')}"
                    ref = {"seq": seq, "row": row, "block": block}
                    head = {"step": step} if step in self._fold.nodes else {}
                    found.setdefault(step, []).append(head | {"ref": ref} | document)
        return found

    # -- names -------------------------------------------------------------------------------------------------------

    def _node_of(self, name: str) -> SfNode | None:
        return self._fold.nodes.get(name)

    def _talk_of(self, name: str) -> str:
        node = self._node_of(name)
        while node is not None and node.kind != "talk":
            node = self._node_of(node.parent or "")
        return node.id if node is not None else ""


def before(node: SfNode) -> tuple[int, int, int, int, int, str]:
    """The order in which nodes are shown: as their records landed, whole records before their parts; those without a
    place last."""
    ref = node.ref
    if not isinstance(ref, Ref):
        return (1, 0, 0, 0, 0, node.id)
    block = ref.block if isinstance(ref.block, int) else -1
    return (0, ref.seq, ref.row, int(block >= 0), block, node.id)


def _present(values: Json) -> Json:
    """``values`` without what is absent, zero or empty."""
    return {
        key: value
        for key, value in values.items()
        if not (value is None or isinstance(value, UnsetType) or value in (0, "", [], {}, False))
    }


def _count(stated: int | UnsetType, counted: int) -> int:
    return counted if isinstance(stated, UnsetType) else stated


def _text(node: SfNode | None, name: str) -> str:
    return (getattr(node, name) or "") if node is not None else ""


def _attrs(node: SfNode) -> Json:
    found = json.loads(bytes(node.attrs)) if isinstance(node.attrs, Raw) else {}
    return found if isinstance(found, dict) else {}


def _place(ref: Ref) -> Json:
    place = {"seq": ref.seq, "row": ref.row}
    return place | {"block": ref.block} if isinstance(ref.block, int) else place


def _relation(one: SfRelation) -> Json:
    return _present(
        {
            "id": one.id,
            "type": one.type,
            "from": one.from_,
            "to": one.to,
            "quality": one.quality,
            "via": one.via,
            "evidence": [_place(ref) for ref in one.evidence or ()],
        }
    )


def _round(one: ViewRound) -> Json:
    header = one.round.header
    return {
        "round": header.round,
        "digest": one.round.digest,
        "previous": header.previous or None,
        "from_seq": header.from_seq,
        "through_seq": header.through_seq,
        "input_digest": header.input_digest,
        "from_time": milliseconds(header.from_time),
        "through_time": milliseconds(header.through_time),
        "verified": one.verified,
    }


def _file(values: Json) -> Json:
    keys: Iterable[str] = (
        *("file", "format", "kind", "seq", "round", "stream", "run"),
        *("lines", "bytes", "digest", "from_time", "through_time"),
    )
    return {key: values.get(key) for key in keys}


def _landed(file: ViewFile) -> Json:
    first, last = span(milliseconds(row.time) for row in file.rows)
    return _file(
        {
            "file": file.path,
            "format": "sd",
            "kind": file.kind,
            "seq": file.seq,
            "stream": file.stream,
            "run": file.run,
            "lines": len(file.rows) + 2,
            "bytes": file.size,
            "digest": file.digest,
            "from_time": first,
            "through_time": last,
        }
    )


def _round_file(one: ViewRound) -> Json:
    round_ = one.round
    return _file(
        {
            "file": one.path,
            "format": "sf",
            "kind": "round",
            "round": round_.header.round,
            "lines": len(round_.nodes) + len(round_.relations) + len(round_.unresolved) + 2,
            "bytes": one.size,
            "digest": one.digest,
            "from_time": milliseconds(round_.header.from_time),
            "through_time": milliseconds(round_.header.through_time),
        }
    )
