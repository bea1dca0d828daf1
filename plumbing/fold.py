"""``objstore fold``: the state that chains add up to."""

from __future__ import annotations

from objstore.errors import NotFound
from objstore.snapshot import resolve
from plumbing.interface.options import JSON, NUL, Option, parse
from plumbing.interface.output import Writer, printable
from plumbing.interface.stores import open_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from objstore.fold import Claim, Fold
    from plumbing.interface.options import Context

SUMMARY = "The joined state of the chains that names are heads of."
USAGE = "fold [--at=N] [--id=FRAME|--conflicts] [--json] [-z] NAME..."
OPTIONS = (
    Option("--at", metavar="N", help="take only the first N rounds of each chain", kind="integer"),
    Option("--id", metavar="FRAME", help="only the frame with this id", kind="text"),
    Option("--conflicts", help="only frames of which several have the highest revision"),
    JSON,
    NUL,
)
EXAMPLES = ("objstore fold lineage/3c5d7e9f01234567", "objstore fold --at 1 --json 5f3a77c2")


def main(argv: Sequence[str], context: Context) -> int:
    """Print a line for each frame of the state."""
    arguments = parse(argv, OPTIONS, USAGE, least=1)
    with (
        open_store(context) as store,
        store.snapshot() as view,
        Writer(context.stdout, null=arguments.null) as out,
    ):
        from objstore.fold import fold_chains

        state = fold_chains(view, [resolve(view, name) for name in arguments.args], at=arguments.at)
        for frame_id, claim in _chosen(state, arguments.id, conflicts=arguments.conflicts):
            keys = [key.hex() for key in claim.keys]
            if arguments.json:
                line = {"conflicts": keys[:-1], "frame": frame_id, "id": keys[-1], "revision": claim.revision}
                out.json(line | {"tombstone": True} if claim.removed else line)
                continue
            shown = frame_id if arguments.null else printable(frame_id)
            for key in keys if arguments.conflicts else keys[-1:]:
                out.line(f"{claim.revision} {key} {shown}")
    return 0


def _chosen(state: Fold, frame_id: str | None, *, conflicts: bool) -> Iterator[tuple[str, Claim]]:
    if frame_id is not None:
        claim = state.get(frame_id)
        if claim is None or claim.removed:
            raise NotFound(f"{frame_id}: {'no such frame' if claim is None else 'the frame was removed'}")
        yield frame_id, claim
    elif conflicts:
        yield from state.conflicts()
    else:
        for live_id, _ in state.live():
            claim = state.get(live_id)
            assert claim is not None
            yield live_id, claim
