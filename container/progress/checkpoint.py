"""Exact bytes of the checkpoint topic: records of version 1, and what is read of version 2.

PURE. Source: Samza 1.8 ``KafkaCheckpointLogKeySerde``, ``CheckpointV1Serde``, ``CheckpointV2Serde``
and ``KafkaStateCheckpointMarker``. The offset of an input partition is that of the last message
**processed**; reading goes on at the next one.

A checkpoint of Samza's also has, for each changelog, the last record of the state at these
positions. Ours have none: state and positions are one transaction.

An operator's tool puts its changes into a header of the record, which Samza does not read. The
task's next container writes them into its history.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from homeport.config.config import INT_MAX
from homeport.config.errors import WireError
from homeport.job_coordinator.coordinator_stream.message_bytes import whole_number
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition
from homeport.job_coordinator.model.json_values import as_object, required_field, shown
from homeport.job_coordinator.model.wire_form import LARGEST

CHECKPOINT_V1 = "checkpoint"
CHECKPOINT_V2 = "checkpoint-v2"
NOTHING = -1
"""Offset of the last processed message where offset 0 is read next."""

_KAFKA_BACKEND = "org.apache.samza.storage.KafkaChangelogStateBackendFactory"

Offsets = dict[SystemStreamPartition, int]


CHANGES_HEADER = "homeport.changes"
"""The changes by an operator, see ``encode_changes``."""


@dataclass(frozen=True, slots=True)
class Change:
    """A partition goes on at ``next_offset``, not at ``first``; None: it had no checkpoint.

    The change is an operator's, or the job configuration's, which goes before a checkpoint.
    ``first``: before all changes that no container has read yet.
    """

    ssp: SystemStreamPartition
    first: int | None
    next_offset: int


@dataclass(frozen=True, slots=True)
class CheckpointKey:
    """The owner of a checkpoint; ``grouper`` is the Java name of the grouper's factory."""

    grouper: str
    task_name: TaskName
    kind: str = CHECKPOINT_V1


def encode_key(key: CheckpointKey) -> bytes:
    """Return the record's key; the order of its fields matters to compaction."""
    return _json(
        {
            "systemstreampartition-grouper-factory": key.grouper,
            "taskName": key.task_name,
            "type": key.kind,
        }
    )


def decode_key(data: bytes) -> CheckpointKey:
    """Return the key in ``data``; WireError where it is not of that form."""
    body = _parsed(data)
    grouper = body.get("systemstreampartition-grouper-factory")
    task_name = body.get("taskName")
    kind = body.get("type")
    if not (isinstance(grouper, str) and isinstance(task_name, str) and isinstance(kind, str)):
        raise WireError(f"checkpoint key lacks a field: {data[:200]!r}")
    return CheckpointKey(grouper, TaskName(task_name), kind)


def encode_value(offsets: Mapping[SystemStreamPartition, int]) -> bytes:
    """Return the record's value: {input partition of the task: its last processed offset}."""
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


@dataclass(frozen=True, slots=True)
class CheckpointValue:
    """``offsets``: those last processed, of each input partition.

    ``changelogs``: the last offset of each changelog partition in the state at these positions;
    ``NOTHING``: there is none. Only Samza writes them.
    """

    offsets: Offsets
    changelogs: Offsets = field(default_factory=dict)


def decode_value(data: bytes) -> CheckpointValue:
    """Return the content of a checkpoint of version 1; WireError where the bytes are none.

    An entry of a changelog has ``<checkpoint id>:<offset>`` in the place of the offset, with
    ``null`` for an empty one. Entries with any other text there are left out.
    """
    found = CheckpointValue({}, {})
    for entry in _parsed(data).values():
        try:
            body = as_object(entry, "checkpoint entry")
            partition, offset = str(body["partition"]), str(body["offset"])
            ssp = _ssp(body, partition)
        except KeyError:
            raise WireError(f"checkpoint entry lacks a field: {shown(entry)}") from None
        _, colon, after = offset.rpartition(":")
        if colon:
            _put(found.changelogs, ssp, NOTHING if after == "null" else after, entry)
        else:
            _put(found.offsets, ssp, NOTHING if offset == str(NOTHING) else offset, entry)
    return found


def decode_value_v2(data: bytes) -> CheckpointValue:
    """Return the content of a checkpoint of version 2; WireError where the bytes are none.

    Markers of other back-ends are left out. The key of an input partition is taken apart at its
    first and its last dot: names of topics may have dots, which Samza cannot take apart.
    """
    found, body = CheckpointValue({}, {}), _parsed(data)
    for name, offset in required_field(body, "input-offsets", dict).items():
        system, _, rest = str(name).partition(".")
        stream, _, partition = rest.rpartition(".")
        ssp = _ssp({"system": system, "stream": stream}, partition)
        _put(found.offsets, ssp, NOTHING if offset == str(NOTHING) else str(offset), {name: offset})
    markers = required_field(body, "state-checkpoint-markers", dict).get(_KAFKA_BACKEND, {})
    for text in as_object(markers, "state checkpoint markers").values():
        marker = _parsed(str(text).encode())
        named = required_field(marker, "changelog-ssp", dict)
        ssp = _ssp(named, str(named.get("partition")))
        offset = marker.get("changelog-offset")
        _put(found.changelogs, ssp, NOTHING if offset is None else str(offset), marker)
    return found


def _ssp(body: Mapping[str, Any], partition: str) -> SystemStreamPartition:
    system, stream = (required_field(body, name, str) for name in ("system", "stream"))
    number = whole_number(partition, INT_MAX)
    if number is None:
        raise WireError(f"checkpoint entry has a number out of its range: {shown(dict(body))}")
    return SystemStreamPartition(system, stream, number)


def _put(into: Offsets, ssp: SystemStreamPartition, offset: str | int, entry: object) -> None:
    found = offset if isinstance(offset, int) else whole_number(offset, LARGEST)
    if found is None and str(offset).isascii() and str(offset).isdigit():
        raise WireError(f"checkpoint entry has a number out of its range: {shown(entry)}")
    if found is not None:
        into[ssp] = found


def encode_changes(changes: Iterable[Change]) -> bytes:
    """Return the value of the header ``CHANGES_HEADER``."""
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
    """Return the changes in the bytes of ``encode_changes``; WireError: they have another form."""
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
