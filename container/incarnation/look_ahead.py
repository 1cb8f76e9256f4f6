"""What a start looks up in Kafka beside its other steps, once all ids are initialised.

From then on no earlier owner of the tasks writes: the ends that are requested are those to which
changelogs and checkpoints are read (safety I3, K1). Nothing is done with them before the
coordinator stream has confirmed the permit. On YARN a command that changes the state raises all
epochs first, so that no such permit is confirmed. A standalone processor's permit outlives a
command that has come to its end: it looks once it is confirmed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

from confluent_kafka import Message

from homeport.config.system_stream import SystemStream
from homeport.container.container_job import ContainerJob
from homeport.container.host.clocks import read_clocks
from homeport.container.host.executors import OneThread
from homeport.container.kafka.checkpoints import last_records
from homeport.container.kafka.log_reader import KafkaChangelogReader, LogReader, offset_ranges
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.restore import ChangelogTopic, OffsetRange
from homeport.job_coordinator.model.job_model import SystemStreamPartition

_STEP_S = 0.1
_LAST_S = 5.0

T = TypeVar("T")


@dataclass(frozen=True)
class Looked:
    """``at``: the time before the ends were requested.

    ``topics``: of the stores. ``ranges``: of their changelogs, and of the input. ``checkpoints``:
    the last record of each key of the tasks, in the order of their offsets.
    """

    at: ClockReading
    topics: Mapping[SystemStream, ChangelogTopic]
    ranges: Mapping[SystemStreamPartition, OffsetRange]
    checkpoints: Sequence[Message]


def topics_of(
    job: ContainerJob, readers: Mapping[str, LogReader]
) -> dict[SystemStream, ChangelogTopic]:
    """Return the changelogs of the job's stores; no fence needs to be done before."""
    changelogs = [store.changelog for store in job.stores if store.changelog is not None]
    return KafkaChangelogReader(readers).topics(changelogs) if changelogs else {}


def look(
    job: ContainerJob,
    readers: Mapping[str, LogReader],
    topics: Mapping[SystemStream, ChangelogTopic],
) -> Looked:
    """Return what the start of the job's tasks needs to know; ``topics``: of what is restored."""
    at, task = read_clocks(), job.task
    places = {ssp for each in job.tasks for ssp in each.system_stream_partitions}
    places |= {
        SystemStreamPartition(stream.system, stream.stream, each.changelog_partition)
        for stream in topics
        for each in job.tasks
    }
    own = SystemStreamPartition(task.checkpoint_system, task.checkpoint_topic, 0)
    if task.checkpoint_enabled:
        places.add(own)
    ranges, checkpoints = offset_ranges(readers, sorted(places)), list[Message]()
    if task.checkpoint_enabled:
        tasks = {each.task_name for each in job.tasks}
        checkpoints = last_records(readers[own.system], own.stream, tasks, ranges[own])
    return Looked(at, topics, ranges, checkpoints)


class LookedUp(KafkaChangelogReader):
    """Gives a restore what was looked up, and a second look at a topic as it is then."""

    def __init__(self, readers: Mapping[str, LogReader], looked: Looked) -> None:
        super().__init__(readers)
        self._looked = looked
        self._topics = looked.topics

    def topics(self, changelogs: Sequence[SystemStream]) -> dict[SystemStream, ChangelogTopic]:
        """Return the broker's answer for each stream."""
        first, self._topics = self._topics, {}
        return dict(first) or super().topics(changelogs)

    def ranges(self, changelogs: Sequence[tuple[SystemStream, int]]) -> list[OffsetRange]:
        """Return the oldest offset and head of each (stream, partition), in the order given."""
        places = [SystemStreamPartition(s.system, s.stream, p) for s, p in changelogs]
        return [self._looked.ranges[place] for place in places]


class Beside:
    """Makes calls in a thread of its own, one after the other, inside its ``with`` block.

    ``check``: raises to end a wait.
    """

    def __init__(self, check: Callable[[], object]) -> None:
        self._check = check
        self._thread = OneThread("beside")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._thread.close()
        if kind is not None:  # it may use what is closed next
            self._thread.is_over(_LAST_S)

    @staticmethod
    def later(function: Callable[[], T]) -> Callable[[], T]:
        """Return what makes the call when its result is first wanted, and keeps that."""
        return functools.cache(function)

    def begin(self, function: Callable[[], T]) -> Callable[[], T]:
        """Begin the call; return what waits for its result, or raises its error."""
        call = self._thread.submit(function)

        def result() -> T:
            while not call.done():
                self._check()
                self._thread.wait(call, _STEP_S)
            return call.result()

        return result
