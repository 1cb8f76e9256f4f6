"""Inputs with a schema: columns for a BatchTask, dicts for a StreamTask; bad records."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from homeport.config.errors import ConfigError
from homeport.container.api import BatchTask, MessageCollector
from homeport.container.processing.records import UndecodableError
from homeport.testing import Record, TestRunner
from tests.unit.testing.counting_job import feed, task_of

DROP = {
    "task.drop.deserialization.errors": "true",
    "task.dead.letter.stream": "kafka.bad",
    "systems.kafka.streams.bad.samza.msg.serde": "bytes",
}
SEEN: list[pa.Table] = []


def config(**more: str) -> dict[str, str]:
    """The job's, dots written as underscores in the names of further keys."""
    return {
        "task.inputs": "kafka.in",
        "systems.kafka.streams.in.samza.msg.serde": "flights",
        "systems.kafka.streams.in.samza.key.serde": "string",
        "serializers.registry.flights.class": "json",
        "serializers.registry.flights.schema": "carrier STRING, delay INT",
        **{key.replace("_", "."): value for key, value in more.items()},
    }


class _Delays(BatchTask):
    """Sends the sum of the delays of each batch; keeps the tables."""

    def process_batch(self, table: pa.Table, collector: MessageCollector) -> None:
        SEEN.append(table)
        delays = table.column("value").combine_chunks().field("delay")
        collector.send("sums", str(delays.sum().as_py()).encode())


_Each = task_of(lambda m, to: to.send("texts", repr(m.value).encode(), (m.key or "").encode()))
"""Sends each value as its text."""


@pytest.fixture(autouse=True)
def _seen() -> None:
    SEEN.clear()


def test_a_batch_task_gets_columns_and_all_else_as_before() -> None:
    """Null stays null; keys, offsets and headers are as they were."""
    with TestRunner(config(), task=_Delays) as runner:
        runner.send("kafka.in", key="a", value={"carrier": "UA", "delay": 3}, headers={"h": b"x"})
        runner.send("kafka.in", key=None, value=None)
        runner.send_bytes("kafka.in", key=b"c", value=b'{"delay": 4,\n "more": [1]}\n')
        assert runner.run() == 3
        assert runner.output("kafka.sums") == [Record(None, b"7")]
    (table,) = SEEN
    values = [{"carrier": "UA", "delay": 3}, None, {"carrier": None, "delay": 4}]
    assert table.column("value").to_pylist() == values
    assert table.column("key").to_pylist() == [b"a", None, b"c"]
    assert table.column("offset").to_pylist() == [0, 1, 2]
    assert table.column("headers").to_pylist()[0] == [("h", b"x")]


def test_a_bad_record_ends_the_container_with_its_place_and_reason() -> None:
    """Nothing of its transaction is committed."""
    with TestRunner(config(), task=_Delays) as runner:
        runner.send("kafka.in", key="a", value={"delay": 3})
        runner.send_bytes("kafka.in", key=b"b", value=b'{"delay": "3"}')
        expected = (
            "input kafka.in partition 0 offset 1: its value cannot be read by the serde 'json': "
            "Expected `int | null`, got `str` - at `$.delay`; correct its writer, or set "
            "task.drop.deserialization.errors=true to skip such records"
        )
        with pytest.raises(UndecodableError, match=re.escape(expected)):
            runner.run()
        assert runner.output("kafka.sums") == []
        assert runner.checkpoint() == {"kafka.in.0": -1}


@pytest.mark.parametrize("exactly_once", ["true", "false"])
def test_bad_records_are_dropped_sent_away_and_the_good_ones_count(exactly_once: str) -> None:
    """Each goes raw to the dead letters; the checkpoint is behind them."""
    job = config(task_exactly_once=exactly_once) | DROP
    with TestRunner(job, task=_Delays, partitions=1) as runner:
        for n in range(2500):
            value = b'{"delay": %d}' % n if n % 500 else b"bad %d" % n
            runner.send_bytes("kafka.in", key=b"k", value=value, headers={"own": b"h"})
        runner.run()
        bad = runner.output("kafka.bad")
        assert [r.value for r in bad] == [b"bad %d" % n for n in range(0, 2500, 500)]
        assert [r.key for r in bad] == [b"k"] * 5
        assert bad[1].headers["own"] == b"h"
        assert bad[1].headers["homeport.source.offset"] == b"500"
        reason = bad[1].headers["homeport.reason"] or b""
        assert reason.startswith(b"its value cannot be read by")
        good = sum(n for n in range(2500) if n % 500)
        assert sum(int(r.value) for r in runner.output("kafka.sums")) == good
        assert runner.checkpoint() == {"kafka.in.0": 2499}


@pytest.mark.parametrize("exactly_once", ["true", "false"])
def test_a_batch_of_bad_records_alone_moves_the_position(exactly_once: str) -> None:
    """The task sees no rows, and the next incarnation does not read them again."""
    job = config(task_exactly_once=exactly_once) | DROP
    with TestRunner(job, task=_Delays) as runner:
        for n in range(3):
            runner.send_bytes("kafka.in", value=b"bad %d" % n)
        assert runner.run() == 3
        assert runner.checkpoint() == {"kafka.in.0": 2}
        assert len(runner.output("kafka.bad")) == 3
        runner.crash()
        runner.restart()
        assert runner.run() == 0
        assert len(runner.output("kafka.bad")) == 3
        feed(runner, value={"delay": 1})
        assert runner.output("kafka.sums") == [Record(None, b"1")]
    assert [table.num_rows for table in SEEN] == [1]


def test_a_crash_anywhere_counts_good_and_bad_records_once() -> None:
    """Before each step of the commit, with the dead letters in the transaction."""
    with TestRunner(config() | DROP, task=_Delays) as runner:
        steps = runner.commit_steps
        for number, step in enumerate(steps, start=1):
            runner.send("kafka.in", value={"delay": 1})
            runner.send_bytes("kafka.in", value=b"bad")
            runner.crash_before(step)
            runner.restart()
            runner.run()
            assert len(runner.output("kafka.bad")) == number
            assert sum(int(r.value) for r in runner.output("kafka.sums")) == number


def test_a_stream_task_gets_a_dict_with_every_field() -> None:
    """Of the declared type, missing ones None; bad ones by the same rules."""
    with TestRunner(config() | DROP, task=_Each) as runner:
        runner.send("kafka.in", key="a", value={"carrier": "UA", "delay": 3})
        runner.send_bytes("kafka.in", key=b"b", value=b'{"carrier": 5}')
        runner.send_bytes("kafka.in", key=b"c", value=b'{"more": 5}')
        feed(runner, key="d", value=None)
        assert runner.output("kafka.texts") == [
            Record(b"a", b"{'carrier': 'UA', 'delay': 3}"),
            Record(b"c", b"{'carrier': None, 'delay': None}"),
            Record(b"d", b"None"),
        ]
        assert [r.key for r in runner.output("kafka.bad")] == [b"b"]


_Objects = task_of(lambda message, to: to.send("out", message.value, message.key))


def test_an_output_is_encoded_by_the_serdes_of_its_stream() -> None:
    """Bytes and None are sent as they are; an object without a serde is an error of the task."""
    job = config() | {
        "systems.kafka.streams.out.samza.msg.serde": "flights",
        "systems.kafka.streams.out.samza.key.serde": "string",
    }
    with TestRunner(job, task=_Objects) as runner:
        runner.send("kafka.in", key="a", value={"carrier": "UA"})
        feed(runner, key="a", value=None)
        value = {"carrier": "UA", "delay": None}
        assert runner.output("kafka.out") == [Record("a", value), Record("a", None)]
    with TestRunner(config(), task=_Objects) as runner:
        runner.send("kafka.in", key="a", value={})
        with pytest.raises(Exception, match="TypeError: a record for out must have bytes or None"):
            runner.run()


ENTRY = "serializers.registry.flights"


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (
            {f"{ENTRY}.schema": "carrier STRNG"},
            f"{ENTRY}.schema = 'carrier STRNG': it is no schema: 'STRNG' is no type: write string",
        ),
        (
            {f"{ENTRY}.schema": "", f"{ENTRY}.schema.file": "none.ddl"},
            f"{ENTRY}.schema.file = 'none.ddl': there is no such file in the job's package",
        ),
        (
            {f"{ENTRY}.class": "avro", f"{ENTRY}.schema": '["int", "string"]'},
            (
                f'{ENTRY}.schema = \'["int", "string"]\': a pipeline or BatchTask needs columns: a '
                "union of 2 types is no column"
            ),
        ),
        (
            {"task.inputs": "kafka.in,kafka.raw"},
            (
                "kafka.streams.raw.samza.msg.serde is missing: a BatchTask gets "
                "the values of all inputs in one column, and those of in have the serde 'flights'; "
                "give all inputs the same serde, or none a schema"
            ),
        ),
    ],
)
def test_a_bad_schema_is_refused_in_one_line(more: dict[str, str], expected: str) -> None:
    """With the key that has it."""
    with pytest.raises(ConfigError) as caught, TestRunner(config() | more, task=_Delays):
        pass
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_stream_task_may_read_inputs_of_different_serdes() -> None:
    """Each message is decoded by its own stream's."""
    with TestRunner(config(task_inputs="kafka.in,kafka.raw"), task=_Each) as runner:
        runner.send("kafka.in", key="a", value={"delay": 1})
        feed(runner, "kafka.raw", value=b"raw")
        texts = {record.value for record in runner.output("kafka.texts")}
        assert texts == {b"{'carrier': None, 'delay': 1}", b"b'raw'"}


def test_a_schema_may_be_a_file_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the job's modules are."""
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "flight.ddl").write_text("delay\n BIGINT", encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    entry = {f"{ENTRY}.schema": "", f"{ENTRY}.schema.file": "schemas/flight.ddl"}
    with TestRunner(config() | entry, task=_Delays) as runner:
        feed(runner, value={"delay": 2**40})
        assert runner.output("kafka.sums") == [Record(None, b"%d" % 2**40)]
