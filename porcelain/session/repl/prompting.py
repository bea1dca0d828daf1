"""Where the lines of an interactive session come from: prompt_toolkit, or the plain ``input`` where it is missing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from objstore.database import Database
from objstore.errors import StorageError
from plumbing.interface.options import Context
from porcelain.providers.redaction import redact_text
from porcelain.session.repl.completing import offers
from porcelain.session.repl.conversation import Conversation

if TYPE_CHECKING:
    from prompt_toolkit.history import History
    from prompt_toolkit.input import Input
    from prompt_toolkit.output import Output

#: The file of lines that were typed, in the store's folder.
HISTORY = "session-history"
#: Bytes of it that are kept.
_LARGEST = 1 << 20

NextLine = Callable[[], str]
"""Gives the next line; raises ``EOFError`` at the end and ``KeyboardInterrupt`` when the line was given up."""


def line_reader(conversation: Conversation, context: Context) -> NextLine:
    """The best way to read lines that is installed."""
    try:
        import prompt_toolkit  # noqa: F401
    except ImportError:
        conversation.say(
            ["for completion and history install the extra repl: pip install 'objstore-cli[repl]'"]
        )
        return plain_reader(conversation)
    return edited_reader(conversation, context)


def plain_reader(conversation: Conversation) -> NextLine:
    """Lines from ``input``."""

    def read() -> str:
        try:
            return input(conversation.prompt())
        except (EOFError, KeyboardInterrupt):
            conversation.say([""])  # the line that was begun ends
            raise

    return read


def edited_reader(
    conversation: Conversation,
    context: Context,
    *,
    input: Input | None = None,
    output: Output | None = None,
) -> NextLine:
    """Lines from prompt_toolkit, with completion and a history that outlives the session. ``input`` and ``output`` are
    the terminal unless given."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.application import get_app
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion
    from prompt_toolkit.document import Document
    from prompt_toolkit.filters import Condition
    from prompt_toolkit.formatted_text import ANSI
    from prompt_toolkit.output import ColorDepth

    class Offering(Completer):
        def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
            for offer in offers(conversation, document.text_before_cursor):
                yield Completion(offer.text, start_position=-offer.replaces, display_meta=offer.meaning)

    session: PromptSession[str] = PromptSession(
        completer=Offering(),
        complete_while_typing=Condition(lambda: get_app().current_buffer.text.startswith("/")),
        color_depth=None if conversation.style.colour else ColorDepth.DEPTH_1_BIT,
        history=history(conversation),
        input=input,
        output=output,
    )
    return lambda: session.prompt(ANSI(conversation.prompt()))


def history(conversation: Conversation) -> History:
    """What was typed in sessions of this store before, secrets replaced; in memory for a store in memory."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    class Redacted(FileHistory):
        def store_string(self, string: str) -> None:
            super().store_string(redact_text(string))

    database = conversation.store.database
    if not isinstance(database, Database):
        return InMemoryHistory()
    path = os.path.join(database.path, HISTORY)
    try:
        _make_private(path)
    except OSError as error:
        raise StorageError(f"{path}: cannot be written: {error.strerror}") from None
    return Redacted(path)


def _make_private(path: str) -> None:
    """Make the file, for its owner alone; of one that grew too large the older half goes."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "r+b") as file:
        os.fchmod(descriptor, 0o600)
        data = file.read()
        if len(data) > _LARGEST:
            begin = data.find(b"\n# ", len(data) // 2)
            file.seek(0)
            file.write(data[begin:] if begin >= 0 else b"")
            file.truncate()
