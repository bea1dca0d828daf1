"""The files of a hub in memory."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from io import BytesIO

from objstore.errors import NotFound
from objstore.pack.reader import Source
from porcelain.remotes.hub.files import KEPT_WHILE_NEEDED, WRITERS, Lost


class MemoryFiles:
    """The files of a bucket. ``now`` is what its clock says; ``before`` is called before anything is written, with what
    is to be done and the name of the file."""

    def __init__(self) -> None:
        self.files: dict[str, tuple[bytes, str]] = {}
        self.written: dict[str, float] = {}
        self.now = 0.0
        self.lose: Callable[[], bool] = lambda: False
        self.before: Callable[[str, str], object] = lambda what, name: None
        self._lock = threading.Lock()
        self._number = itertools.count()

    def list(self, prefix: str) -> Mapping[str, str]:
        with self._lock:
            return {name: tag for name, (_, tag) in self.files.items() if name.startswith(prefix)}

    def get(self, name: str, tag: str | None = None) -> bytes:
        found = self.files.get(name)
        if found is None:
            raise NotFound(name)
        if tag not in (None, found[1]):
            raise Lost
        return found[0]

    @contextmanager
    def open(self, name: str) -> Iterator[Source]:
        yield BytesIO(self.get(name))

    def create(self, name: str, source: Source, size: int) -> None:
        self.before("create", name)
        data = source.read(size + 1)
        assert len(data) == size
        with self._lock:
            self.files.setdefault(name, (data, str(next(self._number))))
            self.written.setdefault(name, self.now)

    def replace(self, name: str, data: bytes, tags: Mapping[str, str], needed: Collection[str]) -> None:
        self.before("replace", name)
        with self._lock:
            found = self.files.get(name)
            if self.lose() or (found[1] if found is not None else None) != tags.get(name):
                raise Lost
            self.files[name] = (data, str(next(self._number)))
            self.written[name] = self.now

    def times(self, prefix: str) -> Mapping[str, float]:
        with self._lock:
            return {name: time for name, time in self.written.items() if name.startswith(prefix)}

    def discard(self, names: Sequence[str]) -> None:
        for name in names:
            self.before("discard", name)
            with self._lock:
                self.files.pop(name, None)
                self.written.pop(name, None)


class Branch:
    """A branch that several see: its tip, the files by name."""

    def __init__(self) -> None:
        self.tip: Mapping[str, bytes] = {}
        self.lock = threading.Lock()


class BranchView:
    """The files of a branch, as one who looks at it sees them: as of the last ``list``, and what is not needed goes
    with the next commit."""

    def __init__(self, branch: Branch) -> None:
        self.branch = branch
        self._tree: Mapping[str, bytes] = {}
        self._made: dict[str, bytes] = {}

    def list(self, prefix: str) -> Mapping[str, str]:
        assert prefix == WRITERS
        self._tree = self.branch.tip
        return self._tags()

    def _tags(self) -> Mapping[str, str]:
        return {
            name: sha256(data).hexdigest() for name, data in self._tree.items() if name.startswith(WRITERS)
        }

    def get(self, name: str, tag: str | None = None) -> bytes:
        found = self._made.get(name) or self._tree.get(name)
        if found is None:
            raise NotFound(name)
        if tag not in (None, sha256(found).hexdigest()):
            raise Lost
        return found

    @contextmanager
    def open(self, name: str) -> Iterator[Source]:
        yield BytesIO(self.get(name))

    def create(self, name: str, source: Source, size: int) -> None:
        self._made[name] = source.read(size)

    def replace(self, name: str, data: bytes, tags: Mapping[str, str], needed: Collection[str]) -> None:
        tree = {
            file: held
            for file, held in {**self._tree, **self._made}.items()
            if file in needed or not file.startswith(KEPT_WHILE_NEEDED)
        }
        with self.branch.lock:
            if self.branch.tip is not self._tree or tags != self._tags():
                raise Lost
            self.branch.tip = self._tree = {**tree, name: data}
            self._made = {}

    def times(self, prefix: str) -> None:
        return None

    def discard(self, names: Sequence[str]) -> None:
        raise AssertionError("nothing is removed from a branch but by a commit")
