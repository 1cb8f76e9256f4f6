"""One-time configuration and ``run-job --reset-state``, on a real YARN and Kafka."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial

import pytest
from confluent_kafka import Consumer, TopicPartition
from job_configs import job_config, kafka_system
from yarn_jobs import PARTITIONS, Job

from homeport.appmaster.job_model.takeover import OutrankedError
from homeport.cli.yarn.state_reset import check_topics, state_topics, taking_over
from homeport.cli.yarn.submission_claim import fence_command, take_number
from homeport.config.config import Config
from homeport.config.errors import ConfigError, FencedError, HomeportError, UnavailableError
from homeport.config.settings.sections import JobConfig, SystemConfig
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import MessageType
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.kafka.topics import TopicAdmin, coordinator_topic_spec
from homeport.job_coordinator.metadata.epochs import EpochManager
from homeport.job_coordinator.metadata.state_reset import ResetPhase, StateReset, StateResetManager

GROUPER = "job.systemstreampartition.grouper.factory"
BY_SSP = "group-by-system-stream-partition"


def stream_of(job: Job) -> CoordinatorStreamStore:
    """The job's coordinator stream, read to its head."""
    system = SystemConfig.of(Config(job.values), "kafka")
    store = CoordinatorStreamStore(system, f"__samza_coordinator_{job.name}_1", source="test")
    store.bootstrap()
    return store


def ends(job: Job) -> dict[str, int]:
    """{topic and partition: its end} of every topic of the job."""
    consumer = Consumer({"bootstrap.servers": job.servers, "group.id": "nobody"})
    try:
        topics = consumer.list_topics(timeout=10).topics
        return {
            f"{name}-{p}": consumer.get_watermark_offsets(TopicPartition(name, p), timeout=10)[1]
            for name, topic in topics.items()
            if job.name in name
            for p in topic.partitions
        }
    finally:
        consumer.close()


def assert_refused(job: Job, line: str, *overrides: str) -> None:
    """One line, and no record is written anywhere."""
    before = ends(job)
    done = job.call("run", *overrides)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: {line}\n"
    assert ends(job) == before


def assert_swapped_states_are_refused(job: Job) -> None:
    """As a program of Samza's may write it: each of two tasks would get the other's counts."""
    with stream_of(job) as store:
        store.write([wire.set_changelog("Partition 0", 1), wire.set_changelog("Partition 1", 0)])
    assert_refused(
        job,
        "set-changelog Partition 0 = '1': the state of task 'Partition 0' is in changelog "
        "partition 0; write it back: coordinator-stream-writer --type=set-changelog "
        "--key='Partition 0' --value=0",
    )


def reset(job: Job, *overrides: str) -> str:
    """The job runs from nothing; what the command said."""
    done = job.call("run", *overrides, reset_state=True)
    assert done.returncode == 0, done.stderr
    job.learn(done.stdout)
    return done.stderr


@pytest.mark.long
def test_a_grouper_is_changed_only_with_a_reset_of_the_state(
    make_job: Callable[[str], Job],
) -> None:
    """Refused in one line, nothing changed; with a reset the job counts all again, from nothing.

    Back under the first grouper the directories of the old state are discarded, with the reason;
    the next run is as any.
    """
    job = make_job("regrouped")
    job.values["job.container.count"] = "1"
    job.produce(600)
    job.run()
    job.wait_until_running()
    job.expects(600)
    running = job.call("run", reset_state=True)
    assert running.stderr.startswith("error: job.name = 'regrouped'"), running.stderr
    job.kill()
    for key, old, new in (
        (GROUPER, "its default", BY_SSP),
        ("stores.counts.changelog", "kafka.regrouped-counts", "kafka.other"),
    ):
        assert_refused(
            job,
            f"{key} = '{new}': it was '{old}' when the job's state was made, which a change would "
            "mix up; set it back, or begin from nothing by run-job --reset-state",
            f"{key}={new}",
        )

    assert_swapped_states_are_refused(job)
    printed = reset(job, f"{GROUPER}={BY_SSP}")
    topics = "kafka.__samza_checkpoint_ver_1_for_regrouped_1, kafka.regrouped-counts"
    assert f"reset: recreated: {topics}\n" in printed
    job.wait_until_running()
    job.expects(600)
    tasks = {t for c in job.get("")["containers"].values() for t in c["tasks"]}
    assert tasks == {f"SystemStreamPartition [kafka, regrouped-in, {p}]" for p in range(PARTITIONS)}
    assert job.kill() == f"stopped {job.application_id} in order"

    reset(job)
    again = job.wait_until_running()
    job.expects(600)
    restored = [r for c in again.values() for r in c["restored"]["counts"].values()]
    reasons = [r["reason"] or "" for r in restored if r["reason"] is not None]
    assert {r["records"] for r in restored} == {0}
    assert reasons
    assert all("the changelog was recreated: its topic id is" in reason for reason in reasons)
    assert job.kill() == f"stopped {job.application_id} in order"

    job.produce(100, first=600)
    job.run()
    last = job.wait_until_running()
    job.expects(700)
    kinds = {r["kind"] for c in last.values() for r in c["restored"]["counts"].values()}
    assert kinds == {"none"}
    job.end()


@pytest.mark.long
def test_a_reset_that_was_cut_short_is_finished_first(make_job: Callable[[str], Job]) -> None:
    """run-job refuses until ``--reset-state`` is given once more."""
    job = make_job("halved")
    job.produce(60)
    job.run("job.container.count=1")
    job.wait_until_running()
    job.expects(60)
    job.kill()
    with stream_of(job) as stream:
        StateResetManager(stream).write(StateReset(2, ResetPhase.BEGUN))
    assert_refused(
        job,
        "--reset-state = 'begun': a reset of the job's state began with submission 2 and was not "
        "finished, and nothing starts on what is left of that state; "
        "finish it by run-job --reset-state",
        "job.container.count=1",
    )
    done = job.call("run", "job.container.count=1", reset_state=True)
    assert done.returncode == 0, done.stderr
    job.learn(done.stdout)
    job.wait_until_running()
    job.expects(60)
    with stream_of(job) as stream:
        last = StateResetManager(stream).read()
        assert last is not None
        assert last.phase is ResetPhase.FINISHED
        assert len(stream.latest(MessageType.SET_CHANGELOG)) == PARTITIONS
    job.kill()
    job.judge_history()


@pytest.mark.parametrize("phase", [ResetPhase.BEGUN, ResetPhase.CONVERTING, ResetPhase.DELETING])
def test_what_was_overtaken_before_it_began_changes_nothing(kafka: str, phase: ResetPhase) -> None:
    """A command that stood still behind its claim, while the next one did all, and the job runs."""
    config = job_config(kafka)
    TopicAdmin(kafka_system(kafka)).ensure(coordinator_topic_spec(JobConfig.of(config)))
    done = StateReset(2, ResetPhase.FINISHED)
    with taking_over(config, 2, StateReset(2, phase)) as (stream, _):
        StateResetManager(stream).write(done)
    with pytest.raises(OutrankedError), taking_over(config, 1, StateReset(1, phase)):
        pytest.fail("it was overtaken")
    with CoordinatorStreamStore.of(config, source="test") as store:
        store.bootstrap()
        assert StateResetManager(store).read() == done


@pytest.mark.parametrize("stands", ["before its id", "before its phase"])
def test_a_command_that_a_claim_has_passed_over_changes_nothing(
    kafka: str, stands: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stood still behind its claim; a run-job has waited in vain, and runs no attempt yet."""
    config = job_config(kafka)
    TopicAdmin(kafka_system(kafka)).ensure(coordinator_topic_spec(JobConfig.of(config)))
    begun = StateReset(1, ResetPhase.BEGUN)
    with CoordinatorStreamStore.of(config, source="test") as store:
        store.bootstrap()

        def claim(name: str) -> int:
            fence = partial(fence_command, config)
            return take_number(store, name, lambda: (), lambda: None, fence)

        write = StateResetManager.write

        def passed_over(manager: StateResetManager, reset: StateReset) -> None:
            assert claim("run-job") == 2
            write(manager, reset)

        assert claim("command") == 1
        error: type[HomeportError] = FencedError
        if stands == "before its id":
            assert claim("run-job") == 2
            error = UnavailableError
        else:
            monkeypatch.setattr(StateResetManager, "write", passed_over)
        with pytest.raises(error), taking_over(config, 1, begun):
            pytest.fail("it was overtaken")
        store.catch_up()
        assert StateResetManager(store).read() is None
        assert EpochManager(store).read_am_epoch() is None


@pytest.mark.parametrize(
    ("topic", "cleanup", "rule"),
    [
        ("kafka.plain", "delete", "its cleanup.policy is 'delete', which is no changelog's"),
        ("kafka.in", "compact", "it is an input of the job"),
        ("kafka.rules", "compact", "it is an input of the job"),
    ],
)
def test_a_topic_that_is_no_changelog_is_not_deleted(
    kafka: str, topic: str, cleanup: str, rule: str
) -> None:
    """A topic that a store names by mistake is reported, not lost."""
    mark = uuid.uuid4().hex[:8]
    name = f"{topic}-{mark}"
    config = job_config(
        kafka,
        {
            "job.name": f"careful-{mark}",
            "task.inputs": f"kafka.in-{mark}",
            "task.broadcast.inputs": f"kafka.rules-{mark}#0",
            "stores.s.changelog": name,
        },
    )
    admin = TopicAdmin(SystemConfig.of(config, "kafka"))
    topics = state_topics(Config(), config)
    assert [str(t) for t in topics] == [
        f"kafka.__samza_checkpoint_ver_1_for_careful-{mark}_1",
        name,
    ]
    check_topics(topics, config, Config())
    admin.create(name.partition(".")[2], 1, 1, {"cleanup.policy": cleanup})
    with pytest.raises(ConfigError) as caught:
        check_topics(topics, config, Config())
    assert caught.value.value == name
    assert caught.value.rule == f"a reset of the state would delete it, and {rule}"


@pytest.mark.parametrize(
    "keys",
    [{"stores.s.rocksdb.ttl.ms": "5000"}, {"stores.s.changelog.kafka.cleanup.policy": "delete"}],
)
def test_a_changelog_that_deletes_by_age_may_be_recreated(kafka: str, keys: dict[str, str]) -> None:
    """As configured now, or when the state was made."""
    topic = f"aging-{uuid.uuid4().hex[:8]}"
    config = job_config(kafka, {"job.name": topic, "stores.s.changelog": topic})
    aging = config.merged(keys)
    admin = TopicAdmin(SystemConfig.of(config, "kafka"))
    admin.create(topic, 1, 1, {"cleanup.policy": "delete"})
    topics = state_topics(Config(), config)
    check_topics(topics, aging, Config())
    check_topics(topics, config, aging)
    with pytest.raises(ConfigError, match="is no changelog's"):
        check_topics(topics, config, Config())


def test_a_recreated_topic_has_another_id(kafka: str) -> None:
    """Deleted and made again at once it is empty and has another id; an absent one is gone."""
    admin, name = TopicAdmin(kafka_system(kafka)), f"renewed-{uuid.uuid4().hex[:8]}"
    admin.delete(name)
    ids = set()
    for _ in range(3):
        admin.create(name, 2, 1, {"cleanup.policy": "compact"})
        ids.add(admin.topic_ids([name])[name])
        admin.delete(name)
        assert admin.partition_counts([name]) == {}
    assert len(ids) == 3
