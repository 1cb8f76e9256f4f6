"""The rollouts of a running job: its upgrade and its rolling restart, one at a time.

An order of an upgrade is refused while a rolling restart is under way; that waits for an upgrade.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace

from homeport.appmaster.allocation.container_process_manager import Decision
from homeport.appmaster.allocation.job_state.state import AllocatorState
from homeport.appmaster.allocation.protocol.events import Event
from homeport.appmaster.driver.coordinator_stream_client import StreamNews
from homeport.appmaster.driver.rollouts.rolling_restarts import RollingRestarts
from homeport.appmaster.driver.rollouts.rollout import Rollout, Surroundings
from homeport.appmaster.report.step import LauncherMessage, Step
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
)
from homeport.job_coordinator.metadata.upgrade import UpgradeManager
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.upgrade import UpgradeState

_RESTARTS = (
    "a rolling restart with a changed configuration is under way: wait for its end, or write the "
    "values from before"
)

log = logging.getLogger("driver")


class Upgrades(Rollout):
    """Which package each processor is wanted with. To be used on the driver's event loop.

    Args:
        stream: read to its head.
        is_restarting: whether a rolling restart is under way.
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

    def heard(self, news: StreamNews) -> None:
        """Know what the coordinator stream has now."""
        self._news, self._orders = news, news.upgrade

    def record(self, state: UpgradeState) -> CoordinatorStreamMessage:
        """Return the record that has ``state``."""
        return UpgradeManager.state_message(state)

    def hindrance(self) -> str:
        """Return nothing: a rolling restart waits for an upgrade, which is refused meanwhile."""
        return ""

    async def prepared(self) -> bool:
        """Refuse an order forward while a rolling restart is under way; return whether it is so."""
        is_new = self._orders.is_new(self._state) and not self._orders.cancels(self._state)
        if is_new and self._is_restarting():
            await self.refuse(_RESTARTS)
            return True
        return False

    async def refuse(self, why: str) -> None:
        """Refuse the order forward, for this driver and later ones; its command finds why."""
        order = self._orders.forward
        if order is not None:
            await self._client.append([UpgradeManager.refusal_message(order, why)])
            self._orders = replace(self._orders, refused=order.id, why=why)
            log.warning("upgrade %s, ordered by %s, is refused: %s", order.id, order.by, why)


class Rollouts:
    """Both of them. To be used on the driver's event loop.

    Args:
        stream: read to its head.
    """

    def __init__(self, stream: CoordinatorStream, driver: Surroundings) -> None:
        self.upgrades = Upgrades(stream, driver, lambda: self.rolling.is_under_way)
        self.rolling = RollingRestarts(stream, driver, lambda: self.upgrades.is_under_way)
        self._both = (self.upgrades, self.rolling)

    def heard(self, news: StreamNews) -> None:
        """Know what the coordinator stream has now."""
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
        """Know a decision whose records are in the stream."""
        for rollout in self._both:
            rollout.entered(step)

    async def run(self) -> None:
        """Take the steps of both for ever."""
        await asyncio.gather(*(rollout.run() for rollout in self._both))
