"""What the cluster's hosts have, held against what one container needs.

PURE. All containers of a job have one size (safety P4). How much is free is not kept: what decides
is only whether a container fits. The numbers are for people, and the shell has them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from homeport.appmaster.allocation.protocol.events import HostReport
from homeport.appmaster.allocation.protocol.settings import AllocatorSettings
from homeport.job_coordinator.model.ids import Host


@dataclass(frozen=True, slots=True)
class Room:
    """What is known of room; by default nothing, and then there is room everywhere.

    ``full``: live hosts where not one more container fits now. ``small``: live hosts where none
    fits though they be empty. ``is_large_enough``: whether the ResourceManager takes a request of
    the size while it has these live hosts; ``could_be``: the same with those that it lost.
    ``largest``: MB and cores of the largest host, for people.
    """

    full: frozenset[Host] = frozenset()
    small: frozenset[Host] = frozenset()
    is_large_enough: bool = True
    could_be: bool = True
    largest: tuple[int, int] = (0, 0)


def room_of(reports: Iterable[HostReport], settings: AllocatorSettings) -> Room:
    """What these hosts have for a container of the size that ``settings`` say."""
    memory_mb, cores = settings.container_memory_mb, settings.container_cores
    said = tuple(reports)
    live = tuple(r for r in said if r.is_live)
    return Room(
        full=frozenset(r.host for r in live if not r.has_room(memory_mb, cores)),
        small=frozenset(r.host for r in live if r.is_too_small(memory_mb)),
        is_large_enough=_takes(live, settings),
        could_be=_takes(said, settings),
        largest=_largest(said),
    )


def _takes(reports: tuple[HostReport, ...], settings: AllocatorSettings) -> bool:
    """Whether a ResourceManager with these hosts takes a request; where it has reported none, yes.

    It holds memory and cores each against the most that any host has.
    """
    most_mb, most_cores = _largest(reports)
    fits = settings.container_memory_mb <= most_mb and settings.container_cores <= most_cores
    return fits or not reports


def _largest(reports: tuple[HostReport, ...]) -> tuple[int, int]:
    memory_mb = max((r.memory_mb for r in reports), default=0)
    return memory_mb, max((r.cores for r in reports), default=0)
