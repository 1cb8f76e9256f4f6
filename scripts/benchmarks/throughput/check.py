"""What a contestant has written, against what is right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from benchmarks.bed import go_on
from benchmarks.report import BenchmarkError
from benchmarks.throughput.work import PARTITIONS
from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka.log_reader import LogReader

T = TypeVar("T", int, list[int])


class Results:
    """Committed records of the topics of one Kafka."""

    def __init__(self, system: SystemConfig) -> None:
        self._reader = LogReader(system, go_on)

    def close(self) -> None:
        """Nothing is read any more."""
        self._reader.close()

    def of(self, topic: str) -> Iterator[tuple[bytes, bytes | None]]:
        """(key, value) of each record of the topic, in the order of each partition."""
        places = [(topic, partition) for partition in range(PARTITIONS)]
        for place, known in self._reader.ends(places).items():
            for messages in self._reader.read(*place, known.oldest, known.head):
                for message in messages:
                    yield message.key() or b"", message.value()

    def require_all(self, topic: str, right: dict[bytes, list[int]]) -> None:
        """Each key has exactly these outputs, in their order; BenchmarkError where it has not."""
        found: dict[bytes, list[int]] = {}
        for key, value in self.of(topic):
            found.setdefault(key, []).append(int(value or b"0"))
        _require(found, right)

    def require_last(self, topic: str, right: dict[bytes, int]) -> None:
        """The last value of each key is exactly this one; BenchmarkError where it is not."""
        _require({key: int(value or b"0") for key, value in self.of(topic)}, right)

    def require_state(self, topic: str, right: dict[bytes, int]) -> None:
        """The same of a changelog of Quix Streams, whose keys have the name of the value, too.

        BenchmarkError: it is not.
        """
        last = dict(self.of(topic))
        _require({k.rpartition(b"|")[0]: int(v) for k, v in last.items() if v}, right)


def _require(found: Mapping[bytes, T], right: Mapping[bytes, T]) -> None:
    if found == right:
        return
    wrong = sorted(k for k in found.keys() | right.keys() if found.get(k) != right.get(k))
    key = wrong[0]
    raise BenchmarkError(
        f"{len(wrong)} of {len(right)} keys are wrong; of key {key!r} it has "
        f"{_short(found.get(key))}, right is {_short(right.get(key))}"
    )


def _short(value: object) -> str:
    return str(value[-3:] if isinstance(value, list) else value)
