"""Codex: ``session_meta`` lines, the thread that they name and where it comes from."""

from __future__ import annotations

from msgspec import UNSET

from porcelain.providers.codex_items import META, Line, Meta, subagent_parent
from porcelain.providers.codex_turns import Turns
from porcelain.providers.content import ContentSink
from porcelain.providers.decoding import PATH_LENGTH, line_part, text_part
from porcelain.providers.records import Record
from porcelain.providers.times import instant

#: Fields of ``session_meta`` that say where the thread stands; they go to the surroundings.
_IDENTITY = (
    "id",
    "session_id",
    "timestamp",
    "cwd",
    "runtime_workspace_roots",
    "cli_version",
    "forked_from_id",
    "forked_from_ordinal_exclusive",
    "history_base",
    "parent_thread_id",
    "subagent_history_start_ordinal",
    "git",
    "base_instructions",
    "instructions",
)


def session_record(
    payload: bytes, line: Line, turns: Turns, sink: ContentSink
) -> tuple[Record, dict[str, str]]:
    """The record of a ``session_meta``, and what holds for its row alone."""
    meta = META.decode(payload)
    more: dict[str, str] = {}
    if not turns.own:
        more = _begin(meta, line, turns)
    elif meta.id == turns.own:
        turns.resume()
    elif meta.id:
        turns.repeat(meta.id)
        more["repeats"] = meta.id
    told = meta.base_instructions.text if meta.base_instructions is not None else meta.instructions
    parts = [text_part(told, sink)] if told else []
    parts.append(line_part(payload, _IDENTITY, sink))
    return (
        Record(
            entry="session_meta",
            flags=["system_prompt"] if told else UNSET,
            parts=parts,
            time=meta.timestamp if meta.timestamp and instant(meta.timestamp) else UNSET,
        ),
        more,
    )


def _begin(meta: Meta, line: Line, turns: Turns) -> dict[str, str]:
    """Take the file's own ``session_meta``, and what it alone states, for the surroundings of this one row."""
    subagent, parent = subagent_parent(meta)
    turns.begin(meta.id or "unknown", subagent=subagent, first_own=meta.first_own, cwd=meta.cwd)
    base, git = meta.history_base, meta.git
    if base is not None:
        turns.count_by_response()
    source = str(meta.source, "utf-8").strip('"') if bytes(meta.source)[:1] == b'"' else None
    stated = {
        "version": meta.cli_version,
        "branch": git.branch if git is not None else None,
        "commit": git.commit_hash if git is not None else None,
        "repository": git.repository_url if git is not None else None,
        "forked_from": meta.forked_from_id,
        "forked_at": _text(meta.forked_from_ordinal),
        "base": base.thread_id if base is not None else None,
        "base_ordinal": _text(base.end_ordinal_exclusive) if base is not None else None,
        "base_offset": _text(base.end_byte_offset) if base is not None else None,
        "parent": parent,
        "root": meta.session_id if meta.session_id != meta.id else None,
        "first_own": _text(meta.first_own),
        "ordinal": _text(line.ordinal),
        "history_mode": meta.history_mode,
        "originator": meta.originator,
        "source": "subagent" if subagent else source,
    }
    return {key: value for key, value in stated.items() if value and len(value) <= PATH_LENGTH}


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)
