"""An hour of changed files for the readers of ``sf/1`` and ``sd/1``: whatever the bytes, a rule is named or all holds.

``OBJSTORE_SOAK_SECONDS`` sets another time of the processor.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from porcelain.flow.assembly import rounds
from porcelain.flow.assembly.entries import Landed, from_sd
from porcelain.flow.chain.folding import Fold
from porcelain.flow.formats.sd import SdError, sd_bytes
from porcelain.flow.formats.sd_reading import check_sd, read_sd, rewrites
from porcelain.flow.formats.sf import FrameCounts, RoundError, commit_line, write_round
from porcelain.flow.formats.sf_reading import read_lines, read_round
from tests.porcelain.flow.sample import FILES, SESSION, page, sessions

pytestmark = pytest.mark.soak
SECONDS = float(os.environ.get("OBJSTORE_SOAK_SECONDS", "3600"))
_KEYS = st.sampled_from(["seq", "row", "block", "k", "x"])
_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 2**64),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
)
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_KEYS, inner, max_size=3)),
    max_leaves=5,
)
_BYTES = st.sampled_from(
    [
        *(b"", b"\n", b"\r\n", b" ", b"{", b"}", b"}\n{", b"}{", b'"', b",", b"\0"),
        *(b"\\u0000", b"\\ud800", b"\xff", b"\xed\xa0\x80"),
    ]
)


def spoilt(data: st.DataObject, whole: bytes, close: Callable[[bytes, int], bytes]) -> bytes:
    """A file with some changes, closed again with a digest that fits or not."""
    *lines, _ = whole.splitlines(keepends=True)
    for _ in range(data.draw(st.integers(1, 4))):
        number = data.draw(st.integers(0, len(lines) - 1)) if lines else 0
        what = data.draw(st.sampled_from(["bytes", "value", "value", "key", "gone", "twice", "moved"]))
        if not lines:
            break
        line = lines[number]
        if what == "gone":
            del lines[number]
        elif what == "twice":
            lines.insert(number, line)
        elif what == "moved":
            lines.append(lines.pop(number))
        elif what == "bytes":
            place = data.draw(st.integers(0, len(line)))
            lines[number] = line[:place] + data.draw(_BYTES) + line[place + data.draw(st.integers(0, 3)) :]
        else:
            try:
                value = json.loads(line)
            except ValueError:
                continue
            if not isinstance(value, dict) or not value:
                continue
            name = data.draw(st.sampled_from([*value, "t", "attrs", "refs", "parts", "tombstone"]))
            if what == "key":
                value.pop(name, None)
            else:
                value[name] = data.draw(_VALUES)
            lines[number] = (
                json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
                + b"\n"
            )
    body = b"".join(lines)
    return (
        close(body, len(lines))
        if data.draw(st.integers(0, 9))
        else body + whole.splitlines(keepends=True)[-1]
    )


def close_sd(body: bytes, lines: int) -> bytes:
    digest = hashlib.sha256(body).hexdigest()
    return body + b'{"t":"end","records":%d,"digest":"%s"}\n' % (max(0, lines - 1), digest.encode())


def check_landed(bad: bytes) -> str:
    plain = check_sd(bad)
    try:
        file = read_sd(bad, exact=True)
    except SdError as error:
        assert plain is None
        return error.rule
    assert plain is None or plain == (file.header, file.records, file.digest)
    rewrites(file, bad)
    landed = from_sd(file)
    one = Landed(1, landed.digest, landed.entries)
    for entry in one.entries:
        entry.seq = 1
    for written in rounds([one], Fold(), conversation=SESSION, session=SESSION):
        assert read_round(written.data, exact=True).digest == written.round.digest
    return "accepted"


def check_round(bad: bytes) -> str:
    found: Any
    rule = ""
    try:
        found = read_round(bad, exact=True)
    except RoundError as error:
        found, rule = None, error.rule
    try:
        expected = read_lines(bad, exact=True)
    except RoundError as error:
        assert (found, rule) == (None, error.rule)
        return rule
    assert found == expected
    write_round(expected.header, expected.nodes, expected.relations, expected.unresolved)
    return "accepted"


def test_readers_of_anything() -> None:
    ends = time.process_time() + SECONDS
    seen: dict[str, int] = {}
    number = 0
    while time.process_time() < ends:
        number += 1

        @seed(number)
        @settings(
            max_examples=500,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )
        @given(FILES, st.data())
        def landed(files: list[Any], data: st.DataObject) -> None:
            kind, stream, batch, records = files[0]
            whole = sd_bytes(page(1, records, kind=kind, stream=stream, batch=batch), records)
            rule = check_landed(spoilt(data, whole, close_sd))
            seen["sd " + rule] = seen.get("sd " + rule, 0) + 1

        @seed(number)
        @settings(
            max_examples=500,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )
        @given(sessions(), st.data())
        def round_(files: list[Landed], data: st.DataObject) -> None:
            made = list(rounds(files, Fold(), conversation=SESSION, session=SESSION, budget=3000))
            written = data.draw(st.sampled_from(made))

            def close_sf(body: bytes, _lines: int) -> bytes:
                frames = [line[:12] for line in body.splitlines()]
                found = FrameCounts(
                    sum(one.startswith(b'{"t":"node"') for one in frames),
                    sum(one.startswith(b'{"t":"relat') for one in frames),
                    sum(one.startswith(b'{"t":"unres') for one in frames),
                )
                return body + commit_line(hashlib.sha256(body).hexdigest(), found)

            rule = check_round(spoilt(data, written.data, close_sf))
            seen["sf " + rule] = seen.get("sf " + rule, 0) + 1

        landed()
        round_()
    print(f"\n{sum(seen.values()):,} files in {SECONDS:,.0f} s of the processor")
    print("\n".join(f"{count:>9,}  {rule}" for rule, count in sorted(seen.items())))
    assert {"sd accepted", "sf accepted", "sd digest", "sf undecodable"} <= seen.keys()
