"""The stream container as a process, against a real broker and a job coordinator's server."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import psutil
import pytest
from confluent_kafka import KafkaException, Producer
from counted_words import begun, has_a_sound_history, has_counted, words
from stream_containers import COUNTER, DEADLINE_S, P0, Job, Make, Running, living
from suites import long

from homeport.config.settings.sections import SystemConfig
from homeport.container.host.exit_codes import EXIT_OVERTAKEN
from homeport.container.host.lease_memory import SpareKind
from homeport.container.kafka.transactional_producer import fence
from homeport.container.progress import offset_file
from homeport.job_coordinator.http.messages import Started
from homeport.job_coordinator.metadata.epochs import EpochManager, FenceReport
from homeport.job_coordinator.metadata.task_assignment import LocalityManager
from homeport.job_coordinator.model.incarnation import Incarnation, transactional_id
from homeport.job_coordinator.model.outcomes import RestoreKind


def _restored(report: Started) -> dict[str, tuple[str, int]]:
    """{task: (kind, records)} of the store ``counts``."""
    return {t: (r.kind.value, r.records) for t, r in report.restored["counts"].items()}


def test_a_clean_restart_reads_nothing_and_goes_on(make: Make) -> None:
    """After SIGTERM the next incarnation restores no record and continues exactly."""
    job = make()
    first = begun(job, 1000)
    assert first.stop() == 143
    has_counted(job, 1000)
    directory = job.folder / "stores" / f"{job.config['job.name']}-1" / "counts" / "Partition_0"
    assert (directory / "OFFSET").is_file()
    assert (directory / "OFFSET-v2").is_file()

    job.produce(words(500, 1000))
    second = job.start(2, fence=[1])
    report = job.report(second, 2)
    assert _restored(report) == {"Partition 0": ("none", 0), "Partition 1": ("none", 0)}
    job.until(lambda: job.processed() == 1500, second)
    assert second.stop() == 143
    has_counted(job, 1500)


def _first_id(job: Job) -> str:
    return transactional_id(job.config["job.name"], "1", Incarnation(P0, 1))


def _waits(job: Job, name: str) -> Running:
    program = "homeport.container.incarnation.container_runner"
    spare = job.spare(name, [program, "--ready", "spark"])
    job.until(lambda: spare.memory.is_ready, spare)
    return spare


def test_a_spare_is_the_next_incarnation_and_nothing_before(make: Make) -> None:
    """Until its permit comes it has no file, no connection and no say; then it goes on exactly."""
    job = make()
    spare = _waits(job, "waiting")
    assert not (job.folder / "stores").exists()
    assert list((job.folder / "work-waiting").iterdir()) == []
    opened = [link.readlink() for link in Path(f"/proc/{spare.process.pid}/fd").iterdir()]
    assert not any(str(name).startswith("socket:") for name in opened)
    first = begun(job, 300)
    assert first.stop() == 143
    job.produce(words(200, 300))
    spare.permit(job.permit(2, [1]))
    assert _restored(job.report(spare, 2)) == {
        "Partition 0": ("none", 0),
        "Partition 1": ("none", 0),
    }
    job.until(lambda: job.processed() == 500, spare)
    assert spare.memory.spare is SpareKind.PLAIN
    assert spare.stop() == 143
    has_counted(job, 500)
    has_a_sound_history(job)


def test_a_spare_ends_when_it_is_ordered_or_left_alone(make: Make) -> None:
    """SIGTERM, or an end of its standard input: it goes at once, and leaves nothing."""
    job = make()
    assert _waits(job, "told").stop() == 143
    left = _waits(job, "left")
    left.permit("")
    assert left.process.wait(DEADLINE_S) == 143
    assert not (job.folder / "stores").exists()


def test_a_killed_container_reads_only_the_tail(make: Make) -> None:
    """After SIGKILL in the middle the result is exact, and only what followed OFFSET is read."""
    job = make(task_commit_ms="600000")
    first = job.start(1)
    job.produce(words(100))
    job.until(lambda: bool(job.history("commit")) and job.processed() == 100, first)
    before = len(job.history("transaction-committed"))
    total = 100
    while len(job.history("transaction-committed")) < before + 3:
        job.produce(words(5000, total))
        total += 5000
    assert first.stop(signal.SIGKILL) == -signal.SIGKILL
    offsets = {
        path.parent.name: int(offset_file.decode(path.read_bytes()))
        for path in (job.folder / "stores").glob("*/counts/*/OFFSET")
    }

    second = job.start(2, fence=[1])
    for partition, (task, how) in enumerate(job.report(second, 2).restored["counts"].items()):
        assert how.kind is RestoreKind.TAIL
        start, end = how.from_offset or 0, how.to_offset or 0
        assert start == offsets[task.replace(" ", "_")] + 1
        assert how.records == job.records_between("changelog", partition, start, end) > 0
    job.until(lambda: job.processed() == total, second)
    assert second.stop() == 143
    has_counted(job, total)
    has_a_sound_history(job)


def test_a_lost_directory_is_restored_in_full(make: Make) -> None:
    """With the state gone, all of the changelog is read, and the counts go on from there."""
    job = make()
    first = begun(job, 1000)
    first.stop()
    written = len(job.read(job.topic("changelog")))
    shutil.rmtree(job.folder / "stores")

    job.produce(words(100, 1000))
    second = job.start(2, fence=[1])
    restored = _restored(job.report(second, 2))
    assert {kind for kind, _ in restored.values()} == {"full"}
    assert sum(records for _, records in restored.values()) == written
    job.until(lambda: job.processed() == 1100, second)
    second.stop()
    has_counted(job, 1100)


def test_an_in_memory_store_is_read_in_full_at_each_start(make: Make) -> None:
    """R6: it goes on exactly, and of it no file is left."""
    job = make(stores_counts_factory="in-memory")
    first = begun(job, 1000)
    assert first.stop() == 143
    directory = job.folder / "stores" / f"{job.config['job.name']}-1" / "counts" / "Partition_0"
    assert [file.name for file in directory.iterdir() if not file.name.startswith(".")] == []

    job.produce(words(500, 1000))
    second = job.start(2, fence=[1])
    kinds = {task: kind for task, (kind, _) in _restored(job.report(second, 2)).items()}
    assert kinds == {"Partition 0": "full", "Partition 1": "full"}
    job.until(lambda: job.processed() == 1500, second)
    assert second.stop() == 143
    has_counted(job, 1500)


@pytest.mark.long
def test_a_damaged_offset_file_means_a_rebuild(make: Make) -> None:
    """A store whose OFFSET has a wrong checksum is read in full, and the history says why."""
    job = make()
    first = begun(job, 100)
    first.stop()
    offset = next((job.folder / "stores").glob("*/counts/Partition_0/OFFSET"))
    offset.write_bytes(offset.read_bytes()[:-1] + b"x")

    second = job.start(2, fence=[1])
    restored = _restored(job.report(second, 2))
    assert restored["Partition 0"][0] == "full"
    assert restored["Partition 1"] == ("none", 0)
    reasons = {line["task"]: line["reason"] for line in job.history("restore-started")[-2:]}
    assert reasons["Partition 0"] == "OFFSET is damaged: its checksum does not match its text"
    assert reasons["Partition 1"] is None


def test_a_recreated_changelog_means_a_rebuild(make: Make) -> None:
    """However long the new one is: the state is what it holds, and every report has the reason.

    After that the store is the new topic's, and nothing is read.
    """
    job = make()
    first = begun(job, 14)
    first.stop()
    held = [(i % 2, b"p%d-w%d" % (i % 2, i % 7)) for i in range(140)]
    job.make_anew("changelog", [(p, word, (100).to_bytes(8, "big")) for p, word in held])

    second = job.start(2, fence=[1])
    report = job.report(second, 2)
    for how in report.restored["counts"].values():
        assert (how.kind, how.records) == (RestoreKind.FULL, 70)
        assert (how.reason or "").startswith("the changelog was recreated: its topic id is ")
    stated = {line["reason"] for line in job.history("restore-started")[-2:]}
    assert stated == {how.reason for how in report.restored["counts"].values()}
    assert all(str(reason) in second.log.read_text(encoding="utf-8") for reason in stated)
    job.produce(words(14, 14))
    job.until(lambda: job.processed() == 28, second)
    assert second.stop() == 143
    right = {word.decode(): 101 for _, word in held}
    assert job.table("changelog") == {w: n.to_bytes(8, "big") for w, n in right.items()}
    assert job.table("out") == dict.fromkeys(right, b"101")

    third = job.start(3, fence=[2])
    restored = _restored(job.report(third, 3))
    assert restored == {"Partition 0": ("none", 0), "Partition 1": ("none", 0)}
    assert third.stop() == 143


def test_a_predecessor_with_an_open_transaction_is_fenced(make: Make) -> None:
    """What an unfinished predecessor sent is never seen, and it can commit nothing any more.

    Its successor reports it fenced.
    """
    job = make()
    old = Producer({"bootstrap.servers": job.servers, "transactional.id": _first_id(job)})
    old.init_transactions(DEADLINE_S)
    old.begin_transaction()
    for topic in ("out", "changelog"):
        old.produce(job.topic(topic), (99).to_bytes(8, "big"), b"stale", partition=0)
    old.flush(DEADLINE_S)
    job.produce(words(10))

    second = job.start(2, fence=[1])
    report = job.report(second, 1)
    assert _restored(report) == {"Partition 0": ("none", 0), "Partition 1": ("none", 0)}
    with pytest.raises(KafkaException) as refused:
        old.commit_transaction(DEADLINE_S)
    assert refused.value.args[0].fatal()
    job.until(lambda: job.processed() == 10, second)
    second.stop()
    has_counted(job, 10)
    stream = job.coordinator_stream()
    fenced = FenceReport(2, (Incarnation(P0, 1),))
    assert EpochManager(stream).read_fenced() == {P0: fenced}
    stream.close()


def test_a_fenced_container_ends_with_the_reason(make: Make) -> None:
    """A container that a newer incarnation has fenced fails at its next transaction."""
    job = make()
    first = job.start(1)
    job.report(first, 1)
    fence(SystemConfig.of(job.config, "kafka"), _first_id(job))
    job.produce(words(10))
    assert first.process.wait(DEADLINE_S) == 1
    assert first.last_line().startswith("error: fenced by a newer incarnation")
    assert job.read(job.topic("out")) == []


def test_an_overtaken_permit_is_not_used(make: Make) -> None:
    """Below the newest epoch in the stream: it ends at once, unfailed, and leaves no record."""
    job = make()
    permit = job.permit(1)
    job.permit(2, fence=[1])
    container = job.start(1, permit=permit)
    assert container.process.wait(DEADLINE_S) == EXIT_OVERTAKEN
    assert container.last_line() == "error: processor 0 epoch 1 was overtaken by epoch 2"
    stream = job.coordinator_stream()
    assert EpochManager(stream).read_fenced() == {}
    assert LocalityManager(stream).read_tasks() == {}
    stream.close()


def test_an_empty_topic_and_records_without_key_or_value(make: Make) -> None:
    """A start on empty topics works; null keys, tombstones and locality do too."""
    job = make()
    container = job.start(1)
    report = job.report(container, 1)
    assert _restored(report) == {"Partition 0": ("none", 0), "Partition 1": ("none", 0)}
    stream = job.coordinator_stream()
    assert LocalityManager(stream).read_tasks() == {"Partition 0": "nm1", "Partition 1": "nm1"}
    stream.close()
    job.produce([(0, None, b"v"), (0, b"k", None), (0, None, None)])
    job.until(lambda: job.processed() == 3, container)
    assert job.table("out") == {"<null>": b"2", "k": b"1"}
    assert container.stop() == 143


def test_a_failing_task_commits_nothing_of_its_transaction(make: Make) -> None:
    """An exception of user code ends the container with its cause; the batch leaves no trace."""
    job = make()
    job.produce([(0, b"good", b""), (0, b"poison", b"")])
    container = job.start(1)
    assert container.process.wait(DEADLINE_S) == 1
    assert container.last_line() == (
        "error: task 'Partition 0' failed in process_batch: ValueError: poison found"
    )
    assert "Traceback" in container.log.read_text(encoding="utf-8")
    assert job.read(job.topic("out")) == []
    assert job.read(job.topic("changelog")) == []


def test_an_output_topic_that_is_absent_is_named(make: Make) -> None:
    """The library only says that its records were not delivered in time."""
    job = make(COUNTER.replace('send("out"', 'send("absent"'))
    job.produce([(0, b"good", b"")])
    assert "no such topic in Kafka: 'absent'; create it" in job.fails()
    assert job.read(job.topic("changelog")) == []


SCANNER = """
import json
from homeport.container.api import BatchTask

class Counter(BatchTask):
    def init(self, context):
        self.store = context.store("counts")

    def process_batch(self, table, collector):
        for value in table.column("value").to_pylist():
            for word, number in json.loads(value).items():
                self.store.put(word, number)
            seen = {
                "all": list(self.store.all()),
                "range": list(self.store.range("b", "d")),
                "some": self.store.get_all(["a", "b", "zz"]),
            }
            collector.send("out", json.dumps(seen).encode(), b"k", headers={"h": b"1"})
"""


def test_reads_see_own_writes_over_committed_ones(make: Make) -> None:
    """range, all and get_all merge the open transaction with what is committed, in byte order."""
    job = make(SCANNER)
    container = job.start(1)
    job.produce([(0, None, json.dumps({"d": 4, "b": 2, "a": 1}).encode())])
    job.until(lambda: job.processed() == 1, container)
    job.produce([(0, None, json.dumps({"c": 3, "a": None, "d": 5}).encode())])
    job.until(lambda: job.processed() == 2, container)
    container.stop()
    seen = [json.loads(value or b"") for _, value in job.read(job.topic("out"))]
    assert seen == [
        {"all": [["a", 1], ["b", 2], ["d", 4]], "range": [["b", 2]], "some": {"a": 1, "b": 2}},
        {"all": [["b", 2], ["c", 3], ["d", 5]], "range": [["b", 2], ["c", 3]], "some": {"b": 2}},
    ]


PIPELINE = (
    COUNTER
    + """
def words(frame):
    from pyspark.sql import functions as f
    frame = frame.withColumn("key", f.encode(f.upper(f.decode("value", "utf-8")), "utf-8"))
    return frame.where("offset % 2 = 0").select("task", "key", "stream", "partition", "offset")

def lost(frame):
    return frame.groupBy("key").count()
"""
)


def test_a_pipeline_runs_in_spark_before_the_task(make: Make) -> None:
    """Rows come to the task as the pipeline made them; no JVM is left after the end."""
    job = make(PIPELINE, task_pipeline_class="user_job:words")
    job.produce([(p, None, b"word-%d" % (i % 3)) for i in range(60) for p in (0, 1)])
    container = job.start(1)
    job.until(lambda: job.processed() == 120, container)
    assert container.stop() == 143
    assert job.table("out") == dict.fromkeys(("WORD-0", "WORD-1", "WORD-2"), b"10")
    assert living(container.process.pid) == []
    assert list((job.folder / "work-1").iterdir()) == []


def _warm(job: Job, name: str, kind: str = "warm") -> tuple[Running, int]:
    """A spare whose Spark has begun, if only as its permit is near; the pid of that."""
    program = "homeport.container.incarnation.container_runner"
    spare = job.spare(name, [program, "--ready", kind])
    spare.memory.is_permit_near = True
    work = job.folder / f"work-{name}"
    job.until(lambda: bool(list(work.glob("spark-spare-*/gateway"))), spare)
    (jvm,) = psutil.Process(spare.process.pid).children()
    return spare, jvm.pid


@pytest.mark.parametrize("kind", ["warm", long("spark")])
def test_a_spare_with_a_spark_takes_it_along(make: Make, kind: str) -> None:
    """The JVM that ran before the permit came is the container's, and goes with it."""
    job = make(PIPELINE, task_pipeline_class="user_job:words")
    job.produce([(p, None, b"word-%d" % (i % 3)) for i in range(60) for p in (0, 1)])
    spare, jvm = _warm(job, "warm", kind)
    job.until(lambda: spare.memory.is_ready, spare)
    assert not (job.folder / "stores").exists()
    spare.permit(job.permit(1))
    job.until(lambda: job.processed() == 120, spare)
    assert f"Spark stands, pid {jvm};" in spare.log.read_text(encoding="utf-8")
    assert job.table("out") == dict.fromkeys(("WORD-0", "WORD-1", "WORD-2"), b"10")
    assert spare.stop() == 143
    assert living(spare.process.pid) == []


@pytest.mark.long
def test_an_unneeded_spark_session_ends(make: Make) -> None:
    """With a spare that is ordered to end, and where it has died before the permit came."""
    job = make(PIPELINE, task_pipeline_class="user_job:words")
    stated, _ = _warm(job, "told")
    assert stated.stop() == 143
    assert living(stated.process.pid) == []
    job.produce([(0, None, b"word"), (1, None, b"word")])
    spare, jvm = _warm(job, "bereft")
    job.until(lambda: spare.memory.is_ready, spare)
    os.kill(jvm, signal.SIGKILL)
    job.until(lambda: not spare.memory.is_ready, spare)
    spare.permit(job.permit(1))
    job.until(lambda: job.processed() == 2, spare)
    log = spare.log.read_text(encoding="utf-8")
    assert "the Spark that was made ready is of no use" in log
    assert f"Spark stands, pid {jvm};" not in log
    assert spare.stop() == 143
    assert living(spare.process.pid) == []


@pytest.mark.long
def test_a_pipeline_that_loses_the_task_is_refused_before_any_input(make: Make) -> None:
    """The error names the key, and says what to keep."""
    assert make(PIPELINE, task_pipeline_class="user_job:lost").fails() == (
        "error: task.pipeline.class = 'user_job:lost': the pipeline must keep the column 'task', "
        "its rows have key, count; select 'task' too: it says whose rows they are"
    )
