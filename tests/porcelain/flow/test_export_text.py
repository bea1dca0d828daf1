"""Conversations as files with their text: the same structure, under a policy of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from objstore.snapshot import Snapshot
from porcelain.flow.chain.fold_store import stored_fold
from porcelain.flow.chain.folding import Fold, fold_rounds
from porcelain.flow.chain.naming import best_heads
from porcelain.flow.folders.export_text import TEXT_POLICY
from porcelain.flow.formats.sd_reading import read_sd
from porcelain.flow.formats.sf import SfNode
from porcelain.flow.formats.sf_reading import read_round
from tests.porcelain.flow.folders import tree
from tests.porcelain.importing.driving import HOME, objstore, opened, succeed

KEEP = ("config", "content.keep", "on")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A store that keeps content, and everything in it as files with text."""
    folder = tmp_path_factory.mktemp("text")
    succeed(folder / "store", "init")
    succeed(folder / "store", *KEEP)
    succeed(folder / "store", "import", home=HOME)
    succeed(folder / "store", "flow", "export", "--all", "--text", folder / "out")
    return folder / "store", folder / "out"


def folds(root: Path) -> dict[str, Fold]:
    found = {}
    for folder in sorted((root / "_conversations").iterdir()):
        files = sorted((folder / "rounds").iterdir())
        fold = fold_rounds(read_round(file.read_bytes(), exact=True) for file in files)
        assert fold.header is not None
        found[fold.header.conversation] = fold
    return found


def plain(view: Snapshot) -> dict[str, Fold]:
    heads = best_heads(view, "flow").values()
    found = [stored_fold(view, head) for head in heads]
    return {fold.header.conversation: fold for fold in found if fold.header is not None}


def said(node: SfNode) -> Any:
    """A node without what may be text in it."""
    attrs = json.loads(bytes(node.attrs)) if isinstance(node.attrs, Raw) else {}
    written = {
        name: attrs[name] for name in attrs if name not in ("label", "title", "title_from", "launched")
    }
    return node.kind, node.parent, node.stream, node.ref, node.refs, written


def same(with_text: Fold, without: Fold) -> None:
    assert {n: said(node) for n, node in with_text.nodes.items()} == {
        n: said(node) for n, node in without.nodes.items()
    }
    assert dict(with_text.relations.items()) == dict(without.relations.items())
    assert dict(with_text.unresolved.items()) == dict(without.unresolved.items())
    assert with_text.header is not None and without.header is not None
    assert with_text.header.policy == TEXT_POLICY != without.header.policy
    for name in ("talks", "steps", "streams", "segments", "changes", "lines_added", "llm_calls", "bash_runs"):
        assert getattr(with_text.header, name) == getattr(without.header, name)


def test_the_structure_is_the_same(exported: tuple[Path, Path]) -> None:
    store, out = exported
    found = folds(out)
    with opened(store) as (_, view):
        expected = plain(view)
    assert found.keys() == expected.keys()
    assert len(found) > 10
    for name, fold in found.items():
        same(fold, expected[name])


def test_the_files_hold_the_text_and_keep_all_rules(exported: tuple[Path, Path]) -> None:
    _, out = exported
    report = objstore(out, "flow", "verify", "--dir", out)
    assert (report.code, report.out) == (0, ""), report.out
    texts = hashes = 0
    for path in out.rglob("*.sd"):
        file = read_sd(path.read_bytes(), exact=True)
        assert "-text/" in file.header.adapter
        for record in file.records:
            for part in record.parts or ():
                texts += isinstance(part.text, str) or isinstance(part.data, Raw)
                hashes += part.state == "hash_only"
    assert texts > 300
    assert hashes == 0


def test_there_and_back(exported: tuple[Path, Path], tmp_path: Path) -> None:
    _, out = exported
    other = tmp_path / "other"
    succeed(other, "init")
    succeed(other, *KEEP)
    succeed(other, "flow", "import", out)
    succeed(other, "flow", "export", "--all", tmp_path / "again")
    assert tree(tmp_path / "again") == tree(out)
    assert objstore(other, "flow", "verify").code == 0
    one = next((out / "_conversations").iterdir()).name
    refused = objstore(other, "flow", "export", "--text", one, tmp_path / "third")
    assert (refused.code, "was imported as files" in refused.err) == (2, True)


def test_the_same_files_in_another_run_and_none_twice(exported: tuple[Path, Path], tmp_path: Path) -> None:
    store, out = exported
    again = succeed(store, "flow", "export", "--all", "--text", "--json", out)
    assert all(json.loads(line)["new"] == 0 for line in again.out.splitlines())
    one = next((out / "_conversations").iterdir()).name
    succeed(store, "flow", "export", one, tmp_path / "plain")
    conflict = objstore(store, "flow", "export", "--text", one, tmp_path / "plain")
    assert (conflict.code, "another telling" in conflict.err) == (4, True)


def test_a_store_without_text_says_so(tmp_path: Path) -> None:
    succeed(tmp_path / "store", "import", HOME / ".pi")
    refused = objstore(tmp_path / "store", "flow", "export", "--all", "--text", tmp_path / "out")
    assert refused.code == 1
    assert "the store keeps no text of it" in refused.err
    assert not (tmp_path / "out").exists()


def test_what_is_not_kept_stands_as_a_hash(tmp_path: Path) -> None:
    """Text of what was imported before content was kept is not there."""
    store, home = tmp_path / "store", tmp_path / "home"
    home.mkdir()
    source = max((HOME / ".pi").rglob("*.jsonl"), key=lambda path: path.stat().st_size)
    lines = source.read_bytes().splitlines(keepends=True)
    file = home / ".pi" / source.relative_to(HOME / ".pi")
    file.parent.mkdir(parents=True)
    succeed(store, "init")
    succeed(store, *KEEP)
    file.write_bytes(b"".join(lines[:-3]))
    succeed(store, "import", home / ".pi")
    succeed(store, "config", "content.keep", "off")
    file.write_bytes(b"".join(lines))
    succeed(store, "import", home / ".pi")
    done = succeed(store, "flow", "export", "--all", "--text", "--json", tmp_path / "out").json
    assert done["withoutText"] > 0
    assert objstore(store, "flow", "verify", "--dir", tmp_path / "out").code == 0
    with opened(store) as (_, view):
        (expected,) = plain(view).values()
    (found,) = folds(tmp_path / "out").values()
    same(found, expected)


@pytest.mark.parametrize("agent", ["claude", "codex", "factory", "oh-my-pi", "opencode", "pi"])
def test_every_sample_with_its_text(tmp_path: Path, shared: Path, agent: str) -> None:
    store, out = tmp_path / "store", tmp_path / "out"
    succeed(store, "init")
    succeed(store, *KEEP)
    assert objstore(store, "import", (shared / "samples" / agent).absolute()).code == 0
    succeed(store, "flow", "export", "--all", "--text", out)
    report = objstore(store, "flow", "verify", "--dir", out)
    assert (report.code, report.out) == (0, ""), report.out[:500]
    with opened(store) as (_, view):
        expected = plain(view)
    found = folds(out)
    assert found.keys() == expected.keys()
    for name, fold in found.items():
        same(fold, expected[name])
