"""The steps in which an adjunct store is filled and kept.

PURE. A container may die between any two of them.
"""

from dataclasses import dataclass
from enum import StrEnum


class AdjunctAction(StrEnum):
    """The action of one step.

    ``WRITE``: entries and position of a micro-batch are in the engine, before tasks see the batch.
    ``FLUSH``: all that was written is on the disk. ``TOUCH``: ``ADJUNCT-META`` has the time of the
    flush and, where the stream is compacted, the last time at the head. By both a start judges the
    store's age. The others carry out the verdict on a version of a bounded data set.
    """

    WRITE = "write-adjunct"
    FLUSH = "flush-adjunct"
    TOUCH = "touch-adjunct"
    FLUSH_VERSION = "flush-version"
    WRITE_CATALOGUE = "write-catalogue"
    SWITCH_VERSION = "switch-version"
    DROP_VERSION = "drop-version"


@dataclass(frozen=True, slots=True)
class AdjunctStep:
    """One step of the store in the directory ``store``, below the job's folder.

    ``version``: the one that it is about; None: it is about the store.
    """

    action: AdjunctAction
    store: str
    version: int | None = None

    def __str__(self) -> str:
        """Return the name of the step, such as ``flush-adjunct planes/Partition_0``."""
        return f"{self.action} {self.store}"


SWITCH_STEPS = (
    AdjunctAction.FLUSH_VERSION,
    AdjunctAction.WRITE_CATALOGUE,
    AdjunctAction.SWITCH_VERSION,
    AdjunctAction.DROP_VERSION,
)
"""The actions after the write that makes a version whole, in their order."""


def flush_steps(store: str, *, has_moved: bool) -> tuple[AdjunctStep, ...]:
    """Return the steps of one flush. A store that did not move only becomes younger."""
    touch = AdjunctStep(AdjunctAction.TOUCH, store)
    return (AdjunctStep(AdjunctAction.FLUSH, store), touch) if has_moved else (touch,)
