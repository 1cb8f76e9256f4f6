"""A standby that is there for one warm move, and is no processor of the JobModel.

PURE. Theory. It is a container of the group of its active, so that all that holds of standbys holds
of it: it shares no host with another of the group, its stop needs evidence, and an active that
cannot go home may take its place. It is entered when a launcher at the destination is there, on
that launcher, and is nowhere without it: it never asks for a host, is never placed again, and is
gone with its incarnation, whatever ended that. So it is ASSIGNED, STARTING, RUNNING or STOPPING.

No JobModel has it, and it has no locality: Samza's records do not know of it. Its epochs are in the
coordinator stream as those of all processors are. A later driver finds them there without a
processor of the model, takes the standby for a retired one, and has it stopped.
"""

from __future__ import annotations

from homeport.appmaster.allocation.job_end import order_stop
from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.placements import Placement
from homeport.appmaster.allocation.job_state.state import (
    ContainerPhase,
    ContainerState,
    ResourceState,
)
from homeport.appmaster.allocation.job_state.transitions import Trigger
from homeport.appmaster.allocation.protocol.reasons import ReasonKind
from homeport.job_coordinator.grouper.standby_models import temporary_id
from homeport.job_coordinator.model.ids import ProcessorId

_WELL = frozenset({ContainerPhase.STARTING, ContainerPhase.RUNNING})


def enter(draft: Draft, active: ContainerState, launcher: ResourceState) -> ProcessorId:
    """The temporary standby of this active is assigned the launcher; its id."""
    own = temporary_id(active.processor_id)
    draft.containers[own] = ContainerState(
        own,
        replica_of=active.processor_id,
        phase=ContainerPhase.ASSIGNED,
        epoch=draft.former.get(own, 0),
        resource_id=launcher.resource_id,
        is_temporary=True,
    )
    draft.because(ReasonKind.WARMS_UP, own, host=launcher.host, other=active.processor_id)
    return own


def is_in_use(draft: Draft, active: ContainerState) -> bool:
    """Whether its id is another's: of an earlier one that has not stopped, or in the JobModel."""
    own = temporary_id(active.processor_id)
    return own in draft.containers or any(i.processor_id == own for i in draft.retired)


def dismiss(draft: Draft, placement: Placement) -> None:
    """The action needs its temporary standby no more: that stops, or was not permitted yet."""
    standby = draft.containers.get(placement.standby) if placement.standby else None
    if standby is None or not standby.is_temporary:
        return
    if standby.phase is ContainerPhase.ASSIGNED:
        del draft.containers[standby.processor_id]
    elif standby.phase in _WELL:
        order_stop(draft, draft.move(standby, Trigger.COMMANDED, ContainerPhase.STOPPING))
