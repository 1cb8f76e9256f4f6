"""What must hold of the whole state after every step, as sentences.

PURE and cheap: the shell calls ``check_step`` after every step in production, the tests too. A
broken one is a bug of ours; it ends the AM attempt with its story.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from homeport.appmaster.allocation import constraints
from homeport.appmaster.allocation.events import Timer, named
from homeport.appmaster.allocation.exclusion import suspects_itself
from homeport.appmaster.allocation.occupancy import counted, occupancy_of
from homeport.appmaster.allocation.state import (
    ASKING,
    LIVE,
    TERMINAL,
    WAITING,
    AllocatorState,
    ContainerPhase,
    ContainerState,
    EarlyPhase,
    JobPhase,
    check_in_timer,
    exclusion_timer,
    expiry_timer,
    retry_delay_timer,
    retry_window_timer,
    silence_timer,
)
from homeport.config.errors import InvariantViolation
from homeport.job_coordinator.model.incarnation import Incarnation

_HOLDING = LIVE | {ContainerPhase.ASSIGNED}


def check(state: AllocatorState) -> None:
    """Nothing, if ``state`` is sound.

    Raises:
        InvariantViolation: it is not; the message names every broken sentence, and shows the state.
    """
    _raise_if_any([*_of_containers(state), *_of_sharing(state), *_of_job(state)], state, "")


def check_step(before: AllocatorState, after: AllocatorState, story: str) -> None:
    """Nothing, if ``after`` is sound and may follow ``before``; ``story`` tells what came between.

    Raises:
        InvariantViolation: as ``check``, with the story.
    """
    broken = [*_of_containers(after), *_of_sharing(after), *_of_job(after)]
    _raise_if_any([*broken, *_of_succession(before, after)], after, story)


def _raise_if_any(broken: list[str], state: AllocatorState, story: str) -> None:
    if broken:
        lines = [*broken, *(["after: " + story] if story else []), f"job: {state.phase.value}"]
        lines += [f"timers: {', '.join(sorted(map(str, state.timers))) or 'none'}"]
        lines += [str(part) for part in (*state.containers, *state.resources)]
        raise InvariantViolation("\n  ".join(lines))


def _of_containers(state: AllocatorState) -> Iterator[str]:
    for container in state.containers:
        name = f"processor {container.processor_id}"
        if (container.phase in _HOLDING) != (container.resource_id is not None):
            yield f"{name} holds a resource exactly when assigned, starting, running or stopping"
        if (container.phase in ASKING) != (container.request_id is not None):
            yield f"{name} has a request exactly when requested or allocated"
        if container.wanted is not None and container.phase not in ASKING | {ContainerPhase.QUEUED}:
            yield f"{name} wants a host only while it seeks one"
        unfenced = [predecessor.incarnation for predecessor in container.unfenced]
        if container.phase in LIVE and container.incarnation not in unfenced:
            yield f"{name} will be fenced by its successor while it runs"
        if any(
            i.processor_id == container.processor_id and i.epoch > container.epoch for i in unfenced
        ):
            yield f"{name} has fenced no incarnation of its future"
        if container.phase in LIVE and container.incarnation in container.fence:
            yield f"{name} does not fence itself"
    yield from _of_overtaken(state)


def _of_overtaken(state: AllocatorState) -> Iterator[str]:
    live = {c.incarnation: c for c in state.containers if c.phase in LIVE}
    for container in state.containers:
        name = f"processor {container.processor_id}"
        if container.is_retired and container.phase is not ContainerPhase.STOPPING:
            yield f"retired {name} is there only until it has stopped"
        if container.phase in LIVE and container.is_overtaken:
            live.pop(container.incarnation)
            if container.phase is not ContainerPhase.STOPPING:
                yield f"{name}, which a model has overtaken, stops"
    for container in state.containers:
        for incarnation in (predecessor.incarnation for predecessor in container.unfenced):
            owner = live.get(incarnation)
            if owner is not None and owner is not container:
                yield f"{named(incarnation)} is well and will be fenced by nobody"


def _of_sharing(state: AllocatorState) -> Iterator[str]:
    known = {r.resource_id: r for r in state.resources}
    held = [c.resource_id for c in state.containers if c.resource_id is not None]
    if len(set(held)) < len(held):
        yield "no two containers are on one resource"
    for resource_id in held:
        if resource_id not in known:
            yield f"a held resource is known: {resource_id}"
        elif known[resource_id].is_released:
            yield f"a held resource is not released: {resource_id}"
    requests = Counter(c.request_id for c in state.containers if c.request_id is not None)
    if any(count > 1 for count in requests.values()):
        yield "a request is for one container"
    if any(request_id >= state.next_request_id for request_id in requests):
        yield "the next request's number has not been used"
    strict = Counter(
        c.wanted for c in state.containers if c.phase is ContainerPhase.REQUESTED and c.wanted
    )
    strict.update(e.host for e in state.early if e.phase is EarlyPhase.ASKED)
    if any(count > 1 for count in strict.values()):
        yield "at most one strict request is outstanding per host"


def _of_job(state: AllocatorState) -> Iterator[str]:
    phases = {c.phase for c in state.containers}
    if state.timers != _timers_needed(state):
        needed = ", ".join(sorted(map(str, _timers_needed(state)))) or "none"
        yield f"timers are armed exactly where a phase needs them: {needed}"
    if (state.ending is not None) != (state.phase in {JobPhase.ENDING, JobPhase.ENDED}):
        yield "the result stands exactly when the job is ending or has ended"
    if state.phase is JobPhase.ACTIVE and phases <= TERMINAL:
        yield "a job whose containers all came to their end, ends"
    if state.phase is JobPhase.ENDING and (phases & WAITING or phases <= TERMINAL):
        yield "a job that ends waits for stops, and for nothing else"
    if state.phase is JobPhase.ENDED and not phases <= TERMINAL:
        yield "nothing runs when the job has ended"
    if state.phase is JobPhase.ACTIVE and state.hosts is not None:
        asked = constraints.asked_hosts(state.containers, state.early)
        for container in state.containers:
            if container.phase is ContainerPhase.QUEUED and container.wanted not in asked:
                yield f"processor {container.processor_id} is queued for a host being asked for"
    yield from _of_idle_launchers(state)
    yield from _of_hosts(state)
    yield from _of_tables(state)


def _of_tables(state: AllocatorState) -> Iterator[str]:
    tables = (state.containers, state.resources, state.early, state.exclusions)
    if not all(table.is_filed_well() for table in tables):
        yield "every row is found by its facets"
    if occupancy_of(state) != counted(state):
        yield "idle launchers and loads are as a look at every row finds them"


def _of_hosts(state: AllocatorState) -> Iterator[str]:
    hosts = set(state.hosts or ())
    if {*state.silent, *(e.host for e in state.exclusions)} - hosts:
        yield "silence is remembered of live hosts only"
    if hosts and len(state.exclusions) == len(hosts) == 1:
        yield "the only host is never excluded"
    asked = [c.wanted for c in state.containers if c.phase in ASKING]
    asked += [e.host for e in state.early if e.phase is not EarlyPhase.OVER]
    for exclusion in state.exclusions:
        if asked.count(exclusion.host) > exclusion.is_probed:
            yield f"excluded {exclusion.host} is asked for one probe at most"
        if exclusion.host in state.silent and suspects_itself(state.silent, hosts):
            yield f"{exclusion.host} is not excluded while we suspect ourselves"
    for early in state.early:
        container = state.container(early.processor_id)
        launcher = container and container.resource_id and state.resource(container.resource_id)
        if not launcher or launcher.ended is None:
            yield f"home is asked early for {early.processor_id} only while evidence is awaited"


def _of_idle_launchers(state: AllocatorState) -> Iterator[str]:
    seeking = [c for c in state.containers if c.phase in ASKING | {ContainerPhase.QUEUED}]
    if state.phase is JobPhase.ACTIVE and (seeking or state.early):
        return
    held = {c.resource_id for c in state.containers}
    for launcher in state.resources:
        if launcher.resource_id not in held and not launcher.is_released and not launcher.ended:
            yield f"{launcher.resource_id} is kept idle only while somebody seeks a resource"


def _timers_needed(state: AllocatorState) -> frozenset[Timer]:
    needed: set[Timer] = set()
    for container in state.containers:
        if container.request_id is not None:
            is_requested = container.phase is ContainerPhase.REQUESTED
            timer = expiry_timer if is_requested else check_in_timer
            needed.add(timer(container.request_id))
        if container.phase is ContainerPhase.RESTING:
            needed.add(retry_delay_timer(container.processor_id))
        if container.failures and _counts_failures(state, container):
            needed.add(retry_window_timer(container.processor_id))
    for early in state.early:
        if early.phase is not EarlyPhase.OVER:
            timer = expiry_timer if early.phase is EarlyPhase.ASKED else check_in_timer
            needed.add(timer(early.request_id))
    needed |= {silence_timer(host) for host in state.silent}
    needed |= {exclusion_timer(e.host) for e in state.exclusions if not e.is_probed}
    return frozenset(needed)


def _counts_failures(state: AllocatorState, container: ContainerState) -> bool:
    return state.phase is JobPhase.ACTIVE and container.phase not in TERMINAL


def _of_succession(before: AllocatorState, after: AllocatorState) -> Iterator[str]:
    yield from _of_job_succession(before, after)
    now = {c.processor_id: c for c in after.containers}
    is_changed = before.model_version != after.model_version
    live = {c.incarnation for c in before.containers if c.phase in LIVE}
    for old in before.containers:
        new = now.get(old.processor_id)
        if new is None:
            if not is_changed and not old.is_retired:
                yield f"processor {old.processor_id} does not vanish"
            continue
        if new.epoch not in {old.epoch, old.next_epoch}:
            yield f"the epoch of processor {old.processor_id} stays or is the next one"
        elif new.epoch > old.epoch:
            yield from _of_permit(old, live)
        if old.phase in TERMINAL and new.phase is not old.phase and not is_changed:
            yield f"processor {old.processor_id} does not leave its end"


def _of_job_succession(before: AllocatorState, after: AllocatorState) -> Iterator[str]:
    jobs = list(JobPhase)
    if jobs.index(after.phase) < jobs.index(before.phase):
        yield f"a job never goes back from {before.phase.value} to {after.phase.value}"
    if after.next_request_id < before.next_request_id:
        yield "a request's number is never used again"
    if before.ending is not None and after.ending != before.ending:
        yield "the result, once decided, stands"
    if after.model_version < before.model_version:
        yield "a model is not taken back"


def _of_permit(old: ContainerState, live: AbstractSet[Incarnation]) -> Iterator[str]:
    name = f"processor {old.processor_id}"
    if old.phase in LIVE:
        yield f"{name} is permitted again only after it stopped"
    if old.is_retired:
        yield f"retired {name} is not permitted any more"
    for incarnation in sorted(live & {p.incarnation for p in old.unfenced} - {old.incarnation}):
        yield f"{name} is permitted only after the former owner {named(incarnation)} stopped"
