"""Comparing what the store has of each agent's files with what is on disk."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from pathlib import Path

from msgspec import Struct, field

from objstore.refs import unquote
from objstore.snapshot import Snapshot
from objstore.store import Store
from porcelain.doctor_disk import OnDisk, file_on_disk, listed_ids, on_disk
from porcelain.flow.chain.naming import landed_ref
from porcelain.importing.cursors import load_cursors
from porcelain.importing.naming import native_id
from porcelain.importing.plan import Plan
from porcelain.lineage.adapters.retention import Expiring, Retention, expiring, retention_of
from porcelain.lineage.usage.activity import activity_at
from porcelain.lineage.usage.measuring import Measured
from porcelain.providers.cursor import Cursor, is_same_file

#: Paths of one kind that are named; more are only counted.
NAMED = 5
#: How many records stand in the store's pages, by agent, conversation's chain and name of file.
Landed = Mapping[tuple[str, str, str], int]


class Problem(Struct, frozen=True, kw_only=True):
    """Something that is not as it should be: a stable word, what it is, and what to type."""

    rule: str
    what: str
    hint: str = ""


class AgentCheck(Struct, kw_only=True):
    """One agent, as far as this machine imports from it. Files and lines that were compared: ``disk_...`` as counted on
    disk, ``store_...`` as the store states them. ``waiting`` files are new or have changed since they were imported,
    ``left_out`` ones hold no conversation; ``gone`` were imported and are no longer there; ``lost`` are conversations
    that only the agent's own lists name; ``astray`` records that follow one which is not there."""

    provider: str
    roots: list[str] = field(default_factory=list)
    disk_files: int = 0
    disk_lines: int = 0
    store_files: int = 0
    store_lines: int = 0
    compared: int = 0
    waiting: int = 0
    left_out: int = 0
    gone: int = 0
    rewritten: int = 0
    damaged: int = 0
    pending: int = 0
    lost: int = 0
    astray: int = 0
    retention: Retention | None = None
    expiring: Expiring | None = None
    problems: list[Problem] = field(default_factory=list)


def check_agent(
    store: Store,
    view: Snapshot,
    provider: str,
    plan: Plan,
    landed: Landed | None,
    *,
    env: Mapping[str, str],
    home: Path | None,
    now: str,
    within: int,
    count: bool = True,
    advance: Callable[[int], object] = lambda _size: None,
) -> AgentCheck:
    """Compare one agent's files with the store. ``landed`` is None where it cannot be told; ``within`` is how many days
    ahead deletions are looked for."""
    cursors = load_cursors(view, provider)
    places = [place for place in plan.places if place.provider == provider and place.exists]
    check = AgentCheck(provider=provider, roots=[place.root for place in places])
    changed = {s.path for place in places for task in place.tasks for s in task.conversation.sources}
    unreadable = {one.path for place in places for one in place.left_out if one.reason == "unreadable"}
    left_out = {one.path for place in places for one in place.left_out} - unreadable
    left_out |= {cursor.path for cursor in cursors.values() if cursor.state == "left-out"}
    files: dict[str, OnDisk] = {}
    for place in places:
        for one in on_disk(provider, Path(place.root), count, advance):
            files.setdefault(one.path, one)
    for cursor in cursors.values():
        if cursor.path not in files and _is_elsewhere(cursor, check.roots):
            files[cursor.path] = file_on_disk(cursor.path, count)
            if not is_same_file(cursor, os.stat(cursor.path)):
                changed.add(cursor.path)
    _compare_files(check, files, cursors, changed, left_out, unreadable)
    if landed is not None:
        _compare_pages(check, store, view, cursors, landed)
    _look_at_cursors(check, cursors)
    known = {native_id(cursor.conversation) for cursor in cursors.values() if cursor.conversation}
    known |= {task.conversation.native_id for place in places for task in place.tasks}
    for place in places:
        check.lost += len(listed_ids(provider, Path(place.root)) - known)
    check.retention = retention_of(provider, env, home)
    check.expiring = expiring(
        (
            (one.path, cursors[one.path].conversation if one.path in cursors else one.path, one.modified)
            for one in files.values()
            if one.modified is not None and one.path not in left_out
        ),
        check.retention,
        now,
        within,
        changed,
    )
    _warn_of_deletion(check)
    return check


def stores_elsewhere(plan: Plan) -> list[str]:
    """The databases and folders of documents from which OpenCode's conversations were imported, and which are not where
    it keeps them."""
    found = set()
    for cursor in plan.cursors.get("opencode", {}).values():
        if cursor.stamp and cursor.conversation and cursor.state != "gone":
            folder = os.path.dirname(cursor.path)
            found.add(folder if os.path.isfile(folder) else os.path.dirname(folder))
    roots = tuple(place.root.rstrip(os.sep) + os.sep for place in plan.places)
    return sorted(path for path in found if os.path.exists(path) and not path.startswith(roots))


def _is_elsewhere(cursor: Cursor, roots: Iterable[str]) -> bool:
    """Whether a cursor is that of a transcript which was imported from outside of the agent's own folders."""
    return (
        cursor.state in ("active", "pending", "conflict")
        and cursor.path.endswith((".jsonl", ".jsonl.zst"))
        and not any(cursor.path.startswith(root.rstrip(os.sep) + os.sep) for root in roots)
        and os.path.isfile(cursor.path)
    )


def _compare_files(
    check: AgentCheck,
    files: Mapping[str, OnDisk],
    cursors: Mapping[str, Cursor],
    changed: Set[str],
    left_out: Set[str],
    unreadable: Set[str],
) -> None:
    unknown, differing, unread = [], [], []
    for path, one in files.items():
        cursor = cursors.get(path)
        check.disk_files += 1
        if one.problem or path in unreadable:
            unread.append(path)
        elif path in changed:
            check.waiting += 1
        elif path in left_out or not one.size:
            check.left_out += 1
        elif cursor is None:
            unknown.append(path)
        else:
            check.store_files += 1
            if one.lines is None:
                continue
            check.compared += 1
            check.disk_lines += one.lines + (one.tail and cursor.open_line)
            check.store_lines += cursor.facts.lines
            if cursor.facts.lines != one.lines + (one.tail and cursor.open_line):
                differing.append(path)
    hint = "objstore import --check"
    check.problems += _problem(
        "lines", differing, "of which the store has not as many lines as the disk", hint
    )
    check.problems += _problem(
        "unknown", unknown, "neither imported nor left out for a reason", "objstore import"
    )
    check.problems += _problem(
        "unreadable", unread, "cannot be read", "objstore import says why; look at the permissions"
    )


def _compare_pages(
    check: AgentCheck,
    store: Store,
    view: Snapshot,
    cursors: Mapping[str, Cursor],
    landed: Landed,
) -> None:
    """Every record that a cursor counts stands in a page: of the chain that views show, or of this store's own. What
    several documents of a conversation say is landed once, so that those are compared with the whole conversation."""
    missing = []
    whole: Counter[str] = Counter()
    for (provider, conversation, _), records in landed.items():
        if provider == check.provider:
            whole[conversation] += records
    for cursor in cursors.values():
        stated, name = cursor.facts.records, cursor.conversation
        if (whole[name] if cursor.stamp else landed.get((check.provider, name, cursor.src), 0)) >= stated:
            continue
        head = view.ref(landed_ref(store.store_id, check.provider, name))
        own = activity_at(view, check.provider, head).files if head is not None else []
        if sum(file.records for file in own if cursor.stamp or file.src == cursor.src) < stated:
            missing.append(cursor.path)
    check.problems += _problem(
        "records", missing, "of which records are missing from the store", "objstore verify"
    )


def _look_at_cursors(check: AgentCheck, cursors: Mapping[str, Cursor]) -> None:
    rewritten = []
    for cursor in cursors.values():
        left_out = cursor.state == "left-out"
        check.gone += cursor.state == "gone" or not (left_out or cursor.stamp or os.path.lexists(cursor.path))
        check.damaged += cursor.facts.damage_count
        check.pending += cursor.state != "gone" and cursor.facts.pending_bytes > 0
        if cursor.state == "conflict":
            rewritten.append(cursor.path)
    check.rewritten = len(rewritten)


def _warn_of_deletion(check: AgentCheck) -> None:
    found = check.expiring
    if found is not None and found.unkept:
        check.problems.append(
            Problem(
                rule="expiring",
                what=f"{check.provider}: {found.unkept} files that are not imported as they are now will be deleted "
                f"soon, the first on {found.first}",
                hint="objstore import",
            )
        )
    if check.retention is not None and check.retention.problem:
        check.problems.append(
            Problem(rule="settings", what=f"{check.retention.place}: {check.retention.problem}", hint="")
        )


def _problem(rule: str, paths: list[str], what: str, hint: str) -> Iterable[Problem]:
    for path in paths[:NAMED]:
        yield Problem(rule=rule, what=f"{path}: {what}", hint=hint)
    if len(paths) > NAMED:
        yield Problem(rule=rule, what=f"{len(paths) - NAMED} more files {what}", hint=hint)


def landed_records(conversations: Iterable[Measured], astray: Counter[str]) -> Landed:
    """How many records stand in pages, of the chain that has most of a file. ``astray`` is told, by agent, how many
    follow one that no file of their conversation has."""
    found: dict[tuple[str, str, str], int] = {}
    for one in conversations:
        astray[one.provider] += one.activity.astray
        if one.guest:
            continue
        for number, file in enumerate(one.activity.files):
            key = one.provider, unquote(one.name), file.src
            theirs = sum(guest.files[number].records for _, guest in one.activity.guests)
            found[key] = max(found.get(key, 0), file.records + theirs)
    return found
