"""docs/python-jobs.md: its job and its test, as they are printed."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "python-jobs.md"


def test_the_job_of_the_page_passes_the_test_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is added to either."""
    job, test = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    module = types.ModuleType("daily_totals")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(job, "daily_totals.py", "exec"), module.__dict__)  # noqa: S102 - the page's own
    names: dict[str, object] = {}
    exec(compile(test, "test_daily_totals.py", "exec"), names)  # noqa: S102 - as above
    run = names["test_totals"]
    assert callable(run)
    run()
