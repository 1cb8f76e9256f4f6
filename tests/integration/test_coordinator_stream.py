"""The coordinator stream in a real Kafka: head, transactions, fencing, topics, writer tool."""

from __future__ import annotations

import json
import subprocess
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from forked_tool import WRITER, run_about
from job_configs import job_config
from topic_records import alter, topic_records

from homeport.appmaster.job_model.publication import publish
from homeport.config.config import Config
from homeport.config.errors import ConfigError, FencedError, UnavailableError, WireError
from homeport.config.settings.sections import JobConfig, SystemConfig, TaskConfig
from homeport.config.settings.stores_section import StorageConfig
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import MessageType
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.mixed_failover import failed_over
from homeport.job_coordinator.grouper.mixed_standbys import Places
from homeport.job_coordinator.grouper.previous_assignment import NOTHING
from homeport.job_coordinator.kafka.changelog_topics import changelog_topic_spec
from homeport.job_coordinator.kafka.clients import LIBRDKAFKA_LOG
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.kafka.topics import (
    TopicAdmin,
    checkpoint_topic_spec,
    coordinator_topic_spec,
)
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.recorded_model import ModelRecords, recorded_model
from homeport.job_coordinator.metadata.state_facts import ChangelogPartitionManager
from homeport.job_coordinator.metadata.task_assignment import LocalityManager, TaskAssignmentManager
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import JobModel, SystemStream


@pytest.fixture
def config(kafka: str) -> Config:
    """A job of its own whose coordinator stream exists."""
    made = job_config(kafka)
    TopicAdmin(SystemConfig.of(made, "kafka")).ensure(coordinator_topic_spec(JobConfig.of(made)))
    return made


def _store(config: Config, *, transactional_id: str | None = None) -> CoordinatorStreamStore:
    job = JobConfig.of(config)
    return CoordinatorStreamStore(
        SystemConfig.of(config, "kafka"),
        job.coordinator_topic,
        source="test",
        transactional_id=transactional_id,
        timeout_s=20,
    )


@pytest.fixture
def store(config: Config) -> Iterator[CoordinatorStreamStore]:
    """A bootstrapped plain store on the job's stream."""
    with _store(config) as opened:
        opened.bootstrap()
        yield opened


def _raw_producer(config: Config, **properties: str) -> Producer:
    servers = SystemConfig.of(config, "kafka").bootstrap_servers
    return Producer({"bootstrap.servers": servers, **properties}, logger=LIBRDKAFKA_LOG)


def test_topic_is_one_compacted_partition(config: Config) -> None:
    """The coordinator topic has Samza's settings; creating it again changes nothing."""
    admin = TopicAdmin(SystemConfig.of(config, "kafka"))
    spec = coordinator_topic_spec(JobConfig.of(config))
    assert admin.ensure(spec) is False
    assert admin.partition_counts([spec.name, "no-such-topic"]) == {spec.name: 1}
    found = admin.topic_config(spec.name)
    assert found["cleanup.policy"] == "compact"
    assert found["segment.bytes"] == "26214400"


def test_bootstrap_of_an_empty_stream_ends(store: CoordinatorStreamStore) -> None:
    """An empty topic has its head at 0, which only the end-of-partition event shows."""
    assert store.catch_up() == ()
    assert store.latest("set-config") == {}


def test_a_record_is_seen_by_the_catch_up_after_its_acknowledgement(
    store: CoordinatorStreamStore,
) -> None:
    """What one write has acknowledged, the next catch-up returns: 30 times out of 30."""
    for number in range(30):
        store.write([wire.set_config("k", str(number))])
        assert [m.value("value") for m in store.catch_up()] == [str(number)]
    assert store.catch_up() == ()


def test_a_transaction_is_seen_by_the_catch_up_after_its_commit(
    config: Config, store: CoordinatorStreamStore
) -> None:
    """A committed transaction is seen at once and whole, by others too: 20 times out of 20."""
    with _store(config, transactional_id="homeport.t.1.am") as driver:
        driver.fence()
        driver.bootstrap()
        for number in range(20):
            driver.write([wire.set_config(key, str(number)) for key in "abc"])
            for reader in (driver, store):
                assert [m.value("value") for m in reader.catch_up()] == [str(number)] * 3


def test_bytes_in_kafka_are_samzas(
    kafka: str, config: Config, store: CoordinatorStreamStore
) -> None:
    """Key and value stand in the topic as Samza writes them, in partition 0."""
    store.write([wire.set_config("job.größe", "1"), wire.tombstone("set-config", "old")])
    (key, value), (deleted, nothing) = topic_records(kafka, JobConfig.of(config).coordinator_topic)
    assert key == '[1,"set-config","job.größe"]'.encode()
    assert value is not None
    assert list(json.loads(value)) == ["host", "source", "values", "username", "timestamp"]
    assert b'"source":"test","values":{"value":"1"}' in value
    assert (deleted, nothing) == (b'[1,"set-config","old"]', None)


def test_an_open_transaction_holds_the_head_back_until_it_ends(
    config: Config, store: CoordinatorStreamStore
) -> None:
    """A catch-up waits for an open transaction before the head; an aborted one shows nothing."""
    topic = JobConfig.of(config).coordinator_topic
    producer = _raw_producer(config, **{"transactional.id": "homeport.open"})
    producer.init_transactions(20)
    producer.begin_transaction()
    key, value = wire.encode(wire.set_config("k", "aborted"))
    producer.produce(topic, value, key, partition=0)
    producer.flush(20)
    store.write([wire.set_config("k", "plain")])
    ended = threading.Event()

    def end() -> None:
        producer.abort_transaction(20)
        ended.set()

    timer = threading.Timer(0.5, end)
    timer.start()
    seen = store.catch_up()
    assert ended.wait(20)
    assert [m.value("value") for m in seen] == ["plain"]


def test_damaged_records_are_skipped_and_counted(
    config: Config, store: CoordinatorStreamStore, caplog: pytest.LogCaptureFixture
) -> None:
    """Bytes that are no message cost a warning with their offset, and nothing else."""
    topic = JobConfig.of(config).coordinator_topic
    producer = _raw_producer(config)
    producer.produce(topic, b"{}", b"no list", partition=0)
    producer.produce(topic, b"not json", b'[1,"set-config","a"]', partition=0)
    producer.flush(20)
    store.write([wire.set_config("b", "1")])
    assert [m.key for m in store.catch_up()] == ["b"]
    assert store.damaged_count == 2
    assert "damaged record at offset 1" in caplog.text


def test_the_second_holder_of_an_id_fences_the_first(config: Config) -> None:
    """After a newer holder's fence() the older one's writes fail for good."""
    with (
        _store(config, transactional_id="homeport.same") as old,
        _store(config, transactional_id="homeport.same") as new,
    ):
        old.fence()
        old.write([wire.set_config("k", "old")])
        new.fence()
        for _ in range(2):
            with pytest.raises(FencedError, match=r"homeport\.same"):
                old.write([wire.set_config("k", "late")])
        new.write([wire.set_config("k", "new")])
        new.bootstrap()
        assert new.latest("set-config")["k"].value("value") == "new"


def test_replaced_configuration_keeps_other_records(store: CoordinatorStreamStore) -> None:
    """Stale keys are deleted, new ones are there, records of other types stay as they were."""
    manager = ConfigManager(store)
    manager.replace({"a": "1", "b": "2"}, source="job-runner")
    store.write([wire.set_changelog("Partition 0", 3)])
    manager.replace({"b": "3", "c": ""}, source="job-runner")
    assert manager.read() == Config({"b": "3", "c": ""})
    assert store.latest("set-config")["b"].source == "job-runner"
    assert store.latest("set-changelog")["Partition 0"].value("Partition") == "3"


def test_a_stream_of_another_shape_is_refused(kafka: str) -> None:
    """Two partitions, or a topic that is not compacted, are refused with what is wrong."""
    config = job_config(kafka)
    job, system = JobConfig.of(config), SystemConfig.of(config, "kafka")
    admin = TopicAdmin(system)
    with pytest.raises(ConfigError, match="does not exist"):
        _store(config).bootstrap()
    admin.create(job.coordinator_topic, 2, 1, {})
    with pytest.raises(ConfigError, match="it has 2 partitions and must have 1"):
        _store(config).bootstrap()
    with pytest.raises(ConfigError, match="it has 2 partitions and must have 1"):
        admin.ensure(coordinator_topic_spec(job))
    plain = f"{job.coordinator_topic}-plain"
    admin.create(plain, 1, 1, {})
    with pytest.raises(ConfigError, match=r"cleanup\.policy is 'delete' and must be 'compact'"):
        admin.validate(plain, 1, "compact")


def test_topics_that_kafka_refuses_name_their_key(kafka: str) -> None:
    """Too many replicas, and a property that Kafka does not know, are the user's to correct."""
    config = job_config(kafka, {"job.coordinator.replication.factor": "3"})
    admin = TopicAdmin(SystemConfig.of(config, "kafka"))
    with pytest.raises(ConfigError, match=r"job\.coordinator\.replication\.factor = '3'"):
        admin.ensure(coordinator_topic_spec(JobConfig.of(config)))
    with pytest.raises(ConfigError, match=r"no-such-property|Unknown topic config"):
        admin.create(f"t-{uuid.uuid4()}", 1, 1, {"no-such-property": "1"})


def test_a_kafka_of_one_broker_needs_no_key_for_its_replicas(kafka: str) -> None:
    """Without a key, topics have the one replica that there can be."""
    given = job_config(kafka, {})
    config = Config({k: v for k, v in given.items() if not k.endswith("replication.factor")})
    admin = TopicAdmin(SystemConfig.of(config, "kafka"))
    spec = coordinator_topic_spec(JobConfig.of(config))
    assert spec.replication == 3
    admin.ensure(spec)
    assert admin.described([spec.name])[spec.name].replication == 1


def test_checkpoint_and_changelog_topics_have_samzas_settings(kafka: str) -> None:
    """Both are created compacted; a changelog has one partition per task, and overrides win."""
    config = job_config(
        kafka,
        {
            "stores.s.factory": "rocksdb",
            "stores.s.key.serde": "string",
            "stores.s.msg.serde": "json",
            "stores.s.changelog": f"changelog-{uuid.uuid4()}",
            "stores.s.changelog.kafka.segment.bytes": "1048576",
        },
    )
    admin = TopicAdmin(SystemConfig.of(config, "kafka"))
    checkpoint = checkpoint_topic_spec(TaskConfig.of(config))
    assert admin.ensure(checkpoint) is True
    assert admin.topic_config(checkpoint.name)["max.message.bytes"] == "1000012"
    changelog = changelog_topic_spec(StorageConfig.of(config).stores["s"], 5)
    assert admin.ensure(changelog) is True
    found = admin.topic_config(changelog.name)
    assert (found["segment.bytes"], found["delete.retention.ms"]) == ("1048576", "86400000")
    wider = changelog_topic_spec(StorageConfig.of(config).stores["s"], 6)
    with pytest.raises(ConfigError, match="it has 5 partitions and must have 6"):
        admin.ensure(wider)


def test_a_stream_without_its_deleted_beginning_is_read_from_what_is_left(
    config: Config, store: CoordinatorStreamStore
) -> None:
    """Offset 0 need not exist: reading starts at the oldest record there is."""
    topic = JobConfig.of(config).coordinator_topic
    store.write([wire.set_config("a", "1"), wire.set_config("b", "2")])
    servers = SystemConfig.of(config, "kafka").bootstrap_servers
    alter(servers, topic, {"cleanup.policy": "compact,delete"})
    admin = AdminClient({"bootstrap.servers": servers})
    partition = TopicPartition(topic, 0, 1)
    admin.delete_records([partition])[partition].result(20)
    with _store(config) as late:
        late.bootstrap()
        assert list(late.latest("set-config")) == ["b"]


@pytest.mark.parametrize("transactional_id", [None, "homeport.large"])
def test_a_record_that_is_too_large_harms_no_other(
    config: Config, transactional_id: str | None
) -> None:
    """It is refused by name; what is written afterwards arrives, and what was with it does not."""
    with _store(config, transactional_id=transactional_id) as store:
        with pytest.raises(WireError, match=r"set-config.*big.*too large"):
            store.write([wire.set_config("with-it", "1"), wire.set_config("big", "x" * 2_000_000)])
        store.write([wire.set_config("after", "1")])
        store.bootstrap()
        assert set(store.latest("set-config")) == {"after"}


@pytest.mark.parametrize("transactional_id", [None, "homeport.away"])
def test_a_kafka_that_is_away_is_reported_in_time(transactional_id: str | None) -> None:
    """A write without a broker fails within the limit; the error lists the addresses tried."""
    system = SystemConfig.of(job_config("127.0.0.1:1"), "kafka")
    with (
        CoordinatorStreamStore(
            system, "t", source="test", transactional_id=transactional_id, timeout_s=1.0
        ) as store,
        pytest.raises(UnavailableError, match=r"Kafka at 127\.0\.0\.1:1"),
    ):
        store.write([wire.set_config("a", "1")])


def test_threads_share_a_store(store: CoordinatorStreamStore) -> None:
    """Writers and readers in many threads lose nothing."""

    def work(name: str) -> None:
        for number in range(20):
            store.write([wire.set_config(f"{name}.{number}", "x")])
            store.catch_up()

    threads = [threading.Thread(target=work, args=(str(n),)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.latest("set-config")) == 80


def _run_writer(config: Config, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_about(config, folder / "job.properties", arguments, module=WRITER)


def test_writer_tool_writes_and_deletes(
    config: Config, store: CoordinatorStreamStore, tmp_path: Path
) -> None:
    """--value writes a configuration key, --delete takes it away, with the tool as source."""
    written = _run_writer(
        config, tmp_path, "--type", "set-config", "--key", "job.container.count", "--value", "8"
    )
    assert (written.returncode, written.stderr) == (0, "")
    store.catch_up()
    message = store.latest("set-config")["job.container.count"]
    assert (message.value("value"), message.source) == ("8", "coordinator-stream-writer")
    deleted = _run_writer(
        config, tmp_path, "--type", "set-config", "--key", "job.container.count", "--delete"
    )
    assert deleted.returncode == 0
    store.catch_up()
    assert store.latest("set-config") == {}


def test_writer_tool_moves_a_processor_with_its_tasks(
    config: Config, store: CoordinatorStreamStore, tmp_path: Path
) -> None:
    """A host written for a processor is the one that the next start prefers."""
    store.write(TaskAssignmentManager(store).messages({TaskName("Partition 0"): ProcessorId("0")}))
    locality = LocalityManager(store)
    locality.write(ProcessorId("0"), [TaskName("Partition 0")], Host("nm1"), 4)
    arguments = ("--type", MessageType.SET_CONTAINER_HOST.value, "--key", "0", "--value", "NM2")
    assert _run_writer(config, tmp_path, *arguments).returncode == 0
    store.catch_up()
    assert locality.read_processors() == {ProcessorId("0"): Host("nm2")}
    arguments = ("--type", MessageType.SET_CONTAINER_HOST.value, "--key", "7", "--value", "NM2")
    unknown = _run_writer(config, tmp_path, *arguments)
    line = (
        "warning: --key = '7': the job has no processor of that id, but 0: the record is read once "
        "there is one\n"
    )
    assert (unknown.returncode, unknown.stderr) == (0, line)
    store.catch_up()
    assert store.latest(MessageType.SET_CONTAINER_HOST)["7"].value("host") == "nm2"


def test_writer_tool_says_that_the_job_has_no_such_task(
    config: Config, store: CoordinatorStreamStore, tmp_path: Path
) -> None:
    """In one line; the record is written all the same, as the task may come."""
    assigned = {TaskName("Partition 0"): ProcessorId("0")}
    store.write(TaskAssignmentManager(store).messages(assigned))
    arguments = ("--type=set-changelog", "--key=Partition 9", "--value=9")
    unknown = _run_writer(config, tmp_path, *arguments)
    line = (
        "warning: --key = 'Partition 9': the job has no task of that name, but Partition 0: the "
        "record is read once there is one\n"
    )
    assert (unknown.returncode, unknown.stderr) == (0, line)
    store.catch_up()
    assert ChangelogPartitionManager(store).read() == {TaskName("Partition 9"): 9}


def test_writer_tool_gives_no_task_the_state_of_another(
    config: Config, store: CoordinatorStreamStore, tmp_path: Path
) -> None:
    """Another value, another task's, none: each is refused in one line, and nothing is written."""
    manager = ChangelogPartitionManager(store)
    first, second = TaskName("Partition 0"), TaskName("Partition 1")
    manager.write({first: 0, second: 1})
    store.catch_up()

    def written(*arguments: str) -> subprocess.CompletedProcess[str]:
        done = _run_writer(config, tmp_path, "--type=set-changelog", *arguments)
        assert store.catch_up() == () or done.returncode == 0
        return done

    for arguments, rule in (
        (("--key=Partition 0", "--value=1"), "task 'Partition 0' has changelog partition 0"),
        (("--key=Partition 0", "--value=9"), "task 'Partition 0' has changelog partition 0"),
        (("--key=Partition 0", "--delete"), "task 'Partition 0' has changelog partition 0"),
        (("--key=Partition 2", "--value=1"), "task 'Partition 1' has this changelog partition"),
    ):
        done = written(*arguments)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("error: set-changelog ")
        assert rule in done.stderr
        assert done.stderr.count("\n") == 1
    assert manager.read() == {first: 0, second: 1}

    # Samza's program writes what it likes: the job's own record is right, and may be written back.
    store.write([wire.set_changelog(first, 1), wire.set_changelog(second, 0)])
    store.catch_up()
    assert manager.read() == {first: 0, second: 1}
    assert len(list(manager.contradictions())) == 2
    assert written("--key=Partition 0", "--value=0").returncode == 0
    assert written("--key=Partition 1", "--value=1").returncode == 0
    assert list(manager.contradictions()) == []


def test_writer_tool_refuses_a_key_that_no_program_reads(
    config: Config, store: CoordinatorStreamStore, tmp_path: Path
) -> None:
    """The near neighbour is named; --force writes it; --dry-run writes nothing."""
    typo = ("--type=set-config", "--key=task.comit.ms", "--value=5000")
    refused = _run_writer(config, tmp_path, *typo)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == (
        "error: --key = 'task.comit.ms': no program reads this key; write task.commit.ms, if that "
        "is meant; --force writes this one, and nothing restarts\n"
    )
    dry = _run_writer(config, tmp_path, *typo, "--force", "--dry-run")
    assert dry.returncode == 0
    assert dry.stdout == "no program reads it: nothing changes\nnothing was written\n"
    store.catch_up()
    assert store.latest("set-config") == {}
    forced = _run_writer(config, tmp_path, *typo, "--force")
    assert forced.returncode == 0
    assert forced.stdout.startswith("no program reads it: nothing changes\n")
    store.catch_up()
    assert [*store.latest("set-config")] == ["task.comit.ms"]


def test_writer_tool_says_that_the_job_has_no_such_store(
    config: Config, store: CoordinatorStreamStore, tmp_path: Path
) -> None:
    """In one line; the record is written all the same, as the store may come."""
    key = "stores.nope.rocksdb.compression"
    done = _run_writer(config, tmp_path, "--type=set-config", f"--key={key}", "--value=lz4")
    assert done.returncode == 0
    assert done.stderr.startswith(f"warning: --key = '{key}': the job has no store 'nope'")
    assert done.stderr.count("\n") == 1
    store.catch_up()
    assert store.latest("set-config")[key].value("value") == "lz4"


def test_writer_tool_refuses_in_one_line(kafka: str, tmp_path: Path) -> None:
    """A job without a stream, a Kafka that is away: one line and exit code 1."""
    arguments = ("--type", "set-config", "--key", "a", "--value", "b")
    missing = _run_writer(job_config(kafka), tmp_path, *arguments)
    assert (missing.returncode, missing.stdout) == (1, "")
    assert missing.stderr.startswith("error: job.name = 'job_")
    assert "run the job once" in missing.stderr
    away = _run_writer(job_config("127.0.0.1:1"), tmp_path, *arguments)
    assert (away.returncode, away.stdout) == (1, "")
    waits, error = away.stderr.splitlines()
    assert waits.startswith("no answer from Kafka at 127.0.0.1:1 yet")
    assert error.startswith("error: Kafka at 127.0.0.1:1")
    assert missing.stderr.count("\n") == 1
    usage = _run_writer(job_config(kafka), tmp_path, "--type", "set-nothing", "--key", "a")
    assert (usage.returncode, usage.stdout) == (1, "")
    assert usage.stderr.startswith("error: Invalid value for '--type'")
    assert usage.stderr.count("\n") == 1


def test_what_a_driver_writes_of_each_change_makes_the_model(
    config: Config, store: CoordinatorStreamStore
) -> None:
    """Failovers of mixed containers; another program writes a task's container in between."""
    roles = {"job.hotstandby.enabled": "true", "job.container.mixed-roles": "true"}
    more = {"job.container.count": "4", "task.inputs": "kafka.in", **roles}
    hosts = {ProcessorId(str(n)): Host(f"nm{n}") for n in range(4)}
    counts = {SystemStream("kafka", "in"): 12}
    model = calculate_job_model(Config({**config, **more}), counts, NOTHING, places=Places(hosts))
    with _store(config, transactional_id="homeport.of-a-driver") as own:
        own.fence()
        own.bootstrap()
        records, written = ModelRecords(own), list[int]()
        in_force: JobModel | None = None
        losses: tuple[tuple[str, ...], ...] = ((), ("3",), ("2",), ())
        for lost in losses:
            there = Places({p: host for p, host in hosts.items() if p not in lost})
            after = failed_over(model, [ProcessorId(p) for p in lost], there).model
            before = len(store.catch_up())
            own.catch_up()
            publish(after, own, lambda host: host, in_force=in_force, records=records)
            written.append(len(store.catch_up()) - before)
            assert recorded_model(store, after.config) == after
            assert ModelRecords(own).messages(after) == []
            if lost == ("3",):
                odd = wire.set_task_container_assignment("Partition 0", "elsewhere")
                store.write([odd])
            model = in_force = after
    assert max(written[1:]) < written[0] / 2
