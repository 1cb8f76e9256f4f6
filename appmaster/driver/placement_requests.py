"""Turns operators' placement requests in the coordinator stream into events of the driver.

Requests are taken one at a time, as work of the driver's queue: when the next one is read, the
answer to the last one is in the stream, so that none is taken twice and none is left out.

A request names the run of the job that it is for: its application on YARN, or the value of
``app.run.id``, as in Samza. A request for another run is refused, as its writer waits for an
answer; Samza deletes it in silence. Answers are kept as long as the run: a uuid that comes again is
recognized by its answer. The first driver of the next run deletes them.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from functools import partial

from homeport.appmaster.allocation.protocol.events import PlacementRequested
from homeport.appmaster.driver.coordinator_stream_client import CoordinatorStreamClient, StreamNews
from homeport.appmaster.driver.event_queue import EventQueue
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import UnavailableError
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.metadata.placement import PlacementManager
from homeport.job_coordinator.model.json_values import shown
from homeport.job_coordinator.model.placement import (
    PlacementRequest,
    PlacementResponse,
    PlacementStatus,
)

log = logging.getLogger("driver")


def is_for(request: PlacementRequest, application: str, config: Config) -> bool:
    """Return whether a request is for this run of the job."""
    return request.deployment_id in {application, config.get(keys.APP_RUN_ID.name)} - {None}


class PlacementRequests:
    """Takes requests on the driver's event loop.

    ``stream``: read to its head; ``client`` reads it from then on. ``may_take`` returns whether the
    allocator can answer now. ``taken`` gets each request that the allocator gets.
    """

    def __init__(
        self,
        stream: CoordinatorStream,
        client: CoordinatorStreamClient,
        queue: EventQueue,
        application: str,
        config: Callable[[], Config],
        may_take: Callable[[], bool],
        taken: Callable[[PlacementRequest], None],
    ) -> None:
        self._requests = PlacementManager(stream)
        self._client = client
        self._queue = queue
        self._application = application
        self._config = config
        self._may_take = may_take
        self._taken = taken
        self._is_news = asyncio.Event()
        self._unanswerable: tuple[str, ...] = ()
        self._unfinished = self._requests.unfinished()

    def unfinished(self) -> Iterator[PlacementRequested]:
        """Yield the requests that an earlier driver of this run did not finish, oldest first."""
        for response, fault in sorted(self._unfinished, key=lambda u: u[0].request.timestamp_ms):
            request, source = response.request, response.source
            if is_for(request, self._application, self._config()):
                yield PlacementRequested(request, fault, is_resumed=True, source=source)

    def heard(self, news: StreamNews) -> None:
        """Note that there are requests, if the stream has any."""
        if news.has_requests:
            self._is_news.set()

    async def run(self) -> None:
        """Take requests for ever, as they come."""
        while True:
            await self._is_news.wait()
            self._is_news.clear()
            while await self._queue.carry_out(self._next) is not None:
                continue

    async def _next(self) -> PlacementRequested | None:
        """Return the first request by time; None: there is none, or it cannot be taken now."""
        if not self._may_take():
            return None
        try:
            found = await self._client.at_head(partial(self._read, self._config()))
            if self._unanswerable:
                await self._client.remove(map(PlacementManager.request_deleted, self._unanswerable))
            if found is not None:
                self._taken(found.request)
            return found
        except UnavailableError as e:
            log.warning("%s", e)
            return None

    def _read(self, config: Config) -> PlacementRequested | None:
        self._unanswerable = self._requests.unanswerable()
        found = next(iter(self._requests.read_requests()), None)
        if found is None:
            return None
        request, refusal = found
        if not refusal and not is_for(request, self._application, config):
            refusal = (
                f"it is for the run {shown(request.deployment_id)} of the job; "
                f"{self._application} is running"
            )
        before = self._requests.read_responses().get(request.uuid)
        if before is not None:
            refusal = refusal or f"the uuid {request.uuid} was answered before: {before.status}"
        return PlacementRequested(request, refusal)


def messages_of_a_new_run(
    stream: CoordinatorStream, application: str, config: Config, now_ms: int
) -> Iterator[CoordinatorStreamMessage]:
    """Yield a failure of each request that an earlier run did not finish; delete other answers."""
    for uuid, response in sorted(PlacementManager(stream).read_responses().items()):
        if is_for(response.request, application, config):
            continue
        if response.status.is_final:
            yield PlacementManager.response_deleted(uuid)
        else:
            yield PlacementManager.response_message(
                PlacementResponse(
                    response.request, PlacementStatus.FAILED, "that run of the job ended", now_ms
                )
            )
