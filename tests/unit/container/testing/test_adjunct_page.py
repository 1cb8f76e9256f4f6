"""docs/adjunct-stores.md: what its examples say is so."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest

from homeport.container.testing import Record, TestRunner

PAGE = Path(__file__).parents[4] / "docs" / "adjunct-stores.md"
_EXTRACTOR = "stores.planes.adstore.key.value.extractor.factory"


def test_the_join_of_the_page_joins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Task and keys as they stand there; then with the class that keeps a part of each record."""
    text = PAGE.read_text("utf-8")
    join, extractor = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (properties,) = re.findall(r"```properties\n(.*?)```", text, re.DOTALL)
    module = types.ModuleType("my_job")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for code in (join, extractor):
        exec(compile(code, PAGE.name, "exec"), module.__dict__)  # noqa: S102 - the page's own
    (named,) = re.findall(rf"`{re.escape(_EXTRACTOR)}=(.*?)`", text)
    file = tmp_path / "job.properties"
    file.write_text(properties + "task.class=my_job:Flights\n", encoding="utf-8")
    serdes = {
        f"systems.kafka.streams.planes.samza.{part}.serde": "string" for part in ("key", "msg")
    }
    for overrides, model in (({}, b"737-800"), ({**serdes, _EXTRACTOR: named}, b"737-")):
        with TestRunner(file, overrides=overrides) as runner:
            runner.send_bytes("kafka.planes", key=b"N1", value=b"737-800")
            runner.send("kafka.flights", key=b"N1", value=b"")
            runner.send("kafka.flights", key=b"N2", value=b"")
            runner.run()
            expected = [Record(b"N1", model), Record(b"N2", b"unknown")]
            assert runner.output("kafka.flight-models") == expected
