"""The small world of an upgrade: what happens by itself, faults and judgement.

The machine is the product's. What the search mirrors is its shell (the record before what follows
from it, one step at a time, a failure's record with the failure), launchers that prepare packages,
and the allocator, which gives permits to what is down and carries restarts out at some time.

``SILENT``: of one partner of the upgrade nothing more comes. What its wait ends by is the time of
another part: a lease, the limits of a start, the time of a command. The upgrade ends by its own, or
people do what its wait names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from homeport.appmaster.upgrade import machine
from homeport.appmaster.upgrade.observed import ContainerSeen, Seen
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.upgrade import (
    UpgradeDirection,
    UpgradeOrder,
    UpgradeOrders,
    UpgradePhase,
    UpgradeState,
)
from tests.exhaustive.judges import require

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


Moves = Iterator[tuple[str, World]]
ALL = frozenset(
    {
        *{"new_may_fail", "old_may_fail", "host_may_be_lost", "am_may_die", "may_undo", "may_lag"},
        *{"may_not_prepare", "may_hang", "may_have_no_place", "may_be_ordered_twice"},
    }
)
LAUNCHER, START, RESTART, LAG = "launcher", "start", "restart", "lag"
SILENT = frozenset({LAUNCHER, START, RESTART, LAG})
"""Partners that fall silent: check-ins, the end of a start, that of a restart, the lag."""
_BY_HAND = "homeport restart "
_WATCH_MS = 1_000
_WARM_LAG = 100
_LARGE_LAG = 1_000
_SLOW_MS = machine.PREPARATION_MS
_QUIET_MS = (0, machine.QUIET_MS + 1, machine.HANG_MS)


class SmallWorld:
    """Processors with these ids, in the order in which they are to get the package.

    ``previous``: the package from before; None: the submission's. ``faults``: which there are.
    """

    waits_for_restarts = True
    """Whether a restart that is requested keeps the shell from requesting another one."""

    def __init__(
        self,
        ids: Sequence[str],
        faults: frozenset[str] = ALL,
        previous: str | None = OLD,
        retry_count: int = -1,
    ) -> None:
        self.ids = tuple(ProcessorId(name) for name in ids)
        self._may = faults
        self._previous = previous
        self._retry_count = retry_count

    def begun(self) -> World:
        """All run what they ran; the upgrade was ordered."""
        old = Container(package=self._previous, prepared=self._previous)
        order = UpgradeOrder("upgrade", "app", NEW, _WATCH_MS, by="ann")
        before = UpgradeState("before", "app", OLD, None, _WATCH_MS, UpgradePhase.DONE)
        state = before if self._previous else None
        return World((old,) * len(self.ids), UpgradeOrders(order), state)

    def seen(self, world: World) -> Seen:
        """What the shell makes of the world."""
        is_under_way = any(map(_is_busy, world.containers))
        is_waited_for = is_under_way and self.waits_for_restarts
        return Seen(
            tuple(map(self._seen, self.ids, world.containers)),
            "a restart is under way" if is_waited_for else "",
            _WARM_LAG,
            self._retry_count,
            _SLOW_MS if world.is_slow else 0,
        )

    def _seen(self, name: ProcessorId, container: Container) -> ContainerSeen:
        active, dash, _ = name.partition("-")
        crash = container.crash
        return ContainerSeen(
            name,
            ProcessorId(active) if dash else None,
            container.phase == "up" or crash is not None,
            container.is_known if crash is None else crash.is_known,
            container.package,
            container.prepared,
            None if container.has_no_lag else _LARGE_LAG if container.is_behind else 0,
            _QUIET_MS[container.hang],
            container.failures,
            (0, 1, machine.PATIENCE)[container.watched] * _WATCH_MS,
            refusal="it took too long" if container.is_refused else "",
            is_down=container.has_no_place and container.phase == "down" and crash is None,
        )

    # --- by itself

    def free(self, world: World) -> Moves:
        """What happens without any fault, and leads on."""
        made = machine.decide(world.state, world.orders, self.seen(world))
        if made.refused and world.orders.forward is not None:
            orders = replace(world.orders, refused=world.orders.forward.id)
            yield "the order is refused", world._replace(orders=orders)
        elif made.state is not None:
            yield f"the record says {_said(made.state)}", self._recorded(world, made.state)
        elif made.restart is not None:
            index = self.ids.index(made.restart)
            requested = world.containers[index]._replace(has_request=True)
            yield (
                f"a restart of {made.restart} is requested",
                with_container(world, index, requested),
            )
        for index, container in enumerate(world.containers):
            moves = self._of_one(world, index, container)
            for label, after in self._spoken(world, index, moves):
                yield f"{self.ids[index]} {label}", after
            is_told = f"{_BY_HAND}{self.ids[index]}" in made.waits
            is_back = world.state is not None and world.state.phase is UpgradePhase.BACK
            if is_back and is_told:  # forward it ends without them
                by_hand = container._replace(has_request=True, is_refused=False)
                yield f"people restart {self.ids[index]}", with_container(world, index, by_hand)
        is_stuck = any(c.is_unable or c.has_no_place or c.is_refused for c in world.containers)
        if is_stuck and not world.is_slow:
            yield "much time passes", world._replace(is_slow=True)

    def _spoken(self, world: World, index: int, moves: Moves) -> Moves:
        """What this container does; where a partner of it is silent, what comes in its place."""
        partner, silent = world.silent or ("", -1)
        if index != silent:
            yield from moves
            return
        container, rest = world.containers[index], world._replace(silent=None)
        mute = {LAUNCHER: "checks in", START: "starts", RESTART: "restarts"}.get(partner)
        yield from ((label, after) for label, after in moves if label != mute)
        if partner == LAUNCHER and container.phase == "up":
            yield "is silent for its lease", with_container(rest, index, self._lost(container))
        elif partner == START and container.phase == "sent":
            if not container.is_known:
                known = container._replace(is_known=True, prepared=container.package)
                yield "checks in, and starts", with_container(world, index, known)
            yield "has no more time to start", with_container(rest, index, self._crashed(container))
        elif partner == RESTART and container.has_request:
            refused = container._replace(has_request=False, is_refused=True)
            yield "has no more time to restart", with_container(rest, index, refused)

    def _recorded(self, world: World, state: UpgradeState) -> World:
        before = world.state
        if before is not None and before.id == state.id and before.current is not None:
            is_on = state.phase is UpgradePhase.FORWARD and state.current != before.current
            current = world.containers[self.ids.index(before.current)]
            if is_on and before.phase is UpgradePhase.FORWARD:
                require(current.watched, "the next one is begun before the last one was watched")
                # What the change has mended works off what came meanwhile.
                is_let_off = before.current in self.early(world)
                is_near = is_let_off or not current.is_behind
                require(is_near, "the next one is begun while the last one is behind")
        if before is not None and before.id == state.id and state.phase is UpgradePhase.FORWARD:
            self._require_work(world, "the next one is begun", state.given != before.given)
        self._require_work(world, "it is done", state.phase is UpgradePhase.DONE)
        return world._replace(state=state, is_slow=False)

    def _require_work(self, world: World, what: str, is_so: bool) -> None:  # noqa: FBT001 - a fact
        for name, container in zip(self.ids, world.containers, strict=True):
            require(not (is_so and container.hang), f"{what} while {name} hangs")

    def wanted(self, world: World, index: int) -> str | None:
        """With which package its next permit is."""
        return world.state.wanted(self.ids[index]) if world.state else None

    def early(self, world: World) -> set[ProcessorId]:  # noqa: ARG002 - as a rolling restart has it
        """The processors that may run the new package before their turn: none."""
        return set()

    def _of_one(self, world: World, index: int, container: Container) -> Moves:
        wanted = self.wanted(world, index)
        if container.crash is not None:
            yield "is heard to have ended", self._heard(world, index, container)
        elif container.phase == "down" and container.has_no_place:
            if self._may_have_place(world, self.ids[index]):
                # A restart that waited for it is answered by its start.
                has_place = container._replace(has_no_place=False, has_request=False)
                yield "has a place", with_container(world, index, has_place)
        elif container.phase == "down" and _cannot_have(container, wanted):
            yield f"cannot have {wanted}", self._without_package(world, index, wanted)
        elif container.phase == "down":
            sent = container._replace(phase="sent", package=wanted)
            yield f"gets a permit with {wanted}", with_container(world, index, sent)
        elif container.phase == "sent":
            up = container._replace(phase="up", is_restarting=False)
            yield "starts", with_container(world, index, up)
        else:
            if container.hang == len(_QUIET_MS) - 1:
                # Its own process ends it, as its call has not returned in time.
                yield "is ended", with_container(world, index, self._crashed(container))
            for label, after in self._of_running(container, wanted):
                yield label, with_container(world, index, after)

    @staticmethod
    def _may_have_place(world: World, name: ProcessorId) -> bool:
        """An upgrade must not need it, but for one that it has not begun with yet."""
        if world.state is None or world.state.phase.is_final:
            return True
        return world.state.phase is UpgradePhase.FORWARD and world.state.current != name

    def _of_running(
        self, container: Container, wanted: str | None
    ) -> Iterator[tuple[str, Container]]:
        prepared = container.prepared if _cannot_have(container, wanted) else wanted
        if not container.is_known or container.prepared != prepared:
            yield "checks in", container._replace(is_known=True, prepared=prepared)
        elif container.watched < 2 and container.package == NEW:
            yield "is watched", container._replace(watched=container.watched + 1)
        if container.has_request:
            down = self._down(container)
            yield "restarts", down._replace(has_request=False, is_restarting=True)
        if container.is_behind:
            yield "has caught up", container._replace(is_behind=False)
        if 0 < container.hang < len(_QUIET_MS) - 1:
            yield "hangs for long", container._replace(hang=container.hang + 1)

    def _down(self, container: Container) -> Container:
        gone = container._replace(phase="down", is_known=False, watched=0, is_behind=False, hang=0)
        return gone._replace(is_refused=False, has_no_lag=False)

    def _lost(self, container: Container) -> Container:
        loss = Crash(container.package, container.is_known, is_loss=True)
        return self._down(container)._replace(crash=loss, prepared=None, is_unable=False)

    def _crashed(self, container: Container) -> Container:
        crash = Crash(container.package, container.is_known)
        return self._down(container)._replace(crash=crash)

    def _without_package(self, world: World, index: int, wanted: str | None) -> World:
        """Its launcher reports that; the next one, at another host, can have any package."""
        container = world.containers[index]
        ended = container._replace(
            crash=Crash(wanted, is_known=False), is_unable=False, prepared=None, is_restarting=False
        )
        why = "its launcher cannot have the package"
        return self._heard(with_container(world, index, ended), index, ended, why)

    def _heard(self, world: World, index: int, container: Container, story: str = "a bug") -> World:
        assert container.crash is not None
        if container.crash.is_loss:
            return with_container(world, index, container._replace(crash=None))
        ran = (container.crash.ran,) if container.crash.is_known else None
        state = machine.failed(world.state, self.ids[index], ran, story)
        is_over = world.state is None or world.state.phase.is_final
        is_of_new = container.crash.ran == NEW and not is_over
        down = container._replace(crash=None, failures=container.failures + is_of_new)
        after = with_container(world, index, down)
        return after._replace(
            state=world.state if state is None else state, has_failed=world.has_failed or is_of_new
        )

    def relief(self, world: World) -> Moves:  # noqa: ARG002 - as the search calls it
        """Nothing else."""
        yield from ()

    # --- faults

    def faults(self, world: World) -> Moves:
        """What is counted: failures of either package, lost hosts, the AM's death, an order."""
        for index, container in enumerate(world.containers):
            is_standby = "-" in self.ids[index]
            is_over = world.state is None or world.state.phase.is_final
            for label, after in self._faults_of_one(container, is_standby=is_standby):
                # What hangs after the end is as any code that hangs.
                if not (after.hang and is_over):
                    yield f"{self.ids[index]} {label}", with_container(world, index, after)
            for partner in sorted(SILENT & self._may if world.silent is None else ()):
                silent = world._replace(silent=None if partner == LAG else (partner, index))
                after = container._replace(has_no_lag=partner == LAG)
                yield (
                    f"nothing more comes of the {partner} of {self.ids[index]}",
                    with_container(silent, index, after),
                )
        if "am_may_die" in self._may:
            unknown = tuple(map(_unknown, world.containers))
            yield "the AM dies", world._replace(containers=unknown, is_slow=False)
        first = UpgradeOrder("upgrade", "app", NEW, _WATCH_MS, by="ann")
        if "may_undo" in self._may and world.orders.back is None:
            back = replace(first, direction=UpgradeDirection.BACK)
            yield "it is taken back", world._replace(orders=replace(world.orders, back=back))
        is_under_way = world.state is not None and not world.state.phase.is_final
        is_first = world.orders.forward == first
        if "may_be_ordered_twice" in self._may and is_under_way and is_first:
            orders = replace(world.orders, forward=replace(first, id="other"))
            yield "another one is ordered", world._replace(orders=orders)

    def _faults_of_one(
        self, container: Container, *, is_standby: bool
    ) -> Iterator[tuple[str, Container]]:
        if container.phase == "up":
            kind = "new_may_fail" if container.package == NEW else "old_may_fail"
            if kind in self._may:
                yield "fails", self._crashed(container)
            if "may_not_prepare" in self._may and not container.is_unable:
                yield "cannot prepare a package", container._replace(is_unable=True)
            is_active = container.package == NEW and not is_standby
            if "may_hang" in self._may and is_active and not container.hang:
                yield "hangs", container._replace(hang=1)
            if "may_lag" in self._may and container.package == NEW and not container.is_behind:
                yield "is behind", container._replace(is_behind=True)
        if "host_may_be_lost" in self._may and container.phase == "up":
            lost = self._lost(container)
            yield "loses its host", lost
            if "may_not_prepare" in self._may:
                full = lost._replace(package=None, is_unable=True)
                yield "loses its host, the next one has a full disk", full
            if "may_have_no_place" in self._may:
                yield "loses its host, no other has room", lost._replace(has_no_place=True)

    # --- judgement

    def judge(self, world: World) -> None:
        """One is down at a time, what runs follows from the record, one failure turns back."""
        down = [n for n, c in zip(self.ids, world.containers, strict=True) if c.is_restarting]
        require(len(down) <= 1, f"{', '.join(down)} are down because of the upgrade")
        for name, container in zip(self.ids, world.containers, strict=True):
            require(container.failures <= 1, f"{name} has failed twice with the new package")
        state = world.state
        if state is None or state.id == "before":
            return
        require(state.id == "upgrade", "another upgrade has begun while this one was under way")
        running = {
            name: c.package
            for name, c in zip(self.ids, world.containers, strict=True)
            if c.phase != "down"
        }
        new = {name for name, package in running.items() if package == NEW}
        if state.phase is UpgradePhase.FORWARD:
            require(not world.has_failed, "it goes on although the new package has failed")
            require(state.given == self.ids[: len(state.given)], f"the order is {state.given}")
            named = {*state.given, *self.early(world)}
            require(new <= named, "a package runs that no record names")
        elif state.phase is UpgradePhase.DONE:
            require(not world.has_failed, "it is done although the new package has failed")
            require(new == set(running), "it is done, and another package runs")
        elif state.phase is UpgradePhase.GONE_BACK:
            require(not new, "it has gone back, and the new package runs")

    def is_well(self, world: World) -> bool:
        """The upgrade is over, all that have a place run, with one package; no order is left."""
        state = world.state
        if state is None or state.id != "upgrade" or not state.phase.is_final:
            return False
        if world.orders.takes_back(state) or world.orders.is_new(state):
            return False
        return all(
            (c.phase == "up" and not c.has_request and c.package == state.left) or c.has_no_place
            for c in world.containers
        )

    def shown(self, world: World) -> list[str]:
        """The records, then each container."""
        lines = [str(world.orders), str(world.state), f"has failed: {world.has_failed}"]
        return [*lines, *(f"{n} {c}" for n, c in zip(self.ids, world.containers, strict=True))]

    def bound(self, faults: int) -> str:
        """Within what the worlds lie: all of them, in every order of what may happen."""
        kinds = ", ".join(sorted(self._may))
        return f"processors {', '.join(self.ids)}, faults at most {faults} of {kinds}"

    def states(self) -> str:
        """The machine has no state but the record."""
        return "the machine has no state but its record"


def _unknown(container: Container) -> Container:
    """What the next driver has seen of it: nothing."""
    crash = container.crash and container.crash._replace(is_known=False)
    return container._replace(is_known=False, watched=0, crash=crash)


def _is_busy(container: Container) -> bool:
    """A command for one that has no place waits."""
    waits = container.has_no_place and container.phase == "down" and container.crash is None
    return (container.has_request or container.is_restarting) and not waits


def _cannot_have(container: Container, wanted: str | None) -> bool:
    return container.is_unable and wanted not in {None, container.package, container.prepared}


def _said(state: UpgradeState) -> str:
    return f"{state.phase.value}, given {list(state.given)}, current {state.current}"
