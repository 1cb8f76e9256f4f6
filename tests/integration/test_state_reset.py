"""One-time configuration and ``run-job --reset-state``, on a real YARN and Kafka."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import Consumer, TopicPartition
from yarn_jobs import PARTITIONS, Job

from homeport.config.config import Config
from homeport.config.sections import SystemConfig
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.metadata.coordinator_stream_message import MessageType
from homeport.job_coordinator.metadata.state_reset import (
    ResetPhase,
    StateReset,
    StateResetManager,
)


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


def reset(job: Job, *overrides: str) -> str:
    """The job runs from nothing; what the command said."""
    done = job.call("run", *overrides, reset_state=True)
    assert done.returncode == 0, done.stderr
    job.learn(done.stdout)
    return done.stderr


def test_state_is_thrown_away_only_on_request(make_job: Callable[[str], Job]) -> None:
    """A changed changelog is refused in one line; with a reset the job counts all again.

    The directories of the old state are discarded with the reason, and the next run is as any.
    """
    job = make_job("renewed")
    job.produce(600)
    job.run()
    job.wait_until_running()
    job.expects(600)
    running = job.call("run", reset_state=True)
    assert running.stderr.startswith("error: job.name = 'renewed'"), running.stderr
    job.kill()
    assert_refused(
        job,
        "stores.counts.changelog = 'kafka.other': it was 'kafka.renewed-counts' when the job's "
        "state was made, which a change would mix up; set it back, or begin from nothing by "
        "run-job --reset-state",
        "stores.counts.changelog=kafka.other",
    )

    said = reset(job)
    topics = "kafka.__samza_checkpoint_ver_1_for_renewed_1, kafka.renewed-counts"
    assert f"reset: made anew are {topics}\n" in said
    again = job.wait_until_running()
    job.expects(600)
    restored = [r for c in again.values() for r in c["restored"]["counts"].values()]
    assert len(restored) == PARTITIONS
    assert all("the changelog was made anew: its topic id is" in r["reason"] for r in restored)
    assert {r["records"] for r in restored} == {0}
    assert job.kill() == f"stopped {job.application_id} in order"

    job.produce(100, first=600)
    job.run()
    last = job.wait_until_running()
    job.expects(700)
    kinds = {r["kind"] for c in last.values() for r in c["restored"]["counts"].values()}
    assert kinds == {"none"}
    assert job.kill() == f"stopped {job.application_id} in order"
    job.judge_history()


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
        "finished, and nothing starts on the rest of a state; finish it by run-job --reset-state",
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
