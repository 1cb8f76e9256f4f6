"""Whatever lies in the coordinator stream: it is read, or left out; no reader dies of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_records import records
from stream_in_memory import InMemoryCoordinatorStream

from homeport.config.config import Config
from homeport.config.errors import ConfigError, WireError
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.epochs import EpochManager, am_epoch_message
from homeport.job_coordinator.metadata.job_packages import JobPackageManager
from homeport.job_coordinator.metadata.lifecycle import (
    FailoverManager,
    JobEndManager,
    RetryManager,
    StopManager,
)
from homeport.job_coordinator.metadata.placement import PlacementManager
from homeport.job_coordinator.metadata.recorded_model import recorded_model
from homeport.job_coordinator.metadata.state_facts import (
    ChangelogPartitionManager,
    StateFactManager,
)
from homeport.job_coordinator.metadata.state_reset import (
    StateResetManager,
    raised_epochs,
    state_removed,
)
from homeport.job_coordinator.metadata.task_assignment import (
    LocalityManager,
    TaskAssignmentManager,
    TaskModeManager,
    TaskPartitionManager,
)
from homeport.job_coordinator.metadata.topics import ChangelogTopicManager, InputTopicManager
from homeport.job_coordinator.metadata.upgrade import UpgradeManager
from homeport.job_coordinator.model.codec import encode_job_model
from homeport.job_coordinator.model.placement import PlacementResponse, PlacementStatus

LONGEST_ANSWER = 20_000
"""Bytes: far below what any topic takes."""

Messages = Iterable[CoordinatorStreamMessage]


def _epochs(stream: InMemoryCoordinatorStream) -> Iterator[Callable[[], Messages]]:
    """What a reader may refuse, since to go on could be unsafe."""
    epochs = EpochManager(stream)

    def am() -> Messages:
        last = epochs.read_am_epoch()
        return () if last is None else (am_epoch_message(last),)

    def read(call: Callable[[], object]) -> Callable[[], Messages]:
        def reading() -> Messages:
            call()
            return ()

        return reading

    yield am
    yield lambda: raised_epochs(stream)
    yield lambda: state_removed(stream)
    yield read(epochs.read_submission)
    yield read(epochs.highest)
    yield read(epochs.read_job_model_version)
    yield read(StateResetManager(stream).read)
    yield read(StateResetManager(stream).require_finished)
    yield read(ChangelogPartitionManager(stream).read)
    yield read(StateFactManager(stream).partitions)
    yield read(StateFactManager(stream).forms)
    yield read(lambda: encode_job_model(recorded_model(stream, Config({})), mask_secrets=False))


def _answers(stream: InMemoryCoordinatorStream) -> Messages:
    """What a driver writes of placement requests: a refusal of each, an end of each action."""
    manager = PlacementManager(stream)
    for request, fault in manager.read_requests():
        answer = PlacementResponse(request, PlacementStatus.BAD_REQUEST, fault, 1)
        yield PlacementManager.response_message(answer)
        yield PlacementManager.request_deleted(request.uuid)
    for response, _ in manager.unfinished():
        failed = PlacementResponse(response.request, PlacementStatus.FAILED, "over", 1)
        yield PlacementManager.response_message(failed)
    for uuid in manager.read_responses():
        yield PlacementManager.response_deleted(uuid)


def _left_out(stream: InMemoryCoordinatorStream) -> Messages:
    """What the others read, and what a driver writes of it again."""
    ConfigManager(stream).read()
    ConfigManager(stream).written()
    LocalityManager(stream).read_processors()
    LocalityManager(stream).read_tasks()
    TaskModeManager(stream).read()
    TaskPartitionManager(stream).read()
    TaskAssignmentManager(stream).read()
    ChangelogTopicManager(stream).read()
    InputTopicManager(stream, 1).read()
    packages = JobPackageManager(stream)
    for name in packages.names():
        packages.read(name)
    yield from packages.messages_to_forget()
    EpochManager(stream).read_fenced()
    end = JobEndManager(stream).read(1)
    yield from () if end is None else (JobEndManager.message(end),)
    yield from (StopManager.message(i, cause) for i, cause in StopManager(stream).read().items())
    yield from (RetryManager.message(p, s) for p, s in RetryManager(stream).read().items())
    yield from (FailoverManager.message(p, f) for p, f in FailoverManager(stream).read().items())
    upgrades = UpgradeManager(stream)
    if (state := upgrades.state("a")) is not None:
        yield UpgradeManager.state_message(state)
    yield from upgrades.messages_of_a_new_run("b")


@pytest.mark.search
@settings(max_examples=500)
@given(st.lists(records(), max_size=12))
def test_any_record_of_the_stream_is_read_or_left_out(
    log: list[tuple[bytes, bytes | None]],
) -> None:
    """Only a reader of epochs, tasks and submissions may refuse to go on; all of it has bytes."""
    stream = InMemoryCoordinatorStream(log=list(log))
    assert len(stream.catch_up()) + stream.damaged_count == len(log)
    for message in _left_out(stream):
        wire.encode(message)
    for message in _answers(stream):
        key, value = wire.encode(message)
        assert len(key) + len(value or b"") < LONGEST_ANSWER
    for reading in _epochs(stream):
        with contextlib.suppress(WireError, ConfigError):
            for message in reading():
                wire.encode(message)
