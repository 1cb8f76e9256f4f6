"""The tree keeps its own rules: lengths, packages, docstrings of tests, modes, no machine paths."""

from __future__ import annotations

import ast
import configparser
import functools
import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from local_setup.environment import SHIPPED as SHIPPED_FOLDERS

ROOT = Path(__file__).resolve().parents[2]
CODE_FOLDERS = ("appmaster", "config", "container", "homeport", "job_coordinator", "local_cluster")
ROOTS = {
    f"homeport.{folder.rpartition('/')[2]}": folder
    for folder in (
        *(f for f in CODE_FOLDERS if f != "homeport"),
        "homeport/cli",
        "homeport/job",
        "homeport/testing",
    )
} | {"homeport": "homeport/public"}
"""The packages below ``homeport`` and their folders: what stands in the folder homeport is the
product's face."""
SHIPPED = {
    "homeport.check_history": "scripts/check_history",
    "homeport.docs": "docs",
    "homeport.examples.flights": "examples/flights",
    "homeport.examples.observability": "docker/observability",
}
"""What the wheel has from outside the roots."""
MODULE_LINES = 600
FUNCTION_LINES = 60
FOLDER_MODULES = 20
MACHINE_PATH = re.compile(r"(?<![\w.$}*-])/(?:work|root|home|Users)/(?!\.\.\.)[\w.-]")
"""The home or working folder of a developer's machine; not the middle of a longer path or a URL."""


_STATEMENTS = ("body", "orelse", "finalbody", "handlers", "cases")
"""The fields of a statement that hold other statements."""


@dataclass(frozen=True)
class _Function:
    """``lines`` has decorators and docstring too."""

    name: str
    line: int
    lines: int
    is_documented: bool


@dataclass(frozen=True)
class _Source:
    """What the rules need to know of a Python file; a syntax tree of each would fill the memory."""

    about: str
    functions: tuple[_Function, ...]
    classes: tuple[str, ...]


@functools.cache
def _files() -> list[Path]:
    """Every file of the working tree that git would keep, tracked or new, in sorted order."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607 - on PATH on purpose
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    files = {ROOT / name for name in listed.split("\0") if name}
    return sorted(file for file in files if file.is_file() and not file.is_symlink())


def _python_files() -> list[Path]:
    return [file for file in _files() if file.suffix == ".py"]


@functools.cache
def _source(file: Path) -> _Source:
    tree = ast.parse(file.read_text(encoding="utf-8"), filename=str(file))
    found = list(_definitions(tree))
    functions = [_function(node) for node in found if not isinstance(node, ast.ClassDef)]
    classes = [node.name for node in found if isinstance(node, ast.ClassDef)]
    return _Source(ast.get_docstring(tree) or "", tuple(functions), tuple(classes))


def _definitions(
    tree: ast.Module,
) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """Each function and class, nested ones too; expressions, which hold none, are not walked."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node
        for part in _STATEMENTS:
            left += getattr(node, part, ())


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> _Function:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    lines = (node.end_lineno or first) - first + 1
    return _Function(node.name, node.lineno, lines, bool(ast.get_docstring(node)))


def _shown(file: Path) -> str:
    return str(file.relative_to(ROOT))


def _imported_as(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    if parts[:2] == ("homeport", "public"):
        return ".".join(("homeport", *parts[2:]))
    return ".".join(parts if parts[0] == "homeport" else ("homeport", *parts))


def test_modules_are_short() -> None:
    """No module is longer than 600 lines."""
    lengths = {f: len(f.read_text(encoding="utf-8").splitlines()) for f in _python_files()}
    assert {_shown(f): n for f, n in lengths.items() if n > MODULE_LINES} == {}


def test_folders_are_small() -> None:
    """No folder of the product or of scripts holds more than 20 modules."""
    files = [f.relative_to(ROOT) for f in _python_files()]
    rooms = {*CODE_FOLDERS, "scripts"}
    code = [f for f in files if f.parts[0] in rooms and f.name != "__init__.py"]
    sizes = Counter(str(f.parent) for f in code)
    assert {folder: n for folder, n in sizes.items() if n > FOLDER_MODULES} == {}


def test_functions_are_short() -> None:
    """No function is longer than 60 lines, decorators and docstring included."""
    long = {
        f"{_shown(file)}:{function.line} {function.name}": function.lines
        for file in _python_files()
        for function in _source(file).functions
        if function.lines > FUNCTION_LINES
    }
    assert long == {}


def test_every_test_states_its_fact() -> None:
    """Every test function has a docstring."""
    silent = [
        f"{_shown(file)}:{function.line} {function.name}"
        for file in _python_files()
        if file.is_relative_to(ROOT / "tests") and file.name.startswith("test_")
        for function in _source(file).functions
        if function.name.startswith("test_") and not function.is_documented
    ]
    assert silent == []


def test_each_error_has_a_name_of_its_own() -> None:
    """No two error classes of the product have one name: catching one would miss the other."""
    places: dict[str, list[str]] = {}
    for file in _python_files():
        if file.relative_to(ROOT).parts[0] in CODE_FOLDERS:
            for name in _source(file).classes:
                if name.endswith(("Error", "Violation")):
                    places.setdefault(name, []).append(_shown(file))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_packages_listed_are_the_packages_there() -> None:
    """setup.cfg lists the folders that hold an __init__.py, maps the roots, and what it ships."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    listed = config["options"]["packages"].split()
    there = [
        _imported_as(file.parent)
        for file in _files()
        if file.name == "__init__.py" and file.relative_to(ROOT).parts[0] in CODE_FOLDERS
    ]
    shipped = [p for p in listed if p.startswith(tuple(SHIPPED))]
    assert listed == sorted([*there, *shipped])
    mapped = dict(
        line.split(" = ") for line in config["options"]["package_dir"].split("\n") if line
    )
    assert mapped == {**ROOTS, **SHIPPED}
    assert sorted(SHIPPED.values()) == sorted(SHIPPED_FOLDERS)


def test_what_says_pure_is_held_by_the_contract() -> None:
    """Each module whose docstring has PURE may reach nothing outside, checked by import-linter."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    held = config["importlinter:contract:pure"]["source_modules"].split()
    free = []
    for folder in CODE_FOLDERS:
        for file in sorted((ROOT / folder).rglob("*.py")):
            name = _imported_as(file.with_suffix("")).removesuffix(".__init__")
            if "PURE" in _source(file).about and not any(
                f"{name}.".startswith(f"{each}.") for each in held
            ):
                free.append(name)
    assert free == []


@pytest.mark.parametrize("folder", CODE_FOLDERS)
def test_every_code_folder_is_a_package(folder: str) -> None:
    """Below the roots a folder with Python has an __init__.py; it is not shipped without."""
    holding = {file.parent for file in _python_files() if file.is_relative_to(ROOT / folder)}
    assert [_shown(d) for d in sorted(holding) if not (d / "__init__.py").is_file()] == []


@pytest.mark.parametrize("folder", ROOTS.values())
def test_types_are_shipped(folder: str) -> None:
    """Each of the roots has its py.typed."""
    assert (ROOT / folder / "py.typed").is_file()


def test_helpers_have_no_init() -> None:
    """docker/, scripts/ and tests/ are folders, not packages."""
    plain = [ROOT / "docker", ROOT / "scripts", *(ROOT / "tests").rglob("*"), ROOT / "tests"]
    assert [_shown(d) for d in plain if d.is_dir() and (d / "__init__.py").exists()] == []


def test_commands_are_executable() -> None:
    """What starts with #! can be started, and nothing else claims that it can."""
    wrong = []
    for file in _files():
        with file.open("rb") as source:
            is_command = source.read(2) == b"#!"
        if is_command != os.access(file, os.X_OK):
            wrong.append(_shown(file))
    assert wrong == []


def test_no_path_of_a_machine() -> None:
    """No file names the home or working folder of a developer's machine."""
    found = []
    for file in _files():
        text = file.read_bytes().decode("utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            if MACHINE_PATH.search(line):
                found.append(f"{_shown(file)}:{number}: {line.strip()[:100]}")
    assert found == []


def test_each_silenced_error_has_a_reason() -> None:
    """Each noqa and each ignored type error names its rule, and is followed by a reason."""
    silenced = re.compile(r"# (?:noqa|type: ignore)\b")
    reasoned = re.compile(r"# (?:noqa: [A-Z0-9, ]+ - |type: ignore\[[a-z, -]+\] +# )\S")
    mute = [
        f"{_shown(file)}:{number}: {line.strip()}"
        for file in _python_files()
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if len(silenced.findall(line)) != len(reasoned.findall(line))
    ]
    assert mute == []
