"""The interactive session: what lines mean, what completion offers, and a session from the first line to Ctrl-D."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from objstore.errors import UsageError
from objstore.store import Store
from plumbing.interface.options import Context
from porcelain.session.answering.answerers import OnText, Request
from porcelain.session.answering.answers import falsify
from porcelain.session.answering.asking import Options
from porcelain.session.answering.extract_answerer import ExtractAnswerer
from porcelain.session.commands.answering import Asking
from porcelain.session.commands.draft import Draft
from porcelain.session.commands.style import Style, wants_colour
from porcelain.session.documents.adding import add_sources
from porcelain.session.repl import loop, prompting
from porcelain.session.repl.completing import offers
from porcelain.session.repl.conversation import Conversation
from porcelain.session.repl.words import COMMANDS, Command, Question, help_lines, read_line
from porcelain.session.tree.places import move_to
from porcelain.session.tree.store import add_turn, new_session
from tests.porcelain.importing.driving import ROOT

DOCUMENTS = ROOT / "fixtures" / "documents"
LIT = "When was the lighthouse first lit?"
TALL = "How tall is the tower?"
SECRET = "ghp_" + "F4kE" * 9
EXTRACT = Asking(ExtractAnswerer(), Options(), streams=False)


class Interrupted:
    """An answerer that Ctrl-C stops after a few words."""

    def profile(self) -> dict[str, str]:
        return {"answerer": "interrupted"}

    def answer(self, request: Request, on_text: OnText | None = None) -> str:
        if on_text is not None:
            on_text("It was")
        raise KeyboardInterrupt


class Terminal(io.BytesIO):
    """Bytes that say they are a terminal."""

    def isatty(self) -> bool:
        return True


class Talk:
    """A conversation with what it wrote."""

    def __init__(self, store: Store, ask: Asking = EXTRACT, **env: str) -> None:
        self.out = Terminal()
        self.err = Terminal()
        self.context = Context(
            env={"NO_COLOR": "1", "COLUMNS": "70"} | env, stdin=Terminal(), stdout=self.out, stderr=self.err
        )
        self.store = store
        self.sid, _ = new_session(store)
        self.conversation = Conversation(store, self.sid, ask, self.context)

    def __call__(self, *lines: str) -> str:
        """What the lines print."""
        waiting = list(lines)

        def next_line() -> str:
            if not waiting:
                raise EOFError
            return waiting.pop(0)

        start = self.out.tell()
        loop.run(self.conversation, next_line)
        return self.out.getvalue()[start:].decode()

    @property
    def errors(self) -> list[str]:
        return self.err.getvalue().decode().splitlines()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    times = iter(range(1000))
    with Store.init(tmp_path / "store", now=lambda: f"2026-03-01T10:{next(times) // 60:02d}:00Z") as made:
        add_sources(made, [path for path in sorted(DOCUMENTS.iterdir()) if path.suffix != ".pdf"])
        yield made


# -- lines ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("", None),
        ("  \t ", None),
        (" why? ", Question("why?")),
        ("//etc/hosts holds what?", Question("/etc/hosts holds what?")),
        ("/tree", Command("/tree", "")),
        (" /cd   fork one ", Command("/cd", "fork one")),
        ("/label a name", Command("/label", "a name")),
        ("/show", Command("/show", "")),
    ],
)
def test_what_a_line_means(line: str, meant: object) -> None:
    assert read_line(line) == meant


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("/tre", "/tre: no such command: did you mean /tree?"),
        ("/etc/hosts", "/etc/hosts: no such command"),
        ("/", "/: no such command"),
        ("/exit", "/exit: no such command"),
        ("/tree now", "/tree: takes nothing behind it"),
        ("/cd", "/cd: something is missing behind it"),
        ("/label  ", "/label: something is missing behind it"),
    ],
)
def test_lines_that_mean_nothing(line: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_line(line)
    assert caught.value.message.startswith(message) and caught.value.hint


@given(st.text())
def test_any_line_is_a_question_a_command_nothing_or_an_error(line: str) -> None:
    try:
        meant = read_line(line)
    except UsageError:
        assert line.strip().startswith("/") and not line.strip().startswith("//")
        return
    if isinstance(meant, Command):
        assert meant.word in COMMANDS
    elif meant is None:
        assert not line.strip()
    else:
        assert line.strip() in (meant.text, f"/{meant.text}")


# -- a session --------------------------------------------------------------------------------------------------------


def test_asking_branching_and_naming(store: Store) -> None:
    talk = Talk(store)
    said = talk(
        LIT, "/label fork", "And who kept it?", "", "/cd fork", TALL, "/tree", "/branches", "/sid", "/root"
    )
    assert not talk.errors
    with store.snapshot() as view:
        root = talk.conversation.store.get(f"session/{talk.sid}/head")["body"]["session_root"]
        assert view.ref(f"session/{talk.sid}/current")
    assert "first lit on 4 October 1874. [E1 | The Lighthouse at Skarv Point | " in said
    assert f"STRICT by span, from 1 passage  {talk.sid}-000001" in said
    tree = said[said.index("1 branch point: 1 (2)\n") :].splitlines()
    assert tree[1:4] == [
        f"● 1 [fork] STRICT {LIT}",
        "├─● 2 STRICT And who kept it?",
        f"└─◉ 3 STRICT {TALL}",
    ]
    assert tree[-2:] == [talk.sid, root]


def test_a_secret_in_a_question_or_label_is_neither_kept_nor_shown(store: Store) -> None:
    talk = Talk(store)
    said = talk(f"What opens {SECRET}?", f"/label {SECRET}", "/tree", "/show", f"/cd {SECRET}")
    assert SECRET not in said + talk.conversation.prompt()
    with store.snapshot() as view:
        assert not any(SECRET.encode() in stored.data for _, stored in view.objects())


def test_going_back_and_showing(store: Store) -> None:
    talk = Talk(store)
    talk(LIT, TALL)
    assert talk.conversation.prompt() == "2> "
    said = talk("/back", "/show", "/show 2", "/back", "/back")
    assert f"bates        {talk.sid}-000001" in said and f"bates        {talk.sid}-000002" in said
    assert talk.errors == ["error: you are at the root: there is nothing to go back to"]
    assert talk.conversation.prompt() == "0> "


def test_errors_are_said_and_the_session_goes_on(store: Store) -> None:
    talk = Talk(store)
    said = talk("/nope", "/cd 9", "/cd " + "x" * 5000, f"{'y' * 70_000}", "/sid")
    assert said == f"{talk.sid}\n"
    assert [line.partition(":")[0] for line in talk.errors].count("error") == 4
    assert max(map(len, talk.errors)) < 200


def test_quit_ends_and_what_follows_is_not_read(store: Store) -> None:
    talk = Talk(store)
    assert talk("/quit", "/sid") == ""
    assert all(form.split()[0] in talk("/help") for form, _ in COMMANDS.values())
    assert len(help_lines()) == len(COMMANDS) + 2


def test_ctrl_c_cancels_a_turn_and_nothing_is_written(store: Store) -> None:
    talk = Talk(store, Asking(Interrupted(), Options(), streams=True))
    refs = store.refs()
    with store.snapshot() as view:
        count = view.count()
    assert talk(LIT).endswith("\ncancelled: nothing was written\n")
    assert store.refs() == refs and talk.conversation.prompt() == "0> "
    with store.snapshot() as view:
        assert view.count() == count


def test_ctrl_c_at_the_prompt_gives_up_the_line(store: Store) -> None:
    talk = Talk(store)
    steps: list[object] = [KeyboardInterrupt(), "/sid", KeyboardInterrupt(), EOFError()]

    def next_line() -> str:
        step = steps.pop(0)
        if isinstance(step, BaseException):
            raise step
        return str(step)

    loop.run(talk.conversation, next_line)
    assert talk.out.getvalue().decode() == f"{talk.sid}\n" and not steps


def test_a_session_without_sources_says_how_to_add_one(tmp_path: Path) -> None:
    with Store.init(tmp_path / "empty") as empty:
        talk = Talk(empty)
        talk.conversation.greet(resumed=False)
        assert b"objstore session source add PATH" in talk.out.getvalue()
        assert "UNGROUNDED, from 0 passages" in talk(LIT)


def test_an_answer_that_is_no_longer_served_is_shown_with_a_warning(store: Store) -> None:
    talk = Talk(store)
    talk(LIT, "/back")
    with store.snapshot() as view:
        (answer,) = [key.hex() for _, key in view.refs("answer/")]
    falsify(store, answer, "the plaque says 1875")
    warning = "warning: the answer is quarantined: the plaque says 1875\n"
    assert warning in talk("/cd 1") and warning in talk("/show")
    assert f"◉ 1 STRICT ! quarantined {LIT}\n" in talk("/tree")


def test_the_next_question_goes_where_the_prompt_says(store: Store) -> None:
    talk = Talk(store)
    talk(LIT)
    move_to(store, talk.sid, "0")  # by another process
    assert talk.conversation.prompt() == "1> "
    talk(TALL, "/tree")
    with store.snapshot() as view:
        from porcelain.session.tree.change import open_session

        assert open_session(view, talk.sid).index.parent(2) == 1


def test_escape_codes_in_what_others_wrote_do_nothing(store: Store, turn: Callable[..., object]) -> None:
    talk = Talk(store)
    add_turn(store, talk.sid, turn(store, "a\x1b[31mred\x1b[0m question"))  # type: ignore[arg-type]
    said = talk("/cd 1", "/tree", "/show", "/branches")
    assert "\x1b" not in said + talk.conversation.prompt() and "\\x1b[31mred" in said


def test_colours_only_where_they_are_wanted(store: Store) -> None:
    assert "\x1b" not in Talk(store)(LIT, "/tree", "/show")
    coloured = Talk(store, NO_COLOR="")(LIT, "/tree")
    assert "\x1b[32mSTRICT\x1b[0m" in coloured
    assert not wants_colour(io.BytesIO(), {})
    assert not wants_colour(Terminal(), {"TERM": "dumb"}) and wants_colour(Terminal(), {"TERM": "xterm"})


def test_long_questions_are_cut_to_the_terminal(store: Store) -> None:
    talk = Talk(store)
    long = "Which of the many ferries of the island leaves first on a Sunday in winter, and why?"
    (line,) = [one for one in talk(long, "/tree").splitlines() if one.startswith("◉ 1")]
    assert len(line) <= 70 and line.endswith("…")


# -- drafts -----------------------------------------------------------------------------------------------------------


def test_a_draft_is_taken_away_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((10, 20)))
    for text, rows in (
        ("short", 0),
        ("x" * 10, 0),
        ("x" * 11, 1),
        ("a\nb\nc", 2),
        ("x" * 25 + "\n" + "y", 3),
    ):
        stream = io.BytesIO()
        draft = Draft(stream, Style(colour=False))
        for piece in text:
            draft(piece)
        draft.clear()
        up = f"\x1b[{rows}A" if rows else ""
        assert stream.getvalue().decode() == f"{text}\r{up}\x1b[J"
        draft.clear()
        assert stream.getvalue().decode().count("\x1b[J") == 1


def test_a_draft_that_is_too_long_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((10, 4)))
    stream = io.BytesIO()
    draft = Draft(stream, Style(colour=False))
    draft("a\nb\nc\nd\ne")
    draft.clear()
    assert stream.getvalue() == b"a\nb\nc\nd\ne\n"


# -- completion and history -------------------------------------------------------------------------------------------


def offered(talk: Talk, text: str) -> list[str]:
    return [text[: len(text) - offer.replaces] + offer.text for offer in offers(talk.conversation, text)]


def test_what_is_offered(store: Store) -> None:
    talk = Talk(store)
    talk(LIT, "/label fork", TALL)
    assert [one.strip() for one in offered(talk, "/")] == list(COMMANDS)
    assert offered(talk, "/la") == ["/label "]
    assert offered(talk, "/b") == ["/branches", "/back"]
    assert offered(talk, "/cd ") == ["/cd fork", "/cd 2", "/cd 1", "/cd 0"]
    assert offered(talk, "/show f") == ["/show fork"]
    assert offered(talk, f"/cd {talk.sid[:9]}") == [f"/cd {talk.sid}-{seq:06d}" for seq in (2, 1, 0)]
    assert offered(talk, f"/cd {talk.sid}-000001") == [f"/cd {talk.sid}-000001"]
    for text in ("", "why", "//", "/tree ", "/label f", "/nope ", "/cd zzz"):
        assert offered(talk, text) == []
    assert next(iter(offers(talk.conversation, "/cd 1"))).meaning == LIT


def test_prompt_toolkit_edits_and_remembers(store: Store, tmp_path: Path) -> None:
    pytest.importorskip("prompt_toolkit", reason="the extra repl is not installed")
    from prompt_toolkit.input import create_pipe_input
    from prompt_toolkit.output import DummyOutput

    talk = Talk(store)
    with create_pipe_input() as keys:
        keys.send_text(f"{LIT}\r")
        keys.send_text("/label fork\r")
        keys.send_text(f"my key is {SECRET}\r")
        keys.send_text("this line is given up\x03")
        keys.send_text("/cd fork\r")
        keys.send_text("/sid\r")
        keys.send_text("\x1b[A\x1b[A\r")  # two up: again the line before the last one
        keys.send_text("\x04")
        reader = prompting.edited_reader(talk.conversation, talk.context, input=keys, output=DummyOutput())
        loop.run(talk.conversation, reader)
    said = talk.out.getvalue().decode()
    assert "4 October 1874" in said and f"{talk.sid}-000001 [fork]" in said
    assert said.endswith(f"{talk.sid}-000001 [fork] STRICT {LIT}\n{talk.sid}\n")
    path = tmp_path / "store" / prompting.HISTORY
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    history = list(prompting.history(talk.conversation).load_history_strings())
    assert history[:2] == ["/sid", "/cd fork"] and history[-1] == LIT
    assert len(history) == 5 and SECRET not in path.read_text()


def test_a_history_that_grew_too_large_loses_its_older_half(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("prompt_toolkit", reason="the extra repl is not installed")
    monkeypatch.setattr(prompting, "_LARGEST", 200)
    path = tmp_path / "store" / prompting.HISTORY
    path.write_text("".join(f"\n# 2026-03-01 10:00:{n:02d}\n+line {n}\n" for n in range(20)))
    lines = list(prompting.history(Talk(store).conversation).load_history_strings())
    assert lines[0] == "line 19" and 5 < len(lines) < 12


def test_without_prompt_toolkit_lines_are_read_plainly(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "prompt_toolkit", None)
    typed = iter(["/sid"])
    prompts: list[str] = []

    def ask(prompt: str) -> str:
        prompts.append(prompt)
        try:
            return next(typed)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", ask)
    talk = Talk(store)
    loop.run(talk.conversation, prompting.line_reader(talk.conversation, talk.context))
    said = talk.out.getvalue().decode()
    assert "pip install 'objstore-cli[repl]'" in said and said.endswith(f"{talk.sid}\n\n")
    assert prompts == ["0> ", "0> "]
