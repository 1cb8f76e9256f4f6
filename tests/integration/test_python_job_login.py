"""A job in Python at a Kafka that wants a user: its file has no secret, no program shows one."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from secured_broker import client_of, secured_broker
from waiting import until

_HOMEPORT = [sys.executable, "-m", "homeport.cli.main"]
_FILE = """
from homeport import Job, Kafka, env

kafka = Kafka(servers={servers!r}, sasl="PLAIN", user="flights", password=env("OWN_PASSWORD"))
job = Job("login", kafka=kafka, keys={{"job.drain": True}})
source = job.input("in", key=str, value=int)
target = job.output("out", key=str, value=int)
total = job.store("total", key=str, value=int)


@job.each(source)
def add(key: str, value: int) -> None:
    total[key] = total.get(key, 0) + value
    target.send(key, total[key])
"""


@pytest.fixture
def password() -> str:
    """A password with what Kafka's format for it must escape."""
    return f'{secrets.token_hex(8)}"\\;='


@pytest.fixture
def servers(tmp_path: Path, password: str) -> Iterator[str]:
    """The address of a broker that only the user ``flights`` may use."""
    with secured_broker(tmp_path, {"flights": password}) as address:
        yield address


def _run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*_HOMEPORT, *arguments, "--config-path=login.py"],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_job_logs_in_with_a_secret_of_the_environment(
    servers: str, password: str, tmp_path: Path
) -> None:
    """Exact; without the variable, and with another password, one line ends it."""
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "login.py").write_text(_FILE.format(servers=servers))
    client = client_of(servers, "flights", password)
    admin = AdminClient({**client, "log_level": 0})
    until(lambda: _made(admin), limit_s=60)
    producer = Producer(client)
    for value in (5, 7):
        producer.produce("in", value.to_bytes(8, "big"), b"ann")
    assert producer.flush(30) == 0

    run = ["run-local", f"--work-dir={tmp_path / 'work'}"]
    missing = _run(folder, *run)
    assert missing.returncode == 1
    assert missing.stderr.splitlines()[-1] == (
        "error: systems.kafka.consumer.sasl.jaas.config is missing: the environment variable "
        "OWN_PASSWORD is not set; set it where this command runs (login.py, line 5)"
    )
    done = _run(folder, *run, OWN_PASSWORD=password)
    assert done.returncode == 0, done.stderr
    assert _values(client, 2) == [5, 12]
    shown = _run(folder, "config", "show", OWN_PASSWORD=password)
    assert "systems.kafka.consumer.sasl.jaas.config=********" in shown.stdout.splitlines()
    for text in (done.stdout, done.stderr, shown.stdout, shown.stderr):
        assert password not in text


def _made(admin: AdminClient) -> bool:
    """Return whether the broker, which may still start, has made the topics."""
    topics = [NewTopic(name, 1, 1) for name in ("in", "out")]
    try:
        for made in admin.create_topics(topics, request_timeout=5).values():
            made.result(10)
    except KafkaException:
        return False
    return True


def _values(client: dict[str, str], count: int) -> list[int]:
    """Return the values of the first committed records of ``out``."""
    reader = Consumer({**client, "group.id": "reader", "isolation.level": "read_committed"})
    reader.assign([TopicPartition("out", 0, 0)])
    try:
        found = reader.consume(count, 60)
        return [int.from_bytes(message.value() or b"", "big") for message in found]
    finally:
        reader.close()
