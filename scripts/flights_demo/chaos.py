"""Faults on the running demo: one container is killed (``scripts/demo --kill-container``), or more.

Those of ``--chaos SEED`` come by a schedule that the seed reproduces. They are those of
``homeport.testing.chaos``, which users have for their own jobs.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from check_history.reading import values_in

from flights_demo.job import CONTAINERS, DemoJob
from flights_demo.screen import Screen
from homeport.local_cluster.cluster import LocalCluster
from homeport.testing.chaos import Chaos
from homeport.testing.fault_schedule import KINDS, LEAST_FAULTS, Extent

TRANSACTIONS_BEFORE_KILL: Final = 3
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


@dataclass(frozen=True)
class Killed:
    """The killed container: processor, epoch and pid, by its own history."""

    processor_id: str
    epoch: int
    pid: int


class Victim:
    """Kills the first container whose history shows its third committed transaction."""

    def __init__(self, cluster: LocalCluster, screen: Screen) -> None:
        self._folders = [
            cluster.state_dir(node["host"]) / "flights-1" / ".history"
            for node in cluster.status()["nodes"]
        ]
        self._screen = screen
        self.killed: Killed | None = None

    def look(self, consumed: int) -> None:
        """Kills, once, when the time has come; ``consumed`` input records are committed so far."""
        if self.killed is not None:
            return
        for folder in self._folders:
            for file in sorted(folder.glob("*.jsonl")):
                last = _third_transaction(file)
                if last is not None:
                    self.killed = Killed(last["processor_id"], last["epoch"], last["pid"])
                    os.kill(self.killed.pid, signal.SIGKILL)
                    self._screen.say(
                        f"{consumed:,} records consumed: SIGKILL of processor"
                        f" {last['processor_id']}, epoch {last['epoch']}, pid {last['pid']}"
                    )
                    return


def _third_transaction(file: Path) -> dict[str, Any] | None:
    """The container's last committed transaction, None before its third."""
    committed = [line for line in values_in(file) if line["event"] == "transaction-committed"]
    return committed[-1] if len(committed) >= TRANSACTIONS_BEFORE_KILL else None
