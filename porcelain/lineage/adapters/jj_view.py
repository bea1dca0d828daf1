"""What jj knows of a repository, asked so that nothing is written and none of the repository's settings is followed.

jj has no way to leave a repository's settings aside: they can give other meanings to what is asked, and those of an
older jj are moved elsewhere by the first command that sees them. It also joins operations that have parted, and mends
its index. So it is shown a folder in which all that it reads is linked to, but for the settings, and the index is a
copy; and it is asked about one operation by name.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from porcelain.lineage.adapters.asking import Refused, answer
from porcelain.lineage.facts.times import normal_time

#: What is worked on in some workspace, as long as nothing has been done there: ``jj new`` or a clone makes it.
_IDLE = 'visible_heads() & working_copies() & empty() & description(exact:"")'
_COMMITS = f"all() ~ root() ~ ({_IDLE})"
#: A line for each commit; a subject holds no line feed.
_LINE = (
    'commit_id ++ "\\t" ++ committer.timestamp().format("%Y-%m-%dT%H:%M:%S%:z") ++ "\\t" '
    '++ description.first_line() ++ "\\n"'
)


class View:
    """Answers about one repository, that of the workspace at ``path``."""

    def __init__(self, path: Path) -> None:
        self._jj = path / ".jj"

    def git_store(self) -> str | None:
        """Where git keeps the commits, or None where jj does so itself."""
        try:
            store = self._repository() / "store"
            return str((store / (store / "git_target").read_text().strip()).resolve())
        except (OSError, ValueError, Refused):
            return None

    def heads(self, program: str = "jj") -> list[str]:
        """The commits from which all others are reached that were not replaced by later ones. Raises ``Refused``."""
        return sorted({commit for commit, _, _ in self._ask(program, f"heads({_COMMITS})")})

    def commits(self, program: str = "jj") -> tuple[list[tuple[str, str, str]], set[str]]:
        """Id, time and subject of all commits that were not replaced, and the ids of those that have none before them.
        Raises ``Refused``."""
        found = {one[0]: one for one in self._ask(program, _COMMITS)}
        return list(found.values()), {commit for commit, _, _ in self._ask(program, f"roots({_COMMITS})")}

    def _ask(self, program: str, revisions: str) -> list[tuple[str, str, str]]:
        found = []
        with self._aside() as folder:
            command = (
                program,
                "--repository",
                str(folder),
                "--ignore-working-copy",
                "--color=never",
                "--quiet",
            )
            words = ("log", "--no-graph", "--revisions", revisions, "--template", _LINE)
            for operation in self._operations():
                said = answer((*command, f"--at-operation={operation}", *words), {"JJ_CONFIG": os.devnull})
                for line in said.split("\n"):
                    commit, _, rest = line.partition("\t")
                    time, _, subject = rest.partition("\t")
                    normal = normal_time(time)
                    if normal is not None and _is_id(commit):
                        found.append((commit, normal, subject))
        return found

    def _repository(self) -> Path:
        """The folder of the repository, which a further workspace names in a file."""
        place = self._jj / "repo"
        try:
            if place.is_file():
                place = self._jj / os.fsdecode(place.read_bytes())
            if (place / "store").is_dir():
                return place.resolve()
        except (OSError, ValueError):
            pass
        raise Refused("the repository of its .jj is not there")

    def _operations(self) -> list[str]:
        """The latest operation; several where jj was used at once in two places and not since."""
        try:
            names = os.listdir(self._repository() / "op_heads" / "heads")
        except OSError:
            names = []
        return sorted(filter(_is_id, names)) or ["@"]

    @contextmanager
    def _aside(self) -> Iterator[Path]:
        repository = self._repository()
        try:
            with tempfile.TemporaryDirectory(prefix="objstore-jj-") as folder:
                own = Path(folder, ".jj", "repo")
                own.mkdir(parents=True)
                for one in os.scandir(repository):
                    if one.name == "index":
                        shutil.copytree(one.path, own / one.name)
                    elif one.is_dir():  # the files beside them are settings
                        (own / one.name).symlink_to(one.path)
                (own.parent / "working_copy").symlink_to(self._jj.resolve() / "working_copy")
                yield Path(folder)
        except (OSError, shutil.Error):
            raise Refused("its .jj cannot be read") from None


def _is_id(text: str) -> bool:
    return bool(text) and set(text) <= set("0123456789abcdef")
