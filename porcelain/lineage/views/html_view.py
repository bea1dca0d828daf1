"""A view as one HTML file: nothing is loaded, nothing runs, so that it opens from a disk without network."""

from __future__ import annotations

from collections.abc import Iterator

from porcelain.lineage.views.svg_drawing import clean
from porcelain.lineage.views.view_document import MARK, Document, Grid, Section

#: Neither scripts nor anything from elsewhere, whatever the page says.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

_STYLE = """
:root { color-scheme: light dark; --ground: #ffffff; --panel: #f6f7f9; --ink: #1b1f24; --faint: #5c6570;
  --rule: #d5dae0; --go: #1565a8; --fork: #7a3fb0; --jump: #b0480f; --near: #6b7480; --good: #1c7a3f; --warn: #a15c00;
  --bad: #b3261e; --bar: #4a8fc7; --bar-edge: #2a6a9e; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #14171b; --panel: #1d2127; --ink: #e6e9ed; --faint: #9aa4b0; --rule: #343b44; --go: #6fb3ec;
    --fork: #c295f0; --jump: #f09a62; --near: #929ca8; --good: #6fcf8f; --warn: #e5b25a; --bad: #f28b82;
    --bar: #3d7fb5; --bar-edge: #8cc3ee; }
}
body { margin: 0; padding: 24px clamp(12px, 3vw, 40px); background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .2rem; } h2 { font-size: 1rem; margin: 1.4rem 0 .2rem; overflow-wrap: anywhere; }
section p { color: var(--faint); font-size: .86rem; }
p { margin: .3rem 0; max-width: 75em; overflow-wrap: anywhere; }
.fold, .s { color: var(--faint); } .fold { font-family: monospace; font-size: 12px; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; border: 1px solid var(--rule); border-radius: 6px; background: var(--panel); padding: 8px; }
pre { margin: 0; font: 13px/1.45 monospace; }
table { border-collapse: collapse; font-size: 13px; }
th, td { text-align: left; padding: 3px 12px 3px 0; border-bottom: 1px solid var(--rule); vertical-align: top;
  white-space: nowrap; }
th { color: var(--faint); font-weight: 600; } td.r, th.r { text-align: right; font-variant-numeric: tabular-nums; }
td.w { white-space: normal; min-width: 16em; max-width: 46em; overflow-wrap: anywhere; } a { color: var(--go); }
svg { display: block; font: 13px monospace; } svg text { fill: var(--ink); } svg text.s { font-size: 11px; }
svg text.s, svg text.faint { fill: var(--faint); } svg path { fill: none; stroke-width: 1.6; }
svg .rule { stroke: var(--rule); stroke-width: 1; } svg .gap { stroke: var(--faint); stroke-dasharray: 2 3;
  stroke-width: 1; }
svg path.continuation { stroke: var(--go); } svg path.fork { stroke: var(--fork); }
svg path.context_jump { stroke: var(--jump); stroke-dasharray: 6 3; }
svg path.sibling, svg path.unknown, svg path.unrelated { stroke: var(--near); stroke-dasharray: 2 4; }
svg path.thin { stroke-width: 1; opacity: .55; }
svg circle { fill: var(--ground); stroke: var(--ink); stroke-width: 1.6; } svg circle.here { fill: var(--ink); }
svg circle.resume { fill: var(--good); stroke: var(--good); } svg circle.absent { stroke-dasharray: 2 2; }
svg rect.bar { fill: var(--bar); stroke: var(--bar-edge); stroke-width: .6; fill-opacity: .75; }
svg rect.copy { fill: var(--near); fill-opacity: .35; } svg rect.life { fill: var(--rule); } 
svg rect.stripe { fill: var(--rule); fill-opacity: .28; }
svg .chip rect { fill: var(--ground); stroke: var(--near); } svg .chip text { fill: var(--near); }
svg .continuation rect { stroke: var(--go); } svg .continuation text { fill: var(--go); }
svg .fork rect { stroke: var(--fork); } svg .fork text { fill: var(--fork); }
svg .context_jump rect { stroke: var(--jump); } svg .context_jump text { fill: var(--jump); }
svg .good rect { stroke: var(--good); } svg .good text { fill: var(--good); }
svg .warn rect { stroke: var(--warn); } svg .warn text { fill: var(--warn); }
svg .bad rect { stroke: var(--bad); } svg .bad text { fill: var(--bad); }
@media print { .scroll { overflow: visible; border: 0; } }
"""


def html_lines(document: Document) -> Iterator[str]:
    """The lines of the page."""
    yield "<!doctype html>"
    yield f"<!-- {MARK}: {document.kind} -->"
    yield '<html lang="en"><head><meta charset="utf-8"/>'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"/>'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
    yield f"<title>{clean(document.title)}</title><style>{_STYLE}</style></head><body>"
    yield f"<h1>{clean(document.title)}</h1>"
    yield f'<p class="fold">fold {document.fold}</p>'
    for said in document.says:
        yield f"<p>{clean(said)}</p>"
    for section in document.sections:
        yield from _section(section)
    yield "</body></html>"


def _section(section: Section) -> Iterator[str]:
    yield f'<section id="{clean(section.anchor)}">' if section.anchor else "<section>"
    if section.heading:
        yield f"<h2>{clean(section.heading)}</h2>"
    for said in section.says:
        yield f"<p>{clean(said)}</p>"
    if section.figure:
        yield f'<div class="scroll">{section.figure}</div>'
    elif section.lines:
        yield '<div class="scroll"><pre>' + "\n".join(map(clean, section.lines)) + "</pre></div>"
    if section.grid is not None and section.grid.rows:
        yield from _grid(section.grid)
    yield "</section>"


def _grid(grid: Grid) -> Iterator[str]:
    kinds = [
        ' class="r"'
        if column in grid.right
        else ' class="w"'
        if any(len(row[column]) > 48 for row in grid.rows)
        else ""
        for column in range(len(grid.header))
    ]
    yield '<div class="scroll"><table><thead><tr>'
    yield "".join(f"<th{kind}>{clean(cell)}</th>" for kind, cell in zip(kinds, grid.header, strict=True))
    yield "</tr></thead><tbody>"
    for number, row in enumerate(grid.rows):
        shown = [clean(cell) for cell in row]
        if grid.links and grid.links[number]:
            shown[0] = f'<a href="#{clean(grid.links[number])}">{shown[0]}</a>'
        cells = (f"<td{kind}>{cell}</td>" for kind, cell in zip(kinds, shown, strict=True))
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"
