"""``objstore import``: find every agent's conversations and bring what is new into the store."""

from __future__ import annotations

import os
from pathlib import Path

from objstore.errors import NotFound, UsageError
from objstore.store import Store
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
from plumbing.interface.settings import keeps_content
from plumbing.interface.stores import open_store
from porcelain.importing.cursors import hash_key
from porcelain.importing.plan import is_text, make_plan
from porcelain.importing.run import PlaceResult, Result, import_lock, run_import, total_bytes
from porcelain.importing.tasks import Settings
from porcelain.providers.agents import PROVIDERS, TITLES

SUMMARY = "read agents' conversations into the store"
USAGE = "import [--provider P]... [--check] [--strict] [--processes N] [--json] [PATH...]"
OPTIONS = (
    Option(
        "--provider",
        "providers",
        "P",
        "only this agent's conversations",
        "choice",
        choices=tuple(PROVIDERS),
        many=True,
    ),
    Option("--check", help="compare what was imported with the files, from their beginnings"),
    Option("--strict", help="exit with 1 when anything was damaged or rewritten"),
    Option("--processes", "processes", "N", "worker processes (default: by the work there is)", "integer"),
    JSON,
)
EXAMPLES = (
    "objstore import",
    "objstore import --provider claude",
    "objstore import ~/backup/.claude",
)
ARGUMENTS = (0, None)

_WAITING = "waiting for another import into this store"
_NO_TEXT = "not imported: its path is not UTF-8, so that no object can name it"


def run(arguments: Arguments, context: Context, *, assemble: bool = True) -> int:
    """Import; 5 when something could not be read, 1 under ``--strict`` when something was set aside."""
    for text in arguments.args:
        try:
            os.stat(text)
        except (FileNotFoundError, NotADirectoryError):
            raise NotFound(f"{text}: no such file or folder") from None
    home = context.env.get("HOME") or context.env.get("USERPROFILE")
    if home is None and not arguments.args:
        raise UsageError("neither HOME nor USERPROFILE is set", hint="name the folders to import")
    path = _make_folder(context)
    with import_lock(path, context.lock_timeout, lambda: say(context, _WAITING)):
        if not os.path.exists(os.path.join(path, "data.mdb")):
            Store.init(path).close()
            say(context, f"made a store in {path}")
        with open_store(context, write=True) as store:
            result, keep = _import(store, arguments, context, home, assemble=assemble)
    for place in result.places:
        unread = (one.path for one in place.place.left_out if one.reason == "unreadable")
        result.problems += [(path, "cannot be read" if is_text(path) else _NO_TEXT) for path in unread]
    with Writer(context.stdout) as out:
        if arguments.json:
            out.json(_document(result, keep))
        else:
            _print(out, result, context, keep, assemble=assemble)
    for path, reason in result.problems:
        context.stderr.write(encode(printable(f"objstore: {path}: {reason}")) + b"\n")
    if result.problems:
        return 5
    return 1 if arguments.strict and any(place.damaged or place.conflicts for place in result.places) else 0


def _import(
    store: Store, arguments: Arguments, context: Context, home: str | None, *, assemble: bool
) -> tuple[Result, bool]:
    """What the import did, and whether content was kept."""
    with store.snapshot() as view:
        keep = keeps_content(view)
        host = (view.local(b"config/host.label") or b"").decode() or _host_name()
        plan = make_plan(
            view,
            store.store_id,
            arguments.args,
            list(dict.fromkeys(arguments.providers)) or list(PROVIDERS),
            keep=keep,
            env=context.env,
            home=Path(home) if home is not None else None,
            check=bool(arguments.check),
        )
    settings = Settings(
        path=store.database.path,  # type: ignore[union-attr]
        store=store.store_id,
        algorithm=store.algorithm,
        keep=keep,
        key=hash_key(store),
        assemble=assemble,
    )
    with Progress(context, "import", total=total_bytes(plan), size=True) as progress:
        result = run_import(
            store, plan, settings, host=host, processes=arguments.processes or 0, advance=progress.advance
        )
    return result, keep


def _make_folder(context: Context) -> str:
    """The folder of the store; the first import makes the one it needs, unless the place named looks mistyped."""
    path = context.store_path()
    parent = os.path.dirname(path)
    if context.store is not None and not os.path.isdir(parent):
        raise NotFound(f"{parent}: no such folder", hint="make the store first: objstore init DIR")
    os.makedirs(path, mode=0o700, exist_ok=True)
    return path


def _host_name() -> str:
    import platform

    return platform.node() or "localhost"


def _print(out: Writer, result: Result, context: Context, keep: bool, *, assemble: bool) -> None:
    found = [
        p for p in result.places if p.place.exists and (p.place.files or p.place.gone or p.place.left_out)
    ]
    rows = [_row(place) for place in found]
    if rows:
        header = ("agent", "where", "conversations", "files", "new", "grown", "unchanged", "records")
        for line in table(
            rows, header, width=terminal_width(context.stdout, context.env), right=(2, 3, 4, 5, 6, 7)
        ):
            out.line(line)
    else:
        out.line("no conversations found")
        for place in result.places:
            out.line(f"  looked for {TITLES[place.place.provider]} in {printable(place.place.root)}")
    for place in found:
        for line in _remarks(place):
            out.line(line)
    if result.objects:
        out.line("")
        kept = "with content" if keep else "without message text"
        out.line(
            f"{counted(result.objects, 'new object')} from {human_size(result.source_bytes)} read, {kept}"
            + (f"; {counted(result.rounds, 'round')} of structure" if result.rounds else "")
        )
    elif rows:
        out.line("nothing new")
    checked = sum(p.place.checked for p in found)
    if checked:
        differing = sum(p.conflicts for p in found)
        said = "all as they were imported" if not differing else f"{differing:,} not as they were imported"
        out.line(f"{counted(checked, 'file')} compared from the beginning: {said}")
    if rows:
        out.line("")
        shown = "objstore flow show ID" if assemble else "objstore flow assemble"
        out.line(f"next: objstore status, objstore lineage sessions, {shown}")


def _row(result: PlaceResult) -> tuple[str, ...]:
    place = result.place
    unchanged = place.conversations - result.new - result.grown
    counts = (place.conversations, place.files, result.new, result.grown, unchanged, result.records)
    return (TITLES[place.provider], place.root, *(f"{count:,}" for count in counts))


def _remarks(result: PlaceResult) -> list[str]:
    place = result.place
    said = (
        (result.damaged, "damaged place", "set aside, what is around imported"),
        (result.pending, "file", "with an incomplete last line, which is imported when it is complete"),
        (
            result.conflicts,
            "file",
            "rewritten by the agent: what it held before is kept beside what it holds now",
        ),
        (result.gone, "file", "gone from the disk: what was imported stays"),
        (
            sum(one.reason != "unreadable" for one in place.left_out) - place.elsewhere,
            "file",
            "without any conversation, left out",
        ),
    )
    return [f"{TITLES[place.provider]}: {counted(count, noun)} {what}" for count, noun, what in said if count]


def _document(result: Result, keep: bool) -> dict[str, object]:
    return {
        "contentKept": keep,
        "objects": result.objects,
        "places": [
            {
                "checked": p.place.checked,
                "conflicts": p.conflicts,
                "conversations": p.place.conversations,
                "damaged": p.damaged,
                "files": p.place.files,
                "gone": p.gone,
                "grown": p.grown,
                "leftOut": len(p.place.left_out) - p.place.elsewhere,
                "new": p.new,
                "pending": p.pending,
                "provider": p.place.provider,
                "records": p.records,
                "root": p.place.root,
            }
            for p in result.places
            if p.place.exists
        ],
        "problems": [{"path": path, "reason": reason} for path, reason in result.problems],
        "records": result.records,
        "rounds": result.rounds,
        "sourceBytes": result.source_bytes,
    }
