"""The leader's HTTP and the operator's tool, on processes, a real ZooKeeper and a broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from standalone_jobs import StandaloneJob, on_zookeeper, standalone_job
from zookeeper_server import ZooKeeperServer

from homeport.job_coordinator.http.direct import OPENER
from homeport.job_coordinator.standalone import nodes

LIMIT_S = 60


@pytest.fixture
def job(kafka: str, tmp_path: Path, zookeeper: ZooKeeperServer) -> Iterator[StandaloneJob]:
    """A job whose sessions last 3 s, with a secret."""
    more = {
        **on_zookeeper(zookeeper.connect),
        "cluster-manager.jobcoordinator.url.host": "127.0.0.1",
        "my.own.password": "hunter2",
    }
    with standalone_job(kafka, tmp_path, more) as made:
        yield made


def urls(zookeeper: ZooKeeperServer, job: StandaloneJob) -> dict[str, str]:
    """{processor: where it says in ZooKeeper that it answers}, the leader first."""
    client = KazooClient(hosts=zookeeper.connect)
    client.start()
    names = job.name, "1"
    path = f"{nodes.root_of('/homeport', app=names, job=names, stage='1')}/{nodes.PROCESSORS}"
    try:
        found = {name: client.get(f"{path}/{name}")[0] for name in client.get_children(path)}
    finally:
        client.stop()
        client.close()
    read = (nodes.decode_registration(name, data) for name, data in sorted(found.items()))
    return {str(registration.processor_id): registration.url for registration in read}


def get(url: str) -> Any:  # noqa: ANN401 - JSON
    """What is answered there, redirects followed."""
    with OPENER.open(url, timeout=LIMIT_S) as answer:
        body = answer.read()
    return body.decode() if url.endswith("/metrics") else json.loads(body)


def answer(job: StandaloneJob, *arguments: str) -> str:
    """What it prints; it must end well."""
    done = job.tool(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refusal(job: StandaloneJob, *arguments: str) -> str:
    """Its one line; it must end with exit code 1."""
    done = job.tool(*arguments)
    assert done.returncode == 1, done.stdout
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_the_leader_answers_for_the_job_and_tools_find_it_in_zookeeper(
    job: StandaloneJob, zookeeper: ZooKeeperServer
) -> None:
    """By the same routes as an ApplicationMaster; the other processor redirects to it."""
    job.produce(20)
    one = job.processor("one")
    job.until(lambda: job.started_by("one") > 0)
    two = job.processor("two")
    job.until(lambda: job.started_by("two") > 0 and job.started_by("one") > 1)
    job.until_counted()
    at = urls(zookeeper, job)
    assert list(at) == ["one", "two"]
    job.until(lambda: all(c["report"] for c in get(f"{at['two']}v1/status")["containers"]))
    status = get(f"{at['two']}v1/status")
    assert status["job"]["leader"] == "one"
    assert [(c["processor_id"], c["phase"]) for c in status["containers"]] == [
        ("one", "running"),
        ("two", "running"),
    ]
    model = get(at["two"])
    assert {p: len(c["tasks"]) for p, c in model["containers"].items()} == {"one": 2, "two": 2}
    assert get(f"{at['two']}config")["my.own.password"] == "********"
    for name in at:
        assert f'homeport_container_running{{processor="{name}"' in get(f"{at[name]}metrics")
        assert get(f"{at[name]}health")["health"] == "deployed"

    shown = answer(job, "explain", "two")
    assert shown.startswith("processor two (active): epoch 2")
    assert "running on here since" in shown
    assert "Generation 2 has started" in shown
    assert "All 2 containers are where they should be" in answer(job, "status")
    assert "version 2: 2 containers, 4 tasks" in answer(job, "job-model")
    assert answer(job, "locality") == "processor  host\none        here\ntwo        here\n"
    done = job.tool("config", "get", "task.transaction.ms")
    assert done.stdout == "50\n"
    assert f"from the running job, standalone at {at['one']}" in done.stderr
    assert f"{job.name}-in" in answer(job, "checkpoint", "show")
    assert "counts" in answer(job, "state", "ls")

    for command in (("what-if", "--host=here"), ("move", "one", "any"), ("restart", "one")):
        assert "has no meaning for a standalone job" in refusal(job, *command)
    assert "read their own files" in refusal(job, "config", "set", "task.commit.ms", "77")
    setting = (
        "checkpoint",
        "set",
        "--task=Partition 0",
        f"--ssp=kafka.{job.name}-in.0",
        "--latest",
    )
    assert "the job runs (standalone)" in refusal(job, *setting)

    one.kill()  # the next one leads, and a tool finds it
    job.until(lambda: job.started_by("two") > 1)
    job.until(lambda: list(urls(zookeeper, job)) == ["two"])
    assert "it leads the job" in answer(job, "explain", "two")
    job.stop(two)
    assert "does not run: no processor of it answers" in refusal(job, "explain", "two")


def test_metrics_of_the_jobs_own_are_shown_by_the_leader(job: StandaloneJob) -> None:
    """In its status, which adds them up over the processors, and in ``/metrics`` of each."""
    task = job.folder / "package" / "user_job.py"
    line = "    def process_batch(self, table, collector):\n"
    count = '        collector.metrics.counter("rows").inc(table.num_rows)\n'
    task.write_text(task.read_text(encoding="utf-8").replace(line, line + count), encoding="utf-8")
    job.produce(20)
    one = job.processor("one")
    job.until_counted()
    total = sum(job.sent.values())
    job.until(lambda: f"rows    {total}" in answer(job, "status").splitlines())
    job.stop(one)
