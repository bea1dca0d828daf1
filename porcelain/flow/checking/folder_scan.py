"""Finding the files of the published layout below a path."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct, field

from objstore.errors import NotFound
from porcelain.flow.folders.layout import CONVERSATIONS, ROUNDS, TEMPORARY, sd_name, sf_name


class Group(Struct):
    """The landed files of one session, or the rounds of one conversation, by the folder that holds them. ``root`` is
    the folder of the layout they belong to; all paths are as a person would open them."""

    root: str
    name: str
    files: list[str] = field(default_factory=list)


class Folder(Struct):
    """What there is to check below a path."""

    sessions: list[Group]
    conversations: list[Group]
    loose: list[str]


def scan(path: Path) -> Folder:
    """Find everything below ``path``: roots of the layout wherever they stand, and single files outside of any.

    ``path`` may be one file. Raises ``NotFound``.
    """
    if path.is_file():
        return Folder([], [], [str(path)])
    if not path.is_dir():
        raise NotFound(f"{path}: no such file or folder")
    sessions: dict[tuple[str, str], Group] = {}
    conversations: dict[tuple[str, str], Group] = {}
    loose: list[str] = []
    for folder, below, names in os.walk(os.path.normpath(path)):
        inside = CONVERSATIONS in below
        below[:] = sorted(
            name
            for name in below
            if not name.startswith(".") and not (inside and name.startswith("_") and name != CONVERSATIONS)
        )
        for name in sorted(names):
            if name.startswith(TEMPORARY) or not name.endswith((".sd", ".sf")):
                continue
            file = os.path.join(folder, name)
            parts = Path(file).parts
            if name.endswith(".sf"):
                if sf_name(name) is None or parts[-2:-1] != (ROUNDS,) or parts[-4:-3] != (CONVERSATIONS,):
                    loose.append(file)
                    continue
                if os.path.getsize(file):
                    key = (str(Path(*parts[:-4])), parts[-3])
                    conversations.setdefault(key, Group(*key)).files.append(file)
                continue
            depth = _session_depth(parts)
            if depth and sd_name(name) is not None:
                key = (str(Path(*parts[:-depth])), parts[-depth])
                sessions.setdefault(key, Group(*key)).files.append(file)
            else:
                loose.append(file)
    return Folder(list(sessions.values()), list(conversations.values()), loose)


def _session_depth(parts: tuple[str, ...]) -> int:
    """How many parts from the end on the session's folder stands; 0 for a file outside the layout."""
    if parts[-3:-2] in (("streams",), ("runs",)) and len(parts) > 3:
        return 4
    return 3 if parts[-2:-1] == ("provider_body",) and len(parts) > 2 else 0
