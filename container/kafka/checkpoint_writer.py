"""One task's checkpoint, written beside the job while it does not run.

Written plainly, as one record that no transaction holds: whoever reads the topic to its head sees
it at once. Whoever might still commit a checkpoint of its own is fenced before, by its own id.
"""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import KafkaError, KafkaException

from homeport.config.errors import UnavailableError
from homeport.config.settings.sections import SystemConfig
from homeport.container.progress import checkpoint
from homeport.container.progress.checkpoint import CheckpointKey
from homeport.job_coordinator.kafka.clients import error_of, producer, unavailable
from homeport.job_coordinator.model.job_model import SystemStreamPartition

_TIMEOUT_S = 30.0


def write_checkpoint(
    system: SystemConfig,
    topic: str,
    key: CheckpointKey,
    offsets: Mapping[SystemStreamPartition, int],
) -> None:
    """The task's newest checkpoint says ``offsets``, those last processed, on all replicas.

    Raises:
        UnavailableError: Kafka did not say that it has it; perhaps it has.
    """
    refused: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: object) -> None:
        if error is not None:
            refused.append(error)

    limit = {"message.timeout.ms": int(_TIMEOUT_S * 1000)}
    client = producer(system, {"enable.idempotence": True, "acks": "all", **limit})
    what = f"writing a checkpoint to {topic}"
    value = checkpoint.encode_value(offsets)
    try:
        client.produce(topic, value, checkpoint.encode_key(key), 0, on_delivery=delivered)
        unsent = client.flush(_TIMEOUT_S)
    except KafkaException as error:
        raise unavailable(system, what, error_of(error).str()) from None
    if refused:
        raise unavailable(system, what, refused[0].str())
    if unsent:
        raise UnavailableError(f"{what}: no answer within {_TIMEOUT_S:g} s; look with show")
