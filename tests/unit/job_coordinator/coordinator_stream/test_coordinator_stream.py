"""How records fold into the present state."""

from __future__ import annotations

import json

import own_records
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stream_in_memory import InMemoryCoordinatorStream

from homeport.config.config import Config
from homeport.config.errors import ConfigError, InvariantViolation
from homeport.config.settings.sections import JobConfig
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import (
    EmptyCoordinatorStream,
    StreamState,
)
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.coordinator_stream.stream_owner import StreamOwner


def _state(*messages: CoordinatorStreamMessage) -> StreamState:
    state = StreamState()
    for message in messages:
        state.apply(message)
    return state


def _hosts(state: StreamState, message_type: MessageType) -> dict[str, str | None]:
    return {key: wire.host(m) for key, m in state.latest(message_type).items()}


def test_types_are_kept_apart_and_unknown_ones_kept() -> None:
    """The same key under two types is two records; an unknown type is there too."""
    other = CoordinatorStreamMessage("samza-drain-v1", "a", {})
    state = _state(wire.set_config("a", "1"), other)
    assert list(state.latest("samza-drain-v1")) == ["a"]
    assert state.latest("no-such-type") == {}


def test_a_late_locality_record_is_ignored() -> None:
    """An incarnation that woke up after its successor's permit does not move the processor."""
    state = _state(
        own_records.set_processor_epoch("0", 4, 1, []),
        wire.set_task_container_assignment("t", "0"),
        wire.set_container_host_assignment("0", "nm1", 4),
        wire.set_task_host_assignment("t", "nm1", 4),
        own_records.set_processor_epoch("0", 5, 1, []),
        wire.set_container_host_assignment("0", "late", 4),
        wire.set_task_host_assignment("t", "late", 4),
    )
    assert _hosts(state, MessageType.SET_CONTAINER_HOST) == {"0": "nm1"}
    assert _hosts(state, MessageType.SET_TASK_HOST) == {"t": "nm1"}


def test_locality_outlives_a_permit_that_came_to_nothing() -> None:
    """A container that dies before its own locality record does not lose its home."""
    state = _state(
        own_records.set_processor_epoch("0", 4, 1, []),
        wire.set_container_host_assignment("0", "nm1", 4),
        own_records.set_processor_epoch("0", 5, 1, []),
    )
    assert _hosts(state, MessageType.SET_CONTAINER_HOST) == {"0": "nm1"}


def test_a_locality_without_an_epoch_is_an_operators_change() -> None:
    """The writer tool and Samza's containers know no epoch; their records count."""
    state = _state(
        own_records.set_processor_epoch("0", 5, 1, []),
        wire.set_container_host_assignment("0", "nm2"),
    )
    assert _hosts(state, MessageType.SET_CONTAINER_HOST) == {"0": "nm2"}


def test_a_failover_outlasts_the_late_record_of_the_containers_it_moved() -> None:
    """The active was lost while it started, the standby must stop; neither has a new epoch.

    What they write then is as late as that of a succeeded incarnation; an operator's word counts,
    and so does that of their next incarnations.
    """
    state = _state(
        wire.set_task_container_assignment("t", "0"),
        own_records.set_processor_epoch("0", 4, 1, []),
        own_records.set_processor_epoch("0-1", 3, 1, []),
        wire.set_container_host_assignment("0-1", "nm2", 3),
        wire.tombstone(MessageType.SET_CONTAINER_HOST, "0-1"),
        wire.set_container_host_assignment("0", "nm2", 4),
        wire.set_task_host_assignment("t", "nm2", 4),
        own_records.set_failover("0", 4, "0-1", "nm2", step="standby"),
        wire.set_container_host_assignment("0", "nm1", 4),
        wire.set_task_host_assignment("t", "nm1", 4),
        wire.set_container_host_assignment("0-1", "nm2", 3),
    )
    assert _hosts(state, MessageType.SET_CONTAINER_HOST) == {"0": "nm2"}
    assert _hosts(state, MessageType.SET_TASK_HOST) == {"t": "nm2"}
    state.apply(wire.tombstone(MessageType.SET_FAILOVER, "0"))
    state.apply(wire.set_container_host_assignment("0-1", "nm2", 3))
    assert _hosts(state, MessageType.SET_CONTAINER_HOST) == {"0": "nm2"}
    state.apply(wire.set_container_host_assignment("0", "nm4"))
    state.apply(own_records.set_processor_epoch("0-1", 4, 1, []))
    state.apply(wire.set_container_host_assignment("0-1", "nm3", 4))
    assert _hosts(state, MessageType.SET_CONTAINER_HOST) == {"0": "nm4", "0-1": "nm3"}


def test_a_standby_of_an_unknown_epoch_says_where_it_is() -> None:
    """A failover uses it; no epoch of it is known, so no word of it can be of before."""
    state = _state(
        own_records.set_failover("0", 4, "0-1", "nm2", step="standby"),
        wire.set_container_host_assignment("0-1", "nm3", 1),
    )
    assert _hosts(state, MessageType.SET_CONTAINER_HOST) == {"0-1": "nm3"}


def test_a_task_may_be_named_like_a_processor() -> None:
    """Only records of locality can be late: the permit of processor 0 is none of task 0."""
    state = _state(
        own_records.set_processor_epoch("1", 9, 1, []),
        wire.set_task_container_assignment("0", "1"),
        own_records.set_processor_epoch("0", 4, 1, []),
    )
    assert list(state.latest(MessageType.SET_PROCESSOR_EPOCH)) == ["1", "0"]


def test_a_failover_that_cannot_be_read_moves_no_container() -> None:
    """Each reader reports it; where processors run counts as before."""
    state = _state(
        CoordinatorStreamMessage(MessageType.SET_FAILOVER, "0", {"epoch": "x", "standby": "1"}),
        wire.set_container_host_assignment("0", "nm1", 4),
        wire.set_container_host_assignment("1", "nm2", 4),
    )
    assert _hosts(state, MessageType.SET_CONTAINER_HOST) == {"0": "nm1", "1": "nm2"}


def test_epochs_of_other_processors_do_not_matter() -> None:
    """A task is measured by the processor that it belongs to now; an unreadable epoch by none."""
    state = _state(
        own_records.set_processor_epoch("1", 9, 1, []),
        wire.set_task_container_assignment("t", "0"),
        wire.set_task_host_assignment("t", "nm1", 2),
        CoordinatorStreamMessage(
            MessageType.SET_CONTAINER_HOST, "1", {"host": "nm3", "epoch": "x"}
        ),
    )
    assert _hosts(state, MessageType.SET_TASK_HOST) == {"t": "nm1"}
    assert _hosts(state, MessageType.SET_CONTAINER_HOST) == {"1": "nm3"}


def test_a_twin_in_the_documents_form_is_deleted_with_its_key() -> None:
    """To Kafka ["1",..] and [1,..] are two keys; writing ours deletes the other one."""
    stream = InMemoryCoordinatorStream()
    stream.log.append((b'["1","set-config","a"]', b'{"values":{"value":"old"}}'))
    stream.catch_up()
    stream.write([wire.tombstone("set-config", "a"), wire.set_config("b", "1")])
    assert stream.log[1] == (b'["1","set-config","a"]', None)
    assert stream.log[2] == (b'[1,"set-config","a"]', None)
    stream.catch_up()
    stream.write([wire.set_config("a", "new")])
    assert len(stream.log) == 5
    stream.catch_up()
    assert stream.latest("set-config")["a"].value("value") == "new"


def test_a_twin_that_is_written_itself_has_no_other_twin(stream: InMemoryCoordinatorStream) -> None:
    """A record in the document's form is written as it is: its own key is not deleted before it."""
    stream.log.append((b'["1","set-config","a"]', b'{"values":{"value":"old"}}'))
    stream.catch_up()
    stream.write([CoordinatorStreamMessage("set-config", "a", None, has_text_version=True)])
    assert stream.log[1:] == [(b'["1","set-config","a"]', None)]


def test_damaged_records_change_nothing(
    stream: InMemoryCoordinatorStream, caplog: pytest.LogCaptureFixture
) -> None:
    """Each is counted and named by its offset; what its key had before stays, others are read."""
    stream.write([wire.set_config("a", "1")])
    stream.log += [(b'[1,"set-config","a"]', b"no json"), (b"no list", b"{}")]
    stream.write([wire.set_config("b", "1")])
    assert [m.key for m in stream.catch_up()] == ["a", "b"]
    assert list(stream.latest("set-config")) == ["a", "b"]
    assert stream.damaged_count == 2
    assert "damaged record at offset 1 skipped: the value is not JSON" in caplog.text
    assert "damaged record at offset 2 skipped: the key is not JSON" in caplog.text


def test_a_topic_full_of_damage_is_reported_briefly(
    stream: InMemoryCoordinatorStream, caplog: pytest.LogCaptureFixture
) -> None:
    """A hundred records are named, all are counted."""
    stream.log += [(b"garbage", b"garbage")] * 250
    assert stream.catch_up() == ()
    assert stream.damaged_count == 250
    assert len(caplog.records) == 100
    assert caplog.records[-1].message.endswith("more will only be counted")


_KEYS = st.sampled_from(["a", "b", "c"])
_TYPES = st.sampled_from(["set-config", "set-changelog", "samza-drain-v1"])
_VALUES = st.none() | st.sampled_from([b'{"values":{"value":"1"}}', b'{"values":{}}', b"damaged"])
_RECORDS = st.lists(st.tuples(st.sampled_from(["1", '"1"', "2"]), _TYPES, _KEYS, _VALUES))


@given(_RECORDS, st.integers(0, 20))
def test_the_state_is_that_of_the_log(
    records: list[tuple[str, str, str, bytes | None]], caught_up_at: int
) -> None:
    """Whatever is in the log, in one catch-up or two: per key the last record that is sound."""
    stream = InMemoryCoordinatorStream()
    expected: dict[tuple[str, str], bytes] = {}
    damaged = 0
    for number, (version, message_type, key, value) in enumerate(records):
        if number == caught_up_at:
            stream.catch_up()
        stream.log.append((f'[{version},"{message_type}","{key}"]'.encode(), value))
        is_raw = message_type == "samza-drain-v1"
        if version == "2" or (value == b"damaged" and not is_raw):
            damaged += 1
            continue
        expected.pop((message_type, key), None)
        if value is not None:
            expected[message_type, key] = value
    stream.catch_up()
    for message_type in ("set-config", "set-changelog", "samza-drain-v1"):
        found = stream.latest(message_type)
        assert list(found) == [key for kind, key in expected if kind == message_type]
        for key, message in found.items():
            value = expected[message_type, key]
            assert message.values == (json.loads(value)["values"] if value != b"damaged" else {})
    assert stream.damaged_count == damaged


def test_packages_are_left_out_where_they_are_of_no_use() -> None:
    """They are megabytes: neither counted as damage nor kept, and all else is as it was."""
    log = InMemoryCoordinatorStream()
    log.write(
        [
            wire.set_config("a", "1"),
            CoordinatorStreamMessage(MessageType.SET_PACKAGE, "ab" * 32 + "/0", {"data": "UEs="}),
            wire.tombstone(MessageType.SET_PACKAGE, "cd" * 32),
        ]
    )
    with_all, without = StreamState(), StreamState(has_packages=False)
    for offset, record in enumerate(log.log):
        with_all.take(offset, *record)
        without.take(offset, *record)
    assert list(with_all.latest(MessageType.SET_PACKAGE)) == ["ab" * 32 + "/0"]
    assert without.latest(MessageType.SET_PACKAGE) == {}
    assert without.latest(MessageType.SET_CONFIG) == with_all.latest(MessageType.SET_CONFIG)
    assert without.damaged_count == 0
    without.take(3, None, None)
    assert without.damaged_count == 1


def job(name: str, job_id: str | None = None) -> JobConfig:
    """The job of that name; without an id it has the default one."""
    values = {"job.name": name, "job.default.system": "kafka"}
    return JobConfig.of(Config(values if job_id is None else {**values, "job.id": job_id}))


def stream(**values: str) -> dict[str, CoordinatorStreamMessage]:
    """The stream's configuration; a dot is written as an underscore."""
    named = {key.replace("_", "."): value for key, value in values.items()}
    return {key: wire.set_config(key, value) for key, value in named.items()}


@pytest.mark.parametrize(
    ("name", "job_id", "key", "value"),
    [("etl-daily", None, "job.name", "etl-daily"), ("etl_daily", "a_b", "job.id", "a_b")],
)
def test_the_stream_of_another_job_is_refused(
    name: str, job_id: str | None, key: str, value: str
) -> None:
    """One line names the key, both jobs and the remedy; a reset of the state is never advised."""
    other = stream(job_name="etl_daily", job_id="a-b" if job_id else "1")
    wanted = job(name, job_id)
    with pytest.raises(ConfigError) as caught:
        StreamOwner.of(wanted).require(other, wanted.coordinator_topic)
    assert str(caught.value) == (
        f"{key} = '{value}': the coordinator stream '{wanted.coordinator_topic}' belongs to the "
        f"job with job.name = 'etl_daily' and job.id = '{'a-b' if job_id else '1'}': in names of "
        "topics _ and - are the same; choose another job.name or job.id"
    )


def test_the_own_stream_and_an_unowned_one_are_accepted() -> None:
    """A new one, one of Samza's without a name, and one whose default id was never written."""
    own = StreamOwner.of(job("etl_daily"))
    for configs in (
        stream(),
        stream(job_id="7"),
        stream(job_name=""),
        stream(job_name="etl_daily"),
        stream(job_name="etl_daily", job_id="1"),
    ):
        own.require(configs, "t")


def test_the_stream_of_a_job_never_submitted_has_no_records_and_takes_none() -> None:
    """A tool reads it as any other, and cannot mistake it for a topic."""
    empty = EmptyCoordinatorStream()
    assert (empty.catch_up(), empty.latest(MessageType.SET_CONFIG)) == ((), {})
    with pytest.raises(InvariantViolation, match="takes 1 records"):
        empty.write([wire.set_config("a", "b")])
