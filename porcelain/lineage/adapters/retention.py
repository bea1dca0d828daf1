"""How long each agent keeps its own files, and which of them it will delete next.

Claude Code deletes transcripts at its start that were last written more than ``cleanupPeriodDays`` days ago (30 unless
its settings say otherwise). Of the other agents no such setting is known: they keep what they wrote.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path

from msgspec import Struct

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
    """What an agent deletes within some days: how many conversations, how many files of them, the first day (one that
    is over where it has not done so yet), and those of the files that are given as not kept elsewhere."""

    conversations: int
    files: int
    first: str | None
    unkept: int


def expiring(
    files: Iterable[tuple[str, str, str]],
    retention: Retention,
    now: str,
    within: int,
    unkept: Container[str] = (),
) -> Expiring:
    """What of ``files`` (path, conversation, time of the last change) will be deleted within ``within`` days of
    ``now``."""
    if retention.days is None:
        return Expiring(conversations=0, files=0, first=None, unkept=0)
    limit = datetime.fromisoformat(now) + timedelta(days=within - retention.days)
    due = [one for one in files if datetime.fromisoformat(one[2]) <= limit]
    first = min((time for _, _, time in due), default=None)
    return Expiring(
        conversations=len({conversation for _, conversation, _ in due}),
        files=len(due),
        first=None if first is None else _deleted_on(first, retention.days),
        unkept=sum(path in unkept for path, _, _ in due),
    )


def _deleted_on(changed: str, days: int) -> str:
    return (datetime.fromisoformat(changed) + timedelta(days=days)).strftime("%Y-%m-%d")
