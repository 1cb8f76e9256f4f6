"""Exact bytes of the coordinator stream's records, and what is made of other writers' bytes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import own_records
import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport.config.errors import WireError
from homeport.config.settings.input_section import LATEST_MS
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
    Namespace,
)
from homeport.job_coordinator.coordinator_stream.message_bytes import parse_json, time_of
from homeport.job_coordinator.coordinator_stream.record_values import record_of
from homeport.job_coordinator.metadata.topics import InputTopic
from homeport.job_coordinator.model.job_model import SystemStreamPartition, TaskMode

_TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def _bytes(message: CoordinatorStreamMessage) -> tuple[bytes, bytes | None]:
    return wire.encode(
        message.stamped(
            source="job-runner", host="127.0.0.1", username="root", timestamp_ms=1795247638752
        )
    )


def _value(values: bytes) -> bytes:
    return (
        b'{"host":"127.0.0.1","source":"job-runner","values":'
        + values
        + b',"username":"root","timestamp":1795247638752}'
    )


_SSP = SystemStreamPartition("kafka", "in", 0)
_WRITTEN = [
    (wire.set_config("job.name", "j"), "job.name", '{"value":"j"}'),
    (wire.set_changelog("Partition 0", 3), "Partition 0", '{"Partition":"3","partition":"3"}'),
    (
        wire.set_container_host_assignment("0", "nm1", 4),
        "0",
        '{"jmx-url":"","host":"nm1","jmx-tunneling-url":"","hostname":"nm1","epoch":"4"}',
    ),
    (
        wire.set_container_host_assignment("0", "nm1"),
        "0",
        '{"jmx-url":"","host":"nm1","jmx-tunneling-url":"","hostname":"nm1"}',
    ),
    (wire.set_task_host_assignment("t", "nm1", 4), "t", '{"host":"nm1","epoch":"4"}'),
    (wire.set_task_container_assignment("t", "1"), "t", '{"containerId":"1"}'),
    (wire.set_task_mode_assignment("t", TaskMode.ACTIVE), "t", '{"taskMode":"Active"}'),
    (wire.set_task_mode_assignment("t", TaskMode.STANDBY), "t", '{"taskMode":"Standby"}'),
    (
        wire.set_task_partition_assignment(_SSP, ["t", "Standby-t-0"]),
        r"{\"system\":\"kafka\",\"partition\":0,\"stream\":\"in\",\"keyBucket\":-1}",
        r'{"taskNames":"[\"t\",\"Standby-t-0\"]"}',
    ),
    (
        CoordinatorStreamMessage(
            MessageType.SET_JOB_COORDINATOR_METADATA, "YARN", {"meta-key": '{"epoch-id":"1"}'}
        ),
        "YARN",
        r'{"meta-key":"{\"epoch-id\":\"1\"}"}',
    ),
    (
        CoordinatorStreamMessage(MessageType.SET_EXECUTION_ENV_CONTAINER_ID, "0", {"a": "b"}),
        "0",
        '{"a":"b"}',
    ),
    (CoordinatorStreamMessage("set-migration-info", "m", {"0910": "true"}), "m", '{"0910":"true"}'),
    (own_records.set_submission(2), "submission", '{"number":"2"}'),
    (
        own_records.set_processor_epoch("0", 6, 2, []),
        "0",
        '{"epoch":"6","model-version":"2","fence":"[]"}',
    ),
    (
        own_records.set_failover("0", 4, None, None, step="other-host"),
        "0",
        '{"epoch":"4","step":"other-host","used":"[]","cause":""}',
    ),
    (
        record_of(MessageType.SET_INPUT_TOPIC, "kafka.in", InputTopic("id", 2)),
        "kafka.in",
        '{"topic-id":"id","submission":"2"}',
    ),
]


@pytest.mark.parametrize(("message", "key", "values"), _WRITTEN)
def test_bytes_of_each_type(message: CoordinatorStreamMessage, key: str, values: str) -> None:
    """Samza's spelling, the document's beside it; a value that is not known is left out."""
    assert _bytes(message) == (f'[1,"{message.type}","{key}"]'.encode(), _value(values.encode()))


def test_every_type_that_is_written_has_its_bytes() -> None:
    """Here, or in a file of ``tests/golden``."""
    files = (Path(__file__).resolve().parents[3] / "golden/coordinator-stream").iterdir()
    golden = {json.loads(file.read_bytes().splitlines()[0])[1] for file in files}
    assert golden | {message.type for message, _, _ in _WRITTEN} == set(MessageType)


def test_a_deletion_is_a_null_value() -> None:
    """A tombstone has the key of what it deletes, and no value at all."""
    assert _bytes(wire.tombstone("set-config", "a")) == (b'[1,"set-config","a"]', None)
    assert wire.decode(b'[1,"set-config","a"]', None) == wire.tombstone("set-config", "a")
    assert wire.tombstone("set-config", "a").value("value") is None


def test_text_is_written_as_jackson_writes_it() -> None:
    """Non-ASCII stays UTF-8, slashes stay, control characters get upper-case hex digits."""
    key, value = _bytes(wire.set_config("größe/→", 'a"\\\n\x1f\x7f\\u001f'))
    assert key == '[1,"set-config","größe/→"]'.encode()
    assert value == _value(b'{"value":"a\\"\\\\\\n\\u001F\x7f\\\\u001f"}')


def test_half_a_surrogate_pair_is_refused() -> None:
    """Text that UTF-8 cannot hold is an error of the writer, not of every reader."""
    with pytest.raises(WireError, match="not Unicode"):
        wire.encode(wire.set_config("a", "\ud800"))


def test_samzas_records_are_read() -> None:
    """Samza 1.8 writes neither the document's spellings nor our epoch."""
    locality = wire.decode(
        b'[1,"set-container-host-assignment","0"]',
        _value(b'{"jmx-url":"","host":"h","jmx-tunneling-url":""}'),
    )
    assert (wire.host(locality), wire.epoch(locality)) == ("h", None)
    assert (locality.source, locality.host) == ("job-runner", "127.0.0.1")
    assert (locality.username, locality.timestamp_ms) == ("root", 1795247638752)
    changelog = wire.decode(b'[1,"set-changelog","Partition 0"]', _value(b'{"Partition":"7"}'))
    assert wire.changelog_partition(changelog) == 7


def test_spaces_around_json_are_json() -> None:
    """A record written by hand has them."""
    assert parse_json(b' {"a": 1} \n', "value") == parse_json('{"a":1}', "value") == {"a": 1}
    with pytest.raises(WireError, match="the value is not JSON"):
        parse_json(b'{"a": 1} x', "value")


@pytest.mark.parametrize(
    "value", [b'"hunter2"', b'{"values":"hunter2"}', b'{"values":{"value":"hunter2"']
)
def test_a_damaged_value_is_in_no_message(value: bytes) -> None:
    """The driver logs what it skips, and the value may be that of a secret key."""
    with pytest.raises(WireError) as caught:
        wire.decode(b'[1,"set-config","my.password"]', value)
    assert "hunter2" not in str(caught.value)


def test_the_documents_records_are_read() -> None:
    """COORD has the version as text, ``partition`` and ``hostname``; a twin keeps its own key."""
    changelog = wire.decode(b'["1", "set-changelog", "t"]', b'{"values": {"partition": 3}}')
    assert wire.changelog_partition(changelog) == 3
    assert changelog.has_text_version
    assert wire.encode(changelog)[0] == b'["1","set-changelog","t"]'
    locality = wire.decode(
        b'["1","set-container-host-assignment","0"]', b'{"values":{"hostname":" h "}}'
    )
    assert wire.host(locality) == "h"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"no json", b"{}"),
        (b"\xff", b"{}"),
        (b'[1,"set-config"]', b'{"values":{}}'),
        (b'[2,"set-config","a"]', b'{"values":{}}'),
        (b'[true,"set-config","a"]', b'{"values":{}}'),
        (b'[1,7,"a"]', b'{"values":{}}'),
        (b'[1,"set-config",null]', b'{"values":{}}'),
        (b'[1,"set-config","\\ud800"]', b'{"values":{}}'),
        (b'[1,"set-config","a"]', b"no json"),
        (b'[1,"set-config","a"]', b"[]"),
        (b'[1,"set-config","a"]', b'{"values":[]}'),
        (b'[1,"set-config","a"]', b"[" * 100_000),
        (b'[1,"set-config","a"]', b""),
        (b'[1,"set-config","a"]', b"null"),
        (b'[[],"set-config","a"]', b'{"values":{}}'),
    ],
)
def test_damaged_records_are_reported(key: bytes | None, value: bytes) -> None:
    """Bytes without the agreed form raise WireError and nothing else."""
    with pytest.raises(WireError):
        wire.decode(key, value)


def test_nesting_is_text_or_damage() -> None:
    """However deep a value is nested, it becomes text or WireError, at every depth on the way."""
    outcomes: set[object] = set()
    for depth in (*range(1, sys.getrecursionlimit() + 50), 1_000_000):
        nested = b"[" * depth + b"]" * depth
        try:
            message = wire.decode(b'[1,"set-config","a"]', b'{"values":{"value":%s}}' % nested)
            outcomes.add(message.value("value") == nested.decode())
        except WireError:
            outcomes.add("damage")
    assert outcomes == {True, "damage"}


@pytest.mark.parametrize(
    ("namespace", "name"),
    [
        (Namespace.PLACE_CONTAINER, b"samza-place-container-v1"),
        (Namespace.STARTPOINT, b"samza-startpoint-v1"),
        (Namespace.STARTPOINT_FAN_OUT, b"samza-startpoint-v1-fan-out"),
        (Namespace.DRAIN, b"samza-drain-v1"),
    ],
)
def test_bytes_of_each_namespace(namespace: Namespace, name: bytes) -> None:
    """A namespace has the place of the type, and its value stands in the record without more."""
    message, key = wire.of_namespace(namespace, "kafka.in", b"{}"), b'[1,"%s","kafka.in"]' % name
    assert _bytes(message) == (key, b"{}")
    assert wire.decode(key, b"{}") == message


@pytest.mark.parametrize("value", [b"no json", b"[]", b'{"storedAt":1}', b'{"values":3}', b"\xff"])
def test_unknown_types_are_kept_whatever_their_value(value: bytes) -> None:
    """Samza's start points and placements have other values; they are no damage."""
    message = wire.decode(b'[1,"samza-startpoint-v1","kafka.in.0"]', value)
    assert (message.type, message.key, message.values) == ("samza-startpoint-v1", "kafka.in.0", {})
    assert message.raw == value


def test_missing_fields_cost_only_themselves() -> None:
    """A value with nothing but its map is read; null in the map counts as missing."""
    message = wire.decode(
        b'[1,"set-config","a"]', b'{"timestamp":"x","host":3,"values":{"value":null,"b":true}}'
    )
    assert (message.host, message.timestamp_ms, message.values) == ("", 0, {"b": "true"})
    assert message.value("value") is None


def _changelog(values: dict[str, str]) -> CoordinatorStreamMessage:
    return CoordinatorStreamMessage(MessageType.SET_CHANGELOG, "Partition 0", values)


def test_numbers_are_checked() -> None:
    """A number that is none, and one that is missing, are reported with type and key."""
    for values in ({"Partition": "x"}, {"Partition": ""}, {"Partition": "1" * 30}, {}):
        with pytest.raises(WireError, match="set-changelog 'Partition 0'"):
            wire.changelog_partition(_changelog(values))


@pytest.mark.parametrize(
    ("named", "stamped"),
    [
        ({"source": "job-runner"}, ("job-runner", "h", "u")),
        ({"username": "ada", "host": "10.0.0.7"}, ("homeport", "10.0.0.7", "ada")),
    ],
    ids=["source", "user"],
)
def test_a_stamp_keeps_what_a_message_names(
    named: dict[str, Any], stamped: tuple[str, ...]
) -> None:
    """The store's source fills only what is empty; a user is named with the host it asks from."""
    message = wire.set_config("a", "b")._replace(**named)
    found = message.stamped(source="homeport", host="h", username="u", timestamp_ms=1)
    assert (found.source, found.host, found.username) == stamped


@given(
    st.builds(
        CoordinatorStreamMessage,
        type=st.sampled_from([t.value for t in MessageType]) | _TEXT,
        key=_TEXT,
        values=st.none() | st.dictionaries(_TEXT, _TEXT),
        source=_TEXT,
        host=_TEXT,
        username=_TEXT,
        timestamp_ms=st.integers(0, LATEST_MS),
        has_text_version=st.booleans(),
        raw=st.none(),
    )
)
def test_a_written_message_is_read_back(message: CoordinatorStreamMessage) -> None:
    """decode(encode(m)) is m; a deletion has but its key, an unknown type its bytes as well."""
    if message.is_tombstone:
        message = CoordinatorStreamMessage(
            message.type, message.key, None, has_text_version=message.has_text_version
        )
    key, value = wire.encode(message)
    raw = None if message.type in list(MessageType) else value
    assert wire.decode(key, value) == message._replace(raw=raw)


@given(_TEXT, st.binary())
def test_values_of_their_own_format_stay_as_they_are(key: str, value: bytes) -> None:
    """What is kept in a namespace without an envelope comes back byte for byte."""
    message = wire.of_namespace(Namespace.DRAIN, key, value)
    assert wire.encode(message)[1] == value
    assert wire.decode(*wire.encode(message)).raw == value


@given(st.tuples(_TEXT, _TEXT), st.tuples(_TEXT, _TEXT))
def test_keys_are_equal_when_their_bytes_are(one: tuple[str, str], two: tuple[str, str]) -> None:
    """Compaction sees as one key exactly what we see as one key."""
    first, second = (wire.encode(wire.tombstone(*name))[0] for name in (one, two))
    assert (first == second) == (one == two)


@pytest.mark.parametrize("key", [b'"abc"', b'{"1":1,"2":2,"3":3}', b"[1,2]", b"[1,2,3,4]"])
def test_a_key_that_is_no_list_of_three_is_damaged(key: bytes) -> None:
    """Also where it has a length of three."""
    with pytest.raises(WireError, match="not a list of three"):
        wire.decode(key, b"{}")


@pytest.mark.parametrize(
    ("field", "expected"),
    [(0, 0), (LATEST_MS, LATEST_MS), (-1, 0), (LATEST_MS + 1, 0), (True, 0), ("5", 0), (None, 0)],
)
def test_only_a_valid_time_of_an_envelope_counts(field: object, expected: int) -> None:
    """All else counts as none."""
    assert time_of(field) == expected


def test_a_changelog_partition_is_a_number_of_javas() -> None:
    """Samza's reader takes no larger one."""
    largest = 2**31 - 1
    assert wire.changelog_partition(_changelog({"Partition": str(largest)})) == largest
    with pytest.raises(WireError, match="not a number from 0 to 2147483647"):
        wire.changelog_partition(_changelog({"Partition": str(largest + 1)}))
