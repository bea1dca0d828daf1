"""``objstore remote add``: remember the place of another store under a name."""

from __future__ import annotations

from plumbing.options import Arguments, Context
from plumbing.stores import open_store
from porcelain.remotes.config import PROGRAM, Remote, add_remote
from porcelain.remotes.ssh import parse_ssh
from porcelain.remotes.transfer import CONTENT, PROGRAM_OPTION, REFS
from porcelain.remotes.urls import absolute, parse_url

SUMMARY = "remember the place of another store under a name"
USAGE = "remote add [--refs PATTERN]... [--content] [--program PROGRAM] NAME URL"
OPTIONS = (REFS, CONTENT, PROGRAM_OPTION)
EXAMPLES = (
    "objstore remote add laptop ssh://laptop.example.org/~/.objstore",
    "objstore remote add stick /mnt/stick/store --refs 'session/*'",
)
ARGUMENTS = (2, 2)


def run(arguments: Arguments, context: Context) -> int:
    """Remember it; nothing is exchanged yet."""
    name, url = arguments.args
    if parse_url(url).kind == "ssh":
        parse_ssh(url)
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
        store.commit(batch)
    return 0
