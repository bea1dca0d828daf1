"""What the index adds up to, agent by agent, counted by SQLite itself: nothing of the model is loaded for it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

#: As in ``tables``, which would be loaded for this alone.
GUEST = "json_type(metadata_json, '$.inside') IS NOT NULL"
#: Rows of facts that the store holds; the others are derived. What of a conversation was seen in the file of another is
#: counted, and is no file.
_STORED = "EXISTS (SELECT 1 FROM fact WHERE fact.id = {}.id)"
_CONVERSATIONS = f"""
SELECT s.provider, count(*) AS conversations, sum(s.event_count) AS records
FROM sessions s WHERE {_STORED.format("s")} OR s.id IN (
  SELECT session_id FROM session_observations WHERE {GUEST}) GROUP BY s.provider ORDER BY s.provider
"""
_FILES = f"""
SELECT s.provider, count(*) AS files, sum(o.presence = 'absent') AS gone,
  sum(coalesce(json_extract(o.metadata_json, '$.damage.count'), 0)) AS damaged,
  sum(o.id IN (SELECT e.target_id FROM evidence e WHERE e.kind = 'filesystem_stat'
    AND json_extract(e.data_json, '$.state') = 'conflict' AND {_STORED.format("e")})) AS rewritten
FROM session_observations o JOIN sessions s ON s.id = o.session_id
WHERE {_STORED.format("o")} AND {_STORED.format("s")} GROUP BY s.provider
"""


def counts_by_agent(connection: sqlite3.Connection) -> dict[str, dict[str, int]]:
    """By name of agent: ``conversations``, ``records`` (copies once), ``files``, and how many of the files are
    ``gone``, how many stretches in them ``damaged``, how many files ``rewritten``. As ``views.listing.session_rows``
    adds up."""
    none = dict.fromkeys(("files", "gone", "damaged", "rewritten"), 0)
    found = {
        provider: {"conversations": conversations, "records": records, **none}
        for provider, conversations, records in connection.execute(_CONVERSATIONS)
    }
    for provider, *counts in connection.execute(_FILES):
        found[provider].update(zip(none, counts, strict=True))
    return found
