"""The driver's client of Skein: gives orders, one at a time, and gets reports, in a thread."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TypeVar

from homeport.appmaster.allocation.protocol.instructions import (
    CancelRequest,
    JobResult,
    RequestResource,
    brief,
)
from homeport.appmaster.allocation.protocol.observation import SkeinContainerState
from homeport.appmaster.cluster_resource_manager import ClusterResourceManager, ResourceReport
from homeport.config.errors import UnavailableError

_T = TypeVar("_T")
_EXITS_S = 5.0
"""How long launchers may take to exit by themselves at the end."""
_POLL_S = 0.25
"""YARN has no event for the exit of a container; it is polled."""

log = logging.getLogger("driver")


class ResourceManagerClient:
    """Gives Skein its orders one at a time, in the order of the decisions.

    ``environment``: the variables of each launcher.
    """

    def __init__(self, resources: ClusterResourceManager) -> None:
        self.environment: Mapping[str, str] = {}
        self._resources = resources
        self._orders: asyncio.Queue[RequestResource | CancelRequest] = asyncio.Queue()
        self._open = 0
        self._unfit: dict[str, str] = {}
        self._pool = ThreadPoolExecutor(1, "skein")
        self.fault: str | None = None
        """Why the last poll of the containers failed; None: it did not."""

    @property
    def is_asking(self) -> bool:
        """Whether an order has not been carried out yet."""
        return self._open > 0

    def order(self, instruction: RequestResource | CancelRequest) -> None:
        """Queue an order for Skein."""
        self._orders.put_nowait(instruction)
        self._open += 1

    async def carry_out(
        self, refused: Callable[[RequestResource | CancelRequest, UnavailableError], None]
    ) -> None:
        """Carry out the queued orders for ever; ``refused`` gets each that Skein did not take."""
        while True:
            order = await self._orders.get()
            try:
                await self._in_thread(partial(self._give, order))
            except UnavailableError as e:
                log.warning("%s failed: %s", brief(order), e)
                refused(order, e)
            self._open -= 1

    async def reports(self) -> tuple[ResourceReport, ...] | None:
        """Return the containers that run or have just ended; None where Skein is silent."""
        try:
            found = await self._in_thread(self._resources.resources)
        except UnavailableError as e:
            log.warning("%s", e)
            self.fault = str(e)
            return None
        self.fault = None
        return tuple(self._explained(report) for report in found)

    def unfit(self, skein_id: str, reason: str) -> None:
        """Note why no launcher can start in this container, as the story of its end."""
        log.warning("container %s: %s", skein_id, reason)
        self._unfit[skein_id] = reason

    def _explained(self, report: ResourceReport) -> ResourceReport:
        container = report.container
        if container.state is not SkeinContainerState.ENDED:
            return report
        reason = self._unfit.pop(container.skein_id, None)
        if reason is None:
            return report
        return replace(report, container=replace(container, story=reason))

    async def finish(self, result: JobResult, diagnostics: str) -> None:
        """Let launchers exit by themselves for a while; then end the application.

        UnavailableError: Skein is silent.
        """
        deadline = time.monotonic() + _EXITS_S
        while time.monotonic() < deadline:
            reports = await self.reports()
            if not any(r.container.state is SkeinContainerState.RUNNING for r in reports or ()):
                break
            await asyncio.sleep(_POLL_S)
        await self._in_thread(partial(self._resources.finish, result, diagnostics))

    def close(self) -> None:
        """Stop making requests."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _give(self, order: RequestResource | CancelRequest) -> None:
        if isinstance(order, CancelRequest):
            self._resources.cancel(order.request_id)
            return
        environment = {**self.environment, "HOMEPORT_REQUEST_ID": str(order.request_id)}
        self._resources.request(order.request_id, order.host, environment)

    async def _in_thread(self, call: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)
