"""The work on conversations, in this process or in another: land what is new, assemble it, hand on what to store.

A worker reads the store through snapshots only; it returns pieces, each of which is stored in one transaction. Those of
small conversations come several in a bundle: compressing and handing over costs as much for few objects as for many.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import Any

import msgspec
from msgspec import UNSET

from objstore import kinds
from objstore.batch import Prepared, prepare
from objstore.core import ListOf, list_pieces
from objstore.database import Database
from objstore.digest import hasher
from objstore.errors import ObjstoreError
from objstore.garbage import without_gc
from objstore.kind_modules import declare
from objstore.snapshot import Snapshot
from objstore.workers import Serve
from porcelain.flow.assembly import Chain
from porcelain.flow.assembly.entries import Landed, from_page
from porcelain.flow.chain.fold_store import Lines, saved_fold, stored_fold
from porcelain.flow.chain.landed import pages
from porcelain.flow.chain.naming import flow_ref
from porcelain.flow.chain.standing_store import load_standing, saved_standing
from porcelain.flow.chain.store import KEPT_FILES, LandedFiles, chain_head, pack, put_round
from porcelain.flow.formats.sd import sd_bytes
from porcelain.importing.tasks import Bundle, Piece, Settings, Task, provider_module
from porcelain.providers.records import Landing, page_record_ids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from porcelain.providers.chunks import LandedChunk

#: Bytes of the rounds of a conversation from which on those made so far are handed on to be stored.
_PIECE_BYTES = 16 * 1024 * 1024
#: A bundle of a worker process has no more pieces when they cover this many bytes of source or have so many objects.
_BUNDLE_BYTES = 2 * 1024 * 1024
_BUNDLE_OBJECTS = 8 * 1024

_Objects = dict[bytes, tuple[str, bytes]]


class Worker:
    """Works on tasks with one open database; ``database`` is borrowed."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self._hash = hasher(settings.algorithm)

    def bundles(self, tasks: Iterable[Task], most: int = 0) -> Iterator[Bundle]:
        """All pieces of some tasks; the last one of a task says so, also when the work failed. A bundle has one piece,
        or as many as cover ``most`` bytes of source."""
        objects: _Objects = {}
        pieces: list[Piece] = []
        covered = 0
        for task in tasks:
            for piece, made in self._pieces(task):
                objects.update(made)
                pieces.append(piece)
                covered += piece.source_bytes
                if covered >= most or len(objects) >= _BUNDLE_OBJECTS:
                    yield Bundle(_prepared(objects), pieces)
                    objects, pieces, covered = {}, [], 0
        if pieces:
            yield Bundle(_prepared(objects), pieces)

    def _pieces(self, task: Task) -> Iterator[tuple[Piece, _Objects]]:
        try:
            yield from self._work(task)
        except ObjstoreError as error:
            yield Piece(number=task.number, problems=[(_shown(task), error.message)], last=True), {}
        except (OSError, ValueError, ArithmeticError, LookupError, TypeError, RecursionError) as error:
            # Of an error that nobody expected only type and place are told: its text might quote a conversation.
            yield Piece(number=task.number, problems=[(_shown(task), _where(error))], last=True), {}

    def _work(self, task: Task) -> Iterator[tuple[Piece, _Objects]]:
        assembles = self._settings.assemble
        head, number, through = task.landed, task.round, task.through_seq
        fresh: list[Landed | bytes] = []
        waiting: tuple[Piece, _Objects] | None = None
        for chunk in self._landed_chunks(task) if task.conversation.sources else ():
            if waiting is not None:
                yield waiting
            waiting, head, number, through = self._landed_piece(task, chunk, head, number, through)
            if assembles:
                for landed in chunk.pages:
                    file = from_page(landed.page, landed.records)
                    fresh.append(file if len(fresh) < KEPT_FILES else pack(file))
        piece, objects = waiting or (Piece(number=task.number), {})
        if assembles and through:
            piece, objects = yield from self._assemble(task, fresh, through, piece, objects)
        piece.last = True
        yield piece, objects

    def _landed_chunks(self, task: Task) -> Iterator[LandedChunk]:
        """What is new in the sources of a conversation. Where there are none, no reader is loaded either."""
        from porcelain.providers.chunks import LandingOptions
        from porcelain.providers.content import ContentSink
        from porcelain.providers.landing import land_conversation
        from porcelain.providers.redaction import RULES, redact

        provider = provider_module(task.conversation.provider)
        sink = ContentSink(keep=self._settings.keep, algorithm=self._settings.algorithm)
        options = LandingOptions(
            redact=redact,
            rules=RULES,
            key=self._settings.key,
            sd_bytes=sd_bytes,
            landed_records=lambda path: self._landed_records(task, path),
        )
        land = getattr(provider, "land", land_conversation)
        return iter(land(task.conversation, task.cursors, provider, sink, options, task.through_seq + 1))

    def _landed_piece(
        self, task: Task, chunk: LandedChunk, head: str | None, number: int, through: int
    ) -> tuple[tuple[Piece, _Objects], str | None, int, int]:
        """The piece of a chunk with its objects, and where the landing chain stands after it."""
        objects: _Objects = {}

        def put(kind: str, data: bytes) -> str:
            key = self._hash(data)
            objects[key] = (kind, data)
            return key.hex()

        content = [put(kind, data) for kind, data in chunk.content]
        page_ids: list[str] = []
        records = 0
        for landed in chunk.pages:
            for key, data in zip(landed.keys, landed.encoded, strict=True):
                objects[key] = ("record", data)
            records += len(landed.records)
            page_ids.append(put("page", kinds.encode(landed.page)))
        moved = None
        if page_ids:
            number += 1
            through += len(page_ids)
            moved = head = put(
                "landing",
                kinds.encode(
                    Landing(
                        conversation=task.conversation.native_id,
                        pages=page_ids,
                        previous=head or UNSET,
                        provider=task.conversation.provider,
                        round=number,
                        through_seq=through,
                    )
                ),
            )
        lists = [put("list", kinds.encode(ListOf(items=ids))) for ids in list_pieces(content)]
        piece = Piece(
            number=task.number,
            landed=moved,
            cursors=chunk.cursors,
            reread=dict(chunk.reread),
            content=lists,
            problems=[(problem.path, problem.reason) for problem in chunk.problems],
            records=records,
            source_bytes=chunk.source_bytes,
        )
        return (piece, objects), head, number, through

    def _assemble(
        self, task: Task, fresh: list[Landed | bytes], through: int, piece: Piece, objects: _Objects
    ) -> Generator[tuple[Piece, _Objects], None, tuple[Piece, _Objects]]:
        """Add to ``piece`` and its ``objects`` the rounds that bring the chain up to ``through``, and where assembly
        then stands. Of many rounds some are given beforehand, in pieces of their own; returned is the last piece."""
        name = task.conversation.native_id
        landed = bytes.fromhex(task.landed) if task.landed else None
        flow = bytes.fromhex(task.flow) if task.flow else None
        size = 0

        def put(kind: str, data: bytes) -> str:
            nonlocal size
            key = self._hash(data)
            objects[key] = (kind, data)
            size += len(data)
            return key.hex()

        with self._database.snapshot() as view:
            head = chain_head(view, flow)
            if head.through_seq >= through:
                return piece, objects
            ref = flow_ref(self._settings.store, task.conversation.provider, name)
            chain = Chain(
                name,
                name,
                head,
                lambda: (stored_fold(view, flow), LandedFiles(view, landed, 0, fresh)),
                standing=load_standing(view, ref, task.flow) if task.flow else None,
            )
            made, lines = task.flow, Lines()
            for written in chain.rounds(LandedFiles(view, landed, head.through_seq, fresh)):
                if size > _PIECE_BYTES:
                    piece.flow = made
                    yield piece, objects
                    piece, objects, size = Piece(number=task.number), {}, 0
                made = put_round(written, made, put)
                if chain.standing is not None:
                    lines.take(written)
                piece.rounds += 1
            if made is not None and made != task.flow:
                piece.flow = made
                piece.derived = saved_standing(view, ref, made, chain.standing)
                if chain.standing is not None:
                    piece.derived.update(saved_fold(view, flow, made, lines))
        return piece, objects

    def _landed_records(self, task: Task, path: str) -> Iterator[str]:
        """Ids of the records that were landed from a file, in order."""
        cursor = task.cursors.get(path)
        if task.landed is None or cursor is None:
            return
        with self._database.snapshot() as view:
            found = [
                i
                for page in _pages(view, task.landed)
                if page.src == cursor.src
                for i in page_record_ids(page)
            ]
        yield from found


def _pages(view: Snapshot, head: str) -> Iterator[Any]:
    return pages(view, bytes.fromhex(head))


def _prepared(objects: _Objects) -> list[Prepared]:
    return prepare((key, kind, data) for key, (kind, data) in objects.items())


def _shown(task: Task) -> str:
    return task.conversation.sources[0].path if task.conversation.sources else task.conversation.native_id


def _where(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f" in {trace.tb_frame.f_globals.get('__name__')}:{trace.tb_lineno}" if trace is not None else ""
    return f"internal error: {type(error).__name__}{place}"


def serve_tasks(argument: bytes) -> Serve:
    """What a worker process does: bundles of some tasks at a time, with one open database for all."""
    settings, declared = msgspec.msgpack.decode(argument, type=tuple[Settings, dict[str, str]])
    for name, module in declared.items():
        declare(module, [name])
    worker = Worker(Database.open(settings.path, read_only=True), settings)
    encoder, decoder = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(list[Task])

    def serve(tasks: bytes) -> Iterator[bytes]:
        with without_gc():
            for bundle in worker.bundles(decoder.decode(tasks), _BUNDLE_BYTES):
                yield encoder.encode(bundle)

    return serve
