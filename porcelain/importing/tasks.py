"""What an import's worker is given and gives back."""

from __future__ import annotations

import importlib
from typing import cast

import msgspec
from msgspec import Struct, field

from objstore.batch import Prepared
from porcelain.providers.agents import PROVIDERS
from porcelain.providers.cursor import Cursor
from porcelain.providers.reader import Conversation, Discovery, Provider


def provider_module(name: str) -> Provider:
    """The module that knows the format of ``name``."""
    return cast(Provider, importlib.import_module(PROVIDERS[name]))


def discovery_module(name: str) -> Discovery:
    """The part of it that finds conversations, which is enough to see that there is nothing new."""
    return cast(Discovery, importlib.import_module(f"{PROVIDERS[name]}_discover"))


class Settings(Struct, frozen=True, kw_only=True):
    """What is the same for all conversations of an import. ``store`` is the id of the store at ``path``, ``keep``
    whether content is kept, ``key`` that of hashes over raw bytes, ``assemble`` whether rounds are made of what was
    landed."""

    path: str
    store: str
    algorithm: str
    keep: bool
    key: bytes
    assemble: bool = True


class Task(Struct, frozen=True, kw_only=True):
    """One conversation to work on. ``conversation.native_id`` is the name of its chains; ``landed`` and ``flow`` are
    the heads of those (hex), ``flow_ref`` the ref of the chain of rounds, ``round`` and ``through_seq`` what the
    landing chain has reached, ``assembled`` the last ``seq`` that the rounds cover."""

    number: int
    conversation: Conversation
    cursors: dict[str, Cursor]
    landed: str | None
    round: int
    through_seq: int
    flow: str | None
    flow_ref: str
    assembled: int = 0


class Piece(Struct, kw_only=True):
    """What one transaction stores of a conversation, beside its objects. ``landed`` and ``flow`` are new heads;
    ``content`` ids of ``list`` objects that name kept content; ``problems`` pairs of path and reason; ``derived``
    values of the rebuildable indexes; ``last`` ends the task."""

    number: int
    landed: str | None = None
    flow: str | None = None
    cursors: list[Cursor] = field(default_factory=list)
    reread: dict[str, str] = field(default_factory=dict)
    content: list[str] = field(default_factory=list)
    problems: list[tuple[str, str]] = field(default_factory=list)
    records: int = 0
    source_bytes: int = 0
    rounds: int = 0
    derived: dict[bytes, bytes | None] = field(default_factory=dict)
    last: bool = False


class Bundle(Struct):
    """Pieces of one conversation or of several, in order, and what objects they need that may not be stored yet."""

    objects: list[Prepared]
    pieces: list[Piece]


_BUNDLES = msgspec.msgpack.Decoder(Bundle)


def bundle_from_bytes(data: bytes) -> Bundle:
    """A bundle as another process sent it."""
    return _BUNDLES.decode(data)
