"""Nothing that anybody said, and no secret, is anywhere in a store that keeps no content, nor in what is printed."""

from __future__ import annotations

import base64
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.porcelain.importing.driving import (
    CONVERSATIONS,
    HOME,
    Held,
    held,
    objstore,
    opened,
    patched,
    run,
    succeed,
    verify,
)
from tests.porcelain.importing.marking import MARK, SECRET, marked_home

_BASE64 = re.compile(rb'"base64":"([^"]*)"')


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A marked home folder, a store without its content in ``without`` and one with it in ``kept``."""
    folder = tmp_path_factory.mktemp("privacy")
    marked_home(folder / "home")
    for store in (folder / "without", folder / "kept"):
        succeed(store, "init")
    succeed(folder / "kept", "config", "content", "keep", "on")
    for store in (folder / "without", folder / "kept"):
        (folder / f"{store.name}.said").write_text(
            "".join(f"{r.out}{r.err}" for r in (succeed(store, "import", home=folder / "home"),))
        )
    return folder


def everything_in(store: Path) -> Iterator[tuple[str, bytes]]:
    """All that is stored, decoded, and every file as it is."""
    with opened(store) as (_, view):
        for key, stored in view.objects():
            yield f"{stored.kind} {key.hex()}", stored.data
            for found in _BASE64.findall(stored.data):
                yield f"{stored.kind} {key.hex()}", base64.b64decode(found)
        for name, items in (("local", view.local_items(b"")), ("derived", view.derived_items(b""))):
            for item, value in items:
                yield f"{name} {item!r}", item + b" " + value
        for name, _ in view.refs():
            yield f"ref {name}", name.encode()
            for entry in view.reflog(name):
                yield f"reflog of {name}", repr(entry).encode()
    for path in store.iterdir():
        yield str(path), path.read_bytes()


def everything_printed(store: Path, home: Path) -> Iterator[tuple[str, bytes]]:
    """What commands print and what they export."""
    with opened(store) as (_, view):
        keys = "\n".join(key.hex() for key, _ in view.objects())
        refs = [name for name, _ in view.refs()]
    names = [name.rsplit("/", 1)[1] for name in refs if name.startswith("flow/")]
    commands: list[tuple[str, ...]] = [
        ("import",),
        ("import", "--json"),
        ("import", str(home / ".claude")),
        ("status",),
        ("status", "--json"),
        ("verify",),
        ("verify", "--json"),
        ("flow", "verify"),
        ("flow", "verify", "--json"),
        ("lineage", "sessions"),
        ("lineage", "sessions", "--json"),
        ("for-each-ref",),
        ("for-each-ref", "--json"),
        ("show-ref",),
        ("ls-objects",),
        ("ls-objects", "--json"),
        ("count-objects", "--json"),
        *(("flow", "show", name) for name in names),
        *(("flow", "show", "--json", name) for name in names),
        *(("fold", name) for name in refs if name.startswith("lineage/")),
        *(("reflog", name) for name in refs),
    ]
    for words in commands:
        result = objstore(store, *words, home=home)
        assert result.code == 0, (words, result.err)
        yield " ".join(words), (result.out + result.err).encode()
    yield "cat", objstore(store, "cat", "--batch", stdin=keys.encode()).out.encode()
    for form in ("sqlite", "json"):
        file = store.parent / f"{store.name}.{form}"
        said = succeed(store, "lineage", "export", "--force", file)
        yield f"said by export {form}", (said.out + said.err).encode()
        yield f"export {form}", file.read_bytes()
    yield "said by import", (store.parent / f"{store.name}.said").read_bytes()


def marks(found: Iterator[tuple[str, bytes]]) -> dict[str, set[bytes]]:
    return {place: set(MARK.findall(data)) for place, data in found if MARK.search(data)}


def test_the_marks_are_read(folder: Path) -> None:
    """A store that keeps content holds nearly all (signatures are dropped): the other tests look where they are."""
    _, given = marked_home(folder / "again")
    assert given > 600
    found = set().union(*marks(everything_in(folder / "kept")).values())
    assert len(found) > 0.9 * given


def test_no_mark_is_stored_without_content(folder: Path) -> None:
    assert marks(everything_in(folder / "without")) == {}


def test_no_mark_is_printed(folder: Path) -> None:
    assert marks(everything_printed(folder / "without", folder / "home")) == {}


def test_content_is_printed_only_when_it_is_asked_for(folder: Path) -> None:
    """Not even a store that keeps content shows it in its views."""
    found = marks(everything_printed(folder / "kept", folder / "home"))
    assert found.keys() == {"cat"}


@pytest.mark.parametrize("store", ["without", "kept"])
def test_no_planted_secret_is_anywhere(folder: Path, store: str) -> None:
    home = folder / "home"
    planted = set(SECRET.findall(b"".join(path.read_bytes() for path in home.rglob("*.jsonl"))))
    assert len(planted) >= 5
    for found in (everything_in(folder / store), everything_printed(folder / store, home)):
        assert {place for place, data in found if SECRET.search(data)} == set()


def test_the_same_records_with_and_without_content(folder: Path) -> None:
    without, kept = held(folder / "without"), held(folder / "kept")
    assert without.landed == kept.landed
    assert without.folds == kept.folds
    assert without.facts == kept.facts
    assert isinstance(without, Held) and sum(map(len, without.landed.values())) > 300


def test_an_error_nobody_expected_quotes_nothing(folder: Path, tmp_path: Path) -> None:
    """The text of an exception might hold what somebody said; its type and place do not."""
    script = patched(
        tmp_path / "broken.py",
        "import porcelain.providers.claude as claude",
        "read = claude.read_line",
        "def broken(line, *places, **options):",
        "    if b'7b0a0b66' in line: raise ValueError(line.decode('latin-1'))",
        "    return read(line, *places, **options)",
        "claude.read_line = broken",
    )
    for processes in ("1", "2"):
        store = tmp_path / f"store{processes}"
        words = ("import", "--processes", processes)
        result = run(store, *words, home=folder / "home", script=script)
        assert result.code == 5
        (line,) = [line for line in result.err.splitlines() if line.startswith("objstore: ")]
        assert "internal error: ValueError in " in line
        assert not MARK.search((result.out + result.err).encode())
        assert marks(everything_in(store)) == {}
        assert len(held(store).landed) == CONVERSATIONS
        verify(store)


def test_a_secret_in_a_path_is_replaced(tmp_path: Path) -> None:
    secret = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    home = tmp_path / "home"
    source = HOME / ".claude" / "projects"
    folder = home / ".claude" / "projects" / f"-home-mira-{secret}"
    shutil.copytree(next(p for p in sorted(source.iterdir()) if p.is_dir()), folder)
    store = tmp_path / "store"
    succeed(store, "import", home=home)
    assert secret not in succeed(store, "lineage", "sessions", "--json", home=home).out
    with opened(store) as (_, view):
        assert all(secret.encode() not in stored.data for _, stored in view.objects())
