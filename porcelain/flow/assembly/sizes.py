"""How large a round must become at least, so that windows that cannot fit are not assembled in order to see it."""

from __future__ import annotations

from collections.abc import Sequence

from porcelain.flow.assembly.calls import is_response
from porcelain.flow.assembly.canonical import ASIDE
from porcelain.flow.assembly.ids import call_id, tool_id
from porcelain.flow.entries import Landed
from porcelain.flow.folding import Fold

#: Bytes of the shortest frame of each sort, without the names that it holds.
_CALL, _FRAGMENT, _TOOL, _PART = 230, 16, 215, 100


def furthest(files: Sequence[Landed], fold: Fold, budget: int) -> int:
    """The last file that a round of ``budget`` bytes after ``fold`` can reach at most.

    Counted are frames that are new for certain: calls and tool uses that the fold does not have, parts of responses.
    """
    first = fold.through_seq
    seen = {entry.id for landed in files[:first] for entry in landed.entries if entry.kind != "provider_body"}
    counted: set[str] = set()
    size = 0
    for index in range(first, len(files)):
        for entry in files[index].entries:
            if entry.id and entry.kind != "provider_body":
                if entry.id in seen:
                    continue
                seen.add(entry.id)
            if not entry.stream or entry.kind in ASIDE:
                continue
            if entry.call and is_response(entry):
                node = call_id(entry.call)
                length = len(node)
                if node not in fold.nodes:
                    size += _FRAGMENT
                    if node not in counted:
                        counted.add(node)
                        size += _CALL + length
                size += (len(entry.texts) + len(entry.thoughts)) * (_PART + length)
            for use in entry.uses:
                node = tool_id(use.id)
                if use.id and node not in fold.nodes and node not in counted:
                    counted.add(node)
                    size += _TOOL + len(node) + len(use.name)
        if size > budget:
            return index
    return len(files)
