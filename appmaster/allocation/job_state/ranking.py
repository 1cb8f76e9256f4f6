"""Hosts by how good they are for the next container to place, kept while that changes.

PURE. A host that gets a container moves to another rank; the others stay where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from immutables import Map

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
        """All of them by rank, and those of one rank by name."""
        for rank in sorted(self.by_rank):
            hosts = self.by_rank[rank]
            # Mostly the first one will do.
            first = min(hosts)
            yield first
            yield from sorted(hosts.delete(first))

    def moved(self, host: Host, rank: Rank) -> Ranking:
        """The ranking after the host has come to this rank; the same where it is none of these."""
        was = self.rank_of.get(host)
        if was is None or was == rank:
            return self
        left = self.by_rank[was].delete(host)
        by_rank = self.by_rank.set(was, left) if left else self.by_rank.delete(was)
        by_rank = by_rank.set(rank, by_rank.get(rank, _NOBODY).set(host, None))
        return replace(self, rank_of=self.rank_of.set(host, rank), by_rank=by_rank)


_NOBODY: Map[Host, None] = Map()


def ranked(hosts: tuple[Host, ...], full: frozenset[Host], rank: Callable[[Host], Rank]) -> Ranking:
    """These hosts by their rank, by the rank that ``rank`` gives each."""
    rank_of = {host: rank(host) for host in hosts}
    by_rank: dict[Rank, dict[Host, None]] = {}
    for host, found in rank_of.items():
        by_rank.setdefault(found, {})[host] = None
    return Ranking(hosts, full, Map(rank_of), Map({r: Map(h) for r, h in by_rank.items()}))
