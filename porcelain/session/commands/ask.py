"""``objstore session ask``: ask one question and add the turn."""

from __future__ import annotations

from objstore.errors import UsageError
from objstore.store import Store
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer, say
from porcelain.session.answering.asking import prepared_question
from porcelain.session.commands import answering
from porcelain.session.commands.answering import Landed, ask_turn, asking_of
from porcelain.session.commands.choosing import SID, chosen_node, find_session, latest_session, open_or_make
from porcelain.session.commands.draft import Draft
from porcelain.session.commands.rendering import (
    answer_lines,
    turn_document,
    unverified_lines,
    verdict_line,
)
from porcelain.session.commands.style import Style, wants_colour
from porcelain.session.tree.change import open_session
from porcelain.session.tree.retention import hold_open
from porcelain.session.tree.store import new_session

SUMMARY = "ask one question"
USAGE = """session ask [--sid SID] [--parent NODE] [--retrieval-keywords WORDS] [--anew] [--json] QUESTION...
           session ask --answerer openai --model NAME [--url URL] [--sid SID] [--parent NODE] [--json] QUESTION..."""
OPTIONS = (
    SID,
    Option("--parent", "parent", "NODE", "ask below this node (default: where you are)", "text"),
    *answering.OPTIONS,
    JSON,
)
EXAMPLES = (
    "objstore session ask When was the lighthouse first lit?",
    "objstore session ask --parent 2 'And who kept it?'",
    "objstore session ask --answerer openai --url http://localhost:11434/v1 --model llama3.2 'Who kept it?'",
)
ARGUMENTS = (0, None)


def run(arguments: Arguments, context: Context) -> int:
    """Print the answer; how it was checked, and the node, go to standard error."""
    if not arguments.args:
        raise UsageError("session ask: no question was given", hint="objstore session ask --help")
    question = prepared_question(" ".join(arguments.args))
    ask = asking_of("session ask", arguments, context.env)
    with open_or_make(context) as store:
        sid = _session(store, arguments, context)
        with hold_open(store, sid):
            with store.snapshot() as view:
                parent = chosen_node(view, open_session(view, sid), arguments.parent)
            draft = _draft(arguments, context) if ask.streams else None
            try:
                landed = ask_turn(store, sid, question, parent=parent, ask=ask, on_text=draft)
            finally:
                if draft is not None:
                    draft.clear()
    with Writer(context.stdout) as out:
        if arguments.json:
            out.json(turn_document(landed.asked, landed.added, sid, parent))
        else:
            for line in answer_lines(landed.asked.text, Style.of(context)):
                out.line(line)
    _conclude(landed, context)
    return 0


def _session(store: Store, arguments: Arguments, context: Context) -> str:
    """The session that was named, the latest, or a new one where there is none yet."""
    with store.snapshot() as view:
        if arguments.sid is not None or arguments.parent is not None or latest_session(view) is not None:
            return open_session(view, find_session(view, arguments.sid, arguments.parent)).sid
    sid, _ = new_session(store)
    say(context, f"began the session {sid}")
    return sid


def _draft(arguments: Arguments, context: Context) -> Draft | None:
    """Where the answer is shown while it is written: on standard error, where that is a terminal."""
    if context.quiet or arguments.json or not context.stderr.isatty():
        return None
    return Draft(context.stderr, Style(colour=wants_colour(context.stderr, context.env)))


def _conclude(landed: Landed, context: Context) -> None:
    plain = Style(colour=False)
    say(context, f"{landed.added.bates}: {verdict_line(landed.asked, plain)}")
    for line in unverified_lines(landed.asked, plain):
        say(context, line)
