"""The small world of an upgrade: what happens by itself, faults and judgement.

The machine is the product's. What the search mirrors is its shell (the record before what follows
from it, one step at a time, a failure's record with the failure), launchers that prepare packages,
and the allocator, which gives permits to what is down and carries restarts out at some time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from homeport.appmaster.upgrade import machine
from homeport.appmaster.upgrade.seen import ContainerSeen, Seen
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.upgrade import (
    UpgradeDirection,
    UpgradeOrder,
    UpgradePhase,
    UpgradeState,
)
from tests.exhaustive.judges import require
from tests.exhaustive.upgrade.things import NEW, OLD, Container, Crash, World, with_container

Moves = Iterator[tuple[str, World]]
ALL = frozenset(
    {
        *{"new_may_fail", "old_may_fail", "host_may_be_lost", "am_may_die", "may_undo", "may_lag"},
        "may_not_prepare",
    }
)
_WATCH_MS = 1_000
_WARM_LAG = 100
_LARGE_LAG = 1_000
_SLOW_MS = machine.PREPARATION_MS


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
        return World((old,) * len(self.ids), order, state)

    def seen(self, world: World) -> Seen:
        """What the shell makes of the world."""
        is_under_way = any(c.has_request for c in world.containers) and self.waits_for_restarts
        return Seen(
            tuple(map(self._seen, self.ids, world.containers)),
            "a restart is under way" if is_under_way else "",
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
            _LARGE_LAG if container.is_behind else 0,
            container.failures,
            (0, 1, machine.PATIENCE)[container.watched] * _WATCH_MS,
        )

    # --- by itself

    def free(self, world: World) -> Moves:
        """What happens without any fault, and leads on."""
        made = machine.decide(world.state, world.order, self.seen(world))
        if made.state is not None:
            yield f"the record says {_said(made.state)}", self._recorded(world, made.state)
        elif made.restart is not None:
            index = self.ids.index(made.restart)
            requested = world.containers[index]._replace(has_request=True)
            yield (
                f"a restart of {made.restart} is requested",
                with_container(world, index, requested),
            )
        for index, container in enumerate(world.containers):
            for label, after in self._of_one(world, index, container):
                yield f"{self.ids[index]} {label}", after
        if any(c.is_unable for c in world.containers) and not world.is_slow:
            yield "much time passes", world._replace(is_slow=True)

    def _recorded(self, world: World, state: UpgradeState) -> World:
        before = world.state
        if before is not None and before.id == state.id and before.current is not None:
            is_on = state.phase is UpgradePhase.FORWARD and state.current != before.current
            current = world.containers[self.ids.index(before.current)]
            if is_on and before.phase is UpgradePhase.FORWARD:
                require(current.watched, "the next one is begun before the last one was watched")
                require(not current.is_behind, "the next one is begun while the last one is behind")
        return world._replace(state=state, is_slow=False)

    def _of_one(self, world: World, index: int, container: Container) -> Moves:
        wanted = world.state.wanted(self.ids[index]) if world.state else None
        if container.crash is not None:
            yield "is heard to have ended", self._heard(world, index, container)
        elif container.phase == "down":
            sent = container._replace(phase="sent", package=wanted)
            yield f"gets a permit with {wanted}", with_container(world, index, sent)
        elif container.phase == "sent":
            up = container._replace(phase="up", is_restarting=False)
            yield "starts", with_container(world, index, up)
        else:
            for label, after in self._of_running(container, wanted):
                yield label, with_container(world, index, after)

    def _of_running(
        self, container: Container, wanted: str | None
    ) -> Iterator[tuple[str, Container]]:
        prepared = container.prepared if container.is_unable and wanted == NEW else wanted
        if not container.is_known or container.prepared != prepared:
            yield "checks in", container._replace(is_known=True, prepared=prepared)
        elif container.watched < 2 and container.package == NEW:
            yield "is watched", container._replace(watched=container.watched + 1)
        if container.has_request:
            down = self._down(container)
            yield "restarts", down._replace(has_request=False, is_restarting=True)
        if container.is_behind:
            yield "has caught up", container._replace(is_behind=False)

    def _down(self, container: Container) -> Container:
        return container._replace(phase="down", is_known=False, watched=0, is_behind=False)

    def _heard(self, world: World, index: int, container: Container) -> World:
        assert container.crash is not None
        if container.crash.is_loss:
            return with_container(world, index, container._replace(crash=None))
        ran = (container.crash.ran,) if container.crash.is_known else None
        state = machine.failed(world.state, self.ids[index], ran, "a bug")
        is_over = world.state is None or world.state.phase.is_final
        is_of_new = container.crash.ran == NEW and not is_over
        down = container._replace(crash=None, failures=container.failures + is_of_new)
        after = with_container(world, index, down)
        return after._replace(
            state=world.state if state is None else state,
            has_failed=world.has_failed or is_of_new,
        )

    def relief(self, world: World) -> Moves:  # noqa: ARG002 - as the search calls it
        """Nothing else."""
        yield from ()

    # --- faults

    def faults(self, world: World) -> Moves:
        """What is counted: failures of either package, lost hosts, the AM's death, an order."""
        for index, container in enumerate(world.containers):
            for label, after in self._faults_of_one(container):
                yield f"{self.ids[index]} {label}", with_container(world, index, after)
        if "am_may_die" in self._may:
            unknown = tuple(map(_unknown, world.containers))
            yield "the AM dies", world._replace(containers=unknown, is_slow=False)
        if "may_undo" in self._may and world.order.direction is UpgradeDirection.FORWARD:
            order = replace(world.order, direction=UpgradeDirection.BACK)
            yield "it is taken back", world._replace(order=order)

    def _faults_of_one(self, container: Container) -> Iterator[tuple[str, Container]]:
        if container.phase == "up":
            kind = "new_may_fail" if container.package == NEW else "old_may_fail"
            if kind in self._may:
                crash = Crash(container.package, container.is_known)
                yield "fails", self._down(container)._replace(crash=crash)
            is_able = container.package != NEW and not container.is_unable
            if "may_not_prepare" in self._may and is_able:
                yield "cannot prepare the package", container._replace(is_unable=True)
            if "may_lag" in self._may and container.package == NEW and not container.is_behind:
                yield "is behind", container._replace(is_behind=True)
        if "host_may_be_lost" in self._may and container.phase == "up":
            loss = Crash(container.package, container.is_known, is_loss=True)
            yield "loses its host", self._down(container)._replace(crash=loss, prepared=None)

    # --- judgement

    def judge(self, world: World) -> None:
        """One is down at a time, what runs follows from the record, one failure turns back."""
        down = [n for n, c in zip(self.ids, world.containers, strict=True) if c.is_restarting]
        require(len(down) <= 1, f"{', '.join(down)} are down because of the upgrade")
        for name, container in zip(self.ids, world.containers, strict=True):
            require(container.failures <= 1, f"{name} has failed twice with the new package")
        state = world.state
        if state is None or state.id != world.order.id:
            return
        running = {
            name: c.package
            for name, c in zip(self.ids, world.containers, strict=True)
            if c.phase != "down"
        }
        new = {name for name, package in running.items() if package == NEW}
        if state.phase is UpgradePhase.FORWARD:
            require(not world.has_failed, "it goes on although the new package has failed")
            require(state.given == self.ids[: len(state.given)], f"the order is {state.given}")
            require(new <= set(state.given), "a package runs that no record names")
        elif state.phase is UpgradePhase.DONE:
            require(not world.has_failed, "it is done although the new package has failed")
            require(new == set(running), "it is done, and another package runs")
        elif state.phase is UpgradePhase.GONE_BACK:
            require(not new, "it has gone back, and the new package runs")

    def is_well(self, world: World) -> bool:
        """The upgrade is over, all run, with one package, and no order is left."""
        state = world.state
        if state is None or state.id != world.order.id or not state.phase.is_final:
            return False
        if world.order.direction is UpgradeDirection.BACK and state.phase is UpgradePhase.DONE:
            return False
        return all(
            c.phase == "up" and not c.has_request and c.package == state.left
            for c in world.containers
        )

    def shown(self, world: World) -> list[str]:
        """The records, then each container."""
        lines = [str(world.order), str(world.state), f"has failed: {world.has_failed}"]
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


def _said(state: UpgradeState) -> str:
    return f"{state.phase.value}, given {list(state.given)}, current {state.current}"
