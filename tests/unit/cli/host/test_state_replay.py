"""An adjunct stream that is read again, by the classes that a container has for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import pytest
from confluent_kafka import Message

from homeport.cli.host.state_adjuncts import Replay
from homeport.config.config import Config
from homeport.config.errors import StoreError
from homeport.config.system_stream import SystemStream
from homeport.container.adjunct.store_plan import plan_stores
from homeport.container.adjunct.versions import PartitionEnd, Progress
from homeport.container.container_job import ContainerJob
from homeport.container.kafka.log_reader import LogReader
from homeport.container.progress.restore import OffsetRange
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.previous_assignment import NOTHING
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.job_model import SystemStreamPartition
from homeport.testing.broker import Stored
from homeport.testing.clients import message
from tests.unit.testing.joining_job import PARTITIONS, config

_AIRLINES = SystemStream("kafka", "airlines")
_A0, _A1 = (SystemStreamPartition("kafka", "airlines", number) for number in (0, 1))


class _Log:
    """In the place of a ``LogReader``: {partition: words}, from offset 0 on.

    ``key=value`` is a record, ``key=`` one without a value, another word a marker.
    """

    def __init__(self, words: Mapping[int, str]) -> None:
        self._words = {partition: text.split() for partition, text in words.items()}

    def read(
        self, topic: str, partition: int, start: int, head: int
    ) -> Iterator[Sequence[Message]]:
        assert start < head
        found = [
            _message(topic, partition, offset, word)
            for offset, word in enumerate(self._words[partition])
            if start <= offset < head
        ]
        yield from (found[at : at + 2] for at in range(0, len(found), 2))


def _message(topic: str, partition: int, offset: int, word: str) -> Message:
    key, is_record, value = word.partition("=")
    headers = None if is_record else [("version", word.replace("-", " ").encode())]
    data = value.encode() if value else None
    stored = Stored(key.encode(), data, 0, headers, offset, None)
    return message(topic, partition, offset, stored)


def _replay(words: Mapping[int, str], **more: str) -> Replay:
    keys = {
        **config(**more),
        "job.name": "join",
        "job.default.system": "kafka",
        "task.class": "tests.unit.testing.joining_job:Join",
        "systems.kafka.consumer.bootstrap.servers": "nowhere:9092",
        "stores.airlines.adstore.version.marker.header": "version",
    }
    inputs = {SystemStream.parse(name): count for name, count in PARTITIONS.items()}
    known = {stream: count for stream, count in inputs.items() if stream is not None}
    model = calculate_job_model(Config(keys), known, NOTHING)
    job = ContainerJob.of(model, ProcessorId("0"))
    (planned,) = plan_stores([job.adjuncts["airlines"]], job.tasks, ProcessorId("0")).stores
    return Replay(job, planned, cast("LogReader", _Log(words)))


def _read(replay: Replay, partition: int, found: OffsetRange) -> dict[bytes, bytes | None]:
    chunks = replay.read(_AIRLINES, partition, found.oldest, found.head)
    return {key: value for chunk in chunks for key, value in chunk.entries.items()}


_TWO = {
    0: "UA=old begin-7 UA=seven end-7 begin-8 UA=eight X=eight X= end-8 begin-9 UA=nine",
    1: "begin-8 AA=eight end-8",
}
_PARTS = {_A0: Progress(9, end=PartitionEnd.ENDED), _A1: Progress(3, end=PartitionEnd.ENDED)}


def test_a_version_is_the_records_between_its_markers() -> None:
    """Of each partition; what came before it and what came after are not of it."""
    replay = _replay(_TWO)
    kept = {_A0: OffsetRange(0, 11), _A1: OffsetRange(0, 3)}
    ranges, is_whole = replay.of_version(kept, _PARTS)
    assert is_whole
    assert (ranges[_A0].oldest, ranges[_A0].head) == (5, 8)
    assert _read(replay, 0, ranges[_A0]) == {b"UA": b"eight", b"X": None}
    assert _read(replay, 1, ranges[_A1]) == {b"AA": b"eight"}


@pytest.mark.parametrize(
    ("oldest", "begins", "is_whole"), [(4, 5, True), (5, 5, False), (8, 8, False), (9, 9, False)]
)
def test_a_version_whose_beginning_was_deleted_is_not_whole(
    oldest: int, begins: int, *, is_whole: bool
) -> None:
    """Without the marker before it the stream does not say what is missing."""
    kept = {_A0: OffsetRange(oldest, 11)}
    found = _replay(_TWO).of_version(kept, {_A0: _PARTS[_A0]})
    assert (found[0][_A0].oldest, found[1]) == (begins, is_whole)


def test_the_first_version_may_have_no_marker_before_it() -> None:
    """Where the stream has its first record, all is there."""
    kept = {_A0: OffsetRange(0, 2)}
    ranges, is_whole = _replay({0: "UA=one end"}).of_version(kept, {_A0: Progress(2)})
    assert (ranges[_A0].oldest, ranges[_A0].head, is_whole) == (0, 1, True)


_OWN = {"adstore__manager__factory": "tests.unit.testing.managing_job:Managers"}


def test_a_manager_of_the_jobs_own_makes_the_entries() -> None:
    """It has the stores that a container would give it."""
    replay = _replay(_TWO, **_OWN)
    assert _read(replay, 0, OffsetRange(5, 8)) == {b"UA": b"EIGHT", b"X": None}


def test_a_manager_that_fails_is_one_line_with_the_offset() -> None:
    """As in a container."""
    replay = _replay({0: "raise=x"}, **_OWN)
    with pytest.raises(StoreError, match=r"kafka\.airlines.* from offset 0 on: .*cannot do it"):
        _read(replay, 0, OffsetRange(0, 1))
