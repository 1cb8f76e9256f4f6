"""Which standbys a processor's child keeps, what ends them, and how a container of standbys starts.

The following needs Kafka.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from own_records import write_permit
from small_jobs import LOGGED, context_in, job_of, store_keys, task_of
from stream_in_memory import InMemoryCoordinatorStream
from waiting import until

from homeport.config.config import Config
from homeport.config.errors import StoreError
from homeport.container.container_job import ContainerJob
from homeport.container.host.lease_memory import LeaseMemory
from homeport.container.host.permit import Permit
from homeport.container.host.stop_flag import OvertakenError, StopFlag
from homeport.container.incarnation import standby_tasks, start_up
from homeport.container.incarnation.context import History, IncarnationContext
from homeport.container.incarnation.environment import orders_file
from homeport.container.incarnation.standby_lists import FileLists
from homeport.container.incarnation.standby_tasks import (
    StandbyContainer,
    StandbysOnly,
    StandbyTasks,
    standbys_of,
)
from homeport.container.kafka.kept_clients import KeptClients
from homeport.job_coordinator.grouper.standby_models import standby_task
from homeport.job_coordinator.metadata.epochs import EpochManager, ProcessorEpoch
from homeport.job_coordinator.model.codec import encode_job_model
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import ContainerModel, JobModel, TaskMode
from homeport.job_coordinator.standalone.child_model import part_of

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


Make = Callable[[JobModel, History], _Kept]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes one at work; none is left."""
    made: list[_Kept] = []

    def begun(first: JobModel, history: History) -> _Kept:
        job = job_of(CONFIG, "0")
        own = part_of(first, P, TaskMode.STANDBY)
        context = context_in(tmp_path, job, PERMIT, history=history)
        context = replace(context, is_mixed=True, standbys=own)
        kept = _Kept(context, FileLists(tmp_path / orders_file(7)))
        kept.followed, kept.failures = [], []
        made.append(kept)
        return kept

    yield begun
    for each in made:
        each.close()


def test_another_list_replaces_the_one_that_is_followed(make: Make, tmp_path: Path) -> None:
    """Also an empty one; the events have names and fields of their own."""
    lines: list[tuple[str, dict[str, object]]] = []
    kept = make(_model([0], [1]), lambda name, **fields: lines.append((name, fields)))
    kept.start()
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


def test_a_process_that_goes_on_does_not_wait_for_its_standbys(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tasks of its next incarnation do not stand still meanwhile; another end waits."""
    monkeypatch.setattr(standby_tasks, "_FIRST_S", 0)
    follows, leave = threading.Event(), threading.Event()
    kept = make(_model([0], [1]), lambda *_, **__: None)

    def follow(_job: ContainerJob) -> None:
        follows.set()
        leave.wait(60)

    monkeypatch.setattr(kept, "_follow", follow)
    kept.start()
    assert follows.wait(60)
    kept._context.stop.rest()
    kept.close()
    thread = kept._thread
    assert thread is not None
    assert thread.is_alive()
    leave.set()
    kept._context.stop.set()
    kept.close()
    assert not thread.is_alive()


def test_standbys_that_fail_begin_again(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The active tasks have no part in it; a bug ends them as little as a damaged store."""
    monkeypatch.setattr("homeport.container.incarnation.standby_tasks._AGAIN_S", 0.1)
    lines: list[tuple[str, dict[str, object]]] = []
    kept = make(_model([0], [1]), lambda name, **fields: lines.append((name, fields)))
    kept.failures = [RuntimeError("a bug"), StoreError("it is damaged")]
    kept.start()
    until(lambda: len(kept.followed) == 3, lambda: kept.followed)
    assert [name for name, _ in lines] == ["standby-failed", "standby-failed"]
    assert [fields["error"] for _, fields in lines] == ["it is damaged", "RuntimeError: a bug"]


@pytest.mark.parametrize(("standbys", "left"), [([], 0), ([1], None)])
def test_a_container_without_any_task_lacks_nothing(
    make: Make, monkeypatch: pytest.MonkeyPatch, standbys: list[int], left: int | None
) -> None:
    """As that of a warm move whose destination has all files; others report what they read."""
    monkeypatch.setattr(start_up, "confirmed_stream", lambda *_: nullcontext())
    monkeypatch.setattr(start_up, "report_started", lambda *_: None)
    kept = make(_model([], standbys), lambda *_, **__: None)
    context = kept._context
    context.stop.set()
    container = StandbysOnly(context, kept)
    assert container.run() is False
    assert container.is_over
    report = context.launcher.last_report()
    assert (None if report is None else report.left_to_read) == left


def _of_child(model: JobModel, folder: Path, patch: pytest.MonkeyPatch) -> IncarnationContext:
    """What follows from the permit of a processor's child."""
    patch.setenv("HOMEPORT_WORK_DIR", str(folder))
    permit = replace(PERMIT, model=encode_job_model(model, mask_secrets=False).decode())
    memory, clients = LeaseMemory.endless(), KeptClients()
    return IncarnationContext.of_permit(permit.to_json(), StopFlag(), memory, clients)


def test_a_child_has_what_its_model_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Active tasks and standbys; standbys alone; or, without standbys, what there was before."""

    def child(model: JobModel) -> tuple[ContainerJob, list[str] | None]:
        context = _of_child(model, tmp_path, monkeypatch)
        kept = standbys_of(context)
        wanted = kept._wanted if kept else None
        return context.job, None if wanted is None else [*wanted.containers[P].tasks]

    standby = ["Standby-Partition 1-0"]
    active, beside = child(_model([0], [1]))
    assert ([task.task_name for task in active.tasks], beside) == (["Partition 0"], standby)
    assert not active.is_standby
    job, only = child(_model([], [1]))
    assert ([task.task_name for task in job.tasks], only) == (standby, standby)
    assert job.is_standby
    whole = job.task.memory.rocksdb_mb * 1024 * 1024
    shares = (j.rocksdb_bytes(is_mixed=True) for j in (active, job))
    assert list(shares) == [whole - whole // 4, whole // 4]
    assert job.rocksdb_bytes(is_mixed=False) == whole
    one = Config({**CONFIG, "job.standbytasks.replication.factor": "1"})
    plain, none = child(JobModel(one, _model([0], []).containers))
    assert ([task.task_name for task in plain.tasks], none) == (["Partition 0"], None)


def test_the_adjunct_stores_of_the_container_are_those_of_its_active_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there are any; beside none the standbys keep them."""
    more = {
        "task.broadcast.inputs": "kafka.airlines#0",
        "task.inputs": "kafka.in,kafka.planes",
        **store_keys("planes", adstore_input="kafka.planes"),
        **store_keys("airlines", adstore_input="kafka.airlines"),
    }

    def kept(actives: list[int]) -> list[str]:
        whole = JobModel(Config({**CONFIG, **more}), _model(actives, [1]).containers)
        standbys = standbys_of(_of_child(whole, tmp_path, monkeypatch))
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
        write_permit(EpochManager(self), OWN, ProcessorEpoch(5, 7, ()))

    def bootstrap(self) -> None:
        self._steps.append("read")
        self.catch_up()

    def close(self) -> None:
        """It is over with it, as with a stream that was opened."""


def test_a_standby_fences_its_list_before_it_looks_whether_it_was_overtaken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Safety I3: in this order; one that was overtaken goes no further, and writes nothing."""
    steps: list[str] = []
    stream = _Stream(steps)
    before = list(stream.log)
    monkeypatch.setattr(standby_tasks, "give_way", lambda: None)
    monkeypatch.setattr(start_up, "open_coordinator_stream", lambda _: stream)
    monkeypatch.setattr(start_up, "await_kafka", lambda *_: steps.append("kafka"))
    monkeypatch.setattr(start_up, "fence", lambda _, id_: steps.append(id_))
    job, permit = job_of(LOGGED, OWN), Permit(Incarnation(OWN, 4), 7, EARLIER)
    container = StandbyContainer(context_in(tmp_path, job, permit))
    with pytest.raises(OvertakenError, match="processor 0-0 epoch 4 was overtaken by epoch 5"):
        container.run()
    assert (steps[0], steps[-1]) == ("kafka", "read")
    assert sorted(steps[1:-1]) == sorted(job.transactional_id(i) for i in EARLIER)
    assert stream.log == before
