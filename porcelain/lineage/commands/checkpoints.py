"""``objstore lineage checkpoints``: where agents replaced history by a summary."""

from __future__ import annotations

from collections.abc import Iterator

from objstore.snapshot import Snapshot
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer, counted, printable, say
from plumbing.interface.stores import open_store
from porcelain.flow.chain.landed import page_records
from porcelain.lineage.curation.checkpoints import checkpoint_facts
from porcelain.lineage.curation.stating import learn
from porcelain.lineage.derived.lineage import Lineage
from porcelain.lineage.derived.lookup import find_session
from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.index.opening import open_lineage
from porcelain.lineage.landed.pages import LandedPages
from porcelain.lineage.landed.strays import within
from porcelain.lineage.relations.nodes import Node
from porcelain.lineage.relations.shared_records import observed
from porcelain.providers.records import Record, page_record_ids

SUMMARY = "where agents replaced history by a summary"
USAGE = "lineage checkpoints [--record] [--json] [ID...]"
OPTIONS = (Option("--record", help="keep them as facts, so that exports have them"), JSON)
EXAMPLES = ("objstore lineage checkpoints 3f2a", "objstore lineage checkpoints --record")
ARGUMENTS = (0, None)


def run(arguments: Arguments, context: Context) -> int:
    """List the summaries in the threads of these conversations, or of all. Every record of them is looked at."""
    with open_store(context, write=arguments.record) as store:
        with open_lineage(store) as indexed:
            found = indexed.around(arguments.args) if arguments.args else indexed.everything()
            made = list(_checkpoints(indexed.view, found, arguments.args))
        new = learn(store, made) if arguments.record else []
    nodes = found.nodes.by_id
    with Writer(context.stdout) as out:
        for one in made:
            columns = one.columns
            node = nodes[columns["observation_id"]]
            if arguments.json:
                out.json({"id": one.id, "path": node.path, **columns})
            else:
                when = columns["generated_at"][:16].replace("T", " ")
                out.line(printable(f"{when}  {node.provider} {node.native_id[:13]}  {columns['summary']}"))
    if arguments.record:
        say(context, f"{counted(len(new), 'checkpoint')} recorded")
    elif not made:
        say(context, "no summary")
    return 0


def _checkpoints(view: Snapshot, found: Lineage, names: list[str]) -> Iterator[Fact]:
    pages = LandedPages(view)

    def records_of(node: Node) -> Iterator[tuple[str, Record]]:
        found = (
            one
            for page in pages.pages(observed(node))
            for one in zip(page_record_ids(page), page_records(view, page), strict=True)
        )
        yield from (one for number, one in enumerate(found) if within(node.rows, number))

    wanted = {find_session(found, name) for name in names}
    for thread in found.threads:
        if not wanted or any(node.session in wanted for node in thread.members):
            yield from checkpoint_facts(thread.members, records_of)
