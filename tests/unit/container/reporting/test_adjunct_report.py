"""What an active container reports of its adjunct stores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from homeport.container.adjunct.store_plan import plan_stores
from homeport.container.kafka.input_consumer import InputConsumer
from homeport.container.reporting.adjunct_report import adjunct_states
from homeport.container.storage.adjunct.adjunct_storage import AdjunctStorage
from homeport.container.storage.adjunct.filled_store import StoreFacts
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition, TaskModel
from homeport.job_coordinator.status.container_report import AdjunctState
from tests.unit.container.adjunct.adjuncts import adjunct

_TASK = TaskName("Partition 0")
_AIRLINES, _PLANES = (SystemStreamPartition("kafka", name, 0) for name in ("airlines", "planes"))


class _Storage:
    def now_ms(self) -> int:
        return 5_000

    def facts(self) -> list[tuple[object, StoreFacts]]:
        adjuncts = [adjunct("planes", is_broadcast=False), adjunct("airlines", is_broadcast=True)]
        task = TaskModel(_TASK, (_AIRLINES, _PLANES), 0)
        airlines, planes = plan_stores(adjuncts, [task], ProcessorId("0")).stores
        return [
            (airlines, StoreFacts(7, 4096, {_AIRLINES: 9}, 1_000, 3)),
            (planes, StoreFacts(0, None, {_PLANES: 0})),
        ]


class _Source:
    """The planes are still awaited."""

    def lag_of(self, partitions: Sequence[SystemStreamPartition]) -> int | None:
        return None if _PLANES in partitions else 2

    def bootstrap_left(
        self, partitions: Sequence[SystemStreamPartition]
    ) -> tuple[int, float | None] | None:
        return (8, 1.5) if _PLANES in partitions else None


def test_each_store_is_told_with_its_stream() -> None:
    """How far it is, how old, and how long other inputs wait for it."""
    storage, source = cast("AdjunctStorage", _Storage()), cast("InputConsumer", _Source())
    assert adjunct_states(storage, source) == (
        AdjunctState(
            "airlines", _TASK, "kafka.airlines", "broadcast", 7, 4096, {"0": 9}, 2, None, None, 4, 3
        ),
        AdjunctState(
            "planes", _TASK, "kafka.planes", "partitioned", 0, None, {"0": 0}, None, 8, 1.5
        ),
    )
    assert adjunct_states(None, source) == ()
