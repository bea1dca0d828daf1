"""Stage 6, epochs: a stream is cut where its context was reset.

In landed order only and never by time: the summary of a reset is often stamped before the reset itself.
"""

from __future__ import annotations

from porcelain.flow.assembly.entries import CONTEXT_RESET
from porcelain.flow.assembly.ids import joined, place
from porcelain.flow.assembly.streams import Epoch, Stream


def epochs(stream: Stream) -> list[Epoch]:
    """The epochs of a stream. The reset record opens the new one; a reset as the very first record cuts nothing."""
    found = [Epoch(joined("epoch", stream.name, "0"), 0, 0, None)]
    for index, entry in enumerate(stream.entries):
        if index and entry.flags & CONTEXT_RESET:
            found[-1].size = index - found[-1].start
            found.append(Epoch(joined("epoch", stream.name, entry.id or place(entry)), index, 0, entry))
    found[-1].size = len(stream.entries) - found[-1].start
    return found
