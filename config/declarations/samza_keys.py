"""Keys of Samza's that do nothing here, each with the reason.

A job that comes from Samza brings them along. Those without which it would compute something else
are refused, with a remedy; of the others a warning says that they have no effect. None is passed
over in silence.

Source: reference, 5.1, 1.7, 3.1, 6, 8, 10.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from homeport.config.config import Config
from homeport.config.declarations.key_types import name_pattern
from homeport.config.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class SamzaKey:
    """A key, or with parts in angle brackets a family of keys.

    Args:
        name: the name; a part in angle brackets stands for any text.
        reason: why it has no effect, after "has no effect here:"; or the rule that refuses it.
        remedy: what to do instead; "": it is not refused, only warned of.
        harmless: values, in lower case, that ask for what happens here anyway.
    """

    name: str
    reason: str
    remedy: str = ""
    harmless: tuple[str, ...] = ()

    def matches(self, name: str) -> bool:
        """Whether ``name`` is this key, or one of the family."""
        return self._pattern.fullmatch(name) is not None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return name_pattern(self.name)

    def objection(self, config: Config, name: str) -> str | None:
        """The warning for ``name``, which is this key; None where its value asks for nothing else.

        Raises:
            ConfigError: the value is refused.
        """
        value = config.get_str(name, "")
        if not value or value.lower() in self.harmless:
            return None
        if self.remedy:
            raise ConfigError(name, value, self.reason, self.remedy)
        return f"{name} is known to Samza and has no effect here: {self.reason}"


ALL: tuple[SamzaKey, ...] = (
    SamzaKey(
        name="app.mode",
        reason="jobs that end with their input are not supported",
        remedy="write STREAM, or remove it",
        harmless=("stream",),
    ),
    SamzaKey(name="app.class", reason="task.class and task.pipeline.class name the job's code"),
    SamzaKey(
        name="app.runner.class", reason="task.class and task.pipeline.class name the job's code"
    ),
    SamzaKey(name="app.name", reason="job.name and job.id name the job"),
    SamzaKey(name="app.id", reason="job.name and job.id name the job"),
    SamzaKey(
        name="job.factory.class",
        reason="jobs run on YARN only",
        remedy="write org.apache.samza.job.yarn.YarnJobFactory, or remove it",
        harmless=("org.apache.samza.job.yarn.yarnjobfactory",),
    ),
    SamzaKey(name="job.config.loader.<part>", reason="--config-path names the properties file"),
    SamzaKey(name="job.config.factory.class", reason="--config-path names the properties file"),
    SamzaKey(
        name="job.elasticity.factor",
        reason="a task reads whole partitions",
        remedy="write 1, or remove it",
        harmless=("1",),
    ),
    SamzaKey(
        name="job.autosizing.enabled",
        reason="nothing changes sizes by itself here",
        remedy="write false, and set job.container.count and cluster-manager.container.* yourself",
        harmless=("false",),
    ),
    SamzaKey(name="job.autosizing.<part>", reason="job.autosizing.enabled cannot be true"),
    SamzaKey(
        name="job.startpoint.enabled",
        reason="a task starts at its checkpoint, else at start.time or samza.offset.default",
        harmless=("false",),
    ),
    SamzaKey(name="job.drain-monitor.<part>", reason="run-job --operation=drain needs no monitor"),
    SamzaKey(
        name="job.diagnostics.enabled",
        reason="/v1/status and the logs say what failed",
        harmless=("false",),
    ),
    SamzaKey(
        name="job.jmx.enabled",
        reason="no program of the job is a JVM that offers JMX",
        harmless=("false",),
    ),
    SamzaKey(
        name="yarn.am.jmx.enabled",
        reason="no program of the job is a JVM that offers JMX",
        harmless=("false",),
    ),
    SamzaKey(
        name="cluster-manager.jobcoordinator.jmx.enabled",
        reason="no program of the job is a JVM that offers JMX",
        harmless=("false",),
    ),
    SamzaKey(
        name="job.container.heartbeat.monitor.enabled", reason="leases take the place of heartbeats"
    ),
    SamzaKey(name="yarn.container.heartbeat.<part>", reason="leases take the place of heartbeats"),
    SamzaKey(
        name="job.container.thread.pool.size",
        reason="a container runs its tasks in one thread",
        harmless=("0", "1"),
    ),
    SamzaKey(
        name="job.container.commit.thread.pool.<part>",
        reason="a container runs its tasks in one thread",
        harmless=("0", "1"),
    ),
    SamzaKey(
        name="job.container.restore.thread.pool.<part>",
        reason="stores are restored by worker processes of their own",
    ),
    SamzaKey(
        name="job.checkpoint.validation.enabled",
        reason="checkpoints are always checked",
        harmless=("true",),
    ),
    SamzaKey(name="job.coordinator.execute", reason="the driver is started by the supervisor"),
    SamzaKey(name="job.coordinator.max.message.bytes", reason="the broker's limit holds"),
    SamzaKey(
        name="job.coordinator.zk.enable-startup-with-active-job-model",
        reason="an assignment that stays is never published again",
    ),
    SamzaKey(name="processor.list", reason="processors register by themselves"),
    SamzaKey(
        name="locationid.provider.factory", reason="job.location-id says where a processor runs"
    ),
    SamzaKey(
        name="app.processor-id-generator.class",
        reason="processor.id is the id, or one is made",
    ),
    SamzaKey(
        name="job.coordinator.monitor-input-regex.frequency.ms",
        reason="regular expressions are resolved at each deployment",
    ),
    SamzaKey(
        name="job.systemstreampartition.matcher.<part>",
        reason="all partitions of an input are read",
        remedy="remove it, and name the inputs in task.inputs",
    ),
    SamzaKey(
        name="job.system.stream.partition.mapper.factory",
        reason="partitions are mapped by their number modulo the former count",
    ),
    SamzaKey(
        name="cluster-manager.allocator.sleep.ms",
        reason="the allocator acts on events and does not sleep",
    ),
    SamzaKey(
        name="yarn.allocator.sleep.ms", reason="the allocator acts on events and does not sleep"
    ),
    SamzaKey(
        name="cluster-manager.jobcoordinator.sleep.interval.ms",
        reason="the allocator acts on events and does not sleep",
    ),
    SamzaKey(
        name="yarn.am.poll.interval.ms", reason="the allocator acts on events and does not sleep"
    ),
    SamzaKey(
        name="cluster-manager.fault-domain-manager.factory",
        reason="a fault domain is a rack, as the ResourceManager names it",
        harmless=("org.apache.samza.job.yarn.yarnfaultdomainmanagerfactory",),
    ),
    SamzaKey(
        name="samza.cluster-manager.factory",
        reason="containers come from YARN through Skein",
        harmless=("org.apache.samza.job.yarn.yarnresourcemanagerfactory",),
    ),
    SamzaKey(
        name="yarn.am.opts", reason="the AM's JVM is Skein's, sized by yarn.am.container.memory.mb"
    ),
    SamzaKey(
        name="yarn.am.java.home",
        reason="the AM's JVM is Skein's, sized by yarn.am.container.memory.mb",
    ),
    SamzaKey(name="yarn.application.type", reason="the application type is Skein's"),
    SamzaKey(name="yarn.job.staging.directory", reason="Skein stages the files"),
    SamzaKey(name="yarn.job.view.acl", reason="the access lists are the queue's"),
    SamzaKey(name="yarn.job.modify.acl", reason="the access lists are the queue's"),
    SamzaKey(name="yarn.resources.<part>", reason="the package is all that is localised"),
    SamzaKey(name="yarn.token.renewal.interval.seconds", reason="YARN renews the tokens"),
    SamzaKey(
        name="yarn.am.high-availability.enabled",
        reason="containers always outlive the AM's end and are adopted",
        harmless=("true",),
    ),
    SamzaKey(name="container.disk.<part>", reason="disk quotas are not watched", harmless=("0",)),
    SamzaKey(name="task.execute", reason="the container's program is fixed"),
    SamzaKey(name="task.command.class", reason="the container's program is fixed"),
    SamzaKey(name="additional.classpath.dir", reason="the container's program is fixed"),
    SamzaKey(
        name="task.opts",
        reason="containers are Python; the local Spark takes task.spark.conf.<property>",
    ),
    SamzaKey(
        name="task.java.home",
        reason="containers are Python; the local Spark takes task.spark.conf.<property>",
    ),
    SamzaKey(
        name="worker.opts",
        reason="containers are Python; the local Spark takes task.spark.conf.<property>",
    ),
    SamzaKey(
        name="task.commit.max.delay.ms",
        reason="a commit ends the transaction and never waits for one before",
    ),
    SamzaKey(
        name="task.commit.timeout.ms",
        reason="a commit ends the transaction and never waits for one before",
    ),
    SamzaKey(
        name="task.commit.skip.commit.during.failures.<part>",
        reason="a commit ends the transaction and never waits for one before",
    ),
    SamzaKey(
        name="task.async.commit",
        reason="a task returns when its batch is done",
        harmless=("false", "-1"),
    ),
    SamzaKey(
        name="task.callback.<part>",
        reason="a task returns when its batch is done",
        harmless=("false", "-1"),
    ),
    SamzaKey(name="task.max.idle.ms", reason="input is waited for without polling"),
    SamzaKey(name="task.poll.interval.ms", reason="input is waited for without polling"),
    SamzaKey(
        name="task.drop.serialization.errors",
        reason="what cannot be written fails the container",
        harmless=("false",),
    ),
    SamzaKey(
        name="task.drop.producer.errors",
        reason="what cannot be written fails the container",
        harmless=("false",),
    ),
    SamzaKey(name="task.chooser.class", reason="micro-batches take what each partition has"),
    SamzaKey(name="task.consumer.batch.size", reason="micro-batches take what each partition has"),
    SamzaKey(name="task.checkpoint.write.versions", reason="version 1 is written"),
    SamzaKey(name="task.checkpoint.read.versions", reason="the last one of either version is read"),
    SamzaKey(name="task.live.checkpoint.max.age", reason="the last one of either version is read"),
    SamzaKey(
        name="task.transactional.state.checkpoint.enabled",
        reason="state and checkpoint are always one transaction",
        harmless=("true",),
    ),
    SamzaKey(
        name="task.transactional.state.restore.enabled",
        reason="state and checkpoint are always one transaction",
        harmless=("true",),
    ),
    SamzaKey(
        name="task.transactional.state.retain.existing.state",
        reason="state and checkpoint are always one transaction",
        harmless=("true",),
    ),
    SamzaKey(
        name="systems.<system>.streams.<stream>.samza.delete.committed.messages",
        reason="records of inputs are never deleted",
        harmless=("false",),
    ),
    SamzaKey(
        name="systems.<system>.streams.<stream>.samza.bounded",
        reason="the end of a partition is not the end of its task",
        harmless=("false",),
    ),
    SamzaKey(
        name="systems.<system>.default.stream.samza.<property>",
        reason="write systems.<system>.samza.<property>, which says the same",
    ),
    SamzaKey(
        name="systems.<system>.samza.fetch.threshold",
        reason="the consumer's own fetch properties hold",
    ),
    SamzaKey(
        name="systems.<system>.samza.fetch.threshold.bytes",
        reason="the consumer's own fetch properties hold",
    ),
    SamzaKey(
        name="streams.<stream>.<property>",
        reason="a stream is named system.stream where it is used",
    ),
    *(
        SamzaKey(
            name=f"{stores}.{direction}.factories",
            reason="the changelog is the one back-end",
            remedy="remove it: a store with a changelog is kept there and restored from it",
            harmless=("org.apache.samza.storage.kafkachangelogstatebackendfactory",),
        )
        for stores in ("stores", "stores.<store>")
        for direction in ("backup", "restore")
    ),
    SamzaKey(
        name="stores.<store>.accesslog.enabled",
        reason="accesses are not logged",
        remedy="remove it, or write false, and send from the task what is to be logged",
        harmless=("false",),
    ),
    SamzaKey(name="stores.<store>.accesslog.sampling.ratio", reason="accesses are not logged"),
    SamzaKey(
        name="stores.<store>.write.batch.size",
        reason="a transaction's writes go to the store as one batch",
    ),
    SamzaKey(
        name="stores.<store>.object.cache.size",
        reason="a transaction's writes are read back from memory, and objects are never shared: "
        "a change to one without a put is no write",
    ),
    SamzaKey(
        name="stores.<store>.container.cache.size.bytes",
        reason="cluster-manager.container.memory.mb sizes one block cache of all stores",
    ),
    SamzaKey(
        name="stores.<store>.rocksdb.wal.enabled",
        reason="what a crash loses is read again from the changelog, and OFFSET names only what "
        "was flushed",
        remedy="remove it, or write false; task.commit.ms bounds what is read again",
        harmless=("false",),
    ),
    SamzaKey(
        name="stores.<store>.rocksdb.compaction.max.background.compactions",
        reason="stores.<store>.rocksdb.max.background.jobs is the number of both flushes and "
        "compactions",
    ),
    SamzaKey(name="stores.<store>.rocksdb.<option>", reason="it is no option that Samza documents"),
    SamzaKey(name="stores-default.rocksdb.<option>", reason="it is no option that Samza documents"),
)
"""All of them. Where two match a name, the first holds."""

_BY_TOPIC = {
    topic: [key for key in ALL if key.name.startswith(f"{topic}.")]
    for topic in {key.name.partition(".")[0] for key in ALL}
}


def known_to_samza(name: str) -> SamzaKey | None:
    """The key of Samza's that ``name`` is; None where it is none of them."""
    return next(
        (key for key in _BY_TOPIC.get(name.partition(".")[0], ()) if key.matches(name)), None
    )
