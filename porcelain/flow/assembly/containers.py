"""The nodes that hold others: session, streams, epochs, talks, runs, segments; and the relations between them."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Raw

from porcelain.flow.assembly.ids import joined, place, session_id, stream_id
from porcelain.flow.assembly.leaves import Frames, ref, relate
from porcelain.flow.assembly.segments import Segment
from porcelain.flow.assembly.spawns import EXACT, STRONG
from porcelain.flow.assembly.streams import MAIN, Session, Stream
from porcelain.flow.assembly.talks import Talk
from porcelain.flow.formats.sf import SfNode
from porcelain.flow.formats.times import rfc3339nano

_ENCODER = msgspec.json.Encoder()


def attributes(**values: object) -> Raw:
    """Attributes given in order of their keys; those that are None are left out."""
    return Raw(_ENCODER.encode({key: value for key, value in values.items() if value is not None}))


def session_node(conversation: str, session: str, found: Session, frames: Frames) -> None:
    """The root of the tree."""
    frames.nodes.append(
        SfNode(
            session_id(session),
            frames.revision,
            UNSET,
            "session",
            attrs=attributes(
                conversation=conversation,
                from_time=rfc3339nano(found.first) if found.first else None,
                through_time=rfc3339nano(found.last) if found.last else None,
                title=found.title or None,
                title_from="observed_replayable" if found.title else None,
            ),
        )
    )


def stream_nodes(stream: Stream, session: str, frames: Frames) -> None:
    """A stream and its epochs."""
    revision = frames.revision
    node = stream_id(stream.name)
    frames.nodes.append(
        SfNode(
            node,
            revision,
            UNSET,
            "stream",
            session_id(session),
            stream.name,
            ref(stream.entries[0]),
            UNSET,
            attributes(label=stream.label or None, records=len(stream.entries), role=stream.role),
        )
    )
    before = ""
    for epoch in stream.epochs:
        boundary = epoch.boundary
        frames.nodes.append(
            SfNode(
                epoch.id,
                revision,
                UNSET,
                "epoch",
                node,
                stream.name,
                ref(stream.entries[epoch.start]),
                UNSET if boundary is None else [ref(boundary)],
                attributes(
                    continues_from=(boundary.continues or None) if boundary is not None else None,
                    records=epoch.size,
                    reset="none" if boundary is None else "observed_replayable",
                ),
            )
        )
        if boundary is not None:
            relate(frames, "follows", epoch.id, before, EXACT, "explicit context reset", [ref(boundary)])
        before = epoch.id


def talk_nodes(talks: list[Talk], frames: Frames) -> None:
    """Talks and their runs."""
    revision = frames.revision
    for talk in talks:
        trigger = "external" if talk.stream == MAIN else "unknown"
        count = len(talk.runs)
        frames.nodes.append(
            SfNode(
                talk.id,
                revision,
                UNSET,
                "talk",
                talk.epoch,
                talk.stream,
                ref(talk.first),
                UNSET,
                Raw(f'{{"loops":{count},"runs":{count},"trigger":"{trigger}"}}'.encode("ascii")),
            )
        )
        for run in talk.runs:
            cause = "external" if run.opens else "notification"
            frames.nodes.append(
                SfNode(
                    run.id,
                    revision,
                    UNSET,
                    "run",
                    talk.id,
                    talk.stream,
                    ref(run.first),
                    UNSET,
                    Raw(f'{{"trigger":"{cause}"}}'.encode("ascii")),
                )
            )


def segment_nodes(segments: list[Segment], session: str, frames: Frames) -> None:
    """Windows, and the talks in them. A child's talk is in the window by its time only."""
    for segment in segments:
        first = segment.talks[0].first
        node = joined("segment", place(first))
        frames.nodes.append(
            SfNode(
                node,
                frames.revision,
                UNSET,
                "segment",
                session_id(session),
                UNSET,
                ref(first),
                UNSET,
                attributes(
                    committable=not segment.gates_unmet,
                    gates_unmet=segment.gates_unmet,
                    state="open" if segment.last else "candidate",
                    talks=len(segment.talks),
                ),
            )
        )
        for talk in segment.talks:
            relate(frames, "in_segment", talk.id, node, EXACT, "activity window", [ref(talk.first)])
        for talk in segment.children:
            via = "inside the window of the talk that delegated it"
            relate(frames, "in_segment", talk.id, node, STRONG, via, [ref(talk.first)])
