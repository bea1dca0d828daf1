"""The read API: objects, refs, and what changed in a session since a root that a page holds. JSON, each answer of one
snapshot."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any

import msgspec
from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from objstore.errors import NotFound, UsageError
from objstore.snapshot import Snapshot, resolve
from objstore.store import Store, read
from objstore.sync.joining import is_offered
from plumbing.interface.settings import keeps_content
from porcelain.session.exchange.refresh import changes_since, encode_delta, encode_fetched, fetch_node
from porcelain.session.tree.change import open_session
from porcelain.session.tree.identity import is_bates, is_sid

JSON = "application/json"
#: Refs in one answer: the most, and where nothing is asked.
MOST_REFS = 1000
DEFAULT_REFS = 100
ID = re.compile(r"[0-9a-f]{64}", re.ASCII)
_NUMBER = re.compile(r"[1-9][0-9]{0,3}", re.ASCII)

Answer = Callable[[Snapshot, Request], Response]


def routes(store: Store) -> list[Route]:
    """The routes of the read API."""
    table: dict[str, Answer] = {
        "/health": health,
        "/objects/{id}": one_object,
        "/refs": list_refs,
        "/refs/{name:path}": one_ref,
        "/sessions/{sid}/refresh": refresh,
        "/sessions/{sid}/nodes/{bates}": one_node,
    }
    return [Route(path, partial(_answered, store, answer), methods=["GET"]) for path, answer in table.items()]


async def _answered(store: Store, answer: Answer, request: Request) -> Response:
    def run() -> Response:
        with store.snapshot() as view:
            return answer(view, request)

    return await to_thread.run_sync(run)


def _json(data: Any) -> Response:
    return Response(msgspec.json.encode(data), media_type=JSON)


def health(view: Snapshot, request: Request) -> Response:
    """That the store can be read, and how many objects it has."""
    _parameters(request)
    return _json({"objects": view.count(), "status": "ok"})


def one_object(view: Snapshot, request: Request) -> Response:
    """The canonical bytes of an object; its kind is a header."""
    _parameters(request)
    text = request.path_params["id"]
    if ID.fullmatch(text) is None:
        raise UsageError("not an id: expected 64 hexadecimal digits")
    found = read(view, bytes.fromhex(text))
    return Response(found.data, media_type=JSON, headers={"etag": f'"{text}"', "objstore-kind": found.kind})


def list_refs(view: Snapshot, request: Request) -> Response:
    """Refs in order of name: those that begin with ``prefix`` and come after ``after``, at most ``limit``."""
    given = _parameters(request, "after", "limit", "prefix")
    limit = given.get("limit", str(DEFAULT_REFS))
    if _NUMBER.fullmatch(limit) is None or int(limit) > MOST_REFS:
        raise UsageError(f"limit: expected a number up to {MOST_REFS}")
    after = given.get("after", "")
    content = keeps_content(view)
    found = (
        {"id": key.hex(), "name": name}
        for name, key in view.refs(given.get("prefix", ""))
        if name > after and is_offered(name, key, view, content=content)
    )
    page = list(islice(found, int(limit)))
    return _json({"next": page[-1]["name"] if len(page) == int(limit) else None, "refs": page})


def one_ref(view: Snapshot, request: Request) -> Response:
    """Where a ref stands; derived names too."""
    _parameters(request)
    name = request.path_params["name"]
    if "/" not in name or not name.isprintable():
        raise NotFound("no such ref")
    return _json({"id": resolve(view, name).hex(), "name": name})


def refresh(view: Snapshot, request: Request) -> Response:
    """What changed in a session since the root ``have``."""
    have = _parameters(request, "have").get("have")
    return Response(
        encode_delta(changes_since(view, open_session(view, _sid(request)), have)), media_type=JSON
    )


def one_node(view: Snapshot, request: Request) -> Response:
    """One node of a session."""
    _parameters(request)
    bates = request.path_params["bates"]
    if not is_bates(bates):
        raise UsageError("not a Bates id")
    return Response(
        encode_fetched(fetch_node(view, open_session(view, _sid(request)), bates)), media_type=JSON
    )


def _sid(request: Request) -> str:
    sid: str = request.path_params["sid"]
    if not is_sid(sid):
        raise UsageError("not the id of a session")
    return sid


def _parameters(request: Request, *allowed: str) -> dict[str, str]:
    """What was asked behind the ``?``; raises ``UsageError`` for what is unknown or said twice."""
    found: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in allowed:
            raise UsageError(f"{name[:40]!r}: no such parameter")
        if name in found:
            raise UsageError(f"{name}: is there twice")
        found[name] = value
    return found
