"""Coordination: the thread that runs one processor's machine.

Other threads put calls into one queue, and this one makes them. Each leads to a ``machine.step``,
whose records are written before its instructions are carried out. It decides nothing; it knows how
long timers take.
"""

from __future__ import annotations

import logging
import math
import queue
import time
from collections.abc import Callable
from dataclasses import dataclass

from homeport.config.declarations import all_keys as keys
from homeport.config.errors import InvariantViolation
from homeport.config.settings.standalone_section import StandaloneConfig
from homeport.container.standalone.protocols import Planner, ProcessorWork, Tree, WorkFenced
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import JobModel
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.standalone import protocol
from homeport.job_coordinator.standalone.machine import step
from homeport.job_coordinator.standalone.reasons import UNEXPECTED
from homeport.job_coordinator.standalone.state import ProcessorDecision, ProcessorState, WorkPhase
from homeport.job_coordinator.zookeeper.session import Connection

_LOG = logging.getLogger(__name__)

_CHANGE_S = 0.005
_POLLS_S = {
    WorkPhase.IDLE: 1.0,
    WorkPhase.STARTING: _CHANGE_S,
    WorkPhase.RUNNING: 0.05,
    WorkPhase.STOPPING: _CHANGE_S,
}
"""How long the thread sleeps between two looks at the child; its tasks wait for a change."""
_OF_SESSION = (
    protocol.SessionBegun,
    protocol.Reconnected,
    protocol.Disconnected,
    protocol.SessionExpired,
)


@dataclass(frozen=True, slots=True)
class Times:
    """How long the timers take, in ms; ``connection`` limits the wait for the first session."""

    debounce: int
    barrier: int
    connection: int

    @classmethod
    def of(cls, settings: StandaloneConfig) -> Times:
        """Return the times in the configuration."""
        return cls(
            settings.debounce_ms, settings.consensus_timeout_ms, settings.connection_timeout_ms
        )


class Coordination:
    """Coordinates one processor: ``run`` once, in a thread of its own; any thread calls the rest.

    ``note``: gets the state after each step. ``decided``: gets each event with its decision, before
    that is carried out. ``turned``: called at least once a second, unless the thread stands still.
    """

    def __init__(
        self,
        processor_id: ProcessorId,
        location: Host,
        tree: Tree,
        work: ProcessorWork,
        times: Times,
        note: Callable[[ProcessorState], object] = lambda _state: None,
        decided: Callable[[protocol.Event, ProcessorDecision], object] = lambda _event, _decision: (
            None
        ),
        turned: Callable[[], object] = lambda: None,
    ) -> None:
        self._items: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._state = ProcessorState(processor_id, location)
        self._tree = tree
        self._work = work
        self._planner: Planner  # from `run` on
        self._times = times
        self._note, self._decided, self._turned = note, decided, turned
        self._connection = Connection()
        self._timers: dict[protocol.ProcessorTimer, float] = {}
        self._asks: Incarnation | None = None
        self._stopped: list[protocol.WorkEnded] = []
        self._end: protocol.EndProcessor | None = None

    def run(self, planner: Planner) -> protocol.EndProcessor:
        """Run the processor to its end; afterwards its work, planner and tree are closed."""
        self._planner = planner
        begun_by = time.monotonic() + self._times.connection / 1000
        try:
            self._work.prepare()  # beside the session's begin
            self._tree.begin(self)
            while self._end is None:
                self._turned()
                self._take_next()
                self._take_reports()
                self._fire_timers()
                if self._connection.is_up:
                    begun_by = math.inf
                elif time.monotonic() > begun_by:
                    self.broken(self._unanswered())
                    begun_by = math.inf
            return self._end
        finally:
            self._work.kill()
            planner.close()
            self._tree.close()

    def _unanswered(self) -> str:
        key, limit_ms = keys.JOB_COORDINATOR_ZK_CONNECTION_TIMEOUT_MS.name, self._times.connection
        connect = keys.JOB_COORDINATOR_ZK_CONNECT.name
        fault = f" ({self._tree.last_fault})" if self._tree.last_fault else ""
        return (
            f"{self._tree.name} does not answer within {key} ({limit_ms}){fault}: start it, or "
            f"correct {connect}"
        )

    # --- calls of other threads

    def event(self, connection: Connection, event: protocol.Event) -> None:
        """Take an event that was seen in that state of the connection."""
        self._items.put(lambda: self._saw(connection, event))

    def confirmed(self, incarnation: Incarnation, *, is_newest: bool) -> None:
        """Take whether the incarnation may go on (safety I3)."""
        self._items.put(lambda: self._take_confirmed(incarnation, is_newest=is_newest))

    def broken(self, cause: str) -> None:
        """Take the one line with the reason why the processor cannot go on."""
        self._items.put(lambda: self._fail(cause))

    def planned(self, answer: protocol.Computed) -> None:
        """Take the result of a computation."""
        self._items.put(lambda: self._feed(answer))

    def inputs_changed(self) -> None:
        """Have the leader compute the next version: the inputs have more partitions."""
        self._items.put(lambda: self._feed(protocol.InputsChanged()))

    def stop(self) -> None:
        """Have the processor commit, close its stores, and leave."""
        self._items.put(lambda: self._feed(protocol.StopRequested()))

    # --- the loop

    def _take_next(self) -> None:
        if self._stopped:
            self._feed(self._stopped.pop())
            return
        limit_s = _POLLS_S[self._state.work.phase]
        due = min(self._timers.values(), default=math.inf) - time.monotonic()
        try:
            take = self._items.get(timeout=max(0.0, min(limit_s, due)))
        except queue.Empty:
            return
        take()

    def _saw(self, connection: Connection, event: protocol.Event) -> None:
        if isinstance(event, _OF_SESSION):
            name = type(event).__name__
            _LOG.info("processor %s, ZooKeeper: %s", self._state.processor_id, name)
            self._connection = connection
            self._feed(event)
            self._ask()
        elif connection is self._connection:
            self._feed(event)

    def _take_confirmed(self, incarnation: Incarnation, *, is_newest: bool) -> None:
        if incarnation != self._asks:
            return
        self._asks = None
        if is_newest:
            self._work.confirm(incarnation)
        else:
            self._work.kill()
            self._feed(protocol.WorkOvertaken(incarnation.epoch))

    def _fail(self, cause: str) -> None:
        self._work.kill()
        self._asks = None
        self._feed(protocol.Broken(cause))

    def _take_reports(self) -> None:
        for report in self._work.reports():
            if isinstance(report, WorkFenced):
                self._asks = report.incarnation
                self._ask()
            else:
                self._asks = None
                self._feed(report)

    def _ask(self) -> None:
        if self._asks is not None and self._connection.is_up:
            self._tree.confirm(self._asks)

    def _fire_timers(self) -> None:
        now = time.monotonic()
        for timer in [timer for timer, due in self._timers.items() if due <= now]:
            if self._timers.pop(timer, None) is not None:
                self._feed(protocol.ProcessorTimerFired(timer))

    # --- a step

    def _feed(self, event: protocol.Event) -> None:
        decision = step(self._state, event)
        self._state = decision.state
        for reason in decision.reasons:
            level = logging.WARNING if reason.kind in UNEXPECTED else logging.INFO
            _LOG.log(level, "processor %s: %s", self._state.processor_id, reason)
        self._decided(event, decision)
        for record in decision.records:
            self._tree.write(record)
            if isinstance(record, protocol.Register):
                self._work.prepare()
        for instruction in decision.instructions:
            self._carry_out(instruction)
        self._note(self._state)

    def _carry_out(self, instruction: protocol.Instruction) -> None:
        if isinstance(instruction, protocol.ComputeModel):
            self._planner.compute(instruction.base, self._state.plan)
        elif isinstance(instruction, protocol.StopWork):
            if not self._work.stop(instruction.kept):
                generation = self._state.work.generation
                self._stopped.append(protocol.WorkEnded(generation, StopCause.ORDERED))
        elif isinstance(instruction, protocol.StartWork):
            self._start(instruction)
        elif isinstance(instruction, protocol.FollowStandbys):
            self._follow(instruction)
        elif isinstance(instruction, protocol.RenewSession):
            self._connection = Connection()
            self._tree.renew()
        elif isinstance(instruction, protocol.StartTimer):
            if instruction.timer.kind is protocol.ProcessorTimerKind.DEBOUNCE:
                self._planner.prepare()
            self._timers[instruction.timer] = time.monotonic() + self._takes_s(instruction.timer)
        elif isinstance(instruction, protocol.StopTimer):
            self._timers.pop(instruction.timer, None)
        else:
            self._end = instruction

    def _start(self, order: protocol.StartWork) -> None:
        try:
            self._work.start(order, self._model(), self._connection.lease)
        except OSError as error:
            self._fail(f"the work cannot be started: {error}")

    def _follow(self, order: protocol.FollowStandbys) -> None:
        try:
            self._work.follow(order, self._model())
        except OSError as error:
            self._fail(f"the list of standbys cannot be handed to the work: {error}")

    def _model(self) -> JobModel:
        """Return the JobModel of the newest version, to which each order belongs."""
        if self._state.plan is None:
            raise InvariantViolation("work is ordered before the first version")
        return self._state.plan.model

    def _takes_s(self, timer: protocol.ProcessorTimer) -> float:
        takes_ms = {
            protocol.ProcessorTimerKind.DEBOUNCE: self._times.debounce,
            protocol.ProcessorTimerKind.BARRIER: self._times.barrier,
            protocol.ProcessorTimerKind.SESSION: self._tree.session_timeout_ms,
            # What is left of a predecessor goes with its session.
            protocol.ProcessorTimerKind.DUPLICATE: 2 * self._tree.session_timeout_ms,
        }
        return takes_ms[timer.kind] / 1000
