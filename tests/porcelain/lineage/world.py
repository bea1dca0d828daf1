"""Small invented worlds of Pi sessions and what manifests and people say about them."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from porcelain.lineage.adapters.manifests import relocation
from porcelain.lineage.adapters.reports import ConversationReport, SourceReport, Stated
from porcelain.lineage.derived.view import view_of
from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.facts.making import Stored, object_id
from porcelain.lineage.facts.projection import Projection, Row
from porcelain.lineage.facts.statements import confidence, statement
from porcelain.lineage.relations.nodes import Said, read_nodes
from porcelain.lineage.relations.prefixes import Prefix
from porcelain.lineage.relations.shared_records import Comparison, Known
from tests.porcelain.lineage.conftest import Fake, digest

ROOT = "/home/ines/.pi/agent/sessions"
HOST = "garden-laptop"


class World:
    """Sessions ``A``, ``B`` ... each a file in a folder of its own, and statements about them."""

    def __init__(self) -> None:
        self.reports: dict[str, ConversationReport] = {}
        self.statements: list[Fact] = []
        self.others: list[Fact] = []
        self.compared: dict[tuple[str, str], Comparison] = {}

    @staticmethod
    def path(name: str) -> str:
        return f"{ROOT}/--home-ines-{name}--/2026-03-01T10-00-00-000Z_{name}.jsonl"

    def session(
        self,
        name: str,
        records: int = 30,
        native: str | None = None,
        gone: bool = False,
        provider: str = "pi",
        **changes: Any,
    ) -> World:
        minute = ord(name[0]) - 64
        fields: dict[str, Any] = {
            "path": self.path(name),
            "src": f"{name}.jsonl",
            "records": records,
            "lines": records,
            "first_record": digest(name, 0),
            "first_time": f"2026-03-01T10:{minute:02}:00.000Z",
            "last_time": f"2026-03-01T11:{minute:02}:00.000Z",
            "cwds": (Stated(value=f"/home/ines/{name}"),),
            "state": "gone" if gone else "active",
        }
        file = SourceReport(**{**fields, **changes})
        self.reports[name] = ConversationReport(
            provider=provider, native_id=native or f"id-{name}", root=ROOT, sources=(file,)
        )
        return self

    def moved(self, source: str, target: str, at: int = 0, **more: Any) -> World:
        record = {
            "ts": f"2026-03-02T12:{at:02}:00Z",
            "fromCwd": f"/home/ines/{source}",
            "toCwd": f"/home/ines/{target}",
            "sourceSession": self.path(source),
            "destinationSession": self.path(target),
            "tool": "pi-session-move",
            **more,
        }
        made = relocation(record, HOST)
        assert made is not None
        self.statements.append(made)
        return self

    def said(self, says: str, **fields: Any) -> World:
        trust = confidence(fields.get("confidence"))
        self.statements.append(statement(says, HOST, fields, "said by hand", provenance="test", trust=trust))
        return self

    def classified(self, source: str, target: str, word: str, **more: Any) -> World:
        return self.said(
            "classification", **{"from": self.path(source), "to": self.path(target), "lineage": word}, **more
        )

    def share(
        self, source: str, target: str, prefix: int, shared: int | None = None, identified: bool = True
    ) -> World:
        """The two files begin with the same ``prefix`` records."""
        ids = self.ids()
        rows = [self.reports[name].sources[0].records for name in (source, target)]
        count = prefix if shared is None else shared
        self.compared[ids[source], ids[target]] = Comparison(
            shared=count,
            run=count,
            identified=identified and count > 0,
            prefix=Prefix(shared=prefix, source=rows[0], target=rows[1]),
        )
        return self

    def ids(self) -> dict[str, str]:
        """Observation ids by name, of named files too."""
        nodes = read_nodes(Said(fact for _, fact in self.facts()))
        return {node.path.rpartition("_")[2].removesuffix(".jsonl"): node.id for node in nodes}

    def facts(self, order: random.Random | None = None) -> list[Stored]:
        """The fold; with ``order`` everything is learned in some other order."""
        reports = list(self.reports.values())
        if order is not None:
            order.shuffle(reports)
        learned = [*Fake.learn({}, *reports, host=HOST), *self.statements, *self.others]
        unique = {one.id: one for one in learned}
        stored = [(object_id(one), one) for one in unique.values()]
        if order is not None:
            order.shuffle(stored)
        return stored

    def view(self, order: random.Random | None = None) -> View:
        return View(view_of(self.facts(order), Known(self.compared)), self.ids())


class View:
    """The rows of a view, by the names of a world."""

    def __init__(self, projection: Projection, ids: dict[str, str]) -> None:
        self.projection = projection
        self.tables = projection.tables
        self._names = {name: short for short, name in ids.items()}
        assert projection.dangling == []

    def names(self, ids: Iterable[str]) -> list[str]:
        return [self._names[one] for one in ids]

    @property
    def relations(self) -> dict[str, str]:
        """What was decided of each edge, ``A>B``."""
        return {
            ">".join(self.names((row["source_observation_id"], row["target_observation_id"]))): row[
                "metadata_json"
            ]["relation"]
            for row in self.tables["edges"]
            if row["metadata_json"].get("claim") != "order"
        }

    @property
    def topology(self) -> dict[str, str]:
        return {
            ">".join(
                self.names(
                    (
                        row["metadata_json"]["source_observation_id"],
                        row["metadata_json"]["target_observation_id"],
                    )
                )
            ): row["relation"]
            for row in self.tables["thread_edges"]
        }

    @property
    def threads(self) -> list[list[str]]:
        """The members of each thread in order, threads by their first."""
        found: dict[str, list[Row]] = {}
        for row in self.tables["thread_members"]:
            found.setdefault(row["thread_id"], []).append(row)
        members = (sorted(rows, key=lambda row: row["ordinal"]) for rows in found.values())
        return sorted(self.names(row["observation_id"] for row in rows) for rows in members)

    @property
    def roles(self) -> dict[str, str]:
        return {self._names[row["observation_id"]]: row["role"] for row in self.tables["thread_members"]}

    @property
    def resume(self) -> dict[str, tuple[str, list[str]]]:
        """By the first member of each thread: status, and the active leaves or what is recoverable."""
        firsts = {
            row["thread_id"]: self._names[row["observation_id"]]
            for row in self.tables["thread_members"]
            if row["ordinal"] == 0
        }
        found = {}
        for row in self.tables["thread_resume_targets"]:
            metadata = row["metadata_json"]
            leaves = metadata["active_leaf_observation_ids"] or metadata["recoverable_observation_ids"]
            if row["status"] in ("branch-choices", "no-target"):
                assert row["recommended_observation_id"] is None
            elif row["recommended_observation_id"] is not None:
                assert row["recommended_observation_id"] in leaves
            found[firsts[row["thread_id"]]] = (row["status"], sorted(self.names(leaves)))
        return found

    @property
    def marks(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for row in self.tables["observation_marks"]:
            found.setdefault(self._names[row["observation_id"]], []).append(row["mark_type"])
        return {name: sorted(types) for name, types in sorted(found.items())}

    def mark(self, name: str, mark_type: str) -> Row:
        (row,) = [
            row
            for row in self.tables["observation_marks"]
            if (self._names[row["observation_id"]], row["mark_type"]) == (name, mark_type)
        ]
        return row
