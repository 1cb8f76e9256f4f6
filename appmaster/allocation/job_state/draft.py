"""The working copy of the state in one step: the only mutable object of the allocator.

PURE. Rules for editing: every change of a phase goes through ``move``, which checks it against
``TRANSITIONS``; timers are set and cancelled only here, so that the state's list of armed timers
agrees with the instructions.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from homeport.appmaster.allocation.job_state.hosts import Ranking
from homeport.appmaster.allocation.job_state.occupancy import OccupancyEdit
from homeport.appmaster.allocation.job_state.placements import Placement
from homeport.appmaster.allocation.job_state.state import (
    ASKING,
    LIVE,
    AllocatorState,
    ContainerPhase,
    Containers,
    ContainerState,
    EarlyRequest,
    EarlyRequests,
    Preparation,
    Resources,
    ResourceState,
)
from homeport.appmaster.allocation.job_state.transitions import TRANSITIONS, Trigger
from homeport.appmaster.allocation.protocol.events import Timer, TimerKind
from homeport.appmaster.allocation.protocol.instructions import (
    CancelRequest,
    CancelTimer,
    EndFailover,
    Instruction,
    Record,
    ReleaseResource,
    RequestResource,
    SetTimer,
)
from homeport.appmaster.allocation.protocol.reasons import Reason, ReasonKind
from homeport.config.errors import InvariantViolation
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId


@dataclass(frozen=True, slots=True)
class Changes:
    """The keys of the rows that one step has set or deleted."""

    containers: frozenset[ProcessorId] = frozenset()
    resources: frozenset[ResourceId] = frozenset()
    early: frozenset[ProcessorId] = frozenset()


class Draft:
    """A state that a step changes, and what the shell has to do for it. ``freeze`` ends it.

    ``is_everybody_due``: whether all queued containers are placed again; see ``placement_queue``.
    """

    def __init__(self, state: AllocatorState, cause: str) -> None:
        self.before = state
        self.is_everybody_due = False
        self._occupancy = OccupancyEdit(state)
        self.cause = cause
        self.settings = state.settings
        self.phase = state.phase
        self.model_version = state.model_version
        self.hosts = state.hosts
        self.racks = state.racks
        self.ending = state.ending
        self.next_request_id = state.next_request_id
        self.stale_events = state.stale_events
        self.room = state.room
        self.timers = state.timers
        self.cancelled = state.cancelled
        self.retired = state.retired
        self.former = state.former
        self.older = state.older
        self.containers = self._occupancy.containers
        self.resources = self._occupancy.resources
        self.early = self._occupancy.early
        self.placements = {p.request.uuid: p for p in state.placements}
        self.silent = state.silent
        self.exclusions = state.exclusions
        self.records: list[Record] = []
        self.instructions: list[Instruction] = []
        self.reasons: list[Reason] = []

    def freeze(self) -> AllocatorState:
        """Return the state as it now is."""
        containers, resources = self.containers.freeze(), self.resources.freeze()
        early = self.early.freeze()
        return AllocatorState(
            settings=self.settings,
            phase=self.phase,
            model_version=self.model_version,
            hosts=self.hosts,
            racks=self.racks,
            containers=containers,
            retired=self.retired,
            former=self.former,
            older=self.older,
            resources=resources,
            early=early,
            placements=tuple(self.placements[key] for key in sorted(self.placements)),
            silent=self.silent,
            exclusions=self.exclusions,
            timers=self.timers,
            cancelled=self.cancelled,
            ending=self.ending,
            next_request_id=self.next_request_id,
            stale_events=self.stale_events,
            room=self.room,
            occupancy=self._occupancy.freeze(containers, resources, early),
        )

    def changes(self) -> Changes:
        """Return which rows were set or deleted; a row may have been set to what it was."""
        return Changes(
            frozenset(self.containers.changed),
            frozenset(self.resources.changed),
            frozenset(self.early.changed),
        )

    def each(self, phases: frozenset[ContainerPhase] | None = None) -> list[ContainerState]:
        """Return the containers in these phases (None: all), in the order of their ids."""
        if phases is None:
            return list(self.containers.values())
        keys = [key for phase in phases for key in self.containers.indexed(Containers.PHASE, phase)]
        return [self.containers[key] for key in sorted(keys)]

    def group(self, active: ProcessorId) -> list[ContainerState]:
        """Return this active, and its standbys in the order of their ids."""
        first = self.containers.get(active)
        standbys = self.standbys(active)
        return standbys if first is None else [first, *standbys]

    def standbys(self, active: ProcessorId) -> list[ContainerState]:
        """Return the standbys of this active, in the order of their ids."""
        return self.containers.rows(Containers.REPLICA_OF, active)

    def holder(self, resource_id: ResourceId) -> ContainerState | None:
        """Return the container that holds this resource; None: none does."""
        return self.containers.first(Containers.RESOURCE, resource_id)

    def asker(self, request_id: RequestId | None) -> ContainerState | None:
        """Return the container whose outstanding request this is; None: it is of none."""
        return self.containers.first(Containers.REQUEST, request_id)

    def early_asker(self, request_id: RequestId | None) -> EarlyRequest | None:
        """Return the outstanding early request with this number; None: there is none."""
        return self.early.first(EarlyRequests.REQUEST, request_id)

    def launcher_of(self, request_id: RequestId | None) -> ResourceState | None:
        """Return the launcher that this request has brought; None: none."""
        return self.resources.first(Resources.REQUEST, request_id)

    def has_child(self, launcher: ResourceState) -> bool:
        """Return whether an incarnation may run on this launcher."""
        holder = self.holder(launcher.resource_id)
        return holder is not None and holder.phase in LIVE

    def commands_for(self, processor_id: ProcessorId) -> list[Placement]:
        """Return the operators' commands under way for this processor."""
        return [p for p in self.placements.values() if p.request.processor_id == processor_id]

    def is_leaving(self, processor_id: ProcessorId) -> bool:
        """Return whether an operator's command has reserved a launcher elsewhere for it."""
        commands = self.commands_for(processor_id)
        return any(p.resource_id is not None and not p.is_launched for p in commands)

    def idle_resources(self) -> list[ResourceState]:
        """Return the live launchers that are not held, reserved or released, by id."""
        return [self.resources[key] for key in sorted(self._occupancy.idle)]

    def host_of(self, container: ContainerState) -> Host | None:
        """Return the host of the resource that ``container`` holds; None: it holds none."""
        return None if container.resource_id is None else self.resources[container.resource_id].host

    @property
    def loads(self) -> Mapping[Host, int]:
        """The number of containers that run on each host, request it, or are queued for it."""
        return self._occupancy.loads

    def is_asked(self, host: Host | None) -> bool:
        """Return whether a strict request for it is outstanding; there may be one at a time."""
        return self._occupancy.is_asked(host)

    @property
    def ranking(self) -> Ranking:
        """The live hosts by room, by load, and by whether they are requested."""
        return self._occupancy.ranking(self.hosts or (), self.room.full)

    def newly_idle(self) -> list[ResourceId]:
        """Return the launchers that became idle in this step, and still are."""
        return [r for r in self._occupancy.freed if r in self._occupancy.idle]

    def newly_empty(self) -> list[Host]:
        """Return the hosts that lost their last container in this step, and still have none."""
        return [host for host in self._occupancy.emptied if host not in self._occupancy.loads]

    def is_closed(self, host: Host) -> bool:
        """Return whether it must not be requested: it is drained, or excluded without a probe left.

        Source: safety P2, P3.
        """
        if host in self.settings.drained_hosts:
            return True
        return host in self.exclusions and (
            not self.exclusions[host]
            or bool(
                self.containers.indexed(Containers.ASKING, host)
                or self.early.indexed(EarlyRequests.ASKING, host)
            )
        )

    def count_stale(self) -> None:
        """Count an event that came late, twice or for an unknown container."""
        self.stale_events += 1

    def may_befall(self, container: ContainerState, trigger: Trigger) -> bool:
        """Return whether this can happen to the container in its phase; else count it as stale."""
        if trigger in TRANSITIONS[container.phase]:
            return True
        self.count_stale()
        return False

    def change(self, changed: ContainerState) -> ContainerState:
        """Store the changed container, whose phase is as before."""
        self.containers[changed.processor_id] = changed
        return changed

    def keep(self, placement: Placement) -> Placement:
        """Store the new or changed command."""
        self.placements[placement.request.uuid] = placement
        return placement

    def move(
        self, container: ContainerState, trigger: Trigger, phase: ContainerPhase
    ) -> ContainerState:
        """Store the changed container with ``phase`` in place of its phase.

        What its launcher prepares is for the phase that it leaves.

        InvariantViolation: ``TRANSITIONS`` does not have this move.
        """
        if phase not in TRANSITIONS[container.phase].get(trigger, frozenset()):
            raise InvariantViolation(
                f"{trigger.value} must not take a container from {container.phase.value} "
                f"to {phase.value}; after {self.cause}: {container}"
            )
        self.end_preparation(container)
        return self.change(replace(container, phase=phase, preparation=Preparation.NONE))

    def end_preparation(self, container: ContainerState) -> None:
        """Disarm the timer PREPARATION of the container, if it runs."""
        if container.preparation is Preparation.ORDERED:
            self.cancel_timer(Timer(TimerKind.PREPARATION, container.processor_id))

    def release(self, launcher: ResourceState) -> None:
        """Order the launcher, which has no holder, to exit."""
        released = replace(launcher, reserved_for=None, is_released=True)
        self.resources[launcher.resource_id] = released
        self.instruct(ReleaseResource(launcher.resource_id))

    def record(self, record: Record) -> None:
        """Add ``record`` to those that the shell writes for this step."""
        self.records.append(replace(record, cause=self.cause))

    def instruct(self, instruction: Instruction) -> None:
        """Add ``instruction`` after those given so far."""
        self.instructions.append(replace(instruction, cause=self.cause))

    def because(
        self,
        kind: ReasonKind,
        of: ContainerState | ProcessorId | None = None,
        host: Host | None = None,
        detail: str = "",
        *,
        other: ContainerState | ProcessorId | None = None,
    ) -> None:
        """Note why this was decided; the arguments are the fields of ``Reason``."""
        self.reasons.append(Reason(kind, _id_of(of), host, _id_of(other), detail))

    def set_timer(self, timer: Timer, delay_ms: int) -> None:
        """Arm the timer; start it again if it is armed."""
        self.timers = self.timers.having(timer)
        self.instruct(SetTimer(timer, delay_ms))

    def cancel_timer(self, timer: Timer) -> None:
        """Disarm the timer."""
        if timer in self.timers:
            self.timers = self.timers.without(timer)
            self.instruct(CancelTimer(timer))

    def end_failover(self, container: ContainerState) -> ContainerState:
        """End the failover, if any: the container has found a place, or needs none."""
        if container.failover is None:
            return container
        self.cancel_timer(Timer(TimerKind.STANDBY_STOP, container.processor_id))
        self.record(EndFailover(container.processor_id))
        return self.change(replace(container, failover=None))

    def request(self, host: Host | None, limit_ms: int) -> RequestId:
        """Request a launcher on ``host`` (None: anywhere) for ``limit_ms``; return the number."""
        request_id = RequestId(self.next_request_id)
        self.next_request_id += 1
        self.instruct(RequestResource(request_id, host))
        self.set_timer(Timer(TimerKind.REQUEST_EXPIRY, request_id), limit_ms)
        return request_id

    def await_check_in(self, request_id: RequestId) -> None:
        """Limit how long the launcher that YARN granted to this request may take to check in."""
        self.cancel_timer(Timer(TimerKind.REQUEST_EXPIRY, request_id))
        limit_ms = self.settings.check_in_timeout_ms
        self.set_timer(Timer(TimerKind.CHECK_IN, request_id), limit_ms)

    def end_request(self, container: ContainerState, *, is_served: bool = False) -> ContainerState:
        """Return the container without its request, which is cancelled unless it was served.

        The caller moves the container into its next phase.
        """
        if container.phase in ASKING and container.request_id is not None:
            self.forget_request(container.request_id, is_served=is_served)
        return replace(container, request_id=None, requested_host=None)

    def forget_request(self, request_id: RequestId, *, is_served: bool = False) -> None:
        """Disarm the timers of this request, and cancel it unless it was served."""
        self.cancel_timer(Timer(TimerKind.REQUEST_EXPIRY, request_id))
        self.cancel_timer(Timer(TimerKind.CHECK_IN, request_id))
        if not is_served:
            self.cancel(request_id)

    def cancel(self, request_id: RequestId, *, is_ended: bool = False) -> None:
        """Cancel this request, and whatever launcher it has brought or will bring.

        ``is_ended``: the cluster manager has reported its end already, and will not do so again.
        """
        self.instruct(CancelRequest(request_id))
        if not is_ended:
            self.cancelled = self.cancelled.having(request_id)

    def forget_cancelled(self, request_id: RequestId | None) -> bool:
        """Forget that this request was cancelled; return whether it was."""
        if request_id is None or request_id not in self.cancelled:
            return False
        self.cancelled = self.cancelled.without(request_id)
        return True


def _id_of(of: ContainerState | ProcessorId | None) -> ProcessorId | None:
    return of.processor_id if isinstance(of, ContainerState) else of
