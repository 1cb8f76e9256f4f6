"""Where Kafka's clients place a record: murmur2 of its key.

PURE. Source: Kafka's ``Utils.murmur2`` and ``BuiltInPartitioner.partitionForKey``.
"""

import struct

_SEED = 0x9747B28C
_FACTOR = 0x5BD1E995
_WORD = 0xFFFFFFFF
_POSITIVE = 0x7FFFFFFF
_BYTES = 4


def partition_of(key: bytes | None, partitions: int) -> int:
    """Return the partition of a record with that key; 0 without one, where Kafka's is random."""
    return 0 if key is None else (murmur2(key) & _POSITIVE) % partitions


def murmur2(data: bytes) -> int:
    """Return the hash as an unsigned number of 32 bits."""
    hashed = _SEED ^ len(data)
    whole = len(data) - len(data) % _BYTES
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        mixed = (word * _FACTOR) & _WORD
        mixed ^= mixed >> 24
        hashed = ((hashed * _FACTOR) & _WORD) ^ ((mixed * _FACTOR) & _WORD)
    rest = data[whole:]
    if rest:
        hashed = ((hashed ^ int.from_bytes(rest, "little")) * _FACTOR) & _WORD
    hashed ^= hashed >> 13
    hashed = (hashed * _FACTOR) & _WORD
    return hashed ^ (hashed >> 15)
