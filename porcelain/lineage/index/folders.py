"""What goes across groups is made from a row for each transcript: neighbours in a folder, and buckets."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

import msgspec

from porcelain.lineage.derived.buckets import Kept, bucket_fact, bucket_of, kept
from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.facts.making import Stored, object_id
from porcelain.lineage.index.tables import in_parts, placed
from porcelain.lineage.relations.edges import folder_of
from porcelain.lineage.relations.nodes import Node

_KEPT = msgspec.msgpack.Decoder(Kept)
#: A transcript as ``node`` has it; ``folder`` and the bucket are None where it is in none that counts.
NodeRow = tuple[object, ...]
#: A folder of neighbours, a root and a bucket in it: what changes of transcripts have a bearing on.
Places = tuple[set[str], set[tuple[str, str]]]


def node_row(node: Node, root: str) -> NodeRow:
    """The row of a transcript; ``root`` is its source's."""
    folder = folder_of(node)
    place = bucket_of(node, root)
    first, last, _ = node.order
    return (
        node.id,
        node.session,
        node.provider,
        node.native_id,
        node.path,
        node.src,
        "\n".join(folder) if folder is not None else None,
        first,
        last,
        place[0] if place is not None else None,
        place[1] if place is not None else None,
        msgspec.msgpack.encode(kept(node)),
    )


def replace_nodes(
    connection: sqlite3.Connection, names: Iterable[str], rows: Iterable[NodeRow], places: Places
) -> None:
    """Put ``rows`` in place of those of the transcripts called ``names``; what that has a bearing on goes to
    ``places``."""
    folders, buckets = places
    for part in in_parts(names):
        within = f"FROM node WHERE id IN ({placed(part)})"
        for folder, root, bucket in connection.execute(f"SELECT folder, root, bucket {within}", part):
            folders.add(folder)
            buckets.add((root, bucket))
        connection.execute(f"DELETE {within}", part)
    made = list(rows)
    for row in made:
        folders.add(row[6])  # type: ignore[arg-type]
        buckets.add((row[9], row[10]))  # type: ignore[arg-type]
    connection.executemany(f"INSERT INTO node VALUES ({', '.join('?' * 12)})", made)


def bucket_rows(
    connection: sqlite3.Connection, buckets: set[tuple[str, str]] | None
) -> tuple[list[Stored], list[tuple[str, str]]]:
    """The facts of these buckets or of all, and those of the buckets that hold nothing any more."""
    select = "SELECT root, bucket, kept FROM node WHERE "
    found: list[Stored] = []
    empty: list[tuple[str, str]] = []
    if buckets is None:
        held: list[Kept] = []
        place: tuple[str, str] | None = None
        for root, bucket, body in connection.execute(
            f"{select} bucket IS NOT NULL ORDER BY root, bucket, id"
        ):
            if place is not None and place != (root, bucket):
                found.append(_stored(bucket_fact(*place, held)))
                held = []
            place = (root, bucket)
            held.append(_KEPT.decode(body))
        if place is not None:
            found.append(_stored(bucket_fact(*place, held)))
        return found, empty
    for place in sorted(one for one in buckets if one[1] is not None):
        bodies = connection.execute(f"{select} root = ? AND bucket = ? ORDER BY id", place)
        held = [_KEPT.decode(body) for _, _, body in bodies]
        if held:
            found.append(_stored(bucket_fact(*place, held)))
        else:
            empty.append(place)
    return found, empty


def _stored(one: Fact) -> Stored:
    return object_id(one), one
