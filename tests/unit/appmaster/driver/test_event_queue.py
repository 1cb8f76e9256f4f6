"""The driver's queue: events one after the other, and work that leads to one."""

from __future__ import annotations

import asyncio

import pytest

from homeport.appmaster.allocation.container_process_manager import Decision, step
from homeport.appmaster.allocation.job_state.state import initial_state
from homeport.appmaster.allocation.protocol.events import (
    ContainerStarted,
    Event,
    HostsObserved,
    JobModelPublished,
    LauncherCheckedIn,
)
from homeport.appmaster.driver import event_queue
from homeport.appmaster.driver.event_queue import EventQueue
from homeport.config.errors import FencedError, UnavailableError
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation
from tests.unit.appmaster.allocation.conftest import SETTINGS

EARLY, LATE = HostsObserved((Host("a"),)), HostsObserved((Host("b"),))
MODEL = JobModelPublished(1, {})


async def decide(queue: EventQueue, count: int) -> list[Event]:
    """The next events of the queue, each decided on."""
    taken: list[Event] = []
    while len(taken) < count:
        (item,) = await queue.take_all(1)
        event = await item.event()
        if event is None:
            item.decided(None)
        else:
            taken.append(event)
            item.decided(step(initial_state(SETTINGS), event))
    return taken


@pytest.fixture
def queue() -> EventQueue:
    """Without events."""
    return EventQueue()


async def test_no_event_is_handled_between_work_and_its_own_event(queue: EventQueue) -> None:
    """What is posted while the work goes on waits until its event has been taken."""

    async def work() -> Event:
        queue.post(LATE)
        await asyncio.sleep(0)
        return MODEL

    queue.post(EARLY)
    waiting = asyncio.create_task(queue.carry_out(work))
    await asyncio.sleep(0)  # it begins
    assert await decide(queue, 3) == [EARLY, MODEL, LATE]
    assert isinstance(await waiting, Decision)


async def test_work_may_lead_to_no_event(queue: EventQueue) -> None:
    """The waiting caller gets this answer."""

    async def work() -> Event | None:
        return None

    waiting = asyncio.create_task(queue.carry_out(work))
    await asyncio.sleep(0)  # it begins
    queue.post(EARLY)
    assert await decide(queue, 1) == [EARLY]
    assert await waiting is None


async def test_events_that_are_there_are_taken_together_and_work_by_itself(
    queue: EventQueue,
) -> None:
    """In order and no more than the limit; an event behind work waits for what comes of that."""

    async def work() -> Event:
        return MODEL

    for _ in range(3):
        queue.post(EARLY)
    waiting = asyncio.create_task(queue.carry_out(work))
    await asyncio.sleep(0)  # it begins
    queue.post(LATE)
    taken = [[await i.event() for i in await queue.take_all(2)] for _ in range(4)]
    assert taken == [[EARLY, EARLY], [EARLY], [MODEL], [LATE]]
    waiting.cancel()


async def test_a_waiting_caller_learns_of_the_end(queue: EventQueue) -> None:
    """Work that fails for good ends the attempt."""

    async def work() -> Event:
        raise FencedError("a newer one is there")

    waiting = asyncio.create_task(queue.carry_out(work))
    (item,) = await queue.take_all(1)
    with pytest.raises(FencedError) as fenced:
        await item.event()
    item.failed(fenced.value)
    with pytest.raises(UnavailableError, match="a newer one"):
        await waiting


@pytest.mark.parametrize(
    ("event", "is_taken"),
    [
        (LauncherCheckedIn(ResourceId("r1"), Host("a"), None, RequestId(1)), False),
        (ContainerStarted(Incarnation(ProcessorId("0"), 1)), True),
    ],
)
async def test_a_check_in_without_a_waiting_launcher_is_left_out(
    queue: EventQueue, event: Event, *, is_taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its launcher asks again; a report is taken all the same, as it says what has happened."""
    monkeypatch.setattr(event_queue, "_ANSWER_LIMIT_S", 0.01)
    with pytest.raises(UnavailableError, match="busy"):
        await queue.ask(event)
    queue.post(LATE)
    (first,) = await queue.take_all(1)
    assert await first.event() == (event if is_taken else LATE)
