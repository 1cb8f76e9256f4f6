"""Keys without effect are reported: Samza's, older names, misspellings; not the user's own."""

from __future__ import annotations

import re

import pytest

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.samza_keys import ALL, known_to_samza
from homeport.config.declarations.unknown_keys import (
    REMOVED,
    correction,
    is_unread,
    meant_by,
    meant_key,
    require_known,
    warnings_about,
)
from homeport.config.errors import ConfigError

_KEY = re.compile(r"[a-z][\w-]*(?:\.[\w<>*-]+)+")
REFERENCE = """
job.host-affinity.enabled yarn.samza.host-affinity.enabled job.container.count
job.standbytasks.replication.factor cluster-manager.container.memory.mb
cluster-manager.container.cpu.cores cluster-manager.container.request.timeout.ms
cluster-manager.allocator.sleep.ms yarn.allocator.sleep.ms cluster-manager.container.retry.count
cluster-manager.container.retry.window.ms cluster-manager.container.fail.job.after.retries
cluster-manager.container.preferred-host.last.retry.delay.ms
cluster-manager.jobcoordinator.sleep.interval.ms cluster-manager.jobcoordinator.url.port
cluster-manager.fault-domain-aware.standby.enabled cluster-manager.fault-domain-manager.factory
samza.cluster-manager.factory job.jmx.enabled yarn.am.jmx.enabled
cluster-manager.jobcoordinator.jmx.enabled yarn.package.path yarn.am.container.memory.mb
yarn.am.container.cpu.cores yarn.am.opts yarn.am.java.home yarn.queue yarn.am.poll.interval.ms
yarn.container.label yarn.am.container.label yarn.application.type yarn.job.staging.directory
yarn.job.view.acl yarn.job.modify.acl yarn.resources.x.path yarn.resources.x.local.name
yarn.kerberos.principal yarn.kerberos.keytab yarn.token.renewal.interval.seconds
yarn.am.high-availability.enabled yarn.container.heartbeat.retry.count
yarn.container.heartbeat.retry-sleep-duration.ms job.container.heartbeat.monitor.enabled
job.logged.store.base.dir job.non-logged.store.base.dir job.container.thread.pool.size
job.container.restore.thread.pool.size job.container.restore.thread.pool.max.size
job.container.commit.thread.pool.size job.container.commit.thread.pool.max.size
job.elasticity.factor job.startpoint.enabled job.autosizing.enabled
job.autosizing.container.count job.drain-monitor.enabled job.drain-monitor.poll.interval.ms
container.disk.poll.interval.ms container.disk.quota.bytes locationid.provider.factory
job.debounce.time.ms job.systemstreampartition.grouper.factory
job.systemstreampartition.input.expansion.enabled
job.coordinator.monitor-partition-change.frequency.ms
job.system.stream.partition.mapper.factory job.coordinator.execute
job.checkpoint.validation.enabled job.coordinator.monitor-input-regex.frequency.ms
job.diagnostics.enabled app.mode app.runner.class task.execute task.opts task.java.home
worker.opts additional.classpath.dir stores.s.factory stores.s.key.serde stores.s.msg.serde
stores.s.changelog stores.s.changelog.replication.factor stores.s.changelog.max.message.bytes
stores.s.changelog.max.message.size.bytes stores.s.changelog.delete.retention.ms
stores.s.changelog.min.compaction.lag.ms stores.s.changelog.kafka.x
stores.s.disallow.large.messages stores.s.drop.large.messages stores.s.accesslog.enabled
stores.s.accesslog.sampling.ratio stores.s.backup.factories stores.s.restore.factories
stores.s.side.inputs stores.s.side.inputs.processor.factory stores.s.clean.on.container.start
stores.s.write.batch.size stores.s.object.cache.size stores.s.container.write.buffer.size.bytes
stores.s.container.cache.size.bytes stores.s.rocksdb.ttl.ms stores.s.rocksdb.compression
stores.s.rocksdb.max.manifest.file.size stores.default.changelog.min.compaction.lag.ms
task.class task.inputs task.broadcast.inputs task.name.grouper.factory task.commit.ms
task.commit.max.delay.ms task.commit.timeout.ms task.commit.skip.commit.during.failures.enabled
task.window.ms task.shutdown.ms task.max.concurrency task.async.commit task.callback.timeout.ms
task.callback.drain.timeout.ms task.callback.watermark.timeout.ms task.max.idle.ms
task.poll.interval.ms task.ignored.exceptions task.drop.deserialization.errors
task.drop.serialization.errors task.drop.producer.errors task.chooser.class
task.consumer.batch.size task.checkpoint.factory task.checkpoint.system
task.checkpoint.replication.factor task.checkpoint.segment.bytes
task.checkpoint.max.message.bytes task.checkpoint.write.versions task.checkpoint.read.versions
task.live.checkpoint.max.age task.transactional.state.checkpoint.enabled
task.transactional.state.restore.enabled task.transactional.state.retain.existing.state
task.command.class
"""
"""Names of keys in the reference, 5.1."""


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("task.comit.ms", "task.commit.ms"),
        ("job.hostaffinity.enabled", "job.host-affinity.enabled"),
        ("yarn.package.pth", "yarn.package.path"),
        ("cluster-manager.container.memory.gb", "cluster-manager.container.memory.mb"),
        ("cluster_manager.container.memory.mb", "cluster-manager.container.memory.mb"),
        ("systems.any.samza.ofset.default", "systems.any.samza.offset.default"),
        ("systems.k.streams.a.b.samza.ofset.default", "systems.k.streams.a.b.samza.offset.default"),
        ("system.k.consumer.fetch.min.bytes", "systems.k.consumer.fetch.min.bytes"),
        ("stores.s.key.serd", "stores.s.key.serde"),
        ("job.rntiecona.count", None),
        ("store.s.factory", "stores.s.factory"),
        ("serializers.registry.x.clas", "serializers.registry.x.class"),
        ("task.my.own", None),
        ("my.task.commit.ms", None),
        ("tasks", None),
    ],
)
def test_the_keys_that_an_unknown_name_may_mean(name: str, meant: str | None) -> None:
    """The nearest key, with the parts that the name gives; none where nothing is near."""
    assert meant_by(name) == meant


def test_each_unknown_key_gives_one_line() -> None:
    """Near ones get a question; others that begin like ours a word; the user's own none."""
    own = {"task.my.own": "x", "tasks.of.mine": "y", "my.key": "1", "a": "b"}
    config = Config({"job.container.counts": "3", **own})
    assert warnings_about(config) == (
        "job.container.counts is not a key of Homeport: did you mean job.container.count?",
        (
            "task.my.own is not a key of Homeport: only the job's own code can read it, and a "
            "change of it does not reach a running job"
        ),
    )


def test_thousands_of_unknown_keys_are_not_thousands_of_lines() -> None:
    """Twenty are reported one by one, the rest by their number."""
    found = warnings_about(Config({f"task.custom.setting{n}": "" for n in range(1000)}))
    assert len(found) == 21
    assert found[-1] == "980 more keys that begin like Homeport's are none of them"


def test_an_older_name_beside_the_present_one_is_reported() -> None:
    """The present name wins; alone the older one is read."""
    both = Config({"yarn.container.count": "2", "job.container.count": "3"})
    assert warnings_about(both) == (
        "yarn.container.count has no effect: job.container.count, its present name, is set too",
    )
    assert warnings_about(Config({"yarn.container.count": "2"})) == ()


def test_samzas_keys_are_reported_with_the_reason() -> None:
    """A key that does nothing here says so; a value that asks for what happens anyway does not."""
    config = Config(
        {
            "yarn.am.opts": "-Xmx1g",
            "stores.s.write.batch.size": "500",
            "task.max.concurrency": "1",
            "job.factory.class": "org.apache.samza.job.yarn.YarnJobFactory",
        }
    )
    stated = "is known to Samza and has no effect here"
    assert warnings_about(config) == (
        f"stores.s.write.batch.size {stated}: a transaction's writes go to the store as one batch",
        f"yarn.am.opts {stated}: the AM's JVM is Skein's, sized by yarn.am.container.memory.mb",
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("job.elasticity.factor", "2"),
        ("app.mode", "BATCH"),
        ("job.factory.class", "org.apache.samza.job.local.ThreadJobFactory"),
        ("job.autosizing.enabled", "true"),
        ("stores.s.accesslog.enabled", "true"),
        ("stores.s.backup.factories", "org.apache.samza.storage.blobstore.BlobStoreFactory"),
        ("stores.restore.factories", "org.apache.samza.storage.blobstore.BlobStoreFactory"),
        ("stores.s.rocksdb.wal.enabled", "true"),
        ("systems.k.default.stream.samza.msg.serde", "json"),
        ("systems.k.default.stream.samza.offset.default", "oldest"),
        ("systems.k.default.stream.samza.bootstrap", "true"),
        ("streams.edits.samza.physical.name", "wiki-edits"),
        ("streams.edits.samza.msg.serde", "json"),
        ("streams.edits.samza.key.serde", "json"),
        ("streams.edits.samza.offset.default", "oldest"),
        ("streams.edits.samza.bootstrap", "yes"),
        ("streams.edits.samza.bootstrap", "perhaps"),
        ("streams.edits.samza.reset.offset", "true"),
        ("streams.edits.samza.priority", "1"),
        ("systems.k.default.stream.samza.reset.offset", "1"),
        ("app.name", "wiki"),
        ("app.id", "2"),
    ],
)
def test_a_key_that_would_change_results_is_refused(name: str, value: str) -> None:
    """The error names key, value and a remedy."""
    with pytest.raises(ConfigError) as caught:
        warnings_about(Config({name: value}))
    assert str(caught.value).startswith(f"{name} = {value!r}: ")
    assert "; " in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("app.mode", "BATCH", "job.drain=true"),
        ("job.factory.class", "org.apache.samza.job.local.ProcessJobFactory", "homeport run-local"),
        (
            "systems.k.default.stream.samza.key.serde",
            "json",
            "as systems.<system>.samza.<property>",
        ),
        ("systems.k.default.stream.samza.priority", "1", "samza.<property> for each stream"),
    ],
)
def test_a_remedy_names_what_there_is(name: str, value: str, remedy: str) -> None:
    """Keys and commands of Homeport."""
    with pytest.raises(ConfigError) as caught:
        warnings_about(Config({name: value}))
    assert remedy in caught.value.remedy


def test_each_key_that_a_reason_or_a_remedy_names_is_one_of_ours() -> None:
    """Their names begin as ours do, and Samza has no such key without effect."""
    named = {
        (word, key.name)
        for key in ALL
        for word in _KEY.findall(f"{key.reason} {key.remedy}")
        if word.startswith(keys.TOPICS) and not word.endswith(("<property>", ".*"))
    }
    assert len(named) > 15
    assert {pair for pair in named if keys.declared(pair[0]) is None} == {
        ("job.autosizing.enabled", "job.autosizing.<part>")
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("systems.k.default.stream.samza.bootstrap", "false"),
        ("streams.edits.samza.bootstrap", "false"),
        *(("streams.edits.samza.bootstrap", no) for no in ("no", "Off", "0")),
        ("streams.edits.samza.reset.offset", "no"),
        ("streams.edits.samza.priority", "-1"),
        ("streams.edits.samza.priority", "0"),
        ("streams.edits.samza.intermediate", "no"),
        ("streams.edits.samza.physical.name", "edits"),
        ("streams.wiki.edits.samza.physical.name", "wiki.edits"),
        ("systems.k.default.stream.samza.bootstrap", "off"),
        ("systems.k.default.stream.samza.priority", "-1"),
        ("metrics.timer.enabled", "on"),
        ("task.callback.watermark.timeout.ms", "-1"),
        ("task.checkpoint.write.versions", "1"),
        ("metrics.timer.enabled", "true"),
        ("job.container.thread.pool.size", "1"),
        ("app.id", "1"),
    ],
)
def test_a_value_that_asks_for_what_happens_here_is_not_reported(name: str, value: str) -> None:
    """Samza's default among them."""
    assert warnings_about(Config({name: value})) == ()


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("streams.edits.samza.bounded", "true", "the end of a partition is not the end of its"),
        ("streams.edits.samza.delete.committed.messages", "true", "records of inputs are never"),
        ("streams.edits.samza.intermediate", "true", "a job has no intermediate streams"),
        ("streams.edits.samza.broadcast", "true", "task.broadcast.inputs names what each task"),
        ("streams.edits.samza.fetch.threshold", "10", "no stream takes it from there"),
        ("systems.k.default.stream.samza.bounded", "true", "the end of a partition is not the"),
        ("systems.k.default.stream.samza.delete.committed.messages", "true", "records of inputs"),
        ("systems.k.default.stream.samza.fetch.threshold", "10", "the consumer's own fetch"),
        ("systems.k.samza.fetch.threshold", "10", "the consumer's own fetch properties hold"),
        ("systems.k.default.stream.samza.other", "x", "no stream takes it from there"),
        ("task.callback.watermark.timeout.ms", "0", "a task returns when its batch is done"),
    ],
)
def test_a_property_of_streams_that_changes_no_result_is_warned_of(
    name: str, value: str, reason: str
) -> None:
    """In each of its spellings alike."""
    (line,) = warnings_about(Config({name: value}))
    assert line.startswith(f"{name} is known to Samza and has no effect here: {reason}")


@pytest.mark.parametrize("prefix", ["streams.edits.samza", "systems.k.default.stream.samza"])
@pytest.mark.parametrize(
    "prop", ["key.serde", "msg.serde", "offset.default", "bootstrap", "reset.offset", "priority"]
)
def test_the_spelling_that_a_remedy_names_is_read(prefix: str, prop: str) -> None:
    """By a key of ours, with the property of the one that is refused."""
    with pytest.raises(ConfigError) as caught:
        warnings_about(Config({f"{prefix}.{prop}": "1"}))
    (named,) = re.findall(r"systems\.\S+", caught.value.remedy)
    spelling = named.replace("<property>", prop)
    assert meant_key(spelling) == (keys.declared(spelling), None)
    assert not is_unread(spelling)


def test_a_key_is_judged_beside_the_others() -> None:
    """Those that are named, within the whole configuration."""
    config = Config({"app.name": "wiki", "job.name": "wiki", "job.jmx.enabled": "true"})
    assert warnings_about(config, "app.name") == ()
    assert len(warnings_about(config, "app.name", "job.jmx.enabled")) == 1
    with pytest.raises(ConfigError, match=r"give job\.name this value"):
        warnings_about(config.merged({"app.name": "edits"}), "app.name")


def test_no_key_of_samzas_is_also_one_of_ours() -> None:
    """Once a key has an effect here, by an older name too, it leaves the table of the others."""
    own = {name for key in keys.ALL for name in (key.name, *key.legacy)}
    assert [key.name for key in ALL if key.name in own] == []


def test_the_reference_lists_no_unknown_key() -> None:
    """Every key of the reference's 5.1 is a key of Homeport, or is reported or refused."""
    assert [
        n for n in REFERENCE.split() if keys.declared(n) is None and known_to_samza(n) is None
    ] == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("task.commit.ms", False),
        ("stores.counts.changelog", False),
        ("my.key", False),
        ("plain", False),
        ("task.my.own", True),
        ("task.comit.ms", True),
        ("taks.commit.ms", True),
        ("job.jmx.enabled", True),
        ("systems.s.default.stream.samza.key.serde", True),
    ],
)
def test_a_key_of_the_jobs_own_begins_with_another_word(*, name: str, expected: bool) -> None:
    """No program reads what begins, or nearly so, as Homeport's keys and is none of them."""
    assert is_unread(name) is expected


def test_a_key_that_no_program_reads_is_refused_in_a_jobs_own_file() -> None:
    """A misspelt key of high availability would start the job without it."""
    known = {
        "my.key": "1",
        "plain": "2",
        "job.hotstandby.enabled": "true",
        "yarn.am.opts": "-Xmx1g",
    }
    require_known(Config({**known, "stores.s.write.batch.size": "5", "yarn.container.count": "2"}))
    allow = "or allow it by --allow-unknown-keys"
    for name, remedy in {
        "job.hotstandby.enable": "write job.hotstandby.enabled, if that is meant",
        "jobs.hotstandby.enabled": "write job.hotstandby.enabled, if that is meant",
        "task.my.own": "begin the name of a key of the job's own with another word",
    }.items():
        with pytest.raises(ConfigError) as caught:
            require_known(Config({**known, name: "x"}))
        assert str(caught.value) == f"{name} = 'x': no program reads this key; {remedy}, {allow}"


@pytest.mark.parametrize("name", REMOVED)
def test_a_key_that_is_gone_is_a_warning_with_what_is_in_its_place(name: str) -> None:
    """The file of a job of the version before starts the job; nothing else reads the key."""
    config = Config({name: "nm7"})
    require_known(config)
    (line,) = warnings_about(config)
    assert line == f"{name} is no key any more, and has no effect: {REMOVED[name]}; remove it"
    assert is_unread(name)
    assert correction(name) == f"remove it: {REMOVED[name]}"


@pytest.mark.parametrize(
    "name",
    [
        "job.container.task.executor.factory",
        "job.coordination.utils.factory",
        "job.coordinator.azure.blob.length",
        "job.coordinatorstream.config.factory",
        "job.intermediate.stream.partitions",
        "job.security.manager.factory",
        "metrics.reporter.snapshot.blacklist",
        "metrics.timer.debug.enabled",
        "metrics.timer.enabled",
        "systems.kafka.default.stream.cleanup.policy",
        "systems.kafka.samza.delete.committed.messages",
        "task.checkpoint.path",
        "task.checkpoint.skip-migration",
        "task.log4j.location.info.enabled",
        "task.log4j.system",
    ],
)
def test_a_key_that_samza_reads_is_refused_by_none(name: str) -> None:
    """A file that comes from Samza has it: a line gives the reason why it does nothing."""
    config = Config({name: "x"})
    require_known(config)
    (message,) = warnings_about(config)
    assert message.startswith(f"{name} is known to Samza and has no effect here: ")


def test_checkpoints_of_elastic_tasks_are_refused() -> None:
    """Without them the job would begin elsewhere."""
    name = "job.elasticity.checkpoints.enabled"
    with pytest.raises(ConfigError, match="write false, or remove it"):
        warnings_about(Config({name: "true"}))
    assert warnings_about(Config({name: "false"})) == ()
