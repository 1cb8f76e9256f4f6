"""The flights job in its six forms, on a real broker, with a SIGKILL in the midst of each."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

import data
import pyarrow as pa
import pytest
from flights_demo.common import reference
from flights_demo.job import file_of
from flights_demo.names import judge
from reference_streams import (
    AIRLINES,
    AIRPORTS,
    PLANES,
    Row,
    airline_records,
    airport_records,
    plane_records,
)
from stream_containers import Job, make_job

from homeport.config.loading.loader import load
from homeport.testing.partitioner import partition_of

FOLDER = Path(__file__).parents[2] / "examples" / "flights"
ALONE = "sql-alone"
FORMS = ("app", "stream-task", "batch-task", "flights", "sql-and-task", ALONE)
SOME = 3_000
PARTITIONS = 2


@pytest.fixture
def some_flights(monkeypatch: pytest.MonkeyPatch) -> pa.Table:
    """Some thousand flights; the right answer is of these alone."""
    some = data.read_flights().slice(0, SOME)
    monkeypatch.setattr(data, "read_flights", lambda: some)
    return some


@pytest.fixture
def make(kafka: str, tmp_path: Path) -> Iterator[Callable[[str], Job]]:
    """Makes the job of a form, on topics of its own; nothing of it runs afterwards."""
    made: list[Job] = []

    def of(form: str) -> Job:
        given = load(str(file_of(form)))
        kinds = ("task.", "stores.", "cluster-m", "systems.kafka.streams.", "serializers.")
        keys = {_own(k): _own(v) for k, v in given.items() if k.startswith(kinds)}
        keys |= {
            "stores.counts.factory": "in-memory",  # of other tests
            "stores.counts.changelog": "",
            "task.class": given.get("task.class", ""),
        }
        if form == ALONE:
            keys["task.pipeline.output"] = "kafka.<job>-out"
        else:
            keys["stores.summaries.changelog"] = "kafka.<job>-changelog"
            keys["stores.skipped.changelog"] = ""
        also = {} if form == ALONE else {PLANES: PARTITIONS, AIRPORTS: 1, AIRLINES: 1}
        job = make_job(kafka, tmp_path, "", keys, also, policy="delete")
        made.append(job)
        for file in [FOLDER / "app.py", *(FOLDER / "package").iterdir()]:
            if file.is_file():
                text = file.read_text(encoding="utf-8").replace("FROM flights", "FROM input")
                text = text.replace('"plane-summary"', f'"{job.topic("out")}"')
                text = text.replace('input("flights"', f'input("{job.topic("in")}"')
                (job.folder / "package" / file.name).write_text(text, encoding="utf-8")
        return job

    yield of
    for job in made:
        job.close()


def _own(text: str) -> str:
    names = {"flights": "in", "plane-summary": "out"}
    for topic in (*names, PLANES, AIRPORTS, AIRLINES):
        own = f"<job>-{names.get(topic, topic)}"
        text = re.sub(rf"(kafka\.(?:streams\.)?){topic}\b", rf"\g<1>{own}", text)
    return text


def _write(job: Job, rows: Sequence[Row]) -> None:
    for (topic, headers), group in groupby(rows, key=lambda row: (row.topic, row.headers)):
        records = []
        for row in group:
            key, value = (None if part is None else part.encode() for part in (row.key, row.value))
            partition = partition_of(key, PARTITIONS) if topic == PLANES else 0
            records.append((partition, key, value))
        job.produce(records, topic, [(name, text.encode()) for name, text in headers.items()])


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
def test_each_form_has_the_same_exact_table(
    make: Callable[[str], Job], some_flights: pa.Table, form: str
) -> None:
    """What was under way at the kill is not there twice; each key lies where Java would put it.

    Each output has the names of its plane, airport and airline; the airline's are new after the
    kill, and old before.
    """
    job = make(form)
    records: list[tuple[int, bytes | None, bytes | None]] = []
    for flight in data.records(some_flights):
        key = None if flight["tailnum"] is None else flight["tailnum"].encode()
        value = json.dumps(flight, separators=(",", ":")).encode()
        records.append((partition_of(key, PARTITIONS), key, value))
    if form != ALONE:
        _write(job, [*plane_records(), *airport_records(), *airline_records(1)])
    first = job.start(1)
    job.produce(records[: SOME // 2])
    job.until(lambda: job.processed() > 0, first)
    if form != ALONE:
        _write(job, airline_records(2))
    job.produce(records[SOME // 2 :])
    first.stop(signal.SIGKILL)
    second = job.start(2, fence=[1])
    job.until(lambda: job.processed() == SOME, second)
    assert second.stop() == 143
    messages = job.messages(job.topic("out"))
    assert all(partition_of(m.key(), PARTITIONS) == m.partition() for m in messages)
    values = [json.loads(m.value() or b"") for m in messages]
    if form == ALONE:
        assert data.added_up(values) == data.expected_summaries()
        return
    outputs = [(m.partition() or 0, value) for m, value in zip(messages, values, strict=True)]
    judged = judge(outputs, reference())
    assert judged.summaries == data.expected_summaries()
    assert all(held for _, held in judged.verdicts()), judged
