"""``objstore lineage resume``: where to take a conversation up again."""

from __future__ import annotations

import os
import shlex
from typing import Any

from plumbing.interface.options import JSON, Arguments, Context
from plumbing.interface.output import Writer, counted, printable, say
from plumbing.interface.stores import open_store
from porcelain.lineage.derived.lineage import Lineage
from porcelain.lineage.derived.rows import thread_ids
from porcelain.lineage.index.opening import open_lineage
from porcelain.lineage.index.reading import only_session
from porcelain.lineage.relations.nodes import Node
from porcelain.lineage.relations.resume import Resume
from porcelain.lineage.relations.threads import Thread

SUMMARY = "where conversations can be taken up again"
USAGE = "lineage resume [--json] [ID]"
OPTIONS = (JSON,)
EXAMPLES = ("objstore lineage resume", "objstore lineage resume 3f2a")
ARGUMENTS = (0, 1)

_SAID = {
    "deterministic": "go on with",
    "branch-choices": "several ways to go on, choose",
    "recoverable-only": "what came after is not there; go back to",
    "no-target": "no file is there any more; what was imported is in this store: objstore flow show ID",
}


def run(arguments: Arguments, context: Context) -> int:
    """The resume targets of the threads that the session is in; without ID those of all threads of several files."""
    with open_store(context) as store, open_lineage(store) as indexed:
        session = only_session(indexed, arguments.args[0]) if arguments.args else None
        found = indexed.around([session]) if session is not None else indexed.several()
    chosen = [
        (thread, target)
        for thread, target in zip(found.threads, found.resumes, strict=True)
        if (len(thread.members) > 1 if session is None else any(m.session == session for m in thread.members))
    ]
    ids = thread_ids(found.threads)
    with Writer(context.stdout) as out:
        for thread, target in chosen:
            if arguments.json:
                out.json(_document(ids[thread.root.id], target))
            else:
                for line in _lines(found, thread, target):
                    out.line(printable(line))
    if not chosen:
        say(context, "no thread of more than one file")
    return 0


def _lines(found: Lineage, thread: Thread, target: Resume) -> list[str]:
    said = _SAID[target.status]
    if target.status == "no-target" and all(node.guest_of is not None for node in thread.members):
        said = "no file of its own was seen; what was imported is in this store"
    lines = [f"{thread.root.provider} {thread.root.native_id[:13]}: {said}"]
    for node in target.active or target.recoverable:
        mark = "*" if node is target.recommended else "-"
        last = node.last[:16].replace("T", " ") if node.last else "-"
        lines.append(f"  {mark} {last}  {node.provider} {node.native_id}")
        lines.append(f"    {node.path}")
        if not _is_here(node):
            lines.append(f"    not on this machine: copy the file from {node.host} to its place here first")
        if node is target.recommended or target.recommended is None:
            command = command_for(node)
            if command:
                lines.append(f"    {command}")
    for node in thread.members if target.status == "no-target" else ():
        if node.guest_of is not None:
            lines.append(
                f"  {counted(node.records, 'record')} stand in the file of {node.guest_of.native_id}"
            )
            lines.append(f"    {node.path}")
    if "cycle" in target.reasons:
        lines.append("  the claims run in a circle, which is not followed")
    return lines


def _is_here(node: Node) -> bool:
    """Whether this machine has the file, or the database that the conversation is in. The store cannot tell: what came
    from another machine is there, and a file may be gone since the last import."""
    return os.path.lexists(node.path) or os.path.isfile(os.path.dirname(node.path))


def command_for(node: Node) -> str:
    """The command line by which the node's agent takes it up again; empty where there is none that is known."""
    folder = f"cd {shlex.quote(node.cwds[-1])} && " if node.cwds else ""
    match node.provider:
        case "claude":
            return f"{folder}claude --resume {node.native_id}"
        case "codex":
            return f"{folder}codex resume {node.native_id}"
        case "pi":
            return f"{folder}pi --session {shlex.quote(node.path)}"
        case "opencode":
            return f"{folder}opencode --session {node.native_id}"
    return ""


def _document(thread: str, target: Resume) -> dict[str, Any]:
    def short(node: Node) -> dict[str, Any]:
        return {
            "here": _is_here(node),
            "host": node.host,
            "id": node.native_id,
            "last": node.last,
            "observation": node.id,
            "path": node.path,
            "provider": node.provider,
        }

    return {
        "active": [short(node) for node in target.active],
        "reasons": list(target.reasons),
        "recommended": target.recommended and short(target.recommended),
        "recoverable": [short(node) for node in target.recoverable],
        "status": target.status,
        "thread": thread,
    }
