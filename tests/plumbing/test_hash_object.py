"""``objstore hash-object``: ids in order, what is stored, and what stops it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ONE = "387e05db72a7b26f6faafc90e603045c4c765af2fb8438cf7ade4b3236a98c38"
TWO = "821bb05d9ad21035bd3e9e9a7009519e392fb2607d69dfdfecaf1c3c1f4ac960"
ROOT = Path(__file__).resolve().parents[2]


def document(text: str) -> str:
    return f'{{"text":"{text}","type":"text"}}'


def test_the_id_is_the_hash_of_the_canonical_text(objstore) -> None:
    value = {"b": [1, None, True], "a": "grüße"}
    text = json.dumps(value, indent=3)
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    expected = hashlib.sha256(canonical.encode()).hexdigest() + "\n"
    assert objstore("hash-object", "--stdin", stdin=text) == (0, expected, "")
    Path("value.json").write_text(text)
    assert objstore("hash-object", "value.json") == (0, expected, "")
    assert objstore("hash-object", "--batch", stdin=json.dumps(value)) == (0, expected, "")
    assert not Path("store").exists()


def test_standard_input_comes_before_files_and_paths_keep_their_order(objstore) -> None:
    objstore("init")
    Path("two.json").write_text(document("two"))
    Path("one.json").write_text(document("one"))
    both = f"{ONE}\n{TWO}\n"
    assert objstore("hash-object", "--stdin", "two.json", stdin=document("one")).out == both
    assert objstore("hash-object", "-w", "--stdin", "two.json", stdin=document("one")).out == both
    assert objstore("hash-object", "-w", "--stdin-paths", stdin="one.json\ntwo.json\n").out == both
    assert (
        objstore("hash-object", "-z", "--stdin-paths", stdin=b"one.json\0two.json\0").out == f"{ONE}\0{TWO}\0"
    )
    assert objstore("ls-objects").out == both


def test_only_with_write_is_anything_stored(objstore) -> None:
    objstore("init")
    objstore("hash-object", "--stdin", stdin=document("one"))
    assert objstore("ls-objects").out == ""
    assert objstore("hash-object", "-w", "--stdin", stdin=document("one")) == (0, f"{ONE}\n", "")
    assert (
        objstore("hash-object", "-w", "--json", "--batch", stdin=document("two")).out == f'{{"id":"{TWO}"}}\n'
    )
    assert objstore("ls-objects").out == f"{ONE}\n{TWO}\n"


def test_a_batch_is_stored_as_one_by_one(objstore) -> None:
    objstore("init")
    lines = [json.dumps({"type": "text", "text": f"text {n}"}) for n in range(3000)]
    done = objstore("hash-object", "-w", "--stdin", "--batch", stdin="\n".join(lines))
    expected = [
        hashlib.sha256(
            json.dumps(json.loads(line), sort_keys=True, separators=(",", ":")).encode()
        ).hexdigest()
        for line in lines
    ]
    assert done.out.split() == expected
    assert sorted(objstore("ls-objects").out.split()) == sorted(expected)


def test_a_bad_line_stops_a_batch_and_what_was_before_it_is_kept(objstore) -> None:
    objstore("init")
    done = objstore("hash-object", "-w", "--batch", stdin=f"{document('one')}\n{{]\n{document('two')}\n")
    assert done == (
        1,
        f"{ONE}\n",
        "objstore: line 2: column 2: not JSON: Expecting property name enclosed in double quotes\n",
    )
    assert objstore("ls-objects").out == f"{ONE}\n"


def test_keep_going_answers_a_bad_line_and_fails_at_the_end(objstore) -> None:
    objstore("init")
    lines = f'{document("one")}\n{{"a":1.5}}\n{document("two")}\n{{"type":"unheard-of"}}\n'
    done = objstore("hash-object", "-w", "--batch", "--keep-going", stdin=lines)
    assert done.code == 1
    assert done.out == f"{ONE}\n-\n{TWO}\n-\n"
    assert done.err.splitlines() == [
        "objstore: line 2: $.a: the number 1.5 is a float",
        "objstore: line 4: unheard-of: unknown kind of object",
    ]
    assert objstore("hash-object", "--batch", "-k", "--json", stdin="{").out == '{"id":null}\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "-: line 1 column 1: not JSON: Expecting value"),
        (b"\0\0\0\0", "-: line 1 column 1: not JSON: Expecting value"),
        (b'{"a":"\xff"}', "-: byte 6: the text is not UTF-8"),
        (b'{"a":1}{"a":1}', "-: character 7: more text after the end of the value"),
        (b'{"a":1,"a":1}', '-: $: key "a" stands twice in one object'),
        (b'{"a":9007199254740992}', "-: $.a: the integer lies outside -(2^53-1) .. 2^53-1"),
        (b"[" * 100 + b"]" * 100, "-: $[0][0]"),
        (b'"' + b"x" * (9 << 20) + b'"', "-: $: 8388609 bytes of JSON text; at most 8388608 are read"),
    ],
)
def test_what_is_not_on_the_domain_is_refused_in_one_line(objstore, text: bytes, said: str) -> None:
    done = objstore("hash-object", "--stdin", stdin=text)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"objstore: {said}")
    assert done.err.partition("\nhint: ")[0].count("\n") <= 1


def test_what_is_no_object_is_not_stored(objstore) -> None:
    objstore("init")
    for text, said in (
        ("[1]", "-: an object is a JSON object, not a list"),
        ("{}", '-: an object needs a "type"'),
        ('{"type":"text"}', "-: text: Object missing required field `text`"),
        ('{"type":"text","text":"a","b":1}', "-: text: Object contains unknown field `b`"),
        ('{"type":7}', '-: an object needs a "type"'),
    ):
        single = objstore("hash-object", "-w", "--stdin", stdin=text)
        assert single.code == 1
        assert single.err.startswith(f"objstore: {said}\n")
        batch = objstore("hash-object", "-w", "--batch", stdin=text)
        assert batch.err == single.err.replace("-: ", "line 1: ", 1)
    assert objstore("ls-objects").out == ""


def test_files_that_cannot_be_read(objstore, tmp_path: Path) -> None:
    objstore("init")
    Path("one.json").write_text(document("one"))
    assert objstore("hash-object", "absent.json") == (
        3,
        "",
        "objstore: absent.json: No such file or directory\n",
    )
    assert objstore("hash-object", ".") == (5, "", "objstore: .: Is a directory\n")
    done = objstore("hash-object", "-w", "--stdin-paths", stdin="one.json\nabsent.json\n")
    assert done == (3, f"{ONE}\n", "objstore: absent.json: No such file or directory\n")
    assert objstore("ls-objects").out == f"{ONE}\n"
    assert objstore("hash-object", "-w", "one.json", store="none") == (
        3,
        "",
        f"objstore: {tmp_path}/none: no store here\nhint: make one with: objstore init\n",
    )
    if os.geteuid() != 0:
        Path("one.json").chmod(0)
        assert objstore("hash-object", "one.json") == (5, "", "objstore: one.json: Permission denied\n")


@pytest.mark.parametrize(
    "words",
    [(), ("--batch", "file"), ("--stdin", "--stdin-paths"), ("--stdin-paths", "--batch"), ("-k", "file")],
)
def test_usage(objstore, words: tuple[str, ...]) -> None:
    done = objstore("hash-object", *words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("objstore: hash-object: ")
    assert done.err.endswith("hint: objstore hash-object --help\n")


def test_a_program_that_waits_for_each_id_gets_it_and_finds_the_object_stored(
    objstore, tmp_path: Path
) -> None:
    objstore("init")
    command = [
        sys.executable,
        "-m",
        "porcelain.main",
        "--store",
        str(tmp_path / "store"),
        "hash-object",
        "-w",
        "--batch",
    ]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        for text, expected in (("one", ONE), ("two", TWO)):
            process.stdin.write(document(text).encode() + b"\n")
            process.stdin.flush()
            assert process.stdout.readline().decode() == f"{expected}\n"
            assert objstore("cat", expected).out == document(text) + "\n"
        process.stdin.close()
        assert process.wait() == 0


def test_a_reader_that_goes_away_is_no_error_of_ours(objstore, tmp_path: Path) -> None:
    objstore("init")
    lines = "".join(f"{document(str(n))}\n" for n in range(20000))
    Path("lines").write_text(lines)
    program = f"{sys.executable} -m porcelain.main"
    script = (
        f"set -o pipefail; cd {ROOT}; {program} --store {tmp_path}/store hash-object --batch < {tmp_path}/lines"
        " | head -n 1"
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (141, "")
    assert len(done.stdout) == 65
