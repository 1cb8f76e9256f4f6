"""Schedules of A1-A4: AM attempts and drivers that come late, hang, or are left over."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from homeport.appmaster.runtime import stream_desk, takeover
from homeport.job_coordinator.metadata.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.metadata.managers import AmEpoch, EpochManager, Rank
from tests.unit.world.rules import schedule
from tests.unit.world.scene import Scene


class NoRanks(EpochManager):
    """Never shows the rank of an AM attempt."""

    def read_am_epoch(self) -> AmEpoch | None:
        """There seems to be none."""
        return None


def unwatched(patch: pytest.MonkeyPatch) -> None:
    """A driver that acts looks out for no higher rank, which would end it within a second."""
    patch.setattr(stream_desk, "EpochManager", NoRanks)


def fenced_before_written(patch: pytest.MonkeyPatch) -> None:
    """``take_rank`` initialises the lower ids first, and then writes its rank."""

    def take_rank(stream: CoordinatorStream, rank: Rank, fence: Callable[[Rank], None]) -> None:
        epochs = EpochManager(stream)
        lower = takeover._lower_ranks(epochs, rank)
        for other in lower:
            fence(other)
        epochs.write_am_epoch(AmEpoch(rank, lower))
        stream.catch_up()
        takeover._lower_ranks(epochs, rank)
        epochs.write_am_epoch(AmEpoch(rank))
        stream.catch_up()

    patch.setattr(takeover, "take_rank", take_rank)
    unwatched(patch)


@schedule("A2", fenced_before_written, "two drivers act")
def an_orphan_restarts_while_the_next_attempt_takes_over(scene: Scene) -> None:
    """The NodeManager of attempt 1 dies; its AM lives on, and YARN begins attempt 2.

    Attempt 2 stops for a moment right after it has fenced attempt 1. The orphan's driver is
    restarted in that moment, while its keeper stands still: its init comes late, and Kafka accepts
    it. Only what attempt 2 had written before it fenced can tell the orphan that it is over. Then
    the container dies, and whoever thinks that he is the driver permits the next one.
    """
    old = scene.working()
    new = scene.attempt(attempt=2, host="am2")
    scene.until(lambda: new.children[1].process is not None, "attempt 2 has a driver")
    fencing = f"init homeport.j.1.am.1.{old.rank.application}.1 answered"
    new.driver.stop_at(fencing)
    scene.until(lambda: new.driver.is_stopped, "attempt 2 has fenced attempt 1")
    old.keeper.stop()
    old.driver.kill()
    scene.run(1000)
    new.driver.go_on()
    scene.run(1000)
    scene.hosts.child("0@1").kill()
    scene.run(4000)
    scene.judge()
