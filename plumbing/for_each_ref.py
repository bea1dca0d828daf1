"""``objstore for-each-ref``: list refs in a chosen format."""

from __future__ import annotations

import re

from objstore.errors import NotFound, UsageError
from plumbing.interface.options import JSON, NUL, Option, parse
from plumbing.interface.output import Writer
from plumbing.interface.stores import abbreviate, open_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from objstore.snapshot import Snapshot
    from plumbing.interface.options import Context

SUMMARY = "List refs in a chosen format and order."
USAGE = "for-each-ref [--format=FORMAT] [--sort=KEY]... [--count=N] [--json] [-z] [PATTERN...]"
OPTIONS = (
    Option(
        "--format",
        metavar="FORMAT",
        help="fields such as %(refname), or words such as 'id name'",
        kind="text",
    ),
    Option(
        "--sort",
        metavar="KEY",
        help="sort by name, id, type or size; -KEY descending",
        kind="text",
        many=True,
    ),
    Option("--count", metavar="N", help="stop after N refs", kind="integer"),
    JSON,
    NUL,
)
EXAMPLES = (
    "objstore for-each-ref --format=name tag",
    "objstore for-each-ref --format='%(objectname:short) %(refname)' 'landed/*/claude'",
)

_DEFAULT = "%(objectname) %(objecttype)\t%(refname)"
#: The words that may stand for a field.
_WORDS = {"name": "refname", "id": "objectname", "type": "objecttype", "size": "objectsize"}
_PIECE = re.compile(r"%\(([^)]*)\)|%([0-9A-Fa-f]{2})|%(%)|%")


class _Ref:
    """One ref; its fields are looked up when they are asked for."""

    def __init__(self, view: Snapshot, name: str, key: bytes) -> None:
        self._view = view
        self._key = key
        self.refname = name

    @property
    def objectname(self) -> str:
        return self._key.hex()

    @property
    def short(self) -> str:
        return abbreviate(self._view, self._key, 7)

    @property
    def objecttype(self) -> str:
        kind = self._view.kind(self._key)
        if kind is None:
            raise NotFound(
                f"{self.refname}: names {self._key.hex()}: no such object", hint="run: objstore verify"
            )
        return kind

    @property
    def objectsize(self) -> int:
        found = self._view.get(self._key)
        if found is None:
            raise NotFound(
                f"{self.refname}: names {self._key.hex()}: no such object", hint="run: objstore verify"
            )
        return len(found.data)


_FIELDS: dict[str, Callable[[_Ref], str | int]] = {
    "refname": lambda ref: ref.refname,
    "objectname": lambda ref: ref.objectname,
    "objectname:short": lambda ref: ref.short,
    "objecttype": lambda ref: ref.objecttype,
    "objectsize": lambda ref: ref.objectsize,
}


def main(argv: Sequence[str], context: Context) -> int:
    """Print a line for each ref."""
    arguments = parse(argv, OPTIONS, USAGE)
    pieces = _parse_format(_DEFAULT if arguments.format is None else arguments.format)
    keys = [_sort_key(key) for key in arguments.sort]
    with (
        open_store(context) as store,
        store.snapshot() as view,
        Writer(context.stdout, null=arguments.null) as out,
    ):
        refs = [_Ref(view, name, key) for name, key in _matching(view, arguments.args)]
        for field, descending in reversed(keys):
            refs.sort(key=_FIELDS[field], reverse=descending)
        for ref in refs[: arguments.count]:
            if arguments.json:
                out.json({"id": ref.objectname, "name": ref.refname, "type": ref.objecttype})
            else:
                out.line("".join(piece if isinstance(piece, str) else str(piece(ref)) for piece in pieces))
    return 0


def _parse_format(text: str) -> list[str | Callable[[_Ref], str | int]]:
    """The literal texts and field getters that a format consists of."""
    words = text.replace(",", " ").split()
    if words and all(word in _WORDS for word in words):
        text = " ".join(f"%({_WORDS[word]})" for word in words)
    pieces: list[str | Callable[[_Ref], str | int]] = []
    end = 0
    for match in _PIECE.finditer(text):
        pieces.append(text[end : match.start()])
        end = match.end()
        field, code, percent = match.groups()
        if field is not None:
            if field not in _FIELDS:
                raise UsageError(
                    f"for-each-ref: --format: no field %({field})",
                    hint="fields: "
                    + " ".join(f"%({name})" for name in _FIELDS)
                    + "; words: "
                    + " ".join(_WORDS),
                )
            pieces.append(_FIELDS[field])
        else:
            pieces.append("%" if percent or code is None else chr(int(code, 16)))
    pieces.append(text[end:])
    return pieces


def _sort_key(text: str) -> tuple[str, bool]:
    name = text.removeprefix("-")
    field = _WORDS.get(name, name)
    if field not in _FIELDS:
        raise UsageError(f"for-each-ref: --sort: {text!r} is none of {', '.join(_WORDS)}")
    return field, text.startswith("-")


def _matching(view: Snapshot, patterns: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Refs whose first parts match the parts of a pattern one by one; all of them without patterns."""
    if not patterns:
        yield from view.refs()
        return
    from fnmatch import translate

    tests = [
        [re.compile(translate(part)).match for part in pattern.strip("/").split("/")] for pattern in patterns
    ]
    for name, key in view.refs():
        parts = name.split("/")
        if any(
            len(test) <= len(parts) and all(match(part) for match, part in zip(test, parts, strict=False))
            for test in tests
        ):
            yield name, key
