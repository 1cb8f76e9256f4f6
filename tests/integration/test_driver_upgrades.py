"""An upgrade at the driver: its records, the orders that follow from them, and its way back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from driver_attempts import NM1, P0, Am, Given, Stream, drive, told_as_test

from homeport.appmaster.allocation.protocol.events import ShutdownRequested
from homeport.appmaster.driver.rollouts.rollout import Rollout
from homeport.appmaster.upgrade.machine import HANG_MS
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.http.messages import CheckIn, OrderKind, Started, Stopped
from homeport.job_coordinator.metadata.placement import PlacementManager, decode_request
from homeport.job_coordinator.metadata.upgrade import UpgradeManager
from homeport.job_coordinator.model.ids import ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.model.placement import (
    FORCE_RESTART_LAST_SEEN,
    PlacementRequest,
    PlacementResponse,
    PlacementStatus,
)
from homeport.job_coordinator.model.upgrade import (
    UpgradeDirection,
    UpgradeOrder,
    UpgradeOrders,
    UpgradePhase,
    UpgradeState,
)
from homeport.job_coordinator.status.container_report import ContainerReport

APPLICATION = "application_1_0001"
NEW = "ab" * 32
R1 = ResourceId("container_1_0001_01_000002")
ORDER = UpgradeOrder("u", APPLICATION, NEW, 50, by="ann")


@dataclass
class Launcher:
    """The only launcher.

    ``bad``: the packages whose containers fail once they have started; ``hanging``: those whose
    containers do nothing; ``absent``: those that it cannot have.
    """

    am: Am
    bad: set[str | None] = field(default_factory=set)
    running: Incarnation | None = None
    package: str | None = None
    prepared: str | None = None
    ran: list[str | None] = field(default_factory=list)
    hanging: set[str | None] = field(default_factory=set)
    absent: set[str | None] = field(default_factory=set)
    life: asyncio.Task[None] = field(init=False)

    async def go_on(self) -> None:
        """Until it gets the order to exit."""
        await self.am.until(lambda: bool(self.am.cluster.asked))
        while True:
            report = ContainerReport(input_lag=0)
            running, package = self.running, self.package if self.running else None
            unprepared = "no space left" if self.absent else None
            quiet_ms = HANG_MS if package in self.hanging else 0
            about = (running, report, None, package, self.prepared, unprepared, quiet_ms)
            order = await self.am.backend.check_in(CheckIn(R1, "h-0_1", 1, NM1, 42, *about))
            if order.kind is OrderKind.EXIT:
                return
            await self._follow(order.kind, order.incarnation, order.package)
            # The interval of a launcher that checks in often.
            await asyncio.sleep(0.02)

    async def _follow(
        self, kind: OrderKind, incarnation: Incarnation | None, package: str | None
    ) -> None:
        if kind is OrderKind.RUN and incarnation is not None and package in self.absent:
            cause = StopCause.NO_PACKAGE
            await self.am.backend.stopped(Stopped(incarnation, cause, 1, ("no space left",)))
        elif kind is OrderKind.RUN and incarnation is not None:
            self.running, self.package = incarnation, package
            self.ran.append(package)
            await self.am.backend.started(Started(incarnation))
            if package in self.bad:
                await self._stopped(StopCause.FAILED, ("ValueError: a bug, password=hunter2",))
        elif kind is OrderKind.STOP:
            await self._stopped(StopCause.ORDERED)
        elif kind is OrderKind.WAIT and self.running is not None and package not in self.absent:
            self.prepared = package

    async def ended(self) -> None:
        """The job has ended, on request."""
        if not self.life.done():
            self.am.driver.end_job(ShutdownRequested())
            await self.life
        await self.am.ended()

    async def fail(self) -> None:
        """The container ends by a fault of the old code."""
        await self._stopped(StopCause.FAILED)

    async def _stopped(self, cause: StopCause, last_lines: tuple[str, ...] = ()) -> None:
        assert self.running is not None
        stopped, self.running = self.running, None
        await self.am.backend.stopped(Stopped(stopped, cause, 1, last_lines))


def upgrade_of(am: Am) -> Any:  # noqa: ANN401 - JSON
    """What the status says of it."""
    return am.status()["upgrade"]


def in_phase(am: Am, phase: UpgradePhase) -> Callable[[], bool]:
    """Whether the upgrade is in that phase."""
    return lambda: bool(upgrade_of(am)) and upgrade_of(am)["phase"] == phase.value


Story = Callable[[Am, Launcher], Awaitable[None]]


def upgraded(
    bad: str | None = "", state: UpgradeState | None = None, stream: type[Stream] = Stream
) -> Callable[[Story], Callable[[Path], None]]:
    """Make a test of a job whose launcher fails with the package ``bad``.

    ``state``: recorded before.
    """
    records = () if state is None else (UpgradeManager.state_message(state),)

    def made(story: Story) -> Callable[[Path], None]:
        async def both(am: Am) -> None:
            launcher = Launcher(am, {bad})
            launcher.life = asyncio.create_task(launcher.go_on())
            await am.until(lambda: launcher.running is not None)
            await story(am, launcher)
            await launcher.ended()

        given = Given(retries=2, records=records, stream=stream)
        return told_as_test(story, lambda folder: drive(folder, both, given))

    return made


def recorded(am: Am) -> UpgradeState:
    """What the stream says of it."""
    am.stream.catch_up()
    found = UpgradeManager(am.stream).state(APPLICATION)
    assert found is not None
    return found


@upgraded()
async def test_a_processor_gets_the_new_package_and_is_watched(am: Am, launcher: Launcher) -> None:
    """The record, the package made ready, one restart, the watch, the end."""
    am.stream.write([UpgradeManager.order_message(ORDER)])
    await am.until(in_phase(am, UpgradePhase.DONE))
    assert launcher.ran == [None, NEW]
    (container,) = am.status()["containers"]
    assert container["package"] == NEW
    await launcher.ended()
    assert (recorded(am).phase, recorded(am).given) == (UpgradePhase.DONE, (P0,))
    events = [e for e in am.history() if e["event"] == "upgrade"]
    assert [(e["phase"], e["current"]) for e in events] == [
        ("forward", None),
        ("forward", "0"),
        ("forward", None),
        ("done", None),
    ]


@upgraded(bad=NEW)
async def test_a_failure_of_the_new_package_takes_it_back(am: Am, launcher: Launcher) -> None:
    """The next permit has the one from before; one failure is charged."""
    am.stream.write([UpgradeManager.order_message(ORDER)])
    await am.until(in_phase(am, UpgradePhase.GONE_BACK))
    assert launcher.ran == [None, NEW, None]
    assert am.status()["containers"][0]["failures"] == 1
    await launcher.ended()
    assert recorded(am).story.endswith("failed, exit code 1: ValueError: a bug, password=********")


@upgraded()
async def test_new_code_that_hangs_takes_it_back(am: Am, launcher: Launcher) -> None:
    """Its report is as it was when it last worked; the launcher adds its age."""
    launcher.hanging = {NEW}
    am.stream.write([UpgradeManager.order_message(ORDER)])
    await am.until(in_phase(am, UpgradePhase.GONE_BACK))
    assert launcher.ran == [None, NEW, None]
    await launcher.ended()
    assert recorded(am).reason.startswith("processor 0 has committed nothing, and not found its")


@upgraded()
async def test_another_order_is_refused_and_the_order_back_is_of_what_is_under_way(
    am: Am, launcher: Launcher
) -> None:
    """Its command finds why; the first upgrade goes on until it is taken back."""
    slow = replace(ORDER, watch_ms=600_000)
    other = replace(ORDER, id="other", package="cd" * 32)
    am.stream.write([UpgradeManager.order_message(slow)])
    await am.until(lambda: "is watched" in (upgrade_of(am) or {}).get("waits", ""))
    am.stream.write([UpgradeManager.order_message(other)])
    await am.until(lambda: orders_of(am).refused == "other")
    assert "another upgrade is under way" in orders_of(am).why
    assert upgrade_of(am)["phase"] == "forward"
    back = replace(slow, direction=UpgradeDirection.BACK)
    am.stream.write([UpgradeManager.order_message(back)])
    await am.until(in_phase(am, UpgradePhase.GONE_BACK))
    assert (upgrade_of(am)["id"], launcher.ran) == ("u", [None, NEW, None])
    await launcher.ended()
    audited = [e["what"] for e in am.history() if e["event"] == "audit"]
    ordered = [what for what in audited if what.startswith("upgrade")]
    assert ordered == ["upgrade", "upgrade", "upgrade --undo"]


@upgraded()
async def test_each_of_two_orders_between_two_looks_of_the_driver_is_in_the_trail(
    am: Am, launcher: Launcher
) -> None:
    """The driver takes the later one; the command of the other says so."""
    other = replace(ORDER, id="other", package="cd" * 32, by="bob")
    am.stream.write([UpgradeManager.order_message(order) for order in (ORDER, other)])
    await am.until(in_phase(am, UpgradePhase.DONE))
    assert launcher.ran == [None, other.package]
    await launcher.ended()
    lines = [e for e in am.history() if e["event"] == "audit"]
    ordered = [(e["author"], e["after"]) for e in lines if e["what"] == "upgrade"]
    assert ordered == [("ann", NEW), ("bob", other.package)]


def orders_of(am: Am) -> UpgradeOrders:
    """Return the orders in the stream, as the driver has read them."""
    return UpgradeManager(am.stream).orders(APPLICATION)


@upgraded()
async def test_a_container_whose_launcher_cannot_have_the_package_is_not_left_down(
    am: Am, launcher: Launcher
) -> None:
    """It fails while it works, and no disk has room: back to the package from before."""
    launcher.absent = {NEW}
    am.stream.write([UpgradeManager.order_message(ORDER)])
    await am.until(lambda: "no space left" in (upgrade_of(am) or {}).get("waits", ""))
    await launcher.fail()
    await am.until(in_phase(am, UpgradePhase.BACK))
    await launcher.ended()
    assert recorded(am).reason.endswith("no-package, exit code 1")


@upgraded()
async def test_an_order_back_takes_it_back_after_its_end_too(am: Am, launcher: Launcher) -> None:
    """By a restart in order."""
    am.stream.write([UpgradeManager.order_message(ORDER)])
    await am.until(in_phase(am, UpgradePhase.DONE))
    back = replace(ORDER, direction=UpgradeDirection.BACK)
    am.stream.write([UpgradeManager.order_message(back)])
    await am.until(in_phase(am, UpgradePhase.GONE_BACK))
    assert launcher.ran == [None, NEW, None]
    await launcher.ended()
    assert recorded(am).reason == "taken back by ann"


GIVEN = UpgradeState("u", APPLICATION, NEW, None, 50, given=(P0,), current=P0)


@upgraded(state=GIVEN)
async def test_the_next_driver_goes_on_from_the_record(am: Am, launcher: Launcher) -> None:
    """What was given is wanted with the next permit, and watched."""
    await am.until(in_phase(am, UpgradePhase.DONE))
    assert launcher.ran == [NEW]


@upgraded()
async def test_no_restart_is_requested_beside_a_command_that_waits(
    am: Am, launcher: Launcher
) -> None:
    """It comes between the driver's look at the stream and its own request: it has its turn."""
    original = Rollout._restart

    async def beside(rollout: Rollout, state: UpgradeState, incarnation: Incarnation) -> None:
        if incarnation.epoch == 1 and not commanded:
            command = PlacementRequest("c", APPLICATION, P0, FORCE_RESTART_LAST_SEEN, None, 1)
            rollout._client._stream.write([PlacementManager.request_message(command)])
            commanded.append(command)
        await original(rollout, state, incarnation)

    commanded = list[PlacementRequest]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Rollout, "_restart", beside)
        am.stream.write([UpgradeManager.order_message(ORDER)])
        await am.until(in_phase(am, UpgradePhase.DONE))
    assert commanded
    assert launcher.ran == [None, NEW]


class RefusingStream(Stream):
    """A stream in which each placement request is refused at once."""

    def write(self, messages: Iterable[CoordinatorStreamMessage]) -> None:
        """Written; then the refusals."""
        for message in messages:
            super().write([message])
            if message.key.endswith("RequestMessage") and message.raw is not None:
                request = decode_request(message.raw)
                refused = PlacementResponse(request, PlacementStatus.BAD_REQUEST, "not now", 1)
                deleted = PlacementManager.request_deleted(request.uuid)
                super().write([deleted, PlacementManager.response_message(refused)])


@upgraded(stream=RefusingStream)
async def test_a_restart_that_was_refused_is_told(am: Am, launcher: Launcher) -> None:
    """It is requested once, and its answer stands."""
    am.stream.write([UpgradeManager.order_message(ORDER)])
    await am.until(lambda: "was refused: not now" in (upgrade_of(am) or {}).get("waits", ""))
    assert launcher.ran == [None]
