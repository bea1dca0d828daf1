"""A conversation as files that hold its text: landed files with what the store kept of its content, and the chain that
is assembled over them.

Landed files with text have other bytes, and so other digests, than our own form of them; the rounds over them are
another chain, under a policy and an adapter of their own names. What they say is the same, but for titles and labels
that a model wrote, which are content and stand there in clear.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator

import msgspec
from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import replace

from objstore.errors import CheckFailed, UsageError
from objstore.snapshot import Snapshot
from porcelain.flow.assembly import POLICY, rounds
from porcelain.flow.assembly.entries import REVISING, Landed, from_sd, revised
from porcelain.flow.chain.folding import Fold
from porcelain.flow.chain.landed import page_records, pages
from porcelain.flow.folders.export_chain import Chain, OutFile, file_entries
from porcelain.flow.folders.layout import landed_path, round_path
from porcelain.flow.formats.sd import SdFile, SdPart, SdRecord, header_of, rows_of, write_sd
from porcelain.flow.formats.sf import Round
from porcelain.flow.views.content import Get, content_bytes
from porcelain.providers.records import Page, Part, Record

#: The policy of rounds over landed files with text.
TEXT_POLICY = f"{POLICY}+text"


class TextFiles:
    """The files of a store's own telling of a conversation, with text. Landed files come first; the rounds are made of
    what they hold. ``texts`` counts the parts and labels whose content was there, ``without`` those of which it was
    not kept: they stand as hashes."""

    def __init__(self, view: Snapshot, chain: Chain) -> None:
        if chain.landed is None or file_entries(view, chain, "landed") or file_entries(view, chain, "flow"):
            raise UsageError(
                f"{chain.provider}/{chain.name}: was imported as files, and is exported as they were",
                hint="leave out --text",
            )
        self.texts = 0
        self.without = 0
        self._view = view
        self._chain = chain
        self._head = chain.landed
        self._landed: list[Landed] = []

    def check(self) -> None:
        """Raise ``CheckFailed`` where no text of the conversation is kept. Reads no content."""
        for page in pages(self._view, self._head):
            for record in page_records(self._view, page):
                for content in _contents(record):
                    if bytes.fromhex(content) in self._view:
                        return
        raise CheckFailed(
            f"{self._chain.provider}/{self._chain.name}: the store keeps no text of it",
            hint="objstore config content.keep on, then import again",
        )

    def landed(self) -> Iterator[tuple[Page, OutFile]]:
        """The landed files in order of ``seq``."""
        for page in pages(self._view, self._head):
            records = page_records(self._view, page)
            header = replace(header_of(page), adapter=_adapter(page))
            rows = [
                self._with_text(record, row)
                for record, row in zip(records, rows_of(page, records), strict=True)
            ]
            data = write_sd(header, rows)
            digest = hashlib.sha256(data).hexdigest()
            landed = from_sd(SdFile(header, rows, digest))
            self._landed.append(revised(landed) if page.dialect in REVISING else landed)
            path = landed_path(
                page.conversation, page.kind, page.stream or "", page.batch or "", page.at, page.seq
            )
            yield page, OutFile(path, data, digest, len(data))

    def rounds(self) -> Iterator[tuple[Round, OutFile]]:
        """The rounds, once all landed files were given."""
        name = self._chain.conversation
        for written in rounds(self._landed, Fold(), conversation=name, session=name, policy=TEXT_POLICY):
            header, data = written.round.header, written.data
            path = round_path(name, header.round, written.round.digest)
            yield written.round, OutFile(path, data, hashlib.sha256(data).hexdigest(), len(data))

    def _with_text(self, record: Record, row: SdRecord) -> SdRecord:
        get: Get = self._view.get
        label = row.label
        if label is UNSET and isinstance(record.label_content, str):
            label = self._text(get, record.label_content)
        if not row.parts:
            return row if label is row.label else replace(row, label=label)
        parts = [
            self._part(get, part, given) for part, given in zip(record.parts or (), row.parts, strict=True)
        ]
        return replace(row, label=label, parts=parts)

    def _part(self, get: Get, part: Part, given: SdPart) -> SdPart:
        text: str | UnsetType = given.text
        data: Raw | UnsetType = UNSET
        content, data_content = given.content, given.data_content
        if isinstance(part.content, str):
            if part.k == "media":
                data = self._bytes(get, part.content)
                content = content if data is UNSET else UNSET
            else:
                text = self._text(get, part.content)
                content = content if text is UNSET else UNSET
        if isinstance(part.data, str) and data is UNSET:
            data = self._json(get, part.data)
            data_content = data_content if data is UNSET else UNSET
        state = given.state
        if state == "hash_only" and content is UNSET and data_content is UNSET:
            state = part.state
        return replace(given, text=text, data=data, content=content, data_content=data_content, state=state)

    def _kept(self, get: Get, content: str) -> bytes | None:
        found = content_bytes(get, content)
        if found is None:
            self.without += 1
        else:
            self.texts += 1
        return found

    def _text(self, get: Get, content: str) -> str | UnsetType:
        found = self._kept(get, content)
        return UNSET if found is None else found.decode("utf-8", "replace")

    def _json(self, get: Get, content: str) -> Raw | UnsetType:
        """JSON on one line, as a file must have it; what is none stands as a string."""
        found = self._kept(get, content)
        if found is None:
            return UNSET
        try:
            msgspec.json.decode(found)
            return Raw(msgspec.json.format(found, indent=-1) if b"\n" in found else found)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return Raw(msgspec.json.encode(found.decode("utf-8", "replace")))

    def _bytes(self, get: Get, content: str) -> Raw | UnsetType:
        found = self._kept(get, content)
        return UNSET if found is None else Raw(msgspec.json.encode(base64.b64encode(found).decode("ascii")))


def _adapter(page: Page) -> str:
    """``claude-local/v1`` lands; what writes the same with text is another adapter."""
    name, slash, version = page.adapter.partition("/")
    return f"{name.removesuffix('-local')}-text{slash}{version}"


def _contents(record: Record) -> Iterator[str]:
    if isinstance(record.label_content, str):
        yield record.label_content
    for part in record.parts or ():
        for content in (part.content, part.data):
            if isinstance(content, str):
                yield content
