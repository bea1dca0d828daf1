"""Branches of Git repositories as hubs: a bare repository, ``git daemon``, and ``git http-backend``."""

# ruff: noqa: F811  (fixtures that are imported)

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from objstore.errors import NotFound, StorageError, UsageError
from objstore.store import Store
from objstore.sync.exchange import fetch, push
from plumbing.interface.options import Context
from porcelain.main import main
from porcelain.remotes import git_branch
from porcelain.remotes.config import Remote, pusher
from porcelain.remotes.git_branch import BRANCH, BranchFiles, open_git, parse_git
from porcelain.remotes.hub.files import Lost
from porcelain.remotes.hub.transport import HubTransport
from tests.objstore.sync.building import EVERYTHING, add_round, sound, state
from tests.objstore.sync.test_transports import (  # noqa: F401
    REF,
    here,
    test_a_dry_run_changes_nothing,
    test_a_push_in_several_packs,
    test_a_scope_is_kept_to,
    test_an_empty_store_has_nothing,
    test_only_what_is_new_travels,
    test_what_is_refused_there_is_told_here_and_nothing_moved,
    there,
)
from tests.porcelain.remotes.git_servers import git_daemon, http_backend
from tests.porcelain.remotes.hub_contract import HubWay, contend, exchange_there_and_back

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    path = tmp_path / "hub.git"
    _git("init", "--quiet", "--bare", str(path))
    return path


@pytest.fixture
def opens(bare: Path, tmp_path: Path) -> Callable[[], BranchFiles]:
    """Opens the hub; each thread has a repository of its own, as each store has."""

    def opened_by_thread() -> BranchFiles:
        folder = tmp_path / f"seen {threading.get_ident()}"
        return BranchFiles(str(folder), f"file://{bare}", BRANCH, os.environ)

    return opened_by_thread


@pytest.fixture
def way(opens: Callable[[], BranchFiles]) -> HubWay:
    return HubWay(opens)


@pytest.fixture
def writable(opens: Callable[[], BranchFiles]) -> HubWay:
    return HubWay(opens)


def test_there_and_back(opens: Callable[[], BranchFiles], here: Store, there: Store) -> None:
    exchange_there_and_back(opens, here, there)


def test_the_files_of_a_branch(opens: Callable[[], BranchFiles], tmp_path: Path, bare: Path) -> None:
    files = opens()
    assert files.list("writers/") == {}
    files.create("packs/a", BytesIO(b"first"), 5)
    files.create("packs/a", BytesIO(b"other"), 5)
    files.replace("writers/x", b"1", {}, {"packs/a"})
    other = BranchFiles(str(tmp_path / "other"), f"file://{bare}", BRANCH, os.environ)
    seen = other.list("writers/")
    assert other.get("packs/a") == b"first" and other.get("writers/x", seen["writers/x"]) == b"1"
    other.create("packs/b", BytesIO(b"more"), 4)
    files.replace("writers/x", b"2", seen, {"packs/a"})
    with pytest.raises(Lost):
        other.replace("writers/y", b"3", seen, {"packs/a", "packs/b"})
    seen = other.list("writers/")
    assert set(seen) == {"writers/x"}
    with pytest.raises(Lost):  # what is needed was found out from another state than this one
        other.replace("writers/y", b"3", {}, {"packs/b"})
    other.replace("writers/y", b"3", seen, {"packs/b"})
    assert files.get("packs/a") == b"first"  # as of the last look
    files.list("writers/")
    assert files.get("packs/b") == b"more" and files.get("writers/x") == b"2"
    with pytest.raises(NotFound):
        files.get("packs/a")
    assert int(_git("-C", str(bare), "rev-list", "--count", BRANCH)) == 3


def test_what_a_killed_process_left_is_removed(opens: Callable[[], BranchFiles], tmp_path: Path) -> None:
    opens().list("writers/")
    (folder,) = tmp_path.glob("seen *")
    (folder / "index-1-ab.lock").write_bytes(b"")
    opens().list("writers/")
    assert list(folder.glob("index-*")) == []


def test_a_branch_beside_others_and_nothing_of_the_person_in_it(
    opens: Callable[[], BranchFiles],
    bare: Path,
    there: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Vera Exempla")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    files = opens()
    with HubWay(lambda: files).to(there):
        pass
    monkeypatch.undo()
    said = _git("-C", str(bare), "log", "--format=%an %ae %ad %s %cn", BRANCH)
    assert "Vera" not in said and "objstore" in said
    assert _git("-C", str(bare), "for-each-ref", "--format=%(refname)").split() == [f"refs/heads/{BRANCH}"]
    assert not (tmp_path / "elsewhere").exists() and not (tmp_path / "index").exists()


def test_contention(opens: Callable[[], BranchFiles], tmp_path: Path) -> None:
    contend(opens, tmp_path, writers=10, pushes=1)


@pytest.mark.soak
def test_contention_for_long(opens: Callable[[], BranchFiles], tmp_path: Path) -> None:
    contend(opens, tmp_path, writers=10, pushes=100)


def test_from_the_command_line(bare: Path, there: Store, tmp_path: Path) -> None:
    url = f"git+file://{bare}#side/hub"
    there.close()
    first, second = str(tmp_path / "there"), str(tmp_path / "b" / ".objstore")
    assert main(["--store", first, "remote", "add", "hub", url]) == 0
    assert main(["--store", first, "push"]) == 0
    assert main(["clone", url, str(tmp_path / "b")]) == 0
    with Store.open(first) as one, Store.open(second) as other:
        assert state(one) == state(other)
        add_round(other, f"flow/{other.store_id}/test/x", "mine")
    assert main(["--store", second, "sync"]) == 0
    assert main(["--store", first, "pull"]) == 0
    with Store.open(first) as one, Store.open(second) as other:
        assert state(one) == state(other)
        sound(one)
    assert (tmp_path / "there" / "hubs").stat().st_mode & 0o077 == 0


def test_small_packs_are_merged_and_leave_the_branch(
    bare: Path, there: Store, here: Store, tmp_path: Path, opens: Callable[[], BranchFiles]
) -> None:
    for number in range(18):
        add_round(there, f"flow/{there.store_id}/test/x", f"{number} a")
        push(there, HubTransport(opens(), pusher(there)), EVERYTHING)
    names = _git("-C", str(bare), "ls-tree", "-r", "--name-only", BRANCH).split()
    assert sum(name.startswith("packs/") for name in names) == 3 and len(names) <= 7
    assert int(_git("-C", str(bare), "rev-list", "--count", BRANCH)) == 19
    fetch(here, HubTransport(opens(), None), EVERYTHING, keeps_content=False)
    assert state(here) == state(there)


def _turns(bare: Path, stores: list[tuple[Store, Path]], first: int, count: int) -> None:
    """Let the stores take turns in pushing a little, each after it has fetched."""
    for number in range(first, first + count):
        store, place = stores[number % len(stores)]
        context = Context(env=os.environ, store=str(place))
        with open_git(Remote(url=f"git+file://{bare}"), context, pusher(store)) as transport:
            fetch(store, transport, EVERYTHING, keeps_content=False)
            add_round(store, f"flow/{store.store_id}/test/x", f"{number} a")
            push(store, transport, EVERYTHING)


def test_what_was_last_seen_is_kept_once_and_hardly_more(
    bare: Path, there: Store, here: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_branch, "_LOOSE", 40)
    stores = [(there, tmp_path / "there"), (here, tmp_path / "here")]
    _turns(bare, stores, 0, 24)
    for _, place in stores:
        (seen,) = (place / "hubs").glob("*.git")
        counts = dict(line.split(": ") for line in _git("-C", str(seen), "count-objects", "-v").splitlines())
        assert int(counts["count"]) < 60 and counts["packs"] == "1" and counts["garbage"] == "0"
        assert int(_git("-C", str(seen), "rev-list", "--count", "refs/objstore/tip")) < 10
        _git("-C", str(seen), "fsck", "--no-dangling")
    _turns(bare, stores, 24, 2)
    _same(bare, stores)


def _same(bare: Path, stores: list[tuple[Store, Path]]) -> None:
    """Both have all that the other one has."""
    for store, place in stores:
        context = Context(env=os.environ, store=str(place))
        with open_git(Remote(url=f"git+file://{bare}"), context, None) as transport:
            fetch(store, transport, EVERYTHING, keeps_content=False)
        sound(store)
    assert state(stores[0][0]) == state(stores[1][0])


@pytest.mark.parametrize("failing", ["update-ref", "repack", "prune"])
def test_tidying_up_may_be_killed_at_any_step(
    bare: Path, there: Store, here: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    stores = [(there, tmp_path / "there"), (here, tmp_path / "here")]
    _turns(bare, stores, 0, 6)
    monkeypatch.setattr(git_branch, "_LOOSE", 0)
    run, tidying = BranchFiles._git, BranchFiles.tidy
    met: list[str] = []

    def stopped(self: BranchFiles, *words: str, **options: Any) -> bytes:
        if words[0] == failing:
            met.append(words[0])
            raise StorageError("killed")
        return run(self, *words, **options)

    def tidied(self: BranchFiles) -> None:
        with monkeypatch.context() as inner:
            inner.setattr(BranchFiles, "_git", stopped)
            tidying(self)

    monkeypatch.setattr(BranchFiles, "tidy", tidied)
    _turns(bare, stores, 6, 4)
    assert len(met) == 4
    monkeypatch.setattr(BranchFiles, "tidy", tidying)
    _turns(bare, stores, 10, 2)
    _same(bare, stores)


def test_repack_from_the_command_line(
    bare: Path, there: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, url = str(tmp_path / "there"), f"git+file://{bare}"
    for number in range(3):
        add_round(there, f"flow/{there.store_id}/test/x", f"{number} a")
        with open_git(Remote(url=url), Context(env=os.environ, store=place), pusher(there)) as transport:
            push(there, transport, EVERYTHING)
    there.close()
    assert main(["--store", place, "remote", "repack", url]) == 0
    assert capsys.readouterr().out.endswith("3 packs merged into 1\n")
    assert main(["--store", place, "remote", "repack", "--json", url]) == 0
    assert capsys.readouterr().out == '{"into":0,"packs":0}\n'
    assert main(["--store", place, "remote", "repack", str(tmp_path)]) == 2
    assert "is no hub" in capsys.readouterr().err
    assert main(["clone", url, str(tmp_path / "b")]) == 0
    with Store.open(place) as one, Store.open(tmp_path / "b" / ".objstore") as other:
        assert state(one) == state(other)


def test_git_daemon(bare: Path, tmp_path: Path, here: Store, there: Store) -> None:
    with git_daemon(tmp_path) as port:
        _exchange_over(f"git+git://127.0.0.1:{port}/hub.git", here, there, tmp_path)


def test_git_over_http(bare: Path, tmp_path: Path, here: Store, there: Store) -> None:
    _git("-C", str(bare), "config", "http.receivepack", "true")
    with http_backend(tmp_path) as port:
        place = f"127.0.0.1:{port}/hub.git"
        _exchange_over(f"git+http://vera:secret@{place}", here, there, tmp_path)
        files = BranchFiles(str(tmp_path / "wrong"), f"http://vera:hidden@{place}", BRANCH, os.environ)
        with pytest.raises(StorageError) as caught:
            files.list("writers/")
        assert "hidden" not in caught.value.message


def _exchange_over(url: str, here: Store, there: Store, folder: Path) -> None:
    for store, name in ((there, "there"), (here, "here")):
        context = Context(env=os.environ, store=str(folder / name))
        with open_git(Remote(url=url), context, pusher(store)) as transport:
            fetch(store, transport, EVERYTHING, keeps_content=False)
            push(store, transport, EVERYTHING)
    assert state(here) == state(there)
    add_round(here, REF, "more", "b")
    for store, name in ((here, "here"), (there, "there")):
        context = Context(env=os.environ, store=str(folder / name))
        with open_git(Remote(url=url), context, pusher(store)) as transport:
            fetch(store, transport, EVERYTHING, keeps_content=False)
            push(store, transport, EVERYTHING)
    assert state(here) == state(there)


def test_a_repository_that_is_not_there(tmp_path: Path) -> None:
    files = BranchFiles(str(tmp_path / "x"), f"file://{tmp_path}/none.git", BRANCH, os.environ)
    with pytest.raises(StorageError, match="git ls-remote"):
        files.list("writers/")


@pytest.mark.parametrize(
    "url",
    [
        "git+ssh://",
        "git+ssh://-oProxyCommand=touch%20x/y",
        "git+ssh://-x@host/y",
        "git+ssh://host/-y",
        "git+ext://sh -c x",
        "git+file://host/../x y",
        "git+file:///x#-branch",
        "git+file:///x#a..b",
        "git+file:///x#a/",
        "git+file:///x#a b",
        "git+file:///x\n",
        "git+https:///x",
        "git+ftp://h/x",
        "git+https://h/x#refs:heads",
    ],
)
def test_urls_that_are_none(url: str) -> None:
    with pytest.raises(UsageError):
        parse_git(url)


def test_urls() -> None:
    assert parse_git("git+ssh://git@host:22/a/b.git") == ("ssh://git@host:22/a/b.git", BRANCH)
    assert parse_git("git+file:///a/b.git#x/y") == ("file:///a/b.git", "x/y")
    assert parse_git("git+https://[::1]:8/a") == ("https://[::1]:8/a", BRANCH)


def test_what_looks_like_an_option_reaches_git_behind_the_dashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    real = subprocess.run

    def noted(words: list[str], **options: object) -> object:
        seen.append(words)
        return real(words, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "run", noted)
    with pytest.raises(StorageError):
        BranchFiles(str(tmp_path / "x"), "--upload-pack=touch x", BRANCH, os.environ).list("writers/")
    asked = next(words for words in seen if "ls-remote" in words)
    assert asked[asked.index("--") + 1] == "--upload-pack=touch x"
    assert not (tmp_path / "x" / "x").exists()
