"""``objstore cat``: print objects."""

from __future__ import annotations

import os
from binascii import Error as NotHex
from binascii import unhexlify

from objstore.errors import AmbiguousId, NotFound, UsageError
from objstore.snapshot import resolve
from plumbing.interface.options import JSON, NUL, Option, parse
from plumbing.interface.output import Writer, json_bytes, read_batches
from plumbing.interface.stores import names_given, open_store, resolve_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from objstore.snapshot import Snapshot, Stored
    from plumbing.interface.options import Arguments, Context

SUMMARY = "Print objects, their types or their sizes."
USAGE = """cat [-t|-s|-e|--pretty] [--json] [-z] NAME...
cat [-t|-s|-e|--pretty] [--json] [-z] --stdin
cat [--json] [-z] [--stdin] (--batch|--batch-check)"""
OPTIONS = (
    Option(("-t", "--type"), help="print the type of each object"),
    Option(("-s", "--size"), help="print the size of each object in bytes"),
    Option(("-e", "--exists"), help="print nothing; exit 3 if an object is not there"),
    Option("--pretty", help="print objects over several lines, indented"),
    Option("--stdin", help="read names from standard input, one a line"),
    Option("--batch", help="answer each name on standard input with a header line and the object"),
    Option("--batch-check", help="answer each name on standard input with a header line"),
    JSON,
    NUL,
)
EXAMPLES = (
    "objstore cat 5f3a",
    "objstore cat --pretty tag/start",
    "objstore ls-objects | objstore cat --batch-check",
)
#: Objects that are read together.
_TOGETHER = 128
_MODES = ("type", "size", "exists", "pretty", "batch", "batch_check")


def main(argv: Sequence[str], context: Context) -> int:
    """Print what was named, from one snapshot of the store."""
    arguments = parse(argv, OPTIONS, USAGE)
    modes = [mode for mode in _MODES if getattr(arguments, mode)]
    if len(modes) > 1:
        first, second = (mode.replace("_", "-") for mode in modes[:2])
        raise UsageError(f"cat: --{first} and --{second} exclude each other", hint="objstore cat --help")
    if arguments.batch or arguments.batch_check:
        if arguments.args:
            raise UsageError(
                "cat: a batch reads its names from standard input only", hint="objstore cat --help"
            )
        return _answer(arguments, context)
    batches = names_given("cat", arguments, context)
    show = _form(arguments)
    with (
        open_store(context) as store,
        store.snapshot() as view,
        Writer(context.stdout, null=arguments.null) as out,
    ):
        for batch in batches:
            try:
                for name, key in resolve_all(view, batch):
                    found = view.get(key) or (None if arguments.exists else _computed(view, name))
                    if found is None:
                        raise NotFound(f"{name}: no such object")
                    if not arguments.exists:
                        out.line(show(key, found))
            except NotFound:
                if arguments.exists:
                    return NotFound.exit_code
                raise
            out.flush()
    return 0


def _computed(view: Snapshot, name: str) -> Stored | None:
    """What stands behind a derived ref that names no object, such as a Merkle root: JSON, of the type ``derived``."""
    from objstore.refs import derived_document
    from objstore.snapshot import Stored

    document = derived_document(name)
    return None if document is None else Stored("derived", json_bytes(document(view, name)))


def _form(arguments: Arguments) -> Callable[[bytes, Stored], bytes]:
    """How one object is printed."""
    if arguments.json:
        whole = not (arguments.type or arguments.size or arguments.batch_check)
        return lambda key, found: _described(key, found, whole)
    if arguments.type:
        return lambda key, found: found.kind.encode()
    if arguments.size:
        return lambda key, found: b"%d" % len(found.data)
    if arguments.pretty:
        return _pretty
    return lambda key, found: found.data


def _described(key: bytes, found: Stored, whole: bool) -> bytes:
    body = b'"object":%b,' % found.data if whole else b""
    return b'{"id":"%b",%b"size":%d,"type":%b}' % (
        key.hex().encode(),
        body,
        len(found.data),
        json_bytes(found.kind),
    )


def _pretty(key: bytes, found: Stored) -> bytes:
    import json

    return json.dumps(json.loads(found.data), ensure_ascii=False, indent=2).encode()


def _answer(arguments: Arguments, context: Context) -> int:
    """Answer every name on standard input, present or not."""
    batches = read_batches(context.stdin, null=arguments.null)
    with (
        open_store(context) as store,
        store.snapshot() as view,
        Writer(context.stdout, null=arguments.null) as out,
    ):
        for names in batches:
            if arguments.json:
                _answer_json(view, names, out, _form(arguments))
            else:
                _answer_lines(view, names, out, b"\0" if arguments.null else b"\n", whole=arguments.batch)
            out.flush()
    return 0


def _answer_lines(view: Snapshot, names: list[bytes], out: Writer, end: bytes, *, whole: bool) -> None:
    form = b"%b %b %d" + end + (b"%b" + end if whole else b"%.0b")
    for start in range(0, len(names), _TOGETHER):
        group = names[start : start + _TOGETHER]
        # The usual name, a whole id, skips what the other forms need.
        keys = [_whole_id(name) for name in group]
        objects = iter(view.get_many([key for key in keys if key is not None]))
        answers: list[bytes] = []
        for name, key in zip(group, keys, strict=True):
            found = next(objects) if key is not None else None
            identity = name.lower()
            if found is None:
                key, reason = _look_up(view, name)
                found = view.get(key) if key is not None else None
                if found is None or key is None:
                    answers.append(name + b" " + reason + end)
                    continue
                identity = key.hex().encode()
            kind, data = found
            answers.append(form % (identity, kind.encode(), len(data), data))
        out.write(b"".join(answers))


def _whole_id(name: bytes) -> bytes | None:
    """The key that ``name`` spells, or None where it is no whole id."""
    try:
        return unhexlify(name) if len(name) == 64 else None
    except NotHex:
        return None


def _answer_json(
    view: Snapshot, names: list[bytes], out: Writer, show: Callable[[bytes, Stored], bytes]
) -> None:
    for name in names:
        key, reason = _look_up(view, name)
        found = view.get(key) if key is not None else None
        if found is None or key is None:
            out.json({"error": reason.decode(), "name": os.fsdecode(name)})
        else:
            out.write(show(key, found) + b"\n")


def _look_up(view: Snapshot, name: bytes) -> tuple[bytes | None, bytes]:
    """The key that ``name`` names, or None and why there is none."""
    try:
        return resolve(view, os.fsdecode(name)), b"missing"
    except AmbiguousId:
        return None, b"ambiguous"
    except (NotFound, UsageError):
        return None, b"missing"
