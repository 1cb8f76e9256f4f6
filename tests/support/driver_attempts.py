"""A driver on an event loop: a cluster of a few lines, a coordinator stream in memory."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from check_history.reading import values_in
from job_configs import job_config
from statuses import body_of_status
from stream_in_memory import InMemoryCoordinatorStream

from homeport.appmaster.allocation.protocol.events import (
    HostReport,
    JobModelPublished,
    ShutdownRequested,
)
from homeport.appmaster.allocation.protocol.instructions import EndJob, JobResult
from homeport.appmaster.allocation.protocol.observation import SkeinContainer, SkeinContainerState
from homeport.appmaster.allocation.protocol.settings import AllocatorSettings
from homeport.appmaster.attempt.attempt_files import StartedLedger
from homeport.appmaster.attempt.inherited import Inheritance
from homeport.appmaster.cluster_resource_manager import ResourceReport
from homeport.appmaster.driver import (
    cluster_watch,
    coordinator_stream_client,
    resource_manager_client,
)
from homeport.appmaster.driver import driver as driver_module
from homeport.appmaster.driver.driver import Driver
from homeport.appmaster.driver.driver_settings import DriverSettings
from homeport.appmaster.driver.http_backend import DriverBackend
from homeport.appmaster.job_model import publication
from homeport.appmaster.job_model.job_model_store import JobModelStore
from homeport.appmaster.job_model.live_configuration import LiveConfiguration
from homeport.appmaster.job_model.live_job_coordinator import LiveJobCoordinator
from homeport.appmaster.job_model.model_change import ModelChange, ModelPlanner
from homeport.appmaster.lease.keeper_client import KeeperLink, KeeperReport
from homeport.appmaster.report.job_status import JobIdentity
from homeport.appmaster.yarn.submission_file import Submitted
from homeport.config.errors import UnavailableError
from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.previous_assignment import NOTHING
from homeport.job_coordinator.history.writer import HistoryWriter
from homeport.job_coordinator.http.messages import CheckIn, Order, OrderKind, Started, Stopped
from homeport.job_coordinator.metadata.epochs import Rank
from homeport.job_coordinator.metadata.recorded_model import ModelRecords
from homeport.job_coordinator.metadata.topics import InputTopicManager
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import SystemStream
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.planning.input_watch import InputsSeen
from homeport.job_coordinator.status.container_report import ContainerReport
from homeport.job_coordinator.status.shape import SpareReport

CONFIG = job_config("b:1", {"job.name": "j", "task.class": "m:C"})
IN = SystemStream("kafka", "in")
COUNTS = {IN: 2}
P0, NM1 = ProcessorId("0"), Host("nm1")
FIRST = Incarnation(P0, 1)
LIMIT_S = 15.0
_PAUSES = {
    cluster_watch: ("_POLL_S", "_HOSTS_POLL_S"),
    coordinator_stream_client: ("_RETRY_S",),
    driver_module: ("_POLL_S", "_RETRY_S"),
    resource_manager_client: ("_POLL_S",),
}
"""Pauses between two looks, which a driver need not make before partners of a few lines."""
_PAUSE_S = 0.05
ISOLATION_MS = 3_600_000


class Cluster:
    """One host, or those of ``names``, which grant each request at once."""

    def __init__(self) -> None:
        self.names: tuple[Host, ...] = (NM1,)
        self.fault: UnavailableError | None = None
        self.asked: list[tuple[RequestId, Host | None, Mapping[str, str]]] = []
        self.cancelled: set[RequestId] = set()
        self.finished: tuple[JobResult, str] | None = None
        self.polls = 0

    def hosts(self) -> tuple[HostReport, ...]:
        """All of them live, unless there is a fault."""
        if self.fault is not None:
            raise self.fault
        return tuple(HostReport(name, "/rack", 8192, 8, 8192, 8) for name in self.names)

    def request(
        self, request_id: RequestId, host: Host | None, environment: Mapping[str, str]
    ) -> None:
        """Granted."""
        self.asked.append((request_id, host, environment))

    def cancel(self, request_id: RequestId) -> None:
        """Its container ends."""
        self.cancelled.add(request_id)

    @property
    def next_request_id(self) -> int:
        """There was no request before."""
        return 1

    def resources(self) -> tuple[ResourceReport, ...]:
        """What was granted and not cancelled runs."""
        self.polls += 1
        if self.fault is not None:
            raise self.fault
        return tuple(
            ResourceReport(SkeinContainer(f"h-0_{r}", r, SkeinContainerState.RUNNING))
            for r, _, _ in self.asked
            if r not in self.cancelled and self.finished is None
        )

    def request_of(self, skein_id: str) -> RequestId | None:
        """The number at the end."""
        number = RequestId(int(skein_id.rpartition("_")[2]))
        return number if number in {r for r, _, _ in self.asked} else None

    def add_page(self, url: str) -> None:
        """There is no page."""

    def finish(self, result: JobResult, diagnostics: str) -> None:
        """The application has ended."""
        self.finished = (result, diagnostics)


class Stream(InMemoryCoordinatorStream):
    """A coordinator stream that can be away, or taken over."""

    def __init__(self) -> None:
        super().__init__()
        self.fault: Exception | None = None
        self.readings = 0

    def catch_up(self) -> tuple[CoordinatorStreamMessage, ...]:
        """Counted."""
        self.readings += 1
        return super().catch_up()

    def write(self, messages: Iterable[CoordinatorStreamMessage]) -> None:
        """Written, unless there is a fault."""
        if self.fault is not None:
            raise self.fault
        super().write(messages)


class InMemoryKeeper(KeeperLink):
    """A keeper that lives in this process, or is away."""

    def __init__(self) -> None:
        super().__init__(Path(), "")
        self.registered: set[Incarnation] = set()
        self.lost: set[Incarnation] = set()
        self.renewed_ms: dict[Incarnation, int] = {}
        self.is_away = False

    def register(self, incarnation: Incarnation) -> KeeperReport:
        """Remembered."""
        if self.is_away:
            raise UnavailableError("the keeper is away")
        self.registered.add(incarnation)
        return KeeperReport("http://keeper/", dict.fromkeys(self.lost & {incarnation}))

    def revoked(self, live: Iterable[Incarnation]) -> KeeperReport:
        """Those that the test says."""
        if self.is_away:
            raise UnavailableError("the keeper is away")
        lost = sorted(self.lost & set(live))
        return KeeperReport("http://keeper/", {i: self.renewed_ms.get(i) for i in lost})

    def stopped(self, incarnation: Incarnation) -> None:
        """Remembered."""
        self.lost.add(incarnation)


@dataclass(frozen=True)
class Given:
    """What a driver finds. ``records``: what the coordinator stream has when it begins."""

    permitted: tuple[Incarnation, ...] = ()
    retries: int = 0
    inherited: tuple[Incarnation, ...] = ()
    ending: ShutdownRequested | None = None
    records: tuple[CoordinatorStreamMessage, ...] = ()
    stream: type[Stream] = Stream


NOTHING_GIVEN = Given()


class Am:
    """A driver with its backend, and the launchers that check in there."""

    running: asyncio.Task[EndJob]

    def __init__(self, history: Path, given: Given = NOTHING_GIVEN) -> None:
        self.cluster, self.keeper, self.stream = Cluster(), InMemoryKeeper(), given.stream()
        permitted, inherited = given.permitted, given.inherited
        self.history_folder = history
        self.fenced, self.not_fenced = list[Incarnation](), list[Incarnation]()
        self.fence_fault: UnavailableError | None = None
        writer = HistoryWriter(history, "driver", "nm1", 64)
        found = Inheritance(boot_ms(), dict.fromkeys(inherited, ISOLATION_MS))
        self.job_models = JobModelStore(history.parent)
        model = calculate_job_model(CONFIG, COUNTS, NOTHING)
        self.stream.write(given.records)
        self._records = ModelRecords(self.stream)
        publication.publish(model, self.stream, lambda host: host, records=self._records)
        self.job_models.enter(1, model)
        planner = ModelPlanner(self.stream, self.job_models, lambda _: COUNTS, lambda *_: None)
        settings = DriverSettings(50, 10_000, 50, {"KEY": "value"}, ISOLATION_MS, permitted, found)
        self.driver = Driver(
            settings=replace(settings, ending=given.ending),
            allocator=AllocatorSettings(
                host_affinity_enabled=True,
                retry_count=given.retries,
                retry_window_ms=60_000,
                fail_job_after_retries=True,
                request_timeout_ms=10_000,
                check_in_timeout_ms=10_000,
            ),
            identity=JobIdentity("j", "1", Rank(1, "application_1_0001", 1), 1, ""),
            published=JobModelPublished(
                1, {P0: NM1}, {i.processor_id: i.epoch for i in (*permitted, *inherited)}
            ),
            resources=self.cluster,
            stream=self.stream,
            history=writer,
            keeper=self.keeper,
            fence=self.fence,
            live=LiveJobCoordinator(
                configuration=LiveConfiguration(Submitted(CONFIG, CONFIG)),
                job_models=self.job_models,
                planner=planner,
                look=lambda _: InputsSeen(COUNTS, {IN: "id"}),
                history=writer,
                topics=InputTopicManager(self.stream, 1),
                look_for_topics=lambda _: (),
            ),
            publish=self.publish,
            started=StartedLedger(history.parent),
        )
        self.backend = DriverBackend(self.driver, 1, self.cluster)

    def publish(self, change: ModelChange) -> JobModelPublished:
        """As the AM does."""
        return publication.publish(
            *(change.model, self.stream, Host),
            restart_all=change.restarts_all,
            in_force=self.job_models.model,
            records=self._records,
            also=change.messages,
        )

    def fence(self, incarnation: Incarnation) -> None:
        """Fenced; called in a thread."""
        if self.fence_fault is not None:
            self.not_fenced.append(incarnation)
            raise self.fence_fault
        self.fenced.append(incarnation)

    async def check_in(
        self,
        running: Incarnation | None = None,
        request_id: int = 1,
        attempt: int = 1,
        report: ContainerReport | None = None,
        host: Host = NM1,
        spare: SpareReport | None = None,
    ) -> Order:
        """The answer to the launcher of that request."""
        resource_id = ResourceId(f"container_1_0001_01_00000{request_id + 1}")
        order = await self.backend.check_in(
            CheckIn(resource_id, f"h-0_{request_id}", attempt, host, 42, running, report, spare)
        )
        if order.kind is OrderKind.EXIT and attempt == 1:
            self.cluster.cancel(RequestId(request_id))
        return order

    async def until(self, condition: Callable[[], bool]) -> None:
        """Returns when ``condition`` holds."""
        async with asyncio.timeout(LIMIT_S):
            while not condition():  # noqa: ASYNC110 - nothing here could set an event
                await asyncio.sleep(0.01)

    async def rounds(self) -> None:
        """The cluster has been polled, and the stream read, three times more: all news is in."""
        polls, readings = self.cluster.polls + 3, self.stream.readings + 3
        await self.until(lambda: self.cluster.polls >= polls and self.stream.readings >= readings)

    def containers(self) -> set[ProcessorId]:
        """The processors of the JobModel that the backend serves."""
        model = self.backend.job_model(None)
        return set() if model is None else set(model.containers)

    async def until_order(
        self,
        kind: OrderKind,
        running: Incarnation | None = None,
        request_id: int = 1,
        report: ContainerReport | None = None,
        host: Host = NM1,
    ) -> Order:
        """Checks in until the answer is of that kind."""
        async with asyncio.timeout(LIMIT_S):
            while True:
                order = await self.check_in(running, request_id, report=report, host=host)
                if order.kind is kind:
                    return order
                await asyncio.sleep(0.02)

    async def permitted(self) -> Order:
        """The order to run for the launcher of the first request."""
        await self.until(lambda: bool(self.cluster.asked))
        return await self.until_order(OrderKind.RUN)

    async def started(self) -> None:
        """The first incarnation of the only processor runs."""
        await self.permitted()
        await self.check_in(FIRST)
        await self.backend.started(Started(FIRST))

    async def stops(
        self,
        incarnation: Incarnation = FIRST,
        request_id: int = 1,
        report: ContainerReport | None = None,
        host: Host = NM1,
    ) -> None:
        """Its launcher gets the order to stop it, and reports that it has stopped."""
        order = await self.until_order(OrderKind.STOP, incarnation, request_id, report, host)
        assert order.incarnation == incarnation
        await self.backend.stopped(Stopped(incarnation, StopCause.ORDERED, 143))

    async def finished(self, incarnation: Incarnation = FIRST) -> None:
        """Its launcher reports that its work is done."""
        await self.backend.stopped(Stopped(incarnation, StopCause.FINISHED, 0))

    async def ended(self) -> EndJob:
        """What the job has ended with, once each launcher has its order to exit."""
        for request_id in [r for r, _, _ in self.cluster.asked]:
            if request_id not in self.cluster.cancelled and not self.running.done():
                await self.until_order(OrderKind.EXIT, request_id=request_id)
        return await self.running

    def status(self) -> Any:  # noqa: ANN401 - JSON
        """The body of ``/v1/status``."""
        return body_of_status(self.backend.status())

    def history(self) -> list[dict[str, Any]]:
        """The driver's history."""
        return [line for path in self.history_folder.glob("*.jsonl") for line in values_in(path)]

    def events(self) -> list[str]:
        """Names of the driver's history, decisions left out."""
        return [line["event"] for line in self.history() if line["event"] != "decision"]


def drive(
    history: Path, story: Callable[[Am], Awaitable[None]], given: Given = NOTHING_GIVEN
) -> None:
    """Run a driver and, beside it, ``story``, which must lead to the job's end."""

    async def both() -> None:
        am = Am(history, given)
        am.running = asyncio.create_task(am.driver.run("http://am/"))
        async with asyncio.timeout(3 * LIMIT_S):
            await asyncio.gather(am.running, told(am))

    async def told(am: Am) -> None:
        await story(am)
        await am.ended()

    with pytest.MonkeyPatch.context() as patch:
        for module, pauses in _PAUSES.items():
            for pause in pauses:
                patch.setattr(module, pause, _PAUSE_S)
        asyncio.run(both())


def driven(
    given: Given = NOTHING_GIVEN, fails: type[Exception] | None = None
) -> Callable[[Callable[[Am], Awaitable[None]]], Callable[[Path], None]]:
    """Make a test of a story beside a driver, which ends the job, or fails by that error."""

    def run(history: Path, story: Callable[[Am], Awaitable[None]]) -> None:
        with pytest.raises(fails) if fails else contextlib.nullcontext():
            drive(history, story, given)

    return lambda story: told_as_test(story, lambda history: run(history, story))


def told_as_test(
    story: Callable[..., Awaitable[None]], run: Callable[[Path], None]
) -> Callable[[Path], None]:
    """Return a test that runs, with the name of the story."""

    def test(tmp_path: Path) -> None:
        run(tmp_path)

    signature = inspect.signature(test)
    functools.update_wrapper(test, story)
    test.__signature__ = signature  # type: ignore[attr-defined]  # pytest asks for what is there
    return test
