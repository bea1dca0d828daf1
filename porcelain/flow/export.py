"""``objstore flow export``: the landed files and rounds of conversations, in the published folder layout."""

from __future__ import annotations

from pathlib import Path

from objstore.errors import NotFound, UsageError
from plumbing.options import JSON, Arguments, Context, Option
from plumbing.output import Progress, Writer, counted, say
from plumbing.stores import open_store
from porcelain.flow.export_chain import Chain, pick_chain
from porcelain.flow.export_folder import Exported, export_chain
from porcelain.flow.store import all_chains, find_conversation

SUMMARY = "write conversations as .sd and .sf files"
USAGE = """flow export [--origin ORIGIN] [--json] ID... DIR
           flow export --all [--json] DIR"""
OPTIONS = (
    Option("--all", help="every conversation of the store"),
    Option("--origin", "origin", "ORIGIN", "the telling of this store or origin, not the longest", "text"),
    JSON,
)
EXAMPLES = ("objstore flow export 3f2a sessions", "objstore flow export --all sessions")
ARGUMENTS = (1, None)


def run(arguments: Arguments, context: Context) -> int:
    """Write what is not there yet, and say what that was."""
    *ids, folder = arguments.args
    if bool(ids) == arguments.all:
        raise UsageError(
            "flow export: name conversations and a folder, or give --all and a folder",
            hint="objstore flow export --help",
        )
    root = Path(context.cwd) / folder
    if root.exists() and not root.is_dir():
        raise UsageError(f"{folder}: is not a folder")
    done: list[Exported] = []
    with open_store(context) as store, store.snapshot() as view:
        if arguments.all:
            names = sorted({(provider, name) for _, provider, name in all_chains(view)})
            if not names:
                raise NotFound("the store holds no conversation yet", hint="objstore import")
        else:
            names = [find_conversation(view, text) for text in ids]
        with Progress(context, "flow export", total=len(names)) as progress, Writer(context.stdout) as out:
            for provider, name in names:
                chain = pick_chain(view, provider, name, arguments.origin)
                exported = export_chain(view, chain, root)
                done.append(exported)
                progress.advance()
                if arguments.json:
                    out.json(_document(chain, exported))
    if not arguments.json:
        say(
            context,
            f"{folder}: {counted(len(done), 'conversation')}, "
            f"{counted(sum(one.landed for one in done), 'landed file')}, "
            f"{counted(sum(one.rounds for one in done), 'round')}; {sum(one.new for one in done):,} new",
        )
    return 0


def _document(chain: Chain, exported: Exported) -> dict[str, object]:
    return {
        "conversation": chain.conversation,
        "landed": exported.landed,
        "new": exported.new,
        "origin": chain.origin,
        "provider": chain.provider,
        "rounds": exported.rounds,
    }
