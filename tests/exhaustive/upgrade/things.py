"""What a searched world of an upgrade consists of: records, containers with their launchers."""

from __future__ import annotations

from typing import NamedTuple

from homeport.job_coordinator.model.upgrade import UpgradeOrders, UpgradeState

OLD, NEW = "old", "new"


class Crash(NamedTuple):
    """An incarnation has ended, and the driver takes it to run until it hears of that.

    ``ran``: its package. ``is_known``: whether this driver has heard its launcher say so.
    ``is_loss``: its host was lost, which is no failure.
    """

    ran: str | None
    is_known: bool
    is_loss: bool = False


class Container(NamedTuple):
    """One processor. ``phase``: ``up``, ``down``, or ``sent``: a permit is on its way.

    ``package``: that it runs, or that the permit on its way names. ``is_known``, ``watched``: what
    this driver has seen of the incarnation; ``watched``: 0 not for long enough, 1 long enough, 2 as
    long as its lag is waited for. ``prepared``: that its launcher has ready. ``has_request``: a
    restart is in the coordinator stream. ``is_restarting``: it is down because of that. ``crash``:
    of the last incarnation, unheard. ``failures``: heard of, with the new package in an upgrade.
    ``is_behind``: its lag is large. ``is_unable``: its launcher cannot have any package that it has
    not. ``hang``: 1: it has done nothing for longer than work may take, 2: for far too long.
    ``has_no_place``: no host has room for it. ``is_refused``: the restart of its incarnation was
    not carried out. ``has_no_lag``: its lag is not reported. Of a rolling restart alone:
    ``has_failed_before``: with the values from before, 2 where this driver has heard that;
    ``is_broken``: it always does.
    """

    phase: str = "up"
    package: str | None = OLD
    is_known: bool = True
    watched: int = 0
    prepared: str | None = OLD
    has_request: bool = False
    is_restarting: bool = False
    crash: Crash | None = None
    failures: int = 0
    is_behind: bool = False
    is_unable: bool = False
    hang: int = 0
    has_no_place: bool = False
    is_refused: bool = False
    has_no_lag: bool = False
    has_failed_before: int = 0
    is_broken: bool = False


class World(NamedTuple):
    """Everything.

    ``has_failed``: the driver has heard of a failure of the new package. ``is_slow``: its record
    has been the same for as long as a launcher may prepare a package. ``is_former``: of a rolling
    restart, that a JobModel has the values from before again.
    """

    containers: tuple[Container, ...]
    orders: UpgradeOrders
    state: UpgradeState | None = None
    has_failed: bool = False
    is_slow: bool = False
    silent: tuple[str, int] | None = None
    is_former: bool = False


def with_container(world: World, index: int, container: Container) -> World:
    """The world with this container in its place."""
    before, after = world.containers[:index], world.containers[index + 1 :]
    return world._replace(containers=(*before, container, *after))
