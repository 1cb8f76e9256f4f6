"""What a stream container stands on fails in mid-transaction or in mid-commit.

On real parts, with a container that stands still at the step where it is to happen.
"""

from __future__ import annotations

import signal
import time
from functools import partial

import pytest
from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from counted_words import (
    counts,
    has_a_sound_history,
    has_processed,
    is_exact,
    local_state,
    successor,
    words,
)
from small_disk import fill, small_disk
from stopped_container import write_plan
from stream_containers import DEADLINE_S, Job, Make, Running
from suites import long

from homeport.container.host.exit_codes import EXIT_DISK_FULL, EXIT_UNAVAILABLE
from homeport.job_coordinator.model.outcomes import RestoreKind
from homeport.local_cluster.cluster import LocalCluster

OUTAGE_S = 60.0
"""How long the fault lasts; nothing is waited for by it."""
STALL_S = 15.0
"""As above: longer than ``transaction.timeout.ms``."""
DAYS_S = 3 * 86_400
SENT = "send-changelog counts/Partition 0"


def working(job: Job) -> Running:
    """The first incarnation, with 20 words committed, and a flush of each of its two stores."""
    container = successor(job, 1)
    job.produce(words(20))
    # The words may come in two transactions, of one partition each, with a flush after each.
    stores = job.folder / "stores"
    job.until(lambda: len(list(stores.rglob("OFFSET"))) >= 2 and job.processed() == 20, container)
    return container


def standing(job: Job, container: Running, after: str) -> None:
    """The container stands still after that step, with 20 more words in work."""
    write_plan(job.folder / "plan", after, "wait")
    job.produce(words(20, 20))
    job.until((job.folder / "plan.reached").exists, container)


def let_go(job: Job) -> None:
    """It goes on."""
    (job.folder / "plan").unlink()
    (job.folder / "plan.reached").unlink()


def goes_on_exactly(job: Job) -> None:
    """The next incarnation needs no more than a tail, and ends with all words counted once."""
    _ends_exactly(job, successor(job, 2))


def _ends_exactly(job: Job, container: Running) -> None:
    job.until(partial(has_processed, job, 40), container)
    # Kafka may have left the end of an aborted one out of the output; the start has it written.
    job.until(lambda: is_decided(job, "out"), container)
    assert container.stop() == 143
    is_exact(job, 40)
    assert local_state(job) == counts(40)


def _goes_on_exactly_after_an_outage(job: Job) -> None:
    """As ``goes_on_exactly``; one start more where Kafka has left the transaction's end out.

    That start writes the end, and ends (KAFKA-20734).
    """
    second = job.start(2, fence=[1], program="stopped_container")
    job.until(lambda: second.process.poll() is not None or _has_started(job, 2))
    if second.process.poll() is None:
        _ends_exactly(job, second)
        return
    assert second.process.wait() == EXIT_UNAVAILABLE, second.last_line()
    assert "which was aborted, has its end" in second.last_line()
    third = job.start(3, fence=[2], program="stopped_container")
    job.until(partial(_has_started, job, 3), third)
    _ends_exactly(job, third)


def _has_started(job: Job, epoch: int) -> bool:
    return any(report.incarnation.epoch == epoch for report in job.served.backend.reports)


@pytest.mark.long
def test_a_broker_that_restarts_in_mid_transaction(make: Make, broker: LocalCluster) -> None:
    """The transaction may end well, or its container in one line, uncharged: nothing is lost."""
    # A broker alone that finds the time over while it is still without leaders leaves out the
    # markers, and readers wait for ever: Kafka's fault, and no matter here.
    job = make(
        servers=broker.bootstrap_servers, systems_kafka_producer_transaction_timeout_ms="300000"
    )
    first = working(job)
    standing(job, first, SENT)
    broker.stop_kafka()
    broker.start_kafka()
    let_go(job)
    job.until(lambda: first.process.poll() is not None or job.processed() == 40)
    if first.process.poll() is None:
        assert first.stop() == 143
    else:
        assert first.process.wait() == EXIT_UNAVAILABLE, first.last_line()
        assert first.last_line().startswith(f"error: Kafka at {job.servers} ")
    _goes_on_exactly_after_an_outage(job)


@pytest.mark.long
def test_a_broker_that_is_away_for_a_minute_in_mid_transaction(
    make: Make, broker: LocalCluster
) -> None:
    """The container ends in one line, uncharged; the successor waits for Kafka and is exact."""
    job = make(servers=broker.bootstrap_servers)
    first = working(job)
    standing(job, first, SENT)
    broker.stop_kafka()
    try:
        let_go(job)
        began = time.monotonic()
        assert first.process.wait(DEADLINE_S) == EXIT_UNAVAILABLE
        assert first.last_line().startswith(f"error: Kafka at {job.servers} ")
        time.sleep(max(0.0, OUTAGE_S - (time.monotonic() - began)))
    finally:
        broker.start_kafka()
    _goes_on_exactly_after_an_outage(job)


@pytest.mark.parametrize("after", ["deliver", long(SENT), long("begin")])
def test_a_broker_that_stands_still_for_longer_than_a_transaction_may_take(
    make: Make, broker: LocalCluster, after: str
) -> None:
    """An end is uncharged: Kafka's silence has used up the time.

    There is none where the transaction's end reaches the broker before that has looked at its time,
    which it does each ten seconds.
    """
    job = make(servers=broker.bootstrap_servers)
    first = working(job)
    standing(job, first, after)
    broker.pause_kafka()
    try:
        let_go(job)
        time.sleep(STALL_S)
    finally:
        broker.resume_kafka()
    job.until(lambda: first.process.poll() is not None or has_processed(job, 40))
    if first.process.poll() is None:
        _ends_exactly(job, first)
        return
    assert first.process.wait() == EXIT_UNAVAILABLE, first.last_line()
    assert first.last_line().startswith(f"error: Kafka at {job.servers} ")
    _goes_on_exactly_after_an_outage(job)


def sent_and_decided(job: Job, name: str = "changelog") -> tuple[int, int]:
    """How far one of its topics goes, open transactions included, and how far without them."""
    admin = AdminClient({"bootstrap.servers": job.servers})
    latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # of the library
    places = {TopicPartition(job.topic(name), partition): latest for partition in (0, 1)}
    ends = []
    for level in (IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED):
        found = admin.list_offsets(places, isolation_level=level)
        ends.append(sum(future.result(DEADLINE_S).offset for future in found.values()))
    return ends[0], ends[1]


def is_decided(job: Job, name: str) -> bool:
    """Whether no transaction is open in the topic, or hangs there."""
    sent, decided = sent_and_decided(job, name)
    return sent == decided


def is_ended_since(job: Job, before: int) -> bool:
    """Whether the changelog has more than ``before``, and nothing of it is undecided."""
    sent, decided = sent_and_decided(job)
    return sent == decided > before


def test_a_transaction_that_takes_longer_than_its_time_out(make: Make) -> None:
    """Kafka has aborted it: the container says so in one line, and nothing of it is kept."""
    job = make(systems_kafka_producer_transaction_timeout_ms="1500")
    first = working(job)
    before, _ = sent_and_decided(job)
    standing(job, first, "deliver")
    job.until(lambda: is_ended_since(job, before))
    let_go(job)
    assert first.process.wait(DEADLINE_S) == 1
    line = first.last_line()
    assert line.startswith("error: the transaction took "), line
    assert "longer than transaction.timeout.ms = 1500" in line
    goes_on_exactly(job)


@pytest.mark.parametrize(
    "after",
    [
        "apply counts/Partition 1",
        pytest.param("flush counts/Partition 0", marks=pytest.mark.long),
        pytest.param("write-OFFSET counts/Partition 0", marks=pytest.mark.long),
    ],
    ids=["before the flush", "before OFFSET", "before OFFSET-v2"],
)
def test_a_disk_that_gets_full_in_mid_commit(make: Make, after: str) -> None:
    """The directory is named in one line; with room again its state is as good as before."""
    job = make(task_commit_ms="1")
    stores = job.folder / "stores"
    stores.mkdir()
    with small_disk(stores):
        first = working(job)
        standing(job, first, after)
        filler = fill(stores)
        let_go(job)
        assert first.process.wait(DEADLINE_S) == EXIT_DISK_FULL
        line = first.last_line()
        assert line.startswith(f"error: {stores}/"), line
        assert "no room is left on its disk (0 bytes free); make room there, or " in line
        filler.unlink()
        goes_on_exactly(job)
        # Its history was on the same disk.
        has_a_sound_history(job)


def test_a_wall_clock_that_jumps_disturbs_no_container(make: Make) -> None:
    """Days ahead and back again: transactions and commits come at their time, by another clock."""
    job = make(task_commit_ms="1")
    first = working(job)
    plan = job.folder / "plan"
    for number, seconds in enumerate((DAYS_S, -2 * DAYS_S), start=1):
        before = len(job.history("commit"))
        write_plan(plan, "commit", f"jump {seconds}")
        job.produce(words(10, 10 + 10 * number))
        job.until(partial(has_processed, job, 20 + 10 * number), first)
        job.until(lambda before=before: len(job.history("commit")) > before, first)  # type: ignore[misc]  # lambda
        assert not plan.exists()
    assert first.stop() == 143
    is_exact(job, 40)
    second = successor(job, 2)
    restored = job.report(second, 2).restored["counts"].values()
    assert {how.kind for how in restored} == {RestoreKind.NONE}
    assert second.stop() == 143


def test_a_transaction_ends_by_its_bytes(make: Make) -> None:
    """Long before its time; what is below the limit waits, and is dropped at the end."""
    job = make(
        task_transaction_ms="600000",
        task_transaction_idle_ms="-1",
        task_transaction_max_bytes="1000",
    )
    container = successor(job, 1)
    job.produce(words(400))
    job.until(lambda: job.processed() > 0, container)
    assert container.stop(signal.SIGTERM) == 143
    is_exact(job, job.processed())
