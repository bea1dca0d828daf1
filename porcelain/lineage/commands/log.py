"""``objstore lineage log``: what was learned, round by round, the latest first."""

from __future__ import annotations

from collections import Counter
from typing import Any

from objstore.chain import entries, frame_keys
from objstore.snapshot import Snapshot
from objstore.store import load
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer, counted, printable, say
from plumbing.interface.stores import open_store
from porcelain.lineage.facts.store import CHAIN

SUMMARY = "what was learned, round by round"
USAGE = "lineage log [--limit N] [--facts] [--json]"
OPTIONS = (
    Option(("-n", "--limit"), "limit", "N", "at most this many rounds of each chain", "integer"),
    Option("--facts", help="every fact of a round too"),
    JSON,
)
EXAMPLES = ("objstore lineage log -n 3", "objstore lineage log --facts -n 1")
ARGUMENTS = (0, 0)


def run(arguments: Arguments, context: Context) -> int:
    """The rounds of every lineage chain in the store."""
    with open_store(context) as store, store.snapshot() as view, Writer(context.stdout) as out:
        heads = list(view.refs(f"{CHAIN}/"))
        for name, head in heads:
            rounds = entries(view, head)[::-1]
            for key, entry in rounds if arguments.limit is None else rounds[: arguments.limit]:
                said = _round(view, name, key, entry)
                if arguments.json:
                    out.json(said if arguments.facts else {k: v for k, v in said.items() if k != "facts"})
                    continue
                counts = ", ".join(counted(n, kind.replace("_", " ")) for kind, n in said["kinds"].items())
                out.line(f"{name}  round {said['round']}  {said['id'][:12]}  {counts}")
                for one in said["facts"] if arguments.facts else ():
                    gone = "  taken back" if one["tombstone"] else ""
                    out.line(printable(f"    {one['id']}  r{one['revision']}  {one['provenance']}{gone}"))
        if not heads:
            say(context, "nothing learned yet: objstore import")
    return 0


def _round(view: Snapshot, name: str, key: bytes, entry: Any) -> dict[str, Any]:
    facts = [load(view, frame, "fact") for frame in frame_keys(view, "round", entry)]
    return {
        "chain": name,
        "facts": [
            {
                "id": one.id,
                "kind": one.kind,
                "provenance": one.provenance,
                "revision": one.revision,
                "tombstone": one.tombstone is True,
            }
            for one in facts
        ],
        "id": key.hex(),
        "kinds": dict(sorted(Counter(one.kind for one in facts).items())),
        "round": entry.round,
    }
