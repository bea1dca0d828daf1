"""What people work with: conversations, their structure, their lineage. Importing the package declares its kinds of
objects, so that plumbing can check them; it loads nothing."""

from __future__ import annotations

import porcelain.session.tree.derived_refs  # noqa: F401  (the refs of sessions)
from objstore.kind_modules import declare
from objstore.sync.arrivals import follow

declare("porcelain.providers.records", ("landing", "page", "record"))
declare("porcelain.flow.chain.kinds", ("flow-node", "flow-relation", "flow-round", "flow-unresolved"))
declare("porcelain.lineage.facts.kinds", ("fact",))
declare("porcelain.importing.keeping", ("content-kept",))
declare("porcelain.session.answering.kinds", ("answer", "answer-state"))
declare("porcelain.session.documents.kinds", ("document", "document-chunk", "source"))
declare("porcelain.session.tree.nodes", ("session-node",))
declare("porcelain.session.tree.events", ("session-event",))
declare("porcelain.flow.folders.import_kinds", ("flow-file",))
follow("lineage/", "porcelain.remotes.indexes:facts_arrived")
