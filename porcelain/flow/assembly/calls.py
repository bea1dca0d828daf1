"""Stage 3, calls: the fragments of one model response, brought together by call id across the session."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from porcelain.flow.assembly.entries import FINISHED, SYNTHETIC, Entry
from porcelain.flow.assembly.streams import Stream


class Call(Struct):
    """A model call. ``flags`` is the union of its fragments'; usage is that of the last fragment in landed order, as
    each fragment repeats the running total."""

    fragments: list[Entry]
    flags: int

    @property
    def finished(self) -> bool:
        """Some fragment says that the response came to its end."""
        return self.flags & FINISHED != 0

    @property
    def synthetic(self) -> bool:
        """The runtime wrote the response, not a model."""
        return self.flags & SYNTHETIC != 0


def is_response(entry: Entry) -> bool:
    """True for a record that the model (or the runtime in its name) wrote."""
    return entry.origin == "agent" and entry.kind == "transcript"


def calls(streams: Iterable[Stream]) -> dict[str, Call]:
    """Calls by call id."""
    found: dict[str, Call] = {}
    crossing = False
    for stream in streams:
        for entry in stream.entries:
            name = entry.call
            if name and is_response(entry):
                call = found.get(name)
                if call is None:
                    found[name] = Call([entry], entry.flags)
                else:
                    crossing = crossing or call.fragments[-1].stream != entry.stream
                    call.fragments.append(entry)
                    call.flags |= entry.flags
    if crossing:
        for call in found.values():
            call.fragments.sort(key=lambda entry: (entry.seq, entry.row))
    return found
