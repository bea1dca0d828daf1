"""``flow verify`` over folders: lines, JSON, JUnit and annotations, and the files that run it in CI."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from porcelain.flow.checking.annotations import annotation
from porcelain.flow.checking.junit import junit
from porcelain.flow.checking.report import ConversationCheck, FlowProblem
from tests.porcelain.flow.folders import SESSION, build
from tests.porcelain.importing.driving import HOME, ROOT, environment, objstore, succeed

yaml = pytest.importorskip("yaml")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return build(tmp_path / "root")


@pytest.fixture
def broken(root: Path) -> Path:
    """The file of the root whose second record was changed."""
    path = next((root / SESSION / "streams" / "main").glob("*-000001.sd"))
    path.write_bytes(path.read_bytes().replace(b"I shall look.", b"I shall Look."))
    return path


def test_a_folder_in_order_needs_no_store(root: Path, tmp_path: Path) -> None:
    result = succeed(tmp_path / "none", "flow", "verify", "--dir", root)
    assert result.out == ""
    assert result.err == "checked 3 landed files, 10 records, 2 rounds: all digests match\n"


def test_one_line_a_problem(broken: Path, root: Path, tmp_path: Path) -> None:
    result = objstore(tmp_path / "none", "flow", "verify", "--dir", root)
    assert result.code == 1
    (line,) = result.out.splitlines()
    assert line.startswith(f"{broken}:7: digest: the digest does not match: computed ")
    assert ": expected " in line and ", found " in line
    assert "2 landed files, 5 records, 2 rounds: 1 problem" in result.err


def test_json(broken: Path, root: Path, tmp_path: Path) -> None:
    result = objstore(tmp_path / "none", "flow", "verify", "--json", "--dir", root)
    assert result.code == 1
    session, conversation = map(json.loads, result.out.splitlines())
    (problem,) = session["problems"]
    assert (problem["file"], problem["line"], problem["rule"]) == (str(broken), 7, "digest")
    assert conversation["problems"] == [] and conversation["rounds"] == 2


def test_there_must_be_something_to_check(tmp_path: Path) -> None:
    assert objstore(tmp_path / "none", "flow", "verify", "--dir", tmp_path).code == 2
    assert objstore(tmp_path / "none", "flow", "verify", "--dir", tmp_path / "nowhere").code == 3
    assert objstore(tmp_path / "none", "flow", "verify", "--dir", tmp_path, "3f2a").code == 2
    assert objstore(tmp_path / "none", "flow", "verify").code == 3


def test_junit(broken: Path, root: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    assert objstore(tmp_path / "none", "flow", "verify", "--junit", report, "--dir", root).code == 1
    suites = ElementTree.parse(report).getroot()
    assert (suites.get("tests"), suites.get("failures")) == ("5", "1")
    assert len(suites.findall("testsuite")) == 2
    (failed,) = [case for case in suites.iter("testcase") if case.find("failure") is not None]
    failure = failed.find("failure")
    assert failed.get("name") == str(broken) and failure is not None
    assert failure.get("type") == "digest" and (failure.text or "").startswith(f"{broken}:7: digest: ")


def test_junit_of_a_store(tmp_path: Path) -> None:
    store, report = tmp_path / "store", tmp_path / "report.xml"
    succeed(store, "import", home=HOME)
    succeed(store, "flow", "verify", "--junit", report)
    suites = ElementTree.parse(report).getroot()
    names = {case.get("name") for case in suites.iter("testcase")}
    assert suites.get("failures") == "0" and {"page 1", "round 1"} <= names


ODD = "a<b>&\"'\x00\x1b\ud800\n\t]]>,:%"


def test_whatever_a_name_holds_the_reports_are_well_formed() -> None:
    problem = FlowProblem(ODD, "", "rule", ODD, ODD, "", file=ODD.replace("\x00", ""), line=3)
    chain = FlowProblem(ODD, "", "chain", "broken")
    check = ConversationCheck(ODD, "", 0, 0, 0, [problem, chain], [ODD])
    suites = ElementTree.fromstring(junit([check]))
    assert suites.get("failures") == "2"
    assert [case.get("name") for case in suites.iter("testcase")][-1] == "chain"
    line = annotation(problem, "/w", {"GITHUB_WORKSPACE": "/w"})
    assert "\n" not in line and line.count("::") == 2
    assert line.startswith(
        "::error file=a<b>&\"'\x1b\ud800%0A\t]]>%2C%3A%25,title=flow verify%3A rule,line=3::"
    )


def test_annotations(broken: Path, root: Path, tmp_path: Path) -> None:
    name = broken.relative_to(tmp_path).as_posix()
    expected = f"::error file={name},title=flow verify%3A digest,line=7::the digest does not match"
    env = {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(tmp_path)}
    result = objstore(tmp_path / "none", "flow", "verify", "--dir", root, **env)
    assert result.code == 1 and result.out.splitlines()[1].startswith(expected)
    result = objstore(tmp_path / "none", "flow", "verify", "--json", "--dir", root, **env)
    assert all(json.loads(line) for line in result.out.splitlines())
    assert result.err.startswith(expected)
    env = {"GITHUB_WORKSPACE": str(tmp_path)}
    asked = objstore(tmp_path / "none", "flow", "verify", "--annotations", "--dir", root, **env)
    assert asked.out.splitlines()[1].startswith(expected)
    assert "::error" not in objstore(tmp_path / "none", "flow", "verify", "--dir", root, **env).out


# -- CI --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A folder with the program ``objstore`` in it, as an installation would make it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    path = folder / "objstore"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m porcelain.main "$@"\n')
    path.chmod(0o755)
    return folder


def shell(command: str, cwd: Path, program: Path, **env: str) -> subprocess.CompletedProcess[str]:
    given = environment(None, PATH=f"{program}{os.pathsep}{os.environ['PATH']}", **env)
    given.pop("GITHUB_ACTIONS", None)
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=cwd,
        env=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("junit_path", ["", "a report.xml"])
def test_the_action(broken: Path, root: Path, tmp_path: Path, program: Path, junit_path: str) -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    install, step = action["runs"]["steps"]
    assert action["runs"]["using"] == "composite" and "GITHUB_ACTION_PATH" in install["run"]
    inputs = {name: str(one["default"]) for name, one in action["inputs"].items()}
    inputs |= {"path": "root", "junit": junit_path}
    env = {}
    for name, value in step["env"].items():
        for key, given in inputs.items():
            value = value.replace(f"${{{{ inputs.{key} }}}}", given)
        assert "{{" not in value
        env[name] = value
    env["GITHUB_WORKSPACE"] = str(tmp_path)
    done = shell(step["run"], tmp_path, program, **env)
    assert done.returncode == 1
    assert f"::error file={broken.relative_to(tmp_path).as_posix()}," in done.stdout
    assert (tmp_path / "a report.xml").exists() == bool(junit_path)
    broken.write_bytes(broken.read_bytes().replace(b"I shall Look.", b"I shall look."))
    assert shell(step["run"], tmp_path, program, **env).returncode == 0


def test_the_hook(broken: Path, root: Path, program: Path) -> None:
    import re
    import shlex

    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert hook["language"] == "python" and hook["pass_filenames"] is False
    assert re.search(hook["files"], broken.name) and re.search(hook["files"], "r000001-0123456789ab.sf")
    assert not re.search(hook["files"], "notes.md")
    command = f"{hook['entry']} {shlex.join(hook['args'])}"
    done = shell(command, root, program)
    assert done.returncode == 1 and "000001.sd:7: digest: " in done.stdout
    broken.write_bytes(broken.read_bytes().replace(b"I shall Look.", b"I shall look."))
    assert shell(command, root, program).returncode == 0
