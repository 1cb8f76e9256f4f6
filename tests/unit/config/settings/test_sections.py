"""Typed views: Samza's defaults, fall-backs and names."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import pytest
from small_jobs import KEYS, store_keys

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import BoolKey, IntKey, Key, ListKey, TextKey
from homeport.config.errors import ConfigError
from homeport.config.settings.adjunct_section import AdjunctStore
from homeport.config.settings.input_section import OffsetDefault
from homeport.config.settings.log_section import LogConfig
from homeport.config.settings.records_section import RecordsConfig
from homeport.config.settings.reporters_section import (
    SNAPSHOTS,
    SnapshotReporter,
    snapshot_reporters,
)
from homeport.config.settings.rocksdb_section import RocksDbConfig, UniversalCompaction
from homeport.config.settings.sections import (
    ClusterManagerConfig,
    JobConfig,
    StandbyConfig,
    SystemConfig,
    TaskConfig,
    YarnConfig,
    has_spark_beside,
)
from homeport.config.settings.serde_names import ConfiguredSerde, SchemaSerde
from homeport.config.settings.standalone_section import StandaloneConfig
from homeport.config.settings.stores_section import StorageConfig, StoreConfig
from homeport.config.settings.timers_section import TimersConfig, require_lateness
from homeport.config.settings.tuning import Tuning
from homeport.config.system_stream import SystemStream


def _config(**more: str) -> Config:
    return Config(
        {
            "job.name": "my_job",
            "job.default.system": "kafka",
            "systems.kafka.consumer.bootstrap.servers": "h:9092",
            **more,
        }
    )


_STORE = {
    "stores.s.factory": "org.apache.samza.storage.kv.RocksDbKeyValueStorageEngineFactory",
    "stores.s.key.serde": "string",
    "stores.s.msg.serde": "my-json",
    "stores.s.changelog": "s-log",
    "serializers.registry.my-json.class": "org.apache.samza.serializers.JsonSerdeFactory",
}


def test_names_of_topics_are_samzas() -> None:
    """Underscores become hyphens in both parts; nothing else changes."""
    config = _config(**{"job.id": "a_b.C"})
    assert JobConfig.of(config).coordinator_topic == "__samza_coordinator_my-job_a-b.C"
    checkpoint = "__samza_checkpoint_ver_1_for_my-job_a-b.C"
    assert TaskConfig.of(config).checkpoint_topic == checkpoint
    assert JobConfig.of(config).directory_name == "my_job-a_b.C"


def test_job_defaults_are_samzas() -> None:
    """Without any key: one container, no host affinity, the default groupers."""
    job = JobConfig.of(_config())
    assert (job.id, job.container_count, job.host_affinity_enabled) == ("1", 1, False)
    assert (job.coordinator_system, job.coordinator_replication_factor) == ("kafka", None)
    assert (job.coordinator_segment_bytes, job.catch_up_interval_ms) == (26214400, 1000)
    assert job.ssp_grouper_factory.endswith("grouper.stream.GroupByPartitionFactory")
    assert job.task_name_grouper_factory.endswith("grouper.task.GroupByContainerCountFactory")


def test_replication_falls_back_to_the_system() -> None:
    """Own key, else the system's, else none: the creator of a topic knows it."""
    plain = _config(**_STORE)
    assert TaskConfig.of(plain).checkpoint_replication_factor is None
    assert StorageConfig.of(plain).stores["s"].changelog_replication_factor is None
    single = _config(**_STORE, **{"systems.kafka.default.stream.replication.factor": "1"})
    assert JobConfig.of(single).coordinator_replication_factor == 1
    assert TaskConfig.of(single).checkpoint_replication_factor == 1
    assert StorageConfig.of(single).stores["s"].changelog_replication_factor == 1
    own = single.merged(
        {
            "job.coordinator.replication.factor": "2",
            "task.checkpoint.replication.factor": "4",
            "stores.default.changelog.replication.factor": "5",
        }
    )
    assert JobConfig.of(own).coordinator_replication_factor == 2
    assert TaskConfig.of(own).checkpoint_replication_factor == 4
    assert StorageConfig.of(own).stores["s"].changelog_replication_factor == 5


def test_a_coordinator_system_is_needed() -> None:
    """Neither job.coordinator.system nor job.default.system: refused with the remedy."""
    with pytest.raises(ConfigError, match=r"job\.coordinator\.system is missing.*such as kafka"):
        JobConfig.of(Config({"job.name": "j"}))


def test_legacy_names_are_read_where_the_present_ones_are_missing() -> None:
    """Old Samza jobs say yarn.container.count and the like; the present name wins."""
    config = _config(**{"yarn.container.count": "4", "yarn.samza.host-affinity.enabled": "true"})
    assert JobConfig.of(config).container_count == 4
    assert JobConfig.of(config).host_affinity_enabled
    assert JobConfig.of(config.merged({"job.container.count": "2"})).container_count == 2
    with pytest.raises(ConfigError, match=r"yarn\.container\.count = '0'"):
        JobConfig.of(_config(**{"yarn.container.count": "0"}))


def test_task_defaults_are_ours() -> None:
    """Commits every 10 s, transactions every second, exactly once, checkpoints in Kafka."""
    task = TaskConfig.of(_config())
    assert task.shutdown_ms == 30000
    assert (task.exactly_once, task.checkpoint_enabled) == (True, True)
    assert (task.checkpoint_system, task.memory.heap_mb) == ("kafka", 0)
    assert (task.task_class, task.has_pipeline, task.inputs) == (None, False, ())


def test_checkpoints_can_be_turned_off() -> None:
    """The word none turns them off; Samza's factory keeps them on; anything else is refused."""
    factory = "task.checkpoint.factory"
    java = "org.apache.samza.checkpoint.kafka.KafkaCheckpointManagerFactory"
    assert not TaskConfig.of(_config(**{factory: "none"})).checkpoint_enabled
    assert TaskConfig.of(_config(**{factory: java})).checkpoint_enabled
    with pytest.raises(ConfigError, match=r"no such checkpoint factory is known; write kafka"):
        TaskConfig.of(_config(**{factory: "org.acme.Files"}))


def test_inputs_are_split_at_the_first_dot() -> None:
    """A stream's name may hold dots, a system's may not; the same input twice is one."""
    task = TaskConfig.of(_config(**{"task.inputs": "kafka.a.b, kafka.c,kafka.c"}))
    assert task.inputs == (SystemStream("kafka", "a.b"), SystemStream("kafka", "c"))
    for wrong in ("flights", ".flights", "kafka."):
        with pytest.raises(ConfigError, match=r"must have the form system\.stream"):
            TaskConfig.of(_config(**{"task.inputs": wrong}))


def test_spark_properties_are_handed_on() -> None:
    """task.spark.conf.* without its prefix."""
    task = TaskConfig.of(_config(**{"task.spark.conf.spark.sql.session.timeZone": "UTC"}))
    assert task.spark_conf == {"spark.sql.session.timeZone": "UTC"}


def test_a_system_gives_each_client_its_properties() -> None:
    """Java's names are mapped, admin gets the connection only, Java-only names are reported."""
    system = SystemConfig.of(
        _config(
            **{
                "systems.kafka.consumer.fetch.max.wait.ms": "10",
                "systems.kafka.consumer.security.protocol": "SSL",
                "systems.kafka.producer.linger.ms": "5",
                "systems.kafka.producer.key.serializer": "x.Y",
            }
        ),
        "kafka",
    )
    assert system.consumer["fetch.wait.max.ms"] == "10"
    assert dict(system.producer) == {
        "bootstrap.servers": "h:9092",
        "linger.ms": "5",
        "security.protocol": "SSL",
    }
    assert dict(system.admin) == {"bootstrap.servers": "h:9092", "security.protocol": "SSL"}
    assert tuple(system.ignored) == ("systems.kafka.producer.key.serializer",)


def test_one_client_without_locks_has_those_of_the_other() -> None:
    """Nothing of two sets is mixed, and nothing but the locks is taken over."""
    consumer = {
        "systems.k.consumer.bootstrap.servers": "h:1",
        "systems.k.consumer.client.id": "c",
        "systems.k.consumer.sasl.mechanism": "SCRAM-SHA-512",
        "systems.k.consumer.security.protocol": "SASL_SSL",
        "systems.k.consumer.ssl.truststore.certificates": "PEM",
    }
    system = SystemConfig.of(Config(consumer), "k")
    assert dict(system.producer) == {
        "bootstrap.servers": "h:1",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "security.protocol": "SASL_SSL",
        "ssl.ca.pem": "PEM",
    }
    both = Config(consumer | {"systems.k.producer.security.protocol": "SSL"})
    producer = {"bootstrap.servers": "h:1", "security.protocol": "SSL"}
    assert dict(SystemConfig.of(both, "k").producer) == producer


def test_the_producers_servers_do_too() -> None:
    """A system needs its brokers once, for the consumer or for the producer."""
    config = Config({"systems.k.producer.bootstrap.servers": "p:1"})
    assert SystemConfig.of(config, "k").consumer["bootstrap.servers"] == "p:1"
    with pytest.raises(ConfigError, match=r"systems\.k\.consumer\.bootstrap\.servers is missing"):
        SystemConfig.of(Config(), "k")
    other = config.merged({"systems.k.samza.factory": "org.acme.Queue"})
    with pytest.raises(ConfigError, match="no such system factory is known"):
        SystemConfig.of(other, "k")


def test_a_streams_own_settings_win_over_the_systems() -> None:
    """Offset default and serdes: the stream's, else the system's, else upcoming and none."""
    config = _config(
        **{
            "systems.kafka.samza.offset.default": "oldest",
            "systems.kafka.samza.msg.serde": "json",
            "systems.kafka.streams.my.topic.samza.offset.default": "upcoming",
            "systems.kafka.streams.my.topic.samza.msg.serde": "string",
        }
    )
    system = SystemConfig.of(config, "kafka")
    assert system.input_policy("other").default is OffsetDefault.OLDEST
    assert system.input_policy("my.topic").default is OffsetDefault.UPCOMING
    assert (system.msg_serde("other"), system.msg_serde("my.topic")) == ("json", "string")
    assert system.key_serde("other") is None
    assert SystemConfig.of(_config(), "kafka").input_policy("x").default is OffsetDefault.UPCOMING


def test_stores_have_our_names() -> None:
    """Java factories, registered serdes and a changelog of the default system are resolved."""
    store = StorageConfig.of(_config(**_STORE)).stores["s"]
    assert (store.factory, store.key_serde, store.msg_serde) == ("rocksdb", "string", "json")
    assert store.changelog == SystemStream("kafka", "s-log")
    assert (store.changelog_max_message_bytes, store.changelog_delete_retention_ms) == (
        1000012,
        86400000,
    )
    assert store.changelog_min_compaction_lag_ms is None


def test_a_changelogs_own_compaction_lag_wins_over_that_of_all() -> None:
    """Zero too, which is a lag like any other."""
    general = {"stores.default.changelog.min.compaction.lag.ms": "7"}
    own = {"stores.s.changelog.min.compaction.lag.ms": "0"}
    lags = [
        StorageConfig.of(_config(**_STORE, **more)).stores["s"].changelog_min_compaction_lag_ms
        for more in (general, {**general, **own})
    ]
    assert lags == [7, 0]


def test_a_changelog_may_name_its_system_and_topic_properties() -> None:
    """system.stream wins over job.changelog.system; changelog.kafka.* is handed on."""
    config = _config(
        **_STORE, **{"job.changelog.system": "other", "stores.s.changelog.kafka.segment.ms": "5"}
    )
    store = StorageConfig.of(config).stores["s"]
    assert store.changelog == SystemStream("other", "s-log")
    assert store.changelog_overrides == {"segment.ms": "5"}
    named = config.merged({"stores.s.changelog": "kafka.my.log"})
    assert StorageConfig.of(named).stores["s"].changelog == SystemStream("kafka", "my.log")
    for wrong in ("kafka.", ".log"):
        with pytest.raises(ConfigError, match=r"must have the form system\.stream or stream"):
            StorageConfig.of(config.merged({"stores.s.changelog": wrong}))


def test_a_store_needs_factory_and_serdes() -> None:
    """Whichever is missing is named; the error of an unknown serde says how to register it."""
    assert StorageConfig.of(_config()).stores == {}
    for key in ("stores.s.factory", "stores.s.key.serde", "stores.s.msg.serde"):
        rest = {name: value for name, value in _STORE.items() if name != key}
        with pytest.raises(ConfigError, match=f"{key} is missing"):
            StorageConfig.of(_config(**rest))
    unknown = _config(**{**_STORE, "stores.s.key.serde": "avro"})
    with pytest.raises(ConfigError, match=r"or set serializers\.registry\.avro\.class"):
        StorageConfig.of(unknown)
    unknown_class = unknown.merged({"serializers.registry.avro.class": "AvroSerde"})
    with pytest.raises(ConfigError, match=r"serializers\.registry\.avro\.class = 'AvroSerde'"):
        StorageConfig.of(unknown_class)


def test_a_serde_may_be_the_jobs_own_or_avro() -> None:
    """module:Class in either form; avro with its schema, which must be JSON."""
    config = _config(**{**_STORE, "stores.s.msg.serde": "events"})

    def msg_serde(**entry: str) -> ConfiguredSerde:
        named = {f"serializers.registry.events.{part}": text for part, text in entry.items()}
        return StorageConfig.of(config.merged(named)).stores["s"].msg_serde

    assert msg_serde(**{"class": "my.serdes:Event"}) == "my.serdes:Event"
    assert msg_serde(**{"class": "my.serdes.Event"}) == "my.serdes:Event"
    entry = msg_serde(**{"class": "avro", "schema": ' {"type": "long"}'})
    assert entry == SchemaSerde("avro", "events", '{"type": "long"}')
    with pytest.raises(ConfigError, match=r"serializers\.registry\.events\.schema is missing"):
        msg_serde(**{"class": "avro"})
    with pytest.raises(ConfigError, match=r"events\.schema = 'long': it must be JSON"):
        msg_serde(**{"class": "avro", "schema": "long"})


def test_hot_standby_is_read_in_both_words() -> None:
    """Samza's factor counts the active container too; both and different is refused."""
    assert StandbyConfig.of(_config()) == StandbyConfig(enabled=False, replication_count=1)
    samza = _config(**{"job.standbytasks.replication.factor": "3"})
    assert StandbyConfig.of(samza) == StandbyConfig(enabled=True, replication_count=2)
    off = _config(**{"job.standbytasks.replication.factor": "1"})
    assert not StandbyConfig.of(off).enabled
    both = samza.merged({"job.hotstandby.enabled": "true", "job.hotstandby.replicationcount": "2"})
    assert StandbyConfig.of(both) == StandbyConfig(enabled=True, replication_count=2)
    mixed = {"job.container.mixed-roles": "true"}
    for config in (both, samza, _config(**{"job.hotstandby.enabled": "true"})):
        assert not StandbyConfig.of(config).is_mixed
        assert StandbyConfig.of(config.merged(mixed)).is_mixed
    assert not StandbyConfig.of(off.merged(mixed)).is_mixed
    assert not StandbyConfig.of(_config(**mixed)).is_mixed
    with pytest.raises(ConfigError, match="say something else"):
        StandbyConfig.of(both.merged({"job.hotstandby.replicationcount": "1"}))


def test_cluster_defaults() -> None:
    """Samza's sizes and retries, our check-ins."""
    manager = ClusterManagerConfig.of(_config())
    assert (manager.container_memory_mb, manager.request_timeout_ms) == (1024, 5000)
    assert (manager.retry_count, manager.retry_window_ms) == (8, 300000)
    assert (manager.check_in_interval_ms, manager.check_in_timeout_ms) == (500, 60000)
    assert (manager.lease_ms, manager.url_port, manager.url_host) == (10000, 0, None)
    yarn = YarnConfig.of(_config())
    assert (yarn.queue, yarn.am_max_attempts, yarn.package_path) == ("default", 10, None)


def test_keys_show_their_defaults() -> None:
    """The reference table can be printed from the keys."""
    assert keys.TASK_COMMIT_MS.default_text == "10000"
    assert keys.TASK_EXACTLY_ONCE.default_text == "true"
    assert keys.JOB_ID.default_text == "1"
    assert keys.JOB_NAME.default_text == keys.TASK_INPUTS.default_text == ""
    assert keys.JOB_STANDBY_TASKS_REPLICATION_FACTOR.default_text == ""


def test_an_environment_that_travels_gives_launchers_more_time() -> None:
    """The first container on a host unpacks it; what the key says stands."""
    archive = {"yarn.python.archive": "/a/homeport.tar.gz"}
    key = keys.CONTAINER_CHECK_IN_TIMEOUT_MS.name
    assert ClusterManagerConfig.of(_config()).check_in_timeout_ms == 60_000
    assert ClusterManagerConfig.of(_config(**archive)).check_in_timeout_ms == 300_000
    assert ClusterManagerConfig.of(_config(**archive, **{key: "7"})).check_in_timeout_ms == 7


STORE = {**KEYS, **store_keys("t", "string", msg_serde="long", changelog="kafka.t")}
TIMERS = {"task.timers.store": "t"}


def test_timers_are_in_memory_unless_a_store_is_named() -> None:
    """No event time either."""
    found = TimersConfig.of(Config({}))
    assert (found.store, found.lateness_ms) == (None, None)
    assert TimersConfig.of(Config({**STORE, **TIMERS})).store == "t"
    assert TimersConfig.of(Config({"task.watermark.idle.ms": "-1"})).idle_ms is None


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"task.timers.store": "other"}, "it must name a store of the job; it has t"),
        ({"stores.t.changelog": ""}, "a store without changelog does not outlive its container"),
        ({"stores.t.msg.serde": "json"}, "timers need a store of their own"),
        ({"stores.t.key.serde": "long"}, "timers need a store of their own"),
        ({"stores.t.rocksdb.ttl.ms": "5000"}, "without a time to live"),
        ({"task.watermark.lateness.ms": "-1"}, "at least 0"),
    ],
)
def test_a_store_that_cannot_hold_timers_is_refused(change: dict[str, str], expected: str) -> None:
    """In one line."""
    values = {k: v for k, v in {**STORE, **TIMERS, **change}.items() if v}
    with pytest.raises(ConfigError, match=expected):
        TimersConfig.of(Config(values))


def test_windows_of_concurrent_calls_need_a_lateness() -> None:
    """0 is one; calls that come one after the other need none."""
    require_lateness("w", 1, None)
    require_lateness("w", 2, 0)
    with pytest.raises(
        ConfigError, match=r"^task\.max\.concurrency = '2': .* the windows 'w' lose"
    ):
        require_lateness("w", 2, None)


JMX = "org.apache.samza.metrics.reporter.JmxReporterFactory"


def test_snapshot_reporters_are_taken_and_jmx_is_passed_over() -> None:
    """In their order; the interval is a minute by default."""
    config = Config(
        {
            "metrics.reporters": "jmx,a,b",
            "metrics.reporter.jmx.class": JMX,
            "metrics.reporter.a.class": SNAPSHOTS,
            "metrics.reporter.a.stream": "kafka.metrics",
            "metrics.reporter.b.class": SNAPSHOTS,
            "metrics.reporter.b.stream": "other.m",
            "metrics.reporter.b.interval": "5",
        }
    )
    assert snapshot_reporters(config) == (
        SnapshotReporter("a", SystemStream("kafka", "metrics"), 60),
        SnapshotReporter("b", SystemStream("other", "m"), 5),
    )
    assert snapshot_reporters(Config({})) == ()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, "metrics.reporter.a.class is missing"),
        ({"class": "com.example.Own"}, "metrics.reporter.a.class = 'com.example.Own'"),
        ({"class": SNAPSHOTS}, "metrics.reporter.a.stream is missing"),
        ({"class": SNAPSHOTS, "stream": "x"}, "it must have the form system.stream"),
        ({"class": SNAPSHOTS, "stream": "kafka.m", "interval": "0"}, "metrics.reporter.a.interval"),
    ],
)
def test_another_reporter_is_refused(values: dict[str, str], expected: str) -> None:
    """With the key, and what to write."""
    config = {f"metrics.reporter.a.{key}": value for key, value in values.items()}
    with pytest.raises(ConfigError) as caught:
        snapshot_reporters(Config({"metrics.reporters": "a", **config}))
    assert expected in str(caught.value)


PIPELINE = {"task.pipeline.class": "m:p"}
SMALL = {"cluster-manager.container.memory.mb": "1240"}
LARGE = {"cluster-manager.container.memory.mb": "1280"}
PREWARM = {"job.hotstandby.prewarm": "true"}


@pytest.mark.parametrize(
    ("values", "own", "temporary"),
    [
        (LARGE, False, False),
        (LARGE | PREWARM, False, False),
        (LARGE | PIPELINE, False, True),
        (SMALL | PIPELINE, False, False),
        (LARGE | PIPELINE | PREWARM, True, True),
    ],
    ids=str,
)
def test_who_has_one(values: dict[str, str], *, own: bool, temporary: bool) -> None:
    """Own standbys by the key, temporary ones by their memory; none without a pipeline."""
    config = Config({"job.name": "j", "job.default.system": "kafka", **values})
    task = TaskConfig.of(config)
    assert has_spark_beside(config, task, is_temporary=False) is own
    assert has_spark_beside(config, task, is_temporary=True) is temporary


_TYPES: dict[type[Key], Any] = {IntKey: int, BoolKey: bool, TextKey: str, ListKey: tuple[str, ...]}


@pytest.mark.parametrize(
    "view",
    [
        *(JobConfig, TaskConfig, ClusterManagerConfig, YarnConfig, RocksDbConfig),
        *(UniversalCompaction, StoreConfig, AdjunctStore, StandaloneConfig, Tuning, TimersConfig),
        *(RecordsConfig, LogConfig),
    ],
)
def test_a_field_that_names_its_key_has_the_type_of_its_values(view: type) -> None:
    """None as well, where the key is read as a number or as text and has no default."""
    hints = get_type_hints(view, include_extras=True).values()
    named = [get_args(hint) for hint in hints if hasattr(hint, "__metadata__")]
    assert named
    for hint, key in named:
        plain = next(of for kind, of in _TYPES.items() if isinstance(key, kind))
        may_lack = not isinstance(key, ListKey) and key.default is None
        assert hint == (plain | None if may_lack else plain), key.name
