"""JobPlanner: the leader's computation of a JobModel, from Kafka, the tree and the last version.

The coordinator stream has Kafka's topics, and the changelog partition that a task keeps for ever:
containers and tools read them there. They are written before the plan is published: if the plan
loses against another leader's, that leader writes its own. The newest published version has the
last word on a task's changelog partition.
"""

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.standalone_keys import LOCAL, ZOOKEEPER
from homeport.config.errors import ConfigError, HomeportError, UnavailableError, in_one_line
from homeport.config.loading.regex_topics import with_matching
from homeport.config.settings.sections import JobConfig, StandbyConfig, SystemConfig
from homeport.config.settings.standalone_section import require_no_migration
from homeport.config.settings.validation import validate
from homeport.job_coordinator.config_change import require_model
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.grouper.one_time_configuration import require_same_keys
from homeport.job_coordinator.grouper.previous_assignment import PreviousAssignment
from homeport.job_coordinator.grouper.validation import uneven_inputs
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.kafka.repartition_topics import internal_topics, with_repartitions
from homeport.job_coordinator.kafka.topics import TopicAdmin, coordinator_topic_spec
from homeport.job_coordinator.metadata import topics
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.epochs import EpochManager
from homeport.job_coordinator.metadata.recorded_model import model_messages
from homeport.job_coordinator.metadata.state_reset import StateResetManager
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import ContainerModel, JobModel
from homeport.job_coordinator.planning import next_model
from homeport.job_coordinator.planning.input_watch import inputs_now
from homeport.job_coordinator.planning.new_topics import NewTopics
from homeport.job_coordinator.standalone.plan import (
    Member,
    Plan,
    Registration,
    active_tasks,
    present,
    standbys_of,
)
from homeport.job_coordinator.standalone.protocol import Computed
from homeport.job_coordinator.zookeeper.tree import Readings

_LOG = logging.getLogger(__name__)

_SOURCE = "homeport"
_PAUSE_S = 1.0
_KEPT_S = 60.0
"""How long the stream stays open after its use; its client asks Kafka 20 times a second."""
_NO_SUBMISSION = 0
_CODE = (keys.TASK_CLASS, keys.TASK_PIPELINE_CLASS, keys.TASK_PIPELINE_SQL)
_Order = tuple[int, Plan | None]
_PLACE = {
    LOCAL: "name the same --work-dir; where it is lost, and no process of the job runs, "
    "give --adopt",
    ZOOKEEPER: "name the same job.coordinator.zk.connect and job.coordinator.zk.root",
}


class Answers(Protocol):
    """The receiver of answers."""

    def planned(self, answer: Computed) -> None:
        """Take the result of a computation."""

    def broken(self, cause: str) -> None:
        """Take the one line with the reason why there is no result."""


class KeptStream:
    """The job's coordinator stream, open from one computation to the next; ``close`` in any case.

    It is for one thread. Its clients take 0.3 s to connect, while the tasks of a processor that is
    back stand still; a further read takes some hundredths of a second.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._store: CoordinatorStreamStore | None = None

    @property
    def is_open(self) -> bool:
        """Whether it has clients."""
        return self._store is not None

    def read(self) -> CoordinatorStreamStore:
        """Return the job's own stream, read to its present head.

        ConfigError: it is not one compacted partition, or is another job's. UnavailableError: Kafka
        does not answer.
        """
        if self._store is None:
            job = JobConfig.of(self._config)
            system = SystemConfig.of(self._config, job.coordinator_system)
            TopicAdmin(system).ensure(coordinator_topic_spec(job))
            self._store = CoordinatorStreamStore.of(self._config, source=_SOURCE)
            self._store.connect()  # beside what is read: a first record would wait half a second
        self._store.bootstrap()
        return self._store

    def close(self) -> None:
        """Close all clients; the next ``read`` makes others."""
        store, self._store = self._store, None
        if store is not None:
            store.close()


class JobPlanner:
    """Computes one JobModel at a time, for the newest order, and gives it to ``answers``.

    ``config``: the leader's, with which the job runs; new topics that match join it.
    ``readings``: returns the tree's of now.
    """

    def __init__(self, config: Config, readings: Callable[[], Readings], answers: Answers) -> None:
        self._config = config
        self._readings = readings
        self._answers = answers
        self._wanted = threading.Condition()
        self._order: _Order | None = None
        self._is_near = self._is_closed = False
        self._stream = KeptStream(config)
        self.new_topics = NewTopics(_LOG)
        self._thread = threading.Thread(target=self._run, name="planner", daemon=True)
        self._thread.start()

    def prepare(self) -> None:
        """Open the stream, if it is not open: an order is near."""
        with self._wanted:
            self._is_near = True
            self._wanted.notify()

    def compute(self, base: int, plan: Plan | None) -> None:
        """Compute the answer; an earlier order that is under way gets none."""
        with self._wanted:
            self._order = base, plan
            self._wanted.notify()

    def close(self) -> None:
        """Give no further answer; a computation under way ends by itself."""
        with self._wanted:
            self._is_closed = True
            self._wanted.notify()

    def _run(self) -> None:
        while True:
            with self._wanted:
                if self._order is None and not self._is_near and not self._is_closed:
                    self._wanted.wait(_KEPT_S if self._stream.is_open else None)
                order, is_near, self._is_near = self._order, self._is_near, False
                is_closed = self._is_closed
            if order is not None and not is_closed:
                self._answer(order)
            elif is_near and not is_closed:
                self._make_ready()
            else:
                self._stream.close()
            if is_closed:
                return

    def _make_ready(self) -> None:
        try:
            self._stream.read()
        except Exception as error:  # noqa: BLE001 - the computation meets it too, and says so
            _LOG.debug("the coordinator stream is not made ready: %r", error)
            self._stream.close()

    def _answer(self, order: _Order) -> None:
        try:
            answer = self._computed(*order)
        except UnavailableError as error:
            _LOG.warning("no JobModel can be computed now: %s", error)
            with self._wanted:
                if self._order is order:
                    self._wanted.wait(_PAUSE_S)
            return
        except Exception as error:  # noqa: BLE001 - the thread would end, and no version come
            is_bug = not isinstance(error, HomeportError)
            if is_bug:
                _LOG.exception("no JobModel can be computed")
            if self._is_taken(order):
                self._answers.broken(in_one_line(error) if is_bug else str(error))
            return
        if self._is_taken(order) and answer is not None:
            self._answers.planned(answer)

    def _is_taken(self, order: _Order) -> bool:
        with self._wanted:
            if self._order is not order or self._is_closed:
                return False
            self._order = None
            return True

    def _computed(self, base: int, plan: Plan | None) -> Computed | None:
        """Return the answer; None: the tree has a newer version, which is about to be seen."""
        readings = self._readings()
        if readings.version != base:
            return None
        try:
            stream = self._stream.read()
            is_behind = EpochManager(stream).highest() > base
            if is_behind and self._readings().version != base:
                return None  # another leader's version, in which one has begun meanwhile
            _require_own(stream, self._config, base)
            before = previous_assignment(stream, plan, readings)
            recorded = ConfigManager(stream).read()
            config = self._with_topics(stream, recorded, before)
            require_same_keys(recorded, config, before)
            found = _model(config, stream, before, present(readings.registrations))
            if (line := given_up(before, found)) is not None:
                _LOG.warning("%s", line)
            wanted = with_address(config, readings.registrations)
            if recorded != wanted:
                if (other := other_code(recorded, config)) is not None:
                    _LOG.warning("%s", other)
                ConfigManager(stream).replace(wanted, _SOURCE)
            stream.write(model_messages(found, stream, has_standby_changelogs=False))
        except Exception:
            self._stream.close()  # whatever it was, the next computation begins with other clients
            raise
        return Computed(base, readings.registrations, found, readings.fenced)

    def _with_topics(
        self, stream: CoordinatorStream, recorded: Config, before: PreviousAssignment
    ) -> Config:
        """Return the leader's configuration with topics that match and have come since its start.

        One that the job reads stays an input, also where the list of topics lacks it for now.
        """
        read = {ssp.system_stream for own in before.task_partitions.values() for ssp in own}
        ids = topics.InputTopicManager(stream).ids()

        def check(wanted: Config) -> None:
            validate(wanted)
            require_same_keys(recorded, wanted, before)
            require_model(wanted, before, ids)

        return self.new_topics.joined(with_matching(self._config, read), check)


def _model(
    config: Config,
    stream: CoordinatorStreamStore,
    before: PreviousAssignment,
    processors: tuple[Registration, ...],
) -> JobModel:
    """Return the JobModel; its topics exist, and its inputs are those that the job has read."""
    seen = inputs_now(config)
    uneven = uneven_inputs(config, seen.counts)
    if uneven is not None:
        _LOG.warning("%s", uneven)
    ids = [r.processor_id for r in processors]
    counts = with_repartitions(config, seen.counts)
    model = next_model.next_model(config, stream, before, counts, ids, has_outputs=False)
    if any(stream not in seen.topic_ids for stream in internal_topics(config)):
        seen = inputs_now(config)  # they are there now
    manager = topics.InputTopicManager(stream, _NO_SUBMISSION)
    known = manager.ids()
    for other in topics.recreated(known, seen.topic_ids):
        raise topics.refusal(other, known[other], seen.topic_ids[other])
    manager.write(seen.topic_ids)
    containers = {p: c for p, c in model.containers.items() if c.tasks}
    warn_of_missing_standbys(config, containers, {r.location for r in processors})
    return JobModel(config, containers)


def with_address(config: Config, registrations: Iterable[Registration]) -> Config:
    """Return what the stream records: of a job of run-local also where tools find its processor.

    They find the processors of other jobs in ZooKeeper.
    """
    is_local = keys.JOB_COORDINATOR_FACTORY.read(config) == LOCAL
    found = next((r.url for r in registrations if is_local), None)
    return config if found is None else config.merged({keys.YARN_AM_TRACKING_URL.name: found})


def given_up(before: PreviousAssignment, model: JobModel) -> str | None:
    """Return the warning that the job reads some of its inputs no more; None: it reads them all.

    A leader with an older file than the one before gives up what that one has added.
    """
    streams = {ssp.system_stream for own in before.task_partitions.values() for ssp in own}
    gone = sorted(map(str, streams - model.partition_counts().keys()))
    if not gone or not model.containers:
        return None
    return (
        f"the job gives up its input {', '.join(gone)}, which the file of this processor lacks: "
        "where it returns, tasks that stay begin it at its samza.offset.default; if the file is "
        "an older one, give each processor the newer one"
    )


def other_code(recorded: Config, config: Config) -> str | None:
    """Return the warning that a job of run-local, ``recorded``, goes on with other code.

    Another file that declares a job of the same name takes its state and positions. None: the code
    is of the same name, or ZooKeeper has the job, whose processors may get new code in turn.
    """
    if keys.JOB_COORDINATOR_FACTORY.read(config) != LOCAL:
        return None
    for found in (_code, _declaring_file):
        before, now = found(recorded), found(config)
        if before and now and before != now:
            job = JobConfig.of(config)
            return (
                f"the job {job.name!r} (job.id {job.id}) has last run with {before}, and goes on "
                f"with {now} from that one's state and input positions; "
                f"if this is another job, give it another {keys.JOB_NAME.name}, or another "
                f"{keys.JOB_ID.name} by --config={keys.JOB_ID.name}=ID"
            )
    return None


def _code(config: Config) -> str | None:
    given = ((key.name, key.read(config)) for key in _CODE)
    return next((f"{name} = {value!r}" for name, value in given if value), None)


def _declaring_file(config: Config) -> str | None:
    """Return the Python file that is the package, with the key; None where it is an archive.

    An archive of the same job may have another name with each version.
    """
    key = keys.YARN_PACKAGE_PATH
    path = key.read(config) or ""
    return f"{key.name} = {str(Path(path).resolve())!r}" if path.endswith(".py") else None


def warn_of_missing_standbys(
    config: Config, containers: Mapping[ProcessorId, ContainerModel], locations: Collection[Host]
) -> None:
    """Warn, in one line, if there are fewer locations than replicas of a task."""
    standby = StandbyConfig.of(config)
    if not standby.enabled:
        return
    wanted = standby.replication_count * sum(len(active_tasks(c)) for c in containers.values())
    missing = wanted - sum(len(standbys_of(c)) for c in containers.values())
    if missing:
        replicas = standby.replication_count
        _LOG.warning(
            "%d of %d standbys have no place: a task and its standbys (%d) need a location each, "
            "and the processors are at %d (%s); start some at others, or lower %s",
            *(missing, wanted, replicas, len(locations), ", ".join(sorted(locations))),
            keys.JOB_STANDBY_TASKS_REPLICATION_FACTOR.name,
        )


def previous_assignment(
    stream: CoordinatorStreamStore, plan: Plan | None, readings: Readings
) -> PreviousAssignment:
    """Return the last assignment, from the newest version and the stream.

    The stream also has the changelog partitions of former tasks; the newest version's override it.
    """
    tasks = {} if plan is None else plan.model.active_tasks()
    known = {name: frozenset(task.system_stream_partitions) for name, task in tasks.items()}
    numbers = {name: task.changelog_partition for name, task in tasks.items()}
    recorded = next_model.previous_assignment(stream)
    members = () if plan is None else plan.members
    return PreviousAssignment(
        task_processors={task: m.processor_id for m in members for task in m.tasks},
        standbys=standbys_before(members),
        task_partitions=known or recorded.task_partitions,
        changelog_partitions={**recorded.changelog_partitions, **numbers},
        task_hosts=readings.task_hosts,
        processor_hosts={r.processor_id: r.location for r in readings.registrations},
    )


def standbys_before(members: Sequence[Member]) -> dict[TaskName, dict[TaskName, ProcessorId]]:
    """Return {task: {name of its standby: processor}}."""
    found: dict[TaskName, dict[TaskName, ProcessorId]] = {}
    for member in members:
        for standby in member.standbys:
            found.setdefault(standby.task, {})[standby.name] = member.processor_id
    return found


def _require_own(stream: CoordinatorStream, config: Config, base: int) -> None:
    """Raise ConfigError if the job may have an incarnation that this tree does not know.

    Epochs of YARN, and generations of any tree, name transactional ids of the same job. A migration
    gives the tree a version as high as any epoch. If an incarnation has a higher number than
    ``base`` (the newest version, or 0), the tree is another one or an older copy, whose versions
    would recur (safety A6).
    """
    StateResetManager(stream).require_finished()
    running, key = ConfigManager(stream).read(), keys.JOB_COORDINATOR_FACTORY
    require_no_migration(running)
    recorded, own = key.read(running), key.read(config)
    highest, found, migrate = EpochManager(stream).highest(), "", ""
    if highest and recorded not in {LOCAL, ZOOKEEPER}:
        found = "on YARN"
        migrate = f"run homeport migrate --to={ZOOKEEPER}, or " if own == ZOOKEEPER else ""
    elif highest and recorded != own:
        found = f"under {key.name}={recorded}"
    elif highest > base:
        place = _PLACE[own or LOCAL]
        found = f"under another tree of {own}, or a later copy, which is not at hand: {place}"
    if found:
        rule = f"a job of this name and id has run {found}; what ran there could still write"
        remedy = f"{migrate}give the job another job.id"
        raise ConfigError(keys.JOB_ID.name, JobConfig.of(config).id, rule, remedy)
