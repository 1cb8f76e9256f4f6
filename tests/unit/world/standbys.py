"""Hot standby in the world: standby containers, and a judge of where they and their actives run.

A run-job refuses hot standby until the product has standby containers: the jobs here go on below
that check. A standby's child is the product's stream container as far as every incarnation goes
(fence, epoch, locality, started, lease, SIGTERM); then it follows nothing, and holds its place.
"""

from __future__ import annotations

from collections.abc import Mapping

from homeport.config.settings import validation
from homeport.container.container_job import ContainerJob
from homeport.container.incarnation import coordinators, start_up
from homeport.container.incarnation.stream_container import StreamContainer
from homeport.job_coordinator.model.job_model import TaskMode
from tests.unit.world.clock import Process
from tests.unit.world.containers import RUNNING
from tests.unit.world.judges import require
from tests.unit.world.scene import Scene
from tests.unit.world.world import World

HOT_STANDBY = {"job.hotstandby.enabled": "true"}


def install(world: World) -> None:
    """Jobs of this world may have standby containers. To be called before there is an attempt."""
    active = StreamContainer.run
    refuse = ContainerJob.refuse_what_cannot_be

    def run(container: StreamContainer) -> bool:
        return _hold_place(container) if _is_standby(container._job) else active(container)

    def refuse_others(job: ContainerJob) -> None:
        if not _is_standby(job):
            refuse(job)

    world.patch.setattr(validation, "_check_standby", lambda *_: None)
    world.patch.setattr(ContainerJob, "refuse_what_cannot_be", refuse_others)
    world.patch.setattr(StreamContainer, "run", run)


def _is_standby(job: ContainerJob) -> bool:
    return {task.task_mode for task in job.tasks} == {TaskMode.STANDBY}


def _hold_place(container: StreamContainer) -> bool:
    """Mirrors ``StreamContainer.run`` without stores, input and output."""
    context, permit = container._context, container._context.permit
    start_up.await_kafka(context)
    producer = start_up.fence_and_begin(context)
    with start_up.open_coordinator_stream(context.job) as stream:
        stream.bootstrap()
        coordinators.require_newest(stream, permit)
        coordinators.report_fenced(stream, permit)
        container._write_locality(stream)
    start_up.report_started(context, {})
    context.launcher.want_spare(context.job.spare)
    context.stop.wait()
    producer.close()
    return False


def watch_places(scene: Scene, replica_of: Mapping[str, str]) -> None:
    """From now on each start beside another of its group, on one host, is noted.

    One that stands still may wake up later, and ends then, as its lease is over.

    Shapes: ``replica_of`` {standby: its active}.
    """

    def group_of(child: Process) -> str:
        own = child.name.partition("@")[0]
        return replica_of.get(own, own)

    def started(child: Process) -> None:
        for other in scene.hosts.children:
            if other is child or other.host != child.host or other.state is not RUNNING:
                continue
            if group_of(other) == group_of(child):
                scene.world.note("together", child.name, other=other.name)

    scene.hosts.on_start = started


def judge_places(scene: Scene) -> None:
    """No container was ever on a host with another of its group (Invariant-1, Invariant-2)."""
    for fact in scene.world.facts_of("together"):
        verdict = f"{fact.fields['other']} still ran when {fact.who} was started there"
        require(scene.world, holds=False, verdict=verdict)
