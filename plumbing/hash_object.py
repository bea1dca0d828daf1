"""``objstore hash-object``: compute the ids of JSON documents, and store them."""

from __future__ import annotations

import os

from objstore.canonical import MAX_TEXT, canonicalize
from objstore.digest import hasher
from objstore.errors import CheckFailed, UsageError
from plumbing.interface.options import JSON, NUL, Option, parse
from plumbing.interface.output import Writer, encode, printable, read_batches
from plumbing.interface.stores import open_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import BinaryIO

    from plumbing.interface.options import Arguments, Context

    #: The kind and the canonical bytes of a document, where they are known.
    _Found = tuple[str, bytes] | None

SUMMARY = "Compute the ids of JSON documents, and store them with -w."
USAGE = """hash-object [-w] [--json] [-z] [--stdin] [FILE...]
hash-object [-w] [--json] [-z] --stdin-paths
hash-object [-w] [-k] [--json] [-z] [--stdin] --batch"""
OPTIONS = (
    Option(("-w", "--write"), "write", help="store the documents"),
    Option("--stdin", help="read one document from standard input, before any FILE"),
    Option("--stdin-paths", help="read names of files from standard input, one a line"),
    Option("--batch", help="read documents from standard input, one a line"),
    Option(("-k", "--keep-going"), help="with --batch: answer a bad document with - and go on"),
    JSON,
    NUL,
)
EXAMPLES = (
    """echo '{"text":"hello","type":"text"}' | objstore hash-object -w --stdin""",
    "objstore hash-object document.json",
    "objstore hash-object -w --batch < documents.jsonl",
)

#: Ids of stored objects are printed once the objects are durable: after this many, or when input pauses so long.
_FLUSH_OBJECTS = 64 * 1024
_PAUSE_SECONDS = 0.02


def main(argv: Sequence[str], context: Context) -> int:
    """Print one id a document, in order."""
    arguments = parse(argv, OPTIONS, USAGE)
    one_by_one = arguments.args or (arguments.stdin and not arguments.batch)
    ways = arguments.stdin_paths + arguments.batch + bool(one_by_one)
    if ways != 1:
        what = "no document given" if not ways else "give FILEs and --stdin, or --stdin-paths, or --batch"
        raise UsageError(f"hash-object: {what}", hint="objstore hash-object --help")
    if arguments.keep_going and not arguments.batch:
        raise UsageError("hash-object: --keep-going needs --batch", hint="objstore hash-object --help")
    documents = _Documents(arguments, context)
    with Writer(context.stdout, null=arguments.null) as out:
        if not arguments.write:
            make_key = hasher(_algorithm(context))
            make_canonical = canonicalize
            if arguments.batch:
                from objstore.fastcanonical import canonicalize as make_canonical
            return _hash(documents, lambda text, _: make_key(make_canonical(text)).hex(), None, out)
        with open_store(context, write=True) as store:
            if documents.single:
                from objstore.canonical import parse as parse_json

                return _hash(documents, lambda text, _: store.put(parse_json(text)), None, out)
            from objstore.garbage import without_gc
            from plumbing.interface.documents import check_document, check_documents

            with without_gc(), store.writer() as writer:
                return _hash(
                    documents,
                    lambda text, found: writer.put(*(found or check_document(text))),
                    writer.flush,
                    out,
                    check_documents,
                    writer.put_all,
                )


def _algorithm(context: Context) -> str:
    """The hash of the store that would be written to; where there is none, that of a store made without options."""
    if not os.path.isfile(os.path.join(context.store_path(), "data.mdb")):
        return "sha256"
    with open_store(context) as store:
        return store.algorithm


class _Documents:
    """The texts of all documents, in batches, and how to call each when something is wrong with it."""

    def __init__(self, arguments: Arguments, context: Context) -> None:
        self.arguments = arguments
        self.context = context
        self.single = (
            not (arguments.batch or arguments.stdin_paths) and arguments.stdin + len(arguments.args) == 1
        )
        self._name = ""

    def batches(self) -> Iterator[list[bytes]]:
        """The texts in the batches in which they come."""
        if self.arguments.batch:
            yield from read_batches(self.context.stdin, null=self.arguments.null)
            return
        if self.arguments.stdin:
            self._name = "-"
            yield [self.context.stdin.read(MAX_TEXT + 1)]
        for name in self._paths():
            self._name = name
            with open(name, "rb") as file:
                text = file.read(MAX_TEXT + 1)
            yield [text]

    def _paths(self) -> Iterator[str]:
        yield from self.arguments.args
        if self.arguments.stdin_paths:
            for batch in read_batches(self.context.stdin, null=self.arguments.null):
                yield from map(os.fsdecode, batch)

    def located(self, message: str, number: int) -> str:
        """``message`` with the place of document ``number`` (from 1), the one that was given out last."""
        if self.arguments.batch:
            return f"line {number}: {message.removeprefix('line 1 ')}"
        return f"{self._name}: {message}"


def _hash(
    documents: _Documents,
    put: Callable[[bytes, _Found], str],
    make_durable: Callable[[], object] | None,
    out: Writer,
    look: Callable[[list[bytes]], list[_Found]] = lambda batch: [None] * len(batch),
    put_all: Callable[[list[tuple[str, bytes]]], list[str]] | None = None,
) -> int:
    """Give each document to ``put`` and print what it returns, or say what is wrong and stop (or go on, if asked).

    ``look`` finds out what it can about the documents of a batch together, which ``put`` is given too; where it found
    out all, ``put_all`` takes the batch as a whole. With ``make_durable`` no id is printed before it was called.
    """
    arguments, stdin = documents.arguments, documents.context.stdin
    end = "\0" if arguments.null else "\n"
    waits = (arguments.batch or arguments.stdin_paths) and _can_wait(stdin)
    answers: list[str] = []
    number = failed = 0

    def settle() -> None:
        if make_durable is not None:
            make_durable()
        if arguments.json:
            for answer in answers:
                out.json({"id": None if answer == "-" else answer})
        elif answers:
            out.line(end.join(answers))
        answers.clear()
        out.flush()

    try:
        for batch in documents.batches():
            known = look(batch)
            if put_all is not None and None not in known:
                answers += put_all([found for found in known if found is not None])
                number += len(batch)
            else:
                for text, found in zip(batch, known, strict=True):
                    number += 1
                    try:
                        answers.append(put(text, found))
                    except CheckFailed as error:
                        error.message = documents.located(error.message, number)
                        if not arguments.keep_going:
                            raise
                        failed += 1
                        answers.append("-")
                        _complain(documents.context, error.message)
            if make_durable is None or len(answers) >= _FLUSH_OBJECTS or (waits and _pauses(stdin)):
                settle()
    except (CheckFailed, OSError):
        settle()
        raise
    settle()
    return CheckFailed.exit_code if failed else 0


def _complain(context: Context, message: str) -> None:
    """Say what is wrong with one document of several, as an error that ends the command would be said."""
    context.stderr.write(encode(f"objstore: {printable(message)}\n"))
    context.stderr.flush()


def _can_wait(stream: BinaryIO) -> bool:
    """Whether more may come on ``stream`` after a pause: it is no file and no buffer in memory."""
    from stat import S_ISREG

    try:
        return os.name == "posix" and not S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def _pauses(stream: BinaryIO) -> bool:
    """Whether nothing more can be read from ``stream`` for a moment: someone may be waiting for answers."""
    from select import select

    return not select([stream], [], [], _PAUSE_SECONDS)[0]
