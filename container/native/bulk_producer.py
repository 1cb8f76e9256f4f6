"""BulkProducer: puts many records into the queue of a producer of confluent-kafka in one call."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable
from itertools import islice
from typing import Protocol

from confluent_kafka import KafkaError, KafkaException, Producer

from homeport.container.native import library
from homeport.container.native.library import ArrowArray, NoLibraryError
from homeport.container.native.record_queue import addresses, handle_of
from homeport.container.progress.transaction_plan import SendColumns, SendPairs, number_of

FUNCTIONS = (
    "rd_kafka_topic_new",
    "rd_kafka_topic_destroy",
    "rd_kafka_last_error",
    "rd_kafka_produce_batch",
)
"""The functions of librdkafka that the library calls, in the order of its ``Librdkafka``."""
PYTHON = ("PyList_GetItem", "PyBytes_AsStringAndSize")
"""Those of Python's stable ABI, in the order of its ``Python``, behind None."""

_ROWS = 1024
"""So many records are put at once; other threads of Python run meanwhile."""
_Records = ctypes.c_int64 * (9 * _ROWS)
"""librdkafka's ``struct rd_kafka_message_s`` has nine words."""


class Bulk(Protocol):
    """Puts records without a delivery report into the queue of a producer."""

    def produce(self, records: SendPairs | SendColumns, begin: int) -> int:
        """Put the records from the place ``begin`` on, until the queue is full.

        Return the place of the first one that it has not taken, or the number of ``records``.

        Raises:
            KafkaException: the client refuses one. Others behind it may be in the queue.
        """


def bulk_producer(client: Producer, *, native: bool) -> Bulk:
    """Return the native one of ``client`` where ``native``, and where it can be."""
    if native and type(client) is Producer:
        with contextlib.suppress(NoLibraryError):
            return BulkProducer(client)
    return EachProducer(client)


class EachProducer:
    """As ``BulkProducer``, by a call of the client for each record."""

    def __init__(self, client: Producer) -> None:
        self._client = client

    def produce(self, records: SendPairs | SendColumns, begin: int) -> int:
        """See ``Bulk``."""
        produce, partition = self._client.produce, number_of(records.partition)
        for place, send in enumerate(islice(records, begin, None), begin):
            try:
                produce(records.topic, send.value, send.key, partition)
            except BufferError:
                return place
        return records.count


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
        self._records = _Records()

    def produce(self, records: SendPairs | SendColumns, begin: int) -> int:
        """See ``Bulk``."""
        if isinstance(records, SendPairs):
            return self._put(records, begin, self._native.homeport_point, records.flat)
        columns = records.keys, records.values
        arrays = ArrowArray(), ArrowArray()
        keys = None if records.keys is None else arrays[0]
        try:
            for column, array in zip(columns, arrays, strict=True):
                if column is not None:
                    column._export_to_c(ctypes.addressof(array))  # noqa: SLF001 - as Arrow's manual
            return self._put(records, begin, self._native.homeport_point_columns, keys, arrays[1])
        finally:
            self._native.homeport_release(*arrays)

    def _put(
        self,
        records: SendPairs | SendColumns,
        begin: int,
        point: Callable[..., None],
        *source: object,
    ) -> int:
        name, partition = records.topic.encode(), number_of(records.partition)
        count, reason = records.count, ctypes.c_int32()
        while begin < count:
            rows = min(_ROWS, count - begin)
            point(*source, begin, rows, self._records)
            taken = self._native.homeport_produce(
                self._handle, name, partition, self._records, rows, ctypes.byref(reason)
            )
            begin += taken
            if taken < rows:
                if reason.value != KafkaError._QUEUE_FULL:  # noqa: SLF001 - a public name of the library
                    raise KafkaException(KafkaError(reason.value))
                break
        return begin


@functools.cache
def _native() -> ctypes.CDLL:
    native = library.load()
    pointer, number = ctypes.c_void_p, ctypes.c_int32
    columns = (ctypes.POINTER(ArrowArray),) * 2
    signatures = {
        "homeport_load_producer": (None, (pointer, pointer)),
        "homeport_point_columns": (None, (*columns, ctypes.c_int64, number, pointer)),
        "homeport_release": (None, columns),
        "homeport_produce": (number, (pointer, ctypes.c_char_p, number, pointer, number, pointer)),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(native, name)
        function.restype, function.argtypes = result, arguments
    # Called with Python's lock, as it reads objects; raises what they raise.
    point = ctypes.PYFUNCTYPE(None, ctypes.py_object, ctypes.c_ssize_t, number, pointer)
    setattr(native, "homeport_point", point(("homeport_point", native)))  # noqa: B010 - mypy knows no such attribute
    of_python = (ctypes.cast(getattr(ctypes.pythonapi, name), pointer).value for name in PYTHON)
    python = (pointer * (1 + len(PYTHON)))(id(None), *of_python)
    native.homeport_load_producer(addresses(FUNCTIONS), python)
    return native
