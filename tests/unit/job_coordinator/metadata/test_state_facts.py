"""What the job's state was made with."""

from __future__ import annotations

import pytest

from homeport.config.errors import WireError
from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.metadata import state_facts
from homeport.job_coordinator.metadata.state_facts import StateFactManager, StoreForms
from homeport.job_coordinator.metadata.state_reset import state_removed


def record(key: str, /, **values: str) -> CoordinatorStreamMessage:
    """A record of the type."""
    return CoordinatorStreamMessage(MessageType.SET_STATE_FACT, key, values)


def test_the_forms_of_a_changelog_are_those_of_the_first_container(
    stream: InMemoryCoordinatorStream,
) -> None:
    """They stay, whatever a later one has; a reset of the state takes them away."""
    facts = StateFactManager(stream)
    first = {"kafka.a": StoreForms("string", "json")}
    stream.write(facts.form_messages(first))
    stream.catch_up()
    later = {"kafka.a": StoreForms("string", "long"), "kafka.b": StoreForms("long", "bytes")}
    assert [m.key for m in facts.form_messages(later)] == ["changelog kafka.b"]
    assert facts.forms() == first
    assert facts.partitions() == {}
    stream.write(state_removed(stream))
    stream.catch_up()
    assert facts.forms() == {}


def test_a_damaged_record_is_as_none(stream: InMemoryCoordinatorStream) -> None:
    """What it should have is what set-changelog has, or the next container writes."""
    stream.write(
        [
            record("partitions 0", **{"0": "t0", "x": "t1"}),
            record("partitions 256", **{"256": "t256"}),
            record("changelog kafka.a", key="string"),
            record("changelog kafka.b", key="string", msg="json"),
            record("another kind", a="b"),
        ]
    )
    stream.catch_up()
    facts = StateFactManager(stream)
    assert facts.partitions() == {"t256": 256}
    with pytest.raises(WireError, match="are no partition and its task"):
        state_facts._tasks_of(record("partitions 0", **{"0": "\ud800"}))
    assert facts.forms() == {"kafka.b": StoreForms("string", "json")}
