"""An input that stands still behind an open transaction is named; one at its end is not."""

from __future__ import annotations

from homeport.container.kafka.input_consumer import OpenEnds
from homeport.job_coordinator.model.job_model import SystemStreamPartition

A, B = (SystemStreamPartition("kafka", "in", number) for number in (0, 1))


class Case:
    """Partitions, and what is said of them at a time."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.stable: dict[SystemStreamPartition, int | None] = {}
        self.asked: list[SystemStreamPartition] = []
        self.ends = OpenEnds(lambda: self.now_s, self._ask)

    def _ask(self, ssp: SystemStreamPartition) -> int | None:
        self.asked.append(ssp)
        return self.stable.get(ssp)

    def at(self, now_s: float, **places: tuple[int, int]) -> list[str]:
        """What is said then."""
        self.now_s = now_s
        names = {"a": A, "b": B}
        return list(self.ends.reports(lambda: {names[name]: p for name, p in places.items()}))


def test_a_partition_behind_an_open_transaction_is_named_once_a_minute() -> None:
    """With its position, its last stable offset and its high watermark."""
    case = Case()
    case.stable[A] = 12
    assert case.at(1, a=(12, 40), b=(5, 5)) == []
    assert case.at(10.9, a=(12, 40), b=(5, 5)) == []
    (line,) = case.at(12, a=(12, 41), b=(5, 5))
    assert line.startswith("input kafka.in partition 0 has stood at offset 12 for 11 s: a trans")
    assert "(last stable offset 12, high watermark 41)" in line
    assert case.ends.held() == {A: 11}
    assert case.at(70, a=(12, 41)) == []
    assert len(case.at(72, a=(12, 41))) == 1
    assert case.asked == [A, A]


def test_an_end_that_is_no_record_is_none() -> None:
    """The end of a transaction takes an offset; nor is anything said without an answer."""
    case = Case()
    case.stable = {A: 13, B: None}
    case.at(1, a=(12, 13), b=(5, 9))
    assert case.at(20, a=(12, 13), b=(5, 9)) == []
    assert case.ends.held() == {}
    assert case.asked == [A, B]


def test_what_moves_does_not_stand_still() -> None:
    """The time counts from its last record, and from its last end."""
    case = Case()
    case.stable[A] = 14
    case.at(1, a=(12, 40))
    assert case.at(12, a=(14, 40)) == []
    assert case.at(13, a=(40, 40)) == []
    assert case.at(21, a=(40, 50)) == []
    assert case.at(30, a=(40, 50)) == []
    assert case.asked == []
    assert len(case.at(31, a=(40, 50))) == 1
    assert case.ends.held() == {A: 10}
    assert case.at(32, a=(50, 50)) == []
    assert case.ends.held() == {}


def test_partitions_are_looked_at_once_a_second() -> None:
    """An idle loop polls more often."""
    case = Case()
    looked: list[float] = []
    for now_s in (0.5, 1.0, 1.9, 2.0):
        case.now_s = now_s

        def look(now_s: float = now_s) -> dict[SystemStreamPartition, tuple[int, int]]:
            looked.append(now_s)
            return {}

        list(case.ends.reports(look))
    assert looked == [1.0, 2.0]
