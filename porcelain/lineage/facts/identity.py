"""Ids of facts: one rule for all kinds, and for each kind the parts that tell one fact from another.

An id is ``<prefix>_`` and the first 32 hex digits of the SHA-256 of the canonical JSON list of its parts. A part that
is not known stands in the list as null, so that no two lists of parts run into each other. No clock by itself, no
random value and no store's name is ever a part: two stores that import the same files give the same ids.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import msgspec

from objstore.fastcanonical import encode

#: Hex digits of an id after its prefix.
DIGITS = 32

_ENCODER = msgspec.json.Encoder()
_FACT_ID = re.compile(r"[a-z_]+_[0-9a-f]{32}", re.ASCII)


def fact_id(prefix: str, parts: Sequence[Any]) -> str:
    """The id of the fact of kind ``prefix`` that ``parts`` (JSON values, null where unknown) identify."""
    plain = all(part is None or type(part) is str for part in parts)  # of which no check is to be made
    data = _ENCODER.encode(parts) if plain else encode(list(parts))
    return f"{prefix}_{sha256(data).hexdigest()[:DIGITS]}"


def is_fact_id(text: str, prefix: str | None = None) -> bool:
    """True for the id of a fact, of kind ``prefix`` where that is given."""
    return _FACT_ID.fullmatch(text) is not None and (prefix is None or text[: -DIGITS - 1] == prefix)


def source_id(provider: str, kind: str, host: str, uri: str) -> str:
    """A place that data comes from: ``host`` is the host's label, ``uri`` a folder or file there."""
    return fact_id("source", [provider, kind, host, uri])


def import_run_id(source: str, tool: str, started_at: str) -> str:
    """One reading of one source."""
    return fact_id("import_run", [source, tool, started_at])


def session_id(provider: str, native_id: str) -> str:
    """All copies of one conversation, by the id its agent gave it."""
    return fact_id("session", [provider, native_id])


def observation_id(source: str, path: str, first_record: str | None, differs: str | None = None) -> str:
    """One file as seen in a source. ``path`` is that within the source, ``first_record`` the object id of its first
    record; after a rewrite ``differs`` is the object id of the first record that is not what stood there before."""
    return fact_id("observation", [source, path, first_record, differs])


def event_id(observation: str, offset: int, record: str) -> str:
    """One record at its place (byte offset) in one observation. All parts are plain ASCII, so the list is written
    here as it is and needs no encoder: there are a thousand times as many events as facts."""
    return "event_" + sha256(f'["{observation}",{offset},"{record}"]'.encode()).hexdigest()[:DIGITS]


def edge_id(
    edge_type: str, source_observation: str, target_observation: str, timestamp: str | None, provenance: str
) -> str:
    """What happened between two observations; ``timestamp`` is that of the event itself."""
    return fact_id("edge", [edge_type, source_observation, target_observation, timestamp, provenance])


def label_id(target: str, label_type: str, value: str, provenance: str) -> str:
    """A name of something; ``provenance`` is the curator or the rule that gave it."""
    return fact_id("label", ["label", target, label_type, value, provenance])


def alias_id(from_value: str, alias_type: str, to_value: str, provenance: str) -> str:
    """Another name or place of the same thing."""
    return fact_id("alias", ["alias", from_value, alias_type, to_value, provenance])


def classification_id(target: str, target_type: str, classification: str, provenance: str) -> str:
    """A judgement about an edge, session, source or observation."""
    return fact_id("classification", ["classification", target, target_type, classification, provenance])


def mark_id(observation: str, mark_type: str, value: str | None, provenance: str) -> str:
    """A retention mark; ``value`` is its label where it has one."""
    return fact_id("mark", ["mark", observation, mark_type, value, provenance])


def evidence_id(kind: str, targets: Sequence[str], data: dict[str, Any]) -> str:
    """A support record: what kind, about which facts, and its data."""
    return fact_id("evidence", [kind, list(targets), data])


def backup_observation_id(source: str, snapshot_label: str, path: str, presence: str) -> str:
    """What one backup says about one path."""
    return fact_id("backup_observation", [source, snapshot_label, path, presence])


def repository_id(stable_name: str | None, first_commit: str | None, path: str) -> str:
    """A repository: by its stable name, else by its first commit, else (nothing committed yet) by its path."""
    if stable_name is not None:
        return fact_id("repository", [stable_name, None, None])
    if first_commit is not None:
        return fact_id("repository", [None, first_commit, None])
    return fact_id("repository", [None, None, path])


def repo_identity_id(stable_name: str) -> str:
    """A project, whatever its folder and remote are at the time."""
    return fact_id("repo_identity", [stable_name])


def repo_observation_id(
    identity: str,
    path: str | None,
    bucket: str | None,
    remote_url: str | None,
    valid_from: str | None,
    valid_to: str | None,
) -> str:
    """A path, bucket or remote that belongs to a project over a time."""
    return fact_id("repo_observation", [identity, path, bucket, remote_url, valid_from, valid_to])


def repo_event_id(
    event_type: str,
    identity: str | None,
    related: str | None,
    from_path: str | None,
    to_path: str | None,
    timestamp: str | None,
    summary: str | None,
) -> str:
    """Something that happened to a project: a move, rename, fork ..."""
    return fact_id("repo_event", [event_type, identity, related, from_path, to_path, timestamp, summary])


def batch_operation_id(
    operation_id: str | None, operation_type: str, source_path: str, destination_path: str, timestamp: str
) -> str:
    """An operation on many sessions: by its own id, else by what it did and when."""
    if operation_id is not None:
        return fact_id("batch_operation", [operation_id])
    return fact_id("batch_operation", [operation_type, source_path, destination_path, timestamp])


def thread_id(root_session: str, root_observation: str | None = None) -> str:
    """A logical thread, by the smallest id among the member sessions at its root. Where a context jump split copies of
    one session into several threads, all but the oldest name the observation at their root too."""
    return fact_id("thread", [root_session] if root_observation is None else [root_session, root_observation])


def thread_member_id(thread: str, session: str, observation: str | None) -> str:
    """A member of a thread."""
    return fact_id("thread_member", [thread, session, observation])


def thread_edge_id(
    thread: str, source_session: str, target_session: str, relation: str, edge: str | None
) -> str:
    """A relation of two members of a thread; ``edge`` is the edge it comes from."""
    return fact_id("thread_edge", [thread, source_session, target_session, relation, edge])


def resume_target_id(thread: str) -> str:
    """Where a thread can be taken up again: one for each thread."""
    return fact_id("resume_target", [thread])


def suggestion_id(
    source_session: str | None, target_session: str | None, relation: str, suggester: str
) -> str:
    """A relation that a model or tool (``suggester``: its name and version) proposes."""
    return fact_id("suggestion", [source_session, target_session, relation, suggester])


def checkpoint_id(
    thread: str | None,
    session: str | None,
    observation: str | None,
    kind: str,
    path: str | None,
    input_hash: str | None,
) -> str:
    """A derived summary of a thread, session or observation."""
    return fact_id("checkpoint", [thread, session, observation, kind, path, input_hash])


def artifact_id(kind: str, path: str, generator: str, input_hash: str | None) -> str:
    """A generated report, graph or export."""
    return fact_id("artifact", [kind, path, generator, input_hash])


def bucket_status_id(root: str, bucket: str) -> str:
    """What became of the folder that a bucket of sessions stands for."""
    return fact_id("bucket_status", [root, bucket])
