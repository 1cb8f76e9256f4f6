"""The one order in which stores of standbys live, on real RocksDB; Kafka's part is the test's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest
from small_jobs import LOGGED, context_in, job_of
from store_copies import offset

from homeport.config.errors import StoreError
from homeport.config.system_stream import SystemStream
from homeport.container.host.clocks import read_clocks
from homeport.container.host.permit import Permit
from homeport.container.host.stop_flag import StopRequestedError
from homeport.container.incarnation import replicas as module
from homeport.container.incarnation import restoring
from homeport.container.incarnation.context import IncarnationContext
from homeport.container.incarnation.replicas import Replicas
from homeport.container.progress.follow import HeadPoll
from homeport.container.progress.restore import ChangelogTopic, OffsetRange
from homeport.container.storage.changelog_reader import Chunk
from homeport.container.storage.task_store import Position
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.status.container_report import ContainerReport

PLACE = ("log", 0)


class _Log:
    """The changelog at the start, a reader of it, and the feed of what comes then."""

    def __init__(self) -> None:
        self.chunks: list[dict[Position, Chunk]] = []
        self.topic_id = "id-1"
        self.starts: Mapping[Position, int] = {}
        self.is_asked = self.is_closed = False

    def topics(self, changelogs: Sequence[SystemStream]) -> dict[SystemStream, ChangelogTopic]:
        topic = ChangelogTopic("id-1", 60_000, deletes_by_age=False)
        return dict.fromkeys(changelogs, topic)

    def ranges(self, changelogs: Sequence[tuple[SystemStream, int]]) -> list[OffsetRange]:
        return [OffsetRange(0, 2) for _ in changelogs]

    def read_all(
        self, spans: Mapping[tuple[SystemStream, int], object]
    ) -> Iterator[tuple[tuple[SystemStream, int], Chunk]]:
        for place in spans:
            yield place, Chunk({b"a": b"1", b"b": b"1"}, 2, 1)

    def feed(
        self, _system: object, starts: Mapping[Position, int], *_more: object, native: bool
    ) -> _Log:
        assert native
        self.starts = starts
        return self

    def poll(self, _seconds: float) -> Mapping[Position, Chunk]:
        return self.chunks.pop(0) if self.chunks else {}

    def ask(self) -> bool:
        is_first, self.is_asked = not self.is_asked, True
        return is_first

    def polled(self) -> Mapping[Position, HeadPoll]:
        return {PLACE: HeadPoll(read_clocks(), 0, 14, self.topic_id)} if self.is_asked else {}

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> _Log:
    """Kafka, as replicas see it."""
    made = _Log()
    monkeypatch.setattr(module, "log_readers", lambda *_: nullcontext({}))
    monkeypatch.setattr(restoring, "KafkaChangelogReader", lambda _: made)
    monkeypatch.setattr(module, "KafkaChangelogFeed", made.feed)
    return made


@pytest.fixture
def reports() -> list[ContainerReport]:
    """What they send."""
    return []


class _Steps:
    """A ``pause`` that counts its calls, and ends the following when ``is_enough``."""

    def __init__(self) -> None:
        self.count = 0
        self.is_enough: Callable[[], bool] = lambda: False

    def pause(self, _seconds: float) -> None:
        self.count += 1
        if self.is_enough():
            raise StopRequestedError("enough")


@pytest.fixture
def steps() -> _Steps:
    """What ends the following."""
    return _Steps()


@pytest.fixture
def context(
    log: _Log, reports: list[ContainerReport], steps: _Steps, tmp_path: Path
) -> IncarnationContext:
    """That of one standby task."""
    del log
    job, permit = job_of(LOGGED, "0-0"), Permit(Incarnation(ProcessorId("0-0"), 4), 7, ())
    return context_in(tmp_path, job, permit, send=reports.append, pause=steps.pause)


@pytest.fixture
def replicas(context: IncarnationContext) -> Replicas:
    """Nothing of them is open."""
    return Replicas(context)


def test_stores_are_restored_followed_flushed_and_closed(
    replicas: Replicas,
    context: IncarnationContext,
    log: _Log,
    reports: list[ContainerReport],
    steps: _Steps,
) -> None:
    """The feed begins behind the restore, is closed first, and what it brought stays."""
    (how,) = replicas.restore()["s"].values()
    assert (how.records, log.starts) == (2, {PLACE: 2})
    assert list(context.phases.seconds) == ["stores", "restore"]
    log.chunks = [{PLACE: Chunk({b"a": b"2", b"b": None}, 2, 3)}, {PLACE: Chunk({}, 0, 4)}]
    last, flushed = steps.count + 3, list[int]()
    steps.is_enough = lambda: steps.count > last
    # No flush is due by the clock: the one at the end has all that came.
    replicas.follow(lambda: 1e9, flushed.append)
    assert (flushed, log.is_closed) == ([1], True)
    (store,) = replicas.storage.logged
    assert dict(store.opened().scan()) == {b"a": b"2"}
    assert [(lag.store, lag.records) for lag in reports[-1].lags] == [("s", 0)]
    path = store.directory.path
    replicas.close()
    assert offset(path) == 4
    replicas.storage.open()  # no lock is left
    replicas.storage.close()


def test_a_flush_comes_when_it_is_due(replicas: Replicas, log: _Log, steps: _Steps) -> None:
    """At each step here; the number is that of the stores that have moved, if any."""
    replicas.restore()
    log.chunks = [{PLACE: Chunk({b"a": b"2"}, 1, 2)}, {}, {PLACE: Chunk({b"a": b"3"}, 1, 3)}]
    flushed: list[int] = []
    steps.is_enough = lambda: len(flushed) == 2
    replicas.follow(lambda: 0.0, flushed.append)
    assert flushed == [1, 1]
    replicas.close()


def test_a_store_that_cannot_go_on_ends_the_following(replicas: Replicas, log: _Log) -> None:
    """Nothing is read any more; the stores are the caller's to close."""
    replicas.restore()
    log.topic_id = "id-2"
    with pytest.raises(StoreError, match=r"cannot follow its changelog kafka\.log any more"):
        replicas.follow(lambda: 1e9)
    assert log.is_closed
    replicas.close()
