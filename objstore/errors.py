"""The exceptions of the library: one root, a few meaningful children.

Every exception carries the exit code that the command line uses for it and, where there is one, a hint: what the
person can type or do next. The text of an exception is always one line.
"""

from __future__ import annotations


class ObjstoreError(Exception):
    """Root of all errors that objstore raises on purpose.

    ``exit_code`` is what a command exits with: 1 a check failed, 2 usage, 3 not found, 4 conflict, 5 cannot read or
    write.
    """

    exit_code = 5

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class CheckFailed(ObjstoreError):
    """Something that was read does not satisfy the rules it must satisfy."""

    exit_code = 1


class UsageError(ObjstoreError):
    """The caller asked for something that has no meaning here."""

    exit_code = 2


class NotFound(ObjstoreError):
    """An object, ref, store or file that was named does not exist."""

    exit_code = 3


class AmbiguousId(NotFound):
    """An abbreviated id matches more than one object; ``candidates`` holds some of them (hex)."""

    def __init__(self, prefix: str, candidates: list[str]) -> None:
        super().__init__(
            f"{prefix}: ambiguous: matches {len(candidates)} objects or more",
            hint="type more digits: " + " ".join(c[: len(prefix) + 4] for c in candidates[:4]),
        )
        self.prefix = prefix
        self.candidates = candidates


class Conflict(ObjstoreError):
    """A compare-and-swap lost, a lock was not to be had in time, or heads diverged where one is needed."""

    exit_code = 4


class RefMoved(Conflict):
    """A ref was not where the caller believed it to be. ``expected`` and ``found`` are hex ids or None."""

    def __init__(self, name: str, expected: str | None, found: str | None) -> None:
        super().__init__(
            f"{name}: moved by someone else: expected {expected or 'no ref'}, found {found or 'no ref'}",
            hint="read the ref again and repeat the change",
        )
        self.name = name
        self.expected = expected
        self.found = found


class StorageError(ObjstoreError):
    """The disk, a file or the database cannot be read or written."""

    exit_code = 5
