"""The pieces of an SVG picture: text that fits its place, bars, lines. Colours are the page's, so that dark and light
both work; lengths are pixels. All text is set in a monospaced face, whose width is known without measuring it.
"""

from __future__ import annotations

from html import escape

from plumbing.interface.output import display_width, printable

#: Width of a character, and height of a line, at 13 and at 11 pixels.
WIDE = 7.9
SMALL = 6.7


def clean(text: str) -> str:
    """``text`` as XML shows it: escaped, what is not for printing spelled out."""
    return escape(printable(text), quote=True)


def fitting(text: str, width: float, character: float) -> str:
    """``text``, or as much of its beginning as fits ``width`` pixels with the mark of a cut."""
    text = printable(text)
    room = int(width / character)
    if display_width(text) <= room:
        return text
    end = min(len(text), max(room, 0))
    while end and display_width(text[:end]) >= room:
        end -= 1
    return text[:end] + "…" if room > 0 else ""


def fitting_path(path: str, width: float, character: float) -> str:
    """The end of ``path`` that fits, which says more than its beginning, with the mark of a cut."""
    path = printable(path)
    room = int(width / character)
    if display_width(path) <= room:
        return path
    start = len(path) - max(room, 0)
    while start < len(path) and display_width(path[start:]) >= room:
        start += 1
    return "…" + path[start:] if room > 0 else ""


def text(
    x: float,
    y: float,
    said: str,
    width: float,
    *,
    small: bool = False,
    tone: str = "",
    title: str = "",
    path: bool = False,
) -> str:
    """One line of text whose base line is at ``y``, in no more than ``width`` pixels. ``tone`` is a class of the page,
    ``title`` what is shown over it; a text that had to be cut shows all of itself there."""
    character = SMALL if small else WIDE
    shown = (fitting_path if path else fitting)(said, width, character)
    over = title or (said if shown != printable(said) else "")
    classes = " ".join(name for name in ("s" if small else "", tone) if name)
    return (
        f'<text x="{number(x)}" y="{number(y)}"'
        + (f' class="{classes}"' if classes else "")
        + ">"
        + (f"<title>{clean(over)}</title>" if over else "")
        + f"{clean(shown)}</text>"
    )


def width_of(said: str, *, small: bool = False) -> float:
    """The pixels that ``said`` takes."""
    return display_width(printable(said)) * (SMALL if small else WIDE)


def chip(x: float, y: float, said: str, tone: str, title: str = "") -> tuple[str, float]:
    """A word in a box whose text has its base line at ``y``; the element and its width."""
    width = width_of(said, small=True) + 10
    return (
        f'<g class="chip {tone}">'
        + (f"<title>{clean(title)}</title>" if title else "")
        + f'<rect x="{number(x)}" y="{number(y - 11)}" width="{number(width)}" height="15" rx="7"/>'
        f'<text class="s" x="{number(x + 5)}" y="{number(y)}">{clean(said)}</text></g>',
        width,
    )


def line(points: str, tone: str) -> str:
    """A path of strokes."""
    return f'<path d="{points}" class="{tone}"/>'


def dot(x: float, y: float, radius: float, tone: str, title: str = "") -> str:
    """A filled circle."""
    inner = f"<title>{clean(title)}</title>" if title else ""
    return f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(radius)}" class="{tone}">{inner}</circle>'


def bar(x: float, y: float, width: float, height: float, tone: str, title: str = "") -> str:
    """A filled box."""
    inner = f"<title>{clean(title)}</title>" if title else ""
    return (
        f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}" rx="2" '
        f'class="{tone}">{inner}</rect>'
    )


def picture(width: float, height: float, parts: list[str], title: str) -> str:
    """The whole picture, in its own size; a wider one scrolls."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{number(width)}" height="{number(height)}" '
        f'viewBox="0 0 {number(width)} {number(height)}" role="img"><title>{clean(title)}</title>\n'
        + "\n".join(parts)
        + "\n</svg>"
    )


def number(value: float) -> str:
    """A length with one digit behind the point at most, the same on every machine."""
    shown = f"{value:.1f}"
    return shown.removesuffix(".0")
