"""Branch coverage of the pure packages by their own tests: 100 %, or the lines that are missing.

Run by ``scripts/test coverage``. The packages are those that setup.cfg calls PURE; the tests are
those of tests/unit that mirror them, and those of ``_BOTH``, which reach them by public calls
alone. Searches are left out: what only a search reaches, no test states.
"""

from __future__ import annotations

import configparser
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_PURE = "importlinter:contract:pure"
_BOTH = ("tests/spec", "tests/transcripts", "tests/unit/job_coordinator/metadata")
_SEARCHES = "*_world.py"
"""Searches that are quick enough for every run, but not when each line is traced."""
_UNMEASURED = frozenset(
    f"homeport.{name}"
    for name in (
        "appmaster.report.metrics_snapshots",
        "container.callables",
        "container.headers",
        "container.processing.record_rules",
        "container.processing.records",
        "container.processing.typed_input",
        "container.serde.arrow_serdes",
        "container.serde.avro_bounds",
        "container.serde.avro_readers",
        "container.serde.avro_values",
        "container.serde.columns",
        "container.serde.ddl",
        "container.serde.exact_values",
        "container.serde.json_schema_serde",
        "container.serde.json_values",
        "container.serde.key_order",
        "container.serde.serdes",
        "container.spark.inputs",
        "container.spark.pipeline_failures",
        "container.standalone.standby_view",
        "testing.fault_schedule",
        "testing.partitioner",
        "container.windows.ends",
        "container.windows.facts",
        "container.windows.partials",
        "container.windows.spans",
        "container.windows.sums",
        "job_coordinator.http.access",
        "job_coordinator.http.messages",
        "job_coordinator.http.query_params",
        "job_coordinator.http.wrong_tokens",
    )
)
"""Modules that import-linter holds to be PURE, and whose tests do not take each branch yet.

Coverage imports what it measures twice, which numpy refuses.
"""


def pure_modules() -> list[str]:
    """The packages and modules that setup.cfg calls PURE and that are measured, by import names."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    return [m for m in config[_PURE]["source_modules"].split() if m not in _UNMEASURED]


def mirrors_of(modules: list[str]) -> list[str]:
    """The folders of tests that mirror these modules, sorted, and those of whole flows."""
    mirrored = set()
    for module in modules:
        folder = ROOT.joinpath("tests", "unit", *module.split(".")[1:])
        mirrored.add(str((folder if folder.is_dir() else folder.parent).relative_to(ROOT)))
    return [*sorted(mirrored), *(folder for folder in _BOTH if (ROOT / folder).is_dir())]


def main() -> int:
    """Exit code: 0 if every branch is taken by a test that passed."""
    os.chdir(ROOT)
    modules = pure_modules()
    coverage = [sys.executable, "-m", "coverage"]
    pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not search"]
    pytest.append(f"--ignore-glob={_SEARCHES}")
    run = [*coverage, "run", "--branch", f"--source={','.join(modules)}", *pytest]
    tests = subprocess.run([*run, *mirrors_of(modules), *sys.argv[1:]], check=False)
    report = subprocess.run([*coverage, "report"], check=False)
    return tests.returncode or report.returncode


if __name__ == "__main__":
    sys.exit(main())
