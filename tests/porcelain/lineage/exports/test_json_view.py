from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from objstore.errors import StorageError
from porcelain.lineage.adapters.reports import Stated
from porcelain.lineage.exports.json_view import write_json
from porcelain.lineage.exports.pi_compat import STORE_EXPORT
from porcelain.lineage.tables.schema import TABLES
from tests.porcelain.importing.driving import RECORDS, copy_home, succeed


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_bytes())
    return found


def test_names_order_and_metadata(tmp_path: Path, fake: Any) -> None:
    path = tmp_path / "lineage.json"
    reports = [
        fake.conversation(name, fake.source(name, titles=(Stated(value="Bohnen säen"),))) for name in "abc"
    ]
    view = fake.view(*reports)
    assert write_json(path, view) == 9
    export = read(path)
    assert export["schemaVersion"] == 1
    assert export["fold"] == view.fold
    assert {table.json_name for table in TABLES} <= set(export)
    assert export["events"] == []
    assert export["eventIndex"] == {
        "count": 9,
        "privacyStatus": "metadata-only",
        "storage": "sqlite",
        "table": "events",
    }
    for table in TABLES:
        ids = [row["id"] for row in export[table.json_name]]
        assert ids == sorted(ids)
    observation = export["sessionObservations"][0]
    assert observation["metadata"]["records"] == 3
    assert observation["providerSessionId"] in "abc"
    assert "snapshotLabel" not in observation and "metadataJson" not in observation
    assert export["labels"][0]["value"] == "Bohnen säen"


def test_events_are_listed_when_asked(tmp_path: Path, fake: Any) -> None:
    path = tmp_path / "lineage.json"
    view = fake.view(fake.conversation("a", fake.source("a", 5)), fake.conversation("b", fake.source("b", 2)))
    assert write_json(path, view, fake.pages) == 7
    export = read(path)
    ids = [row["id"] for row in export["events"]]
    assert len(ids) == 7 and ids == sorted(ids)
    assert {row["byteOffset"] for row in export["events"]} == {0, 50, 200, 250, 400}
    assert set(export["events"][0]["metadata"]) == {"digest"}
    assert export["eventIndex"]["storage"] == "inline"


def test_the_same_facts_give_the_same_bytes(tmp_path: Path, fake: Any) -> None:
    reports = [fake.conversation(name) for name in "abc"]
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    write_json(one, fake.view(*reports), fake.pages)
    write_json(other, fake.view(*reports[::-1]), fake.pages)
    assert one.read_bytes() == other.read_bytes()


def test_only_an_export_is_replaced(tmp_path: Path, fake: Any) -> None:
    path = tmp_path / "lineage.json"
    view = fake.view(fake.conversation("a"))
    path.write_text('{"schemaVersion":1}')
    with pytest.raises(StorageError, match="was not written by this command"):
        write_json(path, view)
    assert path.read_text() == '{"schemaVersion":1}'
    write_json(path, view, overwrite=True)
    write_json(path, fake.view(fake.conversation("b")))
    assert read(path)["sessions"][0]["providerSessionId"] == "b"


def test_events_that_are_not_inlined_are_counted_as_they_are_exported(tmp_path: Path) -> None:
    """A conversation of OpenCode that stands in two of its stores was landed from one of them."""
    home, store = copy_home(tmp_path / "home"), tmp_path / "store"
    succeed(store, "import", home=home)
    counts = []
    for words in ((), ("--no-events",)):
        path = tmp_path / f"{len(words)}.json"
        said = succeed(store, "lineage", "export", "--json", *words, str(path)).json
        counts += [said["events"], json.loads(path.read_text())["eventIndex"]["count"]]
    assert counts == [RECORDS] * 4
    succeed(store, "lineage", "export", "--pi-compat", str(tmp_path / "graphs"))
    compatible = json.loads((tmp_path / "graphs" / STORE_EXPORT).read_text())
    assert compatible["eventIndex"]["count"] == RECORDS
