"""What the engines of a container's stores report of themselves, store by store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from homeport.container.engine.storage_engine import MeasuredEngine
from homeport.container.storage.task_store import TaskStore
from homeport.job_coordinator.http.figures import FIGURES, Sample


def store_figures(stores: Iterable[TaskStore]) -> Iterator[Sample]:
    """The figures of each store, summed over its tasks; what all stores share has no sum."""
    sums: Counter[tuple[str, str]] = Counter()
    shared: dict[str, int] = {}
    for store in stores:
        engine: object = store.engine  # of any kind; some are measured
        if isinstance(engine, MeasuredEngine):
            for name, value in engine.figures().items():
                if FIGURES[name].labels:
                    sums[name, store.config.name] += value
                else:
                    shared[name] = value
    for (name, of), value in sums.items():
        yield Sample(name, (of,), value)
    for name, value in shared.items():
        yield Sample(name, (), value)
