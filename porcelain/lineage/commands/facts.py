"""``objstore lineage facts``: what is known about one thing, and where it comes from."""

from __future__ import annotations

from typing import Any

import msgspec

from objstore.errors import NotFound
from plumbing.interface.options import JSON, Arguments, Context
from plumbing.interface.output import Writer, printable
from plumbing.interface.stores import open_store
from porcelain.lineage.derived.lookup import find_session
from porcelain.lineage.derived.rows import derived_facts
from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.index.opening import open_lineage

SUMMARY = "all facts about a conversation, a file or an edge"
USAGE = "lineage facts [--json] ID"
OPTIONS = (JSON,)
EXAMPLES = ("objstore lineage facts 3f2a",)
ARGUMENTS = (1, 1)


def run(arguments: Arguments, context: Context) -> int:
    """Print the fact with this id and those that name it; for a conversation also those about its files."""
    with open_store(context) as store, open_lineage(store) as indexed:
        stored, found = indexed.bearing_on(arguments.args[0])
    names = {one.id for _, one in stored}
    rows = [*stored, *(pair for pair in derived_facts(found) if pair[1].id not in names)]
    wanted = {arguments.args[0]}
    if not any(one.id in wanted for _, one in rows):
        session = find_session(found, arguments.args[0])
        wanted = {session, *(node.id for node in found.nodes.of_session[session])}
    shown = [pair for pair in rows if wanted & _names(pair[1])]
    if not shown:
        raise NotFound(f"{arguments.args[0]}: no fact names it")
    shown.sort(key=lambda pair: (pair[1].id not in wanted, pair[1].kind, pair[1].id))
    with Writer(context.stdout) as out:
        for key, one in shown:
            if arguments.json:
                out.json({"object": key, "stored": one.id in names, **msgspec.to_builtins(one)})
            else:
                for line in _lines(key, one, one.id in names):
                    out.line(printable(line))
    return 0


def _names(one: Fact) -> set[str]:
    """The ids that a fact holds, its own among them."""
    found = {one.id, *one.evidence}
    found.update(value for value in one.columns.values() if type(value) is str)
    data = one.columns.get("data", {})
    found.update(data.get("other_targets", []) if isinstance(data, dict) else [])
    return found


def _lines(key: str, one: Fact, stored: bool) -> list[str]:
    where = f"revision {one.revision}, object {key[:12]}" if stored else "derived"
    lines = [f"{one.id}  {one.kind}  {one.confidence} by {one.provenance}  ({where})"]
    lines += [f"    {name}: {_shown(value)}" for name, value in sorted(one.columns.items())]
    if one.evidence:
        lines.append(f"    evidence: {' '.join(one.evidence)}")
    return lines


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
