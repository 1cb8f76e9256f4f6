"""The driver on an event loop: a cluster of a few lines, a coordinator stream in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from homeport.appmaster.allocation.events import JobModelPublished, ShutdownRequested
from homeport.appmaster.allocation.instructions import EndJob, JobResult
from homeport.appmaster.allocation.observation import SkeinContainer, SkeinContainerState
from homeport.appmaster.allocation.settings import AllocatorSettings
from homeport.appmaster.cluster_resource_manager import ResourceReport
from homeport.appmaster.runtime.attempt_files import StartedLedger
from homeport.appmaster.runtime.backend import DriverBackend
from homeport.appmaster.runtime.clocks import boot_ms
from homeport.appmaster.runtime.driver import Driver
from homeport.appmaster.runtime.driver_settings import DriverSettings
from homeport.appmaster.runtime.hold_back import Inheritance
from homeport.appmaster.runtime.job_status import JobIdentity
from homeport.appmaster.runtime.keeper_link import KeeperReport
from homeport.appmaster.runtime.takeover import OutrankedError
from homeport.config.config import Config
from homeport.config.errors import FencedError, UnavailableError, WireError
from homeport.job_coordinator.history.writer import HistoryWriter
from homeport.job_coordinator.http.messages import (
    CheckIn,
    Order,
    OrderKind,
    Started,
    StopCause,
    Stopped,
)
from homeport.job_coordinator.metadata.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.metadata.coordinator_stream_message import CoordinatorStreamMessage
from homeport.job_coordinator.metadata.epochs import AmEpoch, EpochManager, Rank
from homeport.job_coordinator.metadata.lifecycle import (
    JobEnd,
    JobEndManager,
    RetryManager,
    StopManager,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import ContainerModel, JobModel

P0, NM1 = ProcessorId("0"), Host("nm1")
FIRST = Incarnation(P0, 1)
LIMIT_S = 15.0
ISOLATION_MS = 3_600_000


class Cluster:
    """One host, which grants what it is asked for at once."""

    def __init__(self) -> None:
        self.asked: list[tuple[RequestId, Host | None, Mapping[str, str]]] = []
        self.cancelled: set[RequestId] = set()
        self.refusals = 0
        self.finished: tuple[JobResult, str] | None = None

    def hosts(self) -> frozenset[Host]:
        """nm1 lives."""
        return frozenset({NM1})

    def request(
        self, request_id: RequestId, host: Host | None, environment: Mapping[str, str]
    ) -> None:
        """Granted, unless it is told to refuse."""
        if self.refusals:
            self.refusals -= 1
            raise UnavailableError("the cluster refuses")
        self.asked.append((request_id, host, environment))

    def cancel(self, request_id: RequestId) -> None:
        """Its container ends."""
        self.cancelled.add(request_id)

    @property
    def next_request_id(self) -> int:
        """Nobody has asked before."""
        return 1

    def resources(self) -> tuple[ResourceReport, ...]:
        """What was granted and not cancelled runs."""
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

    def write(self, messages: Iterable[CoordinatorStreamMessage]) -> None:
        """Written, unless there is a fault."""
        if self.fault is not None:
            raise self.fault
        super().write(messages)


class InMemoryKeeper:
    """A keeper that lives in this process, or is away."""

    def __init__(self) -> None:
        self.registered: set[Incarnation] = set()
        self.lost: set[Incarnation] = set()
        self.is_away = False

    def register(self, incarnation: Incarnation) -> KeeperReport:
        """Remembered."""
        if self.is_away:
            raise UnavailableError("the keeper is away")
        self.registered.add(incarnation)
        return KeeperReport("http://keeper/", tuple(self.lost & {incarnation}))

    def revoked(self, live: Iterable[Incarnation]) -> KeeperReport:
        """Those that the test says."""
        if self.is_away:
            raise UnavailableError("the keeper is away")
        return KeeperReport("http://keeper/", tuple(sorted(self.lost & set(live))))

    def stopped(self, incarnation: Incarnation) -> None:
        """Remembered."""
        self.lost.add(incarnation)


class Am:
    """A driver with its backend; ``launcher`` speaks for the launcher of a request."""

    def __init__(
        self,
        history: Path,
        permitted: tuple[Incarnation, ...] = (),
        retries: int = 0,
        inherited: tuple[Incarnation, ...] = (),
        ending: ShutdownRequested | None = None,
    ) -> None:
        self.cluster = Cluster()
        self.keeper = InMemoryKeeper()
        self.stream = Stream()
        self.history_folder = history
        self.fenced: list[Incarnation] = []
        self.not_fenced: list[Incarnation] = []
        self.fence_fault: UnavailableError | None = None
        writer = HistoryWriter(history, "driver", "nm1")
        found = Inheritance(boot_ms(), inherited)
        settings = DriverSettings(50, 10_000, 50, {"KEY": "value"}, permitted, found, ISOLATION_MS)
        settings = replace(settings, ending=ending)
        self.driver = Driver(
            settings=settings,
            allocator=AllocatorSettings(
                host_affinity_enabled=True,
                retry_count=retries,
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
        )
        self.backend = DriverBackend(
            driver=self.driver,
            settings=settings,
            attempt=1,
            model=JobModel(Config({}), {P0: ContainerModel(P0, {})}),
            version=1,
            resources=self.cluster,
            history=writer,
            started=StartedLedger(history.parent),
        )

    def fence(self, incarnation: Incarnation) -> None:
        """Fenced; called in a thread."""
        if self.fence_fault is not None:
            self.not_fenced.append(incarnation)
            raise self.fence_fault
        self.fenced.append(incarnation)

    async def check_in(
        self, running: Incarnation | None = None, request_id: int = 1, attempt: int = 1
    ) -> Order:
        """The answer to the launcher of that request."""
        resource_id = ResourceId(f"container_1_0001_01_00000{request_id + 1}")
        order = await self.backend.check_in(
            CheckIn(resource_id, f"h-0_{request_id}", attempt, NM1, 42, running)
        )
        if order.kind is OrderKind.EXIT and attempt == 1:
            self.cluster.cancel(RequestId(request_id))
        return order

    async def until(self, condition: Callable[[], bool]) -> None:
        """Returns when ``condition`` holds."""
        async with asyncio.timeout(LIMIT_S):
            while not condition():  # noqa: ASYNC110 - nothing here could set an event
                await asyncio.sleep(0.01)

    async def until_order(self, kind: OrderKind, running: Incarnation | None = None) -> Order:
        """Checks in until the answer is of that kind."""
        async with asyncio.timeout(LIMIT_S):
            while (order := await self.check_in(running)).kind is not kind:  # noqa: ASYNC110 - a launcher polls
                await asyncio.sleep(0.02)
        return order

    async def started(self) -> None:
        """The first incarnation of the only processor runs."""
        await self.until(lambda: bool(self.cluster.asked))
        await self.until_order(OrderKind.RUN)
        await self.check_in(FIRST)
        await self.backend.started(Started(FIRST))

    def events(self) -> list[str]:
        """Names of the driver's history, decisions left out."""
        lines = [
            json.loads(line)
            for path in self.history_folder.glob("*.jsonl")
            for line in path.read_text().splitlines()
        ]
        return [line["event"] for line in lines if line["event"] != "decision"]


def drive(
    history: Path,
    story: Callable[[Am], Awaitable[None]],
    permitted: tuple[Incarnation, ...] = (),
    retries: int = 0,
    inherited: tuple[Incarnation, ...] = (),
    ending: ShutdownRequested | None = None,
) -> tuple[Am, EndJob]:
    """Runs a driver and, beside it, ``story``, which must lead to the job's end."""

    async def both() -> tuple[Am, EndJob]:
        am = Am(history, permitted, retries, inherited, ending)
        async with asyncio.timeout(3 * LIMIT_S):
            end, _ = await asyncio.gather(am.driver.run("http://am/"), told(am))
        return am, end

    async def told(am: Am) -> None:
        await story(am)
        if am.cluster.asked:
            await am.until_order(OrderKind.EXIT)

    return asyncio.run(both())


def test_a_life_in_order(tmp_path: Path) -> None:
    """Asked for at home, permitted after its record is written, stopped with evidence, ended."""

    async def story(am: Am) -> None:
        await am.until(lambda: bool(am.cluster.asked))
        _, host, environment = am.cluster.asked[0]
        assert host == NM1
        assert environment == {
            "KEY": "value",
            "SAMZA_COORDINATOR_URL": "http://am/",
            "HOMEPORT_REQUEST_ID": "1",
        }
        order = await am.until_order(OrderKind.RUN)
        am.stream.catch_up()
        assert EpochManager(am.stream).read_processor_epochs()[P0].epoch == 1
        assert (order.incarnation, order.model_version) == (FIRST, 1)
        assert (await am.check_in()).kind is OrderKind.RUN
        assert (await am.check_in(FIRST)).kind is OrderKind.WAIT
        await am.backend.started(Started(FIRST))
        assert am.backend.status()["job"]["state"] == "running"
        assert am.backend.is_running(ResourceId("container_1_0001_01_000002"))
        await am.backend.shutdown()
        stop = await am.until_order(OrderKind.STOP, FIRST)
        assert stop.incarnation == FIRST
        await am.backend.stopped(Stopped(FIRST, StopCause.ORDERED, 143))

    am, end = drive(tmp_path, story)
    assert end.result is JobResult.KILLED
    assert am.cluster.finished == (JobResult.KILLED, "shut down on request")
    assert am.events() == ["hold-back-over", "permit-granted", "started", "stop-ordered"]
    am.stream.catch_up()
    assert StopManager(am.stream).read() == {FIRST: "stopped"}
    assert JobEndManager(am.stream).read(1) == JobEnd(1, "KILLED", "shut down on request")


def test_launchers_go_on_while_records_cannot_be_written(tmp_path: Path) -> None:
    """No permit before its record; meanwhile ``wait``, so that nobody gives the AM up."""

    async def story(am: Am) -> None:
        await am.until(lambda: bool(am.cluster.asked))
        am.stream.fault = UnavailableError("Kafka is away")
        assert (await am.check_in()).kind is OrderKind.WAIT
        assert am.backend.status()["coordinator_stream"] == "Kafka is away"
        am.stream.fault = None
        await am.until_order(OrderKind.RUN)
        await am.backend.stopped(Stopped(FIRST, StopCause.FINISHED, 0))

    am, end = drive(tmp_path, story)
    assert end.result is JobResult.SUCCEEDED
    assert am.cluster.finished is not None


def test_a_request_that_is_refused_is_a_launch_that_failed(tmp_path: Path) -> None:
    """It counts for the retry keys, and the status tells why."""

    async def story(am: Am) -> None:
        am.cluster.refusals = 1
        await am.until(lambda: am.driver.is_ending)

    am, end = drive(tmp_path, story)
    assert end.result is JobResult.FAILED
    assert "the cluster refuses" in str(am.backend.status()["failures"])


def test_a_failed_job_ends_with_its_story(tmp_path: Path) -> None:
    """YARN is told processor, cause and the last lines of its log."""

    async def story(am: Am) -> None:
        await am.started()
        await am.backend.stopped(Stopped(FIRST, StopCause.FAILED, 1, ("Traceback", "KeyError: 7")))

    am, end = drive(tmp_path, story)
    assert end.result is JobResult.FAILED
    am.stream.catch_up()
    assert RetryManager(am.stream).read()[P0].count == 1
    assert am.cluster.finished is not None
    diagnostics = am.cluster.finished[1]
    assert "processor 0 epoch 1 on nm1: failed, exit code 1\nTraceback\nKeyError: 7" in diagnostics


def test_launchers_of_others_are_sent_away(tmp_path: Path) -> None:
    """Another attempt's, and one that nobody asked for; an unknown processor is refused."""

    async def story(am: Am) -> None:
        await am.started()
        assert (await am.check_in(attempt=2)).kind is OrderKind.EXIT
        assert (await am.check_in(request_id=7)).kind is OrderKind.EXIT
        with pytest.raises(WireError):
            await am.backend.started(Started(Incarnation(ProcessorId("9"), 1)))
        await am.backend.stopped(Stopped(FIRST, StopCause.FINISHED, 0))

    drive(tmp_path, story)


def test_an_attempt_that_is_fenced_ends(tmp_path: Path) -> None:
    """A newer attempt has taken over: this one gives no permit and ends with the reason."""

    async def story(am: Am) -> None:
        await am.until(lambda: bool(am.cluster.asked))
        am.stream.fault = FencedError("taken over")
        assert (await am.check_in()).kind is OrderKind.WAIT

    with pytest.raises(FencedError):
        drive(tmp_path, story)


def test_no_launcher_is_told_to_run_before_the_keeper_knows(tmp_path: Path) -> None:
    """The record is written, the keeper is away: ``wait``; then ``run``, with the keeper's URL."""

    async def story(am: Am) -> None:
        await am.until(lambda: bool(am.cluster.asked))
        am.keeper.is_away = True
        assert (await am.check_in()).kind is OrderKind.WAIT
        am.stream.catch_up()
        assert EpochManager(am.stream).read_processor_epochs()[P0].epoch == 1
        am.keeper.is_away = False
        order = await am.until_order(OrderKind.RUN)
        assert order.lease_url == "http://keeper/"
        assert am.keeper.registered == {FIRST}
        await am.backend.stopped(Stopped(FIRST, StopCause.FINISHED, 0))

    drive(tmp_path, story)


def test_only_the_keepers_word_ends_a_silent_container(tmp_path: Path) -> None:
    """Its lease has run out: the launcher is given up and a request for a successor made."""

    async def story(am: Am) -> None:
        await am.started()
        am.keeper.lost.add(FIRST)
        await am.until(lambda: len(am.cluster.asked) == 2)
        am.driver.post(ShutdownRequested())

    am, _ = drive(tmp_path, story, retries=1)
    assert RequestId(1) in am.cluster.cancelled
    assert "revoked" in am.events()


def test_a_new_driver_adopts_what_runs_and_waits_for_the_rest(tmp_path: Path) -> None:
    """Nothing is asked for before the incarnation is found running; then nothing is needed."""

    async def story(am: Am) -> None:
        am.cluster.asked.append((RequestId(1), NM1, {}))
        assert (await am.check_in()).kind is OrderKind.WAIT
        await am.until(lambda: am.driver.leases.url is not None)
        assert (await am.check_in(FIRST)).kind is OrderKind.WAIT
        assert am.driver.adoption.is_complete
        assert am.backend.status()["job"]["state"] == "running"
        await asyncio.sleep(1)  # time enough for what must not happen
        assert len(am.cluster.asked) == 1
        await am.backend.stopped(Stopped(FIRST, StopCause.FINISHED, 0))

    _, end = drive(tmp_path, story, permitted=(FIRST,))
    assert end.result is JobResult.SUCCEEDED


def test_a_new_attempt_places_nothing_before_a_witness_speaks(tmp_path: Path) -> None:
    """What a lower rank permitted may run; a record of another epoch says nothing of it."""
    second = Incarnation(P0, 2)

    async def story(am: Am) -> None:
        StopManager(am.stream).write(FIRST, "signalled")
        await asyncio.sleep(1)  # time enough for what must not happen
        assert am.cluster.asked == []
        assert am.backend.status()["job"]["held_back"] is None
        StopManager(am.stream).write(second, "signalled")
        order = await until_permitted(am)
        assert order.incarnation == Incarnation(P0, 3)
        assert am.backend.status()["job"]["held_back"]["unheard"] == []
        await am.backend.stopped(Stopped(Incarnation(P0, 3), StopCause.FINISHED, 0))

    am, _ = drive(tmp_path, story, inherited=(second,))
    assert am.events()[:2] == ["accounted-for", "hold-back-over"]


def test_a_launcher_of_another_attempt_is_sent_away_and_its_word_counts(tmp_path: Path) -> None:
    """It is told ``exit``, child or not; that the child has stopped need not be waited for then."""

    async def story(am: Am) -> None:
        assert (await am.check_in(FIRST, attempt=2)).kind is OrderKind.EXIT
        assert (await am.check_in(attempt=2)).kind is OrderKind.EXIT
        assert am.cluster.asked == []
        await am.backend.stopped(Stopped(FIRST, StopCause.ORDERED, 143))
        await until_permitted(am)
        await am.backend.stopped(Stopped(Incarnation(P0, 2), StopCause.FINISHED, 0))

    drive(tmp_path, story, inherited=(FIRST,))


def test_a_higher_rank_ends_a_driver_that_writes_nothing(tmp_path: Path) -> None:
    """It sees the rank in the stream, which it reads all the time (safety A2)."""

    async def story(am: Am) -> None:
        await am.started()
        higher = Rank(1, "application_1_0001", 2)
        EpochManager(am.stream).write_am_epoch(AmEpoch(higher))

    with pytest.raises(OutrankedError):
        drive(tmp_path, story)


def test_an_end_under_way_goes_on_when_it_is_known_what_runs(tmp_path: Path) -> None:
    """Nothing is stopped, and nothing ends, before what was permitted is found."""

    async def story(am: Am) -> None:
        am.cluster.asked.append((RequestId(1), NM1, {}))
        await asyncio.sleep(1)  # time enough for what must not happen
        assert not am.driver.is_ending
        assert (await am.until_order(OrderKind.STOP, FIRST)).incarnation == FIRST
        await am.backend.stopped(Stopped(FIRST, StopCause.ORDERED, 143))

    ending = ShutdownRequested("FAILED", "what an earlier driver said")
    _, end = drive(tmp_path, story, permitted=(FIRST,), ending=ending)
    assert end == EndJob(JobResult.FAILED, "what an earlier driver said")


async def until_permitted(am: Am) -> Order:
    """The order to run for the launcher of the first request."""
    await am.until(lambda: bool(am.cluster.asked))
    return await am.until_order(OrderKind.RUN)
