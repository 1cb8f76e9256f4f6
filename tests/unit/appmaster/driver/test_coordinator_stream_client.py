"""The driver's side of the coordinator stream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import pytest

from homeport.appmaster.allocation.protocol.events import JobModelPublished
from homeport.appmaster.driver import coordinator_stream_client as stream_desk
from homeport.appmaster.driver.coordinator_stream_client import CoordinatorStreamClient
from homeport.appmaster.job_model.takeover import OutrankedError
from homeport.config.errors import UnavailableError, WireError
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
)
from homeport.job_coordinator.metadata.epochs import AmEpoch, EpochManager, ProcessorEpoch, Rank
from homeport.job_coordinator.metadata.placement import PlacementManager
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.placement import (
    PlacementRequest,
    PlacementResponse,
    PlacementStatus,
)

OWN = Rank(1, "application_1_0001", 1)
P0, P1 = ProcessorId("0"), ProcessorId("1")


def play(
    story: Callable[
        [CoordinatorStreamClient, InMemoryCoordinatorStream], Coroutine[Any, Any, None]
    ],
    stream: InMemoryCoordinatorStream | None = None,
) -> None:
    """The story with a desk and its stream."""

    async def playing() -> None:
        played = stream or InMemoryCoordinatorStream()
        client = CoordinatorStreamClient(played, OWN)
        try:
            async with asyncio.timeout(10):
                await story(client, played)
        finally:
            client.close()

    asyncio.run(playing())


def test_the_news_is_the_same_until_there_is_some() -> None:
    """A catch-up without a record costs no look at all the others."""

    async def story(client: CoordinatorStreamClient, stream: InMemoryCoordinatorStream) -> None:
        first = await client.read()
        assert await client.read() is first
        stream.write([wire.set_config("a.key", "1")])
        news = await client.read()
        assert news is not None
        assert dict(news.config) == {"a.key": "1"}
        assert await client.read() is news

    play(story)


def test_versions_are_those_of_permits_that_stand() -> None:
    """Of one that a model has overtaken the record names the new version; damage is ignored."""

    async def story(client: CoordinatorStreamClient, stream: InMemoryCoordinatorStream) -> None:
        epochs = EpochManager(stream)
        epochs.write_processor_epoch(P0, ProcessorEpoch(3, 2))
        epochs.write_processor_epoch(P1, ProcessorEpoch(4, 3, permitted=3))
        news = await client.read()
        assert news is not None
        assert news.versions == {P0: (3, 2)}
        stream.write([CoordinatorStreamMessage("set-processor-epoch", "0", {"epoch": "x"})])
        news = await client.read()
        assert news is not None
        assert news.versions == {}

    play(story)


def test_records_read_by_a_publication_are_still_reported() -> None:
    """A key that was written while it was under way is not lost."""

    async def story(client: CoordinatorStreamClient, stream: InMemoryCoordinatorStream) -> None:
        await client.read()

        def publish() -> JobModelPublished:
            stream.write([wire.set_config("a.key", "1")])
            stream.catch_up()
            return JobModelPublished(2, {})

        assert (await client.publish(publish)).version == 2
        news = await client.read()
        assert news is not None
        assert dict(news.config) == {"a.key": "1"}

    play(story)


def test_a_publication_is_tried_until_kafka_accepts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Meanwhile the fault is reported."""
    monkeypatch.setattr(stream_desk, "_RETRY_S", 0.01)
    faults: list[str | None] = []

    async def story(client: CoordinatorStreamClient, _: InMemoryCoordinatorStream) -> None:
        def publish() -> JobModelPublished:
            faults.append(client.fault)
            if len(faults) < 3:
                raise UnavailableError("Kafka is away")
            return JobModelPublished(2, {})

        await client.publish(publish)
        assert faults == [None, "Kafka is away", "Kafka is away"]
        assert client.fault is None

    play(story)


def test_a_higher_rank_is_seen_by_every_look() -> None:
    """Whether a reading or a publication is the first to come after it."""

    async def story(client: CoordinatorStreamClient, stream: InMemoryCoordinatorStream) -> None:
        await client.read()
        EpochManager(stream).write_am_epoch(AmEpoch(Rank(2, "application_1_0002", 1)))
        with pytest.raises(OutrankedError):
            await client.publish(lambda: JobModelPublished(2, {}))
        with pytest.raises(OutrankedError):
            await client.read()

    play(story)


ASKED = PlacementRequest("u", OWN.application, P0, "b", None, 1)
ANSWER = PlacementManager.response_message(
    PlacementResponse(ASKED, PlacementStatus.BAD_REQUEST, "no", 1)
)


class NarrowStream(InMemoryCoordinatorStream):
    """A stream that takes no record above 100 bytes."""

    def write(self, messages: Iterable[CoordinatorStreamMessage]) -> None:
        """All or nothing, as the driver's writer has it."""
        messages = list(messages)
        for message in messages:
            if len(b"".join(part or b"" for part in wire.encode(message))) > 100:
                raise WireError(f"{message.key} is too large")
        super().write(messages)


def test_an_answer_that_cannot_be_written_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    """The request goes away all the same, with whatever was decided beside it."""

    async def story(client: CoordinatorStreamClient, stream: InMemoryCoordinatorStream) -> None:
        await client.append([PlacementManager.request_deleted("u"), ANSWER])
        assert [json.loads(key)[2] for key, _ in stream.log] == [
            "u.ContainerPlacementRequestMessage"
        ]
        with pytest.raises(WireError, match=r"my\.key is too large"):
            await client.append([wire.set_config("my.key", "x" * 100), ANSWER])

    play(story, NarrowStream())
    assert "an answer to a placement request is left out" in caplog.text


def test_a_record_of_others_that_cannot_be_removed_stays(caplog: pytest.LogCaptureFixture) -> None:
    """It is tried with the next look; nothing ends by it."""

    async def story(client: CoordinatorStreamClient, stream: InMemoryCoordinatorStream) -> None:
        await client.remove([PlacementManager.request_deleted("u"), wire.tombstone("x", "y" * 100)])
        assert stream.log == []
        await client.remove([PlacementManager.request_deleted("u")])
        assert len(stream.log) == 1

    play(story, NarrowStream())
    assert "stay in the coordinator stream" in caplog.text


def test_each_key_of_the_configuration_has_its_newest_record() -> None:
    """With what set it; other records are not among them."""

    async def story(client: CoordinatorStreamClient, stream: InMemoryCoordinatorStream) -> None:
        stream.write([wire.set_config("a.key", "1"), wire.set_config("a.key", "2")])
        EpochManager(stream).write_processor_epoch(P0, ProcessorEpoch(3, 2))
        await client.read()
        (record,) = (await client.written()).values()
        assert (record.key, record.value("value"), record.username) == ("a.key", "2", "user")

    play(story)
