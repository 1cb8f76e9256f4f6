"""The local cluster of one demo run, named after its clone."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable

from flights_demo.job import ROOT
from local_cluster.cluster import LocalCluster, remove_abandoned
from local_cluster.errors import ClusterRunningError


def bring_up(say: Callable[[str], None]) -> LocalCluster:
    """A fresh cluster of this run's own is up.

    Two clones do not meet. Of this clone's other runs, one that goes on and one that was kept are
    left alone, and this run's cluster gets the next name; one that was killed is taken down first.

    Raises:
        ClusterError: it does not come up; nothing of it is left running.
    """
    base = "demo-" + hashlib.sha256(str(ROOT).encode()).hexdigest()[:8]
    remove_abandoned(base, progress=say)
    for name in itertools.chain([base], (f"{base}-{number}" for number in itertools.count(2))):
        cluster = LocalCluster(name)
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
