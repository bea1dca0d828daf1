"""Colours on a terminal that shows them, and none elsewhere, under ``NO_COLOR`` or on a dumb terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import BinaryIO

from plumbing.interface.options import Context

_MODES = {"HYBRID": "33", "STRICT": "32", "UNGROUNDED": "31"}


def wants_colour(stream: BinaryIO, env: Mapping[str, str]) -> bool:
    """Whether colours may be written to ``stream``."""
    return stream.isatty() and not env.get("NO_COLOR") and env.get("TERM") != "dumb"


class Style:
    """Puts text in colour, or leaves it as it is."""

    def __init__(self, *, colour: bool) -> None:
        self.colour = colour

    @classmethod
    def of(cls, context: Context) -> Style:
        """The style of a command's standard output."""
        return cls(colour=wants_colour(context.stdout, context.env))

    def _in(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and text else text

    def bold(self, text: str) -> str:
        return self._in("1", text)

    def dim(self, text: str) -> str:
        return self._in("2", text)

    def label(self, text: str) -> str:
        return self._in("36", text)

    def warning(self, text: str) -> str:
        return self._in("33", text)

    def mode(self, mode: str) -> str:
        """An audit mode: STRICT green, HYBRID yellow, UNGROUNDED red."""
        return self._in(_MODES.get(mode, "2"), mode)
