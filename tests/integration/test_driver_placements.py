"""The driver and operators' commands: from the request in the stream to the answer there."""

from __future__ import annotations

from dataclasses import replace

from driver_attempts import FIRST, NM1, P0, Am, Given, driven
from stream_in_memory import InMemoryCoordinatorStream

from homeport.appmaster.allocation.protocol.instructions import JobResult
from homeport.config.errors import UnavailableError
from homeport.job_coordinator.http.messages import OrderKind, Started, Stopped
from homeport.job_coordinator.metadata.placement import PlacementManager
from homeport.job_coordinator.model.ids import ProcessorId, RequestId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.model.placement import (
    FORCE_RESTART_LAST_SEEN,
    LAST_SEEN,
    PlacementRequest,
    PlacementResponse,
    PlacementSource,
    PlacementStatus,
)

SECOND = Incarnation(P0, 2)
MOVE = PlacementRequest("u1", "application_1_0001", P0, LAST_SEEN, 9_000, 1)
RESTART = replace(MOVE, destination=FORCE_RESTART_LAST_SEEN)


def ask(am: Am, request: PlacementRequest) -> None:
    """As an operator's tool does."""
    am.stream.write([PlacementManager.request_message(request)])


def answer(am: Am, uuid: str = "u1") -> PlacementResponse | None:
    """The last answer."""
    return said(am).read_responses().get(uuid)


def said(am: Am) -> PlacementManager:
    """What the stream says at its head; the driver's own reading is not disturbed."""
    reader = InMemoryCoordinatorStream(log=am.stream.log)
    reader.catch_up()
    return PlacementManager(reader)


async def until(am: Am, status: PlacementStatus, uuid: str = "u1") -> PlacementResponse:
    """The answer that has come so far."""
    await am.until(lambda: (stated := answer(am, uuid)) is not None and stated.status is status)
    stated = answer(am, uuid)
    assert stated is not None
    return stated


async def _finished(am: Am, incarnation: Incarnation, request_id: int) -> None:
    await am.check_in(incarnation, request_id)
    await am.backend.started(Started(incarnation))
    await until(am, PlacementStatus.SUCCEEDED)
    await am.finished(incarnation)


@driven()
async def test_a_container_is_moved(am: Am) -> None:
    """Reserved, stopped with evidence, started there; each step is in the stream before that."""
    await am.started()
    ask(am, MOVE)
    await am.until(lambda: len(am.cluster.asked) == 2)
    stated = await until(am, PlacementStatus.IN_PROGRESS)
    assert stated.source == PlacementSource(1, NM1)
    assert am.status()["placements"][0]["step"] == "reserving"
    assert (await am.check_in(FIRST)).kind is OrderKind.WAIT
    assert (await am.check_in(request_id=2)).kind is OrderKind.WAIT
    assert (await am.until_order(OrderKind.STOP, FIRST)).incarnation == FIRST
    assert (await am.check_in(request_id=2)).kind is OrderKind.WAIT
    await am.backend.stopped(Stopped(FIRST, StopCause.ORDERED, 143))
    order = await am.until_order(OrderKind.RUN, request_id=2)
    assert order.incarnation == SECOND
    await am.until_order(OrderKind.EXIT)
    await _finished(am, SECOND, 2)
    end = await am.ended()
    assert end.result is JobResult.SUCCEEDED
    last = answer(am)
    assert last is not None
    assert last.message == "0@2 runs on nm1"


@driven()
async def test_an_impossible_request_gets_an_answer(am: Am) -> None:
    """Another run's, an unknown processor's, a damaged one; and a uuid that was answered."""
    await am.started()
    ask(am, replace(MOVE, deployment_id="application_1_0000", uuid="foreign"))
    ask(am, replace(MOVE, processor_id=ProcessorId("7"), uuid="unknown"))
    am.stream.write([PlacementManager.request_message(MOVE)._replace(key=_KEY.format("damaged"))])
    bad = PlacementStatus.BAD_REQUEST
    assert "application_1_0000" in (await until(am, bad, "foreign")).message
    assert "no processor '7'" in (await until(am, bad, "unknown")).message
    assert "'uuid' is not its key's" in (await until(am, bad, "damaged")).message
    ask(am, replace(MOVE, uuid="foreign"))
    await am.until(lambda: "answered before" in str(answer(am, "foreign")))
    assert said(am).read_requests() == ()
    await am.finished()


_KEY = "{}.ContainerPlacementRequestMessage"


@driven()
async def test_a_run_has_the_name_that_the_configuration_gives_it(am: Am) -> None:
    """``app.run.id``, as users of Samza's classes find it in the stream; the other goes on."""
    await am.started()
    named = am.job_models.model.config.merged({"app.run.id": "run-1"})
    am.job_models.enter(1, replace(am.job_models.model, config=named))
    ask(am, replace(RESTART, deployment_id="run-1"))
    await until(am, PlacementStatus.IN_PROGRESS)
    await am.backend.shutdown()
    assert (await until(am, PlacementStatus.FAILED)).message == "the job ends"
    ask(am, replace(RESTART, uuid="u2"))
    await until(am, PlacementStatus.FAILED, "u2")
    await am.stops()


@driven()
async def test_requests_wait_while_kafka_is_away(am: Am) -> None:
    """Nothing is done before its answer is written."""
    await am.started()
    ask(am, RESTART)
    am.stream.fault = UnavailableError("Kafka is away")
    await am.rounds()
    assert (await am.check_in(FIRST)).kind is OrderKind.WAIT
    assert answer(am) is None
    am.stream.fault = None
    await am.stops()
    assert (await am.until_order(OrderKind.RUN)).incarnation == SECOND
    await _finished(am, SECOND, 1)


BEGUN = PlacementResponse(RESTART, PlacementStatus.IN_PROGRESS, "", 2, PlacementSource(1, NM1))
FOREIGN = replace(BEGUN, request=replace(RESTART, uuid="u0", deployment_id="another"))
RECORDS = tuple(map(PlacementManager.response_message, (BEGUN, FOREIGN)))


@driven(Given(permitted=(FIRST,), records=RECORDS))
async def test_a_new_driver_goes_on_with_a_restart(am: Am) -> None:
    """The one before died after the answer and before the order: it stops now, and comes back."""
    am.cluster.asked.append((RequestId(1), NM1, {}))
    await am.stops()
    assert (await am.until_order(OrderKind.RUN)).incarnation == SECOND
    await _finished(am, SECOND, 1)
    await am.ended()
    assert answer(am, "u0") == FOREIGN
