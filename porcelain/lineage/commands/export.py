"""``objstore lineage export``: the lineage of the store as a SQLite file or a JSON document."""

from __future__ import annotations

from pathlib import Path

from objstore.errors import UsageError
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Progress, Writer, counted, say
from plumbing.interface.stores import open_store
from porcelain.lineage.exports.json_view import write_json
from porcelain.lineage.exports.pi_compat import write_compatible
from porcelain.lineage.exports.sqlite_view import write_sqlite
from porcelain.lineage.index.opening import open_lineage
from porcelain.lineage.landed.events import no_events
from porcelain.lineage.usage.measuring import measured
from porcelain.lineage.views.options import open_indexed

SUMMARY = "write the lineage as SQLite, JSON or Parquet"
USAGE = """lineage export [--format sqlite|json] [--no-events] [--force] [--json] FILE
lineage export --format parquet [--no-events] [--json] DIR|s3://BUCKET/PREFIX
lineage export --pi-compat [--force] [--json] DIR"""
OPTIONS = (
    Option(
        "--format",
        "format",
        "sqlite|json|parquet",
        "the form of FILE (default: by its name)",
        "choice",
        choices=("sqlite", "json", "parquet"),
    ),
    Option("--no-events", "no_events", help="leave out the table of events"),
    Option("--pi-compat", "pi_compat", help="write what Pi's session graph renderer reads below DIR"),
    Option("--force", help="replace FILE even if it is no export"),
    JSON,
)
EXAMPLES = (
    "objstore lineage export lineage.sqlite",
    "objstore lineage export --format json lineage.json",
    "objstore lineage export --format parquet s3://fleet/lineage",
    "objstore lineage export --pi-compat ~/graphs",
)
ARGUMENTS = (1, 1)


def run(arguments: Arguments, context: Context) -> int:
    """Write the view; a FILE that is an export already is replaced."""
    path = Path(arguments.args[0])
    if arguments.pi_compat:
        return _compatible(path, arguments, context)
    form = arguments.format or ("json" if path.suffix == ".json" else "sqlite")
    if form == "parquet":
        return _parquet(arguments, context)
    if path.is_dir():
        raise UsageError(f"{path}: is a folder", hint="name the file to write")
    if path.exists() and not path.is_file():  # a device or pipe must never be replaced by a file
        raise UsageError(f"{path}: is not a file", hint="name the file to write")
    with open_store(context) as store, open_lineage(store) as indexed:
        projection = indexed.projection()
        pages = indexed.landed_pages()
        if form == "json":
            inline = None if arguments.no_events else pages
            count = write_json(path, projection, inline, count=pages.count, overwrite=arguments.force)
        else:
            events = no_events if arguments.no_events else pages
            count = write_sqlite(path, projection, events, overwrite=arguments.force)
        rows = {name: len(table) for name, table in projection.tables.items() if len(table)}
    if arguments.json:
        with Writer(context.stdout) as out:
            out.json(
                {
                    "dangling": len(projection.dangling),
                    "events": count,
                    "file": str(path),
                    "fold": projection.fold,
                    "rows": rows,
                }
            )
        return 0
    for one in projection.dangling[:20]:
        what = "left out" if one.left_out else "emptied"
        say(context, f"{one.table} {one.row}: {one.column} names {one.missing}, which is not here: {what}")
    say(
        context,
        f"wrote {path}: {counted(rows.get('sessions', 0), 'session')}, "
        f"{counted(rows.get('session_observations', 0), 'file')}, {counted(count, 'event')}",
    )
    return 0


def _parquet(arguments: Arguments, context: Context) -> int:
    from porcelain.lineage.exports.parquet_place import open_place
    from porcelain.lineage.exports.parquet_view import write_parquet

    place = open_place(arguments.args[0], context.cwd, context.env)
    with open_store(context) as store, open_lineage(store) as indexed:
        projection = indexed.projection()
        events = no_events if arguments.no_events else indexed.landed_pages()
        written = write_parquet(place, store.store_id, projection, events)
        rows = {name: len(table) for name, table in projection.tables.items() if len(table)}
    if arguments.json:
        with Writer(context.stdout) as out:
            out.json(
                {
                    "events": written.events,
                    "files": written.files,
                    "fold": projection.fold,
                    "removed": written.removed,
                    "rows": rows,
                }
            )
        return 0
    say(
        context,
        f"wrote {counted(len(written.files), 'file')} of this store: "
        f"{counted(rows.get('sessions', 0), 'session')}, {counted(written.events, 'event')}",
    )
    return 0


def _compatible(folder: Path, arguments: Arguments, context: Context) -> int:
    with (
        open_indexed(context) as store,
        open_lineage(store) as indexed,
        Progress(context, "reading conversations") as progress,
    ):
        projection = indexed.projection()
        conversations = measured(store, progress.advance)
        pages = indexed.landed_pages()
        written = write_compatible(
            folder, projection, pages, conversations, count=pages.count, overwrite=arguments.force
        )
    if arguments.json:
        with Writer(context.stdout) as out:
            out.json({"files": [str(path) for path in written], "fold": projection.fold})
        return 0
    for path in written:
        say(context, f"wrote {path}")
    return 0
