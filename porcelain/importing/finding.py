"""Where an import looks: the agents' own folders, or the places that it was given, and what discovery finds there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from objstore.errors import UsageError
from porcelain.importing.tasks import discovery_module
from porcelain.providers.agents import roots
from porcelain.providers.cursor import KnownFiles
from porcelain.providers.reader import Container, Conversation, Discovery, LeftOut

#: What discovery gives.
Found = Conversation | LeftOut | Container


def find_roots(provider: str, env: Mapping[str, str], home: Path) -> list[Path]:
    """The agent's folders and databases that exist."""
    return [Path(root) for root in roots(provider, env, str(home))]


def search(
    known: Mapping[str, KnownFiles], paths: Sequence[str], env: Mapping[str, str], home: Path | None
) -> Iterator[tuple[str, Path, Iterable[Found]]]:
    """The agent, the folder or file, and what is there, of every place to look at; see ``plan.make_plan``. ``known``
    has the agents, with what earlier imports know of their files."""
    providers = list(known)
    if not paths:
        assert home is not None
        for name in providers:
            for root in find_roots(name, env, home):
                yield name, root, _discover(name, root, known[name]) if root.exists() else ()
        return
    for text in paths:
        path = Path(text).absolute()
        matched = False
        for name, root in _of_home(path, providers):
            matched = True
            yield name, root, _discover(name, root, known[name])
        for name in providers if not matched else ():
            module = discovery_module(name)
            if path.is_dir() or _is_container(module, path):
                found = list(_discover(name, path, known[name]))
                if any(isinstance(one, Conversation) for one in found):
                    matched = True
                    yield name, path, found
            elif (one := module.recognise(path)) is not None:
                matched = True
                yield name, path, [one]
                break
        if not matched:
            raise UsageError(
                f"{text}: holds no conversation of {', '.join(providers)}",
                hint="give a home folder, an agent's own folder, such as ~/.claude, or one of its files",
            )


def _of_home(path: Path, providers: Sequence[str]) -> list[tuple[str, Path]]:
    """Agents' own folders below ``path``, where it is somebody's home folder or a copy of one."""
    if not path.is_dir():
        return []
    return [(name, root) for name in providers for root in find_roots(name, {}, path) if root.exists()]


def _discover(provider: str, root: Path, known: KnownFiles) -> Iterable[Found]:
    """What is in ``root``. A provider whose sources are not files looks at the cursors themselves."""
    module = discovery_module(provider)
    discover_known = getattr(module, "discover_known", None)
    if discover_known is not None:
        return cast(Iterable[Found], discover_known(root, known))
    return module.discover(root, known)


def _is_container(module: Discovery, path: Path) -> bool:
    """Whether ``path`` is a file in which the provider keeps many conversations."""
    is_container = getattr(module, "is_container", None)
    return is_container is not None and bool(is_container(path))
