"""The rollouts of a running job: its upgrade and its rolling restart, one at a time.

An order of an upgrade is refused while a rolling restart is under way; that waits for an upgrade.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from homeport.appmaster.allocation.container_process_manager import Decision
from homeport.appmaster.allocation.job_state.state import AllocatorState
from homeport.appmaster.allocation.protocol.events import Event
from homeport.appmaster.driver.coordinator_stream_client import StreamNews
from homeport.appmaster.driver.rollouts.rolling_restarts import RollingRestarts
from homeport.appmaster.driver.rollouts.rollout import Surroundings
from homeport.appmaster.driver.rollouts.upgrades import Upgrades
from homeport.appmaster.report.step import LauncherMessage, Step
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
)


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
