"""Invented conversations, as landing would report them, and the pages that go with them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pytest

from objstore.fold import Envelope, Fold
from porcelain.lineage.adapters.importing import facts_of_conversation
from porcelain.lineage.adapters.reports import ConversationReport, SourceReport
from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.facts.making import Stored, object_id
from porcelain.lineage.facts.projection import Projection, project
from porcelain.lineage.landed.events import ObservedFile
from porcelain.providers.records import Page, Part, Record

ROOT = "/home/ines/.claude/projects"


def digest(*parts: object) -> str:
    return hashlib.sha256("/".join(map(str, parts)).encode()).hexdigest()


class Fake:
    """Builders, handed to tests as the fixture ``fake``."""

    root = ROOT
    digest = staticmethod(digest)

    @staticmethod
    def source(name: str = "a", records: int = 3, **changes: Any) -> SourceReport:
        """A file with so many records of 100 bytes, one a line, one a minute."""
        fields: dict[str, Any] = {
            "path": f"{ROOT}/-home-ines-garden/{name}.jsonl",
            "src": f"{name}.jsonl",
            "size": 100 * records,
            "mtime": "2026-03-01T12:00:00.000Z",
            "lines": records,
            "records": records,
            "first_record": digest(name, 0) if records else None,
            "first_time": "2026-03-01T10:00:00.000Z" if records else None,
            "last_time": f"2026-03-01T10:{max(records - 1, 0):02}:00.000Z" if records else None,
        }
        return SourceReport(**{**fields, **changes})

    @staticmethod
    def conversation(native_id: str = "a", *sources: SourceReport, **changes: Any) -> ConversationReport:
        fields: dict[str, Any] = {
            "provider": "claude",
            "native_id": native_id,
            "root": ROOT,
            "sources": sources or (Fake.source(native_id),),
        }
        return ConversationReport(**{**fields, **changes})

    @staticmethod
    def learn(
        known: dict[str, Fact], *reports: ConversationReport, host: str = "garden-laptop"
    ) -> list[Fact]:
        """What the reports add to ``known``, which takes it in."""
        learned: list[Fact] = []
        for report in reports:
            new = facts_of_conversation(report, host, known)
            known.update((item.id, item) for item in new)
            learned += new
        return learned

    @staticmethod
    def join(*chains: Iterable[Fact]) -> list[Stored]:
        """The joined fold of chains of facts, without what is withdrawn."""
        fold = Fold()
        by_key: dict[bytes, Fact] = {}
        for chain in chains:
            for item in chain:
                key = bytes.fromhex(object_id(item))
                by_key[key] = item
                fold.absorb(Envelope(item.id, item.revision, item.tombstone is True), key)
        return [(key.hex(), by_key[key]) for _, key in fold.live()]

    @staticmethod
    def view(*reports: ConversationReport) -> Projection:
        return project(Fake.join(Fake.learn({}, *reports)))

    @staticmethod
    def pages(file: ObservedFile) -> Sequence[tuple[Page, Sequence[Record]]]:
        """The landed pages of a file of ``source``: two records a page; the last record of a page is glued to the one
        before it, so that it is found on the same line."""
        made = []
        name = file.src.removesuffix(".jsonl")
        for start in range(0, file.records, 2):
            rows = range(start, min(start + 2, file.records))
            records = [
                Record(
                    entry="assistant",
                    id=f"{name}-{row}",
                    role="assistant",
                    time=f"2026-03-01T11:{row:02}:00+01:00",
                    parts=[Part(k="text", bytes=9, content=digest("text", row)), Part(k="call", name="Bash")],
                )
                for row in rows
            ]
            made.append((Fake.page(file, start, [digest(name, row) for row in rows]), records))
        return made

    @staticmethod
    def page(file: ObservedFile, start: int, ids: list[str]) -> Page:
        return Page(
            adapter="claude",
            at="2026-03-01T10:00:00Z",
            conversation=file.native_id,
            dialect="claude-jsonl",
            digest=digest("page", start),
            digests="".join(name[:12] for name in ids),
            jumps=[(1, start, 100 * start + 50)] if len(ids) == 2 else msgspec.UNSET,
            kind="transcript",
            lengths=[49] * len(ids),
            offset=100 * start,
            ord=start,
            provider=file.provider,
            records="".join(ids),
            rules="1",
            seq=start // 2,
            src=file.src,
        )


@pytest.fixture(scope="session")
def fake() -> type[Fake]:
    return Fake
