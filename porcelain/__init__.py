"""What people work with: conversations, their structure, their lineage. Importing the package declares its kinds of
objects, so that plumbing can check them; it loads nothing."""

from __future__ import annotations

from objstore.kind_modules import declare

declare("porcelain.providers.records", ("landing", "page", "record"))
declare("porcelain.flow.kinds", ("flow-node", "flow-relation", "flow-round", "flow-unresolved"))
declare("porcelain.lineage.kinds", ("fact",))
declare("porcelain.importing.keeping", ("content-kept",))
