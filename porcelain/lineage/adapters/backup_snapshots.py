"""Backups as evidence: in which snapshots a conversation's file is there, and in which it is not.

A folder of snapshots holds one folder for each, each a copy of the whole disk, of a volume, or (``under``) of one
folder. Of a run of snapshots that agree about a file the first and the last are kept: the windows in which it was there
or not. Snapshots are only read, and only names, sizes and times of files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

from msgspec import Struct

from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.facts.making import fact
from porcelain.lineage.facts.projection import Projection
from porcelain.lineage.facts.times import normal_time, time_of_ns
from porcelain.providers.redaction import redact_text

PROVENANCE = "backup-snapshot"
_LABEL_TIME = re.compile(
    r"(\d{4})-?(\d{2})-?(\d{2})(?:[-_T .]?(\d{2})[-:.]?(\d{2})(?:[-:.]?(\d{2}))?)?(Z)?", re.ASCII
)
#: How files of conversations are called.
_ENDINGS = (".jsonl", ".jsonl.zst", ".json")


class Seen(Struct, frozen=True, kw_only=True):
    """What one snapshot says about one path."""

    snapshot: str
    present: bool
    size: int | None = None
    modified: str | None = None


class FileHistory(Struct, frozen=True, kw_only=True):
    """One file through all snapshots, oldest first; ``observation`` is the id of what the store has of it."""

    path: str
    seen: list[Seen]
    observation: str | None = None

    @property
    def windows(self) -> list[tuple[bool, str, str]]:
        """Present or not, and the first and last snapshot that say so."""
        found = []
        for present, run in groupby(self.seen, key=lambda one: one.present):
            labels = [one.snapshot for one in run]
            found.append((present, labels[0], labels[-1]))
        return found


def snapshots_in(folder: Path) -> list[Path]:
    """The snapshots in ``folder``, oldest first: by the time in the name where all have one, else by name."""
    found = sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink())
    times = [snapshot_time(path.name) for path in found]
    if all(times):
        return [
            path
            for _, path in sorted(zip(times, found, strict=True), key=lambda pair: (pair[0] or "", pair[1]))
        ]
    return found


def snapshot_time(label: str) -> str | None:
    """The time that a snapshot's name states (in UTC where it does not say), or None."""
    found = _LABEL_TIME.search(label)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return normal_time(moment.isoformat())


def histories(
    folder: Path, roots: Mapping[str, Mapping[str, str]], under: str | None = None
) -> list[FileHistory]:
    """The files below ``roots`` through all snapshots in ``folder``. ``roots`` has, for each folder of sessions on this
    host, the paths that the store knows there with their observations; ``under`` is the folder that the snapshots are
    copies of, where they are not of a whole disk or volume."""
    snapshots = snapshots_in(folder)
    found: dict[str, dict[str, Seen]] = {}
    looked: dict[str, set[str]] = {}
    observations: dict[str, str] = {}
    for root, known in roots.items():
        observations.update(known)
        for snapshot in snapshots:
            inside = _inside(snapshot, root, under)
            if inside is None:
                continue
            looked.setdefault(root, set()).add(snapshot.name)
            for path, seen in _files(inside, root, snapshot.name):
                found.setdefault(path, {})[snapshot.name] = seen
    order = [snapshot.name for snapshot in snapshots]
    result = []
    for path in sorted(found.keys() | {path for root in looked for path in roots[root]}):
        of_root = max(
            (root for root in looked if path.startswith(root.rstrip("/") + "/")), key=len, default=None
        )
        if of_root is None:
            continue
        said = [
            found.get(path, {}).get(name) or Seen(snapshot=name, present=False)
            for name in order
            if name in looked[of_root]
        ]
        result.append(FileHistory(path=path, seen=said, observation=observations.get(path)))
    return result


def _inside(snapshot: Path, root: str, under: str | None) -> Path | None:
    """Where ``root`` lies in a snapshot, or None."""
    if under is not None:
        base = under.rstrip("/")
        if root == base or root.startswith(base + "/"):
            place = snapshot / root[len(base) :].lstrip("/")
            return place if place.is_dir() else None
        return None
    relative = root.lstrip("/")
    place = snapshot / relative
    if place.is_dir():
        return place
    volumes = sorted(path for path in snapshot.iterdir() if path.is_dir() and not path.is_symlink())
    return next((volume / relative for volume in volumes if (volume / relative).is_dir()), None)


def _files(inside: Path, root: str, label: str) -> Iterator[tuple[str, Seen]]:
    for folder, names, files in os.walk(inside):
        names.sort()
        for name in sorted(files):
            if not name.endswith(_ENDINGS):
                continue
            place = os.path.join(folder, name)
            try:
                stat = os.stat(place)
            except OSError:
                continue
            path = root.rstrip("/") + "/" + os.path.relpath(place, inside).replace(os.sep, "/")
            yield (
                path,
                Seen(snapshot=label, present=True, size=stat.st_size, modified=time_of_ns(stat.st_mtime_ns)),
            )


def known_roots(projection: Projection, host: str) -> dict[str, dict[str, str]]:
    """The folders of sessions on ``host``, each with the paths of files that the store knows there and their
    observations."""
    roots = {
        row["id"]: row["uri"]
        for row in projection.tables["sources"]
        if row["kind"] == "live_sessions" and row["metadata_json"].get("host") == host
    }
    found: dict[str, dict[str, str]] = {uri: {} for uri in roots.values()}
    for row in projection.tables["session_observations"]:
        uri = roots.get(row["source_id"])
        if uri is not None and row["path"] is not None and row["path"].endswith(_ENDINGS):
            found[uri][row["path"]] = row["id"]
    return found


def facts_of(folder: Path, found: Iterable[FileHistory], host: str) -> list[Fact]:
    """The facts (not revised) of the windows of each file: the backup, and what its first and last snapshot of each
    window say."""
    source = fact(
        "source",
        {
            "provider": "backup-snapshot",
            "kind": "backup_snapshot",
            "uri": _text(str(folder)),
            "label": f"backups in {_text(folder.name)}",
            "metadata": {"host": host},
        },
        provenance=PROVENANCE,
        confidence="high",
    )
    facts = [source]
    for history in found:
        by_name = {one.snapshot: one for one in history.seen}
        for _, first, last in history.windows:
            facts += [_observed(source, history, by_name[label]) for label in dict.fromkeys((first, last))]
    return facts


def _observed(source: Fact, history: FileHistory, seen: Seen) -> Fact:
    columns = {
        "source_id": source.id,
        "session_observation_id": history.observation,
        "snapshot_label": _text(seen.snapshot),
        "snapshot_timestamp": snapshot_time(seen.snapshot),
        "path": _text(history.path),
        "presence": "present" if seen.present else "absent",
        "file_mtime": seen.modified,
        "file_size": seen.size,
    }
    return fact("backup_observation", columns, provenance=PROVENANCE, confidence="high")


def _text(text: str) -> str:
    return redact_text(text.encode("utf-8", "backslashreplace").decode().replace("\x00", "\ufffd"))
