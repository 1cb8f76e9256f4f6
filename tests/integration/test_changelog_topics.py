"""Changelogs of a job on a real broker: made, checked, deleted and recreated under a container."""

from __future__ import annotations

import uuid

import pytest
from confluent_kafka import Producer
from counted_words import words
from job_configs import job_config
from stream_containers import DEADLINE_S, Job, Make
from stream_in_memory import InMemoryCoordinatorStream
from topic_records import alter

from homeport.cli.yarn import state_check
from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.settings.sections import SystemConfig
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.kafka.changelog_topics import ChangelogTopics, holds_records
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.job_coordinator.metadata.topics import ChangelogTopicManager, ChangelogTopicRecord


class Stores:
    """A job's changelog and its stream, as an attempt and a submission see them."""

    def __init__(self, servers: str, **more: str) -> None:
        self.servers = servers
        self.topic = f"counts-{uuid.uuid4().hex[:10]}"
        self.changelog = SystemStream("kafka", self.topic)
        self.config = job_config(
            servers,
            {
                "stores.counts.factory": "rocksdb",
                "stores.counts.changelog": self.topic,
                "stores.counts.changelog.replication.factor": "1",
                "stores.counts.key.serde": "string",
                "stores.counts.msg.serde": "long",
                **{key.replace("_", "."): value for key, value in more.items()},
            },
        )
        self.system = SystemConfig.of(self.config, "kafka")
        self.admin = TopicAdmin(self.system)
        self.stream = InMemoryCoordinatorStream()

    def begin(self, partitions: int = 2, *, is_submission: bool = False) -> list[str]:
        """An attempt begins, with so many tasks. Returns the messages of the check."""
        topics = ChangelogTopics(self.config, self.stream)
        stated = topics.check(partitions, may_be_replaced=is_submission)
        topics.make(partitions)
        self.stream.catch_up()
        return stated

    def make_anew(self, partitions: int = 2) -> str:
        """Deletes the topic and creates it again, empty. Returns the new id."""
        self.admin.delete(self.topic)
        self.admin.create(self.topic, partitions, 1, {"cleanup.policy": "compact"})
        return self.admin.topic_ids([self.topic])[self.topic]

    def produce(self, key: bytes, partition: int = 0, *, commits: bool = True) -> None:
        """One record of a transaction, which is committed or aborted."""
        own = {"bootstrap.servers": self.servers, "transactional.id": uuid.uuid4().hex}
        producer = Producer(own)
        producer.init_transactions(DEADLINE_S)
        producer.begin_transaction()
        producer.produce(self.topic, b"v", key, partition=partition)
        producer.flush(DEADLINE_S)
        end = producer.commit_transaction if commits else producer.abort_transaction
        end(DEADLINE_S)

    def alter(self, **properties: str) -> None:
        """An operator alters properties of the topic."""
        alter(self.servers, self.topic, {k.replace("_", "."): v for k, v in properties.items()})

    def fails_to_begin(self, partitions: int) -> ConfigError:
        """An attempt with so many tasks is refused, and nothing has been made."""
        before = self.admin.partition_counts([self.topic])
        with pytest.raises(ConfigError) as caught:
            self.begin(partitions)
        assert self.admin.partition_counts([self.topic]) == before
        return caught.value

    def refused(self, *, is_submission: bool = False) -> ConfigError:
        """The job does not begin, and nothing has been made."""
        before = self.admin.existing_ids([self.topic])
        with pytest.raises(ConfigError) as caught:
            self.begin(is_submission=is_submission)
        assert self.admin.existing_ids([self.topic]) == before
        return caught.value


def test_a_topic_that_is_named_twice_is_looked_at_once(kafka: str) -> None:
    """Kafka refuses such a request, which would pass for a broker that is away."""
    stores = Stores(kafka)
    stores.begin()
    names = [stores.topic, stores.topic]
    assert list(stores.admin.topic_ids(names)) == [stores.topic]
    assert list(stores.admin.described(names)) == [stores.topic]


def test_a_changelog_is_made_once_and_the_stream_knows_it(kafka: str) -> None:
    """It has the configured properties; the next attempt accepts it without a message."""
    stores = Stores(kafka, stores_counts_changelog_delete_retention_ms="3600000")
    assert stores.begin() == []
    found = stores.admin.described([stores.topic])[stores.topic]
    assert (found.partitions, found.replication) == (2, 1)
    wanted = {
        "cleanup.policy": "compact",
        "segment.bytes": "536870912",
        "max.message.bytes": "1000012",
        "delete.retention.ms": "3600000",
        "min.compaction.lag.ms": "0",
    }
    assert {name: found.config[name] for name in wanted} == wanted
    record = ChangelogTopicRecord(found.topic_id, "counts")
    assert ChangelogTopicManager(stores.stream).read() == {stores.changelog: record}
    assert stores.begin() == []
    assert stores.admin.described([stores.topic])[stores.topic] == found


def test_a_changelog_of_the_job_grows_where_a_key_permits_it(kafka: str) -> None:
    """Its records stay; after a death before the JobModel it has more than there are tasks."""
    stores = Stores(kafka)
    stores.begin()
    stores.produce(b"k")
    assert "it has 2 partitions and must have 3" in str(stores.fails_to_begin(3))
    stores.config = stores.config.merged({"job.changelogs.grow": "true"})
    assert stores.begin(3) == []
    found = stores.admin.described([stores.topic])[stores.topic]
    assert found.partitions == 3
    assert ChangelogTopicManager(stores.stream).read()[stores.changelog].topic_id == found.topic_id
    assert holds_records(stores.system, stores.topic, 3)
    assert stores.begin(2) == stores.begin(3) == []
    stores.admin.grow(stores.topic, 3)  # another attempt has done it
    assert stores.admin.partition_counts([stores.topic]) == {stores.topic: 3}


def test_a_topic_that_the_job_has_not_made_does_not_grow(kafka: str) -> None:
    """Its shape shows that it is another job's."""
    stores = Stores(kafka, job_changelogs_grow="true")
    stores.admin.create(stores.topic, 1, 1, {"cleanup.policy": "compact"})
    assert "it has 1 partitions and must have 2" in str(stores.fails_to_begin(2))


def test_a_changelog_that_was_added_later_begins_empty(kafka: str) -> None:
    """R34: of a store that the stream knows nothing of no state is missed."""
    stores = Stores(kafka)
    stores.stream.write([])
    assert stores.begin() == []
    assert not holds_records(stores.system, stores.topic, 2)


def test_a_changelog_that_held_state_and_is_gone_is_not_made_again(kafka: str) -> None:
    """By no attempt and no submission: an empty one would lose the state without a word."""
    stores = Stores(kafka)
    stores.begin()
    stores.admin.delete(stores.topic)
    for is_submission in (False, True):
        assert str(stores.refused(is_submission=is_submission)) == (
            f"stores.counts.changelog = '{stores.changelog}': the topic does not exist any more, "
            "and it held the state of the job; bring its records back and submit the job again, "
            "or begin from nothing by run-job --reset-state"
        )


def test_a_recreated_changelog_is_accepted_only_with_its_records_and_at_a_submission(
    kafka: str,
) -> None:
    """Empty, or with aborted records only, it holds no state; an attempt never accepts it."""
    stores = Stores(kafka)
    stores.begin()
    first = stores.admin.topic_ids([stores.topic])[stores.topic]
    second = stores.make_anew()
    stores.produce(b"k", 1, commits=False)
    for is_submission in (False, True):
        error = stores.refused(is_submission=is_submission)
        assert error.rule == (
            f"the topic was deleted and recreated (its id is {second}, it was {first}), and the "
            "one before held the state of the job"
        )
    stores.produce(b"k", 1)
    assert second in stores.refused().rule
    assert stores.begin(is_submission=True) == [
        f"changelog {stores.changelog} was recreated, and the state is what it holds now"
    ]
    assert stores.begin() == []


def test_state_that_a_renamed_store_leaves_behind_is_named(kafka: str) -> None:
    """With the key that keeps it; a store that takes its changelog along leaves nothing."""
    before = Stores(kafka)
    before.begin()
    renamed = {
        key.replace(".counts.", ".sums."): value
        for key, value in before.config.items()
        if key != "stores.counts.changelog"
    }
    for changelog, is_left in ((f"{before.topic}-2", True), (before.topic, False)):
        config = Config({**renamed, "stores.sums.changelog": changelog})
        shown = ChangelogTopics(config, before.stream).check(2, may_be_replaced=False)
        found = [line for line in shown if "stays behind" in line]
        assert len(found) == int(is_left)
        assert all(
            line.startswith(f"changelog kafka.{before.topic} holds the state of store counts, and ")
            for line in found
        )


def test_a_changelog_with_fewer_partitions_is_refused(kafka: str) -> None:
    """One line; tasks beyond them would have no place for their state."""
    stores = Stores(kafka)
    stores.admin.create(stores.topic, 1, 1, {"cleanup.policy": "compact"})
    assert stores.refused().rule == "it has 1 partitions and must have 2, one for each task"


def test_run_job_refuses_before_anything_is_written(
    kafka: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It refuses what the AM would refuse, and reports differences; the AM judges partitions."""
    stores = Stores(kafka)
    stores.begin()
    stores.alter(delete_retention_ms="60000")
    state_check.check_changelogs(stores.config, stores.stream)
    assert capsys.readouterr().err == (
        f"warning: changelog {stores.topic}: delete.retention.ms in force is 60000, configured is "
        "86400000\n"
    )
    stores.admin.delete(stores.topic)
    with pytest.raises(ConfigError, match="the topic does not exist any more"):
        state_check.check_changelogs(stores.config, stores.stream)


def test_records_of_another_job_are_named_at_the_submission(kafka: str) -> None:
    """They would become the state; an attempt later on, and an empty topic, say nothing."""
    stores = Stores(kafka)
    stores.admin.create(stores.topic, 2, 1, {"cleanup.policy": "compact"})
    assert stores.begin(is_submission=True) == []
    stores.stream = InMemoryCoordinatorStream()
    stores.produce(b"k")
    (line,) = stores.begin(is_submission=True)
    assert line == (
        f"changelog {stores.changelog} holds records that this job has not written: they become "
        "the state of store counts, of a Samza job those up to its last checkpoint; where they "
        "are another job's, name another topic in stores.counts.changelog"
    )
    assert stores.begin(is_submission=True) == []
    stores.stream = InMemoryCoordinatorStream()
    assert stores.begin() == []


def test_a_topic_that_an_operator_alters_is_refused_or_reported(kafka: str) -> None:
    """A policy that loses state is refused; another retention is reported, and is in force."""
    stores = Stores(kafka)
    stores.begin()
    stores.alter(delete_retention_ms="60000")
    assert stores.begin() == [
        f"changelog {stores.topic}: delete.retention.ms in force is 60000, configured is 86400000"
    ]
    stores.alter(cleanup_policy="delete")
    assert "state of store 'counts'" in stores.refused().rule
    stores.alter(cleanup_policy="compact", max_message_bytes="1000")
    assert stores.refused().key == "stores.counts.changelog.max.message.bytes"


def _known(job: Job) -> ChangelogTopicRecord:
    topic = job.topic("changelog")
    admin = TopicAdmin(SystemConfig.of(job.config, "kafka"))
    record = ChangelogTopicRecord(admin.topic_ids([topic])[topic], "counts")
    stream = job.coordinator_stream()
    ChangelogTopicManager(stream).write({SystemStream("kafka", topic): record})
    stream.close()
    return record


def test_a_changelog_recreated_while_the_container_runs_ends_the_container(make: Make) -> None:
    """Before anything is committed to the new topic, with one line; so does every next start."""
    job = make(task_commit_ms="600000")
    known = _known(job)
    first = job.start(1)
    job.produce(words(140))
    job.until(lambda: job.processed() == 140 and bool(job.history("commit")), first)
    job.make_anew("changelog", [])
    job.produce(words(14))
    assert first.process.wait(DEADLINE_S) == 1
    key = f"stores.counts.changelog = 'kafka.{job.topic('changelog')}': the topic was deleted and "
    line = first.last_line()
    assert line.startswith(f"error: while the container ran, {key}recreated (its id is ")
    assert f", it was {known.topic_id})" in line
    assert job.read(job.topic("changelog")) == []
    assert job.processed() == 140

    second = job.start(2, fence=[1])
    assert second.process.wait(DEADLINE_S) == 1
    assert second.last_line().startswith(f"error: {key}recreated (its id is ")


def test_a_changelog_deleted_while_the_container_runs_ends_it(make: Make) -> None:
    """With one line that names it, in place of the library's word that nothing was delivered."""
    job = make(task_commit_ms="600000")
    _known(job)
    first = job.start(1)
    job.produce(words(140))
    job.until(lambda: job.processed() == 140 and bool(job.history("commit")), first)
    TopicAdmin(SystemConfig.of(job.config, "kafka")).delete(job.topic("changelog"))
    job.produce(words(14))
    assert first.process.wait(DEADLINE_S) == 1
    assert first.last_line() == (
        f"error: while the container ran, stores.counts.changelog = 'kafka."
        f"{job.topic('changelog')}': the topic does not exist any more, and it held the state of "
        "the job; bring its records back and submit the job again, or begin from nothing by "
        "run-job --reset-state"
    )
    assert job.processed() == 140


def test_an_idle_container_notices_too(make: Make) -> None:
    """At its next commit, without a transaction."""
    job = make(task_commit_ms="200")
    first = job.start(1)
    job.report(first, 1)
    TopicAdmin(SystemConfig.of(job.config, "kafka")).delete(job.topic("changelog"))
    assert first.process.wait(DEADLINE_S) == 1
    assert "the topic does not exist any more" in first.last_line()
