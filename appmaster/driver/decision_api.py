"""What HTTP shows of the driver's decisions: why they were made, and what others would be."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping

from prometheus_client.core import Metric

from homeport.appmaster.allocation.what_if import known_hosts, what_if
from homeport.appmaster.driver.driver import Driver
from homeport.config.errors import UnavailableError, WireError
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
)
from homeport.job_coordinator.http.query_params import EventsAsked
from homeport.job_coordinator.model.ids import Host
from homeport.job_coordinator.model.json_values import shown
from homeport.job_coordinator.status.outlook import ShownOutlook

_STREAM_S = 5.0
"""How long the thread of the coordinator stream may be busy with Kafka."""


class DriverDecisions:
    """``DecisionSource`` of a driver. To be used on the driver's event loop."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._asking = asyncio.Lock()

    def events(self, asked: EventsAsked) -> bytes:
        """The last events that decided something."""
        return self._driver.decisions.events.to_json(asked)

    async def what_if(self, hosts: Collection[Host]) -> ShownOutlook:
        """Return what would come of the loss of these hosts, computed in a thread, one at a time.

        Raises:
            WireError: the job has no such host.
            UnavailableError: another one is being computed.
        """
        state = self._driver.state
        known = known_hosts(state)
        for host in sorted(set(hosts) - known):
            names = ", ".join(sorted(known)) or "none yet"
            raise WireError(f"the job knows no host {shown(host)}: it knows {names}")
        if self._asking.locked():
            raise UnavailableError("another what-if is being computed; ask again")
        async with self._asking:
            reports = self._driver.cluster.hosts
            outlook = await asyncio.to_thread(what_if, state, frozenset(hosts), reports)
        return outlook.shown()

    async def written(self) -> Mapping[str, CoordinatorStreamMessage]:
        """What the coordinator stream has of each key of the configuration.

        Raises:
            UnavailableError: its thread waits for Kafka.
        """
        try:
            async with asyncio.timeout(_STREAM_S):
                return await self._driver.view.stream.written()
        except TimeoutError:
            raise UnavailableError("the coordinator stream waits for Kafka; ask again") from None

    def metrics(self) -> Iterable[Metric]:
        """The allocator in numbers, now."""
        return self._driver.decisions.metrics.collect(self._driver.state)
