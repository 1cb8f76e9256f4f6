"""What changed, what that means for a running job, and what its containers then take over."""

from __future__ import annotations

import pytest
from small_jobs import store_keys

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import BoolKey, Liveness, TextKey
from homeport.config.settings.config_diff import ConfigDiff, effective
from homeport.config.settings.tuning import Tuning

ROCKSDB = "org.apache.samza.storage.kv.RocksDbKeyValueStorageEngineFactory"
STORE = {
    **store_keys("s", "string", msg_serde="json", changelog="log"),
    "job.default.system": "kafka",
}


def between(before: dict[str, str], after: dict[str, str]) -> ConfigDiff:
    """The diff of two plain mappings."""
    return ConfigDiff.between(Config(before), Config(after))


def test_each_key_stands_where_its_liveness_says() -> None:
    """A changed key is listed by its full name under its liveness, sorted."""
    diff = between(
        {**STORE, "job.container.count": "3", "task.commit.ms": "1"},
        {
            **STORE,
            "job.container.count": "5",
            "cluster-manager.container.retry.count": "1",
            "task.commit.ms": "2",
            "systems.k.consumer.fetch.min.bytes": "7",
            "yarn.queue": "fast",
            "stores.s.msg.serde": "string",
            "job.systemstreampartition.grouper.factory": "other",
            "task.inputs": "k.a",
        },
    )
    assert diff == ConfigDiff(
        live=("cluster-manager.container.retry.count", "job.container.count", "task.inputs"),
        retunes_containers=("task.commit.ms",),
        restarts_containers=("systems.k.consumer.fetch.min.bytes",),
        needs_redeploy=("yarn.queue",),
        never_with_state=("job.systemstreampartition.grouper.factory", "stores.s.msg.serde"),
    )
    assert not diff.is_empty


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"task.commit.ms": "10000"}),
        ({"task.commit.ms": "10000"}, {}),
        ({"task.commit.ms": " 010 "}, {"task.commit.ms": "10"}),
        ({"job.host-affinity.enabled": "yes"}, {"job.host-affinity.enabled": "TRUE"}),
        ({"yarn.container.count": "3"}, {"job.container.count": "3"}),
        ({"task.inputs": "k.a, k.b"}, {"task.inputs": "k.b,k.a,"}),
        ({**STORE}, {**STORE, "stores.s.factory": ROCKSDB}),
        ({**STORE}, {**STORE, "stores.s.changelog": "kafka.log"}),
        ({**STORE}, {**STORE, "task.checkpoint.system": "kafka", "job.changelog.system": "kafka"}),
        (
            {**STORE},
            {**STORE, "stores.s.key.serde": "org.apache.samza.serializers.StringSerdeFactory"},
        ),
    ],
)
def test_the_same_in_other_words_is_no_change(
    before: dict[str, str], after: dict[str, str]
) -> None:
    """Spellings, defaults, legacy names, Java's names and fall-backs are not changes."""
    assert between(before, after).is_empty


def test_keys_of_the_user_restart_containers() -> None:
    """User code reads an undeclared key when it starts."""
    assert between({}, {"my.key": "1"}) == ConfigDiff(restarts_containers=("my.key",))
    assert between({"my.key": "1"}, {}) == ConfigDiff(restarts_containers=("my.key",))


def test_a_changed_fallback_changes_its_keys() -> None:
    """Another default system moves checkpoints and changelogs that name none."""
    diff = between(STORE, {**STORE, "job.default.system": "other"})
    assert diff.never_with_state == ("stores.s.changelog", "task.checkpoint.system")
    assert set(diff.needs_redeploy) == {
        "job.changelog.system",
        "job.coordinator.system",
        "job.default.system",
    }


def test_a_serde_of_the_registry_changes_the_stores_that_name_it() -> None:
    """The bytes of a store change with the class behind its serde's name."""
    registry = "serializers.registry.mine.class"
    before = {**STORE, "stores.s.key.serde": "mine", registry: "long"}
    diff = between(before, {**before, registry: "integer"})
    assert diff == ConfigDiff(needs_redeploy=(registry,), never_with_state=("stores.s.key.serde",))


def test_a_store_that_comes_or_goes_needs_a_redeploy() -> None:
    """A store that only one of the two has is at no risk: nothing of it is read differently."""
    names = tuple(sorted(k for k in STORE if k.startswith("stores.")))
    without = {"job.default.system": "kafka"}
    assert between(without, STORE) == ConfigDiff(needs_redeploy=names)
    assert between(STORE, without) == ConfigDiff(needs_redeploy=names)


def test_a_store_without_a_changelog_comes_and_goes_with_a_restart() -> None:
    """Containers alone read it: all of its keys count at once, or it would be another store."""
    store = {
        "stores.a.factory": ROCKSDB,
        "stores.a.key.serde": "string",
        "stores.a.msg.serde": "string",
        "stores.a.adstore.input": "k.a",
        "stores.a.adstore.key.value.extractor.factory": "m:E",
        "stores.a.adstore.version.marker.header": "version",
    }
    names = tuple(sorted(store))
    assert between(STORE, {**STORE, **store}) == ConfigDiff(restarts_containers=names)
    assert between({**STORE, **store}, STORE) == ConfigDiff(restarts_containers=names)
    other = {**store, "stores.a.adstore.key.value.extractor.factory": "m:F"}
    diff = between({**STORE, **store}, {**STORE, **other})
    assert diff == ConfigDiff(needs_redeploy=("stores.a.adstore.key.value.extractor.factory",))


def test_effective_keeps_the_keys_that_need_a_redeploy() -> None:
    """Live and restarting keys are as wanted; a redeploy's keys as they run, absent ones absent."""
    running = Config({"job.container.count": "3", "yarn.queue": "a", "task.commit.ms": "1"})
    wanted = Config({"job.container.count": "5", "yarn.am.max-attempts": "3", "my.key": "x"})
    assert effective(running, wanted, has_state=False) == Config(
        {"job.container.count": "5", "yarn.queue": "a", "my.key": "x"}
    )


@pytest.mark.parametrize("has_state", [True, False])
def test_effective_keeps_the_grouper_of_a_job_with_state(*, has_state: bool) -> None:
    """Where the caller knows that nothing was kept yet, how partitions become tasks may change."""
    running = Config(STORE)
    wanted = running.merged({"job.systemstreampartition.grouper.factory": "other"})
    assert effective(running, wanted, has_state=has_state) == (running if has_state else wanted)


def test_without_a_changelog_one_time_keys_need_a_redeploy() -> None:
    """No state is mixed up, but topics are made at a submission."""
    wanted = Config({"job.systemstreampartition.grouper.factory": "other"})
    diff = ConfigDiff.between(Config(), wanted.merged({"task.checkpoint.system": "other"}))
    assert diff == ConfigDiff(needs_redeploy=(*wanted, "task.checkpoint.system"))


def test_effective_keeps_the_spelling_that_runs() -> None:
    """A key under its legacy name is kept under it, and the wanted spelling is dropped."""
    running = Config({"yarn.container.memory.mb": "1"})
    wanted = Config({"cluster-manager.container.memory.mb": "2"})
    assert effective(running, wanted, has_state=True) == running


def test_a_key_that_no_program_reads_is_no_change_of_what_is_in_force() -> None:
    """The value of the deployment stays."""
    running = Config({"task.my.own": "1", "task.comit.ms": "5"})
    wanted = Config({"task.my.own": "2", "app.name": "x", "my.key": "1"})
    diff = ConfigDiff.between(running, wanted)
    assert diff == ConfigDiff(
        restarts_containers=("my.key",), unread=("app.name", "task.comit.ms", "task.my.own")
    )
    assert effective(running, wanted, has_state=True) == running.merged({"my.key": "1"})


def test_a_change_of_tokens_alone_is_one_of_its_own_kind() -> None:
    """Beside any other key it is a change as any."""
    key = "cluster-manager.jobcoordinator.tokens.read"
    tokens = Config({key: f"ada:{'ab' * 32}"})
    assert ConfigDiff.between(Config(), tokens).is_of_tokens
    more = tokens.merged({"job.container.count": "3"})
    assert not ConfigDiff.between(Config(), more).is_of_tokens
    assert not ConfigDiff.between(Config(), tokens.merged({"a": "b"})).is_of_tokens


def test_the_defaults() -> None:
    """Ten seconds between flushes, one between transactions, 32 MiB, no windows.

    A transaction ends early where the input is idle, 10 ms after the one before; batches fill only
    before a pipeline.
    """
    assert Tuning.of(Config({})) == Tuning(10_000, 1000, 32 * 1024 * 1024, None, 10, 0)
    pipeline = {"task.pipeline.class": "module:function"}
    assert Tuning.of(Config(pipeline)).linger_ms == 100
    assert Tuning.of(Config({**pipeline, "task.batch.linger.ms": "0"})).linger_ms == 0


def test_no_transaction_ends_early_where_the_key_says_so() -> None:
    """-1 switches it off; 0 is the shortest distance."""
    assert Tuning.of(Config({"task.transaction.idle.ms": "-1"})).idle_ms is None
    assert Tuning.of(Config({"task.transaction.idle.ms": "0"})).idle_ms == 0


def test_every_key_that_containers_take_over_is_read_here() -> None:
    """A value of each such key changes the tuning, and no restart is needed."""
    found = [key for key in keys.ALL if key.liveness is Liveness.RETUNES_CONTAINERS]
    assert len(found) == 9
    for key in found:
        value = key.choices[-1] if isinstance(key, TextKey) else "7"
        config = Config({key.name: "true" if isinstance(key, BoolKey) else value})
        assert Tuning.of(config) != Tuning.of(Config({}))
        diff = ConfigDiff.between(Config({}), config)
        assert diff == ConfigDiff(retunes_containers=(key.name,))
        assert not diff.is_empty


def test_a_transaction_ends_by_age_or_by_size() -> None:
    """Whichever comes first."""
    tuning = Tuning(10_000, transaction_ms=1000, transaction_max_bytes=100)
    assert not tuning.ends_transaction(999.9, 99)
    assert tuning.ends_transaction(1000, 0)
    assert tuning.ends_transaction(0, 100)
