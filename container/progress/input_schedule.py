"""Which inputs are read now: bootstrap streams to their ends, then by priority.

PURE. Source: Samza 1.8 ``BootstrappingChooser``, ``TieredPriorityChooser``. The partitions of one
priority are a *tier*. A bootstrap stream always has the highest tier. No other tier is read until
each of its partitions has been read to its end as of the start. Later the highest tier with records
at hand is read, and the others wait.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    all}; all have its offsets. ``holds_back``: returns what other inputs wait for, while only the
    bootstrap streams are read, also behind their ends; None: they do not wait.
    """

    partitions: frozenset[SystemStreamPartition] = frozenset()
    shared: Mapping[SystemStreamPartition, TaskName] = field(default_factory=dict)
    holds_back: Callable[[], str | None] = lambda: None


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

    Shapes: ``tiers`` {partition: its tier}. ``ends`` {bootstrap partition that was not read to its
    end yet: that end}; once it was, it is out for good.
    """

    tiers: Mapping[SystemStreamPartition, int]
    ends: Mapping[SystemStreamPartition, int]

    @staticmethod
    def of(
        tiers: Mapping[SystemStreamPartition, int],
        starts: Mapping[SystemStreamPartition, int],
        ends: Mapping[SystemStreamPartition, int],
    ) -> InputSchedule:
        """Return the schedule of a start from each partition's tier, first offset and end.

        A partition without an end counts as read to its end.
        """
        pending = {
            ssp: ends[ssp] for ssp, tier in tiers.items() if tier == BOOTSTRAP_TIER and ssp in ends
        }
        return InputSchedule(dict(tiers), pending).passed(starts)

    def passed(self, following: Mapping[SystemStreamPartition, int]) -> InputSchedule:
        """Return the schedule once reading goes on at ``following``, {partition: next offset}."""
        left = {ssp: end for ssp, end in self.ends.items() if following.get(ssp, 0) < end}
        return self if len(left) == len(self.ends) else replace(self, ends=left)

    @property
    def is_bootstrapping(self) -> bool:
        """Return whether bootstrap streams alone are read."""
        return bool(self.ends)

    def left(self, following: Mapping[SystemStreamPartition, int]) -> int:
        """Return how many offsets of bootstrap streams must be read before others begin."""
        return sum(max(0, end - following.get(ssp, 0)) for ssp, end in self.ends.items())

    def readable(self) -> tuple[int, ...]:
        """Return the tiers that may be read now, in the order in which they are read."""
        if self.is_bootstrapping:
            return (BOOTSTRAP_TIER,)
        return tuple(sorted(set(self.tiers.values()), reverse=True))
