"""Topics that tasks of one job write and read: how they are declared, read and refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.settings.config_diff import ConfigDiff
from homeport.config.settings.input_section import (
    InputPolicy,
    LostInput,
    OffsetDefault,
    repartition_name,
    repartition_topic,
)
from homeport.config.settings.input_serdes import input_serdes
from homeport.config.settings.sections import (
    SystemConfig,
    TaskConfig,
    coordinator_topic,
    named_inputs,
    repartitions,
)
from homeport.config.settings.validation import validate
from homeport.config.system_stream import SystemStream

_NAME = st.from_regex(r"[a-zA-Z0-9._-]{1,8}", fullmatch=True)
_OWN_NAME = st.from_regex(r"[a-zA-Z0-9_-]{1,8}", fullmatch=True)
_TOPIC = "__homeport_repartition_flights_1_by-airport"
_JOB = Config(
    {
        "job.name": "flights",
        "job.default.system": "kafka",
        "task.class": "counts:Counts",
        "task.inputs": "kafka.flights",
        "task.repartition.by-airport": "4",
        "systems.kafka.samza.factory": "kafka",
        "systems.kafka.consumer.bootstrap.servers": "localhost:9092",
    }
)


def _with(**more: str) -> Config:
    return _JOB.merged({key.replace("__", "."): value for key, value in more.items()})


def test_a_repartition_is_an_input_beside_those_of_the_file() -> None:
    """All that reads inputs finds it there; what a user has named stays apart."""
    (own,) = repartitions(_JOB)
    assert (own.name, own.partitions, own.replication) == ("by-airport", 4, None)
    assert own.stream == SystemStream("kafka", _TOPIC)
    assert own.key == "task.repartition.by-airport"
    assert TaskConfig.of(_JOB).inputs == (SystemStream("kafka", "flights"), own.stream)
    assert named_inputs(_JOB) == (SystemStream("kafka", "flights"),)
    assert validate(_JOB) == ()
    assert repartitions(Config({k: v for k, v in _JOB.items() if "repart" not in k})) == ()


def test_it_has_as_many_partitions_as_the_inputs_without_a_number() -> None:
    """Written as a word, or by a key without a value."""
    for text in ("inputs", "", " "):
        (own,) = repartitions(_JOB.merged({"task.repartition.by-airport": text}))
        assert own.partitions is None


def test_it_is_on_the_brokers_of_the_transaction() -> None:
    """Whatever system its inputs are of."""
    more = {
        "task.checkpoint.system": "state",
        "systems.state.consumer.bootstrap.servers": "other:9092",
        "systems.state.default.stream.replication.factor": "2",
    }
    (own,) = repartitions(_JOB.merged(more))
    assert own.stream.system == "state"
    assert own.replication == 2
    more["task.repartition.by-airport.replication.factor"] = "3"
    (own,) = repartitions(_JOB.merged(more))
    assert own.replication == 3


def test_it_is_read_from_its_first_record_on_whatever_the_system_says() -> None:
    """What was sent before the first reader began is not passed over; no gap is allowed."""
    more = {
        "systems.kafka.samza.offset.default": "upcoming",
        "systems.kafka.input.lost": "latest",
        f"systems.kafka.streams.{_TOPIC}.samza.reset.offset": "true",
        f"systems.kafka.streams.{_TOPIC}.samza.priority": "2",
    }
    policy = SystemConfig.of(_JOB.merged(more), "kafka").input_policy(_TOPIC)
    assert policy == InputPolicy(OffsetDefault.OLDEST, LostInput.FAIL, priority=2)
    # The topic of another job's repartition, which is an input by its name, is an input.
    other = SystemConfig.of(_JOB.merged(more), "kafka").input_policy(_TOPIC.replace("_1_", "_2_"))
    assert other == InputPolicy(OffsetDefault.UPCOMING, LostInput.LATEST)


def test_its_serdes_stand_under_its_name() -> None:
    """Errors name these keys; the system's stand in."""
    more = {
        "systems.kafka.samza.key.serde": "string",
        "task.repartition.by-airport.msg.serde": "json",
    }
    config = _JOB.merged(more)
    system = SystemConfig.of(config, "kafka")
    assert str(system.key_serde(_TOPIC)) == "string"
    assert str(system.msg_serde(_TOPIC)) == "json"
    assert system.key_serde_key(_TOPIC) == "task.repartition.by-airport.key.serde"
    assert system.msg_serde_key("a") == "systems.kafka.streams.a.samza.msg.serde"
    serde = next(item for item in input_serdes(config) if item.stream == _TOPIC)
    assert (serde.key, str(serde.serde)) == ("task.repartition.by-airport.msg.serde", "json")
    assert validate(config) == ()


@given(job=_NAME, job_id=_NAME, name=_OWN_NAME, other=st.tuples(_NAME, _NAME, _OWN_NAME))
def test_two_jobs_share_a_topic_only_where_they_share_a_coordinator_stream(
    job: str, job_id: str, name: str, other: tuple[str, str, str]
) -> None:
    """That stream refuses the second job; and the name comes back out of the topic."""
    topic = repartition_topic(job, job_id, name)
    assert repartition_name(topic) == name
    if repartition_topic(*other) == topic:
        assert coordinator_topic(*other[:2]) == coordinator_topic(job, job_id)
        assert other[2] == name


def test_names_of_other_topics_are_no_repartitions() -> None:
    """Not even such as begin as theirs."""
    for topic in ("flights", "__homeport_repartition_a_1", "__homeport_repartitions_a_1_b"):
        assert repartition_name(topic) is None


_REFUSED: list[tuple[dict[str, str], str]] = [
    ({"task.repartition.a.b": "1"}, "'a.b' becomes part of a topic's name"),
    ({"task.repartition.a b": "1"}, "'a b' becomes part of a topic's name"),
    ({"task.repartition.by-airport": "many"}, "it must be a whole number, or inputs"),
    ({"task.repartition.by-airport": "0"}, "it must be at least 1"),
    ({f"task.repartition.{'a' * 230}": "1"}, "cannot be the name of a Kafka topic"),
    ({"task.repartition.flights": "1"}, "an input or an output of the job has this name"),
    (
        {"task.repartition.totals": "1", "task.outputs": "kafka.totals"},
        "an input or an output of the job has this name",
    ),
    ({"task.inputs": f"kafka.flights,kafka.{_TOPIC}"}, "is an input of the job too (task.inputs)"),
    ({"task.broadcast.inputs": f"kafka.{_TOPIC}#0"}, "would be the topic that is"),
    ({"task.checkpoint.factory": "none"}, "task.checkpoint.factory is none"),
    (
        {"job.systemstreampartition.grouper.factory": "all-ssp-to-single-task"},
        "every task reads all of it",
    ),
    ({"job.drain": "true"}, "job.drain is true"),
    (
        {
            "stores.places.factory": "rocksdb",
            "stores.places.key.serde": "string",
            "stores.places.msg.serde": "json",
            "stores.places.adstore.input": f"kafka.{_TOPIC}",
        },
        "it fills the store places",
    ),
    ({"task.inputs": ""}, "a job needs at least one input"),
]


@pytest.mark.parametrize(("more", "rule"), _REFUSED)
def test_what_cannot_be_is_refused_in_one_line(more: dict[str, str], rule: str) -> None:
    """With the key, and a remedy."""
    with pytest.raises(ConfigError) as refused:
        validate(_JOB.merged(more))
    assert rule in str(refused.value)
    assert refused.value.remedy
    assert "\n" not in str(refused.value)


def test_an_output_that_is_an_input_is_refused_with_the_remedy() -> None:
    """Not by chance: a declared one is made, purged and read in order."""
    with pytest.raises(ConfigError) as refused:
        validate(_with(task__outputs="kafka.flights"))
    assert "set task.repartition.<name> and send to that name" in str(refused.value)
    with pytest.raises(ConfigError, match=r"kafka\.__homeport_repartition_flights_1_by-airport"):
        validate(_with(task__outputs=f"kafka.{_TOPIC}"))


def test_a_change_of_the_number_waits_for_a_deployment_and_one_of_a_serde_does_not() -> None:
    """The topic decides then whether the number can be."""
    after = _JOB.merged(
        {"task.repartition.by-airport": "8", "task.repartition.by-airport.key.serde": "string"}
    )
    diff = ConfigDiff.between(_JOB, after)
    assert diff.needs_redeploy == ("task.repartition.by-airport",)
    assert diff.restarts_containers == ("task.repartition.by-airport.key.serde",)


def test_a_serde_of_no_repartition_is_named() -> None:
    """A name is misspelled, or records would go to a topic of that name."""
    (line,) = validate(_JOB.merged({"task.repartition.by-port.key.serde": "string"}))
    assert line == (
        "task.repartition.by-port.key.serde has no effect: task.repartition.by-port is not set, so "
        "'by-port' is no repartition"
    )
    assert validate(_JOB.merged({"task.repartition.by-airport.key.serde": "string"})) == ()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("samza.offset.default", "upcoming"),
        ("start.time", "2013-07-04T12:00:00+00:00"),
        ("samza.reset.offset", "true"),
        ("samza.bootstrap", "true"),
        ("input.lost", "earliest"),
        ("samza.msg.serde", "json"),
    ],
)
def test_a_streams_key_without_effect_on_a_repartition_is_a_warning(key: str, value: str) -> None:
    """The rules of a repartition are fixed: a key that would change them is never silent."""
    given = f"systems.kafka.streams.{_TOPIC}.{key}"
    (line,) = validate(_JOB.merged({given: value}))
    assert line.startswith(f"{given} has no effect: the topic of repartition 'by-airport' is read")
    assert validate(_JOB.merged({f"systems.kafka.streams.{_TOPIC}.samza.priority": "3"})) == ()
