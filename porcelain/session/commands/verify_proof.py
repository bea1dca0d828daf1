"""``objstore session verify-proof``: check a proof, with nothing but the proof."""

from __future__ import annotations

from objstore.errors import UsageError
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer, printable, say
from porcelain.session.commands.choosing import given_path
from porcelain.session.integrity.proof_checking import check_proof

SUMMARY = "check a proof, without a store"
USAGE = "session verify-proof [--root ROOT] [--json] FILE"
OPTIONS: tuple[Option, ...] = (
    Option("--root", "root", "ROOT", "the root that it must be about", "text"),
    JSON,
)
EXAMPLES = (
    "objstore session verify-proof proof.json",
    'objstore session prove 3 | objstore session verify-proof --root "$root" -',
)
ARGUMENTS = (1, 1)
#: Most bytes of a proof that are read: a path of 100,000 nodes takes less than half of it.
_LARGEST = 128 << 20


def run(arguments: Arguments, context: Context) -> int:
    """Say what the proof shows; 1 when it shows nothing."""
    root = arguments.root
    if root is not None and (len(root) != 64 or root.strip("0123456789abcdef")):
        raise UsageError(f"{root[:80]!r}: not a root: expected 64 lower-case hexadecimal digits")
    if arguments.args[0] == "-":
        data = context.stdin.read(_LARGEST)
    else:
        with given_path(context, arguments.args[0]).open("rb") as file:
            data = file.read(_LARGEST)
    proven = check_proof(data, expect=root)
    with Writer(context.stdout) as out:
        if arguments.json:
            out.json(
                {
                    "bates": proven.bates,
                    "kind": proven.kind,
                    "node_hash": proven.node_hash,
                    "old_root": proven.old_root,
                    "path": list(proven.path),
                    "question": proven.question,
                    "root": proven.root,
                }
            )
            return 0
        if proven.kind == "inclusion":
            out.line(f"{proven.bates} is under the root {proven.root}")
        else:
            out.line(f"{proven.bates} alone was inserted between {proven.old_root} and {proven.root}")
        above = " ".join(str(int(bates[-6:])) for bates in proven.path[:20])
        more = "" if len(proven.path) <= 20 else " ..."
        out.line(f"question: {printable(proven.question)}")
        out.line(f"above it: {above}{more}" if proven.path else "it is the root of its session")
    if root is None:
        say(
            context, "whether that root is the one to trust, you must know from elsewhere: --root compares it"
        )
    return 0
