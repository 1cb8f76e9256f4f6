"""Has each output the right names, and each batch those of one edition of the airlines?

PURE. An edition's names are in no other, so that a name says which version of the data set was
read. An output says of which batch it is: by the first offset of the batch in the task's input.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

NAMES = ("manufacturer", "model", "last_airport_name", "airline", "batch")
"""What an output has beside the summary."""

Verdict = tuple[str, bool]
"""What was promised, and whether it held."""
Output = tuple[int, Mapping[str, Any]]
"""(Partition of the output, which is that of the task's input, value)."""


@dataclass(frozen=True)
class Reference:
    """What is known by the data's own files.

    Shapes: ``planes`` {tail number: its columns}; ``airports`` {code: its columns}; ``airlines``
    {code: name} of each edition, the first one first.
    """

    planes: Mapping[str, Mapping[str, Any]]
    airports: Mapping[str, Mapping[str, Any]]
    airlines: Sequence[Mapping[str, str]]

    def named(self, summary: Mapping[str, Any]) -> dict[str, Any]:
        """The names that belong to a summary, but that of the airline."""
        plane = self.planes.get(summary["tailnum"], {})
        airport = self.airports.get(summary["last_airport"], {})
        return {
            "manufacturer": plane.get("manufacturer"),
            "model": plane.get("model"),
            "last_airport_name": airport.get("name"),
        }

    def edition(self, summary: Mapping[str, Any]) -> int | None:
        """The place of the edition from which the airline's name is; None: from none."""
        of_carrier = [names.get(summary["carrier"]) for names in self.airlines]
        name = summary.get("airline")
        return None if name is None or name not in of_carrier else of_carrier.index(name)


@dataclass(frozen=True)
class Judged:
    """What ``judge`` has found.

    Shapes: ``outputs``: how many there are; ``summaries`` {tail number: the newest of its outputs,
    without the names}; ``wrong``, ``mixed``, ``back``: a line for each wrong
    name, for each batch with names of several editions, and for each batch with an older edition
    than one before it in its task; ``editions`` {edition's place: how many outputs}.
    """

    outputs: int
    summaries: Mapping[str, Mapping[str, Any]]
    wrong: Sequence[str]
    mixed: Sequence[str]
    back: Sequence[str]
    editions: Mapping[int, int]

    def verdicts(self) -> list[Verdict]:
        """What is promised of the names."""
        first, *later = (self.editions.get(n, 0) for n in sorted({0, 1, *self.editions}))
        new = sum(later)
        right = (
            f"each of {self.outputs:,} outputs names plane, airport and airline rightly "
            f"({len(self.wrong)} wrong names)"
        )
        swapped = (
            f"{first:,} outputs have the airline's old name, {new:,} the new one: "
            f"{len(self.mixed)} batches have both, {len(self.back)} go back"
        )
        is_whole = not self.mixed and not self.back
        return [
            (right, not self.wrong and self.outputs > 0),
            (swapped, is_whole and first > 0 and new > 0),
        ]


def judge(outputs: Iterable[Output], reference: Reference) -> Judged:
    """All outputs of a job, those of a plane in their order; each is read once."""
    count = 0
    newest: dict[str, Mapping[str, Any]] = {}
    wrong: list[str] = []
    editions: Counter[int] = Counter()
    # A bit for each edition: a StreamTask makes as many batches as there are flights.
    batches: dict[tuple[int, int], int] = defaultdict(int)
    for partition, value in outputs:
        count += 1
        newest[value["tailnum"]] = value
        wrong += _wrong_names(partition, value, reference)
        edition = reference.edition(value)
        if edition is not None:
            editions[edition] += 1
            batches[partition, value["batch"]] |= 1 << edition
    mixed, back = _mixed_and_back(batches)
    summaries = {
        tail_number: {name: value[name] for name in value if name not in NAMES}
        for tail_number, value in newest.items()
    }
    return Judged(count, summaries, wrong, mixed, back, editions)


def _wrong_names(partition: int, value: Mapping[str, Any], reference: Reference) -> Iterator[str]:
    faults = [
        f"{name}: expected {right!r}, found {value.get(name)!r}"
        for name, right in reference.named(value).items()
        if value.get(name) != right
    ]
    if reference.edition(value) is None:
        faults.append(f"airline: {value.get('airline')!r} is no name of {value['carrier']}")
    for fault in faults:
        yield f"{value['tailnum']}, partition {partition}, batch {value.get('batch')}: {fault}"


def _mixed_and_back(batches: Mapping[tuple[int, int], int]) -> tuple[list[str], list[str]]:
    mixed, back = [], []
    newest: dict[int, int] = {}
    for (partition, batch), bits in sorted(batches.items()):
        found = [edition for edition in range(bits.bit_length()) if bits >> edition & 1]
        if len(found) > 1:
            mixed.append(f"partition {partition}, batch {batch}: names of {len(found)} editions")
        if found[0] < newest.get(partition, 0):
            back.append(f"partition {partition}, batch {batch}: older names than before")
        newest[partition] = max(found[-1], newest.get(partition, 0))
    return mixed, back
