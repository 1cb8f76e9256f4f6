"""The small world of a rolling restart: an upgrade whose packages are values of the configuration.

What is different: nothing is prepared; what has failed with the values from before starts with the
new ones before its turn; and on the way back nothing is restarted until a JobModel has the values
from before, with which all permits are from then on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from homeport.appmaster.upgrade import rolling
from homeport.appmaster.upgrade.observed import Seen
from homeport.appmaster.upgrade.rolling import NOT_YET_BACK
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.upgrade import (
    SUBJECT,
    RollingRestart,
    UpgradeOrders,
    UpgradePhase,
    UpgradeState,
)
from tests.exhaustive.judges import require
from tests.exhaustive.upgrade.small_world import (
    NEW,
    OLD,
    Container,
    Moves,
    SmallWorld,
    World,
    with_container,
)

BROKEN = "old_is_broken"


class RollingWorld(SmallWorld):
    """Processors with these ids take the new values one after the other."""

    waits_for_former = True
    """Whether a restart on the way back waits until the values from before are in force."""

    def __init__(self, ids: Sequence[str], faults: frozenset[str]) -> None:
        super().__init__(ids, faults, OLD)

    def begun(self) -> World:
        """The JobModel with the new values is in force, and its record with it."""
        state = UpgradeState("upgrade", "app", NEW, OLD, 1_000, subject=SUBJECT)
        return World((Container(),) * len(self.ids), UpgradeOrders(), state)

    def seen(self, world: World) -> Seen:
        """What the shell makes of the world."""
        seen, state = super().seen(world), world.state
        assert state is not None
        ready = tuple(replace(c, prepared=state.wanted(c.processor_id)) for c in seen.containers)
        is_awaited = state.phase is UpgradePhase.BACK and not world.is_former
        hindrance = NOT_YET_BACK if is_awaited and self.waits_for_former else ""
        return replace(seen, containers=ready, hindrance=seen.hindrance or hindrance)

    def wanted(self, world: World, index: int) -> str | None:
        """With which values its next permit is: the product's rule."""
        assert world.state is not None
        if world.is_former or not world.state.phase.is_final:
            first = 1 if world.is_former else None
            record = RollingRestart(world.state, 1, 1, first, {})
            if record.back is not None:
                return OLD
            return (
                OLD
                if self.ids[index] in rolling.older_for(record, self.ids, self.failing(world))
                else NEW
            )
        return world.state.left

    def early(self, world: World) -> set[ProcessorId]:
        """Those that have failed with the values from before."""
        named = zip(self.ids, world.containers, strict=True)
        return {name for name, container in named if container.has_failed_before}

    def failing(self, world: World) -> set[ProcessorId]:
        """Those of them that this driver knows."""
        named = zip(self.ids, world.containers, strict=True)
        return {name for name, container in named if container.has_failed_before == 2}

    def free(self, world: World) -> Moves:
        """What happens without any fault, and leads on."""
        yield from super().free(world)
        is_back = world.state is not None and world.state.phase is UpgradePhase.BACK
        if is_back and not world.is_former:
            yield "the values from before are in force", world._replace(is_former=True)

    def _of_one(self, world: World, index: int, container: Container) -> Moves:
        is_wrong = container.is_broken and container.package == OLD and container.phase != "down"
        if is_wrong and container.crash is None:
            failed = self._crashed(container)._replace(is_restarting=False)
            yield "fails, as always", with_container(world, index, failed)
        else:
            yield from super()._of_one(world, index, container)

    def _heard(self, world: World, index: int, container: Container, story: str = "a bug") -> World:
        crash = container.crash
        assert crash is not None
        # The record of its permit names the JobModel.
        container = container._replace(crash=crash._replace(is_known=True))
        if crash.ran == OLD and not crash.is_loss:
            container = container._replace(has_failed_before=2)
        return super()._heard(world, index, container, story)

    def faults(self, world: World) -> Moves:
        """As of an upgrade; and a container that cannot run with the values from before any more.

        The next driver does not know what has failed.
        """
        for label, after in super().faults(world):
            if label == "the AM dies":
                known = tuple(map(_forgotten, after.containers))
                yield "the driver dies", after._replace(containers=known)
            else:
                yield label, after
        for index, container in enumerate(world.containers):
            if BROKEN in self._may and container.package == OLD and container.phase == "up":
                broken = container._replace(is_broken=True)
                label = f"{self.ids[index]} cannot run with the values from before"
                yield label, with_container(world, index, broken)

    def judge(self, world: World) -> None:
        """As of an upgrade; and in the end the values are in force that all run with."""
        super().judge(world)
        has_gone_back = world.state is not None and world.state.phase is UpgradePhase.GONE_BACK
        is_old = world.is_former or not has_gone_back
        require(is_old, "it has gone back, and the new values are in force")


def _forgotten(container: Container) -> Container:
    return container._replace(has_failed_before=min(1, container.has_failed_before))
