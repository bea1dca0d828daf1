"""How long each agent keeps its own files, and which of them it will delete next.

Claude Code deletes transcripts at its start that were last written more than ``cleanupPeriodDays`` days ago (30 unless
its settings say otherwise). Of the other agents no such setting is known: they keep what they wrote.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path

from msgspec import Struct

from porcelain.lineage.projection import Row

CLAUDE_DEFAULT_DAYS = 30
_CLAUDE_SETTING = "cleanupPeriodDays"
_SETTINGS_FILES = ("settings.json", "settings.local.json")
_MOST_DAYS = 36_500


class Retention(Struct, frozen=True, kw_only=True):
    """What an agent does with its old files. ``days`` is None where it deletes none by age; ``setting`` names the
    setting, ``place`` the file that states it, "" for the agent's own default; ``problem`` what could not be read."""

    provider: str
    days: int | None
    setting: str = ""
    place: str = ""
    problem: str = ""


def retention_of(provider: str, env: Mapping[str, str], home: Path | None) -> Retention:
    """The retention of ``provider`` for the user with this environment and home folder. Nothing but the setting is
    taken from the agent's files."""
    if provider != "claude":
        return Retention(provider=provider, days=None)
    override = env.get("CLAUDE_CONFIG_DIR")
    folders = (
        [Path(override)] if override else [home / ".claude", home / ".config" / "claude"] if home else []
    )
    found = Retention(provider=provider, days=CLAUDE_DEFAULT_DAYS, setting=_CLAUDE_SETTING)
    for folder in folders:
        for name in _SETTINGS_FILES:
            path = folder / name
            try:
                stated = json.loads(path.read_bytes()).get(_CLAUDE_SETTING)
            except FileNotFoundError:
                continue
            except (OSError, ValueError, AttributeError, RecursionError):
                return Retention(
                    provider=provider,
                    days=CLAUDE_DEFAULT_DAYS,
                    setting=_CLAUDE_SETTING,
                    place=str(path),
                    problem="cannot be read",
                )
            if isinstance(stated, int) and not isinstance(stated, bool) and stated >= 0:
                found = Retention(
                    provider=provider, days=min(stated, _MOST_DAYS), setting=_CLAUDE_SETTING, place=str(path)
                )
    return found


class Expiring(Struct, frozen=True, kw_only=True):
    """The transcripts of an agent that it deletes within ``within`` days from ``now``: how many conversations, how many
    of their files, and the first and last time (days that are already over count as now)."""

    conversations: int
    files: int
    first: str | None


def expiring(rows: Iterable[Row], retention: Retention, now: str, within: int) -> Expiring:
    """What of the present observations ``rows`` of one agent will be deleted within ``within`` days."""
    if retention.days is None:
        return Expiring(conversations=0, files=0, first=None)
    limit = datetime.fromisoformat(now) + timedelta(days=within - retention.days)
    oldest = [
        (row["file_mtime"], row["session_id"])
        for row in rows
        if row["presence"] == "present"
        and row["file_mtime"] is not None
        and row["metadata_json"].get("kind", "transcript") == "transcript"
        and datetime.fromisoformat(row["file_mtime"]) <= limit
    ]
    return Expiring(
        conversations=len({session for _, session in oldest}),
        files=len(oldest),
        first=deletion_time(min(oldest)[0], retention) if oldest else None,
    )


def deletion_time(mtime: str, retention: Retention) -> str | None:
    """When a file last written at ``mtime`` becomes old enough to be deleted (a day), or None for never."""
    if retention.days is None:
        return None
    try:
        return (datetime.fromisoformat(mtime) + timedelta(days=retention.days)).strftime("%Y-%m-%d")
    except OverflowError:
        return None
