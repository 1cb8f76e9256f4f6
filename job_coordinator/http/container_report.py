"""What a stream container reports of its work while it runs; its launcher sends it on to the AM.

PURE. ``/v1/status`` shows it as it came, and ``/metrics`` in numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from homeport.config.errors import WireError
from homeport.job_coordinator.http.figures import Sample, samples_of
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.json_values import (
    as_object,
    optional_field,
    optional_number,
    required_field,
    required_number,
    shown,
)

_MAX_SECONDS = 1e12
STAGE_BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the buckets of a stage's times, but for the last, which has none."""


@dataclass(frozen=True, slots=True)
class RestoreProgress:
    """How far the restore of one store of one task has come.

    ``remaining``: offsets up to the head, of which some hold no record. ``records_per_s``: of
    late, 0 where nothing came. ``seconds_left``: at that rate; None where there is none.
    ``merging``: files that are merged once all is read, before the store is used.
    """

    store: str
    task: TaskName
    records: int
    bytes: int
    remaining: int
    records_per_s: float
    seconds_left: float | None
    merging: int = 0

    def to_json(self) -> dict[str, Any]:
        """An item of ``restoring``."""
        return {
            "store": self.store,
            "task": self.task,
            "records": self.records,
            "bytes": self.bytes,
            "remaining": self.remaining,
            "records_per_s": self.records_per_s,
            "seconds_left": self.seconds_left,
            "merging": self.merging,
        }

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> RestoreProgress:
        """The progress that ``body`` carries; WireError where a field is missing or wrong."""
        return RestoreProgress(
            required_field(body, "store", str),
            TaskName(required_field(body, "task", str)),
            required_number(body, "records"),
            required_number(body, "bytes"),
            required_number(body, "remaining"),
            _number(body, "records_per_s") or 0.0,
            _number(body, "seconds_left"),
            optional_number(body, "merging") or 0,
        )


@dataclass(frozen=True, slots=True)
class StoreLag:
    """How far a store that follows its changelog is behind it; ``seconds`` None: not known."""

    store: str
    task: TaskName
    records: int
    seconds: float | None = None

    def to_json(self) -> dict[str, Any]:
        """An item of ``lags``."""
        return {
            "store": self.store,
            "task": self.task,
            "records": self.records,
            "seconds": self.seconds,
        }

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> StoreLag:
        """The lag that ``body`` carries; WireError where a field is missing or wrong."""
        return StoreLag(
            required_field(body, "store", str),
            TaskName(required_field(body, "task", str)),
            required_number(body, "records"),
            _number(body, "seconds"),
        )


@dataclass(frozen=True, slots=True)
class DroppedValues:
    """How many values were too large for a store that skips such, since its container began."""

    store: str
    task: TaskName
    count: int

    def to_json(self) -> dict[str, Any]:
        """An item of ``dropped``."""
        return {"store": self.store, "task": self.task, "count": self.count}

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> DroppedValues:
        """The number that ``body`` carries; WireError where a field is missing or wrong."""
        return DroppedValues(
            required_field(body, "store", str),
            TaskName(required_field(body, "task", str)),
            required_number(body, "count"),
        )


@dataclass(frozen=True, slots=True)
class StageTime:
    """How long one stage of an active container has worked, in ms, since the container began.

    ``fetch`` counts the waiting for a batch's first record too. The stages work side by side.
    ``times``: how often it has worked: ``sending`` once in a transaction, others once in a batch.
    None: a container of an earlier version does not report it. ``buckets``: how many of these took
    so long, one number for each of ``STAGE_BOUNDS_S`` and one for what was longer.
    """

    stage: str
    ms: int
    times: int | None = None
    buckets: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """An item of ``stages``."""
        counts = list(self.buckets)
        return {"stage": self.stage, "ms": self.ms, "times": self.times, "buckets": counts}

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> StageTime:
        """The time that ``body`` carries; WireError where a field is missing or wrong."""
        return StageTime(
            required_field(body, "stage", str),
            required_number(body, "ms"),
            optional_number(body, "times"),
            tuple(
                required_number({"buckets": count}, "buckets")
                for count in optional_field(body, "buckets", list) or ()
            ),
        )


@dataclass(frozen=True, slots=True)
class AdjunctState:
    """One adjunct store of a container.

    ``task``: by whose name its records come. ``input``: its stream. ``kind``: ``partitioned``, or
    ``broadcast`` where the container has it whole. ``records``: of the stream, that it has taken;
    of a version, those of it. ``bytes``: on the disk; None: it is in memory. ``positions``:
    {partition: next offset}. ``lag``: offsets up to the ends that are known. ``remaining``: offsets
    that other inputs still wait for, and ``seconds_left`` how long, at the rate so far; None: none
    waits. ``age_seconds``: since the newest record that came since the container began; of a
    version, since its first record. ``version``: the one that tasks see. ``late``: how many
    versions have had no end for too long. ``awaits``: what its first version lacks. None: not
    known, or nothing.
    """

    store: str
    task: TaskName
    input: str
    kind: str
    records: int
    bytes: int | None = None
    positions: Mapping[str, int] = field(default_factory=dict)
    lag: int | None = None
    remaining: int | None = None
    seconds_left: float | None = None
    age_seconds: float | None = None
    version: int | None = None
    late: int | None = None
    awaits: str | None = None

    def to_json(self) -> dict[str, Any]:
        """An item of ``adjuncts``."""
        return {
            "store": self.store,
            "task": self.task,
            "input": self.input,
            "kind": self.kind,
            "records": self.records,
            "bytes": self.bytes,
            "positions": dict(self.positions),
            "lag": self.lag,
            "remaining": self.remaining,
            "seconds_left": self.seconds_left,
            "age_seconds": self.age_seconds,
            "version": self.version,
            "late": self.late,
            "awaits": self.awaits,
        }

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> AdjunctState:
        """The state that ``body`` carries; WireError where a field is missing or wrong."""
        positions = required_field(body, "positions", dict)
        return AdjunctState(
            required_field(body, "store", str),
            TaskName(required_field(body, "task", str)),
            required_field(body, "input", str),
            required_field(body, "kind", str),
            required_number(body, "records"),
            optional_number(body, "bytes"),
            {name: required_number(positions, name) for name in positions},
            optional_number(body, "lag"),
            optional_number(body, "remaining"),
            _number(body, "seconds_left"),
            _number(body, "age_seconds"),
            optional_number(body, "version"),
            optional_number(body, "late"),
            # A container of before does not say it.
            required_field(body, "awaits", str) if body.get("awaits") is not None else None,
        )


@dataclass(frozen=True, slots=True)
class ContainerReport:
    """The last word of a stream container of what it does.

    ``restoring``: the restores under way. ``lags``: of standbys, each store. ``lag``: records that
    all of them are behind together, ``lag_seconds`` of the one that is furthest behind; None where
    nothing is followed, or it is not known. ``first_commit_ms``: so long after its first own step
    an active one has committed its first transaction, ``caught_up_ms``: before that, has seen that
    no input waits; None: it has not. ``dropped``: of the stores that have skipped values.
    ``processed``: records of the input in its committed transactions. ``input_lag``: offsets from
    what it has read to the heads of its input that it knows. ``stages``: those that have worked.
    These three of late, of an active one. ``input_lost``: offsets of the input that Kafka had
    deleted before they were read; None: none. ``adjuncts``: each adjunct store, of either role.
    ``figures``: what an active one has measured of itself last.
    """

    restoring: tuple[RestoreProgress, ...] = ()
    lags: tuple[StoreLag, ...] = ()
    lag: int | None = None
    lag_seconds: float | None = None
    first_commit_ms: int | None = None
    caught_up_ms: int | None = None
    dropped: tuple[DroppedValues, ...] = ()
    processed: int | None = None
    input_lag: int | None = None
    stages: tuple[StageTime, ...] = ()
    input_lost: int | None = None
    adjuncts: tuple[AdjunctState, ...] = ()
    figures: tuple[Sample, ...] = ()

    @property
    def works_after_ms(self) -> int | None:
        """How long it took until an active one did its work; None: it does not yet."""
        return self.first_commit_ms if self.caught_up_ms is None else self.caught_up_ms

    @property
    def left_to_read(self) -> int | None:
        """What it is behind as a standby, or what its restores have left; None: not known."""
        if self.lag is not None or not self.restoring:
            return self.lag
        return sum(progress.remaining + progress.merging for progress in self.restoring)

    @staticmethod
    def following(
        lags: Sequence[StoreLag], adjuncts: Sequence[AdjunctState] = ()
    ) -> ContainerReport:
        """The report of a standby whose stores are so far behind."""
        seconds = [lag.seconds for lag in lags if lag.seconds is not None]
        return ContainerReport(
            lags=tuple(lags),
            lag=sum(lag.records for lag in lags),
            lag_seconds=max(seconds, default=None),
            adjuncts=tuple(adjuncts),
        )

    def beside(self, standbys: ContainerReport) -> ContainerReport:
        """This one of active tasks, with that of the standbys in the same container."""
        return replace(
            self,
            restoring=(*self.restoring, *standbys.restoring),
            lags=standbys.lags,
            lag=standbys.lag,
            lag_seconds=standbys.lag_seconds,
            adjuncts=(*self.adjuncts, *standbys.adjuncts),
        )

    def in_brief(self) -> ContainerReport:
        """Without single stores."""
        return replace(self, restoring=(), lags=(), dropped=(), stages=(), adjuncts=(), figures=())

    def to_json(self) -> dict[str, Any]:
        """The field ``report`` of a check-in."""
        return {
            "restoring": [progress.to_json() for progress in self.restoring],
            "lags": [lag.to_json() for lag in self.lags],
            "lag": self.lag,
            "lag_seconds": self.lag_seconds,
            "first_commit_ms": self.first_commit_ms,
            "caught_up_ms": self.caught_up_ms,
            "dropped": [values.to_json() for values in self.dropped],
            "processed": self.processed,
            "input_lag": self.input_lag,
            "stages": [time.to_json() for time in self.stages],
            "input_lost": self.input_lost,
            "adjuncts": [state.to_json() for state in self.adjuncts],
            "figures": [sample.to_json() for sample in self.figures],
        }

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> ContainerReport:
        """The report that ``body`` carries; WireError where a field is missing or wrong."""
        under_way = required_field(body, "restoring", list)
        lags = required_field(body, "lags", list)
        dropped = optional_field(body, "dropped", list) or []
        stages = optional_field(body, "stages", list) or []
        adjuncts = optional_field(body, "adjuncts", list) or []
        figures = optional_field(body, "figures", list) or []
        return ContainerReport(
            tuple(RestoreProgress.from_json(as_object(item, "a restore")) for item in under_way),
            tuple(StoreLag.from_json(as_object(item, "a lag")) for item in lags),
            optional_number(body, "lag"),
            _number(body, "lag_seconds"),
            optional_number(body, "first_commit_ms"),
            optional_number(body, "caught_up_ms"),
            tuple(DroppedValues.from_json(as_object(item, "a number")) for item in dropped),
            optional_number(body, "processed"),
            optional_number(body, "input_lag"),
            tuple(StageTime.from_json(as_object(item, "a time")) for item in stages),
            optional_number(body, "input_lost"),
            tuple(AdjunctState.from_json(as_object(item, "a store")) for item in adjuncts),
            samples_of(figures),
        )


def _number(body: Mapping[str, Any], name: str) -> float | None:
    value = body.get(name)
    if isinstance(value, int):
        value = float(required_number(body, name))
    found = optional_field({name: value}, name, float)
    if found is not None and not 0 <= found < _MAX_SECONDS:
        raise WireError(f"field {name!r} is out of range: {shown(found)}")
    return found
