"""What a check found, as a JUnit XML report: a suite a conversation, a case a page, round or file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from porcelain.flow.checking.report import ConversationCheck, FlowProblem

#: What XML 1.0 cannot hold, even escaped.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(checks: Sequence[ConversationCheck]) -> bytes:
    """The report. A problem that belongs to no page, round or file is a case called ``chain``."""
    suites = [_suite(check) for check in checks]
    tests = sum(count for count, _, _ in suites)
    failures = sum(failed for _, failed, _ in suites)
    body = "".join(text for _, _, text in suites)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuites name="objstore flow verify" tests="{tests}" failures="{failures}" errors="0">\n'
        f"{body}</testsuites>\n"
    ).encode()


def _suite(check: ConversationCheck) -> tuple[int, int, str]:
    """Cases, failed cases, and the XML of one suite."""
    cases: dict[str, list[FlowProblem]] = {place: [] for place in check.places}
    for problem in check.problems:
        cases.setdefault(problem.file or problem.place or "chain", []).append(problem)
    name = f"{check.provider}/{check.conversation}" if check.provider else check.conversation
    rows: list[str] = []
    for place, problems in cases.items():
        head = f"    <testcase classname={_attribute(name)} name={_attribute(place)}"
        if not problems:
            rows.append(f"{head}/>\n")
            continue
        failures = "".join(
            f"      <failure type={_attribute(problem.rule)} message={_attribute(message(problem))}>"
            f"{escape(_clean(detail(problem)))}</failure>\n"
            for problem in problems
        )
        rows.append(f"{head}>\n{failures}    </testcase>\n")
    failed = sum(bool(problems) for problems in cases.values())
    return (
        len(cases),
        failed,
        f'  <testsuite name={_attribute(name)} tests="{len(cases)}" failures="{failed}" errors="0">\n'
        f"{''.join(rows)}  </testsuite>\n",
    )


def message(problem: FlowProblem) -> str:
    """What is wrong, with the values that differ."""
    if not problem.expected and not problem.found:
        return problem.what
    return f"{problem.what}: expected {problem.expected or 'nothing'}, found {problem.found or 'nothing'}"


def detail(problem: FlowProblem) -> str:
    """The problem with its place, as the text report has it."""
    place = problem.file or problem.place
    line = f":{problem.line}" if problem.line is not None else ""
    inside = f" ({problem.place})" if problem.file and problem.place else ""
    return f"{place}{line}{inside}: {problem.rule}: {message(problem)}"


def _clean(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)


def _attribute(text: str) -> str:
    return quoteattr(_clean(text), {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})
