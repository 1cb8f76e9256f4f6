"""The rollouts of a running job: its upgrade and its rolling restart, one at a time.

An order of an upgrade is refused while a rolling restart is under way; that waits for an upgrade.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from immutables import Map

from homeport.appmaster.allocation.container_process_manager import Decision
from homeport.appmaster.allocation.job_state.state import AllocatorState
from homeport.appmaster.allocation.protocol.events import Event, OlderModelsWanted
from homeport.appmaster.allocation.protocol.instructions import PermitContainer
from homeport.appmaster.driver.coordinator_stream_client import StreamNews
from homeport.appmaster.driver.rollouts.rollout import Rollout, Surroundings
from homeport.appmaster.report.step import LauncherMessage, Step
from homeport.appmaster.upgrade.observed import Seen
from homeport.appmaster.upgrade.rolling import Reconfigured, following, older_for, seen_with
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import InvariantViolation
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.metadata.upgrade import RollingRestartManager, UpgradeManager
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.upgrade import RollingRestart, UpgradeState

_UPGRADE = "an upgrade is under way"


class RollingRestarts(Rollout):
    """The rolling restart of this run of the job, if there is one.

    A change of keys that only a start reads comes into force with the record of its rolling
    restart. Where that goes back, the former values are written to the coordinator stream, and come
    into force like any others.

    ``stream``: read to its head. ``is_upgrading``: whether an upgrade is under way: this waits for
    it.
    """

    event = "rolling-restart"

    def __init__(
        self, stream: CoordinatorStream, driver: Surroundings, is_upgrading: Callable[[], bool]
    ) -> None:
        super().__init__(driver)
        self._job_models, self._post = driver.job_models, driver.post
        self._is_upgrading = is_upgrading
        self._rolling = RollingRestartManager(stream).read(driver.application)
        self._state = self._rolling.state if self._rolling else None
        self._older: Map[ProcessorId, int] = Map()
        self._failing: set[ProcessorId] = set()
        """Processors that have failed since the last change."""
        self._versions: dict[Incarnation, int] = {}
        """{incarnation: the JobModel version that it started with}."""
        self._restored: StreamNews | None = None
        """The stream's content before the former values were written; the next content has them."""

    def following(
        self, version: int, before: Config, after: Config, names: Collection[str]
    ) -> RollingRestart:
        """Return the record for this version of the JobModel, in which ``names`` have changed."""
        watch_ms = keys.ROLLING_RESTART_WATCH_MS.read(after)
        change = Reconfigured(self._application, version, before, after, names, watch_ms)
        return following(self._rolling, change)

    def older(self) -> Map[ProcessorId, int]:
        """Return {processor that starts with the former values: its JobModel version}.

        Others start with the version in force: also those that fail with the former values, and
        those for which this attempt has no former JobModel with the same tasks.
        """
        rolling = self._rolling
        if rolling is None or not rolling.is_under_way or rolling.back is not None:
            return Map()
        version, now = rolling.first - 1, self._job_models.model.containers
        model = self._job_models.get(version)
        before = {} if model is None else model.containers
        kept = [p for p, container in now.items() if before.get(p) == container]
        return Map(dict.fromkeys(older_for(rolling, kept, self._failing), version))

    def older_now(self) -> Map[ProcessorId, int]:
        """Return ``older``, for the event with which the allocator gets the JobModel."""
        self._older = self.older()
        return self._older

    async def run(self) -> None:
        """Take the steps for ever, and first those that an earlier driver has begun."""
        self._wants_older()
        await super().run()

    def begun(self, rolling: RollingRestart) -> None:
        """Note that the record is in the stream, with its JobModel."""
        if self._rolling is None or self._rolling.version != rolling.version:
            self._failing.clear()
        self._rolling = rolling
        self._enter(rolling.state)

    def heard(self, news: StreamNews) -> None:
        """Note the present content of the coordinator stream."""
        self._news = news
        for processor_id, (epoch, version) in news.versions.items():
            self._versions[Incarnation(processor_id, epoch)] = version

    def failed(self, incarnation: Incarnation) -> None:
        """Note that this incarnation has failed during the restart."""
        self._failing.add(incarnation.processor_id)

    def entered(self, step: Step) -> None:
        """Note a decision whose records are in the stream, and a launcher's message."""
        super().entered(step)
        if self.is_under_way and step.decision.changes.containers:
            self._wants_older()
        for instruction in step.decision.instructions:
            if isinstance(instruction, PermitContainer):
                self._versions[instruction.incarnation] = instruction.model_version
        if len(self._versions) > 4 * len(step.decision.state.containers):
            live = {c.processor_id: c.epoch for c in step.decision.state.containers}
            kept = {i: v for i, v in self._versions.items() if live.get(i.processor_id) == i.epoch}
            self._versions = kept

    def record(self, state: UpgradeState) -> CoordinatorStreamMessage:
        """Return the record that has ``state``."""
        return RollingRestartManager.message(self._with(state))

    def hindrance(self) -> str:
        """Return a clause while an upgrade is under way; else empty."""
        return _UPGRADE if self._is_upgrading() else ""

    def seen(self, seen: Seen, now: AllocatorState) -> Seen:
        """Return ``seen`` with the values that each container has in place of its package."""
        if self._rolling is None:
            return seen
        found = {c.processor_id: self._versions.get(c.incarnation) for c in now.containers}
        versions = {p: version for p, version in found.items() if version is not None}
        return seen_with(seen, self._rolling, versions)

    def ran(self, incarnation: Incarnation) -> tuple[str | None] | None:
        """Return the values with which that incarnation has started; None: not known."""
        version = self._versions.get(incarnation)
        if version is None or self._rolling is None:
            return None
        return (self._rolling.release(version),)

    async def prepared(self) -> bool:
        """Write the former values where they must come back; return whether that was needed."""
        rolling, news = self._rolling, self._news
        if rolling is None or news is None or not rolling.lacks_former or news is self._restored:
            return False
        is_written = rolling.is_former(news.config)
        if not is_written:
            await self._client.append(RollingRestartManager.former_messages(rolling))
        self._restored = news
        return not is_written

    def _enter(self, state: UpgradeState) -> None:
        self._rolling = self._with(state)
        super()._enter(state)
        self._wants_older()

    def _wants_older(self) -> None:
        """Report to the allocator which processors start with the former JobModel."""
        older = self.older()
        if older != self._older:
            self._older = older
            self._post(OlderModelsWanted(older))

    def _with(self, state: UpgradeState) -> RollingRestart:
        if self._rolling is None:
            raise InvariantViolation("a state without its rolling restart")
        return replace(self._rolling, state=state)


_RESTARTS = (
    "a rolling restart with a changed configuration is under way: wait for its end, or write the "
    "values from before"
)

log = logging.getLogger("driver")


class Upgrades(Rollout):
    """The upgrade of this run of the job: which package each processor will have.

    ``stream``: read to its head.
    """

    event = "upgrade"

    def __init__(
        self, stream: CoordinatorStream, driver: Surroundings, is_restarting: Callable[[], bool]
    ) -> None:
        super().__init__(driver)
        self._is_restarting = is_restarting
        self._state = UpgradeManager(stream).state(driver.application)

    def of(self, processor_id: ProcessorId) -> str | None:
        """Return the package for the next permit of the processor; None: the submission's."""
        return None if self._state is None else self._state.wanted(processor_id)

    @property
    def left(self) -> str | None:
        """The package that is left once an upgrade is over; while it is under way, from before."""
        return None if self._state is None else self._state.left

    def heard(self, news: StreamNews) -> None:
        """Note the present content of the coordinator stream."""
        self._news, self._orders = news, news.upgrade

    def record(self, state: UpgradeState) -> CoordinatorStreamMessage:
        """Return the record that has ``state``."""
        return UpgradeManager.state_message(state)

    def hindrance(self) -> str:
        """Return nothing: a rolling restart waits for an upgrade, which is refused meanwhile."""
        return ""

    async def prepared(self) -> bool:
        """Refuse an order forward while a rolling restart is under way; return whether it did."""
        is_new = self._orders.is_new(self._state) and not self._orders.cancels(self._state)
        if is_new and self._is_restarting():
            await self.refuse(_RESTARTS)
            return True
        return False

    async def refuse(self, why: str) -> None:
        """Refuse the order forward, with a record for its command and for later drivers."""
        order = self._orders.forward
        if order is not None:
            await self._client.append([UpgradeManager.refusal_message(order, why)])
            self._orders = replace(self._orders, refused=order.id, why=why)
            log.warning("upgrade %s, ordered by %s, is refused: %s", order.id, order.by, why)


class Rollouts:
    """Upgrade and rolling restart together, on the driver's event loop.

    ``stream``: read to its head.
    """

    def __init__(self, stream: CoordinatorStream, driver: Surroundings) -> None:
        self.upgrades = Upgrades(stream, driver, lambda: self.rolling.is_under_way)
        self.rolling = RollingRestarts(stream, driver, lambda: self.upgrades.is_under_way)
        self._both = (self.upgrades, self.rolling)

    def heard(self, news: StreamNews) -> None:
        """Note the present content of the coordinator stream."""
        self.upgrades.heard(news)
        self.rolling.heard(news)

    def messages(
        self,
        before: AllocatorState,
        event: Event,
        decision: Decision,
        message: LauncherMessage | None,
    ) -> Iterator[CoordinatorStreamMessage]:
        """Yield the records that a failure changes; see ``Rollout.messages``."""
        for rollout in self._both:
            yield from rollout.messages(before, event, decision, message)

    def entered(self, step: Step) -> None:
        """Note a decision whose records are in the stream."""
        for rollout in self._both:
            rollout.entered(step)

    async def run(self) -> None:
        """Take the steps of both for ever."""
        await asyncio.gather(*(rollout.run() for rollout in self._both))
