"""A launcher records a stop in the coordinator stream when its AM does not answer."""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Callable

import pytest
from launchers import FIRST, Am, Running, wait_for
from yarn_jobs import alive

from homeport.config.config import Config
from homeport.config.settings.sections import JobConfig, SystemConfig
from homeport.job_coordinator.http.messages import OrderKind
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.kafka.topics import TopicAdmin, coordinator_topic_spec
from homeport.job_coordinator.metadata.lifecycle import StopManager
from homeport.job_coordinator.model.incarnation import Incarnation

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

SIGKILL_DELAY_S = 0.25
"""YARN's default between SIGTERM and SIGKILL."""

Launch = Callable[..., Running]
Stops = Callable[[], dict[Incarnation, str]]


@pytest.fixture
def stops(kafka: str, am: Am) -> Stops:
    """What the coordinator stream of the AM's job says of stops."""
    am.config = {
        "job.name": f"job-{uuid.uuid4().hex[:12]}",
        "job.coordinator.system": "kafka",
        "job.coordinator.replication.factor": "1",
        "systems.kafka.consumer.bootstrap.servers": kafka,
    }
    job = JobConfig.of(Config(am.config))
    system = SystemConfig.of(Config(am.config), "kafka")
    TopicAdmin(system).ensure(coordinator_topic_spec(job))

    def read() -> dict[Incarnation, str]:
        with CoordinatorStreamStore(system, job.coordinator_topic, source="test") as stream:
            stream.bootstrap()
            return StopManager(stream).read()

    return read


def test_a_stop_that_the_am_does_not_take_is_written(am: Am, launch: Launch, stops: Stops) -> None:
    """With its cause, after a while; the launcher stays."""
    launcher = launch(HOMEPORT_LOST_MS="60000")
    am.orders(OrderKind.RUN, FIRST)
    pid = launcher.child_pid(am)
    am.gone()
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: stops() == {FIRST: "killed"}, launcher)
    assert launcher.process.poll() is None


def test_yarn_kills_a_launcher_before_its_child_has_ended(
    am: Am, launch: Launch, stops: Stops
) -> None:
    """SIGTERM to the process group and, a quarter of a second later, SIGKILL: it is written."""
    launcher = launch("deaf")
    am.orders(OrderKind.RUN, FIRST)
    pid = launcher.child_pid(am)
    am.gone()
    os.killpg(launcher.process.pid, signal.SIGTERM)
    time.sleep(SIGKILL_DELAY_S)
    os.killpg(launcher.process.pid, signal.SIGKILL)
    wait_for(lambda: stops() == {FIRST: "signalled"}, launcher)
    assert not alive(pid)


def test_nothing_is_written_while_the_child_lives(am: Am, launch: Launch, stops: Stops) -> None:
    """SIGTERM, and a child that takes its whole time: the record is there after it is gone."""
    launcher = launch("deaf", HOMEPORT_SHUTDOWN_MS="3000")
    am.orders(OrderKind.RUN, FIRST)
    pid = launcher.child_pid(am)
    launcher.process.terminate()
    while alive(pid):
        stated = stops()
        assert not stated or not alive(pid)
    wait_for(lambda: stops() == {FIRST: "signalled"}, launcher)
