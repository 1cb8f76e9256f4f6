"""What the driver fences by itself, and what becomes of it as events."""

from __future__ import annotations

import asyncio
import threading

import pytest
from stream_in_memory import InMemoryCoordinatorStream

from homeport.appmaster.allocation.protocol.events import FencedByDriver, FencesReported
from homeport.appmaster.lease import fencing
from homeport.appmaster.lease.fencing import Fencing, fence_everybody
from homeport.config.config import Config
from homeport.config.errors import UnavailableError
from homeport.config.settings.sections import SystemConfig
from homeport.job_coordinator.metadata.epochs import (
    EpochManager,
    FenceReport,
    ProcessorEpoch,
    processor_epoch_message,
)
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation

P0, P1 = ProcessorId("0"), ProcessorId("1")
ONE, TWO = Incarnation(P0, 1), Incarnation(P0, 2)
DEADLINE_S = 5.0


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


async def settled() -> None:
    """All that was begun has ended."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.gather(*others)


@pytest.mark.parametrize(
    ("steps", "asked", "is_reported"),
    [
        ([["lost 1"]], [ONE], False),
        ([["stopped 1", "stopped 2"]], [ONE, TWO], True),
        ([["stopped 1"], ["stopped 2"]], [ONE, TWO], True),
        ([["away", "stopped 1"], ["back", "stopped 2"]], [ONE, ONE, TWO], True),
    ],
    ids=["a lost one may begin again", "two at once", "each once", "Kafka away: at the next stop"],
)
def test_what_has_stopped_is_fenced_and_reported(
    steps: list[list[str]], asked: list[Incarnation], *, is_reported: bool
) -> None:
    """Permits go on listing a lost one. With Kafka away nothing is reported, and nothing fails."""
    kafka = Kafka()

    async def story() -> None:
        fencing = Fencing(kafka.fence, kafka.posted.append)
        for step in steps:
            for what, _, epoch in (words.partition(" ") for words in step):
                if epoch:
                    getattr(fencing, what)(Incarnation(P0, int(epoch)))
                else:
                    kafka.is_away = what == "away"
            await settled()
            assert not (kafka.is_away and kafka.posted)
        fencing.close()

    asyncio.run(story())
    assert sorted(kafka.asked) == asked
    assert set(kafka.posted) == ({FencedByDriver(i) for i in asked} if is_reported else set())


def test_a_report_is_passed_on_once() -> None:
    """The stream is read again and again; an older report, or an empty one, says nothing new.

    A processor that is new takes over tasks of others: its epoch 1 reports what it fenced.
    """
    kafka = Kafka()
    fencing = Fencing(kafka.fence, kafka.posted.append)
    for reports in (
        {P0: FenceReport(2, (ONE,)), P1: FenceReport(0)},
        {P0: FenceReport(2, (ONE,)), P1: FenceReport(1, (ONE,))},
        {P0: FenceReport(1, (Incarnation(P0, 0),)), P1: FenceReport(2)},
    ):
        fencing.reported(reports)
    fencing.close()
    assert kafka.posted == [FencesReported(TWO, (ONE,)), FencesReported(Incarnation(P1, 1), (ONE,))]


def test_closing_waits_for_no_fence_and_begins_none() -> None:
    """The driver ends at once: what Kafka has not answered yet is left to the successors."""
    may_answer = threading.Event()
    are_asked = threading.Semaphore(0)

    class SlowKafka(Kafka):
        def fence(self, incarnation: Incarnation) -> None:
            super().fence(incarnation)
            are_asked.release()
            may_answer.wait()

    kafka = SlowKafka()

    async def run() -> None:
        desk = Fencing(kafka.fence, kafka.posted.append)
        for epoch in range(1, 9):
            desk.stopped(Incarnation(P0, epoch))
        for _ in range(4):
            assert await asyncio.to_thread(are_asked.acquire, timeout=DEADLINE_S)
        under_way = asyncio.all_tasks() - {asyncio.current_task()}
        desk.close()
        await asyncio.wait(under_way, timeout=DEADLINE_S)
        assert all(task.cancelled() for task in under_way)

    try:
        asyncio.run(run())
    finally:
        may_answer.set()
    for thread in threading.enumerate():
        if thread.name.startswith("fencing"):
            thread.join()
    assert len(kafka.asked) == 4
    assert kafka.posted == []


def test_epochs_are_raised_before_anything_is_fenced(monkeypatch: pytest.MonkeyPatch) -> None:
    """An incarnation that begins in between finds that it is not permitted any more."""
    stream = InMemoryCoordinatorStream()
    stream.write([processor_epoch_message(P0, ProcessorEpoch(2, 0, (ONE,)))])
    stream.catch_up()
    fenced: list[tuple[str, int]] = []

    def fence(_system: SystemConfig, transactional_id: str, _timeout_s: float) -> None:
        fenced.append((transactional_id, EpochManager(stream).read_processor_epochs()[P0].epoch))

    monkeypatch.setattr(fencing, "fence", fence)
    config = Config(
        {
            "job.name": "flights",
            "job.id": "1",
            "job.default.system": "kafka",
            "systems.kafka.producer.bootstrap.servers": "localhost:1",
            "systems.kafka.samza.factory": "org.apache.samza.system.kafka.KafkaSystemFactory",
        }
    )
    fence_everybody(stream, config)
    assert sorted(fenced) == [
        ("homeport.flights.1.processor.0.1", 3),
        ("homeport.flights.1.processor.0.2", 3),
    ]
