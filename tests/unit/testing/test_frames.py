"""Rows of frames as records, outputs as frames, and what a notebook shows of a runner."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from homeport import IncomingMessage, Job, TaskContext
from homeport.testing import Record, TestRunner, TestRunnerError
from homeport.testing.frames import frame_of
from tests.unit.testing.counting_job import Count, config, task_of

KEYS = {
    "task.inputs": "kafka.in",
    "systems.kafka.samza.key.serde": "string",
    "systems.kafka.samza.msg.serde": "json",
}
AT_MS = 1_700_000_000_250


def _echo() -> TestRunner:
    def process(message: IncomingMessage, context: TaskContext) -> None:
        context.send("out", message.value, message.key, timestamp=message.timestamp)

    return TestRunner(KEYS, task=task_of(process), partitions=2)  # type: ignore[arg-type]  # a context is a collector


def test_a_row_is_a_record() -> None:
    """Keys of a column; the others are the value; NaN and NaT are None."""
    frame = pd.DataFrame({"name": ["a", "b"], "miles": [1.5, float("nan")], "at": [pd.NaT] * 2})
    with _echo() as runner:
        assert runner.send_frame("in", frame, key="name") == 2
        assert runner.send_frame("in", frame.iloc[:0]) == 0
        runner.run()
        found = sorted((record.key, record.value) for record in runner.output("out"))
    assert found == [
        ("a", {"name": "a", "miles": 1.5, "at": None}),
        ("b", {"name": "b", "miles": None, "at": None}),
    ]


@pytest.mark.parametrize("time", [AT_MS, datetime.fromtimestamp(AT_MS / 1000, UTC)])
def test_columns_of_a_records_own_names_are_its_parts(time: object) -> None:
    """In Arrow as in pandas; times without a zone are in UTC."""
    rows = {"key": ["a", None], "value": [[1], {"x": 2}], "partition": [1, 0], "timestamp": time}
    table = pa.table({"key": ["a"], "value": [5], "timestamp": [time]})
    naive = datetime.fromtimestamp(AT_MS / 1000, UTC).replace(tzinfo=None)
    batch = pa.record_batch({"n": [7], "timestamp": [naive]})
    with _echo() as runner:
        runner.send_frame("in", pd.DataFrame(rows))
        runner.send_frame("in", table)
        runner.send_frame("in", batch)
        runner.run()
        sent = [(r.key, r.value, r.timestamp) for r in runner.output("in")]
        assert [r.partition for r in runner.output("in")][:2] == [1, 0]
    values = [("a", [1]), (None, {"x": 2}), ("a", 5), (None, {"n": 7})]
    assert sent == [(key, value, AT_MS) for key, value in values]


def test_a_column_of_numbers_may_lack_some() -> None:
    """Pandas then has floats of all of them."""
    rows = {"key": ["a", "b"], "partition": [1, None], "timestamp": [AT_MS, None]}
    with _echo() as runner:
        runner.send_frame("in", pd.DataFrame(rows))
        first, _ = sorted(runner.output("in"), key=lambda record: str(record.key))
    assert (first.partition, first.timestamp) == (1, AT_MS)


def test_a_column_key_is_a_field_where_another_has_the_keys() -> None:
    """It would be lost."""
    frame = pd.DataFrame({"name": ["a"], "key": [7]})
    with _echo() as runner:
        runner.send_frame("in", frame, key="name")
        assert runner.output("in")[0] == Record("a", {"name": "a", "key": 7})


def test_what_is_no_frame_is_refused_in_one_line() -> None:
    """Before anything is sent."""
    with _echo() as runner:
        with pytest.raises(
            TestRunnerError, match="give a pandas DataFrame or an Arrow table, not list"
        ):
            runner.send_frame("in", [{"a": 1}])
        for frame in (pd.DataFrame({"a": [1], 5: [2]}), pa.table({"a": [1], "5": [2]})):
            with pytest.raises(TestRunnerError, match="the frame has no column 'b': it has a, 5"):
                runner.send_frame("in", frame, key="b")
        assert runner.output("in") == []


def test_outputs_are_a_frame() -> None:
    """Fields of dicts are columns, beside those of the record; other values are one column."""
    with _echo() as runner:
        assert list(runner.frame("out").columns) == [
            *("key", "value", "partition", "offset", "timestamp")
        ]
        for value in ({"n": 1, "offset": 9}, {"m": "x"}):
            runner.send("in", key="a", value=value, partition=0, timestamp=AT_MS)
        runner.run()
        frame = runner.frame("out")
        records = runner.output("out")
    assert list(frame.columns) == [
        *("key", "n", "value.offset", "m", "partition", "offset", "timestamp")
    ]
    assert frame["m"].tolist() == [None, "x"]
    assert frame["value.offset"].tolist()[0] == 9
    assert frame["timestamp"].tolist()[0] == pd.Timestamp(AT_MS, unit="ms", tz="UTC")
    mixed = [replace(records[0], value=7), records[1]]
    assert frame_of(mixed)["value"].tolist() == [7, {"m": "x"}]


def test_a_runner_shows_what_its_topics_have() -> None:
    """No changelog and no checkpoint; also before it starts, and after its end."""
    runner = TestRunner(config(), task=Count)
    assert repr(runner).startswith("TestRunner of test: it has not been started: use it in a with")
    with runner:
        assert repr(runner) == "TestRunner of test: it runs\n  kafka.in: no records"
        runner.send("kafka.in", key="a", value={"n": 1})
        runner.run()
        assert repr(runner).splitlines()[1:] == [
            "  kafka.in: 1 record, 'a': {'n': 1}",
            "  kafka.out: 1 record, b'a': b'1'",
        ]
        runner.send("kafka.in", key="b", value={"n": 2, "text": "x" * 100})
        assert "  kafka.in: 2 records, the last 'b': {'n': 2, 'text': 'xxx" in repr(runner)
    assert repr(runner).startswith("TestRunner of test: it is closed\n")


def test_a_runner_shows_that_a_record_cannot_be_read() -> None:
    """A view of the runner fails nothing."""

    def process(_: IncomingMessage, context: TaskContext) -> None:
        context.send("out", b"{bad")

    with TestRunner(KEYS, task=task_of(process)) as runner:  # type: ignore[arg-type]  # as above
        runner.send("in", key="a", value={})
        runner.run()
        assert repr(runner).endswith("kafka.out: they cannot be read: WireError: not JSON: b'{bad'")


@pytest.mark.parametrize("calls", ["1", "2"])
@pytest.mark.parametrize("factory", ["in-memory", "rocksdb"])
def test_a_store_shows_its_types_and_first_pairs(factory: str, calls: str) -> None:
    """What a task sees, too; one that is closed says so, and fails nothing."""
    seen: list[str] = []

    class Seeing(Count):
        def window(self, *_: object) -> None:
            seen.append(repr(self.counts))

    keys = config(factory, task__max__concurrency=calls, task__window__ms=10)
    with TestRunner(keys, task=Seeing) as runner:
        store = runner.store("counts")
        assert repr(store) == "<store of string and long: {}>"
        for number in range(11):
            runner.send("kafka.in", key=f"k{number:02}", value={"n": number})
            runner.run()
            if number == 1:
                assert repr(store) == "<store of string and long: {'k00': 0, 'k01': 1}>"
        runner.advance(10)
        assert seen == [repr(store)]
        assert repr(store).endswith("'k08': 8, 'k09': 9, ...}>")
    assert repr(store).startswith("<store of string and long: ")


def test_a_runner_without_a_with_ends_by_close(tmp_path: Path) -> None:
    """Its folder is gone; one that the test gave stays."""
    job = Job("open")
    source = job.input("in", key=str, value=str)
    job.each(source)(lambda _key, _value: None)
    runner = TestRunner(job).start()
    folder = runner._around.folder
    assert folder.is_dir()
    runner.close()
    assert not folder.exists()
    with pytest.raises(Exception, match="the container does not run: it is closed"):
        runner.run()
    kept = TestRunner(job, folder=tmp_path / "kept").start()
    kept.close()
    assert (tmp_path / "kept").is_dir()
    left = weakref.ref(TestRunner(job).start())
    folder = left()._around.folder  # type: ignore[union-attr]  # a cycle keeps it
    gc.collect()
    assert left() is None
    assert not folder.exists()
