"""What an operator is told of a transaction that holds up the readers of a partition."""

from __future__ import annotations

from homeport.config.sections import SystemConfig


def how_to_end(system: SystemConfig, topic: str, partition: int, stable: int) -> str:
    """The transaction that began at the last stable offset, and by what tool it may be ended.

    Kafka ends an open one when its time is over; one whose end it left out of the partition
    (KAFKA-20734) stays for ever.
    """
    tool = f"kafka-transactions.sh --bootstrap-server {system.bootstrap_servers}"
    place = f"--topic {topic} --partition {partition}"
    return (
        f"a transaction that began there has no end in this partition; `{tool} describe-producers "
        f"{place}` names its producer, and where it was not committed, `{tool} abort {place} "
        f"--start-offset {stable}` ends it"
    )
