"""What run-job finds out of the JobModel before it submits."""

from __future__ import annotations

import pytest

from homeport.cli.yarn import preflight
from homeport.config.config import Config
from homeport.config.system_stream import SystemStream

KEYS = {
    "job.name": "j",
    "job.default.system": "kafka",
    "job.container.count": "4",
    "job.hotstandby.enabled": "true",
    "task.class": "m:C",
    "task.inputs": "kafka.in",
    "systems.kafka.consumer.bootstrap.servers": "a:1",
}


@pytest.mark.parametrize("is_mixed", [True, False])
def test_a_note_says_what_mixed_containers_have_to_bear(
    monkeypatch: pytest.MonkeyPatch, *, is_mixed: bool
) -> None:
    """One line; other jobs have none."""
    monkeypatch.setattr(preflight, "counts_now", lambda *_, **__: {SystemStream("kafka", "in"): 9})
    lines: list[str] = []
    config = Config({**KEYS, "job.container.mixed-roles": str(is_mixed).lower()})
    assert preflight.check_job_model(config, lines.append) is not None
    assert len(lines) == is_mixed
    assert all(line.startswith("note: cluster-manager.container.memory.mb = ") for line in lines)
