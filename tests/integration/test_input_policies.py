"""Where and in which order input is read, what is lost, and how much at once, on a real broker."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from stream_containers import DEADLINE_S, until_led
from waiting import until

from homeport.config.config import Config
from homeport.config.errors import StoreError
from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka.input_consumer import MAX_BYTES, InputConsumer, MicroBatch, Reading
from homeport.container.progress.input_position import InputPosition, LostInputError
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

TASK = TaskName("Partition 0")
LARGE = 10_000_000


class Reader:
    """Topics of one partition, and an InputConsumer over them from their beginnings."""

    def __init__(self, servers: str, *, is_native: bool) -> None:
        self._is_native = is_native
        self.servers = servers
        self.admin = AdminClient({"bootstrap.servers": servers})
        self._of = f"read{uuid.uuid4().hex[:8]}"
        self._sources: list[InputConsumer] = []

    def topic(self, name: str) -> str:
        """The test's own topic of that name."""
        return f"{self._of}-{name}"

    def create(self, name: str, **config: str) -> None:
        """The topic has one partition, and is usable."""
        properties = {key.replace("_", "."): value for key, value in config.items()}
        topic = NewTopic(self.topic(name), 1, 1, config=properties)
        self.admin.create_topics([topic])[topic.topic].result(DEADLINE_S)
        until_led(self.admin, TopicPartition(topic.topic, 0))

    def put(self, name: str, values: Sequence[bytes], outcome: str | None = None) -> None:
        """The values are there, of a transaction with that outcome if it is named."""
        properties = {"bootstrap.servers": self.servers, "message.max.bytes": LARGE + 1000}
        if outcome is not None:
            properties["transactional.id"] = self._of
        producer = Producer(properties)
        if outcome is not None:
            producer.init_transactions(DEADLINE_S)
            producer.begin_transaction()
        for value in values:
            producer.produce(self.topic(name), value, partition=0)
        assert producer.flush(DEADLINE_S) == 0
        if outcome is not None:
            getattr(producer, f"{outcome}_transaction")(DEADLINE_S)

    def delete_before(self, name: str, offset: int) -> None:
        """As retention does."""
        place = TopicPartition(self.topic(name), 0, offset)
        self.admin.delete_records([place])[place].result(DEADLINE_S)

    def source(
        self,
        starts: Mapping[str, int],
        keys: Mapping[str, str] | None = None,
        *,
        ends: Mapping[str, int] | None = None,
        max_bytes: int = MAX_BYTES,
        lost: Callable[[SystemStreamPartition, InputPosition], None] | None = None,
    ) -> InputConsumer:
        """Reads each topic from its offset on, by keys of streams such as ``in.samza.priority``."""
        config = {"systems.kafka.consumer.bootstrap.servers": self.servers}
        for key, value in (keys or {}).items():
            name, _, rest = key.partition(".")
            config[f"systems.kafka.streams.{self.topic(name)}.{rest}"] = value
        systems = {"kafka": SystemConfig.of(Config(config), "kafka")}
        places = {self.ssp(name): offset for name, offset in starts.items()}
        source = InputConsumer(
            systems,
            {TASK: places},
            ends={self.ssp(name): end for name, end in (ends or {}).items()},
            reading=Reading(max_bytes, self._is_native),
            lost=lost,
        )
        self._sources.append(source)
        return source

    def ssp(self, name: str) -> SystemStreamPartition:
        """The topic's only partition."""
        return SystemStreamPartition("kafka", self.topic(name), 0)

    def close(self) -> None:
        """Nothing is read any more."""
        for source in self._sources:
            source.close()


@pytest.fixture(params=[True, False], ids=["native", "python"])
def reader(kafka: str, request: pytest.FixtureRequest) -> Iterator[Reader]:
    """Of a test's own topics, by each path."""
    made = Reader(kafka, is_native=request.param)
    yield made
    made.close()


def _batches(source: InputConsumer, rows: int, max_rows: int = 1000) -> list[MicroBatch]:
    """Batches until they have so many rows together."""
    found: list[MicroBatch] = []
    deadline = time.monotonic() + DEADLINE_S
    while sum(batch.table.num_rows for batch in found) < rows:
        assert time.monotonic() < deadline, found
        batch = source.poll(max_rows, 0.2)
        if batch is not None:
            found.append(batch)
    return found


def _values(batches: Sequence[MicroBatch]) -> list[bytes]:
    return [value for batch in batches for value in batch.table.column("value").to_pylist()]


@pytest.mark.parametrize("outcome", ["commit", "abort"])
def test_a_bootstrap_stream_is_read_to_its_end_before_others(reader: Reader, outcome: str) -> None:
    """Its end of the start, behind which a transaction may stand; what comes later goes first."""
    for name in ("table", "in"):
        reader.create(name)
    reader.put("in", [b"in"] * 10)
    reader.put("table", [b"table"] * 5, "commit")
    reader.put("table", [b"table"] * 5, outcome)
    ends = {"table": 12, "in": 10}
    keys = {"table.samza.bootstrap": "true"}
    source = reader.source({"table": 0, "in": 0}, keys, ends=ends)
    tables = 10 if outcome == "commit" else 5
    assert _values(_batches(source, tables + 10, max_rows=3)) == [b"table"] * tables + [b"in"] * 10
    assert source.is_at_end()


def test_a_bootstrap_stream_at_its_end_holds_up_nothing(reader: Reader) -> None:
    """One that is empty, or was read before."""
    for name in ("table", "empty", "in"):
        reader.create(name)
    reader.put("in", [b"in"])
    reader.put("table", [b"table"])
    keys = {"table.samza.bootstrap": "true", "empty.samza.bootstrap": "true"}
    ends = {"table": 1, "empty": 0}
    source = reader.source({"table": 1, "empty": 0, "in": 0}, keys, ends=ends)
    assert _values(_batches(source, 1)) == [b"in"]
    reader.put("table", [b"later"])
    assert _values(_batches(source, 1)) == [b"later"]


def test_a_higher_priority_goes_first_while_it_has_records(reader: Reader) -> None:
    """Among those at hand; the lower one is read whenever the higher has none."""
    words = {n: [b"%s-%d" % (n.encode(), i) for i in range(20)] for n in ("low", "high")}
    for name in words:
        reader.create(name)
    reader.put("high", words["high"])
    source = reader.source({"low": 0, "high": 0}, {"high.samza.priority": "1"})
    # With the first one all of them have come: they were in one answer of the broker.
    assert _values(_batches(source, 1, max_rows=1)) == words["high"][:1]
    reader.put("low", words["low"])
    until(lambda: source.lag() == 39, source.lag)  # the lower one has answered too
    assert _values(_batches(source, 39, max_rows=6)) == words["high"][1:] + words["low"]
    reader.put("low", [b"alone"])
    assert _values(_batches(source, 1)) == [b"alone"]


def test_a_batch_exceeds_its_bytes_by_less_than_one_record(reader: Reader) -> None:
    """Records of 10 MB among small ones: all come, in order, at most a bound and a record each."""
    reader.create("in", max_message_bytes=str(LARGE + 1000))
    values = [bytes([n]) * size for n, size in enumerate([LARGE, 10, 10, LARGE, LARGE, LARGE, 5])]
    reader.put("in", values)
    bound = 12_000_000
    source = reader.source({"in": 0}, max_bytes=bound)
    batches = _batches(source, len(values))
    assert _values(batches) == values
    assert max(batch.size_bytes for batch in batches) < bound + LARGE
    assert len(batches) >= 3
    offsets = [o for batch in batches for o in batch.table.column("offset").to_pylist()]
    assert offsets == list(range(len(values)))
    assert source.is_at_end()


def test_many_small_records_fill_a_batch_to_its_bytes(reader: Reader) -> None:
    """What was fetched beyond the bound is in the next batch."""
    reader.create("in")
    reader.put("in", [b"v" * 100] * 1000)
    source = reader.source({"in": 0}, max_bytes=10_000)
    batches = _batches(source, 1000)
    assert max(batch.table.num_rows for batch in batches) == 100
    assert source.is_at_end()


@pytest.mark.parametrize(("policy", "first", "lost"), [("earliest", 5, 3), ("latest", 8, 6)])
def test_retention_that_passes_a_reader_is_a_counted_gap(
    reader: Reader, policy: str, first: int, lost: int
) -> None:
    """The reader goes on where the key says, and says how much it never read."""
    reader.create("in")
    reader.put("in", [b"%d" % n for n in range(8)])
    reader.delete_before("in", 5)
    gaps: list[tuple[SystemStreamPartition, InputPosition]] = []
    source = reader.source({"in": 2}, {"in.input.lost": policy}, lost=lambda *gap: gaps.append(gap))
    if first < 8:
        assert _values(_batches(source, 3)) == [b"5", b"6", b"7"]
    while not gaps:
        assert source.poll(10, DEADLINE_S) is None
    reader.put("in", [b"new"])
    assert _values(_batches(source, 1)) == [b"new"]
    assert gaps == [(reader.ssp("in"), InputPosition(first, lost))]
    assert source.is_at_end()


def test_retention_that_passes_a_reader_fails_it_by_default(reader: Reader) -> None:
    """One line; nothing is read beyond the gap."""
    reader.create("in")
    reader.put("in", [b"v"] * 8)
    reader.delete_before("in", 5)
    source = reader.source({"in": 2})
    with pytest.raises(LostInputError) as caught:
        _batches(source, 1)
    assert str(caught.value) == (
        f"kafka.{reader.topic('in')} partition 0: the next offset to read is 2, but Kafka has 5 to "
        f"8: it has deleted 3 offsets that were not read, by retention; set "
        f"systems.kafka.streams.{reader.topic('in')}.input.lost=earliest to go on without them, or "
        "=latest to skip all there is"
    )


def test_an_offset_beyond_the_end_is_no_gap(reader: Reader) -> None:
    """Whatever the policy: the topic is another one, or was cut short."""
    reader.create("in")
    reader.put("in", [b"v"])
    source = reader.source({"in": 7}, {"in.input.lost": "earliest"})
    with pytest.raises(StoreError, match=r"processed offset 6, but the partition ends at 1"):
        _batches(source, 1)


def test_the_time_of_a_record_may_be_the_brokers(reader: Reader) -> None:
    """LogAppendTime: when the broker got it, whatever its writer said."""
    reader.create("in", message_timestamp_type="LogAppendTime")
    before = int(time.time() * 1000)
    reader.put("in", [b"v"])
    (batch,) = _batches(reader.source({"in": 0}), 1)
    assert before <= batch.table.column("timestamp").to_pylist()[0] <= time.time() * 1000
