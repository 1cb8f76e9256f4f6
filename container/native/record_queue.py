"""RecordQueue: takes the records of a consumer of confluent-kafka in a few calls per batch.

The queues of its partitions are forwarded to a queue of this class, by librdkafka's public
functions. All else stays in the consumer's own queue, whose calls serve its callbacks, and return
records that arrived there before the forward. Nothing here needs Arrow's library: a restore worker
has none.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, Producer

from homeport.container.native import library
from homeport.container.native.library import NoLibraryError

FUNCTIONS = (
    "rd_kafka_opaque",
    "rd_kafka_queue_new",
    "rd_kafka_queue_destroy",
    "rd_kafka_queue_get_partition",
    "rd_kafka_queue_forward",
    "rd_kafka_queue_poll",
    "rd_kafka_event_type",
    "rd_kafka_event_message_next",
    "rd_kafka_event_error",
    "rd_kafka_event_error_string",
    "rd_kafka_event_topic_partition",
    "rd_kafka_event_destroy",
    "rd_kafka_topic_partition_destroy",
    "rd_kafka_message_timestamp",
    "rd_kafka_message_headers",
    "rd_kafka_header_get_all",
    "rd_kafka_topic_name",
)
"""The functions of librdkafka that the library calls, in the order of its ``Librdkafka``."""
PYTHON = ("PyBytes_FromStringAndSize", "PyLong_FromLongLong", "PyList_SetItem")
"""Those of Python's stable ABI, in the order of its ``Python``."""

# Public names of the library, written this way by it.
FOR_CALLBACKS = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 - as above
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 - as above
    }
)
"""Errors that confluent-kafka passes to callbacks alone; the watch over topics finds why."""
_ARROW_ARRAY = 10
"""So many words has ``struct ArrowArray`` of Arrow's C data interface."""


class _Run(ctypes.Structure):
    _fields_ = (
        ("place", ctypes.c_int32),
        ("rows", ctypes.c_int32),
        ("size_bytes", ctypes.c_int64),
        ("first_offset", ctypes.c_int64),
        ("last_offset", ctypes.c_int64),
    )


class _Fault(ctypes.Structure):
    _fields_ = (
        ("place", ctypes.c_int32),
        ("code", ctypes.c_int32),
        ("offset", ctypes.c_int64),
        ("text", ctypes.c_char_p),
    )


class _Unnamed(ctypes.Structure):
    _fields_ = (
        ("place", ctypes.c_int32),
        ("left_out", ctypes.c_int32),
        ("headers", ctypes.c_int32),
        ("offset", ctypes.c_int64),
    )


class _Found(ctypes.Structure):
    _fields_ = (
        ("rows", ctypes.c_int64),
        ("n_runs", ctypes.c_int64),
        ("n_faults", ctypes.c_int64),
        ("n_unnamed", ctypes.c_int64),
        ("has_headers", ctypes.c_int32),
        ("runs", ctypes.POINTER(_Run)),
        ("faults", ctypes.POINTER(_Fault)),
        ("unnamed", ctypes.POINTER(_Unnamed)),
    )


class QueueRun(NamedTuple):
    """Consecutive rows from one partition, by its place in the queue's list; offsets ascend."""

    place: int
    rows: int
    size_bytes: int
    first_offset: int
    last_offset: int


class QueueFault(NamedTuple):
    """An error or the end of a partition; ``place`` is below 0 where the queue does not have it."""

    place: int
    code: int
    offset: int
    text: str


class Unnamed(NamedTuple):
    """A record that lost ``left_out`` of its ``headers``: their names are not UTF-8."""

    place: int
    left_out: int
    headers: int
    offset: int


class Polled(NamedTuple):
    """What a poll took, beside its rows: as many ``runs`` as partitions, sorted by place."""

    rows: int
    runs: Sequence[QueueRun]
    faults: Sequence[QueueFault]
    unnamed: Sequence[Unnamed]
    has_headers: bool


class Pairs(NamedTuple):
    """Keys, values and offsets of records in their order."""

    keys: list[bytes | None]
    values: list[bytes | None]
    offsets: list[int]

    def part(self, begin: int, end: int) -> Pairs:
        """Return the records from ``begin`` to ``end``."""
        if end - begin == len(self.keys):
            return self
        return Pairs(self.keys[begin:end], self.values[begin:end], self.offsets[begin:end])


class RecordQueue:
    """The queue of one consumer, for partitions in the order of ``places``. Not thread-safe."""

    def __init__(self, client: Consumer, places: Sequence[tuple[str, int]]) -> None:
        """Open the queue; nothing arrives in it before ``forward``.

        Raises:
            NoLibraryError: the library is not there, or does not fit this confluent-kafka.
        """
        self._native = _native()
        handle = handle_of(client)
        # Its queue belongs to the client, which must outlive it.
        self._client = client
        self.places = places
        self._queue: int | None = self._native.homeport_open(handle)
        for topic, partition in places:
            if not self._queue or not self._native.homeport_add(
                self._queue, topic.encode(), partition
            ):
                raise MemoryError
        self._array = (ctypes.c_int64 * _ARROW_ARRAY)()
        self._found = _Found()

    def forward(self, place: int) -> None:
        """Let the records of ``place`` arrive here, right after the client was assigned it.

        The end of an assignment ends the forward. It is over once the next assignment returns, as
        one thread of the client does both. After a first forward the client leaves each further
        one to its user: without it, records would arrive nowhere.
        """
        self._native.homeport_forward(self._queue, place)

    def take(self, max_rows: int, max_bytes: int, timeout_s: float) -> Polled:
        """Take what has arrived: ``max_rows`` at most, and no more after ``max_bytes``.

        It waits ``timeout_s`` for the first record. Rows that are not moved by then are dropped at
        the next call.
        """
        found = self._found
        timeout_ms = int(timeout_s * 1000)
        if not self._native.homeport_poll(
            self._queue, max_rows, max_bytes, timeout_ms, ctypes.byref(found)
        ):
            raise MemoryError
        return Polled(
            found.rows,
            [QueueRun(*_fields(run)) for run in found.runs[: found.n_runs]],
            [
                QueueFault(each.place, each.code, each.offset, each.text.decode(errors="replace"))
                for each in found.faults[: found.n_faults]
            ],
            [Unnamed(*_fields(each)) for each in found.unnamed[: found.n_unnamed]],
            bool(found.has_headers),
        )

    def take_arrow(self) -> int:
        """Return the address of the rows, by Arrow's C data interface; the reader moves them."""
        if not self._native.homeport_take_arrow(self._queue, ctypes.byref(self._array)):
            raise MemoryError
        return ctypes.addressof(self._array)

    def take_pairs(self, rows: int) -> Pairs:
        """Move the ``rows`` that were polled into objects of Python."""
        pairs = Pairs([None] * rows, [None] * rows, [0] * rows)
        self._native.homeport_take_objects(self._queue, *pairs)
        return pairs

    def close(self) -> None:
        """Drop what has not been taken. The client can only be closed, or read by another queue."""
        queue, self._queue = self._queue, None
        if queue:
            self._native.homeport_close(queue)


def fault() -> str | None:
    """Return why no queue can be opened in this process; None: one can."""
    try:
        _native()
    except NoLibraryError as error:
        return str(error)
    return None


def _fields(found: ctypes.Structure) -> Iterator[int]:
    return (getattr(found, name) for name, *_ in found._fields_)


@functools.cache
def _native() -> ctypes.CDLL:
    native = library.load()
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    signatures = {
        "homeport_load": (None, (pointer, pointer)),
        "homeport_opaque": (pointer, (pointer,)),
        "homeport_open": (pointer, (pointer,)),
        "homeport_add": (ctypes.c_int, (pointer, ctypes.c_char_p, ctypes.c_int32)),
        "homeport_forward": (None, (pointer, ctypes.c_int32)),
        "homeport_poll": (ctypes.c_int, (pointer, number, number, ctypes.c_int32, pointer)),
        "homeport_take_arrow": (ctypes.c_int, (pointer, pointer)),
        "homeport_close": (None, (pointer,)),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(native, name)
        function.restype, function.argtypes = result, arguments
    # Called with Python's lock, as it makes objects; raises what they raise.
    take_objects = ctypes.PYFUNCTYPE(None, pointer, *[ctypes.py_object] * len(Pairs._fields))
    take_objects_of = take_objects(("homeport_take_objects", native))
    setattr(native, "homeport_take_objects", take_objects_of)  # noqa: B010 - mypy knows no such attribute
    native.homeport_load(addresses(FUNCTIONS), _addresses(ctypes.pythonapi, PYTHON))
    return native


def addresses(names: Sequence[str]) -> ctypes.Array[ctypes.c_void_p]:
    """Return the addresses of functions of the librdkafka that confluent-kafka has loaded.

    Raises:
        NoLibraryError: it lacks one.
    """
    try:
        return _addresses(ctypes.CDLL(str(_librdkafka())), names)
    except AttributeError as error:
        raise NoLibraryError(f"confluent-kafka's librdkafka lacks a function: {error}") from None


def _addresses(functions: ctypes.CDLL, names: Sequence[str]) -> ctypes.Array[ctypes.c_void_p]:
    found = [ctypes.cast(getattr(functions, name), ctypes.c_void_p) for name in names]
    return (ctypes.c_void_p * len(names))(*found)


def _librdkafka() -> Path:
    """Return the file of the librdkafka that this process has loaded."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape")
    paths = {line.split(maxsplit=5)[5] for line in maps.splitlines() if "librdkafka" in line}
    if len(paths) != 1:
        raise NoLibraryError(f"this process has {len(paths)} libraries of librdkafka, not one")
    return Path(paths.pop())


def handle_of(client: Consumer | Producer) -> int:
    """Return the address of the client's ``rd_kafka_t``: the first member of its object.

    It is the right one if its opaque is the object, as confluent-kafka sets it.

    Raises:
        NoLibraryError: the library is not there, or the client keeps its handle elsewhere.
    """
    handle = _first_member(client)
    if not _is_readable(handle) or _native().homeport_opaque(handle) != id(client):
        raise NoLibraryError("this confluent-kafka keeps its client in a place that is not known")
    return handle


def _first_member(client: Consumer | Producer) -> int:
    return ctypes.c_void_p.from_address(id(client) + object.__basicsize__).value or 0


def _is_readable(address: int) -> bool:
    try:
        memory = os.open("/proc/self/mem", os.O_RDONLY)
    except OSError:
        return False
    try:
        return len(os.pread(memory, _OPAQUE_BYTES, address)) == _OPAQUE_BYTES
    except (OSError, OverflowError):
        return False
    finally:
        os.close(memory)


_OPAQUE_BYTES = 4096
"""Of a handle, read before librdkafka reads its opaque: no wrong address ends the process."""
