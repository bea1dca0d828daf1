"""The program ``objstore``: options before the command, dispatch, and what becomes of an error.

Plumbing is called straight from here, porcelain through ``porcelain.cli``. No module is loaded before it is needed.
"""

from __future__ import annotations

import os
import sys

from objstore.errors import ObjstoreError
from plumbing.interface.options import GLOBAL_OPTIONS, Context, HelpWanted, format_help, parse
from plumbing.interface.output import encode, printable
from porcelain.commands import PLUMBING, VERSION, find, help_text, load, unknown_command, words_after

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

#: Exit codes by which a shell reports a program that SIGINT or SIGPIPE ended.
INTERRUPTED = 130
BROKEN_PIPE = 141
UNREADABLE = 5
NOT_FOUND = 3
USAGE = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (without the program's name) and return its exit code.

    An error becomes a line on standard error and an exit code; with ``OBJSTORE_DEBUG`` set it keeps its traceback.
    """
    try:
        code = _run(sys.argv[1:] if argv is None else argv)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return _report("interrupted", None, INTERRUPTED)
    except BrokenPipeError:
        _abandon_output()
        return BROKEN_PIPE
    except Exception as error:
        if os.environ.get("OBJSTORE_DEBUG"):
            raise
        return _report(*_explain(error))


def _run(argv: Sequence[str]) -> int:
    """Read what stands before the command, then run the command."""
    context = Context()
    try:
        options = parse(argv, GLOBAL_OPTIONS, "", leading=True)
    except HelpWanted:
        context.stdout.write(encode(help_text()))
        return 0
    if options.version:
        context.stdout.write(f"objstore {VERSION}\n".encode())
        return 0
    if not options.args:
        context.stderr.write(encode(help_text()))
        return USAGE
    context.store, context.quiet, context.lock_timeout = options.store, options.quiet, options.lock_timeout
    if options.directory is None:
        return _dispatch(options.args, context)
    before = context.cwd
    os.chdir(options.directory)
    try:
        context.cwd = os.getcwd()
        return _dispatch(options.args, context)
    finally:
        os.chdir(before)


def _dispatch(words: list[str], context: Context) -> int:
    """Run the command that ``words`` begin with."""
    command = find(words[0])
    if command is None and words[0] not in words_after():
        raise unknown_command("", words[0])
    if command is None or command.layer != PLUMBING:
        from porcelain.cli import run

        return run(words, context)
    module = load(command)
    try:
        return int(module.main(words[1:], context))
    except HelpWanted:
        context.stdout.write(encode(format_help(module)))
        return 0


def _explain(error: Exception) -> tuple[str, str | None, int]:
    """What to tell a person about ``error``, a hint, and the exit code.

    Of an error that nobody expected only its type and place are told: its text might quote a conversation.
    """
    if isinstance(error, ObjstoreError):
        return error.message, error.hint, error.exit_code
    if isinstance(error, OSError):
        reason = error.strerror or type(error).__name__
        names = [
            os.fsdecode(name) for name in (error.filename, error.filename2) if isinstance(name, (str, bytes))
        ]
        return (
            ": ".join([*names, reason]),
            None,
            NOT_FOUND if isinstance(error, FileNotFoundError) else UNREADABLE,
        )
    if isinstance(error, MemoryError):
        return "out of memory", None, UNREADABLE
    if isinstance(error, RecursionError):
        return "the input is nested too deeply", None, UNREADABLE
    if "lmdb" in sys.modules and isinstance(error, sys.modules["lmdb"].Error):
        from objstore.damage import RESTORE

        return f"the store's database is damaged or cannot be read: {error}", RESTORE, UNREADABLE
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f" in {trace.tb_frame.f_globals.get('__name__')}:{trace.tb_lineno}" if trace is not None else ""
    return f"internal error: {type(error).__name__}{place}", "OBJSTORE_DEBUG=1 shows where", UNREADABLE


def _report(message: str, hint: str | None, code: int) -> int:
    """Say what went wrong, one line and at most one hint, and return ``code``."""
    text = f"objstore: {printable(message)}\n" + (f"hint: {printable(hint)}\n" if hint else "")
    try:
        sys.stdout.flush()
    except OSError:
        _abandon_output()
    try:
        sys.stderr.buffer.write(encode(text))
        sys.stderr.flush()
    except (OSError, AttributeError):
        return code  # nobody is listening
    return code


def _abandon_output() -> None:
    """Send what is still buffered for standard output nowhere, so that Python's exit does not fail on it again."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError, AttributeError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


if __name__ == "__main__":
    sys.exit(main())
