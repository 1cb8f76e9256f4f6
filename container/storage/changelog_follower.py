"""ChangelogFollower: keeps the stores of a standby as their changelogs are."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from homeport.config.errors import StoreError
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.follow import CHANGELOG, Followed, HeadPoll
from homeport.container.progress.refusal import Refusal
from homeport.container.storage.changelog_reader import Chunk
from homeport.container.storage.task_store import Position, TaskStore
from homeport.job_coordinator.status.container_report import StoreLag


class ChangelogFeed(Protocol):
    """What comes of the changelogs: their committed records, and polls of their heads."""

    def poll(self, seconds: float) -> Mapping[Position, Chunk]:
        """Return what has come, after at most ``seconds``, all of it up to ``last_offset``."""

    def ask(self) -> bool:
        """Begin a poll of the heads; return False while an earlier poll is under way."""

    def polled(self) -> Mapping[Position, HeadPoll]:
        """Return the outcome of the last poll; nothing until it is there."""


class ChangelogFollower:
    """Of stores that were restored to the heads of their changelogs. One thread.

    Raises:
        StoreError: (from ``step``) a store cannot go on from where it stands; a new start restores
            it in full.
    """

    def __init__(
        self, stores: Sequence[TaskStore], feed: ChangelogFeed, clocks: Callable[[], ClockReading]
    ) -> None:
        self._feed = feed
        self._clocks = clocks
        self._followed = {store.place: (store, _followed(store)) for store in stores}

    def step(self, seconds: float) -> int:
        """Put what comes within ``seconds`` into the stores; return how many records that were."""
        records = 0
        for place, chunk in self._feed.poll(seconds).items():
            store, changelog = self._followed[place]
            if chunk.last_offset >= changelog.next:
                _require(store, changelog.read(chunk.last_offset + 1, self._clocks()))
                store.follow(chunk.entries, chunk.last_offset)
                records += chunk.records
        for place, poll in self._feed.polled().items():
            store, changelog = self._followed[place]
            _require(store, changelog.take_heads(poll))
        for store, changelog in self._followed.values():
            store.at_head = changelog.at_head
        return records

    def poll_heads(self) -> None:
        """Request the heads of the changelogs; a later ``step`` has them."""
        if self._feed.ask():
            for _, changelog in self._followed.values():
                changelog.ask()

    def lags(self) -> list[StoreLag]:
        """Return how far each store was behind at the last poll."""
        return [
            StoreLag(store.config.name, store.task.task_name, changelog.lag, changelog.lag_s)
            for store, changelog in self._followed.values()
        ]


def next_offset(store: TaskStore) -> int:
    """Return the offset from which the store follows."""
    return 0 if store.position is None else store.position + 1


def _followed(store: TaskStore) -> Followed:
    expected = store.expected
    if expected is None:
        raise StoreError(f"store {store.name} was not restored")
    kept_ms, topic_id = expected.delete_retention_ms, expected.topic_id
    return Followed(topic_id, next_offset(store), store.at_head, CHANGELOG, kept_ms)


def _require(store: TaskStore, fault: Refusal | None) -> None:
    if fault is not None:
        raise StoreError(
            f"store {store.name} cannot follow its changelog {store.changelog} any more: "
            f"{fault.story}; the next start restores it"
        )
