"""What an import has to do: which conversations there are, and which of them may have something new."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct, field

from objstore.errors import NotFound, UsageError
from objstore.snapshot import Snapshot
from objstore.store import load
from porcelain.flow.store import flow_ref, landed_ref
from porcelain.importing.cursors import load_cursors
from porcelain.importing.work import ASSEMBLED, Task, provider_module
from porcelain.providers.cursor import Cursor, gone_sources, is_same_file, unchanged_files
from porcelain.providers.reader import Conversation, LeftOut
from porcelain.providers.redaction import RULES

#: Between a native id and what tells apart two conversations that carry the same one.
_COPY = "~"


class Place(Struct):
    """One folder or file that was searched: how many conversations and files it holds, and what is to do."""

    provider: str
    root: str
    conversations: int = 0
    files: int = 0
    left_out: list[LeftOut] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    gone: list[Cursor] = field(default_factory=list)
    changed_files: int = 0
    exists: bool = True


class Plan(Struct):
    """Everything an import found; ``cursors`` by provider and path."""

    places: list[Place] = field(default_factory=list)
    cursors: dict[str, dict[str, Cursor]] = field(default_factory=dict)

    @property
    def tasks(self) -> list[Task]:
        """The work, numbered from 0 in this order."""
        return [task for place in self.places for task in place.tasks]


def native_id(chain: str) -> str:
    """The native id of the conversation whose chains are called ``chain``."""
    return chain.split(_COPY, 1)[0]


def find_roots(provider: str, env: Mapping[str, str], home: Path) -> list[Path]:
    """The folders in which the agent keeps conversations, whether or not they exist."""
    return list(provider_module(provider).roots(env, home))


def make_plan(
    view: Snapshot,
    store: str,
    paths: Sequence[str],
    providers: Sequence[str],
    *,
    keep: bool,
    env: Mapping[str, str],
    home: Path,
) -> Plan:
    """Look at the agents' own folders, or at ``paths``, and say what is to do.

    ``providers`` limits the agents. Nothing is read of files that have not changed. Raises ``NotFound`` for a path that
    is not there, ``UsageError`` for one that is no agent's.
    """
    plan = Plan(cursors={name: load_cursors(view, name) for name in providers})
    claimed: dict[tuple[str, str], str] = {}
    number = 0
    for provider, root, found in _search(plan, paths, providers, env, home):
        place = Place(provider=provider, root=str(root), exists=root.exists())
        plan.places.append(place)
        cursors = plan.cursors[provider]
        named: list[Conversation] = []
        seen_paths: set[str] = set()
        for one in found:
            if isinstance(one, LeftOut):
                place.left_out.append(one)
                seen_paths.add(one.path)
            else:
                named.append(one)
        for conversation in _names(named, cursors, claimed):
            place.conversations += 1
            place.files += len(conversation.sources)
            seen_paths.update(source.path for source in conversation.sources)
            task = _task(view, store, number, conversation, cursors)
            changed = sum(
                _is_changed(source.path, cursors.get(source.path), keep) for source in conversation.sources
            )
            if changed or _behind(task):
                place.changed_files += changed
                place.tasks.append(task)
                number += 1
        if root.is_dir():
            inside = str(root).rstrip(os.sep) + os.sep
            mine = [c for c in cursors.values() if c.path.startswith(inside) and c.path not in seen_paths]
            gone = set(gone_sources(mine))
            place.gone = [c for c in mine if c.path in gone]
    return plan


def _search(
    plan: Plan, paths: Sequence[str], providers: Sequence[str], env: Mapping[str, str], home: Path
) -> Iterator[tuple[str, Path, Iterable[Conversation | LeftOut]]]:
    if not paths:
        for name in providers:
            module = provider_module(name)
            seen = unchanged_files(plan.cursors[name])
            for root in find_roots(name, env, home):
                yield name, root, module.discover(root, seen) if root.is_dir() else ()
        return
    for text in paths:
        path = Path(text).absolute()
        if not path.exists():
            raise NotFound(f"{text}: no such file or folder")
        matched = False
        for name in providers:
            module = provider_module(name)
            seen = unchanged_files(plan.cursors[name])
            if path.is_dir():
                found = list(module.discover(path, seen))
                if any(isinstance(one, Conversation) for one in found):
                    matched = True
                    yield name, path, found
            elif (one := module.recognise(path)) is not None:
                matched = True
                yield name, path, [one]
                break
        if not matched:
            raise UsageError(
                f"{text}: holds no conversation of {' or '.join(providers)}",
                hint="give an agent's own folder, such as ~/.claude, or one of its files",
            )


def _names(
    found: list[Conversation], cursors: Mapping[str, Cursor], claimed: dict[tuple[str, str], str]
) -> list[Conversation]:
    """The conversations under the names of their chains: the native id, or, for a further file that carries the same
    one, the native id and a hash of the file's place."""
    named: list[Conversation | None] = [None] * len(found)
    for index, one in enumerate(found):
        known = next((cursors[s.path].conversation for s in one.sources if s.path in cursors), "")
        if known:
            claimed[one.provider, known] = one.sources[0].path
            named[index] = _renamed(one, known)
    for cursor in cursors.values():
        if cursor.conversation and cursor.state != "gone" and os.path.lexists(cursor.path):
            claimed.setdefault((cursor.provider, cursor.conversation), cursor.path)
    for index, one in enumerate(found):
        if named[index] is not None:
            continue
        name = one.native_id
        first = one.sources[0].path
        if claimed.get((one.provider, name), first) != first:
            place = os.path.relpath(first, one.root).replace(os.sep, "/")
            name += _COPY + hashlib.sha256(os.fsencode(place)).hexdigest()[:8]
        claimed[one.provider, name] = first
        named[index] = _renamed(one, name)
    return [one for one in named if one is not None]


def _renamed(conversation: Conversation, name: str) -> Conversation:
    return (
        conversation
        if conversation.native_id == name
        else msgspec.structs.replace(conversation, native_id=name)
    )


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
        cursors={s.path: cursors[s.path] for s in conversation.sources if s.path in cursors},
        landed=landed.hex() if landed is not None else None,
        round=entry.round if entry is not None else 0,
        through_seq=entry.through_seq if entry is not None else 0,
        flow=flow.hex() if flow is not None else None,
        assembled=reached,
    )


def _behind(task: Task) -> bool:
    """Whether an earlier import landed something and died before it was assembled."""
    return task.conversation.provider in ASSEMBLED and task.assembled < task.through_seq


def _is_changed(path: str, cursor: Cursor | None, keep: bool) -> bool:
    if cursor is None or cursor.rules != RULES or (keep and not cursor.content):
        return True
    if cursor.parser != provider_module(cursor.provider).PARSER:
        return True
    try:
        return not is_same_file(cursor, os.stat(path))
    except OSError:
        return True
