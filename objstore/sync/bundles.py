"""A pack in a file: for a memory stick, an e-mail, or a backup. It is written whole or not at all, and read like any
other side of an exchange."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from tempfile import NamedTemporaryFile

from objstore.errors import NotFound, StorageError, UsageError
from objstore.pack.format import Header
from objstore.pack.reader import PackReader, Source
from objstore.sync.manifest import Manifest, Node, Ref, Scope
from objstore.sync.transport import Hello, Receipt, Traffic

#: The id that a bundle has for a store.
NO_STORE = ""


class FileSource:
    """A file as the source of a pack; a context manager. Raises ``NotFound`` or ``StorageError``."""

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            self._file = open(path, "rb")  # noqa: SIM115
        except FileNotFoundError:
            raise NotFound(f"{path}: no such file") from None
        except OSError as error:
            raise StorageError(f"{path}: cannot be read: {error.strerror}") from None

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes."""
        try:
            return self._file.read(size)
        except OSError as error:
            raise StorageError(f"{self._path}: cannot be read: {error.strerror}") from None

    def __enter__(self) -> FileSource:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def write_file(path: str, pieces: Iterable[bytes]) -> int:
    """Write a pack to the file ``path``, in the place of one that is there, durably and whole or not at all; how many
    bytes. Raises ``StorageError``."""
    folder = os.path.dirname(os.path.abspath(path))
    size = 0
    try:
        with NamedTemporaryFile(dir=folder, prefix=".objpack-", delete=False) as file:
            try:
                for piece in pieces:
                    file.write(piece)
                    size += len(piece)
                file.flush()
                os.fsync(file.fileno())
                os.replace(file.name, path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(file.name)
                raise
    except OSError as error:
        raise StorageError(f"{path}: cannot be written: {error.strerror}") from None
    return size


def read_offer(path: str) -> tuple[Header, list[bytes], list[Ref]]:
    """The header of the pack in a file, the ids that it presumes, and the refs that it offers."""
    with FileSource(path) as file:
        reader = PackReader(file)
        return reader.header, reader.presumed(), reader.refs()


class BundleTransport:
    """The pack in the file ``path``; it can be fetched from, and is made by ``write_file``."""

    def __init__(self, path: str) -> None:
        self.traffic = Traffic()
        self._path = path

    def _manifest(self, scope: Scope) -> tuple[Header, Manifest]:
        self.traffic.requests += 1
        matches = scope.matcher()
        header, _, refs = read_offer(self._path)
        return header, Manifest(ref for ref in refs if matches(ref[0]))

    def hello(self, scope: Scope) -> Hello:
        header, manifest = self._manifest(scope)
        return Hello(
            content=header.content,
            hash=header.hash,
            refs=len(manifest),
            root=manifest.root,
            store=NO_STORE,
        )

    def nodes(self, scope: Scope, prefixes: Sequence[str]) -> Sequence[Node]:
        _, manifest = self._manifest(scope)
        return [manifest.node(prefix) for prefix in prefixes]

    def entries(self, names: Sequence[str]) -> list[bytes]:
        return []

    def fetch(self, scope: Scope, names: Sequence[str], have: Sequence[bytes], most: int) -> Iterator[Source]:
        self.traffic.requests += 1
        with FileSource(self._path) as file:
            yield file

    def push(self, pack: Iterable[bytes]) -> Receipt:
        raise UsageError(
            f"{self._path}: nothing can be added to a bundle",
            hint="write a new one: objstore bundle create FILE",
        )

    def close(self) -> None:
        return
