"""Faults on the running demo, by a schedule that a seed reproduces (``scripts/demo --chaos SEED``).

The faults are those of ``homeport.testing.chaos``, which users have for their own jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from flights_demo.job import CONTAINERS, DemoJob
from flights_demo.screen import Screen
from homeport.local_cluster.cluster import LocalCluster
from homeport.testing.chaos import Chaos
from homeport.testing.fault_schedule import KINDS, LEAST_FAULTS, Extent

KILLS: Final = 20
"""Of a kill loop, which hits ``KILLED`` only."""
KILLED: Final = ("kill-container", "kill-launcher")
LEASE_MS: Final = 3_000
OVERRIDES: Final = (
    "cluster-manager.container.retry.count=1000",
    f"cluster-manager.container.lease.ms={LEASE_MS}",
)
"""Failures are what this run is made of: none of them may use up the retry keys."""


@dataclass
class JobOfDemo:
    """A job of the demo; ``find_am``: where its newest AM answers, as an older one may, too."""

    job: DemoJob
    find_am: Callable[[DemoJob], str | None]

    @property
    def name(self) -> str:
        """Its ``job.name``."""
        return self.job.name

    def not_working(self) -> dict[str, str] | str:
        """What keeps the job from being at work as a whole; empty where it is."""
        self.job.url = self.find_am(self.job) or self.job.url
        phases = self.job.phases()
        if len(phases) == self.job.count and set(phases.values()) == {"running"}:
            return ""
        return phases or "the AM does not answer"


def chaos_of(
    seed: int,
    cluster: LocalCluster,
    jobs: Sequence[DemoJob],
    find_am: Callable[[DemoJob], str | None],
    screen: Screen,
    *,
    kills_only: bool,
) -> Chaos:
    """The faults of a seed on the jobs of the demo.

    ``kills_only``: twenty times SIGKILL of a container or a launcher, and no other fault.
    """
    return Chaos(
        seed,
        cluster,
        [JobOfDemo(job, find_am) for job in jobs],
        Extent(CONTAINERS, len(cluster.nodes), LEASE_MS),
        kinds=KILLED if kills_only else tuple(KINDS),
        faults=KILLS if kills_only else LEAST_FAULTS,
        say=screen.say,
    )
