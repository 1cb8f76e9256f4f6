"""The one order in which stores of standbys live, on real RocksDB; Kafka's part is the test's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from small_jobs import LOGGED, environment_in, job_of
from store_copies import offset

from homeport.config.errors import StoreError
from homeport.config.system_stream import SystemStream
from homeport.container.host.clocks import read_clocks
from homeport.container.host.permit import Permit
from homeport.container.host.stop_flag import StopFlag, StopRequestedError
from homeport.container.incarnation import replicas as module
from homeport.container.incarnation import restoring
from homeport.container.incarnation.replicas import Replicas
from homeport.container.incarnation.start_up import Phases
from homeport.container.progress.follow import HeadPoll
from homeport.container.progress.restore import ChangelogRange, ChangelogTopic
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

    def ranges(self, changelogs: Sequence[tuple[SystemStream, int]]) -> list[ChangelogRange]:
        return [ChangelogRange(0, 2) for _ in changelogs]

    def read(self, *_range: object) -> Iterator[Chunk]:
        yield Chunk({b"a": b"1", b"b": b"1"}, 2, 1)

    def feed(self, _system: object, starts: Mapping[Position, int], *_more: object) -> _Log:
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


@pytest.fixture
def replicas(log: _Log, reports: list[ContainerReport], tmp_path: Path) -> Replicas:
    """Those of one standby task; nothing of them is open."""
    del log
    job, permit = job_of(LOGGED, "0-0"), Permit(Incarnation(ProcessorId("0-0"), 4), 7, ())
    place, pause = environment_in(tmp_path), StopFlag().pause
    return Replicas(job, permit, place, _unheard, reports.append, pause)


def _unheard(_name: str, **_fields: Any) -> None:  # noqa: ANN401 - any event
    """A history that is not read."""


def _follow(replicas: Replicas, steps: int, flushed: list[int]) -> None:
    """Follow for so many steps, without a flush that is due by the clock."""
    left = iter(range(steps))

    def check() -> None:
        if next(left, None) is None:
            raise StopRequestedError("enough")

    with pytest.raises(StopRequestedError):
        replicas.follow(lambda: 1e9, check, flushed.append)


def test_stores_are_restored_followed_flushed_and_closed(
    replicas: Replicas, log: _Log, reports: list[ContainerReport]
) -> None:
    """The feed begins behind the restore, is closed first, and what it brought stays."""
    phases, flushed = Phases(), list[int]()
    (how,) = replicas.restore(phases)["s"].values()
    assert (how.records, log.starts, list(phases.seconds)) == (2, {PLACE: 2}, ["stores", "restore"])
    log.chunks = [{PLACE: Chunk({b"a": b"2", b"b": None}, 2, 3)}, {PLACE: Chunk({}, 0, 4)}]
    _follow(replicas, 3, flushed)
    assert (flushed, log.is_closed) == ([], True)
    (store,) = replicas.storage.logged
    assert dict(store.opened().scan()) == {b"a": b"2"}
    assert [(lag.store, lag.records) for lag in reports[-1].lags] == [("s", 0)]
    assert replicas.storage.flush() == 1
    path = store.directory.path
    replicas.close()
    assert offset(path) == 4
    replicas.storage.open()  # no lock is left
    replicas.storage.close()


def test_a_flush_comes_when_it_is_due(replicas: Replicas, log: _Log) -> None:
    """At each step here; the number is that of the stores that have moved."""
    replicas.restore(Phases())
    log.chunks = [{PLACE: Chunk({b"a": b"2"}, 1, 2)}, {}, {PLACE: Chunk({b"a": b"3"}, 1, 3)}]
    flushed: list[int] = []

    def check() -> None:
        if len(flushed) == 3:
            raise StopRequestedError("enough")

    with pytest.raises(StopRequestedError):
        replicas.follow(lambda: 0.0, check, flushed.append)
    assert flushed == [1, 0, 1]
    replicas.close()


def test_a_store_that_cannot_go_on_ends_the_following(replicas: Replicas, log: _Log) -> None:
    """Nothing is read any more; the stores are the caller's to close."""
    replicas.restore(Phases())
    log.topic_id = "id-2"
    with pytest.raises(StoreError, match=r"cannot follow its changelog kafka\.log any more"):
        replicas.follow(lambda: 1e9, lambda: None, lambda _moved: None)
    assert log.is_closed
    replicas.close()
