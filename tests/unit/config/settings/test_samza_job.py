"""What becomes of a Samza job's keys: each verdict, rules between keys, and defaults."""

from __future__ import annotations

import pytest
from small_jobs import store_keys

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.settings.samza_job import Verdict, findings_of
from homeport.config.settings.validation import validate

JOB = {
    "job.name": "wiki",
    "job.default.system": "kafka",
    "task.class": "com.example.WikiTask",
    "task.inputs": "kafka.edits",
    "systems.kafka.samza.factory": "org.apache.samza.system.kafka.KafkaSystemFactory",
    "systems.kafka.consumer.bootstrap.servers": "localhost:9092",
    "stores.wiki.factory": "org.apache.samza.storage.kv.RocksDbKeyValueStorageEngineFactory",
    "stores.wiki.changelog": "kafka.wiki-changelog",
    "stores.wiki.key.serde": "string",
    "stores.wiki.msg.serde": "json",
}
SAMZAS_DEFAULTS = {
    "job.startpoint.enabled": "false",
    "task.callback.timeout.ms": "-1",
    "task.exactly.once": "false",
    "systems.kafka.streams.edits.input.lost": "latest",
}


def _verdicts(**further: str) -> dict[str, tuple[Verdict, str]]:
    """{key: (verdict, what is said)} of the job with further keys; ``__`` stands for a dot."""
    values = JOB | {key.replace("__", "."): value for key, value in further.items()}
    return {f.key: (f.verdict, f.about) for f in findings_of(Config(values))}


def test_a_usual_job_is_taken_but_for_its_code() -> None:
    """Class names of Samza's are known; only the task is Java."""
    found = _verdicts()
    assert {key for key in JOB if found[key][0] is not Verdict.TAKEN} == {"task.class"}
    assert found["task.class"][0] is Verdict.CHANGED
    assert "Python" in found["task.class"][1]


@pytest.mark.parametrize(
    ("key", "value", "verdict", "expected"),
    [
        ("job.elasticity.factor", "2", Verdict.REFUSED, "write 1, or remove it"),
        ("job.elasticity.factor", "1", Verdict.TAKEN, ""),
        ("job.container.count", "many", Verdict.REFUSED, "number"),
        ("job.jmx.enabled", "true", Verdict.NO_EFFECT, "no program of the job is a JVM"),
        ("app.class", "com.example.App", Verdict.CHANGED, "Python"),
        ("yarn.container.memory.mb", "2048", Verdict.CHANGED, "cluster-manager.container.memory"),
        ("task.comit.ms", "1", Verdict.REFUSED, "write task.commit.ms, if that is meant"),
        ("task.my.own", "1", Verdict.REFUSED, "or allow it by --allow-unknown-keys"),
        ("task.log4j.system", "kafka", Verdict.NO_EFFECT, "log"),
        ("my.key", "1", Verdict.OWN, "own code"),
        ("systems.kafka.consumer.zookeeper.connect", "z:2181", Verdict.NO_EFFECT, "librdkafka"),
        ("app.name", "wiki", Verdict.TAKEN, ""),
        ("app.name", "wikipedia", Verdict.REFUSED, "give job.name this value"),
        ("app.id", "1", Verdict.TAKEN, ""),
        ("app.id", "2", Verdict.REFUSED, "give job.id this value"),
        ("job.startpoint.enabled", "true", Verdict.NO_EFFECT, "startpoints are not read"),
        ("locationid.provider.factory", "m:Where", Verdict.CHANGED, "job.location-id.provider"),
        (
            "locationid.provider.factory",
            "org.apache.samza.runtime.DefaultLocationIdProviderFactory",
            Verdict.CHANGED,
            "job.location-id.provider",
        ),
        ("locationid.provider.factory", "org.x.Where", Verdict.REFUSED, "module:Class"),
        (
            "job.coordinator.factory",
            "org.apache.samza.zk.ZkJobCoordinatorFactory",
            Verdict.REFUSED,
            "start the job by homeport run-processor",
        ),
        ("job.container.mixed-roles", "true", Verdict.REFUSED, "remove the key"),
    ],
)
def test_each_kind_of_key_has_its_verdict(
    key: str, value: str, verdict: Verdict, expected: str
) -> None:
    """The text says what is different, or what to do."""
    found, about = _verdicts(**{key: value})[key]
    assert found is verdict
    assert expected in about


def test_an_older_name_beside_the_present_one_has_no_effect() -> None:
    """The present one is read."""
    both = {"yarn.container.memory.mb": "1", "cluster-manager.container.memory.mb": "2048"}
    found = _verdicts(**both)
    assert found["yarn.container.memory.mb"][0] is Verdict.NO_EFFECT
    assert found["cluster-manager.container.memory.mb"][0] is Verdict.TAKEN


def test_a_rule_between_keys_is_said_once() -> None:
    """With its key; a key that is refused by itself is not named twice."""
    found = findings_of(Config({**JOB, "stores.b.factory": "rocksdb", "task.inputs": "kafka.e d"}))
    assert [f.key for f in found if f.verdict is Verdict.REFUSED] == ["task.inputs"]
    two = JOB | store_keys("b", "string", changelog="kafka.wiki-changelog")
    refused = [f for f in findings_of(Config(two)) if f.verdict is Verdict.REFUSED]
    assert [f.key for f in refused] == ["stores.wiki.changelog"]
    assert "the changelog of store 'b' too" in refused[0].about


@pytest.mark.parametrize(
    "uses",
    [
        {},
        {"task.inputs": "hdfs.a"},
        {"task.outputs": "hdfs.a"},
        {"stores.wiki.changelog": "hdfs.a", "task.checkpoint.system": "hdfs"},
        {
            "stores.wiki.side.inputs": "hdfs.a",
            "stores.wiki.changelog": "",
            "task.inputs": "kafka.edits,hdfs.a",
        },
    ],
)
def test_a_system_of_another_kind_is_refused_wherever_it_stands(uses: dict[str, str]) -> None:
    """Once, and no rule between keys of a Kafka names it too."""
    key = "systems.hdfs.samza.factory"
    given = {key: "org.apache.samza.system.hdfs.HdfsSystemFactory"} | uses
    found = findings_of(Config(JOB | given))
    assert [f.key for f in found if f.verdict is Verdict.REFUSED] == [key]
    (about,) = [f.about for f in found if f.key == key]
    assert about.startswith("no such system factory is known; write kafka, or take the system's")


def test_a_key_has_one_verdict_and_it_is_the_worst() -> None:
    """Also where the key is good by itself, and a rule between keys refuses it."""
    for further in (
        {"stores.wiki.side.inputs": "kafka.a,kafka.b"},
        {"task.dead.letter.stream": "kafka.edits"},
        {"systems.kafka.consumer.zookeeper.connect": "z:2181", "task.outputs": "kafka.edits"},
    ):
        found = findings_of(Config(JOB | further))
        assert len({f.key for f in found}) == len(found)
        (refused,) = [f.key for f in found if f.verdict is Verdict.REFUSED]
        assert refused in further


def test_the_name_of_the_application_alone_is_no_name_here() -> None:
    """It is the one key that stops run-job, whose line has what to write."""
    values = {k: v for k, v in JOB.items() if k != "job.name"} | {"app.name": "wiki"}
    refused = [f.key for f in findings_of(Config(values)) if f.verdict is Verdict.REFUSED]
    assert refused == ["app.name"]
    with pytest.raises(
        ConfigError, match=r"job\.name is missing: it is required; write wiki, as app\.name"
    ):
        validate(Config(values))


def test_a_system_without_addresses_is_a_rule_between_keys() -> None:
    """Nothing is said twice of it."""
    values = {k: v for k, v in JOB.items() if "bootstrap" not in k}
    refused = [f.key for f in findings_of(Config(values)) if f.verdict is Verdict.REFUSED]
    assert refused == ["systems.kafka.consumer.bootstrap.servers"]


def test_a_required_key_is_missed_beside_one_that_is_refused() -> None:
    """By its name, after those of the file."""
    values = {k: v for k, v in JOB.items() if k != "job.name"} | {"job.container.count": "x"}
    refused = [f.key for f in findings_of(Config(values)) if f.verdict is Verdict.REFUSED]
    assert refused == ["job.container.count", "job.name"]


def test_a_python_task_and_samzas_defaults_leave_nothing_to_say() -> None:
    """Each default that differs is named where the file does not set its key."""
    names = {key for key, (verdict, _) in _verdicts().items() if verdict is Verdict.CHANGED}
    unset = {
        *("task.callback.timeout.ms", "task.exactly.once", "systems.<system>.input.lost"),
        "job.startpoint.enabled",
    }
    assert names == {"task.class", *unset}
    done = findings_of(Config(JOB | SAMZAS_DEFAULTS | {"task.class": "wiki:Task"}))
    assert {f.verdict for f in done} <= {Verdict.TAKEN}


def test_a_secret_is_in_no_finding() -> None:
    """A value that is refused is not shown where its key is a secret's."""
    found = findings_of(Config(JOB | {"systems.kafka.consumer.sasl.password": "hush"}))
    assert all("hush" not in f.about for f in found)
