"""Frames by id that were kept as lines, and are decoded when they are asked for."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, MutableMapping, Sequence, ValuesView
from typing import Generic, TypeVar, cast

import msgspec

from porcelain.flow.formats.sf import SfNode, SfRelation, SfUnresolved

F = TypeVar("F", SfNode, SfRelation, SfUnresolved)


class _Lines(Generic[F]):
    """Lines of frames, cut apart only when one of them is wanted."""

    def __init__(self, kind: type[F], text: bytes) -> None:
        self.text = text
        self._decoder: msgspec.json.Decoder[F] = msgspec.json.Decoder(kind)
        self._cut: list[bytes] | None = None

    def __getitem__(self, number: int) -> bytes:
        if self._cut is None:
            self._cut = self.text.splitlines()
        return self._cut[number]

    def frame(self, number: int) -> F:
        return self._decoder.decode(self[number])

    def frames(self, numbers: Sequence[int]) -> list[F]:
        """These frames, decoded together."""
        return self._decoder.decode_lines(b"\n".join([self[number] for number in numbers]))


class Frames(MutableMapping[str, F]):
    """Frames by id, of which those that were kept as lines are decoded when they are asked for: one by one where one
    is, together where all are."""

    def __init__(self, kind: type[F], ids: Sequence[str], text: bytes) -> None:
        self._lines: _Lines[F] = _Lines(kind, text)
        #: A frame, or the number of its line.
        self._frames: dict[str, F | int] = dict(zip(ids, range(len(ids)), strict=True))
        self._decoded = False

    def __getitem__(self, name: str) -> F:
        frame = self._frames[name]
        if not isinstance(frame, int):
            return frame
        found: F = self._lines.frame(frame)
        self._frames[name] = found
        return found

    def __setitem__(self, name: str, frame: F) -> None:
        self._frames[name] = frame

    def __delitem__(self, name: str) -> None:
        del self._frames[name]

    def __contains__(self, name: object) -> bool:
        return name in self._frames

    def __iter__(self) -> Iterator[str]:
        return iter(self._frames)

    def __len__(self) -> int:
        return len(self._frames)

    def __copy__(self) -> Frames[F]:
        other = Frames.__new__(type(self))
        other._lines, other._frames, other._decoded = self._lines, dict(self._frames), self._decoded
        return other

    def values(self) -> ValuesView[F]:
        """All frames."""
        return self._all().values()

    def items(self) -> ItemsView[str, F]:
        """All frames with their ids."""
        return self._all().items()

    def lines(self) -> dict[str, bytes]:
        """All frames as lines, without their newlines."""
        return {
            name: self._lines[frame] if isinstance(frame, int) else msgspec.json.encode(frame)
            for name, frame in self._frames.items()
        }

    def _all(self) -> dict[str, F]:
        if not self._decoded:
            waiting = {name: frame for name, frame in self._frames.items() if isinstance(frame, int)}
            self._frames.update(zip(waiting, self._lines.frames(list(waiting.values())), strict=True))
            self._decoded = True
        return cast(dict[str, F], self._frames)
