"""The figures that an active container samples of itself.

PURE. One table declares each figure; the container reports values under its name, and ``/metrics``
shows them with the processor's id before their own labels. A name that is not in the table is left
out: it comes from a container of another version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from homeport.config.errors import WireError


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: its metric is ``homeport_<name>``, ``_total`` behind what only grows.

    ``labels``: those beside the processor. ``grows``: whether it counts since the container began.
    """

    name: str
    labels: tuple[str, ...]
    about: str
    grows: bool = False


_TOO_MUCH: Final = 1e18

FIGURES: Final[Mapping[str, Figure]] = {
    figure.name: figure
    for figure in (
        Figure("task_rows", ("task",), "Rows that the task has had.", grows=True),
        Figure("task_input_lag_records", ("task",), "Offsets to the heads of the task's input."),
        Figure(
            "input_held_seconds",
            ("stream", "partition"),
            "How long the partition has stood behind an open transaction.",
        ),
        Figure("store_entries", ("store",), "Entries of the container, as RocksDB estimates."),
        Figure("store_disk_bytes", ("store",), "The store's files that are in use."),
        Figure("store_memtable_bytes", ("store",), "The store's memory tables."),
        Figure(
            "store_pending_compaction_bytes", ("store",), "What compaction has to write, estimated."
        ),
        Figure("store_stopped_writes", ("store",), "Tasks whose store lets no write in now."),
        Figure("rocksdb_cache_bytes", (), "What the block cache of all stores holds."),
        Figure("memory_bytes", ("part",), "Resident memory of python, jvm and workers below it."),
        Figure("memory_share_bytes", ("part",), "What the rule of shares gives python and jvm."),
        Figure("gc_seconds", ("runtime",), "How long garbage collections have taken.", grows=True),
        Figure("gc_collections", ("runtime",), "Garbage collections.", grows=True),
    )
}


@dataclass(frozen=True, slots=True)
class Sample:
    """The value of a figure under the values of its own labels, in their order."""

    name: str
    labels: tuple[str, ...]
    value: float

    def to_json(self) -> list[Any]:
        """An item of ``figures``."""
        return [self.name, list(self.labels), self.value]


def samples_of(items: Sequence[Any]) -> tuple[Sample, ...]:
    """The samples that a report's ``figures`` carry, without those of unknown names.

    Raises:
        WireError: an item is none, or its labels are not those of its figure.
    """
    found = []
    for item in items:
        match item:
            case [str(name), list(labels), int() | float() as value]:
                if _fits(name, labels, value):
                    found.append(Sample(name, tuple(labels), value))
            case _:
                raise WireError(f"a figure is to be [name, labels, value]: {str(item)[:100]}")
    return tuple(found)


def _fits(name: str, labels: Sequence[Any], value: float) -> bool:
    """Whether the figure is known; WireError where the rest of the item is wrong."""
    figure = FIGURES.get(name)
    if figure is None:
        return False
    if len(labels) != len(figure.labels) or not all(isinstance(text, str) for text in labels):
        raise WireError(f"figure {name!r} has the labels {figure.labels}: {str(labels)[:100]}")
    if isinstance(value, bool) or not 0 <= value < _TOO_MUCH:
        raise WireError(f"figure {name!r} is out of range: {value}")
    return True
