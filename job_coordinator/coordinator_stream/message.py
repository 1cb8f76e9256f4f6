"""Exact bytes of the coordinator stream's records.

PURE. Rules for editing: compaction depends on byte-equal keys, so a key is written in one form
only. Values are written in Samza 1.8's spelling with the document's spelling beside it, and read in
both. What is not understood is kept, never rewritten. This module knows nothing of topics, time or
writers: a message made here is *unstamped* (no source, host, user, time) until the store
that writes it stamps it.

Source: COORD, "Coordinator Stream Message Model".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from homeport.config.config import INT_MAX
from homeport.config.errors import WireError
from homeport.job_coordinator.coordinator_stream.message_bytes import (
    TEXT_VERSION,
    VERSION,
    decode_foreign_value,
    decode_key,
    decode_value,
    name_of,
    parse_json,
    time_of,
    whole_number,
)
from homeport.job_coordinator.model.codec import partition_body, partition_of
from homeport.job_coordinator.model.job_model import SystemStreamPartition, TaskMode
from homeport.job_coordinator.model.json_values import as_object
from homeport.job_coordinator.model.wire_form import LARGEST


class MessageType(StrEnum):
    """Types that this project or Samza knows; others are kept and ignored."""

    SET_CONFIG = "set-config"
    SET_CHANGELOG = "set-changelog"
    SET_CONTAINER_HOST = "set-container-host-assignment"
    SET_TASK_CONTAINER = "set-task-container-assignment"
    SET_TASK_MODE = "set-task-mode-assignment"
    SET_TASK_PARTITION = "set-task-partition-assignment"
    SET_EXECUTION_ENV_CONTAINER_ID = "set-execution-env-container-id-mapping"
    SET_JOB_COORDINATOR_METADATA = "set-job-coordinator-metadata"
    SET_MIGRATION_INFO = "set-migration-info"
    SET_TASK_HOST = "set-task-host-assignment"
    SET_SUBMISSION = "set-submission"
    SET_AM_EPOCH = "set-am-epoch"
    SET_PROCESSOR_EPOCH = "set-processor-epoch"
    SET_EPOCH_FLOOR = "set-epoch-floor"
    SET_FENCED = "set-fenced"
    SET_STOPPED = "set-stopped"
    SET_JOB_MODEL_VERSION = "set-job-model-version"
    SET_FAILOVER = "set-failover"
    SET_RETRY_STATE = "set-retry-state"
    SET_JOB_END = "set-job-end"
    SET_STATE_RESET = "set-state-reset"
    SET_STATE_FACT = "set-state-fact"
    SET_CHANGELOG_TOPIC = "set-changelog-topic"
    SET_CHECKPOINT_TOPIC = "set-checkpoint-topic"
    SET_INPUT_TOPIC = "set-input-topic"
    SET_OUTPUT_TOPIC = "set-output-topic"
    SET_INPUT_PARTITIONS = "set-input-partitions"
    SET_PACKAGE = "set-package"
    SET_UPGRADE = "set-upgrade"
    SET_AUDITED = "set-audited"
    SET_USED_HOST = "set-used-host"


class Namespace(StrEnum):
    """What Samza keeps in the place of a type, with values of a format of their own."""

    PLACE_CONTAINER = "samza-place-container-v1"
    STARTPOINT = "samza-startpoint-v1"
    STARTPOINT_FAN_OUT = "samza-startpoint-v1-fan-out"
    DRAIN = "samza-drain-v1"


SUBMISSION_KEY = "submission"
AM_EPOCH_KEY = "am"
JOB_MODEL_VERSION_KEY = "job-model"
JOB_END_KEY = "job-end"
_TYPES = {t.value: t.value for t in MessageType}
"""{type: itself}: all records of a type share one text."""


class CoordinatorStreamMessage(NamedTuple):
    """One record. ``values`` None is a tombstone: the key has no value any more.

    A tuple, because a stream of hundreds of thousands is read at every start.

    Shapes: ``values`` {name: text}, empty where the record has none. ``raw``: the record's value as
    it is, of every type that is not in ``MessageType``; None for those that are. Units:
    ``timestamp_ms`` milliseconds since 1970, at most LATEST_MS.
    """

    type: str
    key: str
    values: Mapping[str, str] | None
    source: str = ""
    host: str = ""
    username: str = ""
    timestamp_ms: int = 0
    has_text_version: bool = False
    """Whether the key's version is text, as in the document: other key bytes than ours."""
    raw: bytes | None = None

    @property
    def is_tombstone(self) -> bool:
        """Whether the record deletes its key."""
        return self.values is None

    def value(self, *names: str) -> str | None:
        """Return the first of ``names`` that the values hold, None where they hold none of them."""
        values = self.values or {}
        for name in names:
            if name in values:
                return values[name]
        return None

    def stamped(
        self, *, source: str, host: str, username: str, timestamp_ms: int
    ) -> CoordinatorStreamMessage:
        """Return this message as written by ``source``; a source that it has already stays.

        User, host and time stay too where it has a user: one that asks by HTTP, from that address.
        """
        return self._replace(
            source=self.source or source,
            host=self.host if self.username else host,
            username=self.username or username,
            timestamp_ms=(self.username and self.timestamp_ms) or timestamp_ms,
        )


# ------------------------------------------------------------------------------------------- bytes

_CONTROL = re.compile(r"\\\\|\\u00[01][0-9a-f]")
_to_text = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def _json(value: object) -> bytes:
    """Return compact JSON as Jackson writes it: control characters in upper-case hex."""
    text = _to_text(value)
    if "\\u00" in text:
        text = _CONTROL.sub(lambda m: m[0] if m[0] == "\\\\" else "\\u" + m[0][2:].upper(), text)
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise WireError(f"text that is not Unicode cannot be written: {error}") from None


def list_text(value: object) -> str:
    """Return the JSON text that stands for a list among the values of a record."""
    return _json(value).decode()


def encode(message: CoordinatorStreamMessage) -> tuple[bytes, bytes | None]:
    """Return the record's key and value, byte for byte as Samza writes them.

    The value is None for a tombstone.

    WireError: a text holds half of a surrogate pair.
    """
    version = TEXT_VERSION if message.has_text_version else VERSION
    key = _json([version, message.type, message.key])
    if message.values is None or message.raw is not None:
        return key, message.raw
    value = {
        "host": message.host,
        "source": message.source,
        "values": dict(message.values),
        "username": message.username,
        "timestamp": message.timestamp_ms,
    }
    return key, _json(value)


def decode(key: bytes | None, value: bytes | None) -> CoordinatorStreamMessage:
    """Return the message that a record's bytes hold.

    WireError: the bytes are damaged, or the key's version is one that this reader does not know.
    """
    version, message_type, name = decode_key(key)
    has_text_version = version == TEXT_VERSION
    known_type = _TYPES.get(message_type)
    if value is None:
        return CoordinatorStreamMessage(
            known_type or message_type, name, None, has_text_version=has_text_version
        )
    raw = value if known_type is None else None
    values, envelope = decode_value(value) if raw is None else decode_foreign_value(value)
    field = envelope.get
    return CoordinatorStreamMessage(
        known_type or message_type,
        name,
        values,
        name_of(field("source")),
        name_of(field("host")),
        name_of(field("username")),
        time_of(field("timestamp")),
        has_text_version,
        raw,
    )


# ------------------------------------------------------------------------------------ constructors


def tombstone(message_type: str, key: str) -> CoordinatorStreamMessage:
    """Return the record after which ``key`` has no value any more."""
    return CoordinatorStreamMessage(message_type, key, None)


def set_config(name: str, value: str) -> CoordinatorStreamMessage:
    """Return the record by which the configuration key ``name`` has ``value``."""
    return CoordinatorStreamMessage(MessageType.SET_CONFIG, name, {"value": value})


def set_changelog(task_name: str, partition: int) -> CoordinatorStreamMessage:
    """Return the record by which the task's state is in ``partition`` of every changelog."""
    number = str(partition)
    values = {"Partition": number, "partition": number}
    return CoordinatorStreamMessage(MessageType.SET_CHANGELOG, task_name, values)


def set_container_host_assignment(
    processor_id: str, host: str, epoch: int | None = None
) -> CoordinatorStreamMessage:
    """Return the record that the processor last ran on ``host``, as its incarnation ``epoch``.

    None: said by an operator.
    """
    values = {"jmx-url": "", "host": host, "jmx-tunneling-url": "", "hostname": host}
    return CoordinatorStreamMessage(
        MessageType.SET_CONTAINER_HOST, processor_id, values | _epoch(epoch)
    )


def set_task_host_assignment(
    task_name: str, host: str, epoch: int | None = None
) -> CoordinatorStreamMessage:
    """Return the record that the task last ran on ``host``, as its processor's ``epoch``."""
    return CoordinatorStreamMessage(
        MessageType.SET_TASK_HOST, task_name, {"host": host} | _epoch(epoch)
    )


def set_task_container_assignment(task_name: str, processor_id: str) -> CoordinatorStreamMessage:
    """Return the record by which the task belongs to the processor."""
    return CoordinatorStreamMessage(
        MessageType.SET_TASK_CONTAINER, task_name, {"containerId": processor_id}
    )


def set_task_mode_assignment(task_name: str, mode: TaskMode) -> CoordinatorStreamMessage:
    """Return the record by which the task processes its input, or keeps a replica."""
    return CoordinatorStreamMessage(MessageType.SET_TASK_MODE, task_name, {"taskMode": mode.value})


def set_task_partition_assignment(
    ssp: SystemStreamPartition, task_names: Iterable[str]
) -> CoordinatorStreamMessage:
    """Return the record by which these tasks, standby tasks among them, read the input partition.

    The key is JSON inside JSON: the order of its names is the one of Samza's own records, or
    neither of us could delete what the other wrote.
    """
    names = list_text(list(task_names))
    return CoordinatorStreamMessage(
        MessageType.SET_TASK_PARTITION, partition_key(ssp), {"taskNames": names}
    )


def partition_key(ssp: SystemStreamPartition) -> str:
    """Return the key of the record of the tasks that read the input partition."""
    return _json(partition_body(ssp)).decode()


def of_namespace(namespace: str, key: str, value: bytes) -> CoordinatorStreamMessage:
    """Return a record whose value is not in the envelope but has a format of its own.

    ``namespace``: one of ``Namespace``, or any text that is no ``MessageType``.
    """
    return CoordinatorStreamMessage(namespace, key, {}, raw=value)


def _epoch(epoch: int | None) -> dict[str, str]:
    return {} if epoch is None else {"epoch": str(epoch)}


# ----------------------------------------------------------------------------------------- readers


def number(message: CoordinatorStreamMessage, *names: str, maximum: int = LARGEST) -> int:
    """Return the whole number from 0 to ``maximum`` under the first of ``names`` that is there.

    WireError: none is there, or it is not such a number.
    """
    value = whole_number(text := message.value(*names), maximum)
    if value is None:
        rule = f"{names[0]!r} is not a number from 0 to {maximum}"
        raise WireError(f"{message.type} {message.key!r:.200}: {rule}: {text!r:.200}")
    return value


def changelog_partition(message: CoordinatorStreamMessage) -> int:
    """Return the partition of a set-changelog record, in Samza's spelling or the document's."""
    return number(message, "Partition", "partition", maximum=INT_MAX)


def task_mode(message: CoordinatorStreamMessage) -> TaskMode:
    """Return the mode of a set-task-mode-assignment record.

    WireError: it is missing, or one that this reader does not know.
    """
    text = message.value("taskMode")
    try:
        return TaskMode(text)
    except ValueError:
        raise WireError(f"{message.type} {message.key!r}: unknown taskMode {text!r}") from None


def task_partition(
    message: CoordinatorStreamMessage,
) -> tuple[SystemStreamPartition, tuple[str, ...]]:
    """Return the input partition of a set-task-partition-assignment record, and its tasks.

    WireError: the key is not an input partition, or the value not a list of texts.
    """
    try:
        ssp = partition_of(as_object(parse_json(message.key, "key"), "key"))
        names = parse_json(message.value("taskNames") or "", "list taskNames")
    except WireError as error:
        raise WireError(f"{message.type} {message.key[:200]!r}: {error}") from None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise WireError(f"{message.type} {message.key!r}: taskNames is no list: {names!r:.200}")
    return ssp, tuple(names)


def host(message: CoordinatorStreamMessage) -> str | None:
    """Return the host of a locality record, in Samza's spelling or the document's.

    None where it is missing or blank.
    """
    text = message.value("host", "hostname")
    return text.strip() or None if text else None


def epoch(message: CoordinatorStreamMessage) -> int | None:
    """Return the epoch of the incarnation that wrote a locality record; None where it knew none."""
    return None if message.value("epoch") is None else number(message, "epoch")
