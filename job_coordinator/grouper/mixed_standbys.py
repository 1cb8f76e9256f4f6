"""Standbys of mixed processors: each has active tasks, and standbys of other ones' tasks.

PURE. ``on_backups`` is called before the grouper of tasks: a task whose processor is gone counts as
a task of a processor that has its standby. ``with_mixed_standbys`` is called after it: it adds the
standby tasks.

Invariant-1 holds always: no location has two replicas of one task. A replica without a further
location is left out. Within that, the sizes of processors (active and standby tasks) differ by at
most one wherever moves of standbys, single or in a chain, can bring that about. A standby moves for
no other reason.

A container on YARN may have no host for now. It keeps no standby. Its tasks keep those that they
have, and get no further ones: these could take the only host that is left for it.

Source: STANDBY, part 4.
"""

import heapq
import itertools
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Self

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.job_coordinator.grouper.previous_assignment import PreviousAssignment
from homeport.job_coordinator.grouper.standby_models import clash, standby_name, standby_task
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import ContainerModel, TaskModel

_COMPARED = 8
_NO_RACKS: Mapping[Host, str] = MappingProxyType({})
_NO_TASKS: Mapping[TaskName, TaskModel] = MappingProxyType({})
_Replica = tuple[TaskName, TaskName]
"""(the active task, the standby's own name)"""
_Moves = dict[ProcessorId, tuple[ProcessorId, _Replica] | None]
"""{to: (from, standby)}; None: where a chain of moves begins."""


@dataclass(frozen=True)
class Places:
    """The processors that may have standbys, each with its host or location.

    Shapes: ``racks`` {host: its rack}, of hosts whose rack is known. ``racks_are_preferred``,
    ``racks_are_apart``: as the allocator's settings have them, for tasks in place of containers.
    """

    hosts: Mapping[ProcessorId, Host]
    racks: Mapping[Host, str] = field(default_factory=lambda: _NO_RACKS)
    racks_are_preferred: bool = False
    racks_are_apart: bool = False

    def by(self, config: Config) -> Self:
        """Return the places under the job's keys for racks."""
        return replace(
            self,
            racks_are_preferred=keys.FAULT_DOMAINS_PREFERRED.read(config),
            racks_are_apart=keys.FAULT_DOMAINS_REQUIRED.read(config),
        )

    def locations(self) -> dict[ProcessorId, Host]:
        """Return {processor: the rack or host that has no task twice}."""
        if not self.racks_are_apart:
            return dict(self.hosts)
        return {p: Host(self.racks.get(host, host)) for p, host in self.hosts.items()}


NOWHERE = Places({})
"""Where no place is known."""


# --- tasks that have lost their processor


def on_backups(
    before: PreviousAssignment, processors: Collection[ProcessorId], tasks: Collection[TaskName]
) -> PreviousAssignment:
    """Return ``before``, in which a task without its processor was where one of its standbys is.

    That is so for as many of these tasks as even sizes leave room for: no other choice of standbys
    has room for more (a maximum matching). The others stay as they were.
    """
    known = {t: p for t, p in before.task_processors.items() if t in tasks}
    lost = {
        task: sorted({p for p in before.standbys.get(task, {}).values() if p in processors})
        for task in sorted(known)
        if known[task] not in processors
    }
    if not any(lost.values()):
        return before
    kept = Counter(p for p in known.values() if p in processors)
    share, larger = divmod(len(tasks), min(len(processors), len(tasks)))
    larger -= sum(count > share for count in kept.values())
    room = {p: max(0, share - kept[p]) for p in processors}
    may_grow = {p for p in processors if kept[p] <= share}
    taken = _Matching(lost, room, may_grow, max(0, larger)).run()
    hosts = before.processor_hosts
    return replace(
        before,
        task_processors={**before.task_processors, **taken},
        task_hosts={**before.task_hosts, **{t: hosts[p] for t, p in taken.items() if p in hosts}},
    )


@dataclass
class _Matching:
    """Assigns tasks to their candidates, within the room of each, by augmenting paths.

    ``extras``: how many of the processors ``may_grow`` may have one task more than their ``room``.
    """

    candidates: Mapping[TaskName, list[ProcessorId]]
    room: Mapping[ProcessorId, int]
    may_grow: AbstractSet[ProcessorId]
    extras: int

    def __post_init__(self) -> None:
        self._of: dict[ProcessorId, set[TaskName]] = {p: set() for p in self.room}
        self._over: set[ProcessorId] = set()
        self._closed: set[ProcessorId] = set()
        """From these no path leads to room, now or later: no later path comes past them."""

    def run(self) -> dict[TaskName, ProcessorId]:
        for task in self.candidates:
            self._place(task)
        return {task: p for p, tasks in self._of.items() for task in sorted(tasks)}

    def _place(self, first: TaskName) -> None:
        came: dict[ProcessorId, tuple[ProcessorId | None, TaskName | None]] = {}
        queue: deque[ProcessorId] = deque()

        def reach(to: ProcessorId, source: ProcessorId | None, task: TaskName | None) -> None:
            if to not in came and to not in self._closed:
                came[to] = (source, task)
                queue.append(to)

        for candidate in self.candidates[first]:
            reach(candidate, None, first)
        sees_over = False
        while queue:
            at = queue.popleft()
            if self._has_room(at):
                self._move_along(at, came)
                return
            for task in sorted(self._of[at]):
                for candidate in self.candidates[task]:
                    reach(candidate, at, task)
            if self._may_grow(at) and not sees_over:
                sees_over = True
                for other in sorted(self._over):
                    reach(other, at, None)  # it must give one up
        self._closed.update(came)

    def _may_grow(self, at: ProcessorId) -> bool:
        return at in self.may_grow and len(self._of[at]) == self.room[at]

    def _has_room(self, at: ProcessorId) -> bool:
        if len(self._of[at]) < self.room[at]:
            return True
        return self._may_grow(at) and len(self._over) < self.extras

    def _move_along(
        self,
        end: ProcessorId,
        came: Mapping[ProcessorId, tuple[ProcessorId | None, TaskName | None]],
    ) -> None:
        at: ProcessorId | None = end
        while at is not None:
            source, task = came[at]
            if task is not None:
                if source is not None:
                    self._of[source].remove(task)
                self._of[at].add(task)
            for changed in (at, source):
                if changed is not None:
                    is_over = len(self._of[changed]) > self.room[changed]
                    (self._over.add if is_over else self._over.discard)(changed)
            at = source


# --- where standbys are


def with_mixed_standbys(
    active: Mapping[ProcessorId, ContainerModel],
    places: Places,
    before: PreviousAssignment,
    replicas: int,
    known: Mapping[TaskName, TaskModel] = _NO_TASKS,
) -> dict[ProcessorId, ContainerModel]:
    """Return the containers, each with its active tasks and with standbys of other ones' tasks.

    ``active``: the containers with their active tasks; processors without one may be left out.
    ``replicas``: standbys of each task, as far as there are locations. ``known``: tasks of the
    model before; a standby that is one of them is the same object, which is found at once.

    ConfigError: an active task has the name that a standby would get.
    """
    owners = {name: p for p, container in active.items() for name in container.tasks}
    tasks = {name: task for c in active.values() for name, task in c.tasks.items()}
    dealing = _Dealing(owners, places)
    standbys: dict[TaskName, TaskModel] = {}
    rest = []
    for task, active_task in tasks.items():
        were, has_host = before.standbys.get(task, {}), owners[task] in places.hosts
        for number in range(replicas):
            name = standby_name(task, number)
            if name in tasks:
                raise clash("task", name)
            standby = known.get(name)
            if standby is None or standby.mirror != active_task.mirror:
                standby = standby_task(active_task, number)
            replica = task, name
            standbys[name] = standby
            was = were.get(name)
            if not (was is not None and dealing.keep(replica, was)) and has_host:
                rest.append((number, owners[task], replica))
    dealing.deal([replica for *_, replica in sorted(rest)], before)
    dealing.level()
    containers = {}
    for processor_id in sorted({*places.hosts, *active}):
        own = dict(active[processor_id].tasks) if processor_id in active else {}
        own.update((name, standbys[name]) for _, name in dealing.of(processor_id))
        if own or processor_id in active:
            by_name = {name: own[name] for name in sorted(own)}
            containers[processor_id] = ContainerModel(processor_id, by_name)
    return containers


class LeastLoaded:
    """Processors by their load, the least first; of equal ones the one that waits longest.

    Each location has its own order, so that those closed to a standby are passed over at once,
    however many processors they have.
    """

    def __init__(
        self,
        processors: Iterable[ProcessorId],
        load: Mapping[ProcessorId, int],
        at: Mapping[ProcessorId, Host],
    ) -> None:
        self._load, self._at = load, at
        self._number = itertools.count()
        self._of: dict[Host, list[tuple[int, int, ProcessorId]]] = {}
        for p in processors:
            self._of.setdefault(at[p], []).append((load[p], next(self._number), p))
        for own in self._of.values():
            heapq.heapify(own)
        self._first = [own[0] for own in self._of.values()]
        heapq.heapify(self._first)

    def take(self, closed: Collection[Host], most: int = 1) -> list[ProcessorId]:
        """Take out the first ones, of equal load, elsewhere than at the locations ``closed``.

        A load that has grown since, as by a standby that went to its files, is corrected first.
        """
        first, loads, places = self._first, self._load, self._at
        passed, found = [], list[ProcessorId]()
        while first and len(found) < most:
            entry = first[0]
            load, _, p = entry
            own = self._of[places[p]]
            if not own or own[0] is not entry:
                heapq.heappop(first)
                continue
            if found and load > loads[found[0]]:
                break
            if load != loads[p]:
                heapq.heapreplace(own, (loads[p], next(self._number), p))
            elif places[p] in closed:
                passed.append(heapq.heappop(first))
                continue
            else:
                found.append(heapq.heappop(own)[2])
            if own:
                heapq.heapreplace(first, own[0])
            else:
                heapq.heappop(first)
        for entry in passed:
            heapq.heappush(first, entry)
        return found

    def push(self, processor_id: ProcessorId) -> None:
        """Put one back, behind others of its load."""
        own = self._of[self._at[processor_id]]
        entry = (self._load[processor_id], next(self._number), processor_id)
        heapq.heappush(own, entry)
        if own[0] is entry:
            heapq.heappush(self._first, entry)


class _Dealing:
    """Standbys on processors; ``owners`` {task: its processor}."""

    def __init__(self, owners: Mapping[TaskName, ProcessorId], places: Places) -> None:
        self._owners = owners
        self._hosts = places.hosts
        self._at = at = places.locations()
        is_soft = places.racks_are_preferred and not places.racks_are_apart
        self._racks = places.racks if is_soft else _NO_RACKS
        self._of: dict[ProcessorId, list[_Replica]] = {p: [] for p in sorted(at)}
        self._load = Counter(dict.fromkeys(self._of, 0))
        self._load.update(p for p in owners.values() if p in at)
        self._active = Counter(owners.values())
        self._near: defaultdict[ProcessorId, dict[ProcessorId, int]] = defaultdict(dict)
        """{processor: how many standbys each one has of its tasks}"""
        alone: dict[ProcessorId, tuple[Host, ...]] = {p: (place,) for p, place in at.items()}
        self._taken = {task: alone.get(p, ()) for task, p in owners.items()}
        """{task: the locations of its replicas}, few: tuples are small, and one serves many."""

    def of(self, processor_id: ProcessorId) -> list[_Replica]:
        return self._of.get(processor_id, [])

    def keep(self, replica: _Replica, at: ProcessorId) -> bool:
        if at not in self._at or self._at[at] in self._taken[replica[0]]:
            return False
        self._add(replica, at)
        return True

    def put(self, replica: _Replica, candidates: Iterable[ProcessorId]) -> bool:
        """Put it on the least loaded candidate that may have it; return whether there is one.

        Of equal candidates the one counts that would have the fewest active tasks if the task's
        processor died, and each took over the tasks of its standbys: then they find room there.
        """
        owner, taken = self._owners[replica[0]], self._taken[replica[0]]
        legal = [p for p in candidates if self._at[p] not in taken]
        if not legal:
            return False
        load, active, near = self._load, self._active, self._near[owner]
        has_racks = bool(self._racks)

        def rank(p: ProcessorId) -> tuple[int, bool, int, bool, ProcessorId]:
            # Behind the owner first, so that not all begin with the same one.
            expected = active.get(p, 0) + near.get(p, 0)
            shares_rack = has_racks and self._shares_rack(replica, p)
            return (load[p], shares_rack, expected, p < owner, p)

        self._add(replica, min(legal, key=rank))
        return True

    def deal(self, replicas: Sequence[_Replica], before: PreviousAssignment) -> None:
        if not replicas:
            return
        there: dict[Host, list[ProcessorId]] = {}
        for processor_id in self._of:
            there.setdefault(self._hosts[processor_id], []).append(processor_id)
        share = -(-(self._load.total() + len(replicas)) // len(self._of))
        least = LeastLoaded(self._of, self._load, self._at)
        for replica in replicas:
            task, name = replica
            hosts = (before.task_hosts.get(name), before.task_hosts.get(task))
            for host in hosts:
                near = [p for p in there.get(host, ()) if self._load[p] < share] if host else []
                if near and self.put(replica, near):
                    break
            else:
                self._deal_anywhere(replica, least)

    def _deal_anywhere(self, replica: _Replica, least: LeastLoaded) -> None:
        """Give it to a processor with the least load.

        A few processors are compared, so that a large job does not take long.
        """
        legal = least.take(self._taken[replica[0]], _COMPARED)
        self.put(replica, legal)
        for p in legal:
            least.push(p)

    def level(self) -> None:
        while self._move_single() or self._move_chain():
            pass

    def _move_single(self) -> bool:
        """Move standbys from the largest processors to the smallest ones that may have them."""
        least = LeastLoaded(self._of, self._load, self._at)
        sources = [(-self._load[p], number, p) for number, p in enumerate(self._of) if self._of[p]]
        heapq.heapify(sources)
        has_moved = False
        while sources:
            _, number, source = heapq.heappop(sources)
            for target in least.take(self._closed_to(source)):
                if self._load[source] - self._load[target] > 1:
                    self._move(self._best(source, target), source, target)
                    has_moved = True
                    if self._of[source]:
                        heapq.heappush(sources, (-self._load[source], number, source))
                least.push(target)
        return has_moved

    def _closed_to(self, source: ProcessorId) -> AbstractSet[Host]:
        """Return the locations that may have none of the processor's standbys."""
        return self._shared(self._of[source]) - {self._at[source]}

    def _shared(self, replicas: Iterable[_Replica]) -> set[Host]:
        """Return the locations that each of these tasks has, those of one processor's standbys."""
        found: set[Host] | None = None
        for task, _ in replicas:
            found = (
                set(self._taken[task]) if found is None else found.intersection(self._taken[task])
            )
            if len(found) == 1:
                break  # it is the processor's own, which all of them have
        return found or set()

    def _move_chain(self) -> bool:
        most = max(self._load.values(), default=0)
        if most - min(self._load.values(), default=0) <= 1:
            return False
        came: _Moves = {p: None for p in self._of if self._load[p] == most}
        there: dict[Host, list[ProcessorId]] = {}
        for processor_id in self._of:
            if processor_id not in came:
                there.setdefault(self._at[processor_id], []).append(processor_id)
        todo = deque(came)
        while todo:
            at = todo.popleft()
            on_the_way = {replica[0] for _, replica, _ in _chain(came, at)}
            for target in self._reached(at, there, on_the_way):
                came[target] = at, self._best(at, target, on_the_way)
                if self._load[target] < most - 1:
                    for source, moved, to in _chain(came, target):
                        self._move(moved, source, to)
                    return True
                todo.append(target)
        return False

    def _reached(
        self,
        at: ProcessorId,
        there: dict[Host, list[ProcessorId]],
        on_the_way: AbstractSet[TaskName],
    ) -> list[ProcessorId]:
        """Take out of ``there``, sorted, the processors that may have one of the standbys."""
        may_go = [replica for replica in self._of[at] if replica[0] not in on_the_way]
        if not may_go:
            return []
        closed = self._shared(may_go) - {self._at[at]}
        return sorted(p for place in there.keys() - closed for p in there.pop(place))

    def _shares_rack(self, replica: _Replica, at: ProcessorId) -> bool:
        rack = self._racks.get(self._hosts[at])
        taken = self._taken[replica[0]] if rack else ()
        return any(self._racks.get(other) == rack for other in taken if other != self._at[at])

    def _best(
        self, source: ProcessorId, target: ProcessorId, stay: AbstractSet[TaskName] = frozenset()
    ) -> _Replica:
        """Return the standby that is best moved, of those that may; ``stay``: none of these."""
        place, own, near = self._at[target], self._at[source], self._near
        has_racks = bool(self._racks)

        def order(replica: _Replica) -> tuple[bool, int, int, _Replica]:
            owner = self._owners[replica[0]]
            shares_rack = has_racks and self._shares_rack(replica, target)
            there = near[owner]
            return (shares_rack, there.get(target, 0), -there.get(source, 0), replica)

        found = (r for r in self._of[source] if place == own or place not in self._taken[r[0]])
        return min((r for r in found if r[0] not in stay), key=order)

    def _add(self, replica: _Replica, at: ProcessorId) -> None:
        self._of[at].append(replica)
        self._load[at] += 1
        near = self._near[self._owners[replica[0]]]
        near[at] = near.get(at, 0) + 1
        self._taken[replica[0]] += (self._at[at],)

    def _move(self, replica: _Replica, source: ProcessorId, target: ProcessorId) -> None:
        self._of[source].remove(replica)
        self._load[source] -= 1
        self._near[self._owners[replica[0]]][source] -= 1
        taken, place = self._taken[replica[0]], self._at[source]
        self._taken[replica[0]] = tuple(other for other in taken if other != place)
        self._add(replica, target)


def _chain(came: _Moves, at: ProcessorId) -> Iterator[tuple[ProcessorId, _Replica, ProcessorId]]:
    """Yield (from, standby, to) of the moves that end at a processor, the last one first."""
    while (move := came[at]) is not None:
        yield *move, at
        at = move[0]
