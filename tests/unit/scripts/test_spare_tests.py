"""scripts/mutants --spare-tests: which tests stay, and what is deleted with the others."""

from __future__ import annotations

from pathlib import Path

import pytest
from mutation.mutants import mutants_of
from mutation.sparing import may_go, named_in, needs_of, selected, spans_of, unused, without

_A, _B, _C = 1, 2, 4
_SOURCE = (
    "def f(a):\n    if a:\n        x = 1\n    if a:\n        x = 2\n\ndef g(a):\n    return a\n"
)


def _test(name: str, body: str = "assert f()") -> str:
    return f"def {name}() -> None:\n    {body}\n"


@pytest.mark.parametrize(
    ("needs", "lines", "kept"),
    [
        ({_A | _B, _B | _C}, [5, 5, 5], _B),
        ({_A | _B}, [9, 4, 9], _B),
        ({_A, _A | _B}, [9, 1, 1], _A),
        (set(), [5, 5, 5], 0),
    ],
    ids=["one of both", "the shorter", "the only one", "nothing to meet"],
)
def test_few_and_short_tests_meet_each_need(needs: set[int], lines: list[int], kept: int) -> None:
    """One test of each set stays."""
    assert selected(needs, lines) == kept


def test_a_test_goes_whose_needs_later_ones_meet() -> None:
    """The first choice, of most needs, is not needed beside those chosen after it."""
    a, b, c = 1, 2, 4
    needs = {a | b, a | b | 8, a | c, a | c | 16, b, c}
    assert selected(needs, [2, 2, 2, 2, 2]) == b | c


def test_two_branches_of_one_function_need_a_test_that_takes_both() -> None:
    """Branches of two functions need none."""
    spans = {"m.py": spans_of(_SOURCE)}
    takers = {("m.py", 2, 3): _A | _B, ("m.py", 4, 5): _B | _C, ("m.py", -7, 8): _A | _C}
    assert needs_of(takers, spans) == {_A | _B, _B | _C, _B, _A | _C}


@pytest.mark.parametrize(
    "held",
    [
        _test("test_x", '"""Without it, two own it (safety K1)."""'),
        _test("test_x", "with pytest.raises(ValueError): f()"),
        _test("test_x", "assert is_refused(f())"),
        _test("test_every_letter_is_read"),
        '@pytest.mark.parametrize("a", [1, 2])\n' + _test("test_x"),
        "class TestX:\n    def test_x(self) -> None: ...\n",
        _test("test_named"),
        _test("helper"),
    ],
)
def test_a_test_that_is_more_than_its_proof_stays(held: str) -> None:
    """Rules, refusals, enumerations, tables, methods, and what a page names."""
    named = named_in('shown_by = "tests/unit/test_f.py::test_named" # of test_x.py')
    assert may_go(f"{held}\n{_test('test_y')}", named) == {"test_y": 2}


def test_text_is_changed_where_it_is_asked_for() -> None:
    """A test may notice words alone; docstrings, logs and errors are left."""
    source = (
        'def f(a: "int"):\n    """Text."""\n    log.info("a")\n    if a:\n        raise E("b")\n'
    )
    source += '    return {"c": f"d{a}"}\n'
    changed = {m.old for m in mutants_of(source, with_text=True) if m.new == '"XX"'}
    assert changed == {'"c"', 'f"d{a}"'}


def test_a_test_is_deleted_with_its_decorators_and_comments() -> None:
    """What stands around it is as it was."""
    source = f"X = 1\n\n# Of y.\n@mark\n{_test('test_y')}\n{_test('test_z')}"
    assert without(source, {"test_y"}) == f"X = 1\n\n\n{_test('test_z')}"


def test_a_constant_is_deleted_with_its_docstring() -> None:
    """The text would explain the statement before it."""
    assert without('A = 1\nB = 2\n"""Of B."""\nC = 3\n', {"B"}) == "A = 1\nC = 3\n"


def test_a_helper_without_a_user_is_found_in_its_file() -> None:
    """Fixtures by the name that tests ask for; none that pytest runs by itself."""
    fixture = '@pytest.fixture(name="{0}"{1})\ndef _{0}() -> int:\n    return 1\n'
    helpers = [
        fixture.format("used", ""),
        fixture.format("idle", ', scope="module"'),
        fixture.format("always", ", autouse=True"),
        "@register\ndef registered() -> None:\n    pass\n",
        "def recursive() -> int:\n    return recursive()\n",
        '@pytest.fixture(name=name_of("x"))\ndef _computed() -> int:\n    return 1\n',
        "_IDLE = 1\n",
        "def shared() -> int:\n    return 1\n",
    ]
    sources = {
        Path("a.py"): "".join([*helpers, "def test_a(used: int) -> None:\n    assert used\n"]),
        Path("b.py"): "from a import shared\n",
    }
    assert unused(sources) == {Path("a.py"): {"_idle", "idle", "recursive", "_IDLE"}}
