"""Whose place an active takes that cannot go home.

PURE. A choice among standbys, nothing here changes a state. Source: STANDBY, part 3, "A. Failure of
an active container". Unlike in Samza 1.8, the history of a failover lasts until the active has
started.

Order: the standby that runs on the active's home, as whose state is there; those that run, the one
with the least lag first (unknown lags last); those that start or stop; then the last hosts of those
that do not run, in the order of their ids. A standby is chosen once in a failover.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from homeport.appmaster.allocation.job_state.placements import PlacementStep
from homeport.appmaster.allocation.job_state.state import (
    LIVE,
    AllocatorState,
    ContainerPhase,
    ContainerState,
)
from homeport.appmaster.allocation.protocol.events import FailoverStep
from homeport.job_coordinator.model.ids import Host, ProcessorId


@dataclass(frozen=True, slots=True)
class Choice:
    """The active takes the place of ``standby`` on ``host``; ``step`` says whether that runs."""

    step: FailoverStep
    standby: ContainerState
    host: Host


def choose(
    home: Host | None,
    standbys: Iterable[tuple[ContainerState, Host | None]],
    used: Collection[ProcessorId],
    may_take: Callable[[ContainerState, Host], bool],
) -> Choice | None:
    """The best place to take; None where the active cannot be failed to a standby.

    Shapes: ``standbys`` (standby, host of the launcher it holds). ``home``: the active's.
    ``may_take``: whether the host lives and may be asked for, but for this standby.
    """
    left = [(s, host) for s, host in standbys if s.processor_id not in used]
    live = [(s, host) for s, host in left if s.phase in LIVE and host is not None]
    for standby, host in sorted(live, key=lambda pair: _preference(home, *pair)):
        if may_take(standby, host):
            return Choice(FailoverStep.STANDBY, standby, host)
    for standby, _ in left:
        if standby.phase not in LIVE and standby.home and may_take(standby, standby.home):
            return Choice(FailoverStep.STANDBY_HOST, standby, standby.home)
    return None


def is_replaced(state: AllocatorState, processor_id: ProcessorId) -> bool:
    """Whether it is a standby that runs, or did, where its active container is to start next."""
    if any(
        p.standby == processor_id and p.step is PlacementStep.GIVING_WAY for p in state.placements
    ):
        return True
    standby = state.container(processor_id)
    active = state.container(standby.group) if standby is not None else None
    failover = active.failover if active is not None else None
    if failover is None or failover.standby != processor_id:
        return False
    return failover.step is FailoverStep.STANDBY


def _preference(
    home: Host | None, standby: ContainerState, host: Host
) -> tuple[bool, bool, bool, int, ProcessorId]:
    return (
        host != home,
        standby.phase is not ContainerPhase.RUNNING,
        standby.lag is None,
        standby.lag or 0,
        standby.processor_id,
    )
