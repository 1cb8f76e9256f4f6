"""Schedules of K1-K4: reading to the head, and writing so that nobody is hidden."""

from __future__ import annotations

import pytest
from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import OffsetSpec

from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from tests.unit.world.rules import schedule
from tests.unit.world.scene import Scene
from tests.unit.world.schedules.attempts import unwatched


def head_of_what_is_stable(patch: pytest.MonkeyPatch) -> None:
    """The head of the coordinator stream is asked as a reader of committed records sees it."""

    def head(store: CoordinatorStreamStore) -> int:
        place = TopicPartition(store._topic, 0)
        latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # untyped there
        futures = store._admin.list_offsets(
            {place: latest}, isolation_level=IsolationLevel.READ_COMMITTED
        )
        return int(futures[place].result().offset)

    patch.setattr(CoordinatorStreamStore, "_head", head)
    unwatched(patch)


@schedule("K1", head_of_what_is_stable, "two drivers act")
def the_markers_of_a_commit_come_late(scene: Scene) -> None:
    """Attempt 2 has written its rank: acknowledged, but the broker is slow with the markers.

    The orphaned driver of attempt 1 is restarted in that moment and reads to the head. The record
    of the higher rank is in the log, before a last stable offset that does not show it yet.
    """
    old = scene.working()
    old.keeper.stop()
    new = scene.attempt(attempt=2, host="am2")
    scene.until(lambda: new.children[1].process is not None, "attempt 2 has a driver")
    scene.world.broker.marker_delay_ms = 800
    new.driver.stop_at(f"init homeport.j.1.am.1.{old.rank.application}.1 answered")
    scene.until(lambda: new.driver.is_stopped, "attempt 2 has fenced attempt 1")
    old.driver.kill()
    scene.run(1000)
    scene.world.broker.marker_delay_ms = 1
    new.driver.go_on()
    scene.run(1000)
    scene.hosts.child("0@1").kill()
    scene.run(4000)
    scene.judge()
