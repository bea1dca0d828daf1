"""Content that the store does not keep, read once more from the agent's own files.

A record names its content by the hash of it, so that what a file says today is what was said then exactly where it has
the same id: nothing else need be compared. Nothing is stored.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from objstore import kinds
from objstore.core import Chunks, ListOf
from objstore.digest import hasher
from objstore.refs import quote
from objstore.snapshot import Snapshot
from porcelain.importing.cursors import load_heads
from porcelain.importing.tasks import discovery_module, provider_module
from porcelain.providers.agents import PROVIDERS
from porcelain.providers.chunks import LandedChunk, LandingOptions
from porcelain.providers.content import ContentSink
from porcelain.providers.landing import land_conversation
from porcelain.providers.reader import Conversation
from porcelain.providers.redaction import RULES, redact

#: Content objects by key: name of the kind and canonical bytes.
Contents = dict[bytes, tuple[str, bytes]]


def reread(view: Snapshot, provider: str, name: str, wanted: Collection[str], algorithm: str) -> Contents:
    """Those of the content objects ``wanted`` (ids) that the files of a conversation hold today, with their pieces.

    ``name`` is that of the conversation's chains, quoted; ``algorithm`` the hash of the store. Files are those that
    this store imported it from, as far as they are there. What cannot be read is left out.
    """
    found: Contents = {}
    needed = {bytes.fromhex(one) for one in wanted}
    if not needed or provider not in PROVIDERS:
        return found
    key_of = hasher(algorithm)
    for chunk in _chunks(view, provider, name, algorithm):
        # Every object follows those it needs: the last one first.
        for kind, data in reversed(chunk.content):
            key = key_of(data)
            if key in needed and key not in found:
                found[key] = (kind, data)
                obj = kinds.decode(kind, data)
                if isinstance(obj, Chunks):
                    needed.update(bytes.fromhex(one) for one in obj.pieces)
                elif isinstance(obj, ListOf):
                    needed.update(bytes.fromhex(one) for one in obj.items)
    return found


def _chunks(view: Snapshot, provider: str, name: str, algorithm: str) -> Iterator[LandedChunk]:
    """What an import of the conversation's files would land, had it never seen them."""
    module = provider_module(provider)
    land = getattr(module, "land", land_conversation)
    sink = ContentSink(keep=True, algorithm=algorithm)
    options = LandingOptions(redact=redact, rules=RULES, key=b"", sd_bytes=lambda _page, _records: b"")
    for conversation in _conversations(view, provider, name):
        yield from land(conversation, {}, module, sink, options, 1)


def _conversations(view: Snapshot, provider: str, name: str) -> Iterator[Conversation]:
    """What stands at the paths from which the conversation was imported."""
    module = discovery_module(provider)
    cursors = load_heads(view, provider).values()
    mine = sorted(one.path for one in cursors if one.state != "left-out" and quote(one.conversation) == name)
    read: set[str] = set()
    for path in mine:
        if path in read:
            continue
        container = os.path.dirname(path)
        for one in (
            # A path below a file is a conversation in a database.
            module.discover(Path(container)) if os.path.isfile(container) else [module.recognise(Path(path))]
        ):
            if isinstance(one, Conversation) and any(source.path in mine for source in one.sources):
                read.update(source.path for source in one.sources)
                yield one
