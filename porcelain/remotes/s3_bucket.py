"""A bucket of object storage as a hub of plain files (``hub``), through ``obstore``.

``s3://bucket/prefix`` (or ``gs://``, ``az://``); credentials, region and endpoint come from the environment, as for the
provider's own programs, and never from the URL. The storage must refuse a write whose condition does not hold; one that
does not is refused in turn, since two writers could undo each other's work there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from io import BytesIO
from typing import Any, BinaryIO

from objstore.errors import NotFound, StorageError, UsageError
from objstore.pack.reader import Source
from objstore.sync.transport import Transport
from plumbing.interface.options import Context
from porcelain.remotes.config import Pusher, Remote
from porcelain.remotes.hub.files import WRITERS, Lost
from porcelain.remotes.hub.transport import HubTransport

_URL = re.compile(r"(s3|gs|az)://([A-Za-z0-9][A-Za-z0-9._-]{1,254})(/[^?#]*)?", re.ASCII)
#: Files up to this size are made in one request, on the condition that there is none of that name.
_WHOLE = 128 * 1024 * 1024
#: Files from this size on are looked for before they are sent.
_LARGE = 1024 * 1024
_CHUNK = 1024 * 1024
#: How often a request that failed is made again before the exchange is given up.
RETRIES = 4
#: How often a file whose connection was cut is read on from where it was, before the exchange is given up.
RESUMES = 4
_REGION = "us-east-1"
#: What the environment says, and how obstore calls it.
_SETTINGS = {
    "AWS_ACCESS_KEY_ID": "access_key_id",
    "AWS_SECRET_ACCESS_KEY": "secret_access_key",
    "AWS_SESSION_TOKEN": "session_token",
    "AWS_DEFAULT_REGION": "region",
    "AWS_REGION": "region",
    "AWS_ENDPOINT_URL": "endpoint",
    "AWS_ENDPOINT_URL_S3": "endpoint",
}


def parse_bucket(url: str) -> tuple[str, str, str]:
    """The scheme, the bucket and the prefix ("" for none) of a URL; raises ``UsageError``."""
    found = _URL.fullmatch(url)
    prefix = (found[3] or "").strip("/") if found is not None else ""
    if (
        found is None
        or not prefix.isprintable()
        or any(part in ("", ".", "..") for part in prefix.split("/")[:-1])
    ):
        raise UsageError(
            "not of the form s3://bucket/prefix", hint="credentials stand in the environment: AWS_..."
        )
    return found[1], found[2], prefix


def bucket_files(url: str, env: Mapping[str, str]) -> BucketFiles:
    """The files of a hub in a bucket. Raises ``UsageError`` where obstore is not installed, or for what is no URL."""
    scheme, bucket, prefix = parse_bucket(url)
    try:
        from obstore import exceptions, store
    except ImportError:
        raise UsageError(f"{scheme}://: needs obstore", hint="pip install 'objstore-cli[s3]'") from None
    retry: Any = {"max_retries": RETRIES, "retry_timeout": timedelta(seconds=60)}
    options: Any = {"timeout": timedelta(minutes=10), "connect_timeout": timedelta(seconds=20)}
    try:
        if scheme != "s3":
            return BucketFiles(store.from_url(url, retry_config=retry, client_options=options), bucket)
        given: Any = {"region": _REGION} | {
            name: env[variable] for variable, name in _SETTINGS.items() if env.get(variable)
        }
        if given.get("endpoint", "").startswith("http://"):
            options["allow_http"] = True
        made = store.S3Store(
            bucket, prefix=prefix or None, retry_config=retry, client_options=options, **given
        )
    except exceptions.BaseError as error:
        raise UsageError(f"{bucket}: cannot be used: {_first_line(error)}") from None
    return BucketFiles(made, bucket)


@contextmanager
def open_s3(remote: Remote, context: Context, pusher: Pusher | None) -> Iterator[Transport]:
    """The hub in a bucket. Before a store pushes there for the first time, the bucket is probed."""
    files = bucket_files(remote.url, context.env)
    if pusher is not None and WRITERS + pusher.store not in files.list(WRITERS):
        files.probe()
    yield HubTransport(files, pusher)


def probe(remote: Remote, context: Context) -> None:
    """See that a bucket can be a hub; raises ``UsageError`` where it does not keep writers apart."""
    bucket_files(remote.url, context.env).probe()


class BucketFiles:
    """The files of a hub in a bucket: ``hub.files.Files``. ``shown`` is what errors call it."""

    def __init__(self, store: Any, shown: str) -> None:
        import obstore

        self._obstore = obstore
        self._store = store
        self._shown = shown

    @contextmanager
    def _told(self, name: str) -> Iterator[None]:
        """Errors of obstore as ours. Both 412 and 409 mean that somebody else was faster."""
        errors = self._obstore.exceptions
        try:
            yield
        except (errors.AlreadyExistsError, errors.PreconditionError):
            raise Lost from None
        except (errors.NotFoundError, FileNotFoundError):
            raise NotFound(f"{self._shown}: {name}: is not there") from None
        except errors.BaseError as error:
            if "409 Conflict" in str(error):
                raise Lost from None
            raise StorageError(f"{self._shown}: {name}: {_first_line(error)}") from None
        except (OSError, ValueError) as error:
            raise StorageError(f"{self._shown}: {name}: {_first_line(error)}") from None

    def list(self, prefix: str) -> Mapping[str, str]:
        with self._told(prefix):
            return {
                found["path"]: found["e_tag"] or ""
                for chunk in self._obstore.list(self._store, prefix)
                for found in chunk
            }

    def get(self, name: str, tag: str | None = None) -> bytes:
        options: Any = {"if_match": tag} if tag else {}
        with self._told(name):
            return bytes(self._obstore.get(self._store, name, options=options).bytes())

    @contextmanager
    def open(self, name: str) -> Iterator[Source]:
        yield _Stream(self, name)

    def stream(self, name: str, start: int) -> Iterator[Any]:
        """The bytes of a file that never changes, from ``start`` on, in pieces."""
        options: Any = {"range": {"offset": start}} if start else {}
        with self._told(name):
            found = self._obstore.get(self._store, name, options=options)
            return iter(found.stream(min_chunk_size=_CHUNK))

    def create(self, name: str, source: Source, size: int) -> None:
        if size > _LARGE and self._has(name):
            return  # an earlier try came that far
        if size <= _WHOLE:
            data = source.read(size)
            try:
                with self._told(name):
                    self._obstore.put(self._store, name, data, mode="create", use_multipart=False)
            except Lost:
                return
            return
        # In several parts no condition can be set everywhere; whoever writes under that name writes the same.
        with self._told(name):
            self._obstore.put(self._store, name, _pieces(source), use_multipart=True)

    def _has(self, name: str) -> bool:
        try:
            with self._told(name):
                self._obstore.head(self._store, name)
        except NotFound:
            return False
        return True

    def replace(self, name: str, data: bytes, tags: Mapping[str, str], needed: Collection[str]) -> None:
        self._put(name, data, tags.get(name))

    def _put(self, name: str, data: bytes, tag: str | None) -> None:
        """Write a file on the condition that it stands at ``tag`` (None: is not there); raises ``Lost``."""
        mode: Any = "create" if tag is None else {"e_tag": tag}
        if tag is not None and isinstance(self._store, self._obstore.store.GCSStore):
            mode = {"version": self._version(name, tag)}
        with self._told(name):
            self._obstore.put(self._store, name, data, mode=mode, use_multipart=False)

    def _version(self, name: str, tag: str) -> str:
        """The version of a file that stands at ``tag``, where conditions are set by versions; raises ``Lost``."""
        try:
            with self._told(name):
                found = self._obstore.head(self._store, name)
        except NotFound:
            raise Lost from None
        if found["e_tag"] != tag or not found["version"]:
            raise Lost
        return str(found["version"])

    def overwrite(self, name: str, file: BinaryIO) -> None:
        """Write a file, whatever stands there; in several parts where it is large."""
        with self._told(name):
            self._obstore.put(self._store, name, file)

    def times(self, prefix: str) -> Mapping[str, float]:
        with self._told(prefix):
            return {
                found["path"]: found["last_modified"].timestamp()
                for chunk in self._obstore.list(self._store, prefix)
                for found in chunk
            }

    def remove(self, name: str) -> None:
        """Remove a file."""
        with self._told(name):
            self._obstore.delete(self._store, name)

    def discard(self, names: Sequence[str]) -> None:
        if names:
            with suppress(NotFound), self._told(names[0]):
                self._obstore.delete(self._store, names)

    def probe(self) -> None:
        """See that a second writer is refused; raises ``UsageError`` where it is not."""
        name = f"probe/{os.urandom(8).hex()}"
        try:
            self._put(name, b"1", None)
            stale = self.list("probe/").get(name)
            if not stale:
                raise self._unfit("it does not say what it has")
            if not self._is_refused(name, b"2", None):
                raise self._unfit("it lets a file be made twice (If-None-Match)")
            try:
                self._put(name, b"3", stale)
            except Lost:
                raise self._unfit("it does not take the tag that it gave itself (If-Match)") from None
            if not self._is_refused(name, b"4", stale):
                raise self._unfit("it lets a file be replaced that has changed (If-Match)")
            if self.get(name) != b"3":
                raise self._unfit("a write that it refused was made all the same")
        finally:
            with suppress(StorageError):  # who may not delete leaves it there
                self.remove(name)

    def _is_refused(self, name: str, data: bytes, tag: str | None) -> bool:
        try:
            self._put(name, data, tag)
        except Lost:
            return True
        return False

    def _unfit(self, reason: str) -> UsageError:
        return UsageError(
            f"{self._shown}: does not keep two writers apart: {reason}",
            hint="use storage that enforces conditional writes, or a Git branch: git+ssh://",
        )


class _Stream:
    """A file that is being read. Where the connection is cut, it goes on from there on another one."""

    def __init__(self, files: BucketFiles, name: str) -> None:
        self._files = files
        self._name = name
        self._came = 0
        self._stream = files.stream(name, 0)
        self._rest = BytesIO()

    def read(self, size: int, /) -> bytes:
        data = self._rest.read(size)
        while not data and size > 0:
            piece = self._piece()
            if piece is None:
                return b""
            self._came += len(piece)
            self._rest = BytesIO(piece)
            data = self._rest.read(size)
        return data

    def _piece(self) -> bytes | None:
        for left in range(RESUMES, -1, -1):
            try:
                with self._files._told(self._name):
                    piece = next(self._stream, None)
                return None if piece is None else bytes(piece)
            except StorageError:
                if not left:
                    raise
            self._stream = self._files.stream(self._name, self._came)
        raise AssertionError("unreachable")


def _pieces(source: Source) -> Iterator[bytes]:
    while piece := source.read(_CHUNK):
        yield piece


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__)[:300]
