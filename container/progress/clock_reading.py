"""What a machine's clocks say at one moment, and how much time two such readings are apart.

PURE. The calendar's clock can be set; the one that counts from the machine's start cannot, but it
begins at 0 with each start, and need not have gone on while a virtual machine was frozen.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClockReading:
    """Units: ms; since the epoch, and since the start of the machine, which ``boot_id`` names.

    ``boot_id``: empty where it is not known.
    """

    wall_ms: int
    boot_id: str = ""
    boot_ms: int = 0


NEVER = ClockReading(0)


def elapsed_ms(earlier: ClockReading, later: ClockReading) -> int | None:
    """Return how long ``later`` is after ``earlier``, at least; None where the clock was set back.

    Within one start of a machine the longer of what its two clocks say: with either of them wrong
    the result may be too long, never too short.
    """
    by_wall = later.wall_ms - earlier.wall_ms
    if earlier.boot_id and earlier.boot_id == later.boot_id:
        return max(by_wall, later.boot_ms - earlier.boot_ms)
    return None if by_wall < 0 else by_wall
