"""The commands that read and move refs: rev-parse, show-ref, for-each-ref, update-ref, reflog."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path

import pytest

from objstore.lock import writer_lock

ONE = "387e05db72a7b26f6faafc90e603045c4c765af2fb8438cf7ade4b3236a98c38"
TWO = "821bb05d9ad21035bd3e9e9a7009519e392fb2607d69dfdfecaf1c3c1f4ac960"
NONE = "0" * 64


def without_times(text: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", text)


# -- rev-parse ---------------------------------------------------------------------------------------------------------


def test_rev_parse_gives_full_ids(store) -> None:
    assert store("rev-parse", ONE[:6], "tag/start", TWO) == (0, f"{ONE}\n{ONE}\n{TWO}\n", "")
    assert store("rev-parse", "--stdin", "-z", stdin=f"{TWO[:4]}\0tag/start\0").out == f"{TWO}\0{ONE}\0"
    assert (
        store("rev-parse", "--json", "tag/start").out
        == f'{{"id":"{ONE}","name":"tag/start","type":"text"}}\n'
    )


def test_rev_parse_shortens(store) -> None:
    assert store("rev-parse", "--short", "tag/start", TWO).out == f"{ONE[:7]}\n{TWO[:7]}\n"
    assert store("rev-parse", "--short=4", ONE).out == f"{ONE[:4]}\n"
    assert store("rev-parse", "--short=64", ONE).out == f"{ONE}\n"
    assert store("rev-parse", "--short=3", ONE).code == 2
    assert store("rev-parse", "--short=65", ONE).code == 2


def test_rev_parse_short_ids_are_unique(store) -> None:
    lines = "".join(f'{{"text":"{n}","type":"text"}}\n' for n in range(3000))
    ids = store("hash-object", "-w", "--batch", stdin=lines).out
    shortened = store("rev-parse", "--short=4", "--stdin", stdin=ids).out
    assert store("rev-parse", "--stdin", stdin=shortened).out == ids
    everything = [ONE, TWO, *ids.split()]
    for digits in shortened.split():
        assert sum(one.startswith(digits) for one in everything) == 1
        assert len(digits) == 4 or sum(one.startswith(digits[:-1]) for one in everything) > 1
    assert any(len(digits) > 4 for digits in shortened.split())


def test_rev_parse_verify(store) -> None:
    assert store("rev-parse", "--verify", "tag/start").out == f"{ONE}\n"
    assert store("rev-parse", "--verify", "tag/start", ONE).code == 2
    assert store("rev-parse", "--verify", "abcd") == (3, "", "objstore: abcd: no such object\n")
    assert store("-q", "rev-parse", "--verify", "abcd") == (3, "", "")
    assert store("rev-parse", ONE, "abcd") == (3, f"{ONE}\n", "objstore: abcd: no such object\n")


# -- show-ref ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def refs(store):
    assert store("update-ref", "tag/2/start", TWO).code == 0
    assert store("update-ref", "flow/aa/claude/x", ONE).code == 0
    assert store("update-ref", "flow/bb/claude/y", TWO).code == 0
    return store


def test_show_ref_lists(refs) -> None:
    everything = f"{ONE} flow/aa/claude/x\n{TWO} flow/bb/claude/y\n{TWO} tag/2/start\n{ONE} tag/start\n"
    assert refs("show-ref") == (0, everything, "")
    assert refs("show-ref", "-z").out == everything.replace("\n", "\0")
    assert refs("show-ref", "--json", "x").out == f'{{"id":"{ONE}","name":"flow/aa/claude/x"}}\n'


def test_show_ref_matches_whole_parts_from_the_end(refs) -> None:
    assert refs("show-ref", "start").out == f"{TWO} tag/2/start\n{ONE} tag/start\n"
    assert refs("show-ref", "tag/start", "claude/y").out == f"{TWO} flow/bb/claude/y\n{ONE} tag/start\n"
    assert refs("show-ref", "art") == (3, "", "objstore: art: matches no ref\n")
    assert refs("show-ref", "tag") == (3, "", "objstore: tag: matches no ref\n")


def test_show_ref_verify_takes_whole_names(refs) -> None:
    assert refs("show-ref", "--verify", "tag/start").out == f"{ONE} tag/start\n"
    assert refs("show-ref", "--verify", "start") == (3, "", "objstore: start: no such ref\n")
    assert refs("show-ref", "--verify").code == 2


def test_show_ref_of_an_empty_store(objstore) -> None:
    objstore("init")
    assert objstore("show-ref") == (0, "", "")


# -- for-each-ref ------------------------------------------------------------------------------------------------------


def test_for_each_ref_formats(refs) -> None:
    assert refs("for-each-ref", "tag/start").out == f"{ONE} text\ttag/start\n"
    formats = {
        "name": "tag/start",
        "id name": f"{ONE} tag/start",
        "type,size": "text 28",
        "%(refname)": "tag/start",
        "%(objectname:short)%09%(objecttype) 100%% of %(objectsize)%": f"{ONE[:7]}\ttext 100% of 28%",
        "names": "names",
        "": "",
    }
    for text, expected in formats.items():
        assert refs("for-each-ref", f"--format={text}", "tag/start") == (0, f"{expected}\n", "")
    assert (
        refs("for-each-ref", "--json", "tag/start").out
        == f'{{"id":"{ONE}","name":"tag/start","type":"text"}}\n'
    )
    assert refs("for-each-ref", "-z", "--format=name", "tag").out == "tag/2/start\0tag/start\0"


def test_for_each_ref_chooses_by_whole_parts_from_the_beginning(refs) -> None:
    def names(*words: str) -> list[str]:
        return refs("for-each-ref", "--format=name", *words).out.split()

    assert names("tag") == names("tag/") == ["tag/2/start", "tag/start"]
    assert names("ta") == []
    assert names("flow/*/claude") == ["flow/aa/claude/x", "flow/bb/claude/y"]
    assert names("flow/a?", "*/start") == ["flow/aa/claude/x", "tag/start"]
    assert names("tag/2/start/more") == []


def test_for_each_ref_sorts_and_stops(refs) -> None:
    def names(*words: str) -> list[str]:
        return refs("for-each-ref", "--format=name", *words).out.split()

    assert names("--sort=-name", "--count=1") == ["tag/start"]
    by_id = ["flow/aa/claude/x", "tag/start", "flow/bb/claude/y", "tag/2/start"]
    assert names("--sort=id") == by_id
    assert names("--sort=-id", "--sort=-refname") == [
        "tag/2/start",
        "flow/bb/claude/y",
        "tag/start",
        by_id[0],
    ]
    assert names("--count=0") == []


def test_for_each_ref_refuses_unknown_fields(refs) -> None:
    done = refs("for-each-ref", "--format=%(color)")
    assert done.code == 2
    assert done.err == (
        "objstore: for-each-ref: --format: no field %(color)\n"
        "hint: fields: %(refname) %(objectname) %(objectname:short) %(objecttype) %(objectsize); "
        "words: name id type size\n"
    )
    assert refs("for-each-ref", "--sort=color").code == 2


# -- update-ref and reflog ---------------------------------------------------------------------------------------------


def test_update_ref_compares_and_swaps(store) -> None:
    assert store("update-ref", "tag/start", TWO, ONE) == (0, "", "")
    assert store("update-ref", "tag/start", TWO, ONE) == (
        4,
        "",
        f"objstore: tag/start: moved by someone else: expected {ONE}, found {TWO}\n"
        "hint: read the ref again and repeat the change\n",
    )
    assert store("update-ref", "tag/start", ONE[:8], "tag/start").code == 0
    assert store("update-ref", "tag/start", TWO, NONE).code == 4
    assert store("update-ref", "tag/new", TWO, "").code == 0
    assert store("update-ref", "--json", "tag/start", TWO).out == f'{{"id":"{TWO}","name":"tag/start"}}\n'
    assert store("show-ref").out == f"{TWO} tag/new\n{TWO} tag/start\n"


def test_update_ref_deletes(store) -> None:
    assert store("update-ref", "-d", "tag/start", TWO).code == 4
    assert store("update-ref", "-d", "tag/start", ONE) == (0, "", "")
    assert store("update-ref", "-d", "tag/start") == (3, "", "objstore: tag/start: no such ref\n")
    assert store("update-ref", "tag/start", NONE).code == 3
    assert store("show-ref").out == ""


def test_update_ref_refuses(store) -> None:
    for words, code in (
        (("tag/x",), 2),
        (("tag/x", ONE, ONE, ONE), 2),
        (("-d",), 2),
        (("tag/a b", ONE), 2),
        (("tag", ONE), 2),
        (("tag/x", "a" * 64), 3),
        (("tag/x", "abcd"), 3),
        (("--why", "two\nlines", "tag/x", ONE), 2),
        (("--stdin", "tag/x"), 2),
    ):
        done = store("update-ref", *words)
        assert (done.code, done.out) == (code, ""), words
        assert done.err.startswith("objstore: ")
    assert store("show-ref").out == f"{ONE} tag/start\n"


def test_a_transaction_moves_all_or_none(store) -> None:
    lines = f"verify tag/start {ONE}\ncreate tag/new {TWO}\nupdate tag/other {ONE} {NONE}\nverify tag/none\n"
    assert store("update-ref", "--why", "together", "--stdin", stdin=lines) == (0, "", "")
    everything = f"{TWO} tag/new\n{ONE} tag/other\n{ONE} tag/start\n"
    assert store("show-ref").out == everything
    for line, code, said in (
        (
            f"create tag/new {ONE}",
            4,
            f"objstore: tag/new: moved by someone else: expected no ref, found {TWO}",
        ),
        ("verify tag/start", 4, f"objstore: tag/start: moved by someone else: expected no ref, found {ONE}"),
        ("delete tag/none", 3, "objstore: line 2: tag/none: no such ref"),
        (
            f"delete tag/other {ONE}",
            2,
            "objstore: update-ref: line 2: tag/other: changed twice in one transaction",
        ),
        ("delete", 2, "objstore: update-ref: line 2: too few words"),
        (f"create tag/x {ONE} {ONE}", 2, "objstore: update-ref: line 2: too many words"),
        ("symref-update", 2, "objstore: update-ref: line 2: 'symref-update': no such command"),
    ):
        done = store("update-ref", "--stdin", stdin=f"delete tag/other {ONE}\n{line}\n")
        assert (done.code, done.out, done.err.splitlines()[0]) == (code, "", said)
        assert store("show-ref").out == everything
    assert store("update-ref", "--stdin", "-z", stdin="delete tag/new\0delete tag/other\0").code == 0
    assert store("show-ref").out == f"{ONE} tag/start\n"


def test_reflog_tells_every_move_newest_first(store) -> None:
    store("config", "user.name", "Ada Example")
    store("update-ref", "--why", "because", "tag/start", TWO)
    store("update-ref", "-d", "tag/start")
    lines = [
        f"{TWO} {NONE} TIME Ada Example\t",
        f"{ONE} {TWO} TIME Ada Example\tbecause",
        f"{NONE} {ONE} TIME objstore\tbegin",
    ]
    done = store("reflog", "tag/start")
    assert (done.code, without_times(done.out), done.err) == (0, "\n".join(lines) + "\n", "")
    assert without_times(store("reflog", "--reverse", "-n", "1", "tag/start").out) == f"{lines[2]}\n"
    assert without_times(store("reflog", "-z", "--count=1", "tag/start").out) == f"{lines[0]}\0"
    entry = json.loads(store("reflog", "--json", "--count", "1", "tag/start").out)
    number = entry["number"]
    expected = {"name": "tag/start", "new": None, "number": number, "old": TWO, "time": entry["time"]}
    assert entry == {**expected, "who": "Ada Example", "why": ""}
    assert list(entry) == sorted(entry)


def test_reflog_of_no_ref(store) -> None:
    assert store("reflog", "tag/none") == (
        3,
        "",
        "objstore: tag/none: no such ref, and none in the past\nhint: list refs with: objstore show-ref\n",
    )
    assert store("reflog").code == 2


def test_a_locked_store_is_waited_for_and_given_up(store, tmp_path: Path) -> None:
    with writer_lock(str(tmp_path / "store" / "write.lock"), 1.0):
        done = store("--lock-timeout", "0.05", "update-ref", "tag/x", ONE)
    assert done == (
        4,
        "",
        "waiting for another writer (up to 0.05 s)\n"
        "objstore: the store is locked by another writer: gave up after 0.05 s\n"
        "hint: wait for it to finish, or give --lock-timeout SECONDS\n",
    )
    free, held = threading.Event(), threading.Event()

    def hold() -> None:
        with writer_lock(str(tmp_path / "store" / "write.lock"), 1.0):
            held.set()
            free.wait(0.2)

    other = threading.Thread(target=hold)
    other.start()
    held.wait()
    done = store("update-ref", "tag/x", ONE)
    other.join()
    assert done == (0, "", "waiting for another writer (up to 10 s)\n")
    assert store("rev-parse", "tag/x").out == f"{ONE}\n"
