"""What the landed records of a conversation add up to: its model calls with their tokens, and when it was active."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import msgspec
from msgspec import UNSET, Struct, UnsetType

from objstore.snapshot import Snapshot
from porcelain.flow.chain.landed import page_records, pages
from porcelain.lineage.landed.record_times import record_times
from porcelain.lineage.landed.strays import TELLING, is_mixed, owners
from porcelain.lineage.usage.blocks import blocks_of
from porcelain.lineage.usage.rules import Tokens, tokens_of
from porcelain.providers.records import Page, Record

#: Of the form of the values; a change of it or of the rules needs another one.
VERSION = 4
#: Agents whose records name the one before them.
_TREES = frozenset({"claude", "factory", "oh-my-pi", "pi"})
_KEY_BYTES = 16


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
    it was forked from; ``astray`` counts the records that follow one which none of its files has. ``guests`` are the
    conversations that stand in its files (see ``landed.strays``), by native id, with the same files in the same order.
    """

    version: int
    head: bytes
    forked_from: str
    first: str
    last: str
    files: list[FileActivity]
    models: list[str]
    folders: list[str]
    calls: list[Call]
    astray: int = 0
    guests: list[tuple[str, Activity]] = []


def _landed(view: Snapshot, head: bytes) -> Iterator[tuple[Page, list[Record]]]:
    for page in pages(view, head):
        yield page, page_records(view, page)


def activity_at(view: Snapshot, provider: str, head: bytes) -> Activity:
    """The activity of the conversation whose landing chain stands at ``head``, worked out anew."""
    found = activity_of(provider, head, _landed(view, head))
    if found is None:
        found = shared_activity(provider, head, list(_landed(view, head)))
    return found


def activity_of(provider: str, head: bytes, landed: Iterable[tuple[Page, list[Record]]]) -> Activity | None:
    """The activity of a conversation from its pages in landing order; None for one whose files name another, of which
    all pages are needed at once."""
    adding = _Adding(provider)
    for page, records in landed:
        if provider in TELLING and is_mixed((page,), page.conversation):
            return None
        adding.page(page, records)
    return adding.result(head)


def shared_activity(provider: str, head: bytes, landed: Sequence[tuple[Page, list[Record]]]) -> Activity:
    """The same where others may stand in its files: what is theirs goes to ``guests``."""
    owner = [[page.conversation] * len(page.lengths) for page, _ in landed]
    for reading in _readings(landed):
        runs = owners(landed[reading[0]][0].conversation, [landed[number] for number in reading])
        names = iter([name for name, start, end in runs for _ in range(start, end)])
        for number in reading:
            owner[number] = [next(names) for _ in owner[number]]
    own = landed[0][0].conversation if landed else ""
    adding = {own: _Adding(provider)}
    for (page, records), whose in zip(landed, owner, strict=True):
        for name in {own, *whose}:
            mine = adding.setdefault(name, _Adding(provider))
            mine.page(page, records, None if {name} == set(whose) else [one == name for one in whose])
    sources = list(dict.fromkeys(page.src for page, _ in landed))
    guests = [(name, adding[name].result(head, sources)) for name in sorted(adding.keys() - {own})]
    return msgspec.structs.replace(adding[own].result(head, sources), guests=guests)


def _readings(landed: Sequence[tuple[Page, list[Record]]]) -> Iterator[list[int]]:
    """The numbers of the pages of each reading of a main transcript."""
    found: dict[str, list[int]] = {}
    for number, (page, _) in enumerate(landed):
        if page.kind != "transcript" or page.stream not in ("main", UNSET):
            continue
        before = found.get(page.src)
        if before and page.offset <= landed[before[-1]][0].offset:
            yield found.pop(page.src)
        found.setdefault(page.src, []).append(number)
    yield from found.values()


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
        self._ids: set[str] = set()
        self._parents: list[str] = []

    def page(self, page: Page, records: list[Record], mine: Sequence[bool] | None = None) -> None:
        """Add a page, or those of its rows that are ``mine``."""
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
            if mine is not None and not mine[row]:
                continue
            if not self._forked_from and "forked_from" in values:
                self._forked_from = values["forked_from"]
            file.records += 1
            if self._provider in _TREES:
                self._place(record)
            if time:
                file.timed += 1
                file.times.add(_milliseconds(time))
                self._first = min(self._first or time, time)
                self._last = max(self._last, time)
                clock = time
            if isinstance(record.usage, Struct):
                self._call((self._provider, page.conversation, page.src), file, record, values, time or clock)

    def _place(self, record: Record) -> None:
        if isinstance(record.id, str):
            self._ids.add(record.id)
        if isinstance(record.parent, str) and record.parent:
            self._parents.append(record.parent)

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

    def result(self, head: bytes, sources: Iterable[str] = ()) -> Activity:
        """What was added, with the files ``sources`` first."""
        for file in self._files.values():
            self._done += file.calls.values()
        none = _File(0)
        names = list(dict.fromkeys((*sources, *self._files)))
        place = {self._files[src].number: number for number, src in enumerate(names) if src in self._files}
        files = [(src, self._files.get(src, none)) for src in names]
        done = [
            call if place[call.file] == call.file else msgspec.structs.replace(call, file=place[call.file])
            for call in self._done
        ]
        calls = [
            # A total of a session without a time of its own was last true when the session ended.
            call if call.time else msgspec.structs.replace(call, time=self._last)
            for call in done
        ]
        return Activity(
            version=VERSION,
            head=head,
            forked_from=self._forked_from,
            first=self._first,
            last=self._last,
            files=[FileActivity(src, file.records, file.timed, blocks_of(file.times)) for src, file in files],
            models=list(self._models),
            folders=list(self._folders),
            calls=calls,
            astray=sum(parent not in self._ids for parent in self._parents),
        )


def _digest(parts: Sequence[str | int]) -> bytes:
    return hashlib.sha256(msgspec.json.encode(parts)).digest()[:_KEY_BYTES]


def _milliseconds(time: str) -> int:
    return round(datetime.fromisoformat(time).timestamp() * 1000)
