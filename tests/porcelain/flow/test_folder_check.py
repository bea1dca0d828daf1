"""Verification of folders: every rule by a file that breaks it alone, and every changed bit."""

from __future__ import annotations

import hashlib
import io
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from objstore.errors import NotFound
from porcelain.flow.checking.folder_check import check_folder
from porcelain.flow.checking.folder_files import check_landed_file, check_round_file
from porcelain.flow.checking.folder_scan import scan
from porcelain.flow.checking.report import FlowProblem
from porcelain.flow.formats.sd import SdError, write_sd
from porcelain.flow.formats.sf import Ref, Round, RoundError, SfRelation, SfUnresolved
from porcelain.flow.formats.sf import write_round as write
from porcelain.flow.formats.sf_reading import read_round
from tests.porcelain.flow.folders import (
    SESSION,
    build,
    called,
    chain,
    header,
    landed_files,
    place,
    place_round,
    row,
    rows,
    text,
)


def problems(root: Path) -> list[FlowProblem]:
    return [problem for check in check_folder(scan(root)) for problem in check.problems]


def test_a_folder_in_order(tmp_path: Path) -> None:
    checks = list(check_folder(scan(build(tmp_path))))
    assert [check.problems for check in checks] == [[], []]
    assert sum(check.pages for check in checks) == 3
    assert sum(check.records for check in checks) == 10
    assert sum(check.rounds for check in checks) == 2
    assert sorted(len(check.places) for check in checks) == [2, 3]


# -- landed files ----------------------------------------------------------------------------------------------------


def closed(body: bytes, records: int) -> bytes:
    digest = hashlib.sha256(body).hexdigest()
    return body + f'{{"t":"end","records":{records},"digest":"{digest}"}}\n'.encode()


GOOD = landed_files()[0]
LINES = GOOD.splitlines(keepends=True)
BODY = b"".join(LINES[:-1])


def edited(old: bytes, new: bytes) -> bytes:
    """The good file with a change in it that its closing line covers."""
    assert old in BODY
    return closed(BODY.replace(old, new, 1), 5)


LANDED = [
    ("no-header", b"", None),
    ("no-header", LINES[-1], 1),
    ("header", edited(b'{"h":1', b'{"h":x'), 1),
    ("header-version", edited(b'{"h":1', b'{"h":2'), 1),
    ("schema", edited(b'"sd/1"', b'"sd/9"'), 1),
    ("header-kind", edited(b'"kind":"transcript"', b'"kind":""'), 1),
    ("header-session", edited(f'"session":"{SESSION}"'.encode(), b'"session":""'), 1),
    ("header-src", edited(b'"src":"src/main"', b'"src":""'), 1),
    ("header-dialect", edited(b'"dialect":"quill/1"', b'"dialect":""'), 1),
    ("record", edited(b'"ord":3', b'"ord":"3"'), 4),
    ("no-end", BODY, None),
    ("end", GOOD.replace(b'"records":5', b'"records":x'), 7),
    ("digest", GOOD.replace(b"I shall look.", b"I shall Look."), 7),
    ("records", closed(BODY, 6), 7),
    ("after-end", GOOD + b"\n", 8),
    ("end-line", GOOD[:-1], 7),
    ("ord-gap", edited(b'"ord":3', b'"ord":9'), 4),
    ("byte-gap", edited(b'"off":82', b'"off":83'), 4),
    ("name-seq", edited(b'"seq":1,', b'"seq":8,'), None),
    ("name-kind", edited(b'"kind":"transcript"', b'"kind":"journal"'), None),
    ("name-session", edited(f'"session":"{SESSION}"'.encode(), b'"session":"another"'), None),
    ("name-stream", edited(b'"stream":"main"', b'"stream":"other"'), None),
]


@pytest.mark.parametrize(
    ("rule", "data", "line"), LANDED, ids=[f"{n}-{r}" for n, (r, _, _) in enumerate(LANDED)]
)
def test_a_landed_file_that_breaks_one_rule(tmp_path: Path, rule: str, data: bytes, line: int | None) -> None:
    path = place(tmp_path, GOOD)
    path.write_bytes(data)
    found = problems(tmp_path)
    gaps = [one.rule for one in found if rule in ("ord-gap", "byte-gap")]
    assert len(found) == 1 or set(gaps) == {rule}, found
    assert (found[0].rule, found[0].file, found[0].line) == (rule, str(path), line)


def test_a_run_in_the_folder_of_another(tmp_path: Path) -> None:
    data = write_sd(header(1, "journal", stream=UNSET, batch="wf_1"), rows(row(from_="runtime")))
    path = place(tmp_path, data)
    path.parent.rename(path.parent.with_name("wf_2"))
    assert [one.rule for one in problems(tmp_path)] == ["name-run"]


def test_a_seq_that_stands_twice(tmp_path: Path) -> None:
    place(tmp_path, GOOD)
    place(tmp_path, write_sd(header(1, stream="kid"), rows(row(from_="runtime"))))
    assert [one.rule for one in problems(tmp_path)] == ["seq-repeated"]


@pytest.mark.parametrize(
    ("ord", "off", "rules"),
    [
        (6, 205, []),
        (7, 205, ["ord-gap"]),
        (6, 206, ["byte-gap"]),
        (3, 82, []),
        (1, 0, []),
        (6, 82, ["byte-gap"]),
    ],
)
def test_the_source_goes_on_where_it_ended(tmp_path: Path, ord: int, off: int, rules: list[str]) -> None:
    place(tmp_path, GOOD)
    more = rows(called("a9", "c9", "x1", 9, text("and")), ord=ord, off=off)
    path = place(tmp_path, write_sd(header(2), more))
    found = problems(tmp_path)
    assert [one.rule for one in found] == rules
    assert all((one.file, one.line) == (str(path), 2) for one in found)


def test_snapshots_and_our_own_files_may_leave_gaps(tmp_path: Path) -> None:
    for seq in (1, 2):
        place(tmp_path, write_sd(header(seq, "agent_meta"), rows(row(child="kid", from_="runtime"))))
    ours = header(3, adapter="pi-local/1")
    place(
        tmp_path, write_sd(ours, [*rows(row(from_="runtime"), ord=7, off=900), *rows(row(), ord=9, off=990)])
    )
    assert problems(tmp_path) == []
    place(
        tmp_path, write_sd(replace(ours, seq=4), [*rows(row(), ord=9, off=990), *rows(row(), ord=4, off=20)])
    )
    assert [one.rule for one in problems(tmp_path)] == ["ord-gap"]


def test_what_a_cursor_says_was_read_must_be_there(tmp_path: Path) -> None:
    cursor = place(tmp_path, GOOD).with_name("transcript.cursor")
    cursor.write_text("schema 1\nkind append\noffset 205\n")
    assert problems(tmp_path) == []
    cursor.write_text("schema 1\nkind append\noffset 206\n")
    assert [(one.rule, one.file) for one in problems(tmp_path)] == [("end-gap", str(cursor))]


# -- rounds ----------------------------------------------------------------------------------------------------------

FILES = landed_files()
FIRST, SECOND = (read_round(data) for data, _ in chain(FILES, 1, 3))
Edit = Callable[[Round], Round]


def head(**changed: object) -> Edit:
    return lambda round_: replace(round_, header=replace(round_.header, **changed))  # type: ignore[arg-type]


def node(**changed: object) -> Edit:
    """The round with its first node changed."""
    return lambda round_: replace(round_, nodes=[replace(round_.nodes[0], **changed), *round_.nodes[1:]])


def relation(**changed: object) -> Edit:
    more = replace(SfRelation("rel/x", 2, UNSET, "starts", "a", "b", "exact_unique"), **changed)
    return lambda round_: replace(round_, relations=[*round_.relations, more])


def unresolved(**changed: object) -> Edit:
    more = replace(SfUnresolved("unres/x", 2, UNSET, "tool_use", "x", "gone", "open"), **changed)
    return lambda round_: replace(round_, unresolved=[*round_.unresolved, more])


ROUNDS: list[tuple[str, Edit]] = [
    ("schema", head(schema="sf/9")),
    ("header-conversation", head(conversation="")),
    ("header-session", head(session="")),
    ("header-parser", head(parser="")),
    ("header-policy", head(policy="")),
    ("header-input_digest", head(input_digest="")),
    ("round-zero", head(round=0)),
    ("no-previous", head(previous=UNSET)),
    ("from-seq", head(from_seq=0)),
    ("range", head(from_seq=9)),
    ("range", head(from_seq=3)),
    ("range", head(from_seq=1)),
    ("no-id", node(id="")),
    ("repeated-id", unresolved(id=SECOND.nodes[0].id)),
    ("revision", node(revision=1)),
    ("ref-zero", node(ref=Ref(0, 0))),
    ("ref-past", node(ref=Ref(4, 1))),
    ("ref-past", relation(evidence=[Ref(4, 1)])),
    ("relation-type", relation(type="")),
    ("relation-from", relation(from_="")),
    ("relation-to", relation(to="")),
    ("state", unresolved(state="closed")),
    ("previous", head(previous="ab" * 32)),
    ("frozen-conversation", head(conversation="another")),
    ("frozen-session", head(session="another")),
    ("frozen-parser", head(parser="v2")),
    ("frozen-policy", head(policy="v1+idle=1m0s")),
    ("input-digest", head(input_digest="cd" * 32)),
]


def second(root: Path, change: Edit) -> Path:
    """A root whose second round is changed, its digest with it."""
    build(root, ends=(1,))
    round_ = change(SECOND)
    data, digest = write(round_.header, round_.nodes, round_.relations, round_.unresolved)
    return place_round(root, data, 2, digest)


@pytest.mark.parametrize(("rule", "change"), ROUNDS, ids=[f"{n}-{r}" for n, (r, _) in enumerate(ROUNDS)])
def test_a_round_that_breaks_one_rule(tmp_path: Path, rule: str, change: Edit) -> None:
    path = second(tmp_path, change)
    found = problems(tmp_path)
    follow = {"frozen-session": {"landed-file"}, "frozen-conversation": {"name-conversation"}}
    assert {one.rule for one in found} - follow.get(rule, set()) == {rule}, found
    (wrong,) = (one for one in found if one.rule == rule)
    assert (wrong.file, wrong.place) == (str(path), "round 2")


RAW: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("no-header", lambda data: data.splitlines(keepends=True)[-1]),
    ("first-frame", lambda data: b"".join(data.splitlines(keepends=True)[1:])),
    ("second-header", lambda data: data.splitlines(keepends=True)[0] * 2 + data),
    ("after-commit", lambda data: data + data.splitlines(keepends=True)[1]),
    ("unknown-frame", lambda data: data.replace(b'"t":"node"', b'"t":"edge"', 1)),
    ("undecodable", lambda data: data.replace(b'"t":"node"', b'"t":"node', 1)),
    ("depth", lambda data: data.splitlines(keepends=True)[0] + b'{"t":"node","attrs":' + b"[" * 100_000),
    ("provider-bodies", lambda data: data.replace(b'"attrs":{', b'"attrs":{"provider_bodies":1,', 1)),
    ("no-commit", lambda data: b"".join(data.splitlines(keepends=True)[:-1])),
    ("digest", lambda data: data.replace(b'"stream":"main"', b'"stream":"Main"', 1)),
    ("final-newline", lambda data: data[:-1]),
    ("empty-line", lambda data: data.replace(b"\n", b"\n\n", 1)),
    ("commit-line", lambda data: data.replace(b'"counts":{', b'"counts": {')),
    ("counts", lambda data: data.replace(b'"relations":', b'"relations":1', 1)),
]


@pytest.mark.parametrize(("rule", "change"), RAW, ids=[rule for rule, _ in RAW])
def test_a_round_file_that_does_not_read(tmp_path: Path, rule: str, change: Callable[[bytes], bytes]) -> None:
    path = second(tmp_path, lambda round_: round_)
    path.write_bytes(change(path.read_bytes()) + (b"\n" if rule == "depth" else b""))
    found = problems(tmp_path)
    assert [(one.rule, one.file) for one in found] == [(rule, str(path))]


def test_lines_that_are_not_one_frame_each(tmp_path: Path) -> None:
    """As many newlines as frames, and every value reads: but one stands on two lines, and two on one."""
    path = second(tmp_path, lambda round_: round_)
    *frames, commit = path.read_bytes().splitlines(keepends=True)
    frames[1] = frames[1].replace(b'"t":"node",', b'"t":"node",\n', 1)
    frames[2] = frames[2][:-1]
    body = b"".join(frames)
    path.write_bytes(body + commit.replace(commit[24:88], hashlib.sha256(body).hexdigest().encode()))
    assert [(one.rule, one.file, one.line) for one in problems(tmp_path)] == [("undecodable", str(path), 2)]


def test_first_rounds(tmp_path: Path) -> None:
    build(tmp_path, ends=())
    data, digest = write(replace(FIRST.header, previous="ab" * 32), FIRST.nodes, FIRST.relations, [])
    place_round(tmp_path, data, 1, digest)
    assert [one.rule for one in problems(tmp_path)] == ["first-previous"]


def test_names_of_rounds(tmp_path: Path) -> None:
    build(tmp_path, ends=(1,))
    (path,) = (tmp_path / "_conversations" / SESSION / "rounds").iterdir()
    other = path.with_name("r000001-0123456789ab.sf")
    path.rename(other)
    assert [(one.rule, one.file) for one in problems(tmp_path)] == [("name-digest", str(other))]
    moved = other.with_name(path.name.replace("r000001", "r000007"))
    other.rename(moved)
    assert [one.rule for one in problems(tmp_path)] == ["name-round"]
    moved.rename(path)
    folder = path.parent.parent
    folder.rename(folder.with_name("elsewhere"))
    assert [one.rule for one in problems(tmp_path)] == ["name-conversation"]


def test_a_round_that_is_missing_or_stands_twice(tmp_path: Path) -> None:
    build(tmp_path, ends=(1, 2, 3))
    folder = tmp_path / "_conversations" / SESSION / "rounds"
    one, two, three = sorted(folder.iterdir())
    two.rename(tmp_path / "aside")
    found = problems(tmp_path)
    assert [(p.rule, p.file) for p in found] == [("round-missing", str(three))]
    assert "round 2 is missing before round 3" in found[0].what
    (tmp_path / "aside").rename(two)
    copy = one.with_name("r000001-ffffffffffff.sf")
    copy.write_bytes(one.read_bytes())
    assert [p.rule for p in problems(tmp_path)] == ["round-repeated"]


def test_landed_files_that_a_round_covers(tmp_path: Path) -> None:
    build(tmp_path)
    for path in (tmp_path / SESSION / "streams" / "kid").iterdir():
        path.unlink()
    (found,) = problems(tmp_path)
    assert (found.rule, found.what) == ("landed-file", "landed file 2 is missing")


# -- what is looked at -----------------------------------------------------------------------------------------------


def test_what_is_being_written_is_not_looked_at(tmp_path: Path) -> None:
    build(tmp_path)
    folder = tmp_path / "_conversations" / SESSION / "rounds"
    (folder / ".tmp-x.sf").write_bytes(b"half a rou")
    (folder / "r000003-0123456789ab.sf").write_bytes(b"")
    (folder / "notes.txt").write_bytes(b"of no interest")
    (tmp_path / SESSION / "streams" / "main" / ".tmp-transcript-x-000009.sd").write_bytes(b"half")
    checks = list(check_folder(scan(tmp_path)))
    assert [check.problems for check in checks] == [[], []]
    assert sum(check.rounds for check in checks) == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_what_is_no_file_cannot_be_read(tmp_path: Path) -> None:
    for name in ("pipe.sd", "pipe.sf"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "lost.sd").symlink_to(tmp_path / "nowhere")
    assert [(one.rule, one.file, one.what) for one in problems(tmp_path)] == [
        ("unreadable", str(tmp_path / "lost.sd"), "No such file or directory"),
        ("unreadable", str(tmp_path / "pipe.sd"), "not a file"),
        ("unreadable", str(tmp_path / "pipe.sf"), "not a file"),
    ]


def test_roots_are_found_wherever_they_stand(tmp_path: Path) -> None:
    build(tmp_path / "a" / "b")
    build(tmp_path / "a" / "b" / "older", ends=(3,))
    (tmp_path / "loose.sd").write_bytes(GOOD)
    (tmp_path / "loose.sf").write_bytes(chain(FILES, 1)[0][0] + b"x")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "broken.sd").write_bytes(b"x")
    folder = scan(tmp_path)
    assert len(folder.sessions) == len(folder.conversations) == len(folder.loose) == 2
    assert [(one.rule, Path(one.file).name) for one in problems(tmp_path)] == [("final-newline", "loose.sf")]
    assert scan(tmp_path / "loose.sd").loose == [str(tmp_path / "loose.sd")]
    with pytest.raises(NotFound):
        scan(tmp_path / "nowhere")


# -- every bit -------------------------------------------------------------------------------------------------------


def found_in(path: str, data: bytes) -> tuple[str, int | None] | None:
    """The rule that a file breaks, and the line; None where it breaks none."""
    try:
        if path.endswith(".sf"):
            check_round_file(path, data)
        else:
            check_landed_file(path, io.BytesIO(data))
    except (SdError, RoundError) as error:
        return error.rule, error.line
    return None


def flip_all(files: dict[str, bytes]) -> None:
    choose = random.Random(20260301)
    for path, data in files.items():
        assert found_in(path, data) is None
        damaged = bytearray(data)
        for position in range(len(data)):
            bit = 1 << choose.randrange(8)
            damaged[position] ^= bit
            assert found_in(path, bytes(damaged)) is not None, (path, position, bit)
            damaged[position] ^= bit


def test_every_changed_bit_of_a_folder_is_found(tmp_path: Path) -> None:
    build(tmp_path)
    paths = [path for path in tmp_path.rglob("*.s?") if path.is_file()]
    flip_all({str(path): path.read_bytes() for path in paths})


def test_every_changed_bit_of_the_published_root_is_found(shared: Path) -> None:
    root = shared / "vectors" / "session-flow" / "rebuilt"
    if not root.is_dir():
        pytest.skip("the shared folder holds no session-flow vectors")
    paths = [path for path in root.rglob("*.s?") if path.is_file()]
    assert len(paths) == 9
    flip_all({str(path): path.read_bytes() for path in paths})


def test_two_hundred_changed_bytes_are_told_with_file_and_rule(tmp_path: Path) -> None:
    build(tmp_path)
    choose = random.Random(7)
    paths = sorted(path for path in tmp_path.rglob("*.s?") if path.is_file())
    for _ in range(200):
        path = choose.choice(paths)
        data = path.read_bytes()
        position = choose.randrange(len(data))
        changed = bytearray(data)
        changed[position] ^= choose.randrange(1, 256)
        path.write_bytes(changed)
        found = [one for one in problems(tmp_path) if one.file == str(path)]
        assert found and found[0].rule and found[0].what, (path, position)
        path.write_bytes(data)


def test_the_published_roots_are_in_order(shared: Path) -> None:
    root = shared / "vectors" / "session-flow"
    if not root.is_dir():
        pytest.skip("the shared folder holds no session-flow vectors")
    checks = list(check_folder(scan(root)))
    assert [one for check in checks for one in check.problems] == []
    assert sum(check.pages for check in checks) == 8 and sum(check.rounds for check in checks) == 2
