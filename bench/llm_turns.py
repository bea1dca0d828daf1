"""The peer of one turn: ``llm`` (PyPI) logging prompts and responses. Run by an interpreter that has it:
``python llm_turns.py FILE TURNS`` prints seconds a turn. No model is asked."""

from __future__ import annotations

import sys
import time

import llm
import sqlite_utils
from llm.migrations import migrate


class Canned(llm.Model):
    """A model that always says the same."""

    model_id = "canned"

    def execute(self, prompt, stream, response, conversation):  # type: ignore[no-untyped-def]
        return ["Ada Byron, in a note on the Engine. [E1]"]


def main() -> None:
    """Log a conversation."""
    database = sqlite_utils.Database(sys.argv[1])
    migrate(database)
    conversation = Canned().conversation()
    turns = int(sys.argv[2])
    seconds = 0.0
    for number in range(turns):
        response = conversation.prompt(f"What did she write on page {number}?")
        response.text()
        started = time.perf_counter()
        response.log_to_db(database)
        seconds += time.perf_counter() - started
    print(seconds / turns)


main()
