"""``objstore doctor``: whether the store has what is on disk, and what will be lost if nothing is done."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct, field, structs

from objstore.errors import CheckFailed, ObjstoreError, UsageError
from objstore.snapshot import Snapshot
from objstore.store import Store
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Progress, Writer, counted, printable, table, terminal_width
from plumbing.interface.settings import keeps_content
from porcelain.doctor_indexes import fact_index_faults, rebuild_indexes
from porcelain.doctor_sources import (
    AgentCheck,
    Landed,
    Problem,
    check_agent,
    landed_records,
    stores_elsewhere,
)
from porcelain.importing.cursors import load_heads
from porcelain.importing.plan import Plan, make_plan
from porcelain.lineage.usage.measuring import measured, stale
from porcelain.lineage.views.options import open_indexed
from porcelain.providers.agents import PROVIDERS, TITLES
from porcelain.session.documents.search_index import index_path
from porcelain.session.documents.sources import heads
from porcelain.session.tree.index import read_state

SUMMARY = "whether the store has what is on disk, and what will be lost"
USAGE = "doctor [--days N] [--fast] [--full] [--rebuild] [--json]"
OPTIONS = (
    Option("--days", "days", "N", "look for deletions this many days ahead (7)", "integer", default=7),
    Option("--fast", help="do not count lines: the sources are not compared"),
    Option("--full", help="verify every object, not only the newest"),
    Option("--rebuild", help="make the derived indexes anew first"),
    JSON,
)
EXAMPLES = ("objstore doctor", "objstore doctor --days 14", "objstore doctor --full --json")
ARGUMENTS = (0, 0)

#: Objects that are verified without ``--full``: the newest.
_NEWEST = 20_000


class Examination(Struct, kw_only=True):
    """Everything that was looked at. ``indexes`` counts what each derived index did not have right (that of activity is
    up to date by now); ``notes`` need nothing to be done at once."""

    store: str
    agents: list[AgentCheck] = field(default_factory=list)
    objects: int = 0
    verified: int = 0
    indexes: dict[str, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    compared: bool = False


def run(arguments: Arguments, context: Context) -> int:
    """Compare, report, and exit with 1 if something is wrong."""
    with open_indexed(context) as store:
        if arguments.rebuild:
            rebuild_indexes(store)
        found = _examine(store, arguments, context)
    with Writer(context.stdout) as out:
        if arguments.json:
            out.json(_document(found))
        else:
            width = terminal_width(context.stdout, context.env)
            for line in _lines(found, arguments.days, width):
                out.line(line)
    return CheckFailed.exit_code if found.problems else 0


def _examine(store: Store, arguments: Arguments, context: Context) -> Examination:
    """Look at everything; what cannot be read is a problem, and no reason not to look at the rest."""
    found = Examination(store=store.database.path, compared=not arguments.fast)  # type: ignore[union-attr]
    landed: Landed | None = None
    astray: Counter[str] = Counter()
    with _noting(found), store.snapshot() as view:
        found.indexes["activity"] = stale(view)
    with _noting(found), Progress(context, "reading conversations") as progress:
        landed = landed_records(measured(store, progress.advance), astray)
    with _noting(found), store.snapshot() as view, Progress(context, "counting files") as progress:
        _agents(found, store, view, landed, arguments, context, progress)
    with _noting(found), store.snapshot() as view:
        found.objects = view.count()
        _indexes(found, store, view)
    for check in found.agents:
        check.astray = astray[check.provider]
    _verify(found, store, arguments, context)
    _sum_up(found)
    return found


@contextmanager
def _noting(found: Examination) -> Iterator[None]:
    """Make a problem of what is wrong with the store."""
    try:
        yield
    except ObjstoreError as error:
        found.compared = False
        found.problems.append(Problem(rule="store", what=error.message, hint=error.hint or ""))


def _agents(
    found: Examination,
    store: Store,
    view: Snapshot,
    landed: Landed | None,
    arguments: Arguments,
    context: Context,
    progress: Progress,
) -> None:
    home_text = context.env.get("HOME") or context.env.get("USERPROFILE")
    home = Path(home_text) if home_text else None
    plan = Plan(cursors={name: load_heads(view, name) for name in PROVIDERS})
    if home is not None:
        keep = keeps_content(view)
        plan = make_plan(view, store.store_id, (), list(PROVIDERS), keep=keep, env=context.env, home=home)
        for path in stores_elsewhere(plan):
            with suppress(UsageError):  # nothing is in it any more
                more = make_plan(
                    view, store.store_id, (path,), ["opencode"], keep=keep, env=context.env, home=home
                )
                plan.places += more.places
    for provider in PROVIDERS:
        check = check_agent(
            store,
            view,
            provider,
            plan,
            landed,
            env=context.env,
            home=home,
            now=store.now(),
            within=arguments.days,
            count=not arguments.fast,
            advance=progress.advance,
        )
        if check.roots or plan.cursors.get(provider):
            found.agents.append(check)
            found.problems += check.problems


def _indexes(found: Examination, store: Store, view: Snapshot) -> None:
    found.indexes["facts"] = fact_index_faults(view)
    if found.indexes["facts"]:
        found.problems.append(
            Problem(
                rule="index",
                what=f"the index of facts has {counted(found.indexes['facts'], 'entry').replace('entrys', 'entries')} "
                "that the chains do not bear out",
                hint="objstore doctor --rebuild",
            )
        )
    found.indexes["sessions"] = _stale_sessions(view)
    found.indexes["search"] = _stale_search(store, view)


def _stale_sessions(view: Snapshot) -> int:
    """Sessions whose index was made for another head than the one they have."""
    of_session: dict[str, list[str]] = {}
    for name, key in view.refs("session/"):
        parts = name.split("/")
        if len(parts) == 4 and parts[2] == "heads":
            of_session.setdefault(parts[1], []).append(key.hex())
    stale_ones = 0
    for sid, found in of_session.items():
        state = read_state(view, sid)
        stale_ones += len(found) == 1 and (state is None or state.head != found[0])
    return stale_ones


def _stale_search(store: Store, view: Snapshot) -> int:
    """1 if there is a search index that does not know the sources as they are."""
    path = index_path(store)
    if path is None or not Path(path).is_file():
        return 0
    try:
        with closing(sqlite3.connect(f"{Path(path).resolve().as_uri()}?mode=ro", uri=True)) as index:
            row = index.execute("SELECT heads FROM state").fetchone()
    except sqlite3.Error:
        return 1
    return int(row is None or bytes(row[0]) != b"".join(heads(view)))


def _verify(found: Examination, store: Store, arguments: Arguments, context: Context) -> None:
    with store.database.snapshot() as view:
        stop = view.next_arrival()  # type: ignore[union-attr]
    since = 1 if arguments.full else max(1, stop - _NEWEST)
    with Progress(context, "verify") as progress:
        report = store.verify(since=since, processes=0 if arguments.full else 1, on_progress=progress.advance)
    found.verified = report.objects
    found.problems += [
        Problem(rule=f"verify {one.rule}", what=f"{one.where}: {one.what}", hint="objstore verify")
        for one in report.problems
    ]


def _sum_up(found: Examination) -> None:
    for one in found.agents:
        name = TITLES[one.provider]
        if one.rewritten:
            found.problems.append(
                Problem(
                    rule="conflict",
                    what=f"{name}: {counted(one.rewritten, 'file')} rewritten since the import; both states are kept",
                    hint="objstore lineage inventory, then objstore lineage mark --clear-conflict FILE",
                )
            )
        if one.waiting:
            found.notes.append(f"{name}: {counted(one.waiting, 'file')} new or changed: objstore import")
        if one.gone:
            found.notes.append(f"{name}: {counted(one.gone, 'file')} no longer on disk, kept here")
        if one.damaged:
            found.notes.append(
                f"{name}: {counted(one.damaged, 'damaged place')} set aside, what is around imported"
            )
        if one.pending:
            found.notes.append(
                f"{name}: {counted(one.pending, 'file')} with a last line that is not complete"
            )
        if one.astray:
            found.notes.append(
                f"{name}: {counted(one.astray, 'record')} after one that no file of the conversation has"
            )
        if one.lost:
            found.notes.append(
                f"{name}: its own lists name {counted(one.lost, 'conversation')} that neither disk nor store has"
            )
    for name, number in found.indexes.items():
        if number and name in ("search", "sessions"):
            found.notes.append(f"index of {name}: behind; its next use brings it up to date")


def _lines(found: Examination, days: int, width: int | None) -> Iterator[str]:
    yield f"store {found.store}"
    yield f"{counted(found.objects, 'object')}, the newest {found.verified:,} verified just now"
    yield ""
    header = (
        "agent",
        "files on disk",
        "in the store",
        "left out",
        "waiting",
        "lines on disk",
        "in the store",
        "",
    )
    rows = [_row(one, found.compared) for one in found.agents]
    yield from table(rows, header, width=width, right=range(1, 7)) if rows else ("no agent's folder here",)
    yield ""
    for one in found.agents:
        yield from _retention(one, days)
    for note in found.notes:
        yield printable(note)
    yield ""
    for problem in found.problems:
        yield printable(f"PROBLEM {problem.what}" + (f": {problem.hint}" if problem.hint else ""))
    yield _verdict(found)


def _row(one: AgentCheck, compared: bool) -> tuple[str, ...]:
    same = "differs" if one.problems and compared else "same" if compared and one.compared else "not compared"
    return (
        TITLES[one.provider],
        f"{one.disk_files:,}",
        f"{one.store_files:,}",
        f"{one.left_out:,}",
        f"{one.waiting:,}",
        f"{one.disk_lines:,}" if compared else "-",
        f"{one.store_lines:,}" if compared else "-",
        same,
    )


def _retention(one: AgentCheck, days: int) -> Iterator[str]:
    name, kept = TITLES[one.provider], one.retention
    if kept is None or kept.days is None:
        yield f"{name}: deletes none of its files by age, as far as is known"
        return
    stated = kept.place if kept.place else "its default"
    yield f"{name}: deletes files {counted(kept.days, 'day')} after their last change ({kept.setting}, {stated})"
    found = one.expiring
    if found is not None and found.files:
        yield (
            f"  within {counted(days, 'day')}: {counted(found.conversations, 'conversation')} in "
            f"{counted(found.files, 'file')}, the first on {found.first}; "
            + (f"{found.unkept:,} not imported as they are now" if found.unkept else "all are kept here")
        )


def _verdict(found: Examination) -> str:
    if found.problems:
        return f"{counted(len(found.problems), 'problem')} found"
    if not found.compared:
        return "no problem found; the sources were not compared"
    compared = sum(one.compared for one in found.agents)
    waiting = sum(one.waiting for one in found.agents)
    if waiting:
        return f"no problem found; {counted(waiting, 'file')} not imported as they are now: objstore import"
    if not compared:
        return "no problem found; there is nothing on disk to compare with"
    return f"all well: {counted(compared, 'file')} compared line by line, the store has all of them"


def _document(found: Examination) -> dict[str, Any]:
    return {
        "agents": [
            {
                **{
                    name: value
                    for name, value in structs.asdict(one).items()
                    if name not in ("problems", "retention", "expiring")
                },
                "retention": structs.asdict(one.retention) if one.retention is not None else None,
                "expiring": structs.asdict(one.expiring) if one.expiring is not None else None,
            }
            for one in found.agents
        ],
        "compared": found.compared,
        "indexes": found.indexes,
        "notes": found.notes,
        "objects": found.objects,
        "ok": not found.problems,
        "problems": [structs.asdict(one) for one in found.problems],
        "store": found.store,
        "verdict": _verdict(found),
        "verified": found.verified,
    }
