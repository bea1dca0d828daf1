"""All commands, in one static table: what ``objstore --help``, dispatch, completion and the man index read.

``target`` is ``module:attribute``, loaded only when the command runs. A plumbing command is called as
``main(argv, context)``; a porcelain command as ``run(arguments, context)``, its arguments read by the module's
``OPTIONS``, their number by its ``ARGUMENTS`` where it has them (least and greatest, None: no bound). A name of two
words is a subcommand.
"""

from __future__ import annotations

import sys

from objstore.errors import UsageError
from plumbing.interface.options import GLOBAL_OPTIONS, format_help, format_options
from porcelain.interrupts import hold, release

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

VERSION = "0.1.0"
PLUMBING = "plumbing"
PORCELAIN = "porcelain"


class Command:
    """One row of the table."""

    __slots__ = ("layer", "name", "summary", "target")

    def __init__(self, layer: str, name: str, target: str, summary: str) -> None:
        self.layer = layer
        self.name = name
        self.target = target
        self.summary = summary


COMMANDS: tuple[Command, ...] = (
    Command(
        PORCELAIN, "import", "porcelain.importing.command:run", "read agents' conversations into the store"
    ),
    Command(PORCELAIN, "status", "porcelain.status:run", "what the store holds and what is new on disk"),
    Command(
        PORCELAIN,
        "doctor",
        "porcelain.doctor:run",
        "whether the store has what is on disk, and what will be lost",
    ),
    Command(
        PORCELAIN, "flow show", "porcelain.flow.commands.show:run", "the structure inside one conversation"
    ),
    Command(
        PORCELAIN,
        "flow conversations",
        "porcelain.flow.commands.conversations:run",
        "the conversations that have structure",
    ),
    Command(
        PORCELAIN,
        "flow log",
        "porcelain.flow.commands.log:run",
        "the rounds of a conversation, or the history of one entity",
    ),
    Command(
        PORCELAIN,
        "flow diff",
        "porcelain.flow.commands.diff:run",
        "what changed in a conversation between two rounds",
    ),
    Command(
        PORCELAIN,
        "flow unresolved",
        "porcelain.flow.commands.unresolved:run",
        "the ends that are missing, and why",
    ),
    Command(
        PORCELAIN,
        "flow stats",
        "porcelain.flow.commands.stats:run",
        "what the structure of conversations adds up to",
    ),
    Command(
        PORCELAIN, "flow view", "porcelain.flow.commands.view:run", "one conversation as a view document"
    ),
    Command(
        PORCELAIN,
        "flow glossary",
        "porcelain.flow.commands.glossary:run",
        "what each word of the model is called by an agent",
    ),
    Command(
        PORCELAIN, "flow verify", "porcelain.flow.commands.verify:run", "check the rounds of conversations"
    ),
    Command(PORCELAIN, "flow land", "porcelain.flow.commands.land:run", "land what is new in agents' files"),
    Command(
        PORCELAIN,
        "flow assemble",
        "porcelain.flow.commands.assemble:run",
        "bring rounds up to what has landed",
    ),
    Command(
        PORCELAIN,
        "flow watch",
        "porcelain.flow.commands.watch:run",
        "follow live agents and publish rounds as they grow",
    ),
    Command(
        PORCELAIN,
        "flow export",
        "porcelain.flow.commands.export:run",
        "write conversations as .sd and .sf files",
    ),
    Command(
        PORCELAIN,
        "flow import",
        "porcelain.flow.commands.import_:run",
        "take in a folder of .sd and .sf files",
    ),
    Command(
        PORCELAIN,
        "lineage sessions",
        "porcelain.lineage.commands.sessions:run",
        "the conversations and their sources",
    ),
    Command(
        PORCELAIN,
        "lineage graph",
        "porcelain.lineage.commands.graph:run",
        "which conversation came from which",
    ),
    Command(
        PORCELAIN,
        "lineage timeline",
        "porcelain.lineage.commands.timeline:run",
        "when projects and conversations were active",
    ),
    Command(
        PORCELAIN,
        "lineage active",
        "porcelain.lineage.commands.active:run",
        "how long projects and conversations were worked on",
    ),
    Command(
        PORCELAIN,
        "lineage inventory",
        "porcelain.lineage.commands.inventory:run",
        "every file that a conversation was seen in",
    ),
    Command(
        PORCELAIN,
        "lineage evidence",
        "porcelain.lineage.commands.evidence:run",
        "what supports the lineage, and what contradicts it",
    ),
    Command(
        PORCELAIN,
        "lineage repo-scan",
        "porcelain.lineage.commands.repo_scan:run",
        "when repositories were worked on, and the projects they propose",
    ),
    Command(
        PORCELAIN,
        "lineage backup",
        "porcelain.lineage.commands.backup:run",
        "which backups have a conversation's file",
    ),
    Command(
        PORCELAIN,
        "lineage usage",
        "porcelain.lineage.commands.usage:run",
        "tokens of all model calls, each once",
    ),
    Command(
        PORCELAIN,
        "lineage export",
        "porcelain.lineage.commands.export:run",
        "write the lineage as SQLite, JSON or Parquet",
    ),
    Command(
        PORCELAIN,
        "lineage why",
        "porcelain.lineage.commands.why:run",
        "how two conversations are related, and why",
    ),
    Command(
        PORCELAIN,
        "lineage threads",
        "porcelain.lineage.commands.threads:run",
        "conversations that belong together, and how",
    ),
    Command(
        PORCELAIN,
        "lineage resume",
        "porcelain.lineage.commands.resume:run",
        "where conversations can be taken up again",
    ),
    Command(
        PORCELAIN,
        "lineage import-sidecars",
        "porcelain.lineage.commands.import_sidecars:run",
        "read Pi's manifests, overlays and marks into the store",
    ),
    Command(
        PORCELAIN,
        "lineage label",
        "porcelain.lineage.commands.label:run",
        "name a conversation, a file or a project",
    ),
    Command(
        PORCELAIN,
        "lineage alias",
        "porcelain.lineage.commands.alias:run",
        "say that a path or project is called otherwise now",
    ),
    Command(
        PORCELAIN,
        "lineage classify",
        "porcelain.lineage.commands.classify:run",
        "judge what happened between two conversations",
    ),
    Command(
        PORCELAIN,
        "lineage mark",
        "porcelain.lineage.commands.mark:run",
        "mark a file to be kept or given up, or clear a conflict",
    ),
    Command(
        PORCELAIN,
        "lineage repo",
        "porcelain.lineage.commands.repo:run",
        "projects, their folders and remotes",
    ),
    Command(
        PORCELAIN,
        "lineage suggest",
        "porcelain.lineage.commands.suggest:run",
        "proposals about related conversations, which count only when promoted",
    ),
    Command(
        PORCELAIN,
        "lineage move",
        "porcelain.lineage.commands.move:run",
        "record that a folder's conversations moved with it",
    ),
    Command(
        PORCELAIN,
        "lineage checkpoints",
        "porcelain.lineage.commands.checkpoints:run",
        "where agents replaced history by a summary",
    ),
    Command(
        PORCELAIN,
        "lineage facts",
        "porcelain.lineage.commands.facts:run",
        "all facts about a conversation, a file or an edge",
    ),
    Command(
        PORCELAIN,
        "lineage doctor",
        "porcelain.lineage.commands.doctor:run",
        "whether the store has what is on disk, and what will be lost",
    ),
    Command(
        PORCELAIN, "lineage log", "porcelain.lineage.commands.log:run", "what was learned, round by round"
    ),
    Command(PORCELAIN, "lineage sql", "porcelain.lineage.commands.sql:run", "ask the lineage with SQL"),
    Command(PORCELAIN, "session", "porcelain.session.commands.open:run", "ask in a session, at the terminal"),
    Command(PORCELAIN, "session new", "porcelain.session.commands.new:run", "begin a session"),
    Command(PORCELAIN, "session ask", "porcelain.session.commands.ask:run", "ask one question"),
    Command(PORCELAIN, "session list", "porcelain.session.commands.list:run", "the sessions, latest first"),
    Command(PORCELAIN, "session tree", "porcelain.session.commands.tree:run", "the tree of a session"),
    Command(
        PORCELAIN,
        "session branches",
        "porcelain.session.commands.branches:run",
        "where a session branches",
    ),
    Command(PORCELAIN, "session show", "porcelain.session.commands.show:run", "one node in full"),
    Command(PORCELAIN, "session cd", "porcelain.session.commands.cd:run", "go to a node"),
    Command(PORCELAIN, "session back", "porcelain.session.commands.back:run", "go to the node above"),
    Command(PORCELAIN, "session label", "porcelain.session.commands.label:run", "name a node"),
    Command(PORCELAIN, "session sid", "porcelain.session.commands.sid:run", "the session that is meant"),
    Command(PORCELAIN, "session root", "porcelain.session.commands.root:run", "the hash that pins a session"),
    Command(
        PORCELAIN,
        "session chain-check",
        "porcelain.session.commands.chain_check:run",
        "check the hashes of sessions",
    ),
    Command(PORCELAIN, "session gc", "porcelain.session.commands.gc:run", "keep the latest sessions only"),
    Command(
        PORCELAIN,
        "session refresh",
        "porcelain.session.commands.refresh:run",
        "what changed since a root that somebody holds",
    ),
    Command(
        PORCELAIN,
        "session export",
        "porcelain.session.commands.export:run",
        "write a session as a SQLite file",
    ),
    Command(
        PORCELAIN,
        "session import",
        "porcelain.session.commands.import_:run",
        "verify such a file and take its session in",
    ),
    Command(
        PORCELAIN,
        "session graft",
        "porcelain.session.commands.graft:run",
        "unite a session that went on in several places",
    ),
    Command(
        PORCELAIN, "session source", "porcelain.session.commands.source:run", "what answers are taken from"
    ),
    Command(
        PORCELAIN, "session answers", "porcelain.session.commands.answers:run", "the answers that are kept"
    ),
    Command(
        PORCELAIN,
        "session prove",
        "porcelain.session.commands.prove:run",
        "prove that a node is under a root",
    ),
    Command(
        PORCELAIN,
        "session verify-proof",
        "porcelain.session.commands.verify_proof:run",
        "check a proof, without a store",
    ),
    Command(PORCELAIN, "clone", "porcelain.remotes.clone:run", "make a new store with all that another has"),
    Command(PORCELAIN, "fetch", "porcelain.remotes.fetch:run", "bring what another store has"),
    Command(PORCELAIN, "pull", "porcelain.remotes.pull:run", "fetch, and unite sessions with --graft"),
    Command(PORCELAIN, "push", "porcelain.remotes.push:run", "bring what this store has to another"),
    Command(PORCELAIN, "sync", "porcelain.remotes.sync:run", "pull, then push"),
    Command(PORCELAIN, "serve", "porcelain.serve.command:run", "serve the store over HTTP"),
    Command(
        PORCELAIN, "serve tokens", "porcelain.serve.tokens_command:run", "the tokens that let clients in"
    ),
    Command(PORCELAIN, "remote add", "porcelain.remotes.add:run", "remember the place of another store"),
    Command(PORCELAIN, "remote list", "porcelain.remotes.list:run", "the remotes of the store"),
    Command(PORCELAIN, "remote remove", "porcelain.remotes.remove:run", "forget a remote"),
    Command(PORCELAIN, "remote repack", "porcelain.remotes.repack:run", "merge small packs of a hub"),
    Command(PORCELAIN, "completion", "porcelain.completion:run", "print a completion script for a shell"),
    Command(PLUMBING, "init", "plumbing.init:main", "create a store"),
    Command(PLUMBING, "hash-object", "plumbing.hash_object:main", "compute the id of JSON, and store it"),
    Command(PLUMBING, "cat", "plumbing.cat:main", "print objects"),
    Command(PLUMBING, "rev-parse", "plumbing.rev_parse:main", "turn names into full ids"),
    Command(PLUMBING, "show-ref", "plumbing.show_ref:main", "list refs and the ids they point at"),
    Command(PLUMBING, "for-each-ref", "plumbing.for_each_ref:main", "list refs in a chosen format"),
    Command(PLUMBING, "update-ref", "plumbing.update_ref:main", "move, create or delete a ref safely"),
    Command(PLUMBING, "reflog", "plumbing.reflog:main", "where a ref has been"),
    Command(PLUMBING, "ls-objects", "plumbing.ls_objects:main", "list the objects of the store"),
    Command(PLUMBING, "count-objects", "plumbing.count_objects:main", "count objects and bytes by kind"),
    Command(PLUMBING, "fold", "plumbing.fold:main", "the state that a chain adds up to"),
    Command(PLUMBING, "verify", "plumbing.verify:main", "check every object, ref and chain"),
    Command(PLUMBING, "config", "plumbing.config:main", "read or set what the store keeps"),
    Command(PLUMBING, "pack", "plumbing.pack:main", "write refs and all that they need as a pack"),
    Command(PLUMBING, "unpack", "plumbing.unpack:main", "check a pack and take it in"),
    Command(PLUMBING, "bundle", "plumbing.bundle:main", "write, check and take in packs in files"),
    Command(PLUMBING, "upload-pack", "plumbing.upload_pack:main", "serve a store to one that fetches"),
    Command(PLUMBING, "receive-pack", "plumbing.receive_pack:main", "let another store push into a store"),
)


#: What the commands of a group are about.
GROUPS = {
    "flow": "the structure inside conversations: talks, runs, steps",
    "session": "questions that branch, with cited answers, under one hash",
    "lineage": "which conversation is a copy, fork or continuation of which",
    "remote": "other stores that this one exchanges with",
    "serve": "the store over HTTP",
}


def load(command: Command) -> ModuleType:
    """The module of ``command``."""
    module = command.target.partition(":")[0]
    hold()
    try:
        __import__(module)
    finally:
        release()
    return sys.modules[module]


def find(name: str) -> Command | None:
    """The command called ``name``, or None."""
    return next((command for command in COMMANDS if command.name == name), None)


def words_after(prefix: str = "") -> dict[str, str]:
    """The words that may follow ``prefix`` ("" or a group's name), each with its summary, in the order of the table."""
    start = prefix.split()
    words: dict[str, str] = {}
    for command in COMMANDS:
        parts = command.name.split()
        if parts[: len(start)] == start and len(parts) > len(start):
            word = parts[len(start)]
            words[word] = GROUPS.get(word, command.summary) if not prefix else command.summary
    return words


def unknown_command(prefix: str, word: str) -> UsageError:
    """What to say about ``word``, which may not follow ``prefix``."""
    import difflib

    near = difflib.get_close_matches(word, words_after(prefix), n=1)
    program = f"objstore {prefix}".strip()
    return UsageError(
        f"{word}: no such command" + (f": did you mean '{program} {near[0]}'?" if near else ""),
        hint=f"{program} --help",
    )


def help_text(prefix: str = "") -> str:
    """``--help`` of the program, or of a group of commands."""
    words = words_after(prefix)
    width = max(map(len, words))
    rows = {word: f"  {word:<{width}}  {summary}\n" for word, summary in words.items()}
    if prefix:
        own = find(prefix)
        head = (
            format_help(load(own))
            if own is not None
            else f"usage: objstore {prefix} COMMAND ...\n\n{GROUPS[prefix]}\n"
        )
        return f"{head}\ncommands:\n{''.join(rows.values())}"
    plumbing = "".join(rows.pop(command.name) for command in COMMANDS if command.layer == PLUMBING)
    return (
        "usage: objstore [--store DIR] [-C DIR] COMMAND ...\n\n"
        "Keep every conversation with an AI agent in one content-addressed store.\n\n"
        f"commands:\n{''.join(rows.values())}\n"
        f"plumbing, with stable output for scripts:\n{plumbing}\n"
        f"options, before the command:\n{format_options(GLOBAL_OPTIONS)}\n"
        "'objstore COMMAND --help' says more. The store is --store, else $OBJSTORE_DIR, else the nearest\n"
        ".objstore/ here or above, else your own under the platform's data directory.\n"
    )
