"""What tests do to the containers of a cluster, beyond the cut that docker/demo needs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from docker_cluster.engine import DockerError
from docker_cluster.faults import TABLES, DockerFaults


@dataclass(frozen=True)
class ContainerFaults(DockerFaults):
    """All faults. ``_network``: its name; ``_addresses``: {place: its address}."""

    _network: str
    _addresses: Mapping[str, str]

    def cut_pair(self, a: str, b: str) -> None:
        """Cut these two from each other, both ways."""
        self.cut_one_way(a, b)
        self.cut_one_way(b, a)

    def cut_one_way(self, sender: str, receiver: str) -> None:
        """Lose what the sender sends to the receiver, which may be "all"."""
        if receiver == "all":
            self._rule(sender, "-A", "OUTPUT", "!", "-o", "lo")
        else:
            self._rule(sender, "-A", "OUTPUT", "-d", self._address(receiver))

    def disconnect(self, *places: str) -> None:
        """Take the network from each of the places: no address, and sending fails at once."""
        for place in places:
            self._engine.run("network", "disconnect", self._network, self._name(place))

    def connect(self, *places: str) -> None:
        """Give them their addresses again, on interfaces of other names than before.

        The engine has taken the names of all others out of their hosts files: from now on its own
        name service answers, which has the names that are given here.
        """
        for place in places:
            given = ("--ip", self._address(place), "--alias", place)
            self._engine.run("network", "connect", *given, self._network, self._name(place))

    def heal(self, *places: str) -> None:
        """Remove all cuts of the places, or of all, and resume what stands still.

        A container that does not run has no cuts.
        """
        for place in places or tuple(self._names):
            state = self._engine.run("inspect", "-f", "{{.State.Status}}", self._name(place))
            if self._is_disconnected(place):
                self.connect(place)
            if state.strip() == "paused":
                self.resume(place)
            if state.strip() in {"paused", "running"}:
                for table in TABLES:
                    self._iptables(place, "-F", table)
        for place in () if not places else self._names:
            for address in map(self._address, places):
                while self._has_rule(place, address):
                    self._rule(place, "-D", "OUTPUT", "-d", address)

    def slow(self, place: str, delay_ms: int) -> None:
        """Refuse it: containers have no program that holds packets back."""
        raise DockerError(f"{place} cannot be slowed down by {delay_ms} ms in a container")

    def is_cut(self, a: str, b: str) -> bool:
        """Return whether what ``a`` sends to ``b`` is lost."""
        return (
            self._is_disconnected(a)
            or self._is_disconnected(b)
            or self._drops(a, "OUTPUT", "! -o lo")
            or self._drops(b, "INPUT", "! -i lo")
            or self._has_rule(a, self._address(b))
        )

    def kill(self, place: str) -> None:
        """Kill everything in it, as if its machine was off."""
        self._engine.run("kill", self._name(place))

    def start(self, place: str) -> None:
        """Start it again, with its volumes."""
        self._engine.run("start", self._name(place))

    def pause(self, place: str) -> None:
        """Pause everything in it."""
        self._engine.run("pause", self._name(place))

    def resume(self, place: str) -> None:
        """Let it go on, as if no time had passed."""
        self._engine.run("unpause", self._name(place))

    def _is_disconnected(self, place: str) -> bool:
        networks = "{{json .NetworkSettings.Networks}}"
        found = json.loads(self._engine.run("inspect", "-f", networks, self._name(place)))
        return self._network not in found

    def _has_rule(self, place: str, address: str) -> bool:
        return self._drops(place, "OUTPUT", f"-d {address}/32")

    def _drops(self, place: str, table: str, condition: str) -> bool:
        rules = self._engine.run("exec", self._name(place), "iptables", "-S", table)
        return any(condition in rule and rule.endswith("-j DROP") for rule in rules.splitlines())

    def _address(self, place: str) -> str:
        self._name(place)
        return self._addresses[place]
