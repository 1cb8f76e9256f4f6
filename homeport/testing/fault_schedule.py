"""Schedules of faults that a seed reproduces: kinds, targets, distances and lengths.

PURE. A schedule names a processor or a node by its number; its process is looked up at the fault's
time.
"""

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from homeport.job_coordinator.program_names import AM_JVM, CONTAINER, DRIVER, KEEPER, LAUNCHER

KINDS: Final[Mapping[str, str]] = {
    "kill-container": CONTAINER,
    "kill-launcher": LAUNCHER,
    "kill-node": LAUNCHER,
    "pause-container-short": CONTAINER,
    "pause-container-long": CONTAINER,
    "pause-launcher-short": LAUNCHER,
    "pause-launcher-long": LAUNCHER,
    "pause-node-short": LAUNCHER,
    "pause-node-long": LAUNCHER,
    "cut-node-short": LAUNCHER,
    "cut-node-long": LAUNCHER,
    # Each costs an attempt of YARN's where no supervisor stands between.
    "kill-driver": DRIVER,
    "kill-am": AM_JVM,
    "kill-keeper": KEEPER,
}
"""{kind: words in the command line of the process that it hits}; the kind needs the process.

Short is within the lease, long is beyond it.
"""
LEAST_FAULTS: Final = 10
_OF_THE_AM: Final = frozenset({"kill-driver", "kill-am", "kill-keeper"})
_DOWN_S: Final = (1.0, 5.0)
_GAP_S: Final = (1.0, 4.0)
_WAITS: Final = 0.7
"""Most faults come while the job is at work, some while it still recovers."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a schedule. Units: seconds.

    ``target``: the number of a processor, or of a node if the kind names one. ``gap_s``: the time
    since the fault before. ``waits``: whether it waits until the job is at work again; else the job
    may still be recovering.
    """

    kind: str
    target: int
    gap_s: float
    length_s: float
    waits: bool

    @property
    def is_of_node(self) -> bool:
        """Return whether it hits a whole node."""
        return "-node" in self.kind

    def __str__(self) -> str:
        target = f"nm{self.target + 1}" if self.is_of_node else f"processor {self.target}"
        if self.kind in _OF_THE_AM:
            target = "AM"
        length = f" for {self.length_s:.1f} s" if self.length_s else ""
        when = "when all work" if self.waits else "at once"
        return f"{self.kind:<22} {target}{length}, {self.gap_s:.1f} s later, {when}"


@dataclass(frozen=True, slots=True)
class Extent:
    """The extent of a job: its processors, nodes, and the ms of a lease."""

    processors: int
    nodes: int
    lease_ms: int

    @property
    def short_s(self) -> tuple[float, float]:
        """Return (shortest, longest) of times that a lease outlives."""
        return 0.3, max(0.3, 0.5 * self.lease_ms / 1000)

    @property
    def long_s(self) -> tuple[float, float]:
        """Return (shortest, longest) of times that no lease outlives."""
        return 2.0 * self.lease_ms / 1000, 3.0 * self.lease_ms / 1000


def schedule(
    seed: int, kinds: Iterable[str], extent: Extent, least: int = LEAST_FAULTS
) -> list[Fault]:
    """Return ``least`` faults or more, of each kind at least one; only the seed decides."""
    chance = random.Random(seed)  # noqa: S311 - a schedule is no secret
    order = sorted(kinds)
    chance.shuffle(order)
    while len(order) < least:
        order.append(chance.choice(sorted(kinds)))
    return [_fault(chance, kind, extent) for kind in order]


def _fault(chance: random.Random, kind: str, extent: Extent) -> Fault:
    limits = (0.0, 0.0)
    if kind == "kill-node":
        limits = _DOWN_S
    elif kind.startswith(("pause", "cut")):
        limits = extent.short_s if kind.endswith("short") else extent.long_s
    return Fault(
        kind=kind,
        target=chance.randrange(extent.nodes if "-node" in kind else extent.processors),
        gap_s=round(chance.uniform(*_GAP_S), 1),
        length_s=round(chance.uniform(*limits), 1),
        waits=chance.random() < _WAITS,
    )
