"""The order to drain: what it writes, and that a deployment removes it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from homeport.appmaster.yarn.resource_manager_rest import Application, ResourceManagerRest
from homeport.cli.yarn.job import Job, order_drain, write_order
from homeport.config.config import Config
from homeport.config.errors import ConfigError, UnavailableError
from homeport.config.settings.config_diff import ConfigDiff
from homeport.config.settings.tuning import Tuning
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.metadata.configuration import WRITER_SOURCE, ConfigManager

FILE = Config({"job.name": "j", "task.commit.ms": "5"})


def test_the_order_reaches_running_containers_and_ends_with_the_deployment() -> None:
    """It restarts none; the next run-job begins without it."""
    stream = InMemoryCoordinatorStream()
    manager = ConfigManager(stream)
    manager.replace(FILE, "job-runner")
    assert write_order(stream)
    stream.catch_up()
    ordered = manager.read()
    assert Tuning.of(ordered).drains
    diff = ConfigDiff.between(FILE, ordered)
    assert diff == ConfigDiff(retunes_containers=("job.drain",))
    manager.replace(FILE, "job-runner")
    stream.catch_up()
    assert manager.read() == FILE


class _Ended(Job):
    """A job that YARN does not run."""

    def last_application(self, stream: object = None) -> Application | None:
        """The one before has ended."""
        del stream
        return Application("application_1_1", "a_1", "FINISHED", "SUCCEEDED", "", "", "", 0)


@dataclass(frozen=True)
class _Runs(_Ended):
    """A job that runs; ``kept`` is its coordinator stream."""

    kept: InMemoryCoordinatorStream = field(default_factory=InMemoryCoordinatorStream)

    def last_application(self, stream: object = None) -> Application | None:
        """It runs."""
        found = super().last_application(stream)
        return found and replace(found, state="RUNNING", final_status="UNDEFINED")

    @contextlib.contextmanager
    def stream(self) -> Iterator[Any]:
        """Read to its head."""
        yield self.kept


def test_only_a_job_that_runs_is_drained() -> None:
    """Else there is one line; the answer says how to wait for the end."""
    rest = ResourceManagerRest((), "")
    config = Config({"job.name": "j", "job.default.system": "kafka"})
    with pytest.raises(UnavailableError, match="is not running: there is nothing to drain"):
        order_drain(_Ended(config, rest, config))
    job = _Runs(config, rest, config)
    said = order_drain(job)
    assert said.startswith("ordered application_1_1 to drain")
    job.kept.catch_up()
    again = order_drain(job)
    assert again.startswith("application_1_1 drains already, by an earlier order; it ends by")
    assert len(job.kept.log) == 1


def test_an_order_that_was_given_by_hand_is_one() -> None:
    """The job drains already: nothing is refused, and nothing written."""
    stream = InMemoryCoordinatorStream(WRITER_SOURCE)
    stream.write([wire.set_config("job.drain", "true")])
    stream.catch_up()
    assert not write_order(stream)
    assert len(stream.log) == 1


def test_a_key_that_was_set_by_hand_stands_above_the_order() -> None:
    """One line says how to take it back; nothing is written."""
    stream = InMemoryCoordinatorStream(WRITER_SOURCE)
    stream.write([wire.set_config("job.drain", "false")])
    stream.catch_up()
    with pytest.raises(ConfigError, match=r"job\.drain.*take it back: coordinator-stream-writer"):
        write_order(stream)
    assert len(stream.log) == 1
