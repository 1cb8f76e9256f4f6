"""A job of the former minor version goes on under this one, and back, with its state."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters_under_test import LocalUnderTest
from former_version import VersionedJob, former_wheel
from installations import Installation
from yarn_jobs import KEYS, wait_for


@pytest.fixture(scope="module")
def former(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The former minor version, with what it declares."""
    return Installation(tmp_path_factory.mktemp("former"), wheel=former_wheel())


@pytest.fixture(scope="module")
def present(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """This tree's wheel."""
    return Installation(tmp_path_factory.mktemp("present"))


@pytest.fixture
def job(cluster: LocalUnderTest, tmp_path: Path) -> Iterator[VersionedJob]:
    """A job with standbys and no version yet; killed at the end."""
    made = VersionedJob(cluster, tmp_path, "two-versions")
    made.values |= {"job.container.count": "2", "job.standbytasks.replication.factor": "2"}
    yield made
    made.call("kill")


def test_a_job_changes_its_version_with_its_state_and_back(
    job: VersionedJob, former: Installation, present: Installation
) -> None:
    """The steps of docs/upgrading.md: the other version ends it, and submits it again.

    Each time all containers come home, none restores from the beginning, and counts are exact.
    """
    job.uses(former)
    job.begin(300)
    job.expects(300)
    homes = _homes(job)
    first = len(_restores(job))
    produced = 300
    job.uses(present)
    refused = job.operator("upgrade", f"--environment={present.python}")
    assert refused.returncode == 1
    assert "the job's AM is of a version that cannot change its environment" in refused.stderr
    for installation in (present, former):
        job.uses(installation)
        _is_shown(job)
        job.kill()
        job.produce(KEYS, first=produced)
        produced += KEYS
        job.run()
        job.expects(produced)
        pids = job.settled()
        assert _homes(job) == homes
        os.kill(pids["1"], signal.SIGKILL)
        job.produce(KEYS, first=produced)
        produced += KEYS
        wait_for(lambda before=pids: job.pids().get("1", before["1"]) != before["1"], job)  # type: ignore[misc]  # a default binds the loop's value
        job.expects(produced)
    assert first
    later = _restores(job)[first:]
    assert later
    assert "full" not in later
    job.end()


def _restores(job: VersionedJob) -> list[str]:
    return [event["kind"] for event in job.history("restore-finished")]


def _homes(job: VersionedJob) -> dict[str, str]:
    return {processor: c["host"] for processor, c in job.containers().items()}


def _is_shown(job: VersionedJob) -> None:
    """This version's commands read a job that the other one runs."""
    for words in ("status", "explain 0", "job-model", "config get", "config diff"):
        done = job.operator(*words.split())
        assert done.returncode == 0, (words, done.stderr, done.stdout)
