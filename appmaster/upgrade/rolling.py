"""How a changed configuration becomes a rolling restart, and what that sees of the job.

PURE. Theory. The record names the processors that are wanted with the changed values. The others
start with the JobModel from before, as long as this attempt has it and it has their tasks. So the
containers get the values in the order and under the watch of an upgrade (``machine``). Going back
is a change like any other: the former values are written to the coordinator stream, so that tools
and the next attempt find there what is in force. No container restarts for them before a JobModel
has them.

Decisions.

* *Another change meanwhile* begins again with its values. Its way back leads to the values from
  before the first change, the last ones that all containers have run with.
* *Former values that a user writes meanwhile* turn the restart back.
* *A container that fails with the values from before*, because the change mends it, starts with the
  new ones from then on. Else it would wait for its turn, and its turn for it.
* *The next attempt* has no JobModel from before: all its containers start with what is in force.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from homeport.appmaster.upgrade.observed import ContainerSeen, Seen
from homeport.config.config import Config
from homeport.config.settings.config_diff import spellings
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.upgrade import (
    REWRITTEN,
    SUBJECT,
    RollingRestart,
    UpgradePhase,
    UpgradeState,
    release_of,
)

NOT_YET_BACK = "the former values are written, and not in force yet"


@dataclass(frozen=True, slots=True)
class Reconfigured:
    """A configuration that follows another one.

    ``application``: the run of the job. ``version``: the version of the JobModel with the new
    configuration. ``names``: the changed keys that only a start reads. ``watch_ms``: how long each
    container is watched.
    """

    application: str
    version: int
    before: Config
    after: Config
    names: Collection[str]
    watch_ms: int


def following(rolling: RollingRestart | None, change: Reconfigured) -> RollingRestart:
    """Return the record with which ``change`` comes into force; ``rolling``: the record now."""
    former = {
        name: change.before.get(name)
        for key in change.names
        for name in spellings(key)
        if change.before.get(name) != change.after.get(name)
    }
    first = change.version
    if rolling is not None and rolling.is_under_way:
        former |= rolling.former
        first = rolling.first
        if all(change.after.get(key) == value for key, value in former.items()):
            return _going_back(rolling, change.version)
    state = UpgradeState(
        f"{SUBJECT} {change.version}",
        change.application,
        release_of(change.version),
        release_of(first - 1),
        change.watch_ms,
        subject=SUBJECT,
    )
    return RollingRestart(state, change.version, first, None, former)


def _going_back(rolling: RollingRestart, version: int) -> RollingRestart:
    state = rolling.state
    if state.phase is UpgradePhase.FORWARD:
        state = replace(
            state, phase=UpgradePhase.BACK, current=None, lag_before=None, reason=REWRITTEN
        )
    return replace(rolling, state=state, back=version)


def older_for(
    rolling: RollingRestart, processors: Iterable[ProcessorId], failing: Collection[ProcessorId]
) -> Iterator[ProcessorId]:
    """Yield the processors whose next start has the values from before.

    On the way forward the ``failing`` ones, which failed with those values, are left out: the
    change may mend them.
    """
    state = rolling.state
    for processor_id in processors:
        is_well = state.phase is UpgradePhase.BACK or processor_id not in failing
        if is_well and state.wanted(processor_id) == state.previous:
            yield processor_id


def seen_with(seen: Seen, rolling: RollingRestart, versions: Mapping[ProcessorId, int]) -> Seen:
    """Return what is seen, with releases in place of packages.

    ``versions``: the version of the JobModel with which each live incarnation started, if known.
    """
    hindrance = seen.hindrance or (NOT_YET_BACK if rolling.lacks_former else "")
    found = tuple(_of(c, rolling, versions.get(c.processor_id)) for c in seen.containers)
    return replace(seen, containers=found, hindrance=hindrance)


def _of(container: ContainerSeen, rolling: RollingRestart, version: int | None) -> ContainerSeen:
    is_known = container.is_known and version is not None
    release = rolling.release(version) if version is not None else None
    # Nothing is prepared for a start with other values.
    wanted = rolling.state.wanted(container.processor_id)
    return replace(container, is_known=is_known, package=release, prepared=wanted, unprepared="")
