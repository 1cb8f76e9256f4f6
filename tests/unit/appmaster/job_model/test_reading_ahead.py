"""When tasks of mixed containers move: their state is read ahead, or the time for that is over."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from live_jobs import COUNT, FILE, STORE, Job

from homeport.appmaster.job_model import live_job_coordinator, mixed_roles
from homeport.appmaster.job_model.mixed_roles import QUIET_S
from homeport.appmaster.job_model.reading_ahead import ReadingAhead, taken_back
from homeport.config.config import Config
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.mixed_standbys import Places
from homeport.job_coordinator.grouper.previous_assignment import NOTHING, assigned_by
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import JobModel, SystemStream

MOST, TIMEOUT = "cluster-manager.warm-move.max.records", "cluster-manager.command.timeout.ms"
MIXES = {
    **STORE,
    COUNT: "2",
    MOST: "10",
    TIMEOUT: "60000",
    "job.container.mixed-roles": "true",
    "job.hotstandby.enabled": "true",
}
TWO = FILE.merged(MIXES)
THREE, FOUR = TWO.merged({COUNT: "3"}), TWO.merged({COUNT: "4"})
P0, P1, P2, P3 = (ProcessorId(str(n)) for n in range(4))
TASKS = {SystemStream("kafka", "in"): 6}


def at(hosts: str) -> Places:
    """Containers from 0 on, each at the host of that letter; a dash: it has none."""
    return Places({ProcessorId(str(n)): Host(h) for n, h in enumerate(hosts) if h != "-"})


def model_of(config: Config, places: Places, before: JobModel | None = None) -> JobModel:
    """The job's model."""
    known = NOTHING if before is None else assigned_by(before)
    return calculate_job_model(config, TASKS, known, places=places)


BEFORE = model_of(TWO, at("xy"))
AFTER = model_of(THREE, at("xy"), BEFORE)


def ahead_of(model: JobModel) -> dict[TaskName, ProcessorId]:
    """The standbys that are there for a move: each task has one standby besides."""
    return {n: p for p, c in model.containers.items() for n in c.tasks if n.endswith("-1")}


def begun(before: JobModel = BEFORE, after: JobModel = AFTER, hosts: str = "xy") -> ReadingAhead:
    """A change that has to wait, as of second 0."""
    found = ReadingAhead.of(before, after, at(hosts), {}, 0.0)
    assert found is not None
    return found


def test_the_new_containers_come_first_then_what_they_read_then_the_tasks() -> None:
    """The measure is the lag of each standby that a task comes to."""
    ahead = begun()
    assert (ahead.config, ahead.why) == (THREE, "the state of 2 tasks that will move is read ahead")
    assert set(ahead.left.values()) == {None}
    first = ahead.version(BEFORE, at("xy"), 0.0)
    assert first is not None
    assert first.config == TWO
    assert {p: len(c.tasks) for p, c in first.containers.items()}[P2] == 0
    assert first.owners == BEFORE.owners
    ahead.done(first, at("xy"))
    assert not ahead.is_over(first, at("xy"), {}, 1.0)
    assert ahead.version(first, at("xy"), 1.0) is None, "nothing is new"
    second = ahead.version(first, at("xyz"), 1.1)
    assert second is not None, "all that gain a task have their host"
    assert set(ahead_of(second).values()) == {P2}
    near, far = sorted(ahead_of(second))
    assert not ahead.is_over(second, at("xyz"), {near: 10}, 2.0)
    assert not ahead.is_over(second, at("xyz"), {near: 10, far: 11}, 3.0)
    assert list(ahead.left.values()) == [11]
    assert ahead.is_over(second, at("xyz"), {near: 10, far: 10}, 4.0)
    assert ahead.facts(4.0) == {"tasks": sorted(AFTER_MOVES), "late": [], "waited_ms": 4000}


AFTER_MOVES = [task for task, owner in AFTER.owners.items() if BEFORE.owners[task] != owner]


def test_what_further_hosts_bring_is_read_once_containers_stay_where_they_are() -> None:
    """Each version has its price; one container that finds no host does not keep the others."""
    ahead = begun(after=model_of(FOUR, at("xy"), BEFORE))
    first = ahead.version(BEFORE, at("xy"), 0.0)
    assert first is not None
    ahead.done(first, at("xy"))
    assert ahead.version(first, at("xyz"), 1.0) is None
    assert ahead.version(first, at("xyz"), 1.0 + QUIET_S / 2) is None
    later = ahead.version(first, at("xyz"), 1.0 + QUIET_S)
    assert later is not None
    assert set(ahead_of(later).values()) == {P2}
    ahead.done(later, at("xyz"))
    complete = ahead.version(later, at("xyzw"), 2.1)
    assert complete is not None
    assert set(ahead_of(complete).values()) == {P2, P3}


def test_tasks_move_without_their_state_when_nothing_gets_nearer() -> None:
    """A host that comes, or a record that is read, begins the time again."""
    ahead = begun()
    first = ahead.version(BEFORE, at("xyz"), 0.0)
    assert first is not None
    one, other = sorted(ahead_of(first))
    assert not ahead.is_over(first, at("xyz"), {}, 59.0)
    assert not ahead.is_over(first, at("xyz"), {one: 900}, 59.5)
    assert not ahead.is_over(first, at("xyz"), {one: 900}, 119.0)
    assert not ahead.is_over(first, at("xyz"), {one: 950, other: 900}, 119.4)
    assert not ahead.is_over(first, at("xyz"), {one: 950, other: 800}, 179.0)
    assert not ahead.is_over(first, at("xyz"), {one: 950, other: 900}, 238.9)
    assert ahead.is_over(first, at("xyz"), {one: 950, other: 900}, 239.0)
    assert ahead.facts(239.0)["late"] == sorted(AFTER_MOVES)


@pytest.mark.parametrize(
    "config",
    [
        TWO.merged({"job.container.mixed-roles": "false"}),
        Config({k: v for k, v in TWO.items() if k not in STORE}),
    ],
)
def test_there_is_nothing_to_read_ahead_without_mixed_roles_or_state(config: Config) -> None:
    """Standby containers have their own ways."""
    before = JobModel(config, BEFORE.containers)
    assert ReadingAhead.of(before, AFTER, at("xy"), {}, 0.0) is None


def test_a_change_waits_for_nothing_where_no_task_moves_or_its_standby_is_near() -> None:
    """One record more and it waits."""
    assert ReadingAhead.of(BEFORE, BEFORE, at("xy"), {}, 0.0) is None
    fewer = model_of(TWO.merged({COUNT: "1"}), at("xy"), BEFORE)
    near = {name: 10 for c in BEFORE.containers.values() for name in c.tasks}
    assert ReadingAhead.of(BEFORE, fewer, at("xy"), near, 0.0) is None
    assert ReadingAhead.of(BEFORE, fewer, at("xy"), dict.fromkeys(near, 11), 0.0) is not None


def test_what_was_read_ahead_is_taken_back() -> None:
    """The containers that came for it go, too."""
    ahead = begun().over(BEFORE, at("xyz"))
    assert ahead != BEFORE
    assert taken_back(ahead, at("xyz")) == BEFORE
    assert taken_back(BEFORE, at("xyz")) == BEFORE


# --- by the job coordinator


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """Six tasks with state in two mixed containers, which run, with their standbys."""
    monkeypatch.setattr(live_job_coordinator, "_POLL_S", 0.01)
    monkeypatch.setattr(mixed_roles, "QUIET_S", 0.05)
    found = Job(tmp_path, TWO)
    found.stream.write([wire.set_config(key, value) for key, value in TWO.items()])
    found.stream.catch_up()
    found.where = at("xy")
    return found


async def dealt(job: Job) -> JobModel:
    """The standbys are where the containers run."""
    await job.until(lambda: bool(job.changes))
    return job.job_models.model


async def reading(job: Job, config: Config, hosts: str) -> JobModel:
    """The change is ordered, and its new containers are at these hosts; the version in force."""
    job.live.heard(config)
    await job.until(lambda: bool(job.live.shown().reads_ahead))
    job.where = at(hosts)
    await job.until(lambda: bool(ahead_of(job.job_models.model)))
    return job.job_models.model


def lags(model: JobModel, records: int) -> Mapping[TaskName, int]:
    """Each standby lacks so many."""
    return {name: records for c in model.containers.values() for name in c.tasks}


def test_a_change_of_the_count_moves_tasks_to_what_they_have_read(job: Job) -> None:
    """Owners change in one version, the last one; status and history have the wait."""

    async def scene() -> None:
        before = await dealt(job)
        ahead = await reading(job, THREE, "xyz")
        assert ahead.owners == before.owners
        assert ahead.config == TWO
        await job.some_rounds()
        assert job.job_models.model is ahead, "standbys are not dealt meanwhile"
        job.lacking.update(lags(ahead, 11))
        await job.some_rounds()
        assert list(job.live.shown().reads_ahead.values()) == [11, 11]
        job.lacking.update(lags(ahead, 0))
        await job.until(lambda: job.job_models.model.config == THREE)
        assert job.live.shown().reads_ahead == {}

    job.play(scene)
    last = job.job_models.model
    assert last.owners == AFTER.owners
    assert ahead_of(last) == {}
    assert [c.is_by_itself for c in job.changes] == [True, True, True, False]
    (event,) = job.events("read-ahead")
    assert (event["tasks"], event["late"]) == (sorted(AFTER_MOVES), [])


def test_a_change_that_is_taken_back_leaves_nothing(job: Job) -> None:
    """Nor does one that another follows: that reads ahead what it needs itself."""

    async def scene() -> None:
        before = await dealt(job)
        await reading(job, FOUR, "xyzw")
        job.live.heard(THREE)
        await job.until(lambda: P3 not in job.job_models.model.containers)
        assert set(ahead_of(job.job_models.model).values()) == {P2}
        job.where = at("xyz")
        job.live.heard(TWO)
        await job.until(lambda: not job.live.shown().reads_ahead)
        assert job.job_models.model.containers == before.containers
        await job.some_rounds()

    job.play(scene)
    assert all(c.model.config == TWO for c in job.changes)
    assert job.events("read-ahead") == []


def test_a_loss_meanwhile_goes_at_once_and_the_rest_is_read_on(job: Job) -> None:
    """Tasks of the lost container go to what has them; the change waits on."""

    async def scene() -> None:
        await dealt(job)
        await reading(job, THREE, "xyz")
        job.where = at("-yz")
        job.live.lost(P0)
        await job.until(lambda: P0 not in job.job_models.model.owners.values())
        assert job.job_models.model.config == TWO
        job.lacking.update(lags(job.job_models.model, 0))
        await job.until(lambda: job.job_models.model.config == THREE)

    job.play(scene)
    (taken,) = job.events("tasks-taken-over")
    assert (taken["processors"], taken["lost"]) == (["0"], 3)


def test_what_cannot_be_published_now_is_read_ahead_later(job: Job) -> None:
    """As while another driver's containers are not known yet, or the job ends."""

    async def scene() -> None:
        await dealt(job)
        job.is_refusing = True
        job.live.heard(THREE)
        await job.until(lambda: bool(job.live.shown().reads_ahead))
        await job.some_rounds()
        job.is_refusing = False
        await job.until(lambda: P2 in job.job_models.model.containers)
        job.is_refusing = True
        job.live.heard(TWO)
        await job.some_rounds()
        assert job.live.shown().reads_ahead
        job.is_refusing = False
        await job.until(lambda: P2 not in job.job_models.model.containers)

    job.play(scene)
