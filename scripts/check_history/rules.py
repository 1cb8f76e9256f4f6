"""The rules. Each yields a sentence for each place where a run broke it.

A process may be stopped between a fact and its writing down, so times are used only in the
direction in which that does no harm: a transaction counts as later than a fence only where it
*began* after the fence was complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise

from .model_rules import (
    changes_stop_whom_they_change,
    containers_have_their_tasks,
    failovers_move_lost_tasks_alone,
    owners_have_stopped,
)
from .offset_rules import offsets_go_on
from .reading import EVENTS, TRANSACTIONS, Event
from .run import COMMITTED, ENDING, Incarnation, Run
from .version_rules import versions_go_on

_BOTH = frozenset({EVENTS, TRANSACTIONS})
_ONLY_EVENTS = frozenset({EVENTS})


@dataclass(frozen=True)
class Rule:
    """A name that says what must hold, and the function that finds where it does not.

    ``of``: the kinds of lines that it looks at: where some are gone, it is judged in part.
    """

    name: str
    judge: Callable[[Run], Iterator[str]]
    of: frozenset[str] = _BOTH

    def is_partial(self, run: Run) -> bool:
        """Return whether it may have been broken in what is gone."""
        return not self.of.isdisjoint(run.job.trimmed)


def whole_lines(run: Run) -> Iterator[str]:
    """Check that a killed process leaves at most a torn last line; anything else is damage."""
    yield from run.job.damaged


def one_writer(run: Run) -> Iterator[str]:
    """Check that a container has seen or fenced all earlier writers before it writes for a task."""
    for index, newer in enumerate(run.incarnations):
        begin = newer.own_began_at
        if begin is None or not run.is_whole(newer):
            continue
        earlier = run.incarnations[:index]
        # What a container in between had fenced by then stays fenced.
        fenced = set(newer.fences).union(
            *(o.fences for o in earlier if not run.is_after(o.own_began_at or begin, begin))
        )
        for older in earlier:
            end = older.ended_at
            if end is None or older.key in fenced or not older.shares_task(newer):
                continue
            if not run.has_permit(older):
                continue  # what fenced it may be gone
            if run.is_after(end, begin):
                yield (
                    f"{newer} began at {begin} ms without fencing {older}, which lived until "
                    f"{end} ms"
                )


def fenced_stay_out(run: Run) -> Iterator[str]:
    """Check that nothing of an incarnation is committed once its successor has fenced it."""
    known = {incarnation.key: incarnation for incarnation in run.incarnations}
    for newer in run.incarnations:
        fenced = newer.one("container", "fenced")
        if fenced is None:
            continue
        for key in sorted(newer.fences & known.keys()):
            for transaction in known[key].transactions:
                if transaction.committed and run.is_after(transaction.began_at, fenced.at):
                    yield (
                        f"{known[key]} committed a transaction begun at {transaction.began_at} ms, "
                        f"after {newer} had fenced it at {fenced.at} ms "
                        f"({transaction.committed.place})"
                    )


def epochs_grow(run: Run) -> Iterator[str]:
    """Check that epochs grow from permit to permit, and no two processes have the same one."""
    highest: dict[str, Event] = {}
    for event in run.job.events:
        if event.name != "permit-granted" or event.processor_id is None or event.epoch is None:
            continue
        before = highest.get(event.processor_id)
        if before is not None and event.epoch < (before.epoch or 0):
            yield (
                f"processor {event.processor_id}: epoch {event.epoch} was permitted after epoch "
                f"{before.epoch} ({event.place})"
            )
        else:
            highest[event.processor_id] = event
    for incarnation in run.incarnations:
        granted = incarnation.all("driver", "permit-granted")
        resources = {str(event.fields.get("resource")) for event in granted}
        if len(resources) > 1:
            yield f"{incarnation} was permitted to {len(resources)} launchers: {sorted(resources)}"
        users = {(event.host, event.pid) for event in incarnation.own}
        if len(users) > 1:
            yield f"{incarnation} was used by {len(users)} processes: {sorted(users)}"
        children = incarnation.all("launcher", "child-started")
        if len(children) > 1:
            yield f"{incarnation} was started {len(children)} times"


_CHAIN = (
    ("driver", "permit-granted"),
    ("launcher", "permit-received"),
    ("launcher", "child-started"),
    ("container", "fenced"),
    ("container", "restore-started"),
    ("container", "restore-finished"),
    ("container", "locality-written"),
    ("container", "started"),
    ("container", ENDING),
    ("container", COMMITTED),
)
#: What must be there before a container may do anything that comes after it.
_REQUIRED = (
    ("driver", "permit-granted"),
    ("launcher", "permit-received"),
    ("launcher", "child-started"),
    ("container", "fenced"),
    ("container", "started"),
)


def order_of_a_start(run: Run) -> Iterator[str]:
    """Check the order: permit granted, received, child, fence, restore, locality, start, input."""
    for incarnation in filter(run.is_whole, run.incarnations):
        steps = [(name, incarnation.all(role, name)) for role, name in _CHAIN]
        for (name, events), (following, later) in pairwise([s for s in steps if s[1]]):
            # All of a step, the many restores for instance, lie before all of the next; restores
            # of several stores and transactions come in turns.
            last = events[0] if _comes_in_turns(name, following) else events[-1]
            if run.is_after(last.at, later[0].at):
                yield (
                    f"{incarnation}: {following} at {later[0].at} ms came before {name} at "
                    f"{last.at} ms ({later[0].place})"
                )
        yield from _missing(run, incarnation)


def _comes_in_turns(name: str, following: str) -> bool:
    return (name, following) in {("restore-started", "restore-finished"), (ENDING, COMMITTED)} or (
        # A driver that adopts a launcher may record its permit again.
        name == "permit-granted"
    )


def _missing(run: Run, incarnation: Incarnation) -> Iterator[str]:
    by_user = incarnation.key[0] in run.standalone
    for role, name in _REQUIRED:
        if by_user and role != "container":
            continue
        after = _CHAIN[_CHAIN.index((role, name)) + 1 :]
        later = [e for r, n in after for e in incarnation.all(r, n)]
        if later and not incarnation.all(role, name) and run.has_role(role):
            first = min(later, key=lambda event: event.at)
            yield f"{incarnation}: {first.name} without {name} ({first.place})"


def locality_is_true(run: Run) -> Iterator[str]:
    """Check that a locality names the container's host, as its launcher and its AM know it."""
    for incarnation in run.incarnations:
        for written in incarnation.all("container", "locality-written"):
            said = written.fields.get("locality", written.host)
            received = incarnation.one("launcher", "permit-received")
            granted = incarnation.one("driver", "permit-granted")
            hosts = {
                "its process says": written.host,
                "its launcher says": received.host if received else None,
                "its permit says": granted.fields.get("on_host") if granted else None,
            }
            for source, host in hosts.items():
                if host is not None and host != said:
                    yield f"{incarnation}: locality {said}, {source} {host} ({written.place})"
    yield from _hosts_and_directories(run)


def _hosts_and_directories(run: Run) -> Iterator[str]:
    roots: dict[str, set[str]] = {}
    for event in run.job.events:
        roots.setdefault(event.host, set()).add(str(event.root))
    for host, found in sorted(roots.items()):
        if len(found) > 1:
            yield f"{host} wrote its history below {len(found)} directories: {sorted(found)}"


def recoveries_are_whole(run: Run) -> Iterator[str]:
    """Check that a recovery is its phases, and is over only once its container has fenced."""
    for incarnation in run.incarnations:
        for event in incarnation.all("driver", "recovered"):
            phases_ms, total_ms = event.fields.get("phases_ms", {}), event.fields.get("total_ms")
            if sum(phases_ms.values()) != total_ms or min(phases_ms.values(), default=0) < 0:
                yield f"the recovery of {incarnation} took {total_ms} ms, its phases {phases_ms}"
            # The container reports its start to the driver before it records the start.
            fenced = incarnation.one("container", "fenced")
            is_known = fenced is not None or run.is_whole(incarnation)
            if incarnation.own and is_known and _is_later(run, fenced, event):
                yield f"{incarnation} was called recovered before it had fenced ({event.place})"


def _is_later(run: Run, event: Event | None, than: Event) -> bool:
    return event is None or run.is_after(event.at, than.at)


def active_and_standby_apart(run: Run) -> Iterator[str]:
    """Check invariant 1: an active and its standby never live on one host."""
    for active, standby in _pairs(run):
        if _together(run, standby, active) and _began(standby) >= _began(active):
            yield f"{standby} began on {_host(standby)} while its active, {active}, lived there"


def standby_stops_first(run: Run) -> Iterator[str]:
    """Check invariant 2: an active starts on its standby's host only when that has stopped."""
    for active, standby in _pairs(run):
        if _together(run, standby, active) and _began(standby) < _began(active):
            yield f"{active} began on {_host(active)} before its standby, {standby}, had stopped"


def _pairs(run: Run) -> Iterator[tuple[Incarnation, Incarnation]]:
    """(active, standby) that ran; a standby says so: processor_role, active_processor_id."""
    for one, other in combinations(run.incarnations, 2):
        for active, standby in ((one, other), (other, one)):
            if standby.is_standby and standby.said("active_processor_id") == active.key[0]:
                yield active, standby


def _together(run: Run, one: Incarnation, other: Incarnation) -> bool:
    if not one.own or not other.own or _host(one) != _host(other):
        return False
    first, second = sorted((one, other), key=_began)
    return run.is_after(first.ended_at or 0, _began(second))


def _began(incarnation: Incarnation) -> int:
    return incarnation.own_began_at or 0


def _host(incarnation: Incarnation) -> str:
    return incarnation.own[0].host


RULES = (
    Rule("history lines are whole", whole_lines, frozenset()),
    Rule("one writer per task at a time", one_writer),
    Rule("nothing of a fenced incarnation is committed", fenced_stay_out),
    Rule("epochs grow, each used by one process", epochs_grow, _ONLY_EVENTS),
    Rule("the steps of a start come in their order", order_of_a_start),
    Rule("input offsets never go back and never skip", offsets_go_on),
    Rule("adjunct stores: one whole version in a batch, none older", versions_go_on),
    Rule("localities are true", locality_is_true, _ONLY_EVENTS),
    Rule("a task's owners have stopped before the next is permitted", owners_have_stopped),
    Rule(
        "a new JobModel stops only the containers that it changes",
        changes_stop_whom_they_change,
        _ONLY_EVENTS,
    ),
    Rule("containers have the tasks of their JobModel", containers_have_their_tasks, _ONLY_EVENTS),
    Rule(
        "a failover of mixed containers moves only lost tasks",
        failovers_move_lost_tasks_alone,
        _ONLY_EVENTS,
    ),
    Rule("the phases of a recovery are the whole", recoveries_are_whole, _ONLY_EVENTS),
    Rule("Invariant 1: active and standby on different hosts", active_and_standby_apart),
    Rule("Invariant 2: a standby stops before its active starts there", standby_stops_first),
)
