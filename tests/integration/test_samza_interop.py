"""The published classes of Apache Samza 1.8.0 on our coordinator stream, and ours on theirs."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import own_records
import pytest
from confluent_kafka import Producer
from forked_tool import WRITER, run_about
from samza_peer import SamzaPeer
from samza_streams import Stream
from topic_records import topic_records

from homeport.config.config import Config
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.kafka.clients import LIBRDKAFKA_LOG
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.job_packages import JobPackageManager
from homeport.job_coordinator.metadata.state_facts import ChangelogPartitionManager
from homeport.job_coordinator.metadata.task_assignment import (
    LocalityManager,
    TaskAssignmentManager,
    TaskModeManager,
    TaskPartitionManager,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskMode,
    TaskModel,
)

#: What JSON, properties and Kafka's compaction are particular about.
_ODD = 'größe-ß "日本" \\ 😀\t\x01\u2028.x'
_KEYS = {"job.container.count": "3", f"job.{_ODD}": f" {_ODD}\nline", "empty": ""}
_TUNNEL = "jmx-tunneling-url"
_EXECUTION = "set-execution-env-container-id-mapping"


def _partition(system: str, stream: str, partition: int) -> SystemStreamPartition:
    return SystemStreamPartition(system, stream, partition)


_INPUT = _partition("kafka", "my-topic.v1", 0)
_ODD_INPUT = _partition("kafka-2", _ODD, 11)
_BROADCAST = _partition("kafka", "to all", 1)


def _task(name: str, number: int, *ssps: SystemStreamPartition, standby: bool = False) -> TaskModel:
    mode = TaskMode.STANDBY if standby else TaskMode.ACTIVE
    return TaskModel(TaskName(name), tuple(sorted(ssps)), number, mode)


def _model(config: Mapping[str, str]) -> JobModel:
    by_ssp = "SystemStreamPartition [kafka, my-topic.v1, 0]"
    tasks = {
        "0": [_task("Partition 0", 0, _INPUT, _BROADCAST), _task(by_ssp, 2, _INPUT)],
        "0-0": [_task("Standby-Partition 0-0", 0, _INPUT, _BROADCAST, standby=True)],
        "prozessor-ä.1 b": [_task(_ODD, 1, _ODD_INPUT, _BROADCAST)],
    }
    return JobModel(
        Config(config),
        {
            ProcessorId(id_): ContainerModel(
                ProcessorId(id_), {task.task_name: task for task in sorted(of, key=_name)}
            )
            for id_, of in sorted(tasks.items())
        },
    )


def _name(task: TaskModel) -> str:
    return task.task_name


_MODEL = _model({"job.name": "j"})
_TASKS = {
    task.task_name: (container.processor_id, task)
    for container in _MODEL.containers.values()
    for task in container.tasks.values()
}


def _ssp_key(ssp: SystemStreamPartition) -> str:
    return wire.set_task_partition_assignment(ssp, ()).key


def _readers() -> dict[SystemStreamPartition, list[str]]:
    found: dict[SystemStreamPartition, list[str]] = {}
    for name, (_, task) in sorted(_TASKS.items()):
        for ssp in task.system_stream_partitions:
            found.setdefault(ssp, []).append(name)
    return found


def _all_of_the_model(store: CoordinatorStreamStore) -> list[CoordinatorStreamMessage]:
    """Every record that the driver writes of a model, and of where its processors run."""
    return [
        *(wire.set_config(key, value) for key, value in _KEYS.items()),
        *ChangelogPartitionManager(store).messages(
            {name: task.changelog_partition for name, (_, task) in _TASKS.items()}
        ),
        *TaskAssignmentManager(store).messages({name: id_ for name, (id_, _) in _TASKS.items()}),
        *TaskModeManager(store).messages(_MODEL),
        *TaskPartitionManager(store).messages(_MODEL),
        *LocalityManager.messages(ProcessorId("0-0"), _TASKS, Host("nm-1.größe"), 7),
        *LocalityManager.messages(ProcessorId("prozessor-ä.1 b"), (), Host("nm2"), None),
        CoordinatorStreamMessage(
            MessageType.SET_EXECUTION_ENV_CONTAINER_ID,
            "0-0",
            {"execution-env-container-id": "container_1_0001_01_000002"},
        ),
        CoordinatorStreamMessage(
            MessageType.SET_JOB_COORDINATOR_METADATA,
            "YARN",
            {"meta-key": '{"epoch-id":"1","config-id":"2","job-model-id":"3"}'},
        ),
        own_records.set_processor_epoch("0", 3, 1, []),
        own_records.set_job_model_version(1, "d"),
        *JobPackageManager.messages(bytes(range(256)) * 1024),
    ]


@contextlib.contextmanager
def _written(stream: Stream, *, driver: bool = True) -> Iterator[CoordinatorStreamStore]:
    """A store that has written, and read, all of the model; plain or in a transaction."""
    with stream.store(transactional_id=f"homeport.{stream.topic}" if driver else None) as store:
        store.fence()
        store.bootstrap()
        store.write(_all_of_the_model(store))
        store.catch_up()
        yield store


_EXPECTED = {
    "config": _KEYS,
    "locality": {"0-0": "nm-1.größe", "prozessor-ä.1 b": "nm2"},
    "assignment": {name: id_ for name, (id_, _) in _TASKS.items()},
    "modes": {name: task.task_mode.value for name, (_, task) in _TASKS.items()},
    "partitions": {_ssp_key(ssp): tasks for ssp, tasks in _readers().items()},
    "changelog": {name: task.changelog_partition for name, (_, task) in _TASKS.items()},
    "execution": {"0-0": "container_1_0001_01_000002"},
    "metadata": {"epoch-id": "1", "config-id": "2", "job-model-id": "3"},
}


@pytest.mark.parametrize("driver", [False, True])
def test_samza_reads_every_type_that_we_write(stream: Stream, *, driver: bool) -> None:
    """Plain or in a transaction, each manager of Samza's finds exactly what ours has written."""
    with _written(stream, driver=driver):
        pass
    assert stream.managers() == _EXPECTED


def test_samzas_older_reader_has_the_same(stream: Stream) -> None:
    """CoordinatorStreamSystemConsumer finds configuration, values and their writers."""
    with _written(stream) as store:
        written = [m for type_ in MessageType for m in store.latest(type_).values()]
    stream.open()
    found = stream.samza.ask("bootstrapped", [type_.value for type_ in MessageType])
    assert found["config"] == _KEYS
    assert found["messages"] == [
        {
            "type": message.type,
            "key": message.key,
            "values": dict(message.values or {}),
            "source": "homeport",
            "username": message.username,
            "timestamp": message.timestamp_ms,
        }
        for message in written
    ]


def _manage_all(samza: SamzaPeer) -> None:
    """Samza's managers write what ``_EXPECTED`` says."""
    assignment: dict[str, dict[str, str]] = {}
    for name, (id_, task) in _TASKS.items():
        assignment.setdefault(id_, {})[name] = task.task_mode.value
    samza.ask("manage", {**_EXPECTED, "assignment": assignment, "metadata": ["1", "2", "3"]})


def test_we_read_every_type_that_samza_writes(stream: Stream) -> None:
    """Our managers find exactly what Samza's have written."""
    stream.open()
    _manage_all(stream.samza)
    with stream.store() as store:
        store.bootstrap()
        assert store.damaged_count == 0
        assert dict(ConfigManager(store).read()) == _KEYS
        # without task hosts, which Samza has not, the processor's own decides
        assert LocalityManager(store).read_processors() == _EXPECTED["locality"]
        assert TaskAssignmentManager(store).read() == _EXPECTED["assignment"]
        modes = TaskModeManager(store).read()
        assert {name: mode.value for name, mode in modes.items()} == _EXPECTED["modes"]
        found = TaskPartitionManager(store).read()
        assert {ssp: list(tasks) for ssp, tasks in found.items()} == _readers()
        assert ChangelogPartitionManager(store).read() == _EXPECTED["changelog"]
        execution = store.latest(MessageType.SET_EXECUTION_ENV_CONTAINER_ID)
        values = {key: m.value("execution-env-container-id") for key, m in execution.items()}
        assert values == _EXPECTED["execution"]
        metadata = store.latest(MessageType.SET_JOB_COORDINATOR_METADATA)["YARN"].value("meta-key")
        assert json.loads(metadata or "") == _EXPECTED["metadata"]


def test_bytes_that_samza_writes_are_those_that_we_write(stream: Stream) -> None:
    """Each record of Samza's, read by us and written again, has the same bytes; so have the keys.

    Keys: without that neither compaction nor a deletion would hit the other's record.
    """
    stream.open()
    _manage_all(stream.samza)
    records = topic_records(stream.servers, stream.topic)
    assert len(records) == len({key for key, _ in records}) > 20
    for key, value in records:
        assert wire.encode(wire.decode(key, value)) == (key, value)
    with stream.store() as store:
        ours = {wire.encode(message)[0] for message in _all_of_the_model(store)}
    own = (
        "set-task-host-assignment",
        "set-processor-epoch",
        "set-job-model-version",
        "set-package",
        "set-state-fact",
    )
    assert {key for key, _ in records} == {
        key for key in ours if wire.decode(key, None).type not in own
    }


def test_our_deletions_hit_samzas_records(stream: Stream) -> None:
    """G28: what Samza wrote and we deleted is gone for Samza, every type of it."""
    stream.open()
    _manage_all(stream.samza)
    before = stream.theirs()
    assert len(before) == 8
    stream.write(
        (wire.tombstone(type_, key) for type_, of in before.items() for key in of), driver=True
    )
    assert stream.theirs() == {}


def test_samzas_deletions_hit_our_records(stream: Stream) -> None:
    """G28: what we wrote and Samza deleted is gone for us, every type of it."""
    stream.open()
    with _written(stream) as store:
        for known in MessageType:
            keys = list(store.latest(known))
            stream.samza.ask("send", [["t", known.value, key] for key in keys])
        store.catch_up()
        assert [m for known in MessageType for m in store.latest(known)] == []


def test_samzas_managers_delete_what_ours_wrote(stream: Stream) -> None:
    """Tasks and input partitions that Samza's managers take away are away for ours."""
    with _written(stream, driver=False) as store:
        stream.open()
        gone: dict[str, list[str]] = {_ssp_key(ssp): [] for ssp in (_INPUT, _ODD_INPUT)}
        stream.samza.ask("manage", {"unassigned": [_ODD, "Partition 0"], "partitions": gone})
        store.catch_up()
        assert not {_ODD, "Partition 0"} & set(TaskAssignmentManager(store).read())
        assert not {_ODD, "Partition 0"} & set(TaskModeManager(store).read())
        assert list(TaskPartitionManager(store).read()) == [_BROADCAST]


def test_the_last_of_several_writers_wins_for_both(stream: Stream) -> None:
    """G27: v1, v2, v1 under one key is v1 to both readers, whichever writer wrote each."""
    stream.open()
    stream.write([wire.set_config("k", "v1")])
    stream.samza.ask("send", [["t", "set-config", "k", "v2"]])
    stream.write([wire.set_config("k", "v1")], driver=True)
    assert stream.theirs()["set-config"] == {"k": {"value": "v1"}}
    assert stream.ours("set-config")["k"].value("value") == "v1"
    found = stream.samza.ask("bootstrapped", ["set-config"])
    assert found["config"] == {"k": "v1"}
    assert [message["values"]["value"] for message in found["messages"]] == ["v2", "v1"]


def test_both_spellings_of_a_record_are_read_by_both(stream: Stream) -> None:
    """A record in the document's form, with its version as text, and ours that replaces it.

    Samza reads its value only after we have written it again: Samza's reader knows the key, not the
    document's names of values.
    """
    producer = Producer({"bootstrap.servers": stream.servers}, logger=LIBRDKAFKA_LOG)
    for key, values in (
        (["1", "set-changelog", _ODD], {"partition": "4"}),
        (["1", "set-container-host-assignment", "0"], {"hostname": "nm1"}),
    ):
        body = json.dumps({"host": "", "values": values, "timestamp": time.time_ns() // 10**6})
        producer.produce(stream.topic, body, json.dumps(key), partition=0)
    producer.flush(20)
    with stream.store() as store:
        store.bootstrap()
        assert ChangelogPartitionManager(store).read() == {_ODD: 4}
        assert LocalityManager(store).read_processors() == {"0": "nm1"}
        store.write(
            [wire.set_changelog(_ODD, 4), wire.set_container_host_assignment("0", "nm1", 1)]
        )
    found = stream.managers()
    assert found["changelog"] == {_ODD: 4}
    assert found["locality"] == {"0": "nm1"}


def test_a_deployment_of_samzas_and_one_of_ours_end_alike(stream: Stream) -> None:
    """G29: new keys are there, stale ones gone, other types kept, empty values kept; both ways."""
    stream.write([wire.set_config("stale", "1"), wire.set_changelog("Partition 0", 1)])
    theirs = {**stream.config, "empty": "", _ODD: _ODD}
    stream.samza.ask("deploy", theirs)
    with stream.store() as store:
        store.bootstrap()
        assert dict(ConfigManager(store).read()) == theirs
        assert store.latest("set-config")[_ODD].source == "job-runner"
        ConfigManager(store).replace({"b": "2", "empty": ""}, source="job-runner")
    found = stream.managers()
    assert found["config"] == {"b": "2", "empty": ""}
    assert found["changelog"] == {"Partition 0": 1}


def test_both_writer_tools_write_for_both(stream: Stream, tmp_path: Path) -> None:
    """What Samza's coordinator-stream-writer sets we read, and ours deletes it for Samza too."""
    path = tmp_path / "job.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in stream.config.items()))
    loader = "org.apache.samza.config.loaders.PropertiesConfigLoaderFactory"
    properties = (
        f"job.config.loader.factory={loader}",
        f"job.config.loader.properties.path={path}",
    )
    for key, value in (("job.container.count", "8"), ("stays", "ü")):
        options = [word for p in properties for word in ("--config", p)]
        arguments = [*options, "--type", "set-config", "--key", key, "--value", value]
        stream.samza.ask("writer-main", arguments)
    written = stream.ours("set-config")["job.container.count"]
    assert (written.value("value"), written.source) == ("8", "coordinator-stream-writer")
    for words in (("--key=job.container.count", "--delete"), ("--key=ours", "--value=ö")):
        done = run_about(stream.config, path, ("--type=set-config", *words), module=WRITER)
        assert done.returncode == 0, done.stderr
    assert stream.managers()["config"] == {"stays": "ü", "ours": "ö"}


def test_each_message_class_of_samzas_writes_our_bytes(stream: Stream) -> None:
    """What a message class of Samza's writes is what we read, and what we write of it."""
    metadata = '{"epoch-id":"1","config-id":"2","job-model-id":"3"}'
    ssp, names = _ssp_key(_ODD_INPUT), json.dumps([_ODD], ensure_ascii=False)
    sent = [
        ("set-config", _ODD, {"value": _ODD}),
        ("set-changelog", _ODD, {"Partition": "3"}),
        ("set-container-host-assignment", "0-0", {"jmx-url": "u", "host": "h", _TUNNEL: "t"}),
        ("set-task-container-assignment", _ODD, {"containerId": "0-0"}),
        ("set-task-mode-assignment", _ODD, {"taskMode": "Standby"}),
        ("set-task-partition-assignment", ssp, {"taskNames": names}),
        (_EXECUTION, "0-0", {"execution-env-container-id": "c_1"}),
        ("set-job-coordinator-metadata", "YARN", {"meta-key": metadata}),
        ("set-migration-info", "migration-info", {_ODD: "value"}),
    ]
    arguments = {
        "set-container-host-assignment": ["0-0", "h", "u", "t"],
        "set-migration-info": [_ODD, "value"],
    }
    stream.open()
    stream.samza.ask(
        "send", [["t", t, *arguments.get(t, [key, *values.values()])] for t, key, values in sent]
    )
    records = topic_records(stream.servers, stream.topic)
    for (key, value), (type_, name, values) in zip(records, sent, strict=True):
        read = wire.decode(key, value)
        assert (read.type, read.key, read.values, read.source) == (type_, name, values, "t")
        written = CoordinatorStreamMessage(type_, name, values).stamped(
            source="t", host=read.host, username=read.username, timestamp_ms=read.timestamp_ms
        )
        assert wire.encode(written) == (key, value)


def test_records_of_another_form_are_kept(stream: Stream) -> None:
    """Placement, start offsets, draining: no damage to us, and there for Samza as it wrote them.

    Draining reads the run's id from the configuration, which is ours.
    """
    stream.write([wire.set_config("app.run.id", "run-1")], driver=True)
    stream.open()
    id_, asked, answered = stream.samza.ask("placement", ["run-1", "0", "nm2"])
    assert "nm2" in asked
    assert "größe" in answered
    assert "17" in stream.samza.ask("startpoint", [_ssp_key(_ODD_INPUT), _ODD, "17"])
    drained = stream.samza.ask("drain")
    before = topic_records(stream.servers, stream.topic)
    found = stream.ours("samza-place-container-v1")
    assert {key.partition(".")[0] for key in found} == {id_}
    assert list(stream.ours("samza-startpoint-v1")) == [f"kafka-2.{_ODD}.11.{_ODD}"]
    assert list(stream.ours("samza-drain-v1")) == [drained]
    stream.write([wire.set_config("k", "1")], driver=True)
    assert topic_records(stream.servers, stream.topic)[: len(before)] == before
    assert set(stream.theirs()) == {
        "set-config",
        "samza-place-container-v1",
        "samza-startpoint-v1",
        "samza-drain-v1",
    }
