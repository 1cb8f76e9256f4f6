"""Jobs that ``homeport new`` makes, on real parts: Spark for their tests, a broker for a run."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest
from clusters_under_test import LocalUnderTest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from suites import long

_HOMEPORT = [sys.executable, "-m", "homeport.cli.main"]
_LIMIT_S = 120.0


@pytest.mark.parametrize("kind", ["--sql", long("--pipeline")])
def test_the_test_of_a_job_with_spark_passes_as_it_is(kind: str, tmp_path: Path) -> None:
    """As its user runs it: pytest, in the folder of the job."""
    _made(tmp_path, "daily-totals", kind, "--properties")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path / "daily-totals",
        env={k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


@pytest.mark.parametrize("kind", ["--task", "--batch"])
def test_a_new_job_runs_by_the_commands_of_its_readme(
    cluster: LocalUnderTest, kind: str, tmp_path: Path
) -> None:
    """On this machine first, then on YARN: the trial has taken nothing from the job itself."""
    name = f"totals-{uuid.uuid4().hex[:6]}"
    folder = _made(tmp_path, name, kind)
    _produce(cluster.bootstrap_servers, f"{name}-in", (5, 7))
    local, on_yarn, status, kill = _commands(folder)
    _call(local, folder, cluster)
    assert _last(cluster.bootstrap_servers, f"{name}-out", 12) == {b"ann": 12.0}
    _call(on_yarn, folder, cluster)
    try:
        assert _last(cluster.bootstrap_servers, f"{name}-out", 12, times=2) == {b"ann": 12.0}
        assert f"{name}-1: deployed" in _call(status, folder, cluster)
    finally:
        said = _call(kill, folder, cluster)
    assert said.endswith("in order\n"), said


def test_a_new_job_with_properties_runs_on_this_machine_and_makes_its_output(
    kafka: str, tmp_path: Path
) -> None:
    """Without an end: SIGTERM ends it in order."""
    name = f"totals-{uuid.uuid4().hex[:6]}"
    folder = _made(tmp_path, name, "--properties", f"--brokers={kafka}")
    _produce(kafka, f"{name}-in", (5, 7))
    options = [f"--config-path={name}.properties", f"--work-dir={tmp_path / 'work'}"]
    with subprocess.Popen([*_HOMEPORT, "run-local", *options], cwd=folder) as job:
        try:
            assert _last(kafka, f"{name}-out", 12) == {b"ann": 12}
        finally:
            job.send_signal(signal.SIGTERM)
        assert job.wait(60) == 0


def _made(folder: Path, name: str, *options: str) -> Path:
    subprocess.run([*_HOMEPORT, "new", name, *options], cwd=folder, check=True)
    return folder / name


def _produce(servers: str, topic: str, amounts: Sequence[int]) -> None:
    """The topic is new, and has these amounts under one key."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    producer = Producer({"bootstrap.servers": servers})
    for amount in amounts:
        producer.produce(topic, b'{"amount": %d}' % amount, b"ann")
    assert producer.flush(30) == 0


def _commands(folder: Path) -> list[str]:
    """Those of the README that are about the job itself: run-local, run-job, status, kill."""
    text = (folder / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```\n(.*?)```", text, re.DOTALL)
    found = [line for block in blocks for line in block.splitlines() if "--config-path" in line]
    assert len(found) == 4, found
    return found


def _call(command: str, folder: Path, cluster: LocalUnderTest) -> str:
    """What the command, which succeeds, prints."""
    environment = cluster.env()
    path = f"{Path(sys.executable).parent}:{environment['PATH']}"
    done = subprocess.run(
        ["/bin/bash", "-c", command],
        cwd=folder,
        env={**os.environ, **environment, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def _last(servers: str, topic: str, total: float, times: int = 1) -> dict[bytes | None, float]:
    """The newest total of each key, once ``total`` has come so often."""
    options = {"bootstrap.servers": servers, "group.id": topic, "enable.auto.commit": False}
    refresh = {"topic.metadata.refresh.interval.ms": 500, "auto.offset.reset": "earliest"}
    consumer = Consumer({**options, **refresh})
    consumer.subscribe([topic])
    found: dict[bytes | None, float] = {}
    deadline = time.monotonic() + _LIMIT_S
    try:
        while times:
            assert time.monotonic() < deadline, f"found {found}, {times} are missing"
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                found[message.key()] = json.loads(message.value() or b"{}")["total"]
                times -= found[message.key()] == total
    finally:
        consumer.close()
    return found
