"""The activity of all conversations: a value in the derived index for each, made anew when its chain has moved.

A view then reads a value of some kilobytes for each conversation and no record at all. What many conversations add up
to is worked out by several processes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
from msgspec import Struct

from objstore.database import Database
from objstore.errors import Conflict
from objstore.garbage import without_gc
from objstore.refs import quote, unquote
from objstore.snapshot import Snapshot
from objstore.store import Store
from objstore.workers import Serve, run_tasks
from porcelain.flow.chain.naming import ranked_heads
from porcelain.lineage.usage.activity import VERSION, Activity, activity_at

PREFIX = b"usage/"
#: Bytes of values that are stored together.
_COMMIT_BYTES = 8 * 1024 * 1024
#: Conversations from which on processes pay for their start, and those that one is given at a time.
_MANY = 1024
_BUNDLE = 128


class Measured(Struct, frozen=True):
    """A conversation and its activity. ``name`` is that of its chains, ``native_id`` the agent's id of it. A ``guest``
    stands in the files of the one before it, which have the same numbers."""

    provider: str
    name: str
    native_id: str
    activity: Activity
    guest: bool = False


class _Stamp(Struct, frozen=True, array_like=True):
    """The beginning of a value: what it was made from."""

    version: int
    head: bytes


_STAMP = msgspec.msgpack.Decoder(_Stamp)
_TASK = msgspec.msgpack.Decoder(list[tuple[str, bytes]])
_VALUES = msgspec.msgpack.Decoder(list[bytes])
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Activity)


def index_key(provider: str, name: str, head: bytes | None = None) -> bytes:
    """Where the activity of a conversation stands in the derived index; that of another store's chain of it, which says
    something else, below its head."""
    return PREFIX + f"{provider}/{name}{'/' + head.hex() if head else ''}".encode()


def measured(store: Store, on_conversation: Callable[[], object] = lambda: None) -> Iterator[Measured]:
    """The activity of every conversation, by provider and name: of the chain that covers most, and of what other
    stores' chains have beside it. What the index of ``store`` does not have is worked out, ``on_conversation`` told of
    it, and kept where the store is open for writing and nobody else is writing."""
    work_out_many(store, on_conversation)
    fresh: dict[bytes, bytes | None] = {}
    size, keep, known = 0, not getattr(store.database, "read_only", True), set()
    with store.snapshot() as view:
        for (provider, name), heads in ranked_heads(view, "landed").items():
            native_id = unquote(name).split("~", 1)[0]
            said: list[Activity] = []
            for key, head in _places(provider, name, heads):
                known.add(key)
                found = _indexed(view, key, head)
                if found is None:
                    found = activity_at(view, provider, head)
                    on_conversation()
                    value = fresh[key] = _ENCODER.encode(found)
                    size += len(value)
                    if size >= _COMMIT_BYTES:
                        keep = keep and _kept(store, fresh)
                        fresh, size = {}, 0
                other = _beside(found, said)
                if other is None:
                    continue
                said.append(found)
                yield Measured(provider=provider, name=name, native_id=native_id, activity=other)
                for guest, activity in other.guests:
                    yield Measured(
                        provider=provider, name=quote(guest), native_id=guest, activity=activity, guest=True
                    )
        fresh.update((key, None) for key, _ in view.derived_items(PREFIX) if key not in known)
        if keep:
            _kept(store, fresh)


def work_out_many(store: Store, on_conversation: Callable[[], object] = lambda: None) -> None:
    """Work out what the index does not have, if that is much, and keep it, where that can be. What is left is worked
    out by ``measured``, one conversation after the other."""
    database = store.database
    if not isinstance(database, Database) or database.read_only:
        return
    with store.snapshot() as view:
        missing = [
            (key, provider, head)
            for (provider, name), heads in ranked_heads(view, "landed").items()
            for key, head in _places(provider, name, heads)
            if not _is_indexed(view, key, head)
        ]
    if len(missing) < _MANY:
        return
    parts = [missing[at : at + _BUNDLE] for at in range(0, len(missing), _BUNDLE)]
    tasks = [_ENCODER.encode([(provider, head) for _, provider, head in part]) for part in parts]
    fresh: dict[bytes, bytes | None] = {}
    size = 0
    path = os.fsencode(database.path)
    for number, data in run_tasks(f"{__name__}:serve", path, tasks, os.cpu_count() or 1):
        if data is None:  # the process died
            continue
        for (key, _, _), value in zip(parts[number], _VALUES.decode(data), strict=True):
            fresh[key] = value
            size += len(value)
            on_conversation()
        if size >= _COMMIT_BYTES:
            if not _kept(store, fresh):
                return
            fresh, size = {}, 0
    _kept(store, fresh)


def serve(path: bytes) -> Serve:
    """What a process does that works out activities: bundles of them from the store in the folder ``path``."""
    database = Database.open(os.fsdecode(path), read_only=True)

    def values(task: bytes) -> Iterable[bytes]:
        with without_gc(), database.snapshot() as view:
            found = (activity_at(view, provider, head) for provider, head in _TASK.decode(task))
            yield _ENCODER.encode([_ENCODER.encode(one) for one in found])

    return values


def _is_indexed(view: Snapshot, key: bytes, head: bytes) -> bool:
    value = view.derived(key)
    try:
        return value is not None and _STAMP.decode(value) == _Stamp(VERSION, head)
    except msgspec.MsgspecError:
        return False


def stale(view: Snapshot) -> int:
    """How many conversations the index does not have as they are now."""
    return sum(
        any(not _is_indexed(view, key, head) for key, head in _places(provider, name, heads))
        for (provider, name), heads in ranked_heads(view, "landed").items()
    )


def _places(provider: str, name: str, heads: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Where the activity of each of a conversation's chains stands, and the chain's head."""
    for number, head in enumerate(heads):
        yield index_key(provider, name, head if number else None), head


def _beside(activity: Activity, said: Sequence[Activity]) -> Activity | None:
    """What an activity has beside what was ``said``: its files without those whose calls and times a file of that name
    has. None where nothing is left."""
    if not said:
        return activity
    if activity.guests:  # whose files are not gone through one by one: all of it, or nothing
        same = msgspec.structs.replace(activity, head=b"")
        return None if any(msgspec.structs.replace(one, head=b"") == same for one in said) else activity
    calls: dict[str, set[tuple[bytes, bytes]]] = {}
    blocks: dict[str, list[tuple[int, int]]] = {}
    for one in said:
        for number, file in enumerate(one.files):
            blocks.setdefault(file.src, []).extend(file.blocks)
            calls.setdefault(file.src, set()).update(
                (c.key, c.likeness) for c in one.calls if c.file == number
            )
    numbers: dict[int, int] = {}
    for number, file in enumerate(activity.files):
        mine = {(call.key, call.likeness) for call in activity.calls if call.file == number}
        covered = all(
            any(a <= begin and end <= b for a, b in blocks.get(file.src, ())) for begin, end in file.blocks
        )
        if file.src not in calls or not covered or not mine <= calls[file.src]:
            numbers[number] = len(numbers)
    if not numbers:
        return None
    return msgspec.structs.replace(
        activity,
        files=[activity.files[number] for number in numbers],
        calls=[
            msgspec.structs.replace(call, file=numbers[call.file])
            for call in activity.calls
            if call.file in numbers
        ],
    )


def _kept(store: Store, fresh: dict[bytes, bytes | None]) -> bool:
    """Store values of the index; False where another writer is at work, for an index can wait."""
    batch = store.batch()
    for key, value in fresh.items():
        batch.set_derived(key, value)
    try:
        store.commit(batch)
    except Conflict:
        return False
    return True


def _indexed(view: Snapshot, key: bytes, head: bytes) -> Activity | None:
    value = view.derived(key)
    if value is None:
        return None
    try:
        found = _DECODER.decode(value)
    except msgspec.MsgspecError:  # of another version
        return None
    return found if found.head == head and found.version == VERSION else None
