"""Verification of flow in a store: pages against their ``.sd`` form, rounds against their ``.sf`` bytes, and both
against each other. One problem names conversation, round or page, rule, what was expected and what was found.

Of chains that were imported the files are written again as they were, where the store kept what that takes; where it
did not, only links, ranges and input digests can be checked, and the files are counted as unkept.
"""

from __future__ import annotations

from objstore.chain import entries
from objstore.errors import ObjstoreError
from objstore.snapshot import Snapshot
from objstore.store import load
from porcelain.flow.chain.folding import Fold, apply
from porcelain.flow.chain.kinds import commit_counts
from porcelain.flow.chain.landed import page_records
from porcelain.flow.chain.store import stored_rounds
from porcelain.flow.checking.report import ConversationCheck, FlowProblem
from porcelain.flow.folders.export_chain import Chain, file_entries, landed_file, round_out
from porcelain.flow.formats.sd import SdError
from porcelain.flow.formats.sd_reading import read_sd
from porcelain.flow.formats.sf import FrameCounts, Round, RoundError, input_digest
from porcelain.flow.formats.sf_reading import read_round

__all__ = ["ConversationCheck", "FlowProblem", "check_conversation"]


class _Checker:
    """The check of one conversation; ``digests`` holds the recomputed ``.sd`` digest of each landed page."""

    def __init__(self, view: Snapshot, chain: Chain) -> None:
        self._view = view
        self._chain = chain
        self.check = ConversationCheck(chain.name, chain.provider, 0, 0, 0, [])
        self._digests: dict[int, str] = {}

    def _wrong(self, place: str, rule: str, what: str, expected: str = "", found: str = "") -> None:
        problem = FlowProblem(self.check.conversation, place, rule, what, expected, found)
        self.check.problems.append(problem)

    def landing(self, head: bytes) -> None:
        """Pages: numbered without gaps, each with the digest of its ``.sd`` form."""
        imported = file_entries(self._view, self._chain, "landed")
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
                self.check.places.append(place)
                if page.seq != through:
                    self._wrong(place, "page-order", "pages are out of order", str(through), str(page.seq))
                records = page_records(self._view, page)
                self.check.pages += 1
                self.check.records += len(records)
                if not len(page.lengths) == len(records) == len(page.digests) / 12:
                    self._wrong(place, "page-rows", "rows, lengths and digests differ in number")
                    continue
                file = landed_file(self._view, page, records, imported.get(page.seq))
                self._digests[page.seq] = file.digest
                if file.digest != page.digest:
                    self._wrong(
                        place, "page-digest", "the .sd form has another digest", page.digest, file.digest
                    )
                elif file.data is None:
                    self.check.unkept += 1
                elif imported:
                    try:
                        read_sd(file.data, exact=True)
                    except SdError as error:
                        self._wrong(place, error.rule, error.message)
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
        imported = file_entries(self._view, self._chain, "flow")
        fold = Fold()
        before = ""
        for _, entry, structure in stored_rounds(self._view, head):
            place = f"round {structure.header.round}"
            problems = len(self.check.problems)
            self.check.rounds += 1
            self.check.places.append(place)
            counts = FrameCounts(len(structure.nodes), len(structure.relations), len(structure.unresolved))
            if commit_counts(entry) != counts:
                self._wrong(place, "counts", "the frames are not as many as the round says")
            try:
                round_, file = round_out(self._view, structure, imported.get(entry.round))
                header = round_.header
                if file.data is None:
                    self.check.unkept += 1
                else:
                    digest = read_round(file.data, exact=True).digest
                    if digest != entry.commit:
                        self._wrong(place, "digest", "the round has another digest", entry.commit, digest)
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
                self._landed_range(place, round_, before, problems)
            before = header.input_digest

    def _landed_range(self, place: str, round_: Round, before: str, problems: int) -> None:
        header = round_.header
        wanted = range(header.from_seq, header.through_seq + 1)
        missing = [seq for seq in wanted if seq not in self._digests]
        for seq in missing:
            self._wrong(place, "landed-file", f"landed page {seq} is missing")
        if missing or problems != len(self.check.problems):
            return
        expected = input_digest(before, [self._digests[seq] for seq in wanted])
        if expected != header.input_digest:
            self._wrong(
                place,
                "input-digest",
                "the input digest does not match the landed pages",
                expected,
                header.input_digest,
            )


def check_conversation(
    view: Snapshot,
    provider: str,
    name: str,
    landed: bytes | None,
    flow: bytes | None,
    origin: str = "",
) -> ConversationCheck:
    """Recompute every digest, link, sequence range and input digest of one conversation, as the store ``origin`` tells
    it, or as it was imported under that origin."""
    checker = _Checker(view, Chain(origin, provider, name, landed, flow))
    try:
        if landed is not None:
            checker.landing(landed)
        if flow is not None:
            checker.rounds(flow, landed=landed is not None)
    except ObjstoreError as error:
        checker.check.problems.append(FlowProblem(name, "chain", "chain", error.message))
    return checker.check
