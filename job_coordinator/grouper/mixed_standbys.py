"""Standbys of standalone processors: each has active tasks, and standbys of other ones' tasks.

PURE. ``on_backups`` is called before the grouper of tasks: a task whose processor is gone counts as
a task of a processor that has its standby. ``with_mixed_standbys`` is called after it: it adds the
standby tasks.

Invariant-1 holds always: no location has two replicas of one task. A replica without a further
location is left out. Within that, the sizes of processors (active and standby tasks) differ by at
most one wherever moves of standbys, single or in a chain, can bring that about. A standby moves for
no other reason.

Source: STANDBY, part 4.
"""

import heapq
import itertools
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from homeport.job_coordinator.grouper.previous_assignment import PreviousAssignment
from homeport.job_coordinator.grouper.standby_models import clash, standby_task
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import ContainerModel, TaskModel

_COMPARED = 8
_Replica = tuple[TaskName, TaskName]
"""(the active task, the standby's own name)"""
_Moves = dict[ProcessorId, tuple[ProcessorId, _Replica] | None]
"""{to: (from, standby)}; None: where a chain of moves begins."""


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

    def run(self) -> dict[TaskName, ProcessorId]:
        for task in self.candidates:
            self._place(task)
        return {task: p for p, tasks in self._of.items() for task in sorted(tasks)}

    def _place(self, first: TaskName) -> None:
        came: dict[ProcessorId, tuple[ProcessorId | None, TaskName | None]] = {}
        queue: deque[ProcessorId] = deque()

        def reach(to: ProcessorId, source: ProcessorId | None, task: TaskName | None) -> None:
            if to not in came:
                came[to] = (source, task)
                queue.append(to)

        for candidate in self.candidates[first]:
            reach(candidate, None, first)
        while queue:
            at = queue.popleft()
            if self._has_room(at):
                self._move_along(at, came)
                return
            for further, task in self._moves(at):
                reach(further, at, task)

    def _moves(self, at: ProcessorId) -> Iterator[tuple[ProcessorId, TaskName | None]]:
        """Yield where a task may go; with None, a processor that must give one up."""
        for task in sorted(self._of[at]):
            for candidate in self.candidates[task]:
                yield candidate, task
        if at in self.may_grow and len(self._of[at]) == self.room[at]:
            for other in sorted(self._of):
                if len(self._of[other]) > self.room[other]:
                    yield other, None

    def _has_room(self, at: ProcessorId) -> bool:
        count = len(self._of[at])
        if count < self.room[at]:
            return True
        used = sum(len(tasks) > self.room[p] for p, tasks in self._of.items())
        return count == self.room[at] and at in self.may_grow and used < self.extras

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
            at = source


# --- where standbys are


def with_mixed_standbys(
    active: Mapping[ProcessorId, ContainerModel],
    locations: Mapping[ProcessorId, Host],
    before: PreviousAssignment,
    replicas: int,
) -> dict[ProcessorId, ContainerModel]:
    """Return the containers, each with its active tasks and with standbys of other ones' tasks.

    ``active``: the containers with their active tasks; processors without one may be left out.
    ``locations``: the processors there are, each with its location. ``replicas``: standbys of each
    task, as far as there are locations.

    ConfigError: an active task has the name that a standby would get.
    """
    owners = {name: p for p, container in active.items() for name in container.tasks}
    tasks = {name: task for c in active.values() for name, task in c.tasks.items()}
    dealing = _Dealing(owners, locations)
    ordered = sorted(tasks, key=lambda task: (owners[task], task))
    made = [standby_task(tasks[name], number) for number in range(replicas) for name in ordered]
    standbys: dict[_Replica, TaskModel] = {(s.state_of, s.task_name): s for s in made}
    rest = []
    for replica in standbys:
        was = before.standbys.get(replica[0], {}).get(replica[1])
        if was is None or not dealing.keep(replica, was):
            rest.append(replica)
    dealing.deal(rest, before)
    dealing.level()
    containers = {}
    for processor_id in sorted(locations):
        own = dict(active[processor_id].tasks) if processor_id in active else {}
        for replica in dealing.of(processor_id):
            if replica[1] in tasks:
                raise clash("task", replica[1])
            own[replica[1]] = standbys[replica]
        if own:
            by_name = {name: own[name] for name in sorted(own)}
            containers[processor_id] = ContainerModel(processor_id, by_name)
    return containers


class _Dealing:
    """Standbys on processors; ``owners`` {task: its processor}."""

    def __init__(
        self, owners: Mapping[TaskName, ProcessorId], locations: Mapping[ProcessorId, Host]
    ) -> None:
        self._owners = owners
        self._at = locations
        self._of: dict[ProcessorId, list[_Replica]] = {p: [] for p in sorted(locations)}
        self._load = Counter(dict.fromkeys(self._of, 0))
        self._load.update(owners.values())
        self._active = Counter(owners.values())
        self._near: defaultdict[ProcessorId, Counter[ProcessorId]] = defaultdict(Counter)
        """{processor: how many standbys each one has of its tasks}"""
        self._taken = {task: {locations[p]} for task, p in owners.items()}

    def of(self, processor_id: ProcessorId) -> list[_Replica]:
        return self._of[processor_id]

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

        def rank(p: ProcessorId) -> tuple[int, int, bool, ProcessorId]:
            # Behind the owner first, so that not all begin with the same one.
            return (load[p], active.get(p, 0) + near.get(p, 0), p < owner, p)

        self._add(replica, min(legal, key=rank))
        return True

    def deal(self, replicas: Sequence[_Replica], before: PreviousAssignment) -> None:
        there: dict[Host, list[ProcessorId]] = {}
        for processor_id in self._of:
            there.setdefault(self._at[processor_id], []).append(processor_id)
        share = -(-(self._load.total() + len(replicas)) // len(self._of))
        heap = [(self._load[p], number, p) for number, p in enumerate(self._of)]
        heapq.heapify(heap)
        for replica in replicas:
            task, name = replica
            hosts = (before.task_hosts.get(name), before.task_hosts.get(task))
            for host in hosts:
                near = [p for p in there.get(host, ()) if self._load[p] < share] if host else []
                if near and self.put(replica, near):
                    break
            else:
                self._deal_anywhere(replica, heap)

    def _deal_anywhere(self, replica: _Replica, heap: list[tuple[int, int, ProcessorId]]) -> None:
        """Give it to a processor with the least load; ``heap`` has each processor once.

        A few processors are compared, so that a large job does not take long. A load that has
        grown since, as by a standby that went to its files, is corrected in ``heap`` first: else
        processors that are still in it would be passed over, however free they are.
        """
        taken, loads, places = self._taken[replica[0]], self._load, self._at
        seen: list[tuple[int, ProcessorId]] = []
        legal: list[ProcessorId] = []
        while heap and len(legal) < _COMPARED:
            load, number, p = heap[0]
            if load != loads[p]:
                heapq.heapreplace(heap, (loads[p], number + len(places), p))
                continue
            if legal and load > loads[legal[0]]:
                break
            heapq.heappop(heap)
            if places[p] not in taken:
                legal.append(p)
            seen.append((number, p))
        self.put(replica, legal)
        for number, p in seen:
            heapq.heappush(heap, (loads[p], number + len(places), p))

    def level(self) -> None:
        while self._move_one() or self._move_chain():
            pass

    def _move_one(self) -> bool:
        by_load = sorted(self._of, key=lambda p: (self._load[p], p))
        lowest = self._load[by_load[0]]
        sources = [p for p in reversed(by_load) if self._load[p] - lowest > 1]
        for source, target in itertools.product(sources, by_load):
            if self._load[source] - self._load[target] > 1:
                replica = next(self._movable(source, target), None)
                if replica is not None:
                    self._remove(replica, source)
                    self._add(replica, target)
                    return True
        return False

    def _move_chain(self) -> bool:
        most = max(self._load.values())
        if most - min(self._load.values()) <= 1:
            return False
        came: _Moves = {p: None for p in sorted(self._load) if self._load[p] == most}
        todo = deque(came)
        while todo:
            at = todo.popleft()
            on_the_way = {replica[0] for _, replica, _ in _chain(came, at)}
            for target in sorted(self._of.keys() - came.keys()):
                found = (r for r in self._movable(at, target) if r[0] not in on_the_way)
                replica = next(found, None)
                if replica is None:
                    continue
                came[target] = at, replica
                if self._load[target] < most - 1:
                    for source, moved, to in _chain(came, target):
                        self._remove(moved, source)
                        self._add(moved, to)
                    return True
                todo.append(target)
        return False

    def _movable(self, source: ProcessorId, target: ProcessorId) -> Iterator[_Replica]:
        place, own = self._at[target], self._at[source]

        def order(replica: _Replica) -> tuple[int, int, _Replica]:
            owner = self._owners[replica[0]]
            return (self._near[owner][target], -self._near[owner][source], replica)

        for replica in sorted(self._of[source], key=order):
            if place == own or place not in self._taken[replica[0]]:
                yield replica

    def _add(self, replica: _Replica, at: ProcessorId) -> None:
        self._of[at].append(replica)
        self._load[at] += 1
        self._near[self._owners[replica[0]]][at] += 1
        self._taken[replica[0]].add(self._at[at])

    def _remove(self, replica: _Replica, at: ProcessorId) -> None:
        self._of[at].remove(replica)
        self._load[at] -= 1
        self._near[self._owners[replica[0]]][at] -= 1
        self._taken[replica[0]].discard(self._at[at])


def _chain(came: _Moves, at: ProcessorId) -> Iterator[tuple[ProcessorId, _Replica, ProcessorId]]:
    """Yield (from, standby, to) of the moves that end at a processor, the last one first."""
    while (move := came[at]) is not None:
        yield *move, at
        at = move[0]
