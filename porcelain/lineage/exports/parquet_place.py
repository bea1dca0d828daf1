"""Where exported Parquet files go: a folder, or object storage."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from objstore.errors import StorageError, UsageError
from porcelain.remotes.s3_bucket import BucketFiles, bucket_files

SCHEMES = ("s3://", "gs://", "az://")


class Place(Protocol):
    """Files by name. All raise ``StorageError``."""

    def scratch(self) -> AbstractContextManager[Path]:
        """A folder for what is being written, gone at the end."""

    def put(self, name: str, path: Path) -> None:
        """Have the file ``path`` stand there as ``name``, whole or not at all."""

    def names(self, prefix: str) -> list[str]:
        """The names of files below ``prefix``."""

    def remove(self, name: str) -> None:
        """Remove a file."""


def open_place(text: str, cwd: str, env: Mapping[str, str]) -> Place:
    """The place that ``text`` names; raises ``UsageError``."""
    if text.startswith(SCHEMES):
        return BucketPlace(bucket_files(text, env))
    path = Path(cwd) / text
    if path.exists() and not path.is_dir():
        raise UsageError(f"{text}: is not a folder", hint="Parquet files go into a folder or a bucket")
    return FolderPlace(path)


class FolderPlace:
    """A folder, made when it is not there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StorageError(f"{self._folder}: cannot be written: {error.strerror or error}") from None

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        with self._told():
            self._folder.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(dir=self._folder, prefix=".objstore-") as scratch:
                yield Path(scratch)

    def put(self, name: str, path: Path) -> None:
        with self._told():
            target = self._folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.replace(path, target)

    def names(self, prefix: str) -> list[str]:
        with self._told():
            found = (self._folder / prefix).rglob("*")
            return [path.relative_to(self._folder).as_posix() for path in found if path.is_file()]

    def remove(self, name: str) -> None:
        with self._told():
            path = self._folder / name
            path.unlink(missing_ok=True)
            with suppress(OSError):  # what else stands there stays
                path.parent.rmdir()


class BucketPlace:
    """A prefix in a bucket."""

    def __init__(self, files: BucketFiles) -> None:
        self._files = files

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        try:
            with TemporaryDirectory(prefix="objstore-") as scratch:
                yield Path(scratch)
        except OSError as error:
            raise StorageError(
                f"cannot write to the folder for temporary files: {error.strerror or error}"
            ) from None

    def put(self, name: str, path: Path) -> None:
        with path.open("rb") as file:
            self._files.overwrite(name, file)
        path.unlink()

    def names(self, prefix: str) -> list[str]:
        return list(self._files.list(prefix))

    def remove(self, name: str) -> None:
        self._files.remove(name)
