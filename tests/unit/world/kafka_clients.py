"""The Kafka library's three classes on the model broker: the product's own code runs on them.

Only what the product calls is here. Every request passes a point named for it before it leaves and
another one ("... answered") when its answer is there; an instant of the clock lies in between. A
broker that is away does not answer: the call ends with its time limit.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import TypeVar

from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import ConfigResource, NewPartitions

from tests.unit.world.clock import Clock, Process
from tests.unit.world.kafka import (
    Broker,
    FencedByBrokerError,
    Partition,
    Place,
    Record,
    UnknownTopicError,
    Writer,
)

_T = TypeVar("_T")
_LATENCY_MS = 1
_DEFAULT_TRANSACTION_MS = 60_000
_DEFAULT_REQUEST_S = 60.0


@dataclass
class Network:
    """The processes that reach the brokers.

    ``cut``: processes and hosts, by name, that do not. ``deaf``: {process: words of the requests
    whose answers it does not get}. ``mute``: {process: words of the requests that get nowhere}.
    """

    clock: Clock
    broker: Broker
    cut: set[str] = field(default_factory=set)
    deaf: dict[str, str] = field(default_factory=dict)
    mute: dict[str, str] = field(default_factory=dict)

    def reaches(self, process: Process | None) -> bool:
        """Whether a request of the process is answered now."""
        if process is None:
            return self.broker.is_up
        return self.broker.is_up and self.cut.isdisjoint({process.name, process.host})

    def request(self, words: str, limit_s: float, act: Callable[[], _T]) -> _T:
        """What ``act`` returns, once the broker has been reached.

        Raises:
            KafkaException: it was not within the limit, or the answer was lost.
        """
        clock = self.clock
        process = clock.current.process if clock.current else None
        clock.point(words)
        clock.sleep(_LATENCY_MS)
        limit_ms = max(limit_s, 0.001) * 1000
        if process is not None and self.mute.get(process.name, "\0") in words:
            clock.sleep(limit_ms)
            raise timed_out(words)
        if not clock.wait_for(lambda: self.reaches(process), limit_ms):
            raise timed_out(words)
        found = act()
        if process is not None and self.deaf.get(process.name, "\0") in words:
            clock.announce(f"{words}: the answer is lost")
            clock.sleep(limit_s * 1000)
            raise timed_out(words)
        clock.sleep(_LATENCY_MS)
        clock.point(f"{words} answered")
        return found


def timed_out(words: str) -> KafkaException:
    """What the library raises when a time limit is over."""
    code = KafkaError._TIMED_OUT
    return KafkaException(KafkaError(code, words, retriable=True))


def _fenced(words: str) -> KafkaError:
    return KafkaError(KafkaError._FENCED, words, fatal=True)


def _record_of(place: Place, record: Record) -> Message:
    return Message(
        topic=place[0],
        partition=place[1],
        offset=record.offset,
        key=record.key,
        value=record.value,
        timestamp=(TIMESTAMP_CREATE_TIME, record.at_ms),
    )


def _event_of(place: Place, offset: int, code: int | None = None) -> Message:
    error = None if code is None else KafkaError(code)
    return Message(topic=place[0], partition=place[1], offset=offset, error=error)


@dataclass
class _Assigned:
    position: int
    reported_end: int = -1


class ModelConsumer:
    """``confluent_kafka.Consumer``."""

    def __init__(self, network: Network, properties: Mapping[str, object]) -> None:
        self._network = network
        self._is_committed = properties.get("isolation.level") == "read_committed"
        self._tells_end = properties.get("enable.partition.eof") is True
        self._assigned: dict[Place, _Assigned] = {}
        self._fetched: deque[Message] = deque()

    def assign(self, places: Sequence[TopicPartition]) -> None:
        """Reads these from their offsets."""
        self._assigned = {(p.topic, p.partition): _Assigned(p.offset) for p in places}
        self._fetched.clear()

    def unassign(self) -> None:
        """Reads nothing."""
        self.assign([])

    def poll(self, timeout: float = -1) -> Message | None:
        """The next record or end; None when none came in time."""
        clock = self._network.clock
        if not self._fetched:
            process = clock.current.process if clock.current else None
            patience_ms = timeout * 1000 if timeout >= 0 else None
            clock.wait_for(lambda: self._may_fetch(process), patience_ms)
            self._fetch(process)
        return self._fetched.popleft() if self._fetched else None

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """Up to so many."""
        found: list[Message] = []
        while len(found) < num_messages:
            message = self.poll(0 if found else timeout)
            if message is None:
                break
            found.append(message)
        return found

    def get_watermark_offsets(
        self, place: TopicPartition, timeout: float = _DEFAULT_REQUEST_S, *, cached: bool = False
    ) -> tuple[int, int]:
        """Oldest offset and end; to a reader of committed records, the last stable offset is it."""
        del cached
        log = self._network.broker.partition((place.topic, place.partition))
        words = f"ask the end of {place.topic}"
        end = self._network.request(words, timeout, lambda: self._end(log))
        return log.oldest, end

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Topics:
        """What topics there are."""
        del topic, timeout
        return Topics(self._network.broker)

    def close(self) -> None:
        """Reads nothing more."""
        self._assigned = {}
        self._fetched.clear()

    def _end(self, log: Partition) -> int:
        return log.stable_end if self._is_committed else log.end

    def _may_fetch(self, process: Process | None) -> bool:
        if not self._network.reaches(process):
            return False
        for place, at in self._assigned.items():  # noqa: SIM110 - at each turn; any() costs more
            if self._has_news(place, at):
                return True
        return False

    def _has_news(self, place: Place, at: _Assigned) -> bool:
        end = self._end(self._network.broker.partition(place))
        return at.position < end or (self._tells_end and at.reported_end < end)

    def _fetch(self, process: Process | None) -> None:
        """An end is reported once, when the position has reached it; also of an empty range."""
        for place, at in self._assigned.items():
            if not self._may_fetch(process) or not self._has_news(place, at):
                continue
            self._network.clock.point(f"fetch {place[0]}")
            log = self._network.broker.partition(place)
            end = self._end(log)
            if at.position < log.oldest:
                code = KafkaError._AUTO_OFFSET_RESET
                self._fetched.append(_event_of(place, at.position, code))
                at.position = end
                continue
            if self._is_committed:
                records = list(log.committed(at.position, end))
            else:
                records = [r for r in log.records[at.position : end] if r.marker is None]
            self._fetched += [_record_of(place, r) for r in records]
            at.position = max(at.position, end)
            if self._tells_end:
                self._fetched.append(_event_of(place, end, KafkaError._PARTITION_EOF))
                at.reported_end = end


def _alone(partition: int) -> SimpleNamespace:
    """``PartitionMetadata`` of a broker that is alone."""
    return SimpleNamespace(id=partition, leader=1, replicas=[1], isrs=[1])


class Topics:
    """``ClusterMetadata``: {topic: its partitions}."""

    def __init__(self, broker: Broker) -> None:
        counts = broker.counts().items()
        self.topics = {
            t: SimpleNamespace(topic=t, partitions={p: _alone(p) for p in range(n)}, error=None)
            for t, n in counts
        }


class ModelAdmin:
    """``confluent_kafka.admin.AdminClient``."""

    def __init__(self, network: Network) -> None:
        self._network = network

    def poll(self, timeout: float = -1) -> int:  # noqa: ARG002 - the library's
        """0: no error waits, as host names of the world are always known."""
        return 0

    def list_offsets(
        self,
        asked: Mapping[TopicPartition, object],
        *,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        request_timeout: float = _DEFAULT_REQUEST_S,
    ) -> dict[TopicPartition, Future[SimpleNamespace]]:
        """{place: its oldest offset or its end, as that kind of reader sees it}."""
        found: dict[TopicPartition, Future[SimpleNamespace]] = {}
        for place, spec in asked.items():
            answer: Future[SimpleNamespace] = Future()
            is_oldest = "Earliest" in type(spec).__name__ or getattr(spec, "_value", None) == -2

            def ask(place: TopicPartition = place, is_oldest: bool = is_oldest) -> SimpleNamespace:  # noqa: FBT001 - a default
                log = self._network.broker.partition((place.topic, place.partition))
                is_committed = isolation_level == IsolationLevel.READ_COMMITTED
                end = log.stable_end if is_committed else log.end
                return SimpleNamespace(offset=log.oldest if is_oldest else end)

            try:
                words = f"ask the end of {place.topic}"
                answer.set_result(self._network.request(words, request_timeout, ask))
            except (KafkaException, UnknownTopicError) as error:
                answer.set_exception(_known(error))
            found[place] = answer
        return found

    def delete_records(
        self, places: Sequence[TopicPartition], *, request_timeout: float = _DEFAULT_REQUEST_S
    ) -> dict[TopicPartition, Future[None]]:
        """Nothing before these offsets is there any more."""

        def act() -> None:
            for place in places:
                log = self._network.broker.partition((place.topic, place.partition))
                log.oldest = max(log.oldest, place.offset)

        topics = ", ".join(dict.fromkeys(place.topic for place in places))
        answer = self._ask(f"delete records of {topics}", request_timeout, act)
        return dict.fromkeys(places, answer)

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Topics:
        """What topics there are."""
        del topic
        words = "look at all topics"
        return self._network.request(words, timeout, lambda: Topics(self._network.broker))

    def describe_topics(
        self, names: TopicCollection, *, request_timeout: float = _DEFAULT_REQUEST_S
    ) -> dict[str, Future[SimpleNamespace]]:
        """{topic: its id and partitions}."""
        return {
            name: self._ask(f"describe {name}", request_timeout, partial(self._described, name))
            for name in names.topic_names
        }

    def create_partitions(
        self, wanted: Sequence[NewPartitions], *, request_timeout: float, **_: float
    ) -> dict[str, Future[None]]:
        """{topic: nothing, once it has so many}."""
        broker = self._network.broker
        return {
            new.topic: self._ask(
                f"grow {new.topic}",
                request_timeout,
                partial(broker.grow, new.topic, new.new_total_count),
            )
            for new in wanted
        }

    def _described(self, name: str) -> SimpleNamespace:
        broker = self._network.broker
        if name not in broker.topic_ids:
            raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
        partitions = [SimpleNamespace(replicas=(1, 2, 3))] * broker.counts()[name]
        return SimpleNamespace(topic_id=broker.topic_ids[name], partitions=partitions)

    def describe_configs(
        self, resources: Sequence[ConfigResource], *, request_timeout: float = _DEFAULT_REQUEST_S
    ) -> dict[ConfigResource, Future[dict[str, SimpleNamespace]]]:
        """{topic: how long it keeps deletions}."""
        return {
            resource: self._ask(
                f"describe {resource.name}",
                request_timeout,
                lambda: {
                    "delete.retention.ms": SimpleNamespace(
                        value=str(self._network.broker.delete_retention_ms)
                    )
                },
            )
            for resource in resources
        }

    def _ask(self, words: str, limit_s: float, act: Callable[[], _T]) -> Future[_T]:
        answer: Future[_T] = Future()
        try:
            answer.set_result(self._network.request(words, limit_s, act))
        except KafkaException as error:
            answer.set_exception(error)
        return answer


def _known(error: Exception) -> KafkaException:
    if isinstance(error, KafkaException):
        return error
    return KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART, str(error)))


Delivered = Callable[[KafkaError | None, Message | None], None]


@dataclass
class _Queued:
    place: Place
    key: bytes | None
    value: bytes | None
    on_delivery: Delivered | None


class ModelProducer:
    """``confluent_kafka.Producer``: plain, or with a transactional id."""

    def __init__(self, network: Network, properties: Mapping[str, object]) -> None:
        self._network = network
        id_ = properties.get("transactional.id")
        self._id = None if id_ is None else str(id_)
        self._timeout_ms = int(
            str(properties.get("transaction.timeout.ms", _DEFAULT_TRANSACTION_MS))
        )
        self._writer = Writer(None) if self._id is None else None
        self._queue: list[_Queued] = []
        self._fatal: KafkaError | None = None

    def init_transactions(self, timeout: float = _DEFAULT_REQUEST_S) -> None:
        """The id has a new epoch, and no transaction of it is unfinished."""
        id_ = self._id or ""
        broker, clock = self._network.broker, self._network.clock
        self._writer = self._network.request(f"init {id_}", timeout, lambda: broker.init(id_))
        clock.wait_for(lambda: not broker.is_ending(id_), timeout * 1000)

    def begin_transaction(self) -> None:
        """Records may be produced."""
        self._require_sound()

    def produce(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        partition: int | None = None,
        callback: Delivered | None = None,
        on_delivery: Delivered | None = None,
        timestamp: int = 0,
        headers: object = None,
    ) -> None:
        """The record is queued."""
        del timestamp, headers
        self._require_sound()
        if partition is None or partition < 0:  # librdkafka: the partitioner chooses
            count = self._network.broker.counts().get(topic, 1)
            partition = zlib.crc32(key or b"") % count
        self._queue.append(_Queued((topic, partition), key, value, callback or on_delivery))

    def poll(self, timeout: float = 0) -> int:
        """Nothing: records leave with ``flush`` and ``commit_transaction``."""
        del timeout
        return 0

    def flush(self, timeout: float = _DEFAULT_REQUEST_S) -> int:
        """What is queued is in the log, or how many records are not."""
        queue, self._queue = self._queue, []
        if not queue:
            return 0
        topics = ", ".join(dict.fromkeys(item.place[0] for item in queue))
        try:
            self._network.request(f"send to {topics}", timeout, lambda: self._append(queue))
        except KafkaException:
            self._queue = queue
        return len(self._queue)

    def purge(self, *, in_queue: bool = True, in_flight: bool = True) -> None:
        """What is queued is dropped; here nothing is in flight."""
        del in_queue, in_flight
        self._queue = []

    def commit_transaction(self, timeout: float = _DEFAULT_REQUEST_S) -> None:
        """All that was produced since the beginning is committed; KafkaException: see its flags."""
        self.flush(timeout)
        self._end("commit", timeout, commit=True)

    def abort_transaction(self, timeout: float = _DEFAULT_REQUEST_S) -> None:
        """Nothing that was produced since the beginning will be seen."""
        self.purge()
        self._end("abort", timeout, commit=False)

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Topics:
        """What topics there are."""
        del topic, timeout
        return Topics(self._network.broker)

    def close(self) -> None:
        """Nothing: what is open is left to its time-out."""

    def _end(self, words: str, timeout: float, *, commit: bool) -> None:
        self._require_sound()
        broker, clock, id_ = self._network.broker, self._network.clock, self._id or ""

        def act() -> None:
            clock.wait_for(lambda: not broker.is_ending(id_))
            if self._writer is not None:
                broker.end(self._writer, commit=commit)

        try:
            self._network.request(f"{words} {id_}", timeout, act)
        except FencedByBrokerError as error:
            self._fatal = _fenced(str(error))
            raise KafkaException(self._fatal) from None

    def _append(self, queue: list[_Queued]) -> None:
        writer = self._writer
        if writer is None:
            raise AssertionError("a transactional producer sends after its init")
        if self._id is not None:
            id_ = self._id
            self._network.clock.wait_for(lambda: not self._network.broker.is_ending(id_))
        for item in queue:
            error: KafkaError | None = None
            offset = -1
            try:
                offset = self._network.broker.append(
                    item.place, writer, item.key, item.value, self._timeout_ms
                )
            except FencedByBrokerError as fenced:
                self._fatal = error = _fenced(str(fenced))
            except UnknownTopicError as unknown:
                error = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART, str(unknown))
            if item.on_delivery is not None:
                item.on_delivery(error, _event_of(item.place, offset))

    def _require_sound(self) -> None:
        if self._fatal is not None:
            raise KafkaException(self._fatal)
