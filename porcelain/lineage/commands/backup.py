"""``objstore lineage backup``: in which backups a conversation's file is there, and in which it is not."""

from __future__ import annotations

from pathlib import Path

from objstore.errors import NotFound
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer, counted, say, table, terminal_width
from plumbing.interface.stores import open_store
from porcelain.lineage.adapters.backup_snapshots import (
    FileHistory,
    facts_of,
    histories,
    known_roots,
    snapshots_in,
)
from porcelain.lineage.adapters.hosts import host_label
from porcelain.lineage.curation.stating import learn
from porcelain.lineage.index.opening import open_lineage

SUMMARY = "which backups have a conversation's file"
USAGE = "lineage backup [--under FOLDER] [--dry-run] [--all] [--json] DIR"
OPTIONS = (
    Option("--under", "under", "FOLDER", "the snapshots are copies of FOLDER, not of a disk", "directory"),
    Option("--dry-run", "dry_run", help="print only, store nothing"),
    Option("--all", help="print files that every snapshot has, too"),
    JSON,
)
EXAMPLES = (
    "objstore lineage backup /Volumes/Backups",
    "objstore lineage backup --under ~/.pi/agent/sessions ~/session-backups",
)
ARGUMENTS = (1, 1)


def run(arguments: Arguments, context: Context) -> int:
    """Look through the snapshots in DIR, one folder each, and store what they say."""
    folder = Path(context.cwd) / arguments.args[0]
    if not folder.is_dir():
        raise NotFound(f"{folder}: no such folder")
    under = str(Path(context.cwd) / arguments.under) if arguments.under else None
    with open_store(context, write=not arguments.dry_run) as store:
        with open_lineage(store) as indexed:
            host = host_label(indexed.view)
            roots = known_roots(indexed.projection(stored=True), host)
        found = histories(folder, roots, under)
        new = [] if arguments.dry_run or not found else learn(store, facts_of(folder, found, host))
    snapshots = snapshots_in(folder)
    unknown = [one.path for one in found if one.observation is None]
    shown = [one for one in found if arguments.all or len(one.windows) > 1 or one.observation is None]
    with Writer(context.stdout) as out:
        if arguments.json:
            out.json(
                {
                    "files": [_object(one) for one in found],
                    "newFacts": len(new),
                    "snapshots": [path.name for path in snapshots],
                    "unknown": unknown,
                }
            )
            return 0
        rows = [(one.path, _windows(one), "" if one.observation else "not in the store") for one in shown]
        width = terminal_width(context.stdout, context.env)
        for line in table(rows, ("file", "snapshots", ""), width=width) if rows else ():
            out.line(line)
    say(
        context,
        f"{counted(len(snapshots), 'snapshot')}, {counted(len(found), 'file')}, {counted(len(new), 'new fact')}",
    )
    if unknown:
        say(
            context,
            f"{counted(len(unknown), 'file')} not in the store: objstore import {folder}/SNAPSHOT/...",
        )
    if not found:
        say(context, "no folder of sessions that the store knows is in these snapshots")
    return 0


def _windows(one: FileHistory) -> str:
    return ", ".join(
        f"{'there' if present else 'not there'} {first if first == last else f'{first} to {last}'}"
        for present, first, last in one.windows
    )


def _object(one: FileHistory) -> dict[str, object]:
    return {
        "observation": one.observation,
        "path": one.path,
        "windows": [
            {"first": first, "last": last, "presence": "present" if present else "absent"}
            for present, first, last in one.windows
        ],
    }
