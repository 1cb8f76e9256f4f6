"""Configuration keys of tasks, commits and checkpoints; ``keys`` offers them with all others."""

from homeport.config.declarations.key_types import (
    REPLICAS_MAX,
    BoolKey,
    IntKey,
    ListKey,
    Liveness,
    OwnBoolKey,
    OwnIntKey,
    OwnListKey,
    OwnTextKey,
    Reach,
    TextKey,
)

PLAN_ONCE = "once"
PLAN_ALWAYS = "always"

TASK_CLASS = TextKey(
    "task.class",
    "task class, module:Class",
    liveness=Liveness.RESTARTS_CONTAINERS,
    reach=Reach.CODE,
)
TASK_PIPELINE_CLASS = OwnTextKey(
    "task.pipeline.class",
    "pipeline function, module:function",
    liveness=Liveness.RESTARTS_CONTAINERS,
    reach=Reach.CODE,
)
TASK_PIPELINE_SQL = OwnTextKey(
    "task.pipeline.sql",
    "the pipeline as one SELECT of Spark's SQL, or file: and a file of the job's package; in the "
    "place of task.pipeline.class",
    liveness=Liveness.RESTARTS_CONTAINERS,
    reach=Reach.CODE,
)
TASK_PIPELINE_OUTPUT = OwnTextKey(
    "task.pipeline.output",
    "where the pipeline's rows leave, system.stream; in the place of task.class",
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_PIPELINE_CHECK = OwnTextKey(
    "task.pipeline.check",
    "where the pipeline first meets an empty input: in a Spark of run-job's, or in the containers "
    "alone, before they take input; default submission with task.pipeline.sql, else start",
    choices=("submission", "start"),
)
TASK_PIPELINE_UNORDERED = OwnBoolKey(
    "task.pipeline.unordered",
    "the pipeline drops the column offset; its rows come in any order",
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_PIPELINE_PLAN = OwnTextKey(
    "task.pipeline.plan",
    "once: the pipeline function is called once for each schema of its input, and its plan runs "
    "on each batch where that gives the same rows; always: it is called for each batch",
    default=PLAN_ONCE,
    choices=(PLAN_ONCE, PLAN_ALWAYS),
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_INPUTS = ListKey(
    "task.inputs", "input streams, system.stream, separated by commas", liveness=Liveness.LIVE
)
TASK_BROADCAST_INPUTS = ListKey(
    "task.broadcast.inputs",
    "partitions that every task reads, system.stream#0 or system.stream#[0-3]",
    liveness=Liveness.LIVE,
)
TASK_OUTPUTS = OwnListKey(
    "task.outputs",
    "output streams, system.stream, separated by commas: each exists before the job starts; a "
    "task may send to others too",
)
TASK_OUTPUTS_CREATE_PARTITIONS = OwnIntKey(
    "task.outputs.create.partitions",
    "an output that is named in the configuration and does not exist is created with so many "
    "partitions; 0: the job is refused",
    default=0,
    minimum=0,
)
TASK_REPARTITION = OwnTextKey(
    "task.repartition.<name>",
    "a topic of the job's own, which its tasks write and read: by another key than their inputs "
    "have. Its number of partitions, or inputs: as many as the inputs have",
)
TASK_REPARTITION_KEY_SERDE = OwnTextKey(
    "task.repartition.<name>.key.serde",
    "serde of its keys",
    liveness=Liveness.RESTARTS_CONTAINERS,
    reach=Reach.CLASS,
    fallback="systems.<system>.samza.key.serde",
)
TASK_REPARTITION_MSG_SERDE = OwnTextKey(
    "task.repartition.<name>.msg.serde",
    "serde of its values",
    liveness=Liveness.RESTARTS_CONTAINERS,
    reach=Reach.CLASS,
    fallback="systems.<system>.samza.msg.serde",
)
TASK_REPARTITION_REPLICATION_FACTOR = OwnIntKey(
    "task.repartition.<name>.replication.factor",
    "its replicas; default the system's, else 2, or 1 where Kafka has one broker",
    maximum=REPLICAS_MAX,
)
TASK_REPARTITION_PURGE_MS = OwnIntKey(
    "task.repartition.purge.ms",
    "shortest time between two deletions of records of task.repartition.<name> that are processed "
    "and committed",
    default=30000,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_NAME_GROUPER_FACTORY = TextKey(
    "task.name.grouper.factory",
    "how tasks are dealt to containers",
    default="group-by-container-count",
    liveness=Liveness.RESTARTS_CONTAINERS,
    reach=Reach.CLASS,
)
TASK_COMMIT_MS = IntKey(
    "task.commit.ms",
    "time between commits: stores flushed, OFFSET files written",
    default=10000,
    liveness=Liveness.RETUNES_CONTAINERS,
)
TASK_TRANSACTION_MS = OwnIntKey(
    "task.transaction.ms",
    "time between transactions: outputs, changelog and checkpoint become visible; the first after "
    "a start ends with its first batch",
    default=1000,
    liveness=Liveness.RETUNES_CONTAINERS,
)
TASK_TRANSACTION_IDLE_MS = OwnIntKey(
    "task.transaction.idle.ms",
    "a transaction whose input has no more for now ends early, at least this long after the one "
    "before, and so that commits take at most half of the time; -1: never early",
    default=10,
    minimum=-1,
    liveness=Liveness.RETUNES_CONTAINERS,
)
TASK_BATCH_LINGER_MS = OwnIntKey(
    "task.batch.linger.ms",
    "longest time that a small micro-batch fills after the one before, which is less where "
    "batches cost little; default 100 with a pipeline, else 0",
    minimum=0,
    liveness=Liveness.RETUNES_CONTAINERS,
)
TASK_BATCH_TARGET_MS = OwnIntKey(
    "task.batch.target.ms",
    "how long pipeline and task work on one micro-batch under load: batches grow and shrink "
    "towards it, from 100 rows up to 50,000, 100,000 with a pipeline, 2,000 with a StreamTask "
    "alone",
    default=500,
    liveness=Liveness.RETUNES_CONTAINERS,
)
TASK_BATCH_MAX_BYTES = OwnIntKey(
    "task.batch.max.bytes",
    "a micro-batch with this many bytes of values takes no more records, and the consumer fetches "
    "about as many ahead; default a sixteenth of Python's share of the container's memory, 16 to "
    "64 MB",
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_INPUT_NATIVE = OwnBoolKey(
    "task.input.native",
    "a library in C++ takes records of input and changelogs from Kafka's client, and JSON with a "
    "schema, or that from_json parses, into Arrow, and puts outputs and changelogs into the "
    "client's queue; false: Python and Spark do, with the same results and more CPU",
    default=True,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_TRANSACTION_MAX_BYTES = OwnIntKey(
    "task.transaction.max.bytes",
    "a transaction with this much input or output ends early",
    default=33554432,
    liveness=Liveness.RETUNES_CONTAINERS,
)
TASK_SHUTDOWN_MS = IntKey(
    "task.shutdown.ms",
    "time that a container has to stop in order",
    default=30000,
    minimum=0,
    # The driver, and run-job --operation=kill, wait for so long.
    maximum=3_600_000,
)
TASK_HANG_MS = OwnIntKey(
    "task.hang.ms", "a container without progress for this long is killed", default=300000
)
TASK_CALLBACK_TIMEOUT_MS = IntKey(
    "task.callback.timeout.ms",
    "a call of the job's code (init, batch, message, window, pipeline) that lasts longer fails "
    "its container, with its stack in the log; -1: never",
    default=600000,
    minimum=-1,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_EXACTLY_ONCE = OwnBoolKey(
    "task.exactly.once",
    "outputs are part of the transaction; false: they leave at once and may repeat",
    default=True,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_DROP_DESERIALIZATION_ERRORS = BoolKey(
    "task.drop.deserialization.errors",
    "input records that cannot be read are skipped instead of failing the container",
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_DEAD_LETTER_STREAM = OwnTextKey(
    "task.dead.letter.stream",
    "where records that are skipped go, system.stream; default: nowhere",
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_WINDOW_MS = IntKey(
    "task.window.ms",
    "time between the calls of a StreamTask's window; -1: it is never called",
    default=-1,
    minimum=-1,
    liveness=Liveness.RETUNES_CONTAINERS,
)
TASK_MAX_CONCURRENCY = IntKey(
    "task.max.concurrency",
    "calls of a StreamTask's process at once, per container; those of one key never",
    default=1,
    maximum=1000,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_TIMERS_STORE = OwnTextKey(
    "task.timers.store",
    "store of its own in which timers outlive their container; default: in memory",
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_WATERMARK_LATENESS_MS = OwnIntKey(
    "task.watermark.lateness.ms",
    "how far the watermark of event time stays behind the newest timestamp; not set: there is no "
    "event time",
    minimum=0,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_WATERMARK_AHEAD_MS = OwnIntKey(
    "task.watermark.ahead.ms",
    "how far ahead of the clock a record's time may be; what is further does not move the "
    "watermark, and windows report it as they do what is late; not set: any time",
    minimum=0,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_WATERMARK_IDLE_MS = OwnIntKey(
    "task.watermark.idle.ms",
    "a partition without a record for so long holds no watermark back; -1: it does",
    default=60000,
    minimum=-1,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_IGNORED_EXCEPTIONS = ListKey(
    "task.ignored.exceptions",
    "exceptions of a StreamTask's own code that are counted and skipped, class names or *",
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_CHECKPOINT_FACTORY = TextKey(
    "task.checkpoint.factory",
    "where checkpoints are kept; none: nowhere",
    default="kafka",
    liveness=Liveness.NEVER_WITH_STATE,
)
TASK_CHECKPOINT_SYSTEM = TextKey(
    "task.checkpoint.system",
    "system of the checkpoint topic",
    liveness=Liveness.NEVER_WITH_STATE,
    fallback="job.default.system",
)
TASK_CHECKPOINT_REPLICATION_FACTOR = IntKey(
    "task.checkpoint.replication.factor",
    "replicas of the checkpoint topic; default the system's, else 3, or 1 where Kafka has one "
    "broker",
    maximum=REPLICAS_MAX,
)
TASK_CHECKPOINT_SEGMENT_BYTES = IntKey(
    "task.checkpoint.segment.bytes",
    "segment size of the checkpoint topic",
    default=26214400,
    minimum=14,
)
TASK_CHECKPOINT_MAX_MESSAGE_BYTES = IntKey(
    "task.checkpoint.max.message.bytes", "largest checkpoint", default=1000012
)
TASK_SPARK_CONF = OwnTextKey(
    "task.spark.conf.<property>",
    "a property of the local Spark",
    liveness=Liveness.RESTARTS_CONTAINERS,
    reach=Reach.CODE,
)
TASK_SPARK_DRIVER_MEMORY_MB = OwnIntKey(
    "task.spark.driver.memory.mb",
    "heap of the local Spark; default by the memory rule",
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_TRACES_ENDPOINT = OwnTextKey(
    "task.traces.otlp.endpoint",
    "where containers send traces of their transactions (fetch, pipeline, tasks, commit) by "
    "OpenTelemetry's protocol over HTTP, such as http://collector:4318/v1/traces; without it "
    "nothing is traced. The job's environment needs homeport[traces]",
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_TRACES_EVERY = OwnIntKey(
    "task.traces.every",
    "of so many committed transactions one is traced",
    default=1,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
