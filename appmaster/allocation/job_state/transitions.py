"""What may happen to a container in each phase, and the phases that may follow: a table.

PURE. ``Draft.move`` checks every change of a phase against it. ``invariants`` has what the table
cannot express: which container holds which resource, which timers are armed.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from homeport.appmaster.allocation.job_state.state import ContainerPhase


class Trigger(Enum):
    """What happens to one container: the first group by events, the second by decisions."""

    CHECKED_IN = "launcher checked in"
    ALLOCATED = "request allocated"
    EXPIRED = "request expired"
    LAUNCH_FAILED = "no launcher came of the request"
    STARTED = "container started"
    STOPPED = "container stopped"
    RESOURCE_LOST = "resource lost"
    BACKED_OFF = "retry delay over"

    PLACED = "placed"
    FAILS_OVER = "fails over to a standby"
    REPLACED_BY_ACTIVE = "stops for its active"
    WAY_IS_CLEAR = "its standby has stopped"
    WAY_IS_BLOCKED = "its standby's place cannot be had"
    GIVEN_AWAY = "its grant served another"
    MODEL_CHANGED = "model changed"
    COMMANDED = "moved or restarted by command"
    JOB_ENDING = "job ends"

    __hash__ = object.__hash__
    """By identity: see ContainerPhase."""


_P = ContainerPhase
_H = Trigger


def _to(*phases: ContainerPhase) -> frozenset[ContainerPhase]:
    return frozenset(phases)


_FAILS = _to(_P.QUEUED, _P.BACKING_OFF, _P.FAILED)
_FOUND = _to(_P.RUNNING, _P.STOPPING)
_SERVED = _to(_P.ASSIGNED, _P.STARTING, _P.RUNNING, _P.STOPPING)
_WAITS = {_H.STOPPED: _to(_P.FINISHED), _H.JOB_ENDING: _to(_P.STOPPED)}
_ASKS = {
    **_WAITS,
    _H.EXPIRED: _to(_P.QUEUED),
    _H.LAUNCH_FAILED: _FAILS,
    _H.CHECKED_IN: _SERVED,
    _H.GIVEN_AWAY: _to(_P.QUEUED, _P.BACKING_OFF),
    _H.COMMANDED: _to(_P.ASSIGNED),
}
_LIVES = {
    _H.STARTED: _to(_P.RUNNING),
    _H.STOPPED: _FAILS | {_P.ASSIGNED, _P.FINISHED},
    _H.RESOURCE_LOST: _FAILS,
    _H.COMMANDED: _to(_P.STOPPING),
    _H.JOB_ENDING: _to(_P.STOPPING),
    _H.MODEL_CHANGED: _to(_P.STOPPING),
    _H.REPLACED_BY_ACTIVE: _to(_P.STOPPING),
}
TRANSITIONS: Mapping[ContainerPhase, Mapping[Trigger, frozenset[ContainerPhase]]] = (
    MappingProxyType(
        {
            _P.FAILING_OVER: {
                **_WAITS,
                _H.WAY_IS_CLEAR: _to(_P.QUEUED, _P.ASSIGNED),
                _H.WAY_IS_BLOCKED: _to(_P.QUEUED),
                _H.CHECKED_IN: _FOUND,
            },
            _P.QUEUED: {
                **_WAITS,
                _H.PLACED: _to(_P.REQUESTED, _P.ASSIGNED),
                _H.FAILS_OVER: _to(_P.FAILING_OVER),
                _H.CHECKED_IN: _SERVED,
                _H.COMMANDED: _to(_P.ASSIGNED),
            },
            _P.BACKING_OFF: {
                **_WAITS,
                _H.BACKED_OFF: _to(_P.QUEUED),
                _H.MODEL_CHANGED: _to(_P.QUEUED),
                _H.CHECKED_IN: _FOUND,
            },
            _P.REQUESTED: {**_ASKS, _H.ALLOCATED: _to(_P.ALLOCATED)},
            _P.ALLOCATED: _ASKS,
            _P.ASSIGNED: {
                **_WAITS,
                _H.CHECKED_IN: _FOUND | {_P.STARTING},
                _H.RESOURCE_LOST: _FAILS,
                _H.GIVEN_AWAY: _to(_P.QUEUED),
                _H.COMMANDED: _to(_P.ASSIGNED),
            },
            _P.STARTING: {**_LIVES, _H.CHECKED_IN: _to(_P.STARTING)},
            _P.RUNNING: {**_LIVES, _H.CHECKED_IN: _to(_P.RUNNING)},
            _P.STOPPING: {
                _H.CHECKED_IN: _to(_P.STOPPING),
                _H.STARTED: _to(_P.STOPPING),
                _H.STOPPED: _to(_P.STOPPED, _P.FINISHED, _P.QUEUED, _P.ASSIGNED),
                _H.RESOURCE_LOST: _to(_P.STOPPED, _P.QUEUED),
                _H.JOB_ENDING: _to(_P.STOPPING),
            },
            _P.STOPPED: {},
            _P.FINISHED: {_H.MODEL_CHANGED: _to(_P.QUEUED)},
            _P.FAILED: {
                _H.MODEL_CHANGED: _to(_P.QUEUED),
                _H.COMMANDED: _to(_P.QUEUED, _P.ASSIGNED),
            },
        }
    )
)
"""{phase: {trigger: the phases that may follow}}.

A trigger of the first group that a phase does not have is stale there: it is counted, and changes
nothing. A missing one of the second group is a bug.
"""
