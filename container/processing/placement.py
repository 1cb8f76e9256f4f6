"""Where a record goes that names its partition, or that a task's own partitioner places."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from homeport.container.api import Partitioner
from homeport.container.processing.record_rules import partition_number


class Counts:
    """How many partitions topics have, each asked for once: a container keeps to one number.

    Args:
        count_of: (system, topic) to its number of partitions.
    """

    def __init__(self, count_of: Callable[[str, str], int]) -> None:
        self._count_of = count_of
        self._known: dict[tuple[str, str], int] = {}

    def of(self, system: str, topic: str) -> int:
        """The number of one topic."""
        place = system, topic
        if place not in self._known:
            self._known[place] = self._count_of(system, topic)
        return self._known[place]

    def require(self, system: str, topic: str, partition: int) -> None:
        """Raise ValueError where the topic has no such partition.

        One beyond the known number may have come since: it requests the number once more.
        """
        count = self.of(system, topic)
        if partition >= count:
            del self._known[system, topic]
            count = self.of(system, topic)
        if not 0 <= partition < count:
            raise ValueError(
                f"it has no partition {partition}: the topic has partitions 0 to {count - 1}"
            )


def placed(
    partitioner: Partitioner, key: bytes | None, system: str, topic: str, counts: Counts | None
) -> int:
    """The partition that ``partitioner`` gives ``key``.

    Raises:
        ValueError: there is no such partition.
    """
    count = 1 if counts is None else counts.of(system, topic)
    found: object = partitioner(key, count)
    with contextlib.suppress(TypeError):
        number = partition_number(found)
        if 0 <= number < count:
            return number
    name = getattr(partitioner, "__qualname__", type(partitioner).__name__)
    raise ValueError(
        f"the partitioner {name} gave {found!r} for {system}.{topic}, which has {count} "
        f"partitions: return an int from 0 to {count - 1}"
    )
