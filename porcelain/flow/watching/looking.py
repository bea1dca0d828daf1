"""One look at the agents' folders: what is new is landed and assembled, and the new rounds are told."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from objstore.chain import entries_since
from objstore.snapshot import Snapshot
from objstore.store import Store
from plumbing.interface.settings import keeps_content
from porcelain.flow.chain.naming import flow_ref
from porcelain.importing.cursors import hash_key
from porcelain.importing.plan import make_plan
from porcelain.importing.run import import_lock, run_import
from porcelain.importing.tasks import Settings, Task


class Published(Struct, frozen=True):
    """One new round. ``name`` is that of the conversation's chain."""

    provider: str
    name: str
    round: int
    digest: str
    from_seq: int
    through_seq: int
    frames: int


class Pass(Struct):
    """What one look gave: new rounds in order, and problems as pairs of path and reason."""

    published: list[Published]
    problems: list[tuple[str, str]]


def look(
    store: Store,
    path: str,
    providers: Sequence[str],
    paths: Sequence[str],
    *,
    env: Mapping[str, str],
    home: Path | None,
    lock_timeout: float,
) -> Pass:
    """Land and assemble what is new; ``path`` is the folder of the store. See ``make_plan`` for the rest."""
    with import_lock(path, lock_timeout):
        with store.snapshot() as view:
            keep = keeps_content(view)
            host = (view.local(b"config/host.label") or b"").decode() or platform.node() or "localhost"
            plan = make_plan(view, store.store_id, paths, providers, keep=keep, env=env, home=home)
        if not plan.tasks and not any(place.gone or place.left_out for place in plan.places):
            return Pass([], [])
        settings = Settings(
            path=path,
            store=store.store_id,
            algorithm=store.algorithm,
            keep=keep,
            key=hash_key(store),
        )
        result = run_import(store, plan, settings, host=host)
    with store.snapshot() as view:
        published = [one for task in plan.tasks for one in _published(view, store.store_id, task)]
    return Pass(published, result.problems)


def _published(view: Snapshot, store: str, task: Task) -> Iterator[Published]:
    conversation = task.conversation
    head = view.ref(flow_ref(store, conversation.provider, conversation.native_id))
    if head is None:
        return
    for _, entry in entries_since(view, head, bytes.fromhex(task.flow) if task.flow else None):
        counts = entry.counts
        yield Published(
            conversation.provider,
            conversation.native_id,
            entry.round,
            entry.commit,
            entry.from_seq,
            entry.through_seq,
            counts.nodes + counts.relations + counts.unresolved,
        )
