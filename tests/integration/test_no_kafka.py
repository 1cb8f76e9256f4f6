"""Commands of a user whose Kafka is away, or lacks a topic: a line soon, an end, and a remedy."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

_HOMEPORT = (sys.executable, "-m", "homeport.cli.main")
_LIMIT_S = 120.0
_JOB = """
job.name={name}
job.default.system=kafka
task.class=daily:Total
task.inputs=kafka.{name}-in
task.outputs=kafka.{name}-out
systems.kafka.samza.offset.default=oldest
systems.kafka.default.stream.replication.factor=1
"""
_CODE = """
from homeport.container.api import StreamTask


class Total(StreamTask):
    def process(self, message, collector, coordinator):
        collector.send("kafka.{name}-out", message.value, message.key)
"""
_COMMANDS = ("status", "config diff", "state ls", "checkpoint show", "explain 0", "logs 0")


@pytest.fixture
def nowhere() -> Iterator[str]:
    """The address of a port on which nothing listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


@pytest.fixture
def job(tmp_path: Path) -> str:
    """The name of a job, whose file in the folder names no brokers."""
    name = f"daily-{uuid.uuid4().hex[:6]}"
    (tmp_path / "job.properties").write_text(_JOB.format(name=name), encoding="utf-8")
    (tmp_path / "daily.py").write_text(_CODE.format(name=name), encoding="utf-8")
    return name


def _begun(folder: Path, servers: str, command: str, *options: str) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [*_HOMEPORT, *command.split(), *options, "--config-path=job.properties"],
        cwd=folder,
        env={**os.environ, "HOMEPORT_BOOTSTRAP_SERVERS": servers, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _refused(folder: Path, servers: str, command: str, *options: str) -> str:
    with _begun(folder, servers, command, *options) as begun:
        _, printed = begun.communicate(timeout=_LIMIT_S)
    assert begun.returncode == 1, printed
    return printed


def test_each_command_says_what_it_waits_for_and_ends(
    nowhere: str, job: str, tmp_path: Path
) -> None:
    """The address is the variable's; run-local tries once, as run-job does."""
    commands = (*_COMMANDS, "run-local", "run-local --trial")
    begun = [(command, _begun(tmp_path, nowhere, command)) for command in commands]
    for command, process in begun:
        with process:
            answer, printed = process.communicate(timeout=_LIMIT_S)
        first, *rest = printed.splitlines()
        assert f"no answer from Kafka at {nowhere} yet: waiting " in first, command
        assert len(rest) == 1, printed
        assert rest[0].startswith(f"error: Kafka at {nowhere} (system 'kafka'): listing topics: ")
        assert rest[0].endswith("systems.kafka.consumer.bootstrap.servers names them")
        assert (process.returncode, answer) == (1, ""), job


def test_run_local_names_the_key_that_makes_an_output(kafka: str, job: str, tmp_path: Path) -> None:
    """Before it starts anything; with the key it makes the topic, and runs."""
    missing = _refused(tmp_path, kafka, "run-local")
    both = f"task.inputs = 'kafka.{job}-in': topics '{job}-in', '{job}-out' (task.outputs) do not"
    assert f"{both} exist at {kafka}; create them (homeport local send TOPIC" in missing
    admin = AdminClient({"bootstrap.servers": kafka})
    source = NewTopic(f"{job}-in", 1, 1)
    admin.create_topics([source])[source.topic].result(30)
    missing = _refused(tmp_path, kafka, "run-local")
    assert f"task.outputs = 'kafka.{job}-out': topic '{job}-out' does not exist" in missing
    assert f"; create it (homeport local send {job}-out KEY=VALUE on a local cluster" in missing
    assert ", or set task.outputs.create.partitions, or correct the name" in missing
    twice = f"--config=task.inputs=kafka.kafka.{job}-in"
    assert f"names, kafka.{job}-in is {job}-in without its system kafka\n" in _refused(
        tmp_path, kafka, "run-local", twice
    )
    made = ("--config=task.outputs.create.partitions=2", "--config=job.drain=true")
    with _begun(tmp_path, kafka, "run-local", *made) as begun:
        _, printed = begun.communicate(timeout=_LIMIT_S)
    assert begun.returncode == 0, printed
    assert len(admin.list_topics(timeout=30).topics[f"{job}-out"].partitions) == 2


def test_a_misspelt_key_is_refused_before_anything_is_asked(
    nowhere: str, job: str, tmp_path: Path
) -> None:
    """No Kafka is there; with the option the job goes on to ask it."""
    misspelt = "--config=job.hotstandby.enable=true"
    printed = _refused(tmp_path, nowhere, "run-local", misspelt)
    assert printed == (
        "error: job.hotstandby.enable = 'true': no program reads this key; write "
        "job.hotstandby.enabled, if that is meant, or allow it by --allow-unknown-keys\n"
    ), job
    printed = _refused(tmp_path, nowhere, "run-local", misspelt, "--allow-unknown-keys")
    assert f"error: Kafka at {nowhere}" in printed
