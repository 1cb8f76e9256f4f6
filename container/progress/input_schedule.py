"""Which inputs are read now: bootstrap streams to their ends, then by priority.

PURE. Source: Samza 1.8 ``BootstrappingChooser``, ``TieredPriorityChooser``; ADJUNCT, "Unbounded
dataset", for the streams of adjunct stores. The partitions of one priority are a *tier*. A
bootstrap stream always has the highest tier. No other tier is read until each of its partitions has
been read to its end as of the start. Where a bootstrap stream fills an adjunct store, only the
tasks that read the store wait for it. Later the highest tier with records at hand is read, and the
others wait.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from homeport.config.config import INT_MAX
from homeport.config.settings.input_section import InputPolicy
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

BOOTSTRAP_TIER = INT_MAX


@dataclass(frozen=True, slots=True)
class StoredInputs:
    """The inputs that fill adjunct stores.

    ``shared`` {partition that several tasks begin at one offset: the task that gets its records for
    all}; all have its offsets. ``awaited``: returns {task whose inputs wait behind the ends of the
    bootstrap streams, too: what they wait for}; a task that is once out of it stays out.
    """

    partitions: frozenset[SystemStreamPartition] = frozenset()
    shared: Mapping[SystemStreamPartition, TaskName] = field(default_factory=dict)
    awaited: Callable[[], Mapping[TaskName, str]] = dict


NONE_STORED = StoredInputs()


def seconds_left(began_s: float, began_left: int, now_s: float, left: int) -> float | None:
    """Return the seconds until ``left`` more are read at the rate since ``began_s``; None: unknown.

    ``began_left``: how many there were at ``began_s``.
    """
    done, passed_s = began_left - left, now_s - began_s
    return left * passed_s / done if done > 0 and passed_s > 0 else None


def tier_of(policy: InputPolicy) -> int:
    """Return the tier of the partitions of a stream."""
    return BOOTSTRAP_TIER if policy.is_bootstrap else policy.priority


@dataclass(frozen=True)
class InputSchedule:
    """What may be read.

    Shapes: ``tiers`` {partition: its tier}. ``readers`` {partition: the tasks that read it}.
    ``stored``: the partitions that fill adjunct stores. ``ends`` {bootstrap partition that was not
    read to its end yet: that end}; once it was, it is out for good.
    """

    tiers: Mapping[SystemStreamPartition, int]
    readers: Mapping[SystemStreamPartition, Collection[TaskName]]
    stored: Collection[SystemStreamPartition]
    ends: Mapping[SystemStreamPartition, int] = field(default_factory=dict)

    def begun(
        self, starts: Mapping[SystemStreamPartition, int], ends: Mapping[SystemStreamPartition, int]
    ) -> InputSchedule:
        """Return the schedule of a start from each partition's first offset and end.

        A partition without an end counts as read to its end.
        """
        bootstrap = (ssp for ssp, tier in self.tiers.items() if tier == BOOTSTRAP_TIER)
        pending = {ssp: ends[ssp] for ssp in bootstrap if ssp in ends}
        return replace(self, ends=pending).passed(starts)

    def passed(self, following: Mapping[SystemStreamPartition, int]) -> InputSchedule:
        """Return the schedule once reading goes on at ``following``, {partition: next offset}."""
        left = {ssp: end for ssp, end in self.ends.items() if following.get(ssp, 0) < end}
        return self if len(left) == len(self.ends) else replace(self, ends=left)

    @property
    def is_bootstrapping(self) -> bool:
        """Return whether other inputs wait for a bootstrap stream."""
        return bool(self.ends)

    def held_by(self, partitions: Collection[SystemStreamPartition]) -> set[TaskName]:
        """Return the tasks that read a bootstrap stream among ``partitions``."""
        bootstrap = (ssp for ssp in partitions if self.tiers.get(ssp) == BOOTSTRAP_TIER)
        return {task for ssp in bootstrap for task in self.readers[ssp]}

    def waiting(self, awaited: Collection[TaskName] = ()) -> frozenset[SystemStreamPartition]:
        """Return the partitions that are not read now.

        ``awaited``: tasks whose inputs wait for a store that has no version yet. A partition of
        several tasks is read once, and waits with each of them.
        """
        others = {ssp for ssp, tier in self.tiers.items() if tier != BOOTSTRAP_TIER}
        if any(ssp not in self.stored for ssp in self.ends):
            return frozenset(others)
        held = self.held_by(self.ends).union(awaited)
        return frozenset(ssp for ssp in others if not held.isdisjoint(self.readers[ssp]))

    def left(self, following: Mapping[SystemStreamPartition, int]) -> int:
        """Return how many offsets of bootstrap streams must be read before others begin."""
        return sum(max(0, end - following.get(ssp, 0)) for ssp, end in self.ends.items())

    def order(self, *, others_first: bool) -> tuple[int, ...]:
        """Return the tiers in the order in which they are read.

        ``others_first``: bootstrap streams are the last. Their records would keep the tasks that
        wait for none of them from reading.
        """
        tiers = sorted(set(self.tiers.values()), reverse=True)
        if others_first and BOOTSTRAP_TIER in tiers:
            tiers = [*tiers[1:], BOOTSTRAP_TIER]
        return tuple(tiers)
