"""What a line that was typed means."""

from __future__ import annotations

import difflib
from typing import NamedTuple

from objstore.errors import UsageError

#: The commands: how each is written, and what it does.
COMMANDS = {
    "/tree": ("/tree", "print the tree"),
    "/branches": ("/branches", "list the nodes with two children or more"),
    "/cd": ("/cd BATES|SEQ|LABEL", "go to a node: the next question becomes a child of it"),
    "/back": ("/back", "go to the node above"),
    "/label": ("/label NAME", "name the node where you are"),
    "/show": ("/show [BATES|SEQ|LABEL]", "print all that is stored of a node"),
    "/sid": ("/sid", "print the session's id"),
    "/root": ("/root", "print the hash that pins the session"),
    "/help": ("/help", "print this"),
    "/quit": ("/quit", "end (or Ctrl-D)"),
}
#: Commands that are followed by a node.
TAKE_A_NODE = frozenset({"/cd", "/show"})
#: Commands that must be followed by something.
NEED_MORE = frozenset({"/cd", "/label"})
_MAY_HAVE = NEED_MORE | {"/show"}


class Command(NamedTuple):
    """A command and what stands behind it ("" for nothing)."""

    word: str
    rest: str


class Question(NamedTuple):
    """A question."""

    text: str


def read_line(line: str) -> Command | Question | None:
    """What ``line`` means; None for one that is empty. Raises ``UsageError`` for a command that there is not, or that
    something is missing or too much behind."""
    text = line.strip()
    if not text:
        return None
    if text.startswith("//"):
        return Question(text[1:])
    if not text.startswith("/"):
        return Question(text)
    word, _, rest = text.partition(" ")
    rest = rest.strip()
    if word not in COMMANDS:
        near = difflib.get_close_matches(word, COMMANDS, n=1)
        raise UsageError(
            f"{word[:40]}: no such command" + (f": did you mean {near[0]}?" if near else ""),
            hint="/help lists them; a question that begins with / begins with //",
        )
    if rest and word not in _MAY_HAVE:
        raise UsageError(f"{word}: takes nothing behind it", hint=f"{word}")
    if not rest and word in NEED_MORE:
        raise UsageError(f"{word}: something is missing behind it", hint=COMMANDS[word][0])
    return Command(word, rest)


def help_lines() -> list[str]:
    """What ``/help`` prints."""
    width = max(len(form) for form, _ in COMMANDS.values())
    lines = [f"{form:<{width}}  {text}" for form, text in COMMANDS.values()]
    lines.append(
        f"{'anything else':<{width}}  a question, below the node where you are (// begins one with a slash)"
    )
    lines.append(f"{'Ctrl-C':<{width}}  cancel the line, or the question that is being answered")
    return lines
