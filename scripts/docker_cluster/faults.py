"""A cut of the network of a cluster's containers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from docker_cluster.engine import DockerError, Engine

TABLES = ("INPUT", "OUTPUT")


@dataclass(frozen=True)
class DockerFaults:
    """Faults of one cluster. A cut is silent: nothing answers, no connection is closed.

    The packets are dropped inside of the container, by rules of its own network. ``_engine`` runs
    the containers; ``_names``: {place: name of its container}.
    """

    _engine: Engine
    _names: Mapping[str, str]

    def cut(self, *places: str) -> None:
        """Cut each of the places from all others, both ways."""
        for place in places:
            # Its own loopback stays: processes on one machine hear each other.
            self._rule(place, "-A", "INPUT", "!", "-i", "lo")
            self._rule(place, "-A", "OUTPUT", "!", "-o", "lo")

    def heal(self, *places: str) -> None:
        """Remove the cuts of the places, which run."""
        for place in places:
            for table in TABLES:
                self._iptables(place, "-F", table)

    def _rule(self, place: str, action: str, *condition: str) -> None:
        self._iptables(place, action, *condition, "-j", "DROP")

    def _iptables(self, place: str, *arguments: str) -> None:
        self._engine.run("exec", self._name(place), "iptables", "-w", *arguments)

    def _name(self, place: str) -> str:
        if place not in self._names:
            known = ", ".join(self._names)
            raise DockerError(f"the cluster has no {place!r}: it has {known}")
        return self._names[place]
