"""The checkpoint topic of a job on a real broker: known by its id, gone, and recreated."""

from __future__ import annotations

import uuid

import pytest
from job_configs import job_config
from stream_containers import DEADLINE_S, Make
from stream_in_memory import InMemoryCoordinatorStream

from homeport.config.errors import ConfigError
from homeport.config.settings.sections import SystemConfig, TaskConfig
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.previous_assignment import NOTHING
from homeport.job_coordinator.kafka.checkpoint_topic import CheckpointTopic
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.job_coordinator.metadata.state_reset import state_removed
from homeport.job_coordinator.metadata.topics import CheckpointTopicManager
from homeport.job_coordinator.model.job_model import JobModel
from homeport.job_coordinator.planning.next_model import create_topics

STORES = {
    "stores.counts.factory": "rocksdb",
    "stores.counts.changelog.replication.factor": "1",
    "stores.counts.key.serde": "string",
    "stores.counts.msg.serde": "long",
}
RESET = "begin from nothing by run-job --reset-state"


class Positions:
    """A job's checkpoint topic and its stream, as an attempt and a submission see them."""

    def __init__(self, servers: str, *, has_state: bool) -> None:
        name = f"positions-{uuid.uuid4().hex[:10]}"
        changelog = {**STORES, "stores.counts.changelog": f"kafka.{name}-counts"}
        own = {"job.name": name, **(changelog if has_state else {})}
        self.config = job_config(servers, own)
        self.topic = TaskConfig.of(self.config).checkpoint_topic
        self.admin = TopicAdmin(SystemConfig.of(self.config, "kafka"))
        self.stream = InMemoryCoordinatorStream()

    @property
    def model(self) -> JobModel:
        """Of two tasks."""
        return calculate_job_model(self.config, {SystemStream("kafka", "in"): 2}, NOTHING)

    def begin(self, *, is_submission: bool = True) -> None:
        """An attempt begins."""
        create_topics(self.model, self.stream, is_submission=is_submission)
        self.stream.catch_up()

    def refused(self) -> str:
        """Neither run-job nor an attempt lets the job begin, and nothing has been made."""
        before, length = self.admin.existing_ids([self.topic]), len(self.stream.log)
        with pytest.raises(ConfigError) as caught:
            CheckpointTopic(self.config, self.stream).check()
        for is_submission in (False, True):
            with pytest.raises(ConfigError) as by_driver:
                self.begin(is_submission=is_submission)
            assert str(by_driver.value) == str(caught.value)
        assert self.admin.existing_ids([self.topic]) == before
        assert len(self.stream.log) == length
        return str(caught.value)

    def make_anew(self) -> tuple[str, str]:
        """Deletes the topic and creates it again. Returns the old id and the new one."""
        return recreated(self.admin, self.topic)


def recreated(admin: TopicAdmin, topic: str) -> tuple[str, str]:
    """The topic was deleted and made again, empty; the old id and the new one."""
    old = admin.topic_ids([topic])[topic]
    admin.delete(topic)
    admin.create(topic, 1, 1, {"cleanup.policy": "compact"})
    return old, admin.topic_ids([topic])[topic]


@pytest.mark.parametrize("has_state", [True, False])
def test_positions_that_are_gone_are_not_begun_again_in_silence(
    kafka: str, *, has_state: bool
) -> None:
    """Of a job with stores and of one without: by no submission and no attempt."""
    positions = Positions(kafka, has_state=has_state)
    positions.begin()
    positions.begin(is_submission=False)
    positions.admin.delete(positions.topic)
    assert positions.refused() == (
        f"topic = 'kafka.{positions.topic}': the topic does not exist any more, and it held the "
        f"input positions of the job; {RESET}"
    )


@pytest.mark.parametrize("has_state", [True, False])
def test_a_recreated_checkpoint_topic_is_accepted_only_after_a_reset(
    kafka: str, *, has_state: bool
) -> None:
    """The reset takes the record away; the next attempt records what it finds."""
    positions = Positions(kafka, has_state=has_state)
    positions.begin()
    old, new = positions.make_anew()
    assert positions.refused() == (
        f"topic = 'kafka.{positions.topic}': the topic was deleted and recreated (its id is {new}, "
        f"it was {old}), and the one before held the input positions of the job; {RESET}"
    )
    positions.stream.write(state_removed(positions.stream))
    positions.stream.catch_up()
    positions.begin()
    recorded = CheckpointTopicManager(positions.stream)
    assert recorded.read(SystemStream("kafka", positions.topic)) == new


def test_a_job_of_an_older_version_keeps_its_positions(kafka: str) -> None:
    """Its stream has no record: the topic is recorded as it is found."""
    positions = Positions(kafka, has_state=False)
    positions.admin.create(positions.topic, 1, 1, {"cleanup.policy": "compact"})
    CheckpointTopic(positions.config, positions.stream).check()
    positions.begin()
    positions.make_anew()
    positions.refused()


def test_a_job_without_checkpoints_has_no_such_topic(kafka: str) -> None:
    """Nothing is made, compared or recorded."""
    positions = Positions(kafka, has_state=False)
    positions.config = positions.config.merged({"task.checkpoint.factory": "none"})
    assert not TaskConfig.of(positions.config).checkpoint_enabled
    CheckpointTopic(positions.config, positions.stream).check()
    positions.begin()
    assert positions.admin.existing_ids([positions.topic]) == {}


def test_a_checkpoint_topic_recreated_under_a_container_ends_the_container(make: Make) -> None:
    """It ends at its next commit, in one line; and no container starts where it is not known."""
    job = make(task_commit_ms="200")
    topic = TaskConfig.of(job.config).checkpoint_topic
    admin = TopicAdmin(SystemConfig.of(job.config, "kafka"))
    with job.coordinator_stream() as stream:
        known = admin.topic_ids([topic])[topic]
        CheckpointTopicManager(stream).write(SystemStream("kafka", topic), known)
    first = job.start(1)
    job.produce([(0, b"word", b"")] * 20)
    job.until(lambda: job.processed() == 20, first)
    old, new = recreated(admin, topic)
    assert first.process.wait(DEADLINE_S) == 1
    line = (
        f"topic = 'kafka.{topic}': the topic was deleted and recreated (its id is {new}, it was "
        f"{old}), and the one before held the input positions of the job; {RESET}"
    )
    # It may have looked while there was no such topic.
    gone = "does not exist any more, and it held the input positions of the job"
    rules = {line, f"topic = 'kafka.{topic}': the topic {gone}; {RESET}"}
    assert first.last_line() in {f"error: while the container ran, {rule}" for rule in rules}
    job.produce([(0, b"word", b"")])
    second = job.start(2, fence=[1])
    assert second.process.wait(DEADLINE_S) == 1
    assert second.last_line() == f"error: {line}"
    assert job.table("changelog") == {"word": b"\x00\x00\x00\x00\x00\x00\x00\x14"}
