"""README.md and docs/python-*.md: their jobs and the test of these, as they are printed."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from homeport.testing import TestRunner

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "python-jobs.md"
PARTS = ROOT / "docs" / "python-parts.md"


def _blocks(page: Path = PAGE, language: str = "python") -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )


def _loaded(name: str, code: str, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    exec(compile(code, f"{name}.py", "exec"), module.__dict__)  # noqa: S102 - the page's own
    return module


@pytest.mark.parametrize("page", [ROOT / "README.md", PAGE], ids=lambda page: page.name)
def test_the_job_of_a_page_passes_the_test_of_the_page(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is added to either; it is the first code that a reader sees."""
    job = _blocks(page, "[a-z]*")[0]
    _loaded("daily_totals", job, monkeypatch)
    names: dict[str, object] = {}
    exec(compile(_blocks()[1], "test_daily_totals.py", "exec"), names)  # noqa: S102 - the page's
    run = names["test_totals"]
    assert callable(run)
    run()


def test_the_comparison_counts_the_lines_of_its_code() -> None:
    """Each the same way; and its job is the one of the front page."""
    text = (ROOT / "docs" / "comparison.md").read_text("utf-8")
    code = re.findall(r"^## (.+?)\n\n```[a-z]+\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    lines = {name: len([ln for ln in block.splitlines() if ln]) for name, block in code}
    table = re.findall(r"^\| ([A-Z][A-Za-z ]+?)(?: [0-9.]+)? \| (\d+) \|", text, re.MULTILINE)
    assert lines == {name: int(count) for name, count in table}
    assert len(lines) == 5
    functions = [block[block.index("@job") :] for block in (code[0][1], _blocks()[0])]
    assert functions[0] == functions[1]


def test_values_of_a_class_are_its_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing field has its default; what is no order is dropped where bad records are."""
    module = _loaded("orders_by_currency", _blocks()[2], monkeypatch)
    drop = {"task.drop.deserialization.errors": "true"}
    with TestRunner(module.job, overrides=drop) as runner:
        runner.send("orders", key="ann", value=module.Order(5.0))
        runner.send("orders", key="ann", value=module.Order(2.5, "USD"))
        runner.send_bytes("orders", key=b"ann", value=b'{"amount":"much"}')
        runner.send_bytes("orders", key=b"ann", value=b'{"amount":1.5}')
        runner.run()
        assert dict(runner.store("sums").all()) == {"EUR": 6.5, "USD": 2.5}


def test_the_brokers_of_the_page_are_reached_by_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """The secret comes from the environment."""
    module = _loaded("reached", _blocks()[3], monkeypatch)
    monkeypatch.setenv("KAFKA_PASSWORD", "not in the file")
    at = "systems.kafka.consumer."
    config = module.job.config
    assert config[f"{at}security.protocol"] == "SASL_SSL"
    assert 'password="not in the file"' in config[f"{at}sasl.jaas.config"]


def _part(number: int, monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401 - a module
    return _loaded(f"part_{number}", _blocks(PARTS)[number], monkeypatch)


def test_several_inputs_and_bad_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers and times go on, and what is no JSON goes to the dead letters."""
    with TestRunner(_part(0, monkeypatch).job) as runner:
        runner.send("orders", key="ann", value={"amount": 5}, headers={"a": b"b"}, timestamp=7)
        runner.send("refunds", key="ann", value={"amount": 2})
        runner.send_bytes("orders", key=b"ann", value=b"no JSON")
        runner.run()
        (sent,) = runner.output("balances")
        assert (sent.value, sent.headers, sent.timestamp) == (-5.0, {"a": b"b"}, 7)
        assert runner.store("balance").get("ann") == -3.0
        assert len(runner.output("bad-orders")) == 1


def test_values_with_a_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    """Avro in, JSON with a schema in the store."""
    with TestRunner(_part(1, monkeypatch).job) as runner:
        for delay in (5, 7):
            runner.send("flights", value={"tail": "N1", "delay": delay})
        runner.run()
        assert runner.store("delays").get("N1") == {"total": 12, "flights": 2}


def test_reference_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of it, and all of it."""
    with TestRunner(_part(2, monkeypatch).job) as runner:
        runner.send("planes", key="N1", value="737")
        runner.send("airlines", key="UA", value={"name": "United"})
        for tail in ("N1", "N2"):
            runner.send("flights", key=tail, value={"carrier": "UA"})
        runner.run()
        assert [record.value for record in runner.output("models")] == [
            {"model": "737", "airline": "United"},
            {"model": "unknown", "airline": "United"},
        ]


def test_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """One closes, and one record comes too late."""
    with TestRunner(_part(3, monkeypatch).job) as runner:
        for time in (1, 59_999, 65_000, 3):
            runner.send("flights", key="N1", value={"miles": 2}, timestamp=time)
        runner.run()
        assert runner.output("miles")[0].value == {"from": 0, "miles": 4}
        assert runner.output("lost")[0].value == {"at": 3, "miles": 2}


def test_a_pipeline_is_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """An integration test runs it in Spark."""
    config = _part(4, monkeypatch).job.config
    assert config["task.pipeline.class"] == config["task.class"] == "part_4:job"


def test_a_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process uses the store."""
    with TestRunner(_part(5, monkeypatch).job) as runner:
        for amount in (1, 2):
            runner.send("orders", key="ann", value={"amount": amount})
        runner.run()
        assert runner.store("total").get("ann") == 3.0
