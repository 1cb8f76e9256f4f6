"""StreamProcessor: one processor of a job that no cluster manager starts.

It runs in a user's own program, or in ``homeport run-processor`` and ``homeport run-local``. The
processors of a job find each other under ZooKeeper and share its tasks; each runs its tasks in a
child process. One program may have several processors.
"""

import asyncio
import functools
import logging
import os
import secrets
import socket
import sys
import threading
import uuid
from contextlib import closing
from enum import Enum
from pathlib import Path

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.standalone_keys import LOCAL, ZOOKEEPER
from homeport.config.errors import HomeportError, in_one_line
from homeport.config.loading.declared_job import SUFFIX
from homeport.config.settings.log_section import LogConfig
from homeport.config.settings.reporters_section import snapshot_reporters
from homeport.config.settings.sections import JobConfig
from homeport.config.settings.standalone_section import (
    StandaloneConfig,
    refuse_standbys,
    require_coordinator,
)
from homeport.config.settings.validation import validate
from homeport.config.settings.zookeeper_access import secret_variables
from homeport.container.incarnation.environment import LOCATION_VARIABLE, Environment
from homeport.container.standalone.adoption import AdoptionWatch, adopt
from homeport.container.standalone.child_work import ChildWork
from homeport.container.standalone.coordination import Coordination, Times
from homeport.container.standalone.growth_watch import GrowthWatch
from homeport.container.standalone.local_tree import LocalTree, unusable
from homeport.container.standalone.location import location_of
from homeport.container.standalone.planner import JobPlanner, KeptStream
from homeport.container.standalone.processor_page import ProcessorPage, Served
from homeport.container.standalone.protocols import Tree
from homeport.job_coordinator.history.writer import HistoryWriter
from homeport.job_coordinator.http.pinned_tls import url_at
from homeport.job_coordinator.http.server import JobCoordinatorServer
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.own_folders import NotOwnError, make_own_folder
from homeport.job_coordinator.python_environment import BLAS_VARIABLE
from homeport.job_coordinator.standalone.nodes import escaped
from homeport.job_coordinator.standalone.protocol import EndCause
from homeport.job_coordinator.standalone.state import Life, ProcessorState, WorkPhase
from homeport.job_coordinator.zookeeper.tool_session import job_root
from homeport.job_coordinator.zookeeper.tree import ZooKeeperTree

_LOG = logging.getLogger(__name__)

_STATE_VARIABLE = "LOGGED_STORE_BASE_DIR"
_LOCAL_TIMES = Times(debounce=0, barrier=60_000, connection=60_000)


class ProcessorPhase(Enum):
    """The states of a processor. Source: Samza's states of a StreamProcessor."""

    NEW = "NEW"
    STARTED = "STARTED"
    IN_REBALANCE = "IN_REBALANCE"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    STOPPED = "STOPPED"


class ServerThread:
    """Serves a page between ``start`` and ``stop``, at the address that ``config`` names.

    No client gets a token, so that secrets stay masked and no request changes anything.
    """

    def __init__(self, page: ProcessorPage, config: Config) -> None:
        self._loop = asyncio.new_event_loop()
        self._host = keys.JOB_COORDINATOR_URL_HOST.read(config) or _own_address()
        port = keys.JOB_COORDINATOR_URL_PORT.read(config)
        self._server = JobCoordinatorServer(
            page, secrets.token_hex(), self._host, port, page, peers=page
        )
        self._thread = threading.Thread(target=self._loop.run_forever, name="http", daemon=True)

    def start(self) -> str:
        """Start the server; return its URL. CannotListenError: the address cannot be used."""
        self._thread.start()
        try:
            _, port = asyncio.run_coroutine_threadsafe(self._server.start(), self._loop).result()
        except BaseException:  # whatever it was, nothing stays behind
            self.stop()
            raise
        url = url_at((self._host, port), None)
        _LOG.debug("the processor answers at %s", url)  # commands print it
        return url

    def stop(self) -> None:
        """Stop serving, and end the thread."""
        asyncio.run_coroutine_threadsafe(self._server.stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _own_address() -> str:
    """Return the address of this machine's name, else one for programs of this machine alone."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        _LOG.warning(
            "the name of this machine has no address: the processor answers this machine alone; "
            "%s says where it is to answer",
            keys.JOB_COORDINATOR_URL_HOST.name,
        )
        return "127.0.0.1"


class StreamProcessor:
    """Runs a processor: ``start``, then ``join``; ``stop`` makes it commit and leave.

    ``processor_id``: unique in the job; None: ``processor.id``, else a generated one. ``work_dir``:
    the folder for logs and scratch files, and for state if neither LOGGED_STORE_BASE_DIR nor
    ``job.logged.store.base.dir`` is set; None: one below the working directory. ``is_local``: the
    job has this one processor, and needs no ZooKeeper. ``adopts``: a local processor goes on behind
    one whose folder is lost. ConfigError: the configuration breaks a rule; nothing was begun.
    """

    def __init__(
        self,
        config: Config,
        processor_id: str | None = None,
        work_dir: Path | None = None,
        *,
        is_local: bool = False,
        adopts: bool = False,
    ) -> None:
        self._adopts = adopts
        coordinator = LOCAL if is_local else ZOOKEEPER
        config = _with_defaults(config, coordinator)
        self.warnings = [*validate(config), *_without_effect(config)]
        self._config = config
        job = JobConfig.of(config)
        host = socket.gethostname()
        self.location = Host(location_of(config, os.environ, host))
        self.processor_id = _processor_id(config, processor_id, is_local=is_local)
        base = (work_dir or Path.cwd() / job.directory_name).absolute()
        # A folder that the user names has the user's mode; what is below it, ours.
        self._given = Path.cwd() if work_dir is None else base
        self.work_dir = base / f"processor-{escaped(self.processor_id)}"
        self._own_folders = [self.work_dir]
        self._tree: Tree
        if is_local:
            refuse_standbys(config)
            self._tree, times = LocalTree(base / "coordination"), _LOCAL_TIMES
        else:
            settings = StandaloneConfig.of(config)
            root = job_root(config, settings)
            self._tree, times = ZooKeeperTree(settings, root), Times.of(settings)
        self.log_variables = LogConfig.of(config).variables()
        environment = {**child_environment(config), **self.log_variables}
        if job.logged_store_base_dir is None:
            state = str(base / "state")
            if environment.setdefault(_STATE_VARIABLE, state) == state:
                self._own_folders.append(Path(state))
        surroundings = {**environment, LOCATION_VARIABLE: self.location}
        folder = Environment.of(surroundings, self.work_dir).history_folder(job)
        writer = HistoryWriter(folder, "processor", self.location, job.history_max_mb)
        self._history = functools.partial(writer.event, processor_id=self.processor_id)
        self._work = work = ChildWork(
            self.processor_id, self.location, config, self.work_dir, environment
        )
        served = Served(config, coordinator, self.processor_id, self.location)
        self._page = page = ProcessorPage(served, self._tree.model, lambda: work.report)
        self._server: ServerThread | None = None
        own = (self.processor_id, self.location, self._tree, work, times)
        self._coordination = Coordination(*own, self._note, page.decided, page.turned)
        self._lock = threading.Lock()
        self._state: ProcessorState | None = None
        self._thread: threading.Thread | None = None
        self._is_stopping = False
        self._error = ""

    def start(self) -> None:
        """Begin to connect, register and work, and return at once; a second call does nothing.

        CannotListenError: the port of ``cluster-manager.jobcoordinator.url.port`` is taken.
        ConfigError: its folder is in use, or cannot be used. StoreError: the file of a local job
        there is damaged.
        """
        if self._thread is not None:
            return
        try:
            for folder in self._own_folders:
                make_own_folder(folder, below=self._given)
        except (NotOwnError, OSError) as error:
            reason = str(error) if isinstance(error, NotOwnError) else error.strerror
            raise unusable(self.work_dir, reason) from None
        if isinstance(self._tree, LocalTree):
            self._tree.acquire()
            self._begin_tree(self._tree)
        self._server = ServerThread(self._page, self._config)
        try:
            self._tree.url = self._server.start()
        except HomeportError:
            self._tree.close()
            raise
        self._history("processor-begun", location=self.location)
        name = f"processor-{self.processor_id}"
        self._thread = threading.Thread(target=self._run, name=name)
        self._thread.start()

    def _begin_tree(self, tree: LocalTree) -> None:
        self._work.of_tree(tree.id)
        try:
            if self._adopts:
                with closing(KeptStream(self._config)) as kept:
                    is_adopted = adopt(tree, kept.read(), self._config)
                if not is_adopted:
                    _LOG.warning("--adopt has no effect: the folder has all that the job has run")
        except HomeportError:
            tree.close()
            raise

    def stop(self) -> None:
        """Order it to commit, close its stores and leave, and return at once."""
        self._is_stopping = True
        self._coordination.stop()

    def join(self, timeout_s: float | None = None) -> bool:
        """Return whether it has ended within the time; HomeportError: the cause of its failure."""
        if self._thread is None:
            return False
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            return False
        if self._error:
            raise HomeportError(self._error)
        return True

    @property
    def url(self) -> str:
        """Where it answers HTTP, between ``start`` and its end; empty before."""
        return self._tree.url

    @property
    def phase(self) -> ProcessorPhase:
        """Its present state."""
        with self._lock:
            state = self._state
        if self._thread is None:
            return ProcessorPhase.NEW
        if not self._thread.is_alive():
            return ProcessorPhase.STOPPED
        if self._is_stopping or (state is not None and state.life in {Life.LEAVING, Life.ENDED}):
            return ProcessorPhase.STOPPING
        if state is None or state.life is not Life.MEMBER or state.plan is None:
            return ProcessorPhase.STARTED
        entry, work = state.entry, state.work
        is_settled = entry is not None and (
            not (entry.tasks or entry.standbys)
            or (work.phase is WorkPhase.RUNNING and work.generation == entry.generation)
        )
        return ProcessorPhase.RUNNING if is_settled else ProcessorPhase.IN_REBALANCE

    def _run(self) -> None:
        planner = JobPlanner(self._config, self._tree.readings, self._coordination)
        growth = GrowthWatch(self._config, self._page.led, self._coordination.inputs_changed)
        self._page.topics_refused = lambda: tuple(
            line
            for stream, line in planner.new_topics.refused.items()
            if stream is None or stream in growth.new
        )
        watches: list[GrowthWatch | AdoptionWatch] = [growth]
        if isinstance(self._tree, LocalTree):  # ZooKeeper has all processors of its job
            kept = KeptStream(self._config)
            watches.append(AdoptionWatch(kept, self._tree.id, self._overtaken))
        for watch in watches:
            watch.start()
        try:
            end = self._coordination.run(planner)
        except Exception as error:  # noqa: BLE001 - the thread ends here, with the cause for join
            _LOG.exception("processor %s has failed", self.processor_id)
            self._error = in_one_line(error)
        else:
            if end.cause is not EndCause.STOPPED:
                self._error = self._error or end.text
        finally:
            for watch in watches:
                watch.close()
            if self._server is not None:
                self._server.stop()

    def _overtaken(self, line: str) -> None:
        self._error = line
        self.stop()

    def _note(self, state: ProcessorState) -> None:
        with self._lock:
            before, self._state = self._state, state
        plan = state.plan
        is_new = plan is not None and (before is None or before.version < plan.version)
        if plan is not None and is_new and plan.lost and state.is_leader:
            self._history(
                "tasks-taken-over", version=plan.version, lost=plan.lost, unbacked=plan.unbacked
            )


def _with_defaults(config: Config, coordinator: str) -> Config:
    """Return the configuration with defaults that put tasks where their state is.

    It also has the coordinator's name: ``run-job`` and other trees find that in the stream.
    """
    require_coordinator(config, coordinator)
    defaults = {
        keys.TASK_NAME_GROUPER_FACTORY.name: "group-by-container-ids",
        keys.JOB_HOST_AFFINITY_ENABLED.name: "true",
    }
    more = {name: text for name, text in defaults.items() if config.get_str(name) is None}
    return config.merged({**more, keys.JOB_COORDINATOR_FACTORY.name: coordinator})


def _without_effect(config: Config) -> list[str]:
    found = []
    if keys.JOB_COORDINATOR_TLS.read(config):
        found.append(f"{keys.JOB_COORDINATOR_TLS.name}=true has no effect: processors serve http")
    if snapshot_reporters(config):
        found.append(f"{keys.METRICS_REPORTERS.name} has no effect: it is of a job on YARN")
    return found


def _processor_id(config: Config, given: str | None, *, is_local: bool) -> ProcessorId:
    found = given or keys.PROCESSOR_ID.read(config)
    if found:
        return ProcessorId(found)
    return ProcessorId("0" if is_local else f"{socket.gethostname()}-{uuid.uuid4().hex[:8]}")


def child_environment(config: Config) -> dict[str, str]:
    """Return this process's environment, with the job's code and Python's path for imports.

    It is without the secrets of ZooKeeper, which no work asks. OpenBLAS has one thread, unless the
    variable is set here.
    """
    package = filter(None, [_package(config)])
    paths = dict.fromkeys((*map(str, package), *filter(None, sys.path), str(Path.cwd())))
    environment = {BLAS_VARIABLE: "1", **os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    hidden = secret_variables(config)
    return {name: value for name, value in environment.items() if name not in hidden}


def _package(config: Config) -> Path | None:
    """Return the folder of the job's code, or of the named file of it; None: neither is named."""
    named = keys.YARN_PACKAGE_PATH.read(config)
    path = Path(named or "").absolute()
    if named and path.suffix == SUFFIX and path.is_file():
        return path.parent
    return path if named and path.is_dir() else None
