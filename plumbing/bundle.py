"""``objstore bundle``: packs in files, for a memory stick, an e-mail or a backup."""

from __future__ import annotations

import os

from objstore.errors import UsageError
from plumbing.interface.options import JSON, parse
from plumbing.interface.output import Writer, counted, human_size, say
from plumbing.interface.packing import (
    DRY_RUN,
    SELECTING,
    one_argument,
    pieces_of,
    selection_of,
    take,
    told,
)
from plumbing.interface.stores import open_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from plumbing.interface.options import Arguments, Context

SUMMARY = "Write, check and take in bundles, which are packs in files."
USAGE = """bundle create [--refs PATTERN]... [--not NAME]... [--content] [--json] FILE
bundle verify [--json] FILE
bundle unbundle [--dry-run] [--json] FILE"""
OPTIONS = (*SELECTING, DRY_RUN, JSON)
EXAMPLES = (
    "objstore bundle create backup.objpack",
    "objstore bundle verify backup.objpack",
    "objstore bundle unbundle backup.objpack",
)


def main(argv: Sequence[str], context: Context) -> int:
    """Do what the first word says."""
    arguments = parse(argv, OPTIONS, USAGE, least=1)
    modes = {"create": _create, "verify": _verify, "unbundle": _unbundle}
    mode = arguments.args.pop(0)
    if mode not in modes:
        raise UsageError(f"bundle: {mode[:40]!r}: none of {', '.join(modes)}", hint="objstore bundle --help")
    if mode != "create" and (arguments.refs or arguments.exclude or arguments.content):
        raise UsageError(f"bundle: {mode} takes the whole bundle", hint="objstore bundle --help")
    path = os.path.join(context.cwd, one_argument(f"bundle {mode}", arguments.args, "one FILE"))
    return modes[mode](path, arguments, context)


def _create(path: str, arguments: Arguments, context: Context) -> int:
    from objstore.sync.bundles import write_file

    if arguments.dry_run:
        raise UsageError("bundle: create writes", hint="objstore pack --dry-run says how much it would be")
    with open_store(context) as store, store.snapshot() as view:
        selection = selection_of(view, arguments)
        size = write_file(path, pieces_of(view, selection, store))
    if arguments.json:
        with Writer(context.stdout) as out:
            out.json({"bytes": size, "objects": len(selection.order), "refs": len(selection.refs)})
    say(
        context,
        f"{counted(len(selection.order), 'object')} and {counted(len(selection.refs), 'ref')} "
        f"in {human_size(size)}",
    )
    return 0


def _verify(path: str, arguments: Arguments, context: Context) -> int:
    """Check all that can be checked without a store; with one, also that it has what the bundle presumes."""
    from objstore.pack.checking import PackCheck
    from objstore.pack.reader import PackReader
    from objstore.sync.bundles import FileSource

    with FileSource(path) as file:
        reader = PackReader(file)
        presumed, refs = reader.presumed(), reader.refs()
        check = PackCheck(presumed, take_content=True)
        for group in reader.entries():
            check.check(group)
        identity = reader.finish().hex()
    with Writer(context.stdout) as out:
        if arguments.json:
            out.json(
                {
                    "content": reader.header.content,
                    "identity": identity,
                    "objects": reader.header.entries,
                    "presumes": [key.hex() for key in presumed],
                    "refs": {name: key.hex() for name, key in refs},
                }
            )
        else:
            for name, key in refs:
                out.line(f"{key.hex()} {name}")
    needs = f"; the receiver must have {counted(len(presumed), 'object')}" if presumed else ""
    say(context, f"{counted(reader.header.entries, 'object')}, all sound{needs}")
    return 0


def _unbundle(path: str, arguments: Arguments, context: Context) -> int:
    from objstore.sync.bundles import FileSource

    with open_store(context, write=True) as store, FileSource(path) as file:
        received = take(store, file, context, dry_run=arguments.dry_run, why="unbundle")
    told(context, arguments, received)
    return 0
