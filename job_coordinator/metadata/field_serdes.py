"""The one field of a coordinator stream record that a MetadataStore shows as the value of its key.

Types of one field show that field, as Samza's CoordinatorStreamValueSerde does; types of several
show all of them, as a JSON object of texts. Everything that is not a ``MessageType`` has no
envelope and shows its bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from homeport.config.errors import WireError
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.coordinator_stream.message_bytes import parse_json
from homeport.job_coordinator.model.json_values import compact_json

_Made = Callable[[str, str], CoordinatorStreamMessage]


def _under(message_type: MessageType, field: str) -> _Made:
    return lambda key, text: CoordinatorStreamMessage(message_type, key, {field: text})


def _changelog(task_name: str, text: str) -> CoordinatorStreamMessage:
    given = CoordinatorStreamMessage(MessageType.SET_CHANGELOG, task_name, {"Partition": text})
    return wire.set_changelog(task_name, wire.changelog_partition(given))


_FIELDS: Mapping[str, tuple[tuple[str, ...], _Made]] = {
    MessageType.SET_CONFIG: (("value",), wire.set_config),
    MessageType.SET_CHANGELOG: (("Partition", "partition"), _changelog),
    MessageType.SET_CONTAINER_HOST: (("host", "hostname"), wire.set_container_host_assignment),
    MessageType.SET_TASK_HOST: (("host", "hostname"), wire.set_task_host_assignment),
    MessageType.SET_TASK_CONTAINER: (("containerId",), wire.set_task_container_assignment),
    MessageType.SET_TASK_MODE: (("taskMode",), _under(MessageType.SET_TASK_MODE, "taskMode")),
    MessageType.SET_TASK_PARTITION: (
        ("taskNames",),
        _under(MessageType.SET_TASK_PARTITION, "taskNames"),
    ),
    MessageType.SET_EXECUTION_ENV_CONTAINER_ID: (
        ("execution-env-container-id",),
        wire.set_execution_env_container_id,
    ),
    MessageType.SET_JOB_COORDINATOR_METADATA: (
        ("meta-key",),
        _under(MessageType.SET_JOB_COORDINATOR_METADATA, "meta-key"),
    ),
}
"""{type: the names of its field, ours first; how a record is made of key and field}."""


def shown_value(message: CoordinatorStreamMessage) -> bytes | None:
    """What a MetadataStore shows of a record; None where its field is missing, or it deletes."""
    if message.is_tombstone or message.raw is not None:
        return message.raw
    if message.type in _FIELDS:
        text = message.value(*_FIELDS[message.type][0])
        return None if text is None else text.encode()
    return compact_json(message.values)


def message_of(namespace: str, key: str, value: bytes) -> CoordinatorStreamMessage:
    """The record by which ``key`` shows ``value``.

    Raises:
        WireError: the value is not what the namespace's records hold.
    """
    if namespace not in list(MessageType):
        return wire.of_namespace(namespace, key, value)
    try:
        text = value.decode()
    except UnicodeDecodeError as error:
        raise WireError(f"{namespace} {key!r}: the value is not UTF-8: {error}") from None
    if namespace in _FIELDS:
        return _FIELDS[namespace][1](key, text)
    values = parse_json(text, f"value of {namespace} {key!r}")
    if not isinstance(values, dict) or not all(isinstance(v, str) for v in values.values()):
        raise WireError(f"{namespace} {key!r}: the value is no map of texts: {text[:200]!r}")
    return CoordinatorStreamMessage(namespace, key, values)
