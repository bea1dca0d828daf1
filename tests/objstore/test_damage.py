"""A database whose file was cut: refused, where reading on would end the process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from objstore.errors import StorageError
from objstore.store import Store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Store.init(tmp_path / "store") as store, store.writer() as writer:
        for number in range(500):
            writer.put("text", b'{"text":"%d-%s","type":"text"}' % (number, b"x" * 300))
    return tmp_path / "store"


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("pages", [2, 3, 10])
def test_a_file_that_was_cut_is_refused(folder: Path, pages: int, read_only: bool) -> None:
    os.truncate(folder / "data.mdb", pages * 4096)
    with pytest.raises(StorageError, match=f"was cut to {pages * 4096:,} of") as raised:
        Store.open(folder, read_only=read_only)
    assert raised.value.exit_code == 5 and "backup" in str(raised.value.hint)


def test_a_file_that_lacks_only_pages_that_hold_nothing_is_opened(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.stat

    def shorter(path: str) -> os.stat_result:
        found = real(path)
        if not str(path).endswith("data.mdb"):
            return found
        return os.stat_result((*found[:6], found.st_size - 4096, *found[7:]))

    monkeypatch.setattr("objstore.damage.os.stat", shorter)
    with Store.open(folder) as store:
        assert store.verify().ok
