"""The TestRunner beside what it stands for: one job on real Kafka and in memory."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from stream_containers import Job, make_job

from homeport.testing import Record, TestRunner

TASK = """
from homeport.container.api import StreamTask

class Counter(StreamTask):
    def init(self, context):
        self.counts = context.store("counts")

    def process(self, message, collector, coordinator):
        word = message.value["word"] if message.value else "<null>"
        self.counts.put(word, (self.counts.get(word) or 0) + 1)
        headers = {"from": b"%d" % message.partition}
        collector.send("out", str(self.counts.get(word)).encode(), word.encode(), headers=headers)
"""


@pytest.fixture
def job(kafka: str, tmp_path: Path) -> Iterator[Job]:
    """A job on real Kafka."""
    keys = {"systems.kafka.samza.key.serde": "string", "systems.kafka.samza.msg.serde": "json"}
    made = make_job(kafka, tmp_path, TASK, keys)
    yield made
    made.close()


def test_kafka_and_the_runner_have_the_same_records(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One job, one input: outputs of each key by partition, changelog and positions are equal."""
    words = [f"w{n % 7}" for n in range(60)] + ["a-little-bit-long-string", "ä"]
    records: list[tuple[int, bytes | None, bytes | None]] = [
        (n % 2, b"k", json.dumps({"word": f"p{n % 2}-{word}"}).encode())
        for n, word in enumerate(words)
    ]
    records += [(0, None, None), (0, None, None)]
    container = job.start(1)
    job.produce(records)
    job.until(lambda: job.processed() == len(records), container)
    monkeypatch.syspath_prepend(job.folder / "package")
    importlib.invalidate_caches()
    with TestRunner(job.config, partitions=2) as runner:
        for partition, key, value in records:
            runner.send_bytes(job.topic("in"), partition=partition, key=key, value=value)
        runner.run()
        ours = runner.output(job.topic("out"))
        theirs = [
            Record(
                (m.key() or b"").decode(),
                json.loads(m.value() or b"null"),
                m.partition() or 0,
                headers=dict(m.headers() or ()),  # type: ignore[arg-type]  # bytes, as they are sent
            )
            for m in job.messages(job.topic("out"))
        ]
        assert _by_key(ours) == _by_key(theirs)
        changelog = {
            key: value
            for partition in (0, 1)
            for key, value in runner.changelog("counts", partition=partition).items()
        }
        real = job.table("changelog")
        assert changelog == {key: int.from_bytes(value or b"") for key, value in real.items()}
        for partition, processed in job.positions().items():
            name = f"kafka.{job.topic('in')}.{partition}"
            assert runner.checkpoint(partition=partition) == {name: processed - 1}


def _by_key(records: Sequence[Record]) -> dict[tuple[int, str], list[tuple[Any, Any]]]:
    """{(partition, key): (value, headers) in their order}."""
    found: dict[tuple[int, str], list[tuple[Any, Any]]] = {}
    for record in records:
        entry = record.value, record.headers
        found.setdefault((record.partition, record.key), []).append(entry)
    return found
