"""Porcelain commands as click commands, built from the same option tables as plumbing, each loaded when it is run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import click

from objstore.errors import UsageError
from plumbing.options import HELP, Arguments, Context, Option, format_help
from porcelain.commands import Command, find, help_text, load, unknown_command, words_after

_TYPES: dict[str, click.ParamType[Any]] = {
    "integer": click.IntRange(min=0),
    "seconds": click.FloatRange(min=0),
}


def run(words: Sequence[str], context: Context) -> int:
    """Run the porcelain command that ``words`` name and return its exit code; raises what the command raises."""
    try:
        with Group("").make_context("objstore", list(words), obj=context) as root:
            return int(root.command.invoke(root) or 0)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.UsageError as error:
        name = _name(words)
        raise UsageError(f"{name}: {error.format_message()}", hint=f"objstore {name} --help") from None


def _name(words: Sequence[str]) -> str:
    """The part of ``words`` that names a command or a group."""
    both = " ".join(words[:2])
    return both if find(both) else words[0]


class Group(click.Group):
    """The commands whose names begin with ``prefix``, from the static table.

    Where the table has a command of that very name as well, the group runs it when no other word follows.
    """

    def __init__(self, prefix: str) -> None:
        own = find(prefix)
        module = load(own) if own is not None else None
        super().__init__(
            name=prefix.rpartition(" ")[2] or "objstore",
            context_settings={"help_option_names": list(HELP.flags)},
            no_args_is_help=False,
            invoke_without_command=own is not None,
            callback=_own_command(own, module) if own is not None and module is not None else None,
            params=click_options(module.OPTIONS) if module is not None else [],
        )
        self.prefix = prefix

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(words_after(self.prefix))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = f"{self.prefix} {cmd_name}".strip()
        if words_after(name):
            return Group(name)
        command = find(name)
        return table_command(command) if command is not None else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        command = self.get_command(ctx, args[0])
        if command is None:
            raise unknown_command(self.prefix, args[0])
        return args[0], command, args[1:]

    def get_help(self, ctx: click.Context) -> str:
        return help_text(self.prefix).rstrip("\n")


def _own_command(command: Command, module: ModuleType) -> Callable[..., int]:
    """What a group does by itself: nothing before one of its commands, else what ``command`` says."""
    function = getattr(module, command.target.partition(":")[2])

    @click.pass_context
    def call(ctx: click.Context, /, **values: Any) -> int:
        arguments = _arguments(module, (), values)
        if ctx.invoked_subcommand is None:
            return int(function(arguments, ctx.obj))
        untouched = Arguments(module.OPTIONS)
        if any(getattr(arguments, one.dest) != getattr(untouched, one.dest) for one in module.OPTIONS):
            raise click.UsageError(f"options stand behind {ctx.invoked_subcommand!r}")
        return 0

    return call


class TableCommand(click.Command):
    """A click command whose help is the one text that all commands have."""

    def __init__(self, module: ModuleType, **settings: Any) -> None:
        super().__init__(context_settings={"help_option_names": list(HELP.flags)}, **settings)
        self.module = module

    def get_help(self, ctx: click.Context) -> str:
        return format_help(self.module).rstrip("\n")


def table_command(command: Command) -> click.Command:
    """The click command for a row of the table: the ``OPTIONS`` of its module, and its function called with what was
    typed.

    ``ARGUMENTS``, where the module has it, holds the least and the greatest number of arguments (None: no bound).
    """
    module = load(command)
    function = getattr(module, command.target.partition(":")[2])
    least, most = getattr(module, "ARGUMENTS", (0, None))

    @click.pass_obj
    def call(context: Context, /, args: tuple[str, ...], **values: Any) -> int:
        if len(args) < least:
            raise click.UsageError("too few arguments")
        if most is not None and len(args) > most:
            raise click.UsageError(f"unexpected argument {args[most]!r}")
        return int(function(_arguments(module, args, values), context))

    return TableCommand(
        module,
        name=command.name.rpartition(" ")[2],
        callback=call,
        params=[*click_options(module.OPTIONS), click.Argument(["args"], nargs=-1, type=click.UNPROCESSED)],
    )


def _arguments(module: ModuleType, args: Sequence[str], values: Mapping[str, Any]) -> Arguments:
    """What click read, as the ``Arguments`` that commands are given."""
    arguments = Arguments(module.OPTIONS)
    arguments.args = list(args)
    for name, value in values.items():
        setattr(arguments, name, list(value) if isinstance(value, tuple) else value)
    return arguments


def click_options(options: Sequence[Option]) -> list[click.Option]:
    """The table ``options`` as click's."""
    return [
        click.Option(
            [*option.flags, option.dest],
            is_flag=option.kind == "flag",
            type=None if option.kind == "flag" else _click_type(option),
            multiple=option.many,
            default=() if option.many else option.default,
            metavar=option.metavar,
            help=option.help,
        )
        for option in options
    ]


def _click_type(option: Option) -> click.ParamType[Any]:
    if option.kind == "choice":
        return click.Choice(option.choices)
    return _TYPES.get(option.kind, click.STRING)
