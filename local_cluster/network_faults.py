"""Cuts and delays of a cluster's own network. The kernel alone keeps their state.

A cut is silent, like a pulled cable: the receiver's namespace drops the sender's packets (iptables,
table filter). Packets from and to the client are dropped in the hub, so that this machine's own
tables stay as they are. A cut closes no connection: it goes on afterwards if neither side gave up.
"""

import contextlib
import re
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from homeport.job_coordinator.file_locks import exclusive
from homeport.local_cluster import processes
from homeport.local_cluster.daemons import log_tail
from homeport.local_cluster.errors import ClusterError
from homeport.local_cluster.layout import Layout, Record
from homeport.local_cluster.net import delay
from homeport.local_cluster.net.network import CLIENT, Network, run, tool

ALL = "all"

_DROPPED = re.compile(r"^-A (?:INPUT|FORWARD) -s ([0-9.]+)/32 .*-j DROP$", re.MULTILINE)
_DELAY_LIMIT_S = 20.0
_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class NetworkFaults:
    """Cuts and delays between the places of one cluster: nm1..., rm, kafka, client."""

    layout: Layout
    record: Record
    network: Network

    def cut(self, *places: str) -> None:
        """Cut each of the places from all others, both ways."""
        self._lose((a, b) for a in self._known(places) for b in self._others(a))
        self._lose((b, a) for a in places for b in self._others(a))

    def cut_pair(self, a: str, b: str) -> None:
        """Cut these two from each other; all others reach both."""
        self._lose([(a, b), (b, a)])

    def cut_one_way(self, sender: str, receiver: str) -> None:
        """Drop the sender's packets to the receiver, or to ``all``."""
        self._known([sender])
        self._lose((sender, r) for r in (self._others(sender) if receiver == ALL else [receiver]))

    def is_cut(self, a: str, b: str) -> bool:
        """Return whether packets from ``a`` to ``b`` are dropped."""
        self._known([a, b])
        return a in self._lost_at(b)

    def disconnect(self, *places: str) -> None:
        """Refuse: a place here keeps its interface and its address."""
        raise ClusterError(f"only containers can be disconnected: cut {', '.join(places)}")

    def slow(self, place: str, delay_ms: int) -> None:
        """Delay each packet from the place by ``delay_ms``; 0: end the delay.

        ClusterError: the kernel cannot delay packets.
        """
        self._known([place])
        with self._alone():
            self._hasten(place)
            if delay_ms > 0:
                try:
                    self._hold_back(place, delay_ms)
                except BaseException:
                    self._hasten(place)
                    raise

    def heal(self, *places: str) -> None:
        """End all cuts and delays of the places, or of all."""
        healed = set(self._known(places)) or set(self.network.places)
        with self._alone():
            for receiver in self.network.places:
                lost = self._lost_at(receiver)
                left = set() if receiver in healed else lost - healed
                if left != lost:
                    self._drop_at(receiver, left)
            for place in healed:
                self._hasten(place)

    def _alone(self) -> contextlib.AbstractContextManager[None]:
        """Hold the lock: one process at a time reads the rules and replaces them."""
        return exclusive(self.layout.root / "faults.lock")

    def _known(self, places: Iterable[str]) -> list[str]:
        found = list(places)
        for place in found:
            if place not in self.network.places:
                raise ClusterError(
                    f"cluster {self.layout.name} has no place {place!r}; "
                    f"it has {', '.join(self.network.places)}"
                )
        return found

    def _others(self, place: str) -> list[str]:
        return [other for other in self.network.places if other != place]

    def _lose(self, pairs: Iterable[tuple[str, str]]) -> None:
        senders: dict[str, set[str]] = {}
        for sender, receiver in pairs:
            self._known([sender, receiver])
            senders.setdefault(receiver, set()).add(sender)
        with self._alone():
            for receiver, lost in senders.items():
                self._drop_at(receiver, self._lost_at(receiver) | lost)

    def _lost_at(self, receiver: str) -> set[str]:
        chain = "FORWARD" if receiver == CLIENT else "INPUT"
        rules = run(self.network.at(receiver, [tool("iptables"), "-w", "-S", chain]))
        names = {address: place for place, address in self.network.places.items()}
        return {names[address] for address in _DROPPED.findall(rules)}

    def _drop_at(self, receiver: str, senders: set[str]) -> None:
        places = self.network.places
        chain = f"FORWARD -d {places[CLIENT]}" if receiver == CLIENT else "INPUT"
        rules = [f"-A {chain} -s {places[sender]} -j DROP" for sender in sorted(senders)]
        self._restore(receiver, "filter", rules)

    def _hold_back(self, place: str, delay_ms: int) -> None:
        log = self.layout.log(_delayer(place))
        log.unlink(missing_ok=True)
        program = [sys.executable, str(Path(delay.__file__)), str(delay_ms)]
        marks = {
            processes.CLUSTER_VARIABLE: self.record.cluster_id,
            processes.NODE_VARIABLE: _delayer(place),
        }
        command = self.network.at(place, program)
        process = processes.spawn(command, marks, log, self.layout.root)
        limit = time.monotonic() + _DELAY_LIMIT_S
        while delay.READY not in log.read_text(encoding="utf-8"):
            if not processes.is_alive(process) or time.monotonic() > limit:
                raise ClusterError(f"packets of {place} cannot be held back:\n{log_tail(log)}")
            time.sleep(_POLL_S)  # its log is polled
        chain = f"FORWARD -s {self.network.places[CLIENT]}" if place == CLIENT else "OUTPUT ! -o lo"
        rule = f"-A {chain} -j NFQUEUE --queue-num {delay.QUEUE} --queue-bypass"
        self._restore(place, "mangle", [rule])

    def _hasten(self, place: str) -> None:
        find = self._delaying(place)
        if find():
            self._restore(place, "mangle", [])
            processes.kill_all(find)

    def _delaying(self, place: str) -> Callable[[], Iterable[processes.ProcessId]]:
        return lambda: processes.of_cluster(self.record.cluster_id, _delayer(place))

    def _restore(self, place: str, table: str, rules: list[str]) -> None:
        text = "\n".join([f"*{table}", *rules, "COMMIT", ""])
        run(self.network.at(place, [tool("iptables-restore"), "-w"]), text)


def _delayer(place: str) -> str:
    return f"delay-{place}"
