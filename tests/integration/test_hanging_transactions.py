"""Transactions whose end never reached a partition, on a real broker, and who ends them.

Kafka leaves the end of a transaction out where a partition has no leader at that moment
(KAFKA-20734); a record that comes late, after the end, leaves the same behind.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import IsolationLevel, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from late_records import send_late, without_verification
from producer_ids import batches_in
from stream_containers import COUNTER, DEADLINE_S, P0, Job, make_job

from homeport.config.errors import UnavailableError
from homeport.config.sections import SystemConfig
from homeport.container.kafka.transactional_producer import fence
from homeport.container.runtime.exit_codes import EXIT_UNAVAILABLE
from homeport.job_coordinator.model.incarnation import Incarnation, transactional_id
from local_cluster import processes
from local_cluster.cluster import LocalCluster
from local_cluster.jars import default_cache
from local_cluster.layout import Layout

SOON_OVER = {"systems.kafka.producer.transaction.timeout.ms": "1000"}
"""Of the job, whose patience with an open transaction is a sweep of Kafka's longer than this."""
ROUNDS = 12
COUNTED = (1).to_bytes(8, "big")


@pytest.fixture(name="make")
def _make(broker: LocalCluster, tmp_path: Path) -> Iterator[Callable[[], Job]]:
    made: list[Job] = []

    def make() -> Job:
        made.append(make_job(broker.bootstrap_servers, tmp_path, COUNTER, SOON_OVER))
        return made[-1]

    yield make
    for job in made:
        job.close()


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
        writer.produce(job.topic(name), COUNTED, key, partition=0)
    assert writer.flush(DEADLINE_S) == 0
    return writer


def _log_directory(broker: LocalCluster) -> Path:
    return Layout(default_cache(), broker.name).kafka / "data"


def _stand_still(broker: LocalCluster, seconds: float) -> None:
    """The broker's process stands still for so long, which is the fault itself."""
    stopped = list(processes.of_cluster(broker.cluster_id))
    for process in stopped:
        processes.send(process, signal.SIGSTOP)
    try:
        time.sleep(seconds)
    finally:
        for process in stopped:
            processes.send(process, signal.SIGCONT)


def _await_end(broker: LocalCluster, system: SystemConfig, transactional_id: str) -> None:
    """Kafka has done with what was open.

    It may send the ends to nobody and keep whoever wants the id waiting for good (seen once, of
    hundreds that it had written down as aborted): they are sent when the coordinator is loaded
    anew.
    """
    try:
        fence(system, transactional_id)
    except UnavailableError:
        broker.stop_kafka()
        broker.start_kafka()
        fence(system, transactional_id)


def _stable_and_head(job: Job, name: str) -> tuple[int, int]:
    admin = AdminClient({"bootstrap.servers": job.servers})
    place = TopicPartition(job.topic(name), 0)
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


@pytest.mark.parametrize("outcome", ["aborted", "committed"])
def test_a_start_ends_what_hangs_in_its_changelog(
    make: Callable[[], Job], broker: LocalCluster, outcome: str
) -> None:
    """As it had ended; it says so, is not charged, and the next start goes on.

    The output, where a record of ours would be taken for one of the job's, is told as it is.
    """
    job = make()
    with without_verification(job.servers):
        writer = _begun(job, 1, 60_000, {"changelog": b"whole", "out": b"whole"})
        if outcome == "aborted":
            writer.abort_transaction(DEADLINE_S)
        else:
            writer.commit_transaction(DEADLINE_S)
        for name in ("changelog", "out"):
            place = (job.topic(name), 0)
            job.until(partial(_is_stable, job, name))
            written = batches_in(_log_directory(broker), *place)
            late = send_late(job.servers, _id(job, 1), place, written[0], b"12345678")
            assert _stable_and_head(job, name) == (late, late + 1)

    first = job.start(2, fence=[1])
    assert first.process.wait(2 * DEADLINE_S) == EXIT_UNAVAILABLE
    line = first.last_line()
    assert f"reading {job.topic('changelog')} partition 0: its last stable offset has been" in line
    assert "kafka-transactions.sh" in line
    assert f"{_id(job, 1)}, which was {outcome}, has its end" in line
    assert not _hangs(job, "changelog")
    assert _hangs(job, "out") == (outcome == "committed")
    told = f"was committed and has no end in {job.topic('out')} partition 0"
    assert (told in first.log.read_text()) == (outcome == "committed")

    second = job.start(3, fence=[1, 2])
    job.report(second, 1)
    job.produce([(0, b"word", b"")])
    job.until(lambda: job.processed() == 1, second)
    assert second.stop() == 143
    kept = {"whole", "12345678", "word"} if outcome == "committed" else {"word"}
    found = {k for k, v in job.table("changelog").items() if v is not None}
    assert found == kept


def test_what_nobody_knows_the_end_of_is_told_and_left(make: Callable[[], Job]) -> None:
    """A transaction of somebody else's: the line says where, and what an operator can do."""
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
def test_what_a_broker_that_stood_still_left_hanging_is_ended(
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
        assert rounds <= ROUNDS, "Kafka has left no end out: has KAFKA-20734 been mended?"
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
