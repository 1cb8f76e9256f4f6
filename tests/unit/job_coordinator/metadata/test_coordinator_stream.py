"""How records fold into the present state."""

from __future__ import annotations

from homeport.job_coordinator.metadata import coordinator_stream_message as wire
from homeport.job_coordinator.metadata.coordinator_stream import (
    InMemoryCoordinatorStream,
    StreamState,
)
from homeport.job_coordinator.metadata.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)


def _state(*messages: CoordinatorStreamMessage) -> StreamState:
    state = StreamState()
    for message in messages:
        state.apply(message)
    return state


def _hosts(state: StreamState, message_type: MessageType) -> dict[str, str | None]:
    return {key: wire.host(m) for key, m in state.latest(message_type).items()}


def test_the_last_record_of_a_key_counts() -> None:
    """v1, v2, v1 again: the last one wins, and a deletion takes the key away."""
    state = _state(*(wire.set_config("a", v) for v in ("1", "2", "1")))
    assert state.latest("set-config")["a"].value("value") == "1"
    state.apply(wire.tombstone("set-config", "a"))
    assert state.latest("set-config") == {}


def test_types_are_kept_apart_and_unknown_ones_kept() -> None:
    """The same key under two types is two records; a type that nobody knows is there too."""
    other = CoordinatorStreamMessage("samza-drain-v1", "a", {})
    state = _state(wire.set_config("a", "1"), other)
    assert list(state.latest("samza-drain-v1")) == ["a"]
    assert state.latest("no-such-type") == {}


def test_a_late_locality_record_is_ignored() -> None:
    """An incarnation that woke up after its successor's permit does not move the processor."""
    state = _state(
        wire.set_processor_epoch("0", 4, 1, []),
        wire.set_task_container_assignment("t", "0"),
        wire.set_container_host_assignment("0", "nm1", 4),
        wire.set_task_host_assignment("t", "nm1", 4),
        wire.set_processor_epoch("0", 5, 1, []),
        wire.set_container_host_assignment("0", "late", 4),
        wire.set_task_host_assignment("t", "late", 4),
    )
    assert _hosts(state, MessageType.SET_CONTAINER_HOST) == {"0": "nm1"}
    assert _hosts(state, MessageType.SET_TASK_HOST) == {"t": "nm1"}


def test_locality_outlives_a_permit_that_came_to_nothing() -> None:
    """A container that dies before its own locality record does not lose its home."""
    state = _state(
        wire.set_processor_epoch("0", 4, 1, []),
        wire.set_container_host_assignment("0", "nm1", 4),
        wire.set_processor_epoch("0", 5, 1, []),
    )
    assert _hosts(state, MessageType.SET_CONTAINER_HOST) == {"0": "nm1"}


def test_locality_without_an_epoch_is_an_operators_word() -> None:
    """The writer tool and Samza's containers know no epoch; their records count."""
    state = _state(
        wire.set_processor_epoch("0", 5, 1, []), wire.set_container_host_assignment("0", "nm2")
    )
    assert _hosts(state, MessageType.SET_CONTAINER_HOST) == {"0": "nm2"}


def test_epochs_of_other_processors_do_not_matter() -> None:
    """A task is measured by the processor that it belongs to now; an unreadable epoch by none."""
    state = _state(
        wire.set_processor_epoch("1", 9, 1, []),
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


def test_a_catch_up_returns_what_is_new() -> None:
    """Each record is returned once, in order."""
    stream = InMemoryCoordinatorStream()
    stream.write([wire.set_config("a", "1"), wire.set_config("b", "2")])
    assert [m.key for m in stream.catch_up()] == ["a", "b"]
    assert stream.catch_up() == ()
