"""Problems as the workflow commands by which GitHub Actions marks files of a pull request."""

from __future__ import annotations

import os
from collections.abc import Mapping

from porcelain.flow.checking.junit import message
from porcelain.flow.checking.report import FlowProblem


def wanted(env: Mapping[str, str]) -> bool:
    """Whether the command runs in GitHub Actions."""
    return env.get("GITHUB_ACTIONS") == "true"


def annotation(problem: FlowProblem, cwd: str, env: Mapping[str, str]) -> str:
    """One ``::error`` line. Paths are relative to the workspace, as the files of a pull request are named."""
    fields = {"title": f"flow verify: {problem.rule}"}
    if problem.file:
        path = os.path.relpath(os.path.join(cwd, problem.file), env.get("GITHUB_WORKSPACE") or cwd)
        fields = {"file": path.replace(os.sep, "/")} | fields
        if problem.line is not None:
            fields["line"] = str(problem.line)
    place = f"{problem.place or problem.conversation}: " if not problem.file else ""
    properties = ",".join(f"{key}={_property(value)}" for key, value in fields.items())
    return f"::error {properties}::{_text(place + message(problem))}"


def _text(value: str) -> str:
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _text(value).replace(":", "%3A").replace(",", "%2C")
