"""``objstore flow import``: take in a folder of landed files and rounds that others wrote."""

from __future__ import annotations

from pathlib import Path

from objstore.errors import CheckFailed, UsageError
from plumbing.interface.options import JSON, Arguments, Context
from plumbing.interface.output import Progress, Writer, counted, printable, say
from plumbing.interface.settings import keeps_content
from plumbing.interface.stores import open_store
from porcelain.flow.checking.folder_check import check_folder
from porcelain.flow.checking.folder_scan import Folder, scan
from porcelain.flow.checking.junit import detail
from porcelain.flow.folders.import_foreign import Found, Imported, conversations_of, import_conversation
from porcelain.importing.run import import_lock

SUMMARY = "take in a folder of .sd and .sf files"
USAGE = "flow import [--json] DIR"
OPTIONS = (JSON,)
EXAMPLES = ("objstore flow import sessions",)
ARGUMENTS = (1, 1)


def run(arguments: Arguments, context: Context) -> int:
    """Check the whole folder, then store it; with a problem in it nothing is stored."""
    name = arguments.args[0]
    folder = scan(Path(name))
    if not folder.sessions and not folder.conversations:
        raise UsageError(
            f"{name}: holds no conversation in the published layout",
            hint="name the folder that holds _conversations and the sessions",
        )
    _check(folder, name, context)
    conversations = list(conversations_of(folder))
    done: list[Imported] = []
    with open_store(context, write=True) as store:
        path: str = store.database.path  # type: ignore[union-attr]
        with store.snapshot() as view:
            keep = keeps_content(view)
        with import_lock(path, context.lock_timeout), Writer(context.stdout) as out:
            for found in conversations:
                imported = import_conversation(store, found, keep=keep)
                done.append(imported)
                if arguments.json:
                    out.json(_document(imported, found))
    if not arguments.json:
        _say(done, context, name)
    return 0


def _check(folder: Folder, name: str, context: Context) -> None:
    problems = 0
    total = len(folder.sessions) + len(folder.conversations)
    with Progress(context, "check", total=total) as progress:
        for check in check_folder(Folder(folder.sessions, folder.conversations, [])):
            for problem in check.problems:
                problems += 1
                context.stderr.write(f"objstore: {printable(detail(problem))}\n".encode())
            progress.advance()
    if problems:
        raise CheckFailed(
            f"{name}: {counted(problems, 'problem')}: nothing was imported",
            hint=f"objstore flow verify --dir {name}",
        )


def _say(done: list[Imported], context: Context, name: str) -> None:
    unkept = sum(one.unkept for one in done)
    withheld = sum(one.withheld for one in done)
    say(
        context,
        f"{name}: {counted(len(done), 'conversation')}, {counted(sum(one.pages for one in done), 'new page')}, "
        f"{counted(sum(one.rounds for one in done), 'new round')}",
    )
    if unkept:
        say(
            context,
            f"the store keeps no message text: the structure of {counted(unkept, 'file')} was kept, "
            "and the bytes cannot be exported again (objstore config content.keep on)",
        )
    if withheld:
        say(
            context,
            f"{counted(withheld, 'file')} with a secret in it: the secret was replaced, "
            "and the bytes cannot be exported again",
        )


def _document(imported: Imported, found: Found) -> dict[str, object]:
    return {
        "conversation": found.name,
        "newPages": imported.pages,
        "newRounds": imported.rounds,
        "origin": imported.origin,
        "provider": imported.provider,
        "unkept": imported.unkept,
        "withheld": imported.withheld,
    }
