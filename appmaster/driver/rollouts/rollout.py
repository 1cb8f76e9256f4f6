"""Takes the steps of a rollout: an upgrade to a package, or a rolling restart with new values.

Each decision of the machine is recorded, then carried out. Its record is written by itself, as work
of the driver's queue; where a failure turns the rollout back, in one transaction with the failure's
own records. A restart is a placement request like an operator's. Its uuid follows from the rollout
and the incarnation, so it is written once, by this driver or the next one.
"""

import asyncio
import logging
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from homeport.appmaster.allocation.container_process_manager import Decision
from homeport.appmaster.allocation.job_state.state import AllocatorState
from homeport.appmaster.allocation.protocol.events import Event, named
from homeport.appmaster.driver.coordinator_stream_client import CoordinatorStreamClient, StreamNews
from homeport.appmaster.driver.event_queue import EventQueue
from homeport.appmaster.job_model.job_model_store import JobModelStore
from homeport.appmaster.report.step import LauncherMessage, Step
from homeport.appmaster.upgrade import machine
from homeport.appmaster.upgrade.observed import Seen
from homeport.appmaster.upgrade.sources import Evidence, failure_of, has_launcher
from homeport.config.errors import UnavailableError
from homeport.config.secret_names import without_secrets
from homeport.job_coordinator.clocks import boot_ms, wall_ms
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.history.writer import HistoryWriter
from homeport.job_coordinator.http.messages import CheckIn, Stopped
from homeport.job_coordinator.metadata.placement import PlacementManager
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.placement import (
    FORCE_RESTART_LAST_SEEN,
    PlacementRequest,
    PlacementStatus,
)
from homeport.job_coordinator.model.upgrade import UpgradeOrders, UpgradeState
from homeport.job_coordinator.status.shape import ShownRollout

_POLL_S = 0.25
"""The steps are polled, as time alone can lead to one, such as the end of a watch."""
_LAST_LINE = 300
"""Characters of a container's last line in the record."""

log = logging.getLogger("driver")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The parts of the driver that a rollout uses.

    ``queue``: gives each step its turn. ``application``: the id of this run of the job on YARN.
    ``history``: gets an event for each record. ``now``: returns the allocator's state, and whether
    all that runs is known and the job goes on. ``job_models``: those of this attempt. ``post``:
    takes events for the allocator.
    """

    client: CoordinatorStreamClient
    queue: EventQueue
    application: str
    history: HistoryWriter
    now: Callable[[], tuple[AllocatorState, bool]]
    job_models: JobModelStore
    post: Callable[[Event], None]


class Rollout(ABC):
    """Gives the containers something new, one after the other, on the driver's event loop."""

    event = ""
    """The name of its events in the history."""

    def __init__(self, driver: Surroundings) -> None:
        self._client = driver.client
        self._queue = driver.queue
        self._application = driver.application
        self._now = driver.now
        self._history = driver.history
        self._state: UpgradeState | None = None
        self._next: UpgradeState | None = None
        """What is in the transaction under way; None: no other record."""
        self._orders = UpgradeOrders()
        self._news: StreamNews | None = None
        self._evidence = Evidence()
        self._requested: tuple[str, Incarnation] | None = None
        self._refusals: dict[Incarnation, str] = {}
        self._waits = ""
        self._since_ms = boot_ms()
        """Since when the record is known as it is."""

    @abstractmethod
    def record(self, state: UpgradeState) -> CoordinatorStreamMessage:
        """Return the record that has ``state``."""

    @abstractmethod
    def hindrance(self) -> str:
        """Return why no restart may begin now; empty: one may."""

    def failed(self, incarnation: Incarnation) -> None:
        """Note that this incarnation has failed during the rollout."""

    def seen(self, seen: Seen, now: AllocatorState) -> Seen:
        """Return the machine's view: ``seen``, which has packages, changed as the rollout needs."""
        del now
        return seen

    def ran(self, incarnation: Incarnation) -> tuple[str | None] | None:
        """Return the package or values that the incarnation ran with; None: not known."""
        return self._evidence.ran(incarnation)

    @property
    def is_under_way(self) -> bool:
        """Whether it has begun and not ended."""
        return self._state is not None and not self._state.phase.is_final

    def messages(
        self,
        before: AllocatorState,
        event: Event,
        decision: Decision,
        message: LauncherMessage | None,
    ) -> Iterator[CoordinatorStreamMessage]:
        """Yield the record that a failure changes, for the transaction of the decision on it.

        ``message``: the launcher's message that the event comes from.
        """
        state = self._next or self._state
        if state is None or state.phase.is_final:
            return
        found = failure_of(before, decision, event)
        if found is None:
            return
        incarnation, story = found
        self.failed(incarnation)
        lines = message.last_lines if isinstance(message, Stopped) else ()
        last_line = without_secrets(lines[-1])[:_LAST_LINE] if lines else ""
        ran = self.ran(incarnation)
        made = machine.failed(state, incarnation.processor_id, ran, story, last_line)
        if made is not None:
            self._next = made
            yield self.record(made)

    def entered(self, step: Step) -> None:
        """Note a decision whose records are in the stream, and a launcher's message as evidence."""
        if self._next is not None:
            self._enter(self._next)
            self._next = None
        if isinstance(step.message, CheckIn):
            self._evidence.heard(step.message, step.known_ms)

    async def run(self) -> None:
        """Take the steps for ever, as they become possible."""
        while True:
            if self._news is not None and machine.is_due(self._state, self._orders):
                await self._queue.carry_out(self._step)
            await asyncio.sleep(_POLL_S)

    def shown(self) -> ShownRollout | None:
        """Return the last rollout of this run of the job, for the status; None: there was none.

        All users can read the status: the last line of a container's log is in the record alone.
        """
        state = self._state
        if state is None:
            return None
        return ShownRollout(
            id=state.id,
            package=state.package,
            previous=state.previous,
            watch_ms=state.watch_ms,
            phase=state.phase.value,
            given=state.given,
            current=state.current,
            waits="" if state.phase.is_final else self._waits,
            reason=state.reason,
        )

    async def prepared(self) -> bool:
        """Do the work that comes before a step, if any; return whether there was some."""
        return False

    async def refuse(self, why: str) -> None:
        """Refuse the order forward, for the reason ``why``."""

    async def _step(self) -> None:
        """Take one step; it leads to no event of the allocator."""
        try:
            await self._read_answer()
            if await self.prepared():
                return
            now, is_known = self._now()
            hindrance = self._hindrance(now, is_known=is_known)
            now_ms = boot_ms()
            step_ms = now_ms - self._since_ms
            seen = self._evidence.seen(now, hindrance, self._refusals, now_ms, step_ms)
            made = machine.decide(self._state, self._orders, self.seen(seen, now))
            self._waits = made.waits
            if made.refused:
                await self.refuse(made.refused)
            if made.state is not None:
                await self._client.append([self.record(made.state)])
                self._enter(made.state)
            elif made.restart is not None and self._state is not None:
                container = now.container(made.restart)
                if container is not None:
                    await self._restart(self._state, container.incarnation)
        except UnavailableError as e:
            log.warning("%s", e)

    def _hindrance(self, now: AllocatorState, *, is_known: bool) -> str:
        """Return why no restart may begin now; empty: one may."""
        if not is_known:
            return "it is not known yet what runs, or the job ends"
        if self._requested is not None and has_launcher(now, self._requested[1].processor_id):
            return f"the restart of {named(self._requested[1])} is under way"
        if self._news is None or self._news.has_requests:
            return "a command waits in the coordinator stream"
        return self.hindrance()

    async def _read_answer(self) -> None:
        """Forget a restart that has its final answer."""
        if self._requested is None:
            return
        request, incarnation = self._requested
        answer = await self._client.placement(request)
        if answer is None or not answer.status.is_final:
            return
        self._requested = None
        if answer.status is not PlacementStatus.SUCCEEDED:
            self._refusals = {incarnation: answer.message}

    async def _restart(self, state: UpgradeState, incarnation: Incarnation) -> None:
        """Write the incarnation's restart into the stream, once; not while a command waits.

        A command may have come since the last look, from an operator or the other rollout.
        """
        name = f"{state.id}/{state.phase.value}/{named(incarnation)}"
        request = PlacementRequest(
            str(uuid.uuid5(uuid.NAMESPACE_OID, name)),
            self._application,
            incarnation.processor_id,
            FORCE_RESTART_LAST_SEEN,
            None,
            wall_ms(),
        )

        def write(stream: CoordinatorStream) -> None:
            requests = PlacementManager(stream)
            waiting = {waits.uuid for waits, _ in requests.read_requests()}
            is_known = request.uuid in waiting or request.uuid in requests.read_responses()
            if not (is_known or waiting):
                stream.write([PlacementManager.request_message(request)])
            if is_known or not waiting:
                self._requested = (request.uuid, incarnation)

        await self._client.do(write)

    def _enter(self, state: UpgradeState) -> None:
        """Put a state whose record is in the stream into force."""
        self._state, self._waits, self._since_ms = state, "", boot_ms()
        log.info(
            "%s %s: %s; given: %s; current: %s%s",
            self.event,
            state.id,
            state.phase.value,
            ", ".join(state.given) or "none",
            state.current or "none",
            f"; {state.reason}" if state.reason else "",
        )
        self._history.event(
            self.event,
            upgrade=state.id,
            package=state.package,
            phase=state.phase.value,
            given=list(state.given),
            current=state.current,
            reason=state.reason,
        )
