"""The start of an incarnation up to its first input, in the one order that is safe.

Source: safety I3: init all listed ids and the own id, read the coordinator stream to its head and
go on only if the own epoch still stands; report fenced; then restore, checkpoints, locality, input.
(Kafka accepts a late init after a fence: only reading the head stops an overtaken permit.)
"""

import contextlib
import functools
import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from homeport.config.errors import ConfigError
from homeport.config.settings.serde_names import AVRO
from homeport.config.system_stream import SystemStream
from homeport.container.adjunct.recovery import shared_checkpoint
from homeport.container.adjunct.store_plan import PlannedStore
from homeport.container.container_job import ContainerJob
from homeport.container.host.clocks import read_clocks
from homeport.container.host.executors import OneThread
from homeport.container.incarnation.adjunct_start import adjunct_storage, streams_now
from homeport.container.incarnation.changelog_trims import StoreTrim, portions, read_trims
from homeport.container.incarnation.context import IncarnationContext
from homeport.container.incarnation.hanging_transactions import end_of_fenced
from homeport.container.incarnation.look_ahead import Looked, look
from homeport.container.kafka.checkpoints import Checkpoint, checkpoints_in
from homeport.container.kafka.log_reader import KafkaChangelogReader, LogReader
from homeport.container.kafka.transactional_producer import TransactionalProducer, fence
from homeport.container.progress.checkpoint import NOTHING, Change
from homeport.container.progress.input_position import (
    InputPosition,
    checkpoint_of,
    first_place,
    first_position,
    next_position,
)
from homeport.container.progress.restore import OffsetRange
from homeport.container.progress.transaction_plan import Changes, checkpoint_sends
from homeport.container.serde.evolution.readable import (
    StoreSerdes,
    claim_of,
    is_read_by_first,
    repartition_serdes,
    require_admitted,
    require_first,
    writers_of,
)
from homeport.container.serde.forms import forms_of, in_brief, kind_of, shown
from homeport.container.storage.adjunct.adjunct_storage import Starts
from homeport.container.storage.container_storage import ContainerStorage
from homeport.container.storage.directory_lock import Holder, LockWait
from homeport.container.storage.kept_stores import KeptStores
from homeport.container.storage.task_store import Position
from homeport.job_coordinator.clocks import wall_ms
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.grouper.one_time_configuration import require_leaders_use
from homeport.job_coordinator.http.messages import Started
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.kafka.in_sync import OutputPlace
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.metadata.state_facts import StateFactManager, StoreForms
from homeport.job_coordinator.metadata.state_reset import StateResetManager
from homeport.job_coordinator.metadata.task_assignment import (
    LocalityManager,
    TaskAssignmentManager,
    UsedHostManager,
)
from homeport.job_coordinator.metadata.topics import InputPartitionManager, InputTopicManager
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.incarnation import incarnations_to_json
from homeport.job_coordinator.model.job_model import SystemStreamPartition
from homeport.job_coordinator.model.outcomes import Restored

_LOG = logging.getLogger(__name__)

_KAFKA_PATIENCE_S = 5.0
_FENCERS = 8

Offsets = dict[TaskName, dict[SystemStreamPartition, int]]
_T = TypeVar("_T")

_LEASE_PARTS = 5
"""The AM's side counts a fifth of the lease more than the launcher's."""


def longest_stop_s(job: ContainerJob) -> float:
    """Return how long an incarnation can live after the order to stop, or without its lease.

    The second comes before the first where a child hangs after its launcher's order to stop.
    """
    lease_ms = job.cluster.lease_ms
    return (job.task.shutdown_ms + lease_ms + lease_ms // _LEASE_PARTS) / 1000


def require_forms(
    stream: CoordinatorStream, job: ContainerJob, storage: ContainerStorage, host: str = ""
) -> None:
    """Require that the job's serdes read what is in its stores; give ``storage`` their forms.

    Before it writes values of a new schema, a container records the schema: each later one reads
    it. ``stream``: read to its head. ``storage``: not restored yet. ``host``: this one.
    ConfigError: keys or values are not read by these serdes.
    """
    facts = StateFactManager(stream)
    stores = {
        str(store.changelog): StoreSerdes(store.name, store.key_serde, store.msg_serde, host)
        for store in job.stores
        if store.changelog is not None
    }
    stores |= repartition_serdes(job.config, host) if stores else {}
    known = facts.schemas()
    new = {c: claim_of(stores[c].reading()) for c in stores if c not in known}
    begun = facts.claim(new) if new else {}
    try:
        for changelog in new:
            require_first(stores[changelog], begun.get(changelog))
        messages = _facts_of(facts, stores, storage)
    except ConfigError:
        stream.write(facts.unclaimed(new))
        raise
    stream.write([*messages, *facts.unclaimed(new)])


def _facts_of(
    facts: StateFactManager, stores: Mapping[str, StoreSerdes], storage: ContainerStorage
) -> list[CoordinatorStreamMessage]:
    """Return the records that a container will write, as of ``require_forms``."""
    known = facts.schemas()
    messages: list[CoordinatorStreamMessage] = []
    first: dict[str, StoreForms] = {}
    brief: dict[str, tuple[str, str]] = {}
    writers: dict[str, tuple[str, ...]] = {}
    for changelog, store in stores.items():
        recorded = known.get(changelog)
        reading = require_admitted(store, recorded)
        forms = forms_of((store.key, store.msg)) if recorded is None else recorded.forms
        first[changelog] = forms
        if not store.repartition:
            brief[store.name] = in_brief(forms)
        of_values = (forms.msg,) if recorded is None else writers_of(recorded)
        if shown(reading.msg) not in map(shown, of_values):
            is_new = kind_of(reading.msg) == AVRO or not is_read_by_first(forms, reading)
            messages += facts.writer_messages(changelog, reading.msg, forms, is_new=is_new)
            of_values = *of_values, reading.msg
        if recorded is None or recorded.reading != reading:
            messages.append(facts.reading_message(changelog, reading))
        if len(of_values) > 1 and kind_of(reading.msg) == AVRO:
            writers[store.name] = of_values
    storage.forms, storage.writers = brief, writers
    return [*facts.form_messages(first), *messages]


@dataclass(frozen=True, slots=True)
class Positions:
    """Where each task goes on reading.

    Shapes: ``starts`` {task: {partition: next offset}}; ``new``: the tasks that have a partition
    without a checkpoint, or one whose next records are lost, or a checkpoint of Samza's or of an
    input that is no longer theirs: where that returns, it begins; ``ends``
    {partition: its end}; ``lost`` {partition: its position, behind the gap}; ``resets``: where no
    checkpoint counts, by task; ``changes``: what an operator has set in the checkpoints, by task;
    ``left``: positions of inputs that a task no longer reads, which are forgotten;
    ``trims``: what a Samza job has left in the changelogs; ``with_v2``: the tasks that have a
    checkpoint of version 2.
    """

    starts: Offsets
    new: frozenset[TaskName] = frozenset()
    ends: Mapping[SystemStreamPartition, int] = field(default_factory=dict)
    lost: Mapping[SystemStreamPartition, InputPosition] = field(default_factory=dict)
    resets: tuple[tuple[TaskName, Change], ...] = ()
    changes: tuple[tuple[TaskName, Change], ...] = ()
    trims: tuple[StoreTrim, ...] = ()
    with_v2: frozenset[TaskName] = frozenset()
    left: tuple[tuple[TaskName, Change], ...] = ()

    def processed(self) -> Offsets:
        """Return {task: {partition: last processed}}, which is ``NOTHING`` before offset 0."""
        return {
            name: {ssp: NOTHING if offset == 0 else offset - 1 for ssp, offset in own.items()}
            for name, own in self.starts.items()
        }


def report_started(
    context: IncarnationContext, restored: Mapping[str, Mapping[str, Restored]]
) -> None:
    """Report the start to the coordinator, history and log; errors as of the coordinator."""
    started = Started(context.permit.incarnation, restored, context.phases.total())
    context.coordinator.report_started(started)
    context.history("started", seconds=dict(started.seconds))
    _LOG.info("started: %s", ", ".join(f"{name} {s:.2f} s" for name, s in started.seconds.items()))


def storage_of(context: IncarnationContext, kept: KeptStores | None = None) -> ContainerStorage:
    """Return the stores of the container; only ``kept`` are open. Predecessors are waited for."""
    job, permit, environment = context.job, context.permit, context.environment
    kinds = {store.changelog is None for store in job.stores}
    needed = (bool(job.adjuncts) or False in kinds, bool(job.adjuncts) or True in kinds)
    logged, scratch = environment.made_roots(job.job, job.config, needed)
    # A standby keeps the directories of its active container.
    owner = job.active_processor or permit.incarnation.processor_id
    return ContainerStorage(
        logged_root=logged,
        scratch_root=scratch,
        stores=job.stores,
        tasks=job.tasks,
        memory_bytes=job.rocksdb_bytes(is_mixed=context.is_mixed),
        grouper=job.job.ssp_grouper_factory,
        wait=LockWait(longest_stop_s(job), context.pause),
        holder=Holder.of(job.job.directory_name, permit.incarnation, environment.host),
        adjuncts=adjunct_storage(
            job, owner, (logged, scratch), read_clocks, OneThread("adjunct stores")
        ),
        kept=kept or KeptStores(),
    )


@contextlib.contextmanager
def confirmed_stream(
    context: IncarnationContext, fence_listed: Callable[[IncarnationContext], _T]
) -> Iterator[tuple[CoordinatorStreamStore, _T]]:
    """Open the coordinator stream, fence, read it to its head, and confirm the permit.

    The block gets the stream and what ``fence_listed`` returns.

    StopRequestedError: the order to stop came. OvertakenError: a newer epoch stands. ConfigError:
    the leader of a standalone job has a file by which records go elsewhere.
    """
    phase, job = context.phases.phase, context.job
    with context.clients.stream(job.config, lambda: open_coordinator_stream(job)) as stream:
        with phase("kafka"):
            await_kafka(context)
        with phase("fence"):
            fenced = fence_listed(context)
        with phase("coordinator-stream"):
            stream.bootstrap()
        with phase("confirm"):
            StateResetManager(stream).require_finished()
            context.coordinator.confirm(stream, context.permit)
        if context.permit.model:  # of a standalone processor, which has a file of its own
            read = {ssp.system_stream for t in job.tasks for ssp in t.system_stream_partitions}
            require_leaders_use(ConfigManager(stream).read(), job.config, read)
        # Before a directory is made there.
        UsedHostManager(stream).write(context.environment.host, wall_ms())
        yield stream, fenced


def await_kafka(context: IncarnationContext) -> None:
    """Wait for an answer of every system that the job uses in any case.

    Without it a container would fail again and again. StopRequestedError: the order to stop came.
    """
    job = context.job
    for name in sorted(job.used_systems):
        topics = context.clients.topics(job.systems[name], _KAFKA_PATIENCE_S)
        topics.await_reachable(_LOG, context.stop.check)


def fence_and_begin(context: IncarnationContext) -> TransactionalProducer:
    """Fence all incarnations on the permit's list and initialise the own transactional id.

    A thread ends the transactions that those have left hanging.
    """
    job, permit = context.job, context.permit
    producer = TransactionalProducer(
        job.transaction_system,
        job.transactional_id(permit.incarnation),
        native=job.task.input_native,
    )
    _fence_listed(context, producer.initialise)
    _record_fenced(context)
    if fenced := {job.transactional_id(incarnation) for incarnation in permit.fence}:
        look = functools.partial(end_of_fenced, job, fenced, context.stop.pause)
        threading.Thread(target=look, name="hanging", daemon=True).start()
    return producer


def fence_and_only_read(context: IncarnationContext) -> None:
    """Fence all incarnations on the permit's list, for a container without transactions."""
    _fence_listed(context)
    _record_fenced(context)


def fence_without_tasks(context: IncarnationContext) -> None:
    """Fence all incarnations on the permit's list, for a mixed container without active tasks."""
    _fence_listed(context)
    context.history("fenced", fenced=incarnations_to_json(context.permit.fence), tasks=[])


def _fence_listed(context: IncarnationContext, *own: Callable[[], object]) -> None:
    """Fence the permit's list; ``own``: initialises the own id. Return once all is done."""
    job = context.job
    context.stop.check()
    ids = [job.transactional_id(incarnation) for incarnation in context.permit.fence]
    inits = [functools.partial(fence, job.transaction_system, listed) for listed in ids]
    # Each takes the broker some time, and they do not depend on each other.
    with ThreadPoolExecutor(_FENCERS) as pool:
        list(pool.map(lambda init: init(), [*inits, *own]))
    context.stop.check()


def _record_fenced(context: IncarnationContext) -> None:
    fenced = incarnations_to_json(context.permit.fence)
    context.history("fenced", fenced=fenced, tasks=[task.task_name for task in context.job.tasks])


def open_coordinator_stream(job: ContainerJob) -> CoordinatorStreamStore:
    """Return the coordinator stream, connected and not read yet; it writes plainly (safety K2)."""
    stream = CoordinatorStreamStore.of(job.config, source="homeport", has_packages=False)
    stream.connect()
    return stream


def read_positions(
    job: ContainerJob,
    readers: Mapping[str, LogReader],
    stream: CoordinatorStream,
    storage: ContainerStorage | None = None,
    looked: Looked | None = None,
) -> Positions:
    """Return where each task goes on, and which tasks have a partition without a checkpoint.

    The start of a partition is recorded as processed up to there: else ``upcoming`` would skip at
    the next start what arrives while the job is down.

    ``stream``: read to its head; it has the first partition counts of inputs, and the topics whose
    positions no longer count. ``storage``: restored; adjunct stores have the positions of their
    streams. ``looked``: None: this looks.

    StoreError: a checkpoint lies beyond the end of its partition, or a changelog cannot be taken
    back. LostInputError: records were deleted before they were read, and the job is to fail then.
    """
    first_counts = InputPartitionManager(stream).read()
    looked = looked or look(job, readers, {})
    whole = _checkpoints(job, looked, stream)
    checkpoints = {name: item.offsets for name, item in whole.items()}
    ranges = looked.ranges
    starts: Offsets = {task.task_name: {} for task in job.tasks}
    lost: dict[SystemStreamPartition, InputPosition] = {}
    resets: list[tuple[TaskName, Change]] = []
    new: set[TaskName] = set()
    found = _Found(job, readers, ranges, first_counts, checkpoints)
    own: Starts = {}
    adjuncts = None if storage is None else storage.adjuncts
    if adjuncts is not None:
        own = adjuncts.recover(streams_now(job, adjuncts, readers), found.shared)
    for task in job.tasks:
        name, known = task.task_name, checkpoints.get(task.task_name, {})
        for ssp in task.system_stream_partitions:
            of_store = own.get(name, {}).get(ssp)
            position = of_store or found.position(ssp, known)
            starts[name][ssp] = position.offset
            if of_store is None and found.resets(ssp, known):
                checkpoint = known[ssp] + 1 if ssp in known else None
                resets.append((name, Change(ssp, checkpoint, position.offset)))
            # Of several tasks that have lost records, the one that is farthest behind.
            if position.lost > lost.get(ssp, InputPosition(0)).lost:
                lost[ssp] = position
            if position.lost or ssp not in known:
                new.add(name)
    ends = {ssp: ranges[ssp].head for own in starts.values() for ssp in own}
    resets = [(name, reset) for name, reset in resets if reset.first != reset.next_offset]
    changes = tuple((name, change) for name, item in whole.items() for change in item.changes)
    left = inputs_gone(checkpoints, starts)
    new.update(name for name, item in whole.items() if item.is_samzas)
    new.update(name for name, _ in left)
    logged = () if storage is None else storage.logged
    trims = read_trims(logged, KafkaChangelogReader(readers), whole, wall_ms())
    with_v2 = frozenset(name for name, item in whole.items() if item.has_v2)
    more = tuple(resets), changes, trims, with_v2, left
    return Positions(starts, frozenset(new), ends, lost, *more)


def inputs_gone(checkpoints: Offsets, starts: Offsets) -> tuple[tuple[TaskName, Change], ...]:
    """Return the positions of partitions that a task's checkpoint has, and it no longer reads."""
    return tuple(
        (name, Change(ssp, known[ssp] + 1, known[ssp] + 1))
        for name, known in sorted(checkpoints.items())
        for ssp in sorted(known.keys() - starts[name].keys())
    )


def _checkpoints(
    job: ContainerJob, looked: Looked, stream: CoordinatorStream
) -> dict[TaskName, Checkpoint]:
    return checkpoints_in(
        looked.checkpoints,
        job.task.checkpoint_topic,
        job.job.ssp_grouper_factory,
        {task.task_name for task in job.tasks},
        InputTopicManager(stream).floors(),
    )


def places_of(job: ContainerJob, written: Collection[str]) -> set[OutputPlace]:
    """Return where transactions probably write; ``written``: the topics of an earlier run."""
    logged = {store.changelog for store in job.stores if store.changelog is not None}
    places: set[OutputPlace] = {
        (stream.stream, task.changelog_partition) for stream in logged for task in job.tasks
    }
    if job.task.checkpoint_enabled:
        places.add((job.task.checkpoint_topic, None))
    own = {topic for topic, _ in places}
    return places | {(topic, None) for topic in written if topic not in own}


def commit_starts(
    job: ContainerJob,
    producer: TransactionalProducer,
    positions: Positions,
    pause: Callable[[float], None],
    follow: Callable[[Changes, Mapping[Position, int]], None],
) -> None:
    """Commit where every task begins: from then on no record is passed over.

    One transaction of checkpoints and trims, several where there is very much to trim, and none
    where exactly the partitions of each task have a checkpoint of ours. Only between the restore
    and the first input: state and position belong together (safety I3, I6, I9, S8). ``follow``:
    brings what was trimmed into its store.

    Errors as of the producer's ``commit``; what is not committed begins again at the next start.
    """
    if not (job.task.checkpoint_enabled and positions.new):
        return
    processed = positions.processed()
    began, topic = {name: processed[name] for name in positions.new}, job.task.checkpoint_topic
    changes = [item.changes for item in positions.trims]
    places = [(item.changelog.stream, item.partition) for item in changes]
    producer.await_brokers(lambda: {(topic, None), *places}, pause, are_all=False)
    parts = portions(changes)
    for part in parts:
        producer.begin()
        for item in part:
            producer.send_changes(item)
        if part is parts[-1]:
            grouper = job.job.ssp_grouper_factory
            producer.send(checkpoint_sends(began, grouper, topic, positions.with_v2))
        producer.deliver()
        committed = producer.commit()
        for item in part:
            follow(item, committed)
    _LOG.info("committed where %d tasks begin", len(began))


@dataclass(frozen=True)
class _Found:
    """The input at a start. ``checkpoints`` {task: {partition: last processed}}."""

    job: ContainerJob
    readers: Mapping[str, LogReader]
    ranges: Mapping[SystemStreamPartition, OffsetRange]
    first_counts: Mapping[SystemStream, int]
    checkpoints: Offsets

    def position(
        self, ssp: SystemStreamPartition, known: Mapping[SystemStreamPartition, int]
    ) -> InputPosition:
        """Return where a task with this checkpoint goes on; errors of ``read_positions``."""
        policy = self.job.systems[ssp.system].input_policy(ssp.stream)
        processed = checkpoint_of(ssp, known, policy)
        if processed is not None:
            return next_position(ssp, processed + 1, self.ranges[ssp], policy.lost)
        place = first_place(ssp, policy, self.first_counts, is_known=ssp in known)
        at_time = None
        if isinstance(place, int):
            at_time = self.readers[ssp.system].offset_at(ssp.stream, ssp.partition, place)
        return first_position(place, self.ranges[ssp], at_time)

    def resets(
        self, ssp: SystemStreamPartition, known: Mapping[SystemStreamPartition, int]
    ) -> bool:
        policy = self.job.systems[ssp.system].input_policy(ssp.stream)
        counts = checkpoint_of(ssp, known, policy) is not None
        return not counts and (ssp in known or not self.job.task.checkpoint_enabled)

    def shared(self, store: PlannedStore, ssp: SystemStreamPartition) -> InputPosition:
        """Return where the readers of the store go on; errors as of ``position``."""
        known = shared_checkpoint(ssp, [self.checkpoints.get(task, {}) for task in store.readers])
        return self.position(ssp, {} if known is None else {ssp: known})


def write_locality(context: IncarnationContext, stream: CoordinatorStream) -> None:
    """Record in stream and history that the container's tasks are on this host, at every start.

    A standby outside the assignment is left out: a temporary one has no place of its own.
    """
    job, own, host = context.job, context.permit.incarnation, context.environment.host
    tasks = [task.task_name for task in job.tasks]
    with context.phases.phase("locality"):
        assigned = set(TaskAssignmentManager(stream).read().values())
        if job.is_standby and assigned and own.processor_id not in assigned:
            return
        LocalityManager(stream).write(own.processor_id, tasks, host, own.epoch)
        context.history("locality-written", tasks=tasks, locality=host)
