"""``objstore lineage export``: the lineage of the store as a SQLite file or a JSON document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from objstore.chain import entries
from objstore.errors import UsageError
from objstore.refs import unquote
from objstore.snapshot import Snapshot
from objstore.store import load
from plumbing.options import JSON, Arguments, Context, Option
from plumbing.output import Writer, counted, say
from plumbing.stores import open_store
from porcelain.flow.store import best_heads, page_records
from porcelain.lineage.events import ObservedFile, no_events
from porcelain.lineage.json_view import write_json
from porcelain.lineage.projection import project
from porcelain.lineage.sqlite_view import write_sqlite
from porcelain.lineage.store import all_facts
from porcelain.providers.records import Page, Record, page_record_ids

SUMMARY = "write the lineage as a SQLite file"
USAGE = "lineage export [--format sqlite|json] [--no-events] [--force] [--json] FILE"
OPTIONS = (
    Option(
        "--format",
        "format",
        "sqlite|json",
        "the form of FILE (default: by its name)",
        "choice",
        choices=("sqlite", "json"),
    ),
    Option("--no-events", "no_events", help="leave out the table of events"),
    Option("--force", help="replace FILE even if it is no export"),
    JSON,
)
EXAMPLES = ("objstore lineage export lineage.sqlite", "objstore lineage export --format json lineage.json")
ARGUMENTS = (1, 1)


def run(arguments: Arguments, context: Context) -> int:
    """Write the view; a FILE that is an export already is replaced."""
    path = Path(arguments.args[0])
    form = arguments.format or ("json" if path.suffix == ".json" else "sqlite")
    if path.is_dir():
        raise UsageError(f"{path}: is a folder", hint="name the file to write")
    if path.exists() and not path.is_file():  # a device or pipe must never be replaced by a file
        raise UsageError(f"{path}: is not a file", hint="name the file to write")
    with open_store(context) as store, store.snapshot() as view:
        projection = project(all_facts(view))
        events = no_events if arguments.no_events else _Pages(view)
        if form == "json":
            count = write_json(
                path, projection, None if arguments.no_events else events, overwrite=arguments.force
            )
        else:
            count = write_sqlite(path, projection, events, overwrite=arguments.force)
    rows = {name: len(table) for name, table in projection.tables.items() if table}
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


class _Reading(Struct):
    """A file as it was once read from its beginning: ids of its pages in order, how many records they hold, where the
    last page begins."""

    pages: list[str]
    records: int
    last_offset: int
    first_record: str


class _Pages:
    """The landed pages of a file, from the chain that covers most of its conversation. A file that was rewritten, and a
    copy of it elsewhere, were read from the beginning again: each observation has the reading that it stands for."""

    def __init__(self, view: Snapshot) -> None:
        self._view = view
        self._heads: dict[tuple[str, str], list[bytes]] = {}
        self._readings: dict[bytes, dict[str, list[_Reading]]] = {}
        for (provider, name), head in best_heads(view, "landed").items():
            native = unquote(name).split("~", 1)[0]
            self._heads.setdefault((provider, native), []).append(head)

    def __call__(self, file: ObservedFile) -> Iterable[tuple[Page, Sequence[Record]]]:
        reading = self._reading(file)
        for page_id in reading.pages if reading is not None else ():
            page = load(self._view, bytes.fromhex(page_id), "page")
            yield page, page_records(self._view, page)

    def _reading(self, file: ObservedFile) -> _Reading | None:
        found = [
            reading
            for head in self._heads.get((file.provider, file.native_id), ())
            for number, reading in enumerate(self._of_chain(head).get(file.src, ()))
            if reading.first_record == (file.first_record or "")
            and (file.differs is None or (number and self._holds(reading, file.differs)))
        ]
        enough = [reading for reading in found if reading.records >= file.records]
        return enough[0] if enough else max(found, key=lambda reading: reading.records, default=None)

    def _of_chain(self, head: bytes) -> dict[str, list[_Reading]]:
        """The readings in a landing chain by name of file. A page that does not stand behind the one before it in the
        file begins another."""
        known = self._readings.get(head)
        if known is not None:
            return known
        found = self._readings[head] = {}
        for _, entry in entries(self._view, head):
            for page_id in entry.pages:
                page = load(self._view, bytes.fromhex(page_id), "page")
                readings = found.setdefault(page.src, [])
                if not readings or page.offset <= readings[-1].last_offset:
                    readings.append(_Reading([], 0, page.offset, ""))
                reading = readings[-1]
                reading.first_record = reading.first_record or page.records[:64]
                reading.pages.append(page_id)
                reading.records += len(page.lengths)
                reading.last_offset = page.offset
        return found

    def _holds(self, reading: _Reading, record: str) -> bool:
        loaded = (load(self._view, bytes.fromhex(page_id), "page") for page_id in reading.pages)
        return any(record in page_record_ids(page) for page in loaded)
