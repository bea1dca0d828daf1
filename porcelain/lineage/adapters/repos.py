"""Repository identities: which folders, buckets and remotes belong to one project, and what happened to it.

Identity is a matter of what was stated or observed, never of a folder's name. A session belongs to the project whose
path holds its folder: the longest path first, then the surest statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from porcelain.lineage.adapters.manifests import text, time
from porcelain.lineage.facts.identity import repo_identity_id
from porcelain.lineage.facts.kinds import Confidence, Fact
from porcelain.lineage.facts.making import fact
from porcelain.lineage.facts.statements import confidence
from porcelain.lineage.tables.columns import REPO_EVENT_TYPES

PROVENANCE = "repo-identities"
_RANK: dict[Confidence, int] = {"low": 0, "medium": 1, "high": 2, "authoritative": 3, "manual": 4}
_REMOTE = re.compile(r"(?:git@|(?:ssh|https?|git)://(?:[^@/]*@)?)([^/:]+)(?::\d+)?[/:](.+?)(?:\.git)?/?$")


class RepoRecords:
    """The records of a sidecar of repository identities, whatever their order: an identity may be referred to by its
    stable name or by the id that the sidecar gives it, before it is stated or without ever being."""

    def __init__(self, provenance: str = PROVENANCE) -> None:
        self._provenance = provenance
        self._records: list[dict[str, Any]] = []
        self._names: dict[str, str] = {}

    def add(self, record: dict[str, Any]) -> bool:
        """Take a record; False for what is none."""
        kind, name = record.get("kind"), text(record, "stableName")
        if kind == "repo-identity":
            own = text(record, "id")
            if name is not None and own is not None:
                self._names[own] = name
        elif kind == "repo-event":
            if record.get("eventType") not in REPO_EVENT_TYPES:
                return False
        elif kind != "repo-observation" or not any(
            text(record, key) for key in ("path", "bucket", "remoteUrl")
        ):
            return False
        if kind != "repo-event" and name is None and text(record, "repoIdentityId") is None:
            return False
        self._records.append(record)
        return True

    def facts(self) -> list[Fact]:
        """What the records say, identities first."""
        stated: dict[str, Fact] = {}
        found: list[Fact] = []
        for record in self._records:
            trust = confidence(record.get("confidence"))
            if record["kind"] == "repo-identity":
                made = identity(
                    self._name(record, "stableName", "repoIdentityId") or "",
                    text(record, "displayName"),
                    text(record, "description"),
                    trust,
                    provenance=self._provenance,
                )
                stated[made.id] = made
        for record in self._records:
            names = [self._name(record, "stableName", "repoIdentityId")]
            names.append(self._name(record, "relatedStableName", "relatedRepoIdentityId"))
            for name in names:
                if name is not None and repo_identity_id(name) not in stated:
                    made = identity(name, trust="low", provenance=self._provenance)
                    stated[made.id] = made
            trust = confidence(record.get("confidence"))
            if record["kind"] == "repo-observation":
                found.append(_observation(record, names[0] or "", trust, self._provenance))
            elif record["kind"] == "repo-event":
                found.append(_event(record, names[0], names[1], trust, self._provenance))
        return [*stated.values(), *found]

    def _name(self, record: dict[str, Any], name: str, other: str) -> str | None:
        named = text(record, name)
        if named is not None:
            return named
        own = text(record, other)
        return None if own is None else self._names.get(own, own)


def identity(
    stable_name: str,
    display_name: str | None = None,
    description: str | None = None,
    trust: Confidence = "manual",
    *,
    provenance: str = PROVENANCE,
) -> Fact:
    """The fact of a project."""
    columns = {"stable_name": stable_name, "display_name": display_name, "description": description}
    return fact("repo_identity", columns, provenance=provenance, confidence=trust)


def _observation(record: dict[str, Any], name: str, trust: Confidence, provenance: str) -> Fact:
    columns = {
        "repo_identity_id": repo_identity_id(name),
        "path": text(record, "path"),
        "bucket": text(record, "bucket"),
        "remote_url": normal_remote(text(record, "remoteUrl")),
        "valid_from": time(record, "validFrom"),
        "valid_to": time(record, "validTo"),
    }
    return fact("repo_observation", columns, provenance=provenance, confidence=trust)


def _event(
    record: dict[str, Any], name: str | None, related: str | None, trust: Confidence, provenance: str
) -> Fact:
    columns = {
        "event_type": record["eventType"],
        "repo_identity_id": name and repo_identity_id(name),
        "related_repo_identity_id": related and repo_identity_id(related),
        "from_path": text(record, "fromPath"),
        "to_path": text(record, "toPath"),
        "timestamp": time(record, "timestamp"),
        "summary": text(record, "summary"),
        "manual_review_required": record.get("manualReviewRequired") is not False,
    }
    return fact("repo_event", columns, provenance=provenance, confidence=trust)


def normal_remote(url: str | None) -> str | None:
    """A remote's address in one form, whatever protocol it is reached by and without who reaches it."""
    if url is None:
        return None
    found = _REMOTE.match(url.strip())
    if found is None:
        return url.strip()
    return f"https://{found.group(1).lower()}/{found.group(2).strip('/').lower()}"


def repo_of(folder: str, time_: str | None, observations: Iterable[Fact]) -> str | None:
    """The id of the project that ``folder`` belonged to at ``time_``: by the longest path that holds it, then the
    surest statement, then the id."""
    best: tuple[int, int, str] | None = None
    for one in observations:
        columns = one.columns
        path = columns.get("path", "").rstrip("/")
        if not path or not (folder == path or folder.startswith(path + "/")):
            continue
        if time_ is not None and not (
            columns.get("valid_from", "") <= time_ <= columns.get("valid_to", "9999-12-31T23:59:59.999Z")
        ):
            continue
        rank = (len(path), _RANK[one.confidence], columns["repo_identity_id"])
        if best is None or rank > best:
            best = rank
    return best[2] if best is not None else None
