from __future__ import annotations

import hashlib
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from objstore.nesting import MAX_NESTING
from porcelain.flow.formats.sd import SdError, sd_bytes, write_sd
from porcelain.flow.formats.sd_reading import check_sd, iter_sd, read_sd, rewrites
from porcelain.providers.records import Changes, Dropped, Page, Part, Record, Usage
from tests.porcelain.flow.sample import CONTENT, DATA, FILES, at, page

HEADER: dict[str, Any] = {
    "h": 1,
    "schema": "sd/1",
    "seq": 3,
    "at": "2026-03-01T00:00:00Z",
    "kind": "transcript",
    "adapter": "quill/1",
    "dialect": "quill/1",
    "src": "a/b.jsonl",
    "session": "s",
    "stream": "main",
}
ROW: dict[str, Any] = {
    "ord": 1,
    "off": 0,
    "sha": "0123456789ab",
    "bytes": 40,
    "id": "r1",
    "from": "external",
    "usage": {},
    "parts": [
        {"k": "text", "text": "<b> & \u2028", "state": "available", "bytes": 9},
        {"k": "call", "data": {"q": "1.50 <\u2029>", "n": 1.5}, "id": "t", "name": "Find", "failed": False},
    ],
    "dropped": [{"what": "signature", "bytes": 0}],
}


def dumps(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def sealed(*lines: str, records: int | None = None) -> bytes:
    body = "".join(line + "\n" for line in lines).encode()
    count = len(lines) - 1 if records is None else records
    return body + f'{{"t":"end","records":{count},"digest":"{hashlib.sha256(body).hexdigest()}"}}\n'.encode()


# The current generation escapes the separators in its own strings, and leaves the source's data as it is.
_MARK = '"q":"1.50 <\u2029>"'
CURRENT = sealed(dumps(HEADER), dumps(ROW).replace("\u2028", "\\u2028"))
OLD = sealed(
    dumps(HEADER),
    dumps(ROW)
    .replace("<", "\\u003c")
    .replace(">", "\\u003e")
    .replace("&", "\\u0026")
    .replace("\u2028", "\\u2028")
    .replace("\u2029", "\\u2029"),
)


def test_both_generations_are_written_again() -> None:
    assert _MARK.encode() in CURRENT
    for data, html in ((CURRENT, False), (OLD, True)):
        file = read_sd(data, exact=True)
        assert rewrites(file, data) is html
        assert write_sd(file.header, file.records, html=html) == data
        assert file.digest == hashlib.sha256(data).hexdigest()
        assert file.records[0].parts[0].text == "<b> & \u2028"


def test_a_file_with_more_keys_reads_but_is_not_written_again() -> None:
    data = sealed(dumps(HEADER), dumps({**ROW, "invented": 1}))
    file = read_sd(data)
    assert file.records[0].id == "r1"
    assert rewrites(file, data) is None


REFUSED = [
    ("no-header", b"", None, False),
    ("no-header", b'{"t":"end","records":0,"digest":""}\n', 1, False),
    ("header", sealed("{"), 1, False),
    ("header", sealed(dumps({**HEADER, "seq": -1})), 1, False),
    ("header-version", sealed(dumps({**HEADER, "h": 2})), 1, False),
    ("schema", sealed(dumps({**HEADER, "schema": "sd/2"})), 1, False),
    *(
        (f"header-{k}", sealed(dumps({**HEADER, k: ""})), 1, False)
        for k in ("kind", "session", "src", "dialect")
    ),
    ("record", sealed(dumps(HEADER), dumps({**ROW, "id": 5})), 2, False),
    ("record", sealed(dumps(HEADER), ""), 2, False),
    ("record", sealed(dumps(HEADER), '{"ord":1}'), 2, False),
    ("no-end", b"".join(CURRENT.splitlines(keepends=True)[:-1]), None, False),
    ("end", CURRENT.replace(b'"records":1', b'"records":x'), 3, False),
    ("digest", CURRENT.replace(b'"r1"', b'"r2"'), 3, False),
    ("records", sealed(dumps(HEADER), dumps(ROW), records=2), 3, False),
    ("after-end", CURRENT + b"{}\n", 4, False),
    ("end-line", CURRENT[:-1], 3, True),
    ("end-line", CURRENT.replace(b'"records":1', b'"records": 1'), 3, True),
]


@pytest.mark.parametrize(("rule", "data", "number", "exact"), REFUSED)
def test_every_rule_refuses(rule: str, data: bytes, number: int | None, exact: bool) -> None:
    with pytest.raises(SdError) as caught:
        read_sd(data, exact=exact)
    assert (caught.value.rule, caught.value.line) == (rule, number)
    assert "\n" not in caught.value.message


def test_depth_has_one_bound_on_every_version_of_python() -> None:
    """Where a parser gives up differs; a file that one of them reads must not be refused by another."""
    for inner in (MAX_NESTING - 1, MAX_NESTING):  # and the line itself
        more = '{"later":' + "[" * inner + "]" * inner + ","
        for number, lines in enumerate(
            ((more + dumps(HEADER)[1:], dumps(ROW)), (dumps(HEADER), more + dumps(ROW)[1:])), 1
        ):
            data = sealed(*lines)
            if inner < MAX_NESTING:
                assert check_sd(data) is not None and len(read_sd(data).records) == 1
                continue
            assert check_sd(data) is None
            with pytest.raises(SdError, match=f"more than {MAX_NESTING} lists and objects") as caught:
                read_sd(data)
            assert (caught.value.rule, caught.value.line) == (("header", "record")[number - 1], number)


def test_a_missing_last_newline_is_let_pass() -> None:
    assert read_sd(CURRENT[:-1]).records == read_sd(CURRENT).records


def test_records_come_before_the_file_is_whole() -> None:
    frames = iter_sd(iter(CURRENT.splitlines(keepends=True)[:-1]))
    assert next(frames).session == "s"
    assert next(frames).id == "r1"
    with pytest.raises(SdError, match="no closing line"):
        next(frames)


@given(st.sampled_from([CURRENT, OLD]), st.integers(0, len(CURRENT) - 1), st.integers(1, 255))
def test_a_changed_byte_is_found(data: bytes, position: int, mask: int) -> None:
    damaged = bytearray(data)
    damaged[position] ^= mask
    with pytest.raises(SdError):
        read_sd(bytes(damaged), exact=True)


def test_our_own_form() -> None:
    records = [
        Record(
            id="r1",
            label="a name",
            time=at(1),
            from_="agent",
            call="c1",
            usage=Usage(in_=1, cache_write=4, reasoning=2),
            dropped=[Dropped(what="reasoning signature", bytes=3, why="of no use")],
            parts=[
                Part(k="text", bytes=5, content=CONTENT),
                Part(k="reasoning", state="unavailable"),
                Part(k="result", of="t1", bytes=8, content=CONTENT, data=DATA, failed=True),
                Part(k="unknown", bytes=2, data=DATA, why="no such block"),
                Part(k="text", bytes=9, content=CONTENT, state="truncated"),
            ],
        ),
        Record(id="r2", label_content=CONTENT, entry="user", role="user", changes=Changes(files=1, added=2)),
        Record(from_="runtime"),
    ]
    written = msgspec.structs.replace(page(1, records), ord=4, offset=50, jumps=[(2, 9, 700)])
    data = sd_bytes(written, records)
    head, one, two, three, _ = data.decode().splitlines()
    assert head == (
        '{"h":1,"schema":"sd/1","seq":1,"at":"2026-03-01T00:00:00.000Z","kind":"transcript",'
        '"adapter":"claude-code-local/1","dialect":"claude-code/1","src":"5e55-1.jsonl","session":"5e55-1",'
        '"stream":"main"}'
    )
    assert one == (
        '{"ord":4,"off":50,"sha":"000000000000","bytes":100,"id":"r1","call":"c1","label":"a name","from":"agent",'
        '"time":"2026-03-01T00:00:01.000Z","usage":{"in":1,"cache_write":4,"reasoning":2},"parts":['
        f'{{"k":"text","state":"hash_only","bytes":5,"content":"{CONTENT}"}},'
        '{"k":"reasoning","state":"unavailable"},'
        f'{{"k":"result","of":"t1","failed":true,"state":"hash_only","bytes":8,"content":"{CONTENT}",'
        f'"data_content":"{DATA}"}},'
        f'{{"k":"unknown","text":"no such block","state":"hash_only","bytes":2,"data_content":"{DATA}"}},'
        f'{{"k":"text","state":"truncated","bytes":9,"content":"{CONTENT}"}}],'
        '"dropped":[{"what":"reasoning signature","bytes":3,"why":"of no use"}]}'
    )
    assert two == (
        '{"ord":5,"off":151,"sha":"000000000001","bytes":101,"id":"r2","from":"runtime",'
        '"changes":{"files":1,"added":2,"removed":0}}'
    )
    assert three == '{"ord":9,"off":700,"sha":"000000000002","bytes":102,"from":"runtime"}'
    file = read_sd(data, exact=True)
    assert rewrites(file, data) is False


@given(FILES)
def test_our_own_form_reads_back(files: list[tuple[str, str, Any, list[Record]]]) -> None:
    for seq, (kind, stream, batch, records) in enumerate(files, 1):
        written: Page = page(seq, records, stream=stream, kind=kind, batch=batch)
        data = sd_bytes(written, records)
        file = read_sd(data, exact=True)
        assert file.digest == written.digest
        assert rewrites(file, data) is False
        for record, row in zip(records, file.records, strict=True):
            assert (row.id, row.label, row.from_) == (record.id, record.label, record.from_)
            assert all(part.data is UNSET for part in row.parts or ())


@given(FILES, st.data())
def test_what_is_plain_to_see_is_what_the_reader_of_lines_sees(files: list[Any], data: st.DataObject) -> None:
    """``check_sd`` never accepts what ``iter_sd`` refuses, and finds the same where it accepts."""
    kind, stream, batch, records = files[0]
    whole = sd_bytes(page(1, records, kind=kind, stream=stream, batch=batch), records)
    found = check_sd(whole)
    read = read_sd(whole, exact=True)
    assert found == (read.header, read.records, read.digest)
    place = data.draw(st.integers(0, len(whole) - 1))
    bad = (
        whole[:place]
        + data.draw(st.sampled_from([b"", b"\n", b" ", b"{", b"}\n{", b"\xff", b"0"]))
        + whole[place + 1 :]
    )
    # A digest that fits, so that only the lines themselves can be at fault.
    end = bad.rfind(b'{"t":"end"')
    if end > 0:
        bad = bad[:end] + b'{"t":"end","records":%d,"digest":"%s"}\n' % (
            len(records),
            hashlib.sha256(bad[:end]).hexdigest().encode(),
        )
    found = check_sd(bad)
    if found is not None:
        read = read_sd(bad, exact=True)
        assert found == (read.header, read.records, read.digest)
