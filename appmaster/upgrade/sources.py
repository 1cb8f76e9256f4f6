"""What launchers report about their incarnations, as an upgrade needs it.

PURE: the caller gives the times. The last reported incarnation of each processor is kept beyond its
end, as its failure is reported later.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from homeport.appmaster.allocation.container_process_manager import Decision
from homeport.appmaster.allocation.job_state.state import (
    LIVE,
    AllocatorState,
    ContainerPhase,
    ContainerState,
    JobPhase,
)
from homeport.appmaster.allocation.protocol.events import Event, ResourceEnded
from homeport.appmaster.allocation.retries import is_charged
from homeport.appmaster.upgrade.observed import ContainerSeen, Seen
from homeport.job_coordinator.http.messages import CheckIn
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation


@dataclass(slots=True)
class _Heard:
    """The last check-in of one incarnation's launcher, at ``at_ms``.

    ``since_ms``: since when the incarnation was seen to run; None: not yet.
    """

    message: CheckIn
    at_ms: int
    since_ms: int | None = None

    def watched_ms(self, now_ms: int) -> int:
        """Return for how long it was seen to run."""
        return 0 if self.since_ms is None else now_ms - self.since_ms

    def quiet_until(self, now_ms: int) -> int:
        """Return for how long the incarnation has not worked; if never: ``watched_ms``."""
        if self.message.quiet_ms is None:
            return self.watched_ms(now_ms)
        return self.message.quiet_ms + now_ms - self.at_ms


class Evidence:
    """Collects check-ins, and combines them with the allocator's state for an upgrade."""

    def __init__(self) -> None:
        self._heard: dict[ProcessorId, _Heard] = {}

    def heard(self, message: CheckIn, now_ms: int) -> None:
        """Keep a check-in; ``now_ms``: the time of a clock that never stops."""
        running = message.running
        if running is None:
            return
        known = self._of(running)
        is_same = known is not None and known.message.package == message.package
        since_ms = known.since_ms if known is not None and is_same else None
        self._heard[running.processor_id] = _Heard(message, now_ms, since_ms)

    def ran(self, incarnation: Incarnation) -> tuple[str | None] | None:
        """Return the package that the incarnation runs or ran with, in a tuple; None: not known."""
        known = self._of(incarnation)
        return None if known is None else (known.message.package,)

    def _of(self, incarnation: Incarnation) -> _Heard | None:
        known = self._heard.get(incarnation.processor_id)
        return known if known is not None and known.message.running == incarnation else None

    def seen(
        self,
        state: AllocatorState,
        hindrance: str,
        refusals: Mapping[Incarnation, str],
        now_ms: int,
        step_ms: int = 0,
    ) -> Seen:
        """Return the job now.

        ``hindrance``: what else goes on without the allocator's knowledge; empty: nothing.
        ``refusals``: {incarnation: why its restart was not carried out}. ``step_ms``: for how long
        the record has been the same.
        """
        found = [
            self._seen(container, refusals.get(container.incarnation, ""), now_ms)
            for container in state.containers
            if not container.is_temporary and container.phase is not ContainerPhase.FINISHED
        ]
        return Seen(
            tuple(found),
            hindrance or _hindrance(state),
            state.settings.warm_lag,
            state.settings.retry_count,
            step_ms,
        )

    def _seen(self, container: ContainerState, refusal: str, now_ms: int) -> ContainerSeen:
        is_running = container.phase is ContainerPhase.RUNNING and not container.is_overtaken
        is_standby = container.replica_of is not None
        known = self._of(container.incarnation) if container.phase in LIVE else None
        seen = ContainerSeen(
            container.processor_id,
            container.replica_of,
            is_running,
            is_known=known is not None,
            failures=container.failures,
            refusal=refusal,
            is_down=container.resource_id is None,
        )
        if known is None:
            return seen
        if is_running and known.since_ms is None:
            known.since_ms = now_ms
        said = known.message
        lag = None if said.report is None else said.report.input_lag
        return replace(
            seen,
            package=said.package,
            prepared=said.prepared,
            unprepared=said.unprepared or "",
            lag=container.lag if is_standby else lag,
            quiet_ms=0 if is_standby else known.quiet_until(now_ms),
            watched_ms=known.watched_ms(now_ms),
        )


def _hindrance(state: AllocatorState) -> str:
    """Return why the allocator's state keeps an upgrade from any restart; empty: it does not."""
    if state.phase is not JobPhase.ACTIVE or state.ending is not None:
        return "the job begins or ends"
    named = {p.request.processor_id for p in state.placements}
    if busy := sorted(name for name in named if has_launcher(state, name)):
        return f"a command for processor {', '.join(busy)} is under way"
    return ""


def has_launcher(state: AllocatorState, processor_id: ProcessorId) -> bool:
    """Return whether a command can act now; it waits until the container has a launcher."""
    container = state.container(processor_id)
    return container is None or container.resource_id is not None


def failure_of(
    before: AllocatorState, decision: Decision, event: Event
) -> tuple[Incarnation, str] | None:
    """Return the incarnation that has failed with this event, and how; None: none has.

    A lost host, a lost lease and an ordered stop are no failures. The end of a YARN container that
    the container caused, as by its memory, is one.
    """
    for processor_id in sorted(decision.changes.containers):
        old, new = before.container(processor_id), decision.state.container(processor_id)
        failure = None if new is None else new.last_failure
        if old is None or old.phase not in LIVE or failure is None:
            continue
        if failure == old.last_failure:
            continue
        is_reported = failure.cause is not None and is_charged(old, failure.cause)
        is_own_fault = isinstance(event, ResourceEnded) and event.is_own_fault
        if is_reported or is_own_fault:
            return old.incarnation, failure.story
    return None


def next_package(
    wanted: Callable[[ProcessorId], str | None], state: AllocatorState, processor_id: ProcessorId
) -> str | None:
    """Return the package of the processor's next permit; a temporary standby has its active's.

    ``wanted``: returns the sha256 of a processor's package; None: the submission's.
    """
    container = state.container(processor_id)
    is_temporary = container is not None and container.is_temporary
    return wanted(container.group if container and is_temporary else processor_id)
