"""What arrives late resolves what was missing for want of it, and changes nothing else."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from porcelain.flow.assembly import rounds
from porcelain.flow.assembly.entries import Landed
from porcelain.flow.chain.folding import Fold, copied
from porcelain.flow.formats.sf import Ref, Round
from porcelain.providers.records import Record
from tests.porcelain.flow.sample import SESSION, asked, came, landed, result, said, state, text, use

#: A file: its records, its stream and its kind.
File = tuple[list[Record], str, str]


def talk(number: int, child: bool) -> tuple[list[Record], list[File]]:
    """A talk with a tool use, which starts a child or does not; and the files of that child."""
    second = number * 100
    spawned = f"kid{number}"
    main = [
        asked(f"u{number}", f"run-{number}", second),
        said(
            f"a{number}", f"call-{number}", f"u{number}", second + 1, text(), use(f"tool-{number}", "Agent")
        ),
        came(
            f"r{number}",
            f"run-{number}",
            second + 30,
            result(f"tool-{number}"),
            parent=f"a{number}",
            **({"child": spawned} if child else {}),
        ),
        said(f"b{number}", f"end-{number}", f"r{number}", second + 31, text()),
    ]
    if not child:
        return main, []
    lines = [
        came(f"k{number}", f"{spawned}-run", second + 5, text()),
        said(f"c{number}", f"call-{spawned}", f"k{number}", second + 6, text()),
    ]
    meta = [Record(child=spawned, label="looks", from_="runtime")]
    return main, [(lines, spawned, "transcript"), (meta, spawned, "agent_meta")]


@st.composite
def conversations(draw: st.DrawFn) -> tuple[list[Record], list[File]]:
    talks = [talk(number, draw(st.booleans())) for number in range(draw(st.integers(1, 5)))]
    main = [record for records, _ in talks for record in records]
    return main, [file for _, files in talks for file in files]


def grown(files: list[File]) -> tuple[list[Landed], Fold, Fold, Round]:
    """The files landed one by one: all of them, the fold before the last, the fold after it and its round."""
    made: list[Landed] = []
    fold, before, last = Fold(), Fold(), None
    for number, (records, stream, kind) in enumerate(files, 1):
        made.append(landed(number, records, stream=stream, kind=kind))
        before = copied(fold)
        (written,) = rounds(made, fold, conversation=SESSION, session=SESSION)
        last = written.round
    assert last is not None
    return made, before, fold, last


def missing(fold: Fold) -> set[tuple[str, str]]:
    return {(entry.kind, str(entry.ref)) for entry in fold.unresolved.values() if entry.state == "open"}


def by_id(files: list[Landed], fold: Fold) -> Any:
    """The fold with places as record ids, so that folds of other cuts compare: frames of id-less records by kind."""
    ids = {
        Ref(entry.seq, entry.row): entry.id or f"{entry.stream}/{entry.kind}"
        for file in files
        for entry in file.entries
    }

    def place(ref: Any) -> Any:
        return (ids[Ref(ref.seq, ref.row)], ref.block)

    nodes = sorted(
        (node.kind, place(node.ref) if node.ref else None, node.stream or "", len(node.refs or ()))
        for node in fold.nodes.values()
    )
    return str(nodes), len(fold.relations), missing(fold)


@given(conversations(), st.data())
def test_a_child_that_lands_last(drawn: tuple[list[Record], list[File]], data: st.DataObject) -> None:
    main, others = drawn
    streams = sorted({stream for _, stream, _ in others})
    if not streams:
        return
    late = data.draw(st.sampled_from(streams))
    first = [file for file in others if file[1] != late]
    order = data.draw(st.permutations([(main, "main", "transcript"), *first]))
    child = [file for file in others if file[1] == late and file[2] == "transcript"]
    files, before, after, last = grown([*order, *child])
    assert missing(before) == {("child_stream", late)}
    assert missing(after) == set()
    number = late.removeprefix("kid")
    assert {(entry.id, entry.state) for entry in last.unresolved} == {
        (f"unres/child_stream/{late}", "resolved")
    }
    # The child itself, the tool use that it makes an agent call, and what the session and its segments say of all.
    seq = len(files)
    for node in last.nodes:
        assert (
            node.stream == late
            or node.id == f"tool/tool-{number}"
            or node.kind in ("session", "segment")
            or (node.ref is not None and isinstance(node.ref, Ref) and node.ref.seq == seq)
        ), node
    for relation in last.relations:
        assert late in relation.from_ or late in relation.to
    assert not any(frame.tombstone for frame in [*last.nodes, *last.relations])


@given(conversations(), st.data())
def test_a_result_that_lands_last(drawn: tuple[list[Record], list[File]], data: st.DataObject) -> None:
    main, others = drawn
    number = data.draw(st.integers(0, len(main) // 4 - 1))
    late = main[number * 4 + 2]
    rest = [record for record in main if record is not late]
    _, before, after, last = grown([(rest, "main", "transcript"), *others, ([late], "main", "transcript")])
    tool = f"tool-{number}"
    assert ("tool_result", tool) in missing(before)
    assert missing(after) == set()
    expected = {f"unres/tool_result/{tool}"}
    if late.child:
        expected.add(f"unres/spawn_of_child/{late.child}")
    assert {entry.id for entry in last.unresolved if entry.state == "resolved"} >= {
        f"unres/tool_result/{tool}"
    }
    assert {entry.id for entry in last.unresolved} <= expected
    changed = {node.id for node in last.nodes if node.kind not in ("session", "segment", "stream", "epoch")}
    # The call after the result finds its run again through it.
    assert changed <= {
        f"tool/{tool}",
        f"call/end-{number}",
        *(n.id for n in last.nodes if is_part(n, number)),
    }
    assert f"tool/{tool}" in changed


def is_part(node: Any, number: int) -> bool:
    return bool(node.parent == f"call/end-{number}")


@given(conversations(), st.data())
def test_a_parent_that_lands_last(drawn: tuple[list[Record], list[File]], data: st.DataObject) -> None:
    """The user's record of a talk comes last: its run opens then, and its answer belongs to it."""
    main, others = drawn
    number = data.draw(st.integers(0, len(main) // 4 - 1))
    late = main[number * 4]
    rest = [record for record in main if record is not late]
    files, _, after, _ = grown([(rest, "main", "transcript"), *others, ([late], "main", "transcript")])
    call = after.nodes[f"call/call-{number}"]
    assert call.parent == f"run/talk_main_run-{number}/run-{number}"
    assert missing(after) == set()
    whole = Fold()
    list(rounds(files, whole, conversation=SESSION, session=SESSION))
    assert state(after) == state(whole)


@given(conversations(), st.data())
def test_any_order_of_children_says_the_same(
    drawn: tuple[list[Record], list[File]], data: st.DataObject
) -> None:
    main, others = drawn
    files, _, fold, _ = grown([(main, "main", "transcript"), *others])
    # A child's sidecar lands after its transcript: the first record of a stream is what its structure begins with.
    groups = [[(main, "main", "transcript")], *(others[at : at + 2] for at in range(0, len(others), 2))]
    order = data.draw(st.permutations(groups))
    shuffled, _, other, _ = grown([file for group in order for file in group])
    assert by_id(files, fold) == by_id(shuffled, other)
