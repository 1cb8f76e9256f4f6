"""Records put natively are the same as those that the client's own calls put."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing

import pyarrow as pa
import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from mock_cluster import MockCluster, mock_cluster

from homeport.container.native import bulk_producer as module
from homeport.container.native import library, record_queue
from homeport.container.native.bulk_producer import Bulk, BulkProducer, EachProducer, bulk_producer
from homeport.container.native.library import NoLibraryError
from homeport.container.progress.transaction_plan import SendColumns, SendPairs

PARTITIONS = 4
"""Of a topic that a record creates."""
DEADLINE_S = 30.0
KINDS: list[Callable[[Producer], Bulk]] = [BulkProducer, EachProducer]

Row = tuple[int, bytes | None, bytes | None]


@pytest.fixture(scope="module")
def cluster() -> Iterator[MockCluster]:
    """A broker of librdkafka in this process."""
    with mock_cluster() as made:
        yield made


def client_of(cluster: MockCluster, **more: object) -> Producer:
    """As the container's: the partitioner is that of Java."""
    own = {"bootstrap.servers": cluster.servers, "partitioner": "murmur2_random", **more}
    return Producer({name.replace("_", "."): value for name, value in own.items()})


Elements = Sequence[bytes | None]


def pairs_of(
    topic: str, keys: Elements, values: Elements, partition: int | None = None
) -> SendPairs:
    """The records as objects."""
    pairs = SendPairs(topic, None, partition)
    for pair in zip(keys, values, strict=True):
        pairs.flat += pair
    return pairs


def rows_of(cluster: MockCluster, topic: str, count: int) -> list[Row]:
    """The records of the topic, by partition and in their order there."""
    own = {"bootstrap.servers": cluster.servers, "group.id": "g"}
    with closing(Consumer(own)) as reader:
        reader.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(PARTITIONS)])
        found: list[Row] = []
        while len(found) < count:
            messages = reader.consume(count - len(found), DEADLINE_S)
            assert messages
            for message in messages:
                assert message.error() is None
                found.append((message.partition() or 0, message.key(), message.value()))
    return sorted(found, key=lambda row: row[0])


def test_both_kinds_send_the_same_records(cluster: MockCluster) -> None:
    """Null and empty keys and values, more than one part, of any partition and of one."""
    count = 2 * module._ROWS + 7
    keys = [None if i % 5 == 4 else b"" if i % 7 == 6 else b"key%d" % i for i in range(count)]
    values = [None if i % 3 == 2 else b"\0" * (i % 50) for i in range(count)]
    keyed = [(key, value) for key, value in zip(keys, values, strict=True) if key]
    found = []
    for kind in KINDS:
        client, name = client_of(cluster), f"same-{kind.__name__}"
        bulk = kind(client)
        chosen = pairs_of(name, [k for k, _ in keyed], [v for _, v in keyed])
        assert bulk.produce(chosen, 0) == len(keyed)
        assert bulk.produce(pairs_of(f"{name}-one", keys, values, 2), 0) == count
        assert client.flush(DEADLINE_S) == 0
        one = rows_of(cluster, f"{name}-one", count)
        assert one == [(2, key, value) for key, value in zip(keys, values, strict=True)]
        found.append(rows_of(cluster, name, len(keyed)))
    assert found[0] == found[1]
    assert {partition for partition, *_ in found[0]} == set(range(PARTITIONS))


def columns_of(topic: str, keys: pa.Array | None, values: pa.Array) -> SendColumns:
    """The records as columns."""
    return SendColumns(topic, None, keys, values)


def test_both_kinds_send_the_same_columns(cluster: MockCluster) -> None:
    """Null and empty elements, slices, no keys at all, no records; from any place on."""
    count = 2 * module._ROWS + 9
    elements = [None if i % 5 == 4 else b"v%d" % i * (i % 3) for i in range(count)]
    values = pa.array(elements, pa.large_binary())
    keys = pa.array([b"key%d" % i for i in range(count)], pa.large_binary())
    for kind in KINDS:
        client, name = client_of(cluster, linger_ms=0), f"columns-{kind.__name__}"
        bulk = kind(client)
        assert bulk.produce(columns_of(name, keys[7:], values[2:-5]), 0) == count - 7
        assert bulk.produce(columns_of(name, None, values[:3]), 1) == 3
        assert bulk.produce(columns_of(name, None, values[:0]), 0) == 0
        assert client.flush(DEADLINE_S) == 0
    native, python = (
        sorted((k or b"", v or b"", k is None, v is None) for _, k, v in rows)
        for rows in (rows_of(cluster, f"columns-{kind.__name__}", count - 5) for kind in KINDS)
    )
    assert native == python
    assert len([row for row in native if row[2]]) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_queue_refuses_the_next_record(
    cluster: MockCluster, kind: Callable[[Producer], Bulk]
) -> None:
    """And none behind it: they would overtake it."""
    client = client_of(cluster, queue_buffering_max_messages=10, linger_ms=60_000)
    values: list[bytes | None] = [b"%d" % i for i in range(25)]
    topic = f"full-{kind.__name__}"
    bulk, records = kind(client), pairs_of(topic, values, values, 0)
    columns = columns_of(topic, None, pa.array(values, pa.large_binary()))
    assert bulk.produce(records, 0) == bulk.produce(columns, 10) == 10
    assert client.flush(DEADLINE_S) == 0
    assert bulk.produce(records, 10) == 20
    assert client.flush(DEADLINE_S) == 0
    assert rows_of(cluster, topic, 20) == [(0, value, value) for value in values[:20]]


@pytest.mark.parametrize("kind", KINDS)
def test_another_refusal_is_an_error(
    cluster: MockCluster, kind: Callable[[Producer], Bulk]
) -> None:
    """With the client's reason; a transaction ends by it."""
    client = client_of(cluster, message_max_bytes=1000)
    values: list[bytes | None] = [b"a", b"b" * 2000, b"c"]
    topic = f"large-{kind.__name__}"
    with pytest.raises(KafkaException, match="too large") as caught:
        kind(client).produce(pairs_of(topic, [None] * 3, values, 0), 0)
    assert caught.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert client.flush(DEADLINE_S) == 0


def test_a_topic_that_cannot_be_is_an_error(cluster: MockCluster) -> None:
    """No record is put."""
    with pytest.raises(KafkaException):
        BulkProducer(client_of(cluster)).produce(pairs_of("x" * 600, [None], [b"a"]), 0)


def test_objects_that_are_not_bytes_are_errors(cluster: MockCluster) -> None:
    """The library reads the memory of bytes alone."""
    with pytest.raises(TypeError, match="bytes"):
        BulkProducer(client_of(cluster)).produce(pairs_of("odd", [None], ["text"]), 0)  # type: ignore[list-item] # no bytes


def test_without_the_library_the_client_is_called_for_each(
    cluster: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where there was no C++ compiler; with a client of another class; and as it is set."""

    def none() -> None:
        raise NoLibraryError("this installation was made without a C++ compiler")

    class Other(Producer):
        """Any class of a job's own."""

    client = client_of(cluster)
    assert isinstance(bulk_producer(client, native=True), BulkProducer)
    assert isinstance(bulk_producer(client, native=False), EachProducer)
    other = Other({"bootstrap.servers": "x"})
    assert isinstance(bulk_producer(other, native=True), EachProducer)
    monkeypatch.setattr(library, "load", none)
    caches = module._native, record_queue._native
    for cache in caches:
        cache.cache_clear()
    assert isinstance(bulk_producer(client, native=True), EachProducer)
    for cache in caches:
        cache.cache_clear()
