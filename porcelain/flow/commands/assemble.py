"""``objstore flow assemble``: bring the rounds of conversations up to what has landed."""

from __future__ import annotations

import os

from objstore.errors import NotFound
from plumbing.interface.options import JSON, Arguments, Context
from plumbing.interface.output import Writer, counted, encode, printable, say
from plumbing.interface.stores import open_store
from porcelain.flow.assembly.tasks import assembly_plan
from porcelain.flow.chain.naming import conversations, find_conversation
from porcelain.importing.cursors import hash_key
from porcelain.importing.run import import_lock, run_import
from porcelain.importing.tasks import Settings

SUMMARY = "bring rounds up to what has landed"
USAGE = "flow assemble [--json] [ID...]"
OPTIONS = (JSON,)
EXAMPLES = ("objstore flow assemble", "objstore flow assemble 3f2a")
ARGUMENTS = (0, None)


def run(arguments: Arguments, context: Context) -> int:
    """Assemble what an interrupted run left, in the conversations named or in all; 5 when something went wrong."""
    path = context.store_path()
    if not os.path.exists(os.path.join(path, "data.mdb")):
        raise NotFound(f"{path}: no store here", hint="objstore import")
    with import_lock(path, context.lock_timeout), open_store(context, write=True) as store:
        with store.snapshot() as view:
            wanted = {find_conversation(view, text) for text in arguments.args} or None
            if wanted is None and not any(conversations(view, "landed")):
                raise NotFound("the store holds no conversation yet", hint="objstore import")
            plan = assembly_plan(view, store.store_id, wanted)
        settings = Settings(
            path=path,
            store=store.store_id,
            algorithm=store.algorithm,
            keep=False,
            key=hash_key(store),
        )
        result = run_import(store, plan, settings, host="")
    behind = len(plan.tasks)
    if arguments.json:
        with Writer(context.stdout) as out:
            out.json(
                {
                    "conversations": behind,
                    "problems": [{"path": one, "reason": reason} for one, reason in result.problems],
                    "rounds": result.rounds,
                }
            )
    else:
        say(context, f"{counted(result.rounds, 'new round')} in {counted(behind, 'conversation')}")
    for name, reason in result.problems:
        context.stderr.write(encode(printable(f"objstore: {name}: {reason}")) + b"\n")
    return 5 if result.problems else 0
