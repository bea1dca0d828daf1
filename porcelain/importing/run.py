"""Carrying an import out: workers land and assemble, this process stores what they return.

Each piece is stored in one transaction with the facts it gives and the cursors it moves; small pieces share one.
Killed at any moment, an import is continued by the next one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from operator import itemgetter

import msgspec
from msgspec import Struct, field

from objstore import kinds
from objstore.batch import Batch
from objstore.chain import append_round, round_head
from objstore.database import Database
from objstore.garbage import without_gc
from objstore.kind_modules import declarations
from objstore.lock import writer_lock
from objstore.store import Store
from porcelain.flow.chain.naming import landed_ref
from porcelain.importing.cursors import save_cursor
from porcelain.importing.keeping import CONTENT_CHAIN, content_frame, content_ref
from porcelain.importing.plan import Place, Plan, settled_key
from porcelain.importing.tasks import Bundle, Piece, Settings, Task, bundle_from_bytes
from porcelain.providers.cursor import Cursor, container_cursor, is_known, left_out_cursor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from porcelain.importing.learning import Learning

#: Bytes to read from which on worker processes pay for their start; a file costs as much as this many bytes.
_PARALLEL_BYTES = 8 * 1024 * 1024
_FILE_BYTES = 16 * 1024
#: Conversations are given to a worker process together up to this many bytes to read, and so many of them.
_GROUP_BYTES = 2 * 1024 * 1024
_GROUP_TASKS = 64
#: A transaction is committed when it holds this many objects or compressed bytes.
_COMMIT_OBJECTS = 24 * 1024
_COMMIT_BYTES = 12 * 1024 * 1024

Advance = Callable[[int, str], None]


class PlaceResult(Struct):
    """What was learned in one place."""

    place: Place
    new: int = 0
    grown: int = 0
    records: int = 0
    damaged: int = 0
    pending: int = 0
    conflicts: int = 0
    gone: int = 0


class Result(Struct):
    """What an import did: new objects, rounds and bytes read, by place; ``problems`` pairs of path and reason."""

    places: list[PlaceResult] = field(default_factory=list)
    objects: int = 0
    records: int = 0
    rounds: int = 0
    source_bytes: int = 0
    facts: int = 0
    problems: list[tuple[str, str]] = field(default_factory=list)


def run_import(
    store: Store,
    plan: Plan,
    settings: Settings,
    *,
    host: str,
    processes: int = 0,
    advance: Advance = lambda _bytes, _label: None,
) -> Result:
    """Do what ``plan`` says and return what came of it.

    ``advance`` is told the bytes of source that each piece covered, ``total_bytes`` in the end. ``processes`` 0 chooses
    by the work there is. The caller holds ``import_lock`` since before the plan was made.
    """
    return _Import(store, plan, settings, host, advance).run(processes)


def import_lock(
    path: str, timeout: float, on_wait: Callable[[], None] | None = None
) -> AbstractContextManager[None]:
    """Held from before planning to the end, so that two imports into the store in the folder ``path`` (which exists)
    never work from one plan. Raises ``Conflict`` after ``timeout`` seconds."""
    return writer_lock(os.path.join(path, "import.lock"), timeout, on_wait)


class _Import:
    """One import in progress: the open batch, the heads of this store's chains, and the tally."""

    def __init__(self, store: Store, plan: Plan, settings: Settings, host: str, advance: Advance) -> None:
        self._store = store
        self._plan = plan
        self._settings = settings
        self._advance = advance
        self._tasks = plan.tasks
        self._result = Result(places=[PlaceResult(place) for place in plan.places])
        self._place_of = {
            task.number: result for result in self._result.places for task in result.place.tasks
        }
        self._heads: dict[tuple[str, int], str | None] = {}
        self._cursors: dict[int, dict[str, Cursor]] = {}
        self._reread: dict[int, dict[str, str]] = {}
        self._content: list[str] = []
        self._bytes = 0
        self._left: dict[int, int] = {}
        self._batch = store.batch()
        self._started = store.now()
        with store.snapshot() as view:
            self._kept = round_head(view, content_ref(store))
        self._learning: Learning | None = None
        if self._tasks or any(place.gone for place in plan.places):
            from porcelain.importing.learning import Learning

            self._learning = Learning(store, host)
        self._settled = set(plan.settled)

    def run(self, processes: int) -> Result:
        self._left = {task.number: _unread_bytes(task) for task in self._tasks}
        if processes == 0:
            work = sum(self._left.values()) + sum(map(_files, self._tasks)) * _FILE_BYTES
            processes = (os.cpu_count() or 1) if work >= _PARALLEL_BYTES else 1
        processes = min(processes, len(self._tasks))
        with without_gc():
            for bundle in self._bundles(processes) if self._tasks else ():
                self._batch.add_prepared(bundle.objects)
                self._bytes += sum(len(one[3]) for one in bundle.objects)
                for piece in bundle.pieces:
                    self._take(piece)
        self._note_left_out()
        self._note_gone()
        self._note_runs()
        self._commit(last=True)
        return self._result

    def _bundles(self, processes: int) -> Iterator[Bundle]:
        if processes > 1:
            yield from _from_processes(self._settings, self._tasks, processes)
            return
        database = self._store.database
        assert isinstance(database, Database)
        from porcelain.importing.work import Worker  # and with it the assembly

        worker = Worker(database, self._settings)
        for task in self._tasks:
            yield from worker.bundles([task])

    # -- one piece ---------------------------------------------------------------------------------------------------

    def _take(self, piece: Piece) -> None:
        task = self._tasks[piece.number]
        conversation = task.conversation
        batch, result = self._batch, self._result
        store_id = self._store.store_id
        if piece.landed is not None:
            ref = landed_ref(store_id, conversation.provider, conversation.native_id)
            batch.move_ref(ref, piece.landed, self._heads.get(("landed", task.number), task.landed), "import")
            self._heads["landed", task.number] = piece.landed
        if piece.flow is not None:
            batch.move_ref(
                task.flow_ref, piece.flow, self._heads.get(("flow", task.number), task.flow), "import"
            )
            self._heads["flow", task.number] = piece.flow
        for key, value in piece.derived.items():
            batch.set_derived(key, value)
        for cursor in piece.cursors:
            save_cursor(batch, cursor)
        self._content += piece.content
        cursors = self._cursors.setdefault(task.number, dict(task.cursors))
        cursors.update((cursor.path, cursor) for cursor in piece.cursors)
        reread = self._reread.setdefault(task.number, {})
        reread.update(piece.reread)
        if piece.landed is not None or piece.cursors:
            assert self._learning is not None
            self._learning.note(conversation, cursors, reread, task.cursors)
        result.problems += piece.problems
        result.records += piece.records
        result.rounds += piece.rounds
        result.source_bytes += piece.source_bytes
        self._tally(task, piece)
        # What was counted beforehand is about right only; at the end it is to be all of it.
        left = self._left[task.number]
        passed = left if piece.last else min(left, piece.source_bytes)
        self._left[task.number] = left - passed
        self._advance(passed, conversation.provider)
        if len(batch) >= _COMMIT_OBJECTS or self._bytes >= _COMMIT_BYTES:
            self._commit()

    def _tally(self, task: Task, piece: Piece) -> None:
        place = self._place_of[task.number]
        place.records += piece.records
        if piece.last:
            before = task.cursors
            after, reread = self._cursors.pop(task.number), self._reread.pop(task.number)
            if task.landed is None and self._heads.get(("landed", task.number)) is not None:
                place.new += 1
            elif self._heads.get(("landed", task.number)) is not None:
                place.grown += 1
            for path, cursor in after.items():
                old = before.get(path)
                known = old.facts.damage_count if old is not None and path not in reread else 0
                place.damaged += cursor.facts.damage_count - known
                place.pending += cursor.facts.pending_bytes > 0
            place.conflicts += list(reread.values()).count("rewritten")

    # -- the end -----------------------------------------------------------------------------------------------------

    def _note_left_out(self) -> None:
        for place in self._plan.places:
            known = self._plan.cursors[place.provider]
            for one in place.left_out:
                cursor = left_out_cursor(place.provider, one)
                if cursor is not None and not is_known(cursor, known.get(one.path)):
                    save_cursor(self._batch, cursor)
            # What was found in a container is only known when all of it has been landed.
            for container in place.containers if not self._result.problems else ():
                cursor = container_cursor(place.provider, container)
                if not is_known(cursor, known.get(container.path)):
                    save_cursor(self._batch, cursor)

    def _note_gone(self) -> None:
        for result in self._result.places:
            for cursor in result.place.gone:
                gone = msgspec.structs.replace(cursor, state="gone")
                save_cursor(self._batch, gone)
                assert self._learning is not None
                self._learning.note_gone(gone, result.place.root)
                result.gone += 1

    def _note_runs(self) -> None:
        """A run that learned nothing leaves no fact."""
        if self._learning is None or not (len(self._learning) or self._result.objects or len(self._batch)):
            return
        stats = {"records": self._result.records, "problems": len(self._result.problems)}
        self._learning.note_run(self._started, self._store.now(), stats)

    def _note_settled(self, *, last: bool) -> None:
        """Note whether something may be left to be assembled, so that the next import need not look for it."""
        if last and self._settings.assemble and not self._result.problems:
            for provider in self._plan.whole - self._settled:
                self._batch.set_local(settled_key(provider), b"1")
        elif self._heads:
            for provider in self._settled & {task.conversation.provider for task in self._tasks}:
                self._batch.set_local(settled_key(provider), None)
                self._settled.discard(provider)

    def _commit(self, *, last: bool = False) -> None:
        self._note_settled(last=last)
        batch: Batch = self._batch
        facts = self._learning.append(batch) if self._learning is not None else 0
        kept = self._kept
        if self._content:
            frame = content_frame(self._content)
            kept = append_round(
                batch,
                CONTENT_CHAIN,
                content_ref(self._store),
                kept,
                [batch.put("content-kept", kinds.encode(frame))],
            )
        if batch:
            self._result.objects += self._store.commit(batch)
            self._result.facts += facts
        self._kept, self._content, self._bytes = kept, [], 0
        self._batch = self._store.batch()


def _unread_bytes(task: Task) -> int:
    total = 0
    for source in task.conversation.sources:
        cursor = task.cursors.get(source.path)
        try:
            size = source.size or os.stat(source.path).st_size
        except OSError:
            continue
        total += max(0, size - (cursor.offset if cursor is not None else 0))
    return total


def _files(task: Task) -> int:
    return len(task.conversation.sources)


def total_bytes(plan: Plan) -> int:
    """Bytes of source that the import will read, about."""
    return sum(_unread_bytes(task) for task in plan.tasks)


def _from_processes(settings: Settings, tasks: Sequence[Task], processes: int) -> Iterator[Bundle]:
    """What comes from worker processes, which are given small conversations several at a time.

    A process that dies costs the conversation that it was at, which is reported. Those that it had been given and of
    which nothing came are given to other processes one by one, so that the one that is to blame stands alone.
    """
    from objstore.workers import run_tasks

    argument = msgspec.msgpack.encode((settings, declarations()))
    groups = _grouped(tasks)
    while groups:
        work = [msgspec.msgpack.encode(group) for group in groups]
        begun: set[int] = set()
        ended: set[int] = set()
        again: list[list[Task]] = []
        for at, data in run_tasks("porcelain.importing.work:serve_tasks", argument, work, processes):
            if data is not None:
                bundle = bundle_from_bytes(data)
                begun.update(piece.number for piece in bundle.pieces)
                ended.update(piece.number for piece in bundle.pieces if piece.last)
                yield bundle
                continue
            left = [task for task in groups[at] if task.number not in ended]
            for task in left:
                if len(left) > 1 and task.number not in begun:
                    again.append([task])
                    continue
                problem = (task.conversation.sources[0].path, "the process that read it died")
                yield Bundle([], [Piece(number=task.number, problems=[problem], last=True)])
        groups = again


def _grouped(tasks: Sequence[Task]) -> list[list[Task]]:
    """The tasks in the order in which they are given to processes: the largest first, small ones together."""
    groups: list[list[Task]] = []
    held = 0
    for size, task in sorted(
        ((_unread_bytes(task), task) for task in tasks), key=itemgetter(0), reverse=True
    ):
        held += size
        if not groups or held > _GROUP_BYTES or len(groups[-1]) == _GROUP_TASKS:
            groups.append([])
            held = size
        groups[-1].append(task)
    return groups
