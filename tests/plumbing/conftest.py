"""Running a command in this process, with bytes in and out."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from porcelain.main import main


class Result(NamedTuple):
    """What one run gave: its exit code, and what it wrote as text."""

    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def objstore(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """``objstore(*words, stdin=...)`` runs a command line on the store in ``tmp_path/store``."""
    monkeypatch.delenv("OBJSTORE_DIR", raising=False)
    monkeypatch.chdir(tmp_path)

    def run(*words: str, stdin: str | bytes = b"", store: str | None = "store") -> Result:
        given = stdin.encode() if isinstance(stdin, str) else stdin
        streams = [io.TextIOWrapper(io.BufferedReader(io.BytesIO(given)), encoding="utf-8")]  # type: ignore[arg-type]
        buffers = [io.BytesIO(), io.BytesIO()]
        streams += [io.TextIOWrapper(buffer, encoding="utf-8") for buffer in buffers]
        with monkeypatch.context() as patch:
            for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
                patch.setattr(sys, name, stream)
            code = main([*(("--store", store) if store else ()), *words])
            out, err = (buffer.getvalue().decode() for buffer in buffers)
        return Result(code, out, err)

    return run


@pytest.fixture
def store(objstore: Run) -> Run:
    """``objstore`` with a store that holds the texts ``one`` and ``two``, and the ref ``tag/start`` at ``one``."""
    assert objstore("init").code == 0
    lines = '{"text":"one","type":"text"}\n{"text":"two","type":"text"}\n'
    ids = objstore("hash-object", "-w", "--batch", stdin=lines).out.split()
    assert objstore("update-ref", "--why", "begin", "tag/start", ids[0]).code == 0
    return objstore
