"""Storing a folder that others wrote: its landed files as pages and records, its rounds as a chain.

The chains stand under an *origin*, which is named by the chain itself: ``sf-`` and the first 16 digits of the commit
digest of round 1, or, where there is no round yet, ``sd-`` and those of the digest of the first landed file. So one
chain has one name in every store that imports it, from whatever folder, and a chain that was begun anew (another
parser or policy) has another. Everything stored is a function of the files alone, entry by entry, so that a folder
imported while it grows gives the same chains as one imported at its end.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from objstore import kinds
from objstore.batch import Batch
from objstore.chain import append_round, round_head
from objstore.core import ListOf, list_pieces
from objstore.digest import hasher
from objstore.errors import CheckFailed, Conflict
from objstore.refs import quote
from objstore.snapshot import Snapshot
from objstore.store import Store, load
from porcelain.flow.assembly import Written
from porcelain.flow.chain.naming import flow_ref, landed_ref
from porcelain.flow.chain.store import put_round
from porcelain.flow.checking.folder_scan import Folder, Group
from porcelain.flow.folders.import_kinds import FlowFile, check_path
from porcelain.flow.folders.import_records import OURS, page_of
from porcelain.flow.folders.import_rounds import kept_lines, structure_of
from porcelain.flow.folders.layout import CURSOR, SESSION_STATE, STATE, sd_name, sf_name
from porcelain.flow.formats.sd import SdHeader
from porcelain.flow.formats.sd_reading import iter_sd
from porcelain.flow.formats.sf_reading import read_round
from porcelain.importing.keeping import CONTENT_CHAIN, content_frame, content_ref
from porcelain.importing.tasks import provider_module
from porcelain.providers.agents import PROVIDERS
from porcelain.providers.content import ContentSink
from porcelain.providers.records import Landing

#: What is imported of a folder that holds rounds without any landed file.
_NO_PROVIDER = "foreign"
_OCTETS = "application/octet-stream"


def files_ref(chain: str, origin: str, provider: str, name: str) -> str:
    """The ref of the files that were imported with a chain (``landed`` or ``flow``); ``name`` is quoted."""
    return f"{chain}-files/{origin}/{provider}/{name}"


def state_key(origin: str, provider: str, name: str) -> bytes:
    """Where a store keeps, for itself, the state file of an imported conversation; ``name`` is quoted."""
    return f"flow-state/{origin}/{provider}/{name}".encode()


def notes_key(origin: str, provider: str, name: str) -> bytes:
    """Where a store keeps, for itself, what a collector noted beside the landed files of an imported conversation: the
    text of each such file by its path below the root. ``name`` is quoted."""
    return f"flow-notes/{origin}/{provider}/{name}".encode()


class Found(Struct, frozen=True):
    """One conversation of a folder: paths of its landed files in order of ``seq`` and of its rounds in order of number,
    relative to ``root``, its state file, and the notes of a collector beside its landed files."""

    root: str
    name: str
    landed: list[str]
    rounds: list[str]
    state: str | None
    notes: list[str]


class Imported(Struct, frozen=True):
    """What became of one conversation: new pages and rounds, and how many of its files cannot be written again from
    what the store keeps, because content is not kept (``unkept``) or for a secret in them (``withheld``)."""

    origin: str
    provider: str
    name: str
    pages: int
    rounds: int
    unkept: int
    withheld: int


def conversations_of(folder: Folder) -> Iterator[Found]:
    """The conversations of a folder that was found to be in order: chains with their sessions, then sessions that have
    no chain yet. Raises ``CheckFailed`` where landed files do not begin with ``seq`` 1 or leave one out."""
    sessions = {(group.root, _session_of(group)): group for group in folder.sessions}
    used: set[tuple[str, str]] = set()
    for group in folder.conversations:
        rounds = sorted(group.files, key=_round_number)
        with open(rounds[0], "rb") as file:
            header = read_round(file.read()).header
        session = sessions.get((group.root, header.session))
        used.add((group.root, header.session))
        state = os.path.join(os.path.dirname(os.path.dirname(rounds[0])), STATE)
        yield _found(group.root, header.conversation, session, rounds, state)
    for (root, name), group in sessions.items():
        if (root, name) not in used:
            yield _found(root, name, group, [], None)


def _session_of(group: Group) -> str:
    with open(group.files[0], "rb") as lines:
        header = next(iter_sd(lines))
    assert isinstance(header, SdHeader)
    return header.session


def _round_number(path: str) -> int:
    name = sf_name(os.path.basename(path))
    return name.round if name else 0


def _seq(path: str) -> int:
    name = sd_name(os.path.basename(path))
    return name.seq if name else 0


def _found(root: str, name: str, session: Group | None, rounds: list[str], state: str | None) -> Found:
    landed = sorted(session.files, key=_seq) if session else []
    for expected, path in enumerate(landed, 1):
        if _seq(path) != expected:
            raise CheckFailed(
                f"{path}: landed file {expected} is missing before it", hint="import the whole folder"
            )
    kept = state if state is not None and os.path.isfile(state) else None
    notes = sorted(_notes(os.path.join(root, session.name))) if session else []
    return Found(root, name, landed, rounds, kept, notes)


def _notes(session: str) -> Iterator[str]:
    for folder, _, names in os.walk(session):
        for name in names:
            if name == SESSION_STATE or name.endswith(CURSOR):
                yield os.path.join(folder, name)


class _Storing:
    """The objects of one conversation on their way into a batch; what the store has already is left out."""

    def __init__(self, store: Store, view: Snapshot, keep: bool) -> None:
        self.batch: Batch = store.batch()
        self.sink = ContentSink(keep=True, algorithm=store.algorithm)
        self.content: list[str] = []
        self._view = view
        self._keep = keep
        self._hash = hasher(store.algorithm)

    def id(self, data: bytes) -> str:
        return self._hash(data).hex()

    def put(self, kind: str, data: bytes) -> str:
        key = self._hash(data)
        if key not in self._view:
            self.batch.put(kind, data)
        return key.hex()

    def take_content(self, *, wanted: bool = True) -> None:
        """Store the content gathered since the last call, if the store keeps content and it is ``wanted``."""
        for kind, data in self.sink.found:
            if self._keep and wanted and self._hash(data) not in self._view:
                self.content.append(self.batch.put(kind, data))
        self.sink.found.clear()


def import_conversation(store: Store, found: Found, *, keep: bool) -> Imported:
    """Store one conversation (its files whole and checked) in one transaction.

    Raises ``Conflict`` where the store holds another history under the same origin.
    """
    provider, ours, digest = _provider(found.landed)
    if found.rounds:
        with open(found.rounds[0], "rb") as file:
            origin = "sf-" + read_round(file.read()).digest[:16]
    else:
        origin = "sd-" + digest[:16]
    with store.snapshot() as view:
        refs = (
            landed_ref(origin, provider, found.name),
            flow_ref(origin, provider, found.name),
            files_ref("landed", origin, provider, quote(found.name)),
            files_ref("flow", origin, provider, quote(found.name)),
        )
        heads = [view.ref(ref) for ref in refs]
        kept = round_head(view, content_ref(store))
        storing = _Storing(store, view, keep)
        pages = _landings(storing, found, provider)
        rounds = _rounds(storing, found, ours=ours)
        chains = (
            [one for one, _ in pages],
            [one for one, _ in rounds],
            _numbered([one for _, one in pages], storing),
            _numbered([one for _, one in rounds], storing),
        )
        new = [
            _advance(storing.batch, ref, head.hex() if head else None, chain, view)
            for ref, head, chain in zip(refs, heads, chains, strict=True)
        ]
    batch = storing.batch
    if found.state is not None and (new[1] or (heads[1] and heads[1].hex() == rounds[-1][0])):
        batch.set_local(state_key(origin, provider, quote(found.name)), Path(found.state).read_bytes())
    if found.notes and (new[0] or (heads[0] and heads[0].hex() == pages[-1][0])):
        notes = {_relative(path, found.root): Path(path).read_bytes() for path in found.notes}
        batch.set_local(notes_key(origin, provider, quote(found.name)), msgspec.msgpack.encode(notes))
    if storing.content:
        lists = [batch.put("list", kinds.encode(ListOf(items=ids))) for ids in list_pieces(storing.content)]
        frame = batch.put("content-kept", kinds.encode(content_frame(lists)))
        append_round(batch, CONTENT_CHAIN, content_ref(store), kept, [frame])
    store.commit(batch)
    forms = [entry.form for _, entry in (*pages, *rounds)]
    needs = sum(
        form != "withheld" and _needs_content(entry)
        for form, (_, entry) in zip(forms, (*pages, *rounds), strict=True)
    )
    return Imported(
        origin, provider, found.name, new[0], new[1], 0 if keep else needs, forms.count("withheld")
    )


def _needs_content(entry: FlowFile) -> bool:
    return entry.form in ("text", "html", "whole") or entry.lines is not UNSET


def _advance(batch: Batch, ref: str, head: str | None, chain: list[str], view: Snapshot) -> int:
    """Move a ref along its chain (ids, oldest first); the number of new entries. A store that has come further than
    the folder keeps what it has."""
    if not chain or head == chain[-1]:
        return 0
    if head is not None and head not in chain:
        entry = load(view, bytes.fromhex(head))
        while isinstance(entry.previous, str):
            if entry.previous == chain[-1]:
                return 0
            entry = load(view, bytes.fromhex(entry.previous))
        raise Conflict(
            f"{ref}: the folder tells another history than the one imported before",
            hint="import it into another store",
        )
    batch.move_ref(ref, chain[-1], head, "flow import")
    return len(chain) - (chain.index(head) + 1 if head else 0)


def _provider(landed: list[str]) -> tuple[str, bool, str]:
    """The provider that the dialect of the landed files belongs to, whether all were written by us, and the digest of
    the first."""
    if not landed:
        return _NO_PROVIDER, False, ""
    headers: list[SdHeader] = []
    for path in landed:
        with open(path, "rb") as lines:
            header = next(iter_sd(lines))
        assert isinstance(header, SdHeader)
        headers.append(header)
    dialects = {provider_module(name).DIALECT: name for name in PROVIDERS}
    dialect = headers[0].dialect
    provider = dialects.get(dialect) or quote(dialect.split("/")[0]) or _NO_PROVIDER
    with open(landed[0], "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return provider, all(header.adapter.startswith(OURS) for header in headers), digest


def _landings(storing: _Storing, found: Found, provider: str) -> list[tuple[str, FlowFile]]:
    """One landing entry a landed file, with the entry of the file itself."""
    chain: list[tuple[str, FlowFile]] = []
    previous: str | None = None
    for number, path in enumerate(found.landed, 1):
        data = Path(path).read_bytes()
        page, _, encoded, form = page_of(data, provider, storing.sink, storing.id)
        for one in encoded:
            storing.put("record", one)
        page_id = storing.put("page", kinds.encode(page))
        previous = storing.put(
            "landing",
            kinds.encode(
                Landing(
                    conversation=found.name,
                    pages=[page_id],
                    previous=previous or UNSET,
                    provider=provider,
                    round=number,
                    through_seq=number,
                )
            ),
        )
        storing.take_content()
        whole = storing.sink.blob(data, _OCTETS) if form == "whole" else UNSET
        storing.take_content()
        chain.append(
            (
                previous,
                FlowFile(
                    bytes=len(data),
                    content=whole,
                    digest=page.digest,
                    form=form,
                    format="sd",
                    number=number,
                    path=_relative(path, found.root),
                ),
            )
        )
    return chain


def _rounds(storing: _Storing, found: Found, *, ours: bool) -> list[tuple[str, FlowFile]]:
    """The chain of rounds, each with the entry of its file."""
    chain: list[tuple[str, FlowFile]] = []
    previous: str | None = None
    for number, path in enumerate(found.rounds, 1):
        data = Path(path).read_bytes()
        structure, secret = structure_of(data, ours=ours)
        previous = put_round(Written(structure, b""), previous, storing.put)
        form, lines = kept_lines(data, structure, storing.sink)
        if secret:
            form, lines = "withheld", UNSET
        storing.take_content(wanted=form == "lines")
        whole = storing.sink.blob(data, _OCTETS) if form == "whole" else UNSET
        storing.take_content()
        chain.append(
            (
                previous,
                FlowFile(
                    bytes=len(data),
                    content=whole,
                    digest=hashlib.sha256(data).hexdigest(),
                    form=form,
                    format="sf",
                    lines=lines,
                    number=number,
                    path=_relative(path, found.root),
                ),
            )
        )
    return chain


def _numbered(entries: list[FlowFile], storing: _Storing) -> list[str]:
    """The entries as a chain of objects; their ids."""
    chain: list[str] = []
    for entry in entries:
        check_path(entry)
        linked = replace(entry, previous=chain[-1]) if chain else entry
        chain.append(storing.put("flow-file", kinds.encode(linked)))
    return chain


def _relative(path: str, root: str) -> str:
    return os.path.relpath(path, root).replace(os.sep, "/")
