"""Transactions whose end never reached a partition, on a real broker, and how they get it.

Kafka leaves the end of a transaction out where a partition has no leader at that moment
(KAFKA-20734); a record that comes late, after the end, leaves the same behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import healing_container
import pytest
from confluent_kafka import IsolationLevel, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec, ResourceType
from producer_ids import Batch, batches_in
from stopped_container import PLAN_VARIABLE, write_plan
from stream_containers import DEADLINE_S, P0, Job, Running, jobs
from suites import long
from topic_records import alter

from homeport.config.errors import UnavailableError
from homeport.config.settings.sections import SystemConfig, TaskConfig
from homeport.container.host.exit_codes import EXIT_UNAVAILABLE
from homeport.container.kafka.transactional_producer import fence
from homeport.job_coordinator.model.incarnation import Incarnation, transactional_id
from homeport.local_cluster import processes
from homeport.local_cluster.cluster import LocalCluster
from homeport.local_cluster.jars import default_cache
from homeport.local_cluster.layout import Layout

_VERIFICATION = "transaction.partition.verification.enable"
_PRODUCE, _VERSION = 0, 7
_TRANSACTIONAL = 0x10
_MAGIC = 2
_LIMIT_S = 30.0
_CASTAGNOLI = 0x82F63B78


@contextlib.contextmanager
def without_verification(servers: str) -> Iterator[None]:
    """The brokers do not ask whether a transaction is open, as brokers before Kafka 3.6."""
    alter(servers, "1", {_VERIFICATION: "false"}, ResourceType.BROKER)
    try:
        yield
    finally:
        alter(servers, "1", {_VERIFICATION: None}, ResourceType.BROKER)


def send_late(
    servers: str, transactional_id: str, place: tuple[str, int], after: Batch, entry: bytes
) -> int:
    """One more record of the writer of the batch ``after``, key and value ``entry``; its offset.

    No client sends a record after the end of its transaction, but the network may deliver one late.
    A broker that asks no coordinator then begins a transaction that hangs. Format: Kafka's Produce
    request version 7, with one record batch of magic 2.
    """
    topic, partition = place
    records = _batch(after.producer_id, after.producer_epoch, 1, entry)
    body = b"".join(
        (
            _text(transactional_id),
            struct.pack(">hii", -1, 10_000, 1),
            _text(topic),
            struct.pack(">iii", 1, partition, len(records)),
            records,
        )
    )
    head = struct.pack(">hhi", _PRODUCE, _VERSION, 1) + _text("late")
    host, port = servers.partition(",")[0].rsplit(":", 1)
    with socket.create_connection((host, int(port)), _LIMIT_S) as connection:
        connection.sendall(struct.pack(">i", len(head + body)) + head + body)
        answer = _received(connection, struct.unpack(">i", _received(connection, 4))[0])
    # Correlation id, one topic of that name, one partition: its number, an error, the offset.
    at = 4 + 4 + 2 + len(topic.encode()) + 4
    _, error, offset = struct.unpack_from(">ihq", answer, at)
    assert error == 0, f"the broker refused the late record: error {error}"
    return int(offset)


def _received(connection: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        part = connection.recv(count - len(found))
        assert part, "the broker closed the connection"
        found += part
    return found


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack(">h", len(data)) + data


def _batch(producer_id: int, epoch: int, sequence: int, entry: bytes) -> bytes:
    now_ms = int(time.time() * 1000)
    length = _varint(len(entry))
    record = b"\0" + _varint(0) + _varint(0) + length + entry + length + entry + _varint(0)
    record = _varint(len(record)) + record
    fields = (_TRANSACTIONAL, 0, now_ms, now_ms, producer_id, epoch, sequence, 1)
    checked = struct.pack(">hiqqqhii", *fields) + record
    tail = struct.pack(">ibI", -1, _MAGIC, _crc32c(checked)) + checked
    return struct.pack(">qi", 0, len(tail)) + tail


def _varint(value: int) -> bytes:
    """Of a number that is not below 0, in zigzag."""
    rest, found = value << 1, b""
    while rest > 0x7F:
        found += bytes([rest & 0x7F | 0x80])
        rest >>= 7
    return found + bytes([rest])


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (_CASTAGNOLI if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


SOON_OVER = {"systems.kafka.producer.transaction.timeout.ms": "1000"}
"""Of the job, whose patience with an open transaction is a sweep of Kafka's longer than this."""
ROUNDS = 12
COUNTED = (1).to_bytes(8, "big")


@pytest.fixture(name="make")
def _make(broker: LocalCluster, tmp_path: Path) -> Iterator[Callable[[], Job]]:
    with jobs(broker.bootstrap_servers, tmp_path, common=SOON_OVER) as made:
        yield made


def _id(job: Job, epoch: int) -> str:
    return transactional_id(job.config["job.name"], "1", Incarnation(P0, epoch))


def _begun(job: Job, epoch: int, timeout_ms: int, entries: dict[str, bytes]) -> Producer:
    """A transaction of an incarnation is open, with one record in each of the job's topics."""
    writer = Producer(
        {
            "bootstrap.servers": job.servers,
            "transactional.id": _id(job, epoch),
            "transaction.timeout.ms": timeout_ms,
        }
    )
    writer.init_transactions(DEADLINE_S)
    writer.begin_transaction()
    for name, key in entries.items():
        writer.produce(_topic(job, name), COUNTED, key, partition=0)
    assert writer.flush(DEADLINE_S) == 0
    return writer


def _log_directory(broker: LocalCluster) -> Path:
    return Layout(default_cache(), broker.name).broker("kafka") / "data"


def _stand_still(broker: LocalCluster, seconds: float) -> None:
    stopped = list(processes.of_cluster(broker.cluster_id))
    processes.pause(stopped)
    try:
        time.sleep(seconds)
    finally:
        for process in stopped:
            processes.send(process, signal.SIGCONT)


def _await_end(broker: LocalCluster, system: SystemConfig, transactional_id: str) -> None:
    """Kafka has done with what was open.

    The coordinator may fail to send the ends, and keep each client that wants the id waiting for
    good (seen once, of hundreds that it had recorded as aborted). It sends them when it is loaded
    again.
    """
    try:
        fence(system, transactional_id)
    except UnavailableError:
        broker.stop_kafka()
        broker.start_kafka()
        fence(system, transactional_id)


def _topic(job: Job, name: str) -> str:
    if name == "checkpoints":
        return TaskConfig.of(job.config).checkpoint_topic
    return job.topic(name)


def _stable_and_head(job: Job, name: str) -> tuple[int, int]:
    admin = AdminClient({"bootstrap.servers": job.servers})
    place = TopicPartition(_topic(job, name), 0)
    latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # untyped there
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            stable, head = (
                admin.list_offsets({place: latest}, isolation_level=level)[place].result(DEADLINE_S)
                for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)
            )
        except KafkaException:
            # A broker that has just woken up has no leaders for a moment.
            assert time.monotonic() < deadline
            admin.list_topics(timeout=DEADLINE_S)
        else:
            return int(stable.offset), int(head.offset)


def _is_stable(job: Job, name: str) -> bool:
    stable, head = _stable_and_head(job, name)
    return stable == head


def _hangs(job: Job, name: str) -> bool:
    return not _is_stable(job, name)


def _leave_hanging(
    job: Job, broker: LocalCluster, epoch: int, outcome: str, topics: Sequence[str]
) -> None:
    """A transaction of an incarnation hangs in these topics, of which one record is in each."""
    entry = f"hangs-{epoch:02}".encode()
    with without_verification(job.servers):
        writer = _begun(job, epoch, 60_000, dict.fromkeys(topics, b"whole"))
        before = {name: _stable_and_head(job, name)[0] for name in topics}
        if outcome == "aborted":
            writer.abort_transaction(DEADLINE_S)
        else:
            writer.commit_transaction(DEADLINE_S)
        for name in topics:
            place = (_topic(job, name), 0)
            job.until(lambda name=name: _stable_and_head(job, name)[0] > before[name])  # type: ignore[misc]  # a default
            own = batches_in(_log_directory(broker), *place)[-1]
            send_late(job.servers, _id(job, epoch), place, own, entry)


@pytest.mark.parametrize("outcome", [long("aborted"), "committed"])
@pytest.mark.parametrize("topics", [["changelog", "out"], long(["out"])], ids="-".join)
def test_a_start_ends_what_an_incarnation_that_it_fences_left_hanging(
    make: Callable[[], Job], broker: LocalCluster, topics: list[str], outcome: str
) -> None:
    """As it had ended; the container runs, and readers of its output go on."""
    job = make()
    _leave_hanging(job, broker, 1, outcome, topics)
    container = job.start(2, fence=[1])
    job.report(container, 1)
    for name in topics:
        job.until(lambda name=name: _is_stable(job, name), container)  # type: ignore[misc]  # a default
    _has_one_more_word(job, container, outcome, topics)


def _has_one_more_word(job: Job, container: Running, outcome: str, topics: Sequence[str]) -> None:
    job.produce([(0, b"word", b"")])
    job.until(lambda: job.processed() == 1, container)
    assert container.stop() == 143
    kept = {"whole", "hangs-01"} if outcome == "committed" else set()
    for name in topics:
        assert {k for k, v in job.table(name).items() if v is not None} == {*kept, "word"}


@pytest.mark.parametrize("outcome", [long("aborted"), "committed"])
def test_a_start_ends_a_hanging_transaction_in_its_changelog(
    make: Callable[[], Job], broker: LocalCluster, outcome: str
) -> None:
    """An earlier start has fenced it. It says so, uncharged, and the next start goes on."""
    job = make()
    _leave_hanging(job, broker, 1, outcome, ["changelog", "out"])

    first = job.start(3, fence=[2])
    assert first.process.wait(2 * DEADLINE_S) == EXIT_UNAVAILABLE
    line = first.last_line()
    assert f"reading {job.topic('changelog')} partition 0: its last stable offset has been" in line
    assert "kafka-transactions.sh" in line
    for name in ("changelog", "out"):
        assert f"{_id(job, 1)}, which was {outcome}, has its end in {job.topic(name)}" in line
        assert not _hangs(job, name)

    second = job.start(4, fence=[2, 3])
    job.report(second, 1)
    _has_one_more_word(job, second, outcome, ["changelog", "out"])


def _plan(job: Job) -> Path:
    return job.folder / "plan"


def _healer(job: Job, *, heeds_plan: bool = True) -> subprocess.Popen[bytes]:
    (job.folder / "config.json").write_text(json.dumps(dict(job.config)), encoding="utf-8")
    plan = _plan(job) if heeds_plan else job.folder / "none"
    support = str(Path(healing_container.__file__).parent)
    return subprocess.Popen(
        [sys.executable, "-m", "healing_container", str(job.folder)],
        env={**os.environ, PLAN_VARIABLE: str(plan), "PYTHONPATH": support},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def _heal(job: Job) -> str:
    """What hangs is ended; the output."""
    healer = _healer(job, heeds_plan=False)
    return healer.communicate(timeout=DEADLINE_S)[0].decode()


def _kept(job: Job, name: str) -> list[bytes | None]:
    """Keys of all committed records; there is nothing else."""
    assert _is_stable(job, name)
    return [key for key, _ in job.read(_topic(job, name))]


def _has_both(job: Job) -> None:
    for name in ("changelog", "checkpoints"):
        assert _kept(job, name) == [b"whole", b"hangs-01"]


@pytest.mark.parametrize(
    "step", [long("first_batch 1"), long("fence 1"), "ends 2", long("write_marker 1")]
)
def test_two_containers_at_once_end_a_committed_transaction_as_committed(
    make: Callable[[], Job], broker: LocalCluster, step: str
) -> None:
    """The checkpoints are everybody's: one stands still at a step while another does it all."""
    job = make()
    job.permit(2)
    _leave_hanging(job, broker, 1, "committed", ["changelog", "checkpoints"])
    write_plan(_plan(job), step, "wait")
    first = _healer(job)
    job.until(_plan(job).with_suffix(".reached").exists)
    assert "which was committed, has its end" in _heal(job)
    _plan(job).unlink()
    first.communicate(timeout=DEADLINE_S)
    assert first.returncode == 0
    _has_both(job)


def test_a_container_killed_at_any_step_aborts_nothing(
    make: Callable[[], Job], broker: LocalCluster
) -> None:
    """No transaction is open then, which Kafka would abort for its time; the next one goes on."""
    job = make()
    job.permit(2)
    _leave_hanging(job, broker, 1, "committed", ["changelog", "checkpoints"])
    for step in ("held 1", "ends 1", "first_batch 1", "fence 1", "ends 2", "write_marker 1"):
        write_plan(_plan(job), step, "kill")
        healer = _healer(job)
        healer.communicate(timeout=DEADLINE_S)
        assert healer.returncode == -signal.SIGKILL, step
        fence(SystemConfig.of(job.config, "kafka"), _id(job, 1))  # as each successor does
    _heal(job)
    _has_both(job)


def test_two_that_hang_end_each_as_it_had_ended(
    make: Callable[[], Job], broker: LocalCluster
) -> None:
    """One was aborted, one committed; the broker has restarted since, and does so once more."""
    job = make()
    job.permit(3)
    _leave_hanging(job, broker, 1, "aborted", ["changelog", "checkpoints"])
    with without_verification(job.servers):
        writer = _begun(job, 2, 60_000, {"changelog": b"second", "checkpoints": b"second"})
        writer.commit_transaction(DEADLINE_S)
        fence(SystemConfig.of(job.config, "kafka"), _id(job, 2))
        for name in ("changelog", "checkpoints"):
            place = (_topic(job, name), 0)
            own = [b for b in batches_in(_log_directory(broker), *place) if not b.is_marker][-1]
            send_late(job.servers, _id(job, 2), place, own, b"hangs-02")
    broker.stop_kafka()
    broker.start_kafka()
    write_plan(_plan(job), "ends 2", "wait")
    healer = _healer(job)
    job.until(_plan(job).with_suffix(".reached").exists)
    broker.stop_kafka()
    broker.start_kafka()
    _plan(job).unlink()
    healer.communicate(timeout=DEADLINE_S)
    _heal(job)
    for name in ("changelog", "checkpoints"):
        assert _kept(job, name) == [b"second", b"hangs-02"]


def test_a_transaction_with_an_unknown_end_is_reported_and_left(make: Callable[[], Job]) -> None:
    """A transaction of a foreign client: the log line says where, and what an operator can do."""
    job = make()
    stranger = Producer(
        {
            "bootstrap.servers": job.servers,
            "transactional.id": "a-stranger",
            "transaction.timeout.ms": 300_000,
        }
    )
    stranger.init_transactions(DEADLINE_S)
    stranger.begin_transaction()
    stranger.produce(job.topic("changelog"), b"v", b"k", partition=1)
    assert stranger.flush(DEADLINE_S) == 0
    container = job.start(1)
    assert container.process.wait(2 * DEADLINE_S) == EXIT_UNAVAILABLE
    line = container.last_line()
    assert (
        f"reading {job.topic('changelog')} partition 1: its last stable offset has been 0" in line
    )
    assert "__transaction_state has no end of one of this job's in it" in line
    stranger.abort_transaction(DEADLINE_S)


@pytest.mark.long
def test_a_hanging_transaction_of_a_broker_that_stood_still_is_ended(
    make: Callable[[], Job], broker: LocalCluster
) -> None:
    """A single broker stands still for longer than its session, and wakes up without a leader.

    What timed out meanwhile is aborted in that moment, and Kafka leaves some of the ends out: about
    every second time, of thirty transactions; it is done until that was so.
    """
    job = make()
    epoch, rounds = 0, 0
    while not _hangs(job, "changelog"):
        rounds += 1
        if rounds > ROUNDS:
            pytest.skip("Kafka has left no end out: has KAFKA-20734 been mended?")
        opened = []
        for i in range(30):
            epoch += 1
            opened.append(_begun(job, epoch, 8_000 + 150 * i, {"changelog": b"k%d" % epoch}))
        _stand_still(broker, 11.0)
        for i in range(30):
            _await_end(broker, SystemConfig.of(job.config, "kafka"), _id(job, epoch - i))
    first = job.start(epoch + 1)
    assert first.process.wait(3 * DEADLINE_S) == EXIT_UNAVAILABLE
    assert "which was aborted, has its end" in first.last_line()
    assert not _hangs(job, "changelog")
    second = job.start(epoch + 2)
    job.report(second, 1)
    assert second.stop() == 143
    assert job.table("changelog") == {}
