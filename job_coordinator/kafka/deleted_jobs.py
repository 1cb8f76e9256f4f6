"""The jobs that ``homeport delete-job`` has ended: one compacted topic of each Kafka.

The directories of a job's stores are on hosts that the command does not reach. The record has the
ids of the topics that are gone: a directory whose own file has such an id is of this job and of no
other. It outlives the job, as a host may be away for long.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from homeport.config.config import Config
from homeport.config.settings.sections import JobConfig, SystemConfig
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.coordinator_stream.record_values import decoded, record_of
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.kafka.topics import TopicAdmin, coordinator_topic_spec
from homeport.job_coordinator.model.wire_form import Text

TOPIC = "__homeport_deleted_jobs"
_TYPE = "set-deleted-job"
_SOURCE = "homeport"


@dataclass(frozen=True, slots=True)
class DeletedJob:
    """A job that was deleted.

    ``topic_ids``: of topics that were deleted with it. ``input_ids``: of its inputs, which stay.
    ``changelogs``: as ``system.stream``. ``hosts``: those that may have directories of it.
    """

    name: Text
    id: Text
    topic_ids: tuple[str, ...] = ()
    input_ids: tuple[str, ...] = ()
    changelogs: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()

    def after(self, former: DeletedJob | None) -> DeletedJob:
        """Return this with what is known of an earlier job of the same name and id."""
        if former is None:
            return self
        return replace(
            self,
            topic_ids=tuple(sorted({*former.topic_ids, *self.topic_ids})),
            input_ids=tuple(sorted({*former.input_ids, *self.input_ids})),
            changelogs=tuple(sorted({*former.changelogs, *self.changelogs})),
            hosts=tuple(sorted({*former.hosts, *self.hosts})),
        )


class DeletedJobs:
    """The records of one Kafka. Shapes: keys are the folders of the jobs."""

    def __init__(self, config: Config, timeout_s: float) -> None:
        """``config``: of a job, or of a host, whose coordinator streams are in that Kafka."""
        self._job = JobConfig.of(config)
        self._system = SystemConfig.of(config, self._job.coordinator_system)
        self._timeout_s = timeout_s

    def read(self) -> dict[str, DeletedJob]:
        """Return {folder: the deleted job}; empty where none was ever deleted.

        UnavailableError: Kafka did not answer. WireError: a record is damaged.
        """
        if not TopicAdmin(self._system, self._timeout_s).partition_counts([TOPIC]):
            return {}
        with self._store() as store:
            return {key: _deleted(m) for key, m in store.latest(_TYPE).items()}

    def write(self, deleted: DeletedJob) -> None:
        """Record the job, with what is recorded of an earlier one; make the topic if need be."""
        spec = replace(coordinator_topic_spec(self._job), name=TOPIC)
        TopicAdmin(self._system, self._timeout_s).ensure(spec)
        folder = self._job.directory_name
        with self._store() as store:
            former = store.latest(_TYPE).get(folder)
            known = None if former is None else _deleted(former)
            store.write([record_of(_TYPE, folder, deleted.after(known))])

    def cleaned(self, folder: str, host: str) -> None:
        """Record that ``host`` has no directory of the job with that folder any more."""
        with self._store() as store:
            former = store.latest(_TYPE).get(folder)
            known = None if former is None else _deleted(former)
            if known is not None and host in known.hosts:
                hosts = tuple(name for name in known.hosts if name != host)
                store.write([record_of(_TYPE, folder, replace(known, hosts=hosts))])

    @contextlib.contextmanager
    def _store(self) -> Iterator[CoordinatorStreamStore]:
        store = CoordinatorStreamStore(
            self._system, TOPIC, source=_SOURCE, timeout_s=self._timeout_s
        )
        with store:
            store.bootstrap()
            yield store


def _deleted(message: CoordinatorStreamMessage) -> DeletedJob:
    return decoded(DeletedJob, message)
