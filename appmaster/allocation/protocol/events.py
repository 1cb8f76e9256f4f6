"""The events of the allocator. Each is named for its evidence, never for the request.

PURE. The shell builds an event, hands it to ``step`` and forgets it. Events may come late, twice or
out of order. A fault of the cluster is an event, never an exception.

No event has a time. The allocator has no clock: a deadline is a timer of the shell, whose end is a
``TimerFired``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from immutables import Map

from homeport.appmaster.allocation.protocol.settings import AllocatorSettings
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.model.placement import PlacementRequest, PlacementSource


def named(incarnation: Incarnation | None) -> str:
    """Return ``0@3`` for epoch 3 of processor 0, ``nothing`` for None: for people, never parsed."""
    return f"{incarnation.processor_id}@{incarnation.epoch}" if incarnation else "nothing"


class TimerKind(Enum):
    """What a timer limits."""

    REQUEST_EXPIRY = "request-expiry"
    """How long a request may stay without a grant; its key is the request."""
    CHECK_IN = "check-in"
    """How long a launcher that YARN runs may take until it checks in; its key is the request."""
    RETRY_WINDOW = "retry-window"
    """How long a failure is remembered; its key is the processor."""
    RETRY_DELAY = "retry-delay"
    """How long a container waits before it is placed again; its key is the processor."""
    SILENCE = "silence"
    """How long a host counts as just fallen silent; its key is the host."""
    EXCLUSION = "exclusion"
    """How long a host is not requested; its key is the host."""
    TOO_SMALL = "too-small"
    """How long the cluster may be too small for a container; the job has one, without a key."""
    STANDBY_STOP = "standby-stop"
    """How long a standby may take to stop for its active; its key is the active's id."""
    SPARE_SPARK = "spare-spark"
    """How long a warm move waits for the Spark of the spare; its key is the moved container."""
    PREPARATION = "preparation"
    """How long a launcher may take to have a process ready; its key is the processor."""
    COMMAND = "command"
    """How long an operator's command may make no progress; its key is the command's uuid."""


@dataclass(frozen=True, slots=True)
class Timer:
    """Name of one timer; ``key``: see its kind. To set a timer that is armed starts it again."""

    kind: TimerKind
    key: Any = None

    def __str__(self) -> str:
        return f"{self.kind.value}:{'job' if self.key is None else self.key}"


@dataclass(frozen=True, slots=True)
class ChargedFailures:
    """Failures that an earlier driver charged to a processor, and for how many ms they count."""

    count: int
    left_ms: int


class FailoverStep(Enum):
    """How an active container that cannot go home gets another place."""

    STANDBY = "standby"
    """It takes the place of a standby that runs, or starts, and is ordered to stop."""
    STANDBY_HOST = "standby-host"
    """It goes to the last host of a standby that does not run."""
    OTHER_HOST = "other-host"
    """It could not be failed to a standby: it goes to whatever host there is."""


@dataclass(frozen=True, slots=True)
class FailoverRecord:
    """The record of a failover that is under way.

    ``epoch``: the active's last permitted epoch when this was decided. ``standby``: the standby
    whose place it takes; ``host``: where that is; both None with OTHER_HOST. ``used``: the standbys
    that this failover has already chosen, sorted.
    """

    epoch: int
    standby: ProcessorId | None
    host: Host | None
    step: FailoverStep
    used: tuple[ProcessorId, ...] = ()


@dataclass(frozen=True, slots=True)
class JobModelPublished:
    """The JobModel that permits name from now on is in the coordinator stream.

    It may be the first one of a job, a change of a running job, or the one that the next driver
    finds, perhaps in mid-change. A *floor* above the epoch means that the model has changed for the
    processor, so that its running incarnation must be stopped.

    Attributes:
        version: the model's version.
        processors: {processor: the host that it last ran on; None: unknown}.
        epochs: {processor: its last permitted epoch}; absent: 0.
        floors: {processor: the recorded epoch, above which the next permit is}; absent: its epoch.
        unfenced: {processor: the incarnations that owned one of its tasks and that no later one
            has reported fenced}; its own last one belongs there even if it is not listed.
        retired: {processor that the model does not have: its last epoch}, which may still run.
        gainers: processors that get a task or input that they did not have; perhaps others as well
            where the stream already had this version.
        failures: {processor: the failures that an earlier driver charged to it}.
        standbys: {standby: its active}; all other processors are active.
        failovers: {active: its failover, by the stream}, for processors new to the allocator.
        former: {processor that the model does not have: its last epoch}, stopped or not.
        is_cooperative: whether a process may go on under the next permit; not if the version
            changes a key that only the start of a process reads.
        is_by_itself: whether it follows from a loss or a start, so that it forgives no failure.
        older: as in ``OlderModelsWanted``, for a change of a running job.
    """

    version: int
    processors: Mapping[ProcessorId, Host | None]
    epochs: Mapping[ProcessorId, int] = field(default_factory=dict)
    floors: Mapping[ProcessorId, int] = field(default_factory=dict)
    unfenced: Mapping[ProcessorId, tuple[Incarnation, ...]] = field(default_factory=dict)
    retired: Mapping[ProcessorId, int] = field(default_factory=dict)
    gainers: frozenset[ProcessorId] = frozenset()
    failures: Mapping[ProcessorId, ChargedFailures] = field(default_factory=dict)
    standbys: Mapping[ProcessorId, ProcessorId] = field(default_factory=dict)
    failovers: Mapping[ProcessorId, FailoverRecord] = field(default_factory=dict)
    former: Mapping[ProcessorId, int] = field(default_factory=dict)
    is_cooperative: bool = True
    is_by_itself: bool = False
    older: Map[ProcessorId, int] = field(default_factory=Map)

    def __str__(self) -> str:
        return f"version {self.version}, {len(self.processors)} processors"


@dataclass(frozen=True, slots=True)
class HostReport:
    """What one host offers to the containers of all applications; ``rack`` None: not known.

    Memory is in MB. The ``free_`` fields hold at the time of the report. ``is_live``: False for a
    host that the cluster has lost, which has nothing free. ``web``: host and port of its web
    service, shown to people; empty: not known.
    """

    host: Host
    rack: str | None
    memory_mb: int
    cores: int
    free_memory_mb: int
    free_cores: int
    is_live: bool = True
    web: str = field(default="", compare=False)

    def is_too_small(self, memory_mb: int) -> bool:
        """Return whether a container of this size does not fit even the empty host.

        YARN's default rule for what fits does not count cores.
        """
        return self.memory_mb < memory_mb

    def has_room(self, memory_mb: int, cores: int) -> bool:
        """Return whether a container of this size had room on the host when the report was made."""
        return self.free_memory_mb >= memory_mb and self.free_cores >= cores


@dataclass(frozen=True, slots=True)
class HostsObserved:
    """These hosts, and no others, are live.

    The first such event also means that all that an earlier driver permitted is accounted for.
    ``reports``: the reports of these hosts and of lost ones; empty: the earlier reports still hold.
    A host without a report counts as having room.
    """

    hosts: tuple[Host, ...]
    reports: tuple[HostReport, ...] = ()

    def __str__(self) -> str:
        return ", ".join(sorted(self.hosts)) or "none"


@dataclass(frozen=True, slots=True)
class LauncherCheckedIn:
    """A launcher polled: it lives on ``host``, and ``running`` is its child (None: it has none).

    ``request_id``: the request of its container, from its environment. Until all that an earlier
    driver permitted is accounted for, the shell holds back check-ins of launchers without a child.
    Otherwise such a launcher could get a container that runs elsewhere.
    """

    resource_id: ResourceId
    host: Host
    running: Incarnation | None
    request_id: RequestId | None = None

    def __str__(self) -> str:
        return f"{self.resource_id} on {self.host} running {named(self.running)}"


@dataclass(frozen=True, slots=True)
class ResourceAllocated:
    """Skein has launched the container of this request; its launcher has yet to check in."""

    request_id: RequestId

    def __str__(self) -> str:
        return f"request {self.request_id}"


@dataclass(frozen=True, slots=True)
class ResourceEnded:
    """A YARN container has ended.

    With ``resource_id`` this is evidence that its child has stopped: YARN reported the end **and**
    its launcher was silent for the whole limit. With ``request_id`` alone it is Skein's report: it
    ends a launcher without a child, and a request whose launcher has not checked in (also if the
    container could not be added), but is no evidence that an incarnation stopped (safety P1).

    ``story``: the cluster manager's text. ``is_own_fault``: the container caused the end, for
    example by memory beyond its limit. ``is_taken_back``: the cluster took it back because of a
    lost node, failed disks or preemption (YARN's -100, -101, -102).
    """

    request_id: RequestId | None = None
    resource_id: ResourceId | None = None
    story: str = ""
    is_own_fault: bool = False
    is_taken_back: bool = False

    def __str__(self) -> str:
        return self.resource_id or f"request {self.request_id}"


@dataclass(frozen=True, slots=True)
class LauncherSilent:
    """A launcher was silent for so long that it must have killed its child, or is gone.

    The time counts from its last check-in. The end of its YARN container was not reported: that
    would be ``ResourceEnded``.
    """

    resource_id: ResourceId

    def __str__(self) -> str:
        return self.resource_id


@dataclass(frozen=True, slots=True)
class TimerFired:
    """A timer that was set and not cancelled has run out."""

    timer: Timer

    def __str__(self) -> str:
        return str(self.timer)


@dataclass(frozen=True, slots=True)
class ContainerStarted:
    """A stream container has fenced its predecessors, restored, and written its locality."""

    incarnation: Incarnation

    def __str__(self) -> str:
        return named(self.incarnation)


@dataclass(frozen=True, slots=True)
class ContainerStopped:
    """A launcher reports that this incarnation has ended, or that it will never run it.

    ``reason``: the cause in its log; empty: unknown. It may quote data of the job.
    """

    incarnation: Incarnation
    cause: StopCause
    exit_code: int
    reason: str = ""

    def __str__(self) -> str:
        return f"{named(self.incarnation)} {self.cause.value}, exit code {self.exit_code}"


@dataclass(frozen=True, slots=True)
class RetiredStopped:
    """An incarnation has stopped that an earlier driver left, and whose processor no model has.

    Its launcher reported the stop, or the keeper reported that its lease is over. ``cause``: the
    cause of the stop, as the record ``set-stopped`` names it.
    """

    incarnation: Incarnation
    cause: str

    def __str__(self) -> str:
        return f"{named(self.incarnation)} {self.cause}"


@dataclass(frozen=True, slots=True)
class FencesReported:
    """``incarnation`` has fenced these for good: it was the newest of its processor afterwards.

    If one of them initialises its id later, it reads in the coordinator stream that it must stop.
    """

    incarnation: Incarnation
    fenced: tuple[Incarnation, ...]

    def __str__(self) -> str:
        return f"{named(self.incarnation)} has fenced {', '.join(map(named, self.fenced))}"


@dataclass(frozen=True, slots=True)
class FencedByDriver:
    """The transactional id of this incarnation was initialised **after** its reported stop.

    It has no open transaction, and will initialise nothing again.
    """

    incarnation: Incarnation

    def __str__(self) -> str:
        return named(self.incarnation)


@dataclass(frozen=True, slots=True)
class LagsReported:
    """How many records containers have left to read: {processor: records}; others are unchanged.

    For a standby the number is its lag; for a starting container, what its restores have left.
    """

    lags: Mapping[ProcessorId, int]

    def __str__(self) -> str:
        return ", ".join(f"{p} by {lag}" for p, lag in sorted(self.lags.items())) or "none"


@dataclass(frozen=True, slots=True)
class SparesReported:
    """Whether processes are ready: {processor: its launcher's}; others are unchanged.

    For a standby it is the spare beside it, with a Spark; for a container whose launcher prepares a
    process, that process.
    """

    ready: Mapping[ProcessorId, bool]

    def __str__(self) -> str:
        words = {True: "ready", False: "not ready"}
        return ", ".join(f"{p} {words[is_ready]}" for p, is_ready in sorted(self.ready.items()))


@dataclass(frozen=True, slots=True)
class ShutdownRequested:
    """The job must end in order: an entitled caller requested it, or an earlier driver began it.

    ``result``: one of YARN's final states.
    """

    result: str = "KILLED"
    diagnostics: str = "shut down on request"

    def __str__(self) -> str:
        return self.result


@dataclass(frozen=True, slots=True)
class PlacementRequested:
    """An operator requests a container's place, from this driver or from an earlier one.

    ``refusal``: why its reader refuses the request, for example because it is for another run of
    the job; empty: the reader accepts it. ``is_resumed``: an earlier driver has answered it, but
    not finally. ``source``: the source in that answer; None: the action had not begun.
    """

    request: PlacementRequest
    refusal: str = ""
    is_resumed: bool = False
    source: PlacementSource | None = None

    def __str__(self) -> str:
        return f"{self.request.processor_id} to {self.request.destination} {self.request.uuid}"


@dataclass(frozen=True, slots=True)
class SettingsChanged:
    """The configuration was changed while the job runs; armed timers run on as they are."""

    settings: AllocatorSettings

    def __str__(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class OlderModelsWanted:
    """Some processors start next with an earlier JobModel, which has the same tasks for them.

    Shapes: ``older`` {processor_id: its version}; all others start with the one in force.
    """

    older: Map[ProcessorId, int]

    def __str__(self) -> str:
        return ", ".join(f"{p}: {version}" for p, version in sorted(self.older.items())) or "none"


Event = (
    JobModelPublished
    | OlderModelsWanted
    | HostsObserved
    | LauncherCheckedIn
    | ResourceAllocated
    | ResourceEnded
    | LauncherSilent
    | TimerFired
    | ContainerStarted
    | ContainerStopped
    | RetiredStopped
    | FencesReported
    | FencedByDriver
    | LagsReported
    | SparesReported
    | ShutdownRequested
    | PlacementRequested
    | SettingsChanged
)


def describe(event: Event) -> str:
    """Return one short line for logs and for the ``cause`` of what follows from ``event``."""
    return f"{type(event).__name__} {event}".rstrip()
