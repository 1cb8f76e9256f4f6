"""Readers: the records of one consumer, as Arrow. One is native; the other takes messages."""

from __future__ import annotations

import bisect
import itertools
import logging
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, Message

from homeport.config.errors import HomeportError
from homeport.container.native.input_queue import RECORDS, InputQueue
from homeport.container.native.record_queue import FOR_CALLBACKS, Unnamed
from homeport.container.progress.transaction_plan import HeaderPairs
from homeport.job_coordinator.model.job_model import SystemStreamPartition

_LOG = logging.getLogger(__name__)


class Run(NamedTuple):
    """Consecutive rows from one partition, whose values have ``size_bytes``; offsets ascend."""

    ssp: SystemStreamPartition
    rows: int
    size_bytes: int
    first: int
    last: int


class Fault(NamedTuple):
    """An error of a partition, or the end of one, which the client puts between the records."""

    ssp: SystemStreamPartition
    offset: int
    error: KafkaError


class Taken(NamedTuple):
    """``records`` of ``RECORDS`` in ``runs``, one for each partition; ``faults`` apart.

    ``records`` are None where there are no runs.
    """

    records: pa.RecordBatch | None = None
    runs: Sequence[Run] = ()
    faults: Sequence[Fault] = ()


class Reader(Protocol):
    """Takes the records of one consumer."""

    def take(self, max_rows: int, max_bytes: int, patience_s: float) -> Taken:
        """Return what has arrived: ``max_rows`` at most, and no more after ``max_bytes``.

        It waits ``patience_s`` for the first record.
        """

    def assigned(self, ssps: Sequence[SystemStreamPartition]) -> None:
        """Note that the client has just been assigned ``ssps``; called after each assignment."""

    def close(self) -> None:
        """Drop what has not been taken; the client is not closed."""


def reader_of(
    client: Consumer, system: str, ssps: Sequence[SystemStreamPartition], *, native: bool
) -> Reader:
    """Return the reader of ``client``: the native one where ``native``, and where it can be.

    A client that was read natively is never read in Python later.
    """
    if native and type(client) is Consumer:
        try:
            return QueueReader(client, system, ssps)
        except HomeportError as error:
            _say_once(str(error))
    return MessageReader(client, system)


def _say_once(reason: str) -> None:
    if reason not in _SAID:
        _SAID.add(reason)
        _LOG.warning(
            "input goes through Python objects, which takes more CPU per record: %s; install a C++ "
            "compiler (on Debian g++) and then Homeport again, or set task.input.native=false",
            reason,
        )


_SAID: set[str] = set()


class MessageReader:
    """Takes records as messages of confluent-kafka."""

    def __init__(self, client: Consumer, system: str) -> None:
        self._client = client
        self._system = system
        self._held: list[Message] = []

    def take(self, max_rows: int, max_bytes: int, patience_s: float) -> Taken:
        """See ``Reader``."""
        found = self._held or self._client.consume(1, patience_s)
        self._held = []
        if found and len(found) < max_rows and sum(map(len, found)) < max_bytes:
            found += self._client.consume(max_rows - len(found), 0)
        count = min(max_rows, within(max_bytes, found))
        if count < len(found):
            self._held = found[count:]
            del found[count:]
        return self._taken(found) if found else Taken()

    def assigned(self, ssps: Sequence[SystemStreamPartition]) -> None:
        """See ``Reader``."""

    def close(self) -> None:
        """See ``Reader``."""
        self._held = []

    def _taken(self, messages: Sequence[Message]) -> Taken:
        faults: list[Fault] = []
        # By a plain tuple: hashing a SystemStreamPartition costs more than all else here.
        groups: dict[tuple[str | None, int | None], list[Message]] = {}
        for message in messages:
            error = message.error()
            if error is not None:
                ssp = self._ssp(message.topic(), message.partition())
                faults.append(Fault(ssp, message.offset() or 0, error))
                continue
            place = (message.topic(), message.partition())
            group = groups.get(place)
            if group is None:
                groups[place] = [message]
            else:
                group.append(message)
        runs = []
        for (topic, partition), group in groups.items():
            first, last = group[0].offset() or 0, group[-1].offset() or 0
            ssp = self._ssp(topic, partition)
            runs.append(Run(ssp, len(group), sum(map(len, group)), first, last))
        rows = list(itertools.chain.from_iterable(groups.values()))
        return Taken(records_of(rows) if rows else None, runs, faults)

    def _ssp(self, topic: str | None, partition: int | None) -> SystemStreamPartition:
        return SystemStreamPartition(self._system, topic or "", partition or 0)


class QueueReader:
    """Takes records natively. What the consumer's own queue has comes first."""

    def __init__(
        self, client: Consumer, system: str, ssps: Sequence[SystemStreamPartition]
    ) -> None:
        self._others = MessageReader(client, system)
        self._ssps = list(ssps)
        self._places = {ssp: place for place, ssp in enumerate(self._ssps)}
        self._no_place = SystemStreamPartition(system, "", 0)
        self._queue = InputQueue(client, [(ssp.stream, ssp.partition) for ssp in self._ssps])

    def take(self, max_rows: int, max_bytes: int, patience_s: float) -> Taken:
        """See ``Reader``."""
        # This serves the callbacks of the client, which may be called from its own calls alone.
        # Records are there if a partition's queue was forwarded only after its assignment, and
        # they precede those of the native queue.
        others = self._others.take(max_rows, max_bytes, 0)
        if others.runs or others.faults:
            self.assigned([run.ssp for run in others.runs])
            return others
        batch = self._queue.poll(max_rows, max_bytes, patience_s)
        for unnamed in batch.unnamed:
            _warn_of(self._ssp(unnamed.place), unnamed)
        runs = [Run(self._ssps[run.place], *run[1:]) for run in batch.runs]
        faults = [
            Fault(self._ssp(fault.place), fault.offset, KafkaError(fault.code, fault.text))
            for fault in batch.faults
            if fault.code not in FOR_CALLBACKS
        ]
        return Taken(batch.records, runs, faults)

    def assigned(self, ssps: Sequence[SystemStreamPartition]) -> None:
        """See ``Reader``."""
        for ssp in ssps:
            self._queue.forward(self._places[ssp])

    def close(self) -> None:
        """See ``Reader``."""
        self._others.close()
        self._queue.close()

    def _ssp(self, place: int) -> SystemStreamPartition:
        return self._ssps[place] if place >= 0 else self._no_place


def within(max_bytes: int, messages: Sequence[Message]) -> int:
    """Return how many of ``messages`` reach ``max_bytes``; all of them where they do not."""
    if sum(map(len, messages)) <= max_bytes:
        return len(messages)
    sizes = list(itertools.accumulate(map(len, messages)))
    return bisect.bisect_left(sizes, max_bytes) + 1


def records_of(messages: Sequence[Message]) -> pa.RecordBatch:
    """Return ``messages`` as rows of ``RECORDS``."""
    # Null also where all headers are left out, whatever else the batch has.
    headers = [headers_of(m) or None for m in messages]
    type_ = RECORDS.field("headers").type
    columns = [
        pa.array([m.key() for m in messages], pa.binary()),
        pa.array([m.value() for m in messages], pa.binary()),
        pa.array([m.offset() for m in messages], pa.int64()),
        pa.array([m.timestamp()[1] for m in messages], pa.int64()),
        pa.array(headers, type_) if any(headers) else pa.nulls(len(messages), type_),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=RECORDS)


_READ_HEADERS = operator.methodcaller("headers")


def headers_of(message: Message) -> HeaderPairs | None:
    """Return the headers whose names are text; log a record that has others.

    For a name that is not UTF-8 the library raises at the first call. Each further call returns a
    tuple without the name, whose first element ends the process. The library raises and returns a
    result; Python checks for that only in calls that it has not specialized. A plain
    ``message.headers()`` would be specialized.
    """
    pairs: Any  # the library's types allow dicts, too
    try:
        pairs = _READ_HEADERS(message)
    except SystemError:
        pairs = message.headers()
        known = [pair for pair in pairs if not repr(pair).startswith("(<NULL>")]
        message.set_headers(known)  # for the next call
        ssp = SystemStreamPartition("", message.topic() or "", message.partition() or 0)
        left_out = len(pairs) - len(known)
        _warn_of(ssp, Unnamed(0, left_out, len(pairs), message.offset() or 0))
        pairs = known
    found: HeaderPairs | None = pairs
    return found


def _warn_of(ssp: SystemStreamPartition, unnamed: Unnamed) -> None:
    _LOG.warning(
        "input %s partition %s offset %s: %d of its %d headers have names that are not UTF-8, "
        "and are left out",
        ssp.stream,
        ssp.partition,
        unnamed.offset,
        unnamed.left_out,
        unnamed.headers,
    )
