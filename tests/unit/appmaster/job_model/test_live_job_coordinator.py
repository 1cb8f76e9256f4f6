"""The job coordinator of a running job: what changes its JobModel, and what does not."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest
from live_jobs import COUNT, FILE, IN, MONITOR, STORE, Job

from homeport.appmaster.job_model import live_job_coordinator
from homeport.appmaster.job_model.job_model_store import JobModelStore
from homeport.appmaster.job_model.live_configuration import LiveConfiguration
from homeport.appmaster.job_model.model_change import ModelChange
from homeport.appmaster.yarn.submission_file import Submitted
from homeport.config.config import Config
from homeport.config.errors import WireError
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.metadata.topics import InputTopicManager
from homeport.job_coordinator.metadata.upgrade import RollingRestartManager, digest_of
from homeport.job_coordinator.model.job_model import SystemStream
from homeport.job_coordinator.planning.input_watch import InputsSeen


@pytest.fixture(autouse=True)
def _quick_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The coordinator looks more often, so that what it does not do shows at once."""
    monkeypatch.setattr(live_job_coordinator, "_POLL_S", 0.01)


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """Six tasks in three containers, without state."""
    return Job(tmp_path)


def changed_by(job: Job, written: Mapping[str, str], at_once: str | None = None) -> ModelChange:
    """The one change that follows from these keys."""

    async def scene() -> None:
        job.live.heard(FILE.merged(written), at_once)
        await job.until(lambda: bool(job.configured_with))

    job.play(scene)
    (change,) = job.changes
    return change


def count_of(change: ModelChange) -> int:
    """How many containers it gives."""
    return len(change.model.containers)


def test_more_containers_are_the_next_version(job: Job) -> None:
    """The key is in the model, and the containers with other tasks are recorded."""
    before = job.job_models.model
    change = changed_by(job, {COUNT: "4"})
    assert (change.version, count_of(change), change.restarts_all) == (2, 4, False)
    assert change.model.config[COUNT] == "4"
    (event,) = job.events("model-change")
    assert event["version"] == 2
    assert set(event["changed"]) == {
        p
        for p in {*before.containers, *change.model.containers}
        if before.containers.get(p) != change.model.containers.get(p)
    }
    assert event["changed"]["3"]["before"] is None
    assert JobModelStore(job.folder).get(2) is None
    assert (job.folder / "job-model-2.json").exists()


def test_keys_written_during_a_change_are_the_next_change(job: Job) -> None:
    """Many keys in a row end in the last state, in as few versions as there was time for."""

    async def scene() -> None:
        for count in "45652":
            job.live.heard(FILE.merged({COUNT: count}))
            await asyncio.sleep(0)
        await job.until(lambda: bool(job.changes) and count_of(job.changes[-1]) == 2)

    job.play(scene)
    assert [c.version for c in job.changes] == list(range(2, 2 + len(job.changes)))


def test_a_key_that_containers_take_over_restarts_none(job: Job) -> None:
    """It is in a new version, by which running containers learn of it."""
    change = changed_by(job, {"task.commit.ms": "77"})
    assert not change.restarts_all
    assert change.why == "changed: task.commit.ms"
    assert change.model.config["task.commit.ms"] == "77"


def test_a_key_that_containers_read_when_they_start_restarts_one_after_the_other(job: Job) -> None:
    """Their tasks stay what they are; keys that they take over change nothing of that."""
    before = job.job_models.model.containers
    change = changed_by(job, {"my.key": "77", "task.commit.ms": "77"})
    assert not change.restarts_all
    assert change.rolling is not None
    assert change.rolling.former == {"my.key": None}
    assert change.messages == [RollingRestartManager.message(change.rolling)]
    assert change.model.containers == before


@pytest.mark.parametrize(
    ("written", "at_once"),
    [
        ({"my.key": "77"}, digest_of("my.key", "77")),
        ({"my.key": "77", "job.container.count": "1"}, None),
        ({"my.key": "77", "cluster-manager.container.retry.count": "0"}, None),
    ],
)
def test_all_restart_at_once_where_nothing_could_be_taken_back_container_by_container(
    job: Job, written: dict[str, str], at_once: str | None
) -> None:
    """By an order, where tasks move, or where the first failure ends the job."""
    change = changed_by(job, written, at_once)
    assert change.restarts_all
    assert change.rolling is None
    assert change.messages == []


def test_an_order_to_restart_all_at_once_is_for_its_value_alone(job: Job) -> None:
    """Another value of the key, or another key beside it, comes container by container."""

    async def scene() -> None:
        job.live.heard(FILE.merged({"my.key": "78"}), digest_of("my.key", "77"))
        await job.until(lambda: len(job.changes) == 1)
        both = FILE.merged({"my.key": "77", "my.other": "1"})
        job.live.heard(both, digest_of("my.key", "77"))
        await job.until(lambda: len(job.changes) == 2)

    job.play(scene)
    assert [change.restarts_all for change in job.changes] == [False, False]


def test_a_key_of_the_driver_is_applied_and_touches_no_container(job: Job) -> None:
    """It is in the model that the AM serves, which is a new version that changes no container."""
    change = changed_by(job, {"cluster-manager.container.retry.count": "3"})
    assert not change.restarts_all
    assert job.events("model-change")[0]["changed"] == {}
    assert job.configured_with == [change.model.config]


def test_an_impossible_change_is_reported_and_changes_nothing(job: Job) -> None:
    """More containers than tasks, then a pending key; a sound value ends the fault."""

    async def scene() -> None:
        memory = {"cluster-manager.container.memory.mb": "640"}
        job.live.heard(FILE.merged({COUNT: "7"}))
        await job.until(lambda: job.live.shown().fault is not None)
        assert str(job.live.shown().fault).startswith(f"{COUNT} = '7'")
        job.live.heard(FILE.merged(memory))
        await job.until(lambda: job.live.shown().fault is None)
        assert [p.key for p in job.live.shown().pending] == [*memory]

    job.play(scene)
    assert job.changes == []
    (event,) = job.events("key-pending")
    assert (event["in_force"], event["wanted"]) == (None, "640")


def test_a_model_that_cannot_be_written_is_refused(job: Job) -> None:
    """As one whose record is too large; the next sound configuration is applied."""
    job.write_fault = WireError("a record is too large")

    async def scene() -> None:
        job.live.heard(FILE.merged({COUNT: "4"}))
        await job.until(lambda: job.live.shown().fault == "a record is too large")
        job.write_fault = None
        job.live.heard(FILE.merged({COUNT: "5"}))
        await job.until(lambda: bool(job.changes))

    job.play(scene)
    assert [(c.version, count_of(c)) for c in job.changes] == [(2, 5)]
    assert job.live.shown().fault is None


def test_a_stream_that_hides_a_changelog_partition_is_refused(job: Job) -> None:
    """Going on would give a task another task's state; of a job from before nothing else has it."""

    async def scene() -> None:
        job.stream.write([CoordinatorStreamMessage("set-state-fact", "partitions 0", None)])
        job.stream.write([CoordinatorStreamMessage("set-changelog", "Partition 0", {"a": "b"})])
        job.stream.catch_up()
        job.live.heard(FILE.merged({COUNT: "4"}))
        await job.until(lambda: job.live.shown().fault is not None)

    job.play(scene)
    assert "Partition 0" in str(job.live.shown().fault)
    assert job.changes == []


def test_there_is_no_early_publication(job: Job) -> None:
    """What runs is not known yet, or the job ends."""
    job.is_changeable = False

    async def scene() -> None:
        job.live.heard(FILE.merged({COUNT: "4"}))
        await job.some_rounds()
        assert job.changes == []
        job.is_changeable = True
        await job.until(lambda: bool(job.changes))

    job.play(scene)


def test_without_kafka_the_model_stays_until_it_is_back(job: Job) -> None:
    """What is known without it is done; what has become of the inputs is seen then."""
    job.is_away = True
    job.partitions = 8

    async def scene() -> None:
        job.live.heard(FILE.merged({COUNT: "4"}))
        await job.until(lambda: len(job.changes) == 1)
        await job.some_rounds()
        assert len(job.changes) == 1
        job.is_away = False
        await job.until(lambda: len(job.changes) == 2)

    job.play(scene)
    assert job.ends == []


def test_h6_new_partitions_get_tasks_where_there_is_no_state(job: Job) -> None:
    """H6: without a durable store the job goes on, with a task for each new partition."""

    async def scene() -> None:
        await job.some_rounds()
        assert job.changes == []
        job.partitions = 8
        await job.until(lambda: bool(job.changes))

    job.play(scene)
    tasks = [t for c in job.changes[0].model.containers.values() for t in c.tasks]
    assert len(tasks) == 8
    assert "grown from 6 to 8" in job.changes[0].why
    assert job.ends == []


def test_h6_growth_that_state_cannot_follow_ends_the_job(tmp_path: Path) -> None:
    """H6: with a durable store the job is FAILED, with one line that says why."""
    job = Job(tmp_path, FILE.merged(STORE))

    async def scene() -> None:
        job.partitions = 7
        await job.until(lambda: bool(job.ends))

    job.play(scene)
    assert job.changes == []
    (end,) = job.ends
    assert end.result == "FAILED"
    assert "grown from 6 to 7 partitions, and the job has state" in end.diagnostics
    assert "\n" not in end.diagnostics


MORE = SystemStream("kafka", "more")
WITH_MORE = FILE.merged({**STORE, "task.inputs": "kafka.in,kafka.more"})


def test_an_input_comes_to_a_running_job_with_state_and_goes(tmp_path: Path) -> None:
    """Containers whose tasks read it restart, no others; its topic is known from then on."""
    job = Job(tmp_path, FILE.merged(STORE))
    job.others = {MORE: 2}
    before = job.job_models.model

    async def scene() -> None:
        job.live.heard(WITH_MORE)
        await job.until(lambda: len(job.changes) == 1)
        assert InputTopicManager(job.stream).ids()[MORE] == "id"
        await job.some_rounds()
        job.live.heard(FILE.merged(STORE))
        await job.until(lambda: len(job.changes) == 2)

    job.play(scene)
    came, left = job.changes
    assert not came.restarts_all
    assert came.rolling is None
    assert came.why == "changed: task.inputs"
    assert {*job.events("model-change")[0]["changed"]} == {
        p for p, c in before.containers.items() if {"Partition 0", "Partition 1"} & {*c.tasks}
    }
    assert left.model.containers == before.containers
    assert job.ends == []


@pytest.mark.parametrize(
    ("others", "inputs", "rule"),
    [
        ({MORE: 7}, "kafka.in,kafka.more", "no partition of the changelogs; give it 6 partitions"),
        ({MORE: 6}, "kafka.more", "none of the inputs that made its state would stay"),
        ({}, "kafka.in,kafka.more", "the input stream must exist"),
    ],
)
def test_an_input_that_would_move_state_is_refused_and_the_job_goes_on(
    tmp_path: Path, others: dict[SystemStream, int], inputs: str, rule: str
) -> None:
    """The status has one line; a sound value is applied afterwards."""
    job = Job(tmp_path, FILE.merged(STORE))
    job.others = others

    async def scene() -> None:
        job.live.heard(FILE.merged({**STORE, "task.inputs": inputs}))
        await job.until(lambda: job.live.shown().fault is not None)
        assert rule in str(job.live.shown().fault)
        job.live.heard(FILE.merged({**STORE, COUNT: "2"}))
        await job.until(lambda: bool(job.changes))

    job.play(scene)
    assert job.ends == []
    assert count_of(job.changes[0]) == 2


@pytest.mark.parametrize(
    ("key", "remedy"),
    [
        ({}, "'refuse': input kafka.more was"),
        ({"job.input.recreated": "begin"}, "before; submit the job again to keep the state"),
    ],
)
def test_an_input_that_was_recreated_while_the_job_did_not_read_it_is_refused(
    tmp_path: Path, key: dict[str, str], remedy: str
) -> None:
    """What the job has committed of it is of the topic before; the job goes on without it."""
    job = Job(tmp_path, FILE.merged(key))
    job.others, job.ids = {MORE: 6}, {IN: "id", MORE: "second"}
    InputTopicManager(job.stream).write({MORE: "first"})
    job.stream.catch_up()

    async def scene() -> None:
        job.live.heard(FILE.merged({"task.inputs": "kafka.in,kafka.more", **key}))
        await job.until(lambda: job.live.shown().fault is not None)
        await job.some_rounds()

    job.play(scene)
    assert remedy in str(job.live.shown().fault)
    assert "kafka.more was deleted and recreated (its id is second" in str(job.live.shown().fault)
    assert job.ends == []
    assert job.changes == []


def test_a_recreated_input_ends_the_job(job: Job) -> None:
    """Fewer partitions than before: it is not the topic that was read."""

    async def scene() -> None:
        job.partitions = 5
        await job.until(lambda: bool(job.ends))

    job.play(scene)
    assert job.ends[0].result == "FAILED"
    assert "recreated" in job.ends[0].diagnostics


def test_a_driver_that_follows_knows_the_topics_of_the_one_before(job: Job) -> None:
    """A topic of as many partitions, recreated when no driver looked, is not the one read."""
    seen: list[str] = []
    topic_id = "first"

    def look(_: Config) -> InputsSeen:
        seen.append(topic_id)
        return InputsSeen({IN: 6}, {IN: topic_id})

    async def some_looks() -> None:
        seen.clear()
        await job.until(lambda: len(seen) > 1 or bool(job.ends))

    job.live = job.coordinator(look)
    job.play(some_looks)
    job.stream.catch_up()
    assert InputTopicManager(job.stream).ids() == {IN: "first"}
    topic_id = "second"
    job.live = job.coordinator(look)
    job.play(some_looks)
    assert [end.result for end in job.ends] == ["FAILED"]
    assert "was deleted and recreated" in job.ends[0].diagnostics


def test_an_input_that_is_gone_for_a_moment_ends_nothing(job: Job) -> None:
    """A broker that has just begun may not know it yet: the second look reports the fault."""
    looks: list[int] = []

    def look(_: Config) -> InputsSeen:
        looks.append(len(looks))
        return InputsSeen({} if len(looks) == 1 else {IN: 6}, {IN: "id"})

    job.live = job.coordinator(look)

    async def scene() -> None:
        await job.until(lambda: len(looks) > 2)

    job.play(scene)
    assert job.ends == []


def test_a_settled_configuration_is_not_checked_again(job: Job) -> None:
    """Neither what is in force already nor what cannot be: a configuration may be large."""
    looked: list[Config] = []
    wanted = LiveConfiguration.wanted

    class Counting(LiveConfiguration):
        def wanted(self, stream: Config) -> Config | None:
            looked.append(stream)
            return wanted(self, stream)

    job.configuration = Counting(Submitted(FILE, FILE))
    job.live = job.coordinator()

    async def scene() -> None:
        for count, stream in enumerate((FILE, FILE.merged({COUNT: "many"}))):
            job.live.heard(stream)
            await job.until(partial(_has_more_than, looked, count))
            await job.some_rounds()

    job.play(scene)
    assert len(looked) == 2


def _has_more_than(found: list[Config], count: int) -> bool:
    return len(found) > count


def test_a_key_that_changes_while_inputs_have_grown_does_not_pull_them_in(tmp_path: Path) -> None:
    """Between two looks of the monitor the partitions of the model stay as they are."""
    job = Job(tmp_path, FILE.merged({MONITOR: "3600000"}))

    async def scene() -> None:
        await job.some_rounds()
        job.partitions = 8
        job.live.heard(job.job_models.model.config.merged({COUNT: "4"}))
        await job.until(lambda: bool(job.changes))

    job.play(scene)
    tasks = [t for c in job.changes[0].model.containers.values() for t in c.tasks]
    assert len(tasks) == 6


@pytest.mark.parametrize("value", ["1" + "0" * 400, "1" + "0" * 5_000, "3600000"])
def test_an_interval_that_would_make_the_driver_deaf_is_not_applied(job: Job, value: str) -> None:
    """Samza's tools can write it: the one in force stays; status and history say so, once."""
    key = "job.coordinator.catch-up.interval.ms"

    async def scene() -> None:
        job.live.heard(FILE.merged({key: value}))
        await job.until(lambda: job.live.shown().fault is not None)
        job.live.heard(FILE.merged({key: value, "other.key": "1"}))
        rounds = job.rounds
        await job.until(lambda: job.rounds > rounds + 2)
        job.live.heard(FILE.merged({key: "500"}))
        await job.until(lambda: job.live.shown().fault is None)
        await job.until(lambda: bool(job.changes))

    job.play(scene)
    (change,) = job.changes
    assert change.model.config[key] == "500"
    (event,) = job.events("configuration-refused")
    assert event["fault"].startswith(f"{key} = '{value[:40]}")


# --- what is written into the coordinator stream of a running job and makes no new JobModel


def test_a_key_that_no_program_reads_changes_nothing(job: Job) -> None:
    """A typo, however it came into the stream: no version, no restart, nothing forgiven."""

    async def scene() -> None:
        job.live.heard(FILE.merged({"task.comit.ms": "77", "task.my.own": "7", "app.name": "x"}))
        await job.some_rounds()
        assert job.changes == []
        assert job.live.shown().fault is None
        assert job.live.shown().pending == ()
        job.live.heard(FILE.merged({"task.comit.ms": "78", "task.commit.ms": "77"}))
        await job.until(lambda: bool(job.changes))

    job.play(scene)
    (change,) = job.changes
    assert change.why == "changed: task.commit.ms"
    assert "task.comit.ms" not in change.model.config


@pytest.mark.parametrize("more", [{}, {"my.key": " 5"}, {COUNT: "03", "task.commit.ms": ""}])
def test_a_value_that_is_so_already_changes_nothing(job: Job, more: dict[str, str]) -> None:
    """Written again, or written otherwise."""
    job.job_models.reconfigured(FILE.merged({"my.key": more.get("my.key", "5")}))

    async def scene() -> None:
        job.live.heard(FILE.merged({"my.key": more.get("my.key", "5"), **more}))
        await job.some_rounds()

    job.play(scene)
    assert job.changes == []


def test_a_token_is_in_force_without_a_new_model(job: Job) -> None:
    """No version, so that no failure is forgiven; beside another key it is part of a change."""
    key = "cluster-manager.jobcoordinator.tokens.read"
    token = f"ada:{'ab' * 32}"

    async def scene() -> None:
        job.live.heard(FILE.merged({key: token}))
        await job.until(lambda: job.job_models.model.config.get(key) == token)
        assert (job.changes, job.job_models.version) == ([], 1)
        job.live.heard(FILE)
        await job.until(lambda: key not in job.job_models.model.config)
        job.live.heard(FILE.merged({key: token, "task.commit.ms": "77"}))
        await job.until(lambda: bool(job.changes))

    job.play(scene)
    assert [event["keys"] for event in job.events("tokens-changed")] == [[key], [key]]
    assert job.changes[0].version == 2
