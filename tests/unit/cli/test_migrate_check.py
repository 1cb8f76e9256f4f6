"""``homeport migrate-check``: what it prints of a Samza job's file, and its exit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from json_answers import require_promised

from homeport.cli import main as homeport
from homeport.config.errors import HomeportError

JOB = """\
job.name=wiki
job.default.system=kafka
task.class=com.example.WikiTask
task.inputs=kafka.edits
systems.kafka.samza.factory=org.apache.samza.system.kafka.KafkaSystemFactory
systems.kafka.consumer.bootstrap.servers=localhost:9092
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    """The job's file."""
    file = tmp_path / "wiki.properties"
    file.write_text(JOB)
    return str(file)


def test_keys_are_printed_by_verdict(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Numbers first; groups without keys are left out."""
    homeport.run(["migrate-check", path])
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "5 changed, 5 taken"
    assert "Changed: it works differently here (5)" in shown
    assert "  job.name" in shown
    assert not any(line.startswith("Refused") for line in shown)


def test_a_refused_key_is_an_error_after_the_answer(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """As JSON too, so that a script has both."""
    with pytest.raises(HomeportError, match=r"would refuse job\.elasticity\.factor"):
        homeport.run(["migrate-check", path, "--config=job.elasticity.factor=2", "--json"])
    printed = capsys.readouterr().out
    require_promised(["migrate-check"], printed)
    found = json.loads(printed)
    (refused,) = [item for item in found if item["verdict"] == "refused"]
    assert set(refused) == {"key", "verdict", "about"}
    assert refused["key"] == "job.elasticity.factor"
