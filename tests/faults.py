"""The one vocabulary of faults: what a test does to the machines and the network of a cluster."""

from __future__ import annotations

import os
import signal
import time
from types import TracebackType
from typing import Self

from clusters_under_test import ClusterUnderTest

from homeport.local_cluster.resource_manager import node_states

WHOLE_LIMIT_S = 120.0


class Faults:
    """Faults of one cluster; as a context manager it leaves a whole cluster behind.

    Places are "nm1"..., "rm", "kafka" and "client", the programs outside: run-job, the test itself;
    in containers "zk" too. A cut is silent: nothing answers, no connection is closed.

    Two clusters have these faults: that of plain processes with a network of its own, and that in
    containers. ``slow`` is for the first alone; ``disconnect``, and to kill or pause another place
    than a node, for the second. Where a cluster lacks a fault, it says so.
    """

    def __init__(self, cluster: ClusterUnderTest) -> None:
        """Faults of this cluster; where its daemons have no networks of their own, of machines."""
        self._cluster = cluster

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.heal()
        self.wait_until_whole()

    # ------------------------------------------------------------------ machines

    def kill(self, place: str) -> list[int]:
        """The daemon and all that it started are dead; their pids.

        The kernel closes their connections. A machine that loses its power sends nothing at all:
        cut it first.
        """
        return self._cluster.kill_node(place)

    def pause(self, place: str) -> list[int]:
        """The place stands still, with all that it started; their pids."""
        return self._cluster.pause_node(place)

    def resume(self, place: str) -> list[int]:
        """The paused place goes on, believing that no time has passed; the pids that woke."""
        return self._cluster.resume_node(place)

    def pause_manager(self, node: str) -> None:
        """The NodeManager alone stands still: what it has started goes on."""
        os.kill(self._manager(node), signal.SIGSTOP)

    def resume_manager(self, node: str) -> None:
        """A NodeManager that stands still goes on."""
        os.kill(self._manager(node), signal.SIGCONT)

    def is_paused(self, place: str) -> bool:
        """Whether its daemon stands still."""
        return self._cluster.is_paused(place)

    def _manager(self, node: str) -> int:
        pid = self._cluster.manager_pid(node)
        assert pid is not None, f"the NodeManager of {node} does not run"
        return pid

    # ------------------------------------------------------------------ network

    def cut(self, *places: str) -> None:
        """Each of the places is cut from all others, both ways."""
        self._cluster.faults.cut(*places)

    def cut_pair(self, a: str, b: str) -> None:
        """These two are cut from each other, both ways; everybody else hears both."""
        self._cluster.faults.cut_pair(a, b)

    def cut_one_way(self, sender: str, receiver: str) -> None:
        """What the sender sends to the receiver is lost; the receiver may be "all"."""
        self._cluster.faults.cut_one_way(sender, receiver)

    def disconnect(self, *places: str) -> None:
        """Each of the places has no network and no address: what it sends fails at once.

        Others get no answer, and no connection is closed.
        """
        self._cluster.faults.disconnect(*places)

    def slow(self, place: str, delay_ms: int) -> None:
        """Each packet that the place sends is late by so much."""
        self._cluster.faults.slow(place, delay_ms)

    def is_cut(self, a: str, b: str) -> bool:
        """Whether what ``a`` sends to ``b`` is lost."""
        return self._cluster.faults.is_cut(a, b)

    def is_lost(self, place: str) -> bool:
        """Whether it is off, stands still, or no other place hears it."""
        is_off = place in self._cluster.machines and self._cluster.is_off(place)
        return is_off or self.is_paused(place) or self.is_cut(place, "client")

    # ------------------------------------------------------------------ back

    def heal(self, *places: str) -> None:
        """Whatever was done to the places, or to any, is undone: network first, then machines.

        What is paused goes on, what was killed is started; YARN may need some seconds to see a node
        again.
        """
        if self._cluster.has_network:
            self._cluster.faults.heal(*places)
        for place in [p for p in self._cluster.machines if not places or p in places]:
            if self.is_paused(place):
                self._cluster.resume_node(place)
            elif self._cluster.is_off(place):
                self._cluster.start_node(place)

    def wait_until_whole(self) -> None:
        """All nodes are RUNNING, by YARN's word, and all other daemons serve."""
        wanted = set(self._cluster.nodes)
        limit = time.monotonic() + WHOLE_LIMIT_S
        while time.monotonic() < limit:
            states = node_states(self._cluster.rm_url) or {}
            running = {node for node, state in states.items() if state == "RUNNING"}
            if running >= wanted and not self._cluster.silent_daemons():
                return
            time.sleep(0.2)
        silent = self._cluster.silent_daemons()
        raise AssertionError(f"after {WHOLE_LIMIT_S:.0f} s: {silent} {self._cluster.status()}")
