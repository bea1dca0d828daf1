"""``objstore lineage inventory``: every file that a conversation was seen in."""

from __future__ import annotations

import msgspec

from plumbing.interface.options import Arguments, Context, Option
from plumbing.interface.output import terminal_width
from plumbing.interface.stores import open_store
from porcelain.lineage.index.opening import open_lineage
from porcelain.lineage.views.inventory_model import inventory_document, inventory_value, make_inventory
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

SUMMARY = "every file that a conversation was seen in"
USAGE = "lineage inventory [--provider P] [--gone] [--format FORM] [-o FILE] [--labels TYPE,...]"
OPTIONS = (
    Option("--provider", "provider", "P", "only this agent's", "text"),
    Option("--gone", help="only files that are no longer there"),
    form_option(DOCUMENT_FORMS),
    HTML,
    JSON_FORM,
    OUTPUT,
    FORCE,
    LABEL_OPTION,
)
EXAMPLES = ("objstore lineage inventory --gone", "objstore lineage inventory -o inventory.md")
ARGUMENTS = (0, 0)


def run(arguments: Arguments, context: Context) -> int:
    """Print or write the inventory."""
    form, priority = form_of(arguments, DOCUMENT_FORMS), label_priority(arguments)
    with open_store(context) as store, open_lineage(store) as indexed:
        inventory = make_inventory(indexed.projection(), priority)
    items = [
        one
        for one in inventory.items
        if (arguments.provider is None or one.provider == arguments.provider)
        and not (arguments.gone and one.present)
    ]
    inventory = msgspec.structs.replace(inventory, items=items)
    if form == "json":
        value = {"view": f"{MARK}: inventory", "fold": inventory.fold, "files": inventory_value(inventory)}
        write_view([msgspec.json.encode(value, order="sorted").decode()], arguments, context)
        return 0
    width = None if arguments.output else terminal_width(context.stdout, context.env)
    write_view(document_lines(inventory_document(inventory), form, width), arguments, context)
    return 0
