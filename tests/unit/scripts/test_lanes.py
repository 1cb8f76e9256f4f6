"""Several pytests side by side: what is told of them together."""

from __future__ import annotations

import os
import sys

import pytest
from lanes import Lane, run_side_by_side


def said(*lines: str, code: int = 0) -> list[str]:
    """A program that prints these lines and ends with this code."""
    return [sys.executable, "-c", f"print({chr(10).join(lines)!r}); raise SystemExit({code})"]


def told(capfd: pytest.CaptureFixture[str], *commands: list[str]) -> tuple[int, list[str]]:
    """The exit code, and all that is printed."""
    lanes = [Lane(str(number), command) for number, command in enumerate(commands)]
    code = run_side_by_side(lanes, os.environ)
    return code, capfd.readouterr().out.splitlines()


def test_the_last_line_counts_all_of_them(capfd: pytest.CaptureFixture[str]) -> None:
    """What each leaves to the other is not called deselected; everything else is added up."""
    code, lines = told(
        capfd,
        said("a", "=== 1 failed, 9 passed, 102 deselected in 5.00s (0:00:05) ===", code=1),
        said("b", "=== 99 passed, 1 skipped, 12 deselected, 1 warning in 7.00s ==="),
    )
    assert code == 1
    assert lines[:2] == ["----- lane 0 -----", "a"]
    assert lines[3:5] == ["----- lane 1 -----", "b"]
    assert " 1 failed, 108 passed, 1 skipped, 2 deselected, 1 warning in " in lines[-1]


def test_an_empty_selection_of_one_is_none(capfd: pytest.CaptureFixture[str]) -> None:
    """Only where no lane had a test nothing was tested."""
    nothing = said("=== no tests ran in 0.01s ===", code=5)
    assert told(capfd, nothing, said("=== 3 passed in 0.10s ==="))[0] == 0
    code, lines = told(capfd, nothing, nothing)
    assert (code, "no tests ran in" in lines[-1]) == (5, True)


def test_one_that_never_came_to_an_end_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    """Its code is the run's, and the last line does not count the others as if they were all."""
    code, lines = told(capfd, said("=== 3 passed in 0.10s ==="), said("killed", code=9))
    assert code == 9
    assert lines[-2] == "lane 1 ended with code 9 before pytest"
    assert "no tests ran in" in lines[-1]
