"""What a view document is made from: the landed files of a conversation with the text that there is, and its rounds."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Raw, Struct, UnsetType

from objstore.snapshot import Snapshot
from porcelain.flow.chain.folding import Fold, apply
from porcelain.flow.folders.export_chain import Chain, landed_out, rounds_out
from porcelain.flow.folders.import_records import sd_rows
from porcelain.flow.formats.sd import SdPart, SdRecord
from porcelain.flow.formats.sd_reading import read_sd
from porcelain.flow.formats.sf import Ref, Round, RoundError, input_digest
from porcelain.flow.formats.times import instant

#: Bytes of text that a document shows of one part.
TEXT_BYTES = 2000


class ViewFile(Struct, frozen=True):
    """One landed file: how it stands in a folder, and its rows."""

    path: str
    kind: str
    seq: int
    stream: str | None
    run: str | None
    size: int
    digest: str
    rows: list[SdRecord]


class ViewRound(Struct, frozen=True):
    """One round: how it stands in a folder, and whether bytes, links and input were checked and found right."""

    path: str
    size: int
    digest: str
    round: Round
    verified: bool


class Source(Struct):
    """A conversation up to the last round that links; ``problems`` say what is not as it should be."""

    fold: Fold
    files: dict[int, ViewFile]
    rounds: list[ViewRound]
    problems: list[str]

    def row(self, ref: Ref | UnsetType) -> SdRecord | None:
        """The record at a place; None where it is not there."""
        if not isinstance(ref, Ref):
            return None
        file = self.files.get(ref.seq)
        return file.rows[ref.row - 1] if file is not None and 0 < ref.row <= len(file.rows) else None

    def part(self, ref: Ref | UnsetType) -> SdPart | None:
        """The part at a place, the first where it names none."""
        row = self.row(ref)
        if row is None or not row.parts or not isinstance(ref, Ref):
            return None
        block = ref.block if isinstance(ref.block, int) else 0
        return row.parts[block] if block < len(row.parts) else None

    def time(self, ref: Ref | UnsetType) -> int | None:
        """When the record at a place was made, in milliseconds since 1970."""
        row = self.row(ref)
        return milliseconds(row.time) if row is not None else None


def read_source(view: Snapshot, chain: Chain, at: int | None = None) -> Source:
    """Everything that a view of ``chain`` needs, as of round ``at``."""
    files: dict[int, ViewFile] = {}
    for page, records, out in landed_out(view, chain):
        rows = (
            read_sd(out.data).records
            if out.data is not None and out.form == "whole"
            else sd_rows(page, records, view.get)
        )
        files[page.seq] = ViewFile(
            out.path,
            page.kind,
            page.seq,
            page.stream or None,
            page.batch or None,
            out.size,
            out.digest,
            rows,
        )
    source = Source(Fold(), files, [], [])
    before = ""
    for round_, out in rounds_out(view, chain):
        header = round_.header
        if at is not None and header.round > at:
            break
        try:
            apply(source.fold, round_)
        except RoundError as error:
            source.problems.append(f"round {header.round} does not fold: {error.message}")
            break
        covered = range(header.from_seq, header.through_seq + 1)
        missing = [seq for seq in covered if seq not in files]
        right = not missing and header.input_digest == input_digest(
            before, [files[seq].digest for seq in covered]
        )
        if missing:
            source.problems.append(f"round {header.round}: landed file seq {missing[0]} is missing")
        elif not right:
            source.problems.append(f"round {header.round}: the input digest does not match the landed files")
        before = header.input_digest
        source.rounds.append(
            ViewRound(out.path, out.size, out.digest, round_, right and out.data is not None)
        )
    return source


def milliseconds(time: str | UnsetType | None) -> int | None:
    """A time in milliseconds since 1970, rounded down; None for none."""
    ns = instant(time) if isinstance(time, str) else None
    return None if ns is None else ns // 1_000_000


def span(times: Iterable[int | None]) -> tuple[int | None, int | None]:
    """The first and last of some times."""
    known = [time for time in times if time is not None]
    return (min(known), max(known)) if known else (None, None)


def text_of(part: SdPart) -> str:
    """The text of a part, else its data as compact JSON, cut to ``TEXT_BYTES`` between characters; "" for none."""
    if isinstance(part.text, str) and part.text:
        text = part.text
    elif isinstance(part.data, Raw):
        text = msgspec.json.format(bytes(part.data), indent=-1).decode("utf-8")
    else:
        return ""
    data = text.encode("utf-8", "replace")
    return text if len(data) <= TEXT_BYTES else data[:TEXT_BYTES].decode("utf-8", "ignore")
