"""Verification of a folder of ``.sd`` and ``.sf`` files in the published layout, whoever wrote them.

Every file is read with all rules of its format, and stricter than readers must: each byte counts. Then file names are
held against what the files say, positions in the sources against each other, and each chain of rounds against the
landed files that it claims to cover. Files that are being written (``.tmp-*``) and empty round files, which reserve a
name, are never read.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO

from msgspec import Struct, field

from porcelain.flow.chain.folding import Fold, check_link
from porcelain.flow.checking.folder_files import (
    OUR_ADAPTERS,
    LandedFile,
    check_landed_bytes,
    check_landed_file,
    check_round_file,
)
from porcelain.flow.checking.folder_scan import Folder, Group
from porcelain.flow.checking.report import ConversationCheck, FlowProblem
from porcelain.flow.folders.layout import PREFIXES, component, sd_name, sf_name
from porcelain.flow.formats.errors import FormatError
from porcelain.flow.formats.sd import SdError
from porcelain.flow.formats.sf import Round, RoundError, input_digest

#: Kinds of which every file holds a whole new version of its source.
_SNAPSHOTS = frozenset({"agent_meta", "workflow_manifest", "workflow_script"})
_READ_SIZE = 1 << 20
#: Bytes up to which a file is read at once; a larger one is read line by line.
_IN_MEMORY = 32 << 20


class _Session(Struct):
    """The landed files of one session by ``seq``: the digest of each that reads, None for one that does not."""

    digests: dict[int, str | None] = field(default_factory=dict)


class _Checker:
    """The check of one folder; ``sessions`` are those of each root by the name in their headers."""

    def __init__(self) -> None:
        self.checks: list[ConversationCheck] = []
        self._sessions: dict[tuple[str, str], _Session] = {}

    def begin(self, name: str) -> None:
        self.checks.append(ConversationCheck(name, "", 0, 0, 0, []))

    def wrong(
        self,
        file: str,
        rule: str,
        what: str,
        expected: str = "",
        found: str = "",
        *,
        line: int | None = None,
        place: str = "",
    ) -> None:
        check = self.checks[-1]
        check.problems.append(
            FlowProblem(check.conversation, place, rule, what, expected, found, file=file, line=line)
        )

    # -- landed files ------------------------------------------------------------------------------------------------

    def session(self, group: Group) -> None:
        self.begin(group.name)
        found: dict[str, LandedFile | None] = {}
        names: set[str] = set()
        session = _Session()
        for path in group.files:
            self.checks[-1].places.append(path)
            name = sd_name(os.path.basename(path))
            assert name is not None
            file = found[path] = self._landed_file(path)
            if file is None:
                session.digests.setdefault(name.seq, None)
                continue
            header = file.header
            names.add(header.session)
            self._names(file, group.name)
            if header.seq in session.digests:
                self.wrong(path, "seq-repeated", f"seq {header.seq} stands in another file too")
            session.digests[header.seq] = file.digest
        for name_ in names or {group.name}:
            self._sessions[group.root, name_] = session
        self._positions(found)

    def loose(self, path: str) -> None:
        """A file that stands for itself."""
        self.begin(path)
        self.checks[-1].places.append(path)
        if path.endswith(".sf"):
            self._round(path)
        else:
            file = self._landed_file(path)
            if file is not None and file.gap is not None:
                self._gap(file)

    def _landed_file(self, path: str) -> LandedFile | None:
        try:
            with _opened(path) as lines:
                if os.fstat(lines.fileno()).st_size > _IN_MEMORY:
                    file = check_landed_file(path, lines)
                else:
                    file = check_landed_bytes(path, lines.read())
        except SdError as error:
            self._refused(path, error)
            return None
        except OSError as error:
            self.wrong(path, "unreadable", error.strerror or type(error).__name__)
            return None
        self.checks[-1].pages += 1
        self.checks[-1].records += file.rows
        return file

    def _refused(self, path: str, error: FormatError, place: str = "") -> None:
        message = error.message if error.line is None else error.message.split(": ", 1)[1]
        self.wrong(
            path, error.rule, message, error.expected or "", error.found or "", line=error.line, place=place
        )

    def _names(self, file: LandedFile, session: str) -> None:
        """What the path says against what the header says."""
        header, parts = file.header, Path(file.path).parts
        name = sd_name(parts[-1])
        assert name is not None
        prefix = PREFIXES.get(header.kind)
        stream = header.stream if parts[-3] == "streams" else None
        batch = header.batch if parts[-3] == "runs" else None
        for rule, what, expected, said in (
            ("name-seq", "the name has another seq than the header", header.seq, name.seq),
            ("name-kind", "the name is of another kind than the header", prefix, name.prefix),
            ("name-session", "the folder is of another session", header.session, session),
            ("name-stream", "the folder is of another stream", stream or None, parts[-2]),
            ("name-run", "the folder is of another run", batch or None, parts[-2]),
        ):
            if expected is None or said is None:
                continue
            if said not in (expected, component(str(expected))):
                self.wrong(file.path, rule, what, str(expected), str(said))

    def _positions(self, files: dict[str, LandedFile | None]) -> None:
        """Lines and bytes of each source follow one another; what was landed twice is no fault. Behind a file that does
        not read (None) its source may go on anywhere."""
        reached: dict[tuple[str, str, str], tuple[int, int]] = {}
        unknown: set[tuple[str, str | None]] = set()
        for path in sorted(files, key=_seq):
            file, place = files[path], _source_place(path)
            if file is None:
                unknown.add(place)
                continue
            if file.gap is not None:
                self._gap(file)
            header = file.header
            if header.kind in _SNAPSHOTS or header.adapter.startswith(OUR_ADAPTERS):
                continue
            if file.first is None or file.end is None:
                continue
            source = (header.kind, header.stream or "", header.batch or "")
            before = reached.get(source, (1, 0))
            if place in unknown:
                unknown.discard(place)
                before = file.first
            if file.first[0] > before[0]:
                self.wrong(
                    file.path,
                    "ord-gap",
                    "lines of the source are missing before it",
                    str(before[0]),
                    str(file.first[0]),
                    line=2,
                )
            elif file.first[1] > before[1] or (file.first[0] == before[0] and file.first[1] != before[1]):
                self.wrong(
                    file.path,
                    "byte-gap",
                    "bytes of the source are missing before it",
                    str(before[1]),
                    str(file.first[1]),
                    line=2,
                )
            reached[source] = max(before, file.end)
        whole = (file for file in files.values() if file is not None)
        self._cursors([file for file in whole if _source_place(file.path) not in unknown], reached)

    def _cursors(self, files: list[LandedFile], reached: dict[tuple[str, str, str], tuple[int, int]]) -> None:
        """What a collector says it has landed must be there: data is written before its cursor is."""
        seen: set[str] = set()
        for file in files:
            header = file.header
            source = (header.kind, header.stream or "", header.batch or "")
            path = os.path.join(
                os.path.dirname(file.path), PREFIXES.get(header.kind, header.kind) + ".cursor"
            )
            if path in seen or source not in reached:
                continue
            seen.add(path)
            offset = _cursor_offset(path)
            if offset is not None and offset > reached[source][1]:
                self.wrong(
                    path,
                    "end-gap",
                    "the source was read further than what landed",
                    str(reached[source][1]),
                    str(offset),
                )

    def _gap(self, file: LandedFile) -> None:
        assert file.gap is not None
        rule, line, expected, found = file.gap
        word = "lines" if rule == "ord-gap" else "bytes"
        self.wrong(file.path, rule, f"{word} of the source are missing", expected, found, line=line)

    # -- rounds ------------------------------------------------------------------------------------------------------

    def conversation(self, group: Group) -> None:
        self.begin(group.name)
        fold = Fold()
        before = ""
        seen: set[int] = set()
        numbers = [(sf_name(os.path.basename(path)), path) for path in group.files]
        for name, path in sorted(numbers, key=lambda one: (one[0].round if one[0] else 0, one[1])):
            assert name is not None
            self.checks[-1].places.append(path)
            place = f"round {name.round}"
            if name.round in seen:
                self.wrong(
                    path, "round-repeated", f"round {name.round} stands in another file too", place=place
                )
                continue
            seen.add(name.round)
            problems = len(self.checks[-1].problems)
            round_ = self._round(path, place)
            if round_ is None:
                continue
            header = round_.header
            for rule, what, expected, said in (
                (
                    "name-round",
                    "the name has another number than the header",
                    str(header.round),
                    str(name.round),
                ),
                (
                    "name-digest",
                    "the name has another digest than the commit",
                    round_.digest[:12],
                    name.digest,
                ),
            ):
                if expected != said:
                    self.wrong(path, rule, what, expected, said, place=place)
            if group.name not in (header.conversation, component(header.conversation)):
                self.wrong(
                    path,
                    "name-conversation",
                    "the folder is of another conversation",
                    header.conversation,
                    group.name,
                    place=place,
                )
            if header.round > fold.round + 1:
                self.wrong(
                    path,
                    "round-missing",
                    f"round {fold.round + 1} is missing before round {header.round}",
                    place=place,
                )
                fold, before = _jump(round_), header.input_digest
                continue
            if header.from_seq != fold.through_seq + 1:
                self.wrong(
                    path,
                    "range",
                    "the round does not begin where the one before ended",
                    str(fold.through_seq + 1),
                    str(header.from_seq),
                    place=place,
                )
            self._landed_range(path, place, group.root, round_, before, problems)
            try:
                check_link(fold, header)
            except RoundError as error:
                self._refused(path, error, place)
            fold, before = _jump(round_), header.input_digest

    def _round(self, path: str, place: str = "") -> Round | None:
        try:
            with _opened(path) as file:
                data = file.read()
            round_ = check_round_file(path, data)
        except RoundError as error:
            self._refused(path, error, place)
            return None
        except OSError as error:
            self.wrong(path, "unreadable", error.strerror or type(error).__name__, place=place)
            return None
        self.checks[-1].rounds += 1
        return round_

    def _landed_range(
        self, path: str, place: str, root: str, round_: Round, before: str, problems: int
    ) -> None:
        """The landed files that a round covers are there, and are those that it read."""
        header = round_.header
        session = self._sessions.get((root, header.session), _Session())
        wanted = range(header.from_seq, header.through_seq + 1)
        missing = [seq for seq in wanted if seq not in session.digests]
        for first, last in _runs(missing):
            what = f"landed file {first} is" if first == last else f"landed files {first} to {last} are"
            self.wrong(path, "landed-file", f"{what} missing", place=place)
        digests = [session.digests.get(seq) for seq in wanted]
        known = [digest for digest in digests if digest is not None]
        if len(known) == len(digests) and problems == len(self.checks[-1].problems):
            expected = input_digest(before, known)
            if expected != header.input_digest:
                self.wrong(
                    path,
                    "input-digest",
                    "the input digest does not match the landed files",
                    expected,
                    header.input_digest,
                    line=1,
                    place=place,
                )


def _opened(path: str) -> BinaryIO:
    """The file at ``path``, open; a pipe or the like, at which a check would wait for ever, cannot be read."""
    if not S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "not a file")
    return open(path, "rb", buffering=_READ_SIZE)


def _seq(path: str) -> int:
    name = sd_name(os.path.basename(path))
    return name.seq if name else 0


def _source_place(path: str) -> tuple[str, str | None]:
    """The folder and the beginning of the name, which the files of one source share."""
    name = sd_name(os.path.basename(path))
    return os.path.dirname(path), name.prefix if name else None


def _cursor_offset(path: str) -> int | None:
    """The offset that the cursor of an appended source states; None where there is no such file or statement."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            rows = dict(row.split(maxsplit=1) for row in file if len(row.split(maxsplit=1)) == 2)
    except OSError:
        return None
    offset = rows.get("offset", "").strip()
    return int(offset) if rows.get("kind", "").strip() == "append" and offset.isdecimal() else None


def _jump(round_: Round) -> Fold:
    """A fold that stands where a round left it, for the links of the rounds after it."""
    return Fold(round_.header.round, round_.digest, round_.header)


def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    """Ascending numbers as runs, first and last of each."""
    start = 0
    for index, number in enumerate(numbers):
        if index + 1 == len(numbers) or numbers[index + 1] != number + 1:
            yield numbers[start], number
            start = index + 1


def check_folder(folder: Folder) -> Iterator[ConversationCheck]:
    """Check everything that ``scan`` found: sessions, then conversations, then single files."""
    checker = _Checker()
    for group in folder.sessions:
        checker.session(group)
        yield checker.checks.pop()
    for group in folder.conversations:
        checker.conversation(group)
        yield checker.checks.pop()
    for path in folder.loose:
        checker.loose(path)
        yield checker.checks.pop()
