"""The leader's planner, before it comes to Kafka."""

from __future__ import annotations

import queue
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from small_jobs import task_of
from stream_in_memory import InMemoryCoordinatorStream
from waiting import until

from homeport.config.config import Config
from homeport.config.declarations.standalone_keys import LOCAL, ZOOKEEPER
from homeport.config.errors import ConfigError, UnavailableError, WireError
from homeport.container.standalone import planner
from homeport.container.standalone.planner import (
    JobPlanner,
    KeptStream,
    _require_own,
    given_up,
    other_code,
    standbys_before,
    warn_of_missing_standbys,
    with_address,
)
from homeport.job_coordinator.grouper.previous_assignment import PreviousAssignment
from homeport.job_coordinator.grouper.standby_models import standby_task
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.epochs import EpochManager, FenceReport
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import ContainerModel, JobModel, TaskModel
from homeport.job_coordinator.standalone.plan import Member, Registration, Standby
from homeport.job_coordinator.standalone.protocol import Computed
from homeport.job_coordinator.zookeeper.tree import Readings

FACTORY = "job.coordinator.factory"


class _Answers:
    """Keeps JobModels, and why there is none."""

    def __init__(self) -> None:
        self.found: queue.SimpleQueue[Computed | str] = queue.SimpleQueue()
        self.planned: Callable[[Computed], None] = self.found.put
        self.broken: Callable[[str], None] = self.found.put


def test_the_stream_has_the_address_of_run_local_alone() -> None:
    """ZooKeeper has those of other processors; where a file names one, the true one counts."""
    key, here = "yarn.am.tracking.url", Registration(1, ProcessorId("0"), Host("h"), "http://h:1/")
    for config, found in (
        ({FACTORY: LOCAL}, "http://h:1/"),
        ({FACTORY: LOCAL, key: "x"}, "http://h:1/"),
        ({FACTORY: ZOOKEEPER}, None),
    ):
        assert with_address(Config(config), [here]).get(key) == found
    assert with_address(Config({FACTORY: LOCAL}), []).get(key) is None


def test_a_version_that_its_machine_has_not_seen_yet_makes_an_order_void() -> None:
    """No computation begins from a base that was replaced, and no fault of it counts."""
    answers, versions = _Answers(), iter([3, 4])

    def readings() -> Readings:
        version = next(versions)
        if version == 4:
            raise WireError("a foreign node")
        return Readings(version, (), {}, {})

    planner = JobPlanner(Config({}), readings, answers)  # no configuration: it would fail
    planner.compute(2, None)
    until(lambda: planner._order is None, lambda: planner._order)
    planner.compute(3, None)
    assert answers.found.get(timeout=60) == "a foreign node"
    planner.close()


def test_a_fault_of_an_order_that_was_replaced_does_not_count() -> None:
    """The machine gave another one meanwhile."""
    answers, begun, go = _Answers(), queue.SimpleQueue[int](), queue.SimpleQueue[str]()

    def readings() -> Readings:
        begun.put(1)
        raise WireError(go.get(timeout=60))

    planner = JobPlanner(Config({}), readings, answers)
    planner.compute(1, None)
    begun.get(timeout=60)
    planner.compute(2, None)
    go.put("the first")
    go.put("the second")
    assert answers.found.get(timeout=60) == "the second"
    planner.close()


def test_a_fault_of_the_program_ends_the_processor_and_not_the_thread_alone() -> None:
    """The machine would wait for its answer for ever."""
    answers = _Answers()

    def readings() -> Readings:
        raise KeyError("jobModels")

    planner = JobPlanner(Config({}), readings, answers)
    planner.compute(1, None)
    assert answers.found.get(timeout=60) == "KeyError: 'jobModels'"
    planner.close()


def test_a_stream_that_cannot_be_made_ready_is_the_next_orders_fault(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """No processor ends before it has something to compute."""
    answers = _Answers()
    planner = JobPlanner(Config({}), lambda: Readings(1, (), {}, {}), answers)
    with caplog.at_level("DEBUG", "homeport.container.standalone.planner"):
        planner.prepare()
        until(lambda: "is not made ready" in caplog.text, lambda: caplog.text)
    assert answers.found.empty()
    planner.compute(1, None)
    assert "job.name" in str(answers.found.get(timeout=60))
    planner.close()
    planner._thread.join(60)
    assert not planner._thread.is_alive()


class _Stream(InMemoryCoordinatorStream):
    """In the place of the planner's, which is opened when an order comes."""

    is_open = True

    def read(self) -> _Stream:
        return self

    def close(self) -> None:
        """Nothing is open."""


def _planner_of(stream: _Stream, readings: Callable[[], Readings], answers: _Answers) -> JobPlanner:
    """Return the stream of a job that has run under ZooKeeper."""
    ConfigManager(stream).set(FACTORY, ZOOKEEPER, "test")
    stream.catch_up()
    planner = JobPlanner(
        Config({"job.name": "j", "job.default.system": "kafka", FACTORY: ZOOKEEPER}),
        readings,
        answers,
    )
    planner._stream = stream  # type: ignore[assignment]  # what the planner uses of it
    return planner


def test_a_tree_that_is_an_older_copy_is_refused() -> None:
    """An incarnation of version 5 has begun: 5 would come twice, and the first is not fenced."""
    answers, stream = _Answers(), _Stream()
    EpochManager(stream).write_fenced(ProcessorId("q"), FenceReport(5))
    planner = _planner_of(stream, lambda: Readings(4, (), {}, {}), answers)
    planner.compute(4, None)
    said = str(answers.found.get(timeout=60))
    assert "under another tree of zookeeper, or a later copy, which is not at hand" in said
    assert "name the same job.coordinator.zk.connect and job.coordinator.zk.root" in said
    planner.close()


def test_a_version_that_is_published_while_the_stream_is_read_is_no_fault() -> None:
    """Its incarnations report before this processor has seen it; the order is void."""
    answers, stream, versions = _Answers(), _Stream(), iter([4, 5, 5])
    EpochManager(stream).write_fenced(ProcessorId("q"), FenceReport(5))
    planner = _planner_of(stream, lambda: Readings(next(versions), (), {}, {}), answers)
    planner.compute(4, None)
    until(lambda: planner._order is None, lambda: planner._order)
    planner.compute(5, None)
    assert "older copy" not in str(answers.found.get(timeout=60))
    assert next(versions, None) is None
    planner.close()


@pytest.mark.parametrize(
    ("recorded", "own", "line"),
    [
        ("yarn", ZOOKEEPER, "has run on YARN; .*; run homeport migrate --to=zookeeper, or give"),
        ("yarn", LOCAL, "has run on YARN; what ran there could still write; give the job another"),
        (LOCAL, ZOOKEEPER, "has run under job.coordinator.factory=local; "),
        (LOCAL, LOCAL, "under another tree of local, .*: name the same --work-dir;"),
        ("migrating-to-yarn", ZOOKEEPER, "finish it by homeport migrate --to=yarn"),
    ],
)
def test_a_job_that_has_run_elsewhere_is_refused(recorded: str, own: str, line: str) -> None:
    """As an incarnation of there could still write."""
    stream = _Stream()
    ConfigManager(stream).set(FACTORY, recorded, "test")
    EpochManager(stream).write_fenced(ProcessorId("q"), FenceReport(5))
    stream.catch_up()
    config = Config({"job.name": "j", "job.default.system": "kafka", FACTORY: own})
    with pytest.raises(ConfigError, match=line):
        _require_own(stream, config, 4)


def test_a_leader_whose_file_lacks_an_input_names_it() -> None:
    """Perhaps the file is an older one; the input would return at its default."""
    own = ProcessorId("p")
    both, one = task_of(0, "kafka.in", "kafka.more"), task_of(0)
    before = PreviousAssignment(
        task_partitions={both.task_name: frozenset(both.system_stream_partitions)}
    )

    def line(*tasks: TaskModel) -> str | None:
        container = ContainerModel(own, {task.task_name: task for task in tasks})
        return given_up(before, JobModel(Config({}), {own: container} if tasks else {}))

    assert "gives up its input kafka.more, which the file of this processor" in str(line(one))
    assert line(both) is None
    assert line() is None  # no processor has tasks now


@pytest.mark.parametrize(
    ("before", "now", "named"),
    [
        ({}, {"task.class": "ok:job"}, None),
        ({"task.class": "ok:job"}, {"task.class": "ok:job"}, None),
        (
            {"task.class": "ok:job"},
            {"task.pipeline.sql": "SELECT 1"},
            "task.class = 'ok:job', and goes on with task.pipeline.sql = 'SELECT 1'",
        ),
        (
            {"task.class": "a:A", "task.pipeline.sql": "SELECT 1"},
            {"task.pipeline.class": "b:p"},
            "task.class = 'a:A', and goes on with task.pipeline.class = 'b:p'",
        ),
        (
            {"task.pipeline.sql": "SELECT 1"},
            {"task.pipeline.sql": "SELECT 2"},
            "task.pipeline.sql = 'SELECT 1', and goes on with task.pipeline.sql = 'SELECT 2'",
        ),
        (
            {"task.class": "ok:job", "yarn.package.path": "/ok.py"},
            {"task.class": "raises:job", "yarn.package.path": "/raises.py"},
            "task.class = 'ok:job', and goes on with task.class = 'raises:job'",
        ),
        (
            {"task.class": "ok:job", "yarn.package.path": "/a/ok.py"},
            {"task.class": "ok:job", "yarn.package.path": "/b/ok.py"},
            "yarn.package.path = '/a/ok.py', and goes on with yarn.package.path = '/b/ok.py'",
        ),
        (
            {"task.class": "ok:job", "yarn.package.path": "ok.py"},
            {"task.class": "ok:job", "yarn.package.path": str(Path("ok.py").absolute())},
            None,
        ),
        (
            {"task.class": "ok:job", "yarn.package.path": "/job-1.zip"},
            {"task.class": "ok:job", "yarn.package.path": "/job-2.zip"},
            None,
        ),
    ],
)
def test_another_file_with_a_job_of_the_same_name_is_one_line(
    before: dict[str, str], now: dict[str, str], named: str | None
) -> None:
    """It takes the first one's state and positions; under ZooKeeper code changes in turn."""
    job = {"job.name": "bad", "job.id": "1-trial", "job.default.system": "kafka", FACTORY: LOCAL}
    line = named and (
        f"the job 'bad' (job.id 1-trial) has last run with {named} from that one's state and input "
        "positions; if this is another job, give it another job.name, or another job.id by "
        "--config=job.id=ID"
    )
    assert other_code(Config({**job, **before}), Config({**job, **now})) == line
    assert other_code(Config(before), Config({**job, **now, FACTORY: ZOOKEEPER})) is None


def test_the_standbys_of_a_version_are_known_to_the_next() -> None:
    """By task and name, each with its processor."""
    p, q = ProcessorId("p"), ProcessorId("q")
    standby = Standby(TaskName("t"), TaskName("Standby-t-0"))
    members = (Member(p, 1, 1, (TaskName("t"),)), Member(q, 2, 1, standbys=(standby,)))
    assert standbys_before(members) == {"t": {"Standby-t-0": q}}


def test_standbys_without_a_place_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """It says how many, why, and what to do; nothing where all have theirs, or none is wanted."""
    config = Config({"job.standbytasks.replication.factor": "2"})
    tasks = {task.task_name: task for task in (task_of(0), task_of(1))}
    containers = {ProcessorId("p"): ContainerModel(ProcessorId("p"), tasks)}
    warn_of_missing_standbys(config, containers, {Host("here")})
    assert [record.getMessage() for record in caplog.records] == [
        (
            "2 of 2 standbys have no place: a task and its standbys (1) need a location each, and "
            "the processors are at 1 (here); start some at others, or lower "
            "job.standbytasks.replication.factor"
        )
    ]
    caplog.clear()
    warn_of_missing_standbys(Config({}), containers, {Host("here")})
    kept = {task.task_name: task for task in (standby_task(t, 0) for t in tasks.values())}
    both = {**containers, ProcessorId("q"): ContainerModel(ProcessorId("q"), kept)}
    warn_of_missing_standbys(config, both, {Host("here"), Host("there")})
    assert caplog.records == []


CONFIG = Config(
    {
        "job.name": "j",
        "job.default.system": "kafka",
        "systems.kafka.consumer.bootstrap.servers": "a:1",
    }
)


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls that reach Kafka, in their order."""
    found: list[str] = []

    class Store:
        @classmethod
        def of(cls, _config: Config, *, source: str) -> Store:
            found.append(f"made by {source}")
            return cls()

        def connect(self) -> None:
            found.append("connect")

        def bootstrap(self) -> None:
            found.append("read")
            if found.count("read") == 3:
                raise UnavailableError("Kafka is away")

        def close(self) -> None:
            found.append("close")

    admin = SimpleNamespace(ensure=lambda _spec: found.append("ensure"))
    monkeypatch.setattr(planner, "CoordinatorStreamStore", Store)
    monkeypatch.setattr(planner, "TopicAdmin", lambda _system: admin)
    return found


def test_a_further_read_needs_no_further_clients(said: list[str]) -> None:
    """Until it is closed, as after a fault; a second close does nothing."""
    stream = KeptStream(CONFIG)
    assert stream.read() is stream.read()
    opened = ["ensure", "made by homeport", "connect", "read"]
    assert said == [*opened, "read"]
    with pytest.raises(UnavailableError):
        stream.read()
    stream.close()
    stream.close()
    assert not stream.is_open
    assert said[-2:] == ["read", "close"]
    stream.read()
    assert said[-4:] == opened
