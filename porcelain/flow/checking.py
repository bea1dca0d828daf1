"""Verification of flow in a store: pages against their ``.sd`` form, rounds against their ``.sf`` bytes, and both
against each other. One problem names conversation, round or page, rule, what was expected and what was found."""

from __future__ import annotations

import hashlib

from msgspec import Struct

from objstore.chain import entries
from objstore.errors import ObjstoreError
from objstore.snapshot import Snapshot
from objstore.store import load
from porcelain.flow.folding import Fold, apply
from porcelain.flow.kinds import commit_counts
from porcelain.flow.sd import sd_bytes
from porcelain.flow.sf import FrameCounts, RoundError, input_digest, read_round, write_round
from porcelain.flow.store import page_records, stored_rounds


class FlowProblem(Struct, frozen=True):
    """One thing that is wrong. ``place`` is ``round N``, ``page N`` or ``chain``."""

    conversation: str
    place: str
    rule: str
    what: str
    expected: str = ""
    found: str = ""


class ConversationCheck(Struct):
    """What was looked at in one conversation, and what is wrong with it."""

    conversation: str
    provider: str
    pages: int
    records: int
    rounds: int
    problems: list[FlowProblem]


class _Checker:
    """The check of one conversation; ``digests`` holds the recomputed ``.sd`` digest of each landed page."""

    def __init__(self, view: Snapshot, provider: str, name: str) -> None:
        self._view = view
        self.check = ConversationCheck(name, provider, 0, 0, 0, [])
        self._digests: dict[int, str] = {}

    def _wrong(self, place: str, rule: str, what: str, expected: str = "", found: str = "") -> None:
        problem = FlowProblem(self.check.conversation, place, rule, what, expected, found)
        self.check.problems.append(problem)

    def landing(self, head: bytes) -> None:
        """Pages: numbered without gaps, each with the digest of its ``.sd`` form."""
        through = 0
        for number, (_, entry) in enumerate(entries(self._view, head), 1):
            if entry.round != number:
                self._wrong(
                    "chain",
                    "landing-order",
                    "landing entries are out of order",
                    str(number),
                    str(entry.round),
                )
            for page_id in entry.pages:
                page = load(self._view, bytes.fromhex(page_id), "page")
                through += 1
                place = f"page {page.seq}"
                if page.seq != through:
                    self._wrong(place, "page-order", "pages are out of order", str(through), str(page.seq))
                records = page_records(self._view, page)
                digest = hashlib.sha256(sd_bytes(page, records)).hexdigest()
                if digest != page.digest:
                    self._wrong(place, "page-digest", "the .sd form has another digest", page.digest, digest)
                if not len(page.lengths) == len(records) == len(page.digests) // 12:
                    self._wrong(place, "page-rows", "rows, lengths and digests differ in number")
                self._digests[page.seq] = digest
                self.check.pages += 1
                self.check.records += len(records)
            if entry.through_seq != through:
                self._wrong(
                    "chain",
                    "through-seq",
                    "a landing entry reaches elsewhere",
                    str(through),
                    str(entry.through_seq),
                )

    def rounds(self, head: bytes, *, landed: bool) -> None:
        """Rounds: own digest and rules, link, sequence range, and the landed pages they claim to cover."""
        fold = Fold()
        before = ""
        for _, entry, round_ in stored_rounds(self._view, head):
            header = round_.header
            place = f"round {header.round}"
            problems = len(self.check.problems)
            self.check.rounds += 1
            data, digest = write_round(header, round_.nodes, round_.relations, round_.unresolved)
            if digest != entry.commit:
                self._wrong(place, "digest", "the round has another digest", entry.commit, digest)
            counts = FrameCounts(len(round_.nodes), len(round_.relations), len(round_.unresolved))
            if commit_counts(entry) != counts:
                self._wrong(place, "counts", "the frames are not as many as the round says")
            try:
                read_round(data, exact=True)
                if header.from_seq != fold.through_seq + 1:
                    self._wrong(
                        place,
                        "range",
                        "the round does not begin where the one before ended",
                        str(fold.through_seq + 1),
                        str(header.from_seq),
                    )
                apply(fold, round_)
            except RoundError as error:
                self._wrong(place, error.rule, error.message)
                return
            if landed:
                wanted = range(header.from_seq, header.through_seq + 1)
                missing = [seq for seq in wanted if seq not in self._digests]
                for seq in missing:
                    self._wrong(place, "landed-file", f"landed page {seq} is missing")
                if not missing and problems == len(self.check.problems):
                    expected = input_digest(before, [self._digests[seq] for seq in wanted])
                    if expected != header.input_digest:
                        self._wrong(
                            place,
                            "input-digest",
                            "the input digest does not match the landed pages",
                            expected,
                            header.input_digest,
                        )
            before = header.input_digest


def check_conversation(
    view: Snapshot, provider: str, name: str, landed: bytes | None, flow: bytes | None
) -> ConversationCheck:
    """Recompute every digest, link, sequence range and input digest of one conversation."""
    checker = _Checker(view, provider, name)
    try:
        if landed is not None:
            checker.landing(landed)
        if flow is not None:
            checker.rounds(flow, landed=landed is not None)
    except ObjstoreError as error:
        checker.check.problems.append(FlowProblem(name, "chain", "chain", error.message))
    return checker.check
