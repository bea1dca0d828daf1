"""Which agents there are: their names, the modules that read their formats, and where they keep conversations.

Apart from those modules, so that who looks whether there is anything to read loads none of them.
"""

from __future__ import annotations

import os
from stat import S_ISDIR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

#: Provider modules by name, in the order in which they are searched.
PROVIDERS = {
    "claude": "porcelain.providers.claude",
    "codex": "porcelain.providers.codex",
    "factory": "porcelain.providers.factory",
    "oh-my-pi": "porcelain.providers.omp",
    "opencode": "porcelain.providers.opencode",
    "pi": "porcelain.providers.pi",
}

#: What the agents call themselves.
TITLES = {
    "claude": "Claude Code",
    "codex": "Codex",
    "factory": "Factory Droid",
    "oh-my-pi": "oh-my-pi",
    "opencode": "OpenCode",
    "pi": "Pi",
}

#: Folders of Codex that hold sessions.
CODEX_FOLDERS = ("sessions", "archived_sessions")
#: What OpenCode calls its databases.
OPENCODE_DATABASE = "opencode*.db"


def roots(provider: str, environment: Mapping[str, str], home: str) -> list[str]:
    """The folders and databases to search that exist, given the environment, whose overrides are honoured as the agent
    does, and the home folder. Raises ``OSError`` where that cannot be seen."""
    return _ROOTS[provider](environment, home)


def _claude(environment: Mapping[str, str], home: str) -> list[str]:
    """The ``projects`` folders: of ``CLAUDE_CONFIG_DIR`` alone where it is set, else the usual two."""
    override = environment.get("CLAUDE_CONFIG_DIR")
    folders = [override] if override else [_join(home, ".claude"), _join(home, ".config", "claude")]
    return _folders(_join(folder, "projects") for folder in folders)


def _codex(environment: Mapping[str, str], home: str) -> list[str]:
    """Codex's folder, of ``CODEX_HOME`` where it is set, if it holds any sessions."""
    folder = environment.get("CODEX_HOME") or _join(home, ".codex")
    return [folder] if any(_is_folder(_join(folder, name)) for name in CODEX_FOLDERS) else []


def _factory(environment: Mapping[str, str], home: str) -> list[str]:
    """The folder of sessions: below ``FACTORY_DIR``, else below the ``.factory`` of ``FACTORY_HOME_OVERRIDE``, else
    below the one of ``home``."""
    other_home = environment.get("FACTORY_HOME_OVERRIDE") or home
    factory = environment.get("FACTORY_DIR") or _join(other_home, ".factory")
    return _folders([_join(factory, "sessions")])


def _omp(environment: Mapping[str, str], home: str) -> list[str]:
    """The folders of sessions: below ``PI_CODING_AGENT_DIR``, else below the folder that ``PI_CONFIG_DIR`` names in
    ``home``; and the one in ``XDG_DATA_HOME``."""
    agent = environment.get("PI_CODING_AGENT_DIR")
    config = environment.get("PI_CONFIG_DIR") or ".omp"
    data = environment.get("XDG_DATA_HOME")
    found = [_join(agent or _join(home, config, "agent"), "sessions")]
    if data and not agent:
        found.append(_join(data, "omp", "sessions"))
    return _folders(found)


def _opencode(environment: Mapping[str, str], home: str) -> list[str]:
    """The data folder: below ``XDG_DATA_HOME``, else ``~/.local/share``, on every system; and the database that
    ``OPENCODE_DB`` names, where it lies elsewhere."""
    folder = _join(environment.get("XDG_DATA_HOME") or _join(home, ".local", "share"), "opencode")
    found = _folders([folder])
    named = environment.get("OPENCODE_DB")
    if named:
        from fnmatch import fnmatch

        database = _join(folder, named)
        place, name = os.path.split(os.path.normpath(database))
        is_inside = place == os.path.normpath(folder) and fnmatch(name, OPENCODE_DATABASE)
        if os.path.isfile(database) and not is_inside:
            found.append(database)
    return found


def _pi(environment: Mapping[str, str], home: str) -> list[str]:
    """The folder of sessions: the overrides of ``PI_CODING_AGENT_SESSION_DIR`` and ``PI_CODING_AGENT_DIR``, else the
    one below ``home``."""
    agent = environment.get("PI_CODING_AGENT_DIR") or _join(home, ".pi", "agent")
    return _folders([environment.get("PI_CODING_AGENT_SESSION_DIR") or _join(agent, "sessions")])


_ROOTS: dict[str, Callable[[Mapping[str, str], str], list[str]]] = {
    "claude": _claude,
    "codex": _codex,
    "factory": _factory,
    "oh-my-pi": _omp,
    "opencode": _opencode,
    "pi": _pi,
}
_join = os.path.join


def _folders(paths: Iterable[str]) -> list[str]:
    return [path for path in paths if _is_folder(path)]


def _is_folder(path: str) -> bool:
    try:
        return S_ISDIR(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
