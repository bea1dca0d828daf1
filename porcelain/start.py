"""Where the program begins: nothing is loaded yet, and Ctrl-C waits until what reports it is."""

from __future__ import annotations

from porcelain.interrupts import hold

hold()


def main() -> int:
    """Run the command line that the program was given, and return its exit code."""
    from porcelain.main import main as run

    return run()
