"""Writes the flights of 2013 to the topic ``flights``: JSON, keyed by tail number, by time.

python examples/flights/producer.py --bootstrap-servers HOST:PORT [--rate RECORDS_PER_SECOND]
    [--command-config FILE]

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
from data import FLIGHTS, read_flights, records

TOPIC = "flights"
OUTPUT_TOPIC = "plane-summary"
CHANGES_TOPIC = "plane-changes"
PARTITIONS = 8
CHUNK = 2_000


def client_properties(file: Path) -> dict[str, str]:
    """Properties of librdkafka, a line ``name=value`` for each."""
    lines = (line.strip() for line in file.read_text(encoding="utf-8").splitlines())
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {name.strip(): value.strip() for name, _, value in pairs}


def new_topics() -> list[NewTopic]:
    """The input and the outputs: summaries are compacted, changes are not."""
    return [
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
    consumer = Consumer({**kafka, "group.id": "flights-producer"})
    try:
        held = 0
        for partition in range(PARTITIONS):
            low, high = consumer.get_watermark_offsets(TopicPartition(TOPIC, partition), timeout=30)
            held += high - low
    finally:
        consumer.close()
    if held:
        raise SystemExit(
            f"error: topic {TOPIC} already holds {held} records; delete it before writing it again"
        )


def produce(kafka: Mapping[str, str], rate: int | None, hurry: threading.Event) -> None:
    """Every flight is in the topic once, each plane's in order.

    ``rate``: records per second, until ``hurry`` is set.
    """
    failures: list[str] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(str(error))

    producer = Producer(
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
    started = time.monotonic()
    for count, flight in enumerate(records(read_flights()), start=1):
        key = flight["tailnum"]
        producer.produce(
            TOPIC,
            json.dumps(flight, separators=(",", ":")),
            key=key,
            on_delivery=delivered,
        )
        if count % CHUNK == 0:
            pace = None if hurry.is_set() else rate
            _serve_reports(producer, until=started + count / pace if pace else 0.0)
        if count % 50_000 == 0 or count == FLIGHTS:
            print(
                f"produced {count:,} of {FLIGHTS:,} flights, {time.monotonic() - started:.1f} s",
                flush=True,
            )
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
        "--topics-only", action="store_true", help="create the topics, write nothing"
    )
    options = parser.parse_args()
    if options.rate is not None and options.rate <= 0:
        sys.exit(
            f"error: --rate = {options.rate}: it must be at least 1; leave it out for full speed"
        )
    given = {} if options.command_config is None else client_properties(options.command_config)
    kafka = {**given, "bootstrap.servers": options.bootstrap_servers}
    create_topics(kafka)
    if not options.topics_only:
        refuse_a_second_run(kafka)
        hurry = threading.Event()
        signal.signal(signal.SIGUSR1, lambda *_: hurry.set())
        produce(kafka, options.rate, hurry)


if __name__ == "__main__":
    main()
