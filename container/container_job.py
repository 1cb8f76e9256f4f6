"""ContainerJob: the part of a job's configuration that one stream container needs, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.config.settings.adjunct_section import AdjunctsConfig, AdjunctStore
from homeport.config.settings.memory_rule import STANDBY_ROCKSDB_PART
from homeport.config.settings.records_section import RecordsConfig
from homeport.config.settings.sections import (
    ClusterManagerConfig,
    JobConfig,
    StandbyConfig,
    SystemConfig,
    TaskConfig,
    has_spark_beside,
)
from homeport.config.settings.serde_names import SchemaSerde
from homeport.config.settings.stores_section import StorageConfig, StoreConfig
from homeport.config.settings.used_systems import used_systems
from homeport.config.system_stream import SystemStream
from homeport.container.classes import load_serde
from homeport.container.host.lease_memory import SpareKind
from homeport.container.serde.evolution.marked_avro import marked_avro
from homeport.container.serde.serdes import Serde
from homeport.job_coordinator.grouper.standby_models import temporary_id
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation, transactional_id
from homeport.job_coordinator.model.job_model import JobModel, TaskMode, TaskModel

_MIB = 1024 * 1024


@dataclass(frozen=True)
class ContainerJob:
    """Typed views of one JobModel, for one of its containers.

    ``systems``: every system that the container reads or writes, by name. ``transaction_systems``:
    those on the same brokers as the checkpoints, which one transaction can reach.
    ``active_processor``: the container whose state a standby keeps. The ``stores`` of a
    standby are those with a changelog, and its ``systems`` those of changelogs and ``adjuncts``.
    ``is_temporary``: whether the standby is there for one warm move, whose container takes its
    place. ``adjuncts``: the stores that inputs fill, by name, apart from ``stores``; a standby
    keeps those that a later start may find.
    """

    config: Config
    job: JobConfig
    task: TaskConfig
    cluster: ClusterManagerConfig
    stores: tuple[StoreConfig, ...]
    tasks: tuple[TaskModel, ...]
    systems: Mapping[str, SystemConfig]
    transaction_systems: frozenset[str]
    active_processor: ProcessorId | None = None
    is_temporary: bool = False
    adjuncts: Mapping[str, AdjunctStore] = field(default_factory=dict)

    @staticmethod
    def of(model: JobModel, processor_id: ProcessorId) -> ContainerJob:
        """Return the view for one processor; ConfigError: no container can run it."""
        container = model.containers.get(processor_id)
        if container is None:
            rule = "the JobModel has no such container"
            remedy = f"it has {', '.join(sorted(model.containers)) or 'none'}"
            raise ConfigError("processor_id", processor_id, rule, remedy)
        config = model.config
        job, task = JobConfig.of(config), TaskConfig.of(config)
        is_standby = container.role is TaskMode.STANDBY
        adjuncts = AdjunctsConfig.of(config).stores
        own = {n: a for n, a in adjuncts.items() if a.is_kept or not is_standby}
        stores = tuple(
            store
            for name, store in StorageConfig.of(config).stores.items()
            if name not in adjuncts and (store.changelog or not is_standby)
        )
        tasks = tuple(model for _, model in sorted(container.tasks.items()))
        names = {job.coordinator_system, task.checkpoint_system}
        if not is_standby:
            names |= _declared(config)
            names |= {ssp.system for t in tasks for ssp in t.system_stream_partitions}
        names |= {store.changelog.system for store in stores if store.changelog}
        names |= {adjunct.stream.system for adjunct in own.values()}
        systems = {name: SystemConfig.of(config, name) for name in sorted(names)}
        cluster = systems[task.checkpoint_system].cluster
        reached = frozenset(n for n, s in systems.items() if s.cluster == cluster)
        active = container.active_processor
        view = ContainerJob(
            config,
            job,
            task,
            ClusterManagerConfig.of(config),
            stores,
            tasks,
            systems,
            reached,
            active,
            active is not None and processor_id == temporary_id(active),
            own,
        )
        view.refuse_what_cannot_be()
        return view

    def refuse_what_cannot_be(self) -> None:
        """Raise ConfigError with the first fault for which the job cannot run."""
        for task in self.tasks:
            if (task.task_mode is TaskMode.STANDBY) is not self.is_standby:
                raise ConfigError(
                    "job.hotstandby.enabled",
                    "true",
                    f"task {task.task_name!r} shares its container with tasks of the other kind",
                    "give a container active tasks, or the standbys of one container's, and no "
                    "others",
                )
        for store in self.stores:
            if store.changelog and store.changelog.system not in self.transaction_systems:
                raise ConfigError(
                    f"stores.{store.name}.changelog",
                    str(store.changelog),
                    f"it must be on the brokers of {self.task.checkpoint_system}, where the "
                    "checkpoints are: one transaction holds both",
                    f"use the system {self.task.checkpoint_system}",
                )

    def rocksdb_bytes(self, *, is_mixed: bool) -> int:
        """Return the bytes that RocksDB may use.

        ``is_mixed``: whether active tasks and standbys share a process, if the job has standbys: of
        these bytes the standbys get a quarter.
        """
        whole = self.task.memory.rocksdb_mb * _MIB
        if not is_mixed or not StandbyConfig.of(self.config).enabled:
            return whole
        of_standbys = whole // STANDBY_ROCKSDB_PART
        return of_standbys if self.is_standby else whole - of_standbys

    @property
    def is_standby(self) -> bool:
        """Return whether the container only keeps a replica of another container's state."""
        return self.active_processor is not None

    @property
    def adjunct_configs(self) -> dict[str, StoreConfig]:
        """Return {name: its configuration} of each of ``adjuncts``."""
        stores = StorageConfig.of(self.config).stores
        return {name: stores[name] for name in self.adjuncts}

    @property
    def adjunct_streams(self) -> frozenset[SystemStream]:
        """The inputs whose records no task sees."""
        return frozenset(store.stream for store in self.adjuncts.values())

    @property
    def spare(self) -> SpareKind:
        """The kind of spare that shortens the next start on this host."""
        if not self.task.has_pipeline:
            return SpareKind.PLAIN
        if self.is_standby:
            is_warm = has_spark_beside(self.config, self.task, is_temporary=self.is_temporary)
        else:
            is_warm = keys.JOB_CONTAINER_PREWARM.read(self.config)
        return SpareKind.WARM if is_warm else SpareKind.SPARK

    @property
    def records(self) -> RecordsConfig:
        """Return how a StreamTask gets single records, and what happens to bad ones."""
        return RecordsConfig.of(self.config)

    def serdes(self, store: StoreConfig, writers: Sequence[str] = ()) -> tuple[Serde, Serde]:
        """Return key serde and message serde of ``store``; ConfigError where one cannot be had.

        ``writers``: the forms of its values, the first container's first, where there are several.
        """
        key, msg = (
            load_serde(f"stores.{store.name}.{part}.serde", name)
            for part, name in (("key", store.key_serde), ("msg", store.msg_serde))
        )
        if writers and isinstance(store.msg_serde, SchemaSerde):
            msg = marked_avro(store.msg_serde, msg, writers)
        return key, msg

    def transactional_id(self, incarnation: Incarnation) -> str:
        """Return the id under which ``incarnation`` writes."""
        return transactional_id(self.job.name, self.job.id, incarnation)

    @property
    def transaction_system(self) -> SystemConfig:
        """The system whose brokers hold changelogs, checkpoints, and outputs of exactly-once."""
        return self.systems[self.task.checkpoint_system]

    @property
    def used_systems(self) -> frozenset[str]:
        """The ``systems`` without which it cannot begin; it may send to others, or never."""
        if self.is_standby:
            return frozenset(self.systems)
        return frozenset(used_systems(self.config))

    @property
    def output_systems(self) -> frozenset[str]:
        """The systems that outputs may go to: all, if outputs are no part of the transaction."""
        return self.transaction_systems if self.task.exactly_once else frozenset(self.systems)


def _declared(config: Config) -> set[str]:
    clients = keys.SYSTEM_CONSUMER, keys.SYSTEM_PRODUCER
    found = (key.parts_of(name) for name in config for key in clients)
    return {parts[0] for parts in found if parts and parts[1] == "bootstrap.servers"}
