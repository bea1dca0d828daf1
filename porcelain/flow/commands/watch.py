"""``objstore flow watch``: follow live agents and publish rounds as their conversations grow."""

from __future__ import annotations

from pathlib import Path

from objstore.errors import Conflict, UsageError
from objstore.refs import quote
from objstore.store import Store
from plumbing.interface.options import JSON, Arguments, Context, Option
from plumbing.interface.output import Writer, counted, encode, printable, say
from plumbing.interface.stores import open_store
from porcelain.flow.folders.export_chain import pick_chain
from porcelain.flow.folders.export_folder import export_chain
from porcelain.flow.watching.changes import changes, has_events
from porcelain.flow.watching.looking import Pass, Published, look
from porcelain.importing.plan import find_roots
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


def run(arguments: Arguments, context: Context) -> int:
    """One line a new round, until Ctrl-C; what was published before it stays."""
    home = context.env.get("HOME") or context.env.get("USERPROFILE")
    if home is None and not arguments.args:
        raise UsageError("neither HOME nor USERPROFILE is set", hint="name the folders to watch")
    try:
        with open_store(context, write=True) as store:
            _watch(store, arguments, context, Path(home) if home is not None else None)
    except KeyboardInterrupt:
        if arguments.once:
            raise
        say(context, "stopped")
    return 0


def _watch(store: Store, arguments: Arguments, context: Context, home: Path | None) -> None:
    providers = list(dict.fromkeys(arguments.providers)) or list(PROVIDERS)

    def folders() -> list[Path]:
        if arguments.args:
            named = (Path(context.cwd, text) for text in arguments.args)
            return [path if path.is_dir() else path.parent for path in named]
        assert home is not None
        return [root for name in providers for root in find_roots(name, context.env, home)]

    told: set[tuple[str, str]] = set()

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
        found.problems = [one for one in found.problems if one not in told]
        told.update(found.problems)
        _tell(store, found, arguments, context)

    once()
    if arguments.once:
        return
    present = sum(folder.is_dir() for folder in folders())
    how = "file events" if has_events() else f"every {arguments.interval:g} s"
    say(context, f"watching {counted(present, 'folder')} ({how}); Ctrl-C ends it")
    for _ in changes(folders, max(arguments.interval, _LEAST_PAUSE)):
        try:
            once()
        except Conflict as error:
            say(context, f"{error.message}: trying again later")


def _tell(store: Store, found: Pass, arguments: Arguments, context: Context) -> None:
    if arguments.export and found.published:
        with store.snapshot() as view:
            for provider, name in sorted({(one.provider, quote(one.name)) for one in found.published}):
                export_chain(
                    view,
                    pick_chain(view, provider, name, store.store_id),
                    Path(context.cwd) / arguments.export,
                )
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
