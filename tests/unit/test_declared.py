"""What setup.cfg declares is what the code imports: no distribution too few, and none too many."""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Collection, Iterable, Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

from installations import EXTRAS, closure, declared
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from local_setup.environment import pins

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("appmaster", "config", "container", "homeport", "job_coordinator", "local_cluster")
EXTRA_OF = {
    "container/reporting/otlp_traces.py": "traces",
    "container/serde/avro_serde.py": "avro",
    "container/serde/protobuf_serde.py": "protobuf",
    "container/serde/protobuf_values.py": "protobuf",
    "container/serde/registry_serde.py": "schema-registry",
    "homeport/testing/fixture.py": "testing",
}
"""The modules that need an extra. All of them can be imported without it."""
TOOLS = ("scripts", "tests", "examples")
COMPARED = frozenset({"bytewax", "faust", "pyflink", "quixstreams"})
"""What benchmarks compare with, each in an environment and with pins of its own (``quix.txt``).

Quix Streams holds confluent-kafka below the version that is pinned here.
"""
_ELSE = ("orelse",)
_PARTS = ("body", *_ELSE, "finalbody", "handlers", "cases")
"""Of statements: what holds other statements."""
BUILDERS = {"pip", "setuptools", "wheel"}
PYSPARK_ASKS_FOR = {"pandas"}
"""pyspark names it in its extra ``sql`` only, and refuses Arrow tables where it is missing."""


def _names(requirements: Iterable[str]) -> set[str]:
    """The distributions that ``requirements`` ask for, in the form in which names compare."""
    return {canonicalize_name(Requirement(line).name) for line in requirements}


def _imports(module: ast.Module) -> Iterator[str]:
    """The top-level modules that running the module's code imports, at any time."""
    # A list, and the parts of statements alone: an expression imports nothing, and is most of it.
    found: list[ast.AST] = [module]
    while found:
        node = found.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
        test = getattr(node, "test", None)
        only_types = isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"
        for part in _ELSE if only_types else _PARTS:
            found += getattr(node, part, ())


def _imported(file: Path, ours: Collection[str] = ("homeport",)) -> set[str]:
    modules = set(_imports(ast.parse(file.read_text(encoding="utf-8"), filename=str(file))))
    foreign = modules - sys.stdlib_module_names - set(ours)
    return {
        canonicalize_name(distribution)
        for module in foreign
        for distribution in _distributions().get(module, [module])
    }


@functools.cache
def _distributions() -> dict[str, list[str]]:
    """{module: the installed distributions that have it}; each installed file is looked at once."""
    # These are namespaces of several distributions: what is imported of them are these.
    telemetry = ["opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"]
    named = {"google": ["protobuf"], "opentelemetry": telemetry}
    return {**packages_distributions(), **named}


@functools.cache
def _imported_by_product() -> dict[str | None, set[str]]:
    """{extra, None for the plain installation: what the modules that belong to it import}."""
    found: dict[str | None, set[str]] = {}
    for folder in PRODUCT:
        for file in sorted((ROOT / folder).rglob("*.py")):
            extra = EXTRA_OF.get(str(file.relative_to(ROOT)))
            found.setdefault(extra, set()).update(_imported(file))
    return found


def test_a_plain_installation_has_what_the_product_imports_and_no_more() -> None:
    """install_requires is what the modules import, beside what pyspark asks for at run time."""
    imported = _imported_by_product()[None]
    assert _names(declared()) == imported | PYSPARK_ASKS_FOR


def test_the_requirements_of_pyspark_are_unchanged() -> None:
    """Each distribution that is declared for pyspark alone is in pyspark's extra ``sql``."""
    assert closure(["pyspark[sql]"]) >= PYSPARK_ASKS_FOR
    assert not closure(["pyspark"]) & PYSPARK_ASKS_FOR


def test_an_extra_has_what_its_modules_import_and_no_more() -> None:
    """The extra of each optional module declares exactly what that module needs beyond the rest."""
    imported = dict(_imported_by_product())
    plain = imported.pop(None)
    for extra, names in imported.items():
        asked = [Requirement(line) for line in declared(str(extra))]
        # An extra of what is there anyway brings packages that are not imported here.
        assert {r.name for r in asked if r.extras} <= names
        assert _names(str(r) for r in asked if not r.extras) == names - plain
    assert set(imported) == set(EXTRA_OF.values())


def test_the_tools_have_what_they_import() -> None:
    """Scripts, tests and examples import nothing that neither setup.cfg nor an extra declares."""
    everything = COMPARED.union(_names(declared()), *(_names(declared(e)) for e in EXTRAS))
    files = [file for folder in TOOLS for file in (ROOT / folder).rglob("*.py")]
    ours = {"homeport", "tests"}.union(*({file.stem, file.parent.name} for file in files))
    wanted = set().union(*(_imported(file, ours) for file in files))
    assert wanted - everything == set()


def test_what_benchmarks_compare_with_is_pinned() -> None:
    """Each line of its pins has one version."""
    folder = ROOT / "scripts" / "benchmarks" / "throughput"
    pinned = []
    for peer in ("quix", "faust", "bytewax"):
        lines = (folder / f"{peer}.txt").read_text(encoding="utf-8").splitlines()
        pinned += [line for line in lines if not line.startswith("#")]
    assert all("==" in line for line in pinned)
    assert _names(pinned) >= {"bytewax", "faust-streaming", "quixstreams"}


def test_every_pin_is_needed() -> None:
    """scripts/constraints.txt is what homeport and its extras need, and what builds them."""
    wanted = closure([*declared(), *(line for extra in EXTRAS for line in declared(extra))])
    assert _names(pins()) == wanted | BUILDERS
