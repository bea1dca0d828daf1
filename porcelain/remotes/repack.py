"""``objstore remote repack``: merge the small packs of a hub, as pushes do by themselves when they are too many."""

from __future__ import annotations

from objstore.errors import UsageError
from plumbing.interface.options import JSON, Arguments, Context
from plumbing.interface.output import Writer, counted, printable
from plumbing.interface.stores import open_store
from porcelain.remotes.config import pusher
from porcelain.remotes.transfer import named_remote
from porcelain.remotes.urls import is_hub, open_transport, shown

SUMMARY = "merge the small packs of a hub, so that it takes fewer requests to fetch them"
USAGE = "remote repack [--json] [REMOTE]"
OPTIONS = (JSON,)
EXAMPLES = ("objstore remote repack hub",)
ARGUMENTS = (0, 1)


def run(arguments: Arguments, context: Context) -> int:
    """Merge those of the remote that was named, or of the one there is."""
    with open_store(context) as store, Writer(context.stdout) as out:
        with store.snapshot() as view:
            name, remote = named_remote(view, arguments)
        if not is_hub(remote.url):
            raise UsageError(
                f"{shown(remote.url)}: is no hub, and keeps no packs",
                hint="hubs are buckets, and branches of git",
            )
        from porcelain.remotes.hub.transport import HubTransport

        with open_transport(remote, context, pusher(store)) as transport:
            assert isinstance(transport, HubTransport)
            packs, into = transport.merge()
        if arguments.json:
            out.json({"into": into, "packs": packs})
        elif packs:
            out.line(f"{printable(name or shown(remote.url))}: {counted(packs, 'pack')} merged into {into}")
        else:
            out.line(f"{printable(name or shown(remote.url))}: nothing to merge")
    return 0
