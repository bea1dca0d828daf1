"""The view document, and YAML as the public tool writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from porcelain.flow.views.yaml import to_yaml
from tests.porcelain.flow.folders import SESSION, build, chain, landed_files
from tests.porcelain.importing.driving import HOME, TIDEPOOL, copy_home, objstore, succeed

yaml = pytest.importorskip("yaml")
PUBLISHED = "00000001-0000-4000-8000-000000000001"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store that keeps content, with the folder of ``folders`` in it."""
    path = tmp_path / "store"
    succeed(path, "init")
    succeed(path, "config", "content.keep", "on")
    succeed(path, "flow", "import", build(tmp_path / "root"))
    return path


def test_the_published_document(tmp_path: Path, shared: Path) -> None:
    vectors = shared / "vectors" / "session-flow"
    if not vectors.is_dir():
        pytest.skip("the shared folder holds no session-flow vectors")
    store = tmp_path / "store"
    succeed(store, "init")
    succeed(store, "config", "content.keep", "on")
    succeed(store, "flow", "import", vectors / "rebuilt")
    wanted = (vectors / "upstream" / "docs" / "en" / "formats" / "asz-view-example.yaml").read_text("utf-8")
    assert succeed(store, "flow", "view", PUBLISHED).out == wanted
    document = (vectors / "rebuilt" / "view.json").read_text("utf-8")
    found = json.loads(succeed(store, "flow", "view", "--json", PUBLISHED).out)
    assert json.dumps(found, indent=2, ensure_ascii=False) == document.rstrip("\n")


def test_a_document_of_several_rounds(store: Path) -> None:
    document = json.loads(succeed(store, "flow", "view", "--json", SESSION).out)
    assert yaml.safe_load(succeed(store, "flow", "view", SESSION).out) == document
    assert document["head"]["round"] == 2 and document["summary"]["state"] == "verified"
    assert [one["verified"] for one in document["rounds"]] == [True, True]
    assert document["rounds"][1]["previous"] == document["rounds"][0]["digest"]
    assert [one["seq"] for one in document["files"]] == [1, 2, 3, None, None]
    assert document["summary"]["title"] == "mend <the> roof"
    first, child, last = document["talks"]
    assert (first["label"], first["reply"]) == ("Is the roof \u2028 tight?", "Three tiles are missing.")
    assert (child["child"], child["reply"]) == (True, "Three tiles are gone.")
    assert "reply" not in last and last["label"] == "Thank you."
    main, kid = document["streams"]
    assert (main["name"], main["parent"], kid["parent"]) == ("main", "", "main")
    assert kid["opened_by"][0]["step"] == "tool/t2" and kid["opened_by"][0]["talk"] == first["id"]
    (tool,) = (step for step in walk(document["talks"]) if step["id"] == "tool/t1")
    assert (tool["text"], tool["result"]) == ('{"q":1.50}', "it is & is not")
    assert (tool["request_to_result_ms"], tool["request_to_result_join"]) == (1000, "exact_unique")
    before = json.loads(succeed(store, "flow", "view", "--json", "--at", "1", SESSION).out)
    assert before["head"]["round"] == 1 and len(before["rounds"]) == 1
    assert objstore(store, "flow", "view", "--at", "9", SESSION).code == 3


def walk(nodes: list[Any]) -> list[Any]:
    return [one for node in nodes for one in (node, *walk(node.get("children", [])))]


def test_the_text_that_is_there(tmp_path: Path) -> None:
    home = copy_home(tmp_path / "home")
    for keep, name in ((False, "private"), (True, "kept")):
        store = tmp_path / name
        succeed(store, "init")
        if keep:
            succeed(store, "config", "content.keep", "on")
        succeed(store, "import", home / TIDEPOOL)
        document = json.loads(succeed(store, "flow", "view", "--json", TIDEPOOL.stem).out)
        assert document["summary"]["state"] == "verified"
        steps = [one for one in walk(document["talks"]) if one.get("bytes") and one["kind"] != "thinking"]
        assert steps and {one["state"] for one in steps} == {"available" if keep else "hash_only"}
        assert all(("text" in one) == keep for one in steps)
        labels = [talk.get("label", "") for talk in document["talks"]]
        assert all(labels) == keep


def test_a_conversation_without_rounds_has_no_view(store: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    succeed(other, "init")
    succeed(other, "flow", "import", build(tmp_path / "bare", ends=()))
    result = objstore(other, "flow", "view", SESSION)
    assert result.code == 3 and "no structure was assembled" in result.err


def test_landed_files_that_do_not_match_are_told(tmp_path: Path) -> None:
    from porcelain.flow.chain.folding import fold_rounds
    from porcelain.flow.formats.sf_reading import read_round
    from porcelain.flow.views.document import view_document
    from porcelain.flow.views.source import Source, ViewRound

    rounds = [read_round(data) for data, _ in chain(landed_files(), 1, 3)]
    for problem, state in (
        ("round 1: landed file seq 1 is missing", "incomplete"),
        ("round 1: the input digest does not match the landed files", "mismatch"),
    ):
        listed = [ViewRound("r", 1, "d", one, False) for one in rounds]
        document = view_document(Source(fold_rounds(rounds), {}, listed, [problem]))
        assert (document["summary"]["state"], document["summary"]["problems"]) == (state, [problem])
        assert document["talks"] and all("at" not in talk for talk in document["talks"])


# -- YAML ------------------------------------------------------------------------------------------------------------

ODD = [
    *("", "~", "null", "true", "Yes", "off", "y", "N", "1", "-1", "1.0", "1e3", "0x1F", "0o17", "017", "08"),
    *(
        "1_000",
        "1:30",
        "12:30:45.5",
        ".inf",
        "-.INF",
        ".nan",
        "2026-01-01",
        "2026-01-01T00:00:02.000Z",
        "<<",
        "=",
    ),
    *(
        "a: b",
        "a:",
        "a :b",
        "a #b",
        "#a",
        "- a",
        "-",
        "-a",
        "?",
        "? a",
        ":",
        "'",
        '"',
        "[a",
        "{a",
        "a]",
        "*a",
        "&a",
    ),
    *(
        " a",
        "a ",
        "a\nb",
        "a\n",
        "\na",
        "a\n\n",
        " a\nb",
        "a \nb",
        "a\n b",
        "a\tb\nc",
        "\ta",
        "a\r\nb",
        "%a",
        "@a",
        "`a",
    ),
    *(
        "---",
        "--- a",
        "...",
        "\x07",
        "\x7f",
        "\x85",
        "\xa0",
        "\u2028",
        "\ufeff",
        "\U0001f600",
        "!a",
        "|",
        ">",
        "a,b",
    ),
    *(
        "667c3a32",
        "12345e678901",
        "123e4567",
        "00000001-0000-4000-8000-000000000001",
        "=x",
        "+1.",
        "1.e5",
        "+.inf",
    ),
]


@pytest.mark.parametrize("text", ODD, ids=[ascii(text) for text in ODD])
def test_odd_texts_read_back(text: str) -> None:
    for value in (text, [text], {"key": text}, [[text, {"key": [text]}]], {text: text}):
        assert yaml.safe_load(to_yaml(value)) == value


def test_the_style() -> None:
    value = {
        "empty": [],
        "none": {},
        "list": [{"a": 1, "deep": {"b": [None, True]}}, [1, 2], "x"],
        "text": "one\n  two\n\nthree",
        "quoted": "skills: 1",
        "emoji": "\U0001f600",
    }
    assert to_yaml(value) == (
        "empty: []\n"
        "none: {}\n"
        "list:\n"
        "    - a: 1\n"
        "      deep:\n"
        "        b:\n"
        "            - null\n"
        "            - true\n"
        "    - - 1\n"
        "      - 2\n"
        "    - x\n"
        "text: |-\n"
        "    one\n"
        "      two\n"
        "\n"
        "    three\n"
        "quoted: 'skills: 1'\n"
        'emoji: "\\U0001F600"\n'
    )


TEXTS = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(ODD)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
@example({"a": ["b\nc", {"d": "e\n"}]})
def test_any_value_reads_back(value: Any) -> None:
    assert yaml.safe_load(to_yaml(value)) == value


def test_rounds_are_counted_from_one(tmp_path: Path) -> None:
    store = tmp_path / "store"
    succeed(store, "import", HOME / TIDEPOOL)
    for number, code, said in (
        (0, 2, "--at counts rounds from 1"),
        (2, 3, "has no round 2: the last one is 1"),
    ):
        result = objstore(store, "flow", "view", TIDEPOOL.stem, "--at", str(number))
        assert (result.code, result.out) == (code, "") and said in result.err
