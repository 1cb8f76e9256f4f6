"""The steps that flush one store, and their order.

PURE. Source: safety S1, S2. A plan is the order of the steps and nothing else:
the container may die between any two of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from homeport.container.progress.transaction_plan import StoreId


class FlushAction(StrEnum):
    """What one step does."""

    FLUSH = "flush"
    WRITE_OFFSET = "write-OFFSET"
    WRITE_OFFSET_V2 = "write-OFFSET-v2"
    WRITE_META = "write-STORE-META"


@dataclass(frozen=True, slots=True)
class FlushStep:
    """One step of the plan for ``store``; ``offset``: what an OFFSET file is to say."""

    action: FlushAction
    store: StoreId
    offset: int | None = None

    def __str__(self) -> str:
        """The name of the step, such as ``flush counts/Partition 0``."""
        return f"{self.action} {self.store}"


@dataclass(frozen=True, slots=True)
class StoreProgress:
    """How far one store has come.

    ``position``: the changelog offset that it holds all up to; None: it has none. ``flushed``:
    what OFFSET says; None: there is no file. ``keeps_meta``: whether it has a STORE-META at all;
    ``is_meta_due``: whether that is to be written even if the store has not moved.
    """

    position: int | None
    flushed: int | None
    keeps_meta: bool
    is_meta_due: bool

    @property
    def has_moved(self) -> bool:
        """Return whether OFFSET lies behind."""
        return self.position is not None and self.position != self.flushed


def flush_plan(store: StoreId, progress: StoreProgress) -> tuple[FlushStep, ...]:
    """Return the steps that flush one store; none where nothing has changed.

    OFFSET gets the position before the flush (safety S1); STORE-META says when that was the head
    (S2).
    """
    if progress.position is None:
        return ()
    meta = [FlushAction.WRITE_META] if progress.keeps_meta else []
    if not progress.has_moved:
        return tuple(FlushStep(action, store) for action in meta if progress.is_meta_due)
    return (
        FlushStep(FlushAction.FLUSH, store),
        FlushStep(FlushAction.WRITE_OFFSET, store, progress.position),
        FlushStep(FlushAction.WRITE_OFFSET_V2, store, progress.position),
        *(FlushStep(action, store) for action in meta),
    )
