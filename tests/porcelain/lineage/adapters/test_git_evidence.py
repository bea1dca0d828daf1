"""Repositories as evidence: first commits that are the first, remotes without secrets, nothing run or written."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from porcelain.lineage.adapters.git_evidence import (
    PAUSE,
    Repository,
    Unreadable,
    find_repositories,
    read_repository,
    windows_of,
)
from tests.porcelain.importing.driving import objstore, projection, succeed

TOKEN = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
TIMES = ("2026-01-05T10:00:00+02:00", "2026-01-06T10:00:00Z", "2026-03-01T10:00:00Z")


def git(folder: Path, *words: str, time: str = TIMES[0]) -> str:
    env = os.environ | {
        "GIT_AUTHOR_DATE": time, "GIT_COMMITTER_DATE": time, "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_AUTHOR_NAME": "Ines", "GIT_AUTHOR_EMAIL": "ines@example.org",
        "GIT_COMMITTER_NAME": "Ines", "GIT_COMMITTER_EMAIL": "ines@example.org",
    }  # fmt: skip
    done = subprocess.run(
        ["git", "-C", str(folder), *words], env=env, capture_output=True, check=True, text=True
    )
    return done.stdout.strip()


def repository(folder: Path, remote: str | None = None) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    for number, time in enumerate(TIMES):
        git(folder, "commit", "-q", "--allow-empty", "-m", f"bed {number} {TOKEN}", time=time)
    if remote is not None:
        git(folder, "remote", "add", "origin", remote)
    return folder


def read(folder: Path, **options: int) -> Repository:
    found = read_repository(folder, **options)
    assert isinstance(found, Repository)
    return found


def test_the_first_commit_is_the_root(tmp_path: Path) -> None:
    """Not the newest, as where a reversed list is cut to one."""
    found = read(repository(tmp_path / "garden"))
    order = git(tmp_path / "garden", "rev-list", "--all").splitlines()
    assert (found.first_commit, found.last_commit) == (order[-1], order[0])
    assert (found.first_at, found.last_at) == ("2026-01-05T08:00:00.000Z", "2026-03-01T10:00:00.000Z")
    assert (found.commits, found.vcs, found.name) == (3, "git", "garden")
    assert [(one.first[:10], one.commits) for one in found.windows] == [("2026-01-05", 2), ("2026-03-01", 1)]


def test_of_several_roots_the_oldest(tmp_path: Path) -> None:
    folder = repository(tmp_path / "garden")
    root = git(folder, "rev-list", "--max-parents=0", "HEAD")
    git(folder, "checkout", "-q", "--orphan", "other")
    git(folder, "commit", "-q", "--allow-empty", "-m", "older", time="2020-01-01T00:00:00Z")
    found = read(folder)
    assert found.first_at == "2020-01-01T00:00:00.000Z"
    assert set(found.roots) == {root, found.first_commit}


def test_a_history_that_is_cut_off_has_no_first_commit(tmp_path: Path) -> None:
    origin = repository(tmp_path / "garden")
    git(tmp_path, "clone", "-q", "--depth", "1", origin.as_uri(), "shallow")
    found = read(tmp_path / "shallow")
    assert (found.shallow, found.first_commit, found.commits) == (True, "", 1)
    assert found.last_commit == git(origin, "rev-parse", "HEAD")


def test_nothing_committed_yet(tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    git(folder, "init", "-q")
    found = read(folder)
    assert (found.first_commit, found.last_commit, found.windows) == ("", "", ())


@pytest.mark.parametrize(
    ("remote", "shown", "name"),
    [
        (f"https://ines:{TOKEN}@github.com/Ines/Garden.git", "https://github.com/ines/garden", "github:ines/garden"),
        ("git@github.com:Ines/Garden.git", "https://github.com/ines/garden", "github:ines/garden"),
        ("ssh://ines@git.example.org:2222/beds/garden", "https://git.example.org/beds/garden",
         "git.example.org:beds/garden"),
    ],
)  # fmt: skip
def test_remotes_have_one_form_and_no_user(tmp_path: Path, remote: str, shown: str, name: str) -> None:
    found = read(repository(tmp_path / "garden", remote))
    assert (found.remotes, found.stable_name) == ({"origin": shown}, name)


def test_subjects_only_when_asked_and_without_secrets(tmp_path: Path) -> None:
    folder = repository(tmp_path / "garden")
    assert read(folder).subjects == ()
    subjects = [subject for _, subject in read(folder, subjects=1).subjects]
    assert [subject[:5] for subject in subjects] == ["bed 0", "bed 2"]
    assert all(TOKEN not in subject for subject in subjects)


def test_a_repository_runs_nothing_of_its_own(tmp_path: Path) -> None:
    folder = repository(tmp_path / "garden")
    ran = tmp_path / "ran"
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch {ran}\n")
    script.chmod(0o700)
    for name in ("core.fsmonitor", "core.pager", "gpg.program", "core.sshCommand", "diff.external"):
        git(folder, "config", name, str(script))
    git(folder, "config", "log.showSignature", "true")
    hook = folder / ".git" / "hooks" / "post-index-change"
    hook.write_bytes(script.read_bytes())
    hook.chmod(0o700)
    before = {path: path.stat().st_mtime_ns for path in (folder / ".git").rglob("*")}
    read(folder, subjects=3)
    assert not ran.exists()
    assert {path: path.stat().st_mtime_ns for path in (folder / ".git").rglob("*")} == before


def test_a_place_that_cannot_be_asked(tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    (folder / ".git").mkdir(parents=True)
    assert read_repository(folder) == Unreadable(path=str(folder), reason="git refuses it")
    assert read_repository(folder, program="no-such-git") == Unreadable(
        path=str(folder), reason="the no-such-git program is not there"
    )


def test_repositories_are_looked_for_so_deep(tmp_path: Path) -> None:
    for name in ("one", "a/two", "a/b/three", "one/inside", ".hidden/four"):
        (tmp_path / name / ".git").mkdir(parents=True)
    (tmp_path / "loop").symlink_to(tmp_path)
    names = [path.relative_to(tmp_path).as_posix() for path in find_repositories([tmp_path], 2)]
    assert names == ["a/two", "one"]


def test_windows() -> None:
    day = PAUSE.days
    times = [f"2026-01-{n:02}T00:00:00Z" for n in (3, 1, 2)]
    (window,) = windows_of(times)
    assert (window.first[:10], window.last[:10], window.commits) == ("2026-01-01", "2026-01-03", 3)
    assert len(windows_of(["2026-01-01T00:00:00Z", f"2026-02-{1 + day - 30:02}T00:00:00Z"])) == 2
    assert windows_of(["no time"]) == ()


# -- the command -----------------------------------------------------------------------------------------------------


def test_the_command_stores_evidence_and_proposes_projects(tmp_path: Path) -> None:
    store, sidecar = tmp_path / "store", tmp_path / "sidecar" / "repo-identities.jsonl"
    succeed(store, "init")
    folder = repository(tmp_path / "src" / "garden", f"https://ines:{TOKEN}@github.com/Ines/Garden.git")
    git(tmp_path / "src", "clone", "-q", str(folder), "copy")
    words = ("lineage", "repo-scan", "--sidecar", sidecar, tmp_path / "src")
    document = succeed(store, *words, "--json").json
    assert {one["stableName"] for one in document["repositories"]} == {
        "github:ines/garden", f"path:{tmp_path}/src/copy",
    }  # fmt: skip
    (shared,) = document["sharedFirstCommits"]
    assert shared["commit"] == document["repositories"][0]["firstCommit"] and len(shared["projects"]) == 2
    assert not sidecar.exists() and document["newFacts"] == 6
    tables = projection(store).tables
    by_name = {row["name"]: row for row in tables["repositories"]}
    assert by_name["garden"]["first_commit"] == shared["commit"]
    assert by_name["garden"]["remote_url"] == "https://github.com/ines/garden"
    assert [row["kind"] for row in tables["evidence"]] == ["git_activity"] * 2
    assert tables["repo_identities"] == tables["edges"] == tables["logical_threads"] == []
    assert succeed(store, *words, "--json").json["newFacts"] == 0


def test_the_sidecar_is_appended_to_only_when_told_and_once(tmp_path: Path) -> None:
    store, sidecar = tmp_path / "store", tmp_path / "repo-identities.jsonl"
    succeed(store, "init")
    repository(tmp_path / "src" / "garden", "git@github.com:Ines/Garden.git")
    sidecar.write_text('{"kind":"repo-identity","stableName":"mine"}')
    words = ("lineage", "repo-scan", "--sidecar", sidecar, tmp_path / "src")
    succeed(store, *words, "--write", "--dry-run")
    assert sidecar.read_text().count("\n") == 0
    assert "appended 2 records" in succeed(store, *words, "--write").err
    records = [json.loads(line) for line in sidecar.read_text().splitlines()]
    assert [record["kind"] for record in records] == ["repo-identity", "repo-identity", "repo-observation"]
    assert "appended 0 records" in succeed(store, *words, "--write").err
    assert len(sidecar.read_text().splitlines()) == 3


def test_later_activity_takes_the_place_of_what_was_known(tmp_path: Path) -> None:
    store = tmp_path / "store"
    succeed(store, "init")
    folder = repository(tmp_path / "garden")
    succeed(store, "lineage", "repo-scan", folder)
    git(folder, "commit", "-q", "--allow-empty", "-m", "more", time="2026-03-09T10:00:00Z")
    succeed(store, "lineage", "repo-scan", folder)
    (evidence,) = projection(store).tables["evidence"]
    assert evidence["summary"] == "4 commits in 2 windows of activity"


def test_a_folder_must_be_there(tmp_path: Path) -> None:
    succeed(tmp_path / "store", "init")
    result = objstore(tmp_path / "store", "lineage", "repo-scan", tmp_path / "nowhere")
    assert result.code == 3 and "no such folder" in result.err
