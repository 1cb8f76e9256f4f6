"""A job that counts by another key, while the driver or a container dies at any of its steps."""

from __future__ import annotations

import pytest

from tests.unit.world.judges import counted
from tests.unit.world.kafka import Partition
from tests.unit.world.scene import Scene
from tests.unit.world.schedules.repartitions import REKEYED
from tests.unit.world.world import World

TOPIC = "__homeport_repartition_j_1_by"


@pytest.mark.search
@pytest.mark.parametrize("words", ["commit ", "init ", "fetch ", "delete records", "send to "])
def test_each_record_is_counted_once_whatever_dies(words: str) -> None:
    """The container dies at each request, before it leaves and when its answer is there."""
    nth, has_stopped = 1, True
    while has_stopped:
        with World(partitions=2, config=REKEYED) as world:
            has_stopped = announce(Scene(world), words, nth)
        nth += 1
    assert nth > 2


def announce(scene: Scene, words: str, nth: int) -> bool:
    """The container dies at its ``nth`` point of that name; whether it had one.

    What both of its partitions sent on is deleted afterwards, and nothing that was not counted.
    """
    scene.attempt()
    child = scene.child("0@1")
    child.stop_at(words, nth)
    for partition, key in enumerate((b"k", b"l")):
        scene.produce(3, key, partition)
    scene.until(
        lambda: child.is_stopped or counted(scene.world) == scene.produced, "it dies or all is done"
    )
    scene.run(100)
    has_stopped = child.is_stopped
    child.kill()
    scene.until_counted()
    for partition, key in enumerate((b"k", b"l")):
        scene.produce(2, key, partition)
        scene.until_counted()
    scene.judge()
    logs = [scene.world.broker.partition((TOPIC, number)) for number in range(2)]
    assert any(log.oldest > 0 for log in logs)
    assert sum(map(sent, logs)) == scene.produced
    return has_stopped


def sent(log: Partition) -> int:
    """How many records of the partition were committed."""
    return sum(1 for _ in log.committed(0, log.end))
