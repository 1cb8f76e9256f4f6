"""What a reset of the state takes out of the coordinator stream, and how it is begun and ended."""

from __future__ import annotations

import own_records
import pytest
from own_records import put, write_permit
from stream_in_memory import InMemoryCoordinatorStream

from homeport.config.errors import ConfigError, WireError
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import MessageType
from homeport.job_coordinator.metadata.epochs import (
    EpochManager,
    FenceReport,
    ProcessorEpoch,
    Submission,
)
from homeport.job_coordinator.metadata.state_reset import (
    ResetPhase,
    StateReset,
    StateResetManager,
    permitted_incarnations,
    raised_epochs,
    state_removed,
)
from homeport.job_coordinator.metadata.topics import set_input_partitions
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation

P0, P1, P2 = ProcessorId("0"), ProcessorId("1"), ProcessorId("2")


def test_nothing_starts_before_a_reset_has_finished(stream: InMemoryCoordinatorStream) -> None:
    """Begun: one line that says by which command it is finished. Finished, or never begun: fine."""
    manager = StateResetManager(stream)
    manager.require_finished()
    manager.write(StateReset(4, ResetPhase.BEGUN))
    stream.catch_up()
    with pytest.raises(ConfigError) as caught:
        manager.require_finished()
    assert str(caught.value) == (
        "--reset-state = 'begun': a reset of the job's state began with submission 4 and was not "
        "finished, and nothing starts on what is left of that state; "
        "finish it by run-job --reset-state"
    )
    manager.write(StateReset(5, ResetPhase.FINISHED))
    stream.catch_up()
    assert manager.read() == StateReset(5, ResetPhase.FINISHED)
    manager.require_finished()


def test_nothing_starts_before_a_deletion_has_finished(stream: InMemoryCoordinatorStream) -> None:
    """One line names the command; a deletion that was refused leaves what was before."""
    manager = StateResetManager(stream)
    finished = StateReset(3, ResetPhase.FINISHED)
    for former in (None, finished):
        manager.write(StateReset(4, ResetPhase.DELETING))
        stream.catch_up()
        with pytest.raises(ConfigError) as caught:
            manager.require_finished()
        assert str(caught.value) == (
            "delete-job = 'deleting': the deletion of the job began with submission 4 and was not "
            "finished, and nothing starts on what is left of the job; finish it by homeport "
            "delete-job, or begin from nothing by run-job --reset-state"
        )
        manager.restore(former)
        stream.catch_up()
        assert manager.read() == former
        manager.require_finished()


def test_nothing_starts_before_a_conversion_has_finished(stream: InMemoryCoordinatorStream) -> None:
    """One line names the command."""
    manager = StateResetManager(stream)
    manager.write(StateReset(0, ResetPhase.CONVERTING))
    stream.catch_up()
    with pytest.raises(ConfigError) as caught:
        manager.require_finished()
    assert str(caught.value) == (
        "state convert = 'converting': a conversion of a store's values was begun and not "
        "finished, and nothing starts while only some values are converted; finish it by homeport "
        "state convert, or begin from nothing by run-job --reset-state"
    )


def test_a_damaged_record_of_a_reset_is_reported(stream: InMemoryCoordinatorStream) -> None:
    """Whether it has finished cannot be guessed."""
    StateResetManager(stream).write(StateReset(1, ResetPhase.BEGUN))
    (record,) = stream.catch_up()
    put(stream, record._replace(values={**(record.values or {}), "phase": "half"}))
    with pytest.raises(WireError, match=r"set-state-reset 'state-reset': .*'half'"):
        StateResetManager(stream).require_finished()


def test_all_epochs_are_raised_and_everybody_is_to_be_fenced(
    stream: InMemoryCoordinatorStream,
) -> None:
    """Each processor that ever ran; each incarnation that a permit lists, reported fenced or not.

    A processor that never ran has nothing to raise. Raised twice, as by a reset that begins again,
    no incarnation is forgotten; nor is how long a permitted one can run on (safety A4).
    """
    epochs = EpochManager(stream)
    write_permit(epochs, P0, ProcessorEpoch(7, 2, (Incarnation(P1, 3),)))
    write_permit(epochs, P1, ProcessorEpoch(4, 2, unseen_ms=42_000))
    write_permit(epochs, P2, ProcessorEpoch(1, 2, permitted=0))  # a model raised it
    stream.catch_up()
    known = {Incarnation(P0, 7), Incarnation(P1, 3), Incarnation(P1, 4)}
    assert set(permitted_incarnations(stream)) == known
    for raised in (1, 2):
        put(stream, *raised_epochs(stream))
        now = epochs.read_processor_epochs()
        assert {p: permit.epoch for p, permit in now.items()} == {
            P0: 7 + raised,
            P1: 4 + raised,
            P2: 1,
        }
        assert now[P1].unseen_ms == 42_000
        assert set(now[P0].fence) == {Incarnation(P0, 7), Incarnation(P1, 3)}
        assert now[P1].fence == (Incarnation(P1, 4),)
        assert known <= set(permitted_incarnations(stream))


def test_all_state_leaves_the_stream_and_nothing_else(stream: InMemoryCoordinatorStream) -> None:
    """Guarantee 2 of HA-YARN: changelog partitions and localities, of tasks and containers.

    Assignment, modes, partitions and charges go too; epochs, submissions and configuration stay,
    and permits need list no incarnation that is fenced.
    """
    epochs = EpochManager(stream)
    write_permit(epochs, P0, ProcessorEpoch(7, 2, (Incarnation(P0, 6),)))
    epochs.write_submission(Submission(3, "application_1_0003"))
    of_state = [
        wire.set_changelog("Partition 0", 0),
        wire.set_task_host_assignment("Partition 0", "nm1", 7),
        wire.set_container_host_assignment("0", "nm1", 7),
        wire.set_task_container_assignment("Partition 0", "0"),
        own_records.set_retry_state("0", 2, 5),
        set_input_partitions(SystemStream("kafka", "in"), 4),
    ]
    put(
        stream, *of_state, wire.set_config("a", "1"), own_records.set_job_model_version(2, "digest")
    )
    put(stream, *state_removed(stream))
    assert [stream.latest(m.type) for m in of_state] == [{}] * len(of_state)
    assert epochs.read_fenced() == {P0: FenceReport(7, (Incarnation(P0, 6),))}
    assert epochs.read_processor_epochs()[P0].epoch == 7
    assert epochs.read_submission() == Submission(3, "application_1_0003")
    assert epochs.read_job_model_version() is not None
    assert list(stream.latest(MessageType.SET_CONFIG)) == ["a"]
