"""Keys of Samza's that do nothing here, each with the reason.

A job that comes from Samza brings them along. Those without which it would compute something else
are refused, with a remedy; of the others a warning says that they have no effect. None is passed
over in silence.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from homeport.config.config import Config, switch_of
from homeport.config.declarations.key_types import name_pattern
from homeport.config.errors import ConfigError


@dataclass(frozen=True)
class SamzaKey:
    """A key, or with parts in angle brackets a family of keys.

    Args:
        name: the name; a part in angle brackets stands for any text.
        reason: why it has no effect, after "has no effect here:"; or the rule that refuses it.
        remedy: what to do instead; "": it is not refused, only warned of.
        harmless: values, in lower case, that ask for what happens here anyway; true and false
            stand for all words that Homeport reads so.
        repeats: the part in angle brackets that is such a value too; "": none is.
        twin: a key whose value asks for no more than what happens here; "": there is none.
        twin_default: the value of that key where it is not set.
    """

    name: str
    reason: str
    remedy: str = ""
    harmless: tuple[str, ...] = ()
    repeats: str = ""
    twin: str = ""
    twin_default: str = ""

    def matches(self, name: str) -> bool:
        """Return whether ``name`` is this key, or one of the family."""
        return self._pattern.fullmatch(name) is not None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return name_pattern(self.name)

    def objection(self, config: Config, name: str) -> str | None:
        """Return the warning for ``name``, which is this key; None: its value asks for no more.

        ConfigError: the value is refused.
        """
        value = config.get_str(name, "")
        if not value or self._is_harmless(name, value):
            return None
        if self.twin and value == config.get_str(self.twin, self.twin_default):
            return None
        if self.remedy:
            raise ConfigError(name, value, self.reason, self.remedy)
        return f"{name} is known to Samza and has no effect here: {self.reason}"

    def _is_harmless(self, name: str, value: str) -> bool:
        if self.repeats and self.name.replace(self.repeats, value) == name:
            return True
        return not {value.lower(), str(switch_of(value)).lower()}.isdisjoint(self.harmless)


def _keys(reason: str, names: str, remedy: str = "", harmless: str = "") -> Iterator[SamzaKey]:
    """Yield a key of each name; names, and harmless values, stand between blanks."""
    for name in names.split():
        yield SamzaKey(name, reason, remedy, tuple(harmless.split()))


_OF_THE_SYSTEM = "write systems.<system>.streams.<stream>.samza.<property>"
_FOR_EACH_STREAM = f"{_OF_THE_SYSTEM} for each stream"

ALL: tuple[SamzaKey, ...] = (
    *_keys(
        "a job goes on after the end of its input",
        "app.mode",
        remedy="write STREAM, and job.drain=true: the job then ends, as succeeded, once it has "
        "processed what its inputs hold",
        harmless="stream",
    ),
    *_keys("task.class and task.pipeline.class name the job's code", "app.class app.runner.class"),
    SamzaKey(
        "app.name",
        "Samza names the job and its topics by it, in place of job.name",
        "give job.name this value; where the job is a new one, remove this key",
        twin="job.name",
    ),
    SamzaKey(
        "app.id",
        "Samza names the job and its topics by it, in place of job.id",
        "give job.id this value; where the job is a new one, remove this key",
        twin="job.id",
        twin_default="1",
    ),
    *_keys(
        "the command that starts a job decides where it runs",
        "job.factory.class",
        remedy="remove it, and start the job by run-job (on YARN), homeport run-local (on this "
        "machine) or homeport run-processor (under ZooKeeper)",
        harmless="org.apache.samza.job.yarn.yarnjobfactory",
    ),
    *_keys(
        "--config-path names the properties file",
        "job.config.loader.<part> job.config.factory.class",
    ),
    *_keys(
        "a task reads whole partitions",
        "job.elasticity.factor",
        remedy="write 1, or remove it",
        harmless="1",
    ),
    *_keys(
        "checkpoints of parts of partitions are not read",
        "job.elasticity.checkpoints.enabled",
        remedy="write false, or remove it",
        harmless="false",
    ),
    *_keys(
        "nothing changes sizes by itself here",
        "job.autosizing.enabled",
        remedy="write false, and set job.container.count and cluster-manager.container.* yourself",
        harmless="false",
    ),
    *_keys("job.autosizing.enabled cannot be true", "job.autosizing.<part>"),
    *_keys(
        "startpoints are not read: a task starts at its checkpoint, else at "
        "systems.<system>.streams.<stream>.start.time or samza.offset.default",
        "job.startpoint.enabled",
        harmless="false",
    ),
    *_keys("run-job --operation=drain needs no monitor", "job.drain-monitor.<part>"),
    *_keys("/v1/status and the logs say what failed", "job.diagnostics.enabled", harmless="false"),
    *_keys(
        "no program of the job is a JVM that offers JMX",
        "job.jmx.enabled yarn.am.jmx.enabled cluster-manager.jobcoordinator.jmx.enabled",
        harmless="false",
    ),
    *_keys(
        "leases take the place of heartbeats",
        "job.container.heartbeat.monitor.enabled yarn.container.heartbeat.<part>",
    ),
    *_keys(
        "task.max.concurrency sets how many calls of process run at once in a container",
        "job.container.thread.pool.size job.container.task.executor.factory",
        harmless="0 1",
    ),
    *_keys(
        "a commit is one transaction of all tasks of a container",
        "job.container.commit.thread.pool.<part>",
    ),
    *_keys(
        "stores are restored by worker processes of their own",
        "job.container.restore.thread.pool.<part>",
    ),
    *_keys("checkpoints are always checked", "job.checkpoint.validation.enabled", harmless="true"),
    *_keys("the driver is started by the supervisor", "job.coordinator.execute"),
    *_keys("job.coordinator.system has the coordinator stream", "job.coordinatorstream.<part>"),
    *_keys(
        "job.coordinator.factory names what coordinates",
        "job.coordination.utils.factory job.coordinator.azure.<part>",
    ),
    *_keys("a job has no intermediate streams", "job.intermediate.stream.partitions"),
    *_keys(
        "a job has no intermediate streams", "streams.<stream>.samza.intermediate", harmless="false"
    ),
    *_keys(
        "yarn.kerberos.principal and yarn.kerberos.keytab are the login",
        "job.security.manager.factory",
        harmless="org.apache.samza.job.yarn.samzayarnsecuritymanagerfactory",
    ),
    *_keys("the broker's limit holds", "job.coordinator.max.message.bytes"),
    *_keys(
        "an assignment that stays is never published again",
        "job.coordinator.zk.enable-startup-with-active-job-model",
    ),
    *_keys("processors register by themselves", "processor.list"),
    *_keys("processor.id is the id, or one is made", "app.processor-id-generator.class"),
    *_keys(
        "all partitions of an input are read",
        "job.systemstreampartition.matcher.<part>",
        remedy="remove it: the job then reads all of them",
    ),
    *_keys(
        "partitions are mapped by their number modulo the former count",
        "job.system.stream.partition.mapper.factory",
    ),
    *_keys(
        "the allocator acts on events and does not sleep",
        (
            "cluster-manager.allocator.sleep.ms yarn.allocator.sleep.ms "
            "cluster-manager.jobcoordinator.sleep.interval.ms yarn.am.poll.interval.ms"
        ),
    ),
    *_keys(
        "a fault domain is a rack, as the ResourceManager names it",
        "cluster-manager.fault-domain-manager.factory",
        harmless="org.apache.samza.job.yarn.yarnfaultdomainmanagerfactory",
    ),
    *_keys(
        "containers come from YARN through Skein",
        "samza.cluster-manager.factory",
        harmless="org.apache.samza.job.yarn.yarnresourcemanagerfactory",
    ),
    *_keys(
        "the AM's JVM is Skein's, sized by yarn.am.container.memory.mb",
        "yarn.am.opts yarn.am.java.home",
    ),
    *_keys("the application type is Skein's", "yarn.application.type"),
    *_keys("Skein stages the files", "yarn.job.staging.directory"),
    *_keys("the access lists are the queue's", "yarn.job.view.acl yarn.job.modify.acl"),
    *_keys(
        "yarn.package.path and yarn.python.archive are all that is localised",
        "yarn.resources.<part>",
    ),
    *_keys("YARN renews the tokens", "yarn.token.renewal.interval.seconds"),
    *_keys(
        "containers always outlive the AM's end and are adopted",
        "yarn.am.high-availability.enabled",
        harmless="true",
    ),
    *_keys("disk quotas are not watched", "container.disk.<part>", harmless="0"),
    *_keys(
        "the container's program is fixed",
        "task.execute task.command.class additional.classpath.dir",
    ),
    *_keys(
        "containers are Python; the local Spark takes task.spark.conf.<property>",
        "task.opts task.java.home worker.opts",
    ),
    *_keys(
        "a commit ends the transaction and never waits for one before",
        (
            "task.commit.max.delay.ms task.commit.timeout.ms "
            "task.commit.skip.commit.during.failures.<part>"
        ),
    ),
    *_keys("a task returns when its batch is done", "task.async.commit", harmless="false"),
    *_keys("a task returns when its batch is done", "task.callback.<part>", harmless="-1"),
    *_keys("input is waited for without polling", "task.max.idle.ms task.poll.interval.ms"),
    *_keys(
        "what cannot be written fails the container",
        "task.drop.serialization.errors task.drop.producer.errors",
        harmless="false",
    ),
    *_keys(
        "micro-batches take what each partition has", "task.chooser.class task.consumer.batch.size"
    ),
    *_keys("version 1 is written", "task.checkpoint.write.versions", harmless="1"),
    *_keys("checkpoints are in Kafka", "task.checkpoint.path"),
    *_keys("a container's log is a file of its own", "task.log4j.<part>"),
    *_keys("calls are always timed", "metrics.timer.enabled", harmless="true"),
    *_keys("calls are always timed", "metrics.timer.<part>"),
    *_keys("a snapshot has all metrics", "metrics.reporter.<reporter>.blacklist"),
    *_keys(
        "the last one of either version is read",
        "task.checkpoint.read.versions task.live.checkpoint.max.age task.checkpoint.skip-migration",
    ),
    *_keys(
        "state and checkpoint are always one transaction",
        (
            "task.transactional.state.checkpoint.enabled task.transactional.state.restore.enabled "
            "task.transactional.state.retain.existing.state"
        ),
        harmless="true",
    ),
    *_keys(
        "records of inputs are never deleted",
        (
            "systems.<system>.samza.delete.committed.messages "
            "systems.<system>.streams.<stream>.samza.delete.committed.messages "
            "streams.<stream>.samza.delete.committed.messages"
        ),
        harmless="false",
    ),
    *_keys(
        "the end of a partition is not the end of its task: job.drain=true ends the job once it "
        "has processed what its inputs hold",
        (
            "systems.<system>.streams.<stream>.samza.bounded "
            "systems.<system>.default.stream.samza.bounded streams.<stream>.samza.bounded"
        ),
        harmless="false",
    ),
    *_keys(
        "it is not read",
        (
            "systems.<system>.default.stream.samza.key.serde "
            "systems.<system>.default.stream.samza.msg.serde "
            "systems.<system>.default.stream.samza.offset.default"
        ),
        remedy="write it without default.stream, as systems.<system>.samza.<property>",
    ),
    *_keys(
        "it is not read",
        (
            "systems.<system>.default.stream.samza.bootstrap "
            "systems.<system>.default.stream.samza.reset.offset"
        ),
        remedy=_FOR_EACH_STREAM,
        harmless="false",
    ),
    *_keys(
        "it is not read",
        "systems.<system>.default.stream.samza.priority",
        remedy=_FOR_EACH_STREAM,
        harmless="-1 0",
    ),
    *_keys(
        "the consumer's own fetch properties hold",
        "systems.<system>.samza.fetch.threshold systems.<system>.samza.fetch.threshold.bytes",
    ),
    *_keys(
        "no stream takes it from there",
        "systems.<system>.default.stream.samza.<property>",
        harmless="false",
    ),
    *_keys(
        "topics of outputs have the broker's settings, those of state their own",
        (
            "systems.<system>.default.stream.cleanup.policy "
            "systems.<system>.default.stream.min.insync.replicas "
            "systems.<system>.default.stream.partitions "
            "systems.<system>.default.stream.retention.bytes "
            "systems.<system>.default.stream.retention.ms "
            "systems.<system>.default.stream.segment.ms"
        ),
    ),
    *_keys("a stream is named system.stream where it is used", "streams.<stream>.samza.system"),
    SamzaKey(
        "streams.<stream>.samza.physical.name",
        "a stream has the name of its topic",
        "remove it, and name that topic where the stream is used",
        repeats="<stream>",
    ),
    *_keys(
        "it is not read",
        (
            "streams.<stream>.samza.key.serde streams.<stream>.samza.msg.serde "
            "streams.<stream>.samza.offset.default"
        ),
        remedy=_OF_THE_SYSTEM,
    ),
    *_keys(
        "it is not read",
        "streams.<stream>.samza.bootstrap streams.<stream>.samza.reset.offset",
        remedy=_OF_THE_SYSTEM,
        harmless="false",
    ),
    *_keys(
        "it is not read", "streams.<stream>.samza.priority", remedy=_OF_THE_SYSTEM, harmless="-1 0"
    ),
    *_keys(
        "task.broadcast.inputs names what each task reads",
        "streams.<stream>.samza.broadcast",
        harmless="false",
    ),
    *_keys("no stream takes it from there", "streams.<stream>.samza.<property>", harmless="false"),
    *_keys("a topic that is there keeps its settings", "streams.<stream>.<property>"),
    *_keys(
        "the changelog is the one back-end",
        (
            "stores.backup.factories stores.restore.factories stores.<store>.backup.factories "
            "stores.<store>.restore.factories"
        ),
        remedy="remove it: a store with a changelog is kept there and restored from it",
        harmless="org.apache.samza.storage.kafkachangelogstatebackendfactory",
    ),
    *_keys(
        "accesses are not logged",
        "stores.<store>.accesslog.enabled",
        remedy="remove it, or write false, and send from the task what is to be logged",
        harmless="false",
    ),
    *_keys("accesses are not logged", "stores.<store>.accesslog.sampling.ratio"),
    *_keys(
        "a transaction's writes go to the store as one batch", "stores.<store>.write.batch.size"
    ),
    *_keys(
        "a transaction's writes are read back from memory, and objects are never shared: "
        "a change to one without a put is no write",
        "stores.<store>.object.cache.size",
    ),
    *_keys(
        "cluster-manager.container.memory.mb sizes one block cache of all stores",
        "stores.<store>.container.cache.size.bytes",
    ),
    *_keys(
        "what a crash loses is read again from the changelog, and OFFSET names only what "
        "was flushed",
        "stores.<store>.rocksdb.wal.enabled",
        remedy="remove it, or write false; task.commit.ms bounds what is read again",
        harmless="false",
    ),
    *_keys(
        "stores.<store>.rocksdb.max.background.jobs is the number of both flushes and compactions",
        "stores.<store>.rocksdb.compaction.max.background.compactions",
    ),
    *_keys(
        "it is no option that Samza documents",
        "stores.<store>.rocksdb.<option> stores-default.rocksdb.<option>",
    ),
)
"""All of them. Where two match a name, the first holds."""

_BY_TOPIC = {
    topic: [key for key in ALL if key.name.startswith(f"{topic}.")]
    for topic in {key.name.partition(".")[0] for key in ALL}
}


def known_to_samza(name: str) -> SamzaKey | None:
    """Return the key of Samza's that ``name`` is; None where it is none of them."""
    return next(
        (key for key in _BY_TOPIC.get(name.partition(".")[0], ()) if key.matches(name)), None
    )
