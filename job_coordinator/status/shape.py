"""The body of ``GET /v1/status``, for a job on YARN and for a standalone one, as typed values.

PURE. Both cluster managers build a ``ShownStatus``; pages, commands and metrics read its fields. A
field that one of them does not have, or that an earlier version did not write, has its default.
Fields whose name ends in ``at_ms`` or ``since_ms`` are in ms since 1970. ``processor.epoch`` names
an incarnation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any

import msgspec

from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.outcomes import Restored
from homeport.job_coordinator.model.wire_form import about
from homeport.job_coordinator.status.container_report import ContainerReport
from homeport.job_coordinator.status.own_metrics import OwnMetric


class Phase(StrEnum):
    """The phase of a container: one of the allocator's phases, or of a processor's.

    Tests compare the allocator's own enum with this one.
    """

    FAILING_OVER = "failing-over"
    QUEUED = "queued"
    BACKING_OFF = "backing-off"
    REQUESTED = "requested"
    ALLOCATED = "allocated"
    ASSIGNED = "assigned"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FINISHED = "finished"
    FAILED = "failed"
    WAITING = "waiting"
    """A standalone processor that has no task, or may not begin yet."""
    UNKNOWN = "unknown"
    """A standalone processor that does not answer its leader."""

    @classmethod
    def _missing_(cls, value: object) -> Phase | None:
        if not isinstance(value, str):
            return None
        found = str.__new__(cls, value)  # keep the word of a later version
        found._name_ = found._value_ = value
        return found


class _Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the status; all fields are written."""


class HeldBack(_Shown, frozen=True):
    """An attempt's wait before its first placement; ``unheard``: those without a known stop."""

    ms: int
    unheard: tuple[str, ...] = ()


class ShownJob(_Shown, frozen=True):
    """The job and its attempt.

    ``rank``: submission, application, attempt. ``coordinator``, ``leader``: standalone only.
    ``python``: the AM's environment, an interpreter or an archive; ``version``: of homeport in it.
    ``health``: deploying, deployed, recovering or degraded.
    """

    name: Annotated[str, about("job.name")] = ""
    id: Annotated[str, about("job.id")] = ""
    application: Annotated[str, about("of YARN; of a standalone job what stands for it")] = ""
    attempt: int | None = None
    host: str | None = None
    attempts_max: int | None = None
    rank: tuple[int, str, int] | None = None
    state: Annotated[str | None, about("new, running and so on")] = None
    health: Annotated[str | None, about("in one word, of a job on YARN")] = None
    model_version: Annotated[int | None, about("of the JobModel in force")] = None
    held_back: HeldBack | None = None
    coordinator: str | None = None
    leader: str | None = None
    python: str | None = None
    version: str | None = None


SPARE_WITH_SPARK = "warm"
SPARE_WITHOUT_SPARK = "plain"
"""Kinds of a spare."""


class SpareReport(msgspec.Struct, frozen=True, rename={"is_ready": "ready"}):
    """The process that waits beside a container to be the next incarnation there.

    ``kind``: how far its start shall go in advance; ``is_ready``: whether it has gone that far.
    """

    kind: str
    is_ready: bool


class ShownRecovery(_Shown, frozen=True, rename={"from_host": "from", "to_host": "to"}):
    """A container's last recovery. ``phases_ms``: {phase: its duration}, in order."""

    cause: str
    kind: str | None = None
    from_host: str | None = None
    to_host: str | None = None
    began_ms: int = 0
    phases_ms: Mapping[str, int] = {}
    total_ms: int = 0
    is_over: bool = True


class ShownStandby(_Shown, frozen=True):
    """A replica that a standalone processor keeps, of ``task``; None: not known yet."""

    name: str = ""
    task: str = ""
    lag: int | None = None
    lag_seconds: float | None = None
    is_caught_up: bool | None = None


class ShownContainer(_Shown, frozen=True):
    """A container of the JobModel, or a processor of a standalone job.

    ``host``: where it is now, ``last_host``: where it ran last, or its home. ``lag``: records that
    a standby has not read. ``restored``: {store: {task: how}} of its last start, ``seconds``
    {phase of that: how long}. ``resource``: its YARN container. ``waits``: what it waits for,
    by the cluster manager. ``python``, ``version``: as of the job, of its launcher.
    """

    processor_id: Annotated[ProcessorId, about("its name in the JobModel")]
    phase: Annotated[Phase, about("where it is on its way, such as running")]
    role: Annotated[str, about("active or standby")] = "active"
    replica_of: Annotated[ProcessorId | None, about("the active container of a standby")] = None
    is_temporary: bool = False
    lag: Annotated[int | None, about("of a standby: records not read yet")] = None
    lag_seconds: float | None = None
    report: Annotated[
        ContainerReport | None, about("of its work: input_lag, processed, restoring, more")
    ] = None
    host: Annotated[Host | None, about("where it is now")] = None
    last_host: Host | None = None
    requested_host: Host | None = None
    since_ms: Annotated[int | None, about("of its phase, in ms since 1970")] = 0
    epoch: Annotated[int | None, about("number of its incarnation")] = 0
    model_version: int | None = None
    pid: Annotated[int | None, about("of its process")] = None
    package: str | None = None
    python: str | None = None
    version: str | None = None
    resource: str | None = None
    spare: SpareReport | None = None
    restored: Mapping[str, Mapping[str, Restored]] | None = None
    seconds: Mapping[str, float] | None = None
    restarts: int = 0
    failures: Annotated[int | None, about("failures that count against it")] = 0
    last_failure: str | None = None
    recovery: ShownRecovery | None = None
    log_url: str | None = None
    location: Host | None = None
    is_leader: bool = False
    registration: int | None = None
    standbys: tuple[ShownStandby, ...] = ()
    waits: tuple[str, ...] = ()

    @property
    def is_standby(self) -> bool:
        """Whether it is the replica of another container."""
        return self.replica_of is not None


class ShownFailure(_Shown, frozen=True):
    """A failure; ``last_lines``: the last lines of its log, for callers with a token."""

    cause: str = ""
    processor_id: ProcessorId | None = None
    epoch: int | None = None
    exit_code: int | None = None
    host: str | None = None
    at_ms: int = 0
    log: str | None = None
    last_lines: tuple[str, ...] | None = None


class ShownChange(_Shown, frozen=True):
    """The present change to a new JobModel.

    On YARN ``must_stop``: incarnations, and ``waits`` {processor: incarnations that own a task of
    it}. In a standalone job the open ``barrier``, and the members that have not joined it.
    """

    to_version: int | None = None
    must_stop: tuple[str, ...] = ()
    waits: Mapping[ProcessorId, tuple[str, ...]] = {}
    version: int | None = None
    barrier: str | None = None
    missing: tuple[str, ...] = ()


class ShownFailover(_Shown, frozen=True):
    """The failover of an active container to the place of a standby.

    ``used``: the standbys chosen so far. ``waits_for``: the incarnation without a proven stop.
    """

    active: ProcessorId
    phase: Phase = Phase.UNKNOWN
    step: str = ""
    standby: ProcessorId | None = None
    host: str | None = None
    used: tuple[ProcessorId, ...] = ()
    waits_for: str | None = None


class ShownPlacement(_Shown, frozen=True):
    """An operator's open command; ``waits``: what it waits for, in words."""

    processor_id: ProcessorId
    destination: str = ""
    step: str = ""
    uuid: str = ""
    host: str | None = None
    is_warm: bool = False
    standby: ProcessorId | None = None
    waits: str | None = None


class Needs(_Shown, frozen=True):
    """The resources that one container needs on a host."""

    memory_mb: int = 0
    cores: int = 0


class ShownWaiter(_Shown, frozen=True):
    """A container that waits for a host; ``obstacles``: {host: why not this one}."""

    processor_id: ProcessorId
    since_ms: int | None = None
    asks: Host | None = None
    obstacles: Mapping[Host, str] = {}


class ShownShortage(_Shown, frozen=True):
    """The first of ``count`` containers that wait for a host; ``hosts``: {host: why not}."""

    says: str = ""
    needs: Needs = Needs()
    count: int = 0
    processors: tuple[ShownWaiter, ...] = ()
    hosts: Mapping[Host, str] = {}
    hosts_count: int = 0


class ShownRollout(_Shown, frozen=True):
    """The last upgrade, or rolling restart; ``given``: the processors that have it, in order."""

    phase: str
    id: str = ""
    package: str = ""
    previous: str | None = None
    watch_ms: int = 0
    given: tuple[ProcessorId, ...] = ()
    current: ProcessorId | None = None
    waits: str = ""
    reason: str = ""

    @property
    def is_under_way(self) -> bool:
        """Whether it goes forward, or back."""
        return self.phase in {"forward", "back"}


class ShownKey(_Shown, frozen=True):
    """A key whose value in the stream is not in force; ``takes``: what the change needs."""

    key: str
    in_force: str | None = None
    wanted: str | None = None
    takes: str = ""


class ShownConfiguration(_Shown, frozen=True):
    """The JobModel's version, and the part of the stream's configuration that is not applied.

    ``topics_refused``: why topics that match a ``regex-topics`` are no inputs, a line each.
    ``reads_ahead``: what is left to read, in records, of each task that a change waits for; None:
    not known yet.
    """

    version: int = 0
    pending: tuple[ShownKey, ...] = ()
    fault: str | None = None
    inputs_begun_anew: Any = None
    topics_refused: tuple[str, ...] = ()
    reads_ahead: Mapping[TaskName, int | None] = {}


class ShownTakenOver(_Shown, frozen=True):
    """Tasks that lost their processor under this leader; ``unbacked``: those without a standby."""

    lost: int = 0
    unbacked: int = 0
    version: int = 0


class ShownStatus(_Shown, frozen=True):
    """The job as its AM, or its leader, sees it.

    ``coordinator_stream``: ok, or what is wrong; None: the job has none. ``unanswered``: {partner
    of the driver: why it does not answer}. ``unaccounted``: incarnations of an earlier driver that
    may still run.
    """

    job: Annotated[ShownJob, about("the job and its attempt")] = ShownJob()
    coordinator_url: str = ""
    application_url: str = ""
    containers: Annotated[
        tuple[ShownContainer, ...], about("each container; of a standalone job each processor")
    ] = ()
    hosts: tuple[str, ...] = ()
    excluded_hosts: tuple[str, ...] = ()
    drained_hosts: tuple[str, ...] = ()
    suspects_itself: bool = False
    stores_refused: Mapping[str, int] = {}
    failures: tuple[ShownFailure, ...] = ()
    coordinator_stream: str | None = None
    coordinator_stream_age_ms: int | None = None
    coordinator_stream_damaged: int | None = None
    change: ShownChange | None = None
    failovers: tuple[ShownFailover, ...] = ()
    placements: tuple[ShownPlacement, ...] = ()
    unaccounted: tuple[str, ...] = ()
    unanswered: Mapping[str, str] = {}
    waiting: ShownShortage | None = None
    configuration: ShownConfiguration | None = None
    upgrade: ShownRollout | None = None
    rolling_restart: ShownRollout | None = None
    taken_over: ShownTakenOver | None = None

    def container(self, processor_id: ProcessorId) -> ShownContainer | None:
        """Return the container of that processor; None: there is none."""
        return next((c for c in self.containers if c.processor_id == processor_id), None)

    @property
    def own_metrics(self) -> Iterator[OwnMetric]:
        """The series of the job's own metrics, of all containers."""
        return (each for c in self.containers if c.report is not None for each in c.report.own)
