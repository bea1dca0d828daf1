"""The files of a conversation as the store can write them: bytes, names, and why some cannot be written."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from msgspec import UNSET, Struct

from objstore.chain import entries
from objstore.errors import CheckFailed, NotFound, UsageError
from objstore.refs import unquote
from objstore.snapshot import Snapshot
from porcelain.flow.chain.landed import page_records, pages
from porcelain.flow.chain.naming import all_chains, ranked
from porcelain.flow.chain.store import stored_rounds
from porcelain.flow.folders.import_foreign import files_ref
from porcelain.flow.folders.import_kinds import FlowFile, Form
from porcelain.flow.folders.import_records import file_of
from porcelain.flow.folders.import_rounds import round_file
from porcelain.flow.folders.layout import landed_path, round_path
from porcelain.flow.formats.sd import sd_bytes
from porcelain.flow.formats.sf import Round, write_round
from porcelain.flow.formats.sf_reading import read_round
from porcelain.flow.views.content import content_bytes
from porcelain.providers.records import Page, Record

#: Why the bytes of an imported file are not to be had.
UNKEPT = "its text was not kept"
WITHHELD = "it held a secret, which was not kept"


class Chain(Struct, frozen=True):
    """One telling of a conversation: by a store (see ``naming.origin_of``), or imported under an origin. ``name`` is
    quoted."""

    origin: str
    provider: str
    name: str
    landed: bytes | None
    flow: bytes | None

    @property
    def conversation(self) -> str:
        """The id of the conversation."""
        return unquote(self.name)


class OutFile(Struct, frozen=True):
    """One file: where it belongs below a root, its bytes (None: not to be had, for the reason ``why``), the SHA-256
    (hex) and size of what they are. ``form`` is how an imported file was kept."""

    path: str
    data: bytes | None
    digest: str
    size: int
    form: Form = "own"
    why: str = ""


def all_tellings(view: Snapshot) -> dict[tuple[str, str], list[Chain]]:
    """The tellings of every conversation by provider and quoted name, in each list first the one that views show."""
    found: dict[tuple[str, str], list[Chain]] = {}
    for (origin, provider, name), heads in sorted(all_chains(view).items()):
        chain = Chain(origin, provider, name, heads.get("landed"), heads.get("flow"))
        found.setdefault((provider, name), []).append(chain)
    return {names: _ranked(view, *names, chains) for names, chains in sorted(found.items())}


def _ranked(view: Snapshot, provider: str, name: str, chains: list[Chain]) -> list[Chain]:
    for prefix in ("flow", "landed"):
        heads = [(one.origin, key) for one in chains if (key := getattr(one, prefix)) is not None]
        if heads:
            best = ranked(view, provider, name, prefix, heads)[0]
            return sorted(chains, key=lambda one: getattr(one, prefix) != best)
    return chains


def chains_of(view: Snapshot, provider: str, name: str) -> list[Chain]:
    """All tellings of one conversation, the one that covers most first."""
    chains = [
        Chain(origin, provider, name, heads.get("landed"), heads.get("flow"))
        for (origin, *names), heads in sorted(all_chains(view).items())
        if names == [provider, name]
    ]
    return _ranked(view, provider, name, chains)


def pick_chain(view: Snapshot, provider: str, name: str, origin: str | None) -> Chain:
    """The telling of ``origin`` (or the beginning of its name), else the one that covers most. Raises ``NotFound`` and
    ``UsageError``."""
    return pick_from(chains_of(view, provider, name), provider, name, origin)


def pick_from(found: Sequence[Chain], provider: str, name: str, origin: str | None) -> Chain:
    """``pick_chain`` from the tellings of the conversation, which are known."""
    if origin is None:
        return found[0]
    near = [chain for chain in found if chain.origin == origin]
    near = near or [chain for chain in found if chain.origin.startswith(origin)]
    if not near:
        raise NotFound(
            f"{provider}/{name}: nothing of origin {origin}",
            hint="there are: " + " ".join(chain.origin for chain in found[:4]),
        )
    if len(near) > 1:
        raise UsageError(f"{origin}: begins the names of {len(near)} origins")
    return near[0]


def file_entries(view: Snapshot, chain: Chain, kind: str) -> dict[int, FlowFile]:
    """What is known of the imported files of a chain (``landed`` or ``flow``) by number; nothing for a chain of a
    store's own."""
    head = view.ref(files_ref(kind, chain.origin, chain.provider, chain.name))
    if head is None:
        return {}
    found: dict[int, FlowFile] = {}
    for key, entry in entries(view, head):
        if not isinstance(entry, FlowFile):
            raise CheckFailed(f"{key.hex()}: is not the entry of an imported file")
        found[entry.number] = entry
    return found


def landed_file(view: Snapshot, page: Page, records: list[Record], entry: FlowFile | None) -> OutFile:
    """The file of a page that holds ``records``; ``entry`` is what is known of it where it was imported."""
    if entry is None:
        data = sd_bytes(page, records)
        path = landed_path(
            page.conversation, page.kind, page.stream or "", page.batch or "", page.at, page.seq
        )
        return OutFile(path, data, hashlib.sha256(data).hexdigest(), len(data))
    if entry.form in ("own", "text", "html"):
        return _imported(entry, file_of(page, records, entry.form, view.get))
    return _imported(entry, _whole(view, entry))


def round_out(view: Snapshot, structure: Round, entry: FlowFile | None) -> tuple[Round, OutFile]:
    """The file of a round, and the round as it stands there where that can be had; ``entry`` is what is known of the
    file where it was imported."""
    if entry is None:
        data, digest = write_round(
            structure.header, structure.nodes, structure.relations, structure.unresolved
        )
        path = round_path(structure.header.conversation, structure.header.round, digest)
        return structure, OutFile(path, data, hashlib.sha256(data).hexdigest(), len(data))
    known = round_file(structure, entry.lines, view.get) if entry.form == "lines" else _whole(view, entry)
    round_ = structure if known is None or _is_structure(entry) else read_round(known)
    return round_, _imported(entry, known)


def landed_out(view: Snapshot, chain: Chain) -> Iterator[tuple[Page, list[Record], OutFile]]:
    """The landed files of a chain in order of ``seq``."""
    if chain.landed is None:
        return
    imported = file_entries(view, chain, "landed")
    for page in pages(view, chain.landed):
        records = page_records(view, page)
        yield page, records, landed_file(view, page, records, imported.get(page.seq))


def rounds_out(view: Snapshot, chain: Chain) -> Iterator[tuple[Round, OutFile]]:
    """The rounds of a chain in order, as they stand in their files where those can be had."""
    if chain.flow is None:
        return
    imported = file_entries(view, chain, "flow")
    for _, entry, structure in stored_rounds(view, chain.flow):
        yield round_out(view, structure, imported.get(entry.round))


def _is_structure(file: FlowFile) -> bool:
    """Whether the structure is all that the round's file holds."""
    return file.form == "lines" and file.lines is UNSET


def _whole(view: Snapshot, entry: FlowFile) -> bytes | None:
    return content_bytes(view.get, entry.content) if isinstance(entry.content, str) else None


def _imported(entry: FlowFile, data: bytes | None) -> OutFile:
    if data is None:
        why = WITHHELD if entry.form == "withheld" else UNKEPT
        return OutFile(entry.path, None, entry.digest, entry.bytes, entry.form, why)
    return OutFile(entry.path, data, hashlib.sha256(data).hexdigest(), len(data), entry.form)
