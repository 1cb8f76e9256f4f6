"""What each manager reads and writes."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from homeport.config.config import Config
from homeport.config.errors import WireError
from homeport.job_coordinator.metadata import coordinator_stream_message as wire
from homeport.job_coordinator.metadata.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.metadata.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.metadata.managers import (
    AmEpoch,
    ChangelogPartitionManager,
    ConfigManager,
    EpochManager,
    FenceReport,
    JobModelVersion,
    LocalityManager,
    ProcessorEpoch,
    Rank,
    Submission,
    TaskAssignmentManager,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation

P0, P1 = ProcessorId("0"), ProcessorId("1")
BAD = {"fenced": "[1]"}
T0, T1, T2 = TaskName("Partition 0"), TaskName("Partition 1"), TaskName("Partition 2")


@pytest.fixture
def stream() -> InMemoryCoordinatorStream:
    """An empty stream."""
    return InMemoryCoordinatorStream()


def _keys(stream: InMemoryCoordinatorStream) -> list[tuple[str, bool]]:
    decoded = [wire.decode(*record) for record in stream.log]
    return [(m.key, m.is_tombstone) for m in decoded]


def test_configuration_is_replaced_new_keys_first(stream: InMemoryCoordinatorStream) -> None:
    """All new keys, then tombstones of stale ones: also of a key that was written in between."""
    manager = ConfigManager(stream)
    manager.replace({"b": "1", "a": "1"}, "job-runner")
    stream.write([wire.set_config("by-hand", "1"), wire.set_changelog(T0, 0)])
    del stream.log[:2]
    stream._position = 0
    manager.replace({"c": "2", "b": "2"}, "job-runner")
    assert _keys(stream)[2:] == [("b", False), ("c", False), ("a", True), ("by-hand", True)]
    assert manager.read() == Config({"b": "2", "c": "2"})
    assert stream.latest("set-config")["b"].source == "job-runner"
    assert list(stream.latest("set-changelog")) == [T0]


def test_what_the_writer_tool_set_outlives_a_deployment(stream: InMemoryCoordinatorStream) -> None:
    """Neither overwritten nor deleted by a new file, until it is taken back; its source stays."""
    manager = ConfigManager(stream)
    manager.replace({"a": "1", "b": "1"}, "job-runner")
    by_hand = [wire.set_config("b", "9"), wire.set_config("only-by-hand", "9")]
    stream.write([replace(m, source="coordinator-stream-writer") for m in by_hand])
    stream.catch_up()
    manager.replace({"b": "2", "c": "2"}, "job-runner")
    assert manager.read() == Config({"b": "9", "c": "2", "only-by-hand": "9"})
    assert manager.written() == Config({"b": "9", "only-by-hand": "9"})
    stream.write([wire.tombstone("set-config", "b")])
    stream.catch_up()
    manager.replace({"b": "2"}, "job-runner")
    assert manager.read() == Config({"b": "2", "only-by-hand": "9"})


def test_a_configuration_record_without_value_is_left_out(
    stream: InMemoryCoordinatorStream,
) -> None:
    """Null is no value, the empty string is one; a stale key without a value is deleted as well."""
    stream.log.append((b'[1,"set-config","a"]', b'{"values":{"value":null}}'))
    stream.write([wire.set_config("b", "")])
    stream.catch_up()
    manager = ConfigManager(stream)
    assert manager.read() == Config({"b": ""})
    manager.replace({}, "job-runner")
    assert _keys(stream)[2:] == [("a", True), ("b", True)]


def test_tasks_decide_where_a_processor_goes(stream: InMemoryCoordinatorStream) -> None:
    """The host of most of its tasks wins over the processor's own record; ties go by name."""
    TaskAssignmentManager(stream).write({T0: P0, T1: P0, T2: P1})
    stream.write(
        [
            wire.set_container_host_assignment("0", "nm9", 1),
            wire.set_container_host_assignment("7", "NM7"),
            wire.set_task_host_assignment(T0, "nm2", 1),
            wire.set_task_host_assignment(T1, "nm1", 1),
        ]
    )
    stream.catch_up()
    manager = LocalityManager(stream)
    assert manager.read_tasks() == {T0: "nm2", T1: "nm1"}
    assert manager.read_processors() == {P0: "nm1", ProcessorId("7"): "nm7"}
    stream.write([wire.set_task_host_assignment(T1, "nm2", 1)])
    stream.catch_up()
    assert manager.read_processors()[P0] == "nm2"


def test_locality_is_written_for_tasks_and_processor(stream: InMemoryCoordinatorStream) -> None:
    """One record per task and one of the processor, in one write, with the epoch."""
    LocalityManager(stream).write(P0, [T1, T0], Host("nm1"), 4)
    stream.catch_up()
    assert [key for key, _ in _keys(stream)] == [T0, T1, "0"]
    records = stream.latest(MessageType.SET_TASK_HOST)
    assert [wire.epoch(m) for m in records.values()] == [4, 4]


def test_blank_and_missing_hosts_are_left_out(stream: InMemoryCoordinatorStream) -> None:
    """Samza reads a blank host as any host: so is it here."""
    stream.write(
        [
            wire.set_container_host_assignment("0", ""),
            CoordinatorStreamMessage(MessageType.SET_TASK_HOST, T0, {}),
        ]
    )
    stream.catch_up()
    assert LocalityManager(stream).read_processors() == {}
    assert LocalityManager(stream).read_tasks() == {}


def test_changelog_partitions_stay(stream: InMemoryCoordinatorStream) -> None:
    """Only what is new is written; partitions of vanished tasks stay."""
    manager = ChangelogPartitionManager(stream)
    manager.write({T0: 0, T1: 1})
    stream.catch_up()
    manager.write({T1: 1, T2: 2})
    stream.catch_up()
    assert manager.read() == {T0: 0, T1: 1, T2: 2}
    assert len(stream.log) == 3


def test_a_damaged_changelog_partition_stops(stream: InMemoryCoordinatorStream) -> None:
    """Without it a task could be given another task's state."""
    stream.write([CoordinatorStreamMessage(MessageType.SET_CHANGELOG, T0, {"Partition": "x"})])
    stream.catch_up()
    with pytest.raises(WireError, match="Partition 0"):
        ChangelogPartitionManager(stream).read()


def test_task_assignment_is_exactly_what_was_written(stream: InMemoryCoordinatorStream) -> None:
    """Deletions of vanished tasks come first, unchanged tasks are not written again."""
    manager = TaskAssignmentManager(stream)
    manager.write({T0: P0, T1: P0})
    stream.catch_up()
    manager.write({T1: P0, T2: P1})
    assert _keys(stream)[2:] == [(T0, True), (T2, False)]
    stream.catch_up()
    assert manager.read() == {T1: P0, T2: P1}


def test_epochs_are_read_back(stream: InMemoryCoordinatorStream) -> None:
    """What the AM must remember comes back as written; before the first time there is none."""
    manager = EpochManager(stream)
    assert manager.read_submission() is None
    assert manager.read_am_epoch() is None
    assert manager.read_job_model_version() is None
    assert manager.read_processor_epochs() == {}
    low, high = Rank(1, "application_1_0001", 2), Rank(2, "application_1_0002", 1)
    permit = ProcessorEpoch(5, 1, (Incarnation(P0, 4), Incarnation(P1, 9)))
    manager.write_submission(Submission(2, "application_1_0002"))
    manager.write_am_epoch(AmEpoch(high, (low,)))
    manager.write_processor_epoch(P0, permit)
    manager.write_job_model_version(JobModelVersion(1, "abc"))
    stream.catch_up()
    assert manager.read_submission() == Submission(2, "application_1_0002")
    assert manager.read_am_epoch() == AmEpoch(high, (low,))
    assert manager.read_processor_epochs() == {P0: permit}
    assert manager.read_job_model_version() == JobModelVersion(1, "abc")


def test_reports_of_fences_are_read_back(stream: InMemoryCoordinatorStream) -> None:
    """The last one of each processor; a damaged one counts as none, and the lists stay longer."""
    manager = EpochManager(stream)
    manager.write_fenced(P0, FenceReport(4, (Incarnation(P0, 2),)))
    report = FenceReport(5, (Incarnation(P0, 4), Incarnation(P1, 9)))
    manager.write_fenced(P0, report)
    stream.write([CoordinatorStreamMessage(MessageType.SET_FENCED, P1, {"epoch": "1"} | BAD)])
    stream.catch_up()
    assert manager.read_fenced() == {P0: report}


@pytest.mark.parametrize(
    "values",
    [
        {"epoch": "x", "model-version": "1"},
        {"epoch": "1"},
        {"epoch": "1", "model-version": "1", "fence": "no json"},
        {"epoch": "1", "model-version": "1", "fence": "[1]"},
        {"epoch": "1", "model-version": "1", "fence": '[{"processor_id":"0"}]'},
        {"epoch": "1", "model-version": "1", "fence": '[{"processor_id":"0","epoch":true}]'},
    ],
)
def test_a_damaged_epoch_stops(stream: InMemoryCoordinatorStream, values: dict[str, str]) -> None:
    """Without it an epoch could be permitted twice."""
    stream.write([CoordinatorStreamMessage(MessageType.SET_PROCESSOR_EPOCH, "0", values)])
    stream.catch_up()
    with pytest.raises(WireError, match="set-processor-epoch '0'"):
        EpochManager(stream).read_processor_epochs()


def test_ranks_are_ordered_by_submission_application_attempt() -> None:
    """A later application outranks an earlier one, also when its number has grown a digit."""
    ranks = [
        Rank(1, "application_1_9999", 2),
        Rank(2, "application_1_0001", 9),
        Rank(2, "application_1_9999", 1),
        Rank(2, "application_1_10000", 1),
        Rank(2, "application_1_10000", 2),
    ]
    for lower, higher in pairwise(ranks):
        assert higher.is_above(lower)
        assert not lower.is_above(higher)
        assert not lower.is_above(lower)
