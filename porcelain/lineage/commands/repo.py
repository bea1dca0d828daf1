"""``objstore lineage repo``: which folders and remotes belong to one project."""

from __future__ import annotations

import os
from typing import Any

from objstore.errors import UsageError
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer, printable, say
from plumbing.interface.stores import open_store
from porcelain.lineage.adapters.repos import RepoRecords
from porcelain.lineage.commands.curating import BY, UNDO, state
from porcelain.lineage.curation.stating import CURATOR
from porcelain.lineage.index.opening import open_lineage
from porcelain.lineage.relations.nodes import Said
from porcelain.lineage.tables.columns import REPO_EVENT_TYPES

SUMMARY = "projects, their folders and remotes"
USAGE = """lineage repo [--json]
lineage repo [--path DIR]... [--remote URL]... [--display NAME] [--by NAME] [--undo] [--json] PROJECT
lineage repo --event TYPE [--from PATH] [--to PATH] [--related PROJECT] [--by NAME] [--undo] [--json] PROJECT"""
OPTIONS = (
    Option("--path", "paths", "DIR", "a folder of the project", "text", many=True),
    Option("--remote", "remotes", "URL", "a remote of the project", "text", many=True),
    Option("--display", "display", "NAME", "how it is shown", "text"),
    Option("--event", "event", "TYPE", "what happened to it", "choice", choices=REPO_EVENT_TYPES),
    Option("--from", "from_path", "PATH", "where it was", "text"),
    Option("--to", "to_path", "PATH", "where it is", "text"),
    Option("--related", "related", "PROJECT", "the other project of an event", "text"),
    BY,
    UNDO,
    JSON,
)
EXAMPLES = ("objstore lineage repo", "objstore lineage repo --path ~/src/tidepool tidepool")
ARGUMENTS = (0, 1)


def run(arguments: Arguments, context: Context) -> int:
    """List projects, or state what belongs to one."""
    if not arguments.args:
        if arguments.event or arguments.paths or arguments.remotes or arguments.display:
            raise UsageError("lineage repo: name the project")
        return _list(arguments, context)
    records = RepoRecords(arguments.curator or CURATOR)
    name = arguments.args[0]
    for record in _records(name, arguments, context.cwd):
        records.add({"confidence": "manual", "stableName": name, **record})
    made = records.facts()
    if arguments.undo and (arguments.event or arguments.paths or arguments.remotes):
        made = [one for one in made if one.kind != "repo_identity"]
    with open_store(context, write=True) as store:
        return state(store, made, arguments, context, f"project {name}")


def _records(name: str, arguments: Arguments, cwd: str) -> list[dict[str, Any]]:
    if arguments.event:
        return [
            {
                "kind": "repo-event",
                "eventType": arguments.event,
                "fromPath": arguments.from_path,
                "toPath": arguments.to_path,
                "relatedStableName": arguments.related,
                "manualReviewRequired": False,
            }
        ]
    found: list[dict[str, Any]] = []
    if arguments.display or not (arguments.paths or arguments.remotes):
        found.append({"kind": "repo-identity", "displayName": arguments.display})
    found += [
        {"kind": "repo-observation", "path": os.path.normpath(os.path.join(cwd, path))}
        for path in arguments.paths
    ]
    return found + [{"kind": "repo-observation", "remoteUrl": url} for url in arguments.remotes]


def _list(arguments: Arguments, context: Context) -> int:
    with open_store(context) as store, open_lineage(store) as indexed:
        said = Said(indexed.facts_of("repo_identity", "repo_observation"))
    places: dict[str, list[str]] = {}
    for one in said.of("repo_observation"):
        columns = one.columns
        place: str = columns.get("path") or columns.get("remote_url") or columns.get("bucket", "")
        places.setdefault(columns["repo_identity_id"], []).append(place)
    with Writer(context.stdout) as out:
        for one in sorted(said.of("repo_identity"), key=lambda one: one.columns["stable_name"]):
            held = sorted(places.get(one.id, []))
            if arguments.json:
                out.json({"id": one.id, "name": one.columns["stable_name"], "places": held})
            else:
                out.line(printable(f"{one.columns['stable_name']}  {'  '.join(held)}".rstrip()))
    if not said.of("repo_identity"):
        say(context, "no project is known")
    return 0
