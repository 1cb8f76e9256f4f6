"""Fences incarnations that have no successor yet, and posts which were fenced.

The driver fences an incarnation that lost its lease, so that its open transaction does not delay a
restore (safety I4). It also fences one whose launcher reported the stop: permits then need not list
that one (safety I1). This runs in threads. If Kafka is away each successor fences for itself.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from confluent_kafka import KafkaException

from homeport.appmaster.allocation.protocol.events import FencedByDriver, FencesReported
from homeport.config.config import Config
from homeport.config.errors import HomeportError
from homeport.config.settings.sections import JobConfig, SystemConfig, TaskConfig
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.kafka import clients
from homeport.job_coordinator.kafka.connection import Connection
from homeport.job_coordinator.kafka.open_transactions import not_initialised
from homeport.job_coordinator.metadata.epochs import FenceReport
from homeport.job_coordinator.metadata.state_reset import permitted_incarnations, raised_epochs
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import (
    Incarnation,
    conversion_transactional_id,
    transactional_id,
)

_AT_ONCE = 4
_FENCERS = 8
_TIMEOUT_S = 10.0

log = logging.getLogger("driver")


def fence_incarnation(config: Config, incarnation: Incarnation) -> None:
    """Keep the incarnation from any further commit, and abort its open transaction.

    UnavailableError: Kafka did not do it in time.
    """
    job, task = JobConfig.of(config), TaskConfig.of(config)
    system = SystemConfig.of(config, task.checkpoint_system)
    fence(system, transactional_id(job.name, job.id, incarnation), _TIMEOUT_S)


def fence_everybody(stream: CoordinatorStream, config: Config) -> None:
    """Keep every incarnation that was ever permitted from a start, and from any further commit.

    ``config``: the one that they ran with; it has the cluster of their transactions.
    """
    incarnations = permitted_incarnations(stream)
    stream.write(raised_epochs(stream))
    stream.catch_up()
    fence_all(config, incarnations)


def fence_conversion(config: Config) -> None:
    """Keep a conversion of the state that stands still from any further commit; errors as above."""
    job, task = JobConfig.of(config), TaskConfig.of(config)
    system = SystemConfig.of(config, task.checkpoint_system)
    fence(system, conversion_transactional_id(job.name, job.id), _TIMEOUT_S)


def fence_all(config: Config, incarnations: Iterable[Incarnation]) -> None:
    """Fence the incarnations, and abort their open transactions; errors as above."""
    fence: Callable[[Incarnation], None] = partial(fence_incarnation, config)
    # Each takes the broker some time, and they do not depend on each other.
    with ThreadPoolExecutor(_FENCERS) as pool:
        list(pool.map(fence, incarnations))


class Fencing:
    """Fences in threads; used on the driver's event loop, where it posts events."""

    def __init__(
        self,
        fence: Callable[[Incarnation], None],
        post: Callable[[FencedByDriver | FencesReported], None],
    ) -> None:
        self._fence = fence
        self._post = post
        self._reports: dict[ProcessorId, int] = {}
        self._stopped: set[Incarnation] = set()
        self._tried: set[Incarnation] = set()
        self._under_way: set[asyncio.Task[None]] = set()
        self._pool = ThreadPoolExecutor(_AT_ONCE, "fencing")

    def lost(self, incarnation: Incarnation) -> None:
        """Fence one whose lease has ended. Permits still list it: it may wake up and begin."""
        self._begin(incarnation, is_stopped=False)

    def stopped(self, incarnation: Incarnation) -> None:
        """Fence one whose launcher reported the stop, and earlier ones whose fencing has failed."""
        self._stopped.add(incarnation)
        for each in sorted(self._stopped - self._tried):
            self._tried.add(each)
            self._begin(each, is_stopped=True)

    def reported(self, reports: Mapping[ProcessorId, FenceReport]) -> None:
        """Post the new ones of these reports, which are in the coordinator stream."""
        for processor_id, report in reports.items():
            if report.epoch > self._reports.get(processor_id, 0):
                self._reports[processor_id] = report.epoch
                if report.fenced:
                    by = Incarnation(processor_id, report.epoch)
                    self._post(FencesReported(by, report.fenced))

    def close(self) -> None:
        """Stop fencing."""
        for task in self._under_way:
            task.cancel()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _begin(self, incarnation: Incarnation, *, is_stopped: bool) -> None:
        task = asyncio.create_task(self._run(incarnation, is_stopped=is_stopped))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _run(self, incarnation: Incarnation, *, is_stopped: bool) -> None:
        name = f"{incarnation.processor_id}@{incarnation.epoch}"
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._pool, self._fence, incarnation)
        except HomeportError as e:
            log.warning("%s is not fenced yet, its successor will do it: %s", name, e)
            if is_stopped:
                self._tried.discard(incarnation)
            return
        log.info("%s is fenced", name)
        if is_stopped:
            self._stopped.discard(incarnation)
            self._tried.discard(incarnation)
            self._post(FencedByDriver(incarnation))


def fence(system: SystemConfig, transactional_id: str, timeout_s: float) -> None:
    """Fence the holder of the id, which can commit nothing; abort its transaction (safety I4).

    UnavailableError: Kafka did not do it in time.
    """
    connection = Connection()
    holder = clients.producer(
        system, {"transactional.id": transactional_id, "error_cb": connection.heard}
    )
    # While it is still connecting, the library tries again half a second later.
    connection.answers(holder)
    try:
        holder.init_transactions(timeout_s)
    except KafkaException as exception:
        error = clients.error_of(exception)
        # Not closed: the library would try to abort, and warn on stderr about open requests.
        raise not_initialised(system, holder, transactional_id, error) from None
    holder.close()
