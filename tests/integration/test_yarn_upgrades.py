"""A job on a real YARN cluster gets new code container by container, under load, by its command.

Each record of the input leads to one of the output, which names the version that wrote it: one that
was lost, or processed twice, or by two versions, would show.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from adjunct_planes import logs_of
from am_attempts import jvm_of, page_of
from confluent_kafka.admin import AdminClient, NewTopic
from failover_scenarios import Feed
from standby_jobs import are_apart, pauses, standby_job
from topic_records import committed
from yarn_jobs import KEYS, PARTITIONS, TASK, Job, wait_for

_WATCH_MS = 1_000
_WATCH_BAD_MS = 5_000
"""Far longer than a container takes for its first transactions."""
_TRANSACTIONS = 2
_VERSIONED = """
from threading import Event

from probe_task import Count

VERSION, LAST, HANGS = "{version}", {last}, {hangs}

class Versioned(Count):
    def init(self, context):
        super().init(context)
        self.out = context.config["job.name"] + "-out"
        self.ended = 0
        if context.config.get("my.mode") == "fails":
            raise ValueError("a bug of this value")

    def process_batch(self, table, collector):
        super().process_batch(table, collector)
        rows = zip(*(table.column(n).to_pylist() for n in ("partition", "offset", "key")))
        for partition, offset, key in rows:
            collector.send(self.out, f"{{VERSION}} {{partition}} {{offset}}".encode(), key)
        if LAST is not None and self.ended >= LAST:
            if HANGS:
                Event().wait()
            raise ValueError("a bug of this version")

    def end_transaction(self, collector):
        self.ended += 1
"""


def package(
    job: Job, folder: Path, version: str, last: int | None = None, *, hangs: bool = False
) -> Path:
    """A package of that version.

    Its tasks fail after ``last`` transactions, or hang where it ``hangs``; None: neither.
    """
    made = folder / version
    shutil.copytree(job.package, made, dirs_exist_ok=True)
    (made / "versioned.py").write_text(_VERSIONED.format(version=version, last=last, hangs=hangs))
    return made


def upgrading_job(
    make_job: Callable[[str], Job], folder: Path, name: str, containers: int = 2
) -> Job:
    """So many containers with standbys run version one."""
    return runs_one(standby_job(make_job, name, containers=containers), folder)


def runs_one(job: Job, folder: Path) -> Job:
    """The job runs version one."""
    job.values |= {
        "task.class": "versioned:Versioned",
        "yarn.package.path": str(package(job, folder, "one")),
    }
    topic = f"{job.name}-out"
    admin = AdminClient({"bootstrap.servers": job.servers})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
    job.produce(KEYS)
    job.run()
    job.wait_until_running()
    return job


def upgrade(job: Job, *words: str) -> subprocess.CompletedProcess[str]:
    """``homeport upgrade`` about this job."""
    return job.operator("upgrade", *words, limit_s=240)


def forward(job: Job, new: Path, watch_ms: int = _WATCH_MS) -> subprocess.CompletedProcess[str]:
    """The job is to have that package."""
    return upgrade(job, f"--package={new}", f"--watch-ms={watch_ms}")


def written(job: Job) -> dict[tuple[int, int], list[str]]:
    """{(partition, offset) of the input: the versions that wrote output of it}."""
    found: dict[tuple[int, int], list[str]] = {}
    for record in committed(job.servers, f"{job.name}-out", PARTITIONS):
        version, partition, offset = (record.value() or b"").decode().split()
        found.setdefault((int(partition), int(offset)), []).append(version)
    return found


def is_exact(job: Job, feed: Feed) -> Counter[str]:
    """All is counted exactly, each record by one version; {version: how many it wrote}."""
    fed = feed.stop()
    job.produced.update(f"key {number % KEYS}" for number in range(fed))
    job.counts_all()
    outputs = written(job)
    assert len(outputs) == job.produced.total()
    assert {len(versions) for versions in outputs.values()} == {1}
    return Counter(versions[0] for versions in outputs.values())


def packages_of(job: Job) -> dict[str, str | None]:
    """{processor: the package that it runs}, by the status."""
    return {processor: c["package"] for processor, c in job.containers().items()}


@pytest.mark.long
@pytest.mark.parametrize("containers", [1, 2])
def test_new_code_comes_container_by_container_and_a_bad_one_goes_back(
    make_job: Callable[[str], Job], tmp_path: Path, announce: Callable[[str], None], containers: int
) -> None:
    """Version two is everywhere in the end; of three and four a few records, and two again.

    Three fails, and four hangs, which no time-out of the container has found by then.
    """
    job = upgrading_job(make_job, tmp_path, f"upgraded-{containers}", containers)
    refused = forward(job, job.package)
    assert refused.returncode == 1
    assert "versioned" in refused.stderr
    same = forward(job, Path(job.values["yarn.package.path"]))
    assert same.returncode == 1
    assert "the job runs this package" in same.stderr
    assert job.get("v1/status")["upgrade"] is None
    feed = Feed(job)
    feed.go_on()
    try:
        done = forward(job, package(job, tmp_path, "two"))
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.splitlines()[-1].startswith("done: all run package ")
        two = set(packages_of(job).values())
        assert len(two) == 1
        assert None not in two
        three = package(job, tmp_path, "three", last=_TRANSACTIONS)
        bad = forward(job, three, _WATCH_BAD_MS)
        assert bad.returncode == 1
        assert "0 failed with the new package" in bad.stderr
        assert "a bug of this version" in bad.stderr
        job.wait_until_running()
        assert set(packages_of(job).values()) == two
        hangs = package(job, tmp_path, "four", last=_TRANSACTIONS, hangs=True)
        hung = forward(job, hangs, _WATCH_BAD_MS)
        assert hung.returncode == 1
        assert "0 has committed nothing, and not found its input empty, for" in hung.stderr
        assert set(packages_of(job).values()) == two
    finally:
        versions = is_exact(job, feed)
    assert set(versions) == {"one", "two", "three", "four"}
    are_apart(job.containers())
    assert {p: c["failures"] for p, c in job.containers().items() if c["failures"]} == {"0": 1}
    job.judge_history()
    announce(f"records by version: {dict(versions)}")
    for processor in map(str, range(containers)):
        announce(f"pauses of processor {processor}, s: {pauses(job, processor)}")
    assert job.kill() == f"stopped {job.application_id} in order"
    other = job.call("run")
    assert other.returncode == 1
    assert "yarn.package.path = " in other.stderr
    assert f"in {job.application_id}, has left the job with {str(two.pop())[:12]}" in other.stderr


def rolling(job: Job) -> dict[str, Any]:
    """The last rolling restart, by the status."""
    found: dict[str, Any] = job.get("v1/status")["rolling_restart"] or {}
    return found


def test_a_changed_key_comes_container_by_container_and_a_bad_value_goes_back(
    make_job: Callable[[str], Job], tmp_path: Path, announce: Callable[[str], None]
) -> None:
    """The standby restarts first; the value that fails is taken out of the stream again."""
    job = upgrading_job(make_job, tmp_path, "rolling", 1)
    feed = Feed(job)
    feed.go_on()
    try:
        done = job.operator("config", "set", "my.mode", "works")
        assert done.returncode == 0, done.stderr
        assert "restart, one after the other, standbys first, each watched for 1 s" in done.stdout
        wait_for(lambda: rolling(job).get("phase") == "done", job)
        assert rolling(job)["given"] == ["0-0", "0"]
        good = rolling(job)["id"]
        bad = job.operator("config", "set", "my.mode", "fails")
        assert bad.returncode == 0, bad.stderr
        wait_for(lambda: rolling(job)["id"] != good, job)
        wait_for(lambda: rolling(job)["phase"] == "gone-back", job)
        assert "failed with the new configuration" in rolling(job)["reason"]
        assert job.written("my.mode") == "works"
        job.wait_until_running()
    finally:
        is_exact(job, feed)
    assert {p: c["failures"] for p, c in job.containers().items() if c["failures"]} == {}
    job.judge_history()
    announce(f"pauses of processor 0, s: {pauses(job, '0')}")
    job.kill()


def upgrading(
    job: Job, new: Path, watch_ms: int = _WATCH_MS
) -> AbstractContextManager[subprocess.Popen[str]]:
    """The command, while it waits for the end of the upgrade."""
    return job.operating("upgrade", f"--package={new}", f"--watch-ms={watch_ms}")


def said(job: Job) -> str:
    """The phase of the upgrade, and for what it waits."""
    upgrade_ = job.get("v1/status")["upgrade"] or {}
    return f"{upgrade_.get('phase')}: {upgrade_.get('waits')}"


@pytest.mark.long
@pytest.mark.parametrize(
    ("step", "last", "code"),
    [
        ("prepares the package", None, 0),
        ("is under way", None, 0),
        ("is watched", None, 0),
        ("back: ", _TRANSACTIONS, 1),
    ],
)
def test_a_driver_that_dies_in_an_upgrade_has_a_successor_that_ends_it(
    make_job: Callable[[str], Job], tmp_path: Path, step: str, last: int | None, code: int
) -> None:
    """Wherever it was: the command ends as it would have, and each record has one version."""
    job = upgrading_job(make_job, tmp_path, f"dies-{step.rsplit(maxsplit=1)[-1].strip(':')}")
    feed = Feed(job)
    feed.go_on()
    try:
        watch_ms = _WATCH_MS if last is None else _WATCH_BAD_MS
        with upgrading(job, package(job, tmp_path, "two", last), watch_ms) as tool:
            wait_for(lambda: step in said(job), job, every_s=0.02)
            job.kill_driver()
            out, err = tool.communicate(timeout=180)
        assert tool.returncode == code, out + err
        job.wait_until_running()
        assert len(set(packages_of(job).values())) == 1
        assert (None in packages_of(job).values()) is (code == 1)
    finally:
        is_exact(job, feed)
    job.judge_history()
    job.kill()


@pytest.mark.long
def test_the_next_attempt_of_the_am_goes_on_with_the_upgrade(
    make_job: Callable[[str], Job], tmp_path: Path
) -> None:
    """Its containers are new, and each has the package that the record names; then back again."""
    job = upgrading_job(make_job, tmp_path, "attempts")
    feed = Feed(job)
    feed.go_on()
    try:
        with upgrading(job, package(job, tmp_path, "two")) as tool:
            wait_for(lambda: len(given(job)) == 2, job, every_s=0.02)
            attempt = job.attempt
            os.kill(jvm_of(job), signal.SIGKILL)
            job.url = page_of(job)
            wait_for(lambda: job.attempt > attempt, job)
            out, err = tool.communicate(timeout=240)
        assert tool.returncode == 0, out + err
        assert None not in packages_of(job).values()
        undone = upgrade(job, "--undo")
        assert undone.returncode == 0, undone.stderr
        assert undone.stdout.splitlines()[-1].startswith("gone back to package that of the")
        job.wait_until_running()
        assert set(packages_of(job).values()) == {None}
    finally:
        versions = is_exact(job, feed)
    assert set(versions) == {"one", "two"}
    job.judge_history()
    job.kill()


def given(job: Job) -> list[str]:
    """The processors that the upgrade has given its package."""
    found: list[str] = (job.get("v1/status")["upgrade"] or {}).get("given", [])
    return found


_FAULT = """
import os

def with_keys(batch):
    if "CONTAINER_ID" in os.environ:
        raise ValueError("a fault of this host")
    return batch.where("key IS NOT NULL")
"""


def piped_job(make_job: Callable[[str], Job], folder: Path, name: str, memory_mb: str) -> Job:
    """One container of that memory, with a pipeline and no spare that is always warm, runs one."""
    job = make_job(name)
    job.values |= {
        "job.container.count": "1",
        "task.commit.ms": "500",
        "task.pipeline.class": "probe_task:with_keys",
        "cluster-manager.container.memory.mb": memory_mb,
    }
    return runs_one(job, folder)


@pytest.mark.parametrize(("memory_mb", "has_room"), [("1536", True), ("1024", False)])
def test_a_spark_starts_before_the_restart_where_the_memory_has_room(
    make_job: Callable[[str], Job],
    tmp_path: Path,
    announce: Callable[[str], None],
    memory_mb: str,
    has_room: bool,  # noqa: FBT001 - pytest's parameter
) -> None:
    """The container works meanwhile, and its successor finds that Spark; else the log has why."""
    job = piped_job(make_job, tmp_path, f"piped-{memory_mb}", memory_mb)
    feed = Feed(job)
    feed.go_on()
    try:
        done = forward(job, package(job, tmp_path, "two"))
        assert done.returncode == 0, done.stdout + done.stderr
    finally:
        versions = is_exact(job, feed)
    assert set(versions) == {"one", "two"}
    (said,) = logs_of(job, ["container.log"])
    (successor,) = (line for line in said.splitlines() if "processor 0 epoch 2 runs" in line)
    assert "which has waited" in successor
    assert ("Spark starts with the restart" in said) is not has_room
    job.judge_history()
    announce(f"pause of processor 0, s: {pauses(job, '0')}")
    job.kill()


def test_a_pipeline_that_fails_beside_the_container_stops_nothing(
    make_job: Callable[[str], Job], tmp_path: Path
) -> None:
    """The upgrade waits, with the reason, until it is taken back; the container works on."""
    job = piped_job(make_job, tmp_path, "fails-beside", "1536")
    two = package(job, tmp_path, "two")
    (two / "probe_task.py").write_text(TASK + _FAULT)
    pid = job.containers()["0"]["pid"]
    feed = Feed(job)
    feed.go_on()
    try:
        with upgrading(job, two) as tool:
            wait_for(lambda: "a fault of this host" in said(job), job)
            undone = upgrade(job, "--undo")
            assert undone.returncode == 0, undone.stderr
            tool.communicate(timeout=180)
        assert tool.returncode == 1
    finally:
        versions = is_exact(job, feed)
    assert set(versions) == {"one"}
    assert job.containers()["0"]["pid"] == pid
    job.judge_history()
    job.kill()
