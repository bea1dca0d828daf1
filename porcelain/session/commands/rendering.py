"""Trees, nodes and answers as lines of text, and as the JSON documents that scripts get."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from objstore.snapshot import Snapshot
from objstore.store import load
from plumbing.interface.output import counted, cut, display_width, printable
from porcelain.session.answering.answers import answer_state, out_of_service
from porcelain.session.answering.asking import Asked
from porcelain.session.answering.kinds import Answer
from porcelain.session.commands.style import Style
from porcelain.session.tree.change import Added, Session
from porcelain.session.tree.identity import bates_of
from porcelain.session.tree.listing import TreeRow, branch_points, show_node, tree_rows

#: Branches beyond this many, or beyond a quarter of the terminal, are no longer set further to the right.
_DEEPEST = 40
_LEAST_LABEL = 6
_LEAST_QUESTION = 4
#: Columns that a label leaves to the question behind it.
_SHARE = 12
_POINTER = re.compile(r"\[E\d{1,4}(?: \?| \|(?:\\.|[^\\\]])*)\]")
_HERE = "◉"
_NODE = "●"


def text_lines(text: str) -> list[str]:
    """``text`` as lines that a terminal shows as they are."""
    return [printable(line) for line in text.splitlines()]


# -- trees ------------------------------------------------------------------------------------------------------------


def header_lines(session: Session, style: Style) -> list[str]:
    """What stands above a tree: the session, how many turns it has, its root and where it branches."""
    state = session.state
    lines = [
        f"{style.bold(session.sid)}  {counted(state.node_count - 1, 'turn')}",
        style.dim(f"root {state.root}"),
    ]
    points = branch_points(session)
    if points:
        named = ", ".join(f"{seq} ({len(session.index.children(seq))})" for seq in points[:12])
        more = f" and {len(points) - 12:,} more" if len(points) > 12 else ""
        lines.append(f"{counted(len(points), 'branch point')}: {named}{more}")
    return lines


def tree_lines(
    view: Snapshot, session: Session, style: Style, *, width: int | None = None, here: int | None = None
) -> Iterator[str]:
    """The tree, a node a line. A node's only child stands right below it, so that a long talk stays at the margin;
    where there are several, each begins a branch. ``width`` cuts lines to the columns of a terminal; ``here`` is where
    the person is, when that is not where the store says."""
    out = out_of_service(view)
    deepest = _DEEPEST if width is None else min(_DEEPEST, width // 8)
    margins: dict[int, str] = {}
    kids: dict[int, int] = {}
    left: dict[int, int] = {}
    for row in tree_rows(view, session):
        left[row.seq] = kids[row.seq] = row.children
        if row.parent is None:
            margins[row.seq] = ""
            continue
        margin = margins[row.parent]
        left[row.parent] -= 1
        head = below = margin
        if kids[row.parent] > 1:
            last = not left[row.parent]
            head = margin + ("└─" if last else "├─")
            below = margin + ("  " if last else "│ ")
        margins[row.seq] = below if len(below) <= 2 * deepest else margin
        if not left[row.parent]:
            del margins[row.parent], kids[row.parent], left[row.parent]
        answer = session.answer(view, row.seq) if out else None
        state = out[answer][0] if answer in out else ""
        if here is not None:
            row = row._replace(is_current=row.seq == here)
        yield _tree_line(row, head, state, style, width)


def _tree_line(row: TreeRow, head: str, state: str, style: Style, width: int | None) -> str:
    node = row.node
    mark = _HERE if row.is_current else _NODE
    label = f"[{printable(node.label)}]" if node.label is not None else ""
    warning = f"! {state}" if state else ""
    question = " ".join(text_lines(node.question)) or "(the root)"
    if width is not None:
        fixed = [head + mark, str(row.seq), node.audit_mode, warning]
        left = width - sum(display_width(part) + 1 for part in fixed if part)
        if label:
            label = cut(label, max(_LEAST_LABEL, left - 1 - min(display_width(question), _SHARE)))
            left -= display_width(label) + 1
        question = cut(question, max(_LEAST_QUESTION, left))
    parts = [
        style.bold(mark) if row.is_current else mark,
        style.bold(str(row.seq)) if row.is_current else str(row.seq),
        style.label(label),
        style.mode(node.audit_mode),
        style.warning(warning),
        style.bold(question) if row.is_current else question,
    ]
    return style.dim(head) + " ".join(part for part in parts if part)


def tree_documents(view: Snapshot, session: Session) -> Iterator[dict[str, Any]]:
    """The nodes of a tree for scripts, each before what is below it."""
    out = out_of_service(view)
    for row in tree_rows(view, session):
        answer = session.answer(view, row.seq)
        yield {
            "answer": answer,
            "answer_state": _state_word(view, answer, out.get(answer or "", ("live", ""))[0]),
            "audit_mode": row.node.audit_mode,
            "bates": row.node.bates,
            "cache_key": row.node.cache_key,
            "children": row.children,
            "created_at": row.node.created_at,
            "current": row.is_current,
            "depth": row.depth,
            "label": row.node.label,
            "node_hash": session.index.node_hash(row.seq).hex(),
            "parent_bates": None if row.parent is None else bates_of(session.sid, row.parent),
            "question": row.node.question,
            "seq": row.seq,
            "subtree_hash": session.index.subtree_hash(row.seq).hex(),
        }


def _state_word(view: Snapshot, answer: str | None, state: str) -> str | None:
    """The state of a node's answer, ``absent`` where the answer is not in the store, None for the root."""
    if answer is None:
        return None
    return state if bytes.fromhex(answer) in view else "absent"


def branch_lines(view: Snapshot, session: Session, style: Style) -> Iterator[str]:
    """The nodes with two children or more, each with those."""
    out = out_of_service(view)
    for seq in branch_points(session):
        yield node_line(view, session, seq, style, out)
        for child in sorted(one for _, one in session.index.children(seq)):
            yield "  " + node_line(view, session, child, style, out)


def node_line(
    view: Snapshot, session: Session, seq: int, style: Style, out: Mapping[str, tuple[str, str]] | None = None
) -> str:
    """One node on one line: Bates id, label, mode, the state of an answer that is out of service, question. ``out`` is
    ``out_of_service(view)``, where several are shown."""
    node = session.node(view, seq)
    states = out_of_service(view) if out is None else out
    answer = session.answer(view, seq) if states else None
    warning = style.warning(f"! {states[answer][0]}") if answer is not None and answer in states else ""
    label = style.label(f"[{printable(node.label)}]") if node.label is not None else ""
    question = cut(" ".join(text_lines(node.question)), 80) or "(the root)"
    return " ".join(
        part for part in (node.bates, label, style.mode(node.audit_mode), warning, question) if part
    )


def branch_documents(session: Session) -> Iterator[dict[str, Any]]:
    """The branch points for scripts."""
    for seq in branch_points(session):
        children = sorted(one for _, one in session.index.children(seq))
        yield {
            "bates": bates_of(session.sid, seq),
            "children": [bates_of(session.sid, one) for one in children],
            "seq": seq,
        }


# -- one node ---------------------------------------------------------------------------------------------------------


def answer_warning(view: Snapshot, session: Session, seq: int) -> str | None:
    """What is wrong with the answer of a node, or None: it is no longer served, or not here."""
    answer = session.answer(view, seq)
    if answer is None:
        return None
    if bytes.fromhex(answer) not in view:
        return "the answer is not in this store"
    state, reason = answer_state(view, answer)
    return None if state == "live" else f"the answer is {state}: {reason}"


def show_lines(view: Snapshot, session: Session, seq: int, style: Style) -> Iterator[str]:
    """One node in full: what is stored of it, its question, and the answer it shows."""
    shown = show_node(view, session, seq)
    node = shown.node
    rows = (
        ("bates", style.bold(node.bates)),
        ("label", style.label(printable(node.label)) if node.label is not None else ""),
        ("parent", shown.parent or ""),
        ("children", " ".join(shown.children)),
        ("created at", node.created_at),
        ("audit mode", style.mode(node.audit_mode)),
        ("cache key", node.cache_key),
        ("node hash", shown.node_hash),
        ("subtree hash", shown.subtree_hash),
        ("event", shown.event),
        ("answer", shown.answer or ""),
        ("grafted from", shown.grafted_from or ""),
    )
    yield from (f"{name:<13}{value}" for name, value in rows if value)
    warning = answer_warning(view, session, seq)
    if warning is not None:
        yield style.warning(f"warning: {printable(warning)}")
    if node.question:
        yield ""
        yield from (style.bold(line) for line in text_lines(node.question))
    answer = _answer(view, shown.answer)
    if answer is not None:
        yield from answer_lines(answer.text, style)
        yield from (style.dim(line) for line in source_lines(answer))


def show_document(view: Snapshot, session: Session, seq: int) -> dict[str, Any]:
    """One node for scripts."""
    shown = show_node(view, session, seq)
    node = shown.node
    answer = _answer(view, shown.answer)
    state, reason = ("live", "") if shown.answer is None else answer_state(view, shown.answer)
    return {
        "answer": shown.answer,
        "answer_reason": reason,
        "answer_state": _state_word(view, shown.answer, state),
        "answer_text": None if answer is None else answer.text,
        "audit_mode": node.audit_mode,
        "bates": node.bates,
        "cache_key": node.cache_key,
        "children": list(shown.children),
        "created_at": node.created_at,
        "event": shown.event,
        "grafted_from": shown.grafted_from,
        "label": node.label,
        "node_hash": shown.node_hash,
        "parent_bates": shown.parent,
        "parent_node_hash": node.parent_node_hash,
        "question": node.question,
        "seq": seq,
        "subtree_hash": shown.subtree_hash,
    }


def _answer(view: Snapshot, answer_id: str | None) -> Answer | None:
    if answer_id is None or view.kind(bytes.fromhex(answer_id)) != "answer":
        return None
    answer: Answer = load(view, bytes.fromhex(answer_id), "answer")
    return answer


# -- answers ----------------------------------------------------------------------------------------------------------


def answer_lines(text: str, style: Style) -> Iterator[str]:
    """The text of a finished answer, its pointers set back."""
    for line in text_lines(text):
        yield _POINTER.sub(lambda found: style.dim(found.group()), line)


def source_lines(answer: Answer | Asked) -> Iterator[str]:
    """The passages that an answer was given, a line each."""
    for source in answer.sources:
        title = printable(source.title)
        yield f"E{source.number}  {title}, passage {source.position + 1}  {source.leaf_hash[:8]}"


def verdict_line(asked: Asked, style: Style) -> str:
    """How the answer was checked, and whether it was there before."""
    method = f" by {asked.verifier_method}" if asked.verifier_method != "none" else ""
    passages = counted(len(asked.sources), "passage")
    kept = ", answer kept since " + asked.created_at if asked.from_cache else ""
    return f"{style.mode(asked.audit_mode)}{method}, from {passages}{kept}"


def unverified_lines(asked: Asked, style: Style) -> Iterator[str]:
    """The quotations that do not stand where the answer says."""
    for quote in asked.unverified_quotes:
        yield style.warning(f"warning: not found where it points: {printable(quote)}")


def turn_document(asked: Asked, added: Added, sid: str, parent: int) -> dict[str, Any]:
    """A turn that was asked, for scripts."""
    return {
        "answer": asked.answer_id,
        "answer_text": asked.text,
        "audit_mode": asked.audit_mode,
        "bates": added.bates,
        "cache_key": asked.cache_key,
        "claims": [
            {
                "method": claim.method,
                "pointers": list(claim.pointers),
                "status": claim.status,
                "text": claim.text,
            }
            for claim in asked.claims
        ],
        "from_cache": asked.from_cache,
        "node_hash": added.node_hash,
        "parent_bates": bates_of(sid, parent),
        "question": asked.question,
        "seq": added.seq,
        "session_id": sid,
        "session_root": added.session_root,
        "sources": [
            {
                "chunk": source.chunk,
                "document": source.document,
                "document_root": source.document_root,
                "leaf_hash": source.leaf_hash,
                "number": source.number,
                "position": source.position,
                "title": source.title,
            }
            for source in asked.sources
        ],
        "unverified_quotes": list(asked.unverified_quotes),
        "verifier_method": asked.verifier_method,
    }
