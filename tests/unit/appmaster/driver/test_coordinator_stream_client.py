"""The driver's side of the coordinator stream."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import closing

import pytest
from own_records import write_permit
from stream_in_memory import InMemoryCoordinatorStream

from homeport.appmaster.allocation.protocol.events import JobModelPublished
from homeport.appmaster.driver import coordinator_stream_client as stream_desk
from homeport.appmaster.driver.coordinator_stream_client import CoordinatorStreamClient as Client
from homeport.appmaster.driver.coordinator_stream_client import StreamNews
from homeport.appmaster.job_model.takeover import OutrankedError
from homeport.config.errors import UnavailableError, WireError
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
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


class Stream(InMemoryCoordinatorStream):
    """A stream that takes no record above ``limit`` bytes."""

    limit = 1000

    def write(self, messages: Iterable[CoordinatorStreamMessage]) -> None:
        """All or nothing, as the driver's writer has it."""
        messages = list(messages)
        for message in messages:
            if len(b"".join(part or b"" for part in wire.encode(message))) > self.limit:
                raise WireError(f"{message.key} is too large")
        super().write(messages)


@pytest.fixture
def stream() -> Stream:
    """Without records."""
    return Stream()


@pytest.fixture
def client(stream: Stream) -> Iterator[Client]:
    """The driver's side of it."""
    with closing(Client(stream, OWN)) as made:
        yield made


async def news_of(client: Client) -> StreamNews:
    """What the stream says."""
    news = await client.read()
    assert news is not None
    return news


async def test_the_news_is_the_same_until_there_is_some(client: Client, stream: Stream) -> None:
    """A catch-up without a record costs no look at all the others."""
    first = await client.read()
    assert await client.read() is first
    stream.write([wire.set_config("a.key", "1")])
    news = await news_of(client)
    assert dict(news.config) == {"a.key": "1"}
    assert await client.read() is news


async def test_versions_are_those_of_permits_that_stand(client: Client, stream: Stream) -> None:
    """Of one that a model has overtaken the record names the new version; damage is ignored."""
    epochs = EpochManager(stream)
    write_permit(epochs, P0, ProcessorEpoch(3, 2))
    write_permit(epochs, P1, ProcessorEpoch(4, 3, permitted=3))
    assert (await news_of(client)).versions == {P0: (3, 2)}
    stream.write([CoordinatorStreamMessage("set-processor-epoch", "0", {"epoch": "x"})])
    assert (await news_of(client)).versions == {}


async def test_records_read_by_a_publication_are_still_reported(
    client: Client, stream: Stream
) -> None:
    """A key that was written while it was under way is not lost."""
    await client.read()

    def publish() -> JobModelPublished:
        stream.write([wire.set_config("a.key", "1")])
        stream.catch_up()
        return JobModelPublished(2, {})

    assert (await client.publish(publish)).version == 2
    assert dict((await news_of(client)).config) == {"a.key": "1"}


async def test_a_publication_is_tried_until_kafka_accepts_it(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile the fault is reported."""
    monkeypatch.setattr(stream_desk, "_RETRY_S", 0.01)
    faults: list[str | None] = []

    def publish() -> JobModelPublished:
        faults.append(client.fault)
        if len(faults) < 3:
            raise UnavailableError("Kafka is away")
        return JobModelPublished(2, {})

    await client.publish(publish)
    assert faults == [None, "Kafka is away", "Kafka is away"]
    assert client.fault is None


async def test_a_higher_rank_is_seen_by_every_look(client: Client, stream: Stream) -> None:
    """Whether a reading or a publication is the first to come after it."""
    await client.read()
    EpochManager(stream).write_am_epoch(AmEpoch(Rank(2, "application_1_0002", 1)))
    with pytest.raises(OutrankedError):
        await client.publish(lambda: JobModelPublished(2, {}))
    with pytest.raises(OutrankedError):
        await client.read()


ASKED = PlacementRequest("u", OWN.application, P0, "b", None, 1)
ANSWER = PlacementManager.response_message(
    PlacementResponse(ASKED, PlacementStatus.BAD_REQUEST, "no", 1)
)


async def test_an_answer_that_cannot_be_written_is_left_out(
    client: Client, stream: Stream, caplog: pytest.LogCaptureFixture
) -> None:
    """The request goes away all the same, with whatever was decided beside it."""
    stream.limit = 100
    await client.append([PlacementManager.request_deleted("u"), ANSWER])
    assert [json.loads(key)[2] for key, _ in stream.log] == ["u.ContainerPlacementRequestMessage"]
    with pytest.raises(WireError, match=r"my\.key is too large"):
        await client.append([wire.set_config("my.key", "x" * 100), ANSWER])
    assert "an answer to a placement request is left out" in caplog.text


async def test_a_record_of_others_that_cannot_be_removed_stays(
    client: Client, stream: Stream, caplog: pytest.LogCaptureFixture
) -> None:
    """It is tried with the next look; nothing ends by it."""
    stream.limit = 100
    await client.remove([PlacementManager.request_deleted("u"), wire.tombstone("x", "y" * 100)])
    assert stream.log == []
    await client.remove([PlacementManager.request_deleted("u")])
    assert len(stream.log) == 1
    assert "stay in the coordinator stream" in caplog.text


async def test_each_key_of_the_configuration_has_its_newest_record(
    client: Client, stream: Stream
) -> None:
    """With what set it; other records are not among them."""
    stream.write([wire.set_config("a.key", "1"), wire.set_config("a.key", "2")])
    write_permit(EpochManager(stream), P0, ProcessorEpoch(3, 2))
    await client.read()
    (record,) = (await client.written()).values()
    assert (record.key, record.value("value"), record.username) == ("a.key", "2", "user")
