"""Against the bytes and digests that the public tool publishes (in the shared folder, no part of the project)."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from porcelain.flow.assembly import next_round
from porcelain.flow.assembly.entries import from_sd
from porcelain.flow.chain.folding import Fold, fold_partial
from porcelain.flow.formats.sd_reading import read_sd, rewrites
from porcelain.flow.formats.sf import input_digest, write_round
from porcelain.flow.formats.sf_reading import read_round

SESSION = "00000001-0000-4000-8000-000000000001"
COMMIT = "befb6026a5776f481ed79bb59cc7ff0fbabd36db8e4d174156230ac3051d723d"
OLDER = "3ad0dcd4cd53fa06c502a2649b8788bfbe0a382bbc72d7f1f0fe68d9a18e96e2"


@pytest.fixture(scope="module")
def vectors(shared: Path) -> Path:
    folder = shared / "vectors" / "session-flow"
    if not folder.is_dir():
        pytest.skip("the shared folder holds no session-flow vectors")
    return folder


def landed_files(root: Path) -> list[bytes]:
    found = {
        read_sd(p.read_bytes()).header.seq: p.read_bytes() for p in root.glob(f"{SESSION}/streams/*/*.sd")
    }
    return [found[seq] for seq in sorted(found)]


def round_file(root: Path) -> bytes:
    (path,) = root.glob(f"_conversations/{SESSION}/rounds/*.sf")
    return path.read_bytes()


def test_the_round_is_assembled_from_its_files(vectors: Path) -> None:
    root = vectors / "rebuilt"
    files = [from_sd(read_sd(data, exact=True)) for data in landed_files(root)]
    written = next_round(files, Fold(), conversation=SESSION, session=SESSION)
    assert written is not None
    assert written.data == round_file(root)
    assert written.round.digest == COMMIT


def test_rounds_of_both_header_generations(vectors: Path) -> None:
    for root, digest in ((vectors / "rebuilt", COMMIT), (vectors / "rebuilt" / "older-a67b640", OLDER)):
        data = round_file(root)
        round_ = read_round(data, exact=True)
        assert write_round(round_.header, round_.nodes, round_.relations, round_.unresolved) == (data, digest)
        digests = [hashlib.sha256(file).hexdigest() for file in landed_files(root)]
        assert input_digest("", digests) == round_.header.input_digest
        fold, problem = fold_partial([(1, data)])
        assert problem is None and len(fold.nodes) == 35


def test_landed_files_are_written_again(vectors: Path) -> None:
    files = sorted(vectors.rglob("*.sd"))
    assert len(files) == 8
    escaped = 0
    for path in files:
        data = path.read_bytes()
        html = rewrites(read_sd(data, exact=True), data)
        assert html is not None, path.name
        escaped += html
    assert escaped == 2
