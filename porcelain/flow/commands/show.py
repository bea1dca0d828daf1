"""``objstore flow show``: the structure inside one conversation, as a tree."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from msgspec import Raw, Struct

from objstore.errors import NotFound, UsageError
from objstore.snapshot import Snapshot
from objstore.store import load
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer, counted, printable, terminal_width
from plumbing.interface.stores import open_store
from porcelain.flow.chain.diff_frames import frame_value
from porcelain.flow.chain.folding import Fold, apply
from porcelain.flow.chain.landed import pages
from porcelain.flow.chain.naming import different_records, find_conversation
from porcelain.flow.chain.store import stored_rounds
from porcelain.flow.folders.export_chain import Chain, chains_of, pick_chain
from porcelain.flow.formats.sf import Ref, SfNode
from porcelain.providers.records import Page, Record, Usage, page_record_ids, row_times

SUMMARY = "the structure inside one conversation"
USAGE = "flow show [--at ROUND] [--talk N] [--depth N] [--origin ORIGIN] [--json] ID"
OPTIONS = (
    Option("--at", "at", "ROUND", "as of this round", "integer"),
    Option("--talk", "talk", "N", "only the talk with this number", "integer"),
    Option("--depth", "depth", "N", "at most this many levels (default: all)", "integer"),
    Option("--origin", "origin", "ORIGIN", "the telling of this store or origin, not the longest", "text"),
    JSON,
)
EXAMPLES = (
    "objstore flow show 3f2a",
    "objstore flow show 3f2a --talk 2",
    "objstore flow show 3f2a --at 1 --json",
)
ARGUMENTS = (1, 1)

#: Kinds of which several in a row are shown as one line with a count.
_GATHERED = frozenset({"context.injection", "control.notice", "control.command", "turn.duration", "thinking"})
_HIDDEN = frozenset({"session", "segment"})


class _Line(Struct):
    """One line of the tree before it is drawn."""

    depth: int
    text: str


def run(arguments: Arguments, context: Context) -> int:
    """Print the tree, or with ``--json`` every frame of the fold, one a line."""
    if arguments.at == 0:
        raise UsageError("flow show: --at counts rounds from 1", hint="objstore flow show --help")
    with open_store(context) as store, store.snapshot() as view:
        provider, name = find_conversation(view, arguments.args[0])
        chain = pick_chain(view, provider, name, arguments.origin)
        head = chain.flow
        if head is None:
            raise NotFound(f"{provider}/{name}: no structure was assembled of this conversation")
        fold = Fold()
        for _, _, round_ in stored_rounds(view, head):
            if arguments.at is not None and round_.header.round > arguments.at:
                break
            apply(fold, round_)
        if arguments.at is not None and fold.round < arguments.at:
            raise NotFound(f"{provider}/{name}: has no round {arguments.at}: the last one is {fold.round}")
        with Writer(context.stdout) as out:
            if arguments.json:
                _print_json(out, fold)
                return 0
            tree = _Tree(view, fold, chain.landed)
            width = terminal_width(context.stdout, context.env)
            lines = list(tree.lines(arguments.talk, arguments.depth))
            if arguments.talk is not None and not lines:
                raise NotFound(f"{provider}/{name}: has no talk {arguments.talk}")
            for line in tree.header(provider, name):
                out.line(printable(line))
            for line in _other_tellings(view, chain):
                out.line(line)
            out.line("")
            for one in lines:
                text = "  " * one.depth + printable(one.text)
                out.line(text if width is None else text[: width - 1])
    return 0


def _other_tellings(view: Snapshot, chain: Chain) -> Iterator[str]:
    """What other stores' chains of the conversation have that this one has not."""
    others = [
        one
        for one in chains_of(view, chain.provider, chain.name)
        if one.flow not in (None, chain.flow) and one.landed not in (None, chain.landed)
    ]
    mine = different_records(view, chain.landed) if others and chain.landed is not None else set()
    for other in others:
        assert other.landed is not None
        if beside := len(different_records(view, other.landed) - mine):
            yield f"  {counted(beside, 'other record')} by {other.origin}: --origin {other.origin}"


def _print_json(out: Writer, fold: Fold) -> None:
    for group in (fold.nodes, fold.relations, fold.unresolved):
        for frame in group.values():
            out.json(frame_value(frame))


class _Tree:
    """The containment tree of a fold, with child streams under the calls that started them."""

    def __init__(self, view: Snapshot, fold: Fold, landed: bytes | None) -> None:
        self._view = view
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

    def lines(self, talk: int | None, depth: int | None) -> Iterator[_Line]:
        """The tree; ``talk`` picks one talk by its number in the order shown."""
        talks = 0
        for root in self._roots:
            if root.stream != "main":
                yield _Line(0, f"stream {root.stream} (no call is known to have started it)")
            for epoch in self._children.get(root.id, ()):
                if epoch.kind == "epoch" and _attr(epoch, "reset") not in (None, "none"):
                    yield _Line(0, "--- context reset ---")
                for child in self._children.get(epoch.id, ()):
                    if child.kind == "talk":
                        talks += 1
                        if talk is not None and talk != talks:
                            continue
                        yield _Line(0, f"talk {talks}{self._when(child)}")
                        yield from self._below(child, 1, depth)
                    elif talk is None:
                        yield from self._node(child, 0, depth)

    def _below(self, node: SfNode, depth: int, limit: int | None) -> Iterator[_Line]:
        if limit is not None and depth >= limit:
            return
        gathered: Counter[str] = Counter()
        for child in self._children.get(node.id, ()):
            if child.kind in _GATHERED:
                gathered[child.kind] += 1
                continue
            yield from _gathered(gathered, depth)
            yield from self._node(child, depth, limit)
        yield from _gathered(gathered, depth)

    def _node(self, node: SfNode, depth: int, limit: int | None) -> Iterator[_Line]:
        if node.kind in _HIDDEN:
            return
        if node.kind == "run":
            if _attr(node, "trigger") != "external":
                yield _Line(depth, f"run ({_attr(node, 'trigger')})")
            yield from self._below(node, depth, limit)
            return
        yield _Line(depth, self._text(node))
        yield from self._below(node, depth + 1, limit)
        if limit is not None and depth + 1 >= limit:
            return
        for stream in self._started.get(node.id, ()):
            child = self._fold.nodes.get(stream)
            if child is not None:
                yield _Line(depth + 1, f"started {child.stream}" + _quoted(_attr(child, "label")))
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


def _gathered(counts: Counter[str], depth: int) -> Iterator[_Line]:
    for kind, count in counts.items():
        yield _Line(depth, kind if count == 1 else f"{count} x {kind}")
    counts.clear()
