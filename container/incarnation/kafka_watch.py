"""Ends a container whose host does not reach Kafka, so that another host may do its work.

A container waits without limit for Kafka. If Kafka is away for the AM too, the lease of the
container ends, as none is renewed then (safety L2). If Kafka is away for this host alone, the lease
goes on, and nothing else would end the wait. So a thread of its own sends requests to Kafka all the
while; other threads wait in calls of Kafka's library. It ends the container after a silence longer
than that within which a lease is kept (isolation limit, lease and margin). The process leaves what
a SIGKILL leaves.
"""

import logging
import threading
from collections.abc import Callable

from confluent_kafka import KafkaException

from homeport.config.settings.sections import SystemConfig
from homeport.container.container_job import ContainerJob
from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.kafka import clients
from homeport.job_coordinator.model.silence import Silence

_ASK_S = 2.0
_LOOKS = 10
"""Requests to Kafka in the time that it may be silent."""

_LOG = logging.getLogger(__name__)


def silence_of(job: ContainerJob) -> Silence:
    """Return the silence of Kafka within which a container keeps its lease: G + L + M."""
    lease_ms = job.cluster.lease_ms
    return Silence(job.job.isolation_max_ms + lease_ms + lease_ms // 5)


def watch_kafka(
    system: SystemConfig, topic: str, silence: Silence, end: Callable[[str], object]
) -> None:
    """Call ``end`` once, with the cause, from an own thread when this host does not reach Kafka.

    ``topic``: of the requests, one alone: there may be many.
    """
    arguments = (system, topic, silence, end)
    threading.Thread(target=_watch, args=arguments, name="kafka-watch", daemon=True).start()


def _watch(
    system: SystemConfig, topic: str, silence: Silence, end: Callable[[str], object]
) -> None:
    pause, admin = threading.Event(), clients.admin(system)
    while True:
        pause.wait(silence.limit_ms / _LOOKS / 1000)
        try:
            admin.list_topics(topic, timeout=_ASK_S)
            is_answered = True
        except KafkaException as error:
            if silence.since_ms is None:
                _LOG.warning("Kafka does not answer: %s", clients.error_of(error).str())
            is_answered = False
        if silence.asked(boot_ms(), is_answered=is_answered):
            end(
                f"Kafka at {system.bootstrap_servers} has not answered on this host for "
                f"{silence.limit_ms} ms (isolation limit, lease and margin)"
            )
            return
