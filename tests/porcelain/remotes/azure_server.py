"""A container on Azurite, the emulator of Azure's blobs that its makers publish, on this machine, for tests."""

from __future__ import annotations

import base64
import datetime
import fcntl
import hmac
import http.client
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.porcelain.remotes.bucket_server import free_ports

#: The account that Azurite has by itself; it is no secret.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
CONTAINER = "hub"
_PACKAGE = "azurite@3.37.0"


@pytest.fixture(scope="session")
def azure(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What stands in the environment of who uses the container. Where Azurite is not installed, npm gets it, once."""
    program = shutil.which("azurite-blob") or _installed(pytestconfig.cache)
    folder = tmp_path_factory.mktemp("azurite")
    (port,) = free_ports(1)
    words = [program, "--silent", "--disableTelemetry", "--skipApiVersionCheck"]
    words += ["--location", str(folder), "--blobPort", str(port)]
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while not _made(port):
            assert process.poll() is None, (folder / "log").read_text()[-2000:]
            assert time.monotonic() < deadline
            time.sleep(0.2)
        yield {
            "AZURE_STORAGE_ACCOUNT_KEY": KEY,
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
            "AZURE_STORAGE_USE_EMULATOR": "true",
            "AZURITE_BLOB_STORAGE_URL": f"http://127.0.0.1:{port}",
        }
    finally:
        process.kill()
        process.wait()


def _installed(cache: pytest.Cache | None) -> str:
    """The program, in the cache of the tests; skips where it cannot be had."""
    npm = shutil.which("npm")
    if npm is None or cache is None:
        pytest.skip("no Azurite here to test against, and no npm to get it: npm install -g azurite")
    folder = cache.mkdir("azurite")
    program = folder / "installed" / "node_modules" / ".bin" / "azurite-blob"
    with open(folder / "lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several processes may come here at once
        if not program.exists():
            made = Path(mkdtemp(dir=folder))
            words = [npm, "install", "--silent", "--no-audit", "--no-fund", "--fetch-retries=0"]
            with suppress(subprocess.TimeoutExpired):
                done = subprocess.run([*words, "--prefix", str(made), _PACKAGE], check=False, timeout=300)
                if not done.returncode:
                    made.rename(folder / "installed")
            shutil.rmtree(made, ignore_errors=True)
    if not program.exists():
        pytest.skip("npm could not get Azurite: npm install -g azurite")
    return str(program)


def _made(port: int) -> bool:
    """Whether the container is there; it is asked for with a signed request, as obstore can make none of that kind."""
    now = datetime.datetime.now(datetime.UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
    version, place = "2021-08-06", f"/{ACCOUNT}/{CONTAINER}"
    text = (
        "PUT" + "\n" * 12 + f"x-ms-date:{now}\nx-ms-version:{version}\n/{ACCOUNT}{place}\nrestype:container"
    )
    signature = hmac.new(base64.b64decode(KEY), text.encode(), "sha256").digest()
    headers = {
        "x-ms-date": now,
        "x-ms-version": version,
        "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(signature).decode()}",
    }
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("PUT", f"{place}?restype=container", headers=headers)
        return connection.getresponse().status in (201, 409)
    except OSError:
        return False
    finally:
        connection.close()
