"""Nothing that anybody said, and no secret, is in any view, whatever its form, nor in what doctor prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.porcelain.importing.driving import objstore, succeed
from tests.porcelain.importing.marking import MARK, SECRET, marked_home
from tests.porcelain.lineage.views.test_views import VIEWS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A marked home folder, and a store that keeps even what was said."""
    folder = tmp_path_factory.mktemp("private")
    marked_home(folder / "home")
    succeed(folder / "store", "init")
    succeed(folder / "store", "config", "content", "keep", "on")
    succeed(folder / "store", "import", home=folder / "home")
    return folder


@pytest.mark.parametrize(
    "words",
    [
        *(("lineage", *view) for view in VIEWS),
        *(("lineage", "usage", "--by", by, *form) for by in ("day", "model", "project", "session")
          for form in ((), ("--json",))),
        ("doctor",),
        ("doctor", "--json", "--full"),
        ("doctor", "--rebuild"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_no_mark_and_no_secret(folder: Path, words: tuple[str, ...]) -> None:
    result = objstore(folder / "store", *words, home=folder / "home")
    assert result.code == 0, result.err
    said = (result.out + result.err).encode()
    assert len(said) > 100
    assert not MARK.search(said) and not SECRET.search(said)


def test_nor_in_the_files_for_the_renderer(folder: Path, tmp_path: Path) -> None:
    succeed(folder / "store", "lineage", "export", "--pi-compat", tmp_path)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 3
    for path in files:
        data = path.read_bytes()
        assert not MARK.search(data) and not SECRET.search(data)
