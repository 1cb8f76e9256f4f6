"""A job on a real YARN cluster gets new code container by container, under load, by its command.

Each record of the input leads to one of the output, which names the version that wrote it: one that
was lost, or processed twice, or by two versions, would show.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic
from failover_scenarios import Feed
from standby_jobs import are_apart, standby_job
from topic_records import committed
from yarn_jobs import KEYS, PARTITIONS, Job

_WATCH_MS = 1_000
_VERSIONED = """
from probe_task import Count

VERSION, LAST = "{version}", {last}

class Versioned(Count):
    def init(self, context):
        super().init(context)
        self.out = context.config["job.name"] + "-out"
        self.left = LAST

    def process_batch(self, table, collector):
        super().process_batch(table, collector)
        rows = zip(*(table.column(n).to_pylist() for n in ("partition", "offset", "key")))
        for partition, offset, key in rows:
            collector.send(self.out, f"{{VERSION}} {{partition}} {{offset}}".encode(), key)
        if self.left is not None:
            self.left -= len(table)
            if self.left < 0:
                raise ValueError("a bug of this version")
"""


def package(job: Job, folder: Path, version: str, last: int | None = None) -> Path:
    """A package of that version, whose task fails after ``last`` records; None: it does not."""
    made = folder / version
    shutil.copytree(job.package, made, dirs_exist_ok=True)
    (made / "versioned.py").write_text(_VERSIONED.format(version=version, last=last))
    return made


def upgrading_job(make_job: Callable[[str], Job], folder: Path, name: str) -> Job:
    """Two containers with standbys run version one, under load."""
    job = standby_job(make_job, name)
    job.values |= {
        "task.class": "versioned:Versioned",
        "yarn.package.path": str(package(job, folder, "one")),
    }
    topic = f"{name}-out"
    admin = AdminClient({"bootstrap.servers": job.servers})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
    job.produce(KEYS)
    job.run()
    job.wait_until_running()
    return job


def upgrade(job: Job, *words: str) -> subprocess.CompletedProcess[str]:
    """``homeport upgrade`` about this job."""
    module = "homeport.job_coordinator.cli.homeport"
    return subprocess.run(
        [sys.executable, "-m", module, "upgrade", *words, f"--config-path={job.path}"],
        env=job.environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def forward(job: Job, new: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The job is to have that package."""
    return upgrade(job, f"--package={new}", f"--watch-ms={_WATCH_MS}", *words)


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


def pauses(job: Job, processor: str) -> list[float]:
    """Seconds from the last transaction of each incarnation to the first one of the next."""
    committed_ = [e for e in job.history("transaction-committed") if e["processor_id"] == processor]
    spans: dict[int, list[int]] = {}
    for event in committed_:
        spans.setdefault(event["epoch"], []).append(int(event["boot_ms"]))
    epochs = sorted(spans)
    return [(min(spans[after]) - max(spans[before])) / 1000 for before, after in pairwise(epochs)]


def packages_of(job: Job) -> dict[str, str | None]:
    """{processor: the package that it runs}, by the status."""
    return {processor: c["package"] for processor, c in job.containers().items()}


def test_new_code_comes_container_by_container_and_a_bad_one_goes_back(
    make_job: Callable[[str], Job], tmp_path: Path, announce: Callable[[str], None]
) -> None:
    """Version two is everywhere in the end; of version three a few records, and two again."""
    job = upgrading_job(make_job, tmp_path, "upgraded")
    feed = Feed(job)
    feed.go_on()
    try:
        done = forward(job, package(job, tmp_path, "two"))
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.splitlines()[-1].startswith("done: all run package ")
        two = set(packages_of(job).values())
        assert len(two) == 1
        assert None not in two
        bad = forward(job, package(job, tmp_path, "three", last=100))
        assert bad.returncode == 1
        assert "0 failed with the new package" in bad.stderr
        assert "a bug of this version" in bad.stderr
        job.wait_until_running()
        assert set(packages_of(job).values()) == two
    finally:
        versions = is_exact(job, feed)
    assert set(versions) == {"one", "two", "three"}
    are_apart(job.containers())
    assert {p: c["failures"] for p, c in job.containers().items() if c["failures"]} == {"0": 1}
    job.judge_history()
    announce(f"records by version: {dict(versions)}")
    for processor in ("0", "1"):
        announce(f"pauses of processor {processor}, s: {pauses(job, processor)}")
    assert job.kill() == f"stopped {job.application_id} in order"
