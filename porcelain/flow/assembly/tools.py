"""Stage 4, tools: each request joined with its result by tool-use id. Two results for one request stay ambiguous."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from porcelain.flow.assembly.entries import Entry, Result, Use
from porcelain.flow.assembly.streams import Stream


class Tool(Struct):
    """A tool use. ``result`` is the first that landed, ``results`` how many did; ``manifest`` is the record of the
    workflow that it launched; ``starts_child`` makes it an agent call."""

    request: Entry
    use: Use
    result: Entry | None
    result_block: int
    results: int
    starts_child: bool
    manifest: Entry | None


class Tools(Struct):
    """Tools by tool-use id, and the ids of results whose request never landed."""

    by_id: dict[str, Tool]
    orphans: list[str]


def tools(streams: Iterable[Stream]) -> Tools:
    """Join requests and results over all streams; streams come in order of name."""
    by_id: dict[str, Tool] = {}
    results: list[tuple[Entry, Result]] = []
    for stream in streams:
        for entry in stream.entries:
            for use in entry.uses:
                if use.id and use.id not in by_id:
                    by_id[use.id] = Tool(entry, use, None, 0, 0, False, None)
            for result in entry.results:
                if result.of:
                    results.append((entry, result))
    orphans: dict[str, None] = {}
    for entry, result in results:
        tool = by_id.get(result.of)
        if tool is None:
            orphans[result.of] = None
            continue
        if tool.result is None:
            tool.result, tool.result_block = entry, result.block
        tool.results += 1
    return Tools(by_id, list(orphans))
