"""Work in other processes: tasks go in as bytes, results come out as bytes, and a process that dies costs one task.

The processes are started fresh and given only what they need, so that they share no database, lock or open file with
this one, and a program that uses the library need not be importable. They leave when this process does.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import BinaryIO

#: What the function that a worker runs returns: from the bytes of a task to the bytes of its results.
Serve = Callable[[bytes], Iterable[bytes]]

_END = b"\0\0\0\0"
#: Results that one worker may be ahead of their reader, and tasks that it has at a time: while the reader is busy, it
#: need not wait for the next.
_AHEAD = 4
_TASKS = 2
_START = "import sys; sys.path[:] = {path!r}; from objstore.workers import _serve; _serve({target!r})"


def run_tasks(
    target: str, argument: bytes, tasks: Sequence[bytes], processes: int
) -> Iterator[tuple[int, bytes | None]]:
    """Run ``tasks`` in up to ``processes`` processes and give their results as they come, each with its task's number.

    ``target`` is ``module:function``; each process calls the function with ``argument`` once and what it returns (a
    ``Serve``) with each task. When a process dies in a task, None stands for the rest of that task's results, and what
    it had been given after that is given to others.
    """
    waiting = list(range(len(tasks)))[::-1]
    events: SimpleQueue[tuple[_Worker, bytes | None]] = SimpleQueue()
    workers: set[_Worker] = set()
    try:
        for _ in range(min(processes, len(tasks))):
            worker = _Worker(target, argument, events)
            workers.add(worker)
            worker.give(waiting, tasks, 1)
        while workers:
            worker, result = events.get()
            worker.room.release()
            if result is None:
                workers.discard(worker)
                lost = worker.end()
                if lost:
                    waiting += lost[:0:-1]
                    yield lost[0], None
                    if waiting:
                        replacement = _Worker(target, argument, events)
                        workers.add(replacement)
                        replacement.give(waiting, tasks, 1)
            elif result:
                yield worker.given[0], result
            else:
                del worker.given[0]
                # The last ones go to whoever is free.
                worker.give(waiting, tasks, _TASKS if len(waiting) > len(workers) else 1)
    finally:
        for worker in workers:
            worker.kill()


class _Worker:
    """A process, the numbers of the tasks that it was given and has not ended, in order, and threads that write its
    tasks and read its results: neither may wait for the other."""

    def __init__(
        self, target: str, argument: bytes, events: SimpleQueue[tuple[_Worker, bytes | None]]
    ) -> None:
        self.given: list[int] = []
        self.room = Semaphore(_AHEAD)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START.format(path=sys.path, target=target)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._frames: SimpleQueue[bytes | None] = SimpleQueue()
        self._frames.put(argument)
        self._closed = False
        Thread(target=self._write, args=(self._process.stdin,), daemon=True).start()
        Thread(target=self._read, args=(self._process.stdout, events), daemon=True).start()

    def _read(self, stream: BinaryIO, events: SimpleQueue[tuple[_Worker, bytes | None]]) -> None:
        more = True
        while more:
            frame = _read_frame(stream)
            more = frame is not None
            self.room.acquire()
            events.put((self, frame))

    def _write(self, stream: BinaryIO) -> None:
        with suppress(OSError):  # it died before it read everything: its reader will say so
            while (frame := self._frames.get()) is not None:
                _write_frame(stream, frame)
        with suppress(OSError):
            stream.close()

    def give(self, waiting: list[int], tasks: Sequence[bytes], most: int) -> None:
        """Hand over the next of ``waiting``, until the process has ``most`` tasks, or say that there are none."""
        while waiting and len(self.given) < most:
            self.given.append(waiting.pop())
            self._frames.put(tasks[self.given[-1]])
        if not waiting:
            self._close()

    def _close(self) -> None:
        if not self._closed:
            self._closed = True
            self._frames.put(None)

    def end(self) -> list[int]:
        """Wait for the process to be gone; the numbers of the tasks that it was given and did not end."""
        self._close()
        self._process.wait()
        return self.given

    def kill(self) -> None:
        """End the process now."""
        self._process.kill()
        self.room.release(_AHEAD)
        self.end()


def _read_frame(stream: BinaryIO) -> bytes | None:
    """The next frame, empty for the end of a task; None when the other side is gone."""
    head = stream.read(4)
    if len(head) < 4:
        return None
    size = int.from_bytes(head, "big")
    frame = stream.read(size)
    return frame if len(frame) == size else None


def _write_frame(stream: BinaryIO, frame: bytes) -> None:
    stream.write(len(frame).to_bytes(4, "big") + frame)
    stream.flush()


def _serve(target: str) -> None:
    """The main loop of a worker process."""
    source, sink = os.fdopen(0, "rb"), os.fdopen(1, "wb")
    module, _, name = target.partition(":")
    argument = _read_frame(source)
    if argument is None:
        return
    serve: Serve = getattr(import_module(module), name)(argument)
    while (task := _read_frame(source)) is not None:
        for result in serve(task):
            _write_frame(sink, result)
        sink.write(_END)
        sink.flush()
