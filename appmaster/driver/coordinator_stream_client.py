"""The driver's client of the coordinator stream: reads and writes, off the event loop."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from homeport.appmaster.allocation.protocol.events import JobModelPublished
from homeport.appmaster.job_model.takeover import OutrankedError
from homeport.config.config import Config
from homeport.config.errors import UnavailableError, WireError
from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.coordinator_stream.coordinator_stream import (
    CoordinatorStream,
    KeyRecord,
)
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.metadata.configuration import AuditedManager, ConfigManager
from homeport.job_coordinator.metadata.epochs import EpochManager, FenceReport, Rank
from homeport.job_coordinator.metadata.job_packages import JobPackageManager
from homeport.job_coordinator.metadata.lifecycle import StopManager
from homeport.job_coordinator.metadata.placement import PlacementManager
from homeport.job_coordinator.metadata.task_assignment import LocalityManager
from homeport.job_coordinator.metadata.upgrade import RollingRestartManager, UpgradeManager
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.placement import PlacementResponse
from homeport.job_coordinator.model.upgrade import UpgradeOrders

_T = TypeVar("_T")
_RETRY_S = 1.0

log = logging.getLogger("driver")


@dataclass(frozen=True, slots=True)
class StreamNews:
    """The content of the stream; the same object as long as nothing new is read or written.

    ``stopped``: {incarnation: cause}. ``fenced``: what the last incarnation of each processor that
    reported has fenced. ``versions``: {processor: its epoch, and the version of the JobModel that
    the permit names}, without processors that a model has overtaken. ``has_requests``: whether
    placement requests wait to be taken. ``written``: the newest record of each key of the
    configuration. ``upgrade``: the orders of upgrades of this run of the job. ``at_once``: the
    digest of the value with which all containers restart together; None: there is none.
    """

    config: Config
    localities: Mapping[ProcessorId, Host]
    stopped: Mapping[Incarnation, str]
    fenced: Mapping[ProcessorId, FenceReport]
    versions: Mapping[ProcessorId, tuple[int, int]]
    has_requests: bool = False
    written: Mapping[str, CoordinatorStreamMessage] = field(default_factory=dict)
    upgrade: UpgradeOrders = field(default_factory=UpgradeOrders)
    at_once: str | None = None


class CoordinatorStreamClient:
    """One thread makes all calls: a call holds the stream's lock while it waits for Kafka.

    ``stream``: read to its head, and written by no other attempt.
    """

    def __init__(self, stream: CoordinatorStream, rank: Rank) -> None:
        self._stream = stream
        self._rank = rank
        self._pool = ThreadPoolExecutor(1, "kafka")
        self._news: StreamNews | None = None
        self._read_ms: int | None = None
        self._read_fault: str | None = None
        self._write_fault: str | None = None

    @property
    def fault(self) -> str | None:
        """Why the stream was not read or written the last time; None where it was."""
        return self._write_fault or self._read_fault

    @property
    def damaged_count(self) -> int:
        """How many records of the stream were skipped because their bytes are damaged."""
        return self._stream.damaged_count

    @property
    def age_ms(self) -> int | None:
        """How long ago the stream was last read to its head; None where it never was."""
        return None if self._read_ms is None else boot_ms() - self._read_ms

    async def append(self, messages: list[CoordinatorStreamMessage]) -> None:
        """Write all messages or none; try until they are in the stream.

        A request of an operator's tool can go on without its answer: an answer that cannot be
        written is left out and logged.

        WireError: a record of the job's own cannot be written.
        """
        if not messages:
            return
        try:
            await self._until_done(lambda: self._write(messages), "records cannot be written")
        except WireError as e:
            others = [m for m in messages if not PlacementManager.is_answer(m)]
            if len(others) == len(messages):
                raise
            log.error("an answer to a placement request is left out: %s", e)  # noqa: TRY400 - one line is enough
            await self.append(others)

    async def _until_done(self, act: Callable[[], Awaitable[_T]], fault: str) -> _T:
        """Call ``act`` until Kafka has answered, and return its result; log ``fault`` meanwhile."""
        while True:
            try:
                done = await act()
            except UnavailableError as e:
                log.warning("%s, trying again: %s", fault, e)
                self._write_fault = str(e)
                await asyncio.sleep(_RETRY_S)
            else:
                self._write_fault = None
                return done

    async def taken_keys(self) -> tuple[KeyRecord, ...]:
        """Return the records of keys and upgrades that were read since the last call, in order."""
        return await self._in_thread(self._stream.taken_keys)

    async def audited(self, offset: int) -> bool:
        """Record up to which offset the audit trail is complete; return whether it is written."""
        message = AuditedManager.message(offset)
        return await self._try([message], "the next driver will audit again what this one has")

    async def remove(self, tombstones: Iterable[CoordinatorStreamMessage]) -> None:
        """Remove records of others, if Kafka takes the tombstones now; else leave them."""
        await self._try(list(tombstones), "records without a use stay in the coordinator stream")

    async def report_stops(self, stopped: Mapping[Incarnation, str]) -> None:
        """Write these stops, if Kafka takes them now: the next rank need not wait for them."""
        messages = [StopManager.message(i, cause) for i, cause in stopped.items()]
        await self._try(messages, "the next attempt will wait for what has stopped")

    async def _try(self, messages: list[CoordinatorStreamMessage], otherwise: str) -> bool:
        try:
            await self._write(messages)
        except (UnavailableError, WireError) as e:
            log.warning("%s: %s", otherwise, e)
            return False
        return True

    async def publish(self, publish: Callable[[], JobModelPublished]) -> JobModelPublished:
        """Call ``publish`` until what it writes is in the stream: nothing can go on without.

        Each call first reads what became of the last one, and writes only what lacks.
        """
        fault = "the JobModel cannot be published"
        return await self._until_done(lambda: self.at_head(publish), fault)

    async def read(self) -> StreamNews | None:
        """Return what the stream has; None where Kafka does not answer.

        OutrankedError: a higher rank has taken over (safety A2).
        """
        try:
            news = await self._in_thread(self._read)
        except UnavailableError as e:
            log.warning("%s", e)
            self._read_fault = str(e)
            return None
        self._read_ms, self._read_fault = boot_ms(), None
        return news

    async def at_head(self, call: Callable[[], _T]) -> _T:
        """Call ``call`` with the stream read to its head, and return its result; it may write.

        UnavailableError: Kafka did not answer.
        OutrankedError: a higher rank has taken over (safety A2).
        """

        def read() -> _T:
            self._catch_up()
            try:
                return call()
            finally:
                self._news = None  # it may have read what it has written

        return await self._in_thread(read)

    async def written(self) -> Mapping[str, CoordinatorStreamMessage]:
        """Return {key of the configuration: its newest record}, as of the last reading."""
        return await self._in_thread(lambda: self._stream.latest(MessageType.SET_CONFIG))

    async def package(self, name: str) -> bytes | None:
        """Return the package with that sha256, as of the last reading; None where it is not there.

        An order to have it follows from a record that is behind it in the stream.
        """
        return await self._in_thread(lambda: JobPackageManager(self._stream).read(name))

    async def change(
        self, make: Callable[[CoordinatorStream], list[CoordinatorStreamMessage]]
    ) -> None:
        """Write what ``make`` makes of the stream, read to its head; raise what it raises.

        UnavailableError: Kafka did not answer.
        WireError: a message cannot be written; nothing was.
        """
        await self.do(lambda stream: stream.write(make(stream)))

    async def do(self, call: Callable[[CoordinatorStream], object]) -> None:
        """Call ``call`` with the stream, read to its head; errors as for ``change``."""
        await self.at_head(partial(call, self._stream))

    async def placement(self, uuid: str) -> PlacementResponse | None:
        """Return the last answer to that request, as of the last reading."""
        placements = PlacementManager(self._stream)
        return (await self._in_thread(placements.read_responses)).get(uuid)

    def close(self) -> None:
        """Stop making requests."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _write(self, messages: list[CoordinatorStreamMessage]) -> None:
        await self._in_thread(partial(self._stream.write, messages))

    async def _in_thread(self, call: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)

    def _read(self) -> StreamNews:
        self._catch_up()
        if self._news is None:
            requests = PlacementManager(self._stream)
            self._news = StreamNews(
                ConfigManager(self._stream).deployed(),
                LocalityManager(self._stream).read_processors(),
                StopManager(self._stream).read(),
                EpochManager(self._stream).read_fenced(),
                self._versions(),
                bool(requests.read_requests() or requests.unanswerable()),
                self._stream.latest(MessageType.SET_CONFIG),
                UpgradeManager(self._stream).orders(self._rank.application),
                RollingRestartManager(self._stream).at_once(),
            )
        return self._news

    def _versions(self) -> dict[ProcessorId, tuple[int, int]]:
        """Return versions without overtaken processors, whose record names the new one."""
        try:
            epochs = EpochManager(self._stream).read_processor_epochs()
        except WireError as e:
            # A permit or a publication must stop at it; the status need not.
            log.warning("coordinator stream: %s", e)
            return {}
        return {p: (r.epoch, r.model_version) for p, r in epochs.items() if not r.is_raised}

    def _catch_up(self) -> None:
        """Read what is new; the last news are old then."""
        if self._stream.catch_up():
            self._news = None
        last = EpochManager(self._stream).read_am_epoch()
        if last is not None and last.rank.is_above(self._rank):
            raise OutrankedError(last.rank, self._rank)
