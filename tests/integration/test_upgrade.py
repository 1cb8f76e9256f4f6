"""The next deployment of a job that has state: new code, hot standby switched on, and off again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from failover_scenarios import MANAGER, samples
from standby_jobs import (
    Containers,
    are_apart,
    becomes_calm,
    hosts_of,
    hot_standby,
    kinds,
    records_read,
    standby_job,
)
from topic_records import topic_records
from yarn_jobs import TASK, Job

from homeport.job_coordinator.model.outcomes import RestoreKind

NEW_CODE = (
    TASK
    + """
class Count(Count):
    def process_batch(self, table, collector):
        super().process_batch(table, collector)
        collector.send(context_name, b"new code", b"key")
"""
)
NONE = {RestoreKind.NONE.value}

pytestmark = pytest.mark.long


def comes_home(job: Job, homes: dict[str, str]) -> Containers:
    """The job runs; those that have a home are there, and have read nothing."""
    containers = job.wait_until_running()
    job.settled()
    for processor, host in homes.items():
        assert containers[processor]["host"] == host
        assert kinds(containers[processor]) == NONE
        assert records_read(containers[processor]) == 0
    return containers


def stops(job: Job) -> dict[str, str]:
    """The job has ended in order; where its containers were."""
    homes = hosts_of(job.containers())
    assert job.kill() == f"stopped {job.application_id} in order"
    return homes


def test_an_upgrade_comes_home_and_runs_the_new_code(
    make_job: Callable[[str], Job], tmp_path: Path
) -> None:
    """HA-YARN, case 1: another ``yarn.package.path``; while the old one runs it is refused."""
    job = standby_job(make_job, "upgraded")
    out = f"{job.name}-out"
    admin = AdminClient({"bootstrap.servers": job.servers})
    admin.create_topics([NewTopic(out, 1, 1)])[out].result(30)
    job.produce(600)
    job.run()
    job.wait_until_running()
    pids = job.settled()
    becomes_calm(job, tmp_path)

    folder = tmp_path / "next"
    folder.mkdir()
    (folder / "probe_task.py").write_text(NEW_CODE.replace("context_name", repr(out)))
    package = shutil.make_archive(str(tmp_path / "package-2"), "zip", folder)
    old, job.values["yarn.package.path"] = job.values["yarn.package.path"], package
    refused = job.call("run")
    assert refused.returncode == 1
    (line,) = refused.stderr.splitlines()
    assert line.startswith("error: job.name = 'upgraded'")
    assert job.application_id in line
    assert job.get("config")["yarn.package.path"] == old
    assert job.pids() == pids

    homes = stops(job)
    job.run()
    assert set(comes_home(job, homes)) == {"0", "0-0", "1", "1-0"}
    assert topic_records(job.servers, out) == []
    job.produce(400, first=600)
    becomes_calm(job, tmp_path)
    assert set(topic_records(job.servers, out)) == {(b"key", b"new code")}
    stops(job)
    job.judge_history()


def test_standby_is_adopted_at_the_next_deployment_and_given_up_again(
    make_job: Callable[[str], Job], tmp_path: Path
) -> None:
    """Actives have their homes, standbys none on the first deployment; ``clean`` finds the rest."""
    job = make_job("adopting")
    job.values |= {"job.container.count": "2", "task.commit.ms": "500"}
    job.produce(600)
    job.run()
    job.wait_until_running()
    job.counts_all()
    homes = stops(job)

    plain = dict(job.values)
    job.values = plain | hot_standby()
    job.run()
    containers = comes_home(job, homes)
    assert set(containers) == {"0", "0-0", "1", "1-0"}
    are_apart(containers)
    numbers = samples(job)
    assert numbers[f"{MANAGER}_preferred_host_requests_total"] == 2
    assert numbers[f"{MANAGER}_any_host_requests_total"] >= 2
    for standby in ("0-0", "1-0"):
        assert kinds(containers[standby]) == {RestoreKind.FULL.value}
    job.produce(200, first=600)
    becomes_calm(job, tmp_path)
    assert stops(job).items() > homes.items()

    job.values = plain
    job.run()
    assert set(comes_home(job, homes)) == {"0", "1"}
    assert job.get("v1/status")["job"]["health"] == "deployed"
    job.produce(200, first=800)
    job.counts_all()
    left = left_behind(job, containers)
    assert {path for path in left if path.is_dir()} == left
    for node in job.cluster.nodes:
        assert cleaned(job, node) == {path for path in left if on(job, node, path)}
    assert not any(path.exists() for path in left)
    job.produce(200, first=1000)
    job.counts_all()
    homes = stops(job)
    job.run()
    comes_home(job, homes)
    stops(job)
    job.judge_history()


def left_behind(job: Job, containers: Containers) -> set[Path]:
    """The directories that standbys had, and that no active container has."""
    model = job.get("")["containers"]
    found = set()
    for container in containers.values():
        if container["replica_of"] is not None:
            folder = job.cluster.state_dir(container["host"]) / f"{job.name}-1" / "counts"
            tasks = model[container["replica_of"]]["tasks"]
            found |= {folder / task.replace(" ", "_") for task in tasks}
    return found


def on(job: Job, node: str, path: Path) -> bool:
    """Whether the path is the node's."""
    return path.is_relative_to(job.cluster.state_dir(node))


def cleaned(job: Job, node: str) -> set[Path]:
    """What ``homeport clean`` has removed on that host; first it only says what it would."""
    base = job.cluster.state_dir(node)
    if not (base / f"{job.name}-1").exists():
        return set()
    words = ("clean", "--older-than=0s", f"--host={node}", f"--base={base}", "--json")
    planned = outcomes(job, *words)
    done = outcomes(job, *words, "--apply")
    assert set(done) == set(planned)
    removed = {path for path, outcome in done.items() if outcome == "removed"}
    assert removed == {p for p, outcome in planned.items() if outcome == "would be removed"}
    return removed


def outcomes(job: Job, *words: str) -> dict[Path, Any]:
    """{directory: what became of it}, by the operator's tool."""
    done = job.operator(*words)
    assert done.returncode == 0, done.stderr
    rows = map(json.loads, done.stdout.splitlines())
    return {Path(row["path"]): row["outcome"] for row in rows}
