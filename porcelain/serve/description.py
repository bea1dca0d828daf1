"""The OpenAPI description of what is served."""

from __future__ import annotations

from typing import Any

from porcelain.serve.exchange import BINARY, FROM, STATE
from porcelain.serve.reading import DEFAULT_REFS, JSON, MOST_REFS

_ID = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_NAME = {"type": "string", "minLength": 1, "maxLength": 400}
_ANY = {"type": "string", "maxLength": 100}
_SID = {"type": "string", "pattern": "^[0-9]{8}-[0-9]{6}-[0-9a-f]{4}$"}
_BATES = {"type": "string", "pattern": "^[0-9]{8}-[0-9]{6}-[0-9a-f]{4}-[0-9]{6}$"}
_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {"code": {"type": "integer"}, "error": {"type": "string"}, "hint": {"type": "string"}},
}
_REF = {"type": "object", "required": ["id", "name"], "properties": {"id": _ID, "name": _NAME}}
#: What every request may come to.
_ALWAYS = {
    "400": "it says what has no meaning here",
    "401": "no token was shown, or a wrong one",
    "403": "the token or the origin does not allow it",
    "408": "it came too slowly",
    "413": "its body is too long",
    "421": "it was meant for a host of another name",
    "500": "the server failed",
    "503": "there are too many at once",
}
_NOT_FOUND = {"404": "there is none"}
_SESSION = {
    **_NOT_FOUND,
    "409": "the session went on in several places",
    "422": "what is stored does not hold",
}


def description() -> dict[str, Any]:
    """The whole document, OpenAPI 3.1."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "objstore",
            "version": "1",
            "description": "A store of conversations: its objects and refs, its sessions, and the exchange of packs.",
        },
        "security": [{"bearer": []}, {"basic": []}],
        "components": {
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic", "description": "the token as the password"},
                "bearer": {"type": "http", "scheme": "bearer"},
            },
            "schemas": {"Error": _ERROR, "Ref": _REF},
        },
        "paths": {
            "/health": _get("That the store can be read", _object(objects="integer", status="string")),
            "/objects/{id}": _get(
                "The canonical bytes of an object",
                {},
                {**_NOT_FOUND, "422": "it is damaged"},
                [_in_path("id", _ID)],
            ),
            "/refs": _get("Refs in order of name", _REFS, {}, _REFS_PARAMETERS),
            "/refs/{name}": _get(
                "Where a ref stands",
                {"$ref": "#/components/schemas/Ref"},
                {**_SESSION},
                [_in_path("name", _NAME)],
            ),
            "/sessions/{sid}/refresh": _get(
                "What changed in a session since a root that is held",
                _DELTA,
                _SESSION,
                [_in_path("sid", _SID), _in_query("have", _ID)],
            ),
            "/sessions/{sid}/nodes/{bates}": _get(
                "One node of a session",
                {"type": "object", "required": ["node", "parent_bates"]},
                _SESSION,
                [_in_path("sid", _SID), _in_path("bates", _BATES)],
            ),
            "/openapi.json": _get("This description", {"type": "object"}),
            "/exchange/hello": _post("Who is there, and the root of the manifest"),
            "/exchange/nodes": _post("Nodes of the manifest"),
            "/exchange/entries": _post("Entries that are known of chains"),
            "/exchange/fetch": _post(
                "Packs that bring refs",
                {"409": "the store was written to since the answer that is to be gone on with"},
                [_in_header(FROM, {"type": "string", "pattern": "^[0-9]{1,15}$"}), _in_header(STATE, _ANY)],
            ),
            "/exchange/push": _post(
                "Take a pack in", {"409": "another writer was in the way", "422": "the pack is refused"}
            ),
        },
    }


def _object(**properties: str) -> dict[str, Any]:
    return {
        "type": "object",
        "required": sorted(properties),
        "properties": {name: {"type": kind} for name, kind in properties.items()},
    }


_REFS: dict[str, Any] = {
    "type": "object",
    "required": ["next", "refs"],
    "properties": {
        "next": {"type": ["string", "null"]},
        "refs": {"type": "array", "items": {"$ref": "#/components/schemas/Ref"}},
    },
}
_DELTA: dict[str, Any] = {
    "type": "object",
    "required": ["nodes", "session_root", "state"],
    "properties": {
        "nodes": {
            "type": "array",
            "items": {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2},
        },
        "session_root": _ID,
        "state": {"enum": ["changed", "current", "replaced"]},
    },
}


def _in_path(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _in_query(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "schema": schema}


def _in_header(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": False, "schema": schema}


_REFS_PARAMETERS = [
    _in_query("prefix", {"type": "string", "maxLength": 400}),
    _in_query("after", {"type": "string", "maxLength": 400}),
    _in_query("limit", {"type": "integer", "minimum": 1, "maximum": MOST_REFS, "default": DEFAULT_REFS}),
]


def _responses(media: str, schema: dict[str, Any], more: dict[str, str]) -> dict[str, Any]:
    failures = {
        status: {
            "description": text,
            "content": {JSON: {"schema": {"$ref": "#/components/schemas/Error"}}},
        }
        for status, text in sorted({**_ALWAYS, **more}.items())
    }
    return {"200": {"description": "done", "content": {media: {"schema": schema}}}, **failures}


def _get(
    summary: str,
    schema: dict[str, Any],
    more: dict[str, str] | None = None,
    parameters: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    operation = {
        "summary": summary,
        "parameters": parameters or [],
        "responses": _responses(JSON, schema, more or {}),
    }
    return {"get": operation}


def _post(
    summary: str, more: dict[str, str] | None = None, parameters: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    binary = {"type": "string", "format": "binary"}
    operation = {
        "summary": summary,
        "parameters": parameters or [],
        "requestBody": {"required": True, "content": {BINARY: {"schema": binary}}},
        "responses": _responses(BINARY, {}, more or {}),
    }
    return {"post": operation}
