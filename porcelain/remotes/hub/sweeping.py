"""Deleting from a bucket what nobody needs any more. It is done in two steps, so that who looked before still finds
what was there then: first the names are written down, and the first sweep that comes ``GRACE`` later deletes them. Only
the clock of the storage counts.
"""

from __future__ import annotations

from hashlib import sha256
from io import BytesIO

import msgspec

from objstore.errors import NotFound
from objstore.sync.transport import Traffic
from porcelain.remotes.hub.files import GONE, KEPT_WHILE_NEEDED, WRITERS, Files, born
from porcelain.remotes.hub.standing import Hub

#: Seconds for which a file stays that is not needed any more, at least.
GRACE = 24 * 3600
_NAMES = msgspec.json.Decoder(list[str])


def sweep(files: Files, traffic: Traffic, hub: Hub) -> None:
    """Delete what was found dead long enough ago, and write down what is dead now, unless that was done of late. It is
    as late as when a writer last wrote."""
    traffic.requests += 2
    written, noted = files.times(WRITERS), files.times(GONE)
    if not written or noted is None:
        return
    now, needed = max(written.values()), hub.needed(hub.writers)
    for name, time in noted.items():
        if time <= now - GRACE:
            _delete(files, traffic, hub, needed, name)
    if any(time > now - GRACE / 2 for time in noted.values()):
        return
    traffic.requests += len(KEPT_WHILE_NEEDED)
    found = [files.times(prefix) or {} for prefix in KEPT_WHILE_NEEDED]
    dead = sorted(name for names in found for name in names if _is_dead(hub, needed, name))
    if dead:
        data = msgspec.json.encode(dead)
        traffic.requests += 1
        traffic.sent += len(data)
        files.create(GONE + sha256(data).hexdigest(), BytesIO(data), len(data))


def _delete(files: Files, traffic: Traffic, hub: Hub, needed: set[str], noted: str) -> None:
    """Delete what a list names, and then the list."""
    traffic.requests += 1
    try:
        data = files.get(noted)
    except NotFound:  # somebody else does the same
        return
    traffic.received += len(data)
    try:
        names = _NAMES.decode(data)
    except (msgspec.DecodeError, msgspec.ValidationError):
        names = []
    traffic.requests += 1
    files.discard([name for name in names if _is_dead(hub, needed, name)])
    traffic.requests += 1
    files.discard([noted])


def _is_dead(hub: Hub, needed: set[str], name: str) -> bool:
    """Whether nobody who looks from now on can need a file: it is not needed, and whoever made it has written since,
    so that it can no longer be made known."""
    made = born(name)
    writer = hub.writers.get(made.writer) if made is not None else None
    return made is not None and writer is not None and made.turn <= writer.turn and name not in needed
