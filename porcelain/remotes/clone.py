"""``objstore clone``: a new store with all that another one has."""

from __future__ import annotations

import os
import shutil

from objstore.errors import Conflict, UsageError
from objstore.store import Store
from objstore.sync.exchange import Fetched
from objstore.sync.manifest import Scope
from plumbing.interface.options import JSON, Arguments, Context
from plumbing.interface.output import Writer, counted, printable
from plumbing.interface.settings import key_of
from porcelain.remotes.config import PROGRAM, Remote, add_remote
from porcelain.remotes.transfer import (
    CONTENT,
    DEFAULT,
    PROGRAM_OPTION,
    REFS,
    diverged_lines,
    fetch_over,
    fetched_document,
)
from porcelain.remotes.urls import absolute, open_transport, parse_url

SUMMARY = "make a new store with all that another one has"
USAGE = "clone [--refs PATTERN]... [--content] [--json] URL [DIR]"
OPTIONS = (REFS, CONTENT, PROGRAM_OPTION, JSON)
EXAMPLES = (
    "objstore clone ssh://example.org/srv/objstore",
    "objstore clone backup.objpack ~/restored",
    "objstore clone --content /mnt/stick/store",
)
ARGUMENTS = (1, 2)


def run(arguments: Arguments, context: Context) -> int:
    """Make the store in ``DIR/.objstore``, or where commands look for it; it has an id of its own, and remembers where
    it came from as the remote ``origin``."""
    if len(arguments.args) > 1 and context.store is not None:
        raise UsageError("clone: give DIR or --store, not both", hint="objstore clone --help")
    if len(arguments.args) > 1:
        path = os.path.normpath(os.path.join(context.cwd, arguments.args[1], ".objstore"))
    else:
        path = context.store_path()
    if os.path.exists(os.path.join(path, "data.mdb")):
        raise Conflict(f"{path}: is a store already", hint="objstore fetch brings more into it")
    remote = Remote(
        content=arguments.content,
        patterns=tuple(arguments.refs),
        program=arguments.program or PROGRAM,
        url=absolute(arguments.args[0], context.cwd),
    )
    result = _clone(path, remote, context)
    with Writer(context.stdout) as out:
        if arguments.json:
            out.json(fetched_document(result) | {"path": path})
        else:
            out.line(
                f"{printable(path)}: {counted(result.added, 'object')}, {counted(len(result.moved), 'ref')}"
            )
            for line in diverged_lines(result.diverged):
                out.line(line)
    return 0


def _clone(path: str, remote: Remote, context: Context) -> Fetched:
    """Make the store and fetch into it. Where nothing at all came, no store is left behind; where some did, it can be
    fetched on."""
    with open_transport(remote, context) as transport:
        scope = Scope() if parse_url(remote.url).kind == "bundle" else remote.scope()
        algorithm = transport.hello(scope).hash
        was_there = os.path.isdir(path)
        with Store.init(path, algorithm=algorithm) as store:
            batch = store.batch()
            with store.snapshot() as view:
                add_remote(view, batch, DEFAULT, remote)
            if remote.content:
                batch.set_local(key_of("content.keep"), b"on")
            store.commit(batch)
            try:
                return fetch_over(transport, store, DEFAULT, remote, context, dry_run=False)
            except BaseException:
                with store.snapshot() as view:
                    empty = view.count() == 0
                if empty and not was_there:
                    store.close()
                    shutil.rmtree(path, ignore_errors=True)
                raise
