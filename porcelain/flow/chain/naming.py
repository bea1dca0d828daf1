"""What the chains of conversations are called, and finding them."""

from __future__ import annotations

from collections.abc import Iterator

from objstore.errors import NotFound, UsageError
from objstore.refs import quote
from objstore.snapshot import Snapshot
from objstore.store import load


def landed_ref(store: str, provider: str, conversation: str) -> str:
    """The ref of a store's landing chain of a conversation."""
    return f"landed/{store}/{provider}/{quote(conversation)}"


def flow_ref(store: str, provider: str, conversation: str) -> str:
    """The ref of a store's chain of rounds of a conversation."""
    return f"flow/{store}/{provider}/{quote(conversation)}"


def conversations(view: Snapshot, prefix: str) -> Iterator[tuple[str, str, str, bytes]]:
    """Chains under ``landed`` or ``flow``: store, provider, conversation (as quoted), head."""
    for name, key in view.refs(prefix + "/"):
        parts = name.split("/", 3)
        if len(parts) == 4:
            yield parts[1], parts[2], parts[3], key


def all_chains(view: Snapshot) -> dict[tuple[str, str, str], dict[str, bytes]]:
    """Every conversation of every store: heads ``landed`` and ``flow`` by (store, provider, conversation)."""
    found: dict[tuple[str, str, str], dict[str, bytes]] = {}
    for prefix in ("landed", "flow"):
        for store, provider, name, key in conversations(view, prefix):
            found.setdefault((store, provider, name), {})[prefix] = key
    return found


def best_heads(view: Snapshot, prefix: str) -> dict[tuple[str, str], bytes]:
    """For each (provider, conversation), the chain that covers most, then the smallest head id: what views show."""
    best: dict[tuple[str, str], tuple[int, bytes]] = {}
    for _, provider, conversation, key in conversations(view, prefix):
        entry = load(view, key, "landing", "flow-round")
        rank = (-int(entry.through_seq), key)
        known = best.get((provider, conversation))
        if known is None or rank < known:
            best[provider, conversation] = rank
    return {name: rank[1] for name, rank in sorted(best.items())}


def find_conversation(view: Snapshot, text: str) -> tuple[str, str]:
    """Provider and name (quoted) of the one conversation that ``text`` names: its id, the beginning of it, or
    ``provider/id``. Raises ``NotFound`` for none, ``UsageError`` for several."""
    names = sorted(
        {(provider, name) for _, provider, name, _ in conversations(view, "landed")}
        | {(provider, name) for _, provider, name, _ in conversations(view, "flow")}
    )
    provider, slash, rest = text.rpartition("/")
    wanted = quote(rest)
    near = [one for one in names if one[1].startswith(wanted) and (not slash or one[0] == provider)]
    exact = [one for one in near if one[1] == wanted]
    found = exact or near
    if not found:
        raise NotFound(f"{text}: no such conversation", hint="list them with: objstore lineage sessions")
    if len(found) > 1:
        raise UsageError(
            f"{text}: names {len(found)} conversations",
            hint="type more of the id: " + " ".join(n for _, n in found[:3]),
        )
    return found[0]
