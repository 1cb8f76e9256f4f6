"""The end of the job, as the driver brings it about."""

from __future__ import annotations

import asyncio
import logging
import time

from homeport.appmaster.allocation.job_state.state import AllocatorState
from homeport.appmaster.allocation.protocol.instructions import EndJob
from homeport.appmaster.allocation.protocol.observation import SkeinContainerState
from homeport.appmaster.attempt.adoption import Adoption
from homeport.appmaster.driver.coordinator_stream_client import CoordinatorStreamClient
from homeport.appmaster.driver.resource_manager_client import ResourceManagerClient

_LIMIT_S = 5.0
_POLL_S = 0.25

log = logging.getLogger("driver")


async def say_farewell(
    end: EndJob,
    state: AllocatorState,
    adoption: Adoption,
    stream: CoordinatorStreamClient,
    skein: ResourceManagerClient,
    diagnostics: str,
) -> None:
    """Launchers exit by themselves, then the application ends with its result.

    ``diagnostics``: what YARN gets of it.
    """
    log.info("the job ends: %s %s", end.result.value, end.diagnostics)
    stopped = {c.incarnation: c.phase.value for c in state.containers if c.epoch}
    pending = adoption.pending
    await stream.report_stops({i: cause for i, cause in stopped.items() if i not in pending})
    deadline = time.monotonic() + _LIMIT_S
    while time.monotonic() < deadline:
        reports = await skein.reports()
        if not any(r.container.state is SkeinContainerState.RUNNING for r in reports or ()):
            break
        await asyncio.sleep(_POLL_S)
    await skein.finish(end.result, diagnostics)
