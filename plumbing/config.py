"""``objstore config``: settings of a store, kept on this machine with it."""

from __future__ import annotations

from objstore.errors import NotFound, UsageError
from plumbing.interface.options import JSON, NUL, Option, parse
from plumbing.interface.output import Writer
from plumbing.interface.settings import SETTINGS, key_of, setting
from plumbing.interface.stores import open_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from plumbing.interface.options import Context

SUMMARY = "Read or change the settings of the store."
USAGE = """config [--json] [-z] NAME
config [--json] NAME VALUE
config [--json] --unset NAME
config --list [--json] [-z]"""
OPTIONS = (
    Option("--unset", help="forget the value of NAME"),
    Option("--list", help="print all settings"),
    JSON,
    NUL,
)
EXAMPLES = (
    "objstore config content.keep on",
    "objstore config user.name 'Ada Example'",
    "objstore config --list",
)


def main(argv: Sequence[str], context: Context) -> int:
    """Print a setting, or all, or change one."""
    arguments = parse(argv, OPTIONS, USAGE)
    if arguments.list:
        if arguments.args or arguments.unset:
            raise UsageError("config: --list takes no name", hint="objstore config --help")
        name, value = "", None
    else:
        name, value = _split(arguments.args)
    if arguments.unset or value is not None:
        if arguments.unset and value is not None:
            raise UsageError("config: --unset takes no value", hint="objstore config --help")
        stored = None if value is None else SETTINGS[name][0](value).encode()
        with open_store(context, write=True) as store:
            batch = store.batch()
            batch.set_local(key_of(name), stored)
            store.commit(batch)
        if arguments.json:
            with Writer(context.stdout) as out:
                out.json({"name": name, "value": None if stored is None else stored.decode()})
        return 0
    with (
        open_store(context) as store,
        store.snapshot() as view,
        Writer(context.stdout, null=arguments.null) as out,
    ):
        for one in SETTINGS if arguments.list else (name,):
            found = setting(view, one)
            if found is None:
                if arguments.list:
                    continue
                raise NotFound(f"{one}: not set", hint=f"objstore config {one} VALUE")
            if arguments.json:
                out.json({"name": one, "value": found})
            else:
                out.line(f"{one}={found}" if arguments.list else found)
    return 0


def _split(words: list[str]) -> tuple[str, str | None]:
    """Name and value of what was typed: ``content.keep on`` and ``content keep on`` are the same."""
    if words and "." not in words[0] and len(words) > 1:
        words = [f"{words[0]}.{words[1]}", *words[2:]]
    if not words or len(words) > 2:
        what = "unexpected argument " + repr(words[2]) if words else "too few arguments"
        raise UsageError(f"config: {what}", hint="objstore config --help")
    if words[0] not in SETTINGS:
        raise UsageError(f"config: {words[0][:80]}: no such setting", hint="settings: " + " ".join(SETTINGS))
    return words[0], words[1] if len(words) > 1 else None
