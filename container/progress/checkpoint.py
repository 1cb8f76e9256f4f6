"""Exact bytes of the records of the checkpoint topic, version 1.

PURE. Source: Samza 1.8 ``KafkaCheckpointLogKeySerde`` and ``CheckpointV1Serde``. The offset of an
input partition is that of the last message **processed**; reading goes on at the next one.

A record that an operator's tool has written says so in a header, which Samza does not read. The
task's next container writes it into its history.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from homeport.config.config import INT_MAX
from homeport.config.errors import WireError
from homeport.job_coordinator.coordinator_stream.message_bytes import LARGEST, whole_number
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition
from homeport.job_coordinator.model.json_values import as_object, required_field, shown

CHECKPOINT_V1 = "checkpoint"
NOTHING = -1
"""Offset of the last processed message where the first one, at offset 0, is the next to read."""


CHANGES_HEADER = "homeport.changes"
"""What an operator has changed, see ``encode_changes``."""


@dataclass(frozen=True, slots=True)
class Change:
    """A partition goes on at ``next_offset``, and not at ``first``; None: there was no checkpoint.

    ``first``: before all changes that no container has seen.
    """

    ssp: SystemStreamPartition
    first: int | None
    next_offset: int


@dataclass(frozen=True, slots=True)
class CheckpointKey:
    """Whose checkpoint a record is; ``grouper`` is the Java name of the grouper's factory."""

    grouper: str
    task_name: TaskName
    kind: str = CHECKPOINT_V1


def encode_key(key: CheckpointKey) -> bytes:
    """The record's key; the order of its fields matters to compaction."""
    return _json(
        {
            "systemstreampartition-grouper-factory": key.grouper,
            "taskName": key.task_name,
            "type": key.kind,
        }
    )


def decode_key(data: bytes) -> CheckpointKey:
    """The key that ``data`` holds; WireError where it is not of that form."""
    body = _parsed(data)
    grouper = body.get("systemstreampartition-grouper-factory")
    task_name = body.get("taskName")
    kind = body.get("type")
    if not (isinstance(grouper, str) and isinstance(task_name, str) and isinstance(kind, str)):
        raise WireError(f"checkpoint key lacks a field: {data[:200]!r}")
    return CheckpointKey(grouper, TaskName(task_name), kind)


def encode_value(offsets: Mapping[SystemStreamPartition, int]) -> bytes:
    """The record's value: every input partition of the task with its last processed offset."""
    return _json(
        {
            str(ssp): {
                "system": ssp.system,
                "partition": str(ssp.partition),
                "offset": str(offset),
                "stream": ssp.stream,
            }
            for ssp, offset in sorted(offsets.items())
        }
    )


def decode_value(data: bytes) -> dict[SystemStreamPartition, int]:
    """The last processed offset of each partition.

    Entries whose offset is not a number (Samza puts changelogs into the same map) are left out.

    Raises:
        WireError: the bytes are not a checkpoint of version 1.
    """
    offsets: dict[SystemStreamPartition, int] = {}
    for entry in _parsed(data).values():
        try:
            body = as_object(entry, "checkpoint entry")
            partition, offset = str(body["partition"]), str(body["offset"])
            system = required_field(body, "system", str)
            stream = required_field(body, "stream", str)
        except KeyError:
            raise WireError(f"checkpoint entry lacks a field: {shown(entry)}") from None
        number = whole_number(partition, INT_MAX)
        found = NOTHING if offset == str(NOTHING) else whole_number(offset, LARGEST)
        if number is None or (found is None and offset.isascii() and offset.isdigit()):
            raise WireError(f"checkpoint entry has a number out of its range: {shown(entry)}")
        if found is not None:
            offsets[SystemStreamPartition(system, stream, number)] = found
    return offsets


def encode_changes(changes: Iterable[Change]) -> bytes:
    """The value of the header ``CHANGES_HEADER``."""
    found = [
        {
            "system": change.ssp.system,
            "stream": change.ssp.stream,
            "partition": change.ssp.partition,
            "first": change.first,
            "next": change.next_offset,
        }
        for change in changes
    ]
    return _json({"changes": found})


def decode_changes(data: bytes) -> tuple[Change, ...]:
    """What ``encode_changes`` was given.

    Raises:
        WireError: the bytes are not of that form.
    """
    entries = _parsed(data).get("changes")
    if not isinstance(entries, list):
        raise WireError(f"changes of a checkpoint are no list: {data[:200]!r}")
    found = []
    for entry in entries:
        body = as_object(entry, "change of a checkpoint")
        system, stream = (required_field(body, name, str) for name in ("system", "stream"))
        partition, following = (required_field(body, name, int) for name in ("partition", "next"))
        first = None if body.get("first") is None else required_field(body, "first", int)
        found.append(Change(SystemStreamPartition(system, stream, partition), first, following))
    return tuple(found)


def _json(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        raise WireError(f"not JSON: {data[:200]!r}") from None
    if not isinstance(body, dict):
        raise WireError(f"not a JSON object: {data[:200]!r}")
    return body
