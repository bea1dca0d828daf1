"""The commands of sessions, one shot each, as a person or a script types them."""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from objstore.origin import settle
from objstore.store import Store
from porcelain.session.tree.retention import hold_open
from tests.porcelain.importing.driving import ROOT, Result, environment, objstore, start, succeed
from tests.porcelain.session.test_openai_answerer import Server, refusing, stalling, streaming

DOCUMENTS = ROOT / "fixtures" / "documents"
LIT = "When was the lighthouse first lit?"
KEPT = "Who was the last keeper of the lighthouse?"
TALL = "How tall is the tower?"
KEY = "sk-" + "Zq7" * 12
ZERO = "0" * 64

Run = Callable[..., Result]


def documents(folder: Path) -> Path:
    """A folder of documents that need no extra to be read."""
    folder.mkdir()
    for path in DOCUMENTS.iterdir():
        if path.suffix != ".pdf":
            shutil.copy(path, folder)
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose session has two answers below the first, which is called ``fork``."""
    folder = tmp_path_factory.mktemp("made")
    store = folder / "store"
    succeed(store, "session", "source", "add", documents(folder / "documents"))
    succeed(store, "session", "new")
    succeed(store, "session", "ask", LIT)
    succeed(store, "session", "label", "fork")
    succeed(store, "session", "ask", KEPT)
    succeed(store, "session", "cd", "fork")
    succeed(store, "session", "ask", TALL)
    return store


@pytest.fixture
def store(made: Path, tmp_path: Path) -> Path:
    """A copy of that store, to be changed; it has noticed already that it is a copy."""
    shutil.copytree(made, tmp_path / "store")
    with Store.open(tmp_path / "store") as copy:
        settle(copy, platform.node() or "localhost")
    return tmp_path / "store"


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def begin(*replies: Any) -> Server:
        servers.append(Server(*replies))
        return servers[-1]

    yield begin
    for server in servers:
        server.close()


def documents_of(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.out.splitlines()]


def objects(store: Path) -> int:
    with Store.open(store, read_only=True) as opened, opened.snapshot() as view:
        return view.count()


def refs(store: Path) -> dict[str, str]:
    with Store.open(store, read_only=True) as opened:
        return opened.refs()


def sid_of(store: Path) -> str:
    return succeed(store, "session", "sid").out.strip()


# -- a whole session --------------------------------------------------------------------------------------------------


def test_a_session_from_a_folder_of_documents_to_a_checked_proof(tmp_path: Path) -> None:
    store = tmp_path / "store"
    added = succeed(store, "session", "source", "add", documents(tmp_path / "documents"))
    assert "made a store" in added.err and len(added.out.splitlines()) == 4
    sid = succeed(store, "session", "new").out.strip()
    first = succeed(store, "session", "ask", "When", "was", "the", "lighthouse", "first", "lit?")
    assert "4 October 1874. [E1 | The Lighthouse at Skarv Point | " in first.out
    assert first.err == f"{sid}-000001: STRICT by span, from 1 passage\n"
    succeed(store, "session", "ask", KEPT)
    assert succeed(store, "session", "cd", "1").out == f"{sid}-000001\n"
    succeed(store, "session", "ask", TALL)
    labelled = succeed(store, "session", "label", "--node", "1", "the", "fork")
    root = succeed(store, "session", "root").out
    assert labelled.out == root
    assert succeed(store, "session", "tree").out == (
        f"{sid}  3 turns\n"
        f"root {root}"
        "1 branch point: 1 (2)\n"
        f"● 1 [the fork] STRICT {LIT}\n"
        f"├─● 2 STRICT {KEPT}\n"
        f"└─◉ 3 STRICT {TALL}\n"
    )
    exported = tmp_path / "talk.db"
    succeed(store, "session", "export", exported)
    alone = subprocess.run(
        [sys.executable, "-I", ROOT / "fixtures" / "verify_session_db.py", exported],
        capture_output=True,
        text=True,
        check=True,
    )
    assert alone.stdout == f"verified {root}"
    proof = tmp_path / "proof.json"
    succeed(store, "session", "prove", "3", "-o", proof)
    nowhere = tmp_path / "nowhere"
    checked = succeed(nowhere, "session", "verify-proof", "--root", root.strip(), proof)
    assert checked.out.splitlines()[0] == f"{sid}-000003 is under the root {root.strip()}"
    assert not nowhere.exists()
    other = tmp_path / "other"
    assert succeed(other, "session", "import", exported).out == f"{sid}\n"
    assert succeed(other, "session", "root").out == root
    assert succeed(other, "session", "chain-check", "--replay").out.startswith(f"{sid}: verified: 4 nodes")


def test_the_options_of_the_public_page_do_what_the_commands_do(made: Path) -> None:
    sid = sid_of(made)
    for option, command in (
        (("--list",), ("list",)),
        (("--list", "--json"), ("list", "--json")),
        (("--tree", "--sid", sid), ("tree", "--sid", sid)),
        (("--tree", "--json"), ("tree", "--json")),
        (("--chain-check",), ("chain-check",)),
        (("--chain-check", "--sid", sid), ("chain-check", "--sid", sid)),
    ):
        assert succeed(made, "session", *option) == succeed(made, "session", *command)
    assert succeed(made, "session", "--gc", "5") == succeed(made, "session", "gc", "5")


def test_json_says_what_text_says(made: Path) -> None:
    sid = sid_of(made)
    (listed,) = documents_of(succeed(made, "session", "list", "--json"))
    root = succeed(made, "session", "root").out.strip()
    assert listed["session_id"] == sid and listed["turns"] == 3 and listed["session_root"] == root
    nodes = documents_of(succeed(made, "session", "tree", "--json"))
    assert [node["question"] for node in nodes] == ["", LIT, KEPT, TALL]
    assert [node["parent_bates"] for node in nodes] == [
        None,
        f"{sid}-000000",
        f"{sid}-000001",
        f"{sid}-000001",
    ]
    assert [node["current"] for node in nodes] == [False, False, False, True]
    assert nodes[0]["subtree_hash"] == root and nodes[0]["answer_state"] is None
    shown = succeed(made, "session", "show", "--json", "fork").json
    assert {name: shown[name] for name in ("bates", "label", "question", "node_hash")} == {
        name: nodes[1][name] for name in ("bates", "label", "question", "node_hash")
    }
    assert shown["answer_text"].startswith("It was designed by") and shown["answer_state"] == "live"
    (branch,) = documents_of(succeed(made, "session", "branches", "--json"))
    assert branch == {"bates": nodes[1]["bates"], "children": [n["bates"] for n in nodes[2:]], "seq": 1}
    assert succeed(made, "session", "sid", "--json").json == {"session_id": sid}
    (check,) = documents_of(succeed(made, "session", "chain-check", "--json"))
    assert check["status"] == "verified" and check["session_root"] == root and check["nodes"] == 4


def test_a_bates_id_names_its_session(store: Path) -> None:
    first = sid_of(store)
    time.sleep(1.1)
    second = succeed(store, "session", "new").out.strip()
    assert sid_of(store) == second
    assert succeed(store, "session", "show", "--json", f"{first}-000002").json["question"] == KEPT
    assert succeed(store, "session", "cd", f"{first}-000002").out == f"{first}-000002\n"
    asked = succeed(store, "session", "ask", "--json", "--parent", f"{first}-000001", LIT).json
    assert asked["bates"] == f"{first}-000004" and asked["parent_bates"] == f"{first}-000001"
    assert succeed(store, "session", "sid", "--sid", first[:15]).out in (f"{first}\n", f"{second}\n")


def test_back_goes_up_to_the_root_and_no_further(store: Path) -> None:
    sid = sid_of(store)
    for seq in (1, 0):
        assert succeed(store, "session", "back").out == f"{sid}-{seq:06d}\n"
    result = objstore(store, "session", "back")
    assert result.code == 2 and "you are at its root" in result.err


def test_a_label_is_taken_away_again(store: Path) -> None:
    succeed(store, "session", "label", "--node", "fork", "--remove")
    assert succeed(store, "session", "show", "--json", "1").json["label"] is None
    assert objstore(store, "session", "cd", "fork").code == 3


def test_an_answer_is_shared_by_sessions_and_counted(store: Path) -> None:
    before = succeed(store, "session", "show", "--json", "1").json
    succeed(store, "session", "new")
    again = succeed(store, "session", "ask", "--json", "--sid", sid_of(store), LIT).json
    assert again["from_cache"] and again["answer"] == before["answer"]
    (kept,) = [
        one
        for one in documents_of(succeed(store, "session", "answers", "list", "--json"))
        if one["hit_count"]
    ]
    assert kept["answer"] == before["answer"] and kept["hit_count"] == 1
    anew = succeed(store, "session", "ask", "--json", "--anew", LIT).json
    assert not anew["from_cache"] and anew["cache_key"] == again["cache_key"]


def test_keywords_widen_the_search_and_are_in_no_key(store: Path) -> None:
    plain = succeed(store, "session", "ask", "--json", "--parent", "0", "Who built it?").json
    wide = succeed(
        store,
        "session",
        "ask",
        "--json",
        "--parent",
        "0",
        "--retrieval-keywords",
        "mill bay",
        "Who built it?",
    ).json
    titles = {source["title"] for source in wide["sources"]}
    assert any("Tide Mill" in title for title in titles)
    policy = "governance_policy_hash"
    first, second = (
        json.loads(succeed(store, "session", "answers", "show", "--json", one["answer"]).out)["dimensions"]
        for one in (plain, wide)
    )
    assert first[policy] == second[policy] and first["question_hash"] == second["question_hash"]


def test_an_answer_out_of_service_is_shown_with_a_warning(store: Path) -> None:
    answer = succeed(store, "session", "show", "--json", "2").json["answer"]
    taken = succeed(
        store, "session", "answers", "falsify", "--reason", "the diary says otherwise", answer[:12]
    )
    assert taken.out == f"{answer}\n"
    assert f"● 2 STRICT ! quarantined {KEPT}" in succeed(store, "session", "tree").out
    assert f"-000002 STRICT ! quarantined {KEPT}" in succeed(store, "session", "branches").out
    shown = succeed(store, "session", "show", "2").out
    assert "warning: the answer is quarantined: the diary says otherwise" in shown and "Ragna Sund" in shown
    assert succeed(store, "session", "show", "--json", "2").json["answer_state"] == "quarantined"
    again = succeed(store, "session", "ask", "--json", "--parent", "1", KEPT).json
    assert not again["from_cache"]


def test_a_changed_source_makes_answers_stale(made: Path, store: Path, tmp_path: Path) -> None:
    source = made.parent / "documents" / "skarv-lighthouse.md"
    removed = succeed(store, "session", "source", "remove", source)
    assert (
        removed.out == "removed  The Lighthouse at Skarv Point\n"
        and "will not be served again" in removed.err
    )
    states = {one["state"] for one in documents_of(succeed(store, "session", "answers", "list", "--json"))}
    assert states == {"stale"}
    assert len(documents_of(succeed(store, "session", "source", "list", "--json"))) == 3
    assert succeed(store, "session", "ask", "--json", "--parent", "0", LIT).json["audit_mode"] == "UNGROUNDED"


def test_sources_are_listed_indexed_anew_and_not_read_twice(store: Path, made: Path) -> None:
    folder = made.parent / "documents"
    again = succeed(store, "session", "source", "add", "--json", folder).json
    assert again["new"] == again["changed"] == [] and again["unchanged"] == 4
    (store / "documents.fts").unlink(missing_ok=True)
    done = succeed(store, "session", "source", "reindex", "--json").json
    assert done["documents"] == 4 and done["chunks"] >= 4
    assert "ferry-timetable" in succeed(store, "session", "source", "list").out


def test_what_cannot_be_read_is_reported_and_the_rest_goes_on(store: Path, tmp_path: Path) -> None:
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "bad.pdf").write_bytes(b"%PDF-1.4 no more of it")
    (folder / "good.md").write_text("# Gulls\n\nThe gulls of Skarv nest in May.\n")
    result = objstore(store, "session", "source", "add", folder)
    assert result.code == 5 and result.out == "new      Gulls\n" and "bad.pdf" in result.err


def test_adding_a_conversation_says_what_becomes_of_it(store: Path, tmp_path: Path) -> None:
    log = tmp_path / "a.jsonl"
    log.write_text("{}\n")
    result = objstore(store, "session", "source", "add", log)
    assert result.code == 5 and "becomes an ordinary document" in result.err
    assert objstore(store, "session", "source", "add", "--conversation", "1234").code == 3


def test_the_root_of_a_session_is_a_name_for_plumbing(made: Path) -> None:
    name = f"session/{sid_of(made)}/root"
    root = succeed(made, "session", "root").out
    assert succeed(made, "rev-parse", name).out == root
    document = succeed(made, "cat", name).json
    assert document["subtree_hash"] == root.strip() and document["bates"].endswith("-000000")
    assert succeed(made, "cat", "--json", name).json["object"] == document
    assert succeed(made, "cat", "-t", name).out == "derived\n"
    assert objstore(made, "cat", "-e", name).code == 3


def test_refresh_tells_what_a_page_lacks(store: Path) -> None:
    root = succeed(store, "session", "root").out.strip()
    assert succeed(store, "session", "refresh", "--have", root).json["state"] == "current"
    asked = succeed(store, "session", "ask", "--json", "--parent", "2", LIT).json
    delta = succeed(store, "session", "refresh", "--have", root).json
    assert delta["state"] == "changed" and delta["session_root"] == asked["session_root"]
    assert [int(bates[-6:]) for bates, _ in delta["nodes"]] == [0, 1, 2, 4]
    (node,) = documents_of(succeed(store, "session", "refresh", "--fetch", asked["bates"]))
    assert node["node"]["question"] == LIT and node["parent_bates"].endswith("-000002")


def test_proofs_of_now_of_then_and_of_an_insertion(store: Path, tmp_path: Path) -> None:
    then = succeed(store, "session", "root").out.strip()
    succeed(store, "session", "ask", LIT)
    proof = succeed(store, "session", "prove", "--root", then, "2").out.encode()
    assert objstore(None, "session", "verify-proof", "--root", then, "-", stdin=proof).code == 0
    wrong = objstore(None, "session", "verify-proof", "--root", ZERO, "-", stdin=proof)
    assert wrong.code == 1 and f"is about the root {then}" in wrong.err
    inserted = succeed(store, "session", "prove", "--insertion", "2").out.encode()
    shown = objstore(None, "session", "verify-proof", "--json", "-", stdin=inserted)
    assert shown.json["kind"] == "insertion" and shown.json["question"] == KEPT
    broken = proof.replace(b"keeper", b"KEEPER", 1)
    result = objstore(None, "session", "verify-proof", "-", stdin=broken)
    assert result.code == 1 and result.out == "" and result.err.count("\n") == 1


def test_one_flipped_byte_of_an_export_is_found(made: Path, tmp_path: Path) -> None:
    exported = tmp_path / "talk.db"
    succeed(made, "session", "export", exported)
    data = exported.read_bytes()
    exported.write_bytes(data.replace(b"last keeper", b"lost keeper"))
    result = objstore(tmp_path / "store", "session", "import", exported)
    assert result.code == 1 and "000002" in result.err
    kept = succeed(made, "session", "answers", "export", tmp_path / "qa.db")
    assert kept.err.endswith("3 answers\n")
    again = objstore(made, "session", "export", DOCUMENTS / "tide-tables.md")
    assert again.code == 5 and "was not written by this command" in again.err


def test_a_session_that_went_on_in_two_stores_is_grafted(made: Path, store: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(made, other)
    sid = sid_of(made)
    succeed(store, "session", "ask", "--parent", "2", LIT)
    succeed(other, "session", "ask", "--parent", "3", KEPT)
    for here in (store, other):
        succeed(here, "session", "export", tmp_path / f"{here.name}.db")
    imported = succeed(store, "session", "import", tmp_path / "other.db")
    assert f"objstore session graft {sid}" in imported.err
    succeed(other, "session", "import", tmp_path / "store.db")
    refused = objstore(store, "session", "ask", LIT)
    assert refused.code == 4 and refused.err.endswith(
        f"hint: unite them with: objstore session graft {sid}\n"
    )
    assert "2 heads" in succeed(store, "session", "list").out
    for here in (store, other):
        done = succeed(here, "session", "graft", "--json", sid).json
        assert len(done["united"]) == 2 and len(done["nodes"]) == 1
    assert succeed(store, "session", "root").out == succeed(other, "session", "root").out
    assert "nothing to unite" in succeed(store, "session", "graft").err


# -- what is kept -----------------------------------------------------------------------------------------------------


def test_gc_keeps_the_latest_and_the_open_ones(store: Path) -> None:
    first = sid_of(store)
    time.sleep(1.1)
    second = succeed(store, "session", "new").out.strip()
    with Store.open(store) as opened, hold_open(opened, first):
        process = start(store, "session", "gc", "1", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = process.communicate(timeout=60)
        assert out == b"" and f"{first}: is open, and was kept" in err.decode()
    assert succeed(store, "session", "gc", "1").out == f"{first}\n"
    assert [one["session_id"] for one in documents_of(succeed(store, "session", "list", "--json"))] == [
        second
    ]
    assert succeed(store, "session", "ask", "--json", LIT).json["from_cache"]
    refused = objstore(store, "session", "gc", "0")
    assert refused.code == 2 and "confirm it with: --yes" in refused.err
    assert succeed(store, "session", "--gc", "0", "--yes").out == f"{second}\n"
    assert "no session yet" in succeed(store, "session", "--list").err


WRONG = [
    (("session",), 2, "session: an interactive session needs a terminal"),
    (("session", "ask"), 2, "session ask: no question was given"),
    (("session", "ask", "  "), 2, "the question is empty"),
    (("session", "ask", "--model", "m", "Why?"), 2, "session ask: --model is for a model"),
    (("session", "ask", "--answerer", "openai", "Why?"), 2, "openai: a model must be named"),
    (("session", "ask", "--answerer", "magic", "Why?"), 2, "session ask: --answerer: 'magic' is none of"),
    (("session", "ask", "--sid", "20990101-000000-0000", "Why?"), 3, "20990101-000000-0000: no such session"),
    (("session", "ask", "--sid", "zz", "Why?"), 2, "'zz': too short for a session"),
    (("session", "ask", "--parent", "99", "Why?"), 3, "99: no such node"),
    (("session", "--sid", "nope", "--tree"), 3, "nope: no such session"),
    (("session", "--list", "--tree"), 2, "session: --list and --tree exclude each other"),
    (("session", "--list", "--sid", "x"), 2, "session: --list takes no --sid"),
    (("session", "--gc", "many"), 2, "session: --gc: 'many' is not a whole number"),
    (("session", "--sid", "x", "ask", "Why?"), 2, "session: options stand behind 'ask'"),
    (("session", "tee"), 2, "tee: no such command: did you mean 'objstore session tree'?"),
    (("session", "tree", "7"), 2, "session tree: unexpected argument '7'"),
    (("session", "show", "nowhere"), 3, "'nowhere': no node of"),
    (("session", "cd"), 2, "session cd: too few arguments"),
    (("session", "cd", "99"), 3, "99: no such node"),
    (("session", "label"), 2, "session label: no name was given"),
    (("session", "label", "--remove", "x"), 2, "session label: --remove takes no name"),
    (("session", "label", "--node", "0", "x"), 2, ""),
    (("session", "gc", "-1"), 2, "session gc: unknown option -1"),
    (("session", "gc", "few"), 2, "session gc: 'few' is not a number"),
    (("session", "refresh", "--have", "12"), 2, "'12': not a root"),
    (("session", "refresh", "--fetch"), 2, "session refresh: --fetch needs Bates ids"),
    (("session", "refresh", "--fetch", "1"), 2, "session refresh: '1' is not a Bates id"),
    (("session", "import", "absent.db"), 3, ""),
    (("session", "import", "."), 5, ""),
    (("session", "export", "absent/talk.db"), 5, ""),
    (("session", "source"), 2, "session source: say what to do: add, list, remove, reindex"),
    (("session", "source", "ad"), 2, "session source: 'ad' is none of add"),
    (("session", "source", "add"), 2, "session source add: name a file or folder"),
    (("session", "source", "add", "absent"), 3, ""),
    (("session", "source", "remove", "absent"), 3, "absent: no such source"),
    (("session", "source", "list", "x"), 2, "session source list: unexpected argument 'x'"),
    (("session", "answers"), 2, "session answers: say what to do: list"),
    (("session", "answers", "show"), 2, "session answers show: name an answer's id"),
    (("session", "answers", "show", "12"), 2, "12: too short"),
    (("session", "answers", "show", "deadbeef"), 3, "deadbeef: no such answer"),
    (("session", "answers", "falsify", "deadbeef"), 2, "session answers falsify: say why"),
    (("session", "prove", "--root", ZERO, "1"), 3, f"{ZERO}: was never the root of"),
    (("session", "prove", "--insertion", "0"), 1, ""),
    (("session", "verify-proof", "absent"), 3, ""),
    (("session", "verify-proof", "--root", "12", "absent"), 2, "'12': not a root"),
]


@pytest.mark.parametrize(
    ("words", "code", "message"), WRONG, ids=[" ".join(words[1:5]) or "alone" for words, _, _ in WRONG]
)
def test_wrong_command_lines_are_a_line_and_a_hint(
    made: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    words: tuple[str, ...],
    code: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    result = objstore(made, *words)
    lines = result.err.splitlines()
    assert (result.code, result.out) == (code, "")
    assert lines[0].startswith(f"objstore: {message}") and len(lines) in (1, 2)
    assert all(line.startswith("hint: ") for line in lines[1:])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [("list",), ("tree",), ("cd", "1"), ("gc", "1"), ("answers", "list")])
def test_reading_makes_no_store(tmp_path: Path, words: tuple[str, ...]) -> None:
    result = objstore(tmp_path / "store", "session", *words)
    assert result.code == 3 and not (tmp_path / "store").exists()


def test_a_mistyped_store_is_not_made(tmp_path: Path) -> None:
    result = objstore(tmp_path / "absent" / "store", "session", "new")
    assert result.code == 3 and result.err.endswith("hint: make the store first: objstore init DIR\n")


# -- models -----------------------------------------------------------------------------------------------------------


def ask_model(store: Path, server: Server, *words: str, **env: str) -> Result:
    named = ("--answerer", "openai", "--model", "tiny", "--url", server.url)
    return objstore(store, "session", "ask", *named, *words, **env)


def test_a_model_answers_and_the_key_is_nowhere(store: Path, serve: Callable[..., Server]) -> None:
    server = serve(streaming("It was first lit on 4 October 1874. [E1]\nIt is haunted. [E1]"))
    result = ask_model(store, server, LIT, OBJSTORE_API_KEY=KEY)
    assert result.code == 0 and result.out.startswith(
        "It was first lit on 4 October 1874. [E1 | The Lighthouse"
    )
    assert "HYBRID" in result.err
    head, _ = server.requests[0]
    assert KEY.encode() in head
    assert KEY not in result.out + result.err
    assert not any(KEY.encode() in path.read_bytes() for path in store.rglob("*") if path.is_file())


def test_a_model_that_fails_leaves_no_node(store: Path, serve: Callable[..., Server]) -> None:
    before, count = refs(store), objects(store)
    result = ask_model(store, serve(refusing("401 Unauthorized")), LIT, OBJSTORE_API_KEY=KEY)
    assert result.code == 5 and result.out == "" and KEY not in result.err
    assert "401" in result.err.splitlines()[0]
    assert (refs(store), objects(store)) == (before, count)


def test_ctrl_c_while_a_model_writes_leaves_nothing(store: Path, serve: Callable[..., Server]) -> None:
    before, count = refs(store), objects(store)
    server = serve(stalling())
    words = ("session", "ask", "--answerer", "openai", "--model", "tiny", "--url", server.url, LIT)
    process = start(store, *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until = time.monotonic() + 60
    while not server.requests and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"objstore: interrupted\n")
    assert (refs(store), objects(store)) == (before, count)


def test_no_collection_removes_the_session_of_a_question_that_is_being_answered(
    store: Path, serve: Callable[..., Server]
) -> None:
    server, sid = serve(stalling()), sid_of(store)
    words = ("session", "ask", "--answerer", "openai", "--model", "tiny", "--url", server.url, LIT)
    process = start(store, *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until = time.monotonic() + 60
    while not server.requests and time.monotonic() < until:
        time.sleep(0.05)
    try:
        collected = succeed(store, "session", "gc", "--yes", "0")
        assert collected.out == "" and f"{sid}: is open, and was kept" in collected.err
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def test_quotations_that_stand_nowhere_are_said(store: Path, serve: Callable[..., Server]) -> None:
    server = serve(streaming('It was "built by giants in a single night". [E1]'))
    result = ask_model(store, server, LIT)
    assert "warning: not found where it points: built by giants in a single night" in result.err.splitlines()


def test_a_pronoun_follow_up_is_answered_from_the_source_of_the_question_above(store: Path) -> None:
    title = "The Lighthouse at Skarv Point"
    below = succeed(store, "session", "ask", "--json", "--parent", "1", "Who paid for it?").json
    assert below["sources"][0]["title"] == title
    far = succeed(store, "session", "ask", "--json", "--parent", str(below["seq"]), "And what did they?").json
    assert title in [source["title"] for source in far["sources"]]
    alone = succeed(store, "session", "ask", "--json", "--parent", "0", "Who paid for it?").json
    assert title not in [source["title"] for source in alone["sources"]]


def test_what_prints_json_anyway_may_be_asked_for_it(made: Path) -> None:
    for words in (("prove", "1"), ("prove", "--insertion", "1"), ("refresh",)):
        plain = succeed(made, "session", *words).out
        assert succeed(made, "session", words[0], "--json", *words[1:]).out == plain
        json.loads(plain)


def test_a_check_counts_sessions_and_not_heads(store: Path, tmp_path: Path) -> None:
    shutil.copytree(store, tmp_path / "other")
    for place, question in ((store, TALL), (tmp_path / "other", KEPT)):
        succeed(place, "session", "ask", "--parent", "0", question)
    succeed(store, "fetch", tmp_path / "other")
    result = succeed(store, "session", "chain-check")
    assert len(result.out.splitlines()) == 2
    assert "checked 1 session: all verified" in result.err


# -- several processes ------------------------------------------------------------------------------------------------


def test_two_processes_ask_in_one_session(store: Path) -> None:
    questions = [f"Which ferry leaves at {hour} o'clock?" for hour in range(6)]
    script = (
        "import sys\nfrom porcelain.main import main\n"
        "for question in sys.argv[3:]: assert main([*sys.argv[1:3], 'session', 'ask', question]) == 0\n"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script, "--store", store, *questions[part::2]],
            env=environment(None),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for part in (0, 1)
    ]
    for process in processes:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    nodes = documents_of(succeed(store, "session", "tree", "--json"))
    assert sorted(node["seq"] for node in nodes) == list(range(10))
    assert {node["question"] for node in nodes} >= set(questions)
    assert succeed(store, "session", "chain-check", "--replay").err.endswith("all verified\n")


def test_killed_between_answer_and_node_leaves_an_unused_answer(store: Path) -> None:
    before = refs(store)
    script = (
        "import os, signal, sys\nfrom porcelain.main import main\n"
        "from porcelain.session.commands import answering\n"
        "answering.add_turn = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "main(sys.argv[1:])\n"
    )
    question = "What does the ferry cost?"
    done = subprocess.run(
        [sys.executable, "-c", script, "--store", store, "session", "ask", question],
        env=environment(None),
        check=False,
        capture_output=True,
    )
    assert done.returncode == -signal.SIGKILL
    news = refs(store).keys() - before.keys()
    assert len(news) == 1 and next(iter(news)).startswith("answer/")
    assert before.items() <= refs(store).items()
    assert succeed(store, "verify").code == 0
    asked = succeed(store, "session", "ask", "--json", question).json
    assert asked["from_cache"] and asked["seq"] == 4


def test_a_reader_that_leaves_early_is_no_error(made: Path) -> None:
    program = f"{sys.executable} -m porcelain.main --store {made}"
    done = subprocess.run(
        ["bash", "-c", f"{program} session tree --json | head -c1; exit ${{PIPESTATUS[0]}}"],
        env=environment(None) | {"PATH": os.environ["PATH"]},
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert done.returncode in (0, 141) and done.stderr == b""
