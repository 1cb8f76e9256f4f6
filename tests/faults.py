"""The one vocabulary of faults: what a test does to the machines and the network of a cluster."""

from __future__ import annotations

import os
import signal
import time
from types import TracebackType
from typing import Self

from clusters_under_test import ClusterUnderTest

from local_cluster.resource_manager import node_states

WHOLE_LIMIT_S = 120.0


class Faults:
    """Faults of one cluster; as a context manager it leaves a whole cluster behind.

    Places are "nm1"..., "rm", "kafka" and "client", the programs outside: run-job, the test itself.
    A cut is silent: nothing answers, no connection is closed.
    """

    def __init__(self, cluster: ClusterUnderTest) -> None:
        """Faults of this cluster, whose daemons have networks of their own."""
        self._cluster = cluster
        self._network = cluster.faults

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

    def kill(self, node: str) -> list[int]:
        """NodeManager and all that it started are dead; their pids.

        The kernel closes their connections. A machine that loses its power sends nothing at all:
        cut it first.
        """
        return self._cluster.kill_node(node)

    def pause(self, node: str) -> list[int]:
        """The node stands still, with all that it started; their pids."""
        return self._cluster.pause_node(node)

    def resume(self, node: str) -> list[int]:
        """The paused node goes on, believing that no time has passed; the pids that woke."""
        return self._cluster.resume_node(node)

    def pause_manager(self, node: str) -> None:
        """The NodeManager alone stands still: what it has started goes on."""
        os.kill(self._manager(node), signal.SIGSTOP)

    def resume_manager(self, node: str) -> None:
        """A NodeManager that stands still goes on."""
        os.kill(self._manager(node), signal.SIGCONT)

    def is_paused(self, node: str) -> bool:
        """Whether the NodeManager stands still."""
        return self._cluster.is_paused(node)

    def _manager(self, node: str) -> int:
        pid = self._cluster.manager_pid(node)
        assert pid is not None, f"the NodeManager of {node} does not run"
        return pid

    # ------------------------------------------------------------------ network

    def cut(self, *places: str) -> None:
        """Each of the places is cut from all others, both ways."""
        self._network.cut(*places)

    def cut_pair(self, a: str, b: str) -> None:
        """These two are cut from each other, both ways; everybody else hears both."""
        self._network.cut_pair(a, b)

    def cut_one_way(self, sender: str, receiver: str) -> None:
        """What the sender sends to the receiver is lost; the receiver may be "all"."""
        self._network.cut_one_way(sender, receiver)

    def slow(self, place: str, delay_ms: int) -> None:
        """Each packet that the place sends is late by so much."""
        self._network.slow(place, delay_ms)

    def is_cut(self, a: str, b: str) -> bool:
        """Whether what ``a`` sends to ``b`` is lost."""
        return self._network.is_cut(a, b)

    # ------------------------------------------------------------------ back

    def heal(self, *places: str) -> None:
        """Whatever was done to the places, or to any, is undone: network first, then machines.

        Paused nodes go on, killed ones are started; YARN may need some seconds to see them again.
        """
        self._network.heal(*places)
        for node in [n for n in self._cluster.nodes if not places or n in places]:
            if self.is_paused(node):
                self._cluster.resume_node(node)
            elif self._cluster.manager_pid(node) is None:
                self._cluster.start_node(node)

    def wait_until_whole(self) -> None:
        """All nodes are RUNNING, by YARN's word."""
        wanted = set(self._cluster.nodes)
        limit = time.monotonic() + WHOLE_LIMIT_S
        while wanted and time.monotonic() < limit:
            states = node_states(self._cluster.rm_url) or {}
            if {node for node, state in states.items() if state == "RUNNING"} >= wanted:
                return
            time.sleep(0.2)
        assert not wanted, f"after {WHOLE_LIMIT_S:.0f} s: {self._cluster.status()['nodes']}"
