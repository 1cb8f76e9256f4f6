"""Makes the adjunct stores of one container, their feed and their managers, from the job."""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from homeport.config.declarations import all_keys as keys
from homeport.config.errors import in_one_line
from homeport.config.settings.adjunct_section import AdjunctStore, extractor_key
from homeport.config.system_stream import SystemStream
from homeport.container.adjunct.extractor import ByExtractor, Extraction, KeyAndValue, Serdes
from homeport.container.adjunct.frames import EntryColumns
from homeport.container.adjunct.manager import BaseStorageManager, BuiltInManager, TableManager
from homeport.container.adjunct.store_plan import PlannedStore, plan_stores
from homeport.container.adjunct.user_manager import (
    ManagedStorage,
    ManagedStore,
    ManagerFailedError,
    StartOffsets,
    UserManager,
)
from homeport.container.classes import load_extractor_factory, load_manager_factory
from homeport.container.container_job import ContainerJob
from homeport.container.host.executors import Executor
from homeport.container.kafka.head_watch import HeadWatch
from homeport.container.kafka.log_reader import LogReader, offset_ranges, topic_ids
from homeport.container.processing.adjunct_feed import AdjunctFeed, RefusedRecords
from homeport.container.processing.records import BadRecords, InputMessages
from homeport.container.processing.task_factory import stream_serdes
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.follow import Followed
from homeport.container.serde.forms import forms_of, in_brief
from homeport.container.storage.adjunct.adjunct_frames import AdjunctFrames
from homeport.container.storage.adjunct.adjunct_storage import NO_STORES, AdjunctStorage, StreamsNow
from homeport.container.storage.adjunct.stream_ends import StreamEnds
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition, TaskModel

_LOG = logging.getLogger(__name__)
_DELETED = "the stream of an adjunct store was deleted while it was followed"


def adjunct_storage(
    job: ContainerJob,
    owner: ProcessorId,
    roots: tuple[Path, Path],
    clocks: Callable[[], ClockReading],
    beside: Executor,
) -> AdjunctStorage | None:
    """Return the adjunct stores of the container ``owner``, not open; None: the job has none.

    ``owner``: the container itself; for a standby its active. ``roots``: the folder of stores that
    a later start may find, and the folder of others.
    """
    if not job.adjuncts:
        return None
    plan = plan_stores(job.adjuncts.values(), job.tasks, owner)
    return AdjunctStorage(plan, job.adjunct_configs, *roots, clocks, beside)


def streams_now(
    job: ContainerJob, storage: AdjunctStorage, readers: Mapping[str, LogReader]
) -> StreamsNow:
    """Ask Kafka for the streams that fill the stores.

    UnavailableError: Kafka does not answer, or denies access to a topic. PartitionError: a stream
    does not exist. ConfigError: the schema of a store cannot be had.
    """
    asked, ids = storage.clocks(), topic_ids(readers, job.adjunct_streams)
    ranges = offset_ranges(readers, storage.inputs.partitions)
    kept_ms: dict[SystemStream, int] = {}
    for system, reader in readers.items():
        # A version is whole or not, whatever is compacted.
        stores = [s for s in job.adjuncts.values() if s.is_kept and not s.is_bounded]
        streams = {s.stream.stream: s.stream for s in stores if s.stream.system == system}
        found = reader.deletions_kept(sorted(streams)) if streams else {}
        kept_ms |= {streams[name]: time_ms for name, time_ms in found.items()}
    forms = {
        name: in_brief(forms_of((store.key_serde, store.msg_serde)))
        for name, store in job.adjunct_configs.items()
    }
    return StreamsNow(asked, ids, ranges, kept_ms, forms)


def stream_ends(
    job: ContainerJob,
    followed: Mapping[SystemStreamPartition, Followed],
    pause: Callable[[float], None],
    clocks: Callable[[], ClockReading],
) -> StreamEnds:
    """Return the poller of the ends of the partitions, in a thread for each system."""
    watches = {}
    for name in sorted({ssp.system for ssp in followed}):
        places = [(ssp.stream, ssp.partition) for ssp in sorted(followed) if ssp.system == name]
        watches[name] = HeadWatch(job.systems[name], places, pause, clocks, _DELETED)
    return StreamEnds(followed, watches)


def head_looks(
    job: ContainerJob, storage: AdjunctStorage | None, pause: Callable[[float], None]
) -> StreamEnds | None:
    """Return the poller for the ends of an active container's compacted streams, if any."""
    if storage is None:
        return None
    followed = {p: item for p, item in storage.followed.items() if item.kept_ms is not None}
    return stream_ends(job, followed, pause, storage.clocks) if followed else None


def adjunct_feed(
    job: ContainerJob,
    storage: AdjunctStorage | None,
    bad: BadRecords,
    processed: Mapping[TaskName, Mapping[SystemStreamPartition, int]],
    columns: Mapping[str, EntryColumns] | None = None,
    ends: StreamEnds | None = None,
) -> AdjunctFeed | None:
    """Return the feed of the open stores; None: the job has none.

    ``bad``: takes records that cannot be stored. ``processed``: the offset before the first that
    each task gets. ``columns``: {store that the pipeline takes: how its entries become rows}.

    FrameError: a store cannot be a frame of the pipeline. ConfigError: a manager, an extractor or a
    serde cannot be had. ManagerFailedError: the job's factory of managers failed.
    """
    if storage is None:
        return None
    refused, managers = RefusedRecords(), dict[TaskName, TableManager]()
    make = _manager_maker(job, job.adjuncts, refused, StartOffsets(processed))
    for task in job.tasks:
        is_writer = storage.plan.writes_container_stores(task.task_name)
        of_container = storage.of_container() if is_writer else NO_STORES
        of_task = storage.of_task(task.task_name)
        managers[task.task_name] = make(task, of_container, of_task, is_writer)
    frames = None
    if columns:
        limit = keys.ADSTORE_FRAMES_MAX_BYTES.read(job.config)
        frames = AdjunctFrames(storage, columns, limit)
    return AdjunctFeed(storage, managers, refused, bad, frames, ends)


def replaying_manager(
    job: ContainerJob, planned: PlannedStore, storage: BaseStorageManager
) -> TableManager:
    """Return the manager of one store, to read its stream again; errors as of ``adjunct_feed``.

    ``storage``: has every store of its kind, of the task or of the container.
    """
    stores = {planned.store.name: planned.store}
    make = _manager_maker(job, stores, RefusedRecords(), StartOffsets({}))
    task = next(task for task in job.tasks if task.task_name == planned.writer)
    if planned.is_of_container:
        return make(task, storage, NO_STORES, True)  # noqa: FBT003 - its type has no names
    return make(task, NO_STORES, storage, True)  # noqa: FBT003 - as above


def warn_of_compacted(job: ContainerJob, readers: Mapping[str, LogReader]) -> None:
    """Warn in the log of streams with versioned data sets that the broker compacts."""
    for system, reader in readers.items():
        stores = {
            store.stream.stream: store
            for store in job.adjuncts.values()
            if store.is_bounded and store.stream.system == system
        }
        for name in reader.deletions_kept(sorted(stores)) if stores else ():
            _LOG.warning(
                "adjunct store %s: its stream %s is compacted, and a newer version takes entries "
                "out of an older one: set cleanup.policy=delete for the topic",
                stores[name].name,
                stores[name].stream,
            )


_MakeManager = Callable[[TaskModel, BaseStorageManager, BaseStorageManager, bool], TableManager]
"""Makes a task's manager: (task, stores of the container, its own, whether it fills the former)."""


def _manager_maker(
    job: ContainerJob,
    stores: Mapping[str, AdjunctStore],
    refused: RefusedRecords,
    offsets: StartOffsets,
) -> _MakeManager:
    """Return the maker of managers for ``stores``, by the job's own factory if they name one.

    ``offsets``: what an own manager may ask of the start.
    """
    name = next((store.manager for store in stores.values() if store.manager), None)
    if name is not None:
        return _own_manager_maker(job, name, refused, offsets)
    makers = {n: _maker(job, store, refused) for n, store in stores.items()}
    return lambda _task, of_container, of_task, _is_writer: BuiltInManager(
        job.adjuncts, [of_container, of_task], {n: make() for n, make in makers.items()}
    )


def _own_manager_maker(
    job: ContainerJob, name: str, refused: RefusedRecords, offsets: StartOffsets
) -> _MakeManager:
    factory = load_manager_factory(name)
    messages_of = {n: _messages(job, s, refused).of for n, s in job.adjuncts.items()}

    def make(
        task: TaskModel,
        of_container: BaseStorageManager,
        of_task: BaseStorageManager,
        is_writer: bool,  # noqa: FBT001 - as the factory gets it
    ) -> TableManager:
        managed = {n: ManagedStore(store, _kept(job, store)) for n, store in job.adjuncts.items()}
        try:
            manager = factory().get_adjunct_data_store_manager(
                task.task_name,
                job.config,
                [(p.system, p.stream, p.partition) for p in task.system_stream_partitions],
                ManagedStorage(of_container, managed),
                ManagedStorage(of_task, managed),
                is_writer,
                offsets,
            )
        except Exception as error:  # the job's own code may raise anything
            raise ManagerFailedError(f"{name}: {in_one_line(error)}") from error
        storages = [of_container, of_task]
        return UserManager(job.adjuncts, storages, managed, manager, name, messages_of)

    return make


def _messages(job: ContainerJob, store: AdjunctStore, refused: RefusedRecords) -> InputMessages:
    serdes = stream_serdes(job, store.stream.system, store.stream.stream)
    return InputMessages(lambda _system, _stream: serdes, refused.met)


def _kept(job: ContainerJob, store: AdjunctStore) -> Serdes:
    return Serdes(*job.serdes(job.adjunct_configs[store.name]))


def _maker(
    job: ContainerJob, store: AdjunctStore, refused: RefusedRecords
) -> Callable[[], Extraction]:
    kept = _kept(job, store)
    if store.extractor is None:
        serdes = stream_serdes(job, store.stream.system, store.stream.stream)
        own = KeyAndValue(store.name, Serdes(*serdes), kept, refused.met)
        return lambda: own
    factory = load_extractor_factory(extractor_key(job.config, store.name), store.extractor)
    messages = _messages(job, store, refused)

    def make() -> Extraction:
        extractor = factory().get_key_value_extractor(job.config)
        return ByExtractor(store.name, extractor, kept, messages.of)

    return make
