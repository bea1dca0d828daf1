"""``objstore session gc``: keep the latest sessions only."""

from __future__ import annotations

from objstore.errors import UsageError
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer, counted, encode, say
from plumbing.interface.stores import open_store
from porcelain.session.tree import names
from porcelain.session.tree.retention import collect

SUMMARY = "keep the latest sessions only"
USAGE = "session gc [--yes] [--json] N"
OPTIONS: tuple[Option, ...] = (Option("--yes", "yes", help="keep 0 sessions without being asked"), JSON)
EXAMPLES = ("objstore session gc 100",)
ARGUMENTS = (1, 1)


def run(arguments: Arguments, context: Context) -> int:
    """Print the sessions that were removed."""
    (text,) = arguments.args
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise UsageError(
            f"session gc: {text[:40]!r} is not a number of sessions", hint="objstore session gc 100"
        )
    return keep(int(text), arguments, context)


def keep(count: int, arguments: Arguments, context: Context) -> int:
    """Keep the ``count`` sessions with the latest events, and those that are open."""
    with open_store(context, write=True) as store, Writer(context.stdout) as out:
        confirmed = arguments.yes
        if count == 0 and not confirmed:
            with store.snapshot() as view:
                found = len(names.session_ids(view))
            if found and context.stdin.isatty() and context.stderr.isatty():
                confirmed = _asked(f"remove all {counted(found, 'session')}? [y/N] ", context)
                if not confirmed:
                    say(context, "nothing was removed")
                    return 0
            confirmed = confirmed or not found
        done = collect(store, count, confirmed=confirmed)
        if arguments.json:
            out.json({"open": done.open, "removed": done.removed})
        else:
            for sid in done.removed:
                out.line(sid)
    say(context, f"removed {counted(len(done.removed), 'session')}")
    for sid in done.open:
        say(context, f"{sid}: is open, and was kept")
    return 0


def _asked(question: str, context: Context) -> bool:
    context.stderr.write(encode(question))
    context.stderr.flush()
    return context.stdin.readline().strip().lower() in (b"y", b"yes")
