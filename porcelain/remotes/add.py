"""``objstore remote add``: remember the place of another store under a name."""

from __future__ import annotations

from objstore.errors import StorageError
from plumbing.interface.options import Arguments, Context
from plumbing.interface.output import say
from plumbing.interface.stores import open_store
from porcelain.remotes.config import PROGRAM, Remote, add_remote
from porcelain.remotes.transfer import CONTENT, PROGRAM_OPTION, REFS
from porcelain.remotes.urls import absolute, check_remote, shown

SUMMARY = "remember the place of another store under a name"
USAGE = "remote add [--refs PATTERN]... [--content] [--program PROGRAM] NAME URL"
OPTIONS = (REFS, CONTENT, PROGRAM_OPTION)
EXAMPLES = (
    "objstore remote add laptop ssh://laptop.example.org/~/.objstore",
    "objstore remote add stick /mnt/stick/store --refs 'session/*'",
)
ARGUMENTS = (2, 2)


def run(arguments: Arguments, context: Context) -> int:
    """Remember it; nothing is exchanged yet. A place found unfit is refused, one that cannot be asked is not."""
    name, url = arguments.args
    remote = Remote(
        content=arguments.content,
        patterns=tuple(arguments.refs),
        program=arguments.program or PROGRAM,
        url=absolute(url, context.cwd),
    )
    with open_store(context, write=True) as store:
        batch = store.batch()
        with store.snapshot() as view:
            add_remote(view, batch, name, remote)
        try:
            check_remote(remote, context)
        except StorageError as error:
            say(context, f"{shown(url)}: not looked at: {error.message}; it will be before the first push")
        store.commit(batch)
    return 0
