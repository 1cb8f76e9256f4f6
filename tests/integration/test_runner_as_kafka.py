"""The TestRunner beside a real broker: the same sends have the same outcome, in the same words.

Sends are generated from a seed. What a task can catch is compared in one container for all of them;
what ends a container, in one for each.
"""

from __future__ import annotations

import importlib
import pickle
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from stream_containers import Job, Make, jobs, until_led

from homeport.config.errors import HomeportError
from homeport.testing import TestRunner

SEED, SENDS = 31, 400
LIMIT = 1_000_000
TASK = """
import os
import pickle

from homeport.container.api import StreamTask

class Counter(StreamTask):
    def process(self, message, collector, coordinator):
        stream, value, key, options = pickle.loads(message.value)
        value = b"v" * len(value) if isinstance(value, range) else value
        if message.key is not None:
            if message.key == os.environ["FAILS"].encode():
                collector.send(stream, value, key, **options)
            return
        try:
            collector.send(stream, value, key, **options)
            said = "taken"
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        collector.send("out", f"{message.offset} {said}".encode(), key=b"outcome", partition=0)
"""
Send = tuple[str, Any, Any, dict[str, Any]]


@pytest.fixture
def make(kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Makes a job on real Kafka, whose task does what its input says."""
    with jobs(kafka, tmp_path, TASK) as made:

        def job(**more: str) -> Job:
            found = made(**more)
            monkeypatch.syspath_prepend(found.folder / "package")
            monkeypatch.delitem(sys.modules, "user_job", raising=False)
            importlib.invalidate_caches()
            return found

        yield job


def create(servers: str, name: str, partitions: int, settings: Mapping[str, str]) -> None:
    """A topic is there, with those properties."""
    new = NewTopic(name, num_partitions=partitions, replication_factor=1, config=dict(settings))
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([new])[name].result(30)
    for partition in range(partitions):
        until_led(admin, TopicPartition(name, partition))


def generated(chosen: random.Random, stream: str) -> Send:
    """Return one send, of which about every third is refused."""
    now_ms = int(time.time() * 1000)
    edge = LIMIT - 36
    values: list[Any] = [b"", b"v", None, b"v" * 5000, "text", 5, bytearray(b"v")]
    sizes: list[Any] = [range(edge + more) for more in (-60, -3, -1, 0, 1)]
    keys: list[Any] = [None, b"", b"k", b"ann", b"\xff" * 50, "k", 7]
    partitions: list[Any] = [0, 1, 2, 3, -1, 2**31, True, 1.0, "0", lambda: None]
    times: list[Any] = [1, 5, now_ms, float(now_ms), True, 0, -1, 2**63, "5"]
    headers: list[Any] = [
        {},
        {"h": b"x"},
        {"h": None, "": b""},
        {"h": "text", "é": "ä".encode()},
        {"h": 5},
        {5: b"x"},
        {"\ud800": b""},
        {"h": "\ud800"},
        {"n\0": b"\0"},
        5,
    ]
    value = chosen.choice(sizes if chosen.random() < 0.05 else values[: chosen.choice([4, 4, 7])])
    options: dict[str, Any] = {}
    if chosen.random() < 0.4:
        options["partition"] = chosen.choice(partitions[: chosen.choice([3, 3, 9])])
    if chosen.random() < 0.4:
        options["timestamp"] = chosen.choice(times[: chosen.choice([3, 3, 9])])
    if chosen.random() < 0.4:
        options["headers"] = chosen.choice(headers[: chosen.choice([4, 4, 10])])
    return stream, value, chosen.choice(keys[: chosen.choice([5, 5, 7])]), options


def test_each_send_has_the_same_outcome(kafka: str, make: Make) -> None:
    """Each line, and each record that is taken, with its partition where key or task decide it."""
    job, chosen = make(), random.Random(SEED)  # noqa: S311 - no secret
    topics = {"plain": {}, "stamped": {"message.timestamp.type": "LogAppendTime"}}
    streams = {name: f"kafka.{job.topic(name)}" for name in topics}
    for name, settings in topics.items():
        create(kafka, job.topic(name), 3, settings)
    sends = [generated(chosen, chosen.choice([*streams.values()])) for _ in range(SENDS)]
    names = [job.topic("absent"), "a b", ".", "\0", "x" * 250, "\ud800"]
    sends += [(f"kafka.{name}", b"v", None, {"partition": 0}) for name in names]
    data = [pickle.dumps(send) for send in sends]
    container = job.start(1)
    job.produce([(0, None, one) for one in data])
    job.until(lambda: job.processed() == len(data), container)
    real = [m.value() for m in job.messages(job.topic("out"))]
    with TestRunner(
        job.config,
        partitions={f"kafka.{job.topic('in')}": 2, **dict.fromkeys(streams.values(), 3)},
        topics={f"kafka.{job.topic('out')}": {}, **{streams[n]: s for n, s in topics.items()}},
    ) as runner:
        for one in data:
            runner.send_bytes(f"kafka.{job.topic('in')}", partition=0, value=one)
        runner.run()
        ours = [record.value for record in runner.output(job.topic("out"))]
        assert [line for pair in zip(ours, real, strict=True) for line in set(pair)] == ours
        refused = [line for line in ours if not line.endswith(b" taken")]
        assert 50 < len(refused) < SENDS / 2
        for name, stream in streams.items():
            theirs = Counter(map(_of_message, job.messages(job.topic(name))))
            mine = Counter(
                _of(r.key, r.value, r.partition, r.timestamp, r.headers)
                for r in runner.output(stream)
            )
            if name == "stamped":  # by another clock
                theirs, mine = _untimed(theirs), _untimed(mine)
            assert mine == theirs


def _of_message(message: Any) -> tuple[Any, ...]:  # noqa: ANN401 - the library's
    headers = dict(message.headers() or ())
    return _of(message.key(), message.value(), message.partition(), message.timestamp()[1], headers)


def _of(
    key: bytes | None,
    value: bytes | None,
    partition: int,
    time_ms: int,
    headers: Mapping[str, bytes | None],
) -> tuple[Any, ...]:
    """Return what is compared: without a key the client chooses the partition."""
    size = len(value or b"")
    shown = (value or b"")[:10], value is None, size
    # Times of sending are of two clocks.
    shown_time = time_ms if time_ms < 10 else None
    return key, shown, partition if key is not None else None, shown_time, *sorted(headers.items())


def _untimed(found: Counter[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    counts: Counter[tuple[Any, ...]] = Counter()
    for record, count in found.items():
        counts[(*record[:3], None, *record[4:])] += count
    return counts


ENDS: list[tuple[str, dict[str, str], Any, Any, dict[str, Any]]] = [
    ("large", {"max.message.bytes": "1000"}, b"v" * 1000, b"k", {}),
    ("compacted", {"cleanup.policy": "compact"}, b"v", None, {}),
    ("old", {"message.timestamp.before.max.ms": "60000"}, b"v", b"k", {"timestamp": 7}),
    ("new", {}, b"v", b"k", {"timestamp": 2**62}),
    ("absent", {}, b"v", b"k", {}),
    ("no-such-partition", {}, b"v", b"k", {"partition": 7}),
    ("float", {}, b"v", b"k", {"timestamp": 1.5}),
]


@pytest.mark.parametrize("exactly_once", ["true", "false"])
def test_each_end_of_a_container_has_the_same_line(
    kafka: str, make: Make, monkeypatch: pytest.MonkeyPatch, exactly_once: str
) -> None:
    """What its topic, or nothing, takes of a record, in a transaction and at once."""
    more = {"systems_kafka_producer_max_request_size": "5000000"}
    job = make(task_exactly_once=exactly_once, **more)
    found = {}
    for number, (name, settings, value, key, options) in enumerate(ENDS, start=1):
        if name != "absent":
            create(kafka, job.topic(name), 3, settings)
        send = pickle.dumps((f"kafka.{job.topic(name)}", value, key, options))
        job.environment["FAILS"] = name
        monkeypatch.setenv("FAILS", name)
        job.produce([(0, name.encode(), send)])
        container = job.start(number, list(range(1, number)))
        there = {} if name == "absent" else {f"kafka.{job.topic(name)}": settings}
        with TestRunner(job.config, partitions=3, topics=there) as runner:
            for _ in range(number - 1):
                runner.send_bytes(f"kafka.{job.topic('in')}", partition=0, key=b"-", value=send)
            runner.send_bytes(
                f"kafka.{job.topic('in')}", partition=0, key=name.encode(), value=send
            )
            with pytest.raises(HomeportError) as error:
                runner.run()
        found[name] = container.last_line(), f"error: {error.value}"
    assert {name: real for name, (real, _) in found.items()} == {
        name: ours for name, (_, ours) in found.items()
    }
