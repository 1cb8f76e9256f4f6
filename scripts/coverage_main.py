"""Branch coverage of the pure packages by their own tests: 100 %, or the lines that are missing.

Run by ``scripts/test coverage``. The packages are those that setup.cfg calls PURE; the tests are
those of tests/unit that mirror them, and those of ``_BOTH``, which reach them by public calls
alone. Searches are left out: what only a search reaches, no test states.
"""

from __future__ import annotations

import configparser
import importlib
import os
import sys
from pathlib import Path

from coverage import cmdline

ROOT = Path(__file__).resolve().parents[1]
_PURE = "importlinter:contract:pure"
_BOTH = ("tests/spec", "tests/transcripts", "tests/unit/job_coordinator/metadata")
_SEARCHES = "*_world.py"
"""Searches that are quick enough for every run, but not when each line is traced."""


def pure_modules() -> list[str]:
    """Return the packages and modules that setup.cfg calls PURE, by import names."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    return config[_PURE]["source_modules"].split()


def mirrors_of(modules: list[str]) -> list[str]:
    """Return the tests that mirror these modules, sorted, and those of whole flows.

    They are a folder; of a module of a package's root a file, as its folder has all of the package.
    """
    mirrored = set()
    for module in modules:
        _, package, *inner = module.split(".")
        folder = ROOT.joinpath("tests", "unit", package, *inner)
        if not folder.is_dir():
            folder = folder.parent if len(inner) > 1 else folder.with_name(f"test_{inner[0]}.py")
        if folder.exists():
            mirrored.add(str(folder.relative_to(ROOT)))
    return [*sorted(mirrored), *(folder for folder in _BOTH if (ROOT / folder).is_dir())]


def import_libraries(modules: list[str]) -> None:
    """Import what these modules import of other packages, and forget the modules themselves.

    Coverage imports what it measures and forgets all of it again. A library that is imported twice
    fails, as numpy does, or has two states, as asyncio.
    """
    for module in modules:
        importlib.import_module(module)
    for module in [name for name in sys.modules if name.partition(".")[0] == "homeport"]:
        del sys.modules[module]


def main() -> int:
    """Exit code: 0 if every branch is taken by a test that passed."""
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT / "build/ns"))
    modules = pure_modules()
    import_libraries(modules)
    pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not search"]
    pytest.append(f"--ignore-glob={_SEARCHES}")
    run = ["run", "--branch", f"--source={','.join(modules)}", *pytest]
    tests = cmdline.main([*run, *mirrors_of(modules), *sys.argv[1:]])
    report = cmdline.main(["report"])
    return tests or report or 0


if __name__ == "__main__":
    sys.exit(main())
