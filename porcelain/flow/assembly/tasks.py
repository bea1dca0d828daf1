"""Assembly of what has landed: the tasks of an import without any source to read."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from objstore.refs import unquote
from objstore.snapshot import Snapshot
from objstore.store import load
from porcelain.flow.chain.naming import conversations, own_flow
from porcelain.importing.plan import Place, Plan
from porcelain.importing.tasks import Task
from porcelain.providers.reader import Conversation


def assembly_plan(view: Snapshot, store: str, wanted: Collection[tuple[str, str]] | None = None) -> Plan:
    """The conversations that ``store`` has landed and whose rounds do not cover all of it; only those ``wanted`` (pairs
    of provider and quoted name), if given. The sources of the tasks are empty: nothing is read but the store."""
    plan = Plan()
    places: dict[str, Place] = {}
    for task in _tasks(view, store, wanted):
        provider = task.conversation.provider
        if provider not in places:
            places[provider] = Place(provider=provider, root="")
            plan.places.append(places[provider])
            plan.cursors[provider] = {}
        places[provider].tasks.append(task)
    # Tasks are numbered in the order in which the plan lists them.
    for place in plan.places:
        place.conversations = len(place.tasks)
    return plan


def _tasks(view: Snapshot, store: str, wanted: Collection[tuple[str, str]] | None) -> Iterator[Task]:
    number = 0
    for origin, provider, name, landed in sorted(conversations(view, "landed"), key=lambda one: one[1:]):
        if origin != store or (wanted is not None and (provider, name) not in wanted):
            continue
        ref, flow = own_flow(view, store, provider, unquote(name))
        entry = load(view, landed, "landing")
        reached = load(view, flow, "flow-round").through_seq if flow is not None else 0
        if reached >= entry.through_seq:
            continue
        yield Task(
            number=number,
            conversation=Conversation(provider=provider, native_id=unquote(name), root="", sources=()),
            cursors={},
            landed=landed.hex(),
            round=entry.round,
            through_seq=entry.through_seq,
            flow=flow.hex() if flow is not None else None,
            flow_ref=ref,
            assembled=reached,
        )
        number += 1
