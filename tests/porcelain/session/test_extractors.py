"""Files to text: the formats, titles, encodings, and what is refused."""

from __future__ import annotations

import builtins
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porcelain.session.documents.extractors import (
    MAX_TITLE,
    ExtractionFailed,
    clean_title,
    decode,
    extract,
    without_surrogates,
)

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
DOCUMENTS = FIXTURES / "documents"


def read(name: str) -> Any:
    return extract(name, (DOCUMENTS / name).read_bytes())


def test_text_stays_as_written() -> None:
    found = read("ferry-timetable.txt")
    assert found.text.encode() == (DOCUMENTS / "ferry-timetable.txt").read_bytes()
    assert (found.title, found.media_type) == (None, "text/plain")


def test_markdown_stays_as_written_and_gives_its_heading_as_title() -> None:
    found = read("skarv-lighthouse.md")
    assert found.text.encode() == (DOCUMENTS / "skarv-lighthouse.md").read_bytes()
    assert found.title == "The Lighthouse at Skarv Point"
    assert read("tide-tables.md").title == "Tide tables of Holm Island"
    assert extract("x.md", b"text\n\nA title\n=======\n").title == "A title"


def test_html_gives_what_a_reader_sees() -> None:
    found = read("tide-mill.html")
    assert found.title == "The Tide Mill of Lund Bay | a short history"
    assert "by the moon & not by the clock." in found.text
    assert "1913.\n\nIt was restored" in found.text
    for hidden in ("never read", "color", "<", "doctype"):
        assert hidden not in found.text


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (b"<p>one<p>two", "one\n\ntwo\n"),
        (b"a<script>b<script>c</script>d", "ad\n"),
        (b"<svg><svg>x</svg>y</svg>z", "z\n"),
        (b"<pre>a\n  b</pre>", "a\nb\n"),
        (b"a<br>b<br/>c", "a\nb\nc\n"),
        (b"</p></div>x</b>", "x\n"),
        (b"&#xD800;x&amp;", "\ufffdx&\n"),
        (b'<meta charset="windows-1252">caf\xe9', "caf\u00e9\n"),
    ],
)
def test_html_that_is_odd(page: bytes, text: str) -> None:
    assert extract("x.html", page).text == text


def test_deep_html_is_no_trouble() -> None:
    assert extract("x.html", b"<div>" * 50_000 + b"x").text == "x\n"


def test_pdf() -> None:
    pytest.importorskip("pypdf")
    found = read("harbour-rules.pdf")
    assert found.title == "Rules of Holm Harbour"
    assert "Boats may not go faster than 4 knots" in found.text
    assert "steel boom" in found.text


def test_pdf_fixture_is_what_its_script_writes(tmp_path: Path) -> None:
    code = "import sys; sys.path.insert(0, sys.argv[1]); import document_pdf as d; sys.stdout.buffer.write(d.pdf())"
    done = subprocess.run(
        [sys.executable, "-B", "-c", code, str(FIXTURES)], check=True, capture_output=True, cwd=tmp_path
    )
    assert done.stdout == (DOCUMENTS / "harbour-rules.pdf").read_bytes()


@pytest.mark.parametrize("cut", [9, 40, 300, 700])
def test_damaged_pdf_is_one_clear_line(cut: int) -> None:
    pytest.importorskip("pypdf")
    data = (DOCUMENTS / "harbour-rules.pdf").read_bytes()
    with pytest.raises(ExtractionFailed) as caught:
        extract("x.pdf", data[:cut])
    assert "\n" not in caught.value.message


def test_pdf_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name == "pypdf":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ExtractionFailed) as caught:
        read("harbour-rules.pdf")
    assert caught.value.hint == 'pip install "objstore-cli[pdf]"'


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xef\xbb\xbfplain", "plain"),
        ("\ufeffwide".encode("utf-16-le"), "wide"),
        ("\ufeffwide".encode("utf-16-be"), "wide"),
        (b"caf\xe9 \x93x\x94", "caf\u00e9 \u201cx\u201d"),
        ("snow \u2603".encode(), "snow \u2603"),
    ],
)
def test_encodings(data: bytes, text: str) -> None:
    assert decode(data) == text


def test_an_unknown_or_absurd_declared_encoding_is_no_trouble() -> None:
    for declared in ("no-such", "base64", "hex", ""):
        assert decode(b"caf\xe9", declared) == "caf\u00e9"


@pytest.mark.parametrize(
    ("name", "data"), [("x.txt", b"a\0b"), ("x.txt", b""), ("x.html", b"<p> </p>"), ("x.pdf", b"no pdf")]
)
def test_what_has_no_text_is_refused(name: str, data: bytes) -> None:
    with pytest.raises(ExtractionFailed):
        extract(name, data)


@given(st.binary(max_size=400), st.sampled_from(["x.txt", "x.md", "x.html", "x"]))
def test_any_bytes_give_text_or_a_refusal(data: bytes, name: str) -> None:
    try:
        found = extract(name, data)
    except ExtractionFailed:
        return
    found.text.encode()
    assert found.text.strip()


@given(st.text())
def test_titles_are_one_short_line(text: str) -> None:
    title = clean_title(text)
    assert len(title or "") <= MAX_TITLE
    assert (title or "").isprintable()


def test_surrogates_are_replaced() -> None:
    assert without_surrogates("a\ud800b") == "a\ufffdb"
    assert without_surrogates("\ud83d\ude00") == "\U0001f600"


def test_a_malformed_declaration_is_a_comment(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(b"<p>before</p><![\x01 x><p>after</p>")
    assert [
        word for word in extract(path.name, path.read_bytes()).text.split() if word in ("before", "after")
    ] == [
        "before",
        "after",
    ]
