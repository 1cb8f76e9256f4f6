"""What the lease client answers while the keeper takes its time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from threading import Event

from homeport.appmaster.lease.keeper_client import KeeperClient
from homeport.appmaster.lease.keeper_link import KeeperReport
from homeport.config.errors import UnavailableError
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation

FIRST, SECOND = (Incarnation(ProcessorId(name), 1) for name in "01")


class SlowKeeper:
    """Answers once ``may_answer`` is set; ``is_asked`` as soon as a question is there."""

    def __init__(self) -> None:
        self.is_asked, self.may_answer = Event(), Event()
        self.stated: list[Incarnation] = []

    def register(self, incarnation: Incarnation) -> KeeperReport:
        """No incarnation is revoked."""
        return self.revoked([incarnation])

    def revoked(self, live: Iterable[Incarnation]) -> KeeperReport:
        """None of them."""
        del live
        self._answer()
        return KeeperReport("http://keeper/", ())

    def stopped(self, incarnation: Incarnation) -> None:
        """Remembered."""
        self._answer()
        self.stated.append(incarnation)

    def _answer(self) -> None:
        self.is_asked.set()
        self.may_answer.wait()


def test_closing_cancels_no_waiting_caller() -> None:
    """A launcher whose report of a stop ends the job gets its answer: what it reported is known."""
    keeper = SlowKeeper()

    async def story() -> None:
        desk = KeeperClient(keeper)
        asked = asyncio.ensure_future(desk.revoked([FIRST]))
        await asyncio.to_thread(keeper.is_asked.wait)
        in_line = asyncio.ensure_future(desk.ended(FIRST))
        await asyncio.sleep(0)  # it stands in line
        desk.close()
        late = asyncio.ensure_future(desk.ended(SECOND))
        keeper.may_answer.set()
        assert await asked == {}
        await asyncio.gather(in_line, late)
        assert not await desk.grants(SECOND)

    asyncio.run(story())
    assert keeper.stated == []  # no request follows


def test_an_incarnation_known_to_have_stopped_is_not_requested() -> None:
    """Nor a revoked one: each is reported once, and no request repeats what is known."""
    asked: list[frozenset[Incarnation]] = []

    class Keeper(SlowKeeper):
        def revoked(self, live: Iterable[Incarnation]) -> KeeperReport:
            asked.append(frozenset(live))
            return KeeperReport("http://keeper/", tuple(sorted(asked[-1] & {SECOND})))

    async def story() -> None:
        keeper = Keeper()
        keeper.may_answer.set()
        desk = KeeperClient(keeper)
        await desk.ended(FIRST)
        assert list(await desk.revoked([FIRST, SECOND])) == [SECOND]
        assert await desk.revoked([FIRST, SECOND]) == {}
        desk.close()

    asyncio.run(story())
    assert asked == [frozenset({SECOND}), frozenset()]


def test_the_address_for_launchers_is_that_of_the_last_answer() -> None:
    """There is none before; the keeper hears of each stop; no thread is left after the closing."""
    keeper = SlowKeeper()
    keeper.may_answer.set()

    async def story() -> None:
        desk = KeeperClient(keeper)
        assert (desk.url, desk.due_ms) == (None, None)
        assert await desk.grants(FIRST)
        assert desk.url == "http://keeper/"
        await desk.ended(FIRST)
        desk.close()

    asyncio.run(story())
    assert keeper.stated == [FIRST]
    for thread in threading.enumerate():
        if thread.name.startswith("leases"):
            thread.join(timeout=10)
            assert not thread.is_alive()


def test_a_keeper_that_is_away_revokes_nothing_and_grants_nothing() -> None:
    """Only its answer is evidence (safety L1); a permit waits until it knows of it (safety L3)."""

    class AbsentKeeper(SlowKeeper):
        is_back = False

        def _answer(self) -> None:
            if not self.is_back:
                raise UnavailableError("the lease keeper does not answer")

    async def story() -> None:
        keeper = AbsentKeeper()
        desk = KeeperClient(keeper)
        assert desk.fault is None
        assert await desk.revoked([FIRST]) == {}
        assert not await desk.grants(FIRST)
        await desk.ended(FIRST)
        assert (desk.url, desk.due_ms) == (None, None)
        faults = [desk.fault]
        keeper.is_back = True
        assert await desk.grants(FIRST)
        assert [*faults, desk.fault] == ["the lease keeper does not answer", None]
        desk.close()

    asyncio.run(story())
