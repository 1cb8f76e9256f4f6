"""What a start looks up beside its other steps."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Sequence
from typing import cast

import pytest
from confluent_kafka import Message
from small_jobs import KEYS, LOGGED, job_of

from homeport.config.errors import UnavailableError
from homeport.config.system_stream import SystemStream
from homeport.container.host.stop_flag import StopRequestedError
from homeport.container.incarnation import look_ahead
from homeport.container.incarnation.look_ahead import Beside, LookedUp, look, topics_of
from homeport.container.kafka.log_reader import LogReader
from homeport.container.progress.restore import ChangelogTopic, OffsetRange


class _Reader:
    """A Kafka; ``asked`` has each request."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    def changelog_topics(self, names: Sequence[str]) -> dict[str, ChangelogTopic]:
        self.asked.append(("topics", *names))
        return {name: ChangelogTopic(f"id {len(self.asked)}", 5) for name in names}

    def ends(self, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], OffsetRange]:
        self.asked.append("ends")
        return {place: OffsetRange(2, 9) for place in places}


@pytest.mark.parametrize("is_restored", [False, True])
def test_a_start_requests_what_it_will_read(
    monkeypatch: pytest.MonkeyPatch, *, is_restored: bool
) -> None:
    """All ends at once; a second look at a topic is a request of its own."""
    record = cast("Message", object())
    monkeypatch.setattr(look_ahead, "last_records", lambda *_: [record])
    job, reader = job_of(LOGGED), _Reader()
    (store,), (task,) = job.stores, job.tasks
    readers = cast("dict[str, LogReader]", dict.fromkeys(job.systems, reader))
    looked = look(job, readers, {} if is_restored else topics_of(job, readers))
    assert looked.checkpoints == [record]
    assert set(looked.ranges) >= set(task.system_stream_partitions)
    assert set(looked.topics) == (set() if is_restored else {store.changelog})
    if not is_restored:
        changelog = cast("SystemStream", store.changelog)
        given, before = LookedUp(readers, looked), len(reader.asked)
        assert given.ranges([(changelog, task.changelog_partition)]) == [OffsetRange(2, 9)]
        assert given.topics([changelog]) == looked.topics
        assert len(reader.asked) == before
        assert given.topics([changelog]) != looked.topics


def test_a_job_without_checkpoints_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no topic to read."""
    monkeypatch.setattr(look_ahead, "last_records", lambda *_: pytest.fail("it was read"))
    job = job_of({**LOGGED, "task.checkpoint.factory": "none"})
    readers = cast("dict[str, LogReader]", dict.fromkeys(job.systems, _Reader()))
    assert look(job, readers, {}).checkpoints == []
    assert topics_of(job_of(KEYS), readers) == {}


def _refused() -> None:
    raise UnavailableError("refused")


def test_calls_are_made_beside_and_their_errors_come_with_the_result() -> None:
    """In another thread, one after the other."""
    begun = threading.Event()
    with Beside(lambda: None) as beside:
        first = beside.begin(lambda: begun.wait(60) and threading.get_ident())
        second = beside.begin(_refused)
        begun.set()
        with pytest.raises(UnavailableError):
            second()
        assert first() not in {False, threading.get_ident()}


def test_an_order_to_stop_ends_the_wait_and_what_it_leaves_is_waited_for() -> None:
    """The call may use what is closed next."""
    ordered, done = threading.Event(), list[str]()

    def call() -> None:
        ordered.wait(60)
        done.append("done")

    def check() -> None:
        ordered.set()
        raise StopRequestedError

    with pytest.raises(StopRequestedError), Beside(check) as beside:
        beside.begin(call)()
    assert done == ["done"]


def test_what_is_looked_up_later_is_looked_up_once() -> None:
    """A processor's permit is confirmed first: a command may change the state until then."""
    calls = itertools.count(1)
    result = Beside.later(lambda: next(calls))
    assert next(calls) == 1
    assert (result(), result(), next(calls)) == (2, 2, 3)
