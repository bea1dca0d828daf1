"""``objstore flow export``: the landed files and rounds of conversations, in the published folder layout."""

from __future__ import annotations

from pathlib import Path

from objstore.errors import CheckFailed, Conflict, NotFound, UsageError
from objstore.snapshot import Snapshot
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Progress, Writer, counted, encode, printable, say
from plumbing.interface.stores import open_store
from porcelain.flow.chain.naming import find_conversation
from porcelain.flow.folders.export_chain import Chain, all_tellings, pick_chain
from porcelain.flow.folders.export_folder import Exported, export_chain, export_text

SUMMARY = "write conversations as .sd and .sf files"
USAGE = """flow export [--text] [--origin ORIGIN] [--json] ID... DIR
           flow export --all [--text] [--origin ORIGIN] [--json] DIR"""
OPTIONS = (
    Option("--all", help="every conversation of the store"),
    Option("--text", help="with the text that the store keeps, as a chain of its own"),
    Option("--origin", "origin", "ORIGIN", "the telling of this store or origin, not the longest", "text"),
    JSON,
)
EXAMPLES = (
    "objstore flow export 3f2a sessions",
    "objstore flow export --text 3f2a readable",
    "objstore flow export --all sessions",
)
ARGUMENTS = (1, None)


def run(arguments: Arguments, context: Context) -> int:
    """Write what is not there yet, and say what that was; with ``--all`` go on behind a conversation that cannot be
    written, and exit as it would have."""
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
    failed = 0
    with open_store(context) as store, store.snapshot() as view:
        chains = _chains(view, ids, arguments.origin)
        with Progress(context, "flow export", total=len(chains)) as progress, Writer(context.stdout) as out:
            for chain in chains:
                try:
                    exported = (export_text if arguments.text else export_chain)(view, chain, root)
                except (CheckFailed, Conflict, UsageError) as error:
                    if not arguments.all:
                        raise
                    failed = max(failed, error.exit_code)
                    context.stderr.write(encode(printable(f"objstore: {error.message}")) + b"\n")
                    continue
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
        without = sum(one.without for one in done)
        if without:
            say(context, f"{counted(without, 'text')} not kept: they stand as hashes")
    return failed


def _chains(view: Snapshot, ids: list[str], origin: str | None) -> list[Chain]:
    """The tellings to export: those of the conversations ``ids``, or of all."""
    if ids:
        return [pick_chain(view, *find_conversation(view, text), origin) for text in ids]
    tellings = all_tellings(view).values()
    if not tellings:
        raise NotFound("the store holds no conversation yet", hint="objstore import")
    near = (chain for chains in tellings for chain in chains if chain.origin.startswith(origin or ""))
    chosen: dict[tuple[str, str], Chain] = {}
    for chain in near:
        chosen.setdefault((chain.provider, chain.name), chain)
    return list(chosen.values())


def _document(chain: Chain, exported: Exported) -> dict[str, object]:
    return {
        "conversation": chain.conversation,
        "landed": exported.landed,
        "new": exported.new,
        "origin": chain.origin,
        "provider": chain.provider,
        "rounds": exported.rounds,
        "withoutText": exported.without,
    }
