"""Tokens: what a client shows to be let in. A store keeps only their hashes, as data of this machine."""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Literal

import msgspec
from msgspec import Struct

from objstore.batch import Batch
from objstore.errors import NotFound
from objstore.snapshot import Snapshot

Scope = Literal["read", "write"]
SCOPES: tuple[Scope, ...] = ("read", "write")
_PREFIX = b"token/"
_TEXT = re.compile(r"([0-9a-f]{8})\.([A-Za-z0-9_-]{43})", re.ASCII)
_SECRET_BYTES = 32


class Token(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is kept of a token: when it was made (RFC 3339), the SHA-256 (hex) of its secret, what a person called it,
    and what it is good for; ``write`` includes ``read``."""

    created: str
    hash: str
    label: str
    scope: Scope


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Token)
#: Compared with where no such token exists, so that the answer takes as long.
_NOBODY = Token(
    created="", hash=sha256(secrets.token_bytes(_SECRET_BYTES)).hexdigest(), label="", scope="read"
)


def new_token(scope: Scope, label: str, time: str) -> tuple[str, str, Token]:
    """A token: its id, the text that the client gets and nobody keeps, and what is kept."""
    identity, secret = secrets.token_hex(4), secrets.token_urlsafe(_SECRET_BYTES)
    return identity, f"{identity}.{secret}", Token(created=time, hash=_hash(secret), label=label, scope=scope)


def _hash(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()


def find_token(view: Snapshot, others: Mapping[str, Token], text: str) -> tuple[str, Token] | None:
    """The id and the token that ``text`` shows, among those of the store and ``others``; None for a wrong one."""
    found = _TEXT.fullmatch(text)
    identity, secret = (found[1], found[2]) if found is not None else ("", text)
    token = others.get(identity)
    if token is None:
        kept = view.local(_PREFIX + identity.encode())
        token = _NOBODY if kept is None else _DECODER.decode(kept)
    same = hmac.compare_digest(token.hash, _hash(secret))
    return (identity, token) if same and found is not None and token is not _NOBODY else None


def all_tokens(view: Snapshot) -> Iterator[tuple[str, Token]]:
    """The tokens of a store, by id."""
    for key, value in view.local_items(_PREFIX):
        yield key[len(_PREFIX) :].decode(), _DECODER.decode(value)


def keep_token(batch: Batch, identity: str, token: Token) -> None:
    """Keep a token in the store."""
    batch.set_local(_PREFIX + identity.encode(), _ENCODER.encode(token))


def forget_token(view: Snapshot, batch: Batch, identity: str) -> None:
    """Have a token be good for nothing from now on; raises ``NotFound``."""
    if view.local(_PREFIX + identity.encode("utf-8", "replace")) is None:
        raise NotFound(f"{identity[:40]}: no such token", hint="list them with: objstore serve tokens")
    batch.set_local(_PREFIX + identity.encode(), None)
