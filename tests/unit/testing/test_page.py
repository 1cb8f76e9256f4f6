"""docs/testing.md: what its examples say is so."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "testing.md"


def test_the_examples_of_the_page_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """The job below them, and each test of the page, as they stand there.

    Faults need a cluster: ``test_users_chaos.py`` has them.
    """
    first, crash, job, _faults = re.findall(
        r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL
    )
    module = types.ModuleType("page_of_testing")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for code in (job, first, crash):
        exec(compile(code, PAGE.name, "exec"), module.__dict__)  # noqa: S102 - the page's own
    tests = [found for name, found in vars(module).items() if name.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        test()
