"""How findings are shown."""

from __future__ import annotations

from homeport.appmaster.doctor.finding import Check, exit_code, lines

GOOD = Check("a.b", "this").ok("fine")
BAD = Check("c.d", "that").error("broken", "mend it")
RISK = Check("e.f", "those").warning("thin", "thicken it")
DARK = Check("g.h", "these").unknown("not to be seen")


def test_the_gravest_comes_first_and_its_remedy_below_it() -> None:
    """Errors, warnings, what is unknown, what is in order; a remedy is indented."""
    assert list(lines([GOOD, DARK, RISK, BAD], shows_ok=True)) == [
        "error    c.d: that: broken",
        "         -> mend it",
        "warning  e.f: those: thin",
        "         -> thicken it",
        "unknown  g.h: these: not to be seen",
        "ok       a.b: this: fine",
        "1 error, 1 warning, 1 unknown, 1 ok",
    ]


def test_what_is_in_order_is_counted_alone() -> None:
    """Without `--all` it has no line of its own."""
    assert list(lines([GOOD, GOOD], shows_ok=False)) == ["2 ok"]
    assert list(lines([], shows_ok=False)) == ["no checks"]


def test_an_error_alone_makes_the_exit_code_1() -> None:
    """A warning leaves it at 0."""
    assert exit_code([GOOD, RISK, DARK]) == 0
    assert exit_code([GOOD, BAD]) == 1
