"""Publishing files into a folder: each whole or not at all, none ever replaced, in an order in which every state in
between is a valid folder.

A file is written under a temporary name that readers ignore, flushed, made read-only and given its name by a link,
which fails where the name is taken. Killed at any moment, an export is continued by the next one.
"""

from __future__ import annotations

import errno
import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from objstore.errors import CheckFailed, Conflict, StorageError
from objstore.snapshot import Snapshot
from porcelain.flow.folders.export_chain import Chain, OutFile, landed_out, rounds_out
from porcelain.flow.folders.export_text import TextFiles
from porcelain.flow.folders.import_foreign import notes_key, state_key
from porcelain.flow.folders.layout import (
    TEMPORARY,
    component,
    sd_name,
    sf_name,
    state_of,
    state_path,
    state_text,
)
from porcelain.flow.formats.sf import Round
from porcelain.flow.formats.times import instant, rfc3339nano
from porcelain.providers.records import Page

_OURS = TEMPORARY + "objstore-"
#: Seconds after which a temporary file, or an empty round file that reserves its name, was left by a writer that died.
_STALE = 60.0
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


class Exported(Struct):
    """What was written of one conversation: files of either sort, and how many were new in the folder; ``without``
    counts the texts that an export with text had to leave out."""

    chain: Chain
    landed: int = 0
    rounds: int = 0
    new: int = 0
    without: int = 0


def export_chain(view: Snapshot, chain: Chain, root: Path) -> Exported:
    """Publish the files of ``chain`` below ``root``.

    Raises ``CheckFailed`` where the store cannot write all of them as they were, before anything is written, and
    ``Conflict`` where the folder holds another telling of the conversation.
    """
    _check_all_there(view, chain)
    landed = ((page, file) for page, _, file in landed_out(view, chain))
    return _export(view, chain, root, landed, rounds_out(view, chain))


def export_text(view: Snapshot, chain: Chain, root: Path) -> Exported:
    """Publish ``chain``, one of a store's own, as files with text; see ``export_text.TextFiles``.

    Raises ``UsageError`` for an imported chain, ``CheckFailed`` where no text is kept, ``Conflict`` as above.
    """
    files = TextFiles(view, chain)
    files.check()
    done = _export(view, chain, root, files.landed(), files.rounds())
    done.without = files.without
    return done


def _export(
    view: Snapshot,
    chain: Chain,
    root: Path,
    landed: Iterable[tuple[Page, OutFile]],
    rounds: Iterable[tuple[Round, OutFile]],
) -> Exported:
    done = Exported(chain)
    newest = 0
    placed: dict[int, str] | None = None
    for page, file in landed:
        if placed is None:
            placed = _present(root / component(page.conversation))
        taken = placed.get(page.seq)
        if taken is not None and taken != file.path.split("/", 1)[1]:
            raise _other(root, chain, f"{component(page.conversation)}/{taken}")
        done.new += _publish(root, file, chain)
        done.landed += 1
        newest = max(newest, instant(page.at) or 0)
    _write_notes(view, chain, root)
    last: tuple[Round, str] | None = None
    for round_, file in rounds:
        _check_free(root, file, chain, round_)
        done.new += _publish(root, file, chain)
        done.rounds += 1
        last = round_, file.path
    if last is not None:
        _write_state(view, chain, root, last[0], newest)
    return done


def _check_all_there(view: Snapshot, chain: Chain) -> None:
    missing: list[OutFile] = []
    count = 0
    for file in _all_files(view, chain):
        count += 1
        if file.data is None:
            missing.append(file)
    if missing:
        reasons = " or ".join(sorted({file.why for file in missing}))
        raise CheckFailed(
            f"{chain.provider}/{chain.name}: {len(missing)} of {count} imported files cannot be written again: "
            f"{reasons}",
            hint="objstore config content.keep on, then import the folder again",
        )


def _all_files(view: Snapshot, chain: Chain) -> Iterator[OutFile]:
    """The files of an imported chain; none for one of a store's own, which can always be written."""
    if view.ref(f"landed-files/{chain.origin}/{chain.provider}/{chain.name}") is not None:
        yield from (file for _, _, file in landed_out(view, chain))
    if view.ref(f"flow-files/{chain.origin}/{chain.provider}/{chain.name}") is not None:
        yield from (file for _, file in rounds_out(view, chain))


def _present(session: Path) -> dict[int, str]:
    """The landed files that a session's folder holds: path below it by ``seq``."""
    found: dict[int, str] = {}
    for folder, _, names in os.walk(session):
        for name in names:
            parts = sd_name(name) if not name.startswith(TEMPORARY) else None
            if parts is not None:
                found[parts.seq] = Path(folder, name).relative_to(session).as_posix()
    return found


def _check_free(root: Path, file: OutFile, chain: Chain, round_: Round) -> None:
    """No other round has this number."""
    folder = (root / file.path).parent
    if not folder.is_dir():
        return
    for name in os.listdir(folder):
        parts = sf_name(name)
        if parts is None or parts.round != round_.header.round or name == file.path.rsplit("/", 1)[1]:
            continue
        if (folder / name).stat().st_size:
            raise _other(root, chain, (folder / name).relative_to(root).as_posix())


def _other(root: Path, chain: Chain, path: str) -> Conflict:
    return Conflict(
        f"{root / path}: belongs to another telling of {chain.name} than the one to be exported ({chain.origin})",
        hint="export into another folder",
    )


def _publish(root: Path, file: OutFile, chain: Chain) -> bool:
    """Write one file; False where it is there already. Raises ``Conflict`` where something else is."""
    assert file.data is not None
    target = root / file.path
    try:
        if target.exists():
            if _is_reservation(target):
                target.unlink()
            elif target.stat().st_size == len(file.data) and target.read_bytes() == file.data:
                return False
            else:
                raise _other(root, chain, file.path)
        _make_folder(target.parent)
        temporary = _temporary(target.parent, file.data, 0o444)
        try:
            _name(temporary, target)
        except FileExistsError:
            raise _other(root, chain, file.path) from None
        finally:
            temporary.unlink(missing_ok=True)
        _flush(target.parent)
    except OSError as error:
        raise StorageError(f"{target}: cannot write: {error.strerror or type(error).__name__}") from None
    return True


def _is_reservation(target: Path) -> bool:
    """An empty round file whose writer died."""
    stat = target.stat()
    return target.suffix == ".sf" and stat.st_size == 0 and time.time() - stat.st_mtime > _STALE


def _make_folder(folder: Path) -> None:
    """Make ``folder`` and sweep it: what a writer of ours that died left in it is removed."""
    folder.mkdir(parents=True, exist_ok=True)
    with os.scandir(folder) as names:
        for entry in names:
            if entry.name.startswith(_OURS) and time.time() - entry.stat().st_mtime > _STALE:
                Path(entry.path).unlink(missing_ok=True)


def _temporary(folder: Path, data: bytes, mode: int) -> Path:
    """A flushed file with a temporary name."""
    handle, name = tempfile.mkstemp(prefix=_OURS, dir=folder)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.chmod(name, mode)
    return Path(name)


def _name(temporary: Path, target: Path) -> None:
    """Give a file its name; raises ``FileExistsError`` where that is taken."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # A file system without links: reserve the name with an empty file, which readers do not count.
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o444))
        os.replace(temporary, target)


def _write_state(view: Snapshot, chain: Chain, root: Path, head: Round, newest: int) -> None:
    """The state file: as imported, else made from the head and the newest record; none where the folder that was
    imported had none."""
    kept = view.local(state_key(chain.origin, chain.provider, chain.name))
    if kept is None and view.ref(f"flow-files/{chain.origin}/{chain.provider}/{chain.name}") is not None:
        return
    data = kept or state_text(state_of(head.header, head.digest, rfc3339nano(newest))).encode()
    _replace(root / state_path(chain.conversation), data)


def _write_notes(view: Snapshot, chain: Chain, root: Path) -> None:
    """What a collector noted beside landed files that were imported; it is written after them, as the collector did."""
    kept = view.local(notes_key(chain.origin, chain.provider, chain.name))
    for path, data in (msgspec.msgpack.decode(kept, type=dict[str, bytes]) if kept else {}).items():
        _replace(root / path, data)


def _replace(target: Path, data: bytes) -> None:
    """Write a file that is a cache: what stands there gives way."""
    try:
        if target.exists() and target.read_bytes() == data:
            return
        _make_folder(target.parent)
        os.replace(_temporary(target.parent, data, 0o644), target)
        _flush(target.parent)
    except OSError as error:
        raise StorageError(f"{target}: cannot write: {error.strerror or type(error).__name__}") from None


def _flush(folder: Path) -> None:
    """Make the names in a folder durable."""
    if os.name == "nt":
        return  # a folder cannot be opened there
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
