"""What an import makes of the samples of Codex, oh-my-pi, OpenCode and Factory Droid.

Every number here is of the samples' design (``fixtures/*_sessions.py``): what a conversation has of its own, and what
of it is a copy, a repetition, damage or not yet written.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.porcelain.importing.driving import HOME, copy_home, held, landed_pages, opened, succeed, verify


class Sample(NamedTuple):
    """A conversation. ``records`` of all its files, ``calls`` and ``tools`` with its copies and its sub-agents,
    ``agents`` that have a stream of their own; ``tokens`` of its own calls alone, and how many those are: input, cache
    read, cache write, output, of which reasoning; ``origin`` is what it was forked from."""

    provider: str
    name: str
    records: int
    calls: int
    tools: int
    agents: int
    own: int
    tokens: tuple[int, int, int, int, int]
    origin: str = ""


FERRY, FERRY_FORK = "019e17c6-43d0-76ea-98c4-8b525c8b8aa4", "019e1b17-b8c0-7d31-9ef5-e562736edcfc"
KESTREL, KESTREL_FORK = "019e8766-ecd0-73f7-9181-66abce8ae593", "019e8eff-fe50-7866-8ba7-b70924a1503d"
HIVES = "019bd255-d880-78f3-b949-7a4198a9d80f"
WEIGHING, BRANCH = "dc1bab23-e2cd-4ff6-aa10-48a481d76d3a", "d23f3d6f-bd9d-48a0-88f0-3160a9406bbc"
MOVED, BOUNCES = "ef01412c-e3f7-4aa5-bdc0-c379e00edf51", "8ccbe87c-a324-4724-9cdd-6acbe2698301"
LETTERS, LETTERS_FORK = "ses_14e61bb7ffferKbYji7DBcBiPz", "ses_14a773adfffeNv6K59J2XwenAb"
TIDES, STALE, RUNNING = (
    "ses_51c8f617fffexopi7lJTShgV8s",
    "ses_5243fc3bfffesU3dHVqVU2WBQc",
    "ses_1449e57bfffeeYYBcbjmpWA6rJ",
)
DATUM, DATUM_FORK = "3051027f-4a08-4778-b445-5da6d48f2819", "4fbc385f-2ed9-4598-b641-29d3577e8a08"
QUAYS = "a13f25a8-0c1e-4c62-a4b5-7963e0f633bf"

SAMPLES = (
    # Nine statements of new tokens, the compaction's among them; its totals are stated again before and after each.
    Sample("codex", FERRY, 66, 9, 5, 0, 9, (9162, 51968, 0, 1033, 224)),
    # Its header, two turns of the parent with the parent's, a turn of its own; six of its calls are the parent's.
    Sample("codex", FERRY_FORK, 63, 8, 5, 0, 2, (624, 14976, 0, 183, 64), FERRY),
    # 37 lines, 17 of the sub-agent, two names; each call's tokens stand in two places.
    Sample("codex", KESTREL, 37 + 17 + 2, 5 + 2, 3 + 1, 1, 7, (15960, 42240, 0, 550, 96)),
    # Eleven whole lines; the twelfth is being written.
    Sample("codex", KESTREL_FORK, 11, 1, 1, 0, 1, (316, 9984, 0, 66, 0), KESTREL),
    # 28 whole records around the one that was cut off; totals begin anew behind it.
    Sample("codex", HIVES, 28, 4, 2, 0, 4, (8880, 8320, 0, 250, 16)),
    # 14 lines and three times 8 of the sub-agents; one more record names the second sub-agent of a task. The tokens of
    # a title belong to no answer.
    Sample("oh-my-pi", WEIGHING, 14 + 1 + 3 * 8, 4 + 3 * 2, 2 + 3 * 1, 3, 11, (11450, 26800, 2600, 557, 48)),
    Sample("oh-my-pi", BRANCH, 12 + 1, 3, 1, 0, 1, (400, 7100, 0, 55, 0), WEIGHING),
    # 17 records on 16 lines; the compaction has tokens and no answer.
    Sample("oh-my-pi", MOVED, 17, 5, 3, 0, 6, (4520, 9460, 1200, 278, 20)),
    Sample("oh-my-pi", BOUNCES, 10, 3, 2, 0, 3, (2690, 5000, 0, 104, 0)),
    # The session, 8 messages and 5 results; the child, 3 messages and a result.
    Sample("opencode", LETTERS, 14 + 5, 6 + 2, 5 + 1, 1, 8, (6250, 46710, 6100, 447, 56)),
    Sample("opencode", LETTERS_FORK, 1 + 7 + 4, 5, 4, 0, 2, (540, 17520, 0, 64, 0), LETTERS),
    # In the tree and in the database: once.
    Sample("opencode", TIDES, 1 + 7 + 1, 4, 1, 0, 4, (3890, 6144, 0, 120, 12)),
    Sample("opencode", STALE, 1 + 2, 1, 0, 0, 1, (1500, 0, 0, 11, 0)),
    # At work: no tokens are stated yet, and the tool has no result.
    Sample("opencode", RUNNING, 1 + 2, 1, 1, 0, 0, (0, 0, 0, 0, 0)),
    # Settings are a record each; they state the tokens of a session in one sum.
    Sample("factory", DATUM, 13 + 1 + 7 + 1, 4 + 2, 4 + 1, 1, 2, (7150, 24450, 3700, 341, 36)),
    Sample("factory", DATUM_FORK, 17 + 1, 6, 5, 0, 1, (610, 15850, 0, 77, 0), DATUM),
    Sample("factory", QUAYS, 11 + 1, 3, 1, 0, 1, (4050, 4000, 1400, 70, 0)),
)
PROVIDERS = ("codex", "factory", "oh-my-pi", "opencode")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples") / "store"
    succeed(folder, "import", home=HOME)
    return folder


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_is_found(tmp_path: Path, provider: str) -> None:
    result = succeed(tmp_path / "store", "import", "--json", "--provider", provider, home=HOME).json
    (place,) = result["places"]
    mine = [one for one in SAMPLES if one.provider == provider]
    assert place["conversations"] == place["new"] == len(mine)
    assert place["records"] == sum(one.records for one in mine)
    damaged, left_out = {"codex": (1, 1), "factory": (1, 1), "oh-my-pi": (0, 0), "opencode": (0, 0)}[provider]
    assert (place["damaged"], place["leftOut"], place["pending"]) == (damaged, left_out, 1)
    again = succeed(tmp_path / "store", "import", "--json", "--provider", provider, home=HOME).json
    assert (again["objects"], again["records"]) == (0, 0)
    verify(tmp_path / "store")


def test_records(store: Path) -> None:
    found: Counter[tuple[str, str]] = Counter()
    with opened(store) as (_, view):
        for provider, name, _, records in landed_pages(view):
            if provider in PROVIDERS:
                found[provider, name] += len(records)
    assert found == {(one.provider, one.name): one.records for one in SAMPLES}
    listed = lines(succeed(store, "lineage", "sessions", "--json").out)
    assert {(one["provider"], one["native_id"]): one["records"] for one in listed}.items() >= found.items()


def test_structure(store: Path) -> None:
    folds = held(store).folds
    for one in SAMPLES:
        frames = folds[one.provider, one.name].values()
        kinds = Counter(frame["kind"] for frame in frames if frame["t"] == "node")
        assert kinds["llm.call"] == one.calls, one
        assert kinds["tool"] + kinds["agent.call"] == one.tools, one
        assert kinds["stream"] == 1 + one.agents, one
        assert kinds["agent.output"] == one.agents, one


def test_tokens_are_counted_once(store: Path) -> None:
    rows = succeed(store, "lineage", "usage", "--by", "session", "--json").json["rows"]
    keys = ("input", "cacheRead", "cacheWrite", "output", "reasoning")
    found = {
        (row["provider"], row["name"]): (row["calls"], *(row["counted"][key] for key in keys))
        for row in rows
        if row["provider"] in PROVIDERS
    }
    assert found == {(one.provider, one.name): (one.own, *one.tokens) for one in SAMPLES if one.own}


@pytest.mark.parametrize(
    ("provider", "seen", "stated"),
    [
        # What the fork repeats of Codex: its parent's first six calls.
        ("codex", 23 + 6, 164_512 + 42_173),
        ("factory", 4, 61_698),
        # The branch repeats two calls and the title.
        ("oh-my-pi", 21 + 3, 72_214 + 14_632),
        # The fork repeats three calls; what stands in the tree as well is read once.
        ("opencode", 15 + 3, 89_296 + 25_676),
    ],
)
def test_what_files_state_beside_it(store: Path, provider: str, seen: int, stated: int) -> None:
    document = succeed(store, "lineage", "usage", "--provider", provider, "--json").json
    total = document["total"]
    assert (total["seen"], total["stated"]["total"]) == (seen, stated)
    own = [one for one in SAMPLES if one.provider == provider]
    assert total["counted"]["total"] == sum(sum(one.tokens[:4]) for one in own)


def test_forks_are_told_from_copies(store: Path) -> None:
    graph = succeed(store, "lineage", "graph", "--json").json
    nodes = {node["id"]: node for thread in graph["threads"] for node in thread["nodes"]}
    found = {
        nodes[link["target"]]["nativeId"]: (
            link["relation"],
            nodes[link["source"]]["nativeId"],
            link["confidence"],
        )
        for link in graph["links"]
        if nodes[link["target"]]["provider"] in PROVIDERS
    }
    # OpenCode has no link from a fork to its origin: what both say is all that tells.
    sure = {"opencode": "medium"}
    expected = {
        one.name: ("fork", one.origin, sure.get(one.provider, "authoritative"))
        for one in SAMPLES
        if one.origin
    }
    # One session in two stores is one conversation, and neither is a fork.
    assert found == {**expected, TIDES: ("sibling", TIDES, "high")}


def test_names_are_those_that_a_person_gave(store: Path) -> None:
    listed = lines(succeed(store, "lineage", "sessions", "--json").out)
    names = {one["native_id"]: one["label"] for one in listed if one["label_type"] not in ("cwd", "path")}
    mine = {one.name: names[one.name] for one in SAMPLES if one.name in names}
    assert mine == {
        KESTREL: "Flicker hunt",
        WEIGHING: "Hive 4 loses weight",
        BRANCH: "Throw the week away",
        BOUNCES: "Bounces by week",
        QUAYS: "Quays by boat",
    }


def test_subagents_stand_below_what_started_them(store: Path) -> None:
    """A sub-agent's sub-agent below the sub-agent, both below the answer that called."""
    shown = succeed(store, "flow", "show", WEIGHING).out
    places = [line for line in shown.splitlines() if line.lstrip().startswith("started ")]
    assert [line.strip() for line in places] == [
        "started 0-Scales",
        "started 0-Scales/0-Readings",
        "started 1-Weather",
    ]
    first, nested, second = (len(line) - len(line.lstrip()) for line in places)
    assert first == second < nested
    for one, child in ((KESTREL, "019e8767-0440"), (LETTERS, "ses_14e60aa0f"), (DATUM, "db3b73d7-c55f")):
        assert f"started {child}" in succeed(store, "flow", "show", one).out


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


#: What their writers come back with: where it goes, and Python that makes it.
FINISHED = {
    "codex": (
        f".codex/sessions/**/*{KESTREL_FORK}.jsonl",
        "from codex_sessions import *; log = kestrel_fork(kestrel()); log.torn = 0; data = log.data()",
    ),
    "factory": (
        f".factory/sessions/*/{QUAYS}.jsonl",
        "from factory_sessions import *; log = quays(); log.torn = 0; data = log.data()",
    ),
    "oh-my-pi": (
        f".omp/agent/sessions/*/*{BOUNCES}.jsonl",
        "from omp_sessions import *; log = letters(); log.torn = 0; data = log.data()",
    ),
    "opencode": (
        ".local/share/opencode/storage/part/{part}",
        "from opencode_sessions import *; data = [*stale().files().values()][-1]",
    ),
}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_was_being_written_is_imported_when_it_is_there(tmp_path: Path, provider: str) -> None:
    """The rest of a line is one more record; a part that came to its end changes its message's."""
    home, place = copy_home(tmp_path / "home"), tmp_path / "store"
    succeed(place, "import", "--provider", provider, home=home)
    pattern, script = FINISHED[provider]
    code = f"import sys; sys.path.insert(0, {str(HOME.parent)!r}); {script}; sys.stdout.buffer.write(data)"
    data = subprocess.run([sys.executable, "-B", "-c", code], check=True, stdout=subprocess.PIPE).stdout
    if provider == "opencode":
        part = json.loads(data)
        pattern = pattern.format(part=f"{part['messageID']}/{part['id']}.json")
    (path,) = home.glob(pattern)
    assert data.startswith(torn := path.read_bytes()) and len(data) > len(torn)
    path.write_bytes(data)
    result = succeed(place, "import", "--json", "--provider", provider, home=home).json
    (found,) = result["places"]
    assert (result["records"], found["grown"], found["pending"], found["conflicts"]) == (1, 1, 0, 0)
    verify(place)


def test_the_database_is_left_as_it_was(store: Path) -> None:
    """It says that it keeps a log, so that opening it in place would make two files beside it."""
    assert sorted(path.name for path in (HOME / ".local/share/opencode").iterdir()) == [
        "opencode.db",
        "storage",
    ]


def test_the_page_of_the_samples_has_the_same_tokens() -> None:
    page = (HOME.parent / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\w-]+) \| `(\S+)` \| \d+ \| ((?:\d+ \| ){5}\d+) \|$", page, re.MULTILINE)
    stated = {(provider, name): tuple(map(int, figures.split(" | "))) for provider, name, figures in rows}
    assert stated == {
        (one.provider, one.name): (*one.tokens, sum(one.tokens[:4])) for one in SAMPLES if one.own
    }
