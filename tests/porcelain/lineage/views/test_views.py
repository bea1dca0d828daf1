"""The views: what they say, that they are the same for the same fold, and that pictures can be read."""

from __future__ import annotations

import json
import re
import shutil
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porcelain.lineage.views.graph_lanes import lanes_of
from porcelain.lineage.views.graph_model import RELATIONS, Link, Node, place
from porcelain.lineage.views.svg_drawing import SMALL, WIDE, fitting, fitting_path
from porcelain.lineage.views.timeline_model import DAY, Axis, Line
from tests.porcelain.importing.driving import objstore, succeed
from tests.porcelain.lineage import usage_homes as homes
from tests.porcelain.lineage.pi_home import PiHome

LONG = "/home/ines/" + "a-garden-whose-name-goes-on-and-on-" * 6 + "end"
WIDE_NAME = "/home/ines/日本語の庭" * 5
#: Every view, in every form that it has.
VIEWS: list[tuple[str, ...]] = [
    *(("graph", *more, "--format", form) for form in ("text", "json", "markdown", "html", "mermaid", "dot")
      for more in ((), ("--topology",), ("--all",), ("--weak",))),
    *(("timeline", *more, "--format", form) for form in ("text", "json", "markdown", "html", "mermaid")
      for more in ((), ("--sessions",))),
    *(("active", *more, "--format", form) for form in ("text", "json", "markdown", "html")
      for more in ((), ("--sessions",))),
    *((name, "--format", form) for form in ("text", "json", "markdown", "html")
      for name in ("inventory", "evidence")),
]  # fmt: skip


def plant(home: Path, sessions: int) -> None:
    """So many conversations of Pi: every fourth a fork of one of the three before it, some with a long or a wide name,
    and a person's name for every tenth, full of what the forms of output might misread."""
    paths: list[Path] = []
    lines: list[list[dict[str, Any]]] = []
    for number in range(sessions):
        cwd = LONG if number % 7 == 3 else WIDE_NAME if number % 7 == 5 else f"/home/ines/bed-{number % 7}"
        session = f"s{number:04}"
        own = [homes.pi_call(100 * number + n, minute=700 * number + n) for n in range(3)]
        parent, before = None, []
        if number % 4 == 3:
            origin = number - 1 - number % 3
            parent, before = str(paths[origin]), lines[origin]
        header = homes.pi_header(session, cwd=cwd, parent=parent)
        named = {"type": "session_info", "id": f"f{number:07}", "parentId": None, "name": ODD}
        lines.append([*before, *own])
        paths.append(homes.pi_path(home, session, f"--bed-{number % 7}--"))
        homes.write(paths[-1], [header, *lines[-1], *([named] if number % 10 == 4 else [])])


ODD = 'beds "A" & <B> | `c` [d](e) %% #1; ```'


@pytest.fixture(scope="module")
def garden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with forty conversations."""
    folder = tmp_path_factory.mktemp("garden")
    plant(folder / "home", 40)
    succeed(folder / "store", "import", home=folder / "home")
    return folder / "store"


def shown(store: Path, *words: str) -> str:
    return succeed(store, "lineage", *words).out


# -- jumps -----------------------------------------------------------------------------------------------------------


def test_a_jump_is_drawn_from_where_it_began(tmp_path: Path) -> None:
    """Both ends are shown, each a thread of one file, and the arrow between them; never an id of the store's own."""
    home, store = PiHome(tmp_path / "home"), tmp_path / "store"
    for name in ("a", "b"):
        home.write(name, home.entries(name, 3), folder=name)
    succeed(store, "import", home=home.home)
    succeed(store, "lineage", "classify", home.path("a", "a"), home.path("b", "b"), "context-jump")
    text = shown(store, "graph")
    assert "[context jump, manual from /home/ines/a]" in text
    assert "2 threads, 2 files." in text and "observation_" not in text
    assert "context jump, manual from /home/ines/a" in shown(store, "graph", "--html")
    assert "context jump, manual from /home/ines/a" in shown(store, "graph", home.native("b"))
    assert re.search(r"n\d -.*context jump.*n\d", shown(store, "graph", "--format", "mermaid"))
    assert re.search(r"n\d -> n\d .*context jump", shown(store, "graph", "--format", "dot"))
    assert "[context jump, manual from /home/ines/a]" in shown(store, "graph", "--topology")


# -- all views -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", VIEWS, ids=" ".join)
def test_a_view_says_its_fold_and_is_the_same_again(garden: Path, words: tuple[str, ...]) -> None:
    fold = json.loads(shown(garden, "inventory", "--json"))["fold"]
    first = shown(garden, *words)
    assert fold in first
    assert shown(garden, *words) == first


def test_views_do_not_depend_on_who_imported_in_which_order(garden: Path, tmp_path: Path) -> None:
    """Another store, the files in two halves: the same bytes."""
    home = garden.parent / "home"
    aside = tmp_path / "aside"
    for path in sorted((home / ".pi").rglob("*.jsonl"))[::2]:
        (aside / path.relative_to(home)).parent.mkdir(parents=True, exist_ok=True)
        path.rename(aside / path.relative_to(home))
    other = tmp_path / "store"
    try:
        succeed(other, "import", home=home)
    finally:
        for path in aside.rglob("*.jsonl"):
            path.rename(home / path.relative_to(aside))
    succeed(other, "import", home=home)
    for words in (
        ("graph", "--all", "--html"),
        ("timeline", "--sessions", "--html"),
        ("evidence",),
        ("active",),
    ):
        assert shown(other, *words) == shown(garden, *words)


class Page(HTMLParser):
    """What an HTML page loads, runs or leaves open."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.open: list[str] = []
        self.anchors: set[str] = set()
        self.links: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in ("script", "link", "img", "iframe", "object", "embed", "base", "form"):
            self.loads.append(tag)
        self.loads += [
            name for name in values if name in ("src", "srcset", "data", "action") or name[:2] == "on"
        ]
        if "href" in values:
            self.links.add(values["href"] or "")
        if "id" in values:
            self.anchors.add(values["id"] or "")
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag != "meta":
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("words", [words for words in VIEWS if "html" in words], ids=" ".join)
def test_pages_load_and_run_nothing(garden: Path, words: tuple[str, ...]) -> None:
    text = shown(garden, *words)
    page = Page()
    page.feed(text)
    page.close()
    assert page.loads == [] and page.open == []
    assert page.links <= {f"#{anchor}" for anchor in page.anchors}
    assert "default-src 'none'" in text and "prefers-color-scheme: dark" in text
    without_names = text.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"(?:https?:)?//[a-z]|@import|url\(", without_names)


def boxes(svg: ET.Element) -> list[tuple[float, float, float, float, str]]:
    """Left, top, right and bottom of every text of a picture."""
    found = []
    for element in svg.iter("{http://www.w3.org/2000/svg}text"):
        small = "s" in element.get("class", "").split()
        said = "".join(element.itertext()).removeprefix(element.findtext("{*}title") or "")
        width = sum(2 if ord(c) > 0x2E80 else 1 for c in said) * (SMALL if small else WIDE)
        x, y = float(element.get("x", "")), float(element.get("y", ""))
        found.append((x, y - (9 if small else 10), x + width, y + 2, said))
    return found


@pytest.mark.parametrize(
    "words",
    [("graph", "--all", "--html"), ("timeline", "--html"), ("timeline", "--sessions", "--html")],
    ids=" ".join,
)
def test_no_two_texts_of_a_picture_overlap(garden: Path, words: tuple[str, ...]) -> None:
    pictures = re.findall(r"<svg .*?</svg>", shown(garden, *words), re.DOTALL)
    assert pictures
    texts = 0
    for picture in pictures:
        svg = ET.fromstring(picture)
        placed = sorted(boxes(svg), key=lambda box: box[1])
        texts += len(placed)
        for number, (left, top, right, bottom, said) in enumerate(placed):
            assert left >= 0 and right <= float(svg.get("width", "")) + 1, said
            assert top >= 0 and bottom <= float(svg.get("height", "")), said
            for other in placed[number + 1 :]:
                if other[1] >= bottom:
                    break
                assert other[0] >= right or other[2] <= left, (said, other[4])
    assert texts > 7


def test_a_view_goes_to_a_file_and_over_no_other(garden: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    succeed(garden, "lineage", "graph", "-o", page)
    first = page.read_text()
    assert first.startswith("<!doctype html>")
    succeed(garden, "lineage", "timeline", "-o", page)
    assert page.read_text() != first
    other = tmp_path / "notes.md"
    other.write_text("my own words\n")
    refused = objstore(garden, "lineage", "inventory", "-o", other)
    assert refused.code == 5 and "was not written by this command" in refused.err
    assert other.read_text() == "my own words\n"
    succeed(garden, "lineage", "inventory", "-o", other, "--force")
    assert other.read_text().startswith("<!--")


def test_wrong_words(garden: Path, tmp_path: Path) -> None:
    unknown = objstore(garden, "lineage", "graph", "--labels", "display_name,colour")
    assert (unknown.code, "colour: no such type of label" in unknown.err) == (2, True)
    form = objstore(garden, "lineage", "inventory", "-o", tmp_path / "a.dot")
    assert (form.code, "this view has no such form" in form.err) == (2, True)


def test_labels_in_another_order(garden: Path) -> None:
    by_name = shown(garden, "graph", "--all")
    assert ODD in by_name
    by_path = shown(garden, "graph", "--all", "--labels", "path")
    assert ODD not in by_path and "2026-03-01T10-00-00-000Z_s0004.jsonl" in by_path
    assert "s0004" in shown(garden, "graph", "--all", "--labels", "native_id").replace("pi, s0004", "")


def test_an_empty_store_has_empty_views(tmp_path: Path) -> None:
    succeed(tmp_path / "store", "init")
    for words in VIEWS:
        text = shown(tmp_path / "store", *words)
        assert "fold" in text.casefold()


# -- the graph -------------------------------------------------------------------------------------------------------


def test_a_thread_as_lines(tmp_path: Path) -> None:
    """A tree: the branches of a file are indented, and what is known of each stands beside it."""
    home, store = tmp_path / "home", tmp_path / "store"
    calls = [homes.pi_call(n) for n in range(3)]
    origin = homes.write(homes.pi_path(home, "root"), [homes.pi_header("root"), *calls])
    for number, (name, parent) in enumerate((("first", origin), ("second", origin))):
        header = homes.pi_header(name, parent=str(parent))
        own = [homes.pi_call(50 + 10 * number, minute=500 + number)]
        homes.write(homes.pi_path(home, name), [header, *calls, *own])
    last = homes.pi_header("third", parent=str(homes.pi_path(home, "first")))
    homes.write(
        homes.pi_path(home, "third"), [last, *calls, homes.pi_call(50, minute=500), homes.pi_call(90)]
    )
    succeed(store, "import", home=home)
    lines = shown(store, "graph", "--labels", "native_id").splitlines()
    assert lines[2] == "1 thread, 4 files."
    tree = [line.split("  (")[0] for line in lines[-4:]]
    assert tree in (
        ["● root", "├─● first", "│ └─● third", "└─● second"],
        ["● root", "├─● second", "└─● first", "  └─● third"],
    )
    assert "[fork, authoritative]" in lines[-1] and "can be resumed" in lines[-1]
    document = json.loads(shown(store, "graph", "--json"))
    nodes = {node["nativeId"]: node for node in document["threads"][0]["nodes"]}
    assert {name: node["depth"] for name, node in nodes.items()} == {
        "root": 0,
        "first": 1,
        "second": 1,
        "third": 2,
    }
    assert nodes["third"]["parent"] == nodes["first"]["id"]
    assert {link["relation"] for link in document["links"]} == {"fork"}
    near = json.loads(shown(store, "graph", "--json", "--hops", "1", "third"))
    assert [node["nativeId"] for node in near["threads"][0]["nodes"]] == ["first", "third"]


def test_what_goes_on_stands_straight_below(tmp_path: Path) -> None:
    """A moved file, whose origin is superseded and whose copy is to be resumed."""
    home, store = tmp_path / "home", tmp_path / "store"
    calls = [homes.pi_call(n) for n in range(25)]
    origin = homes.write(homes.pi_path(home, "moved"), [homes.pi_header("moved"), *calls])
    target = origin.parent.parent / "--home-ines-shed--" / f"{origin.stem}_relocated_0a1b2c3d4e5f.jsonl"
    homes.write(target, [homes.pi_header("moved", cwd="/home/ines/shed"), *calls])
    record = {
        "ts": "2026-03-01T10:40:00.000Z", "fromCwd": "/home/ines/garden", "toCwd": "/home/ines/shed",
        "sourceSession": str(origin), "destinationSession": str(target), "parent": str(origin),
        "replacements": 1, "mode": "move", "tool": "pi-session-move",
    }  # fmt: skip
    homes.write(home / ".pi" / "agent" / "relocations.jsonl", [record])
    succeed(store, "import", home=home)
    succeed(store, "lineage", "import-sidecars", home=home)
    first, second = shown(store, "graph").splitlines()[-2:]
    assert first.startswith("● /home/ines/garden") and "superseded" in first
    assert second.startswith("◆ /home/ines/shed") and second.endswith(
        "[continuation, authoritative]  resume here"
    )
    (node,) = json.loads(shown(store, "graph", "--topology", "--all", "--json"))["threads"][0]["nodes"]
    assert (node["files"], node["resume"], node["marks"]) == (2, True, ["deletion_candidate", "superseded"])
    shutil.rmtree(home)


NODES = tuple("abcdefg")
LINKS = st.lists(
    st.builds(
        lambda ends, relation: Link(
            source=ends[0], target=ends[1], relation=relation, confidence="high", rule="r"
        ),
        st.tuples(st.sampled_from(NODES), st.sampled_from((*NODES, "elsewhere"))).filter(
            lambda ends: ends[0] != ends[1]
        ),
        st.sampled_from(RELATIONS),
    ),
    max_size=14,
    unique_by=repr,
)


@given(LINKS)
def test_any_links_make_a_tree(links: list[Link]) -> None:
    """Even in circles: each node once, below one that stands before it, one step to the right or straight below."""
    nodes = [
        Node(
            id=name,
            session=name,
            label=name,
            provider="pi",
            native_id=name,
            path="",
            records=1,
            first=None,
            last=None,
        )
        for name in NODES
    ]
    placed = place(nodes, links)
    assert sorted(one.node.id for one in placed) == sorted(NODES)
    rows = {one.node.id: row for row, one in enumerate(placed)}
    for row, (one, lanes) in enumerate(zip(placed, lanes_of(placed), strict=True)):
        into = [link for link in links if link.target == one.node.id]
        assert sorted(map(repr, into)) == sorted(map(repr, (*one.also, *([one.below] if one.below else []))))
        if one.below is None:
            assert (one.depth, lanes.parent) == (0, None)
            continue
        parent = rows[one.below.source]
        assert lanes.parent == parent < row
        straight = one.depth == placed[parent].depth
        assert straight or one.depth == placed[parent].depth + 1
        assert not straight or one.below.relation == "continuation"
        # The line from the parent runs through every row between.
        lane = placed[parent].depth
        assert all(lane in between.through for between in lanes_of(placed)[parent:row])


def test_a_curated_name_comes_first(tmp_path: Path) -> None:
    home, store = tmp_path / "home", tmp_path / "store"
    named = {"type": "session_info", "id": "f0000001", "parentId": None, "name": "weeding"}
    homes.write(homes.pi_path(home, "one"), [homes.pi_header("one"), homes.pi_call(1), named])
    succeed(store, "import", home=home)
    assert "◆ weeding" in shown(store, "graph", "--all")
    succeed(store, "lineage", "label", "--type", "lineage", "one", "The Great Weeding")
    assert "◆ The Great Weeding" in shown(store, "graph", "--all")
    assert "◆ weeding" in shown(store, "graph", "--all", "--labels", "display_name,lineage")
    assert "◆ /home/ines/garden" in shown(store, "graph", "--all", "--labels", "cwd")


def test_dot_and_mermaid_quote_what_they_would_read(garden: Path) -> None:
    dot = shown(garden, "graph", "--all", "--format", "dot")
    assert dot.count("{") == dot.count("}") and '\\"A\\"' in dot
    mermaid = shown(garden, "graph", "--all", "--format", "mermaid")
    labels = re.findall(r'\["(.*)"\]$', mermaid, re.MULTILINE)
    assert labels and all('"' not in label for label in labels)
    assert "#34;A#34;" in mermaid
    names = set(re.findall(r"^    (n\d+)\[", mermaid, re.MULTILINE))
    ends = re.findall(r'^  (n\d+) (?:-->|==>|-\.->|-\.-)\|".*"\| (n\d+)$', mermaid, re.MULTILINE)
    assert ends and {end for pair in ends for end in pair} <= names
    charted = shown(garden, "timeline", "--sessions", "--format", "mermaid").splitlines()
    bars = [line for line in charted if re.search(r" :s\d+, ", line)]
    assert len(bars) == 40 and all(line.count(":s") == 1 and line.count(",") == 2 for line in bars)


def test_markdown_shows_names_as_they_are(garden: Path) -> None:
    text = shown(garden, "evidence", "--format", "markdown")
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    unescaped = {len(re.findall(r"(?<!\\)\|", line)) for line in rows if "`c" in line}
    assert unescaped == {9}


# -- pieces ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [0, 5, 8, 40, 400])
def test_text_fits(width: int) -> None:
    for said in ("", "abc", LONG, WIDE_NAME, "a\tb\x1b[31m"):
        for cut in (fitting(said, width, 8), fitting_path(said, width, 8)):
            assert sum(2 if ord(c) > 0x2E80 else 1 for c in cut) * 8 <= max(width, 0)
    assert fitting("abcdef", 40, 8) == "abcd…" and fitting_path("abcdef", 40, 8) == "…cdef"


def test_the_hours_of_a_day_are_marked_and_no_more_than_the_days_of_a_month(tmp_path: Path) -> None:
    """A picture of one afternoon has a scale; every date stands before its hours."""

    def marks(*times: str) -> list[str]:
        home = PiHome(tmp_path / f"home{len(times)}")
        entries = home.entries("a", len(times))
        for entry, time in zip(entries, times, strict=True):
            entry["timestamp"] = time
        home.write("a", entries, timestamp=times[0])
        store = tmp_path / f"store{len(times)}"
        succeed(store, "import", home=home.home)
        found = re.findall(r'<text [^>]*class="s"[^>]*>([0-9:-]+)</text>', shown(store, "timeline", "--html"))
        return found[::2]  # each above and below

    short = marks("2026-03-01T13:36:00.000Z", "2026-03-01T14:00:00.000Z", "2026-03-01T16:10:00.000Z")
    assert short[:3] == ["2026-03-01", "14:00", "14:15"]
    night = marks(*(f"2026-03-0{1 + n // 4}T{6 * (n % 4):02}:20:00.000Z" for n in range(6)))
    assert "2026-03-02" in night and "12:00" in night
    assert not any(":" in said for said in marks("2026-03-01T13:36:00.000Z", "2026-03-07T14:00:00.000Z"))


def test_an_axis_runs_forward_and_draws_quiet_times_short() -> None:
    times = [(0, DAY), (3 * DAY, 4 * DAY), (400 * DAY, 401 * DAY)]
    line = Line(id="l", label="l", project="p", provider="pi", first=0, last=401 * DAY, blocks=times)
    axis = Axis([line], 700)
    assert axis.gaps == [(4 * DAY, 400 * DAY)]
    places = [axis.x(time * DAY) for time in (0, 1, 3, 4, 100, 399, 400, 401)]
    assert places == sorted(places) and len(set(places)) == len(places)
    assert round(axis.x(4 * DAY) - axis.x(3 * DAY)) == round(axis.x(400 * DAY) - axis.x(4 * DAY))
    assert (places[0], round(places[-1])) == (0, 700)
