"""``objstore flow verify``: recompute every digest, link, range and input digest of conversations, in the store or in a
folder of published files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from objstore.errors import UsageError
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Progress, Writer, counted, printable, say
from plumbing.interface.stores import open_store
from porcelain.flow.chain.naming import all_chains, find_conversation
from porcelain.flow.checking.annotations import annotation, wanted
from porcelain.flow.checking.folder_check import check_folder
from porcelain.flow.checking.folder_scan import scan
from porcelain.flow.checking.junit import detail, junit
from porcelain.flow.checking.report import FlowProblem
from porcelain.flow.checking.store_check import ConversationCheck, check_conversation

SUMMARY = "check the rounds of conversations"
USAGE = """flow verify [--json] [--junit FILE] [--annotations] [ID...]
           flow verify --dir ROOT [--json] [--junit FILE] [--annotations]"""
OPTIONS = (
    Option("--dir", "root", "ROOT", "check the .sd and .sf files below ROOT, not the store", "directory"),
    Option("--junit", "junit", "FILE", "write a JUnit report to FILE too", "file"),
    Option("--annotations", help="mark problems for GitHub Actions (by itself where it runs there)"),
    JSON,
)
EXAMPLES = (
    "objstore flow verify",
    "objstore flow verify 3f2a --json",
    "objstore flow verify --dir sessions --junit report.xml",
)
ARGUMENTS = (0, None)


def run(arguments: Arguments, context: Context) -> int:
    """One line a problem; 1 if there is any."""
    if arguments.root is not None and arguments.args:
        raise UsageError("flow verify: --dir takes no ids", hint="objstore flow verify --help")
    marks = arguments.annotations or wanted(context.env)
    checks: list[ConversationCheck] = []
    with Writer(context.stdout) as out:
        for check in _folder(arguments, context) if arguments.root else _store(arguments, context):
            checks.append(check)
            if arguments.json:
                out.json(_document(check))
            for problem in check.problems:
                if not arguments.json:
                    out.line(printable(_line(check, problem)))
                    if marks:
                        out.line(annotation(problem, context.cwd, context.env))
                elif marks:
                    context.stderr.write(annotation(problem, context.cwd, context.env).encode() + b"\n")
    if arguments.junit:
        (Path(context.cwd) / arguments.junit).write_bytes(junit(checks))
    if not checks and not arguments.args:
        if arguments.root:
            raise UsageError(f"{arguments.root}: holds no .sd or .sf file")
        raise UsageError("the store holds no conversation yet", hint="objstore import")
    return _conclude(checks, context, folder=bool(arguments.root))


def _store(arguments: Arguments, context: Context) -> Iterator[ConversationCheck]:
    with open_store(context) as store, store.snapshot() as view:
        chains = all_chains(view)
        if arguments.args:
            names = {find_conversation(view, text) for text in arguments.args}
            chains = {key: heads for key, heads in chains.items() if key[1:] in names}
        with Progress(context, "flow verify", total=len(chains)) as progress:
            for (origin, provider, name), heads in sorted(chains.items()):
                yield check_conversation(view, provider, name, heads.get("landed"), heads.get("flow"), origin)
                progress.advance()


def _folder(arguments: Arguments, context: Context) -> Iterator[ConversationCheck]:
    folder = scan(Path(arguments.root))
    total = len(folder.sessions) + len(folder.conversations) + len(folder.loose)
    with Progress(context, "flow verify", total=total) as progress:
        for check in check_folder(folder):
            yield check
            progress.advance()


def _line(check: ConversationCheck, problem: FlowProblem) -> str:
    return detail(problem) if problem.file else f"{check.provider}/{check.conversation}: {detail(problem)}"


def _document(check: ConversationCheck) -> dict[str, object]:
    return {
        "conversation": check.conversation,
        "pages": check.pages,
        "problems": [
            {
                "conversation": problem.conversation,
                "expected": problem.expected,
                "file": problem.file,
                "found": problem.found,
                "line": problem.line,
                "place": problem.place,
                "rule": problem.rule,
                "what": problem.what,
            }
            for problem in check.problems
        ],
        "provider": check.provider,
        "records": check.records,
        "rounds": check.rounds,
        "unkept": check.unkept,
    }


def _conclude(checks: list[ConversationCheck], context: Context, *, folder: bool) -> int:
    problems = sum(len(check.problems) for check in checks)
    unkept = sum(check.unkept for check in checks)
    counts = [
        (sum(check.pages for check in checks), "landed file" if folder else "page"),
        (sum(check.records for check in checks), "record"),
        (sum(check.rounds for check in checks), "round"),
    ]
    if not folder:
        counts.insert(0, (len(checks), "conversation"))
    if unkept:
        say(
            context,
            f"{counted(unkept, 'imported file')} of which the store kept the structure only: "
            "the bytes were not checked",
        )
    say(
        context,
        f"checked {', '.join(counted(count, noun) for count, noun in counts)}: "
        + (counted(problems, "problem") if problems else "all digests match"),
    )
    return 1 if problems else 0
