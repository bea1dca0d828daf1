"""What an import has to do: which conversations there are, and which of them may have something new."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct, field

from objstore.garbage import without_gc
from objstore.snapshot import Snapshot
from objstore.store import load
from porcelain.flow.chain.naming import landed_ref, own_flow
from porcelain.importing.cursors import load_cursor, load_heads
from porcelain.importing.finding import Found, search
from porcelain.importing.naming import chain_names, native_id, renamed
from porcelain.importing.tasks import Task, discovery_module
from porcelain.providers.cursor import Cursor, CursorHead, KnownFiles, State, gone_sources
from porcelain.providers.reader import Container, Conversation, LeftOut, Source
from porcelain.providers.redaction import RULES


class Place(Struct):
    """One folder or file that was searched: how many conversations and files it holds, and what is to do. ``elsewhere``
    counts those of the files left out that are a conversation of another agent, whose place this is too."""

    provider: str
    root: str
    conversations: int = 0
    files: int = 0
    left_out: list[LeftOut] = field(default_factory=list)
    elsewhere: int = 0
    containers: list[Container] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    gone: list[Cursor] = field(default_factory=list)
    changed_files: int = 0
    checked: int = 0
    exists: bool = True


class Plan(Struct):
    """Everything an import found; ``cursors`` by provider and path. ``settled`` are the providers of which no import
    that died has left anything to assemble, ``whole`` those of which all conversations were looked at for that."""

    places: list[Place] = field(default_factory=list)
    cursors: dict[str, dict[str, CursorHead]] = field(default_factory=dict)
    settled: frozenset[str] = frozenset()
    whole: frozenset[str] = frozenset()

    @property
    def tasks(self) -> list[Task]:
        """The work, numbered from 0 in this order."""
        return [task for place in self.places for task in place.tasks]


def settled_key(provider: str) -> bytes:
    """What stands in ``local`` while all that was ever landed of a provider has been assembled."""
    return b"import/settled/" + provider.encode()


def make_plan(
    view: Snapshot,
    store: str,
    paths: Sequence[str],
    providers: Sequence[str],
    *,
    keep: bool,
    env: Mapping[str, str],
    home: Path | None,
    check: bool = False,
) -> Plan:
    """Look at the agents' own folders (below ``home``), or at ``paths``, which exist, and say what is to do.

    ``providers`` limits the agents. Nothing is read of files that have not changed, unless ``check`` asks that what was
    imported of every file be compared with it: one that differs is read again as a rewritten one. Raises ``UsageError``
    for a path that is no agent's. ``home`` may be None where there are paths.
    """
    settled = frozenset(name for name in providers if view.local(settled_key(name)) is not None)
    with without_gc():
        plan = Plan(
            cursors={name: load_heads(view, name) for name in providers},
            settled=settled,
            whole=settled if paths else frozenset(providers),
        )
        known = {name: KnownFiles(plan.cursors[name]) for name in providers}
        taken: dict[str, set[str]] = {name: set() for name in providers}
        planned: set[str] = set()
        number = 0
        for provider, root, found in search(known, paths, env, home):
            place = Place(provider=provider, root=str(root), exists=root.exists())
            plan.places.append(place)
            cursors = plan.cursors[provider]
            wanted, seen_paths = _sorted_out(found, place, planned)
            wanted = _with_emptied(view, wanted, place, cursors, seen_paths)
            place.conversations = len(wanted)
            place.files = sum([len(one.sources) for one in wanted])
            parser = discovery_module(provider).PARSER
            everything = check or provider not in settled
            for conversation, name in zip(wanted, chain_names(wanted, cursors, taken[provider]), strict=True):
                changed = _count_changed(conversation, name, known[provider], parser, keep=keep)
                if not changed and not everything:
                    continue
                task = _task(view, store, number, renamed(conversation, name), cursors)
                if check:
                    changed += _check(view, task, place)
                if changed or _behind(task):
                    place.changed_files += changed
                    place.tasks.append(task)
                    number += 1
            if root.exists():
                place.gone = _gone(view, place, cursors, seen_paths)
        for place in plan.places:
            place.elsewhere = sum(one.path in planned for one in place.left_out)
    return plan


def _sorted_out(
    found: Iterable[Found], place: Place, planned: set[str]
) -> tuple[list[Conversation], set[str]]:
    """The conversations to look at, and all paths that were found. Of places that overlap the first has what they
    share: ``planned`` has the paths of those before."""
    wanted: list[Conversation] = []
    paths: set[str] = set()
    for one in found:
        if isinstance(one, Conversation):
            readable = _under_text_names(one, place)
            own = [source.path for source in readable.sources]
            if own and planned.isdisjoint(own):
                wanted.append(readable)
            planned.update(own)
            paths.update(own)
            continue
        if isinstance(one, Container):
            place.containers.append(one)
        else:
            place.left_out.append(one)
        paths.add(one.path)
    return wanted, paths


def _with_emptied(
    view: Snapshot,
    wanted: list[Conversation],
    place: Place,
    cursors: Mapping[str, CursorHead],
    found: set[str],
) -> list[Conversation]:
    """The conversations, with those of their files in which no conversation is any more, though one was imported from
    them: they were rewritten, which is for landing to see. One that has no other file is a conversation too."""
    emptied = _emptied(view, place, cursors, found)
    if not emptied:
        return wanted
    place.left_out = [one for one in place.left_out if one.path not in emptied]
    found |= emptied.keys()
    added: dict[str, list[Source]] = {}
    for cursor in emptied.values():
        source = Source(
            path=cursor.path, src=cursor.src, kind=cursor.kind, stream=cursor.stream, batch=cursor.batch
        )
        added.setdefault(cursor.conversation, []).append(source)
    full = []
    for one in wanted:
        names = {cursors[source.path].conversation for source in one.sources if source.path in cursors}
        more = [source for name in sorted(names) for source in added.pop(name, ())]
        full.append(msgspec.structs.replace(one, sources=(*one.sources, *more)) if more else one)
    for name, sources in added.items():
        full.append(
            Conversation(
                provider=place.provider, native_id=native_id(name), root=place.root, sources=tuple(sources)
            )
        )
    return full


def _emptied(
    view: Snapshot, place: Place, cursors: Mapping[str, CursorHead], found: set[str]
) -> dict[str, Cursor]:
    """Cursors, by path, of files of lines in ``place`` that are there and in which discovery saw no conversation."""
    left_out = {one.path for one in place.left_out}
    inside = place.root.rstrip(os.sep) + os.sep
    emptied = [
        path
        for path in cursors
        if path in left_out or (path not in found and path.startswith(inside))
        if (cursor := cursors[path]).offset
        and cursor.state not in ("gone", "left-out")
        and not (cursor.stamp or path.endswith(".json"))
        and os.path.isfile(path)
    ]
    return _whole(view, place.provider, emptied)


def _gone(view: Snapshot, place: Place, cursors: Mapping[str, CursorHead], found: set[str]) -> list[Cursor]:
    """The cursors of what was imported from ``place`` and is no longer there."""
    inside = place.root.rstrip(os.sep) + os.sep
    missing = [cursors[path] for path in cursors if path not in found and path.startswith(inside)]
    return list(_whole(view, place.provider, gone_sources(missing)).values())


def _whole(view: Snapshot, provider: str, paths: Iterable[str]) -> dict[str, Cursor]:
    """The whole cursors of sources, by path."""
    found = ((path, load_cursor(view, provider, path)) for path in paths)
    return {path: cursor for path, cursor in found if cursor is not None}


def _under_text_names(conversation: Conversation, place: Place) -> Conversation:
    """The conversation without files whose names are no text, which no object could hold; ``place`` notes them."""
    bad = [one for one in conversation.sources if not (one.path.isascii() or is_text(one.path))]
    if not bad:
        return conversation
    place.left_out += [LeftOut(path=one.path, reason="unreadable") for one in bad]
    good = tuple(one for one in conversation.sources if one not in bad)
    return msgspec.structs.replace(conversation, sources=good)


def is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_own(cursor: CursorHead, name: str) -> bool:
    """Whether the cursor of a file of the conversation ``name`` is one of it. A file that was imported as another
    conversation's has none here: its pages stand in that one's chain, and this one's has to have all of the file."""
    return cursor.conversation in ("", name)


def _task(
    view: Snapshot, store: str, number: int, conversation: Conversation, heads: Mapping[str, CursorHead]
) -> Task:
    known = (source.path for source in conversation.sources if source.path in heads)
    cursors = _whole(view, conversation.provider, known)
    landed = view.ref(landed_ref(store, conversation.provider, conversation.native_id))
    ref, flow = own_flow(view, store, conversation.provider, conversation.native_id)
    entry = load(view, landed, "landing") if landed is not None else None
    reached = load(view, flow, "flow-round").through_seq if flow is not None else 0
    return Task(
        number=number,
        conversation=conversation,
        cursors={
            path: _reopened(cursor)
            for path, cursor in cursors.items()
            if cursor.state != "left-out" and _is_own(cursor, conversation.native_id)
        },
        landed=landed.hex() if landed is not None else None,
        round=entry.round if entry is not None else 0,
        through_seq=entry.through_seq if entry is not None else 0,
        flow=flow.hex() if flow is not None else None,
        flow_ref=ref,
        assembled=reached,
    )


def _check(view: Snapshot, task: Task, place: Place) -> int:
    """Compare the files of a conversation with what was imported of them; how many differ that seemed the same. Their
    cursors are made to say that nothing of them can be taken for known."""
    from porcelain.importing.checking import differs, is_checked

    count = 0
    for source in task.conversation.sources:
        cursor = task.cursors.get(source.path)
        if cursor is None or task.landed is None or not is_checked(source, cursor):
            continue
        place.checked += 1
        try:
            if differs(view, task.landed, source, cursor):
                task.cursors[source.path] = msgspec.structs.replace(cursor, tail="", mtime_ns=0)
                count += 1
        except OSError:
            continue  # landing says so
    return count


def _reopened(cursor: Cursor) -> Cursor:
    """The cursor, ready to be looked at anew where its file was gone and is there again."""
    if cursor.state != "gone":
        return cursor
    state: State = "conflict" if cursor.observation else "active"
    return msgspec.structs.replace(cursor, state=state, mtime_ns=0)


def _behind(task: Task) -> bool:
    """Whether an earlier import landed something and died before it was assembled."""
    return task.assembled < task.through_seq


def _count_changed(
    conversation: Conversation, name: str, known: KnownFiles, parser: str, *, keep: bool
) -> int:
    """How many files of the conversation ``name`` may have something new; ``parser`` is its reader's of today."""
    count = 0
    for source in conversation.sources:
        cursor = known.cursors.get(source.path)
        if (
            cursor is None
            or not _is_own(cursor, name)
            or cursor.state == "gone"
            or cursor.rules != RULES
            or cursor.parser != parser
            or (keep and not cursor.content)
            or (source.stamp != cursor.stamp if source.stamp else not known.is_unchanged(source.path))
        ):
            count += 1
    return count
