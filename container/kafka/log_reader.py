"""Reads one partition from an offset to its head; the broker decides when it is reached.

Source: safety K1. The head is the end offset requested with read_uncommitted, after the own id was
initialised; it is reached when a PARTITION_EOF at or beyond it arrives, or the record before it.
Positions prove nothing: on an empty range they never move, and transaction markers take offsets.
"""

from __future__ import annotations

import bisect
import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, ListOffsetsResultInfo, OffsetSpec

from homeport.config.errors import UnavailableError
from homeport.config.kafka_names import policies
from homeport.config.settings.sections import SystemConfig
from homeport.config.system_stream import SystemStream
from homeport.container.kafka.client_properties import (
    HangingTransactionError,
    PartitionError,
    know_topics,
    longest_transaction_s,
    restore_properties,
    unread,
)
from homeport.container.kafka.record_reader import PAIRS, Fault, Reader, Rows, pairs_of, reader_of
from homeport.container.native.record_queue import Pairs
from homeport.container.progress.restore import ChangelogTopic, OffsetRange
from homeport.container.storage.changelog_reader import Chunk
from homeport.job_coordinator.kafka.clients import admin, consumer, error_of, is_end, unavailable
from homeport.job_coordinator.kafka.in_sync import known_shortage
from homeport.job_coordinator.kafka.open_transactions import how_to_end
from homeport.job_coordinator.kafka.topics import (
    DELETE_RETENTION,
    EARLIEST,
    LATEST,
    TopicAdmin,
    reported_offset,
)
from homeport.job_coordinator.kafka.transient_errors import DISCONNECTED, OVERDUE, is_transient
from homeport.job_coordinator.model.job_model import SystemStreamPartition

_LOG = logging.getLogger(__name__)

_CHUNK = 1000
_POLL_S = 0.1
_PATIENCE_S = 60.0
_ANSWER_S = 10.0
"""After this time without an answer the reader looks for another leader, as the controller does."""
_PROGRESS_S = 5.0
_PAUSE_S = 0.05
_SHORTAGE_PAUSE_S = 0.5
_LOOK_S = 5.0

_CHUNK_BYTES = 4 * 1024 * 1024

_Place = tuple[str, int]
_Offsets = dict[_Place, int]


class LogReader:
    """Reads partitions of one system, one after the other.

    Raises:
        UnavailableError: (from every method) Kafka does not answer.
        PartitionError: (as above) a topic or partition does not exist, or cannot be read.
    """

    def __init__(
        self,
        system: SystemConfig,
        may_go_on: Callable[[float], None],
        over: Mapping[str, str | int] | None = None,
        *,
        waits_out_outages: bool = True,
        client: AdminClient | None = None,
    ) -> None:
        """Send no request yet.

        ``may_go_on`` is called often while reading; it waits the seconds given, and raises to stop.
        ``over``: properties of the consumer in addition to those of every restore.
        ``waits_out_outages``: whether requests of offsets are repeated, for a minute, even if no
        broker answers. ``client``: for its requests; None: it makes its own.
        """
        self._at_once = frozenset[int]() if waits_out_outages else DISCONNECTED | OVERDUE
        self._system = system
        self._may_go_on = may_go_on
        self._admin = client or admin(system)
        self._consumer = consumer(system, {**restore_properties(system), **(over or {})})

    def serve(self, may_go_on: Callable[[float], None]) -> None:
        """Read for another incarnation from now on; ``may_go_on``: as of ``__init__``."""
        self._may_go_on = may_go_on

    def _topics(self) -> TopicAdmin:
        return TopicAdmin(self._system, client=self._admin)

    def close(self) -> None:
        """End the reading."""
        self._consumer.close()

    def ends(self, partitions: Sequence[tuple[str, int]]) -> dict[tuple[str, int], OffsetRange]:
        """Return the oldest offset and the head of each, uncommitted records included."""
        oldest, heads = self._offsets(partitions, EARLIEST, LATEST)
        return {place: OffsetRange(oldest[place], heads[place]) for place in partitions}

    def stable_ends(self, partitions: Sequence[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """Return the last stable offset of each: records from there on may not be committed."""
        (ends,) = self._offsets(partitions, LATEST, isolation=IsolationLevel.READ_COMMITTED)
        return ends

    def offset_at(self, topic: str, partition: int, time_ms: int) -> int | None:
        """Return the first offset whose record is of that time or later; None: there is none."""
        spec: OffsetSpec = OffsetSpec.for_timestamp(time_ms)
        (found,) = self._offsets([(topic, partition)], spec)
        offset = found[topic, partition]
        return None if offset < 0 else offset

    def _offsets(
        self,
        partitions: Sequence[tuple[str, int]],
        *specs: OffsetSpec,
        isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> list[_Offsets]:
        """Return {(topic, partition): offset} for each of ``specs``, which are requested together.

        Repeat the requests while a leader changes.

        Repeat it without a limit while a new leader lacks the in-sync replicas that it needs to
        know its high watermark (Kafka's KIP-966): that passes once their brokers run.
        """
        found: list[_Offsets] = [{} for _ in specs]
        began = said = time.monotonic()
        deadline = began + _PATIENCE_S
        while futures := self._requested(partitions, specs, found, isolation):
            missing = sorted({(place.topic, place.partition) for _, place, _ in futures})
            lacks = None
            for of_spec, place, future in futures:
                try:
                    of_spec[place.topic, place.partition] = reported_offset(future)
                except KafkaException as error:
                    cause = error_of(error)
                    if cause.code() == KafkaError.OFFSET_NOT_AVAILABLE:
                        at = [(place.topic, place.partition)]
                        lacks = lacks or known_shortage(self._system, self._admin, at)
                        if lacks is not None:
                            continue
                    is_passing = is_transient(cause) and cause.code() not in self._at_once
                    if not is_passing or time.monotonic() > deadline:
                        what = f"asking the offsets of {place.topic} partition {place.partition}"
                        raise unread(self._system, what, cause) from None
            now = time.monotonic()
            if lacks is not None:
                deadline = now + _PATIENCE_S
                if now - said >= _PROGRESS_S:
                    said = now
                    _LOG.warning(
                        "reading offsets waits for Kafka, for %.0f s so far: %s", now - began, lacks
                    )
            if any(place not in of_spec for place in missing for of_spec in found):
                self._may_go_on(_PAUSE_S if lacks is None else _SHORTAGE_PAUSE_S)
                # The client asks the leader that it knows until it is made to look again.
                topics = sorted({topic for topic, _ in missing})
                with contextlib.suppress(UnavailableError):  # the next request raises it, too
                    know_topics(self._admin, self._system, topics, _ANSWER_S)
        return found

    def _requested(
        self,
        partitions: Sequence[tuple[str, int]],
        specs: Sequence[OffsetSpec],
        found: Sequence[_Offsets],
        isolation: IsolationLevel,
    ) -> list[tuple[_Offsets, TopicPartition, Future[ListOffsetsResultInfo]]]:
        """Request what is not ``found``; return where each answer belongs, its place and itself."""
        requested = []
        for of_spec, spec in zip(found, specs, strict=True):
            asked = {TopicPartition(*place): spec for place in partitions if place not in of_spec}
            if asked:
                futures = self._admin.list_offsets(
                    asked, isolation_level=isolation, request_timeout=_ANSWER_S
                )
                requested += [(of_spec, place, future) for place, future in futures.items()]
        return requested

    def changelog_topics(self, names: Sequence[str]) -> dict[str, ChangelogTopic]:
        """Return {topic: its id, how long it keeps deletions, and what it removes}."""
        ids = self.topic_ids(names)
        found = {}
        for name, config in self._topics().topic_configs(names).items():
            found[name] = ChangelogTopic(
                ids[name],
                int(config[DELETE_RETENTION]),
                deletes_by_age="delete" in policies(config.get("cleanup.policy", "")),
                compaction_lag_ms=int(config.get("min.compaction.lag.ms", "0")),
            )
        return found

    def topic_ids(self, names: Sequence[str]) -> dict[str, str]:
        """Return {topic: the broker's id of it}."""
        if not names:
            return {}
        ids = self._topics().existing_ids(names)
        for name in sorted(set(names).difference(ids)):
            raise PartitionError(f"system {self._system.name!r}: there is no topic {name!r}")
        return ids

    def deletions_kept(self, names: Sequence[str]) -> dict[str, int]:
        """Return {compacted topic: ms for which it keeps deletions}.

        In such a topic a newer record removes older ones of the same key.
        """
        found = self._topics().topic_configs(names)
        return {
            name: int(config[DELETE_RETENTION])
            for name, config in found.items()
            if "compact" in policies(config["cleanup.policy"])
        }

    def read(self, topic: str, partition: int, start: int, head: int) -> Iterator[list[Message]]:
        """Yield the committed records of [start, head), as ``read_all``."""
        for _, records in self.read_all({(topic, partition): (start, head)}):
            yield records

    def read_all(
        self, spans: Mapping[tuple[str, int], tuple[int, int]]
    ) -> Iterator[tuple[tuple[str, int], list[Message]]]:
        """Yield ((topic, partition), committed records of its [start, head)).

        They come in the order of their partition, in lists that are not empty. All ends are awaited
        together. The reader waits for an open transaction: its outcome is not known yet.

        Raises:
            HangingTransactionError: it waits for longer than a transaction of the job can be open.
            UnavailableError: Kafka sent nothing for a minute while the head was not reached.
        """
        reader = Reader(self._consumer, {place: place for place in spans}, list)
        return self._scan(spans, reader, _messages_below)

    def read_pairs(
        self, topic: str, partition: int, start: int, head: int, *, native: bool = True
    ) -> Iterator[Pairs]:
        """Yield the committed records of [start, head), ``native`` where that can be.

        This reader must read nothing else, by any method. Errors as of ``read_all``.
        """
        place = topic, partition
        reader = reader_of(self._consumer, {place: place}, PAIRS, native=native)
        with contextlib.closing(reader):
            for _, pairs in self._scan({place: (start, head)}, reader, _pairs_below):
                yield pairs

    def _scan(
        self,
        spans: Mapping[_Place, tuple[int, int]],
        reader: Reader[_Place, Rows],
        below: Callable[[int, Rows, int, int], Rows],
    ) -> Iterator[tuple[_Place, Rows]]:
        """Yield the records of ``spans``.

        ``below``: returns rows from a first one to an end, but none from the head on.
        """
        left = {place: head for place, (start, head) in spans.items() if start < head}
        if not left:
            return
        know_topics(self._consumer, self._system, sorted({topic for topic, _ in left}))
        self._consumer.assign([TopicPartition(*place, spans[place][0]) for place in left])
        reader.assigned(left)
        heard = said = looked = time.monotonic()
        unstable = {p: _OpenTransaction(self._system, *p, head) for p, head in left.items()}
        try:
            while left:
                self._may_go_on(0)
                taken = reader.take(_CHUNK, _CHUNK_BYTES, _POLL_S)
                now = time.monotonic()
                over = {fault.place for fault in taken.faults if self._is_over(fault, left)}
                begin = end = 0
                for place, count, _, first, last in taken.runs:
                    begin, end = end, end + count
                    # Records after the head belong to a later reader.
                    if taken.rows is not None and first < left.get(place, 0):
                        heard = now
                        yield place, below(left[place], taken.rows, begin, end)
                    if last + 1 >= left.get(place, 0):
                        over.add(place)
                left = {place: head for place, head in left.items() if place not in over}
                if now - max(heard, looked) > _LOOK_S:
                    self._look(left, unstable)
                    looked = time.monotonic()
                if left and now - heard > _PATIENCE_S:
                    (topic, partition), head = next(iter(left.items()))
                    why = f"nothing came for {_PATIENCE_S:g} s, the end {head} was not reached"
                    raise unavailable(self._system, f"reading {topic} {partition}", why)
                if now - said > _PROGRESS_S:
                    said = now
                    _LOG.info("reading %d partitions to %s", len(left), left)
        finally:
            self._consumer.unassign()

    def _look(
        self,
        heads: Mapping[tuple[str, int], int],
        unstable: Mapping[tuple[str, int], _OpenTransaction],
    ) -> None:
        for place, head in heads.items():
            unstable[place].require_over(self._stable_end(*place, head), time.monotonic())

    def _stable_end(self, topic: str, partition: int, head: int) -> int | None:
        """Return the partition's last stable offset; None: Kafka does not answer.

        Raises:
            PartitionError: the partition ends before ``head`` now, or does not exist any more.
        """
        place = topic, partition
        try:
            end = self.ends([place])[place].head
            if end < head:
                raise PartitionError(
                    f"system {self._system.name!r}: {topic} partition {partition} ended at {head}, "
                    f"and ends at {end} now: it was recreated, or cut short, while it was read; "
                    "start again"
                )
            return self.stable_ends([place])[place]
        except UnavailableError as error:
            _LOG.info("%s: waiting for it", error)
            return None

    def _is_over(self, fault: Fault[_Place], left: Mapping[_Place, int]) -> bool:
        """Return whether ``fault`` is the end of a partition, at the head or behind it."""
        if is_end(fault.error):
            head = None if fault.place is None else left.get(fault.place)
            return head is not None and fault.offset >= head
        if not is_transient(fault.error):
            what = "reading {} partition {}".format(*fault.place) if fault.place else "reading"
            raise unread(self._system, what, fault.error)
        return False


@contextlib.contextmanager
def log_readers(
    systems: Mapping[str, SystemConfig], may_go_on: Callable[[float], None]
) -> Iterator[dict[str, LogReader]]:
    """Yield {system: its reader} for a block; ``may_go_on`` as of ``LogReader``."""
    with contextlib.ExitStack() as opened:
        readers = {}
        for name, system in systems.items():
            readers[name] = LogReader(system, may_go_on)
            opened.callback(readers[name].close)
        yield readers


def offset_ranges(
    readers: Mapping[str, LogReader], partitions: Iterable[SystemStreamPartition]
) -> dict[SystemStreamPartition, OffsetRange]:
    """Return the range of offsets in Kafka of each partition; errors of ``LogReader.ends``."""
    places = sorted(set(partitions))
    found: dict[SystemStreamPartition, OffsetRange] = {}
    for system, reader in readers.items():
        own = [place for place in places if place.system == system]
        ends = reader.ends([(place.stream, place.partition) for place in own])
        found |= {place: ends[place.stream, place.partition] for place in own}
    return found


def topic_ids(
    readers: Mapping[str, LogReader], streams: Iterable[SystemStream]
) -> dict[SystemStream, str]:
    """Return {stream: the broker's id of its topic}; errors of ``LogReader.topic_ids``."""
    wanted = set(streams)
    found: dict[SystemStream, str] = {}
    for system, reader in readers.items():
        names = sorted(s.stream for s in wanted if s.system == system)
        ids = reader.topic_ids(names)
        found |= {SystemStream(system, name): topic_id for name, topic_id in ids.items()}
    return found


def _messages_below(head: int, messages: list[Message], first: int, end: int) -> list[Message]:
    found = messages[first:end]
    if (found[-1].offset() or 0) < head:
        return found
    return [message for message in found if (message.offset() or 0) < head]


def _pairs_below(head: int, pairs: Pairs, first: int, end: int) -> Pairs:
    return pairs.part(first, bisect.bisect_left(pairs.offsets, head, first, end))


class _OpenTransaction:
    """The open transaction that holds up the reader of a partition: its begin, and since when."""

    def __init__(self, system: SystemConfig, topic: str, partition: int, head: int) -> None:
        self._system = system
        self._topic = topic
        self._partition = partition
        self._head = head
        self._stable: int | None = None
        self._since_s = 0.0

    def require_over(self, stable: int | None, now_s: float) -> None:
        """Note ``stable``, the last stable offset now; None: it is not known.

        Raises:
            HangingTransactionError: it has not moved for longer than a transaction can be open.
        """
        if stable is None or stable >= self._head:
            self._stable = None
            return
        if stable != self._stable:
            self._stable, self._since_s = stable, now_s
        waited_s = now_s - self._since_s
        place = f"{self._topic} partition {self._partition}"
        _LOG.warning(
            "reading %s waits for a transaction that is open: its last stable offset has been %d "
            "for %.0f s, its head is %d",
            place,
            stable,
            waited_s,
            self._head,
        )
        if waited_s >= longest_transaction_s(self._system):
            raise HangingTransactionError(
                f"Kafka at {self._system.bootstrap_servers} (system {self._system.name!r}): "
                f"reading {place}: its last stable offset has been {stable} for {waited_s:.0f} s, "
                f"its head is {self._head}: "
                f"{how_to_end(self._system, self._topic, self._partition, stable)}"
            )


class KafkaChangelogReader:
    """Implements ``RestoreReader`` on one LogReader per system."""

    def __init__(self, readers: Mapping[str, LogReader]) -> None:
        self._readers = readers

    def topics(self, changelogs: Sequence[SystemStream]) -> dict[SystemStream, ChangelogTopic]:
        """Return the broker's answer for each stream."""
        found: dict[SystemStream, ChangelogTopic] = {}
        for system, reader in self._readers.items():
            names = sorted({s.stream for s in changelogs if s.system == system})
            for name, topic in reader.changelog_topics(names).items():
                found[SystemStream(system, name)] = topic
        return found

    def ranges(self, changelogs: Sequence[tuple[SystemStream, int]]) -> list[OffsetRange]:
        """Return the oldest offset and head of each (stream, partition), in the order given."""
        places = [SystemStreamPartition(s.system, s.stream, p) for s, p in changelogs]
        found = offset_ranges(self._readers, places)
        return [found[place] for place in places]

    def read_all(
        self, spans: Mapping[tuple[SystemStream, int], tuple[int, int]]
    ) -> Iterator[tuple[tuple[SystemStream, int], Chunk]]:
        """Yield ((stream, partition), chunk as of ``read``) for each [start, head) of ``spans``."""
        for system, reader in self._readers.items():
            own = {(s.stream, p): span for (s, p), span in spans.items() if s.system == system}
            for (topic, partition), records in reader.read_all(own):
                place = SystemStream(system, topic), partition
                yield place, chunk_of(pairs_of(records), records[-1].offset() or 0)

    def read(self, stream: SystemStream, partition: int, start: int, head: int) -> Iterator[Chunk]:
        """Yield the committed records of [start, head), the last value of each key per chunk."""
        reader = self._readers[stream.system]
        for records in reader.read(stream.stream, partition, start, head):
            yield chunk_of(pairs_of(records), records[-1].offset() or 0)


def chunk_of(pairs: Pairs, last_offset: int) -> Chunk:
    """Return the last value of each key in ``pairs``, behind which ``last_offset`` may lie."""
    columns = zip(pairs.keys, pairs.values, strict=True)
    entries = {key: value for key, value in columns if key is not None}
    return Chunk(entries, len(pairs.keys), last_offset)
