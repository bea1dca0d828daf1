"""What each agent's token counts mean: whether cached tokens are part of the input, and reasoning part of the output.

=========  ==========================  ==========================================
agent      cached                      reasoning
=========  ==========================  ==========================================
claude     beside the input            part of the output
codex      part of the input           part of the output
factory    beside the input            part of the output
oh-my-pi   beside the input            part of the output
opencode   beside the input            part of the output before 1.4, then beside
pi         beside the input            part of the output
=========  ==========================  ==========================================
"""

from __future__ import annotations

import re
from typing import NamedTuple

from porcelain.providers.records import Usage

#: The first minor version of OpenCode 1 whose output leaves the reasoning out.
_OPENCODE_APART = (1, 4)
_VERSION = re.compile(r"(\d+)\.(\d+)")


class Tokens(NamedTuple):
    """Tokens of one model call, or the sum of several. ``input`` has no cached tokens in it; ``output`` has the
    reasoning in it, of which ``reasoning`` is a part."""

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0

    @property
    def total(self) -> int:
        """All tokens, each once."""
        return self.input + self.cache_read + self.cache_write + self.output

    def plus(self, other: Tokens) -> Tokens:
        """The sum of both."""
        return Tokens(
            self[0] + other[0], self[1] + other[1], self[2] + other[2], self[3] + other[3], self[4] + other[4]
        )


def tokens_of(provider: str, stated: Usage, version: str = "") -> Tokens:
    """What ``stated`` by ``provider`` means; ``version`` is that of the agent, where it is known."""
    fresh, output = stated.in_, stated.out
    if provider == "codex":
        fresh = max(0, fresh - stated.cache_read - stated.cache_write)
    elif provider == "opencode" and (stated.reasoning > stated.out or _is_apart(version)):
        output += stated.reasoning
    return Tokens(fresh, stated.cache_read, stated.cache_write, output, min(stated.reasoning, output))


def _is_apart(version: str) -> bool:
    found = _VERSION.match(version)
    return found is not None and (int(found.group(1)), int(found.group(2))) >= _OPENCODE_APART
