"""``objstore lineage import-sidecars``: take in what Pi's session tools and people have written beside the sessions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from objstore.errors import NotFound, UsageError
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer, counted, encode, printable, table, terminal_width
from plumbing.interface.stores import open_store
from porcelain.lineage.adapters.hosts import host_label
from porcelain.lineage.adapters.sidecars import read_sidecars
from porcelain.lineage.curation.stating import learn
from porcelain.lineage.relations.file_comparisons import compared_files

SUMMARY = "read Pi's manifests, overlays and marks into the store"
USAGE = "lineage import-sidecars [--compare] [--strict] [--json] [DIR]"
OPTIONS = (
    Option("--compare", help="compare the files that manifests name, where they are there"),
    Option("--strict", help="exit with 1 when anything could not be read"),
    JSON,
)
EXAMPLES = ("objstore lineage import-sidecars", "objstore lineage import-sidecars ~/backup/.pi/agent")
ARGUMENTS = (0, 1)


def run(arguments: Arguments, context: Context) -> int:
    """Read the sidecar files below DIR (default: Pi's own folder); none of them is written."""
    folder = _folder(arguments, context)
    if not folder.is_dir():
        raise NotFound(f"{folder}: no such folder")
    store_folder = context.env.get("AGENT_SESSION_STORE_DIR")
    with open_store(context, write=True) as store:
        with store.snapshot() as view:
            host = host_label(view)
        own = Path(store_folder) if store_folder and not arguments.args else None
        found = read_sidecars(folder, host, own)
        compared = compared_files(found.facts, host) if arguments.compare else []
        new = learn(store, [*found.facts, *compared], keep_withdrawn=True)
    kinds = Counter(one.kind for one in new)
    with Writer(context.stdout) as out:
        if arguments.json:
            out.json(
                {
                    "damage": [{"line": d.line, "path": d.path, "reason": d.reason} for d in found.damage],
                    "files": [{"path": path, "records": records} for path, records in found.files],
                    "new": dict(sorted(kinds.items())),
                    "remarks": found.remarks,
                }
            )
        else:
            rows = [(path, f"{records:,}") for path, records in found.files]
            width = terminal_width(context.stdout, context.env)
            for line in table(rows, ("file", "records"), width=width, right=(1,)) if rows else ():
                out.line(line)
            if not rows:
                out.line(f"no sidecar file in {printable(str(folder))}")
            elif new:
                out.line(
                    f"{counted(len(new), 'new fact')}: "
                    + ", ".join(counted(n, kind.replace("_", " ")) for kind, n in sorted(kinds.items()))
                )
            else:
                out.line("nothing new")
            for remark in found.remarks:
                out.line(printable(remark))
    for one in found.damage:
        place = f"{one.path}:{one.line}" if one.line else one.path
        context.stderr.write(encode(printable(f"objstore: {place}: {one.reason}")) + b"\n")
    return 1 if arguments.strict and (found.damage or found.remarks) else 0


def _folder(arguments: Arguments, context: Context) -> Path:
    if arguments.args:
        return Path(context.cwd) / arguments.args[0]
    stated = context.env.get("PI_CODING_AGENT_DIR")
    if stated:
        return Path(stated)
    home = context.env.get("HOME") or context.env.get("USERPROFILE")
    if home is None:
        raise UsageError("neither HOME nor USERPROFILE is set", hint="name the folder to read")
    return Path(home) / ".pi" / "agent"
