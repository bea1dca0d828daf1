"""Repeatable objects of about 500 bytes, and repeatable Claude Code transcripts, for the benchmarks.

The objects are those of conversations kept with their text, in the order in which an import stores them: landed
records, their texts, flow frames, a list of ids, a fact. Records name each other as real ones do (parent, call, tool),
which an engine that packs neighbours together may use. Everything is drawn from one seed, so that any run on any
machine measures the same bytes; words follow a Zipf-like law over an invented vocabulary.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from objstore import kinds
from objstore.core import ListOf, Text
from objstore.digest import hash_bytes
from porcelain.flow.chain.kinds import FlowNode, FlowRef, FlowRelation
from porcelain.lineage.facts.making import fact
from porcelain.providers.records import Changes, Dropped, Part, Record, Usage

SEED = 20261130
_VOCABULARY = 12_000
_ONSETS = (
    *"bcdfghjklmnprstvwz",
    *("ch", "qu", "sh", "st", "th", "tr", "br", "cl", "dr", "fl", "gr", "pl", "pr", "sp"),
)
_NUCLEI = ["a", "e", "i", "o", "u", "ai", "ea", "ee", "io", "ou"]
_CODAS = ["", "", "n", "r", "s", "t", "l", "m", "nd", "ck", "st", "ng"]
_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz123456789"
_TOOLS = [
    "Bash",
    "Read",
    "Edit",
    "Grep",
    "Write",
    "Glob",
    "Task",
    "TodoWrite",
    "WebFetch",
    "mcp__tracker__search",
]
_TOOL_WEIGHTS = [30, 25, 18, 9, 6, 4, 3, 2, 2, 1]
_MODELS = ["claude-opus-4-5-20251101", "claude-sonnet-4-5-20250929", "claude-haiku-4-5-20251001"]
#: Every how many texts one is kept as an object: enough of them to be felt, few enough that records prevail.
_TEXT_EVERY = 3


class Source:
    """One random stream and what is drawn from it."""

    def __init__(self, seed: int) -> None:
        draw = self.random = random.Random(seed)
        words: dict[str, None] = {}
        while len(words) < _VOCABULARY:
            syllables = draw.choices((1, 2, 3), (2, 5, 3))[0]
            word = "".join(
                draw.choice(_ONSETS) + draw.choice(_NUCLEI) + draw.choice(_CODAS) for _ in range(syllables)
            )
            words[word] = None
        self.words = sorted(words, key=lambda word: (len(word), word))
        self._weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(_VOCABULARY)))
        self._clock = 1_790_000_000_000

    def hex(self, size: int) -> str:
        return self.random.randbytes(size).hex()

    def name(self, prefix: str) -> str:
        return prefix + "".join(self.random.choices(_ALPHABET, k=24))

    def uuid(self) -> str:
        text = self.hex(16)
        return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}"

    def text(self, size: int) -> str:
        """About ``size`` characters of sentences."""
        words = self.random.choices(self.words, cum_weights=self._weights, k=max(2, size // 6))
        for at in range(0, len(words), 11):
            words[at] = words[at].capitalize()
            words[at - 1] += "."
        return " ".join(words)

    def time(self) -> str:
        """The next moment, up to a minute after the last."""
        self._clock += self.random.randrange(60_000)
        seconds, milliseconds = divmod(self._clock, 1000)
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{milliseconds:03}Z"


class _Conversation:
    """One invented conversation; ``objects`` is filled by ``tell``."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._texts = 0
        self._last: str | None = None
        self._frames: list[Any] = []
        self._row = 0
        self._run = ""
        self._model = source.random.choices(_MODELS, (6, 3, 1))[0]
        self.objects: list[Any] = []

    def tell(self, turns: int) -> None:
        """Add ``turns`` questions of a person, with all that the agent does about each, and the frames at the end."""
        source = self._source
        for _ in range(turns):
            self._person()
            for _ in range(source.random.randrange(2, 16)):
                self._call()
        folder = "/".join(source.random.choices(source.words[200:600], k=3))
        label = fact(
            "label",
            {
                "label_type": "cwd",
                "target_id": "obs_" + source.hex(16),
                "target_type": "observation",
                "value": f"/home/{folder}",
            },
            provenance="reader:claude-code",
            confidence="authoritative",
            revision=1,
        )
        last = [hash_bytes(kinds.encode(frame)).hex() for frame in self._frames[-12:]]
        self.objects += [*self._frames, ListOf(items=last), label]

    def _part(self, k: Any, size: int, **more: Any) -> Part:
        """A part, whose text is an object too for some."""
        source = self._source
        self._texts += 1
        if k in ("text", "result") and self._texts % _TEXT_EVERY == 0:
            text = Text(text=source.text(min(size, 3000)))
            self.objects.append(text)
            return Part(k=k, bytes=len(text.text), content=hash_bytes(kinds.encode(text)).hex(), **more)
        return Part(k=k, bytes=size, content=source.hex(32), **more)

    def _record(self, **fields: Any) -> str:
        name = self._source.uuid()
        parent = UNSET if self._last is None else self._last
        self.objects.append(Record(id=name, parent=parent, time=self._source.time(), **fields))
        self._last = name
        self._row += 1
        return name

    def _node(self, node: str, kind: str, parent: str, rows: int = 1, **attributes: Any) -> None:
        """A frame over the last ``rows`` records."""
        block = UNSET if kind == "llm.call" else 0
        places = [FlowRef(block, self._row - back, 1) for back in range(rows)][::-1]
        self._frames.append(
            FlowNode(
                attrs=Raw(msgspec.json.encode(attributes, order="sorted")) if attributes else UNSET,
                id=node,
                kind=kind,
                parent=parent,
                ref=places[0],
                refs=places if rows > 1 else UNSET,
                revision=1,
                stream="main",
            )
        )

    def _person(self) -> None:
        draw = self._source.random
        parts = [self._part("text", draw.randrange(20, 900)) for _ in range(draw.choice((1, 1, 1, 2)))]
        name = self._record(entry="user", from_="external", parts=parts, role="user", trigger="user")
        self._run = f"run/talk_main_{name}/{name}"
        self._node(f"talk/main/{name}", "talk", "epoch/main/0", loops=1, runs=1, trigger="external")
        self._node(f"input/1/{self._row}", "message.external", self._run)

    def _call(self) -> None:
        """A call of the model in up to three records, and the results of the tools that it used."""
        source, draw = self._source, self._source.random
        call = source.name("msg_01")
        usage = Usage(
            cache_read=draw.randrange(120_000),
            cache_write=draw.randrange(8000),
            in_=draw.randrange(12),
            out=draw.randrange(2500),
        )
        common: dict[str, Any] = {
            "call": call,
            "entry": "assistant",
            "from_": "agent",
            "model": self._model,
            "role": "assistant",
            "usage": usage,
        }
        fragments = 0
        if draw.random() < 0.5:
            dropped = [Dropped(bytes=draw.randrange(200, 3000), what="reasoning signature")]
            self._record(dropped=dropped, parts=[self._part("reasoning", draw.randrange(20, 4000))], **common)
            self._node(f"think/1/{self._row}:0", "thinking", f"call/{call}")
            fragments += 1
        if not fragments or draw.random() < 0.4:
            self._record(parts=[self._part("text", draw.randrange(20, 2000))], **common)
            self._node(f"msg/1/{self._row}:0", "message.assistant", f"call/{call}")
            fragments += 1
        self._node(
            f"call/{call}",
            "llm.call",
            self._run,
            rows=fragments,
            fragments=fragments,
            stop_reason="unavailable",
            usage="unavailable",
            usage_from="last_fragment_in_line_order",
        )
        for _ in range(draw.choice((1, 1, 1, 2))):
            tool, use = draw.choices(_TOOLS, _TOOL_WEIGHTS)[0], source.name("toolu_01")
            self._record(
                parts=[
                    Part(k="call", bytes=draw.randrange(20, 2000), data=source.hex(32), id=use, name=tool)
                ],
                **common,
            )
            failed = True if draw.random() < 0.06 else UNSET
            changed = Changes(added=draw.randrange(40), files=1, removed=draw.randrange(20))
            self._record(
                changes=changed if tool == "Edit" else UNSET,
                entry="user",
                from_="external",
                parts=[
                    self._part("result", draw.randrange(20, 9000), data=source.hex(32), failed=failed, of=use)
                ],
                role="user",
            )
            self._node(
                f"tool/{use}",
                "tool",
                f"call/{call}",
                rows=2,
                name=tool,
                result="available",
                result_join="exact_unique",
                timing="unavailable",
            )
            if tool == "Task":
                self._frames.append(
                    FlowRelation(
                        from_=f"tool/{use}",
                        id=f"rel/spawns/{use}",
                        quality="exact_unique",
                        relation="spawns",
                        revision=1,
                        to=f"stream/{source.hex(4)}",
                    )
                )


def objects(count: int, seed: int = SEED) -> Iterator[tuple[str, bytes]]:
    """``count`` objects: the kind of each and its canonical bytes."""
    source = Source(seed)
    while count > 0:
        conversation = _Conversation(source)
        conversation.tell(source.random.randrange(1, 12))
        for made in conversation.objects[:count]:
            yield made.type, kinds.encode(made)
        count -= len(conversation.objects)
