"""The cluster of one demo run: what a demo needs of it, and the local one named after its clone."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from flights_demo.job import ROOT
from homeport.local_cluster.cluster import LocalCluster, remove_abandoned
from homeport.local_cluster.errors import ClusterRunningError


class DemoCluster(Protocol):
    """What a demo needs of a cluster that is up."""

    def env(self) -> dict[str, str]:
        """Environment variables for clients, to be laid over one's own."""

    @property
    def bootstrap_servers(self) -> str:
        """Kafka, as jobs and the demo reach it."""

    @property
    def rm_url(self) -> str:
        """Base of the ResourceManager's web service."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of its hosts."""

    def client_file(self, user: str) -> Path | None:
        """The properties of Kafka's clients for that user; None where Kafka asks for none."""

    def job_file(self, example: Path) -> Path:
        """The job's configuration: the example's, and what a cluster with locks adds to it."""

    def status(self) -> dict[str, Any]:
        """``nodes``: for each its ``host`` and its ``address``."""

    def state_dir(self, node: str) -> Path:
        """LOGGED_STORE_BASE_DIR of the node's containers."""

    def fail_node(self, node: str) -> str:
        """The node fails, as this kind of cluster has it; what was done, in a few words."""

    def start_node(self, node: str) -> None:
        """A node that has failed takes part again."""


class FallibleCluster(LocalCluster):
    """A local cluster as a demo needs it: without locks."""

    def client_file(self, user: str) -> Path | None:
        """None for every user."""
        del user
        return None

    def job_file(self, example: Path) -> Path:
        """The example's own."""
        return example / f"{example.name}.properties"

    def fail_node(self, node: str) -> str:
        """The node dies, as if its machine lost power; what was done, in a few words."""
        return f"SIGKILL of {node}: {len(self.kill_node(node))} processes"


def bring_up(say: Callable[[str], None], nodes: int = 3) -> FallibleCluster:
    """A fresh cluster of this run's own is up; without nodes it is a broker alone.

    Two clones do not meet. Of this clone's other runs, one that goes on and one that was kept are
    left alone, and this run's cluster gets the next name; one that was killed is taken down first.

    ClusterError: it does not come up; nothing of it is left running.
    """
    base = "demo-" + hashlib.sha256(str(ROOT).encode()).hexdigest()[:8]
    remove_abandoned(base, progress=say)
    for name in itertools.chain([base], (f"{base}-{number}" for number in itertools.count(2))):
        cluster = FallibleCluster(name, nodes)
        try:
            cluster.up(say)
        except ClusterRunningError:
            say(
                f"cluster {name} of an earlier run is left as it is (scripts/dev-cluster down"
                f" --name {name} ends it); this run takes one of its own"
            )
        else:
            return cluster
    raise AssertionError("names do not end")
