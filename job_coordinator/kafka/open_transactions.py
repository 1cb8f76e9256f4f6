"""Error lines about a transaction that holds up readers, or the next holder of its id."""

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ClusterMetadata

from homeport.config.errors import UnavailableError
from homeport.config.settings.sections import SystemConfig
from homeport.job_coordinator.kafka import clients
from homeport.job_coordinator.kafka.connection import Client
from homeport.job_coordinator.model.incarnation import STATE_TOPIC, state_partition

_METADATA_S = 2.0


def how_to_end(system: SystemConfig, topic: str, partition: int, stable: int) -> str:
    """Return how to find and end the transaction that began at the last stable offset.

    Kafka ends an open transaction when its time is over. A transaction whose end is missing in the
    partition (KAFKA-20734) stays for ever.
    """
    tool = _tool(system)
    return (
        f"a transaction that began there has no end in this partition; `{tool} describe-producers "
        f"--topic {topic} --partition {partition}` names its producer, `{tool} list` how that "
        f"producer's last transaction ended; if it was aborted, "
        f"`{abort_command(system, topic, partition, stable)}` ends it; one that was committed must "
        "not be aborted, that would lose its records"
    )


def abort_command(system: SystemConfig, topic: str, partition: int, start: int) -> str:
    """Return the command that aborts the transaction from offset ``start`` on without an end."""
    place = f"--topic {topic} --partition {partition}"
    return f"{_tool(system)} abort {place} --start-offset {start}"


def not_initialised(
    system: SystemConfig, client: Client, transactional_id: str, error: KafkaError
) -> UnavailableError:
    """Return the one-line error for an id that Kafka did not initialise in time.

    Kafka waits until all partitions of the id's last transaction have its end. That may take for
    ever: the coordinator may have lost the ends that it had to send, until it is loaded again.
    """
    what = f"initialising {transactional_id}"
    is_ending = error.code() == KafkaError.CONCURRENT_TRANSACTIONS
    if is_ending or error.code() == KafkaError._TIMED_OUT:  # noqa: SLF001 - a public name of the library
        try:
            known = client.list_topics(timeout=_METADATA_S)
        except KafkaException:
            return clients.unavailable(system, what, error)
        return UnavailableError(
            f"Kafka at {system.bootstrap_servers} (system {system.name!r}): {what}: {error.str()}: "
            f"it {'is' if is_ending else 'may be'} still ending the last transaction of this id, "
            f"which `{_tool(system)} describe --transactional-id {transactional_id}` shows as "
            "PrepareCommit or PrepareAbort with the partitions that have not taken the end; each "
            "of them needs a leader and min.insync.replicas in sync; where they have those, a "
            f"restart of {_coordinator(known, transactional_id)} makes Kafka send it again"
        )
    return clients.unavailable(system, what, error)


def _coordinator(known: ClusterMetadata, transactional_id: str) -> str:
    partitions = known.topics[STATE_TOPIC].partitions if STATE_TOPIC in known.topics else {}
    if not partitions:
        return "its coordinator"
    partition = state_partition(transactional_id, len(partitions))
    broker = known.brokers.get(partitions[partition].leader)
    named = "the broker" if broker is None else f"broker {broker}"
    return f"{named} that leads {STATE_TOPIC} partition {partition}"


def _tool(system: SystemConfig) -> str:
    return f"kafka-transactions.sh --bootstrap-server {system.bootstrap_servers}"
