"""Jobs that ``homeport new`` makes, run as their README says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from clusters_under_test import LocalUnderTest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

HOMEPORT = [sys.executable, "-m", "homeport.cli.main"]
_LIMIT_S = 120.0


TOTAL = {"total": 250.0}


def run_by_its_readme(
    folder: Path, cluster: LocalUnderTest, programs: Path, sends: dict[str, float] = TOTAL
) -> None:
    """On this machine, then on YARN, by its Python's ``programs``; each ends with what it sends."""
    name = folder.name
    produce(cluster.bootstrap_servers, f"{name}-in", (100, 150))
    local, on_yarn, status, kill = commands(folder)
    call(local, folder, cluster, programs)
    await_value(cluster.bootstrap_servers, f"{name}-out", sends)
    call(on_yarn, folder, cluster, programs)
    try:
        await_value(cluster.bootstrap_servers, f"{name}-out", sends, times=2)
        assert f"{name}-1: deployed" in call(status, folder, cluster, programs)
    finally:
        printed = call(kill, folder, cluster, programs)
    assert printed.endswith("in order\n"), printed


def made(folder: Path, name: str, *options: str) -> Path:
    """The folder of a new job below ``folder``."""
    subprocess.run([*HOMEPORT, "new", name, *options], cwd=folder, check=True)
    return folder / name


def produce(servers: str, topic: str, amounts: Sequence[int]) -> None:
    """The topic is new, and has these amounts under one key."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    producer = Producer({"bootstrap.servers": servers})
    for amount in amounts:
        producer.produce(topic, b'{"amount": %d}' % amount, b"ann")
    assert producer.flush(30) == 0


def commands(folder: Path) -> list[str]:
    """Those of the README that are about the job itself: run-local, run-job, status, kill."""
    text = (folder / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```\n(.*?)```", text, re.DOTALL)
    found = [line for block in blocks for line in block.splitlines() if "--config-path" in line]
    assert len(found) == 4, found
    return found


def call(command: str, folder: Path, cluster: LocalUnderTest, programs: Path) -> str:
    """What the command, which succeeds, prints; ``programs``: the folder of homeport's."""
    environment = cluster.env()
    path = f"{programs}:{environment['PATH']}"
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


def await_value(servers: str, topic: str, wanted: dict[str, float], times: int = 1) -> None:
    """The value has come so often, under the key of what was sent."""
    options = {"bootstrap.servers": servers, "group.id": topic, "enable.auto.commit": False}
    refresh = {"topic.metadata.refresh.interval.ms": 500, "auto.offset.reset": "earliest"}
    consumer = Consumer({**options, **refresh})
    consumer.subscribe([topic])
    found: list[object] = []
    deadline = time.monotonic() + _LIMIT_S
    try:
        while found.count(wanted) < times:
            assert time.monotonic() < deadline, f"{wanted} is missing in {found}"
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                assert message.key() == b"ann"
                found.append(json.loads(message.value() or b"{}"))
    finally:
        consumer.close()
