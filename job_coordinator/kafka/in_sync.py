"""Finds partitions that take no records, because too few of their replicas are in sync."""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Sequence

from confluent_kafka import KafkaException
from confluent_kafka.admin import PartitionMetadata

from homeport.config.errors import UnavailableError
from homeport.config.settings.sections import SystemConfig
from homeport.job_coordinator.kafka import clients
from homeport.job_coordinator.kafka.connection import Client, Connection
from homeport.job_coordinator.kafka.topics import MIN_IN_SYNC, TopicAdmin

OutputPlace = tuple[str, int | None]
"""Topic and partition; None: any partition of the topic."""

_LOG = logging.getLogger(__name__)

_PATIENCE_S = 5.0
_PAUSE_S = 0.5
_PROGRESS_S = 10.0


def await_writable(
    system: SystemConfig,
    connection: Connection,
    client: Client,
    places: Collection[OutputPlace],
    pause: Callable[[float], None],
) -> None:
    """Wait without a limit until a broker answers, and ``places`` take records.

    ``connection``: that of ``client``, a producer. ``places``: where the next records go. ``pause``
    waits the given seconds; it raises to give up.
    """
    began = time.monotonic()
    said = began - _PROGRESS_S
    while True:
        connection.wait(client, pause)
        try:
            lacks = shortage(system, client, places)
        except UnavailableError as error:
            lacks = str(error)
        if lacks is None:
            return
        now = time.monotonic()
        if now - said >= _PROGRESS_S:
            said = now
            _LOG.warning("writing waits for Kafka, for %.0f s so far: %s", now - began, lacks)
        pause(_PAUSE_S)


def shortage(system: SystemConfig, client: Client, places: Collection[OutputPlace]) -> str | None:
    """Return what one of ``places`` lacks to take records, and what helps; None: nothing.

    This takes one request, and one more for a topic with replicas that are not in sync. A topic
    that Kafka does not know lacks nothing: a write to it fails because it is absent.

    UnavailableError: Kafka does not answer.
    """
    try:
        topics = client.list_topics(timeout=_PATIENCE_S).topics
    except KafkaException as error:
        cause = clients.error_of(error)
        raise clients.unavailable(system, "asking for replicas in sync", cause) from None
    for name in sorted({topic for topic, _ in places}):
        partitions = topics[name].partitions.values() if name in topics else ()
        written = [p for p in partitions if (name, p.id) in places or (name, None) in places]
        story = _leaderless(name, written) or _thin(system, name, written)
        if story is not None:
            return story
    return None


def known_shortage(
    system: SystemConfig, client: Client, places: Collection[OutputPlace]
) -> str | None:
    """Return as ``shortage``; None also if Kafka does not answer."""
    try:
        return shortage(system, client, places)
    except UnavailableError:
        return None


def _leaderless(name: str, partitions: Sequence[PartitionMetadata]) -> str | None:
    for found in partitions:
        if found.leader < 0:
            place = f"topic {name!r} partition {found.id}"
            return f"{place} has no leader: start the brokers {_listed(found.replicas)}"
    return None


def _thin(system: SystemConfig, name: str, partitions: Sequence[PartitionMetadata]) -> str | None:
    thin = [found for found in partitions if len(found.isrs) < len(found.replicas)]
    if not thin:
        return None
    configured = int(TopicAdmin(system, _PATIENCE_S).topic_config(name)[MIN_IN_SYNC])
    for found in thin:
        # A broker requires no more replicas than there are.
        needed = min(configured, len(found.replicas))
        if len(found.isrs) < needed:
            return (
                f"topic {name!r} partition {found.id} has {len(found.isrs)} of "
                f"{len(found.replicas)} replicas in sync, and its {MIN_IN_SYNC} is {needed}: start "
                f"the brokers {_listed(set(found.replicas) - set(found.isrs))}, or lower "
                f"{MIN_IN_SYNC}"
            )
    return None


def _listed(brokers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(brokers)))
