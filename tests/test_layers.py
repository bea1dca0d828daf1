"""The rules between the layers, read off the source: which way imports point, and what start-up may load."""

from __future__ import annotations

import ast
import importlib
import os
import re
import shutil
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from plumbing.interface.options import KINDS
from porcelain.commands import COMMANDS, GROUPS, PLUMBING

ROOT = Path(__file__).resolve().parent.parent
MAY_NOT_IMPORT = {
    "objstore": {"plumbing", "porcelain", "click", "platformdirs"},
    "plumbing": {"porcelain", "click"},
    "porcelain": {"click"},
}
SINGLE_OBJECT = ("cat", "hash-object", "rev-parse", "show-ref")
AN_OBJECT = '{"text": "hello", "type": "text"}'
#: What costs a start-up a fifth of what Python itself does, or more.
NOT_AT_START = (
    "click",
    "msgspec",
    "argparse",
    "typing_extensions",
    "re",
    "typing",
    "pathlib",
    "json",
    "asyncio",
)


def sources(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def imported(tree: ast.AST) -> set[str]:
    """Top-level names of all that ``tree`` imports, at any depth of it."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


@pytest.mark.parametrize("package", MAY_NOT_IMPORT)
def test_imports_point_down(package: str) -> None:
    wrong = {
        str(path.relative_to(ROOT)): found
        for path in sources(package)
        if (found := imported(ast.parse(path.read_bytes())) & MAY_NOT_IMPORT[package])
    }
    assert not wrong


def modules_imported(path: Path) -> set[str]:
    """The full names of the project's modules that the file at ``path`` imports, for types only or not."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {name for one in node.names if exists(name := f"{node.module}.{one.name}")}
            found |= {node.module} if exists(node.module) else set()
    return found


def test_lineage_is_built_from_the_bottom_up() -> None:
    import porcelain.lineage

    folder = ROOT / "porcelain" / "lineage"
    order = re.findall(r"^``(\w+)``", porcelain.lineage.__doc__ or "", re.MULTILINE)
    assert sorted(order) == sorted(one.parent.name for one in folder.glob("*/__init__.py"))
    assert [one.name for one in folder.glob("*.py")] == ["__init__.py"]
    wrong = []
    modules: dict[str, set[str]] = {}
    for path in sources("porcelain/lineage"):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        modules[name] = modules_imported(path)
        for other in modules[name]:
            if other.startswith("porcelain.lineage."):
                mine, theirs = name.split(".")[2], other.split(".")[2]
                if mine in order and order.index(theirs) > order.index(mine):
                    wrong.append(f"{name} imports {other}")
    assert not wrong
    TopologicalSorter(modules).prepare()  # fails on a circle


def test_objstore_neither_prints_nor_reads_the_environment() -> None:
    wrong = []
    for path in sources("objstore"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            name = ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""
            if name in {
                "print",
                "os.environ",
                "os.getenv",
                "sys.stdout",
                "sys.stderr",
                "Path.home",
            } or name.endswith(".expanduser"):
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno}: {name}")  # type: ignore[attr-defined]
    assert not wrong


def exists(target: str) -> bool:
    return (ROOT / (target.partition(":")[0].replace(".", "/") + ".py")).exists()


@pytest.mark.parametrize("command", [c for c in COMMANDS if exists(c.target)], ids=lambda c: c.name)
def test_command_modules_have_one_form(command) -> None:
    module = importlib.import_module(command.target.partition(":")[0])
    assert callable(getattr(module, command.target.partition(":")[2]))
    assert module.SUMMARY and "\n" not in module.SUMMARY
    assert all(
        f"{line.strip()} ".startswith(f"{command.name} ") for line in module.USAGE.strip().splitlines()
    )
    assert module.EXAMPLES
    flags = [flag for option in module.OPTIONS for flag in option.flags]
    assert len(flags) == len(set(flags))
    assert all(option.kind in KINDS and option.help for option in module.OPTIONS)


@pytest.mark.parametrize(
    "command", [c for c in COMMANDS if c.layer == PLUMBING and exists(c.target)], ids=lambda c: c.name
)
def test_plumbing_has_a_man_page_that_names_every_option_and_json(command) -> None:
    module = importlib.import_module(command.target.partition(":")[0])
    flags = [flag for option in module.OPTIONS for flag in option.flags]
    assert "--json" in flags
    page = (ROOT / "man" / f"objstore-{command.name}.1").read_text().replace("\\-", "-")
    assert [flag for flag in flags if flag not in page] == []


def test_every_group_has_commands_and_every_subcommand_a_group() -> None:
    assert {c.name.split()[0] for c in COMMANDS if " " in c.name} == set(GROUPS)


def loaded_by(*argv: str, home: Path | None = None) -> tuple[set[str], str]:
    """The modules that one command line loads in a process of its own, and what it prints. The program that starts it
    loads next to nothing, as an installed one does. Only what is below ``home`` is found of agents."""
    program = (
        "import sys; from porcelain.main import main; code = main()\n"
        "sys.stderr.write(' '.join(sys.modules))\n"
        "sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *argv],
        check=False,
        cwd=ROOT,
        capture_output=True,
        env={"HOME": str(home or ROOT / "absent"), "PATH": os.environ["PATH"]},
        text=True,
        input=AN_OBJECT,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.rpartition("\n")[2].split()), done.stdout


def below(modules: set[str], *names: str) -> set[str]:
    """Those of ``modules`` that are one of ``names`` or inside one."""
    return {module for module in modules if any(f"{module}.".startswith(f"{name}.") for name in names)}


@pytest.mark.parametrize("argv", [["--version"], ["--help"], ["flow", "--help"]])
def test_program_starts_with_nothing_but_itself(argv: list[str]) -> None:
    modules, _ = loaded_by(*argv)
    assert not below(modules, *NOT_AT_START, "lmdb", "zlib")


@pytest.mark.parametrize("name", [n for n in SINGLE_OBJECT if exists(f"plumbing.{n.replace('-', '_')}")])
def test_single_object_plumbing_loads_nothing_large(name: str, tmp_path: Path) -> None:
    store = ["--store", str(tmp_path / "store")]
    loaded_by(*store, "init")
    _, written = loaded_by(*store, "hash-object", "-w", "--stdin")
    object_id = written.strip()
    loaded_by(*store, "update-ref", "tag/one", object_id)
    argv = {
        "cat": ["cat", object_id],
        "hash-object": ["hash-object", "--stdin"],
        "rev-parse": ["rev-parse", object_id[:12]],
        "show-ref": ["show-ref"],
    }[name]
    modules, printed = loaded_by(*store, *argv)
    needs = {"hash-object": {"json", "re"}}.get(name, set())
    assert not below(modules, *(set(NOT_AT_START) - needs))
    assert printed.strip()


@pytest.fixture(scope="module")
def imported_home(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A home folder with conversations of two agents, and a store that has imported them."""
    home, store = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("store") / "store"
    for folder in (".claude", ".pi"):
        shutil.copytree(ROOT / "fixtures" / "home" / folder, home / folder)
    loaded_by("--store", str(store), "import", home=home)
    loaded_by("--store", str(store), "status", home=home)
    return home, store


#: What a command does not load, by what it has to do.
_DERIVING = ("porcelain.lineage.index.update", "porcelain.lineage.derived", "porcelain.lineage.relations")
_READING = ("porcelain.providers.claude", "porcelain.providers.pi", "porcelain.providers.landing")
_DISCOVERY = ("porcelain.providers.codex_discover", "porcelain.providers.opencode_discover")


@pytest.mark.parametrize(
    ("words", "absent"),
    [
        (["status", "--no-scan"], (*NOT_AT_START, "porcelain.importing", "objstore.core", *_DERIVING)),
        (
            ["status"],
            (
                *_DERIVING,
                *_READING,
                *_DISCOVERY,
                *("porcelain.importing.checking", "hashlib", "zstandard", "tempfile"),
            ),
        ),
        (["flow", "assemble"], (*_READING, *_DISCOVERY, "porcelain.providers.claude_discover")),
        (["lineage", "sessions"], ("porcelain.lineage.index.update", "porcelain.importing", *_READING)),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else "",
)
def test_a_command_loads_what_it_uses(
    imported_home: tuple[Path, Path], words: list[str], absent: tuple[str, ...]
) -> None:
    home, store = imported_home
    modules, _ = loaded_by("--store", str(store), *words, home=home)
    assert not below(modules, *absent)


def test_status_of_a_store_without_conversations_loads_nothing_large(tmp_path: Path) -> None:
    store = ["--store", str(tmp_path / "store")]
    loaded_by(*store, "init")
    modules, printed = loaded_by(*store, "status")
    assert not below(modules, *NOT_AT_START, "sqlite3", "porcelain.importing", "porcelain.lineage")
    assert "no conversation yet" in printed
