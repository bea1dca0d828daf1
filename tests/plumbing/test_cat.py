"""``objstore cat``: every form of output as exact text, and every kind of name."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

ONE = "387e05db72a7b26f6faafc90e603045c4c765af2fb8438cf7ade4b3236a98c38"
TWO = "821bb05d9ad21035bd3e9e9a7009519e392fb2607d69dfdfecaf1c3c1f4ac960"
BODY = '{"text":"one","type":"text"}'
OTHER = '{"text":"two","type":"text"}'
ROOT = Path(__file__).resolve().parents[2]


def test_objects_one_a_line_by_any_name(store) -> None:
    assert store("cat", ONE) == (0, f"{BODY}\n", "")
    assert store("cat", ONE[:4], TWO[:7].upper(), "tag/start") == (0, f"{BODY}\n{OTHER}\n{BODY}\n", "")
    assert store("cat", "--stdin", stdin=f"{TWO}\ntag/start\n") == (0, f"{OTHER}\n{BODY}\n", "")
    assert store("cat", "-z", "--stdin", stdin=f"{TWO}\0{ONE}") == (0, f"{OTHER}\0{BODY}\0", "")


def test_parts_of_objects(store) -> None:
    assert store("cat", "-t", ONE, TWO).out == "text\ntext\n"
    assert store("cat", "--size", ONE).out == "28\n"
    assert store("cat", "--pretty", ONE).out == '{\n  "text": "one",\n  "type": "text"\n}\n'
    assert store("cat", "--json", ONE).out == f'{{"id":"{ONE}","object":{BODY},"size":28,"type":"text"}}\n'
    assert store("cat", "--json", "-s", ONE).out == f'{{"id":"{ONE}","size":28,"type":"text"}}\n'


def test_whether_objects_are_there(store) -> None:
    assert store("cat", "-e", ONE, TWO) == (0, "", "")
    assert store("cat", "-e", ONE, "abcd") == (3, "", "")
    assert store("cat", "-e", "tag/none") == (3, "", "")


def test_a_batch_answers_every_line(store) -> None:
    names = f"{ONE}\nabcd\ntag/start\n\n{'0' * 64}\nno id\n{TWO.upper()}"
    assert store("cat", "--batch", stdin=names) == (
        0,
        f"{ONE} text 28\n{BODY}\nabcd missing\n{ONE} text 28\n{BODY}\n missing\n{'0' * 64} missing\n"
        f"no id missing\n{TWO} text 28\n{OTHER}\n",
        "",
    )
    assert (
        store("cat", "--stdin", "--batch-check", stdin=f"{TWO}\ntag/none\n").out
        == f"{TWO} text 28\ntag/none missing\n"
    )
    assert store("cat", "--batch", "-z", stdin=f"{ONE}\0x\0").out == f"{ONE} text 28\0{BODY}\0x missing\0"


def test_a_batch_in_json(store) -> None:
    assert store("cat", "--batch", "--json", stdin=f"{ONE}\nabcd\n").out == (
        f'{{"id":"{ONE}","object":{BODY},"size":28,"type":"text"}}\n{{"error":"missing","name":"abcd"}}\n'
    )
    assert (
        store("cat", "--batch-check", "--json", stdin=ONE).out
        == f'{{"id":"{ONE}","size":28,"type":"text"}}\n'
    )


def test_ambiguous_names(store) -> None:
    lines = "".join(f'{{"text":"{n}","type":"text"}}\n' for n in range(1500))
    ids = sorted(store("hash-object", "-w", "--batch", stdin=lines).out.split())
    prefix, pair = next((a[:4], (a, b)) for a, b in pairwise(ids) if a[:4] == b[:4])
    assert store("cat", "--batch-check", stdin=prefix).out == f"{prefix} ambiguous\n"
    done = store("cat", prefix)
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith(f"objstore: {prefix}: ambiguous: matches ")
    assert f"hint: type more digits: {pair[0][:8]}" in done.err


def test_what_is_not_there(store) -> None:
    absent = "0" * 64
    assert store("cat", absent) == (3, "", f"objstore: {absent}: no such object\n")
    assert store("cat", ONE, "abcd", TWO) == (3, f"{BODY}\n", "objstore: abcd: no such object\n")
    assert store("cat", "tag/none").err == (
        "objstore: tag/none: no such ref\nhint: list them with: objstore show-ref\n"
    )
    assert store("cat", "abc").code == 2
    assert store("cat", "start").code == 2
    assert store("cat", ONE, store="none").code == 3


@pytest.mark.parametrize(
    "words", [(), ("-t", "-s", ONE), ("--batch", ONE), ("--stdin", ONE), ("--batch", "-e")]
)
def test_usage(store, words: tuple[str, ...]) -> None:
    done = store("cat", *words)
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith("hint: objstore cat --help\n")


def test_a_program_that_waits_for_each_answer_gets_it(store, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "porcelain.main", "--store", str(tmp_path / "store"), "cat", "--batch"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        for name, header, body in ((ONE, f"{ONE} text 28", BODY), ("tag/start", f"{ONE} text 28", BODY)):
            process.stdin.write(name.encode() + b"\n")
            process.stdin.flush()
            assert process.stdout.readline().decode() == f"{header}\n"
            assert process.stdout.readline().decode() == f"{body}\n"
        process.stdin.close()
        assert process.wait() == 0


def test_a_store_of_a_newer_program_is_refused_in_one_line(store, tmp_path: Path) -> None:
    import lmdb

    with lmdb.open(str(tmp_path / "store"), max_dbs=16) as env, env.begin(write=True) as txn:
        txn.put(b"format", b"99", db=env.open_db(b"meta", txn=txn))
    done = store("cat", ONE)
    assert (done.code, done.out) == (5, "")
    assert done.err == (
        f"objstore: {tmp_path}/store: store format 99: this program knows up to 1\n"
        "hint: the store was written by a newer objstore: upgrade\n"
    )


def test_a_file_that_is_no_database_is_refused_in_one_line(objstore, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "data.mdb").write_bytes(b"no database" * 2000)
    done = objstore("cat", ONE)
    assert (done.code, done.out) == (5, "")
    assert done.err.startswith(f"objstore: {tmp_path}/store: ")
    assert done.err.count("\n") == 1
