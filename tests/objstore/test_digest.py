from __future__ import annotations

import builtins
import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from objstore import digest
from objstore.errors import UsageError


def test_known_answers() -> None:
    assert (
        digest.hash_bytes(b"abc").hex() == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )
    pytest.importorskip("blake3")
    assert (
        digest.hash_bytes(b"abc", "blake3").hex()
        == "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"
    )


@given(st.binary(max_size=300))
def test_sha256_is_the_default(data: bytes) -> None:
    expected = hashlib.sha256(data).digest()
    assert digest.hash_bytes(data) == digest.hasher("sha256")(data) == expected
    assert digest.is_object_id(expected.hex())


@pytest.mark.parametrize("algorithm", digest.ALGORITHMS)
def test_every_digest_has_32_bytes(algorithm: str) -> None:
    if algorithm == "blake3":
        pytest.importorskip("blake3")
    assert len(digest.hash_bytes(b"", algorithm)) == digest.DIGEST_SIZE == 32


def test_unknown_algorithm() -> None:
    with pytest.raises(UsageError, match="'md5': unknown hash algorithm") as caught:
        digest.hash_bytes(b"", "md5")
    assert caught.value.hint == "choose one of: sha256, blake3"


def test_blake3_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def without_blake3(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "blake3":
            raise ModuleNotFoundError("No module named 'blake3'")
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_blake3)
    with pytest.raises(UsageError, match="blake3") as caught:
        digest.hasher("blake3")
    assert caught.value.hint == 'pip install "objstore-cli[blake3]"'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a" * 63,
        "a" * 65,
        "A" * 64,
        "g" * 64,
        "a" * 64 + "\n",
        " " + "a" * 63,
        "\u0661" * 64,
        "0x" + "a" * 62,
    ],
)
def test_not_an_object_id(text: str) -> None:
    assert not digest.is_object_id(text)


def test_single_object_modules_load_little() -> None:
    """``cat`` and ``hash-object`` of one object must not pay for msgspec, click or blake3."""
    program = (
        "import sys; import objstore.digest, objstore.canonical; objstore.digest.hash_bytes(b'');"
        "print([name for name in ('msgspec', 'click', 'blake3', 'lmdb') if name in sys.modules])"
    )
    project = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=project, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
