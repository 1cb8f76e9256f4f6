"""README.md and docs/python-jobs.md: their jobs and the test of these, as they are printed."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest

from homeport.testing import TestRunner

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "python-jobs.md"


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
