"""Whether the job counts as deployed, and if it does not, why.

PURE. Source: STANDBY, "a job is considered deployed only when all its containers have been
successfully deployed. Failures of either type of container carry equal impact to the job's
lifecycle".
"""

from __future__ import annotations

from enum import Enum

from homeport.appmaster.allocation.job_state.state import AllocatorState, ContainerPhase, JobPhase

_FULFILLED = frozenset({ContainerPhase.RUNNING, ContainerPhase.FINISHED})


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
    """The health of the job in this state."""
    phases = {c.phase for c in state.containers if not c.is_retired}
    if ContainerPhase.FAILED in phases:
        return JobHealth.DEGRADED
    if state.phase is not JobPhase.NEW and phases <= _FULFILLED:
        return JobHealth.DEPLOYED
    has_run = all(c.epoch > 0 for c in state.containers)
    return JobHealth.RECOVERING if has_run and phases else JobHealth.DEPLOYING
