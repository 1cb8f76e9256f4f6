"""A machine whose recoveries are timed, by a clock that the test sets."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import to_builtins

from homeport.appmaster.allocation.container_process_manager import Decision
from homeport.appmaster.allocation.job_state.state import AllocatorState
from homeport.appmaster.allocation.protocol.events import Event, ShutdownRequested
from homeport.appmaster.allocation.protocol.reasons import Reason, ReasonKind
from homeport.appmaster.report.recovery import Recoveries, Recovery, Times
from homeport.job_coordinator.model.ids import Host, ProcessorId
from tests.unit.appmaster.allocation.conftest import Machine, inc, started

WRITES_MS = 10
"""How long the records of a decision take."""
WALL_MS = 1_000_000
"""The calendar's time at 0 of the clock."""
START_S = {
    "prepare": 0.1,
    "kafka": 0.1,
    "fence": 0.2,
    "coordinator-stream": 0.2,
    "stores": 0.3,
    "spark": 0.6,
    "total": 1.5,
}
"""0.1 s of preparing, 0.5 s of fencing, and the rest, 0.9 s, of restoring."""


class Watched:
    """A machine whose recoveries are timed."""

    def __init__(self) -> None:
        self.machine = Machine()
        self.recoveries = Recoveries()
        self.ended: list[Recovery] = []

    def at(self, known_ms: int, *events: Event) -> None:
        """One decision each, known at this time and written ``WRITES_MS`` later."""
        for event in events:
            before = self.machine.state
            self.note(known_ms, event, self.machine.decide(event), before=before)

    def note(
        self, known_ms: int, event: Event, decision: Decision, before: AllocatorState | None = None
    ) -> None:
        """A decision, of the machine or not."""
        written_ms = known_ms + WRITES_MS
        times = Times(known_ms, written_ms, WALL_MS + written_ms)
        state = self.machine.state if before is None else before
        self.ended += self.recoveries.decided(state, event, decision, times)

    def tells(self, at_ms: int, processor: str, kind: ReasonKind) -> None:
        """A decision with this reason only."""
        reason = Reason(kind, ProcessorId(processor), Host("a"))
        decision = Decision(self.machine.state, (), (), (reason,))
        self.note(at_ms, ShutdownRequested(), decision)

    def runs(self, at_ms: int, processor: str, epoch: int) -> None:
        """It reports its start."""
        self.recoveries.started(inc(processor, epoch), START_S, at_ms)
        self.at(at_ms, started(processor, epoch))

    def works(self, processor: str, epoch: int, after_ms: int, at_ms: int = 0) -> None:
        """It reports its first transaction."""
        self.ended += self.recoveries.works(inc(processor, epoch), after_ms, at_ms)

    def last(self, processor: str = "0") -> Recovery:
        """The last recovery of this processor."""
        recovery = self.recoveries.last(ProcessorId(processor))
        assert recovery is not None
        return recovery

    def stated(self, now_ms: int, processor: str = "0") -> Mapping[str, object]:
        """As the status shows it; its phases are always the whole, but for what is unknown."""
        body: Mapping[str, object] = to_builtins(self.last(processor).shown(now_ms))
        shown = self.last(processor).shown(now_ms)
        assert sum(shown.phases_ms.values()) == shown.total_ms
        return body

    def phases(self, now_ms: int, processor: str = "0") -> Mapping[str, int]:
        """The phases alone."""
        found = self.stated(now_ms, processor)["phases_ms"]
        assert isinstance(found, dict)
        return found
