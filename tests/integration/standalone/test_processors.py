"""Processors as processes, with ZooKeeper and a broker: one dies, and the result is exact."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from standalone_jobs import PARTITIONS, StandaloneJob, on_zookeeper, standalone_job
from stream_containers import until_led
from zookeeper_server import ZooKeeperServer


@pytest.fixture
def job(
    kafka: str, tmp_path: Path, zookeeper: ZooKeeperServer, request: pytest.FixtureRequest
) -> Iterator[StandaloneJob]:
    """Return a job whose sessions last 3 s, or another time that a test sets."""
    more = on_zookeeper(zookeeper.connect, getattr(request, "param", 3_000))
    with standalone_job(kafka, tmp_path, more) as made:
        yield made


@pytest.fixture
def local_job(kafka: str, tmp_path: Path) -> Iterator[StandaloneJob]:
    """A job that needs no ZooKeeper."""
    with standalone_job(kafka, tmp_path, {}) as made:
        yield made


def test_a_processor_takes_over_the_tasks_of_one_that_was_killed(job: StandaloneJob) -> None:
    """SIGKILL of the process, whose container goes with it; every record counts once."""
    job.produce(20)
    one, two = job.processor("one"), job.processor("two")
    job.until(lambda: job.started_by("one") > 0 and job.started_by("two") > 0)
    job.until_counted()
    before = job.started_by("two")
    one.kill()
    job.produce(20)
    job.until(lambda: job.started_by("two") > before)
    job.until_counted()
    # The stores of both lie at one location, so that nothing is read that was committed before.
    restored = [line for line in job.history("restore-finished") if line["processor_id"] == "two"]
    assert restored[-1]["records"] == 0 or restored[-1]["kind"] != "full"
    job.stop(two)
    assert job.counted() == job.sent


@pytest.mark.parametrize("job", [20_000], indirect=True)
def test_a_new_process_takes_over_from_the_one_of_its_id(job: StandaloneJob) -> None:
    """It is ready when the other one leaves; no task goes to another processor meanwhile.

    It waits for the other one as long as two sessions last, and the imports of its child must have
    come to their end by then.
    """
    job.produce(20)
    old, other = job.processor("one"), job.processor("two")
    job.until(lambda: job.started_by("one") > 0 and job.started_by("two") > 0)
    before = job.started_by("one"), job.started_by("two")
    found = job.logs().count("waits for its first version")
    new = job.processor("one")
    job.until(lambda: job.logs().count("waits for its first version") > found)
    job.produce(20)
    job.stop(old)
    job.until(lambda: job.started_by("one") > before[0])
    job.until_counted()
    assert job.started_by("two") == before[1]
    assert new.poll() is None
    assert other.poll() is None
    assert "All members of version" in job.logs()


@pytest.mark.long
def test_a_whole_job_runs_in_one_process_without_zookeeper(local_job: StandaloneJob) -> None:
    """Killed and started again it goes on where it was, as a new generation that fences the old."""
    local_job.produce(10)
    first = local_job.run("run-local", "local")
    local_job.until_counted()
    first.kill()
    first.wait(60)
    local_job.produce(10)
    again = local_job.run("run-local", "local")
    local_job.until_counted()
    fenced = [line["fenced"] for line in local_job.history("fenced")]
    assert fenced == [[], [{"processor_id": "0", "epoch": 1}]]
    local_job.stop(again)
    assert local_job.counted() == local_job.sent


def test_a_local_job_goes_on_though_its_folder_is_lost(local_job: StandaloneJob) -> None:
    """By an option, elsewhere; what wakes up of the lost one has nothing accepted."""
    local_job.produce(10)
    lost = local_job.run("run-local", "lost")
    local_job.until_counted()
    (begun,) = local_job.history("started")
    stopped = (lost.pid, int(str(begun["pid"])))
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    local_job.produce(10)
    elsewhere = f"--work-dir={local_job.folder / 'elsewhere'}"
    refused = local_job.run("run-local", "refused", elsewhere, location="there")
    assert refused.wait(120) == 1
    line = (local_job.folder / "refused.log").read_text("utf-8").splitlines()[-1]
    assert "under another tree of local" in line
    assert "where it is lost, and no process of the job runs, give --adopt" in line
    adopted = local_job.run("run-local", "adopted", elsewhere, "--adopt", location="there")
    local_job.until_counted()
    fenced = [line["fenced"] for line in local_job.history("fenced")]
    assert fenced == [[], [{"processor_id": "0", "epoch": 1}]]
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    assert lost.wait(120) == 1
    local_job.produce(10)
    local_job.until_counted()
    local_job.stop(adopted)
    # It is the job's folder now, and the option has nothing left to do.
    again = local_job.run("run-local", "again", elsewhere, "--adopt", location="there")
    local_job.produce(10)
    local_job.until_counted()
    assert "--adopt has no effect" in (local_job.folder / "again.log").read_text("utf-8")
    # One that waits for input is ended too: else two processes would say that they run.
    third = f"--work-dir={local_job.folder / 'third'}"
    taken = local_job.run("run-local", "taken", third, "--adopt", location="third")
    assert again.wait(120) == 1
    ended = (local_job.folder / "again.log").read_text("utf-8").splitlines()[-1]
    assert ended.endswith("the job goes on in another folder: run-local --adopt began there")
    local_job.produce(10)
    local_job.until_counted()
    local_job.stop(taken)


@pytest.mark.long
def test_processors_join_leave_and_die_and_each_record_counts_once(job: StandaloneJob) -> None:
    """A third one joins, one is killed and comes back, one leaves in order."""
    job.produce(20)
    one, two = job.processor("one"), job.processor("two")
    job.until(lambda: job.started_by("one") > 0 and job.started_by("two") > 0)
    three = job.processor("three")
    job.produce(20)
    job.until(lambda: job.started_by("three") > 0)
    job.until_counted()
    two.kill()
    job.produce(20)
    job.until_counted()
    before = job.started_by("two")
    job.processor("two")
    job.until(lambda: job.started_by("two") > before)
    job.stop(one)
    job.produce(20)
    job.until_counted()
    job.stop(three)
    job.produce(20)
    job.until_counted()


@pytest.mark.long
def test_a_processor_that_wakes_up_after_its_session_has_nothing_accepted(
    job: StandaloneJob,
) -> None:
    """It stood still with its container, others took over; then it registers again."""
    job.produce(20)
    one = job.processor("one", "elsewhere")
    job.until(lambda: job.started_by("one") > 0)
    two = job.processor("two")
    job.until(lambda: job.started_by("two") > 0 and job.started_by("one") > 1)
    job.until_counted()
    incarnations = job.history("started")
    child = int(str([i["pid"] for i in incarnations if i["processor_id"] == "one"][-1]))
    before = job.started_by("two"), job.started_by("one")
    for pid in (one.pid, child):
        os.kill(pid, signal.SIGSTOP)
    job.produce(20)
    job.until(lambda: job.started_by("two") > before[0])
    job.until_counted()
    for pid in (child, one.pid):
        os.kill(pid, signal.SIGCONT)
    job.produce(20)
    job.until(lambda: job.started_by("one") > before[1])
    job.until_counted()
    assert two.poll() is None


@pytest.mark.long
def test_a_zookeeper_that_is_away_for_long_ends_all_work_and_then_it_goes_on(
    job: StandaloneJob, zookeeper: ZooKeeperServer
) -> None:
    """No processor ends; each registers again, as a new generation."""
    job.produce(20)
    processors = [job.processor(name) for name in ("one", "two")]
    job.until(lambda: job.started_by("one") > 0 and job.started_by("two") > 0)
    job.until_counted()
    before = job.started_by("one"), job.started_by("two")
    zookeeper.kill()
    try:
        job.until(lambda: job.logs().count("the work ended (lease-lost)") == len(processors))
        job.produce(20)
    finally:
        zookeeper.start()
    job.until(lambda: job.started_by("one") > before[0] and job.started_by("two") > before[1])
    job.until_counted()
    assert all(process.poll() is None for process in processors)


@pytest.mark.long
def test_a_failing_task_ends_its_processor_with_one_line(job: StandaloneJob) -> None:
    """The line is the container's; what is wrong with the record is wrong for the next one too."""
    one = job.processor("one")
    job.until(lambda: job.started_by("one") > 0)
    producer = Producer({"bootstrap.servers": job.servers})
    producer.produce(f"{job.name}-in", b"x", b"poison", partition=0)
    assert producer.flush(60) == 0
    assert one.wait(120) == 1
    last = (job.folder / "one.log").read_text(encoding="utf-8").splitlines()[-1]
    assert last.startswith("error: ")
    assert "poison found" in last


@pytest.mark.long
def test_a_job_that_ran_under_another_tree_is_refused(job: StandaloneJob) -> None:
    """Generations would recur: the line says what to do."""
    job.produce(1)
    one = job.processor("one")
    job.until_counted()
    job.stop(one)
    for arguments, word in (
        (("run-local", "other", "--config=job.coordinator.zk.connect="), "zookeeper"),
        (
            ("run-processor", "again", "--config=job.coordinator.zk.root=/elsewhere"),
            "another tree of zookeeper",
        ),
    ):
        refused = job.run(*arguments)
        assert refused.wait(120) == 1
        last = (job.folder / f"{arguments[1]}.log").read_text("utf-8").splitlines()[-1]
        assert last.startswith("error: job.id = '1': a job of this name and id has run under")
        assert word in last


def test_an_input_that_grows_is_read_while_the_job_runs(local_job: StandaloneJob) -> None:
    """The leader notices it, and the next version reads the new partitions by the same tasks."""
    local_job.produce(1)
    grows = "--config=job.coordinator.monitor-partition-change.frequency.ms=200"
    process = local_job.run("run-local", "local", grows)
    local_job.until_counted()
    admin = AdminClient({"bootstrap.servers": local_job.servers})
    topic = f"{local_job.name}-in"
    (grown,) = admin.create_partitions([NewPartitions(topic, 2 * PARTITIONS)]).values()
    grown.result(60)
    until_led(admin, TopicPartition(topic, PARTITIONS + 1))
    producer = Producer({"bootstrap.servers": local_job.servers})
    producer.produce(topic, b"x", b"new", partition=PARTITIONS + 1)
    assert producer.flush(60) == 0
    local_job.sent["new"] = 1
    local_job.until_counted()
    local_job.stop(process)


def test_a_new_topic_that_matches_is_read_by_all_processors(job: StandaloneJob) -> None:
    """Also under a leader that was started before it came; one that does not fit is a line."""
    own = {
        "job.config.rewriters": "more",
        "job.config.rewriter.more.class": "regex-topics",
        "job.config.rewriter.more.system": "kafka",
        "job.config.rewriter.more.regex": f"{job.name}-re-.*",
        "job.coordinator.monitor-input-regex.frequency.ms": "300",
    }
    with job.config.open("a", encoding="utf-8") as file:
        file.write("".join(f"{key}={value}\n" for key, value in own.items()))
    one = job.processor("one")
    job.produce(5)
    job.until_counted()
    two = job.processor("two")
    job.until(lambda: job.started_by("two") > 0)
    admin = AdminClient({"bootstrap.servers": job.servers})
    topics = [
        NewTopic(f"{job.name}-re-odd", PARTITIONS + 1),
        NewTopic(f"{job.name}-re-some", PARTITIONS),
    ]
    for made in admin.create_topics(topics).values():
        made.result(60)
    for partition in range(PARTITIONS):
        until_led(admin, TopicPartition(topics[1].topic, partition))
    job.produce(5, "re-some")
    job.until_counted()
    refused = f"kafka.{topics[0].topic} matches job.config.rewriter.more.regex, and becomes no"
    assert refused in job.logs()
    job.until(lambda: refused in job.tool("status").stdout)
    admin.delete_topics([topics[0].topic])[topics[0].topic].result(60)
    job.until(lambda: refused not in job.tool("status").stdout)
    one.send_signal(signal.SIGKILL)
    job.produce(5, "re-some")
    job.produce(5)
    job.until_counted()
    job.stop(two)
