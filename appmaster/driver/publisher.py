"""Publishes a changed JobModel, and has the allocator follow it, as one item of the driver's queue.

A decision between the two would be one on the model before, and its permits would overwrite what
the publication says of epochs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from homeport.appmaster.allocation.protocol.events import JobModelPublished
from homeport.appmaster.driver.coordinator_stream_client import CoordinatorStreamClient
from homeport.appmaster.driver.event_queue import EventQueue
from homeport.appmaster.driver.rollouts.rollouts import RollingRestarts
from homeport.appmaster.job_model.job_model_store import JobModelStore
from homeport.appmaster.job_model.model_change import ModelChange
from homeport.config.errors import InvariantViolation, WireError


@dataclass(frozen=True, slots=True)
class Publisher:
    """To be used on the driver's event loop.

    Args:
        _publish: writes the JobModel of a change to the coordinator stream.
        _rolling: knows each rolling restart whose record is there.
    """

    _queue: EventQueue
    _client: CoordinatorStreamClient
    _job_models: JobModelStore
    _publish: Callable[[ModelChange], JobModelPublished]
    _rolling: RollingRestarts

    async def publish(self, change: ModelChange, may_change: Callable[[], bool]) -> bool:
        """Publish the change, and return whether it could be done when its turn came.

        Raises:
            WireError: a record of it cannot be written, as one that is too large; nothing is.
        """
        refused: list[WireError] = []

        async def work() -> JobModelPublished | None:
            try:
                return await self._write(change) if may_change() else None
            except WireError as error:
                refused.append(error)
                return None

        decision = await self._queue.carry_out(work)
        if refused:
            raise refused[0]
        return decision is not None

    async def _write(self, change: ModelChange) -> JobModelPublished:
        published = await self._client.publish(lambda: self._publish(change))
        if published.version != change.version:
            raise InvariantViolation(
                f"JobModel version {change.version} was saved, {published.version} published"
            )
        self._job_models.enter(published.version, change.model)
        if change.rolling is not None:
            self._rolling.begun(change.rolling)
        return replace(published, older=self._rolling.older_now())
