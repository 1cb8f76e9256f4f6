"""What follows from a failure: how often a container is started again, and how long it waits.

PURE. Two delays keep a lasting fault from using up all retries at once:

* the last retry of a container with a home waits for
  ``cluster-manager.container.preferred-host.last.retry.delay.ms``, as in Samza 1.8; earlier ones do
  not wait
* after each failed launch in a row the delay doubles, from a second up to half a minute; a permit
  ends the series. The retry keys limit the number of launches; Samza has no limit. If the host is
  lost there is no delay: another host is requested.
"""

from collections.abc import Mapping
from dataclasses import replace

from homeport.appmaster.allocation.job_end import decide_end
from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.state import (
    ContainerPhase,
    ContainerState,
    Failure,
    FailureKind,
    ResourceState,
)
from homeport.appmaster.allocation.job_state.transitions import Trigger
from homeport.appmaster.allocation.protocol.events import (
    ChargedFailures,
    ResourceEnded,
    Timer,
    TimerKind,
    named,
)
from homeport.appmaster.allocation.protocol.instructions import JobResult, WriteFailureCount
from homeport.appmaster.allocation.protocol.reasons import ReasonKind
from homeport.appmaster.allocation.protocol.settings import AllocatorSettings
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.outcomes import StopCause

LAUNCH_RETRY_MS = 1_000
LAUNCH_RETRY_MAX_MS = 30_000

_LONGEST_SERIES = 6
"""After so many failed launches neither the delay nor their count grows."""


def delay_ms(settings: AllocatorSettings, failed: ContainerState, trigger: Trigger) -> int:
    """Return the delay in ms; 0: none. ``failed`` counts this failure, which was charged."""
    if trigger is Trigger.LAUNCH_FAILED:
        rest_ms = settings.launch_retry_ms << max(0, failed.launch_failures - 1)
        return min(rest_ms, LAUNCH_RETRY_MAX_MS)
    is_last = failed.failures == settings.retry_count
    return settings.last_retry_delay_ms if is_last and failed.home is not None else 0


def longer_series(container: ContainerState) -> int:
    """Return ``launch_failures`` after one more, and at most ``_LONGEST_SERIES``."""
    return min(container.launch_failures + 1, _LONGEST_SERIES)


CHARGED_CAUSES = frozenset(
    {StopCause.FAILED, StopCause.KILLED, StopCause.DISK_FULL, StopCause.NO_PACKAGE}
)
"""Causes of a stop that count as failures of the processor."""


def is_charged(container: ContainerState, cause: StopCause) -> bool:
    """Return whether a stop without an order is charged; a standby must not finish."""
    is_standby = container.replica_of is not None
    return cause in CHARGED_CAUSES or (cause is StopCause.FINISHED and is_standby)


def fail(
    draft: Draft,
    container: ContainerState,
    trigger: Trigger,
    next_phase: ContainerPhase,
    *,
    failure: Failure,
    is_charged: bool,
) -> None:
    """Let the container go on in ``next_phase`` or back off, or end it, perhaps with the job."""
    settings = draft.settings
    timer = Timer(TimerKind.RETRY_WINDOW, container.processor_id)
    is_counted = is_charged and settings.retry_count >= 0
    failures = container.failures + is_counted
    _record_charge(draft, container, failure.story, failures if is_charged else None)
    container = replace(container, failures=failures, request_id=None, requested_host=None)
    if failures <= settings.retry_count or not is_counted:
        container = draft.change(replace(container, last_failure=failure))
        rest_ms = delay_ms(settings, container, trigger) if is_charged else 0
        if is_counted:
            draft.set_timer(timer, settings.retry_window_ms + rest_ms)
        if rest_ms:
            draft.move(replace(container, resource_id=None), trigger, ContainerPhase.BACKING_OFF)
            draft.set_timer(Timer(TimerKind.RETRY_DELAY, container.processor_id), rest_ms)
            draft.because(ReasonKind.BACKS_OFF, container, detail=f"{rest_ms} ms")
        else:
            draft.move(container, trigger, next_phase)
            if next_phase is ContainerPhase.ASSIGNED:
                host = draft.host_of(container)
                draft.because(ReasonKind.SAME_LAUNCHER, container, host)
        return
    diagnostics = (
        f"processor {container.processor_id} failed {failures} times, "
        f"cluster-manager.container.retry.count is {settings.retry_count}; {failure}"
    )
    draft.cancel_timer(timer)
    last = replace(failure, kind=FailureKind.RETRIES_USED_UP, story=diagnostics)
    given_up = replace(draft.end_failover(container), last_failure=last, resource_id=None)
    draft.move(given_up, trigger, ContainerPhase.FAILED)
    draft.because(ReasonKind.GIVEN_UP, container, detail=diagnostics)
    if settings.fail_job_after_retries:
        decide_end(draft, JobResult.FAILED, diagnostics)


def loss(holder: ContainerState, launcher: ResourceState, ended: ResourceEnded | None) -> Failure:
    """Return the failure of the incarnation that ran on ``launcher``, which is lost."""
    story = f"{named(holder.incarnation)} on {launcher.host}: {story_of_end(ended)}"
    return Failure(FailureKind.LAUNCHER_LOST, story, holder.incarnation, launcher.host)


def story_of_end(ended: ResourceEnded | None) -> str:
    """Return how a launcher ended, for people; ``ended`` None: no end was reported."""
    if ended is None:
        return "its launcher fell silent"
    return ": ".join(filter(None, ("its YARN container ended", ended.story)))


def _record_charge(
    draft: Draft, container: ContainerState, story: str, failures: int | None
) -> None:
    """Note the failure as a reason; ``failures``: the count with it; None: it is not charged."""
    kind = ReasonKind.NOT_CHARGED if failures is None else ReasonKind.CHARGED
    limit = draft.settings.retry_count
    count = "" if failures is None or limit < 0 else f"; failure {failures}, {limit} are forgiven"
    host = draft.host_of(container) or container.requested_host
    draft.because(kind, container, host, story + count)


def record_counts(draft: Draft) -> None:
    """Record the failure counts that this step has changed, and the reasons of last failures.

    The stream has the count of a container that enters with this step.
    """
    for processor_id in draft.containers.changed:
        old, new = draft.before.container(processor_id), draft.containers.get(processor_id)
        if old is not None and new is not None and _is_news(old, new):
            draft.record(WriteFailureCount(processor_id, new.failures))


def _is_news(old: ContainerState, new: ContainerState) -> bool:
    """Return whether the count changes, or the reason, which may stay while failures are charged.

    A record has the time of its step, so one without a charge would lengthen their window.
    """
    if new.failures != old.failures:
        return True
    explained = _explained(new)
    return explained != _explained(old) and (explained is not None or not new.failures)


def _explained(container: ContainerState) -> Failure | None:
    last = container.last_failure
    return last if last is not None and last.reason else None


def charge_again(draft: Draft, failures: Mapping[ProcessorId, ChargedFailures]) -> None:
    """Charge again what an earlier driver charged; a container that was given up stays so."""
    retry_count = draft.settings.retry_count
    for container in draft.each():
        charged = failures.get(container.processor_id)
        if charged is None:
            continue
        again = draft.change(replace(container, failures=charged.count))
        if 0 <= retry_count < charged.count:
            story = (
                f"processor {container.processor_id} failed {charged.count} times, "
                f"cluster-manager.container.retry.count is {retry_count}"
            )
            again = draft.end_failover(again)
            failure = Failure(FailureKind.RETRIES_USED_UP, story)
            given_up = replace(again, phase=ContainerPhase.FAILED, last_failure=failure)
            draft.containers[container.processor_id] = given_up
            draft.because(ReasonKind.GIVEN_UP, container, detail=story)
        else:
            draft.set_timer(Timer(TimerKind.RETRY_WINDOW, container.processor_id), charged.left_ms)
            before = f"{charged.count} of them"
            draft.because(ReasonKind.CHARGED_BEFORE, container, detail=before)
