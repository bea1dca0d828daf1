"""From a file to its text: plain text, Markdown, HTML, and PDF through pypdf where that is installed.

Text and Markdown stay as they are written. HTML and PDF give the words that a reader would see, with an empty line
between paragraphs. Nothing is fetched and no script runs. What cannot be read raises ``ExtractionFailed``.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import PurePath

from msgspec import Struct

from objstore.errors import ObjstoreError
from porcelain.session.documents.wording import normalize

#: Largest file that is read.
MAX_FILE = 128 * 1024 * 1024
#: Longest text that is kept of one file, in characters.
MAX_TEXT = 128 * 1024 * 1024
MAX_TITLE = 200


class ExtractionFailed(ObjstoreError):
    """A file has no text that can be read; ``reason`` says why, without any of its content."""

    exit_code = 5

    def __init__(self, reason: str, *, hint: str | None = None) -> None:
        super().__init__(reason, hint=hint)
        self.reason = reason


class Extracted(Struct, frozen=True):
    """The text of a file, the title that the file itself states (or None), and what read it."""

    text: str
    title: str | None
    media_type: str
    extractor: str


_MARKDOWN = frozenset({".md", ".markdown", ".mdown"})
_HTML = frozenset({".html", ".htm", ".xhtml"})
_PDF = frozenset({".pdf"})
_TEXT = frozenset({".txt", ".text", ".rst", ".org", ".adoc", ".tex"})
#: Suffixes by which a file in a folder is taken for a document.
DOCUMENT_SUFFIXES = _MARKDOWN | _HTML | _PDF | _TEXT


def extract(name: str, data: bytes) -> Extracted:
    """The text of a file called ``name`` whose bytes are ``data``. Raises ``ExtractionFailed``."""
    if data.startswith(b"%PDF-"):
        found = _pdf(data)
    else:
        suffix = PurePath(name).suffix.lower()
        if suffix in _PDF:
            raise ExtractionFailed("is called a PDF and does not begin like one")
        found = _BY_SUFFIX.get(suffix, _plain)(data)
    if not found.text.strip():
        raise ExtractionFailed("has no text")
    if len(found.text) > MAX_TEXT:
        raise ExtractionFailed(f"has more than {MAX_TEXT} characters of text")
    return found


def clean_title(text: str) -> str | None:
    """A title as one line of at most ``MAX_TITLE`` printable characters, or None when nothing is left."""
    line = normalize("".join(c if c.isprintable() else " " for c in text))
    return line if len(line) <= MAX_TITLE else line[: MAX_TITLE - 1].rstrip() + "…"


# -- bytes to characters ----------------------------------------------------------------------------------------------

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def decode(data: bytes, declared: str | None = None) -> str:
    """The characters of a text file: by its byte order mark, else as UTF-8, else in the encoding it declares, else as
    Windows-1252. Raises ``ExtractionFailed`` for what is no text."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    if b"\0" in data[:8192]:
        raise ExtractionFailed("is not a text")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode(_known(declared), "replace")


def _known(declared: str | None) -> str:
    try:
        info = codecs.lookup(declared or "")
    except (LookupError, ValueError):
        return "cp1252"
    return info.name if info._is_text_encoding else "cp1252"


def without_surrogates(text: str) -> str:
    """``text`` with every half of a surrogate pair replaced by U+FFFD: objects hold Unicode text only."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


# -- the formats ------------------------------------------------------------------------------------------------------


def _plain(data: bytes) -> Extracted:
    return Extracted(decode(data), None, "text/plain", "text-1")


_HEADING = re.compile(r"^#[ \t]+(.+?)[ \t]*#*[ \t]*$|^(?=\S)(.+)\n=+[ \t]*$", re.MULTILINE)
_FRONT_MATTER = re.compile(
    r"\A---[ \t]*\n(?:.*\n){0,100}?title:[ \t]*(.+)\n(?:.*\n){0,100}?---[ \t]*$", re.MULTILINE
)


def _markdown(data: bytes) -> Extracted:
    text = decode(data)
    top = text[:65536].replace("\r\n", "\n")
    stated = _FRONT_MATTER.search(top)
    heading = _HEADING.search(top)
    title = None
    if stated:
        title = stated[1].strip("\"' ")
    elif heading:
        title = heading[1] or heading[2]
    return Extracted(text, title, "text/markdown", "markdown-1")


_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset=["']?([A-Za-z0-9_:.-]{1,40})""", re.IGNORECASE)
_SILENT = frozenset({"script", "style", "noscript", "template", "svg", "math", "iframe", "object", "select"})
_BLOCKS = frozenset(
    """address article aside blockquote body dd details dialog div dl dt fieldset figcaption figure footer form h1 h2 h3
    h4 h5 h6 header hr html legend li main nav ol option p pre section summary table tbody tfoot thead title tr
    ul""".split()  # noqa: SIM905
)


class _Page(HTMLParser):
    """Gathers what a reader would see."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self.title: list[str] = []
        self._silent: str | None = None
        self._depth = 0
        self._in_title = False
        self._preformatted = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._silent is not None:
            self._depth += tag == self._silent
        elif tag in _SILENT:
            self._silent, self._depth = tag, 1
        elif tag == "title":
            self._in_title = not self.title
        elif tag in _BLOCKS:
            self._preformatted += tag == "pre"
            self.pieces.append("\n\n")
        elif tag == "br":
            self.pieces.append("\n")
        elif tag in ("td", "th"):
            self.pieces.append("\t")

    def handle_endtag(self, tag: str) -> None:
        if self._silent is not None:
            self._depth -= tag == self._silent
            if not self._depth:
                self._silent = None
        elif tag == "title":
            self._in_title = False
        elif tag in _BLOCKS:
            self._preformatted = max(0, self._preformatted - (tag == "pre"))
            self.pieces.append("\n\n")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _SILENT:
            self.handle_starttag(tag, attrs)

    def parse_html_declaration(self, i: int) -> int:
        # Python 3.11 asserts that a declaration is well formed; later versions take it for a comment, as browsers do.
        try:
            return super().parse_html_declaration(i)
        except AssertionError:
            return self.parse_bogus_comment(i)

    def handle_data(self, data: str) -> None:
        if self._silent is not None:
            return
        if self._in_title:
            self.title.append(data)
        else:
            self.pieces.append(data if self._preformatted else _SPACES.sub(" ", data))


_SPACES = re.compile(r"\s+")
_LINE_ENDS = re.compile(r"[ \t]*\n[ \t]*")
_EMPTY_LINES = re.compile(r"\n{3,}")


def _html(data: bytes) -> Extracted:
    declared = _CHARSET.search(data[:4096])
    page = _Page()
    page.feed(decode(data, declared[1].decode("ascii") if declared else None))
    page.close()
    text = _EMPTY_LINES.sub("\n\n", _LINE_ENDS.sub("\n", "".join(page.pieces))).strip()
    return Extracted(text + "\n" if text else "", "".join(page.title), "text/html", "html-1")


def _pdf(data: bytes) -> Extracted:
    try:
        import pypdf
    except ImportError:
        raise ExtractionFailed(
            "is a PDF, and the package that reads PDF is not installed",
            hint='pip install "objstore-cli[pdf]"',
        ) from None
    import logging

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise ExtractionFailed("is a PDF that is locked with a password")
        pages = [page.extract_text() for page in reader.pages]
        title = reader.metadata.title if reader.metadata is not None else None
    except ExtractionFailed:
        raise
    except Exception as error:  # a damaged file can make the parser raise anything
        raise ExtractionFailed(f"is a PDF that cannot be read ({type(error).__name__})") from None
    text = "\n\n".join(page.strip() for page in pages if page.strip())
    return Extracted(
        without_surrogates(text), str(title) if title else None, "application/pdf", "pdf-pypdf-1"
    )


_BY_SUFFIX: dict[str, Callable[[bytes], Extracted]] = {
    **dict.fromkeys(_MARKDOWN, _markdown),
    **dict.fromkeys(_HTML, _html),
}
