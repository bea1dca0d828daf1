"""Git repositories served as hosts do: by ``git daemon``, and by ``git http-backend`` behind a password."""

from __future__ import annotations

import http.server
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class GitDaemon:
    """``git daemon`` for the repositories in ``folder``, for reading and writing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.create_server(("127.0.0.1", 0)) as found:
            self.port: int = found.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._process = subprocess.Popen(
            [
                *(
                    "git",
                    "daemon",
                    "--reuseaddr",
                    "--listen=127.0.0.1",
                    f"--port={self.port}",
                    "--export-all",
                ),
                *("--enable=receive-pack", f"--base-path={self._folder}", str(self._folder)),
            ],
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                time.sleep(0.05)

    def end(self, number: int = signal.SIGTERM) -> None:
        """End it, and all that it runs, by this signal."""
        if self._process is not None:
            os.killpg(self._process.pid, number)
            self._process.wait()
            self._process = None


@contextmanager
def git_daemon(folder: Path) -> Iterator[int]:
    """Serve the repositories in ``folder`` for reading and writing; the port."""
    daemon = GitDaemon(folder)
    daemon.start()
    try:
        yield daemon.port
    finally:
        daemon.end()


@contextmanager
def http_backend(folder: Path) -> Iterator[int]:
    """Serve the repositories in ``folder`` to vera, whose password is secret; the port."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Backend) as server:
        server.root = str(folder)  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


class _Backend(http.server.BaseHTTPRequestHandler):
    """``git http-backend`` behind a server of ours. It asks for a password."""

    def do_GET(self) -> None:
        self._run(b"")

    def do_POST(self) -> None:
        if self.headers.get("Transfer-Encoding") == "chunked":
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            self._run(b"".join(parts))
        else:
            self._run(self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def _run(self, body: bytes) -> None:
        if self.headers.get("Authorization") != "Basic dmVyYTpzZWNyZXQ=":
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="x"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        env = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": self.server.root,  # type: ignore[attr-defined]
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "HTTP_GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_USER": "vera",
        }
        done = subprocess.run(["git", "http-backend"], input=body, capture_output=True, env=env, check=False)
        head, _, rest = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        self.wfile.write(rest)

    def log_message(self, *_: object) -> None:
        return
