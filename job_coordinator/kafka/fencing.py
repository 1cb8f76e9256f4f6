"""Fencing an incarnation by its transactional id, by a process that does not write under it."""

from __future__ import annotations

from confluent_kafka import KafkaException

from homeport.config.settings.sections import SystemConfig
from homeport.job_coordinator.kafka import clients
from homeport.job_coordinator.kafka.open_transactions import not_initialised


def fence(system: SystemConfig, transactional_id: str, timeout_s: float) -> None:
    """The holder of the id commits nothing more; its open transaction is aborted (safety I4).

    Raises:
        UnavailableError: Kafka did not do it in time.
    """
    holder = clients.producer(system, {"transactional.id": transactional_id})
    try:
        holder.init_transactions(timeout_s)
    except KafkaException as exception:
        error = clients.error_of(exception)
        # Not closed: the library would try to abort, and warn on stderr that it is still asking.
        raise not_initialised(system, holder, transactional_id, error) from None
    holder.close()
