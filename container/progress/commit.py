"""What makes one transaction, in which order it is sent, and when it is due.

PURE. Source: safety I5, "all sends of a transaction happen at its end (outputs, changelog, last the
checkpoint)"; design, section 8.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from homeport.config.system_stream import SystemStream
from homeport.container.progress import checkpoint
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition


@dataclass(frozen=True, slots=True)
class Send:
    """One record to be sent; ``partition`` None leaves the place to the partitioner of the key.

    ``system``: of the topic; None is the one that holds the checkpoints.
    """

    topic: str
    key: bytes | None
    value: bytes | None
    partition: int | None = None
    headers: Mapping[str, bytes] | None = None
    system: str | None = None


@dataclass(frozen=True, slots=True)
class Changes:
    """What one transaction changed in one store of one task: {key: new value, None = deleted}."""

    store: str
    task_name: TaskName
    changelog: SystemStream
    partition: int
    entries: Mapping[bytes, bytes | None]


@dataclass(frozen=True, slots=True)
class TransactionContent:
    """All that one transaction makes true at once.

    ``processed``: per task touched, the last processed offset of **each** of its partitions.
    """

    outputs: Sequence[Send]
    changes: Sequence[Changes]
    processed: Mapping[TaskName, Mapping[SystemStreamPartition, int]]


def sends_in_order(
    content: TransactionContent, grouper: str, checkpoint_topic: str | None
) -> Iterator[Send]:
    """Outputs, then changelogs, last the checkpoints; without a topic no checkpoints."""
    yield from content.outputs
    for changes in content.changes:
        for key, value in changes.entries.items():
            yield Send(changes.changelog.stream, key, value, changes.partition)
    if checkpoint_topic is None:
        return
    for task_name, offsets in sorted(content.processed.items()):
        key_bytes = checkpoint.encode_key(checkpoint.CheckpointKey(grouper, task_name))
        yield Send(checkpoint_topic, key_bytes, checkpoint.encode_value(offsets), 0)


@dataclass(frozen=True, slots=True)
class TransactionLimits:
    """When an open transaction ends: by its age since its first record, or by its bytes."""

    max_ms: int
    max_bytes: int

    def is_due(self, age_ms: float, size_bytes: int) -> bool:
        """Whether a transaction of this age and size ends now."""
        return age_ms >= self.max_ms or size_bytes >= self.max_bytes
