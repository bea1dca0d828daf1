"""pack, unpack, bundle, upload-pack, receive-pack, as typed."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from objstore.store import Store
from objstore.sync.manifest import Scope
from objstore.sync.pipes import PipeTransport
from plumbing import pack, receive_pack, unpack, upload_pack
from plumbing.interface.options import Context
from tests.objstore.sync.building import add_round, ask, new_session, opened, put_node, state

REF = "flow/1111111111111111/test/x"


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """The folder of a store with a chain, a session and a tag, called ``store``."""
    with opened(tmp_path / "store") as store:
        add_round(store, REF, "one", "two")
        sid = new_session(store, created_at="2026-03-04T05:06:07Z")[0]
        ask(store, sid, "Who?")
        store.update_ref("tag/x", put_node(store, "tagged"), None)
    return tmp_path / "store"


def state_of(path: Path) -> object:
    with Store.open(path) as store:
        return state(store)


def context(store: Path, stdin: bytes = b"") -> Context:
    return Context(
        store=str(store),
        cwd=str(store.parent),
        env={},
        stdin=io.BufferedReader(io.BytesIO(stdin)),  # type: ignore[arg-type]
        stdout=io.BytesIO(),
        stderr=io.BytesIO(),
    )


def packed(store: Path, *argv: str) -> bytes:
    run = context(store)
    assert pack.main(argv, run) == 0
    return run.stdout.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_pack_and_unpack(objstore, filled: Path, tmp_path: Path) -> None:
    objstore("init", store="other")
    run = context(tmp_path / "other", packed(filled))
    assert unpack.main([], run) == 0
    assert run.stdout.getvalue().decode().split() == sorted(refs_of(filled))  # type: ignore[attr-defined]
    assert b"of them new" in run.stderr.getvalue()  # type: ignore[attr-defined]
    assert state_of(filled) == state_of(tmp_path / "other")


def refs_of(path: Path) -> list[str]:
    with Store.open(path) as store:
        return list(store.refs())


def test_one_own_pack_back_is_nothing_new(objstore, filled: Path) -> None:
    (filled.parent / "p").write_bytes(packed(filled))
    result = objstore("unpack", "--json", "p")
    found = json.loads(result.out)
    assert (found["added"], found["moved"]) == (0, []) and found["objects"] > 5


def test_pack_chooses_refs_and_leaves_out_what_the_receiver_has(objstore, filled: Path) -> None:
    only = json.loads(objstore("pack", "--dry-run", "--json", "--refs", "tag/*").out)
    assert (only["objects"], only["refs"]) == (1, 1)
    assert objstore("pack", "--dry-run", "--refs", "flow/*", "--not", REF).out.startswith("0 objects, 1 refs")
    assert objstore("pack", "--refs", "nothing/*").code == 3
    assert objstore("pack", "--not", "tag/none").code == 3


def test_a_damaged_pack_is_one_line_and_exit_1(objstore, filled: Path, tmp_path: Path) -> None:
    data = bytearray(packed(filled))
    data[len(data) // 2] ^= 1
    (tmp_path / "p").write_bytes(data)
    objstore("init", store="other")
    result = objstore("unpack", "p", store="other")
    assert result.code == 1 and result.err.startswith("objstore: pack refused: ")
    assert objstore("count-objects", store="other").out.startswith("0 objects")
    assert objstore("unpack", "none", store="other").code == 3


def test_bundle(objstore, filled: Path, tmp_path: Path) -> None:
    made = objstore("bundle", "create", "b.objpack")
    assert made.code == 0 and "3 refs" in made.err
    listed = objstore("bundle", "verify", "b.objpack")
    assert listed.code == 0 and "all sound" in listed.err
    assert [line.split()[1] for line in listed.out.splitlines()] == sorted(refs_of(filled))
    found = json.loads(objstore("bundle", "verify", "--json", "b.objpack", store=None).out)
    assert found["presumes"] == [] and len(found["identity"]) == 64
    objstore("init", store="other")
    dry = objstore("bundle", "unbundle", "--dry-run", "b.objpack", store="other")
    assert (dry.code, dry.out) == (0, "") and "nothing was stored" in dry.err
    assert objstore("bundle", "unbundle", "b.objpack", store="other").code == 0
    assert state_of(filled) == state_of(tmp_path / "other")


def test_an_incremental_bundle_names_what_it_needs(objstore, filled: Path) -> None:
    with Store.open(filled) as store:
        before = store.ref(REF)
        add_round(store, REF, "three")
    assert objstore("bundle", "create", "--refs", "flow/*", "--not", str(before), "b").code == 0
    assert json.loads(objstore("bundle", "verify", "--json", "b").out)["presumes"] == [before]
    objstore("init", store="other")
    result = objstore("bundle", "unbundle", "b", store="other")
    assert result.code == 1 and str(before) in result.err


def test_wrong_words(objstore, filled: Path) -> None:
    assert objstore("bundle", "make", "x").code == 2
    assert objstore("bundle", "verify", "--content", "x").code == 2
    assert objstore("bundle", "create").code == 2
    assert objstore("bundle", "create", "--dry-run", "x").code == 2
    assert objstore("upload-pack").code == 2
    assert objstore("upload-pack", "--json", "--", "-x").code == 2
    assert objstore("upload-pack", "--json", "nowhere").code == 3


def test_content_needs_both_sides(objstore, filled: Path) -> None:
    with Store.open(filled) as store:
        store.update_ref("tag/said", store.put({"text": "said", "type": "text"}), None)
    assert json.loads(objstore("pack", "-n", "--json", "--refs", "tag/said", "--content").out)["refs"] == 1
    assert objstore("pack", "-n", "--refs", "tag/said").code == 3
    objstore("bundle", "create", "--content", "b")
    objstore("init", store="other")
    result = objstore("bundle", "unbundle", "b", store="other")
    assert result.code == 1 and "content.keep on" in result.err
    objstore("config", "content.keep", "on", store="other")
    assert objstore("bundle", "unbundle", "b", store="other").code == 0


def test_upload_pack_and_receive_pack_tell_what_they_serve(objstore, filled: Path, tmp_path: Path) -> None:
    offer = json.loads(objstore("upload-pack", "--json", "store", store=None).out)
    assert offer["refs"] == 3 and offer["version"] == 1
    taken = json.loads(objstore("receive-pack", "--json", "store", store=None).out)
    assert taken["store"] == offer["store"] and taken["content"] is False
    objstore("init", "project", store=None)
    assert json.loads(objstore("upload-pack", "--json", "project", store=None).out)["refs"] == 0


@pytest.mark.parametrize("service", [upload_pack, receive_pack])
def test_a_service_answers_on_its_streams(filled: Path, service) -> None:
    asked = io.BytesIO()
    with pytest.raises(Exception, match="connection was cut"):
        PipeTransport(io.BytesIO(), asked).hello(Scope())
    run = context(filled, asked.getvalue())
    assert service.main([str(filled)], run) == 0
    answer = PipeTransport(io.BytesIO(run.stdout.getvalue()), io.BytesIO())  # type: ignore[attr-defined]
    assert answer.hello(Scope()).refs == 3
