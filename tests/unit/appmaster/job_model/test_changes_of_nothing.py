"""What is written into the coordinator stream of a running job and makes no new JobModel."""

from __future__ import annotations

from pathlib import Path

import pytest
from live_jobs import COUNT, FILE, Job

from homeport.appmaster.job_model import live_job_coordinator


@pytest.fixture(autouse=True)
def _quick_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The coordinator looks more often, so that what it does not do shows at once."""
    monkeypatch.setattr(live_job_coordinator, "_POLL_S", 0.01)


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """Six tasks in three containers, without state."""
    return Job(tmp_path)


def test_a_key_that_no_program_reads_changes_nothing(job: Job) -> None:
    """A typo, however it came into the stream: no version, no restart, nothing forgiven."""

    async def scene() -> None:
        job.live.heard(FILE.merged({"task.comit.ms": "77", "task.my.own": "7", "app.name": "x"}))
        await job.some_rounds()
        assert job.changes == []
        assert job.live.shown().fault is None
        assert job.live.shown().pending == ()
        job.live.heard(FILE.merged({"task.comit.ms": "78", "task.commit.ms": "77"}))
        await job.until(lambda: bool(job.changes))

    job.play(scene)
    (change,) = job.changes
    assert change.why == "changed: task.commit.ms"
    assert "task.comit.ms" not in change.model.config


@pytest.mark.parametrize("more", [{}, {"my.key": " 5"}, {COUNT: "03", "task.commit.ms": ""}])
def test_a_value_that_is_so_already_changes_nothing(job: Job, more: dict[str, str]) -> None:
    """Written again, or written otherwise."""
    job.job_models.reconfigured(FILE.merged({"my.key": more.get("my.key", "5")}))

    async def scene() -> None:
        job.live.heard(FILE.merged({"my.key": more.get("my.key", "5"), **more}))
        await job.some_rounds()

    job.play(scene)
    assert job.changes == []


def test_a_token_is_in_force_without_a_new_model(job: Job) -> None:
    """No version, so that no failure is forgiven; beside another key it is part of a change."""
    key = "cluster-manager.jobcoordinator.tokens.read"
    token = f"ada:{'ab' * 32}"

    async def scene() -> None:
        job.live.heard(FILE.merged({key: token}))
        await job.until(lambda: job.job_models.model.config.get(key) == token)
        assert (job.changes, job.job_models.version) == ([], 1)
        job.live.heard(FILE)
        await job.until(lambda: key not in job.job_models.model.config)
        job.live.heard(FILE.merged({key: token, "task.commit.ms": "77"}))
        await job.until(lambda: bool(job.changes))

    job.play(scene)
    assert [event["keys"] for event in job.events("tokens-changed")] == [[key], [key]]
    assert job.changes[0].version == 2
