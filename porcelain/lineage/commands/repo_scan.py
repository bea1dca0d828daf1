"""``objstore lineage repo-scan``: what repositories say about when work was done, and which projects they propose."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from objstore.errors import NotFound, StorageError, UsageError
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Progress, Writer, counted, printable, say, table, terminal_width
from plumbing.interface.stores import open_store
from porcelain.lineage.adapters.git_evidence import (
    DEPTH,
    KIND,
    Repository,
    Unreadable,
    facts_of,
    find_repositories,
    proposals,
    read_repository,
    shared_beginnings,
)
from porcelain.lineage.adapters.hosts import host_label
from porcelain.lineage.adapters.sidecars import REPOS
from porcelain.lineage.curation.stating import learn
from porcelain.lineage.facts.store import KnownFacts
from porcelain.lineage.index.opening import open_lineage

SUMMARY = "when repositories were worked on, and the projects they propose"
USAGE = "lineage repo-scan [--depth N] [--subjects N] [--dry-run] [--write] [--sidecar FILE] [--json] DIR..."
OPTIONS = (
    Option("--depth", "depth", "N", f"how deep below DIR to look ({DEPTH})", "integer", default=DEPTH),
    Option(
        "--subjects", "subjects", "N", "keep the subjects of the N newest commits too", "integer", default=0
    ),
    Option("--dry-run", "dry_run", help="print only, store nothing"),
    Option("--write", help="append what is proposed to the sidecar of repository identities"),
    Option("--sidecar", "sidecar", "FILE", "that file (default: in Pi's agent folder)", "file"),
    JSON,
)
EXAMPLES = ("objstore lineage repo-scan ~/src", "objstore lineage repo-scan --write ~/src")
ARGUMENTS = (1, None)


def run(arguments: Arguments, context: Context) -> int:
    """Ask every repository below the DIRs, store what they say, and print what they propose."""
    folders = [Path(context.cwd) / name for name in arguments.args]
    for folder in folders:
        if not folder.is_dir():
            raise NotFound(f"{folder}: no such folder")
    found: list[Repository] = []
    unreadable: list[Unreadable] = []
    with Progress(context, "asking repositories") as progress:
        for path in find_repositories(folders, max(arguments.depth, 0)):
            one = read_repository(path, subjects=max(arguments.subjects, 0))
            progress.advance()
            if isinstance(one, Unreadable):
                unreadable.append(one)
            else:
                found.append(one)
    stored = 0 if arguments.dry_run else _store(found, context)
    records = proposals(found)
    written = _write(records, arguments, context) if arguments.write and not arguments.dry_run else None
    if arguments.json:
        with Writer(context.stdout) as out:
            out.json(_document(found, unreadable, records, stored, written))
        return 0
    with Writer(context.stdout) as out:
        width = terminal_width(context.stdout, context.env)
        for line in table([_cells(one) for one in found], _HEADER, width=width, right=(4,)) if found else ():
            out.line(line)
        for commit, names in shared_beginnings(found):
            out.line(printable(f"{commit[:12]} is the first commit of {', '.join(names)}"))
    for bad in unreadable:
        say(context, f"{bad.path}: {bad.reason}")
    if not found:
        say(context, "no repository found")
        return 0
    names = sum(record["kind"] == "repo-identity" for record in records)
    say(context, f"{counted(len(found), 'repository').replace('repositorys', 'repositories')}, "
        f"{counted(names, 'project')} proposed; {counted(stored, 'new fact')}")  # fmt: skip
    if written is not None:
        say(context, f"appended {counted(written[1], 'record')} to {written[0]}")
    elif not arguments.dry_run:
        say(
            context, "to make them projects: objstore lineage repo-scan --write, then lineage import-sidecars"
        )
    return 0


_HEADER = ("project", "path", "first commit", "last commit", "commits", "vcs")


def _cells(one: Repository) -> tuple[str, ...]:
    first = f"{one.first_commit[:12]} {(one.first_at or '')[:10]}" if one.first_commit else "-"
    last = f"{one.last_commit[:12]} {(one.last_at or '')[:10]}" if one.last_commit else "-"
    return (one.stable_name, one.path, first, last, f"{one.commits:,}", one.vcs)


def _store(found: Iterable[Repository], context: Context) -> int:
    with open_store(context, write=True) as store:
        with open_lineage(store) as indexed:
            host = host_label(indexed.view)
            known = KnownFacts(indexed.view)
            held = [one for one in indexed.facts_of("evidence", grouped=False) if one.columns["kind"] == KIND]
            facts = [one for repository in found for one in facts_of(repository, host, known, held)]
        return len(learn(store, facts))


def _write(records: list[dict[str, Any]], arguments: Arguments, context: Context) -> tuple[Path, int]:
    """Append the records that the sidecar does not have yet; its path, and how many there were."""
    path = _sidecar(arguments, context)
    have: set[str] = set()
    try:
        for line in path.read_bytes().splitlines() if path.exists() else ():
            try:
                have.add(_key(json.loads(line)))
            except (ValueError, AttributeError):
                continue
        new = [record for record in records if _key(record) not in have]
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab+") as file:
            if file.tell() and new:
                file.seek(-1, 2)
                if file.read(1) != b"\n":
                    file.write(b"\n")
            file.writelines(json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in new)
    except OSError as error:
        raise StorageError(f"{path}: cannot write: {error.strerror or error}") from None
    return path, len(new)


def _key(record: dict[str, Any]) -> str:
    """What tells one record from another: never when it was observed."""
    names = ("kind", "stableName", "path", "bucket", "remoteUrl", "validFrom", "validTo", "eventType")
    return json.dumps([record.get(name) for name in names])


def _sidecar(arguments: Arguments, context: Context) -> Path:
    if arguments.sidecar:
        return Path(context.cwd) / str(arguments.sidecar)
    stated = context.env.get("PI_CODING_AGENT_DIR")
    home = context.env.get("HOME") or context.env.get("USERPROFILE")
    if not stated and not home:
        raise UsageError("neither HOME nor USERPROFILE is set", hint="name the file: --sidecar FILE")
    return (Path(stated) if stated else Path(str(home)) / ".pi" / "agent") / REPOS


def _document(
    found: list[Repository],
    unreadable: list[Unreadable],
    records: list[dict[str, Any]],
    stored: int,
    written: tuple[Path, int] | None,
) -> dict[str, Any]:
    return {
        "newFacts": stored,
        "proposals": records,
        "repositories": [
            {
                "commits": one.commits,
                "firstCommit": one.first_commit or None,
                "firstCommitAt": one.first_at,
                "lastCommit": one.last_commit or None,
                "lastCommitAt": one.last_at,
                "name": one.name,
                "path": one.path,
                "remotes": one.remotes,
                "shallow": one.shallow,
                "stableName": one.stable_name,
                "subjects": [list(subject) for subject in one.subjects],
                "vcs": one.vcs,
                "windows": [[window.first, window.last, window.commits] for window in one.windows],
            }
            for one in found
        ],
        "sharedFirstCommits": [
            {"commit": commit, "projects": names} for commit, names in shared_beginnings(found)
        ],
        "unreadable": [{"path": one.path, "reason": one.reason} for one in unreadable],
        "written": {"file": str(written[0]), "records": written[1]} if written is not None else None,
    }
