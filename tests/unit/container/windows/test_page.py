"""docs/windows.md: its tasks do what the page says."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from homeport.testing import Record, TestRunner

PAGE = Path(__file__).parents[4] / "docs" / "windows.md"
BASE = {
    "task.inputs": "kafka.in",
    "systems.kafka.samza.key.serde": "string",
    "systems.kafka.samza.msg.serde": "json",
}


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401 - the page's own names
    """A module of all examples."""
    module = types.ModuleType("page_of_windows")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for code in re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL):
        exec(compile(code, PAGE.name, "exec"), module.__dict__)  # noqa: S102 - the page's own
    return module


def _store(name: str) -> dict[str, str]:
    return {
        f"stores.{name}.factory": "in-memory",
        f"stores.{name}.changelog": f"kafka.{name}-changelog",
        f"stores.{name}.key.serde": "string",
        f"stores.{name}.msg.serde": "long",
    }


def test_a_quiet_key_is_said_after_its_minute(tasks: Any) -> None:  # noqa: ANN401 - as above
    """With the keys of the page for timers that stay."""
    (keys,) = re.findall(r"```\n(task\.timers.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    stays = dict(line.split("=", 1) for line in keys.splitlines())
    with TestRunner({**BASE, **_store("counts"), **stays}, task=tasks.Quiet) as runner:
        runner.send("kafka.in", key="a", value=1)
        runner.run()
        runner.advance(50_000)
        runner.send("kafka.in", key="a", value=1)
        runner.run()
        runner.restart()
        runner.advance(59_000)
        assert runner.output("kafka.quiet") == []
        runner.advance(3_000)
        assert runner.output("kafka.quiet") == [Record("a", 2)]


def test_minutes_close_and_late_records_go_elsewhere(tasks: Any) -> None:  # noqa: ANN401 - as above
    """Five seconds behind the newest record."""
    with TestRunner({**BASE, **_store("minutes")}, task=tasks.PerMinute) as runner:
        for at, miles in ((1_000, 5), (62_000, 7), (59_000, 2), (65_000, 1), (58_000, 9)):
            runner.send("kafka.in", key="a", value={"miles": miles}, timestamp=at)
        runner.run()
        assert runner.output("kafka.per-minute") == [Record("a", {"from": 0, "miles": 7})]
        assert runner.output("kafka.late") == [Record("a", {"miles": 9})]


def test_the_task_of_tables_can_be_made(tasks: Any) -> None:  # noqa: ANN401 - as above
    """Its columns come from a pipeline."""
    with TestRunner({**BASE, **_store("minutes")}, task=tasks.Batches) as runner:
        assert runner.run() == 0
