"""Keys are placed as Kafka's clients place them."""

from __future__ import annotations

import pytest

from homeport.testing.partitioner import murmur2, partition_of


@pytest.mark.parametrize(
    ("key", "signed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_hash_is_that_of_kafka(key: bytes, signed: int) -> None:
    """The values are those of Kafka's own tests."""
    assert murmur2(key) == signed % (1 << 32)


def test_a_record_without_a_key_goes_to_the_first_partition() -> None:
    """It does so each time, where Kafka picks one."""
    assert partition_of(None, 7) == 0
