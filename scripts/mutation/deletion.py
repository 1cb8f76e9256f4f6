"""Deletes tests from their files, and then the helpers that nothing uses any more."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from mutation.recording import ROOT
from mutation.selection import first_line

_WORD = re.compile(r"[A-Za-z_]\w*")
_FOUND_BY_NAME = re.compile(r"pytest|test_|Test|__")
_PLAIN = re.compile(r"(pytest\.fixture|contextmanager|cache|functools\.cache|dataclass)\b")
"""Another decorator may register what it decorates."""
_USERS = ("tests", "scripts", "docker")


def without(source: str, names: set[str]) -> str:
    """Return the source without the module's functions, classes and constants of these names."""
    lines = source.splitlines(keepends=True)
    body = ast.parse(source).body
    for node, following in reversed([*zip(body, [*body[1:], None], strict=True)]):
        if not names & _names_of(node):
            continue
        start, end = first_line(node) - 1, node.end_lineno or 0
        while start and lines[start - 1].startswith("#"):
            start -= 1
        match node, following:
            case ast.Assign() | ast.AnnAssign(), ast.Expr(ast.Constant(), end_lineno=int(its_end)):
                end = its_end
        del lines[start:end]
    return "".join(lines)


def unused(sources: Mapping[Path, str]) -> dict[Path, set[str]]:
    """Return {path: names of its helpers} that no other word of the sources is."""
    words = Counter(word for source in sources.values() for word in _WORD.findall(source))
    found: dict[Path, set[str]] = {}
    for path, source in sources.items():
        lines = source.splitlines()
        for node in ast.parse(source).body:
            own = Counter(_WORD.findall("\n".join(lines[first_line(node) - 1 : node.end_lineno])))
            names = _names_of(node)
            if names and _is_helper(node) and all(words[n] == own[n] for n in names):
                found.setdefault(path, set()).update(names)
    return found


def _names_of(node: ast.stmt) -> set[str]:
    """Return the names that the statement gives; of a fixture also the one that tests ask for."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            given = [k for d in node.decorator_list for k in getattr(d, "keywords", ())]
            return {node.name, *(ast.unparse(k.value).strip("'") for k in given if k.arg == "name")}
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
    return set()


def _is_helper(node: ast.stmt) -> bool:
    """Return whether the statement has no other purpose than to be used by its name."""
    decorators = [ast.unparse(d) for d in getattr(node, "decorator_list", ())]
    plain = all(_PLAIN.match(d) and "autouse" not in d for d in decorators)
    return plain and all(n.isidentifier() and not _FOUND_BY_NAME.match(n) for n in _names_of(node))


def delete(tests: Iterable[str]) -> None:
    """Delete these tests, files without a test, and helpers that lost their last user."""
    before = unused(_sources())
    due: dict[Path, set[str]] = {}
    for file, _, name in (test.partition("::") for test in tests):
        due.setdefault(ROOT / file, set()).add(name)
    while due:
        for path, names in due.items():
            _rewrite(path, without(path.read_text(encoding="utf-8"), names))
        now = unused(_sources()).items()
        due = {path: new for path, names in now if (new := names - before.get(path, set()))}


def _rewrite(path: Path, source: str) -> None:
    """Write the source, without imports that it does not use; none where no test is left."""
    if path.name.startswith("test_") and "def test_" not in source:
        path.unlink()
        return
    path.write_text(source, encoding="utf-8")
    ruff = str(Path(sys.executable).with_name("ruff"))
    subprocess.run([ruff, "check", "-q", "--select", "F401,I", "--fix", path], check=True)
    subprocess.run([ruff, "format", "-q", path], check=True)


def _sources() -> dict[Path, str]:
    files = [file for folder in _USERS for file in (ROOT / folder).rglob("*.py")]
    return {file: file.read_text(encoding="utf-8") for file in files}
