"""What Kafka refuses, a TestRunner refuses in Kafka's line; what Kafka takes, it takes.

The real part is `tests/integration/test_runner_as_kafka.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from homeport.config.errors import HomeportError
from homeport.container.api import StreamTask
from homeport.container.callables import TaskFailedError
from homeport.testing import TestRunner, TestRunnerError
from tests.unit.testing.counting_job import task_of

CONFIG = {"task.inputs": "kafka.in"}
FAULT = "TransactionError: "
AT_ONCE = "the transaction of its input is not committed"
TOGETHER = "nothing of the transaction was committed"
LARGE = {"systems.kafka.producer.max.request.size": "5000000"}


def _sends(*arguments: Any, **options: Any) -> type[StreamTask]:  # noqa: ANN401 - of send
    return task_of(lambda _, collector: collector.send(*arguments, **options))


def _refused(
    task: type[StreamTask], topics: Mapping[str, Mapping[str, str]] | None = None, **keys: str
) -> str:
    given = {**CONFIG, **{name.replace("__", "."): value for name, value in keys.items()}}
    with TestRunner(given, task=task, partitions=3, topics=topics) as runner:
        runner.send_bytes("kafka.in", value=b"v", partition=0)
        with pytest.raises(HomeportError) as error:
            runner.run()
        for name in ("kafka.out", "kafka.absent"):
            assert runner.output(name, committed=False) == []
    return str(error.value)


def test_a_send_that_is_refused_names_task_record_and_stream() -> None:
    """The kinds are `tests/unit/container/processing/test_record_rules.py`."""
    printed = _refused(_sends("kafka.out", b"v", b"ann", partition=7))
    assert printed == (
        "task 'Partition 0' failed in process of in partition 0 offset 0: ValueError: a record for "
        "kafka.out with key b'ann': it has no partition 7: the topic has partitions 0 to 2"
    )


def test_a_header_without_a_value_goes_through() -> None:
    """Kafka has them; forwarded headers are as they came."""
    task = task_of(lambda m, collector: collector.send("kafka.out", b"v", headers=m.headers))
    with TestRunner(CONFIG, task=task) as runner:
        runner.send_bytes("kafka.in", value=b"v", headers={"trace": None, "a": b""})
        runner.run()
        assert runner.output("kafka.out")[0].headers == {"trace": None, "a": b""}


@pytest.mark.parametrize("exactly_once", ["true", "false"])
@pytest.mark.parametrize(
    ("settings", "task", "what"),
    [
        (
            {"max.message.bytes": "1000"},
            lambda: _sends("kafka.out", b"v" * 1000),
            "a record of 1000 bytes exceeds the limit of 1000 bytes;",
        ),
        (
            {"cleanup.policy": "compact"},
            lambda: _sends("kafka.out", b"v"),
            "a record has no key, and the topic is compacted: give it a key",
        ),
        (
            {"message.timestamp.before.max.ms": "5"},
            lambda: _sends("kafka.out", b"v", timestamp=7),
            "a record has timestamp 7, and the topic takes none that is more than 5 ms before",
        ),
        (
            {},
            lambda: _sends("kafka.out", b"v", timestamp=2**62),
            f"a record has timestamp {2**62}, and the topic takes none that is more than",
        ),
    ],
    ids=["too large", "no key", "too old", "too new"],
)
def test_what_its_topic_does_not_take_is_named(
    exactly_once: str, settings: Mapping[str, str], task: Callable[[], type[StreamTask]], what: str
) -> None:
    """Outputs that leave at once are looked at as those of a transaction."""
    printed = _refused(task(), {"kafka.out": settings}, task__exactly__once=exactly_once, **LARGE)
    assert printed.startswith(f"output stream out: {what}")
    assert printed.endswith(AT_ONCE if exactly_once == "false" else TOGETHER)


@pytest.mark.parametrize(
    ("exactly_once", "end"), [("true", "the transaction was aborted"), ("false", AT_ONCE)]
)
@pytest.mark.parametrize("partition", [None, 0])
def test_a_topic_that_is_not_there_is_named(
    exactly_once: str, end: str, partition: int | None
) -> None:
    """Where the test says which ones there are; else each is made."""
    task = _sends("kafka.absent", b"v", partition=partition)
    printed = _refused(task, {"kafka.out": {}}, task__exactly__once=exactly_once)
    made = "create it, or name it in task.outputs and set task.outputs.create.partitions"
    line = f"no such topic in Kafka: 'absent'; {made}, or correct its name"
    at_the_call = f"task 'Partition 0' failed in process of in partition 0 offset 0: {FAULT}{line}"
    assert printed == (f"{line}; {end}" if partition is None else at_the_call)
    with TestRunner(CONFIG, task=task) as runner:
        runner.send_bytes("kafka.in", value=b"v")
        runner.run()
        assert len(runner.output("kafka.absent")) == 1


def test_a_topic_that_stamps_records_has_the_time_of_its_clock() -> None:
    """Whatever the task says."""
    topics = {"kafka.out": {"message.timestamp.type": "LogAppendTime"}}
    with TestRunner(CONFIG, task=_sends("kafka.out", b"v", timestamp=7), topics=topics) as runner:
        runner.send_bytes("kafka.in", value=b"v")
        runner.run()
        assert [record.timestamp for record in runner.output("kafka.out")] == [runner.now_ms]


def test_a_property_that_decides_nothing_is_refused() -> None:
    """A test would count on it."""
    with pytest.raises(
        HomeportError, match=r"topics: kafka\.out has 'retention\.ms', which has no"
    ):
        TestRunner(CONFIG, task=_sends("kafka.out"), topics={"kafka.out": {"retention.ms": "5"}})


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"headers": {"a": 5}}, "its header 'a' is an int"),
        ({"timestamp": 1.5}, "timestamp 1.5 is a float"),
        ({"partition": True}, "partition True is a bool"),
        ({"value": "text"}, "its value is a str: give bytes or None"),
        ({"key": 5}, "its key is an int: give bytes or None"),
    ],
)
def test_an_input_that_no_producer_could_send_is_refused(given: dict[str, Any], what: str) -> None:
    """A test of it would show what never comes."""
    with TestRunner(CONFIG, task=_sends("kafka.out", b"v"), partitions=3) as runner:
        with pytest.raises(TestRunnerError, match="a record for kafka") as error:
            runner.send_bytes("kafka.in", **{"value": b"v", **given})
        assert what in str(error.value)


def test_a_path_may_be_text(tmp_path: Path) -> None:
    """As a Path, or a mapping."""
    file = tmp_path / "job.properties"
    file.write_text("task.inputs=kafka.in\n", encoding="utf-8")
    for path in (str(file), file):
        with TestRunner(path, task=_sends("kafka.out", b"v")) as runner:
            runner.send_bytes("kafka.in", value=b"v")
            assert runner.run() == 1


DROPPING = {
    **CONFIG,
    "systems.kafka.samza.msg.serde": "json",
    "task.drop.deserialization.errors": "true",
    "task.dead.letter.stream": "kafka.dead",
}


def test_dead_letters_are_read_as_they_came() -> None:
    """Their stream has the serdes of its system, by which they cannot be read."""
    keys = {**DROPPING, "systems.kafka.samza.key.serde": "long"}
    with TestRunner(keys, task=_sends("kafka.out", {"a": 1})) as runner:
        runner.send_bytes("kafka.in", key=b"k", value=b"not json", headers={"h": None})
        runner.run()
        (letter,) = runner.output("kafka.dead")
        assert (letter.key, letter.value, letter.headers["h"]) == (b"k", b"not json", None)


def test_a_dead_letter_that_is_too_large_names_its_record() -> None:
    """The reason is one more header."""
    with TestRunner(DROPPING, task=_sends("kafka.out", {"a": 1})) as runner:
        runner.send_bytes("kafka.in", value=b"x" * 999_960)
        with pytest.raises(HomeportError) as error:
            runner.run()
        message = str(error.value)
        assert message.startswith("input kafka.in partition 0 offset 0: its value cannot be read")
        assert "its dead letter cannot be sent: a record for kafka.dead: it has 1000" in message
        assert not isinstance(error.value, TaskFailedError)
