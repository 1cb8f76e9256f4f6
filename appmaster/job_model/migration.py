"""What ``homeport migrate`` does, step by step, and which steps are left.

Each step may be done twice. While the mark of a migration stands in the coordinator stream neither
run-job nor a processor starts the job: a migration that was cut off is only to be run again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.standalone_keys import (
    LOCAL,
    TO_YARN,
    TO_ZOOKEEPER,
    YARN,
    ZOOKEEPER,
)
from homeport.config.errors import ConfigError, UnavailableError
from homeport.config.settings.sections import JobConfig
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.epochs import (
    EpochManager,
    FenceReport,
    ProcessorEpoch,
    fence_report_message,
    processor_epoch_message,
)
from homeport.job_coordinator.metadata.lifecycle import StopManager
from homeport.job_coordinator.metadata.locality import LocalityManager
from homeport.job_coordinator.metadata.recorded_model import recorded_model
from homeport.job_coordinator.metadata.state_reset import (
    StateResetManager,
    permitted_incarnations,
    raised_epochs,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.standalone.handover import (
    first_plan,
    is_handed_over,
    last_plan,
    to_fence,
)
from homeport.job_coordinator.zookeeper.handover_nodes import HandoverNodes, Kept

_SOURCE = "homeport"
_OPTION = "--to"
_HANDED_OVER = "handed-over"
"""The cause of the stop of what ran standalone."""


@dataclass(frozen=True)
class Step:
    """What is done, in words, and by what."""

    text: str
    do: Callable[[], None]


class Migration:
    """The steps that are left for one job, which does not run.

    Args:
        config: of the job.
        stream: read to its head.
        nodes: of the job in ZooKeeper.
        fence: fences these incarnations in Kafka; it may be done twice.
    """

    def __init__(
        self,
        config: Config,
        stream: CoordinatorStream,
        nodes: HandoverNodes,
        fence: Callable[[Iterable[Incarnation]], None],
    ) -> None:
        self._job = JobConfig.of(config)
        self._stream = stream
        self._epochs = EpochManager(stream)
        self._nodes = nodes
        self._fence = fence

    def steps(self, to: str) -> list[Step]:
        """Those that are left, in order; none where the job is there already, or never ran.

        Raises:
            ConfigError: processors run, or the other migration is not finished, or the state is
                not at hand.
            WireError: a record or a node is damaged.
        """
        kept = self._nodes.read()
        if kept.processors:
            names = ", ".join(kept.processors)
            raise ConfigError(
                keys.JOB_NAME.name,
                self._job.name,
                f"the job runs: these processors are registered in ZooKeeper: {names}",
                "stop them",
            )
        StateResetManager(self._stream).require_finished()
        recorded = self._recorded() or YARN
        mark, other = (TO_ZOOKEEPER, TO_YARN) if to == ZOOKEEPER else (TO_YARN, TO_ZOOKEEPER)
        if recorded == LOCAL:
            rule = "the job has run by homeport run-local, whose folder is on one machine"
            raise ConfigError(_OPTION, to, rule, "give the job another job.id")
        if recorded == other:
            back = ZOOKEEPER if to == YARN else YARN
            rule = f"a migration of the job to {back} has begun, and is not finished"
            raise ConfigError(_OPTION, to, rule, f"finish it by homeport migrate --to={back}")
        if recorded == to or (to == ZOOKEEPER and not self._epochs.read_processor_epochs()):
            return []
        within = self._to_zookeeper(kept) if to == ZOOKEEPER else self._to_yarn(kept)
        first = [] if recorded == mark else [self._named(mark, "neither run-job nor a processor")]
        return [*first, *within, self._named(to, _OPENED[to])]

    # --- to ZooKeeper

    def _to_zookeeper(self, kept: Kept) -> list[Step]:
        records = self._epochs.read_processor_epochs()
        is_known = any(r.permitted and not r.is_raised for r in records.values())
        top = max(r.epoch + (is_known and r.permitted > 0) for r in records.values())
        steps = []
        if is_known:
            steps.append(Step("raise the epochs of all containers", self._raise))
        steps.append(Step("fence what ran on YARN", self._fence_containers))
        if kept.version < top or not is_handed_over(kept.plan):
            version = max(top, kept.version + 1)
            hosts = self._hosts()
            text = f"write the locations of {len(hosts)} tasks into ZooKeeper"
            steps.append(Step(text, lambda: self._nodes.write_hosts(hosts)))
            text = f"write version {version}, above every epoch, into ZooKeeper"
            steps.append(Step(text, lambda: self._publish_first(version)))
        return steps

    def _raise(self) -> None:
        self._stream.write(list(raised_epochs(self._stream)))
        self._stream.catch_up()

    def _fence_containers(self) -> None:
        self._fence(permitted_incarnations(self._stream))
        self._stream.write(
            fence_report_message(p, FenceReport(r.epoch, r.fence))
            for p, r in sorted(self._epochs.read_processor_epochs().items())
            if r.permitted
        )
        self._stream.catch_up()

    def _hosts(self) -> dict[TaskName, Host]:
        manager = LocalityManager(self._stream)
        own, tasks = manager.read_processors(), manager.read_tasks()
        model = recorded_model(self._stream, Config({}))
        found = {t: own[p] for p, c in model.containers.items() if p in own for t in c.tasks}
        return {**found, **{task: host for task, host in tasks.items() if task in found}}

    def _publish_first(self, version: int) -> None:
        model = recorded_model(self._stream, Config({}))
        if not self._nodes.publish(self._nodes.read(), first_plan(version, model), model):
            raise UnavailableError(_CHANGED)

    # --- to YARN

    def _to_yarn(self, kept: Kept) -> list[Step]:
        records = self._epochs.read_processor_epochs()
        top = max((record.epoch for record in records.values()), default=0)
        if kept.plan is None or kept.version < top:
            raise ConfigError(
                keys.JOB_COORDINATOR_ZK_ROOT.name,
                None,
                "ZooKeeper has no version of the job there, or an older one than has run",
                "name the same job.coordinator.zk.connect and job.coordinator.zk.root",
            )
        version = kept.version + (not is_handed_over(kept.plan))
        steps = []
        if not is_handed_over(kept.plan):
            text = f"write version {version}, in which no processor may begin, into ZooKeeper"
            steps.append(Step(text, self._publish_last))
        text = f"write {len(kept.hosts)} hosts, and epochs above {version}, into the stream"
        return [
            *steps,
            Step("fence what ran standalone", self._fence_processors),
            Step(text, self._write_records),
        ]

    def _publish_last(self) -> None:
        kept = self._nodes.read()
        if kept.plan is None or kept.model is None or kept.processors:
            raise UnavailableError(_CHANGED)
        if not self._nodes.publish(kept, last_plan(kept.plan, kept.fenced), kept.model):
            raise UnavailableError(_CHANGED)

    def _fence_processors(self) -> None:
        plan = self._nodes.read().plan
        self._fence(() if plan is None else to_fence(plan))

    def _write_records(self) -> None:
        kept = self._nodes.read()
        members = () if kept.plan is None else kept.plan.members
        fenced = () if kept.plan is None else to_fence(kept.plan)
        epoch = kept.version
        ran = {m.processor_id for m in members} | {i.processor_id for i in fenced}
        records = self._epochs.read_processor_epochs()
        self._stream.write(
            [
                *(
                    processor_epoch_message(p, replace(r, epoch=epoch))
                    for p, r in sorted(records.items())
                    if p not in ran and r.epoch < epoch
                ),
                *(m for p in sorted(ran) for m in _of_processor(p, epoch, fenced)),
                *(
                    wire.set_task_host_assignment(task, host, epoch)
                    for task, host in sorted(kept.hosts.items())
                ),
            ]
        )
        self._stream.catch_up()

    # --- both

    def _recorded(self) -> str | None:
        return keys.JOB_COORDINATOR_FACTORY.read(ConfigManager(self._stream).read())

    def _named(self, name: str, starter: str) -> Step:
        key = keys.JOB_COORDINATOR_FACTORY.name

        def do() -> None:
            ConfigManager(self._stream).set(key, name, _SOURCE)
            self._stream.catch_up()

        return Step(f"write {key}={name} into the coordinator stream: {starter} starts the job", do)


_OPENED = {ZOOKEEPER: "homeport run-processor alone", YARN: "run-job alone"}
_CHANGED = (
    "a processor of the job was started while it was migrated: stop it, and run homeport migrate "
    "once more"
)


def _of_processor(
    processor_id: ProcessorId, epoch: int, fenced: Iterable[Incarnation]
) -> tuple[wire.CoordinatorStreamMessage, ...]:
    """Its last incarnation is one that has stopped; the next epoch is above it."""
    own = Incarnation(processor_id, epoch)
    record = ProcessorEpoch(epoch, 0, unseen_ms=0)
    report = FenceReport(epoch, tuple(fenced))
    return (
        processor_epoch_message(processor_id, record),
        fence_report_message(processor_id, report),
        StopManager.message(own, _HANDED_OVER),
    )
