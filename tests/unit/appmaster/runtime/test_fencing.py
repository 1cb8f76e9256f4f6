"""What the driver fences by itself, and what becomes of it as events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from homeport.appmaster.allocation.events import FencedByDriver, FencesReported
from homeport.appmaster.runtime.fencing import FencingDesk
from homeport.config.errors import UnavailableError
from homeport.job_coordinator.metadata.epochs import FenceReport
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation

P0, P1 = ProcessorId("0"), ProcessorId("1")
ONE, TWO = Incarnation(P0, 1), Incarnation(P0, 2)


class Kafka:
    """Fences at once, or is away."""

    def __init__(self) -> None:
        self.is_away = False
        self.asked: list[Incarnation] = []
        self.posted: list[FencedByDriver | FencesReported] = []

    def fence(self, incarnation: Incarnation) -> None:
        """Remembered."""
        self.asked.append(incarnation)
        if self.is_away:
            raise UnavailableError("Kafka is away")


def on(kafka: Kafka, story: Callable[[FencingDesk], Awaitable[None]]) -> None:
    """Runs ``story`` with a desk on an event loop."""

    async def run() -> None:
        desk = FencingDesk(kafka.fence, kafka.posted.append)
        try:
            await story(desk)
        finally:
            desk.close()

    asyncio.run(run())


async def settled() -> None:
    """All that was begun has ended."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.gather(*others)


def test_who_is_lost_is_fenced_without_a_word() -> None:
    """It may begin again: permits go on listing it."""
    kafka = Kafka()

    async def story(desk: FencingDesk) -> None:
        desk.lost(ONE)
        await settled()

    on(kafka, story)
    assert kafka.asked == [ONE]
    assert kafka.posted == []


def test_who_has_stopped_is_fenced_once_and_told() -> None:
    """Two stops at once are two fences, not three."""
    kafka = Kafka()

    async def story(desk: FencingDesk) -> None:
        desk.stopped(ONE)
        desk.stopped(TWO)
        await settled()

    on(kafka, story)
    assert sorted(kafka.asked) == [ONE, TWO]
    assert set(kafka.posted) == {FencedByDriver(ONE), FencedByDriver(TWO)}


def test_with_kafka_away_it_is_tried_again_at_the_next_stop() -> None:
    """Meanwhile nothing is told, and nothing fails."""
    kafka = Kafka()

    async def story(desk: FencingDesk) -> None:
        kafka.is_away = True
        desk.stopped(ONE)
        await settled()
        assert kafka.posted == []
        kafka.is_away = False
        desk.stopped(TWO)
        await settled()

    on(kafka, story)
    assert sorted(kafka.asked) == [ONE, ONE, TWO]
    assert set(kafka.posted) == {FencedByDriver(ONE), FencedByDriver(TWO)}


def test_a_report_is_told_once() -> None:
    """The stream is read again and again; an older report, or an empty one, says nothing new."""
    kafka = Kafka()

    async def story(desk: FencingDesk) -> None:
        reports = {P0: FenceReport(2, (ONE,)), P1: FenceReport(1)}
        desk.reported(reports)
        desk.reported(reports)
        desk.reported({P0: FenceReport(1, (Incarnation(P0, 0),))})

    on(kafka, story)
    assert kafka.posted == [FencesReported(TWO, (ONE,))]
