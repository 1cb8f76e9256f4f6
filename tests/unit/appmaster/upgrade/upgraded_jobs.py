"""Jobs and records of upgrades, for the tests of this folder."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from homeport.appmaster.upgrade.observed import ContainerSeen, Seen
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.upgrade import (
    UpgradeDirection,
    UpgradeOrder,
    UpgradeOrders,
    UpgradePhase,
    UpgradeState,
)

P0, S0, P1 = ProcessorId("0"), ProcessorId("0-0"), ProcessorId("1")
FORWARD = UpgradeOrder("u", "app", "new", 1_000, by="ann")
UNDO = replace(FORWARD, direction=UpgradeDirection.BACK)
NOTHING = UpgradeOrders()
ORDER = UpgradeOrders(FORWARD)
BACK = UpgradeOrders(FORWARD, UNDO)
BEGUN = UpgradeState("u", "app", "new", None, 1_000)
GIVEN = replace(BEGUN, given=(S0,), current=S0, lag_before=0)


def job(**changed: ContainerSeen) -> Seen:
    """An active container with a standby, both with the submission's package."""
    containers = {"p0": ContainerSeen(P0), "s0": ContainerSeen(S0, P0), **changed}
    return Seen(tuple(containers.values()))


def standby(**fields: Any) -> Seen:  # noqa: ANN401 - those of ContainerSeen
    """That job, with these facts of the standby."""
    return job(s0=replace(ContainerSeen(S0, P0), **fields))


NEW: dict[str, Any] = {"package": "new", "watched_ms": 1_000}
GOES_BACK = replace(BEGUN, phase=UpgradePhase.BACK, given=(S0, P0), reason="why")
BOTH_NEW = job(
    p0=ContainerSeen(P0, package="new"), s0=ContainerSeen(S0, P0, package="new", prepared=None)
)
