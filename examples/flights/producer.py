"""Writes the flights of 2013 to the topic ``flights``: JSON, keyed by tail number, by time.

python examples/flights/producer.py --bootstrap-servers HOST:PORT [--rate RECORDS_PER_SECOND]
    [--command-config FILE]

Before them it writes the reference data, and in their midst a new edition of the airlines' names.
After SIGUSR1 the rate holds no longer: what is left comes as fast as it goes.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from data import EDITIONS, FLIGHTS, read_flights, records
from reference_streams import (
    AIRLINES,
    airline_records,
    airport_records,
    plane_records,
    reference_topics,
    write,
)

TOPIC = "flights"
OUTPUT_TOPIC = "plane-summary"
CHANGES_TOPIC = "plane-changes"
PARTITIONS = 8
CHUNK = 100
"""Of records, between two looks at the pace: a slow pace is no series of bursts."""
LEADER_LIMIT_S = 30.0
NO_LEADER_YET = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 - the client's public constant
)


def client_properties(file: Path) -> dict[str, str]:
    """Properties of librdkafka, a line ``name=value`` for each."""
    lines = (line.strip() for line in file.read_text(encoding="utf-8").splitlines())
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {name.strip(): value.strip() for name, _, value in pairs}


def new_topics() -> list[NewTopic]:
    """The inputs and the outputs: summaries are compacted, changes are not."""
    return [
        *reference_topics(PARTITIONS),
        NewTopic(TOPIC, PARTITIONS, 1),
        NewTopic(OUTPUT_TOPIC, PARTITIONS, 1, config={"cleanup.policy": "compact"}),
        NewTopic(CHANGES_TOPIC, PARTITIONS, 1),
    ]


def create_topics(kafka: Mapping[str, str]) -> None:
    """The topics exist."""
    admin = AdminClient(dict(kafka))
    for future in admin.create_topics(new_topics(), operation_timeout=30).values():
        try:
            future.result(60)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise


def refuse_a_second_run(kafka: Mapping[str, str]) -> None:
    """Ends the program where the topic holds records: a second copy would double the sums."""
    held = _records_in(kafka, TOPIC, PARTITIONS)
    if held:
        raise SystemExit(
            f"error: topic {TOPIC} already holds {held} records; delete it before writing it again"
        )


def fill_reference_topics(kafka: Mapping[str, str]) -> None:
    """Planes, airports and the first edition of the airlines are there; repeated, it does nothing.

    Raises:
        SystemExit: not all were written.
    """
    if not _records_in(kafka, AIRLINES, 1):
        producer = new_producer(kafka)
        write(producer, [*plane_records(), *airport_records()])
        write(producer, airline_records(EDITIONS[0]))  # last, as it says that all are there


def _records_in(kafka: Mapping[str, str], topic: str, partitions: int) -> int:
    consumer = Consumer({**kafka, "group.id": "flights-producer"})
    try:
        ranges = (_range(consumer, TopicPartition(topic, p)) for p in range(partitions))
        return sum(high - low for low, high in ranges)
    finally:
        consumer.close()


def _range(consumer: Consumer, place: TopicPartition) -> tuple[int, int]:
    """Its first offset and the next one, once its leader answers: a little after its creation."""
    deadline = time.monotonic() + LEADER_LIMIT_S
    while True:
        try:
            low, high = consumer.get_watermark_offsets(place, timeout=30)
        except KafkaException as error:
            if error.args[0].code() not in NO_LEADER_YET or time.monotonic() > deadline:
                raise
            time.sleep(0.1)  # leaders are polled for; they have no event
        else:
            return low, high


def new_producer(kafka: Mapping[str, str]) -> Producer:
    """Return a producer that places keys as Kafka's Java producer does."""
    return Producer(
        {
            **kafka,
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            "linger.ms": 20,
            "compression.type": "lz4",
            "log_level": 3,  # errors only: a request that a starting broker refuses is retried
            "queue.buffering.max.messages": 500_000,
        }
    )


class Signals:
    """What signals request of the program while it writes."""

    def __init__(self) -> None:
        """SIGUSR1 sets ``hurry``, SIGUSR2 sets ``go_on``."""
        self.hurry, self.go_on = threading.Event(), threading.Event()
        signal.signal(signal.SIGUSR1, lambda *_: self.hurry.set())
        signal.signal(signal.SIGUSR2, lambda *_: self.go_on.set())


def produce(kafka: Mapping[str, str], options: argparse.Namespace, signals: Signals) -> None:
    """Every flight is in the topic once, each plane's in order.

    Between two of them the second edition of the airlines is written: as ``options`` say, after
    how many, and whether the rest waits for SIGUSR2 there.
    """
    failures: list[str] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(str(error))

    producer = new_producer(kafka)
    started = time.monotonic()
    for count, flight in enumerate(records(read_flights()), start=1):
        key = flight["tailnum"]
        producer.produce(
            TOPIC, json.dumps(flight, separators=(",", ":")), key=key, on_delivery=delivered
        )
        if count % CHUNK == 0:
            pace = None if signals.hurry.is_set() else options.rate
            _serve_reports(producer, until=started + count / pace if pace else 0.0)
        if count % 50_000 == 0 or count == FLIGHTS:
            print(
                f"produced {count:,} of {FLIGHTS:,} flights, {time.monotonic() - started:.1f} s",
                flush=True,
            )
        if count == options.new_airlines_after:
            producer.flush(120)
            if options.hold:
                signals.go_on.wait()
            write(producer, airline_records(EDITIONS[1]))
            print(f"produced a new edition of the airlines after {count:,} flights", flush=True)
    producer.flush(120)
    if failures or len(producer):
        raise SystemExit(
            f"error: {len(failures) + len(producer)} flights were not written: {failures[:1]}"
        )


def _serve_reports(producer: Producer, until: float) -> None:
    """Serves delivery reports, at least those that are in, until the monotonic clock says so."""
    while True:
        # Never below zero: a negative time is for ever to the client.
        wait = max(0.0, until - time.monotonic())
        producer.poll(wait)
        if not wait:
            return


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bootstrap-servers", required=True, help="the broker, HOST:PORT")
    parser.add_argument(
        "--command-config",
        type=Path,
        metavar="FILE",
        help="more properties of Kafka's client (librdkafka's names), as for TLS and SASL",
    )
    parser.add_argument(
        "--rate", type=int, default=None, help="records per second (default: as fast as it goes)"
    )
    parser.add_argument(
        "--no-flights", action="store_true", help="create the topics, write reference data alone"
    )
    parser.add_argument(
        "--new-airlines-after",
        type=int,
        metavar="N",
        default=FLIGHTS // 2,
        help="write the second edition of the airlines after so many flights (default: half)",
    )
    parser.add_argument(
        "--hold", action="store_true", help="wait for SIGUSR2 before the second edition"
    )
    options = parser.parse_args()
    if options.rate is not None and options.rate <= 0:
        sys.exit(
            f"error: --rate = {options.rate}: it must be at least 1; leave it out for full speed"
        )
    given = {} if options.command_config is None else client_properties(options.command_config)
    kafka = {**given, "bootstrap.servers": options.bootstrap_servers}
    create_topics(kafka)
    fill_reference_topics(kafka)
    if not options.no_flights:
        refuse_a_second_run(kafka)
        produce(kafka, options, Signals())


if __name__ == "__main__":
    main()
