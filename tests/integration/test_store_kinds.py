"""Stores of every kind in a real stream container, with a real broker and a restart."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Mapping

import pytest
from stream_containers import Job, Make, Running

from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.status.container_report import DroppedValues

LARGE_KEY = "stores.counts.changelog.max.message.size.bytes"

KEEPER = """
import json
from homeport.container.api import BatchTask

class Words:
    def to_bytes(self, value):
        return "|".join(value).encode()

    def from_bytes(self, data):
        return data.decode().split("|")

class Counter(BatchTask):
    def init(self, context):
        self.store = context.store("counts")

    def process_batch(self, table, collector):
        for key, value in zip(*(table.column(n).to_pylist() for n in ("key", "value"))):
            if value:
                self.store.put(key.decode(), json.loads(value))
            found = {word: kept for word, kept in self.store.all()}
            collector.send("out", json.dumps(found).encode(), b"all")
"""
"""Keeps each value under its key, and says all that it has. A record without a value only asks."""


JOBS = {"code": KEEPER}
"""Of ``make``: a job from the code of its task."""


def _put(job: Job, container: Running, entries: Mapping[str, object]) -> dict[str, object]:
    """All that the task of partition 0 has after it was given these; None asks only."""
    before = job.processed()
    texts = {k: b"" if v is None else json.dumps(v).encode() for k, v in entries.items()}
    job.produce([(0, key.encode(), text) for key, text in texts.items()])
    job.until(lambda: job.processed() == before + len(entries), container)
    found: dict[str, object] = json.loads(job.read(job.topic("out"))[-1][1] or b"")
    return found


def _restarted(job: Job, container: Running, epoch: int, *, keeps: bool) -> Running:
    """The next incarnation, after SIGKILL, with the directory of the one before or without."""
    container.stop(signal.SIGKILL)
    if not keeps:
        shutil.rmtree(job.folder / "stores")
    return job.start(epoch, fence=[epoch - 1])


RECORD = {
    "type": "record",
    "name": "Plane",
    "fields": [{"name": "tail", "type": "string"}, {"name": "seats", "type": "int"}],
}
SERDES: list[tuple[dict[str, str], object, bytes]] = [
    (
        {"serializers.registry.words.class": "user_job:Words", "stores.counts.msg.serde": "words"},
        ["a", "é"],
        "a|é".encode(),
    ),
    (
        {
            "serializers.registry.planes.class": "avro",
            "serializers.registry.planes.schema": json.dumps(RECORD),
            "stores.counts.msg.serde": "planes",
        },
        {"tail": "N1", "seats": 7},
        b"\x04N1\x0e",
    ),
]


@pytest.mark.parametrize(("keys", "value", "data"), SERDES)
def test_values_of_a_registered_serde_come_back(
    make: Make, keys: Mapping[str, str], value: object, data: bytes
) -> None:
    """A class of the job's own, and avro: its bytes are in the changelog, and read by a restore."""
    job = make(**keys)
    first = job.start(1)
    assert _put(job, first, {"one": value}) == {"one": value}
    assert job.table("changelog") == {"one": data}
    second = _restarted(job, first, 2, keeps=True)
    assert _put(job, second, {"two": value}) == {"one": value, "two": value}
    third = _restarted(job, second, 3, keeps=False)
    assert _put(job, third, {"ask": None}) == {"one": value, "two": value}


def test_a_value_that_its_serde_cannot_carry_fails_the_container(make: Make) -> None:
    """Nothing of the transaction is committed; the line names store and serde."""
    job = make(**SERDES[1][0])
    container = job.start(1)
    job.produce([(0, b"one", b'{"tail": 7}')])
    line = container.last_line()
    assert container.process.returncode == 1
    assert "the schema of the serde 'avro' cannot carry it" in line
    assert job.table("changelog") == {}


def test_entries_of_a_store_with_a_time_to_live_go(make: Make) -> None:
    """Once they are older, and something is written; a restore gives back what the topic has."""
    job = make(**{"stores.counts.rocksdb.ttl.ms": "1000", "stores.counts.msg.serde": "json"})
    first = job.start(1)
    assert _put(job, first, {"old": 1}) == {"old": 1}
    number = 0

    def only_new() -> bool:
        nonlocal number
        number += 1
        found = _put(job, first, {f"new{number}": number})
        assert found[f"new{number}"] == number
        return "old" not in found

    job.until(only_new, first)
    # What went from the store is in the topic until that deletes it by age.
    assert job.table("changelog").keys() >= {"old", f"new{number}"}
    second = _restarted(job, first, 2, keeps=True)
    # SIGKILL takes the store's time back to its last commit: the entry may live that much longer.
    job.until(lambda: "old" not in _put(job, second, {"newest": 0}), second)
    third = _restarted(job, second, 3, keeps=False)
    assert _put(job, third, {"ask": None})["newest"] == 0


def test_a_value_over_the_limit_is_refused_where_that_is_configured(make: Make) -> None:
    """At its put: the container fails with a line that names key, size, limit and store."""
    more = {LARGE_KEY: "20", "stores.counts.disallow.large.messages": "true"}
    job = make(**{**more, "stores.counts.msg.serde": "json"})
    container = job.start(1)
    assert _put(job, container, {"fits": "x" * 18}) == {"fits": "x" * 18}
    job.produce([(0, b"large", json.dumps("x" * 19).encode())])
    line = container.last_line()
    assert container.process.returncode == 1
    assert f"has 21 bytes, {LARGE_KEY} is 20" in line
    assert job.table("changelog").keys() == {"fits"}


def test_a_value_over_the_limit_is_skipped_where_that_is_configured(make: Make) -> None:
    """The job goes on without it, and reports it; the key keeps its value, also after a restore."""
    more = {LARGE_KEY: "20", "stores.counts.drop.large.messages": "true"}
    job = make(**{**more, "stores.counts.msg.serde": "json"})
    first = job.start(1)
    assert _put(job, first, {"key": "small"}) == {"key": "small"}
    assert _put(job, first, {"key": "x" * 19, "more": 1}) == {"key": "small", "more": 1}
    assert "skipped a put: store counts" in first.log.read_text()
    stated = first.memory.last_report()
    assert stated is not None
    assert stated.dropped == (DroppedValues("counts", TaskName("Partition 0"), 1),)
    second = _restarted(job, first, 2, keeps=False)
    assert _put(job, second, {"ask": None}) == {"key": "small", "more": 1}
