"""A process that stood still and wakes up late writes nothing; the broker's own log shows it.

The proof is in the batches of output, changelog and checkpoint topic: each names the producer that
wrote it, and after the first batch of a successor there is none of an earlier incarnation.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
from accepted_writes import accepted_batches, accepted_trespasses, writers_of
from confluent_kafka.admin import AdminClient, NewTopic
from histories import require_sound
from yarn_jobs import PARTITIONS, Job, alive, parent_of, wait_for

from homeport.config.config import Config
from homeport.config.settings.sections import JobConfig, SystemConfig
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.metadata.epochs import EpochManager

LEASE_S = 3.0
HANG_MS = 6000
PIECE = 200


class Watched:
    """A job whose containers are hit one after the other, and what each hit must leave behind."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.produced = 0
        job.values |= {
            "task.class": "probe_task:Reports",
            "task.hang.ms": str(HANG_MS),
            "cluster-manager.container.lease.ms": str(int(1000 * LEASE_S)),
            "cluster-manager.container.retry.count": "100",
        }
        admin = AdminClient({"bootstrap.servers": job.servers})
        topic = f"{job.name}-out"
        admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)

    def produce(self) -> None:
        """A piece more of input has come."""
        self.job.produce(PIECE, first=self.produced)
        self.produced += PIECE

    def container(self, processor: str) -> dict[str, Any]:
        """What the status says of the processor, whose container runs."""
        wait_for(lambda: self.job.containers()[processor]["phase"] == "running", self.job)
        wait_for(lambda: self.job.containers()[processor]["pid"] is not None, self.job)
        return self.job.containers()[processor]

    def is_succeeded(self, processor: str, epoch: int) -> None:
        """A later incarnation than ``epoch`` runs, and every record so far is counted once."""
        wait_for(lambda: self.job.containers()[processor]["epoch"] > epoch, self.job)
        self.job.wait_until_running()
        self.job.expects(self.produced)

    def wake(self, *pids: int) -> None:
        """Those that still stand go on, and end by themselves; nothing they do is counted."""
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        wait_for(lambda: not any(alive(pid) for pid in pids), self.job)
        self.produce()
        self.job.expects(self.produced)

    def epochs(self) -> dict[str, int]:
        """{processor: its last epoch}."""
        return {p: c["epoch"] for p, c in self.job.containers().items()}


@pytest.mark.long
def test_a_process_that_wakes_up_late_writes_nothing(make_job: Callable[[str], Job]) -> None:
    """SIGKILL, or SIGSTOP for three leases, of container and launcher; then of a whole node."""
    job = make_job("zombies")
    watched = Watched(job)
    watched.produce()
    job.run()
    job.wait_until_running()
    job.expects(watched.produced)

    hit_container_and_launcher(watched, signal.SIGKILL)
    hit_container_and_launcher(watched, signal.SIGSTOP)
    pause_a_node(watched)

    epochs = watched.epochs()
    writers, batches = writers_of(job, epochs), accepted_batches(job)
    assert job.kill() == f"stopped {job.application_id} in order"
    assert accepted_trespasses(job, epochs) == {}
    # Each that was hit had written, and so has each successor: the proof is about something.
    for kind in ("out", "counts", "checkpoint"):
        wrote = {writers[b.producer_id] for place, f in batches.items() if kind in place for b in f}
        assert wrote == set(writers.values())
    require_sound(job.histories(), "--clock", "boot")


@pytest.mark.long
def test_another_number_of_containers_fences_all_former_owners(
    make_job: Callable[[str], Job],
) -> None:
    """Tasks move to other processors: exact, and each owner's batches come after its forerunners'.

    The epochs of all three were raised with the model (safety I2): two gain tasks, one is retired.
    """
    job = make_job("fewer")
    watched = Watched(job)
    watched.produce()
    job.run()
    job.wait_until_running()
    job.expects(watched.produced)
    assert job.kill() == f"stopped {job.application_id} in order"

    watched.produce()
    job.run("job.container.count=2")
    after = job.wait_until_running()
    assert {p: c["epoch"] for p, c in after.items()} == {"0": 3, "1": 3}
    assert epochs_of(job) == {"0": 3, "1": 3, "2": 2}
    job.expects(watched.produced)
    watched.produce()
    job.expects(watched.produced)
    writers = writers_of(job, dict.fromkeys("012", 3))
    assert job.kill() == f"stopped {job.application_id} in order"
    # Of the changelog, each partition has one owner at a time, whatever its processor is called.
    for place, batches in accepted_batches(job).items():
        if "counts" in place:
            epochs = [writers[b.producer_id].epoch for b in batches]
            assert epochs == sorted(epochs), place
            assert set(epochs) == {1, 3}, place
    require_sound(job.histories(), "--clock", "boot")


def epochs_of(job: Job) -> dict[str, int]:
    """{processor: the last epoch that the coordinator stream has of it}."""
    config = Config(job.values)
    topic = JobConfig.of(config).coordinator_topic
    with CoordinatorStreamStore(SystemConfig.of(config, "kafka"), topic, source="test") as stream:
        stream.bootstrap()
        return {p: e.epoch for p, e in EpochManager(stream).read_processor_epochs().items()}


def hit_container_and_launcher(watched: Watched, number: signal.Signals) -> None:
    """A stream container alone, and, of another processor, the launcher alone.

    The one's launcher sees its end, or that it does not beat; the other's child dies with it, or
    ends itself when the lease is over.
    """
    container, child = watched.container("0"), watched.container("1")
    launcher = parent_of(child["pid"])
    for pid in (container["pid"], launcher):
        os.kill(pid, number)
    began = time.monotonic()
    watched.produce()
    wait_for(lambda: not alive(child["pid"]), watched.job)
    watched.is_succeeded("0", container["epoch"])
    watched.is_succeeded("1", child["epoch"])
    stand_still(began, number)
    watched.wake(container["pid"], launcher)


def pause_a_node(watched: Watched) -> None:
    """Launcher, container and NodeManager stand still together; the container wakes up first."""
    job = watched.job
    am_host = job.am_host()
    moved = {p: c for p, c in job.wait_until_running().items() if c["host"] != am_host}
    node = next(iter(moved.values()))["host"]
    victims = {p: watched.container(p) for p, c in moved.items() if c["host"] == node}
    launchers = [parent_of(v["pid"]) for v in victims.values()]
    job.cluster.pause_node(node)
    try:
        watched.produce()
        began = time.monotonic()
        for processor, victim in victims.items():
            watched.is_succeeded(processor, victim["epoch"])
        stand_still(began, signal.SIGSTOP)
        assert all(alive(v["pid"]) for v in victims.values())
        # At first no process kills them: only their own deadline and the fence are left.
        watched.wake(*(v["pid"] for v in victims.values()))
    finally:
        job.cluster.resume_node(node)
    watched.wake(*launchers)


def stand_still(began: float, number: signal.Signals) -> None:
    """Where it was stopped, three leases have passed since ``began``."""
    if number == signal.SIGSTOP:
        time.sleep(max(0.0, began + 3 * LEASE_S - time.monotonic()))
