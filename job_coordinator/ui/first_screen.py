"""Names the containers that are not where they should be: since when, why, what they wait for.

PURE. This module alone makes the text of the first screen, from the status. ``homeport status`` and
the dashboard show the same words; ``homeport explain`` shows what a processor waits for.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from homeport.config.number_text import counted
from homeport.job_coordinator.status.container_report import ContainerReport
from homeport.job_coordinator.status.host_drain import left_on_drained_hosts
from homeport.job_coordinator.status.shape import (
    Phase,
    ShownConfiguration,
    ShownContainer,
    ShownPlacement,
    ShownRollout,
    ShownStatus,
)
from homeport.job_coordinator.ui.times import moment, since, span

SETTLED: Final = frozenset({Phase.RUNNING, Phase.FINISHED, Phase.WAITING})
"""Phases of a container that is where it should be. A standalone processor without tasks waits."""

_PACKAGE_CHARACTERS = 12
_BEHIND_S: Final = 60
"""The first screen names a standby that is further behind, as the alert rule
HomeportStandbyFallsBehind does."""
_NAMED: Final = 5
_IDS_SHOWN: Final = 20

_ON_ITS_WAY: Final = frozenset(
    {Phase.QUEUED, Phase.REQUESTED, Phase.ALLOCATED, Phase.ASSIGNED, Phase.STARTING}
)
_START_MS: Final = 60_000
"""A container that nothing has ended may be in one of these phases for so long: it starts."""

_DOES: Final = {
    Phase.QUEUED: "is not placed yet",
    Phase.REQUESTED: "is not placed yet",
    Phase.ALLOCATED: "has a place",
    Phase.ASSIGNED: "is about to start",
    Phase.STARTING: "is starting",
    Phase.STOPPING: "is stopping",
    Phase.STOPPED: "has stopped",
    Phase.FAILING_OVER: "fails over",
    Phase.BACKING_OFF: "backs off",
    Phase.FAILED: "is given up",
    Phase.UNKNOWN: "does not answer the leader",
}
"""What a container does in each phase that is not settled."""

_WITHOUT_PLACE: Final = frozenset(
    {Phase.QUEUED, Phase.REQUESTED, Phase.BACKING_OFF, Phase.FAILED, Phase.UNKNOWN}
)
"""Phases of a container without a host; what it waits for names the host that it requests."""

CAUSES_IN_WORDS: Final = {
    "failed": "it failed",
    "killed": "it was killed",
    "signalled": "a signal ended it",
    "lease-lost": "it lost its lease",
    "disk-full": "its disk had no room",
    "cut-off": "its host was cut off from Kafka, or from the AM",
    "no-package": "its launcher cannot have or unpack the package: its log says why",
    "unavailable": "it could not reach Kafka, or the AM",
    "launcher-silent": "its launcher fell silent",
    "taken-back": "YARN took its container back",
    "resource-ended": "YARN called its container ended",
    "model-change": "the JobModel has changed",
    "ordered": "it was ordered to stop",
}
"""The causes of a recovery, as ``/v1/status`` names them."""


class LateContainer(msgspec.Struct, frozen=True, rename={"processor_id": "id"}):
    """A container that is not where it should be.

    ``does``: the predicate of a sentence, with the host if it is known. ``since_ms``: since 1970;
    0: not known. ``why``: what began it. ``waits``: what it waits for, each to follow "waits".
    ``left_s``: until its stores are restored, at the recent rate; None: not known, or none is.
    """

    processor_id: str
    phase: str
    does: str
    since_ms: int
    why: tuple[str, ...]
    waits: tuple[str, ...]
    left_s: float | None


class FirstScreen(msgspec.Struct, frozen=True):
    """What is shown first: the field ``screen`` of what the dashboard gets.

    ``is_calm``: whether nothing is wrong. ``notices``: what else is wrong, a sentence each.
    """

    headline: str
    is_calm: bool
    late: tuple[LateContainer, ...]
    notices: tuple[str, ...]


def first_screen(status: ShownStatus, now_ms: int) -> FirstScreen:
    """Return the first screen of ``status``. ``now_ms``: since 1970, by the reader's clock.

    Order: the late containers as in the status.
    """
    unsettled = [c for c in status.containers if c.phase not in SETTLED]
    late = tuple(_late(status, c) for c in unsettled)
    starts = all(_starts(c, now_ms) for c in unsettled)
    headline = _headline(status, late, now_ms, starts=starts)
    notices = tuple(_notices(status))
    return FirstScreen(headline, starts and not notices, late, notices)


def _starts(container: ShownContainer, now_ms: int) -> bool:
    """Return whether the container begins as it should, for the first time in this deployment."""
    has_ended = container.recovery or container.failures or container.last_failure
    since_ms = container.since_ms or 0
    return container.phase in _ON_ITS_WAY and not has_ended and now_ms - since_ms < _START_MS


def seconds_left(report: ContainerReport | None) -> float | None:
    """Return the time until all stores are restored; None: no restore runs, or one has no rate."""
    restoring = () if report is None else report.restoring
    known = [each.seconds_left for each in restoring if each.seconds_left is not None]
    return max(known) if known and len(known) == len(restoring) else None


def _late(status: ShownStatus, container: ShownContainer) -> LateContainer:
    phase = container.phase
    place = container.host or container.requested_host
    does = _DOES.get(phase, phase.value)
    if place and phase not in _WITHOUT_PLACE:
        does = f"{does} on {place}"
    return LateContainer(
        container.processor_id,
        phase.value,
        does,
        container.since_ms or 0,
        tuple(_why(status, container)),
        tuple(waits(status, container)),
        seconds_left(container.report),
    )


def _why(status: ShownStatus, container: ShownContainer) -> Iterator[str]:
    recovery = container.recovery
    if recovery is not None and not recovery.is_over:
        came_from = recovery.from_host or container.last_host
        if came_from and status.hosts and came_from not in status.hosts:
            yield f"{came_from} is lost"
        else:
            place = f" on {came_from}" if came_from else ""
            yield f"{CAUSES_IN_WORDS.get(recovery.cause, recovery.cause)}{place}"
    if container.last_failure:
        yield f"last failure: {container.last_failure}"


def _headline(
    status: ShownStatus, late: Sequence[LateContainer], now_ms: int, *, starts: bool
) -> str:
    state, count = status.job.state, len(status.containers)
    if not count:
        return "The job has no containers yet"
    if state in {"ending", "ended"}:
        return f"The job {'is ending' if state == 'ending' else 'has ended'}"
    if not late:
        return (
            "The only container is where it should be"
            if count == 1
            else f"All {count} containers are where they should be"
        )
    if starts:
        return _start(late, count)
    verb = "is" if len(late) == 1 else "are"
    where = "it" if len(late) == 1 else "they"
    head = f"{len(late)} of {count} containers {verb} not where {where} should be"
    first = min(late, key=lambda container: container.since_ms or now_ms)
    if len(late) == 1:
        return f"{head}: {_sentence(first, now_ms)}"
    named = ", ".join(container.processor_id for container in late[:_NAMED])
    more = f" and {len(late) - _NAMED} more" if len(late) > _NAMED else ""
    return f"{head}: processors {named}{more}; {_sentence(first, now_ms)}"


def _start(late: Sequence[LateContainer], count: int) -> str:
    """Return the headline where nothing is wrong and not all containers run yet."""
    verb = "is starting" if len(late) == 1 else "are starting"
    if len(late) == count:
        return f"The only container {verb}" if count == 1 else f"All {count} containers {verb}"
    return f"{len(late)} of {count} containers {verb}"


def _sentence(container: LateContainer, now_ms: int) -> str:
    begun = f" since {since(container.since_ms, now_ms)}" if container.since_ms else ""
    why = f", because {container.why[0]}" if _says_cause(container) else ""
    if container.left_s is not None:
        ends = f"; its state is restored in about {span(round(container.left_s * 1000))}"
    else:
        ends = f"; it waits {container.waits[0]}" if container.waits else ""
    return f"processor {container.processor_id} {container.does}{begun}{why}{ends}"


def _says_cause(container: LateContainer) -> bool:
    return bool(container.why) and not container.why[0].startswith("last failure")


def _notices(status: ShownStatus) -> Iterator[str]:
    if status.coordinator_stream not in {None, "ok"}:
        yield f"the coordinator stream: {status.coordinator_stream}"
    for partner, why in status.unanswered.items():
        yield f"{partner} does not answer: {why}"
    yield from _configuration(status.configuration)
    for container in status.containers:
        behind_s = container.lag_seconds
        if behind_s is not None and behind_s >= _BEHIND_S:
            late = span(round(behind_s * 1000))
            yield f"standby {container.processor_id} is {late} behind its changelogs"
    if status.excluded_hosts:
        names = ", ".join(status.excluded_hosts)
        yield f"not requested now, as their launchers fell silent: {names}"
    if status.suspects_itself:
        yield "most hosts fell silent at once: the fault is taken to be the ApplicationMaster's own"
    yield from _commands(status)
    yield from left_on_drained_hosts(status)
    yield from _upgrade(status.upgrade)
    yield from _rolling_restart(status.rolling_restart)


def _configuration(shown: ShownConfiguration | None) -> Iterator[str]:
    if shown is None:
        return
    if shown.fault is not None:
        yield f"the configuration in force stays: {shown.fault}"
    yield from shown.topics_refused[:_NAMED]
    if len(shown.topics_refused) > _NAMED:
        yield f"{len(shown.topics_refused) - _NAMED} more topics that match become no input"
    if shown.reads_ahead:
        lacks = sum(left or 0 for left in shown.reads_ahead.values())
        yield f"a change waits until {len(shown.reads_ahead)} tasks are read ahead: {lacks} records"


def _commands(status: ShownStatus) -> Iterator[str]:
    phases = {c.processor_id: c.phase for c in status.containers}
    for placement in status.placements:
        name = placement.processor_id
        if phases.get(name) in SETTLED:
            end = f"homeport move {name} --cancel ends it"
            yield f"processor {name} has {command(placement)}; {end}"


def _upgrade(upgrade: ShownRollout | None) -> Iterator[str]:
    if upgrade is None or not upgrade.is_under_way:
        return
    count, package = len(upgrade.given), upgrade.package[:_PACKAGE_CHARACTERS]
    waits = f"; it waits: {upgrade.waits}" if upgrade.waits else ""
    if upgrade.phase == "forward":
        yield f"upgrade to package {package}: {count} processors have it{waits}"
    else:
        back = f"upgrade to package {package} goes back, as {upgrade.reason}"
        yield f"{back}; {count} have it{waits}"


def _rolling_restart(rolling: ShownRollout | None) -> Iterator[str]:
    if rolling is None or not rolling.is_under_way:
        return
    names = ", ".join(rolling.given) or "none"
    waits = f"; it waits: {rolling.waits}" if rolling.waits else ""
    back = f" goes back, as {rolling.reason}" if rolling.phase == "back" else ""
    yield f"rolling restart with a changed configuration{back}; with it: {names}{waits}"


def kept_standbys(container: ShownContainer) -> str | None:
    """Return how far the standbys are that a container keeps; None: it keeps none."""
    lags = [standby.lag for standby in container.standbys]
    if not lags:
        return None
    behind = [lag for lag in lags if lag]
    unknown = lags.count(None)
    facts = []
    if behind:
        facts.append(f"{len(behind)} behind, the furthest by {max(behind)} records")
    if unknown:
        facts.append(f"{unknown} not read yet")
    count = "1 standby" if len(lags) == 1 else f"{len(lags)} standbys"
    return f"keeps {count}: {', '.join(facts) or 'all caught up'}"


def listed(names: Sequence[str]) -> str:
    """Return the first twenty names, and how many more there are."""
    more = f" and {len(names) - _IDS_SHOWN} more" if len(names) > _IDS_SHOWN else ""
    return ", ".join(names[:_IDS_SHOWN]) + more


def waits(status: ShownStatus, container: ShownContainer) -> Iterator[str]:
    """Yield what the processor waits for, each a part of a sentence to follow "waits"."""
    yield from container.waits
    yield from _in_its_phase(status, container)
    yield from _unaccounted(status, container)
    yield from _missing(status, container)
    yield from _waits_in_turn(status, container)
    owners = () if status.change is None else status.change.waits.get(container.processor_id, ())
    if owners:
        yield f"for the stop of {', '.join(owners)}, which own tasks of it"
    if container.last_host in status.excluded_hosts:
        yield f"while {container.last_host} is not asked, as its launchers fell silent"


def _in_its_phase(status: ShownStatus, container: ShownContainer) -> Iterator[str]:
    phase, wanted = container.phase, container.requested_host
    if phase is Phase.REQUESTED:
        yield f"for a container on {wanted or 'any host'}"
    elif phase is Phase.ALLOCATED:
        yield f"for the launcher on {wanted or 'any host'} to check in"
    elif phase is Phase.ASSIGNED:
        yield f"for the next check-in of its launcher on {container.host}"
    elif phase is Phase.QUEUED and wanted:
        yield f"for its turn at {wanted}, which another requests"
    elif phase is Phase.QUEUED and not status.hosts:
        yield "for the ResourceManager to name its hosts"
    elif phase is Phase.BACKING_OFF:
        yield "for its retry delay to pass"
    elif phase is Phase.STARTING:
        yield "for its report that its stores are restored"
    elif phase is Phase.STOPPING:
        yield "for the evidence that it has stopped"


def _unaccounted(status: ShownStatus, container: ShownContainer) -> Iterator[str]:
    names = status.unaccounted
    if names and container.phase is Phase.QUEUED:
        yield (
            f"until it is known whether {listed(names)} still "
            f"run{'s' if len(names) == 1 else ''}, permitted by an earlier driver"
        )


def _missing(status: ShownStatus, container: ShownContainer) -> Iterator[str]:
    found = status.waiting
    if found is None:
        return
    for waiter in found.processors:
        if waiter.processor_id != container.processor_id:
            continue
        begun = f" since {moment(waiter.since_ms)} UTC" if waiter.since_ms else ""
        obstacles = {**waiter.obstacles, **{h: why for h, why in found.hosts.items() if why}}
        shut = "; ".join(f"{host} {why}" for host, why in obstacles.items())
        size = f"{found.needs.memory_mb} MB and {counted(found.needs.cores, 'core')}"
        yield f"for {size}{begun}: {shut or 'nothing is known to be in the way'}"


def _waits_in_turn(status: ShownStatus, container: ShownContainer) -> Iterator[str]:
    name = container.processor_id
    for each in status.failovers:
        if each.active == name and each.waits_for:
            yield f"for the stop of its standby {each.standby} on {each.host}, whose place it takes"
        elif each.active == name:
            yield f"to start on {each.host or 'any host'}, as it fails over"
        elif each.standby == name and each.waits_for:
            yield f"until it has made way on {each.host} for processor {each.active}"
    for placement in status.placements:
        if placement.processor_id == name:
            yield f"for {command(placement)}"


def command(placement: ShownPlacement) -> str:
    """Return an operator's open command, with what it waits for."""
    text = f"an operator's command to {placement.destination}: {placement.step}"
    return f"{text}, {placement.waits}" if placement.waits else text
