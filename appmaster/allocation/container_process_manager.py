"""``step(state, event) -> Decision``: the one entrance to the allocator.

PURE.
"""

from __future__ import annotations

from dataclasses import dataclass

from homeport.appmaster.allocation.events import Event
from homeport.appmaster.allocation.instructions import Instruction, Record
from homeport.appmaster.allocation.state import AllocatorState


@dataclass(frozen=True, slots=True)
class Decision:
    """What one event led to: flush ``records``, then run ``instructions`` in order, and go on from ``state``."""

    state: AllocatorState
    records: tuple[Record, ...]
    instructions: tuple[Instruction, ...]


def step(state: AllocatorState, event: Event) -> Decision:
    """The state after ``event``, and what follows from it."""
    raise NotImplementedError(event)
