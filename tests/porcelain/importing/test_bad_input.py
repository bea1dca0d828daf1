"""What cannot be imported: one clear line, the right exit code, no traceback, and a store as it was or better."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.porcelain.importing.driving import (
    HOME,
    RECORDS,
    SMALL_PIECES,
    TIDEPOOL,
    Result,
    copy_home,
    environment,
    eventually,
    finish,
    held,
    objstore,
    patched,
    run,
    start,
    state_of,
    succeed,
    verify,
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return copy_home(tmp_path / "home")


@pytest.fixture
def store(tmp_path: Path, home: Path) -> Path:
    succeed(tmp_path / "store", "import", home=home)
    return tmp_path / "store"


def refused(result: Result, code: int, *words: str) -> None:
    """Exit code ``code`` and one line (and perhaps a hint), which holds ``words``."""
    assert "Traceback" not in result.err and "internal error" not in result.err, result.err
    first, *rest = result.err.splitlines()
    assert result.code == code, result.err
    assert first.startswith("objstore: ")
    assert all(word in first for word in words), first
    assert len(rest) <= 1 and all(line.startswith("hint: ") for line in rest), result.err


# -- paths -----------------------------------------------------------------------------------------


def test_a_path_that_does_not_exist(tmp_path: Path, store: Path) -> None:
    before = state_of(store)
    for name in ("nowhere", "nowhere/deep", str(TIDEPOOL) + "/inside"):
        refused(objstore(store, "import", tmp_path / name), 3, name, "no such file or folder")
    (tmp_path / "dangling").symlink_to("nowhere")
    refused(objstore(store, "import", tmp_path / "dangling"), 3, "dangling")
    assert state_of(store) == before


def test_a_mistyped_path_makes_no_store(tmp_path: Path) -> None:
    refused(objstore(tmp_path / "store", "import", tmp_path / "nowhere"), 3)
    refused(objstore(tmp_path / "no" / "folder" / "store", "import", tmp_path), 3, "no such folder")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("notes.txt", b"hello\n"),
        ("empty.jsonl", b""),
        ("other.jsonl", b'{"hello":"world"}\n'),
        ("list.jsonl", b"[1,2,3]\n"),
        ("nul.jsonl", b"\0" * 5000),
        ("latin.jsonl", b"\xe9\xe8\xff\n" * 9),
        ("deep.jsonl", b"[" * 100_000),
        ("database.jsonl", b"SQLite format 3\0" + bytes(range(256)) * 8),
    ],
)
def test_a_file_of_no_agent(tmp_path: Path, store: Path, name: str, data: bytes) -> None:
    before = state_of(store)
    (tmp_path / name).write_bytes(data)
    refused(objstore(store, "import", tmp_path / name), 2, name, "holds no conversation")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / name).write_bytes(data)
    refused(objstore(store, "import", folder), 2, "holds no conversation")
    assert state_of(store) == before


def test_a_folder_without_conversations(tmp_path: Path, store: Path) -> None:
    (tmp_path / "empty" / "inside.jsonl").mkdir(parents=True)
    refused(objstore(store, "import", tmp_path / "empty"), 2, "holds no conversation of claude, ")
    refused(objstore(store, "import", tmp_path / "empty" / "inside.jsonl"), 2)
    refused(objstore(store, "import", "--provider", "pi", HOME / ".claude"), 2, "of pi")


def test_a_provider_that_is_none(store: Path) -> None:
    refused(objstore(store, "import", "--provider", "emacs"), 2, "emacs")
    refused(objstore(store, "import", "--processes", "many"), 2, "many")


def test_one_bad_path_among_good_ones_imports_nothing(tmp_path: Path) -> None:
    store = tmp_path / "store"
    succeed(store, "init")
    before = state_of(store)
    refused(objstore(store, "import", HOME / ".claude", tmp_path / "nowhere"), 3)
    assert state_of(store) == before


def test_names_that_would_move_a_cursor(tmp_path: Path, store: Path) -> None:
    """They come in, and are shown made printable."""
    folder = tmp_path / "odd\x1b[31m\nfolder"
    folder.mkdir()
    data = (HOME / TIDEPOOL).read_bytes().replace(b"5c5fd944", b"5c5fd945")
    (folder / f"a\x1b[31m\n\u202e{TIDEPOOL.name}").write_bytes(data)
    assert succeed(store, "import", "--json", folder).json["records"] == 42
    (folder / "b\x1b[31m\n.jsonl").symlink_to("nowhere")
    for words in (
        ("import", folder),
        ("lineage", "sessions"),
        ("status", "--no-scan"),
        ("flow", "verify"),
        ("flow", "show", "5c5fd945"),
    ):
        result = objstore(store, *words, home=tmp_path)
        assert not set("\x1b\u202e") & set(result.out + result.err)
    for form in ("json", "sqlite"):
        succeed(store, "lineage", "export", tmp_path / f"view.{form}")
    verify(store)


def test_names_that_are_no_text(tmp_path: Path, store: Path) -> None:
    folder = tmp_path / "odd"
    folder.mkdir()
    data = (HOME / TIDEPOOL).read_bytes()
    for name in (b"5c5fd946.jsonl", b"\xff5c5fd945.jsonl"):
        with open(os.path.join(os.fsencode(folder), name), "wb") as file:
            file.write(data.replace(b"5c5fd944", name[-14:-6]))
    result = objstore(store, "import", "--json", folder)
    refused(result, 5, "5c5fd945.jsonl", "its path is not UTF-8")
    assert result.json["records"] == 42
    verify(store)


# -- files that cannot be read ---------------------------------------------------------------------


def test_a_link_that_leads_nowhere_is_told_and_the_rest_imported(tmp_path: Path, home: Path) -> None:
    store, project = tmp_path / "store", (home / TIDEPOOL).parent
    succeed(store, "init")
    (project / "11111111-2222-4333-8444-555555555555.jsonl").symlink_to("nowhere")
    (project / "22222222-2222-4333-8444-555555555555.jsonl").mkdir()
    result = objstore(store, "import", "--json", home=home)
    refused(result, 5, "11111111-2222", "cannot be read")
    assert result.json["records"] == RECORDS
    verify(store)


def test_a_file_without_permission(tmp_path: Path, home: Path) -> None:
    store, path = tmp_path / "store", home / TIDEPOOL
    succeed(store, "init")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    result = objstore(store, "import", "--json", home=home)
    refused(result, 5, path.name)
    assert result.json["records"] == RECORDS - 42
    path.chmod(0o600)
    assert succeed(store, "import", "--json", home=home).json["records"] == 42
    verify(store)


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_file_that_stops_being_readable(tmp_path: Path, home: Path, processes: str) -> None:
    """The disk fails in the middle of one file: its conversation is told, what was read of it and all others stay."""
    store = tmp_path / "store"
    succeed(store, "init")
    script = patched(
        tmp_path / "failing.py",
        *SMALL_PIECES,
        "import errno, porcelain.providers.jsonlines as jsonlines",
        "read = jsonlines.read_lines",
        "def failing(file, *places, **options):",
        "    for line in read(file, *places, **options):",
        f"        if {TIDEPOOL.stem!r} in str(getattr(file, 'name', '')) and line.ord > 20:",
        "            raise OSError(errno.EIO, 'Input/output error', str(file.name))",
        "        yield line",
        "jsonlines.read_lines = failing",
    )
    result = run(store, "import", "--json", "--processes", processes, home=home, script=script)
    refused(result, 5, TIDEPOOL.name, "Input/output error")
    assert result.json["places"][0]["conversations"] == 8
    verify(store)
    assert succeed(store, "import", home=home)
    assert len(held(store).landed["claude", TIDEPOOL.stem]) == 42


def test_a_pipe_is_left_alone(tmp_path: Path, home: Path) -> None:
    store, project = tmp_path / "store", (home / TIDEPOOL).parent
    os.mkfifo(project / "33333333-2222-4333-8444-555555555555.jsonl")
    os.mkfifo(project / "notes.jsonl")
    result = run(store, "import", "--json", "--provider", "claude", home=home)
    assert "Traceback" not in result.err
    assert result.json["records"] == 279


# -- the store -------------------------------------------------------------------------------------


def test_a_store_of_a_newer_format(store: Path, home: Path) -> None:
    newer(store)
    for words in (("import",), ("status",), ("flow", "verify"), ("lineage", "sessions")):
        refused(objstore(store, *words, home=home), 5, "store format 99")


def newer(store: Path) -> None:
    import lmdb

    with lmdb.open(str(store), max_dbs=16) as env, env.begin(write=True) as txn:
        txn.put(b"format", b"99", db=env.open_db(b"meta", txn=txn))


def test_a_store_that_is_no_database(tmp_path: Path, home: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    (store / "data.mdb").write_bytes(b"no database" * 900)
    refused(objstore(store, "import", home=home), 5, "store")
    (tmp_path / "file").write_bytes(b"")
    refused(objstore(tmp_path / "file", "import", home=home), 5, "file")


@pytest.mark.parametrize("limit", [100, 300])
def test_a_full_disk(tmp_path: Path, home: Path, limit: int) -> None:
    """Files may not grow beyond a limit (in KiB): what did not fit is not there, and comes with the next import."""
    store = tmp_path / "store"
    succeed(store, "init")
    script = patched(
        tmp_path / "full.py",
        *SMALL_PIECES,
        "import resource",
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit * 1024}, resource.RLIM_INFINITY))",
    )
    result = run(store, "import", home=home, script=script)
    assert (result.code, "Traceback" in result.err) == (5, False), result.err
    assert result.err.startswith("objstore: ") and len(result.err.splitlines()) == 2
    succeed(store, "verify")
    succeed(store, "import", home=home)
    verify(store)
    assert sum(map(len, held(store).landed.values())) == RECORDS


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 300 kB, where one may be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=300k", "none", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this user may not mount a small disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_no_space_left(small_disk: Path, home: Path) -> None:
    store = small_disk / "store"
    succeed(store, "init")
    result = run(store, "import", home=home)
    refused(result, 5, "store", "cannot be written")
    succeed(store, "verify")
    assert held(store).landed == {}


def test_a_ref_that_somebody_moved_by_hand(store: Path, home: Path) -> None:
    """The chain that an import would lengthen stands elsewhere: it goes on from there and loses nothing."""
    name = next(n for n in refs(store) if n.startswith("landed/") and n.endswith(TIDEPOOL.stem))
    other = next(n for n in refs(store) if n.startswith("landed/") and not n.endswith(TIDEPOOL.stem))
    objstore(store, "update-ref", name, refs(store)[other], refs(store)[name])
    with (home / TIDEPOOL).open("ab") as file:
        file.write((home / TIDEPOOL).read_bytes().splitlines(keepends=True)[1])
    result = objstore(store, "import", home=home)
    assert "Traceback" not in result.err and "internal error" not in result.err
    succeed(store, "verify")


def refs(store: Path) -> dict[str, str]:
    lines = objstore(store, "show-ref").out.splitlines()
    return {name: key for key, name in (line.split(" ", 1) for line in lines)}


# -- the caller ------------------------------------------------------------------------------------


def test_no_home(tmp_path: Path) -> None:
    store = tmp_path / "store"
    refused(objstore(store, "import"), 2, "HOME")
    assert succeed(store, "import", "--json", HOME / ".pi").json["records"] == 82
    assert succeed(store, "status", "--json").json["waiting"] == []


def test_an_empty_home(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    result = succeed(tmp_path / "store", "import", home=tmp_path / "home")
    assert result.out.startswith("no conversations found")


@pytest.mark.parametrize("words", [("import",), ("import", "--json"), ("status",), ("lineage", "sessions")])
def test_nobody_reads_what_is_printed(store: Path, home: Path, words: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = start(store, *words, home=home, stdout=writer)
    os.close(writer)
    result = finish(process)
    assert (result.code, result.err) == (141, "")
    verify(store)


def test_standard_streams_that_are_closed(store: Path, home: Path) -> None:
    line = f"{sys.executable} -m porcelain.main --store {store} import <&- >&- 2>&-"
    code = subprocess.run(["sh", "-c", line], env=environment(home), check=False).returncode
    assert code == 0
    verify(store)


@pytest.mark.parametrize("processes", ["1", "2"])
def test_interrupted(tmp_path: Path, home: Path, processes: str) -> None:
    """Ctrl-C reaches all processes of the terminal at once; one line is printed, and what was committed stays."""
    store, ready = tmp_path / "store", tmp_path / "ready"
    succeed(store, "init")
    script = patched(
        tmp_path / "slow.py",
        *SMALL_PIECES,
        "import time, pathlib",
        "importing = porcelain.importing.run",
        "take = importing._Import._take",
        "def slow(self, piece):",
        f"    pathlib.Path({str(ready)!r}).touch()",
        "    time.sleep(0.05)",
        "    take(self, piece)",
        "importing._Import._take = slow",
    )
    words = ("import", "--processes", processes)
    process = start(store, *words, home=home, script=script, start_new_session=True)
    eventually(ready.exists)
    os.killpg(process.pid, signal.SIGINT)
    result = finish(process)
    assert (result.code, result.err) == (130, "objstore: interrupted\n")
    succeed(store, "verify")
    succeed(store, "import", home=home)
    verify(store)
    assert sum(map(len, held(store).landed.values())) == RECORDS


def test_files_of_the_store_are_the_owners_only(store: Path) -> None:
    assert stat.S_IMODE(store.stat().st_mode) == 0o700
    for path in store.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_a_second_error_line_is_not_accepted_here() -> None:
    with pytest.raises(AssertionError):
        refused(Result(5, "", "objstore: a\nobjstore: b\n"), 5)
