"""``objstore session source``: what answers are taken from: files, folders and imported conversations."""

from __future__ import annotations

from objstore.errors import UsageError
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import (
    Progress,
    Writer,
    counted,
    encode,
    human_size,
    printable,
    say,
    table,
    terminal_width,
)
from plumbing.interface.stores import open_store
from porcelain.session.answering.answers import mark_stale
from porcelain.session.commands.choosing import open_or_make
from porcelain.session.documents.adding import (
    Added,
    add_conversations,
    add_sources,
    all_conversations,
    remove_sources,
)
from porcelain.session.documents.search_index import open_index, reindex
from porcelain.session.documents.sources import Source, live_sources

SUMMARY = "what answers are taken from"
USAGE = """session source add [--conversation ID]... [--all-conversations] [--json] [PATH...]
           session source list [--json]
           session source remove [--json] PATH...
           session source reindex [--json]"""
OPTIONS = (
    Option(
        "--conversation", "conversations", "ID", "add an imported conversation, by its id", "text", many=True
    ),
    Option("--all-conversations", "all_conversations", help="add every imported conversation"),
    JSON,
)
EXAMPLES = (
    "objstore session source add ~/notes",
    "objstore session source add --conversation 3f2a",
    "objstore session source list",
)
ARGUMENTS = (0, None)
#: The words that may stand first.
WORDS = {
    "add": "add files, folders and imported conversations, or look at them again",
    "list": "what there is",
    "remove": "take sources off the list",
    "reindex": "make the index for searching anew",
}


def run(arguments: Arguments, context: Context) -> int:
    """Do the action that was named first."""
    action, *words = arguments.args or [""]
    if action not in WORDS:
        what = f"{action[:40]!r} is none of" if action else "say what to do:"
        raise UsageError(
            f"session source: {what} {', '.join(WORDS)}", hint="objstore session source add PATH"
        )
    if action != "add" and (arguments.conversations or arguments.all_conversations):
        raise UsageError("session source: conversations are for add", hint="objstore session source --help")
    if action in ("list", "reindex") and words:
        raise UsageError(
            f"session source {action}: unexpected argument {words[0]!r}",
            hint="objstore session source --help",
        )
    return _ACTIONS[action](words, arguments, context)


def _add(paths: list[str], arguments: Arguments, context: Context) -> int:
    chosen = arguments.conversations or arguments.all_conversations
    if not paths and not chosen:
        raise UsageError(
            "session source add: name a file or folder", hint="objstore session source add ~/notes"
        )
    with open_or_make(context) as store:
        if chosen or any(path.endswith(".jsonl") for path in paths):
            say(
                context,
                "note: a conversation that is added becomes an ordinary document: its text is kept, "
                "and goes wherever the store goes",
            )
        total = Added()
        with Progress(context, "add") as progress:
            if paths:
                _join(total, add_sources(store, paths, on_file=lambda path: progress.advance(1, path)))
            named = list(arguments.conversations)
            if arguments.all_conversations:
                named += all_conversations(store)
            if named:
                _join(total, add_conversations(store, dict.fromkeys(named)))
        with open_index(store):
            pass  # indexed now, so that the first question need not wait
        stale = mark_stale(store) if total.changed else []
    _report(total, len(stale), arguments, context)
    return 5 if total.problems else 0


def _join(total: Added, more: Added) -> None:
    total.new += more.new
    total.changed += more.changed
    total.unchanged += more.unchanged
    total.missing += more.missing
    total.bytes += more.bytes
    total.problems += more.problems


def _report(added: Added, stale: int, arguments: Arguments, context: Context) -> None:
    with Writer(context.stdout) as out:
        if arguments.json:
            out.json(
                {
                    "bytes": added.bytes,
                    "changed": added.changed,
                    "missing": added.missing,
                    "new": added.new,
                    "problems": [
                        {"hint": one.hint, "path": one.path, "reason": one.reason} for one in added.problems
                    ],
                    "staleAnswers": stale,
                    "unchanged": added.unchanged,
                }
            )
        else:
            for title in added.new:
                out.line(f"new      {printable(title)}")
            for title in added.changed:
                out.line(f"changed  {printable(title)}")
    for one in added.problems:
        context.stderr.write(encode(f"objstore: {printable(one.path)}: {printable(one.reason)}\n"))
        if one.hint:
            context.stderr.write(encode(f"hint: {printable(one.hint)}\n"))
    counts = f"{len(added.new):,} new, {len(added.changed):,} changed, {added.unchanged:,} as before"
    say(context, f"sources: {counts}, {human_size(added.bytes)} read")
    if added.missing:
        say(context, f"{counted(added.missing, 'file')} gone from disk: still sources until removed")
    if stale:
        say(context, f"{counted(stale, 'answer')} rested on what changed, and will not be served again")


def _list(_: list[str], arguments: Arguments, context: Context) -> int:
    with open_store(context) as store, store.snapshot() as view:
        found = sorted(live_sources(view), key=lambda source: source.uri)
    with Writer(context.stdout) as out:
        if arguments.json:
            for source in found:
                out.json(_document(source))
        elif found:
            rows = [(one.title, human_size(one.document.size), one.uri) for one in found]
            width = terminal_width(context.stdout, context.env)
            for line in table(rows, ("title", "text", "from"), width=width, right=(1,)):
                out.line(line)
        else:
            say(context, "there is no source yet: objstore session source add PATH")
    return 0


def _document(source: Source) -> dict[str, object]:
    return {
        "document": source.document_id,
        "document_root": source.document.document_root,
        "id": source.id,
        "media_type": source.document.media_type,
        "size": source.document.size,
        "title": source.title,
        "uri": source.uri,
    }


def _remove(names: list[str], arguments: Arguments, context: Context) -> int:
    if not names:
        raise UsageError(
            "session source remove: name a source", hint="list them with: objstore session source list"
        )
    with open_store(context, write=True) as store:
        gone = remove_sources(store, names)
        stale = mark_stale(store, "a source was removed")
    with Writer(context.stdout) as out:
        for source in gone:
            if arguments.json:
                out.json(_document(source))
            else:
                out.line(f"removed  {printable(source.title)}")
    if stale:
        say(context, f"{counted(len(stale), 'answer')} rested on it, and will not be served again")
    return 0


def _reindex(_: list[str], arguments: Arguments, context: Context) -> int:
    with open_store(context, write=True) as store, Progress(context, "index") as progress:
        changes = reindex(store, on_document=lambda title: progress.advance(1, title))
    if arguments.json:
        with Writer(context.stdout) as out:
            out.json({"chunks": changes.chunks, "documents": changes.added})
    say(context, f"indexed {counted(changes.added, 'document')}, {counted(changes.chunks, 'passage')}")
    return 0


_ACTIONS = {"add": _add, "list": _list, "remove": _remove, "reindex": _reindex}
