"""Is the result right? Answers from Kafka and the state directories alone, by Kafka's own client.

Nothing of the job's code is used for it but the form of the OFFSET file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from flights_demo.screen import DemoError
from flights_demo.tasks import is_mixed
from homeport.config.loading.properties_format import parse_properties
from homeport.container.progress import offset_file

FLIGHTS_JOB = "flights"
INPUT, OUTPUT, CHANGES, PARTITIONS = "flights", "plane-summary", "plane-changes", 8
CHANGELOGS = {"summaries": "flights-summaries-changelog", "skipped": "flights-skipped-changelog"}
"""{store: its changelog}."""


def consumer_of(bootstrap_servers: str, properties: Path | None = None) -> Consumer:
    """Return a consumer of committed records; it is of no group that would hear of it.

    ``properties``: a file of librdkafka's, beside those that it needs for reading.
    """
    given = {} if properties is None else parse_properties(properties.read_text("utf-8"))
    return Consumer(
        {
            **given,
            "bootstrap.servers": bootstrap_servers,
            "group.id": "flights-demo",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "fetch.queue.backoff.ms": 10,
            "fetch.wait.max.ms": 10,
            "log_level": 3,  # errors only: topics go with the job
        }
    )


class Reader:
    """Reads whole topic partitions, committed records only."""

    def __init__(self, bootstrap_servers: str, properties: Path | None = None) -> None:
        """``properties``: as ``consumer_of`` takes it."""
        self._consumer = consumer_of(bootstrap_servers, properties)

    def close(self) -> None:
        """The connection is closed."""
        self._consumer.close()

    def end_offset(self, topic: str, partition: int) -> int:
        """The offset that the next record would get."""
        return int(
            self._consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=30)[1]
        )

    def last_offset(self, topic: str, partition: int) -> int:
        """The offset of the last committed record; -1 where there is none."""
        last = -1
        for message in self._messages(topic, partition, OFFSET_BEGINNING):
            last = message.offset() or 0
        return last

    def records(
        self, topic: str, partition: int, start: int = OFFSET_BEGINNING
    ) -> Iterator[tuple[bytes | None, ...]]:
        """(key, value) of each record from ``start`` to the end as it stands now."""
        for message in self._messages(topic, partition, start):
            yield message.key(), message.value()

    def _messages(self, topic: str, partition: int, start: int) -> Iterator[Message]:
        self._consumer.assign([TopicPartition(topic, partition, start)])
        while True:
            message = self._consumer.poll(30)
            if message is None:
                raise DemoError(
                    f"Kafka did not answer within 30 s for {topic}, partition {partition}"
                )
            error = message.error()
            if error is None:
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - the client's public constant
                return
            else:
                raise DemoError(f"reading {topic}, partition {partition}: {error}")


def next_offsets(reader: Reader, job: str = FLIGHTS_JOB, topic: str = INPUT) -> dict[int, int]:
    """The next offset of each partition of an input after the job's newest checkpoints; or 0."""
    offsets = dict.fromkeys(range(PARTITIONS), 0)
    for _, value in reader.records(f"__samza_checkpoint_ver_1_for_{job}_1", 0):
        if value is None:
            continue
        for entry in json.loads(value).values():
            if entry["stream"] == topic:
                offsets[int(entry["partition"])] = int(entry["offset"]) + 1
    return offsets


def am_url(reader: Reader, job: str = FLIGHTS_JOB) -> str | None:
    """Where the job's newest AM says it answers, by the coordinator stream; None: none said so."""
    url = None
    for key, value in reader.records(f"__samza_coordinator_{job}_1", 0):
        if json.loads(key or b"[]")[1:] == ["set-config", "yarn.am.tracking.url"]:
            url = None if value is None else str(json.loads(value)["values"]["value"])
    return url


def key_written_s(reader: Reader, wanted: str, job: str = FLIGHTS_JOB) -> float:
    """When the coordinator stream's last record of a key was written, in seconds since 1970."""
    written_ms = 0
    for key, value in reader.records(f"__samza_coordinator_{job}_1", 0):
        if json.loads(key or b"[]")[1:] == ["set-config", wanted] and value is not None:
            written_ms = int(json.loads(value)["timestamp"])
    return written_ms / 1000


def outputs_of(reader: Reader) -> Iterator[tuple[int, dict[str, Any]]]:
    """(partition, value) of each summary that the job has sent, those of a plane in their order."""
    for partition in range(PARTITIONS):
        for _, value in reader.records(OUTPUT, partition):
            yield partition, json.loads(value or b"{}")


def changes_of(reader: Reader) -> Iterator[dict[str, Any]]:
    """The changes that the job has sent as SQL alone, those of a plane in their order."""
    for partition in range(PARTITIONS):
        for _, value in reader.records(CHANGES, partition):
            yield json.loads(value or b"{}")


def compare(found: Mapping[str, Any], expected: dict[str, dict[str, Any]]) -> list[str]:
    """One line per plane whose summary differs from the right one."""
    differences = []
    for tail_number in sorted(expected.keys() | found.keys()):
        right, got = expected.get(tail_number), found.get(tail_number)
        if right != got:
            differences.append(f"{tail_number}: expected {right}, found {got}")
    return differences


def skipped_flights(reader: Reader, number: Callable[[bytes], int] = int) -> int:
    """Return how many flights without a tail number the job skipped, by its state.

    ``number``: reads a value of the state.
    """
    newest: dict[bytes | None, int] = {}
    for partition in range(PARTITIONS):
        for key, value in reader.records("flights-skipped-changelog", partition):
            newest[key] = 0 if value is None else number(value)
    return sum(newest.values())


@dataclass(frozen=True)
class AtHome:
    """A task's store on its host while nothing runs: OFFSET, and how many records follow it."""

    host: str
    offset: str
    newer_records: int


def stores_at_home(
    reader: Reader,
    model: dict[str, Any],
    hosts: dict[str, str],
    state_dir: Callable[[str], Path],
    stores: Mapping[str, str] = CHANGELOGS,
) -> dict[tuple[str, str], AtHome]:
    """For each (store, task): its OFFSET file, and what the changelog has after it.

    Without standbys in mixed containers, which restore them after their start.

    ``stores``: {store of the job: its changelog}.
    """
    found = {}
    has_starts = {"Active"} if is_mixed(model) else {"Active", "Standby"}
    # A standby keeps its stores where its active one would, and has its changelog partition.
    owners = {
        stated["changelog-partition"]: task
        for container in model["containers"].values()
        for task, stated in container["tasks"].items()
        if stated["task-mode"] == "Active"
    }
    for processor_id, container in model["containers"].items():
        host = hosts[processor_id]
        for task, task_model in container["tasks"].items():
            if task_model["task-mode"] not in has_starts:
                continue
            owner = owners[task_model["changelog-partition"]]
            for store, changelog in stores.items():
                directory = state_dir(host) / "flights-1" / store / owner.replace(" ", "_")
                file = directory / "OFFSET"
                if not file.exists():
                    raise DemoError(f"no OFFSET file in {directory} after an orderly stop")
                offset = offset_file.decode(file.read_bytes())
                partition = task_model["changelog-partition"]
                newer = sum(1 for _ in reader.records(changelog, partition, int(offset) + 1))
                found[store, task] = AtHome(host, offset, newer)
    return found
