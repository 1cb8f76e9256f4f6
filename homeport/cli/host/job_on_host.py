"""A job's state as its operator sees it from one host: what the job is, where its folders are."""

import contextlib
import os
import socket
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated

import typer

from homeport.cli.job.job_view import TIMEOUT_S, JobView, is_standalone, open_job
from homeport.cli.options import FromJob, note, note_origin
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.operators_file import with_own_places
from homeport.config.declarations.standalone_keys import LOCAL
from homeport.config.errors import ConfigError
from homeport.config.settings.adjunct_section import AdjunctsConfig
from homeport.config.settings.sections import JobConfig, SystemConfig, TaskConfig
from homeport.config.settings.stores_section import StorageConfig, StoreConfig
from homeport.config.system_stream import SystemStream
from homeport.container.adjunct.store_plan import PlannedStore, plan_stores
from homeport.container.container_job import ContainerJob
from homeport.container.kafka.log_reader import KafkaChangelogReader, LogReader, log_readers
from homeport.container.progress.host_directories import Owner, owners, task_directory
from homeport.container.standalone.location import location_of
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.job_coordinator.metadata.recorded_model import recorded_model
from homeport.job_coordinator.metadata.task_assignment import LocalityManager
from homeport.job_coordinator.model.ids import Host, ProcessorId, host_of
from homeport.job_coordinator.model.job_model import JobModel, TaskMode, TaskModel
from homeport.job_coordinator.ui.first_screen import listed
from homeport.job_coordinator.zookeeper.handover_nodes import HandoverNodes, handover_nodes

BASE_VARIABLE = "LOGGED_STORE_BASE_DIR"

Bases = Annotated[
    list[Path] | None,
    typer.Option(
        "--base",
        "--host-dir",
        help=f"Folder of the state directories, in place of ${BASE_VARIABLE} or "
        "job.logged.store.base.dir; may be given many times.",
    ),
]
HostName = Annotated[
    str | None,
    typer.Option(
        "--host",
        help="Name of this host, as YARN has it; default $NM_HOST, else the machine's. Of a "
        "standalone job its location; default as job.location-id says.",
    ),
]
OneStore = Annotated[str | None, typer.Option("--store", help="This store alone.")]
OneTask = Annotated[
    str | None, typer.Option("--task", help="This task alone: its name, or its directory's.")
]


@dataclass(frozen=True)
class RecordedJob:
    """The job as its coordinator stream has it, reached as the operator's file names it.

    ``stores``: those with a changelog, by name.
    """

    view: JobView
    config: Config
    job: JobConfig
    task: TaskConfig
    stores: Mapping[str, StoreConfig]
    model: JobModel

    @property
    def active_tasks(self) -> tuple[TaskModel, ...]:
        """Return every active task, by name."""
        containers = self.model.containers.values()
        tasks = [t for c in containers for t in c.tasks.values()]
        actives = [t for t in tasks if t.task_mode is TaskMode.ACTIVE]
        return tuple(sorted(actives, key=lambda task: task.task_name))

    @property
    def adjuncts(self) -> dict[PurePosixPath, PlannedStore]:
        """Return {directory below the job's folder: its store}, of all active containers."""
        kept = [s for s in AdjunctsConfig.of(self.config).stores.values() if s.is_kept]
        return {
            planned.directory: planned
            for name, container in sorted(self.model.containers.items())
            if container.role is TaskMode.ACTIVE
            for planned in plan_stores(kept, list(container.tasks.values()), name).stores
        }

    def view_of(self, processor: ProcessorId) -> ContainerJob:
        """Return what the container would see of the job."""
        return ContainerJob.of(self.model, processor)

    def readers(self) -> contextlib.AbstractContextManager[dict[str, LogReader]]:
        """Return {system of the job: its reader}, for a block."""
        return log_readers(self.systems(), time.sleep)

    @property
    def is_local(self) -> bool:
        """Return whether homeport run-local has run it, in a folder that no tool finds."""
        return keys.JOB_COORDINATOR_FACTORY.read(self.view.recorded_config()) == LOCAL

    def tree(
        self, *, read_only: bool = False
    ) -> contextlib.AbstractContextManager[HandoverNodes | None]:
        """Return ZooKeeper's nodes of a job that its processors run, for a block; else None.

        ``read_only``: whether they are only shown.
        """
        view = self.view
        if not is_standalone(view.given, view.stream):
            return contextlib.nullcontext(None)
        recorded = with_own_places(view.recorded_config(), view.given)
        config = recorded.merged(dict(view.given))
        return handover_nodes(config, TIMEOUT_S, read_only=read_only)

    def owners(self, host: Host, nodes: HandoverNodes | None) -> dict[PurePosixPath, Owner]:
        """Return {directory below the job's folder: its owner}, by the present localities.

        Standalone processors keep them in ``nodes``, or have one place. A job that was
        migrated has them where it runs.
        """
        self.view.stream.catch_up()
        localities = LocalityManager(self.view.stream)
        tasks, processors = localities.read_tasks(), localities.read_processors()
        model = recorded_model(self.view.stream, self.config)
        if nodes is not None or self.is_local:
            names = (task for container in model.containers.values() for task in container.tasks)
            tasks = dict.fromkeys(names, host) if nodes is None else dict(nodes.hosts())
            processors = {}
        adjuncts = [s for s in AdjunctsConfig.of(self.config).stores.values() if s.is_kept]
        return owners(
            [*self.stores, *(store.name for store in adjuncts if not store.is_broadcast)],
            model.containers.values(),
            tasks,
            processors,
            host,
            [store.name for store in adjuncts if store.is_broadcast],
        )

    def chosen_stores(self, only: str | None, *, has_adjuncts: bool = False) -> list[StoreConfig]:
        """Return the store of that name, else all that have a changelog.

        ``has_adjuncts``: whether an adjunct store may be named too, which is none of these.
        """
        if has_adjuncts and only in {item.store.name for item in self.adjuncts.values()}:
            return []
        if only is not None and only not in self.stores:
            known = ", ".join(self.stores) or "none"
            rule = f"the job's stores with a changelog are: {known}"
            raise ConfigError("--store", only, rule, "name one of these")
        return [store for name, store in self.stores.items() if only in {None, name}]

    def chosen_tasks(self, only: str | None) -> list[TaskModel]:
        """Return the task of that name or directory, else all active ones."""
        if only is None:
            return list(self.active_tasks)
        found = [t for t in self.active_tasks if is_named(t, only)]
        if not found:
            rule = f"the job has {names_of(self.active_tasks)}"
            raise ConfigError("--task", only, rule, "name one of these")
        return found

    def cleanup_policy(self, topic: SystemStream) -> str:
        """Read ``cleanup.policy`` of a topic of the job."""
        system = SystemConfig.of(self.config, topic.system)
        return TopicAdmin(system).topic_config(topic.stream)["cleanup.policy"]

    def systems(self) -> dict[str, SystemConfig]:
        """Return every system that holds a changelog, a checkpoint or an input of the job."""
        names = {store.changelog.system for store in self.stores.values() if store.changelog}
        names |= {s.system for t in self.active_tasks for s in t.system_stream_partitions}
        names.add(self.task.checkpoint_system)
        return {name: SystemConfig.of(self.config, name) for name in sorted(names)}


def is_named(task: TaskModel, text: str) -> bool:
    """Return whether ``text`` is the task's name, or its directory's."""
    return text in {task.task_name, task_directory("s", task.task_name).name}


def names_of(tasks: tuple[TaskModel, ...]) -> str:
    """Return some names, for people."""
    return listed([repr(str(task.task_name)) for task in tasks]) or "no tasks"


@contextlib.contextmanager
def recorded_job(given: Config) -> Iterator[RecordedJob]:
    """Open the job that ``given`` names; ConfigError where it has no stream, or no JobModel yet."""
    with open_job(given) as view:
        recorded = with_own_places(view.recorded_config(), given)
        # How Kafka is reached from here, the operator knows.
        reach = {key: value for key, value in given.items() if key.startswith("systems.")}
        config = recorded.merged(reach)
        model = recorded_model(view.stream, config)
        if not keys.JOB_NAME.is_set(recorded) or not model.containers:
            raise ConfigError("--config-path", view.topic, "the job has no JobModel yet", "run it")
        stores = StorageConfig.of(config).stores
        logged = {name: store for name, store in stores.items() if store.changelog is not None}
        yield RecordedJob(view, config, JobConfig.of(config), TaskConfig.of(config), logged, model)


OpenRecordedJob = Annotated[RecordedJob, FromJob(lambda job: recorded_job(job.config()))]


@contextlib.contextmanager
def changelog_reader(job: RecordedJob) -> Iterator[KafkaChangelogReader]:
    """Open a reader of the job's changelogs."""
    with job.readers() as readers:
        yield KafkaChangelogReader(readers)


@dataclass(frozen=True, slots=True)
class JobFolder:
    """The job's folder, which may not be there; ``base``: where other jobs have theirs, if any."""

    path: Path
    base: Path | None


def job_folders_of(
    job: JobConfig, bases: list[Path] | None, option: str = "--base"
) -> list[JobFolder]:
    """Return where the job's state may lie on this host: one folder for each of ``bases``.

    ``option``: what they were given by. ConfigError: neither options nor configuration name a
    place.
    """
    variable = os.environ.get(BASE_VARIABLE)
    if bases:
        return [_below(base, job, option) for base in bases]
    if variable:
        return [_below(Path(variable), job, BASE_VARIABLE)]
    if job.logged_store_base_dir is not None:
        # Samza's: it has no folder per job.
        return [JobFolder(Path(job.logged_store_base_dir), None)]
    rule = (
        f"neither ${BASE_VARIABLE} nor {keys.JOB_LOGGED_STORE_BASE_DIR.name} says where the state "
        "of this host is"
    )
    raise ConfigError("--base", None, rule, "name the folder above the job's own")


def bases_of(bases: list[Path] | None) -> list[Path]:
    """Return the folders above those of jobs on this host; ConfigError: none is named, or there."""
    variable = os.environ.get(BASE_VARIABLE)
    found = bases or ([Path(variable)] if variable else [])
    if not found:
        rule = f"${BASE_VARIABLE} does not say where the state of this host is"
        raise ConfigError("--base", None, rule, "name the folder above those of jobs")
    for base in found:
        if not base.is_dir():
            raise ConfigError("--base", str(base), "it is no folder", "name one that is there")
    return found


def _below(base: Path, job: JobConfig, given_by: str) -> JobFolder:
    """Return the folder below ``base``: if it is there, this user may read it; it is no link."""
    folder = base / job.directory_name
    try:
        if not base.is_dir():
            raise ConfigError(given_by, str(base), "it is no folder", "name one that is there")
        found = folder.lstat()
    except FileNotFoundError:
        if base.name == folder.name:
            rule = "it is the job's own folder"
            raise ConfigError(given_by, str(base), rule, "name the one above it") from None
        return JobFolder(folder, base)
    except PermissionError:
        raise ConfigError(
            given_by, str(base), "this user may not read it", "run this as the job's user"
        ) from None
    if stat.S_ISLNK(found.st_mode):
        rule = f"its {folder.name} is a link, which is not followed"
        raise ConfigError(given_by, str(base), rule, "name the folder that has the job's own")
    if not os.access(folder, os.R_OK | os.X_OK, effective_ids=True):
        rule = f"its {folder.name} belongs to user {found.st_uid}, which alone may read it"
        raise ConfigError(given_by, str(base), rule, f"run this as user {found.st_uid}")
    return JobFolder(folder, base)


def host_named(given: Config, name: str | None, *, standalone: bool) -> Host:
    """Return the name of this host in localities; ``name``: the operator's option."""
    if standalone:
        return Host(name or location_of(given, os.environ, socket.gethostname()))
    return host_of(name or os.environ.get("NM_HOST") or socket.gethostname())


def place_named(
    job: RecordedJob, host: str | None, bases: list[Path] | None
) -> tuple[Host, list[JobFolder]]:
    """Return host and folders that the operator's options name, and print them."""
    standalone = is_standalone(job.view.given, job.view.stream)
    name = host_named(job.view.given, host, standalone=standalone)
    folders = job_folders_of(job.job, bases)
    note_places(job.view.origin, name, folders)
    return name, folders


def note_places(origin: object, host: Host, folders: Sequence[JobFolder]) -> None:
    """Print where the answer comes from, and which of the folders are not there."""
    note_origin(f"{origin}, on {host}: {', '.join(str(folder.path) for folder in folders)}")
    for folder in folders:
        if not folder.path.exists():
            note(f"note: {folder.path} is not there: the job has nothing there")
