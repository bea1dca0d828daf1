"""What commands say of a store whose database is damaged: one line, what to do, and no traceback."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.porcelain.importing.driving import HOME, objstore, succeed

PAGE = 4096


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("sound") / "store"
    succeed(store, "import", "--provider", "pi", home=HOME)
    return store


@pytest.fixture
def store(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "store"))


COMMANDS = (("status",), ("verify",), ("lineage", "sessions"), ("import",), ("doctor",), ("flow", "verify"))


@pytest.mark.parametrize("words", COMMANDS)
def test_a_database_that_was_cut(store: Path, words: tuple[str, ...]) -> None:
    with open(store / "data.mdb", "r+b") as file:
        file.truncate(2 * PAGE)
    result = objstore(store, *words, home=HOME)
    assert result.code == 5
    what, hint = result.err.splitlines()
    assert what.startswith("objstore: ") and "data.mdb was cut to 8,192 of" in what
    assert hint.startswith("hint: put a backup in its place")


@pytest.mark.parametrize("words", COMMANDS)
def test_a_database_whose_pages_are_noise(store: Path, words: tuple[str, ...]) -> None:
    data = bytearray((store / "data.mdb").read_bytes())
    for start in range(2 * PAGE, len(data), PAGE):
        data[start + 8 : start + 12] = b"\x00\x00\x10\x00"  # what kind of page it is
    (store / "data.mdb").write_bytes(data)
    result = objstore(store, *words, home=HOME)
    assert result.code in (1, 5)
    assert "internal error" not in result.err and "damaged" in result.err


def test_what_was_imported_cannot_be_told(store: Path) -> None:
    data = (store / "data.mdb").read_bytes()
    assert b'"conversation":"' in data
    (store / "data.mdb").write_bytes(data.replace(b'"conversation":"', b'"conversation":!'))
    for words, code in ((("status",), 5), (("import",), 5), (("doctor",), 1)):
        result = objstore(store, *words, home=HOME)
        assert result.code == code, words
        assert "is not known: the store's database is damaged" in result.err + result.out
        assert "internal error" not in result.err
