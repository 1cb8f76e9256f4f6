"""Configuration keys of the job as a whole; ``keys`` offers them with all others."""

from __future__ import annotations

from homeport.config.declarations.key_types import (
    OWN,
    REPLICAS_MAX,
    BoolKey,
    IntKey,
    ListKey,
    Liveness,
    Reach,
    TextKey,
)

APP_RUN_ID = TextKey(
    name="app.run.id",
    meaning="what placement requests may call this run of the job, beside its YARN application",
    liveness=Liveness.LIVE,
)
JOB_NAME = TextKey(name="job.name", meaning="name of the job; required")
JOB_ID = TextKey(name="job.id", default="1", meaning="distinguishes jobs of one name")
JOB_DEFAULT_SYSTEM = TextKey(name="job.default.system", meaning="system of streams that name none")
JOB_COORDINATOR_SYSTEM = TextKey(
    name="job.coordinator.system",
    meaning="system of the coordinator stream",
    source="COORD",
    fallback="job.default.system",
)
JOB_COORDINATOR_REPLICATION_FACTOR = IntKey(
    name="job.coordinator.replication.factor",
    minimum=1,
    maximum=REPLICAS_MAX,
    meaning="replicas of the coordinator stream; default the system's, else 3",
)
JOB_COORDINATOR_SEGMENT_BYTES = IntKey(
    name="job.coordinator.segment.bytes",
    minimum=14,
    meaning="segment size of the coordinator stream; default the system's, else 26214400",
)
JOB_COORDINATOR_CATCH_UP_INTERVAL_MS = IntKey(
    name="job.coordinator.catch-up.interval.ms",
    default=1000,
    minimum=1,
    # For so long the driver can be deaf to the record that corrects this very key.
    maximum=60_000,
    meaning="how often the driver reads new records of the coordinator stream",
    source=OWN,
    liveness=Liveness.LIVE,
)
JOB_MONITOR_PARTITION_CHANGE_MS = IntKey(
    name="job.coordinator.monitor-partition-change.frequency.ms",
    default=300000,
    minimum=1,
    meaning="how often the driver looks whether inputs have got more partitions",
    liveness=Liveness.LIVE,
)
JOB_COORDINATOR_ISOLATION_MAX_MS = IntKey(
    name="job.coordinator.isolation.max.ms",
    default=30000,
    minimum=1,
    # A new attempt places nothing for so long, where it cannot see the old one stop.
    maximum=3_600_000,
    meaning="how long leases are renewed without an answer from the coordinator stream",
    source=OWN,
)
JOB_CHANGELOG_SYSTEM = TextKey(
    name="job.changelog.system",
    meaning="system of changelogs that name none",
    fallback="job.default.system",
)
RECREATED_REFUSE, RECREATED_BEGIN = "refuse", "begin"
JOB_INPUT_RECREATED = TextKey(
    name="job.input.recreated",
    default=RECREATED_REFUSE,
    choices=(RECREATED_REFUSE, RECREATED_BEGIN),
    meaning="what a start does where an input topic was deleted and recreated: refuse, or "
    "keep the state and begin the new topic where samza.offset.default says",
    source=OWN,
)
JOB_CONTAINER_COUNT = IntKey(
    name="job.container.count",
    default=1,
    minimum=1,
    # Far above what a cluster has; a driver can still make a list of so many.
    maximum=100_000,
    meaning="number of containers",
    liveness=Liveness.LIVE,
    legacy=("yarn.container.count",),
)
JOB_CONTAINER_PREWARM = BoolKey(
    name="job.container.prewarm",
    default=False,
    meaning="beside each active container a Spark with the job's pipeline waits for its next start",
    source=OWN,
)
LOG_FORMATS = ("text", "json")
JOB_LOG_FORMAT = TextKey(
    name="job.log.format",
    default="text",
    choices=LOG_FORMATS,
    meaning=(
        "how the processes of the job log: text, or json, one object a line with time, level, "
        "logger, message, host, and of a container processor and epoch"
    ),
    source=OWN,
)
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
JOB_LOG_LEVEL = TextKey(
    name="job.log.level",
    default="INFO",
    choices=LOG_LEVELS,
    meaning="the least level that the driver and the containers log",
    source=OWN,
    liveness=Liveness.RETUNES_CONTAINERS,
)
JOB_DRAIN = BoolKey(
    name="job.drain",
    default=False,
    meaning=(
        "the job ends, as succeeded, once it has processed what its inputs hold; run-job"
        " --operation=drain sets it until the next deployment"
    ),
    source=OWN,
    liveness=Liveness.RETUNES_CONTAINERS,
)
JOB_HOST_AFFINITY_ENABLED = BoolKey(
    name="job.host-affinity.enabled",
    default=False,
    meaning="containers come back to the host that has their state",
    source="HA-YARN",
    legacy=("yarn.samza.host-affinity.enabled",),
)
JOB_SSP_GROUPER_FACTORY = TextKey(
    name="job.systemstreampartition.grouper.factory",
    default="group-by-partition",
    meaning="how partitions become tasks",
    source="COORD",
    liveness=Liveness.NEVER_WITH_STATE,
    reach=Reach.CLASS,
)
JOB_SSP_INPUT_EXPANSION_ENABLED = BoolKey(
    name="job.systemstreampartition.input.expansion.enabled",
    default=True,
    meaning="a job with stores keeps its tasks when an input stream gets more partitions",
    liveness=Liveness.NEVER_WITH_STATE,
)
PROCESSOR_ID = TextKey(
    name="processor.id",
    meaning="id of a standalone processor, of its own in the job, default one that is made; and of "
    "the container that the grouper single-container puts everything in",
)
JOB_LOGGED_STORE_BASE_DIR = TextKey(
    name="job.logged.store.base.dir",
    meaning="root of the state directories where LOGGED_STORE_BASE_DIR is not set",
    reach=Reach.PLACE,
)
JOB_NON_LOGGED_STORE_BASE_DIR = TextKey(
    name="job.non-logged.store.base.dir",
    meaning="root of the directories of stores without a changelog; default the container's own",
)
JOB_HISTORY_DIR = TextKey(
    name="job.history.dir",
    meaning="folder of the history files; default .history below the job's state directory",
    source=OWN,
)
JOB_HISTORY_MAX_MB = IntKey(
    name="job.history.max.mb",
    default=256,
    minimum=1,
    meaning=(
        "most that the job's history files on one host have together; the oldest go first, and a"
        " quarter is kept for all that is no transaction"
    ),
    source=OWN,
)
JOB_HOT_STANDBY_ENABLED = BoolKey(
    name="job.hotstandby.enabled",
    default=False,
    meaning="standby containers follow changelogs and inputs of adjunct stores of the active ones",
    source="STANDBY",
)
JOB_HOT_STANDBY_REPLICATION_COUNT = IntKey(
    name="job.hotstandby.replicationcount",
    default=1,
    minimum=1,
    # Each is on a host of its own, and the driver makes a list of all of them.
    maximum=100,
    meaning="standby containers per active one",
    source="STANDBY",
)
JOB_HOT_STANDBY_PREWARM = BoolKey(
    name="job.hotstandby.prewarm",
    default=False,
    meaning="beside each standby a Spark with the job's pipeline waits for the failover",
    source=OWN,
)
JOB_STANDBY_TASKS_REPLICATION_FACTOR = IntKey(
    name="job.standbytasks.replication.factor",
    minimum=1,
    maximum=101,
    meaning="job.hotstandby.replicationcount + 1, in Samza's words",
)

JOB_CONFIG_REWRITERS = ListKey(
    name="job.config.rewriters",
    is_ordered=True,
    meaning="rewriters of the configuration, in the order in which they are applied",
)
JOB_CONFIG_REWRITER_CLASS = TextKey(
    name="job.config.rewriter.<name>.class",
    meaning="environment, regex-topics (applied by run-job), or the job's own module:Class",
)
JOB_CONFIG_REWRITER_REGEX = TextKey(
    name="job.config.rewriter.<name>.regex",
    meaning="of regex-topics: topics whose whole names match become inputs",
)
JOB_CONFIG_REWRITER_SYSTEM = TextKey(
    name="job.config.rewriter.<name>.system",
    meaning="of regex-topics: the system whose topics are meant",
)
JOB_CONFIG_REWRITER_CONFIG = TextKey(
    name="job.config.rewriter.<name>.config.<property>",
    meaning="of regex-topics: systems.<system>.streams.<topic>.<property> of each such topic",
)
JOB_CONFIG_REWRITER_PROPERTY = TextKey(
    name="job.config.rewriter.<name>.<property>",
    meaning="whatever else the job's own rewriter reads",
)
