"""Plans with which a job changes between YARN and standalone processors.

PURE. Epochs of YARN and generations of processors are one number space. A handover plan has no
present processor. It keeps what a later plan needs: the last owners of the tasks, and what to
fence. It is newer than all that ran before, so that no incarnation of an earlier plan may begin.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from homeport.config.declarations import all_keys as keys
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import JobModel
from homeport.job_coordinator.standalone.plan import (
    NO_SESSION,
    Member,
    Plan,
    Registration,
    active_tasks,
    next_plan,
    standbys_of,
)


def require_none_registered(job: str, processors: Collection[ProcessorId]) -> None:
    """Require that no processor of the job is registered; else ConfigError."""
    if processors:
        rule = "the job runs: these processors are registered in ZooKeeper: "
        raise keys.JOB_NAME.error(job, rule + ", ".join(processors), "stop them")


def require_known(newest: Plan | None, highest: int) -> Plan:
    """Return the newest version; require that no incarnation has a higher number.

    ``highest``: the highest number that an incarnation has had.

    ConfigError: the tree is another one, or an older copy: its versions would come twice.
    """
    if newest is None or newest.version < highest:
        raise keys.JOB_COORDINATOR_ZK_ROOT.error(
            None,
            "ZooKeeper has no version of the job there, or an older one than has run",
            "name the same job.coordinator.zk.connect and job.coordinator.zk.root, and bring back "
            "no older copy of them",
        )
    return newest


def is_handed_over(plan: Plan | None) -> bool:
    """Return whether ``plan`` is a handover plan: no processor has published a version since."""
    return plan is not None and all(member.sequence == NO_SESSION for member in plan.members)


def first_plan(version: int, model: JobModel) -> Plan:
    """Return the first plan after YARN, whose incarnations are fenced.

    ``version``: above every epoch that was permitted. ``model``: that of the job on YARN.
    """
    members = tuple(
        Member(
            processor_id,
            NO_SESSION,
            version,
            active_tasks(model.containers[processor_id]),
            standbys=standbys_of(model.containers[processor_id]),
        )
        for processor_id in sorted(model.containers)
    )
    return Plan(version, members, model=model)


def last_plan(before: Plan, fenced: Mapping[ProcessorId, int]) -> Plan:
    """Return the version after ``before``; each member is a new incarnation that never runs.

    It lists all that may still write, even owners that have not reported: the transaction that
    writes such a plan does not check the reports. ``fenced``: as in ``next_plan``.
    """
    members = before.members
    plan = next_plan(
        before,
        [Registration(NO_SESSION, m.processor_id, Host("")) for m in members],
        {m.processor_id: m.tasks for m in members},
        fenced,
    )
    owners = {m.processor_id: {m.incarnation} for m in members if m.tasks}
    listed = {m.processor_id: {*m.fence, *owners.get(m.processor_id, ())} for m in plan.members}
    own = (replace(m, fence=tuple(sorted(listed[m.processor_id]))) for m in plan.members)
    return replace(plan, members=tuple(own), model=before.model)


def to_fence(plan: Plan) -> tuple[Incarnation, ...]:
    """Return all incarnations that may still write by such a plan, in order."""
    return tuple(sorted({*plan.former, *(i for member in plan.members for i in member.fence)}))
