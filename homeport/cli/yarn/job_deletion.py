"""``homeport delete-job``: what a job has left anywhere, and how it is deleted.

Order, each step safe to be done again, as a command that is killed leaves the rest to the next one:

1. the coordinator stream records the deletion: nothing starts any more
2. as in a reset of the state (safety S4), the rank of an AM attempt is taken, all epochs are
   raised, all incarnations are fenced; whether anything runs is looked at once more
3. the Kafka gets the record of the deleted job, by which its directories are known on any host
4. topics, the tree in ZooKeeper, directories of this host, and files of ended applications go
5. the coordinator stream, which knows all this, goes last; it stays while Kafka refuses to delete
   another topic
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from msgspec import Struct
from msgspec.structs import replace

from homeport.appmaster.yarn.hadoop_files import hadoop_files
from homeport.appmaster.yarn.kerberos import kerberos_login
from homeport.cli.host.deleted_state import DeletedState
from homeport.cli.host.job_on_host import JobFolder
from homeport.cli.job.job_view import TIMEOUT_S
from homeport.cli.yarn.job import StoppedJob
from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError, HomeportError
from homeport.config.settings.sections import COORDINATOR_TOPICS, SystemConfig, TaskConfig
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.client_files import forget_token
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.kafka.deleted_jobs import DeletedJob, DeletedJobs
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.job_coordinator.metadata.configuration import WRITER_SOURCE, ConfigManager
from homeport.job_coordinator.metadata.epochs import EpochManager
from homeport.job_coordinator.metadata.lifecycle import StopManager
from homeport.job_coordinator.metadata.task_assignment import LocalityManager, UsedHostManager
from homeport.job_coordinator.metadata.topics import InputTopicManager
from homeport.job_coordinator.model.ids import Host
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.wire_form import about
from homeport.job_coordinator.planning.deletion import (
    Fate,
    FoundTopic,
    OtherJobs,
    OwnTopic,
    fates,
    own_topics,
    uses_in_words,
)

_STAGING = ".skein"
_IN_ORDER = "FINISHED"
"""The state of an application whose AM has ended it, after its containers."""
_STOP_MARGIN_S = 10.0


class Kind(StrEnum):
    """What a job has somewhere."""

    TOPIC = "topic"
    TREE = "tree"
    DIRECTORY = "directory"
    FILES = "files"
    HOST = "host"


class Outcome(StrEnum):
    """What became of it."""

    DELETED = "deleted"
    WOULD_BE = "would be deleted"
    KEPT = "kept"
    LEFT = "left"


class Ended(Struct, frozen=True):
    """What became of one thing of the job, for a script."""

    kind: Annotated[Kind, about("what it is")]
    name: Annotated[str, about("its name, path or address")]
    outcome: Annotated[Outcome, about("left: still to be done, for the reason given")]
    reason: Annotated[str, about("why")]

    def shown(self) -> Ended:
        """Return it for a script."""
        return self

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.outcome}: {self.reason}"


@dataclass
class JobEnd(StoppedJob):
    """The end of one job. ``command``: the command line that removes the directories on a host.

    ``is_refused``: whether Kafka has refused to delete a topic.
    """

    host: Host
    folders: list[JobFolder]
    command: str
    keep_outputs: bool = False
    judged: tuple[Fate, ...] = ()
    deleted: DeletedJob = field(default_factory=lambda: DeletedJob("", ""))
    is_refused: bool = False
    _state: DeletedState | None = None

    def stop_limit_s(self) -> float | None:
        """Return how long containers may still take to stop; None: they have stopped.

        YARN ends an application before its containers, whose launchers then record each stop: in a
        Kafka that makes topics by itself, such a record would make the coordinator stream again.
        """
        last = None if self.yarn is None else self.yarn.last_application(self.stream)
        if last is None or last.state == _IN_ORDER or not self.unstopped():
            return None
        return TaskConfig.of(self.recorded).shutdown_ms / 1000 + _STOP_MARGIN_S

    def unstopped(self) -> tuple[Incarnation, ...]:
        """Return the last incarnations whose stop the stream does not have; read it to its head."""
        self.stream.catch_up()
        epochs = EpochManager(self.stream).read_processor_epochs().items()
        last = {Incarnation(p, epoch.permitted) for p, epoch in epochs if epoch.permitted}
        return tuple(sorted(last - StopManager(self.stream).read().keys()))

    def look(self) -> None:
        """Find what the job has, and judge it; nothing is changed."""
        config = self.recorded
        own = own_topics(config, self.stream)
        systems = {s: SystemConfig.of(config, s) for s in {t.stream.system for t in own}}
        found = {}
        for topic in own:
            admin = TopicAdmin(systems[topic.stream.system], TIMEOUT_S)
            for name, topic_id in admin.existing_ids([topic.stream.stream]).items():
                policy = admin.topic_config(name).get("cleanup.policy", "")
                found[topic.stream] = FoundTopic(topic_id, policy)
        kafkas = {system.cluster: system for system in systems.values()}
        others = other_jobs(kafkas, self.job.coordinator_topic)
        self.judged = fates(own, found, config, others, keep_outputs=self.keep_outputs)
        self.deleted = self._deleted(own, found)

    def _deleted(
        self, own: Sequence[OwnTopic], found: Mapping[SystemStream, FoundTopic]
    ) -> DeletedJob:
        """Return the record of the job; of topics that stay, other jobs have directories too."""
        state = [topic for topic in own if not topic.is_output]
        kept = {fate.topic.stream for fate in self.judged if not fate.is_deleted}
        ids: dict[bool, set[str]] = {True: {*InputTopicManager(self.stream).ids().values()}}
        for topic in state:
            now = found.get(topic.stream)
            topic_id = topic.topic_id or (None if now is None else now.topic_id)
            if topic_id is not None:
                ids.setdefault(topic.stream in kept, set()).add(topic_id)
        return DeletedJob(
            self.job.name,
            self.job.id,
            tuple(sorted(ids.get(False, ()))),
            tuple(sorted(ids[True])),
            tuple(sorted(str(topic.stream) for topic in state)),
            self._hosts(),
        )

    def _hosts(self) -> tuple[str, ...]:
        localities, used = LocalityManager(self.stream), UsedHostManager(self.stream)
        found = {*localities.read_tasks().values(), *localities.read_processors().values()}
        found |= {*used.read()}
        if self.nodes is not None:
            found |= {*self.nodes.hosts().values()}
        return tuple(sorted(found))

    def plan(self) -> Iterator[Ended]:
        """Yield what would become of all that the job has."""
        yield from self._topics(None)
        if self.nodes is not None and self.nodes.exists():
            yield self._tree(Outcome.WOULD_BE)
        yield from self._local(is_applied=False)
        yield from self._files(is_applied=False)
        yield self._coordinator(Outcome.WOULD_BE)
        yield from self._elsewhere()

    def record(self) -> None:
        """Record in the Kafka that the job is deleted; ConfigError: Kafka refuses to."""
        DeletedJobs(self.config, TIMEOUT_S).write(self.deleted)

    def carry_out(self, require_newest: Callable[[], None]) -> Iterator[Ended]:
        """Delete all but the coordinator stream, and yield what became of each.

        ``require_newest`` raises where another submission has begun since.
        """
        yield from self._topics(require_newest)
        if self.nodes is not None and self.nodes.delete():
            yield self._tree(Outcome.DELETED)
        yield from self._local(is_applied=True)
        yield from self._files(is_applied=True)

    def delete_stream(self) -> Iterator[Ended]:
        """Delete the coordinator stream, which no client has open; yield that, and hosts left."""
        if self.is_refused:
            left = self._coordinator(Outcome.LEFT)
            why = f"{left.reason}, which goes last: run this again, once Kafka lets all topics go"
            yield replace(left, reason=why)
        else:
            yield self._deleted_topic(self.config, self._coordinator(Outcome.DELETED))
        yield from self._elsewhere()

    def _deleted_topic(self, config: Config, gone: Ended) -> Ended:
        """Delete the topic that ``gone`` names, and return it, or that Kafka refuses to."""
        system, _, topic = gone.name.partition(".")
        try:
            TopicAdmin(SystemConfig.of(config, system)).delete(topic)
        except ConfigError as refused:
            self.is_refused = True
            reason = f"{gone.reason}; {refused.rule}: {refused.remedy}"
            return replace(gone, outcome=Outcome.LEFT, reason=reason)
        return gone

    def _topics(self, require_newest: Callable[[], None] | None) -> Iterator[Ended]:
        for fate in self.judged:
            outcome = Outcome.WOULD_BE if fate.is_deleted else Outcome.KEPT
            ended = Ended(Kind.TOPIC, str(fate.topic.stream), outcome, fate.reason)
            if fate.is_deleted and require_newest is not None:
                require_newest()
                ended = self._deleted_topic(self.recorded, replace(ended, outcome=Outcome.DELETED))
            yield ended

    def _coordinator(self, outcome: Outcome) -> Ended:
        topic = SystemStream(self.job.coordinator_system, self.job.coordinator_topic)
        return Ended(Kind.TOPIC, str(topic), outcome, "the coordinator stream")

    def _tree(self, outcome: Outcome) -> Ended:
        root = "" if self.nodes is None else self.nodes.root
        return Ended(Kind.TREE, root, outcome, "the job's nodes in ZooKeeper")

    def _local(self, *, is_applied: bool) -> Iterator[Ended]:
        self._state = DeletedState(self.deleted, self.folders, is_applied=is_applied)
        yield from directories(self._state)

    def _elsewhere(self) -> Iterator[Ended]:
        """Yield the places that this command does not reach, or does not know."""
        is_done = bool(self.folders) and self._state is not None and self._state.is_whole
        done = frozenset({self.host} if is_done else ())
        yield from hosts_left(self.deleted, done, self.command)
        if self.is_local and not self.folders:
            reason = (
                "run-local without LOGGED_STORE_BASE_DIR has the stores in its --work-dir, by "
                f"default the folder {self.job.directory_name} where it was started: remove that"
            )
            yield Ended(Kind.DIRECTORY, self.job.directory_name, Outcome.LEFT, reason)

    def _files(self, *, is_applied: bool) -> Iterator[Ended]:
        """Yield what YARN's ended applications of the job have left in the cluster's file system.

        An application that ended by itself has removed its files; one that YARN killed has not.
        """
        applications = [] if self.yarn is None else self.yarn.ended_applications(self.stream)
        if not applications:
            return
        reason = "files of an ended application"
        try:
            with hadoop_files(os.environ, kerberos_login(self.config)) as files:
                folder = f"{files.home()}/{_STAGING}"
                for application in applications:
                    url = f"{folder}/{application}"
                    if files.facts(url) is None:
                        continue
                    if is_applied:
                        files.delete(url)
                    outcome = Outcome.DELETED if is_applied else Outcome.WOULD_BE
                    yield Ended(Kind.FILES, url, outcome, reason)
        except HomeportError as error:
            yield Ended(Kind.FILES, f"~/{_STAGING}", Outcome.LEFT, str(error))
        if is_applied:
            for application in applications:
                forget_token(os.environ, application)


_SWEPT = {
    "removed": Outcome.DELETED,
    "would be removed": Outcome.WOULD_BE,
    "not removed": Outcome.LEFT,
}


def directories(state: DeletedState) -> Iterator[Ended]:
    """Yield what becomes of each directory of the job on this host."""
    for swept in (outcome.shown() for outcome in state.outcomes()):
        outcome = _SWEPT.get(swept.outcome, Outcome.KEPT)
        yield Ended(Kind.DIRECTORY, swept.path, outcome, swept.reason)


def hosts_left(deleted: DeletedJob, done: frozenset[str], command: str) -> Iterator[Ended]:
    """Yield each host that may have directories of the job, but ``done``."""
    for host in sorted({*deleted.hosts} - done):
        reason = f"it may have directories of the job: run there, as the job's user: {command}"
        yield Ended(Kind.HOST, host, Outcome.LEFT, reason)


def other_jobs(kafkas: Mapping[str, SystemConfig], own: str) -> OtherJobs:
    """Return what the jobs use whose coordinator streams are there; ``own``: that of this job."""
    uses, unread = dict[str, str](), list[str]()
    for system in kafkas.values():
        names = TopicAdmin(system, TIMEOUT_S).names()
        for topic in sorted(n for n in names if n.startswith(COORDINATOR_TOPICS) and n != own):
            try:
                for name, use in _uses(system, topic):
                    uses.setdefault(name, use)
            except HomeportError:
                unread.append(topic)
    return OtherJobs(uses, tuple(unread))


def _uses(system: SystemConfig, topic: str) -> list[tuple[str, str]]:
    with CoordinatorStreamStore(
        system, topic, source=WRITER_SOURCE, timeout_s=TIMEOUT_S, has_packages=False
    ) as store:
        store.bootstrap()
        config = ConfigManager(store).read()
    if not keys.JOB_NAME.is_set(config):
        return []
    name = f"the job {keys.JOB_NAME.read(config)!r} with id {keys.JOB_ID.read(config) or '1'!r}"
    return list(uses_in_words(config, name))
