"""Jobs that ``homeport new`` makes, on real parts: Spark for their tests, a broker for a run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from suites import long

_HOMEPORT = [sys.executable, "-m", "homeport.cli.main"]
_LIMIT_S = 120.0


@pytest.mark.parametrize("kind", ["--sql", long("--pipeline")])
def test_the_test_of_a_job_with_spark_passes_as_it_is(kind: str, tmp_path: Path) -> None:
    """As its user runs it: pytest, in the folder of the job."""
    subprocess.run([*_HOMEPORT, "new", "daily-totals", kind], cwd=tmp_path, check=True)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path / "daily-totals",
        env={k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_a_new_job_runs_on_this_machine_and_makes_its_output(kafka: str, tmp_path: Path) -> None:
    """By the command of its README; SIGTERM ends it in order."""
    name = f"totals-{uuid.uuid4().hex[:6]}"
    subprocess.run([*_HOMEPORT, "new", name, f"--brokers={kafka}"], cwd=tmp_path, check=True)
    source = NewTopic(f"{name}-in", 1, 1)
    admin = AdminClient({"bootstrap.servers": kafka})
    admin.create_topics([source])[source.topic].result(30)
    producer = Producer({"bootstrap.servers": kafka})
    for amount in (5, 7):
        producer.produce(f"{name}-in", b'{"amount": %d}' % amount, b"ann")
    assert producer.flush(30) == 0
    options = [f"--config-path={name}.properties"]
    with subprocess.Popen(
        [*_HOMEPORT, "run-local", *options, f"--work-dir={tmp_path / 'work'}"], cwd=tmp_path / name
    ) as job:
        try:
            assert _read(kafka, f"{name}-out", 2) == [
                (b"ann", b'{"total":5}'),
                (b"ann", b'{"total":12}'),
            ]
        finally:
            job.send_signal(signal.SIGTERM)
        assert job.wait(60) == 0


def _read(servers: str, topic: str, count: int) -> list[tuple[bytes | None, bytes | None]]:
    options = {"bootstrap.servers": servers, "group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer({**options, "topic.metadata.refresh.interval.ms": 500})
    consumer.subscribe([topic])
    found: list[tuple[bytes | None, bytes | None]] = []
    deadline = time.monotonic() + _LIMIT_S
    try:
        while len(found) < count:
            assert time.monotonic() < deadline, f"{len(found)} records of {count}"
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                found.append((message.key(), message.value()))
    finally:
        consumer.close()
    return found
