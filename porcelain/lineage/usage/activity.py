"""What the landed records of a conversation add up to: its model calls with their tokens, and when it was active.

One value in the derived index for each conversation, made anew when its landing chain has moved. A view then reads a
value of some kilobytes for each conversation and no record at all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime

import msgspec
from msgspec import Struct, UnsetType

from objstore.errors import Conflict
from objstore.refs import unquote
from objstore.snapshot import Snapshot
from objstore.store import Store
from porcelain.flow.chain.landed import page_records, pages
from porcelain.flow.chain.naming import ranked_heads
from porcelain.lineage.landed.record_times import record_times
from porcelain.lineage.usage.blocks import blocks_of
from porcelain.lineage.usage.rules import Tokens, tokens_of
from porcelain.providers.records import Page, Record

PREFIX = b"usage/"
#: Of the form of the values; a change of it or of the rules needs another one.
VERSION = 2
_KEY_BYTES = 16
#: Bytes of values that are stored together.
_COMMIT_BYTES = 8 * 1024 * 1024


class Call(Struct, frozen=True, array_like=True):
    """One model call in one reading of a file. ``key`` tells it from all other calls; ``likeness`` is the same for a
    copy under another id. ``file``, ``model`` and ``folder`` are places in the lists of ``Activity``, the latter two -1
    where nothing is stated; ``time`` is "" where none is known."""

    key: bytes
    likeness: bytes
    file: int
    time: str
    model: int
    folder: int
    tokens: Tokens


class FileActivity(Struct, frozen=True, array_like=True):
    """One file: its name in the conversation, how many records it has and how many of those state a time, and the
    blocks of milliseconds since 1970 in which it was active."""

    src: str
    records: int
    timed: int
    blocks: list[tuple[int, int]]


class Activity(Struct, frozen=True, array_like=True):
    """A conversation. ``head`` is that of the landing chain it was made from; ``forked_from`` what the agent says that
    it was forked from."""

    version: int
    head: bytes
    forked_from: str
    first: str
    last: str
    files: list[FileActivity]
    models: list[str]
    folders: list[str]
    calls: list[Call]


class Measured(Struct, frozen=True):
    """A conversation and its activity. ``name`` is that of its chains, ``native_id`` the agent's id of it."""

    provider: str
    name: str
    native_id: str
    activity: Activity


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
                if other is not None:
                    said.append(found)
                    yield Measured(provider=provider, name=name, native_id=native_id, activity=other)
        fresh.update((key, None) for key, _ in view.derived_items(PREFIX) if key not in known)
        if keep:
            _kept(store, fresh)


def stale(view: Snapshot) -> int:
    """How many conversations the index does not have as they are now."""
    return sum(
        any(_indexed(view, key, head) is None for key, head in _places(provider, name, heads))
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


def _landed(view: Snapshot, head: bytes) -> Iterator[tuple[Page, list[Record]]]:
    for page in pages(view, head):
        yield page, page_records(view, page)


def activity_at(view: Snapshot, provider: str, head: bytes) -> Activity:
    """The activity of the conversation whose landing chain stands at ``head``, worked out anew."""
    return activity_of(provider, head, _landed(view, head))


def activity_of(provider: str, head: bytes, landed: Iterable[tuple[Page, list[Record]]]) -> Activity:
    """The activity of a conversation from its pages in landing order."""
    adding = _Adding(provider)
    for page, records in landed:
        adding.page(page, records)
    return adding.result(head)


class _File:
    """A file while its pages come in; ``calls`` are those of the current reading."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.records = 0
        self.timed = 0
        self.times: set[int] = set()
        self.offset = -1
        self.reading = 0
        self.calls: dict[bytes, Call] = {}
        self.alike: dict[bytes, int] = {}


class _Adding:
    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._files: dict[str, _File] = {}
        self._models: dict[str, int] = {}
        self._folders: dict[str, int] = {}
        self._done: list[Call] = []
        self._forked_from = ""
        self._first = ""
        self._last = ""

    def page(self, page: Page, records: list[Record]) -> None:
        file = self._files.setdefault(page.src, _File(len(self._files)))
        if page.offset <= file.offset:  # read from the beginning again: another reading
            self._done += file.calls.values()
            file.calls, file.alike = {}, {}
        file.offset = page.offset
        values: dict[str, str] = {}
        spans = {span.row: span.values for span in page.spans or ()}
        clock = ""
        for row, (record, time) in enumerate(zip(records, record_times(page, records), strict=True)):
            values = spans.get(row, values)
            if not self._forked_from and "forked_from" in values:
                self._forked_from = values["forked_from"]
            file.records += 1
            if time:
                file.timed += 1
                file.times.add(_milliseconds(time))
                self._first = min(self._first or time, time)
                self._last = max(self._last, time)
                clock = time
            if isinstance(record.usage, Struct):
                self._call((self._provider, page.conversation, page.src), file, record, values, time or clock)

    def _call(
        self, place: tuple[str, ...], file: _File, record: Record, values: dict[str, str], time: str
    ) -> None:
        assert not isinstance(record.usage, UnsetType)
        tokens = tokens_of(self._provider, record.usage, values.get("version", ""))
        if not tokens.total:
            return
        model = record.model if isinstance(record.model, str) else ""
        like = _digest([self._provider, time, model, *tokens])
        identity = self._identity(record, like.hex())
        key = _digest(identity) if identity else b""
        if key in file.calls:
            likeness = file.calls[key].likeness
        elif time:
            # Two calls of one reading that look alike are two calls.
            number = file.alike[like] = file.alike.get(like, 0) + 1
            likeness = _digest([like.hex(), number])
        else:
            likeness = key or _digest([*place, file.records])
        key = key or likeness
        folder = values.get("cwd")
        file.calls[key] = Call(
            key=key,
            likeness=likeness,
            file=file.number,
            time=time,
            model=self._models.setdefault(model, len(self._models)) if model else -1,
            folder=self._folders.setdefault(folder, len(self._folders)) if folder else -1,
            tokens=tokens,
        )

    def _identity(self, record: Record, like: str) -> list[str]:
        """What tells a model call from all others: the id that its agent gave it; nothing where there is none. An
        entry's id is unique in its file only, so that what the entry says is added. The totals of a session are one
        call, whatever their version."""
        call = record.call if isinstance(record.call, str) else ""
        own = record.id if isinstance(record.id, str) else ""
        if record.entry == "settings":
            return [self._provider, "session", own]
        if call and not call.startswith(".") and (call != own or self._provider == "opencode"):
            return [self._provider, "call", call]
        return [self._provider, "entry", own or call, like] if own or call else []

    def result(self, head: bytes) -> Activity:
        for file in self._files.values():
            self._done += file.calls.values()
        calls = [
            # A total of a session without a time of its own was last true when the session ended.
            call if call.time else msgspec.structs.replace(call, time=self._last)
            for call in self._done
        ]
        return Activity(
            version=VERSION,
            head=head,
            forked_from=self._forked_from,
            first=self._first,
            last=self._last,
            files=[
                FileActivity(src, file.records, file.timed, blocks_of(file.times))
                for src, file in self._files.items()
            ],
            models=list(self._models),
            folders=list(self._folders),
            calls=calls,
        )


def _digest(parts: Sequence[str | int]) -> bytes:
    return hashlib.sha256(msgspec.json.encode(parts)).digest()[:_KEY_BYTES]


def _milliseconds(time: str) -> int:
    return round(datetime.fromisoformat(time).timestamp() * 1000)
