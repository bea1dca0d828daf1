"""What the chains of conversations are called, and finding them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from objstore.errors import NotFound, UsageError
from objstore.refs import quote
from objstore.snapshot import Snapshot
from objstore.store import load
from porcelain.flow.chain.landed import pages
from porcelain.providers.records import page_record_ids

#: Stands in a ref between a conversation and the parser and policy of a chain of its rounds; no quoted id has it.
_INTERPRETATION = "@"


def landed_ref(store: str, provider: str, conversation: str) -> str:
    """The ref of a store's landing chain of a conversation."""
    return f"landed/{store}/{provider}/{quote(conversation)}"


def flow_ref(store: str, provider: str, conversation: str) -> str:
    """The ref of a store's first chain of rounds of a conversation."""
    return f"flow/{store}/{provider}/{quote(conversation)}"


def own_flow(view: Snapshot, store: str, provider: str, conversation: str) -> tuple[str, bytes | None]:
    """The ref, and the head, of the chain that a store goes on with: by the parser and policy of this program. Where
    the first chain is by another it is kept, and one with both in its name stands beside it."""
    ref = flow_ref(store, provider, conversation)
    head = view.ref(ref)
    if head is not None and not _is_todays(view, head):
        from porcelain.flow.assembly import PARSER, POLICY

        ref += f"{_INTERPRETATION}{quote(PARSER)}+{quote(POLICY)}"
        head = view.ref(ref)
    return ref, head


def _is_todays(view: Snapshot, head: bytes) -> bool:
    """Whether a chain of rounds is by the parser and policy of this program."""
    from porcelain.flow.assembly import PARSER, POLICY

    entry = load(view, head, "flow-round")
    return bool((entry.parser, entry.policy) == (PARSER, POLICY))


def origin_of(ref: str) -> str:
    """What tells the chain of rounds under a ref from others of its conversation: the store, and for one by another
    parser or policy than the store's first ``store@parser+policy``."""
    _, store, _, name = ref.split("/", 3)
    return store + "".join(name.partition(_INTERPRETATION)[1:])


def conversations(view: Snapshot, prefix: str) -> Iterator[tuple[str, str, str, bytes]]:
    """Chains under ``landed`` or ``flow``: origin, provider, conversation (as quoted), head."""
    for name, key in view.refs(prefix + "/"):
        parts = name.split("/", 3)
        if len(parts) == 4:
            yield origin_of(name), parts[2], parts[3].partition(_INTERPRETATION)[0], key


def all_chains(view: Snapshot) -> dict[tuple[str, str, str], dict[str, bytes]]:
    """Every telling of every conversation: heads ``landed`` and ``flow`` by (origin, provider, conversation)."""
    found: dict[tuple[str, str, str], dict[str, bytes]] = {}
    for prefix in ("landed", "flow"):
        for origin, provider, name, key in conversations(view, prefix):
            heads = found.setdefault((origin, provider, name), {})
            heads[prefix] = key
            if _INTERPRETATION in origin and (landed := _landed_of(view, origin, provider, name)) is not None:
                heads["landed"] = landed
    return found


def _landed_of(view: Snapshot, origin: str, provider: str, name: str) -> bytes | None:
    """The head of the landing chain that rounds of ``origin`` cover."""
    return view.ref(f"landed/{origin.partition(_INTERPRETATION)[0]}/{provider}/{name}")


def best_heads(view: Snapshot, prefix: str) -> dict[tuple[str, str], bytes]:
    """For each (provider, conversation), the chain under ``landed`` or ``flow`` that covers most: what views show."""
    return {name: heads[0] for name, heads in ranked_heads(view, prefix).items()}


def ranked_heads(view: Snapshot, prefix: str) -> dict[tuple[str, str], list[bytes]]:
    """For each (provider, conversation), the different heads of all stores' chains under ``landed`` or ``flow``: first
    the one that covers most."""
    found: dict[tuple[str, str], list[tuple[str, bytes]]] = {}
    for store, provider, conversation, key in conversations(view, prefix):
        found.setdefault((provider, conversation), []).append((store, key))
    return {name: ranked(view, *name, prefix, found[name]) for name in sorted(found)}


def ranked(
    view: Snapshot, provider: str, conversation: str, prefix: str, heads: Sequence[tuple[str, bytes]]
) -> list[bytes]:
    """A conversation's different heads, each given with its origin: the one that covers most records first, then what
    this program's parser and policy made, then by id. How many pages there are does not matter: a store that imports
    often has many small ones."""
    stores = {key: store for store, key in heads}
    if len(stores) == 1:
        return [heads[0][1]]

    def rank(key: bytes) -> tuple[int, bool, int, bytes]:
        through = int(load(view, key, "landing", "flow-round").through_seq)
        landed: bytes | None = key
        if prefix == "flow":
            landed = _landed_of(view, stores[key], provider, conversation)
        covered = len(different_records(view, landed, through)) if landed is not None else 0
        return -covered, prefix == "flow" and not _is_todays(view, key), -through, key

    return sorted(stores, key=rank)


def different_records(view: Snapshot, landed: bytes, through: int | None = None) -> set[str]:
    """The ids of the records in the pages of a landing chain, up to page ``through``."""
    found: set[str] = set()
    for number, page in enumerate(pages(view, landed), start=1):
        if through is not None and number > through:
            break
        found.update(page_record_ids(page))
    return found


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
