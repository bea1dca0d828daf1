"""Where agents keep conversations, on a machine that has them and by the overrides of each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from porcelain.importing.tasks import provider_module
from porcelain.providers.agents import PROVIDERS, TITLES, roots


def found(provider: str, environment: Mapping[str, str], home: Path) -> list[Path]:
    return [Path(root) for root in roots(provider, environment, str(home))]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_agent_has_a_reader_and_a_title(provider: str, tmp_path: Path) -> None:
    assert provider == provider_module(provider).NAME
    assert TITLES[provider] and found(provider, {}, tmp_path) == []


def touched(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_where_claude_code_keeps_conversations(tmp_path: Path) -> None:
    (tmp_path / ".claude" / "projects").mkdir(parents=True)
    (tmp_path / "own" / "projects").mkdir(parents=True)
    assert found("claude", {}, tmp_path) == [tmp_path / ".claude" / "projects"]
    assert found("claude", {"CLAUDE_CONFIG_DIR": str(tmp_path / "own")}, tmp_path) == [
        tmp_path / "own" / "projects"
    ]
    assert found("claude", {}, tmp_path / "nobody") == []


def test_where_codex_keeps_conversations(tmp_path: Path) -> None:
    assert found("codex", {}, tmp_path) == []
    for name in (".codex/sessions", "other/archived_sessions"):
        (tmp_path / name).mkdir(parents=True)
    assert found("codex", {}, tmp_path) == [tmp_path / ".codex"]
    assert found("codex", {"CODEX_HOME": str(tmp_path / "other")}, tmp_path) == [tmp_path / "other"]
    assert found("codex", {"CODEX_HOME": str(tmp_path / "missing")}, tmp_path) == []


def test_where_factory_droid_keeps_conversations(tmp_path: Path) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    assert found("factory", {}, home) == []
    for folder in (home / ".factory", other / ".factory", other):
        (folder / "sessions").mkdir(parents=True)
    assert found("factory", {}, home) == [home / ".factory" / "sessions"]
    assert found("factory", {"FACTORY_HOME_OVERRIDE": str(other)}, home) == [other / ".factory" / "sessions"]
    assert found("factory", {"FACTORY_DIR": str(other)}, home) == [other / "sessions"]


def test_where_oh_my_pi_keeps_conversations(tmp_path: Path) -> None:
    assert found("oh-my-pi", {}, tmp_path) == []
    for name in (".omp/agent", ".clay/agent", "own", "data/omp"):
        (tmp_path / name / "sessions").mkdir(parents=True)
    usual = tmp_path / ".omp" / "agent" / "sessions"
    data = {"XDG_DATA_HOME": str(tmp_path / "data")}
    assert found("oh-my-pi", {}, tmp_path) == [usual]
    assert found("oh-my-pi", {"PI_CONFIG_DIR": ".clay"}, tmp_path) == [
        tmp_path / ".clay" / "agent" / "sessions"
    ]
    assert found("oh-my-pi", {"PI_CODING_AGENT_DIR": str(tmp_path / "own")}, tmp_path) == [
        tmp_path / "own" / "sessions"
    ]
    assert found("oh-my-pi", data, tmp_path) == [usual, tmp_path / "data" / "omp" / "sessions"]


def test_where_opencode_keeps_conversations(tmp_path: Path) -> None:
    home, data = tmp_path / "home", tmp_path / "data"
    assert found("opencode", {}, home) == []
    own = home / ".local" / "share" / "opencode"
    own.mkdir(parents=True)
    (data / "opencode").mkdir(parents=True)
    assert found("opencode", {}, home) == [own]
    assert found("opencode", {"XDG_DATA_HOME": str(data)}, home) == [data / "opencode"]
    elsewhere = touched(tmp_path / "else" / "mine.db")
    assert found("opencode", {"OPENCODE_DB": str(elsewhere)}, home) == [own, elsewhere]
    inside = touched(own / "opencode-beta.db")
    assert found("opencode", {"OPENCODE_DB": str(inside)}, home) == [own]
    assert found("opencode", {"OPENCODE_DB": "named.db"}, home) == [own]
    touched(own / "named.db")
    assert found("opencode", {"OPENCODE_DB": "named.db"}, home) == [own, own / "named.db"]


def test_where_pi_keeps_conversations(tmp_path: Path) -> None:
    for folder in (".pi/agent/sessions", "own/sessions", "direct"):
        (tmp_path / folder).mkdir(parents=True)
    assert found("pi", {}, tmp_path) == [tmp_path / ".pi" / "agent" / "sessions"]
    assert found("pi", {"PI_CODING_AGENT_DIR": str(tmp_path / "own")}, tmp_path) == [
        tmp_path / "own" / "sessions"
    ]
    both = {"PI_CODING_AGENT_DIR": "x", "PI_CODING_AGENT_SESSION_DIR": str(tmp_path / "direct")}
    assert found("pi", both, tmp_path) == [tmp_path / "direct"]
    assert found("pi", {}, tmp_path / "nobody") == []
