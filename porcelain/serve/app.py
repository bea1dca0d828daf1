"""The application: routes, and what an error looks like over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router

from objstore.errors import CheckFailed, Conflict, NotFound, ObjstoreError, UsageError
from objstore.store import Store
from porcelain.serve import reading
from porcelain.serve.description import description
from porcelain.serve.exchange import Exchange
from porcelain.serve.guard import Guard, Limits, Receive, Send
from porcelain.serve.tokens import Token

#: The status of each kind of error; any other is 500.
STATUS: dict[type[ObjstoreError], int] = {UsageError: 400, NotFound: 404, Conflict: 409, CheckFailed: 422}


def make_app(
    store: Store,
    *,
    hosts: frozenset[str],
    tokens: Mapping[str, Token],
    writable: bool = False,
    limits: Limits | None = None,
    log: Callable[[str], None],
) -> Guard:
    """The ASGI application that serves ``store``; see ``Guard``."""
    limits = limits or Limits()
    router = Router(
        [
            *reading.routes(store),
            *Exchange(store, limits).routes(),
            Route("/openapi.json", _described, methods=["GET"]),
        ],
        redirect_slashes=False,
    )
    answered = ExceptionMiddleware(router, {ObjstoreError: _failed, HTTPException: _not_served})

    async def app(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        scope["app"] = router  # what is not served is then raised, and answered as any other error
        await answered(scope, receive, send)

    return Guard(app, store, hosts=hosts, tokens=tokens, writable=writable, limits=limits, log=log)


async def _described(request: Request) -> Response:
    return JSONResponse(description())


def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, ObjstoreError)
    status = next((status for kind, status in STATUS.items() if isinstance(error, kind)), 500)
    body: dict[str, object] = {"code": error.exit_code, "error": error.message}
    if error.hint is not None:
        body["hint"] = error.hint
    return JSONResponse(body, status)


def _not_served(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code, headers=error.headers)
