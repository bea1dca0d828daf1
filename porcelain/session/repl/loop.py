"""The interactive session, line by line until its end."""

from __future__ import annotations

import os

from objstore.errors import ObjstoreError
from objstore.store import Store
from plumbing.interface.options import Context
from porcelain.session.commands.answering import Asking
from porcelain.session.repl.conversation import Conversation
from porcelain.session.repl.prompting import NextLine, line_reader
from porcelain.session.tree.retention import hold_open


def converse(store: Store, sid: str, ask: Asking, context: Context, *, resumed: bool = False) -> int:
    """Work in a session at the terminal until ``/quit`` or Ctrl-D. No collection removes it meanwhile."""
    with hold_open(store, sid):
        conversation = Conversation(store, sid, ask, context)
        conversation.greet(resumed=resumed)
        run(conversation, line_reader(conversation, context))
        conversation.say([f"resume it with: objstore session --sid {sid}"])
    return 0


def run(conversation: Conversation, next_line: NextLine) -> None:
    """Do what each line says. What goes wrong is said, and the next line is asked for."""
    while True:
        try:
            line = next_line()
        except KeyboardInterrupt:
            continue  # the line was given up
        except EOFError:
            return
        try:
            if not conversation.handle(line):
                return
        except KeyboardInterrupt:
            conversation.say(["", "interrupted"])
        except ObjstoreError as error:
            conversation.complain(error.message, error.hint)
        except BrokenPipeError:
            raise
        except OSError as error:
            names = [os.fsdecode(name) for name in (error.filename,) if isinstance(name, (str, bytes))]
            conversation.complain(": ".join([*names, error.strerror or type(error).__name__]))
