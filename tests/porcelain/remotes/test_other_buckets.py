"""Buckets that are not S3: Azure's, against Azurite, and Google's, against a stand-in for what hubs ask of it."""

# ruff: noqa: F811  (fixtures that are imported)

from __future__ import annotations

import hashlib
import http.server
import json
import threading
import uuid
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from objstore.errors import NotFound, UsageError
from objstore.store import Store
from porcelain.main import main
from porcelain.remotes.hub.files import Lost
from porcelain.remotes.s3_bucket import BucketFiles, bucket_files
from tests.objstore.sync.building import add_round, state
from tests.objstore.sync.test_transports import here, there  # noqa: F401
from tests.porcelain.remotes.azure_server import CONTAINER, azure  # noqa: F401
from tests.porcelain.remotes.hub_contract import contend, exchange_there_and_back

obstore = pytest.importorskip("obstore", reason="obstore is not installed")


class Google(http.server.BaseHTTPRequestHandler):
    """As much of Google's storage as a hub asks for. The server object keeps the files, and says what it enforces."""

    protocol_version = "HTTP/1.1"

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    @property
    def _kept(self) -> dict[str, tuple[bytes, int]]:
        return self.server.kept  # type: ignore[attr-defined,no-any-return]

    @property
    def _name(self) -> str:
        return unquote(urlsplit(self.path).path).split("/", 2)[2]

    def _about(self, data: bytes, generation: int) -> dict[str, str]:
        return {
            "ETag": _tag(data),
            "Last_Modified": "Wed, 04 Mar 2026 05:06:07 GMT",
            "x_goog_generation": str(generation),
        }

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        wanted = self.headers.get("x-goog-if-generation-match")
        with self.server.lock:  # type: ignore[attr-defined]
            _, generation = self._kept.get(self._name, (b"", 0))
            if wanted not in (None, str(generation)) and self.server.enforces:  # type: ignore[attr-defined]
                self._answer(412)
                return
            self.server.count += 1  # type: ignore[attr-defined]
            self._kept[self._name] = (data, self.server.count)  # type: ignore[attr-defined]
            self._answer(200, **self._about(*self._kept[self._name]))

    def do_GET(self) -> None:
        found = urlsplit(self.path)
        if "list-type=2" in found.query:
            wanted = parse_qs(found.query).get("prefix", [""])[0]
            rows = "".join(
                f"<Contents><Key>{name}</Key><LastModified>2026-03-04T05:06:07.000Z</LastModified>"
                f"<ETag>{_tag(data).replace(chr(34), '&quot;')}</ETag><Size>{len(data)}</Size></Contents>"
                for name, (data, _) in list(self._kept.items())
                if name.startswith(wanted)
            )
            text = f"<ListBucketResult><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>"
            self._answer(200, text.encode())
            return
        held = self._kept.get(self._name)
        if held is None:
            self._answer(404)
        elif self.headers.get("If-Match") not in (None, _tag(held[0])):
            self._answer(412)
        else:
            self._answer(200, held[0], **self._about(*held))

    do_HEAD = do_GET

    def do_DELETE(self) -> None:
        self._answer(204 if self._kept.pop(self._name, None) else 404)

    def log_message(self, *_: object) -> None:
        return


def _tag(data: bytes) -> str:
    return f'"{hashlib.md5(data).hexdigest()}"'


@pytest.fixture
def google() -> Iterator[Any]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Google) as server:
        server.kept, server.count, server.enforces = {}, 0, True  # type: ignore[attr-defined]
        server.lock = threading.Lock()  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(params=["az", "gs"])
def files(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> BucketFiles:
    """An empty hub."""
    prefix = uuid.uuid4().hex[:8]
    if request.param == "az":
        env: dict[str, str] = request.getfixturevalue("azure")
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        return bucket_files(f"az://{CONTAINER}/{prefix}", env)
    port = request.getfixturevalue("google").server_port
    account = {"gcs_base_url": f"http://127.0.0.1:{port}", "disable_oauth": True}
    account |= dict.fromkeys(("client_email", "private_key", "private_key_id"), "")
    options: Any = {"allow_http": True}
    store = obstore.store.GCSStore(
        "hub", prefix=prefix, service_account_key=json.dumps(account), client_options=options
    )
    return BucketFiles(store, "hub")


def test_the_files(files: BucketFiles) -> None:
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
        files.replace("writers/y", b"4", {"writers/y": "x"}, ())
    with pytest.raises(Lost):
        files.get("writers/x", tags["writers/x"])
    assert files.get("writers/x", files.list("writers/")["writers/x"]) == b"3"
    assert set(files.times("packs/")) == {"packs/a"}
    files.discard(["packs/a", "packs/none"])
    with pytest.raises(NotFound):
        files.get("packs/a")
    with pytest.raises(NotFound), files.open("packs/a"):
        pass


def test_the_probe(files: BucketFiles) -> None:
    files.probe()
    assert files.list("probe/") == {}


def test_google_that_enforces_nothing_is_refused(google: Any) -> None:
    google.enforces = False
    account = {"gcs_base_url": f"http://127.0.0.1:{google.server_port}", "disable_oauth": True}
    account |= dict.fromkeys(("client_email", "private_key", "private_key_id"), "")
    options: Any = {"allow_http": True}
    store = obstore.store.GCSStore("hub", service_account_key=json.dumps(account), client_options=options)
    with pytest.raises(UsageError, match="made twice"):
        BucketFiles(store, "hub").probe()


def test_there_and_back(files: BucketFiles, here: Store, there: Store) -> None:
    exchange_there_and_back(lambda: files, here, there)


def test_contention(files: BucketFiles, tmp_path: Path) -> None:
    contend(lambda: files, tmp_path, writers=6, pushes=4)


def test_azure_from_the_command_line(
    azure: dict[str, str], there: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in azure.items():
        monkeypatch.setenv(name, value)
    url = f"az://{CONTAINER}/{uuid.uuid4().hex[:8]}"
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
