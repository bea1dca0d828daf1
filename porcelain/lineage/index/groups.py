"""The groups of tokens: which tokens have come together, in memory for what is new and in the index for all."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence

from porcelain.lineage.index.tables import in_parts, placed

#: Numbers of groups stand above all tokens, where both are in one set.
_ABOVE = 1 << 64


class Groups:
    """Joins tokens; ``settle`` writes what has come together and says which groups that touched."""

    def __init__(self, connection: sqlite3.Connection, *, empty: bool) -> None:
        self._run = connection.execute
        self._many = connection.executemany
        self._empty = empty
        self._above: dict[int, int] = {}
        self._known: dict[int, int] = {}
        self._next = self._run("SELECT coalesce(max(grp), 0) + 1 FROM token").fetchone()[0]

    def of(self, tokens: Iterable[int]) -> dict[int, int]:
        """The groups in the index of those tokens that have one."""
        found: dict[int, int] = {}
        for part in in_parts(tokens):
            rows = self._run(f"SELECT hash, grp FROM token WHERE hash IN ({placed(part)})", part)
            found.update(rows)
        return found

    def add(self, token: int, group: int) -> None:
        """Make a token known that nothing was derived from, as one of this group."""
        self._run("INSERT OR IGNORE INTO token VALUES (?, ?)", (token, group))

    def join(self, tokens: Sequence[int]) -> None:
        """Bring tokens together; one token alone is made known."""
        top = self._top(tokens[0])
        for token in tokens[1:]:
            other = self._top(token)
            if other != top:
                self._above[other] = top

    def _top(self, token: int) -> int:
        above = self._above
        if token not in above:
            above[token] = token
            return token
        top = token
        while (higher := above[top]) != top:
            top = higher
        while (higher := above[token]) != top:
            above[token] = top
            token = higher
        return top

    def settle(self) -> set[int]:
        """Write what was joined since the last time; the numbers of all groups that any of these tokens is in now."""
        if not self._empty:
            for token, group in self.of(list(self._above)).items():
                self.join([token, _ABOVE + group])
                self._known[token] = group
        members: dict[int, list[int]] = defaultdict(list)
        held: dict[int, list[int]] = defaultdict(list)
        for token in list(self._above):
            (held if token >= _ABOVE else members)[self._top(token)].append(token)
        touched: set[int] = set()
        made: list[tuple[int, int]] = []
        for top, tokens in members.items():
            groups = sorted(token - _ABOVE for token in held.get(top, ()))
            if groups:
                group = groups[0]
                for other in groups[1:]:
                    for table in ("token", "owned", "weak"):
                        self._run(f"UPDATE {table} SET grp = ? WHERE grp = ?", (group, other))
            else:
                group, self._next = self._next, self._next + 1
            touched.add(group)
            made += ((token, group) for token in tokens if token not in self._known)
        made.sort()
        self._many("INSERT INTO token VALUES (?, ?)", made)
        self._above, self._known, self._empty = {}, {}, False
        return touched
