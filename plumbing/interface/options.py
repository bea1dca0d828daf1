"""What a command is given: its options, declared in one table, and the context it runs in.

A command module holds ``SUMMARY`` (one line), ``USAGE`` (one line a mode, without the program's name),
``OPTIONS`` (a tuple of ``Option``) and ``EXAMPLES`` (command lines). From that table come the parser here, the
``--help`` text and shell completion. Nothing but ``sys`` and ``os`` is loaded, so that a command that serves one
object starts about as fast as Python itself.
"""

from __future__ import annotations

import os
import sys

from objstore.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType
    from typing import Any, BinaryIO

#: What the value of an option is: checked by ``parse``, and what completion offers for it.
KINDS = ("flag", "text", "integer", "seconds", "choice", "file", "directory", "ref", "id")


class Option:
    """One option: ``flags`` as typed, ``dest`` the attribute that receives it, ``kind`` one of ``KINDS``.

    A ``flag`` takes no value and defaults to False; every other kind takes one, shown as ``metavar``, and defaults to
    None, or to an empty list when it may be given ``many`` times. ``choices`` lists the words of a ``choice``.
    """

    __slots__ = ("choices", "default", "dest", "flags", "help", "kind", "many", "metavar")

    def __init__(
        self,
        flags: str | tuple[str, ...],
        dest: str = "",
        metavar: str = "",
        help: str = "",
        kind: str = "flag",
        *,
        choices: tuple[str, ...] = (),
        default: Any = None,
        many: bool = False,
    ) -> None:
        self.flags = (flags,) if isinstance(flags, str) else flags
        self.dest = dest or self.flags[-1].lstrip("-").replace("-", "_")
        self.kind = kind
        self.choices = choices
        self.metavar = metavar or ("|".join(choices) if choices else kind.upper())
        self.help = help
        self.many = many
        self.default = False if kind == "flag" else default

    @property
    def label(self) -> str:
        """How help shows it: ``-m, --message TEXT``."""
        flags = ", ".join(self.flags)
        return flags if self.kind == "flag" else f"{flags} {self.metavar}"


#: Options that several commands share, so that they are called the same everywhere.
JSON = Option("--json", help="print JSON, one object a line")
NUL = Option(("-z", "--null"), "null", help="end names and lines with NUL, in and out")
HELP = Option(("-h", "--help"), "help", help="show this help")

#: What may stand before the command.
GLOBAL_OPTIONS = (
    Option("--store", "store", "DIR", "use the store in DIR", "directory"),
    Option("-C", "directory", "DIR", "run as if started in DIR", "directory"),
    Option(
        "--lock-timeout",
        "lock_timeout",
        "SECONDS",
        "wait this long for a locked store (10)",
        "seconds",
        default=10.0,
    ),
    Option(("-q", "--quiet"), "quiet", help="no progress, no remarks"),
    Option("--version", "version", help="print the version"),
    HELP,
)


class Arguments:
    """What was typed: one attribute an option, and ``args``, the rest in order."""

    def __init__(self, options: Sequence[Option]) -> None:
        self.args: list[str] = []
        for option in options:
            setattr(self, option.dest, [] if option.many else option.default)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


class HelpWanted(Exception):
    """``--help`` was among the arguments."""


def parse(
    argv: Sequence[str],
    options: Sequence[Option],
    usage: str,
    *,
    least: int = 0,
    most: int | None = None,
    leading: bool = False,
) -> Arguments:
    """Read ``argv`` (what follows the command's name) by the table ``options``.

    ``--opt VALUE``, ``--opt=VALUE``, ``-oVALUE`` and joined short flags are understood; ``--`` ends the options, ``-``
    is an argument. ``least`` and ``most`` bound the number of arguments; with ``leading`` the first argument ends the
    options. Raises ``UsageError`` and, for ``--help``, ``HelpWanted``.
    """
    table = {flag: option for option in (*options, HELP) for flag in option.flags}
    result = Arguments(options)
    rest = list(reversed(argv))
    while rest:
        word = rest.pop()
        if word == "--":
            break
        if len(word) < 2 or word[0] != "-":
            result.args.append(word)
            if leading:
                break
            continue
        if word.startswith("--"):
            flag, equals, value = word.partition("=")
        else:
            flag, equals, value = word[:2], "", word[2:]
        option = table.get(flag)
        if option is None:
            raise _unknown_option(flag, table, usage)
        if option is HELP:
            raise HelpWanted
        if option.kind == "flag":
            if equals:
                raise _usage_error(usage, f"{flag} takes no value")
            if value:
                rest.append("-" + value)
            setattr(result, option.dest, True)
            continue
        if not equals and not value:
            if not rest:
                raise _usage_error(usage, f"{flag} needs a value: {option.metavar}")
            value = rest.pop()
        checked = _checked(value, option, flag, usage)
        if option.many:
            getattr(result, option.dest).append(checked)
        else:
            setattr(result, option.dest, checked)
    result.args.extend(reversed(rest))
    if len(result.args) < least:
        raise _usage_error(usage, "too few arguments")
    if most is not None and len(result.args) > most:
        raise _usage_error(usage, f"unexpected argument {result.args[most]!r}")
    return result


def _checked(value: str, option: Option, flag: str, usage: str) -> Any:
    """``value`` as the type of ``option.kind``."""
    if option.kind == "choice" and value not in option.choices:
        raise _usage_error(usage, f"{flag}: {value!r} is none of {', '.join(option.choices)}")
    if option.kind == "integer":
        if not (value.isascii() and value.isdigit() and len(value) < 19):
            raise _usage_error(usage, f"{flag}: {value!r} is not a whole number")
        return int(value)
    if option.kind == "seconds":
        try:
            seconds = float(value)
        except ValueError:
            seconds = -1.0
        if not 0 <= seconds < 1e9:
            raise _usage_error(usage, f"{flag}: {value!r} is not a number of seconds")
        return seconds
    return value


def _unknown_option(flag: str, table: Mapping[str, Option], usage: str) -> UsageError:
    if command_name(usage) and any(flag in option.flags for option in GLOBAL_OPTIONS):
        return _usage_error(usage, f"{flag} stands before the command")
    import difflib

    near = difflib.get_close_matches(flag, table, n=1)
    return _usage_error(usage, f"unknown option {flag}" + (f": did you mean {near[0]}?" if near else ""))


def _usage_error(usage: str, what: str) -> UsageError:
    name = command_name(usage)
    program = f"objstore {name}" if name else "objstore"
    return UsageError(f"{name}: {what}" if name else what, hint=f"{program} --help")


def command_name(usage: str) -> str:
    """The words that ``usage`` begins with: ``flow show`` of ``flow show [--json] ID``."""
    words = []
    for word in usage.partition("\n")[0].split():
        if word[0] == "-" or not (word.islower() and word.replace("-", "").isalpha()):
            break
        words.append(word)
    return " ".join(words)


def format_options(options: Sequence[Option]) -> str:
    """The options of a table, one a line, in two columns."""
    width = max((len(option.label) for option in options), default=0)
    return "".join(f"  {option.label:<{width}}  {option.help}\n" for option in options)


def format_help(command: ModuleType) -> str:
    """The ``--help`` text of a command module."""
    usage = command.USAGE.strip().splitlines()
    lines = [
        ("usage: " if n == 0 else "       ") + f"objstore {line.strip()}\n" for n, line in enumerate(usage)
    ]
    text = "".join(lines) + f"\n{command.SUMMARY}\n\noptions:\n" + format_options((*command.OPTIONS, HELP))
    if command.EXAMPLES:
        text += "\nexamples:\n" + "".join(f"  {line}\n" for line in command.EXAMPLES)
    return text


def find_store(explicit: str | None, cwd: str, env: Mapping[str, str]) -> str:
    """The folder of the store to use: ``--store``, ``OBJSTORE_DIR``, the nearest ``.objstore/`` at or above ``cwd``,
    else the user's own under the platform's data directory. Absolute; it need not exist. The first two may name the
    folder that ``.objstore/`` is in.

    A string and no ``Path``: loading ``pathlib`` costs half as much as starting Python.
    """
    chosen = explicit or env.get("OBJSTORE_DIR")
    if chosen:
        folder = os.path.normpath(os.path.join(cwd, chosen))
        inside = os.path.join(folder, ".objstore")
        is_store = os.path.isfile(os.path.join(folder, "data.mdb")) or not os.path.isdir(inside)
        return folder if is_store else inside
    folder = os.path.normpath(cwd)
    while True:
        candidate = os.path.join(folder, ".objstore")
        if os.path.isdir(candidate):
            return candidate
        parent = os.path.dirname(folder)
        if parent == folder:
            break
        folder = parent
    if sys.platform == "linux":
        # What platformdirs would say, without the quarter of a start-up that loading it takes.
        data = env.get("XDG_DATA_HOME") or ""
        home = env.get("HOME")
        if not data.strip() and home:
            data = os.path.join(home, ".local", "share")
        if data:
            return os.path.join(data, "objstore", "store")
    from platformdirs import user_data_dir

    return os.path.join(user_data_dir("objstore", appauthor=False), "store")


def _bytes_of(stream: Any, mode: str) -> BinaryIO:
    """The bytes of a standard stream. One that the caller has closed is replaced, so that no file of the store gets
    its descriptor and is written to by mistake."""
    data: Any = open(os.devnull, mode) if stream is None else stream.buffer  # noqa: SIM115
    return data  # type: ignore[no-any-return]


class Context:
    """What a command runs with. ``stdin``, ``stdout`` and ``stderr`` carry bytes; ``lock_timeout`` is in seconds."""

    __slots__ = ("cwd", "env", "lock_timeout", "quiet", "stderr", "stdin", "stdout", "store")

    def __init__(
        self,
        *,
        store: str | None = None,
        lock_timeout: float = 10.0,
        quiet: bool = False,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdin: BinaryIO | None = None,
        stdout: BinaryIO | None = None,
        stderr: BinaryIO | None = None,
    ) -> None:
        self.store = store
        self.lock_timeout = lock_timeout
        self.quiet = quiet
        self.env = os.environ if env is None else env
        self.cwd = cwd or os.getcwd()
        self.stdin = stdin or _bytes_of(sys.stdin, "rb")
        self.stdout = stdout or _bytes_of(sys.stdout, "wb")
        self.stderr = stderr or _bytes_of(sys.stderr, "wb")

    def store_path(self) -> str:
        """The folder of the store this command works on; see ``find_store``."""
        return find_store(self.store, self.cwd, self.env)
