"""How large a round must become at least, so that windows that cannot fit are not assembled in order to see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from porcelain.flow.assembly.calls import is_response
from porcelain.flow.assembly.canonical import ASIDE
from porcelain.flow.assembly.entries import Landed
from porcelain.flow.assembly.ids import call_id, tool_id
from porcelain.flow.chain.folding import Fold

#: Bytes of the shortest frame of each sort, without the names that it holds.
_CALL, _FRAGMENT, _TOOL, _PART = 230, 16, 215, 100


class Reached(Struct, frozen=True):
    """What a chain has: whether a record id has landed in a file that it covers, and whether there is a node of a call
    or of a tool use."""

    record: Callable[[str], bool]
    call: Callable[[str], bool]
    tool: Callable[[str], bool]


def reached(files: Sequence[Landed], fold: Fold) -> Reached:
    """What ``fold`` has, of all landed ``files``."""
    seen = {
        entry.id
        for landed in files[: fold.through_seq]
        for entry in landed.entries
        if entry.kind != "provider_body"
    }
    return Reached(
        seen.__contains__,
        lambda name: call_id(name) in fold.nodes,
        lambda name: tool_id(name) in fold.nodes,
    )


def furthest(files: Sequence[Landed], known: Reached, budget: int) -> int:
    """How many of the new ``files`` a round of ``budget`` bytes can cover at most.

    Counted are frames that are new for certain: calls and tool uses that the chain does not have, parts of responses.
    """
    seen: set[str] = set()
    counted: set[str] = set()
    size = 0
    for index, landed in enumerate(files):
        for entry in landed.entries:
            if entry.id and entry.kind != "provider_body":
                if entry.id in seen or known.record(entry.id):
                    continue
                seen.add(entry.id)
            if not entry.stream or entry.kind in ASIDE:
                continue
            if entry.call and is_response(entry):
                node = call_id(entry.call)
                length = len(node)
                if not known.call(entry.call):
                    size += _FRAGMENT
                    if node not in counted:
                        counted.add(node)
                        size += _CALL + length
                size += (len(entry.texts) + len(entry.thoughts)) * (_PART + length)
            for use in entry.uses:
                node = tool_id(use.id)
                if use.id and node not in counted and not known.tool(use.id):
                    counted.add(node)
                    size += _TOOL + len(node) + len(use.name)
        if size > budget:
            return index
    return len(files)
