"""Counting each model call once, however many files repeat it.

Files that were copied, forked, resumed or moved repeat the calls of their origin. A call is known again by the id that
its agent gave it (*exact*), and where a copy was given another one, by its time, model and figures (*inferred*). It
counts where it stood first: in the conversation that is no fork, then in the oldest. Of a call that is stated in parts
the last part counts; of copies, some of which may have been cut short, the largest figures.

The calls are sorted in a temporary database, so that memory does not grow with their number.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from sqlite3 import Connection
from typing import Any, Literal

from msgspec import Struct, field

from porcelain.lineage.usage.measuring import Measured
from porcelain.lineage.usage.rules import Tokens

By = Literal["day", "model", "project", "session"]
BY: tuple[By, ...] = ("day", "model", "project", "session")
#: Stands for what no record states.
UNKNOWN = "-"

#: A stated call, and a call known by its id: whose it is, its tokens, and for the latter how often it is stated and
#: the sum of what is stated.
_CALL = "number INTEGER, file INTEGER, day TEXT, model INTEGER, folder INTEGER"
_TOKENS = "input INTEGER, cache_read INTEGER, cache_write INTEGER, output INTEGER, reasoning INTEGER"
_STATED = f"CREATE TABLE stated (key BLOB, likeness BLOB, {_CALL}, {_TOKENS})"
_KNOWN = (
    f"CREATE TABLE known (likeness BLOB, {_CALL}, {_TOKENS}, seen INTEGER, "
    "stated_input INTEGER, stated_cache_read INTEGER, stated_cache_write INTEGER, stated_output INTEGER, "
    "stated_reasoning INTEGER)"
)
_RANKS = "CREATE TABLE ranks (number INTEGER PRIMARY KEY, rank INTEGER)"
#: Counted calls: whose they are, how many, their tokens, how often and with what tokens they are stated, and how many
#: copies are known by their figures only.
_COUNTS = (
    "number", "day", "model", "folder", "calls", "input", "cache_read", "cache_write", "output", "reasoning", "seen",
    "stated_input", "stated_cache_read", "stated_cache_write", "stated_output", "stated_reasoning", "inferred",
)  # fmt: skip
_ONCE = f"CREATE TABLE once ({', '.join(_COUNTS)})"
#: What is kept of a count: the tables by name.
TABLES = {
    "usage_agent": "CREATE TABLE usage_agent (provider TEXT PRIMARY KEY, conversations INTEGER, files INTEGER)",
    "usage_count": f"CREATE TABLE usage_count ({', '.join(_COUNTS)}, PRIMARY KEY (number, day, model, folder)) "
    "WITHOUT ROWID",
    "usage_name": "CREATE TABLE usage_name (number INTEGER PRIMARY KEY, name TEXT)",
    "usage_remark": "CREATE TABLE usage_remark (provider TEXT, remark TEXT)",
    "usage_session": "CREATE TABLE usage_session (number INTEGER PRIMARY KEY, provider TEXT, native TEXT)",
}
_Row = tuple[Any, ...]


class Group(Struct):
    """What was used in a day, a project, a session, or by a model. ``counted`` and ``calls`` have each call once;
    ``stated`` and ``seen`` as often as files state it. ``inferred`` counts the copies that only their time, model and
    figures tell."""

    name: str
    provider: str = ""
    calls: int = 0
    counted: Tokens = Tokens()
    seen: int = 0
    stated: Tokens = Tokens()
    inferred: int = 0

    def add(self, calls: int, counted: Tokens, seen: int, stated: Tokens, inferred: int) -> None:
        """Add so many calls."""
        self.calls += calls
        self.counted = self.counted.plus(counted)
        self.seen += seen
        self.stated = self.stated.plus(stated)
        self.inferred += inferred


class Totals(Struct):
    """The groups, their sum, how many conversations there are and in how many files calls are stated, and remarks on
    figures that may be too large."""

    by: By
    groups: list[Group] = field(default_factory=list)
    total: Group = field(default_factory=lambda: Group(name="total"))
    files: int = 0
    conversations: int = 0
    remarks: list[str] = field(default_factory=list)


class Wanted(Struct, frozen=True, kw_only=True):
    """Which calls are wanted: those of one agent, from one day (``2026-05-22``, UTC) to another, both included."""

    provider: str | None = None
    since: str | None = None
    until: str | None = None


class _Names:
    """Names by number, so that rows are short."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {UNKNOWN: 0}

    def number(self, name: str) -> int:
        return self._numbers.setdefault(name or UNKNOWN, len(self._numbers))

    def all(self) -> list[str]:
        return list(self._numbers)


def counted(conversations: Iterable[Measured]) -> Connection:
    """The usage of ``conversations``, each call counted once, in a database of its own that the caller closes: a row
    for each session, day, model and folder, and what else ``totals`` asks for. See ``TABLES``."""
    names = _Names()
    factory: dict[str, tuple[str, Tokens]] = {}
    order: list[tuple[bool, str, str, str]] = []
    sorter = sqlite3.connect("", isolation_level=None)  # a temporary file of SQLite's own
    for table in (_STATED, _KNOWN, _RANKS, _ONCE, *TABLES.values()):
        sorter.execute(table)
    sorter.execute("BEGIN")
    files = before = 0
    for one in conversations:
        number = len(order)
        order.append((one.activity.forked_from != "", one.activity.first or "~", one.provider, one.name))
        sorter.execute("INSERT INTO usage_session VALUES (?, ?, ?)", (number, one.provider, one.native_id))
        rows = _rows(one, number, before if one.guest else files, names)
        sorter.executemany(f"INSERT INTO stated VALUES ({','.join('?' * 12)})", rows)
        if not one.guest:
            before, files = files, files + len(one.activity.files)
        if one.provider == "factory" and one.activity.calls:
            factory[one.native_id] = (one.activity.forked_from, one.activity.calls[-1].tokens)
    # What is no fork may claim a call first, then the oldest.
    ranked = sorted(range(len(order)), key=order.__getitem__)
    sorter.executemany("INSERT INTO ranks VALUES (?, ?)", ((n, rank) for rank, n in enumerate(ranked)))
    stated = sorter.execute(
        "SELECT stated.* FROM stated JOIN ranks USING (number) ORDER BY key, rank, file, day"
    )
    sorter.executemany(f"INSERT INTO known VALUES ({','.join('?' * 17)})", _known(stated))
    known = sorter.execute(
        "SELECT known.* FROM known JOIN ranks USING (number) ORDER BY likeness, rank, file, day"
    )
    sorter.executemany(f"INSERT INTO once VALUES ({','.join('?' * len(_COUNTS))})", _once(known))
    sums = ", ".join(f"sum({name})" for name in _COUNTS[4:])
    sorter.execute(
        f"INSERT INTO usage_count SELECT {', '.join(_COUNTS[:4])}, {sums} FROM once GROUP BY 1, 2, 3, 4"
    )
    sorter.executemany("INSERT INTO usage_name VALUES (?, ?)", enumerate(names.all()))
    held = Counter(provider for provider, _ in {(provider, name) for _, _, provider, name in order})
    places = dict(
        sorter.execute(
            "SELECT provider, COUNT(DISTINCT file) FROM stated JOIN usage_session USING (number) GROUP BY provider"
        ).fetchall()
    )
    sorter.executemany(
        "INSERT INTO usage_agent VALUES (?, ?, ?)",
        ((name, n, places.get(name, 0)) for name, n in held.items()),
    )
    remarks = (("factory", text) for text in _remarks(factory))
    sorter.executemany("INSERT INTO usage_remark VALUES (?, ?)", remarks)
    return sorter


def totals(
    usage: Connection,
    by: By,
    wanted: Wanted | None = None,
    project_of: Callable[[str], str] = lambda folder: folder,
) -> Totals:
    """The totals of what was ``counted``. ``project_of`` names the project that a working directory belongs to."""
    wanted = wanted or Wanted()
    agent = wanted.provider
    mine = ("", ()) if agent is None else (" WHERE provider = ?", (agent,))
    result = Totals(by=by)
    for count, files in usage.execute(f"SELECT conversations, files FROM usage_agent{mine[0]}", mine[1]):
        result.conversations += count
        result.files += files
    column = {"session": "number", "day": "day", "model": "model", "project": "folder"}[by]
    sums = ", ".join(f"sum({name})" for name in _COUNTS[4:])
    limits = ["day >= ?", *(["day <= ?"] if wanted.until is not None else [])]
    values = [wanted.since or "", *([wanted.until] if wanted.until is not None else [])]
    if agent is not None:
        limits.append("number IN (SELECT number FROM usage_session WHERE provider = ?)")
        values.append(agent)
    named: dict[tuple[str, str], Group] = {}
    texts = dict(usage.execute("SELECT number, name FROM usage_name"))
    for value, *found in usage.execute(
        f"SELECT {column}, {sums} FROM usage_count WHERE {' AND '.join(limits)} GROUP BY 1 ORDER BY 1", values
    ):
        provider = ""
        if by == "session":
            provider, name = usage.execute(
                "SELECT provider, native FROM usage_session WHERE number = ?", (value,)
            ).fetchone()
        elif by == "day":
            name = value or UNKNOWN
        else:
            name = texts[value]
            name = project_of(name) if by == "project" and value else name
        held = named.setdefault((provider, name), Group(name=name, provider=provider))
        for one in (held, result.total):
            one.add(found[0], Tokens(*found[1:6]), found[6], Tokens(*found[7:12]), found[12])
    by_name = sorted(named.values(), key=lambda one: (one.name, one.provider))
    result.groups = by_name if by == "day" else sorted(by_name, key=lambda one: -one.counted.total)
    result.remarks += (
        text for (text,) in usage.execute(f"SELECT remark FROM usage_remark{mine[0]}", mine[1])
    )
    return result


def _rows(one: Measured, number: int, files: int, names: _Names) -> Iterator[_Row]:
    models = [names.number(model) for model in one.activity.models]
    folders = [names.number(folder) for folder in one.activity.folders]
    for call in one.activity.calls:
        model = models[call.model] if call.model >= 0 else 0
        folder = folders[call.folder] if call.folder >= 0 else 0
        yield (
            call.key, call.likeness, number, files + call.file, call.time[:10], model, folder, *call.tokens,
        )  # fmt: skip


def _known(rows: Iterable[_Row]) -> Iterator[_Row]:
    """Each call once: whose it was first, the largest figures, how often it is stated and what is stated."""
    for _, found in groupby(rows, key=itemgetter(0)):
        first, *copies = found
        if not copies:
            yield (*first[1:], 1, *first[7:])
            continue
        stated = largest = Tokens(*first[7:])
        for row in copies:
            tokens = Tokens(*row[7:])
            stated = stated.plus(tokens)
            largest = max(largest, tokens, key=lambda one: (one.total, one))
        yield (*first[1:7], *largest, 1 + len(copies), *stated)


def _once(rows: Iterable[_Row]) -> Iterator[_Row]:
    """Each call once, copies that only their figures tell taken together: session, day, model and folder of the one
    that was first, one call, its figures, how often it is stated, what is stated, and how many copies there are."""
    for _, found in groupby(rows, key=itemgetter(0)):
        first, *copies = found
        seen, stated = first[11], Tokens(*first[12:])
        for row in copies:
            seen += row[11]
            stated = stated.plus(Tokens(*row[12:]))
        yield (first[1], first[3], first[4], first[5], 1, *first[6:11], seen, *stated, len(copies))


def _remarks(sessions: dict[str, tuple[str, Tokens]]) -> Iterator[str]:
    """Factory states totals of a session only; in some versions those of a fork begin with its origin's."""
    for name, (origin, tokens) in sorted(sessions.items()):
        found = sessions.get(origin)
        if found is not None and all(mine >= theirs for mine, theirs in zip(tokens, found[1], strict=True)):
            yield f"factory {name}: a fork whose totals may have those of {origin} in them"
