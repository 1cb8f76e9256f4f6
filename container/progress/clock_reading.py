"""The readings of a machine's clocks at one moment, and the time between two readings.

PURE. The calendar's clock can be set. The clock that counts from the machine's start cannot, but it
begins at 0 with each start, and may have stopped while a virtual machine was frozen.
"""

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
    """Return the least time from ``earlier`` to ``later``; None where the clock was set back.

    Within one start of a machine it is the longer of the times by its two clocks. If one of them is
    wrong, the result may be too long, never too short.
    """
    by_wall = later.wall_ms - earlier.wall_ms
    if earlier.boot_id and earlier.boot_id == later.boot_id:
        return max(by_wall, later.boot_ms - earlier.boot_ms)
    return None if by_wall < 0 else by_wall
