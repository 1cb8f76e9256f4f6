"""Records put natively are the same as those that the client's own calls put."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition
from mock_cluster import MockCluster, mock_cluster

from homeport.container.native import bulk_producer as module
from homeport.container.native import library, record_queue
from homeport.container.native.bulk_producer import Bulk, BulkProducer, EachProducer, bulk_producer
from homeport.container.native.library import NoLibraryError

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
        assert bulk.produce(name, [k for k, _ in keyed], [v for _, v in keyed], -1) == len(keyed)
        assert bulk.produce(f"{name}-one", keys, values, 2) == count
        assert client.flush(DEADLINE_S) == 0
        one = rows_of(cluster, f"{name}-one", count)
        assert one == [(2, key, value) for key, value in zip(keys, values, strict=True)]
        found.append(rows_of(cluster, name, len(keyed)))
    assert found[0] == found[1]
    assert {partition for partition, *_ in found[0]} == set(range(PARTITIONS))


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_queue_refuses_the_next_record(
    cluster: MockCluster, kind: Callable[[Producer], Bulk]
) -> None:
    """And none behind it: they would overtake it."""
    client = client_of(cluster, queue_buffering_max_messages=10, linger_ms=60_000)
    values: list[bytes | None] = [b"%d" % i for i in range(25)]
    topic = f"full-{kind.__name__}"
    assert kind(client).produce(topic, values, values, 0) == 10
    assert client.flush(DEADLINE_S) == 0
    assert rows_of(cluster, topic, 10) == [(0, value, value) for value in values[:10]]


def test_the_client_gives_the_reason_for_another_refusal(cluster: MockCluster) -> None:
    """At its own call with the record that was refused."""
    client = client_of(cluster, message_max_bytes=1000)
    values: list[bytes | None] = [b"a", b"b" * 2000, b"c"]
    assert BulkProducer(client).produce("large", [None] * 3, values, 0) == 1
    with pytest.raises(KafkaException, match="too large"):
        EachProducer(client).produce("large", [None] * 2, values[1:], 0)
    assert client.flush(DEADLINE_S) == 0


def test_without_the_library_the_client_is_called_for_each(
    cluster: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where there was no C++ compiler; and with a client of another class."""

    def none() -> None:
        raise NoLibraryError("this installation was made without a C++ compiler")

    class Other(Producer):
        """Any class of a job's own."""

    client = client_of(cluster)
    assert isinstance(bulk_producer(client), BulkProducer)
    assert isinstance(bulk_producer(Other({"bootstrap.servers": "x"})), EachProducer)
    monkeypatch.setattr(library, "load", none)
    caches = module._native, record_queue._native
    for cache in caches:
        cache.cache_clear()
    assert isinstance(bulk_producer(client), EachProducer)
    for cache in caches:
        cache.cache_clear()
