"""The standby container as a process: it follows what is committed, and its directory serves."""

from __future__ import annotations

import contextlib
import json
import re
import signal
from pathlib import Path

from confluent_kafka import Producer
from counted_words import words
from restored_stores import workers_of
from small_disk import fill, small_disk
from store_copies import entries, offset
from stream_containers import COUNTER, DEADLINE_S, Job, Make, Running, make_job

from homeport.container.host.exit_codes import EXIT_DISK_FULL
from homeport.container.progress import offset_file
from homeport.container.progress.restore_schedule import SMALL_OFFSETS
from homeport.job_coordinator.http.messages import Started
from homeport.job_coordinator.metadata.task_assignment import LocalityManager
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.local_cluster.cluster import LocalCluster

STANDBY = ProcessorId("0-0")
ACTIVE_HOME, STANDBY_HOME = "stores", "stores-b"


JOBS = {"common": {"job.hotstandby.enabled": "true", "task.commit.ms": "300"}}
"""Of ``make``: a job with a standby."""


def _start_standby(job: Job, epoch: int, stores: str = STANDBY_HOME) -> Running:
    fence = range(1, epoch)
    return job.start(epoch, fence, processor=STANDBY, host="NM2", stores=stores)


def _directories(job: Job, stores: str) -> list[Path]:
    root = job.folder / stores / f"{job.config['job.name']}-1" / "counts"
    return [root / "Partition_0", root / "Partition_1"]


def _heads(job: Job) -> list[int]:
    """The offset of the last committed record of each changelog partition, -1 without one."""
    heads = [-1, -1]
    for message in job.messages(job.topic("changelog")):
        heads[message.partition() or 0] = message.offset() or 0
    return heads


def _until_followed(job: Job, standby: Running, stores: str = STANDBY_HOME) -> None:
    heads = _heads(job)
    directories = _directories(job, stores)
    job.until(
        lambda: all(offset(d) >= head for d, head in zip(directories, heads, strict=True)), standby
    )


def _are_equal(job: Job, one: str = ACTIVE_HOME, other: str = STANDBY_HOME) -> int:
    """Both homes hold the same, key by key; how many keys."""
    total = 0
    for left, right in zip(_directories(job, one), _directories(job, other), strict=True):
        found = entries(left, job.folder)
        assert entries(right, job.folder) == found
        total += len(found)
    return total


def _restored(report: Started) -> dict[str, tuple[str, int, str | None]]:
    """{task: (kind, records, reason)} of the store ``counts``."""
    counts = report.restored["counts"]
    return {task: (how.kind.value, how.records, how.reason) for task, how in counts.items()}


def _last_report(job: Job, container: Running, epoch: int, processor: str) -> Started:
    def found() -> list[Started]:
        return [
            report
            for report in job.served.backend.reports
            if (report.incarnation.processor_id, report.incarnation.epoch) == (processor, epoch)
        ]

    job.until(lambda: bool(found()), container)
    return found()[0]


def _log(container: Running) -> str:
    return container.log.read_text(encoding="utf-8")


def _write(job: Job, first: int, end: int) -> None:
    writer = Producer({"bootstrap.servers": job.servers})
    for number in range(first, end):
        writer.produce(job.topic("changelog"), b"1", b"%d" % number, partition=0)
    assert writer.flush(DEADLINE_S) == 0


def test_a_standby_follows_and_either_opens_what_the_other_left(make: Make) -> None:
    """Continuous, committed; both homes equal; a container that changes homes reads the tail alone.

    OFFSET, OFFSET-v2 and SIDE-INPUT-OFFSETS name where the standby stood. The standby learns how
    far behind it is, and has its own locality.
    """
    job = make()
    active, standby = job.start(1), _start_standby(job, 1)
    job.produce(words(2000))
    job.until(lambda: job.processed() == 2000, active)
    _until_followed(job, standby)
    job.until(
        lambda: (stated := standby.memory.last_report()) is not None and stated.lag == 0, standby
    )
    stated = standby.memory.last_report()
    assert stated is not None
    assert {(lag.store, lag.task, lag.records, lag.seconds) for lag in stated.lags} == {
        ("counts", "Standby-Partition 0-0", 0, 0.0),
        ("counts", "Standby-Partition 1-0", 0, 0.0),
    }
    assert (standby.stop(), active.stop()) == (143, 143)
    assert _are_equal(job) == 14
    for partition, directory in enumerate(_directories(job, STANDBY_HOME)):
        v2 = offset_file.decode((directory / "OFFSET-v2").read_bytes())
        assert (directory / "SIDE-INPUT-OFFSETS").read_bytes() == offset_file.encode(v2)
        place = f"kafka.{job.topic('changelog')}.{partition}"
        assert json.loads(v2) == {place: str(offset(directory))}
    stream = job.coordinator_stream()
    hosts = LocalityManager(stream).read_tasks()
    stream.close()
    assert hosts == {
        "Partition 0": "nm1",
        "Partition 1": "nm1",
        "Standby-Partition 0-0": "nm2",
        "Standby-Partition 1-0": "nm2",
    }

    job.produce(words(500, 2000))
    moved = job.start(2, [1], host="NM2", stores=STANDBY_HOME)
    report = _last_report(job, moved, 2, "0")
    assert {how[:2] for how in _restored(report).values()} == {("none", 0)}
    job.until(lambda: job.processed() == 2500, moved)
    assert moved.stop() == 143
    assert not list((job.folder / STANDBY_HOME).rglob("SIDE-INPUT-OFFSETS"))

    behind = [offset(directory) for directory in _directories(job, ACTIVE_HOME)]
    heads = _heads(job)
    back = _start_standby(job, 2, ACTIVE_HOME)
    report = _last_report(job, back, 2, STANDBY)
    for partition, how in enumerate(report.restored["counts"].values()):
        assert (how.kind.value, how.reason) == ("tail", None)
        assert how.from_offset == behind[partition] + 1
        assert how.records == job.records_between(
            "changelog", partition, behind[partition] + 1, heads[partition]
        )
    assert back.stop() == 143
    assert _are_equal(job) == 14


def test_a_standby_that_is_killed_goes_on_exactly(make: Make) -> None:
    """SIGKILL in the midst of it: the next one reads what followed its OFFSET, and is exact."""
    job = make(task_commit_ms="600000")
    active, standby = job.start(1), _start_standby(job, 1)
    _last_report(job, standby, 1, STANDBY)
    job.produce(words(300))
    # The first records are committed at once: a standby that dies before must read all again.
    job.until(lambda: all(offset(d) >= 0 for d in _directories(job, STANDBY_HOME)), standby)
    job.produce(words(300, 300))
    job.until(lambda: job.processed() == 600, active)
    assert standby.stop(signal.SIGKILL) == -signal.SIGKILL
    job.produce(words(300, 600))
    job.until(lambda: job.processed() == 900, active)
    again = _start_standby(job, 2)
    report = _last_report(job, again, 2, STANDBY)
    assert {how[::2] for how in _restored(report).values()} == {("tail", None)}
    assert (again.stop(), active.stop()) == (143, 143)
    assert _are_equal(job) == 14


def test_uncommitted_records_are_never_followed(make: Make) -> None:
    """Safety K1: records of an aborted transaction pass by; those of an open one are waited for."""
    job = make()
    standby = _start_standby(job, 1)
    _last_report(job, standby, 1, STANDBY)
    writer = Producer({"bootstrap.servers": job.servers, "transactional.id": job.topic("writer")})
    writer.init_transactions(DEADLINE_S)
    for key, is_committed in ((b"a", True), (b"b", False), (b"c", True)):
        writer.begin_transaction()
        writer.produce(job.topic("changelog"), b"1", key, partition=0)
        assert writer.flush(DEADLINE_S) == 0
        if key == b"c":
            job.until(
                lambda: (stated := standby.memory.last_report()) is not None and stated.lag == 1,
                standby,
            )
        if is_committed:
            writer.commit_transaction(DEADLINE_S)
        else:
            writer.abort_transaction(DEADLINE_S)
    _until_followed(job, standby)
    assert standby.stop() == 143
    assert entries(_directories(job, STANDBY_HOME)[0], job.folder) == {b"a": b"1", b"c": b"1"}


def test_a_recreated_changelog_ends_the_standby(make: Make) -> None:
    """Safety S3: one line says so, and the next start reads the new one from its beginning."""
    job = make()
    standby = _start_standby(job, 1)
    _write(job, 0, 10)
    job.until(lambda: offset(_directories(job, STANDBY_HOME)[0]) == 9, standby)
    job.make_anew("changelog", [(0, b"old", b"1")])
    standby.process.wait(DEADLINE_S)
    assert standby.process.returncode == 1
    line = standby.last_line()
    # By the poll of the heads, or by the reader, whichever comes first.
    assert re.search("(changelog|it) was (deleted|recreated)|topic was recreated or cut off", line)
    again = _start_standby(job, 2)
    report = _last_report(job, again, 2, STANDBY)
    reasons = [how.reason for how in report.restored["counts"].values()]
    assert any("recreated" in (reason or "") for reason in reasons), line
    _until_followed(job, again)
    assert again.stop() == 143
    assert entries(_directories(job, STANDBY_HOME)[0], job.folder) == {b"old": b"1"}


def test_a_standby_waits_for_a_broker_that_is_away(broker: LocalCluster, tmp_path: Path) -> None:
    """It says so once, goes on once it is back, and misses nothing of what came afterwards."""
    keys = {"job.hotstandby.enabled": "true", "task.commit.ms": "300"}
    job = make_job(broker.bootstrap_servers, tmp_path, COUNTER, keys)
    try:
        standby = _start_standby(job, 1)
        _last_report(job, standby, 1, STANDBY)
        _write(job, 0, 10)
        job.until(lambda: offset(_directories(job, STANDBY_HOME)[0]) == 9, standby)
        broker.stop_kafka()
        try:
            job.until(lambda: "following waits for Kafka" in _log(standby), standby)
        finally:
            broker.start_kafka()
        job.until(lambda: "following goes on" in _log(standby), standby)
        _write(job, 10, 20)
        job.until(lambda: offset(_directories(job, STANDBY_HOME)[0]) == 19, standby)
        assert standby.stop() == 143
        assert _log(standby).count("following waits for Kafka") == 1
        found = entries(_directories(job, STANDBY_HOME)[0], job.folder)
        assert found == {b"%d" % number: b"1" for number in range(20)}
    finally:
        job.close()


def test_a_disk_without_room_ends_the_standby_with_its_store_whole(
    make: Make, tmp_path: Path
) -> None:
    """One line names the directory; with room again the next one reads the tail alone."""
    job = make()
    home = tmp_path / STANDBY_HOME
    home.mkdir()
    with small_disk(home):
        standby = _start_standby(job, 1)
        _write(job, 0, 10)
        directory = _directories(job, STANDBY_HOME)[0]
        job.until(lambda: offset(directory) == 9, standby)
        filler = fill(home)
        _write(job, 10, 5000)
        assert standby.process.wait(DEADLINE_S) == EXIT_DISK_FULL
        assert f"{directory}: no room is left on its disk" in standby.last_line()
        filler.unlink()
        again = _start_standby(job, 2)
        report = _last_report(job, again, 2, STANDBY)
        how = report.restored["counts"]["Standby-Partition 0-0"]
        assert (how.kind.value, how.from_offset, how.records) == ("tail", 10, 4990)
        assert again.stop() == 143
        assert len(entries(directory, job.folder)) == 5000


def _niceness(pid: int) -> list[int]:
    """Of each thread of a process; none where it is gone."""
    found = []
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):
            found.append(int(stat.read_text().rpartition(")")[2].split()[16]))
    return found


def _session_niceness(pid: int) -> str | None:
    """Of the process's autogroup; None where the kernel has none."""
    stated = Path(f"/proc/{pid}/autogroup")
    return stated.read_text().split()[-1] if stated.exists() else None


def test_a_standby_gives_way_in_all_that_it_does(make: Make) -> None:
    """Every thread is nicer by ten, those of RocksDB, of Kafka's client and of workers too.

    But for the one that watches the lease: it has to be in time whatever the host is busy with.
    """
    job = make()
    content = [(b"p0-%06d" % i, b"%08d" % i) for i in range(SMALL_OFFSETS + 20_000)]
    producer = Producer({"bootstrap.servers": job.servers})
    for key, value in content:
        producer.produce(job.topic("changelog"), value, key, partition=0)
        producer.poll(0)
    assert producer.flush(DEADLINE_S) == 0
    active = job.start(1)
    standby = _start_standby(job, 1)
    of_workers: set[int] = set()

    def is_started() -> bool:
        for worker in workers_of(standby.process.pid):
            of_workers.update(_niceness(worker))
        return any(r.incarnation.processor_id == STANDBY for r in job.served.backend.reports)

    job.until(is_started, standby)
    _until_followed(job, standby)
    threads = sorted(_niceness(standby.process.pid))
    assert threads[:1] == [0]
    assert set(threads[1:]) == {10}
    assert of_workers == {10}
    assert set(_niceness(active.process.pid)) == {0}
    # Where sessions share the processor evenly, its own is nice too, and not that of its launcher.
    assert _session_niceness(standby.process.pid) in {"10", None}
    assert _session_niceness(active.process.pid) in {"0", None}
    assert (active.stop(), standby.stop()) == (143, 143)
