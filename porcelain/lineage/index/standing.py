"""Where an index stands: which program made it, from which chains, and whether that is what the store has now. Read by
every view before anything else, so that little is loaded for it."""

from __future__ import annotations

from itertools import zip_longest

from porcelain.commands import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from objstore.snapshot import Snapshot

#: Of the form of the index, and of what is derived; a change of a rule needs another one.
FORM = 5


def edition() -> str:
    """What the index is stamped with: an index of another edition is made anew."""
    return f"{FORM}/{VERSION}"


def lineage_heads(view: Snapshot) -> dict[str, str]:
    """Where the chains of facts stand."""
    return {ref: key.hex() for ref, key in view.refs("lineage/")}


def heads_text(heads: dict[str, str]) -> str:
    """Heads as the state of the index keeps them: a ref and an id a line. No name of a ref has a blank in it."""
    return "\n".join(f"{ref} {head}" for ref, head in heads.items())


def known_heads(connection: sqlite3.Connection) -> dict[str, str]:
    """The heads of the chains of facts that the index was made from."""
    lines = (state_value(connection, "heads") or "").split("\n")
    return {ref: head for ref, blank, head in (line.partition(" ") for line in lines) if blank}


def state_value(connection: sqlite3.Connection, name: str) -> str | None:
    """A value of the state of the index."""
    row = connection.execute("SELECT value FROM state WHERE name = ?", (name,)).fetchone()
    return None if row is None else row[0]


def is_fresh(connection: sqlite3.Connection, view: Snapshot) -> bool:
    """Whether the index says what ``view`` does. Raises ``sqlite3.DatabaseError`` where it is damaged."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'state'").fetchone() is None:
        return False
    if state_value(connection, "edition") != edition() or known_heads(connection) != lineage_heads(view):
        return False
    landed = connection.execute("SELECT ref, head FROM landed ORDER BY ref")
    return all(one == two for one, two in zip_longest(landed, view.refs("landed/")))


def landed_stamp(view: Snapshot) -> bytes:
    """What tells whether anything was landed between two snapshots."""
    from hashlib import blake2b

    digest = blake2b(digest_size=16)
    for name, key in view.refs("landed/"):
        digest.update(name.encode() + b"\0" + key)
    return digest.digest()
