"""BulkProducer: puts many records into the queue of a producer of confluent-kafka in one call."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa
from confluent_kafka import Producer

from homeport.container.native import library
from homeport.container.native.library import NoLibraryError
from homeport.container.native.record_queue import addresses, handle_of

FUNCTIONS = ("rd_kafka_topic_new", "rd_kafka_topic_destroy", "rd_kafka_produce")
"""The functions of librdkafka that the library calls, in the order of its ``Librdkafka``."""

_ROWS = 1024
"""So many records are copied at once; other threads of Python run while they are put."""
_Array = ctypes.c_int64 * 10
"""``struct ArrowArray`` of Arrow's C data interface has so many words."""


class Bulk(Protocol):
    """Puts records without a delivery report into the queue of a producer."""

    def produce(
        self,
        topic: str,
        keys: Sequence[bytes | None],
        values: Sequence[bytes | None],
        partition: int,
    ) -> int:
        """Put records in their order, until the client refuses one; return how many it has taken.

        ``partition`` below 0: the partitioner chooses. The client gives the reason of a refusal at
        the next call of its own ``produce`` with that record.
        """


def bulk_producer(client: Producer) -> Bulk:
    """Return the native one of ``client`` where it can be, else one in Python."""
    if type(client) is Producer:
        with contextlib.suppress(NoLibraryError):
            return BulkProducer(client)
    return EachProducer(client)


class EachProducer:
    """As ``BulkProducer``, by a call of the client for each record."""

    def __init__(self, client: Producer) -> None:
        self._client = client

    def produce(
        self,
        topic: str,
        keys: Sequence[bytes | None],
        values: Sequence[bytes | None],
        partition: int,
    ) -> int:
        """See ``Bulk``; raise KafkaException for any refusal but a full queue."""
        produce = self._client.produce
        for place, (key, value) in enumerate(zip(keys, values, strict=True)):
            try:
                produce(topic, value, key, partition)
            except BufferError:
                return place
        return len(keys)


class BulkProducer:
    """Puts records without a delivery report into the queue of ``client``. Not thread-safe."""

    def __init__(self, client: Producer) -> None:
        """Find the client's handle.

        Raises:
            NoLibraryError: the library is not there, or does not fit this confluent-kafka.
        """
        self._native = _native()
        self._handle = handle_of(client)
        # The handle belongs to the client.
        self._client = client
        self._arrays = _Array(), _Array()

    def produce(
        self,
        topic: str,
        keys: Sequence[bytes | None],
        values: Sequence[bytes | None],
        partition: int,
    ) -> int:
        """See ``Bulk``."""
        taken, name = 0, topic.encode()
        while taken < len(keys):
            part = slice(taken, taken + _ROWS)
            for column, array in zip((keys, values), self._arrays, strict=True):
                pa.array(column[part], pa.large_binary())._export_to_c(ctypes.addressof(array))  # noqa: SLF001 - as Arrow's manual
            pair = map(ctypes.byref, self._arrays)
            taken += self._native.homeport_produce(self._handle, name, partition, *pair)
            if taken < min(part.stop, len(keys)):
                break
        return taken


@functools.cache
def _native() -> ctypes.CDLL:
    native = library.load()
    pointer = ctypes.c_void_p
    native.homeport_load_producer.restype = None
    native.homeport_load_producer.argtypes = (pointer,)
    native.homeport_produce.restype = ctypes.c_int64
    native.homeport_produce.argtypes = (pointer, ctypes.c_char_p, ctypes.c_int32, pointer, pointer)
    native.homeport_load_producer(addresses(FUNCTIONS))
    return native
