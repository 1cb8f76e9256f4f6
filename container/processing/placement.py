"""Where a task's own partitioner puts a record."""

from __future__ import annotations

from collections.abc import Callable

from homeport.container.api import Partitioner


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


def placed(
    partitioner: Partitioner, key: bytes | None, system: str, topic: str, counts: Counts | None
) -> int:
    """The partition that ``partitioner`` gives ``key``.

    Raises:
        ValueError: there is no such partition.
    """
    count = 1 if counts is None else counts.of(system, topic)
    found: object = partitioner(key, count)
    if not isinstance(found, int) or not 0 <= found < count:
        name = getattr(partitioner, "__qualname__", type(partitioner).__name__)
        raise ValueError(
            f"the partitioner {name} gave {found!r} for {system}.{topic}, which has {count} "
            f"partitions: return an int from 0 to {count - 1}"
        )
    return found
