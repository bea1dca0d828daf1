"""Small landed conversations for the tests of flow: records, pages and files of invented people."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from porcelain.flow.assembly import Assembled, assemble
from porcelain.flow.assembly.entries import Landed, from_page
from porcelain.flow.chain.folding import Fold
from porcelain.flow.formats.sd import sd_bytes
from porcelain.flow.formats.sf import SfNode, SfRelation, SfUnresolved
from porcelain.providers.records import Changes, Page, Part, Record, Usage

SESSION = "5e55-1"
CONTENT = hashlib.sha256(b"content").hexdigest()
DATA = hashlib.sha256(b"data").hexdigest()


def at(seconds: float) -> str:
    """A time so many seconds into the day."""
    whole, thousandths = divmod(round(seconds * 1000), 1000)
    return f"2026-03-01T{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}.{thousandths:03d}Z"


def text(size: int = 5) -> Part:
    return Part(k="text", bytes=size, content=CONTENT)


def use(tool: str, name: str = "Bash", **more: Any) -> Part:
    return Part(k="call", id=tool, name=name, bytes=9, data=DATA, **more)


def result(tool: str) -> Part:
    return Part(k="result", of=tool, bytes=7, content=CONTENT, failed=False)


def asked(name: str, run: str, second: float, **more: Any) -> Record:
    """What a person typed."""
    return Record(
        id=name,
        run=run,
        time=at(second),
        from_="external",
        trigger="external",
        flags=["external_input"],
        parts=[text()],
        **more,
    )


def said(name: str, call: str, parent: str, second: float, *parts: Part, **more: Any) -> Record:
    """A finished response of the model."""
    return Record(
        id=name,
        call=call,
        parent=parent,
        time=at(second),
        from_="agent",
        model="claude-opus-5",
        usage=Usage(in_=2, out=40),
        parts=list(parts),
        **{"flags": ["finished"], **more},
    )


def came(name: str, run: str, second: float, *parts: Part, **more: Any) -> Record:
    """A tool result, a notification: what the runtime hands to the model."""
    return Record(id=name, run=run, time=at(second), from_="external", parts=list(parts), **more)


def page(
    seq: int,
    records: list[Record],
    stream: str | UnsetType = "main",
    kind: str = "transcript",
    batch: str | UnsetType = UNSET,
) -> Page:
    """A page of ``records``; its digest is that of its ``.sd`` form."""
    draft = Page(
        adapter="claude-code-local/1",
        at=at(0),
        batch=batch,
        conversation=SESSION,
        dialect="claude-code/1",
        digest="0" * 64,
        digests="".join(f"{row:012x}" for row in range(len(records))),
        kind=kind,
        lengths=[100 + row for row in range(len(records))],
        offset=0,
        ord=1,
        provider="claude-code",
        records="0" * 64 * len(records),
        rules="1",
        seq=seq,
        src=f"{SESSION}.jsonl",
        stream=stream,
    )
    return msgspec.structs.replace(draft, digest=hashlib.sha256(sd_bytes(draft, records)).hexdigest())


def landed(seq: int, records: list[Record], **more: Any) -> Landed:
    return from_page(page(seq, records, **more), records)


def build(*files: Landed) -> Assembled:
    """The whole structure of a session of these files."""
    entries = [entry for file in files for entry in file.entries]
    return assemble(entries, conversation=SESSION, session_name=SESSION, revision=1, through=len(files))


def nodes(assembled: Assembled) -> dict[str, SfNode]:
    return {node.id: node for node in assembled.nodes}


def attrs(node: SfNode) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(bytes(node.attrs)) if node.attrs else {}
    return found


def relations(assembled: Assembled) -> dict[str, SfRelation]:
    return {relation.id: relation for relation in assembled.relations}


def unresolved(assembled: Assembled) -> dict[str, SfUnresolved]:
    return {entry.id: entry for entry in assembled.unresolved}


def conversation() -> list[Landed]:
    """A talk with a tool and a child, a compaction and a second talk, in four files."""
    main = [
        Record(label="mend the roof", from_="runtime"),
        asked("u1", "run-1", 1),
        said("a1", "call-1", "u1", 2, Part(k="reasoning", state="unavailable"), flags=[]),
        said("a2", "call-1", "a1", 3, text(), use("tool-1")),
        came("r1", "run-1", 4, result("tool-1"), changes=Changes(files=1, added=3, removed=2)),
        said("a3", "call-2", "r1", 5, use("tool-2", "Agent")),
        came("k1", "run-1", 6, result("tool-2"), child="kid", flags=["launch_ack"]),
    ]
    child = [
        came("c1", "kid-run", 7, text()),
        said("c2", "call-kid", "c1", 8, text()),
    ]
    meta = [Record(child="kid", label="look at the <beams> & joists", from_="runtime")]
    later = [
        came("n1", "run-2", 9, text(), child="kid", tool="tool-2", trigger="notification"),
        said("a4", "call-3", "n1", 10, text()),
        Record(id="b1", from_="runtime", continues="a4", time=at(12), flags=["context_reset"]),
        came("s1", "run-3", 11, text(), parent="b1", flags=["reset_summary"]),
        asked("u2", "run-4", 4000),
        said("a5", "call-4", "u2", 4001, use("tool-3", "Read")),
    ]
    return [
        landed(1, main),
        landed(2, child, stream="kid"),
        landed(3, meta, stream="kid", kind="agent_meta"),
        landed(4, later),
    ]


def content(node: SfNode) -> tuple[Any, ...]:
    """What a node says, its revision aside."""
    return (
        node.kind,
        node.parent,
        node.stream,
        node.ref,
        node.refs,
        bytes(node.attrs) if node.attrs else b"",
    )


def state(fold: Fold) -> tuple[Any, ...]:
    """What a fold says, revisions and resolved entries aside."""
    return (
        {n.id: content(n) for n in fold.nodes.values()},
        {r.id: (r.type, r.from_, r.to, r.quality, r.via, r.evidence) for r in fold.relations.values()},
        {u.id: (u.kind, u.ref, u.reason) for u in fold.unresolved.values() if u.state == "open"},
    )


def _optional(values: list[str], none: int = 1) -> st.SearchStrategy[Any]:
    return st.sampled_from([*values, *[UNSET] * none])


#: Names that ids cannot tell apart (an id has ``_`` for ``/``), and the same without them.
_NAMES = {
    True: (["t1", "t/2", "t_2", "t3"], ["kid", "kin/1", "kin_1"], ["r1", "r2", "r/3"]),
    False: (["t1", "t-2", "t_2", "t3"], ["kid", "kin-1", "kin_1"], ["r1", "r2", "r-3"]),
}
_FLAGS = [
    "synthetic",
    "context_reset",
    "reset_summary",
    "finished",
    "external_input",
    "injected",
    "child_result",
    "error",
    "launch_ack",
    "notice",
    "auxiliary",
]


def _records(tools: list[str], children: list[str], runs: list[str]) -> st.SearchStrategy[Record]:
    parts = st.one_of(
        st.builds(text),
        st.just(Part(k="reasoning", state="unavailable")),
        st.builds(use, st.sampled_from(tools), st.sampled_from(["Bash", 'say "<&>"\u2028'])),
        st.builds(result, st.sampled_from(tools)),
    )
    return st.builds(
        Record,
        id=_optional([f"i{n}" for n in range(9)], 3),
        parent=_optional([f"i{n}" for n in range(9)], 3),
        call=_optional(["c1", "c2", "c3"], 3),
        run=_optional(runs, 3),
        continues=_optional(["i1", "gone"], 4),
        tool=_optional(tools, 4),
        child=_optional(children, 4),
        batch=_optional(["w1"], 5),
        label=_optional(["a label", "<b> & \u2029"], 4),
        started_by=_optional(["main", "nobody"], 4),
        from_=st.sampled_from(["agent", "agent", "external", "runtime"]),
        time=st.one_of(st.just(UNSET), st.sampled_from([at(s) for s in (1, 2.5, 3, 900, 901, 2000)])),
        trigger=_optional(["external", "notification", "unknown"], 3),
        flags=st.one_of(
            st.just(UNSET), st.lists(st.sampled_from(_FLAGS), min_size=1, max_size=2, unique=True)
        ),
        parts=st.one_of(st.just(UNSET), st.lists(parts, min_size=1, max_size=3)),
        changes=st.one_of(st.just(UNSET), st.builds(Changes, added=st.integers(0, 9))),
    )


def _files(names: tuple[list[str], list[str], list[str]]) -> st.SearchStrategy[Any]:
    """(kind, stream, batch, records) of each file."""
    return st.lists(
        st.tuples(
            st.sampled_from(["transcript"] * 4 + ["agent_meta", "journal", "workflow_manifest", "changes"]),
            st.sampled_from(["main", "main", *names[1]]),
            _optional(["w1"], 2),
            st.lists(_records(*names), min_size=1, max_size=5),
        ),
        min_size=1,
        max_size=7,
    )


_FILES = {clashing: _files(names) for clashing, names in _NAMES.items()}
FILES = _FILES[True]


@st.composite
def sessions(draw: st.DrawFn, clashing: bool = True) -> list[Landed]:
    """Landed files of records put together at random: every rule of assembly meets what it does not expect. With
    ``clashing``, some names differ only in what an id cannot hold."""
    return [
        landed(
            seq,
            records,
            kind=kind,
            stream=UNSET if kind in ("journal", "workflow_manifest") else stream,
            batch=batch,
        )
        for seq, (kind, stream, batch, records) in enumerate(draw(_FILES[clashing]), 1)
    ]
