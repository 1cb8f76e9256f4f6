"""The driver's side of an upgrade: which package each processor is wanted with.

A failure that turns the upgrade back has its record in the failure's own transaction. So the permit
that follows the failure has the package from before, whichever driver gives it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from homeport.appmaster.driver.coordinator_stream_client import StreamNews
from homeport.appmaster.driver.rollouts.rollout import Rollout, Surroundings
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
        """The package that the next permit of the processor has; None: the submission's."""
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
        """The order forward is not taken, by this driver or a later one; its command finds why."""
        order = self._orders.forward
        if order is not None:
            await self._client.append([UpgradeManager.refusal_message(order, why)])
            self._orders = replace(self._orders, refused=order.id, why=why)
            log.warning("upgrade %s, ordered by %s, is refused: %s", order.id, order.by, why)
