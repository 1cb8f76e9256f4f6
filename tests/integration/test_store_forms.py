"""A container whose schema of a store is another than the one that wrote it, on a real broker."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from counted_words import words
from stream_containers import COUNTER, Job, jobs

from homeport.job_coordinator.metadata.state_facts import StateFactManager

CODE = (
    COUNTER.replace("or 0) + 1)", "or {'n': 0})['n'] + 1)")
    .replace("self.counts.put(word, (", "n = ((")
    .replace("+ 1)\n", "+ 1)\n            self.counts.put(word, {'n': n, 'minus': -n})\n")
    .replace("str(self.counts.get(word))", "str(self.counts.get(word)['n'])")
)


@pytest.fixture
def job(kafka: str, tmp_path: Path) -> Iterator[Job]:
    """A count for each word, and the same below zero, as a record of Avro."""
    with jobs(kafka, tmp_path) as make:
        yield make(
            CODE,
            stores_counts_msg_serde="count",
            serializers_registry_count_class="avro",
            serializers_registry_count_schema_file="count.avsc",
        )


def avro(*fields: str, **more: str) -> str:
    """A record with these fields."""
    whole = [{"name": name, "type": "long"} for name in fields]
    return json.dumps({"type": "record", "name": "Count", "fields": whole, **more}, indent=2)


def test_no_container_reads_values_by_a_schema_that_did_not_write_them(job: Job) -> None:
    """Bare Avro does not name its schema: swapped fields would be swapped counts, silently.

    The first container writes down by which schema the state is made; one whose package has
    another one ends in one line, before it restores. The same schema in other words is no change.
    """
    schema = job.folder / "package" / "count.avsc"
    schema.write_text(avro("n", "minus"), encoding="utf-8")
    job.produce(words(100))
    first = job.start(1)
    job.until(lambda: job.processed() == 100, first)
    assert first.stop() == 143
    (forms,) = StateFactManager(job.coordinator_stream()).forms().values()
    assert (forms.key, forms.msg.split()[0]) == ("string", "avro")
    directory = job.folder / "stores" / f"{job.config['job.name']}-1" / "counts" / "Partition_0"
    assert " ".join(forms.msg.split()[:2]) in (directory / "STORE-META").read_bytes().decode(
        errors="replace"
    )

    job.produce(words(100, 100))
    schema.write_text(avro("minus", "n"), encoding="utf-8")
    before = job.read(job.topic("changelog"))
    second = job.start(2, fence=[1])
    line = second.last_line()
    assert "serializers.registry.count.schema.file = 'avro " in line
    assert "the values of store 'counts' were written by avro " in line
    assert "(different: the order of the fields)" in line
    assert job.read(job.topic("changelog")) == before

    schema.write_text(avro("n", "minus", doc="how often").replace("\n", ""), encoding="utf-8")
    third = job.start(3, fence=[1, 2])
    restored = job.report(third, 2).restored["counts"].values()
    assert [(r.kind.value, r.records) for r in restored] == [("none", 0)] * 2
    job.until(lambda: job.processed() == 200, third)
    assert third.stop() == 143
    counts = Counter((key or b"").decode() for _, key, _ in words(200))
    assert job.table("out") == {word: str(n).encode() for word, n in counts.items()}
