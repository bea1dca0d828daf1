"""What repositories say about when and where work was done: evidence of activity, never of lineage.

The ``git`` program is asked, without hooks or monitors of the repository and without ever writing, and in a repository
of jj ``jj`` too.
Names, remotes without who reaches them, first and last commits and the times of activity are taken; subjects of commits
only when they are asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec import Struct

from porcelain.lineage.adapters.asking import Refused, answer
from porcelain.lineage.adapters.jj_view import View
from porcelain.lineage.adapters.repos import normal_remote
from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.facts.making import Known, fact, withdrawn
from porcelain.lineage.facts.times import normal_time
from porcelain.providers.redaction import redact_text

PROVENANCE = "git-repository"
KIND = "git_activity"
#: Commits that lie further apart than this are in two windows of activity.
PAUSE = timedelta(days=30)
#: How deep below a folder repositories are looked for, unless told otherwise.
DEPTH = 4
#: Settings that keep a repository from running programs of its own.
_SAFE = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", "-c", "log.showSignature=false")
_FORMAT = "%H%x00%cI%x00%s"


class Window(Struct, frozen=True, kw_only=True):
    """A time of activity: its first and last commit's time, and how many there are."""

    first: str
    last: str
    commits: int


class Repository(Struct, frozen=True, kw_only=True):
    """One repository at ``path``. ``remotes`` are addresses in one form by name; ``first_commit`` is the oldest of its
    root commits, "" where the history is cut off; ``subjects`` pairs of time and subject, if asked for."""

    path: str
    name: str
    vcs: str
    remotes: dict[str, str]
    first_commit: str = ""
    first_at: str | None = None
    last_commit: str = ""
    last_at: str | None = None
    roots: tuple[str, ...] = ()
    windows: tuple[Window, ...] = ()
    subjects: tuple[tuple[str, str], ...] = ()
    shallow: bool = False

    @property
    def remote(self) -> str | None:
        """The address that stands for the repository: ``origin``'s, else the first by name."""
        if "origin" in self.remotes:
            return self.remotes["origin"]
        return self.remotes[min(self.remotes)] if self.remotes else None

    @property
    def stable_name(self) -> str:
        """``github:owner/name``, the host and path of another remote, or without any the folder."""
        remote = self.remote
        if remote is None or not remote.startswith("https://"):
            return f"path:{self.path}"
        host, _, path = remote.removeprefix("https://").partition("/")
        return f"github:{path}" if host == "github.com" else f"{host}:{path}"

    @property
    def commits(self) -> int:
        """How many commits there are in all branches."""
        return sum(window.commits for window in self.windows)


class Unreadable(Struct, frozen=True, kw_only=True):
    """A repository that could not be asked, and why."""

    path: str
    reason: str


def find_repositories(folders: Iterable[Path], depth: int = DEPTH) -> Iterator[Path]:
    """The repositories in ``folders``, at most ``depth`` below; nothing is looked for within one."""
    seen: set[str] = set()
    for start in folders:
        work = [(start, 0)]
        while work:
            folder, below = work.pop()
            real = os.path.realpath(folder)
            if real in seen:
                continue
            seen.add(real)
            if (folder / ".git").exists() or (folder / ".jj").is_dir():
                yield folder
                continue
            if below < depth:
                try:
                    inside = sorted(
                        (Path(one.path) for one in os.scandir(folder) if one.is_dir(follow_symlinks=False)),
                        reverse=True,
                    )
                except OSError:
                    continue
                work += [(one, below + 1) for one in inside if not one.name.startswith(".")]


def read_repository(path: Path, *, subjects: int = 0, program: str = "git") -> Repository | Unreadable:
    """What the repository at ``path`` says; with the subjects of so many of its newest commits, and of its first.

    Where git keeps the commits of jj it is asked about them, as jj cannot tell its own refs from those that only keep
    replaced commits; jj says which commits those refs leave out. Without jj that is left out."""
    place = _text(str(path))
    view = View(path) if (path / ".jj").is_dir() else None
    if (path / ".git").exists():
        vcs = "git+jj" if view else "git"
        where: tuple[str, ...] = ("-C", str(path))
    else:
        vcs = "jj"
        store = view.git_store() if view else None
        if view is None or store is None:
            return _kept_by_jj(path, View(path), subjects)
        where = (f"--git-dir={store}",)
    heads, untold = _heads(view)
    every = ("--ignore-missing", "--exclude=refs/jj/*", "--all", *heads)
    ask = _Git((program, *_SAFE, *where))
    try:
        shallow = ask.one("rev-parse", "--is-shallow-repository") == "true"
        roots = [] if shallow else ask.commits("--max-parents=0", *every)
        newest = ask.commits(*every, "--date-order", f"--max-count={max(subjects, 1)}")
        windows = windows_of(line for line in ask.lines("log", *every, "--format=%cI"))
        remotes = dict(_remotes(ask.one("config", "--null", "--get-regexp", r"^remote\..*\.url$")))
    except Refused as error:
        return Unreadable(path=place, reason=str(error))
    if untold and not newest:
        return Unreadable(path=place, reason=untold)
    return _repository(path, vcs, roots, newest, windows, remotes, subjects, shallow=shallow)


def _heads(view: View | None) -> tuple[list[str], str | None]:
    """The heads that jj knows, or why it does not say."""
    try:
        return (view.heads() if view else []), None
    except Refused as error:
        return [], str(error)


def _kept_by_jj(path: Path, view: View, subjects: int) -> Repository | Unreadable:
    """What a repository says whose commits jj keeps in a form of its own."""
    try:
        commits, beginnings = view.commits()
    except Refused as error:
        return Unreadable(path=_text(str(path)), reason=str(error))
    roots = [one for one in commits if one[0] in beginnings]
    newest = sorted(commits, key=lambda one: (one[1], one[0]), reverse=True)[: max(subjects, 1)]
    return _repository(path, "jj", roots, newest, windows_of(time for _, time, _ in commits), {}, subjects)


def _repository(
    path: Path,
    vcs: str,
    roots: Sequence[tuple[str, str, str]],
    newest: Sequence[tuple[str, str, str]],
    windows: tuple[Window, ...],
    remotes: dict[str, str],
    subjects: int,
    *,
    shallow: bool = False,
) -> Repository:
    """A repository from its root commits and its newest ones (id, time and subject of each)."""
    place = _text(str(path))
    first = min(roots, key=lambda one: (one[1], one[0]), default=None)
    last = newest[0] if newest else None
    told = (
        {(time, subject) for _, time, subject in (*newest, *([first] if first else []))}
        if subjects
        else set()
    )
    return Repository(
        path=place,
        name=_text(path.name),
        vcs=vcs,
        remotes=remotes,
        first_commit=first[0] if first else "",
        first_at=first[1] if first else None,
        last_commit=last[0] if last else "",
        last_at=last[1] if last else None,
        roots=tuple(sorted(commit for commit, _, _ in roots)),
        windows=windows,
        subjects=tuple(sorted((time, _text(subject)[:200]) for time, subject in told)),
        shallow=shallow,
    )


class _Git:
    """Asks one repository."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command

    def one(self, *words: str) -> str:
        """All that git prints, without the end of the last line; "" where there is nothing to print."""
        return answer(
            [*self._command, *words],
            {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"},
            fine=(0, 1),  # 1: nothing was found
            reasons={b"dubious ownership": "belongs to another user"},
        )

    def lines(self, *words: str) -> list[str]:
        return self.one(*words).splitlines()

    def commits(self, *words: str) -> list[tuple[str, str, str]]:
        """Id, time and subject of commits."""
        parts = self.one("log", "-z", f"--format={_FORMAT}", *words).split("\0")
        return [
            (parts[at], normal_time(parts[at + 1]) or "", parts[at + 2]) for at in range(0, len(parts) - 2, 3)
        ]


def windows_of(times: Iterable[str]) -> tuple[Window, ...]:
    """The windows of activity that commits at ``times`` (ISO 8601, in any order) make, oldest first."""
    moments = sorted(
        datetime.fromisoformat(normal) for time in times if (normal := normal_time(time)) is not None
    )
    found: list[Window] = []
    start = last = None
    count = 0
    for moment in moments:
        if last is not None and start is not None and moment - last > PAUSE:
            found.append(_window(start, last, count))
            start, count = moment, 0
        start = start or moment
        last = moment
        count += 1
    if start is not None and last is not None:
        found.append(_window(start, last, count))
    return tuple(found)


def _window(first: datetime, last: datetime, commits: int) -> Window:
    return Window(first=_stamp(first), last=_stamp(last), commits=commits)


def _stamp(moment: datetime) -> str:
    return normal_time(moment.isoformat()) or ""


def _remotes(said: str) -> Iterator[tuple[str, str]]:
    for one in said.split("\0"):
        name, _, address = one.partition("\n")
        shown = normal_remote(address)
        if name and shown:
            yield _text(name.removeprefix("remote.").removesuffix(".url")), _text(_without_user(shown))


def _without_user(address: str) -> str:
    """An address that has no host in the usual place, without what may stand for who reaches it."""
    scheme, divider, rest = address.partition("://")
    if not divider:
        return address
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def _text(text: str) -> str:
    return redact_text(text.encode("utf-8", "backslashreplace").decode().replace("\x00", "\ufffd"))


# -- facts -----------------------------------------------------------------------------------------------------------


def facts_of(repository: Repository, host: str, known: Known, held: Iterable[Fact]) -> list[Fact]:
    """What is learned from a repository: the place, the repository, and when it was worked on. ``held`` are the facts
    of evidence that are known; those about the same place that are no longer true are withdrawn."""
    source = fact(
        "source",
        {
            "provider": "git-repository",
            "kind": "git_repository",
            "uri": repository.path,
            "label": repository.name,
            "metadata": {"host": host},
        },
        provenance=PROVENANCE,
        confidence="high",
    )
    columns = {
        "source_id": source.id,
        "path": repository.path,
        "name": repository.name,
        "remote_url": repository.remote,
        "vcs": repository.vcs,
        "first_commit_at": repository.first_at,
        "last_commit_at": repository.last_at,
        "first_commit": repository.first_commit or None,
        "last_commit": repository.last_commit or None,
        "metadata": _metadata(repository),
    }
    row = fact("repository", columns, provenance=PROVENANCE, confidence="high")
    before = known.get(row.id)
    made = [source]
    if (
        before is None
        or before.columns["path"] == repository.path
        or not os.path.isdir(before.columns["path"])
    ):
        made.append(row)
    activity = _activity(repository, row, source, host)
    stale = [one for one in held if _same_place(one, repository.path, host) and one.id != activity.id]
    return [*made, activity, *map(withdrawn, stale)]


def _metadata(repository: Repository) -> dict[str, Any]:
    metadata: dict[str, Any] = {"commits": repository.commits, "stable_name": repository.stable_name}
    if len(repository.remotes) > 1:
        metadata["remotes"] = dict(sorted(repository.remotes.items()))
    if len(repository.roots) > 1:
        metadata["roots"] = list(repository.roots)
    if repository.shallow:
        metadata["shallow"] = True
    return metadata


def _activity(repository: Repository, row: Fact, source: Fact, host: str) -> Fact:
    data: dict[str, Any] = {
        "host": host,
        "path": repository.path,
        "windows": [[window.first, window.last, window.commits] for window in repository.windows],
    }
    if repository.subjects:
        data["subjects"] = [list(one) for one in repository.subjects]
    columns = {
        "kind": KIND,
        "source_id": source.id,
        "target_type": "repository",
        "target_id": row.id,
        "timestamp": repository.last_at,
        "summary": f"{repository.commits} commits in {len(repository.windows)} windows of activity",
        "data": data,
    }
    return fact("evidence", columns, provenance=PROVENANCE, confidence="high")


def _same_place(one: Fact, path: str, host: str) -> bool:
    data: Mapping[str, Any] = one.columns["data"]
    return one.columns["kind"] == KIND and (data.get("path"), data.get("host")) == (path, host)


# -- proposals -------------------------------------------------------------------------------------------------------


def proposals(repositories: Iterable[Repository]) -> list[dict[str, Any]]:
    """Records of a sidecar of repository identities: a project for each stable name, and where it was seen."""
    found: list[dict[str, Any]] = []
    named: set[str] = set()
    for one in sorted(repositories, key=lambda one: (one.stable_name, one.path)):
        name = one.stable_name
        if name not in named:
            named.add(name)
            found.append(
                {
                    "kind": "repo-identity",
                    "stableName": name,
                    "displayName": one.name,
                    "confidence": "observed",
                }
            )
        record = {"kind": "repo-observation", "stableName": name, "path": one.path, "confidence": "observed"}
        if one.remote is not None:
            record["remoteUrl"] = one.remote
        found.append(record)
    return found


def shared_beginnings(repositories: Iterable[Repository]) -> list[tuple[str, list[str]]]:
    """First commits that repositories of several names share: forks or copies of one another, by commit."""
    names: dict[str, set[str]] = {}
    for one in repositories:
        if one.first_commit:
            names.setdefault(one.first_commit, set()).add(one.stable_name)
    return [(commit, sorted(found)) for commit, found in sorted(names.items()) if len(found) > 1]
