"""Where a Codex rollout stands between two lines: the thread, the turn, the model call that is open, the tokens so far.

All of it is kept in a ``ReaderState``, so that the next import goes on where the last one stopped. Names that begin
with ``_`` are this module's own; the others are the surroundings that hold for every following line.

Older versions name neither turns (0.79) nor messages (0.110). Whatever has no name gets one here that begins with
``~``: a hash of what it says and of what stands before it, counted from the thread that it was written in first. A fork
that repeats its parent's lines under the parent's ``session_meta`` therefore gives them the parent's names.
"""

from __future__ import annotations

import hashlib

from porcelain.providers.reader import ReaderState

#: Prompts that a roll-back can find again.
_MAX_PROMPTS = 256
_NAME_DIGITS = 20


class Turns:
    """Reads and moves the place that ``state`` holds."""

    def __init__(self, state: ReaderState) -> None:
        self._values = state.values

    @property
    def surroundings(self) -> dict[str, str]:
        """What holds for the lines from here on (``session``, ``cwd``), as a new dict."""
        return {key: self._values[key] for key in ("session", "cwd") if key in self._values}

    # -- the thread --------------------------------------------------------------------------------------------------

    @property
    def own(self) -> str:
        """The id of the thread that the file belongs to; empty before its ``session_meta``."""
        return self._values.get("_own", "")

    def begin(self, thread: str, *, subagent: bool, first_own: int | None, cwd: str | None) -> None:
        """The file's own ``session_meta``. ``first_own`` is the ordinal of a sub-agent's first line of its own."""
        values = self._values
        values["_own"] = values["_seed"] = values["session"] = thread
        if subagent:
            values["_subagent"] = "1"
        if first_own is not None:
            values["_first_own"] = str(first_own)
        self.move(cwd)

    def repeat(self, thread: str) -> None:
        """The ``session_meta`` of another thread: its lines are repeated from here on."""
        values = self._values
        values["_seed"] = values["_copy"] = thread
        for key in ("_run", "_turn", "_last", "_n", "_k", "_open", "_total"):
            values.pop(key, None)

    def reach(self, ordinal: int | None) -> None:
        """A line with this ordinal comes; it may be the first that a sub-agent wrote itself."""
        first_own = self._values.get("_first_own")
        if first_own is not None and ordinal is not None and ordinal >= int(first_own):
            self.resume()

    def resume(self) -> None:
        """What was repeated ends here, as the file's own ``session_meta``, once more, or an ordinal says."""
        values = self._values
        if values.pop("_copy", None):
            values["_seed"] = self.own
            for key in ("_run", "_turn", "_n", "_k", "_open"):
                values.pop(key, None)

    def move(self, cwd: str | None) -> None:
        """The folder that the agent works in from here on."""
        if cwd:
            self._values["cwd"] = cwd

    @property
    def is_repeated(self) -> bool:
        """Whether the lines of the current turn were written in another thread first.

        Where nothing says where they end, a turn whose id (UUIDv7) is older than the thread was there before it.
        """
        values = self._values
        if "_copy" not in values:
            return False
        if "_first_own" in values:
            return True
        turn = uuid_milliseconds(values.get("_turn", ""))
        thread = uuid_milliseconds(self.own)
        return turn is None or thread is None or turn < thread

    @property
    def is_delegated(self) -> bool:
        """Whether a prompt comes from another agent: the thread is a sub-agent's and the line its own."""
        return "_subagent" in self._values and not self.is_repeated

    # -- turns and model calls ---------------------------------------------------------------------------------------

    @property
    def run(self) -> str:
        """The turn in progress; empty before the first."""
        return self._values.get("_run", "")

    @property
    def model(self) -> str:
        return self._values.get("_model", "")

    def enter(self, turn: str | None, model: str | None = None) -> None:
        """A line of ``turn``, where it names one."""
        if model:
            self._values["_model"] = model
        if turn and turn != self._values.get("_turn"):
            self._values["_turn"] = turn
            self._begin_run(turn)

    def prompt(self, record: str, before: str) -> None:
        """A prompt became the record ``record``; ``before`` is the record that precedes it. In files that name no turns
        it begins one."""
        values = self._values
        if "_turn" not in values:
            self._begin_run(record)
        asked = values.get("_prompts", "").split()
        values["_prompts"] = " ".join([*asked, before or "-"][-_MAX_PROMPTS:])

    def _begin_run(self, run: str) -> None:
        values = self._values
        if run != values.get("_run"):
            values["_run"] = run
            for key in ("_n", "_k", "_open"):
                values.pop(key, None)

    def answer(self) -> str:
        """The model call that a line of an answer belongs to."""
        values = self._values
        values["_open"] = "1"
        held = values.get("_k")
        return f"{self._call()}.{held}" if held else self._call()

    def input(self) -> None:
        """Something was given to the model: what it answers next is another call."""
        values = self._values
        if values.pop("_open", None):
            values["_k"] = str(int(values.get("_k", "0")) + 1)

    @property
    def is_answering(self) -> bool:
        """Whether there are lines of an answer whose tokens are not stated yet."""
        return "_open" in self._values

    def spend(self, payload: bytes) -> str:
        """The model call whose tokens the line ``payload`` states; it is over. One of which nothing else is known is
        named after what is stated."""
        values = self._values
        call = self._call() if self.run or self.is_answering else self.aside(payload)
        values["_n"] = str(int(values.get("_n", "0")) + 1)
        values.pop("_k", None)
        values.pop("_open", None)
        return call

    def _call(self) -> str:
        values = self._values
        return f"{values.get('_run') or values.get('_seed', '')}.{values.get('_n', '0')}"

    # -- records -----------------------------------------------------------------------------------------------------

    @property
    def last(self) -> str:
        """The record of the last message, call or result; empty for none."""
        return self._values.get("_last", "")

    def name(self, stated: str | None, payload: bytes) -> tuple[str, str]:
        """The id of the message, call or result ``payload``, which may state one, and that of the one before it."""
        values = self._values
        before = values.get("_last", "")
        found = stated or self._hash(before or values.get("_seed", ""), payload)
        values["_last"] = found
        return found, before

    def aside(self, payload: bytes) -> str:
        """The id of a line that is no part of the conversation itself: the same for the same words in one turn."""
        return self._hash(self.run or self._values.get("_seed", ""), payload)

    @staticmethod
    def _hash(before: str, payload: bytes) -> str:
        hashed = hashlib.sha256(before.encode("utf-8"))
        hashed.update(b"\0")
        hashed.update(payload)
        return "~" + hashed.hexdigest()[:_NAME_DIGITS]

    def roll_back(self, turns: int) -> str:
        """Take the last ``turns`` prompts back; the record that is now the last, empty for none or when not known."""
        values = self._values
        asked = values.get("_prompts", "").split()
        if not 0 < turns <= len(asked):
            return ""
        before = asked[-turns]
        values["_prompts"] = " ".join(asked[:-turns])
        values["_last"] = "" if before == "-" else before
        return values["_last"]

    @property
    def remembered(self) -> str:
        """The digest of the first prompt."""
        return self._values.get("_first", "")

    def remember(self, digest: str) -> None:
        """Keep the digest of the first prompt, by which a name that was made of it is known."""
        self._values.setdefault("_first", digest)

    # -- tokens ------------------------------------------------------------------------------------------------------

    @property
    def counts_by_response(self) -> bool:
        """Whether each model call has a record of its tokens, so that running totals say nothing new."""
        return "_by_response" in self._values

    def count_by_response(self) -> None:
        self._values["_by_response"] = "1"

    def totals(self, stated: str) -> str | None:
        """Take note of running totals; those before them, or None when they are the same."""
        before = self._values.get("_total", "")
        self._values["_total"] = stated
        return None if stated == before else before


def uuid_milliseconds(text: str) -> int | None:
    """Milliseconds since 1970 that a UUID of version 7 states; None for any other text."""
    if len(text) != 36 or text[14] != "7":
        return None
    try:
        return int(text[:8] + text[9:13], 16)
    except ValueError:
        return None


def digest(text: str) -> str:
    """A short hash by which a text is known again without being kept."""
    return hashlib.sha256(text.strip().encode("utf-8")).hexdigest()[:_NAME_DIGITS]
