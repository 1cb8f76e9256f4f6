"""docs/adjunct-stores.md and docs/testing.md: what their examples say is so."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from homeport.testing import Record, TestRunner
from tests.unit.testing.counting_job import feed

PAGE = Path(__file__).parents[3] / "docs" / "adjunct-stores.md"
_EXTRACTOR = "stores.planes.adstore.key.value.extractor.factory"
_MANAGER = "adstore.manager.factory"


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> _Page:
    """What the page has; the classes of its examples are those of the module ``my_job``."""
    text = PAGE.read_text("utf-8")
    codes = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    properties, versions = re.findall(r"```properties\n(.*?)```", text, re.DOTALL)
    producing = [code for code in codes if "producer." in code]
    module = types.ModuleType("my_job")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for code in codes:
        if code not in producing:
            exec(compile(code, PAGE.name, "exec"), module.__dict__)  # noqa: S102 - the page's own
    file = tmp_path / "job.properties"
    file.write_text(properties + "task.class=my_job:Flights\n", encoding="utf-8")
    return _Page(text, file, versions, *producing)


class _Page(NamedTuple):
    """The page, the job of its beginning, and how versions are configured and written."""

    text: str
    job: Path
    versions: str
    producing: str

    def named(self, key: str) -> str:
        (found,) = re.findall(rf"`{re.escape(key)}=(.*?)`", self.text)
        name: str = found
        return name


def test_the_join_of_the_page_joins(page: _Page) -> None:
    """Task and keys as they stand there; then with the class that keeps a part of each record."""
    serdes = {
        f"systems.kafka.streams.planes.samza.{part}.serde": "string" for part in ("key", "msg")
    }
    extractor = {**serdes, _EXTRACTOR: page.named(_EXTRACTOR)}
    for overrides, model in (({}, b"737-800"), (extractor, b"737-")):
        with TestRunner(page.job, overrides=overrides) as runner:
            runner.send_bytes("kafka.planes", key=b"N1", value=b"737-800")
            runner.send("kafka.flights", key=b"N1", value=b"")
            feed(runner, "kafka.flights", key=b"N2", value=b"")
            expected = [Record(b"N1", model), Record(b"N2", b"unknown")]
            assert runner.output("kafka.flight-models") == expected


def test_the_versions_of_the_page_are_served_as_a_whole(page: _Page) -> None:
    """Keys and records as they stand there; a flight waits for the first version."""
    overrides = dict(line.split("=") for line in page.versions.split())
    with TestRunner(page.job, overrides=overrides) as runner:
        feed(runner, "kafka.flights", key=b"N1", value=b"")
        assert runner.output("kafka.flight-models") == []

        def produce(
            stream: str, key: str = "", value: str = "", headers: Mapping[str, str] | None = None
        ) -> None:
            sent = {name: text.encode() for name, text in (headers or {}).items()}
            place = f"kafka.{stream}"
            runner.send(place, key=key.encode(), value=value.encode(), headers=sent)

        producer = types.SimpleNamespace(produce=produce)
        exec(compile(page.producing, PAGE.name, "exec"), {"producer": producer})  # noqa: S102 - the page's own
        runner.run()
        assert runner.output("kafka.flight-models") == [Record(b"N1", b"737-800")]


def test_the_manager_of_the_page_puts_several_entries(page: _Page) -> None:
    """One for each tail of a record."""
    overrides = {
        "systems.kafka.streams.planes.samza.msg.serde": "json",
        _MANAGER: page.named(_MANAGER),
    }
    with TestRunner(page.job, overrides=overrides) as runner:
        value = {"tails": ["N1", "N2"], "model": "737-800"}
        runner.send("kafka.planes", key=b"fleet", value=value)
        for tail in (b"N1", b"N2", b"fleet"):
            runner.send("kafka.flights", key=tail, value=b"")
        runner.run()
        found = [record.value for record in runner.output("kafka.flight-models")]
        assert found == [b"737-800", b"737-800", b"unknown"]


_TESTING = Path(__file__).parents[3] / "docs" / "testing.md"


def test_the_examples_of_the_page_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """The job below them, and each test of the page, as they stand there.

    Faults need a cluster: ``test_users_chaos.py`` has them.
    """
    first, crash, job, _faults = re.findall(
        r"```python\n(.*?)```", _TESTING.read_text("utf-8"), re.DOTALL
    )
    module = types.ModuleType("page_of_testing")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for code in (job, first, crash):
        exec(compile(code, _TESTING.name, "exec"), module.__dict__)  # noqa: S102 - the page's own
    tests = [found for name, found in vars(module).items() if name.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        test()
