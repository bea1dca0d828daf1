"""``objstore lineage threads``: the conversations that belong together, in order."""

from __future__ import annotations

from collections import Counter
from typing import Any

from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer, counted, printable, say
from plumbing.interface.stores import open_store
from porcelain.lineage.facts.projection import Projection, Row, hosts_of, records, with_columns
from porcelain.lineage.index.opening import open_lineage

SUMMARY = "conversations that belong together, and how"
USAGE = "lineage threads [--all] [--limit N] [--json] [WORD...]"
OPTIONS = (
    Option("--all", help="threads of a single file too"),
    Option(("-n", "--limit"), "limit", "N", "at most this many", "integer"),
    JSON,
)
EXAMPLES = ("objstore lineage threads", "objstore lineage threads --all tidepool")
ARGUMENTS = (0, None)


def run(arguments: Arguments, context: Context) -> int:
    """List threads whose name, ids or folders contain every WORD, the one used last first."""
    with open_store(context) as store, open_lineage(store) as indexed:
        threads = thread_rows(indexed.projection())
    words = [word.casefold() for word in arguments.args]
    threads = [
        one
        for one in threads
        if (arguments.all or len(one["members"]) > 1) and all(word in _text(one) for word in words)
    ]
    shown = threads if arguments.limit is None else threads[: arguments.limit]
    with Writer(context.stdout) as out:
        for one in shown:
            if arguments.json:
                out.json(one)
                continue
            for line in _lines(one):
                out.line(printable(line))
    if len(shown) < len(threads):
        say(context, f"{counted(len(threads) - len(shown), 'thread')} not shown")
    elif not threads:
        say(
            context,
            "no thread of more than one file" if not (words or arguments.all) else "no thread matches",
        )
    return 0


def thread_rows(projection: Projection) -> list[dict[str, Any]]:
    """The threads of a view with their members and resume targets, the one used last first, ties by id."""
    tables = projection.tables
    columns: tuple[str, ...] = ("id", "path", "last_event_at", "presence", "metadata_json")
    files = {row["id"]: row for row in with_columns(tables["session_observations"], *columns)}
    hosts = hosts_of(files.values())
    columns = ("id", "provider", "provider_session_id")
    sessions = {row["id"]: row for row in with_columns(tables["sessions"], *columns)}
    members: dict[str, list[dict[str, Any]]] = {}
    columns = ("thread_id", "ordinal", "observation_id", "session_id", "role")
    placed = with_columns(tables["thread_members"], *columns)
    for row in sorted(placed, key=lambda row: (row["thread_id"], row["ordinal"])):
        file, session = files[row["observation_id"]], sessions[row["session_id"]]
        members.setdefault(row["thread_id"], []).append(
            {
                "id": session["provider_session_id"],
                "last": hosts[file["id"]].last if file["id"] in hosts else file["last_event_at"],
                "observation": row["observation_id"],
                "path": file["path"],
                "presence": file["presence"],
                "provider": session["provider"],
                "records": hosts[file["id"]].records if file["id"] in hosts else records(file),
                "role": row["role"],
            }
        )
    relations: dict[str, Counter[str]] = {}
    for row in tables["thread_edges"]:
        relations.setdefault(row["thread_id"], Counter())[row["relation"]] += 1
    columns = ("thread_id", "reasons_json", "recommended_observation_id", "status")
    targets = {row["thread_id"]: row for row in with_columns(tables["thread_resume_targets"], *columns)}
    rows = [
        {
            "id": row["id"],
            "label": row["label"],
            "members": members[row["id"]],
            "relations": dict(sorted(relations.get(row["id"], {}).items())),
            "resume": _resume(targets[row["id"]]),
            "cycles": row["metadata_json"].get("cycles", []),
        }
        for row in tables["logical_threads"]
    ]
    rows.sort(key=lambda one: one["id"])
    return sorted(rows, key=lambda one: max(m["last"] or "" for m in one["members"]), reverse=True)


def _resume(row: Row) -> dict[str, Any]:
    return {
        "reasons": row["reasons_json"],
        "recommended": row["recommended_observation_id"],
        "status": row["status"],
    }


def _text(one: dict[str, Any]) -> str:
    members = " ".join(f"{m['id']} {m['path']}" for m in one["members"])
    return f"{one['id']} {one['label']} {members}".casefold()


def _lines(one: dict[str, Any]) -> list[str]:
    counts = ", ".join(f"{count} {relation}" for relation, count in one["relations"].items())
    head = f"{one['label'] or one['members'][0]['id']}  ({counted(len(one['members']), 'file')}"
    lines = [head + (f": {counts}" if counts else "") + f"; resume {one['resume']['status']})"]
    for member in one["members"]:
        mark = "*" if member["observation"] == one["resume"]["recommended"] else " "
        gone = "  gone" if member["presence"] == "absent" else ""
        last = member["last"][:16].replace("T", " ") if member["last"] else "-" * 16
        lines.append(
            f"  {mark} {member['role']:<14}  {last}  {member['records']:>7,}  {member['provider']} "
            f"{member['id'][:13]}  {member['path']}{gone}"
        )
    if one["cycles"]:
        lines.append(f"    in a circle: {counted(sum(map(len, one['cycles'])), 'file')}")
    return lines
