"""What is wrong with a file of one of the public formats."""

from __future__ import annotations

from objstore.errors import CheckFailed


class FormatError(CheckFailed):
    """A rule of a format is broken. ``rule`` is its short name, ``line`` counts from 1 where one line is at fault,
    ``expected`` and ``found`` are set where two values differ."""

    def __init__(
        self,
        rule: str,
        message: str,
        *,
        line: int | None = None,
        expected: str | None = None,
        found: str | None = None,
    ) -> None:
        super().__init__(message if line is None else f"line {line}: {message}")
        self.rule = rule
        self.line = line
        self.expected = expected
        self.found = found
