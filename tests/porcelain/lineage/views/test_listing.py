from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from porcelain.lineage.adapters.reports import Stated
from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.facts.making import fact
from porcelain.lineage.facts.projection import project
from porcelain.lineage.views.listing import session_rows
from tests.porcelain.importing.driving import copy_home, succeed


def test_one_row_for_each_conversation_the_latest_first(fake: Any) -> None:
    view = fake.view(
        fake.conversation("old", fake.source("old", 2)),
        fake.conversation("none", fake.source("none", 0)),
        fake.conversation(
            "new",
            fake.source("new", 5, damage_count=2, damage_bytes=30, cwds=(Stated(value="/home/ines/garden"),)),
            fake.source("new/subagents/agent-1", 1, state="gone"),
            fake.source("new/b", 3, state="conflict", differs=fake.digest("x")),
        ),
    )
    rows = session_rows(view)
    assert [row.native_id for row in rows] == ["new", "old", "none"]
    new = rows[0]
    assert (new.provider, new.label, new.label_type) == ("claude", "/home/ines/garden", "cwd")
    assert (new.records, new.first, new.last) == (9, "2026-03-01T10:00:00.000Z", "2026-03-01T10:04:00.000Z")
    assert (new.sources, new.absent, new.damage, new.damage_bytes, new.conflicts) == (3, 1, 2, 30, 1)
    assert (rows[1].label, rows[1].label_type) == ("claude on garden-laptop", "source")
    assert (rows[2].records, rows[2].first, rows[2].label) == (0, None, "none")


def label(session: str, label_type: str, value: str, **columns: Any) -> Fact:
    return fact(
        "label",
        {"target_type": "session", "target_id": session, "label_type": label_type, "value": value, **columns},
        provenance="ines",
        confidence="manual",
    )


@pytest.mark.parametrize(
    ("extra", "priority", "expected"),
    [
        ((), None, ("Beans", "display_name")),
        ((("lineage", "Kitchen garden"),), None, ("Kitchen garden", "lineage")),
        ((("display_name", "Peas"),), None, ("Peas", "display_name")),
        ((), ("cwd",), ("/home/ines/garden", "cwd")),
        ((), ("path",), ("a.jsonl", "path")),
        ((), (), ("a", "native_id")),
    ],
)
def test_the_best_name_is_shown(
    fake: Any,
    extra: tuple[tuple[str, str], ...],
    priority: tuple[str, ...] | None,
    expected: tuple[str, str],
) -> None:
    source = fake.source(
        "a",
        titles=(
            Stated(value="Weeds", time="2026-03-01T09:00:00Z"),
            Stated(value="Beans", time="2026-03-01T10:00:00Z"),
        ),
        cwds=(Stated(value="/home/ines/garden", time="2026-03-01T09:00:00Z"),),
    )
    facts = fake.learn({}, fake.conversation("a", source))
    facts += [label(facts[1].id, kind, value) for kind, value in extra]
    view = project(fake.join(facts))
    (row,) = session_rows(view) if priority is None else session_rows(view, priority)
    assert (row.label, row.label_type) == expected


def test_an_empty_title_clears_and_an_ended_one_no_longer_holds(fake: Any) -> None:
    titles = (
        Stated(value="Beans", time="2026-03-01T09:00:00Z"),
        Stated(value="", time="2026-03-01T10:00:00Z"),
    )
    facts = fake.learn({}, fake.conversation("a", fake.source("a", titles=titles)))
    ended = label(facts[1].id, "lineage", "Old", valid_to="2026-02-01T00:00:00.000Z")
    current = label(facts[1].id, "lineage", "Now")
    (row,) = session_rows(project(fake.join(facts)))
    assert row.label_type == "source"
    (row,) = session_rows(project(fake.join([*facts, ended, current])))
    assert row.label == "Now"


def test_a_few_conversations_are_the_first_of_all(tmp_path: Path) -> None:
    home, store = copy_home(tmp_path / "home"), tmp_path / "store"
    succeed(store, "import", home=home)
    succeed(store, "lineage", "import-sidecars", home=home)
    for words in ([], ["--provider", "pi"], ["--provider", "opencode"]):
        whole = succeed(store, "lineage", "sessions", "--json", *words).out.splitlines()
        assert len(whole) > 4
        for limit in (0, 1, 4, len(whole), 99):
            some = succeed(store, "lineage", "sessions", "--json", "-n", str(limit), *words)
            assert some.out.splitlines() == whole[:limit]
            said = succeed(store, "lineage", "sessions", "-n", str(limit), *words).err
            assert (f"{len(whole) - limit:,} conversation" in said) == (limit < len(whole))
