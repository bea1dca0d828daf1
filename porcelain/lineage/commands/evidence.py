"""``objstore lineage evidence``: what supports the lineage, and what contradicts it."""

from __future__ import annotations

import msgspec

from plumbing.interface.options import Arguments, Context
from plumbing.interface.output import terminal_width
from plumbing.interface.stores import open_store
from porcelain.lineage.index.opening import open_lineage
from porcelain.lineage.index.reading import only_session
from porcelain.lineage.views.evidence_report import evidence_document, evidence_value, make_evidence
from porcelain.lineage.views.options import (
    DOCUMENT_FORMS,
    FORCE,
    HTML,
    JSON_FORM,
    LABEL_OPTION,
    OUTPUT,
    document_lines,
    form_of,
    form_option,
    label_priority,
    write_view,
)
from porcelain.lineage.views.view_document import MARK

SUMMARY = "what supports the lineage, and what contradicts it"
USAGE = "lineage evidence [--format FORM] [-o FILE] [--labels TYPE,...] [CONVERSATION]"
OPTIONS = (form_option(DOCUMENT_FORMS), HTML, JSON_FORM, OUTPUT, FORCE, LABEL_OPTION)
EXAMPLES = ("objstore lineage evidence", "objstore lineage evidence 5c5fd944 --html -o evidence.html")
ARGUMENTS = (0, 1)


def run(arguments: Arguments, context: Context) -> int:
    """Print or write the evidence of everything, or of one conversation."""
    form, priority = form_of(arguments, DOCUMENT_FORMS), label_priority(arguments)
    with open_store(context) as store, open_lineage(store) as indexed:
        session = only_session(indexed, arguments.args[0]) if arguments.args else None
        evidence = make_evidence(indexed.projection(), priority, session)
    if form == "json":
        value = {"view": f"{MARK}: evidence", "fold": evidence.fold, **evidence_value(evidence)}
        write_view([msgspec.json.encode(value, order="sorted").decode()], arguments, context)
        return 0
    width = None if arguments.output else terminal_width(context.stdout, context.env)
    write_view(document_lines(evidence_document(evidence), form, width), arguments, context)
    return 0
