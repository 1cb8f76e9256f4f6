"""Which queued containers a step has to place again.

PURE. Theory. A queued container names a host, and waits until no request for that host is
outstanding. Then the first container in the host's queue is placed again: actives before standbys,
then by id. A container is also placed again when

- it, or a container of its group, has changed, or has lost the launcher reserved for it;
- its host was excluded, or its home is open again; without a host: any exclusion changed, or, if
  its tasks have failed over, any host is open again;
- a launcher that it may have has become idle;
- a less loaded host is free, and no container waits for that one;
- it waits for its home, and the last container has left another host.

Each report of hosts, each change of settings and each JobModel makes all of them due. So the cost
of a step depends on what it changes, not on the length of the queue.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from homeport.appmaster.allocation import separation
from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.state import (
    NOWHERE,
    WITHOUT_TASKS,
    ContainerPhase,
    Containers,
    ContainerState,
    EarlyPhase,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId


def due(draft: Draft, done: AbstractSet[ProcessorId]) -> list[ContainerState]:
    """Return the containers to place now, by id.

    ``done``: those that this step has placed; one of them comes again if its host is free.
    """
    if draft.is_everybody_due:
        found = set(draft.containers.indexed(Containers.PHASE, ContainerPhase.QUEUED))
    else:
        found = {*_touched(draft), *_of_exclusions(draft), *_of_empty_hosts(draft)}
    found -= done
    found |= {*_of_free_hosts(draft, done), *_of_idle_launchers(draft, done)}
    return [draft.containers[processor_id] for processor_id in sorted(found)]


def failovers_to_review(draft: Draft) -> list[ContainerState]:
    """Return the actives that wait for their standby to stop and whose group has changed, by id.

    A standby's host is excluded only when its launcher is lost, which changes the group too.
    """
    if not draft.containers.indexed(Containers.PHASE, ContainerPhase.FAILING_OVER):
        return []
    if draft.is_everybody_due:
        return draft.containers.rows(Containers.PHASE, ContainerPhase.FAILING_OVER)
    found = {
        c.processor_id: c
        for processor_id in draft.containers.changed
        for c in _group_of(draft, processor_id)
        if c.phase is ContainerPhase.FAILING_OVER
    }
    return [found[processor_id] for processor_id in sorted(found)]


def _group_of(draft: Draft, processor_id: ProcessorId) -> list[ContainerState]:
    container = draft.containers.get(processor_id) or draft.before.containers.get(processor_id)
    return [] if container is None else draft.group(container.group)


def _touched(draft: Draft) -> Iterator[ProcessorId]:
    for processor_id in (*draft.containers.changed, *_unreserved(draft)):
        for container in _group_of(draft, processor_id):
            if container.phase is ContainerPhase.QUEUED:
                yield container.processor_id


def _unreserved(draft: Draft) -> Iterator[ProcessorId]:
    for resource_id in draft.resources.changed:
        before, now = draft.before.resources.get(resource_id), draft.resources.get(resource_id)
        reserved_for = None if before is None else before.reserved_for
        if reserved_for is not None and (now is None or now.reserved_for is None):
            yield reserved_for


def _of_exclusions(draft: Draft) -> Iterator[ProcessorId]:
    containers = draft.containers
    before, now = draft.before.exclusions, draft.exclusions
    changed = [host for host in {*before, *now} if before.get(host) != now.get(host)]
    if changed:
        yield from containers.indexed(Containers.QUEUED, NOWHERE)
    if any(now.get(host) is not False for host in changed):
        # The exclusion of another host gives one that waits for its home no further choice.
        yield from containers.indexed(Containers.QUEUED, WITHOUT_TASKS)
    for host in changed:
        yield from containers.indexed(Containers.QUEUED, host)
        for container in containers.rows(Containers.SEEKS_HOME, host):
            if container.phase is ContainerPhase.QUEUED:
                yield container.processor_id


def _of_empty_hosts(draft: Draft) -> Iterator[ProcessorId]:
    if not all(map(draft.is_closed, draft.newly_empty())):
        yield from draft.containers.indexed(Containers.QUEUED, WITHOUT_TASKS)


def _of_free_hosts(draft: Draft, done: AbstractSet[ProcessorId]) -> Iterator[ProcessorId]:
    """Yield the first container in its queue for each host whose request ended in this step.

    Where that queue is empty: a container that waits for a more loaded host.
    """
    before = (draft.before.containers.get(p) for p in draft.containers.changed)
    hosts = {
        c.requested_host for c in before if c is not None and c.phase is ContainerPhase.REQUESTED
    }
    early = (draft.before.early.get(p) for p in draft.early.changed)
    hosts |= {e.host for e in early if e is not None and e.phase is EarlyPhase.ASKED}
    for host in sorted(h for h in hosts if h is not None and not draft.is_asked(h)):
        queue = draft.containers.rows(Containers.QUEUED, host) or _worse_off(draft, host, done)
        if queue:
            yield min(queue, key=lambda c: (c.replica_of is not None, c.processor_id)).processor_id


def _worse_off(draft: Draft, host: Host, done: AbstractSet[ProcessorId]) -> list[ContainerState]:
    ranking = draft.ranking
    mine = ranking.rank_of.get(host)
    if mine is None or draft.is_closed(host) or host in draft.room.small:
        return []
    # The load of a host includes the container that waits for it.
    worse = (
        rank
        for rank in sorted(ranking.by_rank, reverse=True)
        if rank[2] and (rank[0], rank[1] - 1, rank[2]) > mine
    )
    queues = (
        draft.containers.rows(Containers.QUEUED, other)
        for rank in worse
        for other in sorted(ranking.by_rank[rank])
    )
    found = (
        [c for c in queue if c.processor_id not in done and _would_move(draft, c, host)]
        for queue in queues
    )
    return next(filter(None, found), [])


def _would_move(draft: Draft, container: ContainerState, host: Host) -> bool:
    return (
        container.requested_host != container.home
        and host not in container.tried
        and separation.may_have(draft, container, host)
    )


def _of_idle_launchers(draft: Draft, done: AbstractSet[ProcessorId]) -> Iterator[ProcessorId]:
    for resource_id in sorted(draft.newly_idle()):
        host = draft.resources[resource_id].host
        at_home = draft.containers.rows(Containers.SEEKS_HOME, host)
        away = draft.containers.each_row(Containers.SEEKS_AWAY, ContainerPhase.QUEUED)
        for container in (*at_home, *away):
            is_queued = container.phase is ContainerPhase.QUEUED
            if (
                is_queued
                and container.processor_id not in done
                and separation.may_have(draft, container, host)
            ):
                yield container.processor_id
                break
