"""What the chains of a conversation are called: its native id, and a hash of the file's place behind it for a further
file that carries the same one."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import msgspec

from objstore.digest import hash_bytes
from porcelain.providers.cursor import CursorHead
from porcelain.providers.reader import Conversation
from porcelain.providers.redaction import redact_text

#: Between a native id and what tells apart two conversations that carry the same one.
_COPY = "~"


def native_id(chain: str) -> str:
    """The native id of the conversation whose chains are called ``chain``."""
    return chain.split(_COPY, 1)[0]


def chain_names(
    found: Sequence[Conversation], cursors: Mapping[str, CursorHead], taken: set[str]
) -> list[str]:
    """The names of the chains of the conversations that were found in one place. ``taken`` has those that conversations
    of their agent have in this import: no two may have one."""
    named = _known_names(found, cursors, taken)
    unnamed = [index for index, name in enumerate(named) if not name]
    claimed = _claimed({found[index].native_id for index in unnamed}, cursors)
    for index in unnamed:
        one = found[index]
        name = one.native_id
        first = one.sources[0].path
        if name in taken or claimed.get(name, first) != first:
            place = os.path.relpath(first, one.root).replace(os.sep, "/")
            name += _COPY + hash_bytes(os.fsencode(place)).hex()[:8]
        taken.add(name)
        named[index] = name
    return named


def _known_names(
    found: Sequence[Conversation], cursors: Mapping[str, CursorHead], taken: set[str]
) -> list[str]:
    """The names under which the conversations were imported, "" for what has none. First come those of which the file
    says so that is the conversation's own: one of its others may have been another's before."""
    named = [""] * len(found)
    later: list[tuple[int, str]] = []
    for index, one in enumerate(found):
        for source in one.sources:
            cursor = cursors.get(source.path)
            if cursor is not None and cursor.conversation:
                name = cursor.conversation
                if source.stream != "main" or cursor.stream != "main":
                    later.append((index, name))
                elif name not in taken:
                    taken.add(name)
                    named[index] = name
                break
    for index, name in later:
        if name not in taken:
            taken.add(name)
            named[index] = name
    return named


def _claimed(names: set[str], cursors: Mapping[str, CursorHead]) -> dict[str, str]:
    """Of these names those under which a file was imported that is there, wherever it is, with the path of it."""
    claimed: dict[str, str] = {}
    for path, cursor in cursors.items() if names else ():
        name = cursor.conversation
        if name in names and name not in claimed and cursor.state != "gone" and _is_there(path):
            claimed[name] = path
    return claimed


def _is_there(path: str) -> bool:
    """Whether there is a file, or one that holds what goes on below its path."""
    return os.path.lexists(path) or os.path.isfile(os.path.dirname(path))


def renamed(conversation: Conversation, name: str) -> Conversation:
    """The conversation under the name of its chains; secrets in the names of its files replaced."""
    for source in conversation.sources:
        if redact_text(source.src) != source.src:
            sources = tuple(
                msgspec.structs.replace(one, src=redact_text(one.src)) for one in conversation.sources
            )
            return msgspec.structs.replace(conversation, native_id=name, sources=sources)
    return (
        conversation
        if conversation.native_id == name
        else msgspec.structs.replace(conversation, native_id=name)
    )
