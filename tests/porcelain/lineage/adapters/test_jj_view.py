"""Repositories of jj as evidence: with jj itself where it is installed, and with a stand-in everywhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from porcelain.lineage.adapters.git_evidence import Repository, Unreadable, read_repository
from porcelain.lineage.adapters.jj_view import View
from tests.porcelain.importing.driving import succeed
from tests.porcelain.lineage.adapters.test_git_evidence import TIMES, TOKEN, git, read, repository

JJ = shutil.which("jj")
needs_jj = pytest.mark.skipif(JJ is None, reason="jj is not installed here")
#: How a repository can keep its commits: in a git repository around it, in one of its own, or without git.
KINDS = {
    "around": ("git", "init", "--colocate"),
    "inside": ("git", "init", "--no-colocate"),
    "none": ("debug", "init-simple"),
}
kinds = pytest.mark.parametrize("kind", KINDS)


def jj(folder: Path, *words: str, time: str = TIMES[0], fails: bool = False) -> str:
    """What jj prints, at home in a folder beside that of the repository."""
    environment = {
        "HOME": str(folder.parent / "home"), "PATH": os.environ["PATH"],
        "JJ_USER": "ines", "JJ_EMAIL": "ines@example.org", "JJ_TIMESTAMP": time, "JJ_OP_TIMESTAMP": time,
    }  # fmt: skip
    done = subprocess.run(
        ["jj", "--quiet", *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode != 0) is fails, done.stderr
    return done.stdout.strip()


def commit(folder: Path, subject: str, time: str) -> str:
    """Do something in the working copy and commit it; the id of the commit."""
    (folder / f"{subject.split(maxsplit=1)[0]}.txt").write_text(subject)
    jj(folder, "commit", "-m", subject, time=time)
    return jj(folder, "log", "--no-graph", "--revisions", "@-", "--template", "commit_id")


def worked_on(folder: Path, kind: str) -> tuple[str, str]:
    """A repository of five commits: two on a line that has a bookmark, after the first of all, and two beside them that
    have none. The first and the last commit. Each was written more than once, which leaves replaced ones behind."""
    (folder.parent / "home").mkdir(parents=True)
    jj(folder.parent, *KINDS[kind], folder.name, time="2025-12-01T00:00:00Z")
    first = commit(folder, "dig", TIMES[0])
    commit(folder, "sow", TIMES[0])
    commit(folder, "water", TIMES[1])
    jj(folder, "bookmark", "create", "main", "-r", "@-")
    jj(folder, "new", first, "-m", "planned", time=TIMES[1])
    commit(folder, "weed", TIMES[1])
    return first, commit(folder, f"rake {TOKEN}", TIMES[2])


def files(*folders: Path) -> dict[Path, tuple[int, int]]:
    found = [one for folder in folders for one in folder.rglob("*")]
    return {one: (one.lstat().st_size, one.lstat().st_mtime_ns) for one in found}


@needs_jj
@kinds
def test_each_commit_counts_once_and_none_that_was_replaced(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "garden"
    first, last = worked_on(folder, kind)
    found = read(folder, subjects=9)
    assert found.vcs == ("git+jj" if kind == "around" else "jj")
    assert (found.first_commit, found.last_commit, found.roots) == (first, last, (first,))
    assert (found.first_at, found.last_at) == ("2026-01-05T08:00:00.000Z", "2026-03-01T10:00:00.000Z")
    assert [(one.first[:10], one.commits) for one in found.windows] == [("2026-01-05", 4), ("2026-03-01", 1)]
    subjects = [subject for _, subject in found.subjects]
    assert sorted(subject.split()[0] for subject in subjects) == ["dig", "rake", "sow", "water", "weed"]
    assert TOKEN not in str(found)


@needs_jj
@kinds
def test_another_workspace_tells_the_same(tmp_path: Path, kind: str) -> None:
    folder, beside = tmp_path / "garden", tmp_path / "beside"
    worked_on(folder, kind)
    jj(folder, "workspace", "add", "--name", "beside", str(beside), time="2026-11-01T00:00:00Z")
    found = read(beside)
    assert (found.path, found.name) == (str(beside), "beside")
    same = read(folder)
    assert (found.commits, found.windows, found.vcs) == (5, same.windows, same.vcs)
    assert (found.first_commit, found.last_commit) == (same.first_commit, same.last_commit)
    (beside / "hoe.txt").write_text(
        "hoe"
    )  # what a working copy holds that nobody described is work nonetheless
    jj(beside, "status", time="2026-11-02T00:00:00Z")
    assert read(folder).commits == 6 and read(folder).last_at == "2026-11-02T00:00:00.000Z"
    folder.rename(tmp_path / "moved")
    assert (tmp_path / "beside" / ".git").exists() or read_repository(beside) == Unreadable(
        path=str(beside), reason="the repository of its .jj is not there"
    )


@needs_jj
@kinds
def test_nothing_is_written_and_no_setting_followed(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "garden"
    worked_on(folder, kind)
    found = read(folder)
    ran = tmp_path / "ran"
    (
        folder / ".jj" / "repo" / "config.toml"
    ).write_text(  # where an older jj kept them, and which jj moves away
        f"[ui]\npager = 'touch {ran}'\n[aliases]\nlog = ['util', 'exec', '--', 'touch', '{ran}']\n"
        "[revset-aliases]\n'all()' = 'none()'\n[template-aliases]\n'commit_id' = 'description'\n"
    )
    shutil.rmtree(folder / ".jj" / "repo" / "index" / "op_links")  # which jj would make again
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("JJ_CONFIG", str(folder / ".jj" / "repo" / "config.toml"))
    before = files(folder, tmp_path / "home")
    assert read(folder) == found
    assert files(folder, tmp_path / "home") == before and not ran.exists()


@needs_jj
@kinds
def test_operations_that_have_parted_are_all_seen_and_not_joined(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "garden"
    worked_on(folder, kind)
    operation = jj(folder, "operation", "log", "--no-graph", "--limit", "1", "--template", "id")
    jj(folder, "new", "main", "-m", "one")
    jj(folder, "--at-operation", operation, "new", "main", "-m", "two")
    heads = folder / ".jj" / "repo" / "op_heads" / "heads"
    assert len(list(heads.iterdir())) == 2
    assert read(folder).commits == 7
    assert len(list(heads.iterdir())) == 2


@needs_jj
@kinds
def test_a_broken_repository(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "garden"
    worked_on(folder, kind)
    shutil.rmtree(folder / ".jj" / "repo" / "op_store")
    found = read_repository(folder)
    if kind == "around":  # git still tells what its HEAD and bookmarks reach
        assert isinstance(found, Repository) and found.commits == 5
    else:
        assert found == Unreadable(path=str(folder), reason="jj refuses it")
    jj(folder, "log", fails=True)


@needs_jj
def test_a_clone_tells_its_remote_and_not_when_it_was_cloned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home").mkdir()
    origin = repository(tmp_path / "origin")
    jj(tmp_path, "git", "clone", "--no-colocate", str(origin), "garden", time="2026-11-01T00:00:00Z")
    found = read(tmp_path / "garden")
    assert (found.vcs, found.commits, found.remotes) == ("jj", 3, {"origin": str(origin)})
    assert found.last_at == "2026-03-01T10:00:00.000Z"
    monkeypatch.setattr(View.heads, "__defaults__", ("no-such-jj",))
    assert read(tmp_path / "garden") == found


def test_without_jj_git_tells_what_its_own_refs_reach(tmp_path: Path) -> None:
    """Laid out as jj does; what it keeps of commits that were replaced is not theirs."""
    origin = repository(tmp_path / "origin")
    store = tmp_path / "garden" / ".jj" / "repo" / "store"
    store.mkdir(parents=True)
    git(tmp_path, "clone", "-q", "--bare", str(origin), str(store / "git"))
    (store / "git_target").write_text("git")
    tree = git(origin, "rev-parse", "HEAD^{tree}")
    replaced = git(origin, "commit-tree", tree, "-m", "older", time="2020-01-01T00:00:00Z")
    git(store / "git", "fetch", "-q", str(origin), f"{replaced}:refs/jj/keep/{replaced}")
    found = read(tmp_path / "garden")
    assert (found.vcs, found.commits) == ("jj", 3)
    assert found.first_commit == git(origin, "rev-list", "--max-parents=0", "HEAD")
    git(store / "git", "update-ref", "-d", "refs/heads/main")
    assert isinstance(read_repository(tmp_path / "garden"), Unreadable)


# -- a stand-in ------------------------------------------------------------------------------------------------------

#: Prints what jj prints for such a template, of a repository with three commits and two beginnings; refuses all that
#: could make jj record something.
FAKE_JJ = r"""#!/bin/sh
echo "$@" >> "$(dirname "$0")/asked"
case " $* " in *" --ignore-working-copy "*" --at-operation=@ "*) ;; *) exit 3 ;; esac
case "$*" in *"log --no-graph --revisions "*) ;; *) exit 2 ;; esac
[ "$JJ_CONFIG" = /dev/null ] || exit 4
a="8f1d1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e78f1d1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7"
b="b2a1908172635445362718090a0b0c0d0e0f101112131415161718191a1b1c1db2a1908172635445362718090a0b0c0d0e0f101112131415161718191a1b1c1d"
c="c0ffee00112233445566778899aabbccddeeff00112233445566778899aabbccc0ffee00112233445566778899aabbccddeeff00112233445566778899aabbcc"
case "$*" in
*"roots(all() ~ root()"*)
  printf '%s\t2026-01-05T10:00:00+02:00\tbed 0\n%s\t2026-01-06T10:00:00+00:00\tanother beginning\n' $a $b ;;
*)
  printf '%s\t2026-03-01T10:00:00+00:00\tbed 2 TOKEN\n' $c
  printf '%s\t2026-01-06T10:00:00+00:00\tanother beginning\n' $b
  printf '%s\t2026-01-05T10:00:00+02:00\t\n' $a ;;
esac
"""
_LINE = re.compile(r"[0-9a-f]{128}\t\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d\t[^\n]*\n")


def jj_repository(folder: Path) -> Path:
    """One whose commits jj keeps itself."""
    store = folder / ".jj" / "repo" / "store"
    store.mkdir(parents=True)
    (store / "type").write_text("Simple")
    return folder


def fake_jj(folder: Path, script: str = FAKE_JJ) -> Path:
    folder.mkdir(exist_ok=True)
    program = folder / "jj"
    program.write_text(script.replace("TOKEN", TOKEN))
    program.chmod(0o755)
    return program


def lines_of(program: str, folder: Path) -> list[str]:
    """What a program prints that is asked as jj is, by way of one that keeps its answers."""
    kept = folder / "kept"
    between = fake_jj(folder / "between", f'#!/bin/sh\n"{program}" "$@" | tee -a "{kept}"\n')
    View(folder / "garden").commits(str(between))
    return kept.read_text().splitlines(keepends=True)


def test_a_repository_that_only_jj_can_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = jj_repository(tmp_path / "src" / "garden")
    program = fake_jj(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    found = read(folder, subjects=2)
    assert (found.vcs, found.commits, len(found.roots)) == ("jj", 3, 2)
    assert found.first_commit.startswith("8f1d1a2b") and found.last_commit.startswith("c0ffee00")
    assert (found.first_at, found.last_at) == ("2026-01-05T08:00:00.000Z", "2026-03-01T10:00:00.000Z")
    assert [one.commits for one in found.windows] == [2, 1]
    assert [time[:10] for time, _ in found.subjects] == ["2026-01-05", "2026-01-06", "2026-03-01"]
    assert TOKEN not in str(found)
    assert str(folder) not in (program.parent / "asked").read_text()


def test_the_stand_in_prints_such_lines(tmp_path: Path) -> None:
    jj_repository(tmp_path / "garden")
    lines = lines_of(str(fake_jj(tmp_path / "bin")), tmp_path)
    assert len(lines) == 5 and all(map(_LINE.fullmatch, lines))


@needs_jj
def test_jj_prints_such_lines_too(tmp_path: Path) -> None:
    worked_on(tmp_path / "garden", "none")
    lines = lines_of(str(JJ), tmp_path)
    assert len(lines) == 6 and all(map(_LINE.fullmatch, lines))


def test_jj_is_stored_as_evidence_of_activity(tmp_path: Path) -> None:
    jj_repository(tmp_path / "src" / "garden")
    program = fake_jj(tmp_path / "bin")
    store = tmp_path / "store"
    succeed(store, "init")
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    document = succeed(store, "lineage", "repo-scan", "--json", tmp_path / "src", PATH=path).json
    assert [one["vcs"] for one in document["repositories"]] == ["jj"]
    query = "SELECT vcs, first_commit_at FROM repositories"
    found = succeed(store, "lineage", "sql", "--json", query).json
    assert found == {"vcs": "jj", "first_commit_at": "2026-01-05T08:00:00.000Z"}
    again = succeed(store, "lineage", "repo-scan", "--json", tmp_path / "src", PATH=path).json
    assert again["newFacts"] == 0


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (None, "the jj program is not there"),
        ("#!/bin/sh\nexit 1\n", "jj refuses it"),
        ("#!/bin/sh\necho noise\n", None),
    ],
)
def test_a_jj_that_is_not_there_or_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, reason: str | None
) -> None:
    folder = jj_repository(tmp_path / "garden")
    (tmp_path / "bin").mkdir()
    if script is not None:
        fake_jj(tmp_path / "bin", script)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}/bin" if script else str(tmp_path / "bin"))
    found = read_repository(folder)
    if reason is None:
        assert isinstance(found, Repository) and found.commits == 0
    else:
        assert found == Unreadable(path=str(folder), reason=reason)


def test_a_folder_of_jj_with_nothing_in_it(tmp_path: Path) -> None:
    (tmp_path / ".jj").mkdir()
    assert read_repository(tmp_path) == Unreadable(
        path=str(tmp_path), reason="the repository of its .jj is not there"
    )
