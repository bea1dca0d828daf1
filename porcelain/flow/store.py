"""Flow in a store: the landed files of a conversation, and the chain of rounds over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from objstore import kinds
from objstore.chain import entries, frame_keys
from objstore.core import ListOf, list_pieces
from objstore.errors import CheckFailed, NotFound, UsageError
from objstore.refs import quote
from objstore.snapshot import Snapshot
from objstore.store import load, load_many
from porcelain.flow.assembly import Written
from porcelain.flow.entries import Landed, from_page
from porcelain.flow.folding import Fold, apply
from porcelain.flow.kinds import FlowRound, from_frame, from_round, to_round
from porcelain.flow.sf import Round
from porcelain.providers.records import Landing, Page, Record, page_record_ids

Put = Callable[[str, bytes], str]
_KIND_OF = {"SfNode": "flow-node", "SfRelation": "flow-relation", "SfUnresolved": "flow-unresolved"}


def landed_ref(store: str, provider: str, conversation: str) -> str:
    """The ref of a store's landing chain of a conversation."""
    return f"landed/{store}/{provider}/{quote(conversation)}"


def flow_ref(store: str, provider: str, conversation: str) -> str:
    """The ref of a store's chain of rounds of a conversation."""
    return f"flow/{store}/{provider}/{quote(conversation)}"


def pages(view: Snapshot, head: bytes) -> Iterator[Page]:
    """The pages of a landing chain, in order of ``seq``."""
    for _, entry in entries(view, head):
        if not isinstance(entry, Landing):
            raise CheckFailed(f"{head.hex()}: is not the head of a landing chain")
        for page_id in entry.pages:
            yield load(view, bytes.fromhex(page_id), "page")


def page_records(view: Snapshot, page: Page) -> list[Record]:
    """The records of a page, in row order."""
    return load_many(view, [bytes.fromhex(record_id) for record_id in page_record_ids(page)], "record")


def landed_files(view: Snapshot, head: bytes) -> list[Landed]:
    """What assembly reads of a landing chain."""
    return [from_page(page, page_records(view, page)) for page in pages(view, head)]


def put_round(written: Written, previous: str | None, put: Put) -> str:
    """Store a round and its frames; the id of the round object."""
    round_ = written.round
    ids = [
        put(_KIND_OF[type(frame).__name__], kinds.encode(from_frame(frame)))
        for group in (round_.nodes, round_.relations, round_.unresolved)
        for frame in group
    ]
    lists = [put("list", kinds.encode(ListOf(items=items))) for items in list_pieces(ids)]
    return put("flow-round", kinds.encode(from_round(round_, lists, previous)))


def stored_rounds(view: Snapshot, head: bytes) -> Iterator[tuple[bytes, FlowRound, Round]]:
    """The rounds of a chain, oldest first: object key, round object, and the round as it stands in a file."""
    for key, entry in entries(view, head):
        if not isinstance(entry, FlowRound):
            raise CheckFailed(f"{head.hex()}: is not the head of a chain of rounds")
        keys = list(frame_keys(view, "flow-round", entry))
        frames = load_many(view, keys, "flow-node", "flow-relation", "flow-unresolved")
        yield key, entry, to_round(entry, frames)


def stored_fold(view: Snapshot, head: bytes | None) -> Fold:
    """The fold of a chain; an empty one for None."""
    fold = Fold()
    if head is not None:
        for _, _, round_ in stored_rounds(view, head):
            apply(fold, round_)
    return fold


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
