"""SQLite statements and the documentation page, made from ``schema``."""

from __future__ import annotations

from porcelain.lineage.tables.columns import Column, Table
from porcelain.lineage.tables.schema import EVENTS, SCHEMA_VERSION, TABLES

_SQL_TYPES = {"INTEGER": "INTEGER", "FLAG": "INTEGER"}

#: Readable views: names instead of ids.
VIEWS: tuple[tuple[str, str], ...] = (
    (
        "readable_sessions",
        """SELECT s.provider, s.provider_session_id AS native_id,
  (SELECT nullif(value, '') FROM labels WHERE target_id = s.id AND label_type = 'display_name'
   ORDER BY valid_from DESC, id LIMIT 1) AS display_name,
  (SELECT l.value FROM labels l JOIN session_observations o ON o.id = l.target_id
   WHERE o.session_id = s.id AND l.label_type = 'cwd' ORDER BY l.valid_from DESC, l.id LIMIT 1) AS cwd,
  s.event_count AS records, s.start_timestamp AS first, s.end_timestamp AS last,
  (SELECT count(*) FROM session_observations o WHERE o.session_id = s.id) AS files, s.id
FROM sessions s ORDER BY s.end_timestamp DESC, s.id""",
    ),
    (
        "readable_observations",
        """SELECT o.path, o.presence, s.provider, s.provider_session_id AS native_id, o.line_count, o.file_size,
  o.first_event_at, o.last_event_at, src.label AS source, o.id
FROM session_observations o LEFT JOIN sessions s ON s.id = o.session_id LEFT JOIN sources src ON src.id = o.source_id
ORDER BY o.path, o.id""",
    ),
    (
        "readable_edges",
        """SELECT e.timestamp, e.edge_type, a.path AS source_path, b.path AS target_path, e.confidence,
  e.provenance, e.id
FROM edges e LEFT JOIN session_observations a ON a.id = e.source_observation_id
LEFT JOIN session_observations b ON b.id = e.target_observation_id
ORDER BY e.timestamp, e.id""",
    ),
    (
        "readable_evidence",
        """SELECT e.kind, e.summary, e.confidence, o.path, e.target_type, e.target_id, e.id
FROM evidence e LEFT JOIN session_observations o ON o.id = e.target_id ORDER BY e.kind, e.target_id, e.id""",
    ),
)


def create_table(table: Table) -> str:
    """The CREATE TABLE statement of ``table``."""
    lines = [f"  {_definition(column)}" for column in table.columns]
    return f"CREATE TABLE {table.name} (\n" + ",\n".join(lines) + "\n)"


def create_indexes(table: Table) -> list[str]:
    """The CREATE INDEX statements of ``table``, to be run after its rows are in."""
    return [
        f"CREATE INDEX {table.name}_{'_'.join(columns)} ON {table.name} ({', '.join(columns)})"
        for columns in table.indexes
    ]


def insert(table: Table) -> str:
    """The INSERT statement of ``table``, one place for each column. An event that is there already is passed over: the
    same record at the same place is the same event."""
    places = ", ".join("?" for _ in table.columns)
    return f"INSERT {'OR IGNORE ' if table is EVENTS else ''}INTO {table.name} VALUES ({places})"


def _definition(column: Column) -> str:
    words = [column.name, _SQL_TYPES.get(column.type, "TEXT")]
    if column.origin == "id":
        return f"{column.name} TEXT PRIMARY KEY NOT NULL"
    if column.required:
        words.append("NOT NULL")
    if column.unique:
        words.append("UNIQUE")
    if column.default is not None:
        default = str(int(column.default)) if isinstance(column.default, bool) else f"'{column.default}'"
        words.append(f"DEFAULT {default}")
    if column.values:
        listed = ", ".join(f"'{value}'" for value in column.values)
        words.append(f"CHECK ({column.name} IN ({listed}))")
    if column.references is not None:
        words.append(f"REFERENCES {column.references} (id)")
    return " ".join(words)


def page() -> str:
    """The tables as a Markdown page, for the documentation."""
    parts = [f"Version {SCHEMA_VERSION} of the exported view. `*` marks columns that are never empty.\n"]
    for table in TABLES:
        parts.append(f"## `{table.name}` (JSON: `{table.json_name}`)\n\n{table.about}\n")
        parts.append("| column | type | JSON | says |\n|---|---|---|---|")
        parts.append("\n".join(_described(column) for column in table.columns) + "\n")
    return "\n".join(parts)


def _described(column: Column) -> str:
    says = []
    if column.references is not None:
        says.append(f"a row of `{column.references}`")
    if column.values:
        says.append(", ".join(f"`{value}`" for value in column.values))
    if column.origin == "derived":
        says.append("computed from other rows")
    if column.volatile:
        says.append("left out of comparisons")
    star = "*" if column.required else ""
    return f"| `{column.name}`{star} | {column.type.lower()} | `{column.json_name}` | {'; '.join(says)} |"
