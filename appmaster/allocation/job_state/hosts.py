"""What hosts have for one container, and how good each is for the next one to place.

PURE. All containers of a job have one size (safety P4). How much is free is not kept: what decides
is only whether a container fits. The numbers are for people, and the shell has them. A host that
gets a container moves to another rank; the others stay where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from immutables import Map

from homeport.appmaster.allocation.protocol.events import HostReport
from homeport.appmaster.allocation.protocol.settings import AllocatorSettings
from homeport.job_coordinator.model.ids import Host

Rank = tuple[bool, int, bool]
"""Whether a host is full, its load, and whether a strict request for it is outstanding."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """These hosts by their rank: the lower, the better. ``full``: as ``Room`` has it."""

    hosts: tuple[Host, ...]
    full: frozenset[Host]
    rank_of: Map[Host, Rank]
    by_rank: Map[Rank, Map[Host, None]]

    def best_first(self) -> Iterator[Host]:
        """Yield all of them by rank, and those of one rank by name."""
        for rank in sorted(self.by_rank):
            hosts = self.by_rank[rank]
            # Mostly the first one will do.
            first = min(hosts)
            yield first
            yield from sorted(hosts.delete(first))

    def moved(self, host: Host, rank: Rank) -> Ranking:
        """Return the ranking with the host at this rank; the same where it is none of these."""
        was = self.rank_of.get(host)
        if was is None or was == rank:
            return self
        left = self.by_rank[was].delete(host)
        by_rank = self.by_rank.set(was, left) if left else self.by_rank.delete(was)
        by_rank = by_rank.set(rank, by_rank.get(rank, _NOBODY).set(host, None))
        return replace(self, rank_of=self.rank_of.set(host, rank), by_rank=by_rank)


_NOBODY: Map[Host, None] = Map()


def ranked(hosts: tuple[Host, ...], full: frozenset[Host], rank: Callable[[Host], Rank]) -> Ranking:
    """Return these hosts by their rank, by the rank that ``rank`` gives each."""
    rank_of = {host: rank(host) for host in hosts}
    by_rank: dict[Rank, dict[Host, None]] = {}
    for host, found in rank_of.items():
        by_rank.setdefault(found, {})[host] = None
    return Ranking(hosts, full, Map(rank_of), Map({r: Map(h) for r, h in by_rank.items()}))


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
    """Return what these hosts have for a container of the size in ``settings``."""
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
