"""The figures that an active container samples of itself.

PURE. One table declares each figure. The container reports values under its name, and ``/metrics``
shows them with the processor's id before their own labels. Names that are not in the table are left
out: they come from a container of another version.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Final

import msgspec


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure, with the metric ``homeport_<name>``, or ``homeport_<name>_total`` if it grows.

    ``labels``: those beside the processor. ``grows``: whether it counts since the container began.
    """

    name: str
    labels: tuple[str, ...]
    about: str
    grows: bool = False


FIGURES: Final[Mapping[str, Figure]] = {
    figure.name: figure
    for figure in (
        Figure("task_rows", ("task",), "Rows of the task.", grows=True),
        Figure("task_input_lag_records", ("task",), "Offsets to the heads of its input."),
        Figure(
            "input_held_seconds",
            ("stream", "partition"),
            "How long it has stood behind an open transaction.",
        ),
        Figure("input_native", (), "1: input goes into Arrow natively; 0: in Python."),
        Figure("store_entries", ("store",), "Entries, as RocksDB estimates."),
        Figure("store_disk_bytes", ("store",), "The store's files in use."),
        Figure("store_memtable_bytes", ("store",), "The store's memory tables."),
        Figure(
            "store_pending_compaction_bytes", ("store",), "What compaction must write, estimated."
        ),
        Figure("store_stopped_writes", ("store",), "Tasks whose store lets no write in now."),
        Figure("rocksdb_cache_bytes", (), "What the block cache of all stores holds."),
        Figure("memory_bytes", ("part",), "Resident memory of python, jvm and workers below it."),
        Figure("memory_share_bytes", ("part",), "What the rule of shares gives python and jvm."),
        Figure("gc_seconds", ("runtime",), "Time of garbage collections.", grows=True),
        Figure(
            "own_series_refused",
            (),
            "Requests for own metrics beyond a container's limit.",
            grows=True,
        ),
        Figure("gc_collections", ("runtime",), "Garbage collections.", grows=True),
    )
}


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """The value of a figure under the values of its own labels, in their order."""

    name: str
    labels: tuple[str, ...]
    value: Annotated[float, msgspec.Meta(ge=0, lt=1e18)]


def known_samples(samples: Iterable[Sample]) -> tuple[Sample, ...]:
    """Return ``samples`` without unknown names.

    ValueError: a sample does not have the labels of its figure.
    """
    known = tuple(sample for sample in samples if sample.name in FIGURES)
    for sample in known:
        labels = FIGURES[sample.name].labels
        if len(sample.labels) != len(labels):
            raise ValueError(
                f"figure {sample.name!r} has the labels {labels}: {sample.labels!r:.99}"
            )
    return known
