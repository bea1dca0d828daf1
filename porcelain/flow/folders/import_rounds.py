"""Rounds of others as structure, and that as files again.

Titles and labels may have been written by a model, so that structure does without them; what a round's file has beyond
its structure is kept, line by line, as content.
"""

from __future__ import annotations

import hashlib
import json

import msgspec
from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import replace

from objstore.errors import ObjstoreError
from objstore.fastcanonical import canonicalize
from porcelain.flow.folders.import_kinds import Form, KeptLine
from porcelain.flow.formats.sf import FrameCounts, Round, SfNode, commit_line, write_round
from porcelain.flow.formats.sf_reading import read_round
from porcelain.flow.views.content import Get, content_bytes
from porcelain.providers.content import ContentSink
from porcelain.providers.redaction import redact

#: Attributes of nodes that may have been written by a model.
_WRITTEN = ("label", "title")
_ATTRS = msgspec.json.Decoder(dict[str, Raw])
#: Of a round with more lines of its own than this, or than a quarter, the whole file is kept.
_KEPT_LINES = 1024


def structure_of(data: bytes, *, ours: bool) -> tuple[Round, bool]:
    """The structure of a round (its file whole and checked), and whether its file holds a secret.

    With ``ours`` titles and labels stay: we write them only where a person gave them.
    """
    round_ = read_round(data)
    clean = redact(data)
    secret = clean != data
    if secret:
        body = b"".join(clean.splitlines(keepends=True)[:-1])
        counts = FrameCounts(len(round_.nodes), len(round_.relations), len(round_.unresolved))
        read = read_round(body + commit_line(hashlib.sha256(body).hexdigest(), counts))
        round_ = replace(read, digest=round_.digest)
    nodes = [_plain(node, ours=ours) for node in round_.nodes]
    header = round_.header if ours else replace(round_.header, title=UNSET)
    return replace(round_, header=header, nodes=nodes), secret


def _plain(node: SfNode, *, ours: bool) -> SfNode:
    """The node with attributes that an object can hold, those in a form that it can hold them in."""
    if not isinstance(node.attrs, Raw):
        return node
    data = bytes(node.attrs)
    if data[:1] != b"{":
        return replace(node, attrs=UNSET)
    if ours or not any(f'"{name}"'.encode() in data for name in _WRITTEN):
        try:
            return replace(node, attrs=Raw(canonicalize(data)))
        except ObjstoreError:
            pass
    kept: dict[str, bytes] = {}
    for name, value in sorted(_ATTRS.decode(data).items()):
        if name in _WRITTEN and not ours:
            continue
        try:
            entry = canonicalize(b"{" + json.dumps(name).encode() + b":" + bytes(value) + b"}")
        except ObjstoreError:
            continue
        kept[name] = entry[1:-1]
    return replace(node, attrs=Raw(b"{" + b",".join(kept.values()) + b"}") if kept else UNSET)


def _lines(round_: Round) -> list[bytes]:
    """The lines of the file that the structure gives, without newlines."""
    data, _ = write_round(round_.header, round_.nodes, round_.relations, round_.unresolved)
    counts = FrameCounts(len(round_.nodes), len(round_.relations), len(round_.unresolved))
    return [*data.split(b"\n")[:-2], commit_line(round_.digest, counts)[:-1]]


def kept_lines(data: bytes, structure: Round, sink: ContentSink) -> tuple[Form, list[KeptLine] | UnsetType]:
    """How the file ``data`` can be written again from ``structure``: with the lines that it does not give, or only
    as a whole."""
    given, wanted = _lines(structure), data.split(b"\n")[:-1]
    if len(given) != len(wanted):
        return "whole", UNSET
    differ = [index for index, line in enumerate(wanted) if line != given[index]]
    if len(differ) > min(_KEPT_LINES, 4 + len(wanted) // 4):
        return "whole", UNSET
    lines = [KeptLine(content=sink.text(wanted[index].decode("utf-8")), line=index + 1) for index in differ]
    return "lines", lines or UNSET


def round_file(structure: Round, lines: list[KeptLine] | UnsetType, get: Get) -> bytes | None:
    """The bytes of a round's file; None where a line that was kept apart is not there."""
    given = _lines(structure)
    for kept in lines or ():
        content = content_bytes(get, kept.content)
        if content is None:
            return None
        given[kept.line - 1] = content
    return b"\n".join(given) + b"\n"
