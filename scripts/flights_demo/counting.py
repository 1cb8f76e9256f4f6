"""Was each record counted once? The counting job beside the flights job, and what it must say.

It reads Kafka alone: the newest counts in the changelog, and the output of each transaction.
"""

from __future__ import annotations

import json

from confluent_kafka.admin import NewTopic

from flights_demo.common import make_topics, show_faults
from flights_demo.job import ROOT
from flights_demo.story import Story
from flights_demo.verdict import INPUT, PARTITIONS, next_offsets

EXAMPLE = ROOT / "examples" / "counting"
NAME = "counting"
_OUTPUT = "flights-counted"
_CHANGELOG = "counting-counts-changelog"


def create_output(bootstrap_servers: str) -> None:
    """Creates the topic to which the job sends its counts."""
    make_topics(bootstrap_servers, NewTopic(_OUTPUT, PARTITIONS, 1))


class Counting(Story):
    """Judged once the input is complete."""

    def play(self) -> None:
        """Judge the counts, once all of the input is counted."""
        ends = [self.reader.end_offset(INPUT, p) for p in range(PARTITIONS)]
        self.wait_for(f"{sum(ends):,} records to be counted", lambda: self._has_counted(ends))
        faults = [*self._wrong_counts(ends), *self._wrong_spans(ends)]
        show_faults(self.screen, faults)
        what = f"each of {sum(ends):,} records was counted once, and reported once"
        self.judge(f"{what} ({len(faults)} differences)", held=not faults)

    def _has_counted(self, ends: list[int]) -> bool:
        done = next_offsets(self.reader, NAME)
        return all(done[p] >= ends[p] for p in range(PARTITIONS))

    def _wrong_counts(self, ends: list[int]) -> list[str]:
        found = {}
        for partition in range(PARTITIONS):
            for key, value in self.reader.records(_CHANGELOG, partition):
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
            for key, value in self.reader.records(_OUTPUT, partition):
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
