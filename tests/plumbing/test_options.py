"""The option table: parsing, help, and where the store is."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from objstore.errors import UsageError
from plumbing.interface.options import (
    JSON,
    NUL,
    Context,
    HelpWanted,
    Option,
    command_name,
    find_store,
    format_options,
    parse,
)

OPTIONS = (
    JSON,
    NUL,
    Option("-w", "write", help="write"),
    Option(("-m", "--message"), "message", "TEXT", "why", "text"),
    Option("--depth", help="how deep", kind="integer"),
    Option("--wait", help="how long", kind="seconds", default=1.5),
    Option("--format", help="form", kind="choice", choices=("name", "full")),
    Option("--only", help="these", kind="text", many=True),
)
USAGE = "try-it [-w] ID..."


def read(*argv: str, **bounds: int):
    return parse(argv, OPTIONS, USAGE, **bounds)


def test_defaults() -> None:
    got = read()
    assert vars(got) == {
        "args": [],
        "json": False,
        "null": False,
        "write": False,
        "message": None,
        "depth": None,
        "wait": 1.5,
        "format": None,
        "only": [],
    }


def test_every_way_to_give_a_value() -> None:
    for argv in (["--message", "a b"], ["--message=a b"], ["-m", "a b"], ["-ma b"], ["-wzma b"]):
        assert read(*argv).message == "a b"
    assert read("--message=").message == ""
    assert read("--message=a=b").message == "a=b"
    assert read("--message", "--json").message == "--json"
    got = read("-zw", "--only", "x", "--only=y", "--depth", "7", "--wait", "0.5", "--format", "full")
    assert (got.null, got.write, got.only, got.depth, got.wait, got.format) == (
        True,
        True,
        ["x", "y"],
        7,
        0.5,
        "full",
    )


def test_arguments_may_stand_among_options() -> None:
    assert read("a", "--json", "-", "--", "-w", "--", "b").args == ["a", "-", "-w", "--", "b"]


def test_leading_stops_at_the_first_argument() -> None:
    got = parse(["--json", "cmd", "--bogus", "--", "x"], OPTIONS, USAGE, leading=True)
    assert got.json and got.args == ["cmd", "--bogus", "--", "x"]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--jsom"], "unknown option --jsom: did you mean --json?"),
        (["-x"], "unknown option -x"),
        (["-wx"], "unknown option -x"),
        (["--json=yes"], "--json takes no value"),
        (["--message"], "--message needs a value: TEXT"),
        (["--depth", "-1"], "--depth: '-1' is not a whole number"),
        (["--depth", "1e3"], "--depth: '1e3' is not a whole number"),
        (["--wait", "nan"], "--wait: 'nan' is not a number of seconds"),
        (["--format", "half"], "--format: 'half' is none of name, full"),
        (["--store=x"], "--store stands before the command"),
    ],
)
def test_what_is_refused(argv: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(*argv)
    assert caught.value.message == f"try-it: {message}"
    assert caught.value.hint == "objstore try-it --help"


def test_bounds_on_arguments() -> None:
    assert read("a", least=1, most=1).args == ["a"]
    with pytest.raises(UsageError, match="try-it: too few arguments"):
        read(least=1)
    with pytest.raises(UsageError, match="try-it: unexpected argument 'b'"):
        read("a", "b", most=1)


@pytest.mark.parametrize("argv", [["-h"], ["--help"], ["a", "-wh"]])
def test_help_is_asked_for(argv: list[str]) -> None:
    with pytest.raises(HelpWanted):
        read(*argv)
    assert read("--message", "--help").message == "--help"


@given(st.lists(st.text(min_size=1)))
def test_after_two_dashes_everything_is_an_argument(words: list[str]) -> None:
    assert read("--", *words).args == words


@given(st.lists(st.text()), st.text())
def test_any_words_parse_or_are_refused_in_one_line(words: list[str], value: str) -> None:
    try:
        got = read(*words, f"--message={value}")
    except UsageError as error:
        assert error.exit_code == 2
    except HelpWanted:
        assert any("h" in word for word in words)
    else:
        assert got.message == value or "--" in words


def test_command_names() -> None:
    assert command_name("cat [--json] ID...") == "cat"
    assert command_name("flow show ID\nflow show --all") == "flow show"
    assert command_name("hash-object -w") == "hash-object"
    assert command_name("") == ""


def test_options_in_two_columns() -> None:
    assert format_options(OPTIONS[2:4]) == "  -w                  write\n  -m, --message TEXT  why\n"


def test_which_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    own = tmp_path / "data"
    monkeypatch.setenv("XDG_DATA_HOME", str(own))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert Path(find_store(None, str(inside), {})).name == "store"
    (tmp_path / ".objstore").mkdir()
    assert find_store(None, str(inside), {}) == str(tmp_path / ".objstore")
    (tmp_path / "a" / ".objstore").mkdir()
    assert find_store(None, str(inside), {}) == str(tmp_path / "a" / ".objstore")
    named = {"OBJSTORE_DIR": "../named"}
    assert find_store(None, str(inside), named) == str(tmp_path / "a" / "named")
    assert find_store("given", str(inside), named) == str(inside / "given")
    assert find_store("/given/here", str(inside), named) == "/given/here"
    assert find_store(str(tmp_path), str(inside), {}) == str(tmp_path / ".objstore")
    (tmp_path / "data.mdb").touch()
    assert find_store(str(tmp_path), str(inside), {}) == str(tmp_path)


def test_context_carries_streams_of_bytes(tmp_path: Path) -> None:
    out = io.BytesIO()
    context = Context(
        store="s", cwd=str(tmp_path), env={}, stdin=io.BytesIO(b"x"), stdout=out, stderr=io.BytesIO()
    )
    assert context.stdin.read() == b"x"
    assert context.stdout is out
    assert context.store_path() == str(tmp_path / "s")
    assert (context.lock_timeout, context.quiet) == (10.0, False)
