"""An answer on the terminal while it is being written: a draft, taken away again when the checked answer takes its
place."""

from __future__ import annotations

import shutil
from typing import BinaryIO

from plumbing.interface.output import display_width, encode, printable
from porcelain.session.commands.style import Style


class Draft:
    """Writes pieces of text to a terminal as they come, and removes what it wrote as long as it fits the screen."""

    def __init__(self, stream: BinaryIO, style: Style) -> None:
        self._stream = stream
        self._style = style
        self._size = shutil.get_terminal_size()
        self._ended = 0
        self._width = 0

    @property
    def _rows(self) -> int:
        """Rows of the screen above the one that the cursor is in. A line that fills its row stays in it."""
        return self._ended + max(0, self._width - 1) // self._size.columns

    def __call__(self, text: str) -> None:
        """Show one more piece."""
        lines = [printable(line) for line in text.split("\n")]
        for number, line in enumerate(lines):
            if number:
                self._ended = self._rows + 1
                self._width = 0
            self._width += display_width(line)
        self._stream.write(encode("\n".join(self._style.dim(line) for line in lines)))
        self._stream.flush()

    def clear(self) -> None:
        """Take the draft away, or end its last line where it is too long to be taken away."""
        if not self._ended and not self._width:
            return
        if self._rows < self._size.lines - 1:
            up = f"\x1b[{self._rows}A" if self._rows else ""
            self._stream.write(encode(f"\r{up}\x1b[J"))
        else:
            self._stream.write(b"\n")
        self._stream.flush()
        self._ended = self._width = 0
