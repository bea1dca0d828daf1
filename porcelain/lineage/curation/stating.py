"""What people state by command: facts of their own, each of which can be taken back.

Every function here returns facts that are not revised; ``learn`` writes those that are news. The id of a curated fact
follows from what it says and who says it, so that the same words with ``withdraw`` take it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from objstore.errors import UsageError
from objstore.store import Store
from porcelain.lineage.derived.lineage import Lineage
from porcelain.lineage.facts.identity import evidence_id
from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.facts.making import fact, news, withdrawn
from porcelain.lineage.facts.store import KnownFacts, append_facts, facts_head
from porcelain.lineage.relations.decision import meaning
from porcelain.lineage.relations.nodes import Node
from porcelain.lineage.tables.columns import ALIAS_TYPES, CONFLICT, FILE_EVIDENCE, MARK_TYPES

#: Who states what is stated by command, unless told otherwise.
CURATOR = "manual-curation"
#: Types of edges that a person's word for a relation makes where nothing else connects two files.
EDGE_OF = {"continuation": "continuation", "fork": "fork", "context_jump": "context_jump"}

#: Modes of claims that nobody has stated.
FOUND = frozenset({"native", "order", "records", "retold"})


def learn(store: Store, facts: Iterable[Fact], *, keep_withdrawn: bool = False) -> list[Fact]:
    """Write those of ``facts`` that are news, in one round, and return them. With ``keep_withdrawn`` what a person has
    taken back stays so, for facts that are read from a file again and again."""
    with store.snapshot() as view:
        known = KnownFacts(view)
        new = news((one for one in facts if _counts(one, known.get(one.id), keep_withdrawn)), known)
        head = facts_head(view, store)
    if new:
        batch = store.batch()
        append_facts(batch, store, head, new)
        store.commit(batch)
    return new


def _counts(one: Fact, held: Fact | None, keep_withdrawn: bool) -> bool:
    """Whether ``one`` may take the place of ``held``: not where that was taken back by a person, nor where ``one`` is a
    project that is only referred to."""
    if held is None:
        return True
    if held.tombstone is True:
        return not keep_withdrawn
    return one.kind != "repo_identity" or one.confidence != "low"


def withdraw(store: Store, facts: Iterable[Fact]) -> list[Fact]:
    """Take facts back, and return those that were there."""
    with store.snapshot() as view:
        known = KnownFacts(view)
        held = [known.get(one.id) for one in facts]
    return learn(store, [withdrawn(one) for one in held if one is not None and one.tombstone is not True])


def label(target: tuple[str, str], label_type: str, value: str, when: str, curator: str = CURATOR) -> Fact:
    """A name; an empty value clears the one that holds."""
    columns = {
        "target_type": target[0],
        "target_id": target[1],
        "label_type": label_type,
        "value": value,
        "valid_from": when,
    }
    return fact("label", columns, provenance=curator, confidence="manual")


def alias(
    alias_type: str, from_value: str, to_value: str, notes: str | None = None, curator: str = CURATOR
) -> Fact:
    """That two names or paths mean the same thing, one after the other."""
    if alias_type not in ALIAS_TYPES:
        raise UsageError(f"{alias_type}: not one of {' '.join(ALIAS_TYPES)}")
    columns = {"alias_type": alias_type, "from_value": from_value, "to_value": to_value, "notes": notes}
    return fact("alias", columns, provenance=curator, confidence="manual")


def mark(
    node: Node,
    mark_type: str,
    when: str,
    *,
    text: str | None = None,
    reason: str | None = None,
    replacement: Node | None = None,
    curator: str = CURATOR,
) -> Fact:
    """A retention mark on one file."""
    if mark_type not in MARK_TYPES:
        raise UsageError(f"{mark_type}: not one of {' '.join(MARK_TYPES)}")
    columns = {
        "observation_id": node.id,
        "mark_type": mark_type,
        "label": text,
        "reason": reason,
        "replacement_observation_id": replacement and replacement.id,
        "replacement_session_id": replacement and replacement.session,
        "timestamp": when,
        "manual_review_required": False,
    }
    return fact("mark", columns, provenance=curator, confidence="manual")


def classify(target: tuple[str, str], word: str, notes: str | None = None, curator: str = CURATOR) -> Fact:
    """A judgement about an edge, session, source or observation."""
    columns = {"target_type": target[0], "target_id": target[1], "classification": word, "notes": notes}
    return fact("classification", columns, provenance=curator, confidence="manual")


def classify_pair(
    found: Lineage, source: Node, target: Node, word: str, notes: str | None = None, curator: str = CURATOR
) -> list[Fact]:
    """A judgement about two files: about every edge between them, or an edge of its own where none is stated.

    The files are named beside the edge's id, for that changes when a file that was only named is imported. Edges that
    were only found may go when more is imported, so that a person's word for a relation does not hang on them.
    """
    if source.id == target.id:
        raise UsageError("both names mean the same file")
    relation = meaning(word)
    edges = [one for one in found.claims.all if (one.source, one.target) == (source.id, target.id)]
    stated = [one for one in edges if one.mode not in FOUND]
    metadata = {"from": source.path, "host": source.host, "to": target.path}
    if relation in EDGE_OF:
        made = edge(source, target, EDGE_OF[relation], curator=curator, notes=notes)
        if not stated or any(one.stored == made.id for one in stated):
            return [made]
    if not edges:
        raise UsageError(
            f"{word}: nothing connects the two files, so that there is nothing to judge",
            hint="a connection is made by: continuation, fork, context-jump",
        )
    facts = []
    for one in edges:
        columns = {
            "target_type": "edge",
            "target_id": one.id,
            "classification": word,
            "notes": notes,
            "metadata": metadata if one.time is None else {**metadata, "ts": one.time},
        }
        facts.append(fact("classification", columns, provenance=curator, confidence="manual"))
    return facts


def edge(
    source: Node, target: Node, edge_type: str, *, curator: str = CURATOR, notes: str | None = None
) -> Fact:
    """That one file comes from another."""
    columns = {
        "source_session_id": source.session,
        "target_session_id": target.session,
        "edge_type": edge_type,
        "source_observation_id": source.id,
        "target_observation_id": target.id,
        "metadata": {"notes": notes} if notes is not None else {},
    }
    return fact("edge", columns, provenance=curator, confidence="manual")


def conflicts_of(found: Lineage, nodes: Sequence[Node]) -> list[Fact]:
    """The evidence that these files were rewritten, for ``withdraw``."""
    wanted = {evidence_id(FILE_EVIDENCE, [node.id], {"state": CONFLICT}) for node in nodes}
    return [one for one in found.said.of("evidence") if one.id in wanted]
