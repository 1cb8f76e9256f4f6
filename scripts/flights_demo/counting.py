"""Was each record counted once? The counting job beside the flights job, and what it must say.

It reads Kafka alone: the newest counts in the changelog, and the output of each transaction.
"""

from __future__ import annotations

import json
import time

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from flights_demo.job import ROOT, DemoJob
from flights_demo.screen import DemoError, Screen
from flights_demo.verdict import INPUT, PARTITIONS, Reader, next_offsets

EXAMPLE = ROOT / "examples" / "counting"
NAME = "counting"
_OUTPUT = "flights-counted"
_CHANGELOG = "counting-counts-changelog"
_CONSUME_LIMIT_S = 120.0


def create_output(bootstrap_servers: str) -> None:
    """Creates the topic to which the job sends its counts."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    topic = NewTopic(_OUTPUT, PARTITIONS, 1)
    for future in admin.create_topics([topic], operation_timeout=30).values():
        try:
            future.result(60)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise


class Counting:
    """Judged once the input is complete."""

    def __init__(self, job: DemoJob, reader: Reader, screen: Screen) -> None:
        self._job = job
        self._reader = reader
        self._screen = screen

    def verdicts(self) -> list[tuple[str, bool]]:
        """What is promised of the counts, and whether it held.

        Raises:
            DemoError: the job has not counted all of the input in time.
        """
        ends = [self._reader.end_offset(INPUT, p) for p in range(PARTITIONS)]
        self._wait(ends)
        faults = [*self._wrong_counts(ends), *self._wrong_spans(ends)]
        for fault in faults[:5]:
            self._screen.say(f"DIFFERENT {fault}")
        what = f"each of {sum(ends):,} records was counted once, and reported once"
        return [(f"{what} ({len(faults)} differences)", not faults)]

    def _wait(self, ends: list[int]) -> None:
        deadline = time.monotonic() + _CONSUME_LIMIT_S
        while True:
            done = next_offsets(self._reader, NAME)
            if all(done[p] >= ends[p] for p in range(PARTITIONS)):
                return
            if time.monotonic() > deadline:
                raise DemoError(f"not counted in time: {done} of {ends}; {self._job.phases()}")
            self._screen.progress(f"{sum(done.values()):,} of {sum(ends):,} records counted")
            time.sleep(0.25)  # committed checkpoints are polled

    def _wrong_counts(self, ends: list[int]) -> list[str]:
        found = {}
        for partition in range(PARTITIONS):
            for key, value in self._reader.records(_CHANGELOG, partition):
                found[(key or b"").decode()] = json.loads(value or b"null")
        right = {
            f"partition-{p}": {"records": end, "offsets": end * (end - 1) // 2}
            for p, end in enumerate(ends)
            if end
        }
        return [
            f"{key}: expected {right.get(key)}, counted {found.get(key)}"
            for key in sorted(right.keys() | found.keys())
            if right.get(key) != found.get(key)
        ]

    def _wrong_spans(self, ends: list[int]) -> list[str]:
        """Committed outputs must follow each other without a gap, and without a record twice."""
        expected = {f"partition-{p}": 0 for p in range(PARTITIONS)}
        faults = []
        for partition in range(PARTITIONS):
            for key, value in self._reader.records(_OUTPUT, partition):
                name, span = (key or b"").decode(), json.loads(value or b"null")
                whole = span["last"] - span["first"] + 1 == span["records"]
                if span["first"] != expected[name] or not whole:
                    faults.append(f"{name}: expected from {expected[name]} on, found {span}")
                expected[name] = span["last"] + 1
        missing = {name: ends[int(name.rpartition("-")[2])] for name in expected}
        return faults + [
            f"{name}: reported up to {expected[name]} of {end}"
            for name, end in missing.items()
            if expected[name] != end
        ]
