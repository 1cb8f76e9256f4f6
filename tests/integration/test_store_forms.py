"""A store whose values get another schema in mid-life, and one that does not, on a real broker."""

from __future__ import annotations

import json
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from counted_words import words
from small_jobs import LOGGED, job_of, store_keys
from stores_in_memory_log import CONFIG, Log, storage_of
from stream_containers import COUNTER, Job, jobs

from homeport.config.errors import ConfigError
from homeport.container.incarnation.start_up import require_forms
from homeport.job_coordinator.metadata.state_facts import StateFactManager

_EMPTY = """
import json
from pathlib import Path

_SCHEMA = json.loads(Path(__file__).with_name("count.avsc").read_text())
EMPTY = {field["name"]: 0 for field in _SCHEMA["fields"]}
"""
CODE = _EMPTY + COUNTER.replace(
    "self.counts.put(word, (self.counts.get(word) or 0) + 1)",
    "found = self.counts.get(word) or EMPTY\n"
    "            n = found['n'] + 1\n"
    "            self.counts.put(word, {**found, 'n': n, 'minus': -n})",
).replace("str(self.counts.get(word))", "json.dumps(self.counts.get(word), sort_keys=True)")
_MARK = b"\xc3\x01"


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


def avro(*fields: str, **defaults: int) -> str:
    """A record of the fields, some with defaults."""
    whole = [{"name": name, "type": "long"} for name in fields]
    more = [{"name": n, "type": "long", "default": value} for n, value in defaults.items()]
    return json.dumps({"type": "record", "name": "Count", "fields": whole + more}, indent=2)


def _counted(job: Job, count: int, **more: int) -> None:
    """The output and the store's last values are the counts of so many words."""
    found = {word: json.loads(value or b"") for word, value in job.table("out").items()}
    counts = Counter((key or b"").decode() for _, key, _ in words(count))
    assert {word: (value["n"], value["minus"]) for word, value in found.items()} == {
        word: (n, -n) for word, n in counts.items()
    }
    last = {tuple(sorted(value.items())) for value in found.values()}
    assert all(dict(value).items() >= more.items() for value in last)


def test_values_get_a_field_and_lose_it_again_and_no_count_is_lost(job: Job) -> None:
    """Old values have the default; both codes read both; SIGKILL, a lost disk, and the way back.

    The first container writes down by which schema the state is made. One whose file has a schema
    that does not read it ends in one line, before it restores.
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

    before = job.read(job.topic("changelog"))
    schema.write_text(avro("n", "minus", "seen"), encoding="utf-8")
    line = job.start(2, fence=[1]).last_line()
    assert "serializers.registry.count.schema.file = 'avro " in line
    assert "by count.avsc of host nm1, the values of store 'counts' were written by avro " in line
    assert "; field seen: it is missing in older values, and has no default; set the sch" in line
    assert job.read(job.topic("changelog")) == before

    schema.write_text(avro("minus", "n", seen=7), encoding="utf-8")
    third = job.start(3, fence=[1, 2])
    restored = job.report(third, 2).restored["counts"].values()
    assert [(r.kind.value, r.records) for r in restored] == [("none", 0)] * 2
    job.produce(words(150, 100))
    job.until(lambda: job.processed() >= 150, third)
    third.stop(signal.SIGKILL)
    values = [value or b"" for _, value in job.read(job.topic("changelog"))]
    assert {value.startswith(_MARK) for value in values} == {True, False}
    fourth = job.start(4, fence=[1, 2, 3], stores="another-disk")
    restored = job.report(fourth, 3).restored["counts"].values()
    assert {r.kind.value for r in restored} == {"full"}
    job.until(lambda: job.processed() == 250, fourth)
    fourth.stop(signal.SIGKILL)
    _counted(job, 250, seen=7)

    schema.write_text(avro("n", "minus"), encoding="utf-8")
    job.produce(words(50, 250))
    back = job.start(5, fence=[1, 2, 3, 4])
    job.until(lambda: job.processed() == 300, back)
    assert back.stop() == 143
    _counted(job, 300)


def test_of_two_containers_that_begin_a_store_at_once_one_is_refused(
    job: Job, tmp_path: Path
) -> None:
    """Both have read the stream while it was empty; what the first wrote down stays."""
    for number in range(4):
        changelog = f"kafka.{job.config['job.name']}-{number}"
        of_store = store_keys(msg_serde="rec", changelog=changelog)
        both = {**LOGGED, **of_store, "serializers.registry.rec.class": "avro"}
        ready, began, refused = threading.Barrier(2), list[str](), list[str]()

        def start(
            kind: str,
            both: dict[str, str] = both,
            ready: threading.Barrier = ready,
            began: list[str] = began,
            refused: list[str] = refused,
        ) -> None:
            own = job_of({**both, "serializers.registry.rec.schema": f'"{kind}"'})
            with closing(job.coordinator_stream()) as stream:
                ready.wait()
                try:
                    require_forms(stream, own, storage_of(tmp_path, Log(), CONFIG), kind)
                    began.append(kind)
                except ConfigError as error:
                    refused.append(str(error))

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(start, ("int", "string")))
        assert (len(began), len(refused)) == (1, 1), refused
        with closing(job.coordinator_stream()) as stream:
            found = StateFactManager(stream).forms()[changelog]
        assert json.loads(found.msg.split(" ", 2)[2]) == began[0]
