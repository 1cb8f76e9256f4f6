"""What of one output is refused at its send, in one line, and where partitioners place it."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from confluent_kafka import KafkaException, Producer

from homeport.container.processing.record_rules import require_bytes
from homeport.container.processing.task_instance import Outputs
from homeport.container.progress.topic_rules import CLIENT_OVERHEAD_BYTES, wire_size
from homeport.container.progress.transaction_plan import Send

LIMIT = 1_000


def _outputs(counts: Mapping[str, int] | None = None) -> Outputs:
    known = counts or {"out": 3}
    return Outputs(
        {"kafka"},
        {"kafka"},
        "kafka",
        count_of=lambda _system, topic: known[topic],
        limits={"kafka": LIMIT},
    )


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"partition": 3}, "it has no partition 3: the topic has partitions 0 to 2"),
    ({"partition": -1}, "it has no partition -1: the topic has partitions 0 to 2"),
    ({"partition": 2**40}, "it has no partition 1099511627776"),
    ({"partition": True}, "partition True is a bool: give an int, a function, or None"),
    ({"partition": 1.0}, "partition 1.0 is a float: give an int, a function, or None"),
    ({"partition": "1"}, "partition '1' is a str"),
    ({"partition": np.bool_(True)}, "is a bool: give an int"),  # noqa: FBT003 - NumPy's
    ({"timestamp": 1.7e12}, "timestamp 1700000000000.0 is a float: give ms since 1970 as an int"),
    ({"timestamp": True}, "timestamp True is a bool: give ms since 1970"),
    ({"timestamp": "5"}, "timestamp '5' is a str: give ms since 1970"),
    ({"timestamp": 0}, "timestamp 0: give ms since 1970, from 1 to 9223372036854775807"),
    ({"timestamp": -5}, "timestamp -5: give ms since 1970"),
    ({"timestamp": 2**63}, "timestamp 9223372036854775808: give ms since 1970"),
    ({"headers": {"a": 5}}, "its header 'a' is an int: give bytes or None"),
    ({"headers": {"a": bytearray(b"x")}}, "its header 'a' is a bytearray: give bytes or None"),
    ({"headers": {5: b"x"}}, "the name 5 of a header is an int: give a str"),
    ({"headers": {b"a": b"x"}}, "the name b'a' of a header is a bytes: give a str"),
    ({"headers": {"a\ud800": b"x"}}, "the name 'a\\ud800' of a header is no text of UTF-8"),
    (
        {"headers": {"n\0": b"x"}},
        "the name 'n\\x00' of a header has a null character: give another",
    ),
    ({"headers": {"a": "\ud800"}}, "its header 'a' is no text of UTF-8"),
    ({"headers": 5}, "its headers are an int"),
    ({"headers": "ab"}, "its headers are a str"),
    ({"headers": [("a", b"x"), ("a", 5)]}, "its header 'a' is an int: give bytes or None"),
    ({"headers": [("a", b"x", 5)]}, "one of its headers is a tuple: give (name, bytes or None)"),
    ({"headers": ["ab"]}, "one of its headers is a str: give (name, bytes or None)"),
    (
        {"value": b"x" * LIMIT},
        "it has 1001 bytes, with what the client adds 1037, and at most 1000",
    ),
    ({"value": None, "key": b"k" * LIMIT}, "it has 1000 bytes"),
    ({"headers": {"h": b"x" * LIMIT}}, "it has 1003 bytes"),
]


@pytest.mark.parametrize(("given", "what"), REFUSED, ids=[what for _, what in REFUSED])
def test_what_no_broker_takes_is_refused_in_one_line(given: dict[str, Any], what: str) -> None:
    """Stream and key are named, and nothing is kept of the record."""
    outputs = _outputs()
    options = {"value": b"v", "key": b"k", **given}
    with pytest.raises((TypeError, ValueError)) as refused:
        outputs.send("out", **options)
    message = str(refused.value)
    assert message.startswith("a record for out with key b'k")
    assert what in message
    assert "\n" not in message
    assert (list(outputs.sends), outputs.size_bytes) == ([], 0)


def test_what_the_client_takes_is_kept_as_it_goes() -> None:
    """Integers of other types become int, texts of headers bytes, a header may be null."""
    outputs = _outputs()
    outputs.send("out", None, partition=np.int64(2), timestamp=np.int64(7), headers={})  # type: ignore[arg-type]  # that is the case
    outputs.send("out", b"v", headers={"": None, "é": "ä", "n": b"\0"})  # type: ignore[dict-item]  # that is the case
    pairs = [("", None), ("é", "ä".encode()), ("n", b"\0")]
    assert list(outputs.sends) == [
        Send("out", None, None, 2, [], "kafka", 7),
        Send("out", None, b"v", None, pairs, "kafka", None),
    ]
    for time_ms in (1, 2**63 - 1):
        outputs.send("out", None, timestamp=time_ms)
        assert list(outputs.sends)[-1].timestamp_ms == time_ms
    first = next(iter(outputs.sends))
    assert {type(first.partition), type(first.timestamp_ms)} == {int}


@pytest.mark.parametrize("topic", ["a b", "", ".", "..", "é", "a\0", "\ud800", "x" * 250])
@pytest.mark.parametrize("system", ["", "kafka."])
def test_a_name_that_no_topic_can_have_is_refused(topic: str, system: str) -> None:
    """The client takes it, and says at the end of the transaction that it is unknown."""
    expected = re.escape(f"{system + topic!r}: {topic!r} cannot be the name of a Kafka topic")
    with pytest.raises(ValueError, match=expected):
        _outputs().send(system + topic, b"v")


def test_a_topic_that_has_grown_is_looked_at_again() -> None:
    """A partition beyond the known number may have come since; partitioners keep to it."""
    counts = {"out": 1}
    outputs = _outputs(counts)
    outputs.send("out", b"v", partition=0)
    counts["out"] = 3
    outputs.send("out", b"v", partition=2)
    with pytest.raises(ValueError, match="no partition 3: the topic has partitions 0 to 2"):
        outputs.send("out", b"v", partition=3)
    assert [send.partition for send in outputs.sends] == [0, 2]


def test_without_brokers_only_the_range_of_a_partition_is_open() -> None:
    """Benchmarks have no broker; a negative number is none anywhere."""
    outputs = Outputs({"kafka"}, {"kafka"}, "kafka")
    outputs.send("out", b"x" * 2 * LIMIT, partition=7)
    with pytest.raises(ValueError, match="no partition -1: partitions begin at 0"):
        outputs.send("out", b"v", partition=-1)


def test_a_long_key_is_cut_in_the_line() -> None:
    """The line stays short; a record without a key has none in it."""
    with pytest.raises(ValueError, match=r"with key b'k{38}\.\.\.: timestamp 0"):
        _outputs().send("out", b"v", b"k" * 500, timestamp=0)
    with pytest.raises(ValueError, match=r"^a record for out: timestamp 0"):
        _outputs().send("out", b"v", timestamp=0)


def test_the_size_is_the_clients_own() -> None:
    """At the border of its limit the library takes, or refuses, each record as the rule does."""
    client = Producer({"message.max.bytes": LIMIT, "log_level": 0})
    chosen = random.Random(5)  # noqa: S311 - no secret
    outcomes = set()
    for _ in range(300):
        key = chosen.choice([None, b"", b"k" * chosen.randrange(200)])
        names = ["n" * chosen.randrange(100) for _ in range(chosen.randrange(4))]
        headers = [(n, chosen.choice([None, b"", b"h" * chosen.randrange(200)])) for n in names]
        rest = LIMIT - CLIENT_OVERHEAD_BYTES - wire_size(key, None, headers)
        value = b"v" * max(0, rest + chosen.randrange(-2, 3))
        is_taken = wire_size(key, value, headers) + CLIENT_OVERHEAD_BYTES <= LIMIT
        try:
            client.produce("t", value, key, headers=headers)  # type: ignore[arg-type]  # null is taken
        except KafkaException:
            assert not is_taken
        else:
            assert is_taken
        outcomes.add(is_taken)
    client.purge()
    assert outcomes == {True, False}


def test_a_key_or_value_without_a_serde_is_bytes_or_null() -> None:
    """The line names the wrong one."""
    require_bytes("key", None)
    require_bytes("value", b"")
    with pytest.raises(TypeError, match="its key is a str: give bytes or None"):
        require_bytes("key", "x")


def _by_length(key: bytes | None, partitions: int) -> int:
    return len(key or b"") % partitions


def test_a_partitioner_gets_key_and_number_and_places_the_record() -> None:
    """One request for each topic, also where the task itself names the partition."""
    asked: list[tuple[str, str]] = []

    def count(system: str, topic: str) -> int:
        asked.append((system, topic))
        return 3

    outputs = Outputs({"kafka"}, {"kafka"}, "kafka", count_of=count)
    outputs.send("out", b"v", b"four", partition=_by_length)
    outputs.send("out", None, None, partition=_by_length, timestamp=5, headers={"h": b"x"})
    outputs.send("out", b"v", b"k", partition=2)
    assert list(outputs.take()) == [
        Send("out", b"four", b"v", 1, None, "kafka", None),
        Send("out", None, None, 0, [("h", b"x")], "kafka", 5),
        Send("out", b"k", b"v", 2, None, "kafka", None),
    ]
    assert asked == [("kafka", "out")]


@pytest.mark.parametrize("found", [3, -1, None, "1", True])
def test_a_partition_that_is_not_there_is_refused(found: object) -> None:
    """The line has the partitioner, the topic and the rule."""
    expected = f"gave {found!r} for kafka.out, which has 3 partitions: return an int from 0 to 2"
    with pytest.raises(ValueError, match=re.escape(expected)):
        _outputs().send("out", b"v", partition=lambda _key, _count: found)  # type: ignore[arg-type, return-value]  # that is the fault
