"""Keys and values without Arrow: what a restore worker reads."""

from __future__ import annotations

import time

from confluent_kafka import TopicPartition
from mock_cluster import Record, mock_cluster
from native_fuzz import DEADLINE_S, system

from homeport.container.native.record_queue import RecordQueue
from homeport.job_coordinator.kafka.clients import consumer


def test_keys_and_values_come_in_their_order_with_offsets() -> None:
    """Null and empty ones, and more than a byte of them."""
    pairs: list[tuple[bytes | None, bytes | None]]
    pairs = [(b"k%d" % n if n % 3 else None, b"" if n % 5 == 0 else b"v" * n) for n in range(20)]
    pairs += [(b"", None), (b"last", b"value")]
    found: list[tuple[bytes | None, bytes | None]] = []
    offsets: list[int] = []
    with mock_cluster(1) as cluster:
        cluster.send("pairs", [Record(0, key, value) for key, value in pairs])
        client = consumer(system(cluster), {})
        queue = RecordQueue(client, [("pairs", 0)])
        client.assign([TopicPartition("pairs", 0, 0)])
        queue.forward(0)
        deadline = time.monotonic() + DEADLINE_S
        while len(found) < len(pairs):
            assert time.monotonic() < deadline
            rows = queue.take(9, 1 << 20, 0.2).rows
            if rows:
                keys, values, numbers = queue.take_pairs(rows)
                assert 0 < len(keys) <= 9
                found += zip(keys, values, strict=True)
                offsets += numbers
        queue.close()
        client.close()
    assert found == pairs
    assert offsets == list(range(len(pairs)))
