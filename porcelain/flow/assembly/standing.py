"""Where assembly stands: what must be known of the rows so far in order to go on with new ones.

One entry for every name that rows bring: records, calls, tool uses, streams, runs, talks, workflow batches. The frames
of a name are a function of its entry and of those it leads to, so that the frames that new rows change are those whose
entries they touch. Everything here can be made again from the landed rows; it is never an authority.

Places are (seq, row) or (seq, row, block). Sequences are tuples: an entry is copied before it is changed.
"""

from __future__ import annotations

from msgspec import Struct, field

from porcelain.flow.assembly.tables import Table

Place = tuple[int, int]
BlockPlace = tuple[int, int, int]

#: ``Known.hops`` of a record that has not landed: a record names it as its parent, or only a reset names it.
AWAITED, MENTIONED = -1, -2
#: ``StreamKnown.named``: whether records name the stream as a child, and all of them as an auxiliary one.
UNNAMED, AUXILIARY_ONLY, NAMED = 0, 1, 2
#: ``Edge.kind``: the sort of record that names a child.
JOURNAL, SIDECAR, NOTIFICATION, RESULT = range(4)


class Known(Struct, array_like=True, gc=False):
    """A record id: the run that it belongs to (empty for none) and over how many parents. ``resets`` counts the context
    resets that name it although it has not landed."""

    run: str = ""
    hops: int = 0
    resets: int = 0


class CallKnown(Struct, array_like=True, gc=False):
    """A model call: the places of its fragments, the union of their flags, and what its node goes under."""

    refs: tuple[Place, ...]
    flags: int
    stream: str
    container: str


class ToolKnown(Struct, array_like=True, gc=False):
    """A tool-use id. ``request`` is None until the request lands; ``children`` are all that records join to it,
    ``notices`` notifications that name it but no child, ``batches`` the workflow batches that it launched."""

    request: BlockPlace | None = None
    stream: str = ""
    parent: str = ""
    name: str = ""
    server: str = ""
    server_tool: str = ""
    asked: int = 0
    result: BlockPlace | None = None
    answered: int = 0
    results: int = 0
    children: tuple[str, ...] = ()
    notices: tuple[Place, ...] = ()
    batches: tuple[str, ...] = ()


class Edge(Struct, array_like=True, frozen=True, gc=False):
    """A record that names a child stream, and the tool use, batch or parent stream that it gives for it."""

    kind: int
    tool: str
    batch: str
    parent: str
    seq: int
    row: int


class EpochKnown(Struct, array_like=True, frozen=True, gc=False):
    """An epoch: its first record, the reset that opened it (None for the first epoch), how many records it has."""

    id: str
    first: Place
    boundary: Place | None
    continues: str
    size: int


class StreamKnown(Struct, array_like=True, gc=False):
    """A stream, landed (``count`` records) or only named. ``talk`` is the current talk; ``boundary`` the last reset;
    ``last`` the last response by a model and ``last_in`` what it goes under; ``returned`` the journal's result;
    ``begot`` the children whose sidecars name this stream as their parent."""

    count: int = 0
    first: Place = (0, 0)
    label: str = ""
    named: int = UNNAMED
    epochs: tuple[EpochKnown, ...] = ()
    talk: str = ""
    boundary: Place | None = None
    last: Place | None = None
    last_in: str = ""
    returned: Place | None = None
    edges: tuple[Edge, ...] = ()
    notified: bool = False
    notices: tuple[Place, ...] = ()
    begot: tuple[str, ...] = ()


class RunKnown(Struct, array_like=True, gc=False):
    """A run of a stream. ``stated``: a record of it states a trigger; ``external``: one states that of a person."""

    talk: str
    first: Place
    opens: bool
    stated: bool
    external: bool


class TalkKnown(Struct, array_like=True, gc=False):
    """A talk; ``start`` and ``end`` in nanoseconds, 0 for none; ``window`` the number of its segment, -1 for none."""

    stream: str
    epoch: str
    first: Place
    runs: int = 0
    start: int = 0
    end: int = 0
    window: int = -1


class BatchKnown(Struct, array_like=True, gc=False):
    """A workflow batch: the tool use whose result announced it (None: not yet), its manifest, children of its
    journal."""

    tool: str | None = None
    manifest: Place | None = None
    label: str = ""
    children: tuple[str, ...] = ()


class Owners(Struct, array_like=True, gc=False):
    """How many children lack the same starting call, and what is said of it."""

    reason: str
    count: int = 0


class Mark(Struct, array_like=True, gc=False):
    """A workspace change that was counted."""


class Window(Struct, array_like=True, frozen=True, gc=False):
    """A segment: the first record of its first talk, how many main talks, its times, whether an operation crosses its
    edges."""

    first: Place
    talks: int
    start: int
    end: int
    crossing: bool = False


class Core(Struct, array_like=True):
    """What holds for the session as a whole. ``unsettled`` are the tool uses that may keep a segment open: when asked,
    when answered, how many results; ``outside`` the child talks later than the last segment, and their start;
    ``last_talk`` is the main talk that starts last."""

    through_seq: int = 0
    rows: int = 0
    title: str = ""
    first: int = 0
    last: int = 0
    changes: int = 0
    added: int = 0
    removed: int = 0
    containers: int = 0
    nodes: int = 0
    talks: int = 0
    streams: int = 0
    calls: int = 0
    subagents: int = 0
    bash_runs: int = 0
    unresolved: int = 0
    children_missing: int = 0
    newest: int = 0
    revised: bool = False
    crossing_calls: bool = False
    last_talk: str = ""
    windows: tuple[Window, ...] = ()
    unsettled: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    outside: dict[str, int] = field(default_factory=dict)


class Standing:
    """The tables, and the core; ``old_core`` is that of the last ``commit``."""

    def __init__(self, core: Core | None = None, tables: dict[str, Table[object]] | None = None) -> None:
        #: Whether it was made here, and nothing of it was saved before.
        self.made = tables is None
        self.old_core = core if core is not None else Core()
        self.core = self.old_core
        made = tables if tables is not None else {name: Table(kind) for name, kind in TABLES.items()}
        self.tables = made
        self.records: Table[Known] = made["records"]  # type: ignore[assignment]
        self.calls: Table[CallKnown] = made["calls"]  # type: ignore[assignment]
        self.tools: Table[ToolKnown] = made["tools"]  # type: ignore[assignment]
        self.streams: Table[StreamKnown] = made["streams"]  # type: ignore[assignment]
        self.runs: Table[RunKnown] = made["runs"]  # type: ignore[assignment]
        self.talks: Table[TalkKnown] = made["talks"]  # type: ignore[assignment]
        self.batches: Table[BatchKnown] = made["batches"]  # type: ignore[assignment]
        self.lacking: Table[Owners] = made["lacking"]  # type: ignore[assignment]
        self.changes: Table[Mark] = made["changes"]  # type: ignore[assignment]

    def commit(self) -> None:
        """Keep what the last step changed."""
        self.old_core = self.core
        for table in self.tables.values():
            table.commit()

    def rollback(self) -> None:
        """Forget it."""
        self.core = self.old_core
        for table in self.tables.values():
            table.rollback()


#: Tables in the order of their numbers where they are saved.
TABLES: dict[str, type] = {
    "records": Known,
    "calls": CallKnown,
    "tools": ToolKnown,
    "streams": StreamKnown,
    "runs": RunKnown,
    "talks": TalkKnown,
    "batches": BatchKnown,
    "lacking": Owners,
    "changes": Mark,
}


def role(name: str, stream: StreamKnown) -> str:
    """What a stream is to the session."""
    return "main" if name == "main" else "auxiliary" if stream.named == AUXILIARY_ONLY else "child"


def run_key(stream: str, run: str) -> str:
    """The name of a run among those of all streams."""
    return f"{stream}\0{run}"
