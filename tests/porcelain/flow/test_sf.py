from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from objstore.nesting import MAX_NESTING
from porcelain.flow.formats.sf import RoundError, input_digest, write_round
from porcelain.flow.formats.sf_reading import read_lines, read_round

Frame = dict[str, Any]


def header(**changed: Any) -> Frame:
    return {
        "t": "header",
        "schema": "sf/1",
        "conversation": "c",
        "session": "s",
        "round": 2,
        "previous": "ab" * 32,
        "from_seq": 4,
        "through_seq": 5,
        "input_digest": "cd" * 32,
        "parser": "v1",
        "policy": "v1+idle=10m0s",
        **changed,
    }


def without(key: str) -> Frame:
    return {k: v for k, v in header().items() if k != key}


NODE: Frame = {
    "t": "node",
    "id": "tool/t",
    "revision": 2,
    "kind": "tool",
    "parent": "call/c",
    "stream": "main",
    "ref": {"seq": 1, "row": 2, "block": 0},
    "refs": [{"seq": 1, "row": 2, "block": 0}, {"seq": 5, "row": 1}],
    "attrs": {"name": "<a> & \u2028 \u00e9", "usage_at": {"row": 2, "seq": 1}},
}
GONE: Frame = {"t": "node", "id": "zz", "revision": 2, "tombstone": True, "kind": ""}
RELATION: Frame = {
    "t": "relation",
    "id": "rel/starts/a/b",
    "revision": 2,
    "type": "starts",
    "from": "a",
    "to": "b",
    "quality": "exact_unique",
    "via": "child sidecar",
    "evidence": [{"seq": 3, "row": 1}],
}
OPEN: Frame = {
    "t": "unresolved",
    "id": "unres/tool_use/t",
    "revision": 2,
    "kind": "tool_use",
    "ref": "t",
    "reason": "why",
    "state": "open",
}


def line(frame: Frame) -> bytes:
    written = json.dumps(frame, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        written = written.replace(character, f"\\u{ord(character):04x}")
    return written.encode() + b"\n"


def sealed(*frames: Frame, counts: dict[str, int] | None = None) -> bytes:
    body = b"".join(line(frame) for frame in frames)
    types = [frame.get("t") for frame in frames]
    found = {
        "nodes": types.count("node"),
        "relations": types.count("relation"),
        "unresolved": types.count("unresolved"),
    }
    commit = {"t": "commit", "digest": hashlib.sha256(body).hexdigest(), "counts": counts or found}
    return body + line(commit)


GOOD = sealed(header(), NODE, GONE, RELATION, OPEN)


def test_reads_and_writes_the_same_bytes() -> None:
    round_ = read_round(GOOD, exact=True)
    assert [n.id for n in round_.nodes] == ["tool/t", "zz"]
    assert bytes(round_.nodes[0].attrs) == (
        '{"name":"<a> & \u2028 \u00e9","usage_at":{"row":2,"seq":1}}'.encode()
    )
    assert round_.relations[0].from_ == "a"
    written = write_round(round_.header, round_.nodes, round_.relations, round_.unresolved)
    assert written == (GOOD, round_.digest)


def test_groups_are_written_in_order_of_id() -> None:
    frames = [{**GONE, "id": name} for name in ("b", "\u00e9", "a/1", "a", "\U0001f600", "\uffee")]
    round_ = read_round(sealed(header(), OPEN, *frames))
    data, _ = write_round(round_.header, round_.nodes, round_.relations, round_.unresolved)
    ids = [json.loads(row)["id"] for row in data.splitlines()[1:-1]]
    assert ids == ["a", "a/1", "b", "\u00e9", "\uffee", "\U0001f600", "unres/tool_use/t"]


TEXTS = ("from_time", "through_time", "session_from_time", "session_through_time", "title")
COUNTS = (
    *("talks", "steps", "streams", "segments", "unresolved", "changes"),
    *("lines_added", "lines_removed", "llm_calls", "subagents", "bash_runs"),
)


@pytest.mark.parametrize("counted", [11, 13, 21, 27])
def test_headers_of_every_generation(counted: int) -> None:
    more: Frame = {key: "x" for key in TEXTS} | {key: 0 for key in COUNTS}
    frame = {k: v for k, v in (header() | more).items() if k in [*header(), *list(more)[: counted - 11]]}
    data = sealed(frame)
    round_ = read_round(data, exact=True)
    assert write_round(round_.header, [], [], [])[0] == data


def test_what_a_reader_lets_pass() -> None:
    assert read_round(GOOD[:-1]) == read_round(GOOD)
    lines = GOOD.splitlines(keepends=True)
    assert read_round(b"\n".join(lines)).digest == read_round(GOOD).digest
    assert read_round(sealed(header(through_seq=3))).nodes == []
    later = sealed(header(invented={"x": 1}), {**NODE, "invented": 1, "kind": "no such kind"})
    assert read_round(later).nodes[0].kind == "no such kind"


def reject(rule: str, data: bytes, number: int | None = None, exact: bool = False) -> Any:
    return pytest.param(rule, data, number, exact, id=f"{rule}-{len(data)}")


REFUSED = [
    reject("no-header", b""),
    reject("no-header", sealed()),
    reject("first-frame", sealed(NODE, header()), 1),
    reject("second-header", sealed(header(), header()), 2),
    reject("after-commit", GOOD + line(GONE), 7),
    reject("after-commit", GOOD + GOOD, 7),
    reject("unknown-frame", sealed(header(), {"t": "edge", "id": "x"}), 2),
    reject("unknown-frame", sealed(header(), {"id": "x"}), 2),
    reject("undecodable", GOOD.replace(b'"t":"node"', b'"t":"node', 1), 2),
    reject("undecodable", sealed(header(), {**NODE, "revision": -1}), 2),
    reject("undecodable", sealed(header(), {**NODE, "id": 7}), 2),
    reject("undecodable", GOOD.replace("\u00e9".encode(), b"\xff\xff"), 2),
    reject("depth", line(header()) + b'{"t":"node","attrs":' + b"[" * 100_000, 2),
    reject("schema", sealed(header(schema="sf/2")), 1),
    *(
        reject(f"header-{key}", sealed(without(key)), 1)
        for key in ("conversation", "session", "parser", "policy", "input_digest")
    ),
    reject("round-zero", sealed(header(round=0)), 1),
    reject("no-previous", sealed(without("previous")), 1),
    reject("first-previous", sealed(header(round=1)), 1),
    reject("from-seq", sealed(header(from_seq=0)), 1),
    reject("range", sealed(header(through_seq=2)), 1),
    reject("no-id", sealed(header(), {**NODE, "id": ""}), 2),
    reject("no-id", sealed(header(), {k: v for k, v in OPEN.items() if k != "id"}), 2),
    reject("repeated-id", sealed(header(), NODE, {**OPEN, "id": NODE["id"]}), 3),
    reject("revision", sealed(header(), {**RELATION, "revision": 1}), 2),
    reject("ref-zero", sealed(header(), {**NODE, "ref": {"seq": 0, "row": 0}}), 2),
    reject("ref-zero", sealed(header(), {**NODE, "refs": [{"block": 1}]}), 2),
    reject("ref-past", sealed(header(), {**NODE, "ref": {"seq": 6, "row": 1}}), 2),
    reject("ref-past", sealed(header(), {**NODE, "refs": [{"seq": 6, "row": 1}]}), 2),
    reject("ref-past", sealed(header(), {**RELATION, "evidence": [{"seq": 6, "row": 1}]}), 2),
    reject(
        "ref-past",
        sealed(
            header(),
            {**NODE, "attrs": {"provider_bodies": [{"role": "request", "ref": {"seq": 6, "row": 1}}]}},
        ),
        2,
    ),
    reject("provider-bodies", sealed(header(), {**NODE, "attrs": {"provider_bodies": "none"}}), 2),
    *(
        reject(f"relation-{key}", sealed(header(), {**RELATION, key: ""}), 2)
        for key in ("type", "from", "to")
    ),
    reject("state", sealed(header(), {**OPEN, "state": "closed"}), 2),
    reject("no-commit", GOOD[: GOOD.rindex(b'{"t":"commit"')]),
    reject("digest", GOOD.replace(b'"main"', b'"mein"'), 6),
    reject("counts", sealed(header(), NODE, counts={"nodes": 2, "relations": 0, "unresolved": 0}), 3),
    reject("final-newline", GOOD[:-1], 6, True),
    reject("empty-line", GOOD.replace(b"\n", b"\n\n", 1), 2, True),
    reject("commit-line", GOOD.replace(b'"counts":{', b'"counts": {'), 6, True),
]


@pytest.mark.parametrize(("rule", "data", "number", "exact"), REFUSED)
def test_every_rule_refuses(rule: str, data: bytes, number: int | None, exact: bool) -> None:
    with pytest.raises(RoundError) as caught:
        read_round(data, exact=exact)
    assert caught.value.rule == rule
    assert caught.value.line == number
    assert "\n" not in caught.value.message
    assert caught.value.exit_code == 1


def test_depth_has_one_bound_on_every_version_of_python() -> None:
    """Where a parser gives up differs; a round that one of them reads must not be refused by another."""
    for inner in (MAX_NESTING - 1, MAX_NESTING):  # and the frame itself
        attrs = b'"attrs":' + b'{"a":' * inner + b"0" + b"}" * inner
        body = line(header()) + line({**NODE, "attrs": 0}).replace(b'"attrs":0', attrs)
        counts = {"nodes": 1, "relations": 0, "unresolved": 0}
        digest = hashlib.sha256(body).hexdigest()
        data = body + line({"t": "commit", "digest": digest, "counts": counts})
        if inner < MAX_NESTING:
            assert read_round(data).digest == digest
            continue
        with pytest.raises(RoundError) as caught:
            read_round(data)
        assert (caught.value.rule, caught.value.line) == ("depth", 2)


def test_every_rule_says_something_else() -> None:
    said: dict[str, str] = {}
    for parameters in REFUSED:
        rule, data, _, exact = parameters.values
        with pytest.raises(RoundError) as caught:
            read_round(data, exact=exact)
        message = caught.value.message.split(": ", 1)[-1] if caught.value.line else caught.value.message
        assert said.setdefault(message, rule) == rule


@pytest.mark.parametrize(
    "frame",
    [
        {**GONE},
        {
            "t": "relation",
            "id": "x",
            "revision": 2,
            "tombstone": True,
            "type": "",
            "from": "",
            "to": "",
            "quality": "",
        },
        {"t": "unresolved", "id": "x", "revision": 2, "tombstone": True, "kind": "", "state": ""},
    ],
)
def test_tombstones_need_no_content(frame: Frame) -> None:
    data = sealed(header(), frame)
    round_ = read_round(data, exact=True)
    assert write_round(round_.header, round_.nodes, round_.relations, round_.unresolved)[0] == data


@given(st.integers(0, len(GOOD) - 1), st.integers(1, 255))
def test_a_changed_byte_is_found(position: int, mask: int) -> None:
    damaged = bytearray(GOOD)
    damaged[position] ^= mask
    with pytest.raises(RoundError):
        read_round(bytes(damaged), exact=True)


@given(st.integers(0, len(GOOD) - 1))
def test_a_cut_file_is_found(length: int) -> None:
    with pytest.raises(RoundError):
        read_round(GOOD[:length], exact=True)


def test_input_digest() -> None:
    one, two = "11" * 32, "22" * 32
    plain: Callable[[bytes], str] = lambda data: hashlib.sha256(data).hexdigest()  # noqa: E731
    first = input_digest("", [two, one])
    assert first == plain(b"\0" + one.encode() + b"\0" + two.encode())
    assert input_digest(first, []) == plain(first.encode())
    assert input_digest(first, [one]) == plain(first.encode() + b"\0" + one.encode())


@given(st.data())
def test_reading_together_accepts_what_reading_line_by_line_does(data: st.DataObject) -> None:
    whole = sealed(header(), NODE, GONE, RELATION)
    assert read_round(whole) == read_lines(whole, exact=True)
    end = whole.rindex(b'{"t":"commit"')
    place = data.draw(st.integers(0, end - 1))
    patch = data.draw(st.sampled_from([b"", b"\n", b" ", b"{", b"}\n{", b"\xff", b"0", b'"', b"\\u0041"]))
    body = whole[:place] + patch + whole[place + data.draw(st.integers(0, 3)) : end]
    commit = {
        "t": "commit",
        "digest": hashlib.sha256(body).hexdigest(),
        "counts": json.loads(whole[end:])["counts"],
    }
    bad = body + line(commit)
    try:
        found = read_round(bad, exact=True)
    except RoundError:
        return
    assert found == read_lines(bad, exact=True)
