"""What lineage learns from an import: facts about sources, conversations and the run, gathered until a commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from objstore.batch import Batch
from objstore.store import Store
from porcelain.importing.naming import native_id
from porcelain.importing.reporting import conversation_report, gone_report
from porcelain.lineage.adapters.importing import facts_of_conversation, import_run, source_of
from porcelain.lineage.adapters.reports import RunReport
from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.facts.store import KnownFacts, append_facts, facts_head
from porcelain.providers.cursor import Cursor
from porcelain.providers.reader import Conversation

TOOL = "objstore-import"


class Learning:
    """The facts of one import, and where this store's chain of them stands."""

    def __init__(self, store: Store, host: str) -> None:
        self._store = store
        self._host = host
        self._learned: dict[str, Fact] = {}
        self._facts: list[Fact] = []
        self._sources: set[str] = set()
        with store.snapshot() as view:
            self._head = facts_head(view, store)

    def __len__(self) -> int:
        """How many facts wait for a commit."""
        return len(self._facts)

    def note(
        self,
        conversation: Conversation,
        cursors: Mapping[str, Cursor],
        reread: Mapping[str, str],
        before: Mapping[str, Cursor],
    ) -> None:
        """What is known of a conversation after landing; see ``conversation_report``."""
        native = native_id(conversation.native_id)
        report = conversation_report(conversation, native, cursors, reread, before)
        self._learn(lambda known: facts_of_conversation(report, self._host, known))
        self._sources.add(source_of(report, self._host).id)

    def note_gone(self, cursor: Cursor, root: str) -> None:
        """That the file of a cursor is no longer there; ``root`` is the folder that was searched."""
        native = native_id(cursor.conversation)
        self._learn(
            lambda known: facts_of_conversation(
                gone_report(cursor, native, root, self._host, known), self._host, known
            )
        )

    def note_run(self, started: str, finished: str, stats: Mapping[str, int]) -> None:
        """That this import ran, for every source of which it learned something."""
        for source in sorted(self._sources):
            run = RunReport(
                source=source,
                started_at=started,
                finished_at=finished,
                tool=TOOL,
                status="done",
                stats=dict(stats),
            )
            self._learn(lambda known, run=run: import_run(run, known))  # type: ignore[misc]

    def _learn(self, facts: Callable[[KnownFacts], list[Fact]]) -> None:
        with self._store.snapshot() as view:
            known = KnownFacts(view, self._learned)
            news = facts(known)
            known.learn(news)
        self._facts += news

    def append(self, batch: Batch) -> int:
        """Add what waits to ``batch``, which is to be committed; how many facts that is."""
        count = len(self._facts)
        self._head = append_facts(batch, self._store, self._head, self._facts)
        self._facts, self._learned = [], {}
        return count
