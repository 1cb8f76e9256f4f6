"""Configuration keys of tasks, commits and checkpoints; ``keys`` offers them with all others."""

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

PLAN_ONCE = "once"
PLAN_ALWAYS = "always"

TASK_CLASS = TextKey(
    name="task.class",
    meaning="task class, module:Class",
    liveness=Liveness.RESTARTS_CONTAINERS,
    reach=Reach.CODE,
)
TASK_PIPELINE_CLASS = TextKey(
    name="task.pipeline.class",
    meaning="pipeline function, module:function",
    source=OWN,
    liveness=Liveness.RESTARTS_CONTAINERS,
    reach=Reach.CODE,
)
TASK_PIPELINE_SQL = TextKey(
    name="task.pipeline.sql",
    meaning=(
        "the pipeline as one SELECT of Spark's SQL, or file: and a file of the job's package; in"
        " the place of task.pipeline.class"
    ),
    source=OWN,
    liveness=Liveness.RESTARTS_CONTAINERS,
    reach=Reach.CODE,
)
TASK_PIPELINE_OUTPUT = TextKey(
    name="task.pipeline.output",
    meaning="where the pipeline's rows leave, system.stream; in the place of task.class",
    source=OWN,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_PIPELINE_CHECK = TextKey(
    name="task.pipeline.check",
    choices=("submission", "start"),
    meaning=(
        "where the pipeline first meets an empty input: in a Spark of run-job's, or in the"
        " containers alone, before they take input; default submission with task.pipeline.sql,"
        " else start"
    ),
    source=OWN,
)
TASK_PIPELINE_UNORDERED = BoolKey(
    name="task.pipeline.unordered",
    default=False,
    meaning="the pipeline drops the column offset; its rows come in any order",
    source=OWN,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_PIPELINE_PLAN = TextKey(
    name="task.pipeline.plan",
    default=PLAN_ONCE,
    choices=(PLAN_ONCE, PLAN_ALWAYS),
    meaning=(
        "once: the pipeline function is called once for each schema of its input, and its plan"
        " runs on each batch where that gives the same rows; always: it is called for each batch"
    ),
    source=OWN,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_INPUTS = ListKey(
    name="task.inputs",
    meaning="input streams, system.stream, separated by commas",
    liveness=Liveness.NEVER_WITH_STATE,
)
TASK_BROADCAST_INPUTS = ListKey(
    name="task.broadcast.inputs",
    meaning="partitions that every task reads, system.stream#0 or system.stream#[0-3]",
    liveness=Liveness.NEVER_WITH_STATE,
)
TASK_OUTPUTS = ListKey(
    name="task.outputs",
    meaning=(
        "output streams, system.stream, separated by commas: each exists before the job starts;"
        " a task may send to others too"
    ),
    source=OWN,
)
TASK_OUTPUTS_CREATE_PARTITIONS = IntKey(
    name="task.outputs.create.partitions",
    default=0,
    minimum=0,
    meaning=(
        "an output that is named in the configuration and does not exist is created with so many"
        " partitions; 0: the job is refused"
    ),
    source=OWN,
)
TASK_NAME_GROUPER_FACTORY = TextKey(
    name="task.name.grouper.factory",
    default="group-by-container-count",
    meaning="how tasks are dealt to containers",
    liveness=Liveness.RESTARTS_CONTAINERS,
    reach=Reach.CLASS,
)
TASK_COMMIT_MS = IntKey(
    name="task.commit.ms",
    default=10000,
    minimum=1,
    meaning="time between commits: stores flushed, OFFSET files written",
    liveness=Liveness.RETUNES_CONTAINERS,
)
TASK_TRANSACTION_MS = IntKey(
    name="task.transaction.ms",
    default=1000,
    minimum=1,
    meaning=(
        "time between transactions: outputs, changelog and checkpoint become visible; the first"
        " after a start ends with its first batch"
    ),
    source=OWN,
    liveness=Liveness.RETUNES_CONTAINERS,
)
TASK_TRANSACTION_IDLE_MS = IntKey(
    name="task.transaction.idle.ms",
    default=10,
    minimum=-1,
    meaning=(
        "a transaction whose input has no more for now ends early, at least this long after the"
        " one before, and so that commits take at most half of the time; -1: never early"
    ),
    source=OWN,
    liveness=Liveness.RETUNES_CONTAINERS,
)
TASK_BATCH_LINGER_MS = IntKey(
    name="task.batch.linger.ms",
    meaning=(
        "longest time that a small micro-batch fills after the one before, which is less where"
        " batches cost little; default 100 with a pipeline, else 0"
    ),
    source=OWN,
    liveness=Liveness.RETUNES_CONTAINERS,
)
TASK_BATCH_TARGET_MS = IntKey(
    name="task.batch.target.ms",
    default=500,
    minimum=1,
    meaning=(
        "how long pipeline and task work on one micro-batch under load: batches grow and shrink"
        " towards it, from 100 rows up to 50,000, 100,000 with a pipeline, 2,000 with a StreamTask"
        " alone"
    ),
    source=OWN,
    liveness=Liveness.RETUNES_CONTAINERS,
)
TASK_BATCH_MAX_BYTES = IntKey(
    name="task.batch.max.bytes",
    minimum=1,
    meaning=(
        "a micro-batch with this many bytes of values takes no more records, and the consumer "
        "fetches about as many ahead; default a sixteenth of Python's share of the container's "
        "memory, 16 to 64 MB"
    ),
    source=OWN,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_TRANSACTION_MAX_BYTES = IntKey(
    name="task.transaction.max.bytes",
    default=33554432,
    minimum=1,
    meaning="a transaction with this much input or output ends early",
    source=OWN,
    liveness=Liveness.RETUNES_CONTAINERS,
)
TASK_SHUTDOWN_MS = IntKey(
    name="task.shutdown.ms",
    default=30000,
    # The driver, and run-job --operation=kill, wait for so long.
    maximum=3_600_000,
    meaning="time that a container has to stop in order",
)
TASK_HANG_MS = IntKey(
    name="task.hang.ms",
    default=300000,
    minimum=1,
    meaning="a container without progress for this long is killed",
    source=OWN,
)
TASK_CALLBACK_TIMEOUT_MS = IntKey(
    name="task.callback.timeout.ms",
    default=600000,
    minimum=-1,
    meaning=(
        "a call of the job's code (init, batch, message, window, pipeline) that lasts longer "
        "fails its container, with its stack in the log; -1: never"
    ),
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_EXACTLY_ONCE = BoolKey(
    name="task.exactly.once",
    default=True,
    meaning="outputs are part of the transaction; false: they leave at once and may repeat",
    source=OWN,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_DROP_DESERIALIZATION_ERRORS = BoolKey(
    name="task.drop.deserialization.errors",
    default=False,
    meaning="input records that cannot be read are skipped instead of failing the container",
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_DEAD_LETTER_STREAM = TextKey(
    name="task.dead.letter.stream",
    meaning="where records that are skipped go, system.stream; default: nowhere",
    source=OWN,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_WINDOW_MS = IntKey(
    name="task.window.ms",
    default=-1,
    minimum=-1,
    meaning="time between the calls of a StreamTask's window; -1: it is never called",
    liveness=Liveness.RETUNES_CONTAINERS,
)
TASK_MAX_CONCURRENCY = IntKey(
    name="task.max.concurrency",
    default=1,
    minimum=1,
    maximum=1000,
    meaning="calls of a StreamTask's process at once, per container; those of one key never",
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_TIMERS_STORE = TextKey(
    name="task.timers.store",
    meaning="store of its own in which timers outlive their container; default: in memory",
    source=OWN,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_WATERMARK_LATENESS_MS = IntKey(
    name="task.watermark.lateness.ms",
    minimum=0,
    meaning=(
        "how far the watermark of event time stays behind the newest timestamp; not set: there is"
        " no event time"
    ),
    source=OWN,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_WATERMARK_AHEAD_MS = IntKey(
    name="task.watermark.ahead.ms",
    minimum=0,
    meaning=(
        "how far ahead of the clock a record's time may be; what is further does not move the"
        " watermark, and windows report it as they do what is late; not set: any time"
    ),
    source=OWN,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_WATERMARK_IDLE_MS = IntKey(
    name="task.watermark.idle.ms",
    default=60000,
    minimum=-1,
    meaning="a partition without a record for so long holds no watermark back; -1: it does",
    source=OWN,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_IGNORED_EXCEPTIONS = ListKey(
    name="task.ignored.exceptions",
    meaning="exceptions of a StreamTask's own code that are counted and skipped, class names or *",
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_CHECKPOINT_FACTORY = TextKey(
    name="task.checkpoint.factory",
    default="kafka",
    meaning="where checkpoints are kept; none: nowhere",
    liveness=Liveness.NEVER_WITH_STATE,
)
TASK_CHECKPOINT_SYSTEM = TextKey(
    name="task.checkpoint.system",
    meaning="system of the checkpoint topic",
    liveness=Liveness.NEVER_WITH_STATE,
    fallback="job.default.system",
)
TASK_CHECKPOINT_REPLICATION_FACTOR = IntKey(
    name="task.checkpoint.replication.factor",
    minimum=1,
    maximum=REPLICAS_MAX,
    meaning="replicas of the checkpoint topic; default the system's, else 3",
)
TASK_CHECKPOINT_SEGMENT_BYTES = IntKey(
    name="task.checkpoint.segment.bytes",
    default=26214400,
    minimum=14,
    meaning="segment size of the checkpoint topic",
)
TASK_CHECKPOINT_MAX_MESSAGE_BYTES = IntKey(
    name="task.checkpoint.max.message.bytes",
    default=1000012,
    minimum=1,
    meaning="largest checkpoint",
)
TASK_SPARK_CONF = TextKey(
    name="task.spark.conf.<property>",
    meaning="a property of the local Spark",
    source=OWN,
    liveness=Liveness.RESTARTS_CONTAINERS,
    reach=Reach.CODE,
)
TASK_SPARK_DRIVER_MEMORY_MB = IntKey(
    name="task.spark.driver.memory.mb",
    minimum=1,
    meaning="heap of the local Spark; default by the memory rule",
    source=OWN,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_TRACES_ENDPOINT = TextKey(
    name="task.traces.otlp.endpoint",
    meaning=(
        "where containers send traces of their transactions (fetch, pipeline, tasks, commit) by "
        "OpenTelemetry's protocol over HTTP, such as http://collector:4318/v1/traces; without it "
        "nothing is traced. The job's environment needs homeport[traces]"
    ),
    source=OWN,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
TASK_TRACES_EVERY = IntKey(
    name="task.traces.every",
    default=1,
    minimum=1,
    meaning="of so many committed transactions one is traced",
    source=OWN,
    liveness=Liveness.RESTARTS_CONTAINERS,
)
