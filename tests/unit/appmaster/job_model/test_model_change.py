"""The next JobModel of a job that runs, and the first one of an attempt."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from live_jobs import COUNT, STORE
from live_jobs import FILE as RUNNING
from stream_in_memory import InMemoryCoordinatorStream

from homeport.appmaster.job_model import input_acceptance, inputs_in_force, publication
from homeport.appmaster.job_model.job_model_store import JobModelStore
from homeport.appmaster.job_model.live_configuration import LiveConfiguration, pending_line, read
from homeport.appmaster.job_model.model_change import ModelPlanner, changed_containers, first_model
from homeport.appmaster.yarn.submission_file import Submitted
from homeport.config.config import Config
from homeport.config.declarations.key_types import Liveness
from homeport.config.errors import ConfigError, UnavailableError
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.mixed_standbys import Places
from homeport.job_coordinator.grouper.previous_assignment import NOTHING, assigned_by
from homeport.job_coordinator.grouper.read_ahead import Goal, with_read_ahead
from homeport.job_coordinator.metadata.recorded_model import recorded_model
from homeport.job_coordinator.metadata.task_assignment import LocalityManager
from homeport.job_coordinator.metadata.topics import InputTopicManager
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.job_model import JobModel, SystemStream
from homeport.job_coordinator.planning import next_model
from homeport.job_coordinator.planning.input_watch import InputsSeen
from homeport.job_coordinator.status.shape import ShownKey

IN, MORE, ALL = (SystemStream("kafka", name) for name in ("in", "more", "all"))
P2 = ProcessorId("2")
FILE = RUNNING.merged({COUNT: "2"})


class Attempt:
    """A stream and a shelf with version 1, and a Kafka whose partitions the test says."""

    def __init__(self, folder: Path, file: Config) -> None:
        self.counts: dict[SystemStream, int] = {IN: 4, MORE: 4, ALL: 3}
        self.made: list[JobModel] = []
        self.is_away = False
        self.stream = InMemoryCoordinatorStream()
        self.job_models = JobModelStore(folder)
        model = calculate_job_model(file, self.counts, NOTHING)
        publication.publish(model, self.stream, lambda host: host)
        self.job_models.enter(1, model)
        self.planner = ModelPlanner(self.stream, self.job_models, self._counts, self._create_topics)

    def _create_topics(self, model: JobModel, stream: CoordinatorStream) -> None:
        assert stream is self.stream
        self.made.append(model)

    def _counts(self, _: Config) -> Mapping[SystemStream, int]:
        if self.is_away:
            raise UnavailableError("Kafka is away")
        return self.counts


@pytest.fixture
def attempt(tmp_path: Path) -> Attempt:
    """Four tasks in two containers, without state."""
    return Attempt(tmp_path, FILE)


def names(model: JobModel) -> set[str]:
    """All tasks."""
    return {t for c in model.containers.values() for t in c.tasks}


def test_only_changed_processors_are_listed(attempt: Attempt) -> None:
    """A processor with the same tasks, inputs and changelog partitions is not there."""
    before = attempt.job_models.model
    after = attempt.planner.reconfigured(FILE.merged({COUNT: "3"}))
    changed = changed_containers(before, after)
    assert {p for p in before.containers if before.containers[p] != after.containers[p]} | {
        "2"
    } == set(changed)
    assert changed[P2]["before"] is None
    (task,) = changed[P2]["after"]
    number = task.removeprefix("Partition ")
    assert changed[P2]["after"] == {task: [int(number), [f"kafka.in.{number}"]]}
    assert changed_containers(before, before) == {}


def test_topics_are_there_before_the_model_is(attempt: Attempt) -> None:
    """A model whose topics cannot be had is none; those that are there are not asked for again."""
    attempt.planner.reconfigured(FILE.merged({COUNT: "3"}))
    assert attempt.made == []
    model = attempt.planner.expanded({IN: 8})
    assert attempt.made == [model]


def test_kafka_is_queried_for_inputs_that_the_model_does_not_know(attempt: Attempt) -> None:
    """A change of the number of containers does not wait."""
    attempt.is_away = True
    attempt.planner.reconfigured(FILE.merged({COUNT: "3"}))
    with pytest.raises(UnavailableError):
        attempt.planner.reconfigured(FILE.merged({"task.inputs": "kafka.in,kafka.more"}))


def test_inputs_of_the_model_stay_and_new_ones_are_as_they_are(attempt: Attempt) -> None:
    """Between two looks at the inputs nothing of them changes."""
    attempt.counts[IN] = 8
    model = attempt.planner.reconfigured(FILE.merged({"task.inputs": "kafka.in,kafka.more"}))
    inputs = {
        ssp
        for container in model.containers.values()
        for task in container.tasks.values()
        for ssp in task.system_stream_partitions
    }
    assert len(inputs) == 8
    assert names(model) == names(attempt.job_models.model)


def test_state_keeps_its_tasks(tmp_path: Path) -> None:
    """A change that would give a job with state other tasks is refused, whatever asks for it."""
    attempt = Attempt(tmp_path, FILE.merged(STORE))
    attempt.counts[MORE] = 9
    with pytest.raises(ConfigError, match=r"task\.inputs"):
        attempt.planner.reconfigured(FILE.merged({**STORE, "task.inputs": "kafka.in,kafka.more"}))
    assert attempt.made == []


def test_state_takes_an_input_that_its_tasks_can_read(tmp_path: Path) -> None:
    """As many partitions, or a multiple of them: p joins the task of p modulo 4."""
    attempt = Attempt(tmp_path, FILE.merged(STORE))
    attempt.counts[MORE] = 8
    model = attempt.planner.reconfigured(
        FILE.merged({**STORE, "task.inputs": "kafka.in,kafka.more"})
    )
    assert names(model) == names(attempt.job_models.model)
    for container in model.containers.values():
        for name, task in container.tasks.items():
            n = int(name.removeprefix("Partition "))
            read = [(s.stream, s.partition) for s in task.system_stream_partitions]
            assert read == [("in", n), ("more", n), ("more", n + 4)]
            assert task.changelog_partition == n


def test_tasks_that_go_are_a_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Where they leave state behind, for as long as no input brings them back."""
    both = {"task.inputs": "kafka.in,kafka.more", "job.changelogs.grow": "true"}
    for folder, file in (("with", FILE.merged(STORE)), ("without", FILE)):
        (tmp_path / folder).mkdir()
        attempt = Attempt(tmp_path / folder, file)
        attempt.counts[MORE] = 6
        attempt.job_models.enter(2, attempt.planner.reconfigured(file.merged(both)))
        publication.publish(attempt.job_models.model, attempt.stream, lambda host: host)
        left = attempt.planner.reconfigured(file.merged({"job.changelogs.grow": "true"}))
        assert len(names(left)) == 4
    (line,) = [r.getMessage() for r in caplog.records if "with their state kept" in r.message]
    assert line.endswith(": tasks Partition 4, Partition 5")


def test_g18_inputs_of_a_job_with_state_expand_into_its_tasks(tmp_path: Path) -> None:
    """G18: 4 partitions become 8; each task reads two, and keeps its changelog partition."""
    attempt = Attempt(tmp_path, FILE.merged(STORE))
    model = attempt.planner.expanded({IN: 8})
    assert names(model) == names(attempt.job_models.model)
    for container in model.containers.values():
        for name, task in container.tasks.items():
            first = int(name.removeprefix("Partition "))
            assert [s.partition for s in task.system_stream_partitions] == [first, first + 4]
            assert task.changelog_partition == first
    with pytest.raises(ConfigError):
        attempt.planner.expanded({IN: 7})


def test_a_new_attempt_begins_with_what_the_stream_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """And where no model can be made of that, with what was submitted."""
    counts = {IN: 4}
    monkeypatch.setattr(next_model, "create_topics", lambda *_, **__: None)
    monkeypatch.setattr(next_model, "counts_now", lambda _config: counts)
    stream = InMemoryCoordinatorStream()
    for text, containers in (("3", 3), ("50", 2), ("none", 2), ("4", 4)):
        stream.write([wire.set_config(COUNT, text)])
        stream.catch_up()
        assert len(first_model(Submitted(FILE, FILE), stream).containers) == containers
    counts.clear()
    with pytest.raises(ConfigError, match=r"kafka\.in"):
        first_model(Submitted(FILE, FILE), stream)


@pytest.mark.parametrize(
    "mistake",
    [
        {COUNT: "50"},
        {"task.inputs": "kafka.in,kafka.more,nowhere.at"},
        {"stores.s.factory": "none"},
        {"systems.kafka.samza.offset.default": "somewhere"},
        {
            "stores.more.factory": "rocksdb",
            "stores.more.key.serde": "string",
            "stores.more.msg.serde": "string",
            "stores.more.adstore.input": "kafka.more",
        },
    ],
    ids=["count", "input", "store", "system", "another use of the input"],
)
def test_a_mistake_in_a_key_takes_no_input_from_a_new_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mistake: dict[str, str]
) -> None:
    """The running job has got one since its submission; a start without it drops its positions."""
    file = FILE.merged(STORE)
    attempt = Attempt(tmp_path, file.merged({"task.inputs": "kafka.in,kafka.more"}))
    monkeypatch.setattr(next_model, "create_topics", lambda *_, **__: None)
    monkeypatch.setattr(next_model, "counts_now", lambda _config: attempt.counts)
    seen = InputsSeen(attempt.counts, {IN: "in", MORE: "more"})
    monkeypatch.setattr(input_acceptance, "inputs_now", lambda _config: seen)
    both = {**file, "task.inputs": "kafka.in,kafka.more"}
    attempt.stream.write(inputs_in_force.records(file, Config(both), attempt.stream))
    attempt.stream.write([wire.set_config(k, v) for k, v in {**both, **mistake}.items()])
    attempt.stream.catch_up()
    model = first_model(Submitted(file, file), attempt.stream)
    assert model.partition_counts() == {IN: 4, MORE: 4}
    assert model.config[COUNT] == file[COUNT]
    assert model.config == file.merged({"task.inputs": "kafka.in,kafka.more"})


def test_a_new_attempt_does_not_take_an_input_that_the_one_before_has_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its topic was recreated while the job did not read it: the job goes on, as it did."""
    attempt = Attempt(tmp_path, FILE)
    monkeypatch.setattr(next_model, "create_topics", lambda *_, **__: None)
    monkeypatch.setattr(next_model, "counts_now", lambda _config: attempt.counts)
    seen = InputsSeen(attempt.counts, {IN: "in", MORE: "second"})
    monkeypatch.setattr(input_acceptance, "inputs_now", lambda _config: seen)
    InputTopicManager(attempt.stream).write({MORE: "first"})
    attempt.stream.write([wire.set_config("task.inputs", "kafka.in,kafka.more")])
    attempt.stream.catch_up()
    model = first_model(Submitted(FILE, FILE), attempt.stream)
    assert model.partition_counts() == {IN: 4}
    begin = FILE.merged({"job.input.recreated": "begin"})
    assert MORE in first_model(Submitted(begin, begin), attempt.stream).partition_counts()


def test_a_new_attempt_does_not_begin_with_other_tasks_than_the_state_was_made_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As run-job at a submission; here also where a grouper of the job's own deals the tasks."""
    file = FILE.merged({**STORE, "job.systemstreampartition.input.expansion.enabled": "false"})
    attempt = Attempt(tmp_path, file)
    made: list[JobModel] = []
    monkeypatch.setattr(next_model, "create_topics", lambda model, *_, **__: made.append(model))
    monkeypatch.setattr(next_model, "counts_now", lambda _config: attempt.counts)
    assert names(first_model(Submitted(file, file), attempt.stream)) == names(
        attempt.job_models.model
    )
    attempt.counts[IN] = 8
    with pytest.raises(ConfigError) as caught:
        first_model(Submitted(file, file), attempt.stream)
    assert str(caught.value) == (
        "task.inputs = \"task 'Partition 4' of kafka.in#4\": it was \"no task 'Partition 4'\" when "
        "the job's state was made, which a change would mix up; set it back, or begin from nothing "
        "by run-job --reset-state"
    )
    assert len(made) == 1


# --- which configuration is in force, whatever the coordinator stream says


MEMORY = "cluster-manager.container.memory.mb"
SUBMITTED = RUNNING.merged({MEMORY: "1024"})
GROUPER = "job.systemstreampartition.grouper.factory"


def of(file: Config = SUBMITTED, **written: str) -> Submitted:
    """A submission of ``file`` with what the writer tool had set."""
    return Submitted(file.merged({k.replace("_", "."): v for k, v in written.items()}), file)


def test_values_of_the_stream_are_in_force() -> None:
    """Keys that the running job can apply, also those of the user's own."""
    stream = SUBMITTED.merged({COUNT: "5", "task.commit.ms": "7", "my.key": "x"})
    reading = read(of(), stream)
    assert reading.config == stream
    assert reading.pending == ()


def test_a_key_that_needs_a_redeploy_keeps_the_value_of_the_submission() -> None:
    """Each reader of the stream gets the same result, and reports the pending value."""
    reading = read(of(), SUBMITTED.merged({MEMORY: "2048"}))
    assert reading.config == SUBMITTED
    assert reading.pending == (ShownKey(MEMORY, "1024", "2048", Liveness.NEEDS_REDEPLOY.value),)
    assert pending_line(reading.pending[0]) == (
        f"{MEMORY} stays '1024', although the coordinator stream says '2048': "
        "applied by the next deployment"
    )


def test_the_next_submission_applies_pending_keys() -> None:
    """It began with the value, and so it is in force."""
    submitted = Submitted(SUBMITTED.merged({MEMORY: "2048"}), SUBMITTED)
    reading = read(submitted, SUBMITTED.merged({MEMORY: "2048"}))
    assert reading.config[MEMORY] == "2048"
    assert reading.pending == ()


def test_a_key_that_state_fixes_is_not_applied() -> None:
    """Another grouper would give the stores to other tasks."""
    file = SUBMITTED.merged(STORE)
    reading = read(of(file), file.merged({GROUPER: "all-to-one"}))
    assert reading.config == file
    assert [(p.key, p.takes) for p in reading.pending] == [
        (GROUPER, Liveness.NEVER_WITH_STATE.value)
    ]


def test_without_state_it_takes_a_redeploy() -> None:
    """The tasks are others afterwards, and there is no state to lose."""
    reading = read(of(), SUBMITTED.merged({GROUPER: "group-by-system-stream-partition"}))
    assert reading.config == SUBMITTED
    assert [(p.key, p.takes) for p in reading.pending] == [(GROUPER, Liveness.NEEDS_REDEPLOY.value)]


def test_a_key_with_a_deleted_record_has_the_value_of_the_file_again() -> None:
    """A record that the writer tool takes back does not leave the default behind."""
    submitted = of(job_container_count="5")
    without = Config({k: v for k, v in SUBMITTED.items() if k != COUNT})
    assert read(submitted, without).config[COUNT] == "3"


def test_secrets_are_masked() -> None:
    """The status shows what is pending to everybody."""
    key = "systems.kafka.coordinator.password"
    file = SUBMITTED.merged({"job.coordinator.system": "kafka", "yarn.am.password": "a"})
    stream = file.merged({"yarn.am.password": "b", key: "c"})
    for pending in read(of(file), stream).pending:
        assert {pending.in_force, pending.wanted} <= {"********", None}


def test_an_invalid_value_leaves_the_configuration_in_force() -> None:
    """It is one line, the same for as long as it is there."""
    configuration = LiveConfiguration(of())
    assert configuration.wanted(SUBMITTED.merged({COUNT: "many"})) is None
    assert configuration.fault is not None
    assert configuration.fault.startswith("job.container.count = 'many'")
    assert configuration.wanted(SUBMITTED) == SUBMITTED
    assert configuration.fault is None


def test_a_configuration_without_a_valid_model_is_not_tried_again() -> None:
    """Until the stream says something else."""
    configuration = LiveConfiguration(of())
    stream = SUBMITTED.merged({COUNT: "50"})
    assert configuration.wanted(stream) == stream
    configuration.refused(stream, ConfigError(COUNT, "50", "too many", "less"))
    assert configuration.wanted(stream) is None
    assert configuration.fault == "job.container.count = '50': too many; less"
    assert configuration.wanted(SUBMITTED.merged({COUNT: "5"})) is not None
    assert configuration.fault is None


def test_pending_keys_are_reported_beside_a_fault() -> None:
    """Both are reported at once."""
    configuration = LiveConfiguration(of())
    stream = SUBMITTED.merged({MEMORY: "2048", COUNT: "50"})
    assert configuration.wanted(stream) is not None
    configuration.refused(stream, ConfigError(COUNT, "50", "too many", "less"))
    assert configuration.wanted(stream) is None
    assert [p.key for p in configuration.pending] == [MEMORY]


# --- mixed containers


MIXES = {**STORE, COUNT: "3", "job.container.mixed-roles": "true", "job.hotstandby.enabled": "true"}
HOSTS = {ProcessorId(p): Host(host) for p, host in (("0", "a"), ("1", "b"), ("2", "c"))}


class Mixed(Attempt):
    """Six tasks in three mixed containers, which run."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, FILE.merged(MIXES))
        config = FILE.merged(MIXES)
        self.stream.write([wire.set_config(key, value) for key, value in config.items()])
        self.stream.catch_up()
        self.planner = ModelPlanner(
            self.stream, self.job_models, self._counts, self._create_topics, Places(HOSTS)
        )
        self.take(self.planner.failed_over([]).model)

    def take(self, model: JobModel) -> None:
        """Publish it, and have it in force."""
        publication.publish(model, self.stream, lambda host: host)
        self.job_models.enter(self.job_models.version + 1, model)


def test_the_planner_deals_standbys_to_where_containers_run(tmp_path: Path) -> None:
    """That changes no container. The records give the same model, and the same assignment."""
    mixed = Mixed(tmp_path)
    model = mixed.job_models.model
    bare = mixed.planner.failed_over([])
    assert (bare.lost, bare.unbacked) == (0, 0)
    assert bare.model == model
    assert len(names(model)) == 8
    assert changed_containers(calculate_job_model(model.config, mixed.counts, NOTHING), model) == {}
    assert recorded_model(mixed.stream, model.config) == model
    known, assigned = next_model.previous_assignment(mixed.stream), assigned_by(model)
    assert (known.task_processors, known.standbys) == (assigned.task_processors, assigned.standbys)
    again = mixed.planner.reconfigured(model.config.merged({"task.window.ms": "5"}))
    assert again.containers == model.containers


def test_a_failover_is_a_change_of_the_planners_model(tmp_path: Path) -> None:
    """Kafka need not answer; a container without a task is a part of the recorded model."""
    mixed = Mixed(tmp_path)
    before, mixed.is_away = mixed.job_models.model, True
    found = mixed.planner.failed_over([P2])
    assert (found.lost, found.unbacked) == (1, 0)
    changed = changed_containers(before, found.model)
    assert changed[P2]["after"] == {}
    (task,) = changed[P2]["before"]
    (taker,) = changed.keys() - {P2}
    assert changed[taker]["after"].keys() - changed[taker]["before"].keys() == {task}
    mixed.take(found.model)
    assert recorded_model(mixed.stream, before.config) == found.model


def test_a_new_attempt_goes_on_with_the_model_of_the_failover(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until a user orders a change: then the empty container gets its share."""
    mixed = Mixed(tmp_path)
    made = []
    monkeypatch.setattr(next_model, "create_topics", lambda model, *_, **__: made.append(model))
    monkeypatch.setattr(next_model, "counts_now", lambda *_: mixed.counts)
    monkeypatch.setattr(
        next_model,
        "next_model",
        lambda config, _, before, *__, **___: calculate_job_model(config, mixed.counts, before),
    )
    found = mixed.planner.failed_over([P2]).model
    mixed.take(found)
    assert first_model(Submitted(found.config, found.config), mixed.stream) == found
    assert made == [found]
    mixed.stream.write([wire.set_config("task.window.ms", "7")])
    mixed.stream.catch_up()
    other = first_model(Submitted(found.config, found.config), mixed.stream)
    assert other.owners != found.owners
    assert {c for t, c in other.owners.items() if found.owners[t] != c} == {P2}


def test_a_new_attempt_keeps_nothing_of_what_was_read_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the change is wanted no more: owners stay, and containers that came for it go."""
    mixed = Mixed(tmp_path)
    monkeypatch.setattr(next_model, "create_topics", lambda *_, **__: None)
    monkeypatch.setattr(next_model, "counts_now", lambda *_: mixed.counts)
    monkeypatch.setattr(
        next_model,
        "next_model",
        lambda config, _, before, *__, **___: calculate_job_model(config, mixed.counts, before),
    )
    before, new = mixed.job_models.model, ProcessorId("3")
    goal = Goal({next(iter(before.owners)): new}, frozenset({*before.containers, new}))
    mixed.take(with_read_ahead(before, goal, Places({**HOSTS, new: Host("d")})))
    assert new in recorded_model(mixed.stream, before.config).containers
    found = first_model(Submitted(before.config, before.config), mixed.stream)
    assert found.containers.keys() == before.containers.keys()
    assert found.owners == before.owners


def test_the_planner_knows_where_files_are(tmp_path: Path) -> None:
    """A standby goes to the host where its task last ran, if there is room."""
    mixed = Mixed(tmp_path)
    bare = calculate_job_model(FILE.merged(MIXES), mixed.counts, NOTHING)
    mixed.take(bare)
    for task in bare.owners:
        place = HOSTS[P2] if bare.owners[task] != P2 else HOSTS[ProcessorId("0")]
        records = LocalityManager.messages(bare.owners[task], [task], place, 1)
        mixed.stream.write(records[:1])
    mixed.stream.catch_up()
    model = mixed.planner.failed_over([]).model
    kept = [t for t in model.containers[P2].tasks.values() if t.active_task is not None]
    assert len(kept) == 2
