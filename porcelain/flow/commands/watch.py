"""``objstore flow watch``: follow live agents and publish rounds as their conversations grow."""

from __future__ import annotations

from pathlib import Path

from objstore.errors import CheckFailed, Conflict, StorageError, UsageError
from objstore.refs import quote, unquote
from objstore.store import Store, load
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer, counted, encode, printable, say
from plumbing.interface.stores import open_store
from porcelain.flow.chain.naming import conversations, origin_of, own_flow
from porcelain.flow.folders.export_chain import pick_chain
from porcelain.flow.folders.export_folder import export_chain
from porcelain.flow.folders.layout import round_path
from porcelain.flow.watching.changes import changes, has_events
from porcelain.flow.watching.looking import Pass, Published, look
from porcelain.importing.finding import find_roots
from porcelain.providers.agents import PROVIDERS

SUMMARY = "follow live agents and publish rounds as they grow"
USAGE = "flow watch [--once] [--provider P]... [--interval SECONDS] [--export DIR] [--json] [PATH...]"
OPTIONS = (
    Option("--once", help="look once and end"),
    Option(
        "--provider",
        "providers",
        "P",
        "only this agent's conversations",
        "choice",
        choices=tuple(PROVIDERS),
        many=True,
    ),
    Option(
        "--interval",
        "interval",
        "SECONDS",
        "look again after this long, where there are no file events (2)",
        "seconds",
        default=2.0,
    ),
    Option("--export", "export", "DIR", "publish the files of what has grown into DIR too", "directory"),
    JSON,
)
EXAMPLES = (
    "objstore flow watch",
    "objstore flow watch --export sessions",
    "objstore flow watch --once --json",
)
ARGUMENTS = (0, None)
#: The shortest pause between two looks, in seconds.
_LEAST_PAUSE = 0.05
#: Provider, quoted name and origin of a chain.
_Telling = tuple[str, str, str]


def run(arguments: Arguments, context: Context) -> int:
    """One line a new round, until Ctrl-C; what was published before it stays."""
    home = context.env.get("HOME") or context.env.get("USERPROFILE")
    if home is None and not arguments.args:
        raise UsageError("neither HOME nor USERPROFILE is set", hint="name the folders to watch")
    try:
        with open_store(context, write=True) as store:
            return _watch(store, arguments, context, Path(home) if home is not None else None)
    except KeyboardInterrupt:
        if arguments.once:
            raise
        say(context, "stopped")
    return 0


def _watch(store: Store, arguments: Arguments, context: Context, home: Path | None) -> int:
    providers = list(dict.fromkeys(arguments.providers)) or list(PROVIDERS)

    def folders() -> list[Path]:
        if arguments.args:
            named = (Path(context.cwd, text) for text in arguments.args)
            return [path if path.is_dir() else path.parent for path in named]
        assert home is not None
        return [root for name in providers for root in find_roots(name, context.env, home)]

    told: set[tuple[str, str]] = set()
    behind = _interrupted(store, context, arguments.export) if arguments.export else {}

    def once() -> None:
        found = look(
            store,
            context.store_path(),
            providers,
            arguments.args,
            env=context.env,
            home=home,
            lock_timeout=context.lock_timeout,
        )
        if arguments.export:
            behind.update({(one.provider, quote(one.name), one.origin): 0 for one in found.published})
            found.problems += _export(store, behind, Path(context.cwd) / arguments.export)
        found.problems = [one for one in found.problems if one not in told]
        told.update(found.problems)
        _tell(found, arguments, context)

    once()
    if arguments.once:
        return max(behind.values(), default=0)
    present = sum(folder.is_dir() for folder in folders())
    how = "file events" if has_events() else f"every {arguments.interval:g} s"
    say(context, f"watching {counted(present, 'folder')} ({how}); Ctrl-C ends it")
    for _ in changes(folders, max(arguments.interval, _LEAST_PAUSE)):
        try:
            once()
        except Conflict as error:
            say(context, f"{error.message}: trying again later")
    return 0


def _interrupted(store: Store, context: Context, folder: str) -> dict[_Telling, int]:
    """The chains that have files in a folder and not those of their last round: somebody died between storing and
    writing it, or it was imported while nobody watched."""
    root = Path(context.cwd) / folder
    found: dict[_Telling, int] = {}
    with store.snapshot() as view:
        for origin, provider, name, _ in conversations(view, "flow"):
            ref, head = own_flow(view, store.store_id, provider, unquote(name))
            if head is None or origin != origin_of(ref):
                continue
            entry = load(view, head, "flow-round")
            last = root / round_path(entry.conversation, entry.round, entry.commit)
            if last.parent.is_dir() and not last.exists():
                found[provider, name, origin] = 0
    return found


def _export(store: Store, behind: dict[_Telling, int], root: Path) -> list[tuple[str, str]]:
    """Write the files of the chains that are ``behind`` in a folder, and take those out that are no longer. One that
    cannot be written holds up none of the others, and stays, with the exit code of the reason: given are pairs of its
    name and that reason."""
    problems: list[tuple[str, str]] = []
    with store.snapshot() as view:
        for one in sorted(behind):
            provider, name, origin = one
            try:
                export_chain(view, pick_chain(view, provider, name, origin), root)
            except (CheckFailed, Conflict, StorageError) as error:
                behind[one] = error.exit_code
                problems.append((f"{provider}/{name}", error.message))
            else:
                del behind[one]
    return problems


def _tell(found: Pass, arguments: Arguments, context: Context) -> None:
    with Writer(context.stdout) as out:
        for one in found.published:
            if arguments.json:
                out.json(_document(one))
            else:
                out.line(
                    printable(
                        f"{one.provider}/{one.name}: round {one.round}, seq {one.from_seq} to {one.through_seq}, "
                        f"{counted(one.frames, 'frame')}, {one.digest[:12]}"
                    )
                )
    for path, reason in found.problems:
        context.stderr.write(encode(printable(f"objstore: {path}: {reason}")) + b"\n")
        context.stderr.flush()


def _document(one: Published) -> dict[str, object]:
    return {
        "conversation": one.name,
        "digest": one.digest,
        "frames": one.frames,
        "fromSeq": one.from_seq,
        "provider": one.provider,
        "round": one.round,
        "throughSeq": one.through_seq,
    }
