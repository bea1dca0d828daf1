"""One file of a folder, read by all rules of its format and stricter than readers must: each byte counts."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator

from msgspec import Struct

from porcelain.flow.formats.sd import SdHeader, SdRecord
from porcelain.flow.formats.sd_reading import check_sd, iter_sd
from porcelain.flow.formats.sf import Round
from porcelain.flow.formats.sf_reading import read_round
from porcelain.providers.agents import PROVIDERS

#: What adapters of ours are called. Lines of their sources may be blank, damaged, or hold several records, so that
#: positions leave gaps; they only never go back within a file.
OUR_ADAPTERS = tuple(f"{name}-{form}/" for name in PROVIDERS for form in ("local", "text"))


class LandedFile(Struct):
    """What is known of one landed file that reads: its header, the SHA-256 (hex) of the whole file, its rows, and the
    positions at which its source began and ended there."""

    path: str
    header: SdHeader
    digest: str
    rows: int
    first: tuple[int, int] | None = None
    end: tuple[int, int] | None = None
    gap: tuple[str, int, str, str] | None = None


def check_landed_file(path: str, lines: Iterable[bytes]) -> LandedFile:
    """Read one ``.sd`` file by all rules; raises ``SdError`` for the first that it breaks.

    ``gap`` of the result is the first break of its positions: rule, line, expected, found.
    """
    whole = hashlib.sha256()

    def hashed() -> Iterator[bytes]:
        for line in lines:
            whole.update(line)
            yield line

    frames = iter_sd(hashed(), exact=True)
    header = next(frames)
    assert isinstance(header, SdHeader)
    file = LandedFile(path, header, "", 0)
    _place(file, (frame for frame in frames if isinstance(frame, SdRecord)))
    file.digest = whole.hexdigest()
    return file


def check_landed_bytes(path: str, data: bytes) -> LandedFile:
    """``check_landed_file`` of a file that is in memory."""
    plain = check_sd(data)
    if plain is None:
        return check_landed_file(path, io.BytesIO(data))
    header, records, digest = plain
    file = LandedFile(path, header, digest, len(records))
    _place(file, records)
    return file


def _place(file: LandedFile, records: Iterable[SdRecord]) -> None:
    """Fill in where the source began and ended, and the first break of its positions."""
    ours = file.header.adapter.startswith(OUR_ADAPTERS)
    ord_ = off = row = 0
    for row, record in enumerate(records, 1):
        if file.first is None:
            file.first = (record.ord, record.off)
        elif file.gap is None and (record.ord < ord_ - 1 if ours else record.ord != ord_):
            file.gap = ("ord-gap", row + 1, str(ord_), str(record.ord))
        elif file.gap is None and not ours and record.off != off:
            file.gap = ("byte-gap", row + 1, str(off), str(record.off))
        ord_, off = record.ord + 1, record.off + record.bytes + 1
    file.rows = row
    file.end = (ord_, off) if row else None


def check_round_file(path: str, data: bytes) -> Round:
    """Read one ``.sf`` file by all rules; raises ``RoundError`` for the first that it breaks."""
    return read_round(data, exact=True)
