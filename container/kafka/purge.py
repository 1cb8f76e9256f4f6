"""Purge: deletes records of repartitions that are processed and committed.

A request leaves only where a commit of this incarnation has just returned: until then no other one
has taken over, and no topic was recreated. It takes no time of the tasks: the answer is taken at
a later commit. An error costs disk space alone, and is tried again. Source: safety I10.
"""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from homeport.config.settings.sections import SystemConfig
from homeport.container.progress.purging import Purging
from homeport.job_coordinator.kafka import clients
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

_LOG = logging.getLogger(__name__)
_REQUEST_S = 10.0


class Purge:
    """The requests of one incarnation. Not thread-safe.

    ``system``: that of the transactions, which the repartitions are on. It connects at the first
    request. ``clock``: in seconds.
    """

    def __init__(
        self,
        system: SystemConfig,
        purging: Purging,
        clock: Callable[[], float],
        connect: Callable[[SystemConfig], AdminClient] = clients.admin,
    ) -> None:
        self._system = system
        self._purging = purging
        self._clock = clock
        self._connect = connect
        self._admin: AdminClient | None = None
        self._asked: dict[SystemStreamPartition, Future[Any]] = {}

    def committed(self, processed: Mapping[TaskName, Mapping[SystemStreamPartition, int]]) -> None:
        """Take the last offsets of a transaction whose commit has returned; ask if it is time."""
        self._purging.committed(processed)
        self._take_answers()
        due = self._purging.due(self._clock())
        if not due:
            return
        if self._admin is None:
            self._admin = self._connect(self._system)
        places = [TopicPartition(ssp.stream, ssp.partition, o) for ssp, o in due.items()]
        asked = self._admin.delete_records(places, request_timeout=_REQUEST_S)
        futures = {(place.topic, place.partition): future for place, future in asked.items()}
        self._asked = {ssp: futures[ssp.stream, ssp.partition] for ssp in due}

    def _take_answers(self) -> None:
        failures = {}
        for ssp in [ssp for ssp, future in self._asked.items() if future.done()]:
            try:
                self._asked.pop(ssp).result()
            except KafkaException as error:
                failures[ssp] = clients.error_of(error).str()
            self._purging.answered(ssp, is_deleted=ssp not in failures)
        for ssp, reason in sorted(failures.items())[:1]:
            more = f", and {len(failures) - 1} others" if len(failures) > 1 else ""
            _LOG.warning("%s%s: what is processed is not deleted yet: %s", ssp, more, reason)
