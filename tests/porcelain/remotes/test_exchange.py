"""remote, push, pull, fetch, clone, sync, as typed."""

from __future__ import annotations

import json
import shutil
from io import BytesIO
from pathlib import Path

import pytest

from objstore.pack.reader import PackReader
from objstore.store import Store
from porcelain.session.tree.store import new_session
from tests.objstore.sync.building import add_fact, add_round, ask, opened, put_node, state

SID_TIME = "2026-03-04T05:06:07Z"


@pytest.fixture
def a(tmp_path: Path) -> Path:
    """A store with a session, a chain of its own, a fact and a tag."""
    with opened(tmp_path / "a") as store:
        add_round(store, f"flow/{store.store_id}/test/x", "one", "two")
        add_fact(store, "/home/x")
        ask(store, new_session(store, created_at=SID_TIME)[0], "Who?")
        store.update_ref("tag/x", put_node(store, "tagged"), None)
    return tmp_path / "a"


def state_of(path: Path) -> object:
    with Store.open(path) as store:
        return state(store)


def session_of(path: Path) -> str:
    with Store.open(path) as store:
        return next(iter(store.refs("session/"))).split("/")[1]


def ask_in(path: Path, sid: str, question: str) -> None:
    with Store.open(path) as store:
        ask(store, sid, question)


# -- remotes -----------------------------------------------------------------------------------------------------------


def test_remotes_are_remembered_and_forgotten(objstore, a: Path) -> None:
    assert objstore("remote", "add", "hub", "hub", "--refs", "session/*", "--content", store="a").code == 0
    assert objstore("remote", "add", "far", "ssh://ada@example.org:2222/~/store", store="a").code == 0
    lines = [json.loads(line) for line in objstore("remote", "list", "--json", store="a").out.splitlines()]
    assert [(one["name"], one["patterns"], one["content"]) for one in lines] == [
        ("far", [], False),
        ("hub", ["session/*"], True),
    ]
    assert Path(lines[1]["url"]).is_absolute()
    assert "hub" in objstore("remote", "list", store="a").out
    assert objstore("remote", "add", "hub", "other", store="a").code == 4
    assert objstore("remote", "remove", "hub", store="a").code == 0
    assert objstore("remote", "remove", "hub", store="a").code == 3


@pytest.mark.parametrize(
    "name, url",
    [
        ("-x", "hub"),
        ("a/b", "hub"),
        ("x", "gopher://example.org/x"),
        ("x", "ssh://-oProxyCommand=x/path"),
        ("x", "ssh://host/~/-x"),
        ("x", "ssh://host/~/%2Dx"),
        ("x", "ssh://-u@host/x"),
        ("x", "ssh://host"),
        ("x", "file://host/x"),
        ("x", "-path"),
        ("x", "https:///x"),
        ("x", "https://host/x?y"),
        ("x", "http://host/a b"),
        ("x", "git+ssh://host/-y"),
        ("x", "git+https://host/x#a..b"),
        ("x", "git+file://host"),
        ("x", "s3://"),
        ("x", "s3://key:secret@bucket/x"),
        ("x", "gs://bucket/../other"),
        ("x", "az://bucket?x"),
    ],
)
def test_names_and_places_that_could_be_options_are_refused(objstore, a: Path, name: str, url: str) -> None:
    assert objstore("remote", "add", "--", name, url, store="a").code == 2
    assert objstore("remote", "list", store="a").out == ""


def test_a_remote_that_is_not_there(objstore, a: Path) -> None:
    assert objstore("fetch", store="a").code == 3
    assert "no such remote" in objstore("fetch", "hub", store="a").err
    assert objstore("fetch", "./nowhere", store="a").code == 3
    assert objstore("push", str(a), store="a").code == 2  # the store itself


# -- exchange ----------------------------------------------------------------------------------------------------------


def test_a_folder_without_a_store_is_told_how_to_get_one(objstore, a: Path, tmp_path: Path) -> None:
    stick = tmp_path / "a stick"
    stick.mkdir()
    for words in (("push", str(stick)), ("fetch", str(stick)), ("clone", str(stick), "c")):
        result = objstore(*words, store=None if words[0] == "clone" else "a")
        assert result.code == 3
        assert (
            result.err == f"objstore: {stick}: no store here\nhint: make one with: objstore init '{stick}'\n"
        )
    assert objstore("init", str(stick), store=None).code == 0
    assert "new objects there" in objstore("push", str(stick), store="a").out


def test_clone_push_and_sync(objstore, a: Path, tmp_path: Path) -> None:
    cloned = objstore("clone", "a", store="b")
    assert cloned.code == 0, cloned.err
    assert state_of(a) == state_of(tmp_path / "b")
    with Store.open(a) as one, Store.open(tmp_path / "b") as other:
        assert one.store_id != other.store_id
        add_round(other, f"flow/{other.store_id}/test/y", "from b")
    assert objstore("push", store="b").out == "origin: 3 new objects there, 1 ref moved\n"
    assert objstore("push", store="b").out == "origin: nothing to push\n"
    with Store.open(a) as one:
        add_round(one, f"flow/{one.store_id}/test/x", "three")
    done = objstore("sync", store="b")
    assert done.out == "origin: 3 new objects, 1 ref moved\norigin: nothing to push\n"
    assert objstore("sync", store="b").out == "origin: nothing new\norigin: nothing to push\n"
    assert state_of(a) == state_of(tmp_path / "b")
    assert objstore("verify", store="b").code == 0


def test_clone_takes_a_folder_and_refuses_one_that_is_a_store(objstore, a: Path, tmp_path: Path) -> None:
    found = json.loads(objstore("clone", "--json", "a", "project", store=None).out)
    assert found["path"] == str(tmp_path / "project" / ".objstore") and found["added"] > 5
    assert state_of(a) == state_of(tmp_path / "project" / ".objstore")
    assert objstore("clone", "a", "project", store=None).code == 4
    assert objstore("clone", "a", "project", store="b").code == 2


def test_a_clone_that_fails_leaves_no_store(objstore, a: Path, tmp_path: Path) -> None:
    assert objstore("clone", "nowhere", store="b").code == 3
    data = bytearray(bundle_of(objstore, a))
    data[-100] ^= 1
    (tmp_path / "bad.objpack").write_bytes(data)
    assert objstore("clone", "bad.objpack", store="b").code == 1
    assert not (tmp_path / "b").exists()


def bundle_of(objstore, store: Path) -> bytes:
    assert objstore("bundle", "create", "made.objpack", store=str(store)).code == 0
    return (store.parent / "made.objpack").read_bytes()


def test_a_bundle_is_a_remote_to_fetch_from(objstore, a: Path, tmp_path: Path) -> None:
    bundle_of(objstore, a)
    assert objstore("clone", "made.objpack", store="b").code == 0
    assert state_of(a) == state_of(tmp_path / "b")
    assert objstore("fetch", store="b").out == "origin: nothing new\n"
    result = objstore("push", store="b")
    assert result.code == 2 and "bundle create" in result.err


def test_dry_runs_change_nothing(objstore, a: Path, tmp_path: Path) -> None:
    objstore("init", store="b")
    before = state_of(tmp_path / "b")
    assert "would be fetched" in objstore("fetch", "-n", "./a", store="b").out
    assert "would be fetched" in objstore("pull", "-n", "./a", store="b").out
    assert "would be pushed" in objstore("push", "-n", "./b", store="a").out
    assert json.loads(objstore("push", "-n", "--json", "./b", store="a").out)["objects"] > 5
    assert state_of(tmp_path / "b") == before


def test_only_some_refs(objstore, a: Path, tmp_path: Path) -> None:
    objstore("init", store="b")
    assert objstore("fetch", "--refs", "session/*", "./a", store="b").code == 0
    with Store.open(tmp_path / "b") as store:
        assert {name.split("/")[0] for name in store.refs()} == {"session"}


def test_a_session_that_went_on_in_two_places(objstore, a: Path, tmp_path: Path) -> None:
    sid = session_of(a)
    objstore("clone", "a", store="b")
    ask_in(a, sid, "On a?")
    ask_in(tmp_path / "b", sid, "On b?")
    found = objstore("pull", store="b")
    assert f"objstore session graft {sid}" in found.out
    assert f"session {sid} there went on" in objstore("push", store="b").out
    grafted = objstore("pull", "--graft", store="b")
    assert grafted.code == 0 and f"1 session united: {sid}" in grafted.out
    objstore("push", store="b")
    with Store.open(a) as store:
        assert len(store.refs(f"session/{sid}/heads/")) == 1
    assert state_of(a) == state_of(tmp_path / "b")
    assert objstore("verify", store="a").code == 0


def test_a_session_that_was_removed_stays_gone_until_it_is_named(objstore, a: Path, tmp_path: Path) -> None:
    sid = session_of(a)
    with Store.open(a) as store:
        new_session(store, created_at="2026-03-05T05:06:07Z")

    def there(store: str) -> set[str]:
        listed = objstore("session", "list", "--json", store=store)
        return {json.loads(line)["session_id"] for line in listed.out.splitlines()}

    assert objstore("clone", "a", store="b").code == 0
    assert objstore("session", "gc", "1", store="b").out.split() == [sid]
    kept = there("b")
    ask_in(a, sid, "And then?")
    for words in (("fetch",), ("pull",), ("sync",), ("fetch", "--refs", "session/*")):
        assert objstore(*words, store="b").code == 0
        assert there("b") == kept
    # What is pushed to it stays out too, and what is there already with other things.
    assert objstore("push", "b", store="a").code == 0
    assert there("b") == kept
    assert sid in there("a")
    assert objstore("fetch", "--dry-run", "--refs", f"session/{sid}/*", store="b").code == 0
    assert there("b") == kept
    assert objstore("fetch", "--refs", f"session/{sid}/*", store="b").code == 0
    assert there("b") == {*kept, sid}
    ask_in(a, sid, "And in the end?")
    assert objstore("fetch", store="b").code == 0
    assert (
        objstore("session", "root", "--sid", sid, store="b").out
        == objstore("session", "root", "--sid", sid, store="a").out
    )


def test_a_tag_that_two_people_set(objstore, a: Path, tmp_path: Path) -> None:
    objstore("init", store="b")
    with Store.open(tmp_path / "b") as store:
        store.update_ref("tag/x", put_node(store, "another"), None)
    found = objstore("fetch", "./a", store="b")
    assert "tag/x stands for several objects" in found.out
    assert objstore("show-ref", store="b").out.count("tag/x@") == 2


def test_a_copied_store_is_told_what_to_type(objstore, a: Path, tmp_path: Path) -> None:
    shutil.copytree(a, tmp_path / "twin")
    for path, word in ((a, "mine"), (tmp_path / "twin", "other")):
        with Store.open(path) as store:
            add_round(store, f"flow/{store.store_id}/test/x", word)
    refused = objstore("push", "./a", store="twin")
    assert refused.code == 4 and "objstore fetch" in refused.err
    fetched = objstore("fetch", "./a", store="twin")
    assert fetched.code == 0 and "goes on as" in fetched.err
    assert objstore("push", "./a", store="twin").code == 0
    assert state_of(a) == state_of(tmp_path / "twin")


def test_content_travels_where_both_keep_it(objstore, a: Path, tmp_path: Path) -> None:
    with Store.open(a) as store:
        store.update_ref("tag/said", store.put({"text": "said", "type": "text"}), None)
    assert objstore("clone", "--content", "a", store="b").code == 2
    objstore("config", "content.keep", "on", store="a")
    assert objstore("clone", "a", store="c").code == 0
    with Store.open(tmp_path / "c") as store:
        assert store.ref("tag/said") is None
    assert objstore("clone", "--content", "a", store="b").code == 0
    with Store.open(tmp_path / "b") as store:
        assert store.ref("tag/said") is not None


def test_what_is_local_never_travels(objstore, a: Path, tmp_path: Path) -> None:
    objstore("config", "host.label", "Adas-Rechner", store="a")
    objstore("config", "user.name", "Ada Example", store="a")
    with Store.open(a) as store, store.snapshot() as view:
        mine = [value for _, value in view.local_items(b"")]
        assert len(mine) > 2
    objstore("clone", "a", store="b")
    with Store.open(tmp_path / "b") as store, store.snapshot() as view:
        theirs = dict(view.local_items(b""))
    assert {key.partition(b"/")[0] for key in theirs} == {b"remote", b"remote-seen"}
    assert not any(b"Ada" in value for value in theirs.values())
    with Store.open(a) as store, store.snapshot() as view:
        kept = [value for key, value in view.local_items(b"") if len(value) >= 4]
    kept += [b"Adas-Rechner", b"Ada Example", str(tmp_path).encode()]
    data = bundle_of(objstore, a)
    reader = PackReader(BytesIO(data))
    said = b"".join([bytes(str(reader.header), "utf-8"), *reader.presumed()])
    said += b"".join(name.encode() + key for name, key in reader.refs())
    said += b"".join(entry[2] for block in reader.entries() for entry in block)
    reader.finish()
    assert len(said) > 1000
    for value in kept:
        assert value not in said and value not in data
