"""Whether a container fits on each host, and how the hosts rank for the next one to place.

PURE. All containers of a job have one size (safety P4), so the state only has whether one fits.
The shell has the free memory and cores, for people.
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
    """These hosts by their rank: the lower, the better. ``full``: as in ``Room``.

    A host that gets a container moves to another rank; the other hosts stay.
    """

    hosts: tuple[Host, ...]
    full: frozenset[Host]
    rank_of: Map[Host, Rank]
    by_rank: Map[Rank, Map[Host, None]]

    def best_first(self, *, only_empty: bool = False) -> Iterator[Host]:
        """Yield the hosts by rank, then by name; ``only_empty``: those without a container."""
        for rank in sorted(rank for rank in self.by_rank if not (only_empty and rank[1])):
            hosts = self.by_rank[rank]
            # Mostly the caller takes the first one.
            first = min(hosts)
            yield first
            yield from sorted(hosts.delete(first))

    def moved(self, host: Host, rank: Rank) -> Ranking:
        """Return the ranking with the host at this rank; unchanged if it does not have the host."""
        was = self.rank_of.get(host)
        if was is None or was == rank:
            return self
        left = self.by_rank[was].delete(host)
        by_rank = self.by_rank.set(was, left) if left else self.by_rank.delete(was)
        by_rank = by_rank.set(rank, by_rank.get(rank, _NOBODY).set(host, None))
        return replace(self, rank_of=self.rank_of.set(host, rank), by_rank=by_rank)


_NOBODY: Map[Host, None] = Map()


def ranked(hosts: tuple[Host, ...], full: frozenset[Host], rank: Callable[[Host], Rank]) -> Ranking:
    """Return these hosts, ranked by ``rank``."""
    rank_of = {host: rank(host) for host in hosts}
    by_rank: dict[Rank, dict[Host, None]] = {}
    for host, found in rank_of.items():
        by_rank.setdefault(found, {})[host] = None
    return Ranking(hosts, full, Map(rank_of), Map({r: Map(h) for r, h in by_rank.items()}))


@dataclass(frozen=True, slots=True)
class Room:
    """Where a container fits; without reports everywhere.

    ``full``: live hosts where no further container fits now. ``small``: live hosts where none fits
    even if they are empty. ``is_large_enough``: whether the ResourceManager accepts a request of
    the size with these live hosts; ``could_be``: the same with its lost hosts, too. ``largest``: MB
    and cores of the largest host, for people.
    """

    full: frozenset[Host] = frozenset()
    small: frozenset[Host] = frozenset()
    is_large_enough: bool = True
    could_be: bool = True
    largest: tuple[int, int] = (0, 0)


def room_of(reports: Iterable[HostReport], settings: AllocatorSettings) -> Room:
    """Return where a container of the size in ``settings`` fits on these hosts."""
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
    """Return whether a ResourceManager with these hosts accepts a request; True without reports.

    It compares memory and cores, each by itself, with the most that any host has.
    """
    most_mb, most_cores = _largest(reports)
    fits = settings.container_memory_mb <= most_mb and settings.container_cores <= most_cores
    return fits or not reports


def _largest(reports: tuple[HostReport, ...]) -> tuple[int, int]:
    memory_mb = max((r.memory_mb for r in reports), default=0)
    return memory_mb, max((r.cores for r in reports), default=0)
