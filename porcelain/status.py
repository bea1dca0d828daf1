"""``objstore status``: what the store holds, and what is new on disk."""

from __future__ import annotations

from plumbing.interface.options import JSON, Option
from plumbing.interface.output import Writer, counted, human_size, table, terminal_width
from plumbing.interface.settings import keeps_content
from plumbing.interface.stores import open_store
from porcelain.providers.agents import PROVIDERS, TITLES, roots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from objstore.snapshot import Snapshot
    from objstore.store import Store
    from plumbing.interface.options import Arguments, Context
    from porcelain.importing.plan import Place

SUMMARY = "what the store holds and what is new on disk"
USAGE = "status [--no-scan] [--json]"
OPTIONS = (Option("--no-scan", "no_scan", help="do not look at the agents' folders"), JSON)
EXAMPLES = ("objstore status", "objstore status --json")
ARGUMENTS = (0, 0)


def run(arguments: Arguments, context: Context) -> int:
    """Say what is here, agent by agent, and what an import would bring."""
    with open_store(context) as store:
        agents = _agents(store)
        with store.snapshot() as view:
            keep = keeps_content(view)
            objects = view.count()
            places = [] if arguments.no_scan else _places(view, store, context, keep=keep)
        size = store.database.sizes()["size_disk"]  # type: ignore[union-attr]
        path = store.database.path  # type: ignore[union-attr]
    waiting = [
        {
            "changedFiles": p.changed_files,
            "conversations": len(p.tasks),
            "provider": p.provider,
            "root": p.root,
        }
        for p in places
        if p.tasks
    ]
    with Writer(context.stdout) as out:
        if arguments.json:
            out.json(
                {
                    "agents": agents,
                    "contentKept": keep,
                    "objects": objects,
                    "sizeOnDisk": size,
                    "store": path,
                    "waiting": waiting,
                }
            )
            return 0
        out.line(f"store {path}")
        kept = (
            "message text is kept" if keep else "message text is not kept (objstore config content.keep on)"
        )
        out.line(f"{counted(objects, 'object')}, {human_size(size)} on disk; {kept}")
        out.line("")
        if agents:
            header = ("agent", "conversations", "records", "files", "gone", "damaged", "rewritten")
            cells = [
                (TITLES.get(name, name), *(f"{n:,}" for n in counts.values()))
                for name, counts in sorted(agents.items())
            ]
            width = terminal_width(context.stdout, context.env)
            for line in table(cells, header, width=width, right=(1, 2, 3, 4, 5, 6)):
                out.line(line)
        else:
            out.line("no conversation yet: objstore import")
        for place in waiting:
            out.line("")
            out.line(
                f"new on disk: {counted(int(str(place['conversations'])), 'conversation')} of "
                f"{TITLES[str(place['provider'])]} in {place['root']}: objstore import"
            )
    return 0


def _agents(store: Store) -> dict[str, dict[str, int]]:
    """What the store holds of each agent; the index is not even looked for where there are no facts."""
    with store.snapshot() as view:
        if next(iter(view.refs("lineage/")), None) is None:
            return {}
    from porcelain.lineage.index.counts import counts_by_agent
    from porcelain.lineage.index.opening import open_index

    with open_index(store) as (connection, _):
        return counts_by_agent(connection)


def _places(view: Snapshot, store: Store, context: Context, *, keep: bool) -> list[Place]:
    """What an import would find. Only the readers of agents that have a folder here are loaded."""
    home = context.env.get("HOME") or context.env.get("USERPROFILE")
    here = [name for name in PROVIDERS if home is not None and roots(name, context.env, home)]
    if home is None or not here:
        return []
    from pathlib import Path

    from porcelain.importing.plan import make_plan

    return make_plan(view, store.store_id, (), here, keep=keep, env=context.env, home=Path(home)).places
