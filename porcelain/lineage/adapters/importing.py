"""From what landing reports about a conversation to facts: pure functions, no clock, no store.

Each conversation gives its source, its session, an observation for each file, labels (titles that a person gave,
working directories) and evidence for what is wrong with a file. ``news`` then leaves what is not known yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from porcelain.lineage.adapters.reports import LINKS, ConversationReport, RunReport, SourceReport, Stated
from porcelain.lineage.facts.identity import evidence_id, observation_id
from porcelain.lineage.facts.kinds import Confidence, Fact
from porcelain.lineage.facts.making import Known, fact, news, withdrawn
from porcelain.lineage.facts.times import normal_time
from porcelain.lineage.tables.columns import CONFLICT, DAMAGE, FILE_EVIDENCE, GONE, PENDING
from porcelain.providers.redaction import redact_text

#: Characters of a label; a longer one is cut.
MAX_LABEL = 1024

_ID_CONFIDENCE: dict[str, Confidence] = {
    "record": "authoritative",
    "content": "high",
    "file-name": "medium",
    "first-record": "medium",
}


def facts_of_conversation(report: ConversationReport, host: str, known: Known) -> list[Fact]:
    """The facts that ``report`` adds to ``known``, revised, parents before what refers to them.

    ``host`` is the host's label. The caller adds what comes back to ``known`` before it goes on to the next
    conversation.
    """
    return news(_said(report, host, known), known)


def import_run(report: RunReport, known: Known) -> list[Fact]:
    """The fact of one reading of a source, as a list of none or one. To be written only by a run that learned
    something else."""
    columns = {
        "source_id": report.source,
        "started_at": normal_time(report.started_at),
        "finished_at": _time(report.finished_at),
        "tool": report.tool,
        "status": report.status,
        "stats": report.stats,
        "notes": report.notes,
    }
    return news([fact("import_run", columns, provenance=report.tool, confidence="authoritative")], known)


def source_of(report: ConversationReport, host: str) -> Fact:
    """The source (not revised) that a conversation was found in: the agent's folder on this host."""
    return _source(report.provider, report.root, host)


@lru_cache(maxsize=64)
def _source(provider: str, root: str, host: str) -> Fact:
    return fact(
        "source",
        {
            "provider": provider,
            "kind": "live_sessions",
            "uri": _text(root),
            "label": f"{provider} on {host}",
            "metadata": {"host": host},
        },
        provenance=f"{provider}-import",
        confidence="high",
    )


def _said(report: ConversationReport, host: str, known: Known) -> Iterator[Fact]:
    provenance = f"{report.provider}-import"
    source = source_of(report, host)
    native_id = _text(report.native_id)
    session = fact(
        "session",
        {
            "provider": report.provider,
            "provider_session_id": native_id,
            "metadata": {"native_id_from": report.native_id_from},
        },
        provenance=provenance,
        confidence=_ID_CONFIDENCE[report.native_id_from],
    )
    yield source
    yield session
    titles: list[Stated] = []
    for file in report.sources:
        titles += file.titles
        path = _within(source.columns["uri"], file.path)
        if file.first_record is None:
            if not file.damage_count and file.state != "gone":
                continue  # an empty file says nothing yet, and would say it under another id than later
        else:
            yield from _outgrown(source.id, path, file, known)
        observation = _observation(report, file, source.id, session.id, path, provenance, known)
        yield observation
        yield from _file_evidence(file, observation, source.id, known, provenance)
        if file.stream in (None, "main"):
            for cwd in {cwd.value: cwd for cwd in reversed(file.cwds)}.values():
                yield _label("cwd", "observation", observation.id, cwd, source.id, provenance, known)
    for title in {title.value: title for title in sorted(titles, key=_when)}.values():
        yield _label("display_name", "session", session.id, title, source.id, provenance, known)


def _observation(
    report: ConversationReport,
    file: SourceReport,
    source: str,
    session: str,
    path: str,
    provenance: str,
    known: Known,
) -> Fact:
    before = known.get(observation_id(source, path, file.first_record, file.differs))
    versions = set(file.versions)
    if before is not None:
        versions.update(before.columns["metadata"].get("versions", ()))
    links = _links(file, native_id=_text(report.native_id), before=before)
    metadata: dict[str, Any] = {
        "batch": file.batch,
        "differs": file.differs,
        "first_record": file.first_record,
        "kind": file.kind,
        "links": links or None,
        "records": file.records,
        "src": _text(file.src),
        "stream": file.stream,
        "versions": sorted(versions) or None,
    }
    if file.damage_count:
        metadata["damage"] = {"bytes": file.damage_bytes, "count": file.damage_count}
    return fact(
        "observation",
        {
            "session_id": session,
            "source_id": source,
            "path": path,
            "provider_session_id": _text(report.native_id),
            "file_birthtime": _time(file.birthtime),
            "file_mtime": _time(file.mtime),
            "file_size": file.size,
            "line_count": file.lines,
            "first_event_at": _time(file.first_time),
            "last_event_at": _time(file.last_time),
            "content_sha256": file.content_sha256,
            "metadata": {name: value for name, value in metadata.items() if value is not None},
        },
        provenance=provenance,
        confidence="high",
        revision=file.records,
    )


def _links(file: SourceReport, native_id: str, before: Fact | None) -> dict[str, list[str]]:
    """What the provider has stated about where the file comes from, by name, each list sorted."""
    stated: dict[str, list[str]] = before.columns["metadata"].get("links", {}) if before is not None else {}
    found: dict[str, list[str]] = {}
    for name in LINKS:
        values = {_text(value) for value in file.links.get(name, ()) if value} - {native_id}
        values.update(stated.get(name, ()))
        if values:
            found[name] = sorted(values)
    return found


def _outgrown(source: str, path: str, file: SourceReport, known: Known) -> Iterator[Fact]:
    """Withdraw the observation that stood for this file while it had no record, and the evidence about it."""
    early = known.get(observation_id(source, path, None, None))
    if early is None or early.tombstone is True:
        return
    yield withdrawn(early)
    for state in (GONE, DAMAGE, PENDING):
        old = known.get(evidence_id(FILE_EVIDENCE, [early.id], {"state": state}))
        if old is not None:
            yield withdrawn(old)


def _file_evidence(
    file: SourceReport, observation: Fact, source: str, known: Known, provenance: str
) -> Iterator[Fact]:
    """Evidence of each thing that is wrong with the file. Damage, a pending line and absence are withdrawn when they
    have passed; a rewrite stays until a person clears it."""
    said = {
        GONE: "the file is no longer there" if file.state == "gone" else None,
        DAMAGE: f"{file.damage_count} damaged, {file.damage_bytes} bytes set aside"
        if file.damage_count
        else None,
        PENDING: "the last line is not complete" if file.pending_bytes else None,
        CONFLICT: "rewritten: earlier records are not what stood there before"
        if file.state == "conflict"
        else None,
    }
    for state, summary in said.items():
        data = {"state": state}
        if summary is not None:
            yield fact(
                "evidence",
                {
                    "kind": FILE_EVIDENCE,
                    "source_id": source,
                    "target_type": "observation",
                    "target_id": observation.id,
                    "summary": summary,
                    "data": data,
                },
                provenance=provenance,
                confidence="high",
            )
        elif state != CONFLICT:
            old = known.get(evidence_id(FILE_EVIDENCE, [observation.id], data))
            if old is not None:
                yield withdrawn(old)


def _label(
    label_type: str,
    target_type: str,
    target: str,
    stated: Stated,
    source: str,
    provenance: str,
    known: Known,
) -> Fact:
    """A name. A title holds from the last time it was given (the latest of several wins), a folder from the first."""
    time = _time(stated.time)
    columns = {
        "target_type": target_type,
        "target_id": target,
        "label_type": label_type,
        "value": _text(stated.value)[:MAX_LABEL],
        "valid_from": time,
        "source_id": source,
    }
    label = fact("label", columns, provenance=provenance, confidence="authoritative")
    before = known.get(label.id)
    if before is None or "valid_from" not in before.columns:
        return label
    pick = max if label_type == "display_name" else min
    held: str = before.columns["valid_from"]
    return fact(
        "label",
        {**columns, "valid_from": held if time is None else pick(held, time)},
        provenance=provenance,
        confidence="authoritative",
    )


def _within(root: str, path: str) -> str:
    """``path`` as seen from ``root``, with forward slashes; as it is where it lies elsewhere."""
    text = _text(path).replace("\\", "/") if "\\" in root else _text(path)
    start = (root.replace("\\", "/") if "\\" in root else root).rstrip("/") + "/"
    return text.removeprefix(start)


def _when(stated: Stated) -> str:
    return _time(stated.time) or ""


def _time(text: str | None) -> str | None:
    return None if text is None else normal_time(text)


@lru_cache(maxsize=256)  # names and paths are said several times of each conversation
def _text(text: str) -> str:
    """``text`` as Unicode text without NUL and secrets: what stands for the bytes of a file name that is no UTF-8 is
    escaped."""
    return redact_text(text.encode("utf-8", "backslashreplace").decode().replace("\x00", "\ufffd"))
