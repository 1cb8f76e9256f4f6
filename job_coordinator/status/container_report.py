"""The report of a running stream container about its work; its launcher sends it on to the AM.

PURE. ``/v1/status`` shows it as it came, and ``/metrics`` in numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Self

import msgspec

from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.wire_form import Long, value_of
from homeport.job_coordinator.status.figures import Sample, known_samples
from homeport.job_coordinator.status.own_metrics import OwnMetric, known_metrics

Seconds = Annotated[float, msgspec.Meta(ge=0, lt=1e12)]
STAGE_BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the buckets of a stage's times; one more bucket has no bound."""


@dataclass(frozen=True, slots=True)
class RestoreProgress:
    """The progress of the restore of one task's store.

    ``remaining``: offsets up to the head; some have no record. ``records_per_s``: the recent rate.
    ``seconds_left``: the time left at that rate; None without a rate. ``merging``: files to merge
    after the reading, before the store is used.
    """

    store: str
    task: TaskName
    records: Long
    bytes: Long
    remaining: Long
    records_per_s: Seconds
    seconds_left: Seconds | None
    merging: Long = 0


@dataclass(frozen=True, slots=True)
class StoreLag:
    """How far a store is behind the changelog that it follows; ``seconds`` None: not known."""

    store: str
    task: TaskName
    records: Long
    seconds: Seconds | None = None


@dataclass(frozen=True, slots=True)
class DroppedValues:
    """Number of values that a store has skipped as too large, since its container began."""

    store: str
    task: TaskName
    count: Long


@dataclass(frozen=True, slots=True)
class StageTime:
    """The time that one stage of an active container has worked, in ms, since the container began.

    ``fetch`` includes the wait for a batch's first record. The stages work side by side.
    ``times``: how often it has worked: ``sending`` once in a transaction, others once in a batch.
    None: a container of an earlier version does not report it. ``buckets``: how many of these times
    are within each of ``STAGE_BOUNDS_S``, and how many are longer.
    """

    stage: str
    ms: Long
    times: Long | None = None
    buckets: tuple[Long, ...] = ()


@dataclass(frozen=True, slots=True)
class AdjunctState:
    """One adjunct store of a container.

    ``task``: the task whose name its records have. ``input``: its stream. ``kind``:
    ``partitioned``, or ``broadcast`` if the container has it whole. ``records``: taken from the
    stream; of a version, its own. ``bytes``: on the disk; None: it is in memory. ``positions``:
    {partition: next offset}. ``lag``: offsets up to the known ends. ``remaining``: offsets that
    other inputs still wait for, and ``seconds_left`` for how long, at the rate so far; None: none
    waits. ``age_seconds``: since the newest record since the container began; of a version, since
    its first record. ``version``: the one that tasks see. ``late``: how many versions have had no
    end for too long. ``awaits``: what its first version lacks. None: not known, or nothing.
    """

    store: str
    task: TaskName
    input: str
    kind: str
    records: Long
    bytes: Long | None = None
    positions: Mapping[str, Long] = field(default_factory=dict)
    lag: Long | None = None
    remaining: Long | None = None
    seconds_left: Seconds | None = None
    age_seconds: Seconds | None = None
    version: Long | None = None
    late: Long | None = None
    awaits: str | None = None


@dataclass(frozen=True, slots=True)
class ContainerReport:
    """The newest report of a container about its work.

    ``restoring``: the present restores. ``lags``: the lag of each store of standbys. ``lag``: the
    sum of their records behind; ``lag_seconds``: the time by which the furthest store is behind;
    None: not known, or there are no standbys. ``first_commit_ms``: time from the first own step of
    an active container to its first committed transaction; ``caught_up_ms``: time to the moment
    before that when no input waited; None: not yet. ``dropped``: the skipped values of each store
    that has some. ``processed``: input records in its committed transactions. ``input_lag``:
    offsets from its positions to the known heads of its input. ``stages``: those that have worked,
    three in an active container. ``input_lost``: offsets of the input that Kafka had deleted before
    they were read; None: none. ``adjuncts``: each adjunct store, of either role. ``figures``: the
    last samples of an active container. ``own``: the metrics of the job's own, as of then.
    """

    restoring: tuple[RestoreProgress, ...] = ()
    lags: tuple[StoreLag, ...] = ()
    lag: Long | None = None
    lag_seconds: Seconds | None = None
    first_commit_ms: Long | None = None
    caught_up_ms: Long | None = None
    dropped: tuple[DroppedValues, ...] = ()
    processed: Long | None = None
    input_lag: Long | None = None
    stages: tuple[StageTime, ...] = ()
    input_lost: Long | None = None
    adjuncts: tuple[AdjunctState, ...] = ()
    figures: tuple[Sample, ...] = ()
    own: tuple[OwnMetric, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "figures", known_samples(self.figures))
        object.__setattr__(self, "own", known_metrics(self.own))

    @property
    def works_after_ms(self) -> int | None:
        """Time until an active container did its work; None: not yet."""
        return self.first_commit_ms if self.caught_up_ms is None else self.caught_up_ms

    @property
    def left_to_read(self) -> int | None:
        """Records that a standby is behind, or that restores have left; None: not known."""
        if self.lag is not None or not self.restoring:
            return self.lag
        return sum(progress.remaining + progress.merging for progress in self.restoring)

    @staticmethod
    def following(
        lags: Sequence[StoreLag], adjuncts: Sequence[AdjunctState] = ()
    ) -> ContainerReport:
        """Return the report of a standby whose stores have these lags."""
        seconds = [lag.seconds for lag in lags if lag.seconds is not None]
        return ContainerReport(
            lags=tuple(lags),
            lag=sum(lag.records for lag in lags),
            lag_seconds=max(seconds, default=None),
            adjuncts=tuple(adjuncts),
        )

    def beside(self, standbys: ContainerReport) -> ContainerReport:
        """Return this report of active tasks, with that of the standbys in the same container."""
        return replace(
            self,
            restoring=(*self.restoring, *standbys.restoring),
            lags=standbys.lags,
            lag=standbys.lag,
            lag_seconds=standbys.lag_seconds,
            adjuncts=(*self.adjuncts, *standbys.adjuncts),
        )

    def in_brief(self) -> ContainerReport:
        """Return the report without single stores."""
        return replace(
            self, restoring=(), lags=(), dropped=(), stages=(), adjuncts=(), figures=(), own=()
        )

    def to_json(self) -> dict[str, Any]:
        """Return the field ``report`` of a check-in."""
        body: dict[str, Any] = msgspec.to_builtins(self)
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Return the report of ``body``; WireError where a field is wrong."""
        return value_of(cls, body, "the report of a container")
