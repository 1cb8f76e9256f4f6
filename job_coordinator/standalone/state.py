"""The state of one processor's machine, as a value, and the working copy of one step.

PURE. Rules for editing: ``ProcessorDraft`` alone starts and stops timers; no field is a time.
"""

from dataclasses import dataclass, replace
from enum import Enum

from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.standalone.plan import Member, Plan, Registration, Standby, present
from homeport.job_coordinator.standalone.protocol import (
    BarrierPhase,
    BarrierSeen,
    EndCause,
    Instruction,
    ProcessorTimer,
    ProcessorTimerKind,
    Record,
    StartTimer,
    StopTimer,
)
from homeport.job_coordinator.standalone.reasons import ProcessorReason, ProcessorReasonKind


class Life(Enum):
    """The phases of a processor."""

    OUT = "out"
    REGISTERING = "registering"
    MEMBER = "member"
    LEAVING = "leaving"
    ENDED = "ended"


class WorkPhase(Enum):
    """The phases of the work; ``IDLE``: no incarnation lives."""

    IDLE = "idle"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class HeldWork:
    """The present or last incarnation.

    ``generation``: the highest one that was ever started here; only a higher one starts.
    ``held``: its tasks. ``standbys``: its replicas.
    """

    phase: WorkPhase = WorkPhase.IDLE
    generation: int = 0
    held: tuple[TaskName, ...] = ()
    standbys: tuple[Standby, ...] = ()

    @property
    def is_live(self) -> bool:
        """Whether an incarnation lives that has no order to stop."""
        return self.phase in {WorkPhase.STARTING, WorkPhase.RUNNING}

    @property
    def here(self) -> tuple[TaskName, ...]:
        """The names of its tasks and of its standbys."""
        return (*self.held, *(standby.name for standby in self.standbys))


@dataclass(frozen=True, slots=True)
class ProcessorState:
    """The state between two events.

    ``is_given_up``: the session is over, or given up; a new registration follows.
    ``joined``, ``closed``: the version whose barrier this registration has joined, or closed.
    ``publishing``: the version whose publication has no answer yet, else 0.
    ``computing``: the version that a computation begins from; -1: none runs.
    ``has_new_inputs``: inputs have changed since the last computation.
    """

    processor_id: ProcessorId
    location: Host
    life: Life = Life.OUT
    end: EndCause = EndCause.STOPPED
    error: str = ""
    is_connected: bool = False
    is_given_up: bool = False
    sequence: int | None = None
    registrations: tuple[Registration, ...] = ()
    plan: Plan | None = None
    barrier: BarrierSeen | None = None
    joined: int = 0
    closed: int = 0
    computing: int = -1
    publishing: int = 0
    has_new_inputs: bool = False
    work: HeldWork = HeldWork()
    timers: frozenset[ProcessorTimer] = frozenset()

    @property
    def version(self) -> int:
        """The newest version that was seen; 0: none."""
        return 0 if self.plan is None else self.plan.version

    @property
    def is_leader(self) -> bool:
        """Whether the first registration is its own; ZooKeeper checks that at each write."""
        first = self.registrations[0].sequence if self.registrations else None
        return self.is_connected and self.sequence is not None and self.sequence == first

    @property
    def twin(self) -> Registration | None:
        """The earlier registration with its processor id; None: there is none."""
        if self.sequence is None:
            return None
        for registration in present(self.registrations):
            if registration.processor_id == self.processor_id:
                return registration if registration.sequence < self.sequence else None
        return None

    @property
    def entry(self) -> Member | None:
        """The member of the newest version with its registration."""
        return None if self.plan is None else self.plan.of(self.sequence)

    @property
    def barrier_phase(self) -> BarrierPhase | None:
        """The phase of the newest version's barrier; None until that is seen."""
        if self.barrier is None or self.barrier.version != self.version:
            return None
        return self.barrier.phase


@dataclass(frozen=True, slots=True)
class ProcessorDecision:
    """The result of one event. Records are written first, in their order."""

    state: ProcessorState
    records: tuple[Record, ...] = ()
    instructions: tuple[Instruction, ...] = ()
    reasons: tuple[ProcessorReason, ...] = ()


class ProcessorDraft:
    """The working copy of the state, and the output of the step so far."""

    def __init__(self, state: ProcessorState) -> None:
        self.state = state
        self.records: list[Record] = []
        self.instructions: list[Instruction] = []
        self.reasons: list[ProcessorReason] = []

    def set_timer(self, kind: ProcessorTimerKind, version: int = 0) -> None:
        """Start the timer now."""
        timer = ProcessorTimer(kind, version)
        self.state = replace(self.state, timers=self.state.timers | {timer})
        self.instructions.append(StartTimer(timer))

    def cancel(self, kind: ProcessorTimerKind) -> None:
        """Let no timer of the kind run."""
        for timer in sorted(self.state.timers, key=lambda t: t.version):
            if timer.kind is kind:
                self.state = replace(self.state, timers=self.state.timers - {timer})
                self.instructions.append(StopTimer(timer))

    def runs(self, kind: ProcessorTimerKind, version: int = 0) -> bool:
        """Return whether the timer is running."""
        return ProcessorTimer(kind, version) in self.state.timers

    def because(self, kind: ProcessorReasonKind, **facts: object) -> None:
        """Add a reason to the decision."""
        self.reasons.append(ProcessorReason(kind, tuple(sorted(facts.items()))))

    def decision(self) -> ProcessorDecision:
        """Return the result of the step."""
        return ProcessorDecision(
            self.state, tuple(self.records), tuple(self.instructions), tuple(self.reasons)
        )
