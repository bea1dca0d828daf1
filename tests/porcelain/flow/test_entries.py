from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from msgspec import UNSET, Raw

from porcelain.flow.assembly.entries import Changed, Result, Use, from_page, from_sd
from porcelain.flow.formats.sd import SdFile, SdHeader, SdPart, SdRecord, sd_bytes
from porcelain.flow.formats.sd_reading import read_sd
from porcelain.providers.records import Changes, Record
from tests.porcelain.flow.sample import FILES, asked, page, result, said, text, use


@given(FILES)
def test_pages_and_their_files_give_the_same_entries(files: list[tuple[str, str, Any, list[Record]]]) -> None:
    for seq, (kind, stream, batch, records) in enumerate(files, 1):
        written = page(seq, records, stream=stream, kind=kind, batch=batch)
        assert from_page(written, records) == from_sd(read_sd(sd_bytes(written, records)))


def test_what_an_entry_takes_over() -> None:
    records = [
        asked("u1", "run", 1),
        said("a1", "c1", "u1", 2, text(), use("t1", "find", server="maps", server_tool="find"), use("t2")),
        Record(from_="external", parts=[text(), result("t1")], changes=Changes(files=1, added=3, removed=1)),
    ]
    one, two, three = from_page(page(4, records, batch="w"), records).entries
    assert (one.seq, one.row, one.stream, one.batch, one.origin) == (4, 1, "main", "w", "external")
    assert one.time == 1772323201000000000
    assert one.texts == ()  # only the parts of responses are of use
    assert two.texts == (0,)
    assert two.uses == (Use(1, "t1", "find", "maps", "find"), Use(2, "t2", "Bash", "", ""))
    assert (three.id, three.time, three.anchor) == ("", 0, "t1")
    assert three.results == (Result(1, "t1"),)
    assert three.changed == (Changed("t1", 3, 1),)


def test_change_documents_are_counted() -> None:
    document = {
        "schema": "changes/1",
        "id": "x",
        "tool": "t1",
        "changes": [{"path": "a", "additions": 2, "deletions": 1}, {"path": "b"}, {"additions": 1}],
    }

    def entry(value: object) -> tuple[Changed, ...]:
        header = SdHeader(1, "sd/1", 1, "", "changes", "q/1", "q/1", "src", "s", "main", UNSET)
        part = SdPart("data", data=Raw(json.dumps(value).encode()))
        file = SdFile(header, [SdRecord(1, 0, "", 1, parts=[part])], "")
        return from_sd(file).entries[0].changed

    assert entry(document) == (Changed("t1", 3, 1),)
    assert entry({**document, "schema": "changes/2", "note": "changes/1"}) == ()
    assert entry({**document, "changes": "changes/1"}) == ()
    assert entry({"other": 1}) == ()
