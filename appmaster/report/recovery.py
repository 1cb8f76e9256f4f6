"""Measures how long a container that ran takes until it works again, phase by phase.

PURE. Rules for editing: every time is the caller's, in ms of one clock that never goes back; a time
without a report is left out, never guessed.

A recovery begins with the last sign of life of an incarnation. It ends with the first transaction
that its successor commits; where no input waits, when the successor has seen that; for a standby,
when it runs. One phase at a time is under way, and its end is the beginning of the next one, so the
phases add up to the whole. The phase follows from the allocator's phase of the container and, after
the permit, from the container's report of its start. A failure on the way back is part of the same
recovery: the phases that come again add to their times.

The module does not know how the last sign of life was seen, nor on which machine a container
counted the seconds of its start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from homeport.appmaster.allocation.container_process_manager import Decision
from homeport.appmaster.allocation.job_state.state import (
    WAITING,
    AllocatorState,
    ContainerPhase,
    ContainerRole,
)
from homeport.appmaster.allocation.protocol.events import (
    ContainerStopped,
    Event,
    JobModelPublished,
    LauncherSilent,
    ResourceEnded,
)
from homeport.appmaster.allocation.protocol.reasons import ReasonKind
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.status.shape import ShownRecovery


class RecoveryPhase(Enum):
    """The phases of a recovery, in their order."""

    DETECT = "detect"
    """From the last sign of life until the driver knew of the end."""
    DECIDE = "decide"
    """Until the records of the decision were written."""
    STOP = "stop"
    """Until the stop of its standby, or its own, was proven."""
    RESOURCE = "resource"
    """Until it had a launcher and its permit was written; pauses before retries count."""
    START = "start"
    """Until its process took its first step; also a process that ends before its start."""
    FENCE = "fence"
    """Until all older incarnations were fenced and the coordinator stream was read to its head."""
    RESTORE = "restore"
    """Until its stores stood at their heads and its pipeline was ready."""
    FIRST_BATCH = "first-batch"
    """Until its first transaction was committed, or it had seen that no input waits."""


class RecoveryKind(Enum):
    """Where a container came back."""

    HOME = "home"
    """On the host where it was."""
    FAILOVER = "failover"
    """In the place of one of its standbys."""
    ELSEWHERE = "elsewhere"
    """On another host."""


@dataclass(frozen=True, slots=True)
class Times:
    """The times of one decision: when its event was known, and when its records were written.

    ``wall_ms``: ``decided_ms`` in ms since 1970.
    """

    known_ms: int
    decided_ms: int
    wall_ms: int


@dataclass(frozen=True, slots=True)
class Recovery:
    """One recovery, up to now.

    ``began_ms`` and ``since_ms``, the beginning of the phase under way, are times of the caller's
    clock; ``began_wall_ms``: ms since 1970. ``phase`` None: the recovery is over. ``spent_ms``: the
    times of the phases reached so far. ``unknown``: phases without a report. ``epoch``: the epoch
    of the last permit in it; 0: no permit yet. ``own_ms``: when its incarnation took its first
    step, by its report.
    """

    processor_id: ProcessorId
    cause: str
    from_host: Host | None
    began_ms: int
    began_wall_ms: int
    phase: RecoveryPhase | None
    since_ms: int
    spent_ms: Mapping[RecoveryPhase, int] = field(default_factory=dict)
    unknown: frozenset[RecoveryPhase] = frozenset()
    epoch: int = 0
    to_host: Host | None = None
    kind: RecoveryKind | None = None
    own_ms: int | None = None

    @property
    def is_over(self) -> bool:
        """Whether the container works again."""
        return self.phase is None

    def entered(self, phase: RecoveryPhase | None, at_ms: int) -> Recovery:
        """Return the recovery with ``phase`` under way from ``at_ms``; None: it ends then."""
        at_ms = max(at_ms, self.since_ms)
        passed = _ORDER if phase is None else _ORDER[: _ORDER.index(phase)]
        spent_ms = {p: 0 for p in passed if p not in self.unknown} | self.phases_ms(at_ms)
        return replace(self, phase=phase, since_ms=at_ms, spent_ms=spent_ms)

    def phases_ms(self, now_ms: int) -> dict[RecoveryPhase, int]:
        """Return {phase: its ms}, in order: 0 where it did not happen, absent where unknown.

        A phase under way counts up to now; later ones are absent.
        """
        spent_ms = dict(self.spent_ms)
        if self.phase is not None:
            lasts_ms = max(now_ms - self.since_ms, 0)
            spent_ms[self.phase] = spent_ms.get(self.phase, 0) + lasts_ms
        return {phase: spent_ms[phase] for phase in _ORDER if phase in spent_ms}

    def shown(self, now_ms: int) -> ShownRecovery:
        """Return the recovery for the status, as of ``now_ms``."""
        phases_ms = self.phases_ms(now_ms)
        until_ms = self.since_ms if self.is_over else max(now_ms, self.since_ms)
        return ShownRecovery(
            cause=self.cause,
            kind=self.kind and self.kind.value,
            from_host=self.from_host,
            to_host=self.to_host,
            began_ms=self.began_wall_ms,
            phases_ms={phase.value: ms for phase, ms in phases_ms.items()},
            total_ms=until_ms - self.began_ms,
            is_over=self.is_over,
        )


_ORDER = tuple(RecoveryPhase)
_OF_ITS_START = frozenset(
    {RecoveryPhase.START, RecoveryPhase.FENCE, RecoveryPhase.RESTORE, RecoveryPhase.FIRST_BATCH}
)
_IN_THE_WAY = frozenset({ContainerPhase.FAILING_OVER, ContainerPhase.STOPPING})
_LEAVES = frozenset(
    {
        ReasonKind.CHARGED,
        ReasonKind.NOT_CHARGED,
        ReasonKind.OVERTAKEN,
        ReasonKind.STOPPED_AS_ORDERED,
    }
)
"""Reasons after which a container that ran is on its way back."""
_RUNS = frozenset({ReasonKind.STARTED, ReasonKind.ADOPTED})
_STAYS_AWAY = frozenset({ReasonKind.FINISHED, ReasonKind.GIVEN_UP, ReasonKind.RETIRED})
_ENDS = (ContainerStopped, LauncherSilent, ResourceEnded)
_SELF_REPORTED = frozenset({RecoveryPhase.FENCE, RecoveryPhase.RESTORE})

_PREPARES = frozenset({"model", "prepare"})
_FENCES = frozenset({"kafka", "fence", "coordinator-stream", "confirm"})
_TOTAL = "total"
_MS_PER_S = 1000


class Recoveries:
    """The last recovery of each processor, from the beginning of this driver.

    A method that may end recoveries returns those that it ended, each once.
    """

    def __init__(self) -> None:
        self._running: set[ProcessorId] = set()
        self._last: dict[ProcessorId, Recovery] = {}
        self._seen: dict[ProcessorId, tuple[int, int]] = {}

    def last(self, processor_id: ProcessorId) -> Recovery | None:
        """Return the last recovery, over or not; None: none, or the processor stays away."""
        return self._last.get(processor_id)

    def seen(self, incarnation: Incarnation, at_ms: int) -> None:
        """Note the last sign of life of an incarnation, before its end is decided."""
        self._seen[incarnation.processor_id] = (incarnation.epoch, at_ms)

    def decided(
        self, before: AllocatorState, event: Event, decision: Decision, times: Times
    ) -> tuple[Recovery, ...]:
        """Note a decision whose records are written; return the recoveries that it ended."""
        ended: tuple[Recovery, ...] = ()
        for reason in decision.reasons:
            processor_id, kind = reason.processor_id, reason.kind
            if processor_id is None:
                continue
            if kind in _LEAVES:
                self._left(processor_id, before, event, times)
            elif kind is ReasonKind.PERMITTED:
                self._permitted(processor_id, decision.state, reason.host, times.decided_ms)
            elif kind in _RUNS:
                ended += self._runs(processor_id, decision.state, times.known_ms)
            elif kind in _STAYS_AWAY:
                ended += self._stays_away(processor_id, kind, times.known_ms)
        for processor_id in sorted(decision.changes.containers & self._last.keys()):
            self._follow(processor_id, decision.state, times)
        return ended

    def started(self, incarnation: Incarnation, seconds: Mapping[str, float], at_ms: int) -> None:
        """Note its report of a start at ``at_ms``; ``seconds``: {part of the start: its time}."""
        recovery = self._under_way(incarnation)
        if recovery is None or recovery.phase is not RecoveryPhase.START:
            return
        if _TOTAL in seconds:
            own_ms = at_ms - _ms(seconds, {_TOTAL})
            begins_ms = own_ms + _ms(seconds, _PREPARES)
            recovery = replace(recovery, own_ms=own_ms).entered(RecoveryPhase.FENCE, begins_ms)
            recovery = recovery.entered(RecoveryPhase.RESTORE, begins_ms + _ms(seconds, _FENCES))
        else:
            recovery = replace(recovery, unknown=recovery.unknown | _SELF_REPORTED)
        self._put(recovery.entered(RecoveryPhase.FIRST_BATCH, at_ms))

    def works(self, incarnation: Incarnation, after_ms: int, at_ms: int) -> tuple[Recovery, ...]:
        """Note that it has committed its first transaction, or seen that no input waits.

        It did so ``after_ms`` after its first step, if the time of that is known, else at
        ``at_ms``, the time of the report.
        """
        recovery = self._under_way(incarnation)
        if recovery is None or recovery.phase is not RecoveryPhase.FIRST_BATCH:
            return ()
        own_ms = recovery.own_ms
        return self._over(recovery, at_ms if own_ms is None else own_ms + after_ms)

    def _under_way(self, incarnation: Incarnation) -> Recovery | None:
        recovery = self._last.get(incarnation.processor_id)
        is_its = recovery is not None and recovery.epoch == incarnation.epoch
        return recovery if is_its else None

    def _put(self, recovery: Recovery) -> None:
        self._last[recovery.processor_id] = recovery

    def _over(self, recovery: Recovery, at_ms: int) -> tuple[Recovery, ...]:
        over = recovery.entered(None, at_ms)
        self._put(over)
        return (over,)

    def _left(
        self, processor_id: ProcessorId, before: AllocatorState, event: Event, times: Times
    ) -> None:
        known = before.container(processor_id)
        epoch, at_ms = self._seen.get(processor_id, (0, 0))
        seen_ms = at_ms if known is not None and known.epoch == epoch > 0 else None
        last = self._last.get(processor_id)
        if last is not None and last.phase in _OF_ITS_START:
            # It was on its way until its last sign of life: that is no time of detection.
            ended_ms = times.known_ms if seen_ms is None else min(seen_ms, times.known_ms)
            last = last.entered(RecoveryPhase.DETECT, ended_ms)
            self._put(last.entered(RecoveryPhase.DECIDE, times.known_ms))
        elif (last is None or last.is_over) and processor_id in self._running:
            host = None if known is None else before.host_of(known)
            self._begin(processor_id, host, event, times, seen_ms)
        self._running.discard(processor_id)

    def _begin(
        self,
        processor_id: ProcessorId,
        host: Host | None,
        event: Event,
        times: Times,
        seen_ms: int | None,
    ) -> None:
        # An end on another machine is known late; a decision of this driver's at once.
        is_detected = seen_ms is not None or not isinstance(event, _ENDS)
        began_ms = times.known_ms if seen_ms is None else min(seen_ms, times.known_ms)
        recovery = Recovery(
            processor_id,
            cause_of(event),
            host,
            began_ms,
            times.wall_ms - (times.decided_ms - began_ms),
            RecoveryPhase.DETECT if is_detected else RecoveryPhase.DECIDE,
            began_ms,
            unknown=frozenset() if is_detected else frozenset({RecoveryPhase.DETECT}),
        )
        self._put(recovery.entered(RecoveryPhase.DECIDE, times.known_ms))

    def _permitted(
        self, processor_id: ProcessorId, after: AllocatorState, host: Host | None, at_ms: int
    ) -> None:
        recovery, container = self._last.get(processor_id), after.container(processor_id)
        if recovery is None or recovery.is_over or container is None:
            return
        kind = RecoveryKind.ELSEWHERE
        failover = container.failover
        if host == recovery.from_host:
            kind = RecoveryKind.HOME
        elif failover is not None and failover.standby is not None and failover.host == host:
            kind = RecoveryKind.FAILOVER
        placed = replace(recovery, epoch=container.epoch, to_host=host, kind=kind, own_ms=None)
        self._put(placed.entered(RecoveryPhase.START, at_ms))

    def _runs(
        self, processor_id: ProcessorId, after: AllocatorState, at_ms: int
    ) -> tuple[Recovery, ...]:
        self._running.add(processor_id)
        container = after.container(processor_id)
        if container is None:
            return ()
        self.started(container.incarnation, {}, at_ms)  # where it has not reported itself
        recovery = self._under_way(container.incarnation)
        is_over = recovery is None or recovery.phase is not RecoveryPhase.FIRST_BATCH
        if recovery is None or is_over or container.role is ContainerRole.ACTIVE:
            return ()
        return self._over(recovery, recovery.since_ms)

    def _stays_away(
        self, processor_id: ProcessorId, kind: ReasonKind, at_ms: int
    ) -> tuple[Recovery, ...]:
        self._running.discard(processor_id)
        recovery = self._last.get(processor_id)
        if recovery is None or recovery.is_over:
            return ()
        if kind is ReasonKind.FINISHED and recovery.phase is RecoveryPhase.FIRST_BATCH:
            return self._over(recovery, at_ms)
        del self._last[processor_id]
        return ()

    def _follow(self, processor_id: ProcessorId, after: AllocatorState, times: Times) -> None:
        recovery, container = self._last[processor_id], after.container(processor_id)
        if recovery.is_over or container is None:
            return
        if container.phase in _IN_THE_WAY:
            if recovery.phase is not RecoveryPhase.STOP:
                self._put(recovery.entered(RecoveryPhase.STOP, times.decided_ms))
        elif container.phase in WAITING and recovery.phase is not RecoveryPhase.RESOURCE:
            # The evidence of the stop ends that phase, not the decision on it.
            is_proven = recovery.phase is RecoveryPhase.STOP
            at_ms = times.known_ms if is_proven else times.decided_ms
            self._put(recovery.entered(RecoveryPhase.RESOURCE, at_ms))


def cause_of(event: Event) -> str:
    """Return the cause of a container's end, as a label: the launcher's, or how it was lost."""
    match event:
        case ContainerStopped(cause=cause):
            return cause.value
        case LauncherSilent():
            return "launcher-silent"
        case ResourceEnded(is_taken_back=is_taken_back):
            return "taken-back" if is_taken_back else "resource-ended"
        case JobModelPublished():
            return "model-change"
    return "other"


def _ms(seconds: Mapping[str, float], names: Iterable[str]) -> int:
    return round(sum(seconds.get(name, 0.0) for name in names) * _MS_PER_S)
