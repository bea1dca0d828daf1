"""From cursors to what lineage is told about a conversation."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import PurePath

from porcelain.lineage.adapters.importing import source_of
from porcelain.lineage.adapters.reports import LINKS, ConversationReport, SourceReport, Stated
from porcelain.lineage.facts.identity import observation_id
from porcelain.lineage.facts.making import Known
from porcelain.lineage.facts.times import time_of_ns
from porcelain.providers.cursor import Cursor
from porcelain.providers.reader import Conversation


def conversation_report(
    conversation: Conversation,
    native: str,
    cursors: Mapping[str, Cursor],
    reread: Mapping[str, str],
    before: Mapping[str, Cursor],
) -> ConversationReport:
    """What is known of a conversation after landing; ``reread`` says which files were found rewritten just now, and
    ``before`` has their earlier cursors. Of one in which nothing is left the earlier observation was rewritten."""
    sources = []
    for source in conversation.sources:
        cursor = cursors.get(source.path)
        if cursor is None or cursor.state == "left-out":
            continue
        rewritten = reread.get(cursor.path) == "rewritten"
        if rewritten and not cursor.facts.records and not cursor.facts.damage_count:
            cursor = before.get(cursor.path, cursor)
        sources.append(_source(cursor, rewritten=rewritten))
    return ConversationReport(
        provider=conversation.provider, native_id=native, root=conversation.root, sources=tuple(sources)
    )


def gone_report(cursor: Cursor, native: str, root: str, host: str, known: Known) -> ConversationReport:
    """What is known of a file that is no longer there. ``root`` is the folder that was searched now; it may have been
    another one, above or below, under which the file was seen."""
    reports = [
        ConversationReport(
            provider=cursor.provider,
            native_id=native,
            root=folder,
            sources=(_source(cursor, rewritten=False),),
        )
        for folder in (root, *map(str, PurePath(cursor.path).parents))
    ]
    facts = cursor.facts
    for report in reports:
        path = report.sources[0].path.removeprefix(report.root.rstrip(os.sep) + os.sep).replace(os.sep, "/")
        seen = observation_id(source_of(report, host).id, path, facts.first_record, facts.differs)
        if known.get(seen) is not None:
            return report
    return reports[0]


def _source(cursor: Cursor, *, rewritten: bool) -> SourceReport:
    facts = cursor.facts
    return SourceReport(
        path=cursor.path,
        src=cursor.src,
        kind=cursor.kind,
        stream=cursor.stream,
        batch=cursor.batch,
        size=cursor.size,
        mtime=time_of_ns(cursor.mtime_ns) if cursor.mtime_ns else None,
        lines=facts.lines,
        records=facts.records,
        first_record=facts.first_record,
        differs=facts.differs,
        first_time=facts.first_time,
        last_time=facts.last_time,
        cwds=tuple(Stated(value=v, time=t or None) for v, t in facts.values.get("cwd", {}).items()),
        titles=tuple(Stated(value=v, time=t or None) for v, t in facts.titles),
        versions=tuple(facts.values.get("version", {})),
        links={name: tuple(facts.values[name]) for name in LINKS if name in facts.values},
        damage_count=facts.damage_count,
        damage_bytes=facts.damage_bytes,
        pending_bytes=facts.pending_bytes,
        state="gone" if cursor.state == "gone" else "conflict" if rewritten else "active",
    )
