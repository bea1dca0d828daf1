"""The two sides of a step: a standing as it was before the new rows, and as it is after them."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from porcelain.flow.assembly.standing import (
    BatchKnown,
    CallKnown,
    Core,
    Known,
    RunKnown,
    Standing,
    StreamKnown,
    TalkKnown,
    ToolKnown,
)


class View(Struct):
    """One side of a step: lookups as they were, or as they are."""

    core: Core
    record: Callable[[str], Known | None]
    call: Callable[[str], CallKnown | None]
    tool: Callable[[str], ToolKnown | None]
    stream: Callable[[str], StreamKnown | None]
    run: Callable[[str], RunKnown | None]
    talk: Callable[[str], TalkKnown | None]
    batch: Callable[[str], BatchKnown | None]


def before(standing: Standing) -> View:
    """As of the last commit."""
    s = standing
    return View(
        s.old_core,
        s.records.old,
        s.calls.old,
        s.tools.old,
        s.streams.old,
        s.runs.old,
        s.talks.old,
        s.batches.old,
    )


def after(standing: Standing) -> View:
    """As it is now."""
    s = standing
    return View(
        s.core, s.records.get, s.calls.get, s.tools.get, s.streams.get, s.runs.get, s.talks.get, s.batches.get
    )
