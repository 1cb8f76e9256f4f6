"""Readers: take the records of one consumer. One takes messages; the other is native.

Nothing here needs Arrow's library: a restore worker has none.
"""

from __future__ import annotations

import bisect
import itertools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from confluent_kafka import Consumer, KafkaError, Message

from homeport.config.errors import HomeportError
from homeport.container.native.record_queue import FOR_CALLBACKS, Pairs, Polled, RecordQueue

_LOG = logging.getLogger(__name__)

P = TypeVar("P")
"""The caller's name of a partition."""
Rows = TypeVar("Rows")


class Run(NamedTuple, Generic[P]):
    """Consecutive rows from one partition, whose values have ``size_bytes``; offsets ascend."""

    place: P
    rows: int
    size_bytes: int
    first: int
    last: int


class Fault(NamedTuple, Generic[P]):
    """An error of a partition, or the end of one, which the client puts between the records.

    ``place`` is None where the reader does not have the partition.
    """

    place: P | None
    offset: int
    error: KafkaError


class Taken(NamedTuple, Generic[P, Rows]):
    """The rows of ``runs``, one for each partition; ``faults`` apart. None: there are no runs."""

    rows: Rows | None = None
    runs: Sequence[Run[P]] = ()
    faults: Sequence[Fault[P]] = ()


@dataclass(frozen=True)
class Form(Generic[Rows]):
    """How rows are made: of messages, or of what a native queue has polled."""

    of_messages: Callable[[list[Message]], Rows]
    of_queue: Callable[[RecordQueue, Polled], Rows]


def pairs_of(messages: Sequence[Message]) -> Pairs:
    """Return keys, values and offsets of ``messages``."""
    return Pairs(
        [m.key() for m in messages],
        [m.value() for m in messages],
        [m.offset() or 0 for m in messages],
    )


PAIRS = Form(pairs_of, lambda queue, polled: queue.take_pairs(polled.rows))


def reader_of(
    client: Consumer, places: Mapping[tuple[str, int], P], form: Form[Rows], *, native: bool
) -> Reader[P, Rows]:
    """Return the reader of ``client``: the native one where ``native``, and where it can be.

    Shapes: ``places`` {(topic, partition): its name}, in the order of rows. They are assigned only
    afterwards. A client that was read natively is never read in Python later.
    """
    if native and type(client) is Consumer:
        try:
            return QueueReader(client, places, form)
        except HomeportError as error:
            _say_once(str(error))
    return Reader(client, places, form.of_messages)


def _say_once(reason: str) -> None:
    if reason not in _SAID:
        _SAID.add(reason)
        _LOG.warning(
            "Kafka is read through Python objects, which takes more CPU per record: %s; install a "
            "C++ compiler (on Debian g++) and then Homeport again, or set task.input.native=false",
            reason,
        )


_SAID: set[str] = set()


class Reader(Generic[P, Rows]):
    """Takes records as messages of confluent-kafka."""

    def __init__(
        self,
        client: Consumer,
        places: Mapping[tuple[str, int], P],
        rows_of: Callable[[list[Message]], Rows],
    ) -> None:
        self._client = client
        self._places = places
        self._rows_of = rows_of
        self._held: list[Message] = []

    def take(self, max_rows: int, max_bytes: int, patience_s: float) -> Taken[P, Rows]:
        """Return what has arrived: ``max_rows`` at most, and no more after ``max_bytes``.

        It waits ``patience_s`` for the first record.
        """
        # In two steps: consume waits until it has the number of records it was given.
        found = self._held or self._client.consume(1, patience_s)
        self._held = []
        if found and len(found) < max_rows and sum(map(len, found)) < max_bytes:
            found += self._client.consume(max_rows - len(found), 0)
        count = min(max_rows, within(max_bytes, found))
        if count < len(found):
            self._held = found[count:]
            del found[count:]
        return self._taken(found) if found else Taken()

    def assigned(self, places: Iterable[P]) -> None:
        """Note that the client has just been assigned ``places``; called after each assignment."""

    def close(self) -> None:
        """Drop what has not been taken; the client is not closed."""
        self._held = []

    def _taken(self, messages: list[Message]) -> Taken[P, Rows]:
        faults: list[Fault[P]] = []
        # By a plain tuple: the hash of a SystemStreamPartition costs more than all else here.
        groups: dict[tuple[str, int], list[Message]] = {}
        if len(self._places) == 1 and not any([m.error() for m in messages]):  # noqa: C419 - a list is faster than a generator
            groups = dict.fromkeys(self._places, messages)
        else:
            for message in messages:
                place = message.topic() or "", message.partition() or 0
                error = message.error()
                if error is None:
                    groups.setdefault(place, []).append(message)
                else:
                    faults.append(Fault(self._places.get(place), message.offset() or 0, error))
        runs = []
        for place, group in groups.items():
            first, last = group[0].offset() or 0, group[-1].offset() or 0
            runs.append(Run(self._places[place], len(group), sum(map(len, group)), first, last))
        rows = list(itertools.chain.from_iterable(groups.values()))
        return Taken(self._rows_of(rows) if rows else None, runs, faults)


class QueueReader(Reader[P, Rows]):
    """Takes records natively. What the consumer's own queue has comes first."""

    def __init__(
        self, client: Consumer, places: Mapping[tuple[str, int], P], form: Form[Rows]
    ) -> None:
        super().__init__(client, places, form.of_messages)
        self._of_queue = form.of_queue
        self._names = list(places.values())
        self._numbers = {name: number for number, name in enumerate(self._names)}
        self._queue = RecordQueue(client, list(places))
        # Before a first assignment, too. A thread of the client may be about to put its first
        # records into the client's own queue when a forward comes: later ones would precede them.
        self.assigned(self._names)

    def take(self, max_rows: int, max_bytes: int, patience_s: float) -> Taken[P, Rows]:
        """See ``Reader``."""
        # This serves the callbacks of the client, which may be called from its own calls alone.
        # Records are there if a partition's queue was forwarded only after its assignment, and
        # they precede those of the native queue.
        others = super().take(max_rows, max_bytes, 0)
        if others.runs or others.faults:
            self.assigned([run.place for run in others.runs])
            return others
        polled = self._queue.take(max_rows, max_bytes, patience_s)
        rows = self._of_queue(self._queue, polled) if polled.rows else None
        runs = [Run(self._names[run.place], *run[1:]) for run in polled.runs]
        faults = [
            Fault(
                self._names[fault.place] if fault.place >= 0 else None,
                fault.offset,
                KafkaError(fault.code, fault.text),
            )
            for fault in polled.faults
            if fault.code not in FOR_CALLBACKS
        ]
        return Taken(rows, runs, faults)

    def assigned(self, places: Iterable[P]) -> None:
        """See ``Reader``."""
        for place in places:
            self._queue.forward(self._numbers[place])

    def close(self) -> None:
        """See ``Reader``."""
        super().close()
        self._queue.close()


def within(max_bytes: int, messages: Sequence[Message]) -> int:
    """Return how many of ``messages`` reach ``max_bytes``; all of them where they do not."""
    if sum(map(len, messages)) <= max_bytes:
        return len(messages)
    sizes = list(itertools.accumulate(map(len, messages)))
    return bisect.bisect_left(sizes, max_bytes) + 1
