"""The status of the job: the body of ``GET /v1/status``."""

from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum

from homeport.appmaster.allocation.commands import unfinished
from homeport.appmaster.allocation.container_process_manager import Decision
from homeport.appmaster.allocation.exclusion import suspects_itself
from homeport.appmaster.allocation.job_state.placements import Placement
from homeport.appmaster.allocation.job_state.state import (
    LIVE,
    WAITING,
    AllocatorState,
    ContainerPhase,
    ContainerState,
    Failure,
    JobPhase,
)
from homeport.appmaster.allocation.protocol.events import HostReport, named
from homeport.appmaster.allocation.protocol.instructions import EndJob, JobResult
from homeport.appmaster.allocation.shortage import shortage
from homeport.appmaster.lease.launcher_table import LauncherTable
from homeport.job_coordinator.http.messages import Started, Stopped
from homeport.job_coordinator.metadata.epochs import Rank
from homeport.job_coordinator.model.ids import Host, ProcessorId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.status.container_report import ContainerReport
from homeport.job_coordinator.status.shape import (
    HeldBack,
    Phase,
    ShownChange,
    ShownContainer,
    ShownFailover,
    ShownFailure,
    ShownJob,
    ShownPlacement,
    ShownShortage,
    ShownStatus,
)

_MAX_FAILURES = 20
_FULFILLED = frozenset({ContainerPhase.RUNNING, ContainerPhase.FINISHED})


@dataclass(frozen=True, slots=True)
class JobIdentity:
    """The job that this AM attempt runs, and its addresses.

    ``user``: YARN runs it as this user; ``host``: the AM's; ``python``: its environment;
    ``version``: of homeport in that; empty: not known.
    """

    name: str
    id: str
    rank: Rank
    attempts_max: int
    application_url: str
    user: str = ""
    host: str = ""
    python: str = ""
    version: str = ""


@dataclass(slots=True)
class _Facts:
    """What is known of one processor beyond the allocator's state. Units: ms since 1970."""

    phase: ContainerPhase | None = None
    since_ms: int = 0
    waits_since_ms: int | None = None
    """Since when it waits for a place, through all phases of that; None: it does not."""
    host: Host | None = None
    resource: ResourceId | None = None
    """Its last YARN container."""
    started: Started | None = None
    last_failure: Failure | None = None
    report: tuple[Incarnation, ContainerReport] | None = None
    """Its report of work, with its launcher's last check-in."""
    epoch: int = 0
    """The last epoch that this driver permitted or found."""
    restarts: int = 0
    """How often it was permitted again; an epoch that a new model raises does not count."""


@dataclass(frozen=True, slots=True)
class _Noted:
    """One entry of ``failures``; ``reported``: the incarnation whose stop a launcher reported."""

    shown: ShownFailure
    reported: Incarnation | None = None


@dataclass
class JobStatus:
    """Collects facts as they come and shows them with the allocator's state.

    ``foreseen``: the allocator's state once it has the JobModel that the driver begins with. It
    gets that model only when all that earlier drivers left running is known, which may take longer
    than a lease. Until then the status shows this state, with every container.
    """

    identity: JobIdentity
    now_ms: Callable[[], int]
    foreseen: AllocatorState
    coordinator_url: str = ""
    versions: dict[ProcessorId, tuple[int, int]] = field(default_factory=dict)
    """{processor: epoch, and version of the JobModel it was permitted under}, by the stream."""
    held_back: tuple[int, tuple[Incarnation, ...]] | None = None
    _facts: dict[ProcessorId, _Facts] = field(default_factory=dict)
    _refusals: Counter[str] = field(default_factory=Counter)
    _failures: deque[_Noted] = field(default_factory=lambda: deque(maxlen=_MAX_FAILURES))
    _begun_ms: int = field(init=False)

    def __post_init__(self) -> None:
        self._begun_ms = self.now_ms()

    def entered(self, decision: Decision, launchers: LauncherTable) -> None:
        """Note a decision that is in force."""
        for processor_id in sorted(decision.changes.containers):
            container = decision.state.container(processor_id)
            if container is None:
                continue
            facts = self._facts.setdefault(container.processor_id, _Facts())
            if facts.phase is not container.phase:
                facts.phase, facts.since_ms = container.phase, self.now_ms()
                since_ms = facts.waits_since_ms or facts.since_ms
                facts.waits_since_ms = since_ms if container.phase in WAITING else None
            if container.resource_id is not None:
                facts.resource = container.resource_id
                launcher = launchers.find(container.resource_id)
                if launcher is not None:
                    facts.host = launcher.host
                if container.epoch != facts.epoch:
                    facts.restarts += facts.epoch > 0
                    facts.epoch = container.epoch
            self._note_failure(container, facts)

    def _note_failure(self, container: ContainerState, facts: _Facts) -> None:
        failure, known = container.last_failure, facts.last_failure
        facts.last_failure = failure
        if failure is None or failure == known:
            return
        if failure.cause is not None and self._has_reported(failure.incarnation):
            return
        shown = ShownFailure(
            processor_id=container.processor_id,
            epoch=container.epoch,
            cause=failure.story,
            host=facts.host,
            at_ms=self.now_ms(),
            last_lines=(),
        )
        self._failures.append(_Noted(shown))

    def _has_reported(self, incarnation: Incarnation | None) -> bool:
        return any(noted.reported == incarnation for noted in self._failures)

    def begun(self, waited_ms: int, unheard: tuple[Incarnation, ...]) -> None:
        """Note that placing began after ``waited_ms``; no stop of ``unheard`` was reported."""
        self.held_back = (waited_ms, unheard)

    def started(self, message: Started) -> None:
        """Note how a stream container was restored; the report may come again."""
        facts = self._facts.setdefault(message.incarnation.processor_id, _Facts())
        if facts.started != message:
            stores = (how for tasks in message.restored.values() for how in tasks.values())
            for how in stores:
                if how.refusal is not None:
                    self._refusals[how.refusal] += how.tasks
        facts.started = message

    def reported(self, incarnation: Incarnation, report: ContainerReport | None) -> None:
        """Note a running container's report of its work; None: it has none."""
        facts = self._facts.setdefault(incarnation.processor_id, _Facts())
        facts.report = None if report is None else (incarnation, report)

    def report_of(self, incarnation: Incarnation) -> ContainerReport | None:
        """Return the last report of its work; None: it has given none."""
        report = self._facts.get(incarnation.processor_id, _Facts()).report
        return report[1] if report is not None and report[0] == incarnation else None

    def stopped(self, message: Stopped) -> None:
        """Note the end of a stream container: a failure, unless it was ordered or its own.

        A report that comes again, as while the driver cannot take it, adds no other failure.
        """
        if message.cause in {StopCause.ORDERED, StopCause.FINISHED}:
            return
        if self._has_reported(message.incarnation):
            return
        facts = self._facts.setdefault(message.incarnation.processor_id, _Facts())
        shown = ShownFailure(
            processor_id=message.incarnation.processor_id,
            epoch=message.incarnation.epoch,
            cause=message.cause.value,
            exit_code=message.exit_code,
            host=facts.host,
            at_ms=self.now_ms(),
            log=_log_of(message.incarnation, facts),
            last_lines=message.last_lines,
        )
        self._failures.append(_Noted(shown, message.incarnation))

    def failed(self, what: str) -> None:
        """Note another failure."""
        self._failures.append(_Noted(ShownFailure(cause=what, at_ms=self.now_ms())))

    def diagnostics(self, end: EndJob) -> str:
        """Return the diagnostics for YARN, one line; of a failed job with the place of its log.

        All users of YARN's pages can read it, so no line of a log is in it.
        """
        logs = [noted for noted in self._failures if noted.reported is not None]
        if end.result is not JobResult.FAILED or not logs:
            return end.diagnostics
        last, name = logs[-1].shown, named(logs[-1].reported)
        return f"{end.diagnostics}; the log of {name} is {last.log} on {last.host}"

    def shown(
        self, state: AllocatorState, launchers: LauncherTable, stream_fault: str | None
    ) -> ShownStatus:
        """Return the status, without the fields that only the driver knows.

        ``last_lines`` of the failures are for holders of the job's token.
        """
        known = self.foreseen if state.phase is JobPhase.NEW else state
        return ShownStatus(
            job=self._job(state, known),
            coordinator_url=self.coordinator_url,
            application_url=self.identity.application_url,
            containers=tuple(self._container(c, launchers) for c in known.containers),
            hosts=tuple(sorted(state.hosts or ())),
            excluded_hosts=tuple(sorted(state.exclusions)),
            drained_hosts=tuple(sorted(state.settings.drained_hosts)),
            suspects_itself=suspects_itself(state.silent, state.hosts or ()),
            stores_refused=dict(sorted(self._refusals.items())),
            failures=tuple(noted.shown for noted in self._failures),
            coordinator_stream=stream_fault or "ok",
            change=change_under_way(state),
            failovers=failovers_under_way(known),
            placements=tuple(placement_under_way(state, p) for p in state.placements),
        )

    def _job(self, state: AllocatorState, known: AllocatorState) -> ShownJob:
        identity, rank = self.identity, self.identity.rank
        held_back = None
        if self.held_back is not None:
            waited_ms, unheard = self.held_back
            held_back = HeldBack(ms=waited_ms, unheard=tuple(named(i) for i in unheard))
        return ShownJob(
            name=identity.name,
            id=identity.id,
            application=rank.application,
            attempt=rank.attempt,
            host=identity.host,
            attempts_max=identity.attempts_max,
            rank=(rank.submission, rank.application, rank.attempt),
            state=_job_state(state),
            health=health(known).value,
            model_version=known.model_version,
            held_back=held_back,
            python=identity.python,
            version=identity.version,
        )

    def waiting(self, state: AllocatorState, reports: Iterable[HostReport]) -> ShownShortage | None:
        """Return which containers wait, since when and for what; None: none waits.

        ``reports``: the hosts' reports in the last poll.
        """
        return shortage(state, reports, lambda p: self._facts.get(p, _Facts()).waits_since_ms)

    def _container(self, container: ContainerState, launchers: LauncherTable) -> ShownContainer:
        facts = self._facts.get(container.processor_id, _Facts())
        launcher = launchers.find(container.resource_id) if container.resource_id else None
        incarnation = Incarnation(container.processor_id, container.epoch)
        started = facts.started
        if started is not None and started.incarnation != incarnation:
            started = None
        report = self.report_of(incarnation)
        running = launcher if launcher and launcher.running == incarnation else None
        return ShownContainer(
            processor_id=container.processor_id,
            role=container.role.value,
            replica_of=container.replica_of,
            is_temporary=container.is_temporary,
            lag=container.lag if container.replica_of is not None else None,
            lag_seconds=report.lag_seconds if report else None,
            report=report,
            host=launcher.host if launcher else None,
            last_host=facts.host or container.home,
            requested_host=container.requested_host,
            phase=Phase(container.phase.value),
            since_ms=facts.since_ms or self._begun_ms,
            epoch=container.epoch,
            model_version=self._version(container),
            pid=running.pid if running else None,
            package=running.package if running else None,
            python=running.python if running else None,
            version=running.version if running else None,
            resource=container.resource_id,
            spare=launcher.spare if launcher else None,
            restored=started.restored if started else None,
            seconds=started.seconds if started else None,
            restarts=facts.restarts,
            failures=container.failures,
            last_failure=container.last_failure.story if container.last_failure else None,
        )

    def _version(self, container: ContainerState) -> int | None:
        """Return the JobModel version that it runs; None: it does not run, or it is not known."""
        if container.phase not in LIVE:
            return None
        epoch, version = self.versions.get(container.processor_id, (0, 0))
        return container.model_version or (version if epoch == container.epoch else None)


def change_under_way(state: AllocatorState) -> ShownChange | None:
    """Return which incarnations must stop for a new JobModel, and which processors wait for them.

    One that works on waits for what keeps it from letting go. None where there are none.
    """
    if state.phase is not JobPhase.ACTIVE:
        return None
    live = {c.incarnation for c in state.containers if c.phase in LIVE}
    # A standby that stops for its active stops too, under the model that it had.
    overtaken = (c for c in state.containers if c.is_overtaken)
    stopping = [c.incarnation for c in overtaken if c.phase in LIVE]
    waits = {
        c.processor_id: tuple(named(p.incarnation) for p in c.unfenced if p.incarnation in live)
        for c in state.containers
        if c.phase in WAITING
    }
    waits = {processor_id: owners for processor_id, owners in waits.items() if owners}
    if not stopping and not waits:
        return None
    must_stop = tuple(named(i) for i in stopping)
    return ShownChange(to_version=state.model_version, must_stop=must_stop, waits=waits)


def placement_under_way(state: AllocatorState, placement: Placement) -> ShownPlacement:
    """Return an operator's command that has not ended, with what it waits for."""
    request = placement.request
    return ShownPlacement(
        uuid=request.uuid,
        processor_id=request.processor_id,
        destination=request.destination,
        step=placement.step.value,
        host=placement.host,
        is_warm=request.is_warm,
        standby=placement.standby,
        waits=unfinished.waits(state.container, placement),
    )


def failovers_under_way(state: AllocatorState) -> tuple[ShownFailover, ...]:
    """Return the active containers that cannot go home and have not started elsewhere yet."""
    found: list[ShownFailover] = []
    for active in state.containers:
        failover = active.failover
        if failover is None:
            continue
        standby = state.container(failover.standby) if failover.standby is not None else None
        is_awaited = standby is not None and standby.phase is ContainerPhase.STOPPING
        found.append(
            ShownFailover(
                active=active.processor_id,
                phase=Phase(active.phase.value),
                step=failover.step.value,
                standby=failover.standby,
                host=failover.host,
                used=tuple(failover.used),
                waits_for=named(standby.incarnation) if standby and is_awaited else None,
            )
        )
    return tuple(found)


def _log_of(incarnation: Incarnation, facts: _Facts) -> str:
    name = f"container-{incarnation.processor_id}-{incarnation.epoch}.log"
    return name if facts.resource is None else f"{name} of {facts.resource}"


def _job_state(state: AllocatorState) -> str:
    if state.phase is not JobPhase.ACTIVE:
        return str(state.phase.value)
    phases = {c.phase for c in state.containers if not c.is_temporary}
    return "running" if phases <= _FULFILLED else "starting"


class JobHealth(Enum):
    """How much of the job runs."""

    DEPLOYING = "deploying"
    """Not every container has run yet."""
    DEPLOYED = "deployed"
    """Every container, active or standby, runs or has finished."""
    RECOVERING = "recovering"
    """It was deployed; some container is on its way back."""
    DEGRADED = "degraded"
    """Some container was given up, and the job goes on without it."""


def health(state: AllocatorState) -> JobHealth:
    """Return the health of the job in this state."""
    own = [c for c in state.containers if not c.is_temporary]
    phases = {c.phase for c in own if not c.is_retired}
    if ContainerPhase.FAILED in phases:
        return JobHealth.DEGRADED
    if state.phase is not JobPhase.NEW and phases <= _FULFILLED:
        return JobHealth.DEPLOYED
    has_run = all(c.epoch > 0 for c in own)
    return JobHealth.RECOVERING if has_run and phases else JobHealth.DEPLOYING
