"""The driver's queue of events, and the callers that wait for a decision."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from homeport.appmaster.allocation.container_process_manager import Decision
from homeport.appmaster.allocation.protocol.events import Event, LauncherCheckedIn
from homeport.appmaster.report.step import LauncherMessage
from homeport.config.errors import UnavailableError
from homeport.job_coordinator.clocks import boot_ms

_ANSWER_LIMIT_S = 2.0

Work = Callable[[], Awaitable[Event | None]]
"""Work that leads to an event, with no other decision between the two; None: it led to none."""


@dataclass(slots=True)
class Item:
    """One event in the queue, or the work that leads to one."""

    source: Event | Work
    answer: asyncio.Future[Decision | None] | None = None
    message: LauncherMessage | None = None
    known_ms: int = field(default_factory=boot_ms)
    """When it came into the queue, on CLOCK_BOOTTIME."""

    @property
    def is_work(self) -> bool:
        """Whether work has to be done before there is an event."""
        return callable(self.source)

    @property
    def is_withdrawn(self) -> bool:
        """Whether its caller waits no more, so that it need not be decided."""
        return self.answer is not None and self.answer.cancelled()

    async def event(self) -> Event | None:
        """Return the event, after its work; None where that led to none."""
        return await self.source() if callable(self.source) else self.source

    def decided(self, decision: Decision | None) -> None:
        """Give the decision to the caller."""
        if self.answer is not None and not self.answer.done():
            self.answer.set_result(decision)

    def failed(self, error: BaseException) -> None:
        """Give the error to the caller: there will be no decision."""
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(UnavailableError(f"the AM attempt ends: {error}"))


class EventQueue:
    """Events in the order in which they came, on one event loop."""

    def __init__(self) -> None:
        self._items: asyncio.Queue[Item] = asyncio.Queue()
        self._held: Item | None = None

    async def take_all(self, limit: int) -> list[Item]:
        """Return the waiting items, in order and at least one; an item of work comes alone."""
        items: list[Item] = []
        while not items:
            items.extend(i for i in [await self._next()] if not i.is_withdrawn)
        while len(items) < limit and not items[0].is_work and not self._items.empty():
            item = self._items.get_nowait()
            if item.is_work:
                self._held = item
                break
            if not item.is_withdrawn:
                items.append(item)
        return items

    async def _next(self) -> Item:
        held, self._held = self._held, None
        return held or await self._items.get()

    def post(self, event: Event) -> None:
        """Put an event into the queue, without a caller that waits."""
        self._items.put_nowait(Item(event))

    async def ask(self, event: Event, message: LauncherMessage | None = None) -> Decision:
        """Put ``event`` into the queue, and return the decision on it.

        ``message``: the launcher's message that the event comes from.

        UnavailableError: the decision takes longer than the caller may wait. The event is still
        taken, unless it is a check-in: its launcher repeats it, and check-ins without callers would
        keep the driver from the others, ever more of them.
        """
        answer = self._put(event, message)
        try:
            decision = await asyncio.wait_for(asyncio.shield(answer), _ANSWER_LIMIT_S)
        except TimeoutError:
            answer.add_done_callback(_retrieved)
            if isinstance(event, LauncherCheckedIn):
                answer.cancel()
            raise UnavailableError("the AM is busy; ask again") from None
        if decision is None:
            raise AssertionError("an event always leads to a decision")
        return decision

    async def carry_out(self, work: Work) -> Decision | None:
        """Return the decision on the event that ``work`` leads to, None where it leads to none.

        Nothing is decided between the work and its event. There is no time limit.
        """
        return await self._put(work)

    def _put(
        self, source: Event | Work, message: LauncherMessage | None = None
    ) -> asyncio.Future[Decision | None]:
        answer: asyncio.Future[Decision | None] = asyncio.get_running_loop().create_future()
        self._items.put_nowait(Item(source, answer, message))
        return answer


def _retrieved(answer: asyncio.Future[Decision | None]) -> None:
    """Keep asyncio from reporting an exception whose caller waits no more."""
    if not answer.cancelled():
        answer.exception()
