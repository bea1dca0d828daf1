"""The containment tree of a conversation as lines: talks, runs and steps, child streams under the calls that started
them, with what records say of each."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from msgspec import Raw, Struct, field

from objstore.snapshot import Snapshot
from objstore.store import load
from plumbing.interface.output import counted
from porcelain.flow.chain.folding import Fold
from porcelain.flow.chain.landed import pages
from porcelain.flow.formats.sf import Ref, SfNode
from porcelain.flow.views.said import Said, said
from porcelain.providers.records import Page, Record, Usage, page_record_ids, row_times

#: Kinds of which several in a row are shown as one line with a count.
_GATHERED = frozenset({"context.injection", "control.notice", "control.command", "turn.duration", "thinking"})
_HIDDEN = frozenset({"session", "segment"})


class Line(Struct):
    """One line of the tree before it is drawn, and what the step on it says, where that was asked for."""

    depth: int
    text: str
    said: list[Said] = field(default_factory=list)


class Tree:
    """The containment tree of a fold, with child streams under the calls that started them; ``text`` asks for what its
    steps say, each on a line of its own."""

    def __init__(self, view: Snapshot, fold: Fold, landed: bytes | None, *, text: bool = False) -> None:
        self._view = view
        self._gathered = frozenset() if text else _GATHERED
        self._says = text
        self._fold = fold
        self._pages = {page.seq: page for page in pages(view, landed)} if landed is not None else {}
        self._ids: dict[int, list[str]] = {}
        self._children: dict[str, list[SfNode]] = {}
        for node in fold.nodes.values():
            if isinstance(node.parent, str):
                self._children.setdefault(node.parent, []).append(node)
        for children in self._children.values():
            children.sort(key=_order)
        self._started: dict[str, list[str]] = {}
        for relation in fold.relations.values():
            if relation.type == "starts":
                self._started.setdefault(relation.from_, []).append(relation.to)
        named = {stream for started in self._started.values() for stream in started}
        streams = [n for n in fold.nodes.values() if n.kind == "stream"]
        self._roots = sorted(
            (n for n in streams if n.stream == "main" or n.id not in named),
            key=lambda n: (n.stream != "main", n.id),
        )

    def header(self, provider: str, name: str) -> Iterator[str]:
        """What the conversation amounts to."""
        header = self._fold.header
        assert header is not None
        title = f"  {header.title}" if isinstance(header.title, str) else ""
        yield f"{provider} {name}{title}"
        span = [t for t in (header.session_from_time, header.session_through_time) if isinstance(t, str)]
        counts = (
            (sum(n.kind == "talk" and n.stream == "main" for n in self._fold.nodes.values()), "talk"),
            (header.llm_calls, "model call"),
            (header.steps, "step"),
            (header.subagents, "subagent"),
            (header.segments, "segment"),
        )
        yield "  " + ", ".join(
            counted(count, word) for count, word in counts if isinstance(count, int) and count
        )
        if span:
            yield f"  {span[0]} to {span[-1]}"
        usage = self._usage()
        if usage:
            yield "  tokens: " + ", ".join(f"{count:,} {word}" for word, count in usage.items())
        still_open = Counter(u.kind for u in self._fold.unresolved.values() if u.state == "open")
        if still_open:
            yield "  unresolved: " + ", ".join(
                f"{count} {kind}" for kind, count in sorted(still_open.items())
            )
        yield f"  round {self._fold.round}, {self._fold.digest[:12]}"

    def lines(self, talk: int | None, depth: int | None) -> Iterator[Line]:
        """The tree; ``talk`` picks one talk by its number in the order shown, and nothing else is given."""
        talks = 0
        for root in self._roots:
            if root.stream != "main" and talk is None:
                yield Line(0, f"stream {root.stream} (no call is known to have started it)")
            for epoch in self._children.get(root.id, ()):
                if epoch.kind == "epoch" and _attr(epoch, "reset") not in (None, "none") and talk is None:
                    yield Line(0, "--- context reset ---")
                for child in self._children.get(epoch.id, ()):
                    if child.kind == "talk":
                        talks += 1
                        if talk is not None and talk != talks:
                            continue
                        yield Line(0, f"talk {talks}{self._when(child)}")
                        yield from self._below(child, 1, depth)
                    elif talk is None:
                        yield from self._node(child, 0, depth)

    def _below(self, node: SfNode, depth: int, limit: int | None) -> Iterator[Line]:
        if limit is not None and depth >= limit:
            return
        gathered: Counter[str] = Counter()
        for child in self._children.get(node.id, ()):
            if child.kind in self._gathered:
                gathered[child.kind] += 1
                continue
            yield from _gathered(gathered, depth)
            yield from self._node(child, depth, limit)
        yield from _gathered(gathered, depth)

    def _node(self, node: SfNode, depth: int, limit: int | None) -> Iterator[Line]:
        if node.kind in _HIDDEN:
            return
        if node.kind == "run":
            if _attr(node, "trigger") != "external":
                yield Line(depth, f"run ({_attr(node, 'trigger')})")
            yield from self._below(node, depth, limit)
            return
        yield Line(depth, self._text(node), list(self._said(node)) if self._says else [])
        yield from self._below(node, depth + 1, limit)
        if limit is not None and depth + 1 >= limit:
            return
        for stream in self._started.get(node.id, ()):
            child = self._fold.nodes.get(stream)
            if child is not None:
                yield Line(depth + 1, f"started {child.stream}" + _quoted(_attr(child, "label")))
                for epoch in self._children.get(stream, ()):
                    for one in self._children.get(epoch.id, ()):
                        yield from self._below(one, depth + 2, limit)

    def _text(self, node: SfNode) -> str:
        if node.kind in ("tool", "agent.call"):
            result = _attr(node, "result")
            join = _attr(node, "result_join")
            state = (
                ""
                if result == "available"
                else f"  ({'ambiguous result' if join == 'exact_ambiguous' else 'no result'})"
            )
            return f"{node.kind} {_attr(node, 'name')}{state}"
        if node.kind == "llm.call":
            record = self._record(node)
            usage = self._call_usage(node)
            said = [record.model] if record is not None and isinstance(record.model, str) else []
            if usage is not None:
                said.append(f"{usage.out:,} tokens out")
            return "llm.call" + (f"  {', '.join(said)}" if said else "")
        size = self._size(node)
        return node.kind + (f"  {size:,} bytes" if size else "")

    # -- what records say --------------------------------------------------------------------------------------------

    def _record(self, node: SfNode, ref: Ref | None = None) -> Record | None:
        place = ref or node.ref
        if not isinstance(place, Ref):
            return None
        page: Page | None = self._pages.get(place.seq)
        if page is None:
            return None
        ids = self._ids.get(page.seq)
        if ids is None:
            ids = self._ids[page.seq] = page_record_ids(page)
        if not 0 < place.row <= len(ids):
            return None
        record: Record = load(self._view, bytes.fromhex(ids[place.row - 1]), "record")
        return record

    def _said(self, node: SfNode) -> Iterator[Said]:
        """What a step says; of a tool use what was asked, then what came of it."""
        if node.kind == "llm.call":
            return
        places = [node.ref]
        tool = node.kind in ("tool", "agent.call")
        if tool and isinstance(node.refs, list) and _attr(node, "result") == "available":
            places += node.refs[1:2]
        for mark, place in zip("|=", places, strict=False):
            record = self._record(node, place) if isinstance(place, Ref) else None
            if record is None or not isinstance(place, Ref):
                continue
            parts = record.parts or []
            if isinstance(place.block, int):
                parts = parts[place.block : place.block + 1]
            yield from (said(mark, part) for part in parts)

    def _size(self, node: SfNode) -> int:
        record = self._record(node)
        if record is None or not record.parts or not isinstance(node.ref, Ref):
            return 0
        block = node.ref.block
        if isinstance(block, int):
            return record.parts[block].bytes if block < len(record.parts) else 0
        return sum(part.bytes for part in record.parts)

    def _call_usage(self, node: SfNode) -> Usage | None:
        """What the last fragment states: also where the source does not say that the call was finished, which older
        versions of Claude Code never do."""
        record = self._record(node, node.refs[-1] if isinstance(node.refs, list) and node.refs else None)
        return record.usage if record is not None and record.usage else None

    def _usage(self) -> dict[str, int]:
        total: Counter[str] = Counter()
        for node in self._fold.nodes.values():
            if node.kind == "llm.call":
                usage = self._call_usage(node)
                if usage is not None:
                    total.update(
                        {
                            "in": usage.in_,
                            "out": usage.out,
                            "cache read": usage.cache_read,
                            "cache write": usage.cache_write,
                        }
                    )
        return {word: count for word, count in total.items() if count}

    def _when(self, node: SfNode) -> str:
        record = self._record(node)
        if record is None or not isinstance(node.ref, Ref):
            return ""
        time = record.time or row_times(self._pages[node.ref.seq])[node.ref.row - 1]
        return f"  {time}" if isinstance(time, str) else ""


def _order(node: SfNode) -> tuple[int, int, int, int, str]:
    """Siblings as they stand in the landed data; those without a place first."""
    if not isinstance(node.ref, Ref):
        return (0, 0, 0, 0, node.id)
    block = node.ref.block
    return (node.ref.seq, node.ref.row, *((1, block) if isinstance(block, int) else (0, 0)), node.id)


def _attr(node: SfNode, name: str) -> object:
    return json.loads(bytes(node.attrs)).get(name) if isinstance(node.attrs, Raw) else None


def _quoted(label: object) -> str:
    return f" ({label})" if isinstance(label, str) else ""


def _gathered(counts: Counter[str], depth: int) -> Iterator[Line]:
    for kind, count in counts.items():
        yield Line(depth, kind if count == 1 else f"{count} x {kind}")
    counts.clear()
