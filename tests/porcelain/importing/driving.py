"""Running imports, in this process and in others, and reading back what a store then holds."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import msgspec

from objstore.snapshot import Snapshot
from objstore.store import Store
from porcelain.flow.chain.fold_store import stored_fold
from porcelain.flow.chain.landed import page_records, pages
from porcelain.flow.chain.naming import best_heads
from porcelain.lineage.facts.kinds import Fact
from porcelain.lineage.facts.projection import Projection, project
from porcelain.lineage.facts.store import all_facts
from porcelain.main import main
from porcelain.providers.records import Page, Record, page_record_ids

ROOT = Path(__file__).resolve().parents[3]
HOME = ROOT / "fixtures" / "home"
#: How many conversations are in it, how many files of theirs, and how many records.
CONVERSATIONS, FILES, RECORDS = 30, 53, 762
TIDEPOOL = Path(".claude/projects/-home-mira-src-tidepool/5c5fd944-d386-42dd-9b31-250b1a31a74a.jsonl")
#: What would lead a command away from the store and the home folder that a test gives it.
_OVERRIDES = (
    "OBJSTORE_DIR",
    "OBJSTORE_DEBUG",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "FACTORY_DIR",
    "FACTORY_HOME_OVERRIDE",
    "OPENCODE_DB",
    "PI_CODING_AGENT_DIR",
    "PI_CODING_AGENT_SESSION_DIR",
    "PI_CONFIG_DIR",
    "XDG_DATA_HOME",
    "COLUMNS",
)


class Result(NamedTuple):
    """What one run gave: its exit code, and what it wrote as text."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON value on standard output."""
        return json.loads(self.out)


def environment(home: Path | None, **more: str) -> dict[str, str]:
    """This process's environment with another home folder and without overrides."""
    env = {name: value for name, value in os.environ.items() if name not in (*_OVERRIDES, "HOME")}
    env["PYTHONPATH"] = str(ROOT)
    return env | ({} if home is None else {"HOME": str(home)}) | more


def objstore(
    store: Path | None, *words: str | Path, home: Path | None = None, stdin: bytes = b"", **env: str
) -> Result:
    """Run one command line in this process on the store in the folder ``store``."""
    streams = [io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin)), encoding="utf-8")]  # type: ignore[arg-type]
    buffers = [io.BytesIO(), io.BytesIO()]
    streams += [io.TextIOWrapper(buffer, encoding="utf-8") for buffer in buffers]
    with ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, environment(home, **env), clear=True))
        for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
            stack.enter_context(mock.patch.object(sys, name, stream))
        code = main([*(("--store", str(store)) if store else ()), *map(str, words)])
        out, err = (buffer.getvalue().decode() for buffer in buffers)
    return Result(code, out, err)


def succeed(store: Path, *words: str | Path, home: Path | None = None, **env: str) -> Result:
    """``objstore``, which must exit with 0."""
    result = objstore(store, *words, home=home, **env)
    assert result.code == 0, (words, result.err)
    return result


def start(
    store: Path, *words: str | Path, home: Path | None = None, script: Path | None = None, **options: Any
) -> subprocess.Popen[bytes]:
    """The same in a process of its own; ``script`` is run instead of the program, and is to call it."""
    program = ["-m", "porcelain.main"] if script is None else [str(script)]
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    options.setdefault("env", environment(home))
    return subprocess.Popen(
        [sys.executable, *program, "--store", str(store), *map(str, words)], cwd=store.parent, **options
    )


def finish(process: subprocess.Popen[bytes], timeout: float = 60) -> Result:
    """Wait for a process of ``start`` and return what it gave."""
    out, err = process.communicate(timeout=timeout)
    return Result(process.returncode, (out or b"").decode(), (err or b"").decode())


def run(store: Path, *words: str | Path, home: Path | None = None, **options: Any) -> Result:
    """``start`` and ``finish``."""
    return finish(start(store, *words, home=home, **options))


def patched(path: Path, *lines: str) -> Path:
    """A script at ``path`` that runs the program after ``lines``, which its worker processes run too: they are started
    fresh, and Python itself runs ``sitecustomize`` in them."""
    text = "import sys\nimport porcelain.main\n" + "\n".join(lines) + "\n"
    folder = path.with_suffix(".patches")
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(text)
    path.write_text(
        f'import os\nos.environ["PYTHONPATH"] = {str(folder)!r} + os.pathsep + os.environ["PYTHONPATH"]\n'
        f'{text}if __name__ == "__main__":\n    sys.exit(porcelain.main.main())\n'
    )
    return path


#: Lines for ``patched`` that make small files come in many pieces and transactions, as if they were large.
SMALL_PIECES = (
    "import porcelain.providers.landing, porcelain.providers.pages, porcelain.importing.run",
    "import porcelain.flow.assembly.growing, porcelain.importing.work",
    "porcelain.flow.assembly.growing.STANDING_ROWS = 0",
    "porcelain.providers.pages.PAGE_BYTES = 4096",
    "porcelain.providers.chunks.CHUNK_BYTES = 8192",
    "porcelain.importing.work._BUNDLE_BYTES = 8192",
    "porcelain.importing.work.KEPT_FILES = 2",
    "porcelain.importing.run._COMMIT_OBJECTS = 40",
)


def copy_home(target: Path) -> Path:
    """A home folder with the fixtures' conversations, to be changed at will."""
    shutil.copytree(HOME, target)
    return target


def verify(store: Path) -> None:
    """The store and its rounds hold."""
    succeed(store, "verify")
    checked = objstore(store, "flow", "verify")
    assert checked.code == 0, checked.out + checked.err


# -- what a store holds ----------------------------------------------------------------------------


@contextmanager
def opened(store: Path) -> Iterator[tuple[Store, Snapshot]]:
    """The store and one view of it."""
    with Store.open(store, read_only=True) as found, found.snapshot() as view:
        yield found, view


class Held(NamedTuple):
    """What an import is to bring about. ``landed``: ids of records in landing order by (provider, conversation);
    ``folds``: frames of the rounds' fold without their revisions; ``facts``: lineage facts but import runs."""

    landed: dict[tuple[str, str], list[str]]
    folds: dict[tuple[str, str], dict[str, Any]]
    facts: dict[str, Fact]


def held(store: Path) -> Held:
    """What the store in the folder ``store`` holds."""
    with opened(store) as (_, view):
        landed = {
            name: [record for page in pages(view, head) for record in page_record_ids(page)]
            for name, head in best_heads(view, "landed").items()
        }
        folds = {name: frames(view, head) for name, head in best_heads(view, "flow").items()}
        facts = {fact.id: fact for _, fact in all_facts(view) if fact.kind != "import_run"}
    return Held(landed, folds, facts)


def frames(view: Snapshot, head: bytes) -> dict[str, Any]:
    """The frames of a chain of rounds by id, as plain values without revisions, and without what was missing for a
    time only."""
    fold = stored_fold(view, head)
    found = {}
    for group in (fold.nodes, fold.relations, fold.unresolved):
        for frame in group.values():
            value = json.loads(msgspec.json.encode(msgspec.structs.replace(frame, revision=0)))
            if value.get("state") != "resolved":
                found[type(frame).__name__ + " " + frame.id] = value
    return found


def without_places(store: Path) -> dict[tuple[str, str], list[str]]:
    """The frames of each conversation with the places of records (page and row) replaced by their ordinals in their
    files, as text in order: equal however many pages the same files were landed in."""
    found = {}
    with opened(store) as (_, view):
        for name, head in best_heads(view, "flow").items():
            ordinals: dict[tuple[int, int], str] = {}
            seen: dict[str, int] = {}
            for page in pages(view, best_heads(view, "landed")[name]):
                for row in range(1, len(page.lengths) + 1):
                    seen[page.src] = seen.get(page.src, 0) + 1
                    ordinals[page.seq, row] = f"<{page.src}:{seen[page.src]}>"
            texts = [json.dumps(value, sort_keys=True) for value in frames(view, head).values()]
            found[name] = sorted(_placed(text, ordinals) for text in texts)
    return found


def _placed(text: str, ordinals: Mapping[tuple[int, int], str]) -> str:
    def ordinal(match: re.Match[str]) -> str:
        return ordinals[int(match["seq"]), int(match["row"])]

    text = re.sub(r'"row": (?P<row>\d+), "seq": (?P<seq>\d+)', ordinal, text)
    text = re.sub(r'\\"row\\":(?P<row>\d+),\\"seq\\":(?P<seq>\d+)', ordinal, text)
    return re.sub(r"(?<=[/_])(?P<seq>\d+)[/_](?P<row>\d+)(?=[\":/_])", ordinal, text)


def landed_pages(view: Snapshot) -> Iterator[tuple[str, str, Page, list[Record]]]:
    """Provider, conversation, page and records of all that was landed."""
    for (provider, name), head in best_heads(view, "landed").items():
        for page in pages(view, head):
            yield provider, name, page, page_records(view, page)


def projection(store: Path) -> Projection:
    """The lineage view."""
    with opened(store) as (_, view):
        return project(all_facts(view))


def observations(store: Path) -> dict[str, Any]:
    """The rows of observed files by path; of several for one path the last by id."""
    return {row["path"]: row for row in projection(store).tables["session_observations"]}


def state_of(store: Path) -> tuple[int, int, bytes]:
    """What changes whenever something is written: LMDB's last transaction, the arrivals, and the data itself."""
    with opened(store) as (found, view):
        env = found.database.env  # type: ignore[union-attr]
        return env.info()["last_txnid"], view.count(), (store / "data.mdb").read_bytes()


def eventually(condition: Callable[[], bool], seconds: float = 30) -> None:
    """Wait until ``condition`` holds."""
    import time

    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)
