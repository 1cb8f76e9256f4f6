"""left_behind: run-job names a Samza job's records and directories at a take-over."""

from __future__ import annotations

import pytest
from small_jobs import KEYS, store_keys
from stream_in_memory import InMemoryCoordinatorStream

from homeport.cli.yarn.left_behind import left_behind
from homeport.config.config import Config
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
    Namespace,
)
from homeport.job_coordinator.metadata.epochs import AmEpoch, EpochManager, Rank
from homeport.job_coordinator.model.job_model import SystemStreamPartition

CONFIG = Config({**KEYS, **store_keys("s", "string", changelog="kafka.s")})
SSP = SystemStreamPartition("kafka", "in", 0)


@pytest.fixture
def stream() -> InMemoryCoordinatorStream:
    """Of a Samza job, as its first deployment here finds it."""
    made = InMemoryCoordinatorStream()
    made.write(
        [
            wire.set_config("job.name", "j"),
            wire.set_task_container_assignment("Partition 0", "0"),
            wire.set_task_partition_assignment(SSP, ["Partition 0"]),
            wire.set_container_host_assignment("0", "nm2"),
        ]
    )
    made.catch_up()
    return made


def _lines(stream: InMemoryCoordinatorStream, config: Config = CONFIG) -> list[str]:
    stream.catch_up()
    return [*left_behind(config, stream)]


def test_startpoints_are_named_in_one_line(stream: InMemoryCoordinatorStream) -> None:
    """Those of a partition, and those that Samza has put in their place, for a task."""
    stream.write(
        [
            wire.of_namespace(Namespace.STARTPOINT, "kafka.in.0", b"{}"),
            wire.of_namespace(Namespace.STARTPOINT, "kafka.in.1", b"\xff"),
            wire.of_namespace(Namespace.STARTPOINT_FAN_OUT, "Partition 0", b"{}"),
        ]
    )
    line = _lines(stream)[0]
    assert line.startswith(
        "startpoints of Samza are not read: kafka.in.0, kafka.in.1, Partition 0; start.time of a "
    )


def test_records_that_nothing_reads_are_counted_by_type(stream: InMemoryCoordinatorStream) -> None:
    """They stay: Samza's programs may read them again."""
    stream.write(
        [
            wire.of_namespace(Namespace.DRAIN, "a", b"{}"),
            CoordinatorStreamMessage(MessageType.SET_EXECUTION_ENV_CONTAINER_ID, "0", {"a": "b"}),
            CoordinatorStreamMessage(MessageType.SET_EXECUTION_ENV_CONTAINER_ID, "1", {"a": "b"}),
        ]
    )
    assert _lines(stream)[0] == (
        "records that nothing here reads stay in the coordinator stream: 1 samza-drain-v1, 2 "
        "set-execution-env-container-id-mapping"
    )


def test_directories_are_named_by_their_hosts(stream: InMemoryCoordinatorStream) -> None:
    """Of a job with stores that have changelogs, where Samza has run it."""
    (line,) = _lines(stream)
    assert line.startswith("directories of the Samza job's stores on nm2 are not used")
    assert _lines(stream, Config(KEYS)) == []
    stream.write([wire.tombstone(MessageType.SET_TASK_CONTAINER, "Partition 0")])
    assert _lines(stream) == []


def test_a_job_that_has_run_here_leaves_nothing(stream: InMemoryCoordinatorStream) -> None:
    """Its records, and the directories on its hosts, are its own."""
    stream.write([wire.of_namespace(Namespace.STARTPOINT, "kafka.in.0", b"{}")])
    EpochManager(stream).write_am_epoch(AmEpoch(Rank(1, "application_1_1", 1)))
    assert _lines(stream) == []
