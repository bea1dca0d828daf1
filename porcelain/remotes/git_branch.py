"""A branch of a Git repository as a hub of plain files (``hub``), through the ``git`` program.

``git+ssh://``, ``git+https://`` and ``git+file://`` are what ``git`` knows without the ``git+``; credentials are those
that it has. All stands on one branch that shares no history with others (``objstore``, or the one behind ``#``). What a
push adds is one commit, which also leaves out what is not needed any more; a push that is rejected, since somebody else
was faster, is made again on the new tip, and none is ever forced. A small bare repository, beside the store or in a
temporary folder, holds what was last seen, and hardly more.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from glob import escape as glob_escape
from glob import glob
from io import BytesIO
from tempfile import TemporaryDirectory
from typing import IO, Any

from objstore.errors import NotFound, StorageError, UsageError
from objstore.lock import writer_lock
from objstore.pack.reader import Source
from objstore.sync.transport import Transport
from plumbing.interface.options import Context
from porcelain.remotes.config import Pusher, Remote
from porcelain.remotes.hub.files import KEPT_WHILE_NEEDED, WRITERS, Lost
from porcelain.remotes.hub.transport import HubTransport

BRANCH = "objstore"
_URL = re.compile(r"git\+((ssh|https?|git|file)://[^#\s]+)(?:#([^#\s]+))?", re.ASCII)
_HOST = re.compile(r"[a-z]+://(?:[^@/]*@)?(\[[0-9A-Fa-f:.%]+\]|[^:/]*)(?::\d{1,5})?(/.*)")
_BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,99}", re.ASCII)
_TIP = "refs/objstore/tip"
_SAID = 4000
#: Loose objects of a repository here that are too many.
_LOOSE = 400
#: What a commit on the branch says of itself: no name and no time of anybody.
_NOBODY = {
    "GIT_AUTHOR_DATE": "1970-01-01T00:00:00Z",
    "GIT_AUTHOR_EMAIL": "objstore@localhost",
    "GIT_AUTHOR_NAME": "objstore",
    "GIT_COMMITTER_DATE": "1970-01-01T00:00:00Z",
    "GIT_COMMITTER_EMAIL": "objstore@localhost",
    "GIT_COMMITTER_NAME": "objstore",
}
_FILE = "100644"


def parse_git(url: str) -> tuple[str, str]:
    """The URL as ``git`` knows it, and the branch; raises ``UsageError``."""
    found = _URL.fullmatch(url)
    place = _HOST.fullmatch(found[1]) if found is not None else None
    if found is None or place is None or not url.isprintable():
        raise UsageError("not of the form git+ssh://host/path, git+https://... or git+file:///path[#branch]")
    branch = found[3] or BRANCH
    user = found[1].partition("://")[2].partition("/")[0]
    if any(part.startswith("-") for part in (user, place[1], place[2].lstrip("/"))) or (
        found[2] != "file" and not place[1]
    ):
        raise UsageError("no host, user or path in it may begin with '-'")
    if (
        _BRANCH.fullmatch(branch) is None
        or ".." in branch
        or "//" in branch
        or branch.endswith(("/", ".", ".lock"))
    ):
        raise UsageError(f"{branch[:40]!r}: not the name of a branch")
    return found[1], branch


@contextmanager
def open_git(remote: Remote, context: Context, pusher: Pusher | None) -> Iterator[Transport]:
    """The hub on a branch."""
    url, branch = parse_git(remote.url)
    store = context.store_path()
    with ExitStack() as stack:
        if os.path.isfile(os.path.join(store, "data.mdb")):
            named = hashlib.sha256(f"{url}#{branch}".encode()).hexdigest()[:16]
            folder = os.path.join(store, "hubs", named + ".git")
            _made(os.path.dirname(folder))
            stack.enter_context(writer_lock(folder + ".lock", context.lock_timeout))
        else:
            folder = stack.enter_context(TemporaryDirectory(prefix="objstore-"))
        files = BranchFiles(folder, url, branch, context.env)
        yield HubTransport(files, pusher)
        with suppress(StorageError, OSError):  # then another time
            files.tidy()


class BranchFiles:
    """The files of a hub on a branch: ``hub.files.Files``. ``folder`` is where the bare repository is or is made.

    ``list`` fetches, when it is asked for the writers; the others answer from what was fetched. Files that were made
    wait for the next ``replace``, which commits and pushes them all."""

    def __init__(self, folder: str, url: str, branch: str, env: Mapping[str, str]) -> None:
        self._folder = folder
        self._url = url
        self._ref = f"refs/heads/{branch}"
        self._env = _environment(env, folder)
        self._tip: str | None = None
        self._tree: dict[str, str] = {}
        self._made: dict[str, str] = {}
        if not os.path.exists(os.path.join(folder, "HEAD")):
            self._prepare()
        for left in glob(os.path.join(glob_escape(folder), "index-*")):  # by a process that was killed
            with suppress(FileNotFoundError):
                os.unlink(left)

    def _prepare(self) -> None:
        _made(self._folder)
        self._git("init", "--quiet", "--bare", "--", self._folder)

    # -- files --------------------------------------------------------------------------------------------------------

    def list(self, prefix: str) -> Mapping[str, str]:
        self._fetch()
        return {name: blob for name, blob in self._tree.items() if name.startswith(prefix)}

    def get(self, name: str, tag: str | None = None) -> bytes:
        blob = self._blob(name)
        if tag not in (None, blob):
            raise Lost
        return self._git("cat-file", "blob", blob)

    @contextmanager
    def open(self, name: str) -> Iterator[Source]:
        with self._running("cat-file", "blob", self._blob(name)) as process:
            assert process.stdout is not None
            yield process.stdout

    def _blob(self, name: str) -> str:
        blob = self._made.get(name) or self._tree.get(name)
        if blob is None:
            raise NotFound(f"{self._shown}: {name}: is not there")
        return blob

    def create(self, name: str, source: Source, size: int) -> None:
        if name in self._tree or name in self._made:
            return
        self._made[name] = self._hash(source)

    def replace(self, name: str, data: bytes, tags: Mapping[str, str], needed: Collection[str]) -> None:
        if tags != {file: blob for file, blob in self._tree.items() if file.startswith(WRITERS)}:
            raise Lost
        tree = {
            file: blob
            for file, blob in (self._tree | self._made).items()
            if file in needed or not file.startswith(KEPT_WHILE_NEEDED)
        }
        tree[name] = self._hash(BytesIO(data))
        commit = self._commit(tree)
        self._push(commit)
        self._tip, self._tree = commit, tree
        self._made = {}
        self._git("update-ref", _TIP, commit)

    def tidy(self) -> None:
        """Where much has come together, leave nothing in the repository here but what the tip needs, each once and in
        one file: neither the history of one's own pushes nor packs that were merged since."""
        if self._tip is None or int(self._git("count-objects").split()[0]) < _LOOSE:
            return
        with open(os.path.join(self._folder, "shallow.new"), "w", encoding="ascii") as file:
            file.write(self._tip + "\n")
        os.replace(file.name, os.path.join(self._folder, "shallow"))
        self._git("update-ref", _TIP, self._tip)
        self._git("repack", "-a", "-d", "--quiet")
        self._git("prune", "--expire=now")

    def times(self, prefix: str) -> None:
        return None

    def discard(self, names: Sequence[str]) -> None:
        return

    # -- git ----------------------------------------------------------------------------------------------------------

    @property
    def _shown(self) -> str:
        """The URL without what may let its holder in."""
        scheme, _, rest = self._url.partition("://")
        place, slash, path = rest.partition("/")
        return f"{scheme}://{place.rpartition('@')[2]}{slash}{path}"

    def _fetch(self) -> None:
        """Bring the tip of the branch, and nothing of its history."""
        there = self._git("ls-remote", "--", self._url, self._ref).split()
        tip = there[0].decode() if there else None
        if tip == self._tip:
            return
        if tip is not None and not self._has(tip):
            self._git(
                *("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--depth=1", "--no-auto-gc"),
                *("--", self._url, f"+{self._ref}:{_TIP}"),
            )
            tip = self._git("rev-parse", "--verify", "--end-of-options", _TIP).decode().strip()
        self._tip = tip
        self._tree = self._read_tree(tip) if tip is not None else {}

    def _has(self, commit: str) -> bool:
        """Whether a commit is here with all that it needs: git moves the ref when that is so. That the commit itself is
        here says nothing, since it may have come as the first of what was then cut off."""
        try:
            held = self._git("rev-parse", "--verify", "--quiet", "--end-of-options", _TIP)
        except StorageError:
            return False
        return held.decode().strip() == commit

    def _read_tree(self, commit: str) -> dict[str, str]:
        rows = self._git("ls-tree", "-r", "-z", "--full-tree", commit).decode("utf-8", "replace").split("\0")
        found = {}
        for row in filter(None, rows):
            about, _, name = row.partition("\t")
            mode, kind, blob = about.split(" ")
            if kind == "blob" and mode == _FILE:
                found[name] = blob
        return found

    def _hash(self, source: Any) -> str:
        """Put a file into the repository; its id there."""
        with self._running("hash-object", "-w", "--stdin", given=True) as process:
            assert process.stdin is not None and process.stdout is not None
            try:
                while piece := source.read(1024 * 1024):
                    process.stdin.write(piece)
                process.stdin.close()
            except OSError as error:
                raise StorageError(f"git hash-object: {error.strerror}") from None
            return process.stdout.read().decode().strip()

    def _commit(self, tree: Mapping[str, str]) -> str:
        rows = "".join(f"{_FILE} {blob}\t{name}\0" for name, blob in sorted(tree.items()))
        index = os.path.join(self._folder, f"index-{os.getpid()}-{os.urandom(4).hex()}")
        try:
            with_index = {"GIT_INDEX_FILE": index}
            self._git("update-index", "-z", "--add", "--index-info", data=rows.encode(), env=with_index)
            written = self._git("write-tree", "--missing-ok", env=with_index).decode().strip()
        finally:
            with suppress(FileNotFoundError):
                os.unlink(index)
        parents = ("-p", self._tip) if self._tip is not None else ()
        return self._git("commit-tree", written, *parents, data=b"objstore push\n").decode().strip()

    def _push(self, commit: str) -> None:
        """Move the branch there; raises ``Lost`` where somebody else did meanwhile."""
        code, out, said = self._run(
            ("push", "--quiet", "--porcelain", "--", self._url, f"{commit}:{self._ref}"), None, {}
        )
        if code == 0:
            return
        text = out.decode("utf-8", "replace") + said
        if any(word in text for word in _LOST):
            raise Lost
        raise self._failed("push", said)

    def _git(self, *words: str, data: bytes | None = None, env: Mapping[str, str] | None = None) -> bytes:
        """What a command of git prints; raises ``StorageError``."""
        code, out, said = self._run(words, data, env or {})
        if code:
            raise self._failed(words[0], said)
        return out

    def _run(
        self, words: tuple[str, ...], data: bytes | None, env: Mapping[str, str]
    ) -> tuple[int, bytes, str]:
        try:
            done = subprocess.run(
                ["git", *_OPTIONS, *words],
                input=data,
                stdin=subprocess.DEVNULL if data is None else None,
                capture_output=True,
                env=self._env | dict(env),
                cwd=self._folder,
                check=False,
            )
        except OSError as error:
            raise StorageError(f"git: cannot be run: {error.strerror}", hint="is it installed?") from None
        return done.returncode, done.stdout, done.stderr.decode("utf-8", "replace")[-_SAID:]

    @contextmanager
    def _running(self, *words: str, given: bool = False) -> Iterator[subprocess.Popen[bytes]]:
        """A command of git while it runs; raises ``StorageError`` where it failed at the end."""
        try:
            process = subprocess.Popen(
                ["git", *_OPTIONS, *words],
                stdin=subprocess.PIPE if given else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=self._env,
                cwd=self._folder,
            )
        except OSError as error:
            raise StorageError(f"git: cannot be run: {error.strerror}", hint="is it installed?") from None
        try:
            yield process
            if _drained(process.stdout) and process.wait():
                raise self._failed(words[0], "")
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with suppress(OSError):
                        stream.close()

    def _failed(self, command: str, said: str) -> StorageError:
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        wrong = [line for line in lines if line.startswith(("fatal:", "error:", "remote:"))] or lines
        text = (wrong[0] if wrong else "failed").replace(self._url, self._shown)
        return StorageError(f"{self._shown}: git {command}: {text[:300]}")


#: Nothing of the person's configuration that runs programs or rewrites what is pushed; and no housekeeping meanwhile.
_OPTIONS = (
    *("-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0", "-c", "maintenance.auto=false"),
    *("-c", "push.gpgSign=false", "-c", "push.followTags=false", "-c", "push.recurseSubmodules=no"),
    *(
        "-c",
        "commit.gpgSign=false",
        "-c",
        "core.compression=0",
        "-c",
        "pack.window=0",
        "-c",
        "protocol.ext.allow=never",
    ),
)
_ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX", "GIT_OBJECT", "GIT_ALTERNATE", "GIT_NAMESPACE")
#: What git says of a push that came too late.
_LOST = (
    *("non-fast-forward", "fetch first", "stale info"),
    *("cannot lock ref", "failed to update ref", "incorrect old value"),
)


def _made(folder: str) -> None:
    """Make a folder that nobody else can look into, unless it is there."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{folder}: cannot be made: {error.strerror}") from None


def _environment(env: Mapping[str, str], folder: str) -> dict[str, str]:
    """That of the person, without what would lead git elsewhere; it asks nobody anything."""
    kept = {name: value for name, value in env.items() if not name.startswith(_ELSEWHERE)}
    return kept | _NOBODY | {"GIT_DIR": folder, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


def _drained(stream: IO[bytes] | None) -> bool:
    """Whether all that a program wrote was read: then its exit code counts."""
    return stream is None or not stream.read(1)
