"""``send_arrow`` sends what ``send`` of each element would, or refuses it as ``send`` does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from homeport import BatchTask, Job, TaskContext
from homeport.config.errors import HomeportError
from homeport.container.processing.task_instance import Outputs
from homeport.container.progress.transaction_plan import SendColumns
from homeport.container.serde.serdes import Serde, serde
from homeport.testing import Record, TestRunner

PAGE = Path(__file__).parents[4] / "docs" / "writing-tasks.md"
LIMIT = 1000

Serdes = tuple[Serde | None, Serde | None]


def outputs_of(serdes: Serdes = (None, None)) -> Outputs:
    """As of a container whose client sends records of ``LIMIT`` bytes."""
    return Outputs(
        {"kafka"}, {"kafka"}, "kafka", lambda *_: serdes, limits={"kafka": LIMIT, "other": 10}
    )


STRING, LONG, DOUBLE, INTEGER = (serde(name) for name in ("string", "long", "double", "integer"))
Elements = list[Any]
CASES: list[tuple[Serdes, Elements, Elements | None]] = [
    ((None, None), [b"a", b"", None], [b"k", None, b""]),
    ((None, None), [b"a", None], None),
    ((STRING, LONG), [1, None, -(2**63)], ["ü", None, ""]),
    ((INTEGER, DOUBLE), [0.5, None], [7, 8]),
    ((STRING, None), [b"raw"], [b"also raw"]),
]
"""(serdes, values, keys)"""


@pytest.mark.parametrize(("serdes", "values", "keys"), CASES)
def test_it_sends_what_send_of_each_sends(
    serdes: Serdes, values: Elements, keys: Elements | None
) -> None:
    """Whole, as a slice, in chunks; the size and the order among other records too."""
    each, arrow = outputs_of(serdes), outputs_of(serdes)
    columns = pa.array(values), None if keys is None else pa.array(keys)
    chunked = [None if c is None else pa.chunked_array([c[:1], c[1:]]) for c in columns]
    sliced = [None if c is None else pa.concat_arrays([c[:1], c])[1:] for c in columns]
    for outputs in (each, arrow):
        outputs.send("out", b"before")
    for given in (columns, chunked, sliced):
        arrow.send_arrow("kafka.out", *given)
        for value, key in zip(values, keys or [None] * len(values), strict=True):
            each.send("out", value, key)
    for outputs in (each, arrow):
        outputs.send("out", b"behind")
    assert list(arrow.sends) == list(each.sends)
    assert arrow.size_bytes == each.size_bytes
    assert sum(isinstance(part, SendColumns) for part in arrow.sends.parts) == 3


def test_no_values_are_no_records() -> None:
    """An empty array leaves nothing, whatever its type."""
    outputs = outputs_of()
    outputs.send_arrow("out", pa.array([], pa.binary()), pa.array([], pa.null()))
    outputs.send_arrow("out", pa.chunked_array([], pa.large_binary()))
    assert (outputs.sends.parts, outputs.size_bytes) == ([], 0)


def test_binary_of_each_kind_and_null_need_no_serde() -> None:
    """Of fixed size, large, or all null."""
    outputs = outputs_of()
    fixed, large = pa.array([b"ab"], pa.binary(2)), pa.array([b"c"], pa.large_binary())
    outputs.send_arrow("out", fixed, large)
    outputs.send_arrow("out", pa.nulls(1), fixed)
    assert [(send.value, send.key) for send in outputs.sends] == [(b"ab", b"c"), (None, b"ab")]


REFUSED: list[tuple[Serdes, Elements, type[Exception], str]] = [
    (
        (None, None),
        ["out", pa.array([b"a"]), pa.array([b"a", b"b"])],
        ValueError,
        "send_arrow to out: 1 values, and 2 keys: give a key for each, null where there is none",
    ),
    (
        (None, None),
        ["out", [b"a"]],
        TypeError,
        r"send_arrow to out takes arrays of Arrow, not list: give pa.array\(...\), or send each",
    ),
    (
        (None, serde("json")),
        ["out", pa.array(["a"])],
        TypeError,
        "send_arrow to out: the serde 'json' has no Arrow type: send each",
    ),
    (
        (None, None),
        ["out", pa.array(["a"]), pa.array([5])],
        TypeError,
        "not int64: set systems.kafka.streams.out.samza.key.serde and systems.kafka.streams.out",
    ),
    ((None, None), [["out"], pa.array([b"a"])], TypeError, "give the stream's name as a str"),
    (
        (None, None),
        ["out", pa.array([b"a", b"b" * 999]), pa.array([b"j", b"k"])],
        ValueError,
        "a record for out with key b'k': it has 1000 bytes",
    ),
    ((None, STRING), ["out", pa.array([1])], TypeError, "'string' carries string, not int64"),
    ((None, LONG), ["out", pa.array([2**63], pa.uint64())], TypeError, "does not fit"),
    ((STRING, None), ["out", pa.array([b"a"]), pa.array([5])], TypeError, "'string' carries"),
]
"""(serdes, arguments, error, its text)"""


@pytest.mark.parametrize(("serdes", "arguments", "error", "text"), REFUSED)
def test_what_it_refuses_leaves_nothing(
    serdes: Serdes, arguments: Elements, error: type[Exception], text: str
) -> None:
    """In one line, with the remedy."""
    outputs = outputs_of(serdes)
    with pytest.raises(error, match=text) as caught:
        outputs.send_arrow(*arguments)
    assert "\n" not in str(caught.value)
    assert (outputs.sends.parts, outputs.size_bytes) == ([], 0)


def test_the_limit_is_that_of_the_own_system() -> None:
    """A record above another system's limit is sent."""
    outputs = outputs_of()
    outputs.send_arrow("out", pa.array([b"v" * 500]))
    assert outputs.size_bytes == 500


@pytest.mark.parametrize("exactly_once", ["true", "false"])
def test_the_example_of_the_page(exactly_once: str) -> None:
    """Its outputs are those of its words, with the transaction or without one."""
    (code,) = (
        code
        for code in re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
        if "send_arrow" in code
    )
    names: dict[str, Any] = {}
    exec(compile("from homeport import BatchTask\n" + code, PAGE.name, "exec"), names)  # noqa: S102 - the page's own
    job = Job("copies", keys={"task.exactly.once": exactly_once})
    job.input("words")
    job.output("upper", value=str)
    job.task(names["Upper"])
    with TestRunner(job) as runner:
        for word in ("ann", "bob"):
            runner.send("words", key=word.encode(), value=word.encode())
        runner.run()
        assert runner.output("upper") == [Record(b"ann", "ANN"), Record(b"bob", "BOB")]


def test_a_handle_sends_columns() -> None:
    """Keys first, as its ``send``; of a function of batches."""
    job = Job("totals")
    source, totals = job.input("numbers"), job.output("totals", key=bytes, value=int)

    @job.batch(source)
    def copy(table: pa.Table) -> None:
        totals.send_arrow(table["key"], pa.array(range(table.num_rows)))

    with TestRunner(job) as runner:
        for key in (b"a", b"b"):
            runner.send("numbers", key=key, value=b"")
        runner.run()
        assert sorted(record.value for record in runner.output("totals")) == [0, 1]


def test_init_cannot_send() -> None:
    """As ``send``."""

    class Early(BatchTask):
        def init(self, context: TaskContext) -> None:
            context.send_arrow("out", pa.array([b"a"]))

        def process_batch(self, table: pa.Table, context: TaskContext) -> None:
            raise NotImplementedError  # init fails before

    job = Job("early")
    job.input("numbers")
    job.task(Early)
    refused = pytest.raises(HomeportError, match="send to 'out': a task's init and close cannot")
    with refused, TestRunner(job):
        pass
