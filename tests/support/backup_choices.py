"""How many lost tasks could start on their backups at best: all choices are tried."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence

from homeport.job_coordinator.model.ids import ProcessorId, TaskName


def most_backed(
    lost: Sequence[TaskName],
    of: Mapping[TaskName, list[ProcessorId]],
    kept: Counter[ProcessorId],
    processors: Sequence[ProcessorId],
    tasks: int,
) -> int:
    """The most that any choice can place within even sizes."""
    share, larger = divmod(tasks, max(1, min(len(processors), tasks)))
    best = 0
    for choice in itertools.product(*([None, *of[t]] for t in lost)):
        load = Counter(kept)
        load.update(c for c in choice if c is not None)
        over = [p for p in processors if load[p] > share]
        grew = [p for p in over if load[p] > kept[p]]
        if all(load[p] <= share + 1 for p in grew) and (not grew or len(over) <= larger):
            best = max(best, sum(c is not None for c in choice))
    return best
