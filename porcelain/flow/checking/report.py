"""What a check of conversations says: one problem, and one conversation or folder."""

from __future__ import annotations

from msgspec import Struct, field


class FlowProblem(Struct, frozen=True):
    """One thing that is wrong. ``place`` is ``round N``, ``page N`` or ``chain``; of a folder, ``file`` is the path and
    ``line`` the line in it, from 1, where one is at fault."""

    conversation: str
    place: str
    rule: str
    what: str
    expected: str = ""
    found: str = ""
    file: str = ""
    line: int | None = None


class ConversationCheck(Struct):
    """What was looked at in one conversation, and what is wrong with it. ``places`` lists the pages and rounds, or the
    files, one by one; ``unkept`` counts those of foreign origin whose bytes the store did not keep."""

    conversation: str
    provider: str
    pages: int
    records: int
    rounds: int
    problems: list[FlowProblem]
    places: list[str] = field(default_factory=list)
    unkept: int = 0
