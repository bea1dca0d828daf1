"""``objstore flow view``: one conversation as the view document that the public tool publishes."""

from __future__ import annotations

from objstore.errors import NotFound, UsageError
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer, encode
from plumbing.interface.stores import open_store
from porcelain.flow.chain.naming import find_conversation
from porcelain.flow.commands.output import no_structure
from porcelain.flow.folders.export_chain import pick_chain
from porcelain.flow.views.document import view_document
from porcelain.flow.views.source import read_source
from porcelain.flow.views.yaml import to_yaml

SUMMARY = "one conversation as a view document"
USAGE = "flow view [--at ROUND] [--origin ORIGIN] [--json] ID"
OPTIONS = (
    Option("--at", "at", "ROUND", "as of this round", "integer"),
    Option("--origin", "origin", "ORIGIN", "the telling of this store or origin, not the longest", "text"),
    JSON,
)
EXAMPLES = ("objstore flow view 3f2a", "objstore flow view 3f2a --json")
ARGUMENTS = (1, 1)


def run(arguments: Arguments, context: Context) -> int:
    """Print it as YAML, or with ``--json`` as one line of JSON. Text is there as far as the store keeps it."""
    if arguments.at == 0:
        raise UsageError("flow view: --at counts rounds from 1", hint="objstore flow view --help")
    with open_store(context) as store, store.snapshot() as view, Writer(context.stdout) as out:
        provider, name = find_conversation(view, arguments.args[0])
        chain = pick_chain(view, provider, name, arguments.origin)
        if chain.flow is None:
            raise no_structure(provider, name)
        source = read_source(view, chain, arguments.at)
        if (arguments.at is not None and source.fold.round < arguments.at) or source.fold.header is None:
            raise NotFound(
                f"{provider}/{name}: has no round {arguments.at}: the last one is {source.fold.round}"
            )
        document = view_document(source)
        if arguments.json:
            out.json(document)
        else:
            # The public tool ends its document with an empty line.
            out.write(encode(to_yaml(document) + "\n"))
    return 0
