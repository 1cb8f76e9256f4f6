"""One step's working copy of the state: the only mutable thing here, and it ends with the step.

PURE. Rules for editing: every change of a phase goes through ``move``, which holds it against
``TRANSITIONS``; timers are set and cancelled only here, so that the state's list of armed timers
and the instructions cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from homeport.appmaster.allocation.events import Timer
from homeport.appmaster.allocation.instructions import (
    CancelRequest,
    CancelTimer,
    Instruction,
    Record,
    SetTimer,
)
from homeport.appmaster.allocation.state import (
    ASKING,
    LIVE,
    TRANSITIONS,
    AllocatorState,
    ContainerPhase,
    ContainerState,
    EarlyPhase,
    EarlyRequest,
    Happening,
    ResourceState,
    check_in_timer,
    expiry_timer,
)
from homeport.config.errors import InvariantViolation
from homeport.job_coordinator.model.ids import Host, RequestId, ResourceId


class Draft:
    """A state being changed, and what the changes demand of the shell. ``freeze`` ends it."""

    def __init__(self, state: AllocatorState, cause: str) -> None:
        self.cause = cause
        self.settings = state.settings
        self.phase = state.phase
        self.model_version = state.model_version
        self.hosts = state.hosts
        self.ending = state.ending
        self.next_request_id = state.next_request_id
        self.stale_events = state.stale_events
        self.timers = set(state.timers)
        self.retired = set(state.retired)
        self.containers = {c.processor_id: c for c in state.containers}
        self.resources = {r.resource_id: r for r in state.resources}
        self.early = {e.processor_id: e for e in state.early}
        self.silent = set(state.silent)
        self.exclusions = {e.host: e for e in state.exclusions}
        self.records: list[Record] = []
        self.instructions: list[Instruction] = []

    def freeze(self) -> AllocatorState:
        """The state as it now is, containers and resources in the order of their ids."""
        return AllocatorState(
            settings=self.settings,
            phase=self.phase,
            model_version=self.model_version,
            hosts=self.hosts,
            containers=tuple(self.containers[key] for key in sorted(self.containers)),
            retired=tuple(sorted(self.retired)),
            resources=tuple(self.resources[key] for key in sorted(self.resources)),
            early=tuple(self.early[key] for key in sorted(self.early)),
            silent=tuple(sorted(self.silent)),
            exclusions=tuple(self.exclusions[key] for key in sorted(self.exclusions)),
            timers=frozenset(self.timers),
            ending=self.ending,
            next_request_id=self.next_request_id,
            stale_events=self.stale_events,
        )

    def each(self, phases: frozenset[ContainerPhase] | None = None) -> list[ContainerState]:
        """The containers in these phases (None: all), in the order of their ids."""
        found = (self.containers[key] for key in sorted(self.containers))
        return [c for c in found if phases is None or c.phase in phases]

    def holder(self, resource_id: ResourceId) -> ContainerState | None:
        """The container that holds this resource; None where none does."""
        return self._first(lambda c: c.resource_id == resource_id)

    def asker(self, request_id: RequestId | None) -> ContainerState | None:
        """The container that this request is outstanding for; None where none is."""
        return self._first(lambda c: request_id is not None and c.request_id == request_id)

    def _first(self, is_it: Callable[[ContainerState], bool]) -> ContainerState | None:
        return next((c for c in self.containers.values() if is_it(c)), None)

    def early_asker(self, request_id: RequestId | None) -> EarlyRequest | None:
        """The early request of this number that is outstanding; None where it is none."""
        found = (e for e in self.early.values() if e.phase is not EarlyPhase.OVER)
        return next((e for e in found if e.request_id == request_id), None)

    def launcher_of(self, request_id: RequestId | None) -> ResourceState | None:
        """The launcher that came of this request; None where none did."""
        found = (r for r in self.resources.values() if r.request_id is not None)
        return next((r for r in found if r.request_id == request_id), None)

    def has_child(self, launcher: ResourceState) -> bool:
        """Whether an incarnation must be taken to run on this launcher."""
        holder = self.holder(launcher.resource_id)
        return holder is not None and holder.phase in LIVE

    def idle_resources(self) -> list[ResourceState]:
        """The launchers that live, unheld and not released, in the order of their ids."""
        found = (self.resources[key] for key in sorted(self.resources))
        useful = (r for r in found if not r.is_released and r.ended is None)
        return [r for r in useful if self.holder(r.resource_id) is None]

    def host_of(self, container: ContainerState) -> Host | None:
        """The host of the resource that ``container`` holds; None where it holds none."""
        return None if container.resource_id is None else self.resources[container.resource_id].host

    def count_stale(self) -> None:
        """The event came too late, or twice, or for somebody unknown; it changes nothing."""
        self.stale_events += 1

    def may_befall(self, container: ContainerState, happening: Happening) -> bool:
        """Whether this can befall the container in its phase; if not, the event counts as stale."""
        if happening in TRANSITIONS[container.phase]:
            return True
        self.count_stale()
        return False

    def change(
        self,
        container: ContainerState,
        **changes: Any,  # noqa: ANN401 - any field's type
    ) -> ContainerState:
        """The container with these fields changed; its phase is not among them."""
        changed = replace(container, **changes)
        self.containers[container.processor_id] = changed
        return changed

    def move(
        self,
        container: ContainerState,
        happening: Happening,
        phase: ContainerPhase,
        **changes: Any,  # noqa: ANN401 - any field's type
    ) -> ContainerState:
        """The container in ``phase``, with these fields changed too.

        Raises:
            InvariantViolation: the table does not know this move.
        """
        if phase not in TRANSITIONS[container.phase].get(happening, frozenset()):
            raise InvariantViolation(
                f"{happening.value} must not take a container from {container.phase.value} "
                f"to {phase.value}; after {self.cause}: {container}"
            )
        return self.change(container, phase=phase, **changes)

    def instruct(self, instruction: Instruction) -> None:
        """``instruction`` follows those given so far."""
        self.instructions.append(replace(instruction, cause=self.cause))

    def set_timer(self, timer: Timer, delay_ms: int) -> None:
        """The timer is armed, anew where it was."""
        self.timers.add(timer)
        self.instruct(SetTimer(timer, delay_ms))

    def cancel_timer(self, timer: Timer) -> None:
        """The timer is not armed."""
        if timer in self.timers:
            self.timers.remove(timer)
            self.instruct(CancelTimer(timer))

    def new_request_id(self) -> RequestId:
        """A number that no request has had."""
        number = RequestId(self.next_request_id)
        self.next_request_id += 1
        return number

    def end_request(self, container: ContainerState, *, is_served: bool = False) -> None:
        """The timers of the container's request are off; unless it was served, it is cancelled.

        The caller moves the container on and clears its ``request_id``.
        """
        if container.phase in ASKING and container.request_id is not None:
            self.forget_request(container.request_id, is_served=is_served)

    def forget_request(self, request_id: RequestId, *, is_served: bool = False) -> None:
        """The timers of this request are off; unless it was served, it is cancelled."""
        self.cancel_timer(expiry_timer(request_id))
        self.cancel_timer(check_in_timer(request_id))
        if not is_served:
            self.instruct(CancelRequest(request_id))
