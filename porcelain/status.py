"""``objstore status``: what the store holds, and what is new on disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from plumbing.options import JSON, Arguments, Context, Option
from plumbing.output import Writer, counted, human_size, table, terminal_width
from plumbing.stores import open_store
from porcelain.importing.keeping import keeps_content
from porcelain.importing.tasks import PROVIDERS, TITLES
from porcelain.lineage.index.opening import open_lineage
from porcelain.lineage.views.listing import session_rows

if TYPE_CHECKING:
    from porcelain.importing.plan import Place

SUMMARY = "what the store holds and what is new on disk"
USAGE = "status [--no-scan] [--json]"
OPTIONS = (Option("--no-scan", "no_scan", help="do not look at the agents' folders"), JSON)
EXAMPLES = ("objstore status", "objstore status --json")
ARGUMENTS = (0, 0)


def run(arguments: Arguments, context: Context) -> int:
    """Say what is here, agent by agent, and what an import would bring."""
    home = context.env.get("HOME") or context.env.get("USERPROFILE")
    with open_store(context) as store, open_lineage(store) as indexed:
        view = indexed.view
        rows = session_rows(indexed.projection(stored=True))
        keep = keeps_content(view)
        objects = view.count()
        size = store.database.sizes()["size_disk"]  # type: ignore[union-attr]
        places: list[Place] = []
        if not arguments.no_scan and home is not None:
            from porcelain.importing.plan import make_plan  # knows all readers, which takes a while to load

            places = make_plan(
                view, store.store_id, (), list(PROVIDERS), keep=keep, env=context.env, home=Path(home)
            ).places
        path = store.database.path  # type: ignore[union-attr]
    agents: dict[str, dict[str, int]] = {}
    for row in rows:
        counts = agents.setdefault(
            row.provider,
            dict.fromkeys(("conversations", "records", "files", "gone", "damaged", "rewritten"), 0),
        )
        counts["conversations"] += 1
        counts["records"] += row.records
        counts["files"] += row.sources
        counts["gone"] += row.absent
        counts["damaged"] += row.damage
        counts["rewritten"] += row.conflicts
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
            "message text is kept" if keep else "message text is not kept (objstore config content keep on)"
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
