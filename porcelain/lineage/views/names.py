"""What views call things: conversations and their files by the best label they have, and projects.

Which label is best is a matter of the view: the order of types is given. A project is what a person or a scan stated
about repositories, else the working directory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from porcelain.lineage.facts.projection import Row, with_columns
from porcelain.lineage.relations.nodes import NAMED_URI
from porcelain.lineage.views.listing import LABEL_PRIORITY

#: Words for ``--labels``, best first by default: types of labels, and what a file says without one.
LABELS = (*LABEL_PRIORITY, "native_id")
_RANK = {"low": 0, "medium": 1, "high": 2, "authoritative": 3, "manual": 4}
_LAST = "9999-12-31T23:59:59.999Z"


class Names:
    """The names in the tables of a view. ``priority`` are words of ``LABELS``; what has none of those is called by its
    native id."""

    def __init__(self, tables: Mapping[str, Sequence[Row]], priority: Sequence[str] = LABEL_PRIORITY) -> None:
        self._priority = priority
        self._labels = _labels(_named(tables, "labels"))
        self._sessions = {row["id"]: row for row in _named(tables, "sessions")}
        self._sources = {row["id"]: row for row in _named(tables, "sources")}
        self._files: dict[str, list[Row]] = defaultdict(list)
        self._observations = {row["id"]: row for row in _named(tables, "session_observations")}
        for row in self._observations.values():
            if row["session_id"] is not None:
                self._files[row["session_id"]].append(row)
        self._repositories = _Repositories(tables)
        self._projects: dict[str, str] = {}

    def session(self, session: str) -> str:
        """What a conversation is called."""
        return self._named(session, self._files[session])

    def observation(self, observation: str) -> str:
        """What a file of a conversation is called."""
        row = self._observations[observation]
        return self._named(row["session_id"], [row])

    def given(self, session: str) -> str | None:
        """The name that a person gave a conversation."""
        return self._labels.get((session, "display_name"), ("", None))[1]

    def folder(self, observation: str) -> str | None:
        """The working directory that a file states: the first of several."""
        return self._labels.get((observation, "cwd"), ("", None))[1]

    def session_folder(self, session: str) -> str | None:
        """The working directory that the first file of a conversation with any states."""
        for row in self._files.get(session, ()):
            folder = self.folder(row["id"])
            if folder:
                return folder
        return None

    def project(self, session: str) -> str:
        """The project of a conversation; "" where nothing says."""
        found = self._projects.get(session)
        if found is None:
            folder = self.session_folder(session)
            start = self._sessions[session]["start_timestamp"] if session in self._sessions else None
            found = self._projects[session] = self.project_of_folder(folder, start) if folder else ""
        return found

    def place(self, observation: str) -> str | None:
        """The project of the working directory that a file states; None where it states none."""
        folder = self.folder(observation)
        session = self._observations[observation]["session_id"]
        start = self._sessions[session]["start_timestamp"] if session in self._sessions else None
        return self.project_of_folder(folder, start) if folder else None

    def project_of_folder(self, folder: str, time: str | None = None) -> str:
        """The project that a folder belongs to, at ``time`` where that is given: a repository's name, else itself."""
        return self._repositories.name_of(folder, time) or folder

    @property
    def repositories(self) -> set[str]:
        """The names of all projects that are known as such."""
        return self._repositories.names

    def _named(self, session: str | None, files: Iterable[Row]) -> str:
        rows = list(files)
        for kind in self._priority:
            found = self._by_kind(kind, session, rows)
            if found:
                return found
        own = self._sessions.get(session or "")
        return (own["provider_session_id"] if own is not None else None) or session or "-"

    def _by_kind(self, kind: str, session: str | None, rows: list[Row]) -> str | None:
        if kind == "path":
            paths = sorted(row["path"] for row in rows if row["path"])
            return PurePosixPath(paths[0]).name if paths else None
        if kind == "native_id":
            return None
        targets = [session] if session is not None else []
        targets += [row["source_id"] if kind == "source" else row["id"] for row in rows]
        held = [self._labels[target, kind] for target in targets if (target, kind) in self._labels]
        if held:
            return (held[0] if kind == "cwd" else max(held))[1]
        if kind == "project" and session is not None:
            folder = next((found for row in rows if (found := self.folder(row["id"]))), None)
            return self._repositories.name_of(folder, None) if folder else None
        if kind == "source":
            sources = (self._sources.get(row["source_id"]) for row in rows)
            named = (one["label"] for one in sources if one is not None and one["uri"] != NAMED_URI)
            return min((str(name) for name in named if name), default=None)
        return None


#: The columns that names are made of, by table.
_COLUMNS: dict[str, tuple[str, ...]] = {
    "labels": ("id", "target_id", "label_type", "value", "valid_from", "valid_to", "confidence"),
    "repo_identities": ("id", "stable_name", "display_name"),
    "repo_observations": ("id", "repo_identity_id", "path", "valid_from", "valid_to", "confidence"),
    "session_observations": ("id", "session_id", "source_id", "path"),
    "sessions": ("id", "provider", "provider_session_id", "start_timestamp"),
    "sources": ("id", "label", "uri"),
}


def _named(tables: Mapping[str, Sequence[Row]], table: str) -> Iterable[Row]:
    return with_columns(tables[table], *_COLUMNS[table])


def _labels(rows: Iterable[Row]) -> dict[tuple[str, str], tuple[tuple[bool, bool, str, str], str]]:
    """The label that holds, with its weight, by target and type: one that is still valid before others, a person's
    before a program's, then the latest (of folders the first); an empty one takes the name away."""
    held: dict[tuple[str, str], tuple[tuple[bool, bool, str, str], str]] = {}
    for row in rows:
        key = (row["target_id"], row["label_type"])
        time = row["valid_from"] or ""
        weight = (row["valid_to"] is None, row["confidence"] == "manual", time, row["id"])
        before = held.get(key)
        if before is None:
            held[key] = (weight, row["value"])
        elif row["label_type"] == "cwd" and weight[:2] == before[0][:2]:
            held[key] = min(before, (weight, row["value"]))
        else:
            held[key] = max(before, (weight, row["value"]))
    return {key: found for key, found in held.items() if found[1]}


class _Repositories:
    """Which project a folder belongs to, by the statements about paths of repositories."""

    def __init__(self, tables: Mapping[str, Sequence[Row]]) -> None:
        names = {
            row["id"]: row["display_name"] or row["stable_name"] for row in _named(tables, "repo_identities")
        }
        self.names = set(names.values())
        self._at: dict[str, list[Row]] = defaultdict(list)
        self._name_of = names
        for row in _named(tables, "repo_observations"):
            if row["path"] is not None and row["repo_identity_id"] in names:
                self._at[row["path"].rstrip("/")].append(row)

    def name_of(self, folder: str, time: str | None) -> str | None:
        """By the longest path that holds ``folder``, then the surest statement."""
        path = folder.rstrip("/") if self._at else ""
        while path:
            fitting = [
                row
                for row in self._at.get(path, ())
                if time is None or (row["valid_from"] or "") <= time <= (row["valid_to"] or _LAST)
            ]
            if fitting:
                best = max(fitting, key=lambda row: (_RANK[row["confidence"]], row["repo_identity_id"]))
                return str(self._name_of[best["repo_identity_id"]])
            path = path.rpartition("/")[0]
        return None
