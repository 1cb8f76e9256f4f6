"""Records of the coordinator stream that Kafka would not take: found before anything is written.

Configuration and JobModel have no bound (COORD, benefit 1), as each key and each task is a record
of its own; the one bound left is that of a record.
"""

from __future__ import annotations

from collections.abc import Iterator

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.config.secret_names import shown_value
from homeport.config.settings.sections import JobConfig
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
)
from homeport.job_coordinator.metadata.task_assignment import (
    TaskAssignmentManager,
    TaskModeManager,
    TaskPartitionManager,
)
from homeport.job_coordinator.model.job_model import JobModel

_STAMP_BYTES = 256
"""Room for source and host of a record, and for Kafka's own fields around it."""
_SHOWN = 40


def check_record_sizes(config: Config, model: JobModel | None, limit: int) -> None:
    """Require that no record of configuration and JobModel is larger than ``limit`` bytes.

    ``limit``: what the coordinator stream takes. ``model``: None where it is not known yet.
    """
    job = JobConfig.of(config)
    remedy = (
        f"raise max.message.bytes of topic {job.coordinator_topic!r} and "
        f"systems.{job.coordinator_system}.producer.max.request.size"
    )
    for key, value in config.items():
        size = _size(wire.set_config(key, value))
        if size > limit:
            shown = f"{shown_value(key, value)[:_SHOWN]}..."
            raise ConfigError(key, shown, _rule("it", size, limit), f"shorten it, or {remedy}")
    for message in _records(model) if model is not None else ():
        size = _size(message)
        if size > limit:
            raise ConfigError(
                keys.TASK_BROADCAST_INPUTS.name,
                config.get(keys.TASK_BROADCAST_INPUTS.name),
                _rule(f"{message.type} {message.key[:200]}", size, limit),
                f"broadcast to fewer tasks, or {remedy}",
            )


def _rule(what: str, size: int, limit: int) -> str:
    return f"{what} would be a record of {size} bytes; the coordinator stream takes {limit} at most"


def _records(model: JobModel) -> Iterator[CoordinatorStreamMessage]:
    """Yield what a model change writes of tasks; only that of a broadcast input grows."""
    nothing = InMemoryCoordinatorStream()
    assignment = {name: p for p, c in model.containers.items() for name in c.tasks}
    yield from TaskAssignmentManager(nothing).messages(assignment)
    yield from TaskModeManager(nothing).messages(model)
    yield from TaskPartitionManager(nothing).messages(model)


def _size(message: CoordinatorStreamMessage) -> int:
    key, value = wire.encode(message)
    return len(key) + len(value or b"") + _STAMP_BYTES
