"""Configuration keys of the job as a whole; ``keys`` offers them with all others."""

from homeport.config.declarations.key_types import (
    REPLICAS_MAX,
    BoolKey,
    IntKey,
    ListKey,
    Liveness,
    OwnBoolKey,
    OwnIntKey,
    OwnTextKey,
    Reach,
    TextKey,
)

APP_RUN_ID = TextKey(
    "app.run.id",
    "what placement requests may call this run of the job, beside its YARN application",
    liveness=Liveness.LIVE,
)
JOB_NAME = TextKey("job.name", "name of the job; required")
JOB_ID = TextKey("job.id", "distinguishes jobs of one name", default="1")
JOB_DEFAULT_SYSTEM = TextKey("job.default.system", "system of streams that name none")
JOB_COORDINATOR_SYSTEM = TextKey(
    "job.coordinator.system",
    "system of the coordinator stream",
    source="COORD",
    fallback="job.default.system",
)
JOB_COORDINATOR_REPLICATION_FACTOR = IntKey(
    "job.coordinator.replication.factor",
    "replicas of the coordinator stream; default the system's, else 3, or 1 where Kafka has one "
    "broker",
    maximum=REPLICAS_MAX,
)
JOB_COORDINATOR_SEGMENT_BYTES = IntKey(
    "job.coordinator.segment.bytes",
    "segment size of the coordinator stream; default the system's, else 26214400",
    minimum=14,
)
JOB_COORDINATOR_CATCH_UP_INTERVAL_MS = OwnIntKey(
    "job.coordinator.catch-up.interval.ms",
    "how often the driver reads new records of the coordinator stream",
    default=1000,
    # For so long the driver can be deaf to the record that corrects this very key.
    maximum=60_000,
    liveness=Liveness.LIVE,
)
JOB_MONITOR_PARTITION_CHANGE_MS = IntKey(
    "job.coordinator.monitor-partition-change.frequency.ms",
    "how often the driver looks whether inputs have got more partitions",
    default=300000,
    liveness=Liveness.LIVE,
)
JOB_MONITOR_INPUT_REGEX_MS = IntKey(
    "job.coordinator.monitor-input-regex.frequency.ms",
    "how often the driver looks whether new topics match the regular expressions of regex-topics",
    default=300000,
    liveness=Liveness.LIVE,
)
JOB_COORDINATOR_ISOLATION_MAX_MS = OwnIntKey(
    "job.coordinator.isolation.max.ms",
    "how long leases are renewed without an answer from the coordinator stream",
    default=30000,
    # A new attempt places nothing for so long, where it cannot see the old one stop.
    maximum=3_600_000,
)
JOB_CHANGELOG_SYSTEM = TextKey(
    "job.changelog.system", "system of changelogs that name none", fallback="job.default.system"
)
RECREATED_REFUSE, RECREATED_BEGIN = "refuse", "begin"
JOB_INPUT_RECREATED = OwnTextKey(
    "job.input.recreated",
    "what a start does where an input topic was deleted and recreated: refuse, or keep the state "
    "and begin the new topic where samza.offset.default says",
    default=RECREATED_REFUSE,
    choices=(RECREATED_REFUSE, RECREATED_BEGIN),
)
JOB_CONTAINER_COUNT = IntKey(
    "job.container.count",
    "number of containers",
    default=1,
    # Far above what a cluster has; a driver can still make a list of so many.
    maximum=100_000,
    liveness=Liveness.LIVE,
    legacy=("yarn.container.count",),
)
JOB_CONTAINER_PREWARM = OwnBoolKey(
    "job.container.prewarm",
    "beside each active container a Spark with the job's pipeline waits for its next start",
)
LOG_FORMATS = ("text", "json")
JOB_LOG_FORMAT = OwnTextKey(
    "job.log.format",
    "how the processes of the job log: text, or json, one object a line with time, level, logger, "
    "message, host, and of a container processor and epoch",
    default="text",
    choices=LOG_FORMATS,
)
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
JOB_LOG_LEVEL = OwnTextKey(
    "job.log.level",
    "the least level that the driver and the containers log",
    default="INFO",
    choices=LOG_LEVELS,
    liveness=Liveness.RETUNES_CONTAINERS,
)
JOB_DRAIN = OwnBoolKey(
    "job.drain",
    "the job ends, as succeeded, once it has processed what its inputs hold; run-job "
    "--operation=drain sets it until the next deployment",
    liveness=Liveness.RETUNES_CONTAINERS,
)
JOB_HOST_AFFINITY_ENABLED = BoolKey(
    "job.host-affinity.enabled",
    "containers come back to the host that has their state",
    source="HA-YARN",
    legacy=("yarn.samza.host-affinity.enabled",),
)
JOB_SSP_GROUPER_FACTORY = TextKey(
    "job.systemstreampartition.grouper.factory",
    "how partitions become tasks",
    default="group-by-partition",
    source="COORD",
    liveness=Liveness.NEVER_WITH_STATE,
    reach=Reach.CLASS,
)
JOB_CHANGELOGS_GROW = OwnBoolKey(
    "job.changelogs.grow",
    "an input that is new may bring tasks to a job with state, and take them with it: its "
    "changelogs get a partition for each of them",
    liveness=Liveness.LIVE,
)
JOB_SSP_INPUT_EXPANSION_ENABLED = BoolKey(
    "job.systemstreampartition.input.expansion.enabled",
    "a job with stores keeps its tasks when an input stream gets more partitions",
    default=True,
    liveness=Liveness.NEVER_WITH_STATE,
)
PROCESSOR_ID = TextKey(
    "processor.id",
    "id of a standalone processor, of its own in the job, default one that is made; and of the "
    "container that the grouper single-container puts everything in",
)
JOB_LOGGED_STORE_BASE_DIR = TextKey(
    "job.logged.store.base.dir",
    "root of the state directories where LOGGED_STORE_BASE_DIR is not set",
    reach=Reach.PLACE,
)
JOB_NON_LOGGED_STORE_BASE_DIR = TextKey(
    "job.non-logged.store.base.dir",
    "root of the directories of stores without a changelog; default the container's own",
)
JOB_HISTORY_DIR = OwnTextKey(
    "job.history.dir",
    "folder of the history files; default .history below the job's state directory",
)
JOB_HISTORY_MAX_MB = OwnIntKey(
    "job.history.max.mb",
    "most that the job's history files on one host have together; the oldest go first, and a "
    "quarter is kept for all that is no transaction",
    default=256,
)
JOB_HOSTS_CLEAN_AFTER_MS = OwnIntKey(
    "job.hosts.clean.after.ms",
    "each launcher removes, at its start and once a day, what homeport clean --all-jobs would "
    "remove on its host with this age as --older-than; default: none does",
    # A job that is submitted again, or a container that moves back, finds its state.
    minimum=3_600_000,
)
JOB_HOT_STANDBY_ENABLED = BoolKey(
    "job.hotstandby.enabled",
    "standby containers follow changelogs and inputs of adjunct stores of the active ones",
    source="STANDBY",
)
JOB_HOT_STANDBY_REPLICATION_COUNT = IntKey(
    "job.hotstandby.replicationcount",
    "standby containers per active one",
    default=1,
    # Each is on a host of its own, and the driver makes a list of all of them.
    maximum=100,
    source="STANDBY",
)
JOB_HOT_STANDBY_PREWARM = OwnBoolKey(
    "job.hotstandby.prewarm",
    "beside each standby a Spark with the job's pipeline waits for the failover",
)
JOB_STANDBY_TASKS_REPLICATION_FACTOR = IntKey(
    "job.standbytasks.replication.factor",
    "job.hotstandby.replicationcount + 1, in Samza's words",
    maximum=101,
)

JOB_CONFIG_REWRITERS = ListKey(
    "job.config.rewriters",
    "rewriters of the configuration, in the order in which they are applied",
    is_ordered=True,
)
JOB_CONFIG_REWRITER_CLASS = TextKey(
    "job.config.rewriter.<name>.class",
    "environment, regex-topics (by run-job, and while the job runs), or the job's own module:Class",
)
JOB_CONFIG_REWRITER_REGEX = TextKey(
    "job.config.rewriter.<name>.regex",
    "of regex-topics: topics whose whole names match become inputs",
)
JOB_CONFIG_REWRITER_SYSTEM = TextKey(
    "job.config.rewriter.<name>.system", "of regex-topics: the system whose topics are meant"
)
JOB_CONFIG_REWRITER_CONFIG = TextKey(
    "job.config.rewriter.<name>.config.<property>",
    "of regex-topics: systems.<system>.streams.<topic>.<property> of each such topic",
)
JOB_CONFIG_REWRITER_PROPERTY = TextKey(
    "job.config.rewriter.<name>.<property>", "whatever else the job's own rewriter reads"
)
