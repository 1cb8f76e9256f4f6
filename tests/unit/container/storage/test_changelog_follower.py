"""The stores of a standby on real RocksDB, with what comes of their changelogs handed to them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from store_copies import offset
from stores_in_memory_log import CONFIG

from homeport.config.errors import StoreError
from homeport.config.settings.stores_section import StorageConfig
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.follow import HeadPoll
from homeport.container.progress.store_meta import StoreMeta
from homeport.container.storage.changelog_follower import ChangelogFollower, next_offset
from homeport.container.storage.changelog_reader import Chunk
from homeport.container.storage.directory import StoreDirectory
from homeport.container.storage.storage_engines import StorageEngines
from homeport.container.storage.task_store import Position, TaskStore, open_task_store
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import TaskMode, TaskModel
from homeport.job_coordinator.status.container_report import StoreLag

TASK = TaskModel(
    TaskName("Standby-Partition 3-0"), (), 3, TaskMode.STANDBY, TaskName("Partition 3")
)
PLACE = ("log", 3)


class _Feed:
    """What comes, in turn, and the answer to the poll that is under way."""

    def __init__(self) -> None:
        self.chunks: list[dict[Position, Chunk]] = []
        self.answer: dict[Position, HeadPoll] = {}
        self.is_busy = False

    def poll(self, seconds: float) -> Mapping[Position, Chunk]:
        assert seconds == 0.5
        return self.chunks.pop(0) if self.chunks else {}

    def ask(self) -> bool:
        is_free, self.is_busy = not self.is_busy, True
        return is_free

    def polled(self) -> Mapping[Position, HeadPoll]:
        found, self.answer = self.answer, {}
        return found


def _store(folder: Path) -> TaskStore:
    """A store that was restored to the head, which is at offset 9, at 5,000 ms."""
    config = StorageConfig.of(CONFIG).stores["s"]
    directory = StoreDirectory(folder / "s" / "Partition_3")
    engines = StorageEngines(1 << 24, 1)
    store = open_task_store(config, TASK, directory, engines)
    store.engine = engines.open(config, directory.path)
    store.follow({b"a": b"1", b"b": b"1"}, 9)
    store.expected = StoreMeta("log 3", "id-1", (), "G", ClockReading(5_000), 60_000)
    store.at_head = ClockReading(5_000)
    return store


def test_a_standby_holds_the_records_that_arrived(tmp_path: Path) -> None:
    """Last values, deletions, and the end behind a marker; OFFSET names the position at a commit.

    Its directory and STORE-META are its active task's.
    """
    store, feed = _store(tmp_path), _Feed()
    assert (store.place, next_offset(store)) == (PLACE, 10)
    follower = ChangelogFollower([store], feed, lambda: ClockReading(6_000))
    feed.chunks = [{PLACE: Chunk({b"a": b"2", b"b": None}, 3, 12)}, {PLACE: Chunk({}, 0, 13)}]
    assert [follower.step(0.5) for _ in range(3)] == [3, 0, 0]
    assert dict(store.opened().scan()) == {b"a": b"2"}
    assert store.flush()
    assert offset(store.directory.path) == 13
    store.close()


def test_looks_report_how_far_it_is_behind(tmp_path: Path) -> None:
    """The next look is requested once the one before it is answered; STORE-META knows the head."""
    store, feed = _store(tmp_path), _Feed()
    follower = ChangelogFollower([store], feed, lambda: ClockReading(6_000))
    follower.poll_heads()
    feed.chunks = [{PLACE: Chunk({b"c": b"1"}, 1, 10)}]
    feed.answer = {PLACE: HeadPoll(ClockReading(5_500), 0, 10, "id-1")}
    assert follower.step(0.5) == 1
    assert store.at_head.wall_ms == 5_500
    feed.is_busy = False
    follower.poll_heads()
    follower.poll_heads()
    feed.answer = {PLACE: HeadPoll(ClockReading(6_000), 0, 15, "id-1")}
    assert follower.step(0.5) == 0
    assert follower.lags() == [StoreLag("s", TASK.task_name, 4, 0.5)]
    store.close()


def test_a_record_that_arrives_twice_is_skipped(tmp_path: Path) -> None:
    """The end is reported again and again while nothing comes."""
    store, feed = _store(tmp_path), _Feed()
    follower = ChangelogFollower([store], feed, lambda: ClockReading(6_000))
    feed.chunks = [{PLACE: Chunk({b"a": b"old"}, 1, 9)}]
    assert follower.step(0.5) == 0
    assert store.opened().get(b"a") == b"1"
    store.close()


@pytest.mark.parametrize("is_read", [True, False])
def test_a_store_that_cannot_go_on_is_left_as_it_was(tmp_path: Path, *, is_read: bool) -> None:
    """One line names store, changelog and reason; nothing of what came is written."""
    store, feed = _store(tmp_path), _Feed()
    follower = ChangelogFollower([store], feed, lambda: ClockReading(100_000))
    if is_read:
        feed.chunks = [{PLACE: Chunk({b"a": b"2"}, 1, 30)}]
    else:
        feed.answer = {PLACE: HeadPoll(ClockReading(6_000), 0, 50, "id-2")}
    with pytest.raises(StoreError, match=r"s/Standby-Partition 3-0 .* kafka\.log any more: .*"):
        follower.step(0.5)
    assert (store.position, store.opened().get(b"a")) == (9, b"1")
    store.close()


def test_a_store_that_was_not_restored_is_not_followed(tmp_path: Path) -> None:
    """Its position is unknown."""
    store = _store(tmp_path)
    store.expected = None
    with pytest.raises(StoreError, match="was not restored"):
        ChangelogFollower([store], _Feed(), lambda: ClockReading(0))
    store.position = None
    assert next_offset(store) == 0
    store.close()
