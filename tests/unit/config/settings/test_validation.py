"""Every static fault of a configuration, and what is only suspicious."""

from __future__ import annotations

import re

import pytest
from small_jobs import store_keys

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import Key
from homeport.config.errors import ConfigError, HomeportError
from homeport.config.settings.pipeline_section import PipelineConfig
from homeport.config.settings.reporters_section import SNAPSHOTS
from homeport.config.settings.validation import validate

_GOOD = Config(
    {
        "job.name": "flights",
        "job.default.system": "kafka",
        "task.class": "plane.summary:Summary",
        "task.inputs": "kafka.flights",
        "task.broadcast.inputs": "kafka.codes#[0-3]",
        "systems.kafka.samza.factory": "org.apache.samza.system.kafka.KafkaSystemFactory",
        "systems.kafka.consumer.bootstrap.servers": "localhost:9092",
        "stores.planes.factory": "rocksdb",
        "stores.planes.key.serde": "string",
        "stores.planes.msg.serde": "json",
        "stores.planes.changelog": "planes-changelog",
        "my.own.key": "is mine",
    }
)


def test_a_good_configuration_has_no_fault_and_no_warning() -> None:
    """Unknown keys are no fault: user code reads them. A store may be lost with its host."""
    assert validate(_GOOD) == ()
    assert validate(Config({k: v for k, v in _GOOD.items() if not k.endswith("changelog")})) == ()
    memory = {"cluster-manager.container.memory.mb": "1280"}
    assert validate(_GOOD.merged({**memory, "task.pipeline.class": "plane.summary:pipeline"})) == ()


def test_a_metrics_reporter_sends_to_a_system_that_is_there() -> None:
    """With the addresses of its brokers."""
    reporter = {
        "metrics.reporters": "r",
        "metrics.reporter.r.class": SNAPSHOTS,
        "metrics.reporter.r.stream": "kafka.metrics",
    }
    assert validate(_GOOD.merged(reporter)) == ()
    with pytest.raises(ConfigError, match=r"no system .other. is configured"):
        validate(_GOOD.merged({**reporter, "metrics.reporter.r.stream": "other.metrics"}))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("task.inputs", "kafka.flights, web.clicks"),
        ("task.outputs", "web.clicks"),
        ("task.dead.letter.stream", "web.clicks"),
        ("task.broadcast.inputs", "web.clicks#0"),
    ],
)
def test_a_topic_that_is_taken_for_a_system_is_named(key: str, value: str) -> None:
    """Topics have dots: the line has the name that may have been meant."""
    dead = {"task.drop.deserialization.errors": "true"}
    with pytest.raises(ConfigError) as caught:
        validate(_GOOD.merged({key: value, **dead}))
    assert str(caught.value) == (
        f"{key} = 'web.clicks': no system 'web' is configured: no key begins with systems.web.; "
        "write kafka.web.clicks, if that is meant, or set systems.web.consumer.bootstrap.servers"
    )
    there = {"systems.web.consumer.bootstrap.servers": "localhost:9092"}
    validate(_GOOD.merged({key: value, **dead, **there}))
    elsewhere = {"job.coordinator.system": "kafka", "task.checkpoint.system": "kafka"}
    bare = {k: v for k, v in _GOOD.items() if k != "job.default.system"} | elsewhere
    del bare["stores.planes.changelog"]
    with pytest.raises(ConfigError, match=r"systems\.web\.; set systems\.web\.consumer"):
        validate(Config({**bare, **dead, key: value}))


def test_the_ams_label_alone_is_refused() -> None:
    """YARN would give it to the containers; both are labels of YARN."""
    am, containers = "yarn.am.container.label", "yarn.container.label"
    assert validate(_GOOD.merged({containers: "state"})) == ()
    assert validate(_GOOD.merged({containers: "state", am: "masters-1"})) == ()
    with pytest.raises(ConfigError, match=rf"^{am} = 'x': without {containers} YARN would give"):
        validate(_GOOD.merged({am: "x"}))
    for key in (am, containers):
        values = {containers: "state", key: "a && b"}
        with pytest.raises(ConfigError, match=rf"^{key} = 'a && b': .* name one label"):
            validate(_GOOD.merged(values))


_PLACES = {"<store>": "planes", "<system>": "kafka"}


@pytest.mark.parametrize("key", keys.ALL, ids=lambda key: key.name)
def test_no_fault_shows_a_secret_that_its_value_holds(key: Key) -> None:
    """Neither value nor rule nor remedy has it, nor a key that the value is part of."""
    name = re.sub("<[^>]+>", lambda part: _PLACES.get(part[0], "flights"), key.name)
    url = "https://me:hunter2@host"
    for value in (url, f"a,{url}:1", f"kafka.{url}#0,x", "m:password=hunter2"):
        try:
            message = "\n".join(validate(_GOOD.merged({name: value})))
        except HomeportError as error:
            message = str(error)
        assert "hunter2" not in message


_FAULTS = [
    ("job.name", "", "it is required"),
    ("job.name", "my job", "it becomes part of topic names"),
    ("job.name", "größe", "it becomes part of topic names"),
    ("job.name", "x" * 240, "more than the 249 characters"),
    ("job.id", "a/b", "it becomes part of topic names"),
    ("job.default.system", "", "it is required where"),
    ("task.class", "", "it is required, with a pipeline too"),
    ("task.class", "org.acme.Task", "it must have the form module:Name"),
    ("task.pipeline.class", "pipeline", "it must have the form module:Name"),
    ("task.inputs", "", "a job needs at least one input"),
    ("task.inputs", "flights", "each input must have the form system.stream"),
    ("task.inputs", "kafka.fli ghts", "cannot be the name of a Kafka topic"),
    ("task.inputs", "other.flights", "no system 'other' is configured"),
    ("task.broadcast.inputs", "kafka.codes", "each must have the form system.stream#"),
    ("task.broadcast.inputs", "codes#0", "each must have the form system.stream#"),
    ("task.broadcast.inputs", "kafka.co des#0", "cannot be the name of a Kafka topic"),
    ("task.broadcast.inputs", "other.codes#0", "no system 'other' is configured"),
    ("task.dead.letter.stream", "kafka.bad", "only records that are dropped go there"),
    ("task.commit.ms", "soon", "it must be a whole number"),
    ("task.commit.ms", "0", "it must be at least 1"),
    ("task.exactly.once", "maybe", "it must be true or false"),
    ("task.checkpoint.factory", "files", "no such checkpoint factory"),
    ("task.checkpoint.system", "other", "needs the addresses of its brokers"),
    ("task.name.grouper.factory", "mine", "no such grouper of tasks into containers"),
    ("task.spark.driver.memory.mb", "2048", "it must be below cluster-manager"),
    ("job.systemstreampartition.grouper.factory", "mine", "no such grouper of partitions"),
    ("job.container.count", "0", "it must be at least 1"),
    ("job.elasticity.factor", "2", "a task reads whole partitions"),
    ("job.coordinator.replication.factor", "three", "it must be a whole number"),
    ("job.hotstandby.enabled", "true", "hot standby needs host affinity"),
    ("job.standbytasks.replication.factor", "2", "hot standby needs host affinity"),
    ("systems.kafka.samza.factory", "org.acme.Queue", "no such system factory"),
    ("systems.kafka.samza.offset.default", "newest", "it must be upcoming or oldest"),
    ("systems.kafka.streams.flights.samza.offset.default", "x", "upcoming or oldest"),
    ("systems.kafka.samza.msg.serde", "avro", "no such serde is known"),
    ("systems.kafka.streams.flights.samza.key.serde", "avro", "no such serde is known"),
    ("systems.kafka.default.stream.replication.factor", "0", "it must be at least 1"),
    ("systems.kafka.producer.buffer.memory", "32m", "whole number of bytes"),
    ("systems.kafka.consumer.bootstrap.servers", " ", "needs the addresses of its brokers"),
    ("stores.planes.factory", "", "it is required"),
    ("stores.planes.factory", "org.acme.Store", "no such store factory"),
    ("stores.planes.factory", "my.store:Store", "no such store factory"),
    ("stores.planes.key.serde", "avro", "no such serde is known"),
    ("stores.planes.msg.serde", "", "it is required"),
    ("stores.planes.changelog", "kafka.", "system.stream or stream"),
    ("stores.planes.changelog", "a b", "cannot be the name of a Kafka topic"),
    ("stores.planes.changelog", "other.log", "no system 'other' is configured"),
    ("stores.a/b.factory", "rocksdb", "it is required"),
    ("cluster-manager.jobcoordinator.url.port", "70000", "it must be at most 65535"),
    ("cluster-manager.container.check-in.interval.ms", "20000", "it must be below"),
    ("yarn.am.max-attempts", "0", "it must be at least 1"),
    ("yarn.container.memory.mb", "big", "it must be a whole number"),
]


_DEAD_LETTER_FAULTS = [
    ("bad", "it must have the form system.stream"),
    ("kafka.b d", "cannot be the name of a Kafka topic"),
    ("kafka.flights", "would be read again"),
    ("other.bad", "other brokers than the job's checkpoints"),
    ("lost.bad", "no system 'lost' is configured"),
]


@pytest.mark.parametrize(("value", "rule"), _DEAD_LETTER_FAULTS)
def test_dead_letters_need_a_stream_of_the_transaction(value: str, rule: str) -> None:
    """A topic on the brokers of the checkpoints that is no input."""
    config = _GOOD.merged(
        {
            "task.drop.deserialization.errors": "true",
            "systems.other.consumer.bootstrap.servers": "elsewhere:9092",
            "task.dead.letter.stream": "kafka.bad",
        }
    )
    assert validate(config) == ()
    with pytest.raises(ConfigError, match=rule):
        validate(config.merged({"task.dead.letter.stream": value}))


def test_a_system_with_the_same_brokers_is_the_same_cluster() -> None:
    """In whatever order, and with whatever blanks, their addresses stand."""
    config = _GOOD.merged(
        {
            "systems.kafka.consumer.bootstrap.servers": "one:9092,two:9092",
            "systems.other.consumer.bootstrap.servers": "two:9092, one:9092",
            "task.outputs": "other.totals",
        }
    )
    assert validate(config) == ()
    with pytest.raises(ConfigError, match="other brokers than the job's checkpoints"):
        validate(config.merged({"systems.other.consumer.bootstrap.servers": "two:9092"}))


def test_dead_letters_go_anywhere_where_outputs_are_no_part_of_the_transaction() -> None:
    """The brokers of the checkpoints are not asked for then."""
    config = _GOOD.merged(
        {
            "task.exactly.once": "false",
            "task.drop.deserialization.errors": "true",
            "systems.other.consumer.bootstrap.servers": "elsewhere:9092",
            "task.dead.letter.stream": "other.bad",
        }
    )
    assert validate(config) == ()


_ALONE = {
    "task.class": "",
    "task.pipeline.sql": "SELECT key FROM flights",
    "task.pipeline.output": "kafka.totals",
    "cluster-manager.container.memory.mb": "1280",
}
_PIPELINE_FAULTS = [
    ({"task.class": "my.job:Task"}, "the rows go to the task of task.class, which sends by itself"),
    ({"task.pipeline.class": "my.job:f"}, "task.pipeline.class names a pipeline too"),
    ({"task.pipeline.sql": ""}, "the job has no pipeline, whose rows could leave"),
    ({"task.pipeline.output": ""}, "it is required, with a pipeline too"),
    ({"task.pipeline.output": "totals"}, "it must have the form system.stream"),
    ({"task.pipeline.output": "kafka.flights"}, "would be read again"),
    ({"task.pipeline.output": "kafka.to tals"}, "cannot be the name of a Kafka topic"),
    ({"task.pipeline.output": "unknown.totals"}, "no system 'unknown' is configured"),
    ({"task.pipeline.check": "never"}, "it must be submission or start"),
    ({"systems.kafka.samza.msg.serde": "long"}, "a row of columns cannot leave as a number"),
    ({"systems.kafka.samza.msg.serde": "none"}, "no such serde is known"),
]


@pytest.mark.parametrize(("changed", "rule"), _PIPELINE_FAULTS)
def test_a_pipeline_may_be_a_whole_job(changed: dict[str, str], rule: str) -> None:
    """It then needs a stream that its rows can leave to, and no task."""
    config = _GOOD.merged(_ALONE)
    assert validate(config) == ()
    with pytest.raises(ConfigError, match=rule):
        validate(config.merged(changed))


def test_sql_is_checked_before_the_submission_unless_a_key_says_otherwise() -> None:
    """A function is imported then anyway; with SQL nothing else looks into it."""
    for keys_, is_first in (
        ({}, True),
        ({"task.pipeline.check": "start"}, False),
        ({"task.pipeline.sql": "", "task.pipeline.class": "m:f"}, False),
        (
            {
                "task.pipeline.sql": "",
                "task.pipeline.class": "m:f",
                "task.pipeline.check": "submission",
            },
            True,
        ),
    ):
        found = PipelineConfig.of(_GOOD.merged({**_ALONE, **keys_}))
        assert found is not None
        assert found.is_checked_first is is_first
        assert found.kind.is_text is ("task.pipeline.class" not in keys_)
        assert found.key == f"task.pipeline.{'sql' if found.kind.is_text else 'class'}"


@pytest.mark.parametrize(
    ("changed", "needs"),
    [
        ({}, False),
        ({"task.pipeline.sql": "file:totals.sql"}, True),
        ({"task.pipeline.sql": "", "task.pipeline.class": "m:f"}, True),
        ({"task.pipeline.output": "", "task.class": "m:Task"}, True),
    ],
)
def test_sql_in_the_configuration_alone_needs_no_package(
    changed: dict[str, str], *, needs: bool
) -> None:
    """A file of SQL is in the package, as code is."""
    found = PipelineConfig.of(_GOOD.merged({**_ALONE, **changed}))
    assert found is not None
    assert found.needs_package is needs


@pytest.mark.parametrize(("key", "value", "rule"), _FAULTS)
def test_each_fault_is_one_line_with_its_rule(key: str, value: str, rule: str) -> None:
    """The line names a key, the rule it breaks and a remedy."""
    with pytest.raises(ConfigError) as caught:
        validate(_GOOD.merged({key: value}))
    assert rule in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.remedy


_SECOND_STORE = store_keys("copy", "string")
_ALIAS = {"systems.alias.consumer.bootstrap.servers": "localhost:9092"}
_DROPPING = {"task.drop.deserialization.errors": "true"}
_OWN_TOPICS: list[tuple[dict[str, str], str]] = [
    ({"stores.planes.changelog": "kafka.flights"}, "is an input of the job too (task.inputs)"),
    (
        {"stores.planes.changelog": "kafka.rules", "task.broadcast.inputs": "kafka.rules#0"},
        "is an input of the job too (task.broadcast.inputs)",
    ),
    (
        {"stores.copy.changelog": "kafka.planes-changelog", **_SECOND_STORE},
        "is the changelog of store 'copy' too",
    ),
    (
        {"task.outputs": "kafka.planes-changelog"},
        "is the changelog of store 'planes' too (stores.planes.changelog)",
    ),
    (
        {"task.dead.letter.stream": "kafka.planes-changelog", **_DROPPING},
        "is the changelog of store 'planes' too",
    ),
    (
        {"task.outputs": "kafka.__samza_coordinator_{name}_1"},
        "is the job's coordinator stream too (job.name)",
    ),
    (
        {"stores.planes.changelog": "kafka.__samza_checkpoint_ver_1_for_{name}_1"},
        "is the job's checkpoint topic too (job.name)",
    ),
    (
        {"task.inputs": "kafka.flights,kafka.__samza_coordinator_{name}_1"},
        "is the job's coordinator stream too (job.name)",
    ),
    (
        {"task.broadcast.inputs": "kafka.rules#0", "task.outputs": "kafka.rules"},
        "is an input of the job too (task.broadcast.inputs)",
    ),
    (
        {"task.inputs": "kafka.flights,alias.planes-changelog", **_ALIAS},
        "is an input of the job too (task.inputs)",
    ),
    ({"task.outputs": "alias.flights", **_ALIAS}, "is an input of the job too (task.inputs)"),
    (
        {
            "metrics.reporters": "r",
            "metrics.reporter.r.class": SNAPSHOTS,
            "metrics.reporter.r.stream": "kafka.planes-changelog",
        },
        "is the changelog of store 'planes' too",
    ),
]


@pytest.mark.parametrize(("more", "expected"), _OWN_TOPICS)
def test_a_topic_that_only_the_job_writes_has_no_other_use(
    more: dict[str, str], expected: str
) -> None:
    """Each change would be read as input, for ever; by whatever name the cluster goes."""
    name = _GOOD["job.name"].replace("_", "-")
    with pytest.raises(ConfigError) as refused:
        validate(_GOOD.merged({k: v.replace("{name}", name) for k, v in more.items()}))
    assert expected in str(refused.value)
    assert "name another topic, which nothing else uses" in str(refused.value)


def test_a_topic_may_have_several_uses_that_go_together() -> None:
    """Outputs of two kinds, and one input named twice."""
    more = {
        "task.outputs": "kafka.results,kafka.results",
        "task.dead.letter.stream": "kafka.results",
        **_DROPPING,
        "task.inputs": "kafka.flights,kafka.rules",
        "task.broadcast.inputs": "kafka.rules#0",
    }
    validate(_GOOD.merged(more))


def test_a_store_name_is_a_folder_name() -> None:
    """Slashes and dots alone would leave the state directory."""
    for name in ("a/b", ".."):
        keys = {f"stores.{name}.{k}": "string" for k in ("key.serde", "msg.serde")}
        with pytest.raises(ConfigError, match="becomes the name of a folder"):
            validate(_GOOD.merged(keys | {f"stores.{name}.factory": "rocksdb"}))


def test_changelog_and_checkpoint_share_a_system() -> None:
    """One transaction cannot span two clusters."""
    apart = {
        "systems.other.consumer.bootstrap.servers": "other:9092",
        "task.checkpoint.system": "other",
    }
    with pytest.raises(ConfigError, match="one transaction"):
        validate(_GOOD.merged(apart))


_NO_SPARK = "has no effect: without a pipeline no Spark is started"
_PREWARMED = {
    "job.hotstandby.enabled": "true",
    "job.hotstandby.prewarm": "true",
    "job.host-affinity.enabled": "true",
    **store_keys("s", "string", changelog="kafka.changes"),
}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (
            {"task.comit.ms": "1"},
            "task.comit.ms is not a key of Homeport: did you mean task.commit.ms?",
        ),
        (
            {"systems.kafka.consumer.key.deserializer": "x.Y"},
            (
                "systems.kafka.consumer.key.deserializer = x.Y has no effect: "
                "librdkafka has nothing like it; set systems.kafka.samza.key.serde"
            ),
        ),
        (
            {"job.hotstandby.prewarm": "true"},
            "job.hotstandby.prewarm has no effect: hot standby is off",
        ),
        (_PREWARMED, f"job.hotstandby.prewarm {_NO_SPARK}"),
        ({"job.container.prewarm": "true"}, f"job.container.prewarm {_NO_SPARK}"),
        (
            {"task.pipeline.class": "plane.summary:pipeline"},
            (
                "cluster-manager.container.memory.mb = 1024 leaves Python 96 MB beside a heap of "
                "512: YARN may kill containers for their memory"
            ),
        ),
    ],
)
def test_what_may_be_amiss_is_a_warning(more: dict[str, str], expected: str) -> None:
    """A key that is nearly ours, one without effect, a pipeline with too little memory."""
    assert validate(_GOOD.merged(more)) == (expected,)


def test_a_spark_beside_a_standby_must_fit_into_the_container() -> None:
    """Of one whose heap leaves Python too little, the keys to change are named."""
    config = _GOOD.merged({**_PREWARMED, "task.pipeline.class": "my.pipeline:function"})
    assert validate(config.merged({"cluster-manager.container.memory.mb": "1280"})) == ()
    for more in (
        {"cluster-manager.container.memory.mb": "1024"},
        {"cluster-manager.container.memory.mb": "1536", "task.spark.driver.memory.mb": "800"},
    ):
        with pytest.raises(ConfigError, match="need 288 MB of Python's share"):
            validate(config.merged(more))


def test_a_spark_beside_an_active_container_must_fit_into_it() -> None:
    """The line says what it needs, what that leaves, and how many MB would do."""
    memory, heap = "cluster-manager.container.memory.mb", "task.spark.driver.memory.mb"
    plain = _GOOD.merged({"job.container.prewarm": "true"})
    config = plain.merged({"task.pipeline.class": "my.pipeline:function"})
    assert validate(config.merged({memory: "2816"})) == ()
    for more, stated in (
        ({memory: "1536"}, r"928 MB .* -384 of 1536 MB.*; set \S+ to 2816 or more, or leave"),
        ({memory: "2816", heap: "600"}, r"1016 MB .*; set \S+ to 3072 or more, or \S+ lower, or"),
    ):
        with pytest.raises(ConfigError, match=rf"job.container.prewarm = 'true': .*{stated}"):
            validate(config.merged(more))
    assert validate(config.merged({memory: "3072", heap: "600"})) == ()


@pytest.mark.parametrize(
    ("key", "value"),
    [("job.hotstandby.enabled", "true"), ("job.standbytasks.replication.factor", "2")],
)
def test_hot_standby_needs_a_changelog(key: str, value: str) -> None:
    """That is all that a standby follows; the key at fault is the one that was written."""
    config = _GOOD.merged({"job.host-affinity.enabled": "true", key: value})
    assert validate(config) == ()
    without = Config({k: v for k, v in config.items() if not k.endswith(".changelog")})
    with pytest.raises(ConfigError, match=rf"{key} = '{value}': no store has a changelog"):
        validate(without)
