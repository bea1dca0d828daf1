"""The shape of Claude Code's lines, and the parts that message blocks become.

Only what a record needs is decoded; what a part names as a whole (tool input, tool results) stays the source's own
bytes. Field types are those of the known versions; a ``Shape`` reads a line that breaks them.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from porcelain.providers.content import ContentSink
from porcelain.providers.decoding import NONE, Shape, count, name, size, text_part
from porcelain.providers.records import Dropped, Part, Usage


class ImageSource(Struct, gc=False):
    media_type: str | None = None
    data: str | None = None


class Block(Struct):
    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw = NONE
    tool_use_id: str | None = None
    content: list[Block | str] | str | None = None
    is_error: bool | None = None
    source: ImageSource | None = None


class OutputDetails(Struct, gc=False):
    thinking_tokens: int | None = None


class MessageUsage(Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens_details: OutputDetails | None = None


class Message(Struct):
    id: str | None = None
    role: str | None = None
    model: str | None = None
    content: list[Block | str] | str | None = None
    stop_reason: str | None = None
    usage: MessageUsage | None = None


class Origin(Struct, gc=False):
    kind: str | None = None


class ForkedFrom(Struct, gc=False):
    session: str | None = field(default=None, name="sessionId")


class Kinded(Struct, gc=False):
    type: str | None = None


class Attachment(Struct):
    type: str | None = None
    text: Any = None
    content: Any = None
    prompt: Any = None
    command_mode: str | None = field(default=None, name="commandMode")
    origin: Origin | None = None
    system_prompt: Raw = field(default=NONE, name="systemPrompt")
    tools: Raw = NONE


class Hunk(Struct, gc=False):
    lines: list[str] = []


class ToolResult(Struct):
    """What is taken out of ``toolUseResult``; the whole of it becomes a part's data."""

    type: str | None = None
    agent: str | None = field(default=None, name="agentId")
    run: str | None = field(default=None, name="runId")
    tool: str | None = field(default=None, name="toolUseId")
    status: str | None = None
    file_path: str | None = field(default=None, name="filePath")
    patch: list[Hunk] | None = field(default=None, name="structuredPatch")
    content: Raw = NONE


class Line(Struct):
    """One line of a transcript, a journal or a sidecar document."""

    type: str | None = None
    subtype: str | None = None
    uuid: str | None = None
    parent: str | None = field(default=None, name="parentUuid")
    logical_parent: str | None = field(default=None, name="logicalParentUuid")
    timestamp: str | None = None
    prompt_id: str | None = field(default=None, name="promptId")
    prompt_source: str | None = field(default=None, name="promptSource")
    origin: Origin | None = None
    session: str | None = field(default=None, name="sessionId")
    cwd: str | None = None
    branch: str | None = field(default=None, name="gitBranch")
    version: str | None = None
    forked_from: ForkedFrom | None = field(default=None, name="forkedFrom")
    sidechain: bool | None = field(default=None, name="isSidechain")
    meta: bool | None = field(default=None, name="isMeta")
    compact_summary: bool | None = field(default=None, name="isCompactSummary")
    message: Message | None = None
    attachment: Raw = NONE
    result: Raw = field(default=NONE, name="toolUseResult")
    data: Raw = NONE
    operation: str | None = None
    agent: str | None = field(default=None, name="agentId")
    parent_agent: str | None = field(default=None, name="parentAgentId")
    tool: str | None = field(default=None, name="toolUseId")
    journal_result: Raw = field(default=NONE, name="result")
    custom_title: str | None = field(default=None, name="customTitle")
    ai_title: str | None = field(default=None, name="aiTitle")
    agent_name: str | None = field(default=None, name="agentName")
    summary: str | None = None
    description: str | None = None
    workflow_name: str | None = field(default=None, name="workflowName")


_FIELDS = msgspec.json.Decoder(dict[str, Raw])
_RAW_BLOCKS = msgspec.json.Decoder(list[Raw])
_NESTED: dict[str, type[Struct]] = {
    "message": Message,
    "usage": MessageUsage,
    "output_tokens_details": OutputDetails,
    "origin": Origin,
    "forked_from": ForkedFrom,
    "source": ImageSource,
}
LINE = Shape(Line, nested=_NESTED, items={"content": Block})
ATTACHMENT = Shape(Attachment, nested=_NESTED)
RESULT = Shape(ToolResult, items={"patch": Hunk})


def usage(stated: MessageUsage) -> Usage:
    details = stated.output_tokens_details
    return Usage(
        in_=count(stated.input_tokens),
        out=count(stated.output_tokens),
        cache_read=count(stated.cache_read_input_tokens),
        cache_write=count(stated.cache_creation_input_tokens),
        reasoning=count(details.thinking_tokens) if details else 0,
    )


class BlockParts:
    """Collects the parts of one message: ``parts`` in block order, and what was ``dropped`` of them.

    ``result`` is the source text of the structured tool result, which goes to the first result block; ``raw`` gives the
    blocks' own source when a block must be kept as it stands.
    """

    def __init__(self, data: bytes, result: str | None, sink: ContentSink) -> None:
        self.parts: list[Part] = []
        self.dropped: list[Dropped] = []
        self._data = data
        self._result = result
        self._sink = sink

    def add_all(self, blocks: list[Block | str]) -> None:
        sink, parts = self._sink, self.parts
        for index, block in enumerate(blocks):
            if isinstance(block, str):
                parts.append(text_part(block, sink))
                continue
            kind = block.type
            if kind == "text" and block.text is not None:
                parts.append(text_part(block.text, sink))
            elif kind == "tool_use" or kind == "server_tool_use":
                parts.append(self._call(block))
            elif kind == "tool_result":
                self._add_result(block, index)
            elif kind == "thinking":
                self._add_thinking(block)
            elif kind == "redacted_thinking":
                parts.append(Part(k="reasoning", state="redacted"))
            elif kind == "image" and block.source is not None:
                parts.append(self._image(block.source, index))
            else:
                parts.append(self._unknown(index))

    def take_result(self) -> str | None:
        """The structured tool result if no block has taken it."""
        result, self._result = self._result, None
        return result

    def _call(self, block: Block) -> Part:
        sent = str(block.input, "utf-8")
        server: str | UnsetType = UNSET
        tool: str | UnsetType = UNSET
        called = block.name
        if called and called.startswith("mcp__"):
            names = called[5:].split("__")
            if len(names) == 2 and all(names):
                server, tool = name(names[0]), name(names[1])
        return Part(
            k="call",
            id=name(block.id),
            name=name(called),
            server=server,
            server_tool=tool,
            data=self._sink.text(sent) if sent else UNSET,
            bytes=size(sent),
        )

    def _add_thinking(self, block: Block) -> None:
        if block.thinking:
            content = self._sink.text(block.thinking)
            self.parts.append(Part(k="reasoning", content=content, bytes=size(block.thinking)))
        else:
            self.parts.append(Part(k="reasoning", state="unavailable"))
        if block.signature:
            self.dropped.append(Dropped(what="reasoning signature", bytes=size(block.signature)))

    def _add_result(self, block: Block, index: int) -> None:
        sink, shown = self._sink, block.content
        images: list[Part] = []
        texts: list[str] = []
        if isinstance(shown, str):
            texts.append(shown)
        for item in shown if isinstance(shown, list) else ():
            if isinstance(item, str):
                texts.append(item)
            elif item.type == "text" and item.text is not None:
                texts.append(item.text)
            elif item.type == "image" and item.source is not None:
                images.append(self._image(item.source, index))
        text = "\n".join(texts)
        data = self.take_result()
        if data is None and not texts and shown:
            data = str(_FIELDS.decode(self._source(index).encode("utf-8"))["content"], "utf-8")
        self.parts.append(
            Part(
                k="result",
                of=name(block.tool_use_id),
                failed=UNSET if block.is_error is None else block.is_error,
                content=sink.text(text) if text else UNSET,
                data=sink.text(data) if data else UNSET,
                bytes=size(text) + (size(data) if data else 0),
            )
        )
        self.parts += images

    def _image(self, source: ImageSource, index: int) -> Part:
        media = name(source.media_type)
        try:
            image = base64.b64decode(source.data or "", validate=True)
        except (binascii.Error, ValueError):
            return self._unknown(index)
        if not image:
            return Part(k="media", media=media, state="unavailable")
        kind = media if isinstance(media, str) else "application/octet-stream"
        return Part(k="media", media=media, content=self._sink.blob(image, kind), bytes=len(image))

    def _unknown(self, index: int) -> Part:
        source = self._source(index)
        return Part(k="unknown", data=self._sink.text(source), bytes=size(source))

    def _source(self, index: int) -> str:
        """Block ``index`` as the line has it."""
        message = _FIELDS.decode(_FIELDS.decode(self._data)["message"])
        return str(_RAW_BLOCKS.decode(message["content"])[index], "utf-8")
