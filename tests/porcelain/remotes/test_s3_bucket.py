"""Buckets as hubs: against a real server (SeaweedFS), and one that does not enforce conditions."""

# ruff: noqa: F811  (fixtures that are imported)

from __future__ import annotations

import hashlib
import http.client
import http.server
import os
import threading
import time
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from objstore.errors import StorageError, UsageError
from objstore.store import Store
from objstore.sync.exchange import fetch, push
from plumbing.interface.options import Context
from porcelain.main import main
from porcelain.remotes import s3_bucket
from porcelain.remotes.config import Pusher, Remote, pusher
from porcelain.remotes.hub import sweeping
from porcelain.remotes.hub.files import Lost
from porcelain.remotes.hub.transport import HubTransport
from porcelain.remotes.s3_bucket import BucketFiles, bucket_files, open_s3, parse_bucket, probe
from tests.objstore.sync.building import EVERYTHING, add_round, state
from tests.objstore.sync.test_transports import (  # noqa: F401
    REF,
    here,
    test_a_dry_run_changes_nothing,
    test_a_push_in_several_packs,
    test_a_scope_is_kept_to,
    test_an_empty_store_has_nothing,
    test_only_what_is_new_travels,
    test_what_is_refused_there_is_told_here_and_nothing_moved,
    there,
)
from tests.porcelain.remotes.bucket_server import Bucket, bucket, environment  # noqa: F401
from tests.porcelain.remotes.cutting import cutting
from tests.porcelain.remotes.hub_contract import HubWay, contend, exchange_there_and_back

pytest.importorskip("obstore", reason="obstore is not installed")


@pytest.fixture
def files(bucket: Bucket) -> BucketFiles:
    return bucket_files(bucket.url, bucket.env)


@pytest.fixture
def way(files: BucketFiles) -> HubWay:
    return HubWay(lambda: files)


@pytest.fixture
def writable(files: BucketFiles) -> HubWay:
    return HubWay(lambda: files)


def test_there_and_back(files: BucketFiles, here: Store, there: Store) -> None:
    exchange_there_and_back(lambda: files, here, there)


def test_the_files_of_a_bucket(files: BucketFiles) -> None:
    files.create("packs/a", BytesIO(b"first"), 5)
    files.create("packs/a", BytesIO(b"other"), 5)
    assert files.get("packs/a") == b"first"
    files.replace("writers/x", b"1", {}, ())
    tags = files.list("writers/")
    with pytest.raises(Lost):
        files.replace("writers/x", b"2", {}, ())
    files.replace("writers/x", b"3", tags, ())
    with pytest.raises(Lost):
        files.replace("writers/x", b"4", tags, ())
    with pytest.raises(Lost):
        files.get("writers/x", tags["writers/x"])
    assert files.get("writers/x", files.list("writers/")["writers/x"]) == b"3"
    data = os.urandom(3_000_000)
    files.create("packs/b", BytesIO(data), len(data))
    with files.open("packs/b") as source:
        assert b"".join(iter(lambda: source.read(100_000), b"")) == data


def test_a_large_file_goes_in_parts(files: BucketFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_bucket, "_WHOLE", 1000)
    data = os.urandom(7_000_000)
    files.create("packs/large", BytesIO(data), len(data))
    again = BytesIO(data)
    files.create("packs/large", again, len(data))
    assert again.tell() == 0  # what an earlier try has sent is not sent again
    assert files.get("packs/large") == data


@pytest.mark.parametrize("cut_at", [200_000, 1_500_000, 3_000_000])
def test_a_file_whose_connection_is_cut_is_read_on_from_there(
    bucket: Bucket, cut_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_bucket, "RETRIES", 0)
    monkeypatch.setattr(s3_bucket, "_CHUNK", 64 * 1024)
    url, data = bucket.url, os.urandom(4_000_000)
    bucket_files(url, bucket.env).create("packs/x", BytesIO(data), len(data))
    port = urlsplit(bucket.env["AWS_ENDPOINT_URL"]).port or 0
    with cutting(port, cut_at, once=True) as proxy:
        env = bucket.env | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{proxy.port}"}
        with bucket_files(url, env).open("packs/x") as source:
            assert b"".join(iter(lambda: source.read(50_000), b"")) == data
        later = (1 << 40) - proxy.left
        assert 0 < later < len(data) - cut_at + 800_000  # little came twice
    monkeypatch.setattr(s3_bucket, "RESUMES", 0)
    with cutting(port, cut_at, once=True) as proxy:
        env = bucket.env | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{proxy.port}"}
        with pytest.raises(StorageError), bucket_files(url, env).open("packs/x") as source:
            while source.read(50_000):
                pass


def test_a_server_that_keeps_writers_apart_passes_the_probe(bucket: Bucket) -> None:
    url = bucket.url
    probe(Remote(url=url), bucket.context())
    assert bucket_files(url, bucket.env).list("probe/") == {}


def test_small_packs_are_merged_and_deleted_in_time(
    bucket: Bucket, files: BucketFiles, there: Store, here: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pushed(count: int) -> None:
        for number in range(count):
            add_round(there, f"flow/{there.store_id}/test/x", f"{number} a")
            push(there, HubTransport(files, pusher(there)), EVERYTHING)

    pushed(16)
    assert len(files.list("packs/")) == 17 and len(files.list("gone/")) == 1
    monkeypatch.setattr(sweeping, "GRACE", 1)
    time.sleep(2)
    pushed(16)
    found = files.list("packs/")
    assert 1 <= len(found) <= 20 and len(files.list("gone/")) == 1
    transport = HubTransport(files, None)
    fetch(here, transport, EVERYTHING, keeps_content=False)
    assert state(here) == state(there) and transport.traffic.requests < 20


def test_contention(files: BucketFiles, tmp_path: Path) -> None:
    contend(lambda: files, tmp_path, writers=10, pushes=2)


@pytest.mark.soak
def test_contention_for_long(files: BucketFiles, tmp_path: Path) -> None:
    contend(lambda: files, tmp_path, writers=10, pushes=100)


def test_from_the_command_line(
    bucket: Bucket,
    there: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in bucket.env.items():
        monkeypatch.setenv(name, value)
    url = bucket.url
    there.close()
    first, second = str(tmp_path / "there"), str(tmp_path / "b" / ".objstore")
    assert main(["--store", first, "remote", "add", "hub", url]) == 0
    assert main(["--store", first, "push"]) == 0
    assert main(["clone", url, str(tmp_path / "b")]) == 0
    with Store.open(first) as one, Store.open(second) as other:
        assert state(one) == state(other)
        add_round(other, f"flow/{other.store_id}/test/x", "mine")
    assert main(["--store", second, "push"]) == 0
    assert main(["--store", first, "pull"]) == 0
    with Store.open(first) as one, Store.open(second) as other:
        assert state(one) == state(other)


def test_credentials_that_are_wrong(bucket: Bucket) -> None:
    files = bucket_files(bucket.url, bucket.env | {"AWS_SECRET_ACCESS_KEY": "wrong"})
    with pytest.raises(StorageError) as caught:
        files.list("writers/")
    assert "wrong" not in caught.value.message


# -- servers that are not fit, written here ----------------------------------------------------------------------------


class _Lax(http.server.BaseHTTPRequestHandler):
    """As much of S3 as the probe asks for. The server object says what it does about conditions."""

    protocol_version = "HTTP/1.1"

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    @property
    def _kept(self) -> dict[str, bytes]:
        return self.server.kept  # type: ignore[attr-defined,no-any-return]

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        path = unquote(urlsplit(self.path).path)
        held = self._kept.get(path)
        create, tag = self.headers.get("If-None-Match") == "*", self.headers.get("If-Match")
        enforced, refusal = self.server.enforced, self.server.refusal  # type: ignore[attr-defined]
        changed = held is None or tag != _tag(held)
        refused = [
            create and held is not None and "create" in enforced,
            tag is not None and changed and "replace" in enforced,
            tag is not None and "never" in enforced,
        ]
        if any(refused):
            self._answer(refusal)
        else:
            self._kept[path] = data
            self._answer(200, ETag=_tag(data))

    def do_GET(self) -> None:
        found = urlsplit(self.path)
        if "list-type=2" in found.query:
            wanted = parse_qs(found.query).get("prefix", [""])[0]
            rows = "".join(
                f"<Contents><Key>{path.split('/', 2)[2]}</Key><LastModified>2026-03-04T05:06:07.000Z</LastModified>"
                f"<ETag>{_tag(data).replace(chr(34), '&quot;')}</ETag><Size>{len(data)}</Size></Contents>"
                for path, data in self._kept.items()
                if path.split("/", 2)[2].startswith(wanted)
            )
            text = f"<ListBucketResult><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>"
            self._answer(200, text.encode())
            return
        data = self._kept.get(unquote(found.path))
        if data is None:
            self._answer(404)
        else:
            modified = "Wed, 04 Mar 2026 05:06:07 GMT"
            self._answer(200, data, ETag=_tag(data), **{"Last-Modified": modified})

    def do_DELETE(self) -> None:
        self._kept.pop(unquote(urlsplit(self.path).path), None)
        self._answer(204)

    def do_POST(self) -> None:
        """The deletion of several."""
        self.rfile.read(int(self.headers["Content-Length"]))
        keys = [path.split("/", 2)[2] for path in self._kept]
        self._kept.clear()
        deleted = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
        self._answer(200, f"<DeleteResult>{deleted}</DeleteResult>".encode())

    def log_message(self, *_: object) -> None:
        return


def _tag(data: bytes) -> str:
    return f'"{hashlib.md5(data).hexdigest()}"'


@pytest.fixture
def lax() -> Iterator[http.server.ThreadingHTTPServer]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Lax) as server:
        server.kept, server.enforced, server.refusal = {}, set(), 412  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()


@pytest.mark.parametrize(
    ("enforced", "said"),
    [
        ((), "made twice"),
        (("replace",), "made twice"),
        (("create",), "that has changed"),
        (("create", "replace", "never"), "the tag that it gave"),
    ],
)
def test_storage_that_does_not_keep_writers_apart_is_refused(
    lax: http.server.ThreadingHTTPServer, tmp_path: Path, enforced: tuple[str, ...], said: str
) -> None:
    lax.enforced = set(enforced)  # type: ignore[attr-defined]
    context = Context(env=environment(lax.server_port), store=str(tmp_path))
    with pytest.raises(UsageError, match=said):
        probe(Remote(url="s3://hub/x"), context)
    with (
        pytest.raises(UsageError, match=said),
        open_s3(Remote(url="s3://hub/x"), context, Pusher("1" * 16, "sha256")),
    ):
        pass
    assert lax.kept == {}  # type: ignore[attr-defined]


def test_a_remote_is_looked_at_before_it_is_remembered(
    lax: http.server.ThreadingHTTPServer,
    objstore: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment(lax.server_port).items():
        monkeypatch.setenv(name, value)
    objstore("init")
    lax.enforced = {"create"}  # type: ignore[attr-defined]
    refused = objstore("remote", "add", "hub", "s3://hub/x")
    assert refused.code == 2 and "does not keep two writers apart" in refused.err
    assert "conditional writes" in refused.err and objstore("remote", "list").out == ""
    lax.enforced = {"create", "replace"}  # type: ignore[attr-defined]
    assert objstore("remote", "add", "hub", "s3://hub/x").code == 0
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "")
    monkeypatch.setattr(s3_bucket, "probe", _unreachable)
    later = objstore("remote", "add", "far", "s3://far/x")
    assert later.code == 0 and "not looked at: far: nobody answers" in later.err
    assert len(objstore("remote", "list").out.splitlines()) == 2


def _unreachable(remote: Remote, context: Context) -> None:
    raise StorageError("far: nobody answers")


@pytest.mark.parametrize("refusal", [412, 409])
def test_both_answers_of_a_lost_race_are_understood(
    lax: http.server.ThreadingHTTPServer, refusal: int
) -> None:
    lax.enforced, lax.refusal = {"create", "replace"}, refusal  # type: ignore[attr-defined]
    probe(Remote(url="s3://hub/x"), Context(env=environment(lax.server_port)))


@pytest.mark.parametrize(
    "url",
    [
        "s3://",
        "s3://-b/x",
        "s3://key:secret@b/x",
        "s3://b/../c",
        "s3://b//x",
        "s3://b/x?y",
        "s3://b/\n",
        "s3:/b",
    ],
)
def test_urls_that_are_none(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_bucket(url)
    assert "secret" not in caught.value.message


def test_urls() -> None:
    assert parse_bucket("s3://bucket/a/b/") == ("s3", "bucket", "a/b")
    assert parse_bucket("gs://bucket") == ("gs", "bucket", "")
