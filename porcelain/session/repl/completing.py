"""What may be completed in the interactive session: commands, and behind some of them labels, numbers and Bates ids."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from plumbing.interface.output import cut
from porcelain.session.commands.rendering import text_lines
from porcelain.session.repl.conversation import Conversation
from porcelain.session.repl.words import COMMANDS, NEED_MORE, TAKE_A_NODE
from porcelain.session.tree.change import open_session
from porcelain.session.tree.identity import bates_of

#: Offers at most, so that a menu of a session with many nodes comes up at once.
MOST = 60
_QUESTION = 48


class Offer(NamedTuple):
    """A text that may take the place of the last ``replaces`` characters typed, and what it means."""

    text: str
    replaces: int
    meaning: str


def offers(conversation: Conversation, text: str) -> Iterator[Offer]:
    """What may stand where ``text`` (the line up to the cursor) ends."""
    line = text.lstrip()
    if not line.startswith("/") or line.startswith("//"):
        return
    word, blank, rest = line.partition(" ")
    if not blank:
        for name, (_, meaning) in COMMANDS.items():
            if name.startswith(word):
                yield Offer(name + (" " if name in NEED_MORE else ""), len(word), meaning)
    elif word in TAKE_A_NODE:
        yield from _nodes(conversation, rest.lstrip())


def _nodes(conversation: Conversation, typed: str) -> Iterator[Offer]:
    """Labels, then numbers, newest first, then Bates ids, that begin with what was typed."""
    sid = conversation.sid
    with conversation.store.snapshot() as view:
        session = open_session(view, sid)
        found = 0
        for seq in session.index.labels():
            label = session.node(view, seq).label
            if label is not None and label.startswith(typed) and found < MOST:
                found += 1
                yield Offer(label, len(typed), cut(_question(session.node(view, seq).question), _QUESTION))
        as_bates = len(typed) > 6 and bates_of(sid, 0).startswith(typed[:20])
        for seq in range(session.state.next_seq - 1, -1, -1):
            if found >= MOST:
                return
            name = bates_of(sid, seq) if as_bates else str(seq)
            if name.startswith(typed) and seq in session.index:
                found += 1
                yield Offer(name, len(typed), cut(_question(session.node(view, seq).question), _QUESTION))


def _question(text: str) -> str:
    return " ".join(text_lines(text)) or "(the root)"
