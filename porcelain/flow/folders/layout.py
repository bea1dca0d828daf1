"""The published folder layout: where the files of landed records and of rounds stand, and what they are called.

Below a root, ``<session>/streams/<stream>/``, ``<session>/runs/<run>/`` and ``<session>/provider_body/`` hold ``.sd``
files and ``_conversations/<id>/rounds/`` the ``.sf`` files of a chain. Paths here are relative to the root and use
forward slashes.
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import NamedTuple

from msgspec import Struct

from objstore.refs import quote
from porcelain.flow.formats.sf import SfHeader
from porcelain.flow.formats.times import NS_PER_SECOND, instant

CONVERSATIONS = "_conversations"
ROUNDS = "rounds"
STATE = "conversation.state"
#: What a collector notes beside landed files: how far a session has come, and how far each source was read.
SESSION_STATE = "session.state"
CURSOR = ".cursor"
#: What the name of an ``.sd`` file begins with, by the kind in its header.
PREFIXES = {
    "transcript": "transcript",
    "agent_meta": "meta",
    "journal": "journal",
    "workflow_manifest": "manifest",
    "workflow_script": "script",
    "changes": "changes",
    "execution": "execution",
    "provider_body": "provider_body",
}
#: Names of files that are being written; they are never read.
TEMPORARY = ".tmp-"
_SD_NAME = re.compile(r"(?:(.*?)-(?:[^-]*)-|.*-)(\d{6,})\.sd", re.ASCII)
_SF_NAME = re.compile(r"r(\d{6,})-([0-9a-f]{12})\.sf", re.ASCII)


class SdName(NamedTuple):
    """What the name of an ``.sd`` file says: its prefix (None where it has not the usual three parts) and ``seq``."""

    prefix: str | None
    seq: int


class SfName(NamedTuple):
    """What the name of an ``.sf`` file says: round number and the first 12 digits of the commit digest."""

    round: int
    digest: str


def sd_name(name: str) -> SdName | None:
    """The parts of a file name, or None where it is no name of a landed file."""
    found = _SD_NAME.fullmatch(name)
    return SdName(found.group(1), int(found.group(2))) if found else None


def sf_name(name: str) -> SfName | None:
    """The parts of a file name, or None where it is no name of a round."""
    found = _SF_NAME.fullmatch(name)
    return SfName(int(found.group(1)), found.group(2)) if found else None


def component(name: str) -> str:
    """A session, stream, run or conversation as the name of a folder: as it is where that is safe, else
    percent-encoded; never one that begins with ``_``, which the layout keeps for itself."""
    quoted = quote(name)
    return "%5F" + quoted[1:] if quoted.startswith("_") else quoted


def stamp(at: str) -> str:
    """A time as file names have it: ``20260101T000000.000000000Z``; the epoch for what is no time."""
    seconds, fraction = divmod(instant(at) or 0, NS_PER_SECOND)
    days, second = divmod(seconds, 86_400)
    day = (date(1970, 1, 1) + timedelta(days=days)).strftime("%Y%m%d")
    return f"{day}T{second // 3600:02d}{second // 60 % 60:02d}{second % 60:02d}.{fraction:09d}Z"


def landed_path(session: str, kind: str, stream: str, batch: str, at: str, seq: int) -> str:
    """Where an ``.sd`` file belongs. ``stream`` and ``batch`` are those of its header, empty for none."""
    if stream:
        folder = f"streams/{component(stream)}"
    elif batch:
        folder = f"runs/{component(batch)}"
    elif kind == "provider_body":
        folder = "provider_body"
    else:
        folder = "streams/main"
    return f"{component(session)}/{folder}/{PREFIXES.get(kind, component(kind))}-{stamp(at)}-{seq:06d}.sd"


def round_path(conversation: str, number: int, digest: str) -> str:
    """Where an ``.sf`` file belongs."""
    return f"{CONVERSATIONS}/{component(conversation)}/{ROUNDS}/r{number:06d}-{digest[:12]}.sf"


def state_path(conversation: str) -> str:
    """Where the state file of a conversation belongs."""
    return f"{CONVERSATIONS}/{component(conversation)}/{STATE}"


class ChainState(Struct, frozen=True):
    """What ``conversation.state`` says: a cache of the head, which nothing relies on."""

    conversation: str
    head: int
    head_digest: str
    through_seq: int
    input_digest: str
    parser: str
    policy: str
    updated_at: str


def state_of(header: SfHeader, digest: str, updated_at: str) -> ChainState:
    """The state after the round with ``header`` and commit digest ``digest``."""
    return ChainState(
        header.conversation,
        header.round,
        digest,
        header.through_seq,
        header.input_digest,
        header.parser,
        header.policy,
        updated_at,
    )


def state_text(state: ChainState) -> str:
    """The text of the state file."""
    rows = [("schema", "1"), *((name, str(getattr(state, name))) for name in state.__struct_fields__)]
    return "".join(f"{key:<12} {value}\n" for key, value in rows)
