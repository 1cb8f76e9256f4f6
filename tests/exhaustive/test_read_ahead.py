"""Search of a change whose tasks' state is read ahead: they move when it is, or when time is over.

The world is what the job coordinator sees of it: where the new container runs, and what its standby
lacks. The product decides; each of its versions is in force at once, or only later.
"""

from __future__ import annotations

import copy
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest

from homeport.appmaster.job_model import mixed_roles, reading_ahead
from homeport.appmaster.job_model.mixed_roles import QUIET_S
from homeport.appmaster.job_model.reading_ahead import ReadingAhead
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.job_coordinator.grouper import read_ahead
from homeport.job_coordinator.grouper.mixed_standbys import Places
from homeport.job_coordinator.grouper.read_ahead import Goal
from homeport.job_coordinator.grouper.validation import first_fault
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskModel,
)
from tests.exhaustive.mutants import Patch

A, B = TaskName("a"), TaskName("b")
P0, P1, NEW = (ProcessorId(p) for p in "012")
AHEAD = TaskName("Standby-b-1")
NEAR, FAR = 5, 9
LIMIT_S = 2.0
CONFIG = Config(
    {
        "job.name": "j",
        "job.default.system": "kafka",
        "job.container.count": "2",
        "job.container.mixed-roles": "true",
        "job.standbytasks.replication.factor": "2",
        "cluster-manager.warm-move.max.records": str(NEAR),
        "cluster-manager.command.timeout.ms": str(round(LIMIT_S * 1000)),
        "stores.s.factory": "rocksdb",
        "stores.s.changelog": "kafka.s",
        "stores.s.key.serde": "string",
        "stores.s.msg.serde": "json",
    }
)
A_TASK, B_TASK = (
    TaskModel(name, (SystemStreamPartition("kafka", "in", n),), n) for n, name in enumerate((A, B))
)
HOSTS = (None, "x", "y")
"""Where the new container may be; ``x`` is the host that has the files of its task."""
MOST_CHANGES = 5
"""How often the world may change for the worse."""


BEFORE = JobModel(
    CONFIG, {P0: ContainerModel(P0, {A: A_TASK, B: B_TASK}), P1: ContainerModel(P1, {})}
)
GOAL = Goal({B: NEW}, frozenset({P0, P1, NEW}))


@dataclass(frozen=True)
class World:
    """What the coordinator sees, and what it has decided.

    ``worse``: how often something got worse.
    """

    model: JobModel
    ahead: ReadingAhead
    host: str | None = None
    lag: int | None = None
    now_s: float = 0.0
    worse: int = 0
    has_moved: bool = False

    @property
    def places(self) -> Places:
        """Where the containers run."""
        new = {} if self.host is None else {NEW: Host(self.host)}
        return Places({P0: Host("x"), P1: Host("z"), **new})

    @property
    def key(self) -> object:
        """Worlds of the same key go on alike."""
        own = {p: frozenset(c.tasks) for p, c in self.model.containers.items()}
        quiet, late_s = self.ahead._quiet, min(self.now_s - self.ahead._nearer_s, LIMIT_S)
        times = (min(self.now_s - s, QUIET_S) for s in (quiet._seen_s, quiet._new_s))
        known = (self.ahead._least, repr(quiet._done), repr(quiet._seen), *times)
        return (tuple(sorted(own.items())), self.host, self.lag, self.worse, late_s, known)


class BadWorldError(Exception):
    """The world is not as it must be."""


def judged(world: World) -> World:
    """What holds in each world.

    Raises:
        BadWorldError: it does not.
    """
    model = world.model
    if model.owners != BEFORE.owners or model.config != BEFORE.config:
        raise BadWorldError("a version before the change moves a task, or alters a key")
    if first_fault(model):
        raise BadWorldError(str(first_fault(model)))
    return world


def looked(world: World) -> World:
    """The coordinator looks; what it decides is in force."""
    ahead = copy.copy(world.ahead)
    ahead._quiet = copy.copy(ahead._quiet)
    lags = {} if world.lag is None or AHEAD not in _names(world.model) else {AHEAD: world.lag}
    if ahead.is_over(world.model, world.places, lags, world.now_s):
        has_files = world.host == "x" or lags.get(AHEAD, FAR) <= NEAR
        if not has_files and world.now_s - ahead._nearer_s < LIMIT_S:
            raise BadWorldError("a task moves to where its state is not")
        return replace(world, ahead=ahead, has_moved=True)
    version = ahead.version(world.model, world.places, world.now_s)
    if version is None:
        return replace(world, ahead=ahead)
    copies = Counter(
        (world.places.hosts[p], t.state_of)
        for p, c in version.containers.items()
        if p in world.places.hosts
        for t in c.tasks.values()
    )
    if max(copies.values()) > 1:
        raise BadWorldError("a host has two copies of a task")
    ahead.done(version, world.places)
    return replace(world, model=version, ahead=ahead)


def _names(model: JobModel) -> set[TaskName]:
    return {name for c in model.containers.values() for name in c.tasks}


def moves(world: World, *, is_read: bool) -> Iterator[World]:
    """What may come next: the host, the standby, the clock, and a look of the coordinator."""
    yield looked(world)
    yield replace(world, now_s=world.now_s + 1.0)
    if world.host is None:
        yield from (replace(world, host=host, lag=None) for host in HOSTS if is_read or host == "y")
    elif world.worse < MOST_CHANGES:
        yield replace(world, host=None, lag=None, worse=world.worse + 1)
    if world.host is not None and AHEAD in _names(world.model) and world.lag != 0 and is_read:
        yield replace(world, lag={None: FAR, FAR: NEAR, NEAR: 0}[world.lag])
    if world.lag is not None and world.worse < MOST_CHANGES:
        yield replace(world, lag=None, worse=world.worse + 1)


def search(*, is_read: bool = True) -> int:
    """All worlds are as they must be, and each may still end with the move; their number.

    ``is_read``: whether the standby ever reads anything.

    Raises:
        BadWorldError: one is not, or does not.
    """
    first = judged(World(BEFORE, ReadingAhead(CONFIG, GOAL, 0.0)))
    before: dict[object, set[object]] = {first.key: set()}
    todo, good = deque([first]), set[object]()
    while todo:
        world = todo.popleft()
        for after in moves(world, is_read=is_read):
            if after.has_moved:
                good.add(world.key)
                continue
            if after.key not in before:
                before[after.key] = set()
                todo.append(judged(after))
            before[after.key].add(world.key)
    left = deque(good)
    while left:
        for key in before[left.popleft()] - good:
            good.add(key)
            left.append(key)
    if stuck := before.keys() - good:
        raise BadWorldError(f"nothing leads to a move: {len(stuck)} worlds")
    return len(before)


@pytest.fixture(autouse=True)
def _short_quiet(monkeypatch: Patch) -> None:
    """So that there are fewer worlds."""
    monkeypatch.setattr(mixed_roles, "_LONGEST_S", QUIET_S)


@pytest.mark.parametrize("is_read", [True, False])
def test_tasks_move_when_their_state_is_read_or_time_is_over(*, is_read: bool) -> None:
    """Whatever becomes of the host and of the standby."""
    assert search(is_read=is_read) > 20


def move_at_once(patch: Patch) -> None:
    """Tasks move before their standbys have caught up."""
    patch.setattr(ReadingAhead, "is_over", lambda *_: True)


def move_by_what_no_one_reports(patch: Patch) -> None:
    """A standby without a report counts as one that lacks nothing."""
    found = read_ahead.left_to_read

    def known(*arguments: object) -> dict[TaskName, int | None]:
        left: dict[TaskName, int | None] = found(*arguments)  # type: ignore[arg-type]  # any arguments pass
        return {task: lag or 0 for task, lag in left.items()}

    patch.setattr(reading_ahead, "left_to_read", known)


def wait_for_ever(patch: Patch) -> None:
    """No time ends the wait."""
    limit = keys.COMMAND_TIMEOUT_MS
    patch.setattr(type(limit), "read", lambda key, *_: 10**12 if key is limit else NEAR)


def read_beside_the_files(patch: Patch) -> None:
    """The host of a replica gets a second one."""
    patch.setattr(read_ahead, "_may_read", lambda at, _, places: at in places.hosts)


def begin_with_the_move(patch: Patch) -> None:
    """The version that comes first has the owners of the last one."""

    def moved(model: JobModel, goal: Goal, _: Places) -> JobModel:
        return model_with(model, goal)

    patch.setattr(reading_ahead, "with_read_ahead", moved)


def model_with(model: JobModel, goal: Goal) -> JobModel:
    """The task is at its next owner."""
    tasks = {P0: {A: A_TASK}, P1: {}, **{p: {B: B_TASK} for p in goal.to.values()}}
    return JobModel(model.config, {p: ContainerModel(p, own) for p, own in tasks.items()})


@pytest.mark.parametrize(
    ("mutant", "is_read", "verdict"),
    [
        (move_at_once, True, "a task moves to where its state is not"),
        (move_by_what_no_one_reports, True, "a task moves to where its state is not"),
        (wait_for_ever, False, "nothing leads to a move"),
        (read_beside_the_files, True, "a host has two copies"),
        (begin_with_the_move, True, "moves a task"),
    ],
)
def test_the_search_finds_what_a_missing_rule_does(
    mutant: Callable[[Patch], None], verdict: str, monkeypatch: Patch, *, is_read: bool
) -> None:
    """Each rule that is taken out is missed."""
    mutant(monkeypatch)
    with pytest.raises(BadWorldError, match=verdict):
        search(is_read=is_read)
