"""``homeport clean --all-jobs``: the folders of all jobs on this host.

What is known of a job decides, its coordinator stream first. That there is none proves nothing, as
this Kafka may not be the job's: such a folder goes by the record of homeport delete-job, or, by the
operator's word (--orphans), where Kafka, YARN and ZooKeeper know nothing of the job.

A launcher starts it as a program (``job.hosts.clean.after.ms``); it writes the launcher's log.
"""

import fcntl
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path, PurePosixPath

from homeport.appmaster.yarn.resource_manager_rest import CONF_DIR_VARIABLE, ResourceManagerRest
from homeport.appmaster.yarn.submission import job_tag
from homeport.cli.host.deleted_state import DeletedState
from homeport.cli.host.job_on_host import JobFolder, RecordedJob, bases_of, host_named, recorded_job
from homeport.cli.host.sweep import Outcome, Sweep, Swept
from homeport.cli.job.job_view import TIMEOUT_S, is_standalone
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError, HomeportError, StoreError
from homeport.config.path_names import job_of_folder
from homeport.config.settings.sections import JobConfig, SystemConfig
from homeport.config.settings.standalone_section import require_no_migration
from homeport.container.host.niceness import give_way
from homeport.container.incarnation.environment import am_client
from homeport.container.progress.host_directories import DirectoryKind, HostRole, Verdict
from homeport.container.storage.cleaner import Judge, Judgement, Limit, judge_by, judge_orphans
from homeport.container.storage.host_survey import Extent, FoundDirectory, extent_of, folders_in
from homeport.job_coordinator import logs
from homeport.job_coordinator.kafka.deleted_jobs import DeletedJob, DeletedJobs
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.job_coordinator.model.ids import Host, host_of
from homeport.job_coordinator.own_folders import open_own_file
from homeport.job_coordinator.zookeeper.handover_nodes import HandoverNodes, handover_nodes

_ANY_JOB = "host"
"""The job of a file that names none, for what is one of the Kafka and not of a job."""
_OF_HOST = ("systems.", "job.default.system", "job.coordinator.system", "job.coordinator.zk.")
"""How the keys begin that a host's file has: those of a job are about that job alone."""
_LOCK = ".clean-of-user-"

log = logging.getLogger("clean")


@dataclass(frozen=True, slots=True)
class OfJob:
    """What became of one directory, with the folder of its job."""

    folder: str
    outcome: Outcome

    def shown(self) -> Swept:
        """Return it for a script."""
        return self.outcome.shown()

    def __str__(self) -> str:
        return f"{self.folder}/{self.outcome}"


@dataclass
class HostClean:
    """One run of the command. ``given``: the host's file: its Kafka, and perhaps ZooKeeper.

    ``host``: the operator's name of this host; None: it is found out. ``known``: hosts that YARN
    has by its own word; None: the ResourceManager has them.
    """

    given: Config
    host: str | None
    limit: Limit
    is_applied: bool
    has_orphans: bool
    known: frozenset[Host] | None = None
    sweeps: list[Sweep] = field(default_factory=list)

    def outcomes(self, base: Path) -> Iterator[OfJob]:
        """Yield each directory of each job below ``base``, and what became of it.

        UnavailableError: the Kafka, or the YARN, of this host does not answer.
        """
        # Before any folder: where one of them does not answer, no folder is judged.
        _ = self._topics, self._deleted, self._nodes
        for folder in folders_in(base):
            try:
                yield from self._of(folder)
            except HomeportError as error:
                yield self._kept(folder, str(error))

    def _of(self, folder: Path) -> Iterator[OfJob]:
        named = job_of_folder(folder.name)
        if named is None:
            yield self._kept(folder, "no job has a folder of that name")
            return
        config = self._job(*named)
        if JobConfig.of(config).coordinator_topic in self._topics:
            yield from self._of_living(config, folder)
        elif folder.name in self._deleted:
            yield from self._of_deleted(config, folder)
        elif self.has_orphans:
            self._require_unknown(config)
            yield from self._swept(folder, partial(judge_orphans, self._topic_id, self.limit))
        else:
            kafka = self._system.bootstrap_servers
            rule = f"no coordinator stream of it at {kafka}, nor a record that it was deleted"
            yield self._kept(folder, f"{rule}; --orphans judges it, if that is its Kafka")

    def _of_living(self, config: Config, folder: Path) -> Iterator[OfJob]:
        with recorded_job(config) as job, job.tree() as nodes:
            require_no_migration(job.view.recorded_config())
            host = self._known_host(job, nodes)
            owners = partial(job.owners, host, nodes)
            yield from self._swept(folder, partial(judge_by, owners, self.limit))

    def _of_deleted(self, config: Config, folder: Path) -> Iterator[OfJob]:
        place = [JobFolder(folder, folder.parent)]
        state = DeletedState(
            self._deleted[folder.name],
            place,
            is_applied=self.is_applied,
            limit_ms=self.limit.age_ms,
        )
        for outcome in state.outcomes():
            yield OfJob(folder.name, outcome)
        self.sweeps += state.sweeps
        if self.is_applied and state.is_whole:
            host = host_named(config, self.host, standalone=False)
            DeletedJobs(config, TIMEOUT_S).cleaned(folder.name, host)

    def _swept(self, folder: Path, judges: Callable[[], Judge]) -> Iterator[OfJob]:
        sweep = Sweep(folder.name, judges, self.limit, is_applied=self.is_applied)
        self.sweeps.append(sweep)
        for outcome in sweep.outcomes(folder):
            yield OfJob(folder.name, outcome)

    def _kept(self, folder: Path, reason: str) -> OfJob:
        try:
            extent = extent_of(folder)
        except StoreError:  # as that of another user
            extent = Extent(0, 0, self.limit.now_ms, ())
        found = FoundDirectory(folder, PurePosixPath(), extent, None)
        verdict = Verdict(is_removable=False, reason=reason)
        age_ms = self.limit.now_ms - found.extent.newest_ms
        judgement = Judgement(found, DirectoryKind.UNKNOWN, verdict)
        return OfJob(folder.name, Outcome(judgement, "kept", reason, age_ms))

    def _known_host(self, job: RecordedJob, nodes: HandoverNodes | None) -> Host:
        """Return this host's name; ConfigError: all would seem left behind under that name."""
        standalone = is_standalone(job.view.given, job.view.stream)
        host = host_named(job.view.given, self.host, standalone=standalone)
        owners = job.owners(host, nodes).values()
        is_node = not standalone and host in self._nodes
        if owners and not is_node and all(o.role is HostRole.ELSEWHERE for o in owners):
            rule = "no task of the job has its locality here, and YARN has no node of that name"
            raise ConfigError("--host", host, rule, "homeport clean of that job, with --host")
        return host

    def _require_unknown(self, config: Config) -> None:
        name = JobConfig.of(config).name
        running = self._yarn.tagged_applications(job_tag(config)) if self._yarn else ()
        if running:
            rule = f"YARN runs {running[0].application_id} of the job"
            raise keys.JOB_NAME.error(name, rule, "name the job's Kafka in the host's file")
        if keys.JOB_COORDINATOR_ZK_CONNECT.is_set(config):
            with handover_nodes(config, TIMEOUT_S) as nodes:
                if nodes.exists():
                    rule = f"ZooKeeper has the tree {nodes.root} of the job"
                    raise keys.JOB_NAME.error(name, rule, "name its Kafka in the host's file")

    def _job(self, name: str, job_id: str) -> Config:
        return self.given.merged({keys.JOB_NAME.name: name, keys.JOB_ID.name: job_id})

    def _topic_id(self, stream: str) -> str | None:
        topic = stream.partition(".")[2]
        return TopicAdmin(self._system, TIMEOUT_S).existing_ids([topic]).get(topic)

    @cached_property
    def _system(self) -> SystemConfig:
        config = self._job(_ANY_JOB, "1")
        return SystemConfig.of(config, JobConfig.of(config).coordinator_system)

    @cached_property
    def _topics(self) -> frozenset[str]:
        return TopicAdmin(self._system, TIMEOUT_S).names()

    @cached_property
    def _deleted(self) -> dict[str, DeletedJob]:
        return DeletedJobs(self._job(_ANY_JOB, "1"), TIMEOUT_S).read()

    @cached_property
    def _yarn(self) -> ResourceManagerRest | None:
        is_named = CONF_DIR_VARIABLE in os.environ
        return ResourceManagerRest.from_environment(os.environ) if is_named else None

    @cached_property
    def _nodes(self) -> frozenset[Host]:
        if self.known is not None:
            return self.known
        nodes = self._yarn.nodes() if self._yarn else ()
        return frozenset(node.report.host for node in nodes)


def clean_for_launcher(age_ms: int) -> None:
    """Remove old directories below this launcher's folder of state, unless another launcher does.

    HomeportError: the AM, Kafka or ZooKeeper does not answer; or there is no such folder. OSError:
    the lock cannot be made there.
    """
    (base,) = bases_of(None)
    host, limit = host_of(os.environ["NM_HOST"]), Limit(age_ms, time.time_ns() // 1_000_000)
    lock = open_own_file(base / f"{_LOCK}{os.geteuid()}", os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        log.info("another launcher cleans this host now")
        return
    config = am_client(os.environ, Path.cwd()).config()
    given = Config({key: value for key, value in config.items() if key.startswith(_OF_HOST)})
    is_yarns = frozenset({host})
    run = HostClean(given, host, limit, is_applied=True, has_orphans=False, known=is_yarns)
    levels, counts = {"removed": logging.INFO, "kept": logging.DEBUG}, Counter[str]()
    for item in run.outcomes(base):
        what = item.shown().outcome
        counts[what] += 1
        log.log(levels.get(what, logging.WARNING), "%s", item)
    found = ", ".join(f"{count} {what}" for what, count in counts.items())
    log.info("%s: %s", base, found or "nothing is there")


if __name__ == "__main__":
    give_way()
    logs.begin(sys.stdout, os.environ)
    try:
        clean_for_launcher(int(sys.argv[1]))
    except (HomeportError, OSError) as error:
        log.warning("this host is not cleaned: %s", error)
