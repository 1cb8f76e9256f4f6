"""Facts that reach the allocator. Each is named for its evidence, never for the request.

PURE. An event is an immutable value; the shell builds it, hands it to ``step`` and forgets it.
Events may come late, twice or out of order: ``step`` is total. What the world does wrong is an
event, never an exception.

What an event does not say: when it happened. The allocator knows no clock; a deadline is a timer
that the shell holds, and its end is a ``TimerFired``.
"""

from __future__ import annotations

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
    """How long a request may stay without a resource; its key is the request."""
    CHECK_IN = "check-in"
    """How long a launcher that YARN runs may take until it checks in; its key is the request."""
    RETRY_WINDOW = "retry-window"
    """How long a failure is remembered; its key is the processor."""
    RETRY_DELAY = "retry-delay"
    """How long a container backs off before it is placed again; its key is the processor."""
    SILENCE = "silence"
    """How long a host counts as just fallen silent; its key is the host."""
    EXCLUSION = "exclusion"
    """How long a host is not asked; its key is the host."""
    TOO_SMALL = "too-small"
    """How long the cluster may be too small for a container; the job has one, without a key."""
    STANDBY_STOP = "standby-stop"
    """How long a standby may take to stop for its active; its key is the active's id."""
    SPARE_SPARK = "spare-spark"
    """How long a warm move waits for the Spark of the spare; its key is the moved container."""
    COMMAND = "command"
    """How long an operator's command may come no further; its key is the command's uuid."""


@dataclass(frozen=True, slots=True)
class Timer:
    """Name of one timer; ``key``: see its kind. To set a timer that is armed starts it again."""

    kind: TimerKind
    key: Any = None

    def __str__(self) -> str:
        return f"{self.kind.value}:{'job' if self.key is None else self.key}"


@dataclass(frozen=True, slots=True)
class ChargedFailures:
    """What an earlier driver has charged to a processor, and for how long that counts, in ms."""

    count: int
    left_ms: int


class FailoverStep(Enum):
    """How far the search for a place has come of an active container that cannot go home."""

    STANDBY = "standby"
    """It takes the place of a standby that runs, or starts, and is ordered to stop."""
    STANDBY_HOST = "standby-host"
    """It goes to the last host of a standby that does not run."""
    OTHER_HOST = "other-host"
    """It could not be failed to a standby: it goes to whatever host there is."""


@dataclass(frozen=True, slots=True)
class FailoverRecord:
    """What the stream says of a failover that is under way.

    ``epoch``: of the active's last permit when this was decided. ``standby`` and ``host``: whose
    place it takes, and where; None with OTHER_HOST. ``used``: the standbys that this failover has
    chosen so far, ``standby`` among them, sorted.
    """

    epoch: int
    standby: ProcessorId | None
    host: Host | None
    step: FailoverStep
    used: tuple[ProcessorId, ...] = ()


@dataclass(frozen=True, slots=True)
class JobModelPublished:
    """The JobModel that permits will name from now on is in the coordinator stream.

    The same for the first model of a job, for a change of a running one, and for the next
    driver, perhaps in mid-change.

    Shapes: ``processors`` {processor_id: host it last ran on, None where unknown}; ``standbys``
    {standby among them: the active one that it replicates}, the others are active; ``failovers``
    {active: what is under way by the stream}, read of those that are new to the allocator;
    ``epochs`` {processor_id: last epoch ever permitted} (absent: 0); ``floors`` {processor_id: the
    epoch that the stream says; the next permit is above it} (absent: as ``epochs``): where it is
    above ``epochs``, what runs must be stopped, as the model has changed for it; ``unfenced``
    {processor_id: every incarnation that was permitted to own one of its tasks and that no later
    one reported fenced} (its own last one need not be listed: it belongs there always); ``retired``
    {processor_id that is not in the model: last epoch ever permitted, which may still run};
    ``gainers``: those to which the version gives a task, or input, that they did not have (where
    the stream had it before, perhaps others too);
    ``failures`` {processor_id: what is charged to it already} (absent: nothing); ``former``
    {processor_id that is not in the model: last epoch ever permitted, stopped or not}; ``older``:
    as in ``OlderModelsWanted``, of a change of a running job.
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
    older: Map[ProcessorId, int] = field(default_factory=Map)

    def __str__(self) -> str:
        return f"version {self.version}, {len(self.processors)} processors"


@dataclass(frozen=True, slots=True)
class HostReport:
    """What one host has for containers, of ours and of others; ``rack`` None: not known.

    Memory in MB: in all, and free at the time of the report. Not ``is_live``: the cluster has had
    the host and lost it, so that nothing of it is free. ``web``: host and port of its web service,
    which decides nothing; empty: not known.
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
        """Return whether a container of this size fits not even the empty host.

        Of cores nothing is said: YARN's default rule for what fits does not count them.
        """
        return self.memory_mb < memory_mb

    def has_room(self, memory_mb: int, cores: int) -> bool:
        """Return whether one container of this size is free at the time of the report."""
        return self.free_memory_mb >= memory_mb and self.free_cores >= cores


@dataclass(frozen=True, slots=True)
class HostsObserved:
    """These hosts, and no others, are live: all of them, not the change.

    The first time it also says that all that an earlier driver permitted is accounted for.
    ``reports``: what is known of them, and of hosts that were lost; a host without a report counts
    as having room. None at all: what was known stays.
    """

    hosts: tuple[Host, ...]
    reports: tuple[HostReport, ...] = ()

    def __str__(self) -> str:
        return ", ".join(sorted(self.hosts)) or "none"


@dataclass(frozen=True, slots=True)
class LauncherCheckedIn:
    """A launcher polled: it lives on ``host``, and ``running`` is its child (None: it has none).

    The shell answers one without a child to come later, which is no event, until all that an
    earlier driver permitted is accounted for: else it could be given what runs elsewhere.

    ``request_id`` is the request that its Skein container was added for, as its environment says.
    """

    resource_id: ResourceId
    host: Host
    running: Incarnation | None
    request_id: RequestId | None = None

    def __str__(self) -> str:
        return f"{self.resource_id} on {self.host} running {named(self.running)}"


@dataclass(frozen=True, slots=True)
class ResourceAllocated:
    """Skein says RUNNING of this request: granted, launched; its launcher has yet to check in."""

    request_id: RequestId

    def __str__(self) -> str:
        return f"request {self.request_id}"


@dataclass(frozen=True, slots=True)
class ResourceEnded:
    """A YARN container is gone.

    With ``resource_id``: evidence that what ran in it has stopped (YARN reported the end **and**
    its launcher has been silent for the whole limit). With ``request_id`` only: Skein's word,
    which ends a request that no launcher has checked in for (also when adding the container
    failed) and a launcher without a child, but is no evidence that an incarnation stopped
    (safety P1).

    ``story`` is the cluster manager's text; ``is_own_fault``: it ended the container for what
    the container did, as for memory beyond its limit; ``is_taken_back``: the cluster took it for
    what was not the container's doing, as a lost node, failed disks or preemption (YARN's -100,
    -101, -102).
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
    """A launcher was silent for so long that by its own rule it killed its child, or is gone.

    The time counts from its last check-in of any kind; each that checked in is watched. The end of
    its YARN container was not reported: that would be ``ResourceEnded``.
    """

    resource_id: ResourceId

    def __str__(self) -> str:
        return self.resource_id


@dataclass(frozen=True, slots=True)
class TimerFired:
    """A timer that was set, and not cancelled since, has run out."""

    timer: Timer

    def __str__(self) -> str:
        return str(self.timer)


@dataclass(frozen=True, slots=True)
class ContainerStarted:
    """A stream container reported: predecessors fenced, stores restored, locality written."""

    incarnation: Incarnation

    def __str__(self) -> str:
        return named(self.incarnation)


@dataclass(frozen=True, slots=True)
class ContainerStopped:
    """A launcher waited for this incarnation and it is gone, or will never run it, and says so."""

    incarnation: Incarnation
    cause: StopCause
    exit_code: int

    def __str__(self) -> str:
        return f"{named(self.incarnation)} {self.cause.value}, exit code {self.exit_code}"


@dataclass(frozen=True, slots=True)
class RetiredStopped:
    """Of an incarnation that an earlier driver left, and whose processor the model does not have.

    A launcher has waited for it, or the keeper says that its lease is over; ``cause`` is for the
    coordinator stream, as ``set-stopped`` has it.
    """

    incarnation: Incarnation
    cause: str

    def __str__(self) -> str:
        return f"{named(self.incarnation)} {self.cause}"


@dataclass(frozen=True, slots=True)
class FencesReported:
    """``incarnation`` has fenced these for good: it was the newest of its processor afterwards.

    One that initialises its id later is stopped by what the coordinator stream says.
    """

    incarnation: Incarnation
    fenced: tuple[Incarnation, ...]

    def __str__(self) -> str:
        return f"{named(self.incarnation)} has fenced {', '.join(map(named, self.fenced))}"


@dataclass(frozen=True, slots=True)
class FencedByDriver:
    """The transactional id of this incarnation was initialised **after** its launcher said stopped.

    Nothing of it is open, and it initialises nothing any more.
    """

    incarnation: Incarnation

    def __str__(self) -> str:
        return named(self.incarnation)


@dataclass(frozen=True, slots=True)
class LagsReported:
    """Containers have left to read {processor: records}; the others are as before.

    A standby reports what it is behind, a container that starts what its restores have left.
    """

    lags: Mapping[ProcessorId, int]

    def __str__(self) -> str:
        return ", ".join(f"{p} by {lag}" for p, lag in sorted(self.lags.items())) or "none"


@dataclass(frozen=True, slots=True)
class SparesReported:
    """Whether the spare beside each standby has its Spark ready; the others are as before."""

    ready: Mapping[ProcessorId, bool]

    def __str__(self) -> str:
        words = {True: "ready", False: "not ready"}
        return ", ".join(f"{p} {words[is_ready]}" for p, is_ready in sorted(self.ready.items()))


@dataclass(frozen=True, slots=True)
class ShutdownRequested:
    """The orderly end of the job: an entitled request asks for it, or an earlier driver began it.

    ``result``: one of YARN's final states, which the job ends with.
    """

    result: str = "KILLED"
    diagnostics: str = "shut down on request"

    def __str__(self) -> str:
        return self.result


@dataclass(frozen=True, slots=True)
class PlacementRequested:
    """An operator requests a container's place, now or at an earlier driver that has not ended it.

    ``refusal``: why its reader refuses it already, as being for another run of the job; empty
    where it does not. ``is_resumed``: it has been answered, but not finally, by an earlier driver;
    ``source`` as the answer has it: None, where the action was not begun.
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
    """The next permits of these processors name an earlier JobModel, with the same tasks for them.

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
