"""The ssh transport: what is typed for it, and, where there is one, a real sshd on this machine."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from objstore.errors import UsageError
from objstore.store import Store
from plumbing.interface.options import Context
from porcelain.remotes.config import Remote
from porcelain.remotes.ssh import Target, command_line, parse_ssh
from tests.objstore.sync.building import add_round, opened, put_node, put_tags, sound, state

ROOT = Path(__file__).resolve().parents[3]
SSHD = shutil.which(
    "sshd", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
)


def test_urls() -> None:
    assert parse_ssh("ssh://example.org/srv/store") == Target(None, "example.org", None, "/srv/store")
    assert parse_ssh("ssh://ada@[::1]:2222/~/my%20store") == Target("ada", "::1", "2222", "my store")
    for url in (
        "ssh://",
        "ssh://h",
        "ssh://h/",
        "ssh://-h/x",
        "ssh://-u@h/x",
        "ssh://h/~/-x",
        "ssh://h/a%0ab",
    ):
        with pytest.raises(UsageError):
            parse_ssh(url)


def test_host_and_path_stand_behind_dashes_and_quoted() -> None:
    context = Context(env={"OBJSTORE_SSH": "ssh -i 'my key'"})
    remote = Remote(url="ssh://ada@example.org:2222/srv/a b;rm")
    assert command_line(remote, context, "upload-pack") == [
        *("ssh", "-i", "my key", "-p", "2222", "--", "ada@example.org"),
        "objstore upload-pack -- '/srv/a b;rm'",
    ]


def test_a_program_that_is_not_there_or_fails(
    objstore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objstore("init", store="a")
    monkeypatch.setenv("OBJSTORE_SSH", str(tmp_path / "none"))
    result = objstore("fetch", "ssh://example.org/x", store="a")
    assert result.code == 5 and "cannot be run" in result.err
    script = tmp_path / "failing"
    script.write_text("#!/bin/sh\necho 'no route to the moon' >&2\nexit 255\n")
    script.chmod(0o700)
    monkeypatch.setenv("OBJSTORE_SSH", str(script))
    result = objstore("fetch", "ssh://example.org/x", store="a")
    assert result.code == 5 and "no route to the moon" in result.err and result.err.count("\n") == 2


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real sshd on loopback that lets in the one key of this test; the ssh command that reaches it, with a space
    before its port."""
    if SSHD is None or shutil.which("ssh") is None or shutil.which("ssh-keygen") is None:
        pytest.skip("no sshd here (openssh-server is not installed)")
    if os.geteuid() == 0:
        os.makedirs("/run/sshd", exist_ok=True)
    folder = tmp_path_factory.mktemp("sshd")
    for key in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)], check=True)
    shutil.copy(folder / "user.pub", folder / "authorized")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (folder / "config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile {folder}/pid\n"
        f"AuthorizedKeysFile {folder}/authorized\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n"
        "PermitRootLogin yes\n"
    )
    process = subprocess.Popen([SSHD, "-D", "-e", "-f", str(folder / "config")], stderr=subprocess.PIPE)
    ssh = (
        f"ssh -F none -i {folder}/user -p {port} -o StrictHostKeyChecking=no -o BatchMode=yes "
        f"-o UserKnownHostsFile={folder}/known -o LogLevel=ERROR"
    )
    try:
        for _ in range(100):
            if process.poll() is not None:
                pytest.skip("sshd does not start here")
            if subprocess.run([*ssh.split(), "127.0.0.1", "true"], check=False).returncode == 0:
                break
            time.sleep(0.1)
        else:
            pytest.skip("no one can log in to this machine")
        yield ssh
    finally:
        process.terminate()
        process.wait()


def test_through_a_real_sshd(objstore, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OBJSTORE_SSH", server)
    program = tmp_path / "objstore there"
    program.write_text(f'#!/bin/sh\ncd "{ROOT}" && exec "{sys.executable}" -m porcelain.main "$@"\n')
    program.chmod(0o700)
    with opened(tmp_path / "a b") as there:
        add_round(there, "flow/1111111111111111/test/x", "one", "two")
        there.update_ref("tag/x", put_node(there, "tagged"), None)
    url = f"ssh://127.0.0.1{tmp_path}/a%20b"
    cloned = objstore("clone", "--program", f"'{program}'", url, store="b")
    assert cloned.code == 0, cloned.err
    with Store.open(tmp_path / "b") as here:
        add_round(here, f"flow/{here.store_id}/test/y", "from here")
    assert (
        objstore("sync", store="b").out == "origin: nothing new\norigin: 3 new objects there, 1 ref moved\n"
    )
    with Store.open(tmp_path / "a b") as there, Store.open(tmp_path / "b") as here:
        assert state(there) == state(here)
        sound(there)
    missing = objstore("fetch", "--program", f"'{program}'", url + "/none", store="b")
    assert missing.code == 3 and "no store here" in missing.err
    absent = objstore("fetch", "--program", "no-such-program", url, store="b")
    assert absent.code == 5 and "not found" in absent.err


@pytest.fixture
def local_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A command in the place of ssh that runs what it is told on this machine, and kills it after the seconds that the
    returned file holds."""
    seconds = tmp_path / "seconds"
    seconds.write_text("60")
    script = tmp_path / "local-ssh"
    script.write_text(
        f'#!/bin/sh\nfor last; do :; done\ncd "{ROOT}" &&\n'
        f'exec timeout -s KILL "$(cat "{seconds}")" sh -c "exec $last"\n'
    )
    script.chmod(0o700)
    monkeypatch.setenv("OBJSTORE_SSH", str(script))
    return seconds


@pytest.mark.skipif(shutil.which("timeout") is None, reason="needs the program timeout")
@pytest.mark.parametrize("direction", ["fetch", "push"])
def test_the_other_side_is_killed_at_any_moment(
    objstore, local_ssh: Path, tmp_path: Path, direction: str
) -> None:
    program = f"{sys.executable} -m porcelain.main"
    with opened(tmp_path / "full") as full, opened(tmp_path / "empty") as empty:
        put_tags(full, 8000)
        whole, nothing = state(full), state(empty)
    here, there = ("empty", "full") if direction == "fetch" else ("full", "empty")
    command = [direction, "--program", program, f"ssh://example.org{tmp_path}/{there}"]
    for seconds in ("0.15", "0.25", "0.35", "0.45", "0.55"):
        local_ssh.write_text(seconds)
        result = objstore(*command, store=here)
        assert result.code in (0, 5) and result.err.count("\n") <= 2, result.err
        with Store.open(tmp_path / "full") as full, Store.open(tmp_path / "empty") as empty:
            assert state(full) == whole
            assert state(empty) in (nothing, whole)
            sound(empty)
    local_ssh.write_text("60")
    assert objstore(*command, store=here).code == 0
    with Store.open(tmp_path / "empty") as empty:
        assert state(empty) == whole
