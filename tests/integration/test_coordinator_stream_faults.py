"""A coordinator stream with damage, and with two writers at once, in a real Kafka."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from forked_tool import WRITER, run_about
from job_configs import job_config
from topic_records import alter, topic_records
from waiting import until
from yarn_jobs import Job, wait_for

from homeport.config.errors import UnavailableError
from homeport.config.settings.sections import JobConfig, SystemConfig
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import MessageType
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.kafka.topics import TopicAdmin, coordinator_topic_spec

KEYS = 30
WRITE_ALL = """
import sys
from homeport.config.loading.loader import load
from homeport.cli.job.coordinator_stream_writer import (
    WritableType, message_of, write,
)

path, name, step = sys.argv[1:]
config = load(path, ())
sys.stdin.readline()
for number in range({keys}):
    key = f"own.key.{{number * int(step) % {keys}}}"
    write(config, message_of(WritableType.SET_CONFIG, key, f"{{name}} {{number}}"))
"""


def _is_read(stream: CoordinatorStreamStore) -> bool:
    try:
        stream.bootstrap()
    except UnavailableError:
        return False
    return True


@pytest.mark.parametrize(
    ("partitions", "cleanup", "rule"),
    [
        (2, "compact", "it has 2 partitions and must have 1; delete the topic"),
        (1, "delete", "its cleanup.policy is 'delete' and must be 'compact'; set cleanup.policy"),
    ],
)
def test_the_writer_refuses_a_stream_of_the_wrong_shape(
    kafka: str, tmp_path: Path, partitions: int, cleanup: str, rule: str
) -> None:
    """One line with the remedy, and no record."""
    config = job_config(kafka)
    topic = JobConfig.of(config).coordinator_topic
    made = NewTopic(topic, partitions, 1, config={"cleanup.policy": cleanup})
    admin = AdminClient({"bootstrap.servers": kafka})
    admin.create_topics([made])[topic].result(30)
    words = ("--type=set-config", "--key=task.commit.ms", "--value=1")
    done = run_about(config, tmp_path / "job.properties", words, module=WRITER)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(f"error: topic = '{topic}': {re.escape(rule)}.*\n", done.stderr)
    reader = Consumer({"bootstrap.servers": kafka, "group.id": "nobody"})
    try:
        ends = [reader.get_watermark_offsets(TopicPartition(topic, p)) for p in range(partitions)]
    finally:
        reader.close()
    assert ends == [(0, 0)] * partitions


def test_the_last_record_of_two_simultaneous_writers_wins(kafka: str, tmp_path: Path) -> None:
    """Each key has the value of its last record in the log; nothing is lost, nothing is torn."""
    config = job_config(kafka)
    job, system = JobConfig.of(config), SystemConfig.of(config, "kafka")
    TopicAdmin(system).ensure(coordinator_topic_spec(job))
    program = WRITE_ALL.format(keys=KEYS)
    path = tmp_path / "job.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in config.items()), encoding="utf-8")
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(path), name, step],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name, step in (("one", "1"), ("other", "7"))
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    ends = [writer.communicate(timeout=100) for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0], ends
    last: dict[str, str | None] = {}
    records = topic_records(kafka, job.coordinator_topic)
    for key, value in records:
        message = wire.decode(key, value)
        last[message.key] = message.value("value")
    assert len(records) == 2 * KEYS
    with CoordinatorStreamStore(system, job.coordinator_topic, source="test") as store:
        store.bootstrap()
        found = store.latest(MessageType.SET_CONFIG)
        assert {key: message.value("value") for key, message in found.items()} == last
        assert set(last) == {f"own.key.{number}" for number in range(KEYS)}
        assert store.damaged_count == 0


@pytest.mark.long
def test_a_driver_skips_garbage_and_refuses_a_stream_that_may_lose_records(
    make_job: Callable[[str], Job],
) -> None:
    """What is no message is counted on the status, by the next driver too, and harms nothing.

    A topic that is not compacted any more ends the application, with the remedy.
    """
    job = make_job("spoilt")
    topic = f"__samza_coordinator_{job.name}_1"
    before = job.begin(60, "job.container.count=1")
    producer = Producer({"bootstrap.servers": job.servers})
    producer.produce(topic, b"{}", b"no list")
    producer.produce(topic, b"\xff\xfe", b'[1,"set-config","job.container.count"]')
    producer.produce(topic, b"{}", b'[2,"set-config","job.container.count"]')
    assert producer.flush(30) == 0
    wait_for(lambda: job.get("v1/status")["coordinator_stream_damaged"] == 3, job)
    driver = job.kill_driver()
    wait_for(lambda: job.program("application_master") not in {driver, None}, job)
    wait_for(lambda: job.get("v1/status")["coordinator_stream_damaged"] == 3, job)
    assert job.settled() == before
    assert job.get("v1/status")["coordinator_stream"] == "ok"
    job.expects(60)

    alter(job.servers, topic, {"cleanup.policy": "delete"})
    driver = job.kill_driver()
    done = job.call("wait")
    assert done.returncode == 1
    ended = job.application()
    assert ended.final_status == "FAILED"
    assert ended.diagnostics.strip() == (
        f"topic = '{topic}': its cleanup.policy is 'delete' and must be 'compact'; "
        "set cleanup.policy=compact on the topic"
    )


def test_a_transaction_that_holds_up_the_stream_is_reported(kafka: str) -> None:
    """With the last stable offset, the head, and what an operator can do; then reading goes on."""
    config = job_config(kafka)
    system = SystemConfig.of(config, "kafka")
    topic = JobConfig.of(config).coordinator_topic
    TopicAdmin(system).ensure(coordinator_topic_spec(JobConfig.of(config)))
    writer = Producer({"bootstrap.servers": kafka, "transactional.id": f"holder-{topic}"})
    writer.init_transactions(30)
    writer.begin_transaction()
    writer.produce(topic, b"{}", b"no message", 0)
    assert writer.flush(30) == 0
    with CoordinatorStreamStore(system, topic, source="t", timeout_s=1) as stream:
        stated = (
            "head 1 not reached within 1 s, its last stable offset is 0: a transaction that began "
            f"there has no end in this partition; `kafka-transactions.sh --bootstrap-server {kafka}"
        )
        with pytest.raises(UnavailableError, match=re.escape(stated)):
            stream.bootstrap()
        writer.abort_transaction(30)
        until(lambda: _is_read(stream))
