"""``objstore session prove``: a proof that anybody can check without the store."""

from __future__ import annotations

from objstore.errors import UsageError
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.stores import open_store
from porcelain.session.commands.choosing import SID, chosen_node, chosen_session, given_path
from porcelain.session.integrity.proof_checking import proof_bytes
from porcelain.session.integrity.proofs import prove_insertion, prove_node

SUMMARY = "prove that a node is under a root"
USAGE = """session prove [--sid SID] [--root ROOT] [--output FILE] [--json] [NODE]
           session prove --insertion [--sid SID] [--output FILE] [--json] [NODE]"""
OPTIONS = (
    SID,
    Option("--root", "root", "ROOT", "under this root of the session (default: the one it has now)", "text"),
    Option("--insertion", "insertion", help="prove instead that the node was inserted, and nothing else"),
    Option(("-o", "--output"), "output", "FILE", "write the proof to FILE, which must not exist", "file"),
    JSON,
)
EXAMPLES = ("objstore session prove 3 > proof.json", "objstore session prove --insertion fork")
ARGUMENTS = (0, 1)


def run(arguments: Arguments, context: Context) -> int:
    """The proof as one line of JSON, asked for or not."""
    if arguments.insertion and arguments.root is not None:
        raise UsageError(
            "session prove: --insertion names its roots itself: leave --root out",
            hint="objstore session prove --help",
        )
    named = arguments.args[0] if arguments.args else None
    with open_store(context) as store, store.snapshot() as view:
        session = chosen_session(view, arguments, named)
        seq = chosen_node(view, session, named)
        if arguments.insertion:
            proof = proof_bytes(prove_insertion(view, session, seq))
        else:
            proof = proof_bytes(prove_node(view, session, seq, root=arguments.root))
    if arguments.output is None:
        context.stdout.write(proof)
        return 0
    path = given_path(context, arguments.output)
    try:
        with path.open("xb") as file:
            file.write(proof)
    except FileExistsError:
        raise UsageError(f"{arguments.output}: exists already", hint="name another file") from None
    return 0
