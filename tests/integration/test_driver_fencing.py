"""What the driver fences by itself, and what it hears of fences, in the world of test_driver."""

from __future__ import annotations

import asyncio

from driver_attempts import FIRST, LIMIT_S, P0, Am, Given, driven

from homeport.appmaster.allocation.protocol.instructions import JobResult
from homeport.config.errors import UnavailableError
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.http.messages import OrderKind, Stopped
from homeport.job_coordinator.metadata.epochs import FenceReport, fence_report_message
from homeport.job_coordinator.model.ids import RequestId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause


@driven(Given(retries=1))
async def test_a_container_that_lost_its_lease_is_fenced_at_once_and_stays_listed(am: Am) -> None:
    """Its transaction delays no other (safety I4); it may begin again, so successors list it.

    Its launcher is given up, and a successor requested.
    """
    await am.started()
    am.keeper.lost.add(FIRST)
    await am.until(lambda: am.fenced == [FIRST])
    await am.until(lambda: len(am.cluster.asked) == 2)
    assert RequestId(1) in am.cluster.cancelled
    am.keeper.lost.clear()
    async with asyncio.timeout(LIMIT_S):
        while (order := await am.check_in(request_id=2)).kind is not OrderKind.RUN:  # noqa: ASYNC110 - it polls
            await asyncio.sleep(0.02)
    assert order.fence == (FIRST,)
    am.stream.write([fenced_report(2, FIRST)])
    await am.until(lambda: listed(am) == [Incarnation(P0, 2)])
    await am.finished(Incarnation(P0, 2))
    end = await am.ended()
    assert end.result is JobResult.SUCCEEDED
    assert am.fenced == [FIRST]
    assert "revoked" in am.events()


@driven(Given(retries=5))
async def test_a_stopped_container_is_fenced_by_the_driver_and_listed_no_more(am: Am) -> None:
    """With Kafka away nothing is lost but time: it is fenced with the next stop (safety I1)."""
    await am.started()
    am.fence_fault = UnavailableError("Kafka is away")
    await am.backend.stopped(Stopped(FIRST, StopCause.FAILED, 1))
    await am.until(lambda: am.not_fenced == [FIRST])
    am.fence_fault = None
    await am.until_order(OrderKind.RUN)
    second = Incarnation(P0, 2)
    assert listed(am) == [FIRST, second]
    await am.backend.stopped(Stopped(second, StopCause.KILLED, -9))
    await am.until(lambda: sorted(am.fenced) == [FIRST, second])
    order = await am.until_order(OrderKind.RUN)
    assert order.incarnation == Incarnation(P0, 3)
    await am.until(lambda: listed(am) == [Incarnation(P0, 3)])
    await am.finished(Incarnation(P0, 3))
    end = await am.ended()
    assert end.result is JobResult.SUCCEEDED


def listed(am: Am) -> list[Incarnation]:
    """The incarnations that the next permit of the only processor would list."""
    container = am.driver.state.container(P0)
    assert container is not None
    return [predecessor.incarnation for predecessor in container.unfenced]


def fenced_report(epoch: int, *fenced: Incarnation) -> CoordinatorStreamMessage:
    """The record in which an incarnation lists those that it has fenced."""
    return fence_report_message(P0, FenceReport(epoch, fenced))
