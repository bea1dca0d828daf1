"""Finding the runs of a session's chain, with another process where the session is large.

This process goes through the events from the first on and the other one from the last, until they meet, so that it
matters little which of them is the slower. What the other has not found when this one gets there, this one finds.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing, suppress
from threading import Event as Flag
from threading import Thread
from typing import cast

import msgspec
from msgspec import Struct

from objstore.database import Database
from objstore.garbage import without_gc
from objstore.snapshot import Snapshot
from objstore.workers import Serve, run_tasks
from porcelain.session.integrity.runs import likely_events, patterns_of, read_runs
from porcelain.session.tree.identity import is_sid
from porcelain.session.tree.replay import Run, in_groups

#: Groups of events from which on another process pays for its start.
_PARALLEL_FROM = 160
#: Groups in a task, and in one of its results.
_TASK_GROUPS = 64
_RESULT_GROUPS = 4

#: The runs of a group of events, which has a number.
_Found = tuple[int, list[Run]]
_Groups = Sequence[tuple[int, Sequence[bytes]]]


class _Share(Struct):
    """What the other process is told once: the store and the session."""

    path: str
    sid: str


def find_runs(view: Snapshot, sid: str, path: str | None = None) -> dict[str, Run]:
    """All runs that the index of a session leads to, by the id of their last event.

    With ``path``, the folder of the store that ``view`` is of, another process helps where that pays.
    """
    if not is_sid(sid):
        return {}
    # The first event brings the root and is in no run.
    groups = list(enumerate(in_groups(likely_events(view, sid)[1:])))
    found: dict[int, list[Run]] = {}
    with without_gc():
        if path is None or len(groups) < _PARALLEL_FROM or os.cpu_count() == 1:
            _find(view, sid, groups, found)
        else:
            met = Flag()
            other = Thread(target=_find_in_other, args=(_Share(path, sid), groups, found, met))
            other.start()
            try:
                _find(view, sid, groups, found)
            finally:
                met.set()
                other.join()
    return {run.keys[-1].hex(): run for runs in found.values() for run in runs}


def _find(view: Snapshot, sid: str, groups: _Groups, found: dict[int, list[Run]]) -> None:
    """Find the runs of those groups that are not in ``found`` yet."""
    patterns = patterns_of(sid)
    for number, group in groups:
        if number not in found:
            found[number] = read_runs(view, patterns, group)


def _find_in_other(share: _Share, groups: _Groups, found: dict[int, list[Run]], met: Flag) -> None:
    """Have another process find the runs of the last groups, then of those before, until ``met``."""
    backwards = groups[::-1]
    tasks = [
        msgspec.msgpack.encode(backwards[at : at + _TASK_GROUPS])
        for at in range(0, len(backwards), _TASK_GROUPS)
    ]
    results = run_tasks(
        "porcelain.session.integrity.run_finding:serve_groups", msgspec.msgpack.encode(share), tasks, 1
    )
    # What it does not find, because it cannot start or dies, is left to this process.
    with suppress(OSError), closing(cast("Generator[tuple[int, bytes | None]]", results)):
        for _, result in results:
            if result is not None:
                found.update(msgspec.msgpack.decode(result, type=list[_Found]))
            if met.is_set():
                return


def serve_groups(argument: bytes) -> Serve:
    """What the other process does: find the runs of the groups of each task."""
    share = msgspec.msgpack.decode(argument, type=_Share)
    database = Database.open(share.path, read_only=True)
    patterns = patterns_of(share.sid)
    gc.disable()  # as ``without_gc``, for good

    def serve(task: bytes) -> Iterable[bytes]:
        with database.snapshot() as view:
            groups = msgspec.msgpack.decode(task, type=list[tuple[int, list[bytes]]])
            for at in range(0, len(groups), _RESULT_GROUPS):
                done = [
                    (number, read_runs(view, patterns, group))
                    for number, group in groups[at : at + _RESULT_GROUPS]
                ]
                yield msgspec.msgpack.encode(done)

    return serve
