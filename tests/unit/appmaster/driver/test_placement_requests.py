"""Operators' commands on the driver's side: what the stream says, and what is made of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace

from stream_in_memory import InMemoryCoordinatorStream

from homeport.appmaster.allocation.container_process_manager import Decision
from homeport.appmaster.allocation.job_state.state import initial_state
from homeport.appmaster.allocation.protocol.events import PlacementRequested
from homeport.appmaster.driver.coordinator_stream_client import CoordinatorStreamClient
from homeport.appmaster.driver.event_queue import EventQueue
from homeport.appmaster.driver.placement_requests import (
    PlacementRequests,
    is_for,
    messages_of_a_new_run,
)
from homeport.config.config import Config
from homeport.job_coordinator.metadata.epochs import Rank
from homeport.job_coordinator.metadata.placement import PlacementManager
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.placement import (
    PlacementRequest,
    PlacementResponse,
    PlacementSource,
    PlacementStatus,
)
from tests.unit.appmaster.allocation.conftest import SETTINGS

DECIDED = Decision(initial_state(SETTINGS), (), ())
APP = "application_1_0001"
CONFIG = Config({})
ASKED = PlacementRequest("u1", APP, ProcessorId("0"), "nm2", None, 5)
SOURCE = PlacementSource(1, Host("nm1"))


def stated(request: PlacementRequest, status: PlacementStatus, text: str = "") -> PlacementResponse:
    """An answer of an earlier driver."""
    return PlacementResponse(request, status, text, 7, None if status.is_final else SOURCE)


def stream_of(*responses: PlacementResponse) -> InMemoryCoordinatorStream:
    """A stream with these answers, read to its head."""
    stream = InMemoryCoordinatorStream()
    stream.write(map(PlacementManager.response_message, responses))
    stream.catch_up()
    return stream


def desk_of(stream: InMemoryCoordinatorStream, queue: EventQueue) -> PlacementRequests:
    """A desk of this run."""
    client = CoordinatorStreamClient(stream, Rank(1, APP, 1))
    taken = list[PlacementRequest]()
    return PlacementRequests(stream, client, queue, APP, lambda: CONFIG, lambda: True, taken.append)


@asynccontextmanager
async def followed(stream: InMemoryCoordinatorStream) -> AsyncIterator[EventQueue]:
    """The queue of a desk that follows the stream, in which there are requests."""
    desk = desk_of(stream, queue := EventQueue())
    with closing(desk._client):
        news = await desk._client.read()
        assert news is not None
        assert news.has_requests
        desk.heard(news)
        following = asyncio.create_task(desk.run())
        yield queue
        following.cancel()


def unfinished(*responses: PlacementResponse) -> list[PlacementRequested]:
    """What a desk reports again where the stream has these answers."""
    desk = desk_of(stream_of(*responses), EventQueue())
    with closing(desk._client):
        return list(desk.unfinished())


def test_a_request_names_its_run() -> None:
    """The application, or what app.run.id says; an unset key names none."""
    assert is_for(ASKED, APP, CONFIG)
    assert is_for(replace(ASKED, deployment_id="r"), APP, Config({"app.run.id": "r"}))
    assert not is_for(replace(ASKED, deployment_id=""), APP, CONFIG)
    assert not is_for(ASKED, "application_1_0002", CONFIG)


def test_a_new_run_ends_the_actions_of_the_last_one() -> None:
    """What was under way has FAILED; what was ended is deleted; answers of this run stay."""
    old = replace(ASKED, deployment_id="application_1_0000")
    begun, done = replace(old, uuid="u2"), replace(old, uuid="u3")
    stream = stream_of(
        stated(ASKED, PlacementStatus.SUCCEEDED),
        stated(begun, PlacementStatus.IN_PROGRESS),
        stated(done, PlacementStatus.SUCCEEDED),
    )
    stream.write(messages_of_a_new_run(stream, APP, CONFIG, 9))
    stream.catch_up()
    found = PlacementManager(stream).read_responses()
    assert {uuid: response.status for uuid, response in found.items()} == {
        "u1": PlacementStatus.SUCCEEDED,
        "u2": PlacementStatus.FAILED,
    }
    assert found["u2"].timestamp_ms == 9


def test_an_action_that_an_earlier_driver_began_is_reported_again() -> None:
    """The oldest first; not what has ended, nor what was for another run."""
    late = replace(ASKED, uuid="u2", timestamp_ms=6)
    foreign, done = replace(ASKED, uuid="u3", deployment_id="x"), replace(ASKED, uuid="u4")
    assert unfinished(
        stated(late, PlacementStatus.IN_PROGRESS),
        stated(ASKED, PlacementStatus.IN_PROGRESS),
        stated(foreign, PlacementStatus.IN_PROGRESS),
        stated(done, PlacementStatus.FAILED),
    ) == [PlacementRequested(request, is_resumed=True, source=SOURCE) for request in (ASKED, late)]


async def test_requests_are_taken_one_by_one_with_their_faults() -> None:
    """By their time; each is gone before the next one is looked for."""
    stream = stream_of(stated(replace(ASKED, uuid="u2"), PlacementStatus.SUCCEEDED))
    again, foreign = replace(ASKED, uuid="u2"), replace(ASKED, uuid="u3", deployment_id="x")
    asked = [replace(foreign, timestamp_ms=9), replace(again, timestamp_ms=8), ASKED]
    stream.write(map(PlacementManager.request_message, asked))
    taken: list[PlacementRequested] = []
    async with followed(stream) as queue:
        (item,) = await queue.take_all(1)
        while isinstance(event := await item.event(), PlacementRequested):
            taken.append(event)
            stream.write([PlacementManager.request_deleted(event.request.uuid)])
            item.decided(DECIDED)
            (item,) = await queue.take_all(1)
    assert [event.request.uuid for event in taken] == ["u1", "u2", "u3"]
    assert [bool(event.refusal) for event in taken] == [False, True, True]


async def test_a_request_that_cannot_be_answered_is_taken_away() -> None:
    """Its key is too long for an answer; the request after it is taken."""
    stream = stream_of()
    long = replace(ASKED, uuid="x" * 300)
    stream.write(map(PlacementManager.request_message, (long, ASKED)))
    async with followed(stream) as queue:
        (item,) = await queue.take_all(1)
        assert await item.event() == PlacementRequested(ASKED)
    stream.catch_up()
    assert PlacementManager(stream).unanswerable() == ()


def test_an_action_beyond_all_bounds_is_reported_again_with_its_fault() -> None:
    """An older driver took it up: this one can only end it."""
    beyond = replace(ASKED, expiry_ms=10**400)
    (found,) = unfinished(stated(beyond, PlacementStatus.IN_PROGRESS))
    assert found.is_resumed
    assert found.refusal.startswith("the expiry must be from 1 to 86400000 ms")
