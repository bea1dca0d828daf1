"""Porcelain commands: the groups that their names lie in, and their arguments read by the parser that plumbing has."""

from __future__ import annotations

from objstore.errors import UsageError
from plumbing.interface.options import Arguments, HelpWanted, format_help, parse
from plumbing.interface.output import encode
from porcelain.commands import find, help_text, load, unknown_command, words_after

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from plumbing.interface.options import Context
    from porcelain.commands import Command


def run(words: Sequence[str], context: Context) -> int:
    """Run the porcelain command that ``words`` begin with and return its exit code; raises what the command raises."""
    name, rest = words[0], words[1:]
    while following := words_after(name):
        own = find(name)
        module = load(own) if own is not None else None
        options = module.OPTIONS if module is not None else ()
        try:
            before = parse(rest, options, name, leading=True)
        except HelpWanted:
            return _help(help_text(name), context)
        if not before.args:
            if own is None or module is None:
                raise UsageError(f"{name}: which command?", hint=f"objstore {name} --help")
            return _call(own, module, before, context)
        word, *rest = before.args
        if vars(before) != {**vars(Arguments(options)), "args": before.args}:
            raise UsageError(f"{name}: options stand behind {word!r}", hint=f"objstore {name} --help")
        if word not in following:
            raise unknown_command(name, word)
        name = f"{name} {word}"
    command = find(name)
    if command is None:
        raise unknown_command("", name)
    module = load(command)
    least, most = getattr(module, "ARGUMENTS", (0, None))
    try:
        arguments = parse(rest, module.OPTIONS, name, least=least, most=most)
    except HelpWanted:
        return _help(format_help(module), context)
    return _call(command, module, arguments, context)


def _call(command: Command, module: ModuleType, arguments: Arguments, context: Context) -> int:
    return int(getattr(module, command.target.partition(":")[2])(arguments, context))


def _help(text: str, context: Context) -> int:
    context.stdout.write(encode(text))
    return 0
