"""Keys go to partitions as Kafka's own clients send them."""

from __future__ import annotations

import pytest

from homeport.testing.partitioner import murmur2, partition_of


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"abc", 479470107),
    ],
)
def test_the_hash_is_that_of_kafkas_java_client(key: bytes, hashed: int) -> None:
    """Of whole words and of the bytes behind them."""
    assert murmur2(key) == hashed & 0xFFFFFFFF
    assert partition_of(key, 8) == (hashed & 0x7FFFFFFF) % 8


def test_a_record_without_a_key_is_in_the_first_partition() -> None:
    """Kafka's choice is random; a test's is not."""
    assert partition_of(None, 8) == 0
