"""scripts/mutants: which mutants there are of a source, and what becomes of one."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mutants_main
import pytest
from coverage import CoverageData
from mutation.mutants import Mutant, mutants_of
from mutation.recording import ROOT, Recorded
from mutation.results import Module, Result, Verdict, survivors, table
from mutation.run import affordable, stages, verdict_of
from mutation.swap import Functions
from mutation.trial import Chosen, Outcome


def _changes(source: str) -> list[str]:
    """``old → new`` of each mutant."""
    return [str(mutant).partition(": ")[2] for mutant in mutants_of(source)]


def _in_function(statement: str) -> list[str]:
    return _changes(f"def f(a, b):\n    {statement}\n")


@pytest.mark.parametrize(
    ("statement", "changes"),
    [
        ("x = a < b", ["a < b → (a <= b)", "a < b → (a >= b)"]),
        ("x = a >= b", ["a >= b → (a < b)", "a >= b → (a > b)"]),
        ("x = a == b", ["a == b → (a != b)"]),
        ("x = a is b", ["a is b → (a is not b)"]),
        ("x = a not in b", ["a not in b → (a in b)"]),
        ("x = not a", ["not a → (a)"]),
        ("x = a and b", ["a and b → (a or b)", "a and b → (a)", "a and b → (b)"]),
        ("x = a + b", ["a + b → (a - b)"]),
        ("x = a // b", ["a // b → (a * b)"]),
        ("x = 'a' + b", []),
        ("x = 7", ["7 → 8"]),
        ("x = True", ["True → False"]),
        ("x = a if b else 'c'", ["b → (not (b))"]),
        ("x = a(b, c=b)", ["c=b → **{}"]),
        ("x = [i for i in a if i]", ["i → True"]),
        ("a(b)", ["a(b) → pass"]),
        ("a.b = b", ["a.b = b → pass"]),
        ("a[b] = b", ["a[b] = b → pass"]),
        ("a += b", ["a += b → a -= b", "a += b → pass"]),
        ("raise a(b, 1)", ["raise a(b, 1) → pass"]),
        ("return a", ["a → None"]),
        ("return None", []),
        ("yield a", ["yield a → yield from ()"]),
        ("del a[b]", ["del a[b] → pass"]),
        ("if a: x = b", ["a → False", "a → True"]),
        ("while a: break", ["a → False", "break → continue"]),
    ],
)
def test_a_statement_has_these_mutants(statement: str, changes: list[str]) -> None:
    """Boundary and opposite of each comparison; removals; what is always or never so."""
    assert sorted(_in_function(statement)) == sorted(changes)


def test_a_whole_condition_is_changed_at_its_boundary_and_to_constants() -> None:
    """A test that notices that it is always, and never, true also notices its opposite."""
    assert sorted(_in_function("if a < b: x = a")) == [
        "a < b → (a <= b)",
        "a < b → False",
        "a < b → True",
    ]


@pytest.mark.parametrize(
    "source",
    [
        '"""True."""',
        "def f() -> dict[str, 1]: '''1'''",
        "import a",
        "x: tuple[int, 1]",
        "Event = Begun | Ended | Lost",
        "@a(1)\ndef f(): '''Text.'''",
        "def f(a):\n    x = f'{a + 1}'",
        "def f(a):\n    log.info('%s', a + 1)",
        "def f(a):\n    _LOG.info('%s', a + 1)",
        "if TYPE_CHECKING:\n    x = 1",
        "if __name__ == '__main__':\n    f(1)",
    ],
)
def test_text_types_and_logs_have_none(source: str) -> None:
    """What a person reads, or a type checker, is no rule of the product."""
    assert _changes(source) == []


def test_a_mutant_is_applied_where_it_was_found() -> None:
    """Letters of more than one byte before it on its line do not shift it."""
    source = 'def f(a):\n    return "größe", a < 1\n'
    found = [m for m in mutants_of(source) if m.new == "(a <= 1)"]
    assert [m.applied(source) for m in found] == ['def f(a):\n    return "größe", (a <= 1)\n']
    assert [(m.line, m.first, m.last) for m in found] == [(2, 2, 2)]


def test_every_mutant_of_a_real_module_compiles_and_differs() -> None:
    """None is counted that no test could be run on, or that is no change."""
    source = (ROOT / "container" / "progress" / "store_meta.py").read_text(encoding="utf-8")
    found = mutants_of(source)
    assert len({mutant.key for mutant in found}) == len(found) > 50
    unchanged = ast.dump(ast.parse(source))
    for mutant in found:
        assert ast.dump(ast.parse(mutant.applied(source))) != unchanged, str(mutant)


def test_a_mutant_of_a_condition_is_noticed_by_tests_that_run_its_line() -> None:
    """Not by those alone that run its block: the lines are those of the statement's head."""
    source = "def f(a):\n    if (\n        a\n    ):\n        x = 1\n"
    found = {str(m): (m.first, m.last) for m in mutants_of(source)}
    assert found == {"3: a → False": (2, 4), "3: a → True": (2, 4), "5: 1 → 2": (5, 5)}


@pytest.mark.parametrize(
    ("outcome", "verdict"),
    [
        (Outcome(("t::a", "t::b"), 1), Result(Verdict.KILLED, "t::a")),
        (Outcome((), 0, "pytest ended with 5"), Result(Verdict.KILLED, "pytest ended with 5")),
        (None, Result(Verdict.KILLED, "it crashed")),
        (Outcome((), 3), Result(Verdict.SURVIVED)),
    ],
)
def test_a_verdict_says_what_noticed_the_mutant(outcome: Outcome | None, verdict: Result) -> None:
    """A failed test, an import that fails, a process that ends without a word; or nothing."""
    assert verdict_of(outcome) == verdict


def _module(folder: Path, source: str = "def f(a):\n    return a < 1\n") -> Module:
    path = folder / "some.py"
    path.write_text(source, encoding="utf-8")
    return Module.read(path, folder)


def test_the_nearest_tests_are_run_first_and_the_world_last(tmp_path: Path) -> None:
    """Each run imports the files of its tests, so the costly ones wait for the others' verdict."""
    own, other = "tests/unit/x/test_some.py::a", "tests/unit/x/test_other.py::a"
    world = "tests/unit/world/test_rules.py::a"
    module = _module(tmp_path)
    assert stages(module, [other, world, own]) == [[own], [other], [world]]
    assert stages(module, [world]) == [[world]]


def test_no_more_tests_are_run_than_the_time_allows() -> None:
    """The quickest come first; one is run however long it takes."""
    seconds = {"a": 1.0, "b": 2.0, "c": 4.0}
    assert affordable(["a", "b", "c"], seconds, 7) == ["a", "b", "c"]
    assert affordable(["a", "b", "c"], seconds, 6) == ["a", "b"]
    assert affordable(["c"], seconds, 1) == ["c"]
    assert affordable([], seconds, 1) == []


@dataclass
class Collected:
    """A test that pytest has collected."""

    nodeid: str


def test_a_test_that_has_got_another_name_runs_with_its_like() -> None:
    """A value that a mutant has changed is part of a name: the test would be left out."""
    chosen = Chosen(["t::b[x]", "t::a"], known={"t::a", "t::b[x]", "t::b[y]", "t::c[x]"})
    names = ("t::a", "t::b[y]", "t::b[None]", "t::b[x]", "t::c[None]", "t::d")
    items: list[Any] = [Collected(name) for name in names]
    chosen.pytest_collection_modifyitems(items)
    assert [item.nodeid for item in items] == ["t::b[None]", "t::b[x]", "t::a"]


def test_results_are_good_for_the_module_as_it_was(tmp_path: Path) -> None:
    """What was tried is not tried again; of a module that has changed all is forgotten."""
    module = _module(tmp_path)
    first, *others = module.mutants
    module.results[first.key] = Result(Verdict.SURVIVED)
    module.keep(tmp_path)
    again = _module(tmp_path)
    assert again.untried() == others
    assert again.left() == [first]
    changed = _module(tmp_path, "def f(a):\n    return a <= 1\n")
    assert changed.untried() == list(changed.mutants)


def test_the_table_has_a_row_per_module_and_the_sums(tmp_path: Path) -> None:
    """Survivors are listed with their place and both texts."""
    module = _module(tmp_path)
    verdicts = (Verdict.KILLED, Verdict.SURVIVED, Verdict.UNCOVERED)
    for mutant, verdict in zip(module.mutants, verdicts, strict=False):
        module.results[mutant.key] = Result(verdict)
    assert len(module.mutants) == 4
    assert table([module])[2:] == [
        "| some.py | 4 | 1 | 1 | 0 | 1 | 1 |",
        "| all | 4 | 1 | 1 | 0 | 1 | 1 |",
    ]
    assert survivors([module]) == [
        "some.py:2: a < 1 → (a >= 1) (survived)",
        "some.py:2: a < 1 → None (no coverage)",
    ]


def test_a_sample_is_drawn_by_its_seed(tmp_path: Path) -> None:
    """The same seed draws the same mutants, in the order of the tree."""
    module = _module(tmp_path, "def f(a):\n" + "    a(1)\n" * 20)

    def drawn(seed: int) -> list[Mutant]:
        work = mutants_main.chosen([module], again=False, sample=5, seed=seed)
        return [mutant for _, mutant in work]

    assert drawn(1) == drawn(1) == sorted(drawn(1))
    assert len(drawn(1)) == 5
    assert drawn(1) != drawn(2)


def test_only_modules_of_ours_are_taken() -> None:
    """A folder means all modules below it that hold anything; a test is none."""
    found = mutants_main.modules_of(["container/progress/pace.py", "container/progress"])
    assert found[0] == ROOT / "container" / "progress" / "pace.py"
    assert len(found) == len(set(found)) > 10
    assert not any(path.name == "__init__.py" for path in found)
    with pytest.raises(SystemExit, match=r"error: tests/unit: it is no module and no folder of"):
        mutants_main.modules_of(["tests/unit"])


RULE = "def is_over(now, end):\n    while now < 0:\n        now += 1\n    return now >= end\n"
TESTS = """
from rule import is_over


def test_the_rule():
    assert is_over(2, 1)
    assert not is_over(0, 1)
    assert is_over(-1, 0)
"""
TRY_ALL = """
import sys
from pathlib import Path
from mutation import recording, results, run

folder = Path(sys.argv[1])
run.ROOT = results.ROOT = folder
run._LEAST_S = 10.0
run._TIMES = 0.0
results.Module.name = "rule"
results.Module.keep.__defaults__ = (folder,)
recording.Recorded.of_lines = lambda self, *_: list(self.seconds)
recorded = recording.Recorded({"test_rule.py::test_the_rule": 0.01}, None)
module = results.Module.read(folder / "rule.py", folder)
work = [(module, mutant) for mutant in module.untried()]
runner = run.Runner(recorded, 3, 15)
runner.require_sound(work)
runner.try_all(work)
assert not runner._forks
"""


@pytest.mark.search
def test_mutants_are_tried_in_forks(tmp_path: Path) -> None:
    """Noticed, not noticed, or endless: the verdict of each is kept, and no file is changed.

    The module is imported by the conftest: pytest calls a failure there a wrong option.
    """
    (tmp_path / "rule.py").write_text(RULE, encoding="utf-8")
    (tmp_path / "test_rule.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "conftest.py").write_text("import rule\n", encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    path = os.pathsep.join([str(ROOT / "scripts"), str(tmp_path)])
    done = subprocess.run(
        [sys.executable, "-c", TRY_ALL, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "9 of 9 mutants, 1 not noticed" in done.stdout
    assert (tmp_path / "rule.py").read_text(encoding="utf-8") == RULE
    module = Module.read(tmp_path / "rule.py", tmp_path)
    verdicts = {str(m): str(module.results[m.key].verdict) for m in module.mutants}
    assert {name: verdict for name, verdict in verdicts.items() if verdict != "killed"} == {
        "3: 1 → 2": "survived",
        "3: now += 1 → now -= 1": "timed out",
        "3: now += 1 → pass": "timed out",
    }
    assert module.results[module.mutants[-1].key].by == "test_rule.py::test_the_rule"


def test_a_line_run_at_the_import_is_run_for_all_tests_of_its_module(tmp_path: Path) -> None:
    """Others have the tests that ran them, those that passed, the quickest first."""
    path = tmp_path / "some.py"
    lines = {str(path): {1: ["", "t::slow"], 2: ["t::slow", "t::quick"], 3: ["t::failed"]}}

    class Measured(CoverageData):
        def measured_files(self) -> set[str]:
            return set(lines)

        def contexts_by_lineno(self, filename: str) -> dict[int, list[str]]:
            return lines[filename]

    recorded = Recorded({"t::slow": 2.0, "t::quick": 1.0, "t::other": 0.5}, Measured())
    assert recorded.of_lines(path, 1, 1) == ["t::quick", "t::slow"]
    assert recorded.of_lines(path, 2, 2) == ["t::quick", "t::slow"]
    assert recorded.of_lines(path, 3, 3) == []
    assert recorded.of_lines(tmp_path / "other.py", 1, 1) == []


SWAPPED = """
import functools

LIMIT = 3


def doubled(call):
    @functools.wraps(call)
    def work(*values):
        return call(*values) * 2

    return work


@doubled
def wrapped(value):
    return value - 1


class Rule:
    @property
    def limit(self):
        return LIMIT + 1

    def all_of(self, count=1):
        return [number + 1 for number in range(count)]
"""


@pytest.mark.parametrize(
    ("old", "new", "is_taken", "result"),
    [
        ("value - 1", "value + 1", True, (12, 4, [1])),
        ("* 2", "* 3", True, (12, 4, [1])),
        ("LIMIT + 1", "LIMIT - 1", True, (8, 2, [1])),
        ("number + 1", "number - 1", True, (8, 4, [-1])),
        ("LIMIT = 3", "LIMIT = 4", False, (8, 4, [1])),
        ("count=1", "count=2", False, (8, 4, [1])),
    ],
    ids=["wrapped", "wrapper", "property", "within", "constant", "default"],
)
def test_a_function_gets_other_code_without_an_import(
    tmp_path: Path, old: str, new: str, result: tuple[object, ...], *, is_taken: bool
) -> None:
    """Also where it is wrapped; what runs at the import alone stays, and ``take`` returns False."""
    path = tmp_path / "swapped.py"
    path.write_text(SWAPPED, encoding="utf-8")
    names: dict[str, Any] = {"__name__": "swapped"}
    exec(compile(SWAPPED, str(path), "exec"), names)  # noqa: S102 - the test's own text
    assert Functions(str(path), SWAPPED).take(SWAPPED.replace(old, new)) is is_taken
    rule = names["Rule"]()
    assert (names["wrapped"](5), rule.limit, rule.all_of()) == result
