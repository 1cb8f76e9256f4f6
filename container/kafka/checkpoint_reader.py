"""The last checkpoint of each of a container's tasks, read from the checkpoint topic at a start."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from homeport.config.errors import StoreError, WireError
from homeport.config.system_stream import SystemStream
from homeport.container.kafka.log_reader import LogReader
from homeport.container.progress import checkpoint
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

_LOG = logging.getLogger(__name__)


def read_checkpoints(
    reader: LogReader,
    topic: str,
    grouper: str,
    tasks: Collection[TaskName],
    floors: Mapping[SystemStream, int],
) -> dict[TaskName, dict[SystemStreamPartition, int]]:
    """The last processed offsets of those of ``tasks`` that have a checkpoint.

    Shapes: ``floors`` {input: offset in ``topic``, below which positions are of another topic of
    that name, and left out} (safety S7).

    Raises:
        StoreError: a checkpoint of one of the tasks was written under another grouper.
        UnavailableError: the topic cannot be read.
    """
    ends = reader.ends([(topic, 0)])[topic, 0]
    newest: dict[TaskName, tuple[checkpoint.CheckpointKey, bytes | None, int]] = {}
    for records in reader.read(topic, 0, ends.oldest, ends.head):
        for record in records:
            key = _key(record.key())
            if key and key.task_name in tasks and key.kind == checkpoint.CHECKPOINT_V1:
                newest[key.task_name] = (key, record.value(), record.offset() or 0)
    found: dict[TaskName, dict[SystemStreamPartition, int]] = {}
    for task_name, (key, value, at) in newest.items():
        if key.grouper != grouper:
            raise StoreError(
                f"the checkpoint of {task_name!r} in {topic} was written under the grouper "
                f"{key.grouper}, this job uses {grouper}: set it back, or use another job.id"
            )
        if value is not None:
            offsets = checkpoint.decode_value(value).items()
            found[task_name] = {
                ssp: offset for ssp, offset in offsets if at >= floors.get(ssp.system_stream, 0)
            }
    return found


def _key(data: bytes | None) -> checkpoint.CheckpointKey | None:
    try:
        return checkpoint.decode_key(data or b"")
    except WireError as error:
        _LOG.warning("a record of the checkpoint topic is passed over: %s", error)
        return None
