"""How often launchers are to ask what to do: as configured, unless there are too many of them.

A check-in costs the driver two thirds of a millisecond of CPU (``scripts/bench allocator``). Asked
by a thousand launchers twice a second it would need more than a core, and one that takes over would
never have heard them all. What cannot wait, a child's start and end, is reported at once.
"""

from __future__ import annotations

CHECK_INS_PER_S = 250
"""All launchers together ask no more often than that."""


def poll_interval_ms(configured_ms: int, launchers: int, lease_ms: int) -> int:
    """In how many ms a launcher is to ask again, where there are so many of them.

    No longer than half a lease, which a launcher may be silent for (``LauncherTable``) with one
    poll lost, unless more is configured.
    """
    fair_ms = launchers * 1000 // CHECK_INS_PER_S
    return max(configured_ms, min(fair_ms, lease_ms // 2))
