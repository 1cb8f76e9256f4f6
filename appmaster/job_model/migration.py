"""The steps of ``homeport migrate``, and which of them are left.

Each step may be repeated. While the coordinator stream has the mark of a migration, neither run-job
nor a processor starts the job: a migration that was interrupted is run again.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

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
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.epochs import (
    EpochManager,
    FenceReport,
    epoch_floor_message,
    fence_report_message,
)
from homeport.job_coordinator.metadata.recorded_model import recorded_model
from homeport.job_coordinator.metadata.state_reset import (
    StateResetManager,
    permitted_incarnations,
    raised_epochs,
)
from homeport.job_coordinator.metadata.task_assignment import LocalityManager
from homeport.job_coordinator.model.ids import Host, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.standalone.handover import (
    first_plan,
    is_handed_over,
    last_plan,
    require_known,
    require_none_registered,
    to_fence,
)
from homeport.job_coordinator.standalone.plan import Plan
from homeport.job_coordinator.zookeeper.handover_nodes import HandoverNodes, Kept

_SOURCE = "homeport"
_OPTION = "--to"


@dataclass(frozen=True)
class MigrationStep:
    """One step: its text for people, and the function that does it."""

    text: str
    do: Callable[[], None]


class Migration:
    """The migration of one job, which does not run.

    ``stream``: read to its head; no AM attempt can write it. ``fence`` may be repeated.
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

    def steps(self, to: str) -> list[MigrationStep]:
        """Return the steps that are left, in order; none if the job is there, or never ran.

        ConfigError: processors run, the other migration or a state reset is not finished, or
        ZooKeeper lacks the last version.
        WireError: a record or a node is damaged.
        """
        kept = self._nodes.read()
        require_none_registered(self._job.name, kept.processors)
        StateResetManager(self._stream).require_finished()
        factory = keys.JOB_COORDINATOR_FACTORY
        recorded = factory.read(ConfigManager(self._stream).read()) or YARN
        mark, other = (TO_ZOOKEEPER, TO_YARN) if to == ZOOKEEPER else (TO_YARN, TO_ZOOKEEPER)
        if recorded == LOCAL:
            rule = "the job has run by homeport run-local, whose folder is on one machine"
            raise ConfigError(_OPTION, to, rule, "give the job another job.id")
        if recorded == other:
            back = ZOOKEEPER if to == YARN else YARN
            rule = f"a migration of the job to {back} has begun, and is not finished"
            raise ConfigError(_OPTION, to, rule, f"finish it by homeport migrate --to={back}")
        if recorded == to or (to == ZOOKEEPER and not self._epochs.highest()):
            return []
        within = self._to_zookeeper(kept) if to == ZOOKEEPER else self._to_yarn(kept)
        # Written again even if it is there: a migration that was outranked fails here.
        first = self._named(mark, "neither run-job nor a processor")
        return [first, *within, self._named(to, _OPENED[to])]

    # --- to ZooKeeper

    def _to_zookeeper(self, kept: Kept) -> list[MigrationStep]:
        records = self._epochs.read_processor_epochs().values()
        steps = []
        if any(r.permitted and not r.is_raised for r in records):
            steps.append(MigrationStep("raise the epochs of all containers", self._raise))
        steps.append(MigrationStep("fence what ran on YARN", self._fence_containers))
        if kept.version < self._epochs.highest() or not is_handed_over(kept.plan):
            hosts = self._hosts()
            text = f"write the locations of {len(hosts)} tasks into ZooKeeper"
            steps.append(MigrationStep(text, lambda: self._nodes.write_hosts(hosts)))
            text = "write a version, above every epoch, into ZooKeeper"
            steps.append(MigrationStep(text, lambda: self._publish_first(kept)))
        return steps

    def _raise(self) -> None:
        self._stream.write(list(raised_epochs(self._stream)))
        self._stream.catch_up()

    def _fence_containers(self) -> None:
        self._fence(permitted_incarnations(self._stream))
        self._stream.write(
            fence_report_message(p, FenceReport(r.epoch, r.fence))
            for p, r in sorted(self._epochs.read_processor_epochs().items())
        )
        self._stream.catch_up()

    def _hosts(self) -> dict[TaskName, Host]:
        manager = LocalityManager(self._stream)
        own, tasks = manager.read_processors(), manager.read_tasks()
        model = recorded_model(self._stream, Config({}))
        found = {t: own[p] for p, c in model.containers.items() if p in own for t in c.tasks}
        return {**found, **{task: host for task, host in tasks.items() if task in found}}

    def _publish_first(self, kept: Kept) -> None:
        version = max(self._epochs.highest(), kept.version + 1)
        model = recorded_model(self._stream, Config({}))
        self._publish(kept, first_plan(version, model))

    # --- to YARN

    def _to_yarn(self, kept: Kept) -> list[MigrationStep]:
        before, steps = require_known(kept.plan, self._epochs.highest()), []
        plan = before if is_handed_over(before) else last_plan(before, kept.fenced)
        if plan is not before:
            text = f"write version {plan.version}, in which no processor may begin, into ZooKeeper"
            steps.append(MigrationStep(text, lambda: self._publish(kept, plan)))
        text = f"write {len(kept.hosts)} hosts, and {plan.version} as what every epoch is above"
        return [
            *steps,
            MigrationStep("fence what ran standalone", lambda: self._fence(to_fence(plan))),
            MigrationStep(
                f"{text}, into the stream", lambda: self._write_records(plan.version, kept.hosts)
            ),
        ]

    def _write_records(self, version: int, hosts: Mapping[TaskName, Host]) -> None:
        """Write the hosts, and the floor of epochs: no later epoch is the number of a version."""
        self._stream.write(
            [
                epoch_floor_message(version),
                *(
                    wire.set_task_host_assignment(task, host, version)
                    for task, host in sorted(hosts.items())
                ),
            ]
        )
        self._stream.catch_up()

    # --- both

    def _publish(self, kept: Kept, plan: Plan) -> None:
        """Make the plan the newest if ``kept`` still is: another migration may have ended."""
        if not self._nodes.publish(kept, plan):
            raise UnavailableError(_CHANGED)

    def _named(self, name: str, starter: str) -> MigrationStep:
        key = keys.JOB_COORDINATOR_FACTORY.name

        def do() -> None:
            ConfigManager(self._stream).set(key, name, _SOURCE)
            self._stream.catch_up()

        return MigrationStep(
            f"write {key}={name} into the coordinator stream: {starter} starts the job", do
        )


_OPENED = {ZOOKEEPER: "homeport run-processor alone", YARN: "run-job alone"}
_CHANGED = (
    "a processor of the job was started while it was migrated, or another migration ended: stop "
    "the processor, and run homeport migrate once more"
)
