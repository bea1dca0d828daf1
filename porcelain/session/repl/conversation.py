"""One session and the place in it, and what each line does there."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from objstore.errors import UsageError
from objstore.snapshot import Snapshot
from objstore.store import Store
from plumbing.interface.options import Context
from plumbing.interface.output import Writer, counted, cut, encode, printable, terminal_width
from porcelain.session.commands.answering import Asking, ask_turn
from porcelain.session.commands.draft import Draft
from porcelain.session.commands.rendering import (
    answer_lines,
    answer_warning,
    branch_lines,
    header_lines,
    node_line,
    show_lines,
    tree_lines,
    unverified_lines,
    verdict_line,
)
from porcelain.session.commands.style import Style
from porcelain.session.documents.sources import live_sources
from porcelain.session.repl.words import Command, Question, help_lines, read_line
from porcelain.session.tree.change import Session, open_session
from porcelain.session.tree.identity import bates_of
from porcelain.session.tree.listing import branch_points
from porcelain.session.tree.nodes import Node, same_turn
from porcelain.session.tree.places import current_seq, move_to, resolve_node
from porcelain.session.tree.store import set_label


class Conversation:
    """A session as one person works in it.

    The place is kept here as well as in the store: what the prompt shows is where the next question goes, also when
    another process works in the same session meanwhile.
    """

    def __init__(self, store: Store, sid: str, ask: Asking, context: Context) -> None:
        self.store = store
        self.sid = sid
        self.style = Style.of(context)
        self._ask = ask
        self._context = context
        self._out = Writer(context.stdout)
        self._here: tuple[int, Node] | None = None
        with store.snapshot() as view:
            session = open_session(view, sid)
            self._place(view, session, current_seq(view, session))

    # -- the place ----------------------------------------------------------------------------------------------------

    def _place(self, view: Snapshot, session: Session, seq: int) -> None:
        self._here = seq, session.node(view, seq)

    def here(self, view: Snapshot, session: Session) -> int:
        """The node where the person is. Where a graft gave its number to another turn, the store knows it."""
        if self._here is not None:
            seq, node = self._here
            if seq in session.index and same_turn(session.node(view, seq), node):
                return seq
        seq = current_seq(view, session)
        self._place(view, session, seq)
        return seq

    def prompt(self) -> str:
        """What stands before the line that is typed: the number and the label of the place."""
        with self.store.snapshot() as view:
            session = open_session(view, self.sid)
            seq = self.here(view, session)
            label = session.node(view, seq).label
        name = f" {self.style.label(cut(printable(label), 24))}" if label is not None else ""
        return f"{self.style.bold(str(seq))}{name}> "

    # -- printing -----------------------------------------------------------------------------------------------------

    def say(self, lines: Iterable[str]) -> None:
        """Print lines."""
        for line in lines:
            self._out.line(line)
        self._out.flush()

    def complain(self, message: str, hint: str | None = None) -> None:
        """Say what went wrong, one line and at most one hint."""
        text = f"{self.style.warning('error')}: {printable(message)}\n"
        if hint:
            text += f"hint: {printable(hint)}\n"
        self._context.stderr.write(encode(text))
        self._context.stderr.flush()

    def greet(self, *, resumed: bool) -> None:
        """Say which session this is, and what is needed to begin."""
        with self.store.snapshot() as view:
            session = open_session(view, self.sid)
            turns = counted(session.state.node_count - 1, "turn")
            lines = [f"session {self.style.bold(self.sid)}" + (f", {turns}" if resumed else "")]
            if resumed:
                lines.append(f"at {node_line(view, session, self.here(view, session), self.style)}")
            if next(live_sources(view), None) is None:
                lines.append("there is no source to answer from yet: objstore session source add PATH")
        profile = self._ask.answerer.profile()
        if "model" in profile:
            lines.append(f"questions and passages go to {printable(profile['model'])}")
        self.say([*lines, self.style.dim("ask a question, or /help")])

    # -- lines --------------------------------------------------------------------------------------------------------

    def handle(self, line: str) -> bool:
        """Do what a line says; False when it was the last. Raises ``ObjstoreError``."""
        meant = read_line(line)
        if isinstance(meant, Question):
            self._turn(meant.text)
        elif isinstance(meant, Command):
            if meant.word == "/quit":
                return False
            if meant.word == "/help":
                self.say(help_lines())
            elif meant.word in _READING:
                with self.store.snapshot() as view:
                    _READING[meant.word](self, view, open_session(view, self.sid), meant.rest)
            else:
                _WRITING[meant.word](self, meant.rest)
        return True

    def _turn(self, question: str) -> None:
        with self.store.snapshot() as view:
            parent = self.here(view, open_session(view, self.sid))
        draft = Draft(self._context.stdout, self.style) if self._ask.streams else None
        try:
            landed = ask_turn(self.store, self.sid, question, parent=parent, ask=self._ask, on_text=draft)
        except KeyboardInterrupt:
            landed = None
        finally:
            if draft is not None:
                draft.clear()
        if landed is None:
            self.say(["", "cancelled: nothing was written"])
            return
        asked = landed.asked
        self._go_to(landed.added.bates)
        self.say(
            [
                *answer_lines(asked.text, self.style),
                *unverified_lines(asked, self.style),
                f"{verdict_line(asked, self.style)}  {self.style.dim(landed.added.bates)}",
            ]
        )
        if landed.late:
            self.say(["too late to cancel: the answer was whole"])

    def _go_to(self, bates: str) -> None:
        with self.store.snapshot() as view:
            session = open_session(view, self.sid)
            self._place(view, session, resolve_node(view, session, bates))

    def _tree(self, view: Snapshot, session: Session, rest: str) -> None:
        width = terminal_width(self._context.stdout, self._context.env)
        self.say(header_lines(session, self.style))
        self.say(tree_lines(view, session, self.style, width=width, here=self.here(view, session)))

    def _branches(self, view: Snapshot, session: Session, rest: str) -> None:
        self.say(branch_lines(view, session, self.style) if branch_points(session) else ["no branch yet"])

    def _show(self, view: Snapshot, session: Session, rest: str) -> None:
        seq = resolve_node(view, session, rest) if rest else self.here(view, session)
        self.say(show_lines(view, session, seq, self.style))

    def _sid(self, view: Snapshot, session: Session, rest: str) -> None:
        self.say([self.sid])

    def _root(self, view: Snapshot, session: Session, rest: str) -> None:
        self.say([session.state.root])

    def _cd(self, where: str) -> None:
        bates = move_to(self.store, self.sid, where)
        self._go_to(bates)
        self._say_place()

    def _back(self, rest: str) -> None:
        with self.store.snapshot() as view:
            session = open_session(view, self.sid)
            above = session.index.parent(self.here(view, session))
        if above is None:
            raise UsageError("you are at the root: there is nothing to go back to")
        self._cd(bates_of(self.sid, above))

    def _say_place(self) -> None:
        with self.store.snapshot() as view:
            session = open_session(view, self.sid)
            seq = self.here(view, session)
            warning = answer_warning(view, session, seq)
            lines = [node_line(view, session, seq, self.style)]
            if warning is not None:
                lines.append(self.style.warning(f"warning: {printable(warning)}"))
        self.say(lines)

    def _label(self, name: str) -> None:
        with self.store.snapshot() as view:
            seq = self.here(view, open_session(view, self.sid))
        done = set_label(self.store, self.sid, seq, name)
        self._go_to(done.bates)
        self._say_place()
        self.say([done.session_root])


_READING: dict[str, Callable[[Conversation, Snapshot, Session, str], None]] = {
    "/tree": Conversation._tree,
    "/branches": Conversation._branches,
    "/show": Conversation._show,
    "/sid": Conversation._sid,
    "/root": Conversation._root,
}
_WRITING: dict[str, Callable[[Conversation, str], None]] = {
    "/cd": Conversation._cd,
    "/back": Conversation._back,
    "/label": Conversation._label,
}
