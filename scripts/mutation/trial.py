"""One trial: a module with other source than its file's is imported, and tests are run on it.

``prepare`` is for a process that is forked for each trial: what it has imported, no trial imports
again. ``run`` is for such a fork alone, as it leaves the module as it made it.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType

import pytest
from mutation.recording import ROOT

_WARM = """
import sys
from pathlib import Path
import pytest
root = Path(sys.argv[1])
packages = Path(pytest.__file__).parents[1]
pytest.main(["-q", "--collect-only", "-p", "no:cacheprovider", *sys.argv[2:]])
print()
for name, module in list(sys.modules.items()):
    path = Path(getattr(module, "__file__", None) or packages / "built-in")
    if path.is_relative_to(packages) or not path.is_relative_to(root):
        print("imported", name)
"""
_IMPORTED = "imported "
_OURS = "homeport"


@dataclass(frozen=True)
class Source:
    """``text`` in the place of what the file of ``module`` says."""

    module: str
    text: str


class _Loader(importlib.machinery.SourceFileLoader):
    """Compiles another text than the file's."""

    def __init__(self, fullname: str, path: str, text: str) -> None:
        super().__init__(fullname, path)
        self._text = text

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of the text; nothing of it is cached."""
        return compile(self._text, self.get_filename(fullname), "exec", dont_inherit=True)


class Finder(importlib.abc.MetaPathFinder):
    """Finds one module, where its file is, with another text."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the module's spec; None for all others."""
        if fullname != self._source.module:
            return None
        found = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if found is None or found.origin is None:
            return None
        loader = _Loader(fullname, found.origin, self._source.text)
        return importlib.util.spec_from_file_location(fullname, found.origin, loader=loader)


class Chosen:
    """A plugin of pytest: of all tests collected only these run, in this order.

    A test without a record (``known``) runs beside the others of its function: a changed value has
    given it another name.
    """

    def __init__(self, tests: Sequence[str], known: Container[str]) -> None:
        self._order = {test.partition("[")[0]: number for number, test in enumerate(tests)}
        self._order.update({test: number for number, test in enumerate(tests)})
        self._known = known
        self.first_failed = ""
        self.failed: list[str] = []
        self.passed = 0

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the chosen ones of ``items``."""
        names = {id(item): self._name(item.nodeid) for item in items}
        chosen = [item for item in items if names[id(item)] in self._order]
        items[:] = sorted(chosen, key=lambda item: self._order[names[id(item)]])

    def _name(self, test: str) -> str:
        return test if test in self._known else test.partition("[")[0]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count what passed, and note what failed."""
        if report.failed:
            self.failed.append(report.nodeid)
        elif report.when == "call" and report.passed:
            self.passed += 1


@dataclass(frozen=True)
class Outcome:
    """How the tests of one trial went. ``error``: why none was run."""

    failed: tuple[str, ...]
    passed: int
    error: str = ""

    def write(self, answer: Path) -> None:
        """Write it to the file, for the process that has asked for the trial."""
        stated = {"failed": self.failed, "passed": self.passed, "error": self.error}
        answer.write_text(json.dumps(stated), encoding="utf-8")


def run(
    source: Source | None, tests: Sequence[str], known: Container[str], *, to_the_first: bool = True
) -> Outcome:
    """Run the tests on the source, or on what is there; ``to_the_first`` that fails, or all.

    ``known``: all tests that were recorded.
    """
    if source is not None:
        sys.meta_path.insert(0, Finder(source))
    chosen = Chosen(tests, known)
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    options = [
        "-q",
        *(["-x"] if to_the_first else []),
        "-p",
        "no:cacheprovider",
        "--assert=plain",
        "--tb=line",
    ]
    code = pytest.main([*options, *files], plugins=[chosen])
    if chosen.failed:
        return Outcome(tuple(chosen.failed), chosen.passed)
    unfit = {pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR}
    if source is not None:
        unfit.add(pytest.ExitCode.USAGE_ERROR)  # also of a conftest that cannot be imported
    if code in unfit:
        return Outcome(("the import",), chosen.passed)
    error = "" if code is pytest.ExitCode.OK else f"pytest ended with {int(code)}"
    return Outcome((), chosen.passed, error)


def prepare(files: Sequence[str]) -> None:
    """Import what these files of tests import, but for what is ours.

    The forks keep what is ours compiled, below build/, wherever the environment asks for nothing
    to be kept.
    """
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(ROOT / "build" / "mutation" / "compiled")
    for folder in reversed(("build/ns", "scripts", "tests/support")):
        path = str(ROOT / folder)
        if path not in sys.path:
            sys.path.insert(0, path)
    listed = subprocess.run(
        [sys.executable, "-c", _WARM, str(ROOT), *files],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env=_environment(os.environ),
        check=True,
    ).stdout.splitlines()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for line in listed:
            name = line.removeprefix(_IMPORTED)
            if name != line and not name.startswith((_OURS, "__main")):
                _import(name)
    ours = sorted(name for name in sys.modules if name.partition(".")[0] == _OURS)
    if ours:
        raise SystemExit(f"error: {ours[0]} is imported already, no trial would change it")


def _environment(base: Mapping[str, str]) -> dict[str, str]:
    """No library makes threads of its own, which would not be in the forks."""
    return {**base, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def _import(name: str) -> None:
    if name in sys.modules or not all(part.isidentifier() for part in name.split(".")):
        return
    try:
        importlib.import_module(name)
    except Exception:  # noqa: BLE001 - what cannot be imported here, each trial imports for itself
        sys.modules.pop(name, None)
