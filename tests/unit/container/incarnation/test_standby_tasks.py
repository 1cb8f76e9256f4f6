"""Which standbys a processor's child keeps, what ends them, and how a container of standbys starts.

The following needs Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from small_jobs import LOGGED, environment_in, job_of, no_master, store_keys, task_of
from stream_in_memory import InMemoryCoordinatorStream
from waiting import until

from homeport.config.config import Config
from homeport.config.errors import StoreError
from homeport.container.container_job import ContainerJob
from homeport.container.host.lease_memory import NoLauncher
from homeport.container.host.permit import Permit
from homeport.container.host.stop_flag import OvertakenError, StopFlag
from homeport.container.incarnation import standby_tasks, start_up
from homeport.container.incarnation.environment import orders_file
from homeport.container.incarnation.standby_tasks import (
    StandbyContainer,
    StandbyTasks,
    standbys_of_child,
)
from homeport.job_coordinator.grouper.standby_models import standby_task
from homeport.job_coordinator.metadata.epochs import EpochManager, ProcessorEpoch
from homeport.job_coordinator.model.codec import encode_job_model
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import ContainerModel, JobModel
from homeport.job_coordinator.standalone.child_model import standby_part

P, Q = ProcessorId("p"), ProcessorId("q")
CONFIG = Config(
    {**LOGGED, "job.host-affinity.enabled": "true", "job.standbytasks.replication.factor": "2"}
)
TASKS = [task_of(n) for n in range(3)]
PERMIT = Permit(Incarnation(P, 7), 7, (), "{}")


def _model(actives: list[int], standbys: list[int]) -> JobModel:
    """Processor p has these; q has the tasks that the standbys are of."""
    own = [*(TASKS[n] for n in actives), *(standby_task(TASKS[n], 0) for n in standbys)]
    others = {TASKS[n].task_name: TASKS[n] for n in standbys}
    containers = {P: ContainerModel(P, {t.task_name: t for t in own})}
    return JobModel(CONFIG, {**containers, **({Q: ContainerModel(Q, others)} if others else {})})


class _Kept(StandbyTasks):
    """Follows nothing, but keeps what it is to follow."""

    followed: list[list[int]]
    failures: list[Exception]

    def _follow(self, job: ContainerJob) -> None:
        self.followed.append([task.changelog_partition for task in job.tasks])
        if self.failures:
            raise self.failures.pop()
        while True:
            self._pause(0.01)


Make = Callable[[JobModel], _Kept]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes one at work; none is left."""
    made: list[_Kept] = []
    environment = environment_in(tmp_path)

    def begun(first: JobModel) -> _Kept:
        own, orders = standby_part(first, P), tmp_path / orders_file(7)
        kept = _Kept(CONFIG, own, PERMIT, environment, StopFlag(), orders)
        kept.followed, kept.failures = [], []
        made.append(kept)
        return kept

    yield begun
    for each in made:
        each.close()


def test_another_list_replaces_the_one_that_is_followed(make: Make, tmp_path: Path) -> None:
    """Also an empty one; the events have names and fields of their own."""
    kept, lines = make(_model([0], [1])), list[tuple[str, dict[str, object]]]()
    kept.start(lambda name, **fields: lines.append((name, fields)))
    until(lambda: kept.followed == [[1]], lambda: kept.followed)

    def write(standbys: list[int]) -> None:
        temporary = tmp_path / f"next-{len(standbys)}"
        temporary.write_bytes(encode_job_model(_model([0], standbys), mask_secrets=False))
        temporary.replace(tmp_path / orders_file(7))

    write([1, 2])
    until(lambda: kept.followed[1:] == [[1, 2]], lambda: kept.followed)
    write([])
    until(lambda: kept._wanted is None, lambda: kept._wanted)
    write([2])
    until(lambda: kept.followed[2:] == [[2]], lambda: kept.followed)
    kept.close()
    assert kept.followed == [[1], [1, 2], [2]]
    assert lines == []


def test_standbys_that_fail_begin_again(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The active tasks have no part in it; a bug ends them as little as a damaged store."""
    monkeypatch.setattr("homeport.container.incarnation.standby_tasks._AGAIN_S", 0.1)
    kept, lines = make(_model([0], [1])), list[tuple[str, dict[str, object]]]()
    kept.failures = [RuntimeError("a bug"), StoreError("it is damaged")]
    kept.start(lambda name, **fields: lines.append((name, fields)))
    until(lambda: len(kept.followed) == 3, lambda: kept.followed)
    assert [name for name, _ in lines] == ["standby-failed", "standby-failed"]
    assert [fields["error"] for _, fields in lines] == ["it is damaged", "RuntimeError: a bug"]


def test_a_child_has_what_its_model_says(tmp_path: Path) -> None:
    """Active tasks and standbys; standbys alone; or, without standbys, what there was before."""
    environment, stop = environment_in(tmp_path), StopFlag()
    active, beside = standbys_of_child(_model([0], [1]), PERMIT, environment, stop, NoLauncher())
    assert list(active.containers[P].tasks) == ["Partition 0"]
    assert beside is not None
    assert not ContainerJob.of(active, P).is_standby
    alone, only = standbys_of_child(_model([], [1]), PERMIT, environment, stop, NoLauncher())
    assert only is not None
    job = ContainerJob.of(alone, P)
    assert job.is_standby
    whole = job.task.memory.rocksdb_mb * 1024 * 1024
    shares = (j.rocksdb_bytes(is_mixed=True) for j in (ContainerJob.of(active, P), job))
    assert list(shares) == [whole - whole // 4, whole // 4]
    assert job.rocksdb_bytes(is_mixed=False) == whole
    plain = JobModel(Config({**CONFIG, "job.standbytasks.replication.factor": "1"}), {})
    assert standbys_of_child(plain, PERMIT, environment, stop, NoLauncher()) == (plain, None)


def test_the_adjunct_stores_of_the_container_are_those_of_its_active_tasks(tmp_path: Path) -> None:
    """Where there are any; beside none the standbys keep them."""
    more = {
        "task.broadcast.inputs": "kafka.airlines#0",
        "task.inputs": "kafka.in,kafka.planes",
        **store_keys("planes", adstore_input="kafka.planes"),
        **store_keys("airlines", adstore_input="kafka.airlines"),
    }
    environment, stop = environment_in(tmp_path), StopFlag()

    def kept(actives: list[int]) -> list[str]:
        whole = JobModel(Config({**CONFIG, **more}), _model(actives, [1]).containers)
        _, standbys = standbys_of_child(whole, PERMIT, environment, stop, NoLauncher())
        assert standbys is not None
        assert standbys._wanted is not None
        return sorted(standbys._job_of(standbys._wanted).adjuncts)

    assert kept([0]) == ["planes"]
    assert kept([]) == ["airlines", "planes"]


OWN = ProcessorId("0-0")
EARLIER = (Incarnation(OWN, 3), Incarnation(ProcessorId("0"), 2))


class _Stream(InMemoryCoordinatorStream):
    """Says when it is read; by then a later permit of the standby is in it."""

    def __init__(self, steps: list[str]) -> None:
        super().__init__()
        self._steps = steps
        EpochManager(self).write_processor_epoch(OWN, ProcessorEpoch(5, 7, ()))

    def bootstrap(self) -> None:
        self._steps.append("read")
        self.catch_up()


def test_a_standby_fences_its_list_before_it_looks_whether_it_was_overtaken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Safety I3: in this order; one that was overtaken goes no further, and writes nothing."""
    steps: list[str] = []
    stream = _Stream(steps)
    before = list(stream.log)
    monkeypatch.setattr(standby_tasks, "give_way", lambda: None)
    monkeypatch.setattr(start_up, "open_coordinator_stream", lambda _: nullcontext(stream))
    monkeypatch.setattr(start_up, "await_kafka", lambda *_: steps.append("kafka"))
    monkeypatch.setattr(start_up, "fence", lambda _, id_: steps.append(id_))
    job, permit = job_of(LOGGED, OWN), Permit(Incarnation(OWN, 4), 7, EARLIER)
    place = environment_in(tmp_path)
    container = StandbyContainer(job, permit, place, no_master(), StopFlag(), NoLauncher())
    with pytest.raises(OvertakenError, match="processor 0-0 epoch 4 was overtaken by epoch 5"):
        container.run()
    assert (steps[0], steps[-1]) == ("kafka", "read")
    assert sorted(steps[1:-1]) == sorted(job.transactional_id(i) for i in EARLIER)
    assert stream.log == before
