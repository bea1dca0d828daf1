"""What an import has to do: which conversations there are, and which of them may have something new."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

import msgspec
from msgspec import Struct, field

from objstore.digest import hash_bytes
from objstore.errors import UsageError
from objstore.snapshot import Snapshot
from objstore.store import load
from porcelain.flow.chain.naming import flow_ref, landed_ref
from porcelain.importing.cursors import load_cursors
from porcelain.importing.tasks import Task, discovery_module
from porcelain.providers.agents import roots
from porcelain.providers.cursor import Cursor, State, gone_sources, is_same_file, unchanged_files
from porcelain.providers.reader import Container, Conversation, Discovery, LeftOut, Source
from porcelain.providers.redaction import RULES, redact_text

#: Between a native id and what tells apart two conversations that carry the same one.
_COPY = "~"


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
    cursors: dict[str, dict[str, Cursor]] = field(default_factory=dict)
    settled: frozenset[str] = frozenset()
    whole: frozenset[str] = frozenset()

    @property
    def tasks(self) -> list[Task]:
        """The work, numbered from 0 in this order."""
        return [task for place in self.places for task in place.tasks]


def native_id(chain: str) -> str:
    """The native id of the conversation whose chains are called ``chain``."""
    return chain.split(_COPY, 1)[0]


def settled_key(provider: str) -> bytes:
    """What stands in ``local`` while all that was ever landed of a provider has been assembled."""
    return b"import/settled/" + provider.encode()


def find_roots(provider: str, env: Mapping[str, str], home: Path) -> list[Path]:
    """The agent's folders and databases that exist."""
    return [Path(root) for root in roots(provider, env, str(home))]


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
    plan = Plan(
        cursors={name: load_cursors(view, name) for name in providers},
        settled=settled,
        whole=settled if paths else frozenset(providers),
    )
    claimed: dict[tuple[str, str], str] = {}
    taken: set[tuple[str, str]] = set()
    planned: set[str] = set()
    number = 0
    for provider, root, found in _search(plan, paths, providers, env, home):
        place = Place(provider=provider, root=str(root), exists=root.exists())
        plan.places.append(place)
        cursors = plan.cursors[provider]
        wanted, seen_paths = _sorted_out(found, place, planned)
        wanted = _with_emptied(wanted, place, cursors, seen_paths)
        for conversation in _names(wanted, cursors, claimed, taken):
            place.conversations += 1
            place.files += len(conversation.sources)
            known = _own_cursors(conversation, cursors)
            changed = sum(
                _is_changed(source, known.get(source.path), keep) for source in conversation.sources
            )
            if not changed and provider in settled and not check:
                continue
            task = _task(view, store, number, conversation, known)
            if check:
                changed += _check(view, task, place)
            if changed or _behind(task):
                place.changed_files += changed
                place.tasks.append(task)
                number += 1
        if root.exists():
            inside = str(root).rstrip(os.sep) + os.sep
            mine = [c for c in cursors.values() if c.path.startswith(inside) and c.path not in seen_paths]
            gone = set(gone_sources(mine))
            place.gone = [c for c in mine if c.path in gone]
    for place in plan.places:
        place.elsewhere = sum(one.path in planned for one in place.left_out)
    return plan


def _search(
    plan: Plan, paths: Sequence[str], providers: Sequence[str], env: Mapping[str, str], home: Path | None
) -> Iterator[tuple[str, Path, Iterable[Conversation | LeftOut | Container]]]:
    if not paths:
        assert home is not None
        for name in providers:
            for root in find_roots(name, env, home):
                yield name, root, _discover(name, root, plan.cursors[name]) if root.exists() else ()
        return
    for text in paths:
        path = Path(text).absolute()
        matched = False
        for name, root in _of_home(path, providers):
            matched = True
            yield name, root, _discover(name, root, plan.cursors[name])
        for name in providers if not matched else ():
            module = discovery_module(name)
            if path.is_dir() or _is_container(module, path):
                found = list(_discover(name, path, plan.cursors[name]))
                if any(isinstance(one, Conversation) for one in found):
                    matched = True
                    yield name, path, found
            elif (one := module.recognise(path)) is not None:
                matched = True
                yield name, path, [one]
                break
        if not matched:
            raise UsageError(
                f"{text}: holds no conversation of {', '.join(providers)}",
                hint="give a home folder, an agent's own folder, such as ~/.claude, or one of its files",
            )


def _of_home(path: Path, providers: Sequence[str]) -> list[tuple[str, Path]]:
    """Agents' own folders below ``path``, where it is somebody's home folder or a copy of one."""
    if not path.is_dir():
        return []
    return [(name, root) for name in providers for root in find_roots(name, {}, path) if root.exists()]


def _discover(
    provider: str, root: Path, cursors: Mapping[str, Cursor]
) -> Iterable[Conversation | LeftOut | Container]:
    """What is in ``root``. A provider whose sources are not files looks at the cursors themselves."""
    module = discovery_module(provider)
    discover_known = getattr(module, "discover_known", None)
    if discover_known is not None:
        return cast(Iterable[Conversation | LeftOut | Container], discover_known(root, cursors))
    return module.discover(root, unchanged_files(cursors))


def _is_container(module: Discovery, path: Path) -> bool:
    """Whether ``path`` is a file in which the provider keeps many conversations."""
    is_container = getattr(module, "is_container", None)
    return is_container is not None and bool(is_container(path))


def _sorted_out(
    found: Iterable[Conversation | LeftOut | Container], place: Place, planned: set[str]
) -> tuple[list[Conversation], set[str]]:
    """The conversations to look at, and all paths that were found. Of places that overlap the first has what they
    share: ``planned`` has the paths of those before."""
    wanted: list[Conversation] = []
    paths: set[str] = set()
    for one in found:
        if isinstance(one, Container):
            place.containers.append(one)
            paths.add(one.path)
            continue
        if isinstance(one, LeftOut):
            place.left_out.append(one)
            paths.add(one.path)
            continue
        readable = _under_text_names(one, place)
        own = {source.path for source in readable.sources}
        if own and own.isdisjoint(planned):
            wanted.append(readable)
        planned |= own
        paths |= own
    return wanted, paths


def _with_emptied(
    wanted: list[Conversation], place: Place, cursors: Mapping[str, Cursor], found: set[str]
) -> list[Conversation]:
    """The conversations, with those of their files in which no conversation is any more, though one was imported from
    them: they were rewritten, which is for landing to see. One that has no other file is a conversation too."""
    emptied = _emptied(place, cursors, found)
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


def _emptied(place: Place, cursors: Mapping[str, Cursor], found: set[str]) -> dict[str, Cursor]:
    """Cursors, by path, of files of lines in ``place`` that are there and in which discovery saw no conversation."""
    left_out = {one.path for one in place.left_out}
    inside = place.root.rstrip(os.sep) + os.sep
    return {
        path: cursor
        for path, cursor in cursors.items()
        if cursor.offset
        and cursor.state not in ("gone", "left-out")
        and not (cursor.stamp or path.endswith(".json"))
        and (path in left_out or (path not in found and path.startswith(inside)))
        and os.path.isfile(path)
    }


def _under_text_names(conversation: Conversation, place: Place) -> Conversation:
    """The conversation without files whose names are no text, which no object could hold; ``place`` notes them."""
    bad = [one for one in conversation.sources if not is_text(one.path)]
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


def _names(
    found: list[Conversation],
    cursors: Mapping[str, Cursor],
    claimed: dict[tuple[str, str], str],
    taken: set[tuple[str, str]],
) -> list[Conversation]:
    """The conversations under the names of their chains: the native id, or, for a further file that carries the same
    one, the native id and a hash of the file's place. ``claimed`` has the file whose a name is, ``taken`` the names
    that conversations of this import have: no two may have one."""
    named: list[Conversation | None] = [None] * len(found)
    for _, index, known in sorted(_known_names(found, cursors)):
        one = found[index]
        if (one.provider, known) not in taken:
            taken.add((one.provider, known))
            claimed[one.provider, known] = one.sources[0].path
            named[index] = _renamed(one, known)
    for cursor in cursors.values():
        if cursor.conversation and cursor.state != "gone" and _is_there(cursor.path):
            claimed.setdefault((cursor.provider, cursor.conversation), cursor.path)
    for index, one in enumerate(found):
        if named[index] is not None:
            continue
        name = one.native_id
        first = one.sources[0].path
        if (one.provider, name) in taken or claimed.get((one.provider, name), first) != first:
            place = os.path.relpath(first, one.root).replace(os.sep, "/")
            name += _COPY + hash_bytes(os.fsencode(place)).hex()[:8]
        claimed[one.provider, name] = first
        taken.add((one.provider, name))
        named[index] = _renamed(one, name)
    return [one for one in named if one is not None]


def _known_names(found: list[Conversation], cursors: Mapping[str, Cursor]) -> Iterator[tuple[bool, int, str]]:
    """The names under which conversations were imported, by their places in ``found``. First come those of which the
    file says so that is the conversation's own: one of its others may have been another's before."""
    for index, one in enumerate(found):
        for source in one.sources:
            cursor = cursors.get(source.path)
            if cursor is not None and cursor.conversation:
                yield (source.stream, cursor.stream) != ("main", "main"), index, cursor.conversation
                break


def _is_there(path: str) -> bool:
    """Whether there is a file, or one that holds what goes on below its path."""
    return os.path.lexists(path) or os.path.isfile(os.path.dirname(path))


def _renamed(conversation: Conversation, name: str) -> Conversation:
    """The conversation under the name of its chains; secrets in the names of its files replaced."""
    for source in conversation.sources:
        if redact_text(source.src) != source.src:
            sources = tuple(
                msgspec.structs.replace(one, src=redact_text(one.src)) for one in conversation.sources
            )
            return msgspec.structs.replace(conversation, native_id=name, sources=sources)
    return (
        conversation
        if conversation.native_id == name
        else msgspec.structs.replace(conversation, native_id=name)
    )


def _own_cursors(conversation: Conversation, cursors: Mapping[str, Cursor]) -> dict[str, Cursor]:
    """The cursors of the conversation's files, by path. One that was imported as another conversation's has none here:
    its pages stand in that one's chain, and this one's has to have all of the file."""
    return {
        source.path: cursor
        for source in conversation.sources
        if (cursor := cursors.get(source.path)) is not None
        and cursor.conversation in ("", conversation.native_id)
    }


def _task(
    view: Snapshot, store: str, number: int, conversation: Conversation, cursors: Mapping[str, Cursor]
) -> Task:
    landed = view.ref(landed_ref(store, conversation.provider, conversation.native_id))
    flow = view.ref(flow_ref(store, conversation.provider, conversation.native_id))
    entry = load(view, landed, "landing") if landed is not None else None
    reached = load(view, flow, "flow-round").through_seq if flow is not None else 0
    return Task(
        number=number,
        conversation=conversation,
        cursors={path: _reopened(cursor) for path, cursor in cursors.items() if cursor.state != "left-out"},
        landed=landed.hex() if landed is not None else None,
        round=entry.round if entry is not None else 0,
        through_seq=entry.through_seq if entry is not None else 0,
        flow=flow.hex() if flow is not None else None,
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


def _is_changed(source: Source, cursor: Cursor | None, keep: bool) -> bool:
    if cursor is None or cursor.state == "gone" or cursor.rules != RULES or (keep and not cursor.content):
        return True
    if cursor.parser != discovery_module(cursor.provider).PARSER:
        return True
    if source.stamp:
        return source.stamp != cursor.stamp
    try:
        return not is_same_file(cursor, os.stat(source.path))
    except OSError:
        return True
