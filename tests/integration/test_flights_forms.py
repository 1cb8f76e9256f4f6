"""The flights job in its five forms, on a real broker, with a SIGKILL in the midst of each."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import data
import pyarrow as pa
import pytest
from stream_containers import Job, make_job

from homeport.config.loading.loader import load
from homeport.container.testing.partitioner import partition_of

FOLDER = Path(__file__).parents[2] / "examples" / "flights"
ALONE = "sql-alone"
FORMS = ("stream-task", "batch-task", "flights", "sql-and-task", ALONE)
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
        given = load(str(FOLDER / f"{form}.properties"))
        keys = {k: v for k, v in given.items() if k.startswith(("task.", "stores.", "cluster-m"))}
        keys |= {
            "stores.counts.factory": "in-memory",  # of other tests
            "stores.counts.changelog": "",
            "task.class": given.get("task.class", ""),
            "task.inputs": "kafka.<job>-in",
            "systems.kafka.streams.<job>-in.samza.msg.serde": given.get(
                "systems.kafka.streams.flights.samza.msg.serde", ""
            ),
        }
        if form == ALONE:
            keys["task.pipeline.output"] = "kafka.<job>-out"
        else:
            keys["stores.planes.changelog"] = "kafka.<job>-changelog"
            keys["stores.skipped.changelog"] = ""
        job = make_job(kafka, tmp_path, "", keys)
        made.append(job)
        for file in (FOLDER / "package").iterdir():
            if file.is_file():
                text = file.read_text(encoding="utf-8").replace("FROM flights", "FROM input")
                text = text.replace('"plane-summary"', f'"{job.topic("out")}"')
                (job.folder / "package" / file.name).write_text(text, encoding="utf-8")
        return job

    yield of
    for job in made:
        job.close()


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
def test_each_form_has_the_same_exact_table(
    make: Callable[[str], Job], some_flights: pa.Table, form: str
) -> None:
    """What was under way at the kill is not there twice; each key lies where Java would put it."""
    job = make(form)
    records: list[tuple[int, bytes | None, bytes | None]] = []
    for flight in data.records(some_flights):
        key = None if flight["tailnum"] is None else flight["tailnum"].encode()
        value = json.dumps(flight, separators=(",", ":")).encode()
        records.append((partition_of(key, PARTITIONS), key, value))
    first = job.start(1)
    job.produce(records[: SOME // 2])
    job.until(lambda: job.processed() > 0, first)
    job.produce(records[SOME // 2 :])
    first.stop(signal.SIGKILL)
    second = job.start(2, fence=[1])
    job.until(lambda: job.processed() == SOME, second)
    assert second.stop() == 143
    messages = job.messages(job.topic("out"))
    assert all(partition_of(m.key(), PARTITIONS) == m.partition() for m in messages)
    values = [json.loads(m.value() or b"") for m in messages]
    found = data.added_up(values) if form == ALONE else {v["tailnum"]: v for v in values}
    assert found == data.expected_summaries()
