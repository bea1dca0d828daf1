"""``objstore session answers``: the answers that are kept, and taking them out of service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from msgspec import UNSET, to_builtins

from objstore.errors import UsageError
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer, counted, say, table, terminal_width
from plumbing.interface.stores import open_store
from porcelain.session.answering.answers import (
    Kept,
    all_answers,
    falsify,
    find_answers,
    mark_stale,
    unverified_quotes,
)
from porcelain.session.answering.answers_export import export_answers
from porcelain.session.answering.kinds import State
from porcelain.session.commands.choosing import given_path
from porcelain.session.commands.rendering import answer_lines, source_lines, text_lines
from porcelain.session.commands.style import Style

SUMMARY = "the answers that are kept"
USAGE = """session answers list [--state STATE] [--json]
           session answers show [--json] ANSWER
           session answers falsify --reason TEXT [--state STATE] [--json] ANSWER
           session answers stale [--reason TEXT] [--json]
           session answers export [--force] [--json] FILE"""
OPTIONS = (
    Option(
        "--state",
        "state",
        "STATE",
        "list: only answers in this state; falsify: the state to put them in (quarantined)",
        "choice",
        choices=get_args(State),
    ),
    Option("--reason", "reason", "TEXT", "why", "text"),
    Option("--force", help="replace FILE even if it is no export"),
    JSON,
)
EXAMPLES = (
    "objstore session answers list",
    "objstore session answers falsify --reason 'the tide table was misread' 5f3a77c2",
    "objstore session answers export qa.db",
)
ARGUMENTS = (0, 2)
#: The words that may stand first.
WORDS = {
    "list": "what there is",
    "show": "one answer in full",
    "falsify": "take an answer out of service",
    "stale": "take those out of service whose sources changed",
    "export": "write them as a SQLite file",
}
_NAME_ONE = {
    "show": "an answer's id or cache key",
    "falsify": "an answer's id or cache key",
    "export": "a file",
}


def run(arguments: Arguments, context: Context) -> int:
    """Do the action that was named first."""
    hint = "objstore session answers --help"
    action = arguments.args[0] if arguments.args else ""
    if action not in WORDS:
        what = f"{action[:40]!r} is none of" if action else "say what to do:"
        raise UsageError(f"session answers: {what} {', '.join(WORDS)}", hint=hint)
    missing = _NAME_ONE.get(action)
    if missing is None and len(arguments.args) > 1:
        raise UsageError(f"session answers {action}: unexpected argument {arguments.args[1]!r}", hint=hint)
    if missing is not None and len(arguments.args) < 2:
        raise UsageError(f"session answers {action}: name {missing}", hint=hint)
    if action == "list":
        return _list(arguments, context)
    if action == "show":
        return _show(arguments, context)
    if action == "export":
        return _export(arguments, context)
    return _take_out(action, arguments, context)


def _list(arguments: Arguments, context: Context) -> int:
    with open_store(context) as store, store.snapshot() as view, Writer(context.stdout) as out:
        found = [one for one in all_answers(view) if arguments.state in (None, one.state)]
        found.sort(key=lambda one: (one.answer.created_at, one.id))
        if arguments.json:
            for one in found:
                out.json(_document(one))
            return 0
        rows = [
            (
                one.id[:12],
                one.state,
                one.answer.audit_mode,
                f"{one.hits:,}",
                one.answer.created_at,
                one.answer.question,
            )
            for one in found
        ]
        header = ("answer", "state", "mode", "hits", "created at", "question")
        width = terminal_width(context.stdout, context.env)
        if rows:
            for line in table(rows, header, width=width, right=(3,), whole=(0,)):
                out.line(line)
        else:
            say(context, "there is no such answer" if arguments.state else "there is no answer yet")
    return 0


def _document(one: Kept) -> dict[str, object]:
    answer = one.answer
    return {
        "answer": one.id,
        "answerer": answer.answerer,
        "audit_mode": answer.audit_mode,
        "cache_key": answer.cache_key,
        "created_at": answer.created_at,
        "hit_count": one.hits,
        "last_hit_at": one.last_hit,
        "question": answer.question,
        "reason": one.reason,
        "state": one.state,
        "verifier_method": answer.verifier_method,
    }


def _show(arguments: Arguments, context: Context) -> int:
    with open_store(context) as store, store.snapshot() as view, Writer(context.stdout) as out:
        found = find_answers(view, arguments.args[1])
        for number, one in enumerate(found):
            if arguments.json:
                out.json(
                    {
                        **_document(one),
                        "claims": to_builtins(one.answer.claims),
                        "dimensions": to_builtins(one.answer.dimensions),
                        "limits": [] if one.answer.limits is UNSET else list(one.answer.limits),
                        "sources": to_builtins(one.answer.sources),
                        "text": one.answer.text,
                        "unverified_quotes": unverified_quotes(one.answer),
                    }
                )
            else:
                for line in (*([""] if number else []), *_lines(one, Style.of(context))):
                    out.line(line)
    return 0


def _lines(one: Kept, style: Style) -> Sequence[str]:
    answer = one.answer
    state = style.warning(f"{one.state}: {one.reason}") if one.state != "live" else "live"
    method = f" by {answer.verifier_method}" if answer.verifier_method != "none" else ""
    return [
        f"answer      {style.bold(one.id)}",
        f"cache key   {answer.cache_key}",
        f"state       {state}",
        f"checked     {style.mode(answer.audit_mode)}{method}",
        f"answered by {' '.join(f'{name}={value}' for name, value in answer.answerer.items() if value)}",
        f"created at  {answer.created_at}",
        f"hits        {one.hits:,}" + (f", the last {one.last_hit}" if one.last_hit else ""),
        "",
        *(style.bold(line) for line in text_lines(answer.question)),
        *answer_lines(answer.text, style),
        *(style.dim(line) for line in source_lines(answer)),
    ]


def _take_out(action: str, arguments: Arguments, context: Context) -> int:
    with open_store(context, write=True) as store:
        if action == "stale":
            ids = mark_stale(store, arguments.reason) if arguments.reason else mark_stale(store)
        else:
            if arguments.reason is None:
                raise UsageError(
                    "session answers falsify: say why: --reason TEXT", hint="objstore session answers --help"
                )
            state: State = arguments.state or "quarantined"
            ids = falsify(store, arguments.args[1], arguments.reason, state=state)
    with Writer(context.stdout) as out:
        for answer_id in ids:
            if arguments.json:
                out.json({"answer": answer_id})
            else:
                out.line(answer_id)
    what = "back in service" if arguments.state == "live" and action == "falsify" else "out of service"
    say(context, f"{counted(len(ids), 'answer')} {what}")
    return 0


def _export(arguments: Arguments, context: Context) -> int:
    path = given_path(context, arguments.args[1])
    with open_store(context) as store, store.snapshot() as view:
        count = export_answers(view, path, overwrite=arguments.force)
    if arguments.json:
        with Writer(context.stdout) as out:
            out.json({"file": str(path), "rows": count})
    else:
        say(context, f"wrote {arguments.args[1]}: {counted(count, 'answer')}")
    return 0
