"""StreamContainer: one incarnation from its permit to its end."""

from __future__ import annotations

import functools
import gc
import logging
import threading

from homeport.config.system_stream import SystemStream
from homeport.container.api import StreamTask
from homeport.container.classes import load_task_class, require_task_class
from homeport.container.container_job import ContainerJob
from homeport.container.host.lease_memory import LeaseMemory, NoLauncher
from homeport.container.host.permit import Permit
from homeport.container.host.stop_flag import StopFlag
from homeport.container.incarnation import start_up
from homeport.container.incarnation.environment import Environment
from homeport.container.incarnation.hanging_transactions import ending_what_hangs
from homeport.container.incarnation.live_tuning import LiveTuning
from homeport.container.incarnation.predecessors import open_stores
from homeport.container.incarnation.restore_report import RestoreReport
from homeport.container.incarnation.warm_up import GettingReady
from homeport.container.kafka.input_consumer import InputConsumer
from homeport.container.kafka.log_reader import KafkaChangelogReader, LogReader
from homeport.container.kafka.plain_producer import PlainOutputs
from homeport.container.kafka.topic_watch import TopicWatch
from homeport.container.kafka.transactional_producer import TransactionalProducer
from homeport.container.processing.loop_parts import LoopParts, LoopSettings
from homeport.container.processing.run_loop import RunLoop
from homeport.container.processing.task_factory import make_tasks
from homeport.container.processing.task_instance import Context, Outputs
from homeport.container.processing.work_report import WorkReport
from homeport.container.spark.micro_batch import SparkPipeline
from homeport.container.spark.prepared import MAX_ROWS_SPARK, PipelineSettings, start_pipeline
from homeport.container.spark.session import LocalSpark
from homeport.container.spark.table_order import use_arrow_once
from homeport.container.storage.task_store import Reached, passed
from homeport.container.storage.typed_store import TypedStore
from homeport.container.storage.value_guard import ValueGuard
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.http.messages import Started
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.kafka.record_limit import record_limit
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.outcomes import Restored

_LOG = logging.getLogger(__name__)

MAX_ROWS = 50_000
"""Of a micro-batch, at most; of another number where there is Spark, or a StreamTask."""
_MAX_ROWS_STREAM = 2_000
"""Messages are handed to a StreamTask one by one: windows, commits and votes wait for a batch."""


class StreamContainer:
    """``run`` once; ``kill_children`` in any case afterwards."""

    def __init__(
        self,
        job: ContainerJob,
        permit: Permit,
        environment: Environment,
        client: CoordinatorClient,
        stop: StopFlag,
        launcher: LeaseMemory | NoLauncher,
        ready: GettingReady,
        reached: Reached = passed,
    ) -> None:
        """Nothing is begun, but what ``ready`` has.

        ``launcher``: gets what the AM and its users see of the work, and keeps a spare process
        that can be the next incarnation. ``reached``: gets each step of a
        transaction and of a flush when it is done.
        """
        self._job = job
        self._permit = permit
        self._environment = environment
        self._client = client
        self._stop = stop
        self._send = launcher.announce
        self._want_spare = launcher.want_spare
        self._ready = ready
        self._reached = reached
        self.shutdown_ms = job.task.shutdown_ms
        self._phases = start_up.Phases()
        self._report = WorkReport(launcher.announce, self._phases.elapsed_s)
        self._spark: LocalSpark | None = None
        self._restored: dict[str, dict[str, Restored]] = {}
        self._history = start_up.history_of(job, permit, environment)
        self._storage = start_up.storage_of(job, permit, environment, stop)
        self._tuning = LiveTuning(
            job.config, permit.model_version, client.config, launcher, self._history, stop
        )

    def run(self) -> bool:
        """Whether its tasks have finished; False after the order to stop.

        In either case everything that is committed is on the disk.

        Raises:
            HomeportError: the container has failed; what was committed stays.
            StopRequestedError: the order to stop came before the first input.
        """
        with self._phases.phase("prepare"):
            threading.Thread(target=use_arrow_once, name="arrow", daemon=True).start()
            self._start_spark()
            task_class = load_task_class(require_task_class(self._job.task.task_class))
        with start_up.open_coordinator_stream(self._job) as stream:
            with self._phases.phase("kafka"):
                start_up.await_kafka(self._job, self._stop)
            with self._phases.phase("fence"):
                producer = start_up.fence_and_begin(
                    self._job, self._permit, self._history, self._stop
                )
            with self._phases.phase("coordinator-stream"):
                stream.bootstrap()
            start_up.require_newest(stream, self._permit)
            start_up.report_fenced(stream, self._permit)
            topics = self._watched_topics(stream)
            with ending_what_hangs(self._job, stream, self._stop.pause):
                positions = self._restore(stream)
            self._begin(producer, positions)
            # It connects while Spark starts; nothing is taken from it before the locality stands.
            source = InputConsumer(self._job.systems, positions.starts)
            pipeline = self._pipeline()
            outputs = Outputs(
                self._job.systems, self._job.output_systems, self._job.job.default_system
            )
            tasks, requests = make_tasks(
                self._job, task_class, self._context, outputs, self._stop.check
            )
            self._stop.check()
            self._write_locality(stream)
        self._report_started()
        self._want_spare(self._job.spare, self._job.task.memory.warm_spare_mb)
        parts = LoopParts(
            source,
            pipeline,
            tasks,
            requests,
            outputs,
            self._storage,
            producer,
            positions.processed(),
            self._history,
            functools.partial(record_limit, self._job.transaction_system),
            topics,
            self._tuning.latest,
            self._plain(),
            self._reached,
            self._report,
        )
        return self._work(parts, is_stream_task=issubclass(task_class, StreamTask))

    def _work(self, parts: LoopParts, *, is_stream_task: bool) -> bool:
        loop = RunLoop(parts, self._loop_settings(is_stream_task=is_stream_task), self._stop)
        spare_collections()
        is_finished = loop.run()
        self._close(loop, parts)
        return is_finished

    def kill_children(self) -> None:
        """No JVM of ours is left."""
        if self._spark is not None:
            self._spark.stop()

    def _start_spark(self) -> None:
        work_dir = self._environment.work_dir / f"spark-{self._permit.incarnation.epoch}"
        settings = PipelineSettings.of(self._job.config, work_dir)
        if settings is not None:
            self._spark = self._ready.take(settings) or start_pipeline(settings)
        self._ready.stop()

    def _pipeline(self) -> SparkPipeline | None:
        if self._spark is None:
            return None
        with self._phases.phase("spark"):
            return self._spark.pipeline(self._stop.check)

    def _watched_topics(self, stream: CoordinatorStreamStore) -> TopicWatch:
        """Before anything is read of them: whether they hold the state and the positions."""
        stores = {s.changelog: s.name for s in self._job.stores if s.changelog is not None}
        task = self._job.task
        checkpoints = SystemStream(task.checkpoint_system, task.checkpoint_topic)
        watch = TopicWatch(
            self._job.systems, stores, checkpoints if task.checkpoint_enabled else None
        )
        watch.begin(stream)
        return watch

    def _restore(self, stream: CoordinatorStreamStore) -> start_up.Positions:
        """Stores stand at their changelogs' heads; where the input goes on."""
        pause = self._stop.pause
        readers = {n: LogReader(self._job.systems[n], pause) for n in self._job.used_systems}
        try:
            with self._phases.phase("stores"):
                open_stores(self._storage, self._job, self._permit)
            with self._phases.phase("restore"):
                self._restored = self._storage.restore(
                    KafkaChangelogReader(readers),
                    RestoreReport(self._history, self._send),
                    start_up.restore_workers(self._job, self._stop.pause),
                )
            with self._phases.phase("checkpoint"):
                return start_up.read_positions(self._job, readers, stream)
        finally:
            for reader in readers.values():
                reader.close()

    def _begin(self, producer: TransactionalProducer, positions: start_up.Positions) -> None:
        """Every task's place in its input is committed; stores stand at their changelogs' heads."""
        producer.expect_beyond(self._storage.positions())
        with self._phases.phase("begin"):
            start_up.commit_starts(self._job, producer, positions, self._stop.pause)

    def _plain(self) -> PlainOutputs | None:
        if self._job.task.exactly_once:
            return None
        return PlainOutputs(self._job.systems, self._job.task.checkpoint_system)

    def _context(self, task_name: TaskName) -> Context:
        stores = {}
        for store in self._job.stores:
            key_serde, msg_serde = self._job.serdes(store)
            overlay = self._storage.overlay(store.name, task_name)
            guard = self._report.count(ValueGuard.of(store, task_name))
            stores[store.name] = TypedStore(overlay, key_serde, msg_serde, guard)
        return Context(task_name, self._job.config, stores)

    def _write_locality(self, stream: CoordinatorStreamStore) -> None:
        if not self._job.job.host_affinity_enabled:
            return
        with self._phases.phase("locality"):
            start_up.write_locality(
                stream, self._job, self._permit, self._environment.host, self._history
            )

    def _report_started(self) -> None:
        started = Started(self._permit.incarnation, self._restored, self._phases.total())
        start_up.report_started(self._client, started, self._history, self._stop)

    def _loop_settings(self, *, is_stream_task: bool) -> LoopSettings:
        task = self._job.task
        max_rows = _MAX_ROWS_STREAM if is_stream_task else MAX_ROWS
        return LoopSettings(
            max_rows=max_rows if self._spark is None else MAX_ROWS_SPARK,
            grouper=self._job.job.ssp_grouper_factory,
            checkpoint_topic=task.checkpoint_topic if task.checkpoint_enabled else None,
            has_windows=is_stream_task,
        )

    def _close(self, loop: RunLoop, parts: LoopParts) -> None:
        """The orderly end: what is committed in Kafka is on this disk, and OFFSET says so."""
        loop.flush()
        self.kill_children()
        for task in parts.tasks.values():
            task.close()
        parts.source.close()
        self._storage.close()
        parts.producer.close()
        if parts.plain is not None:
            parts.plain.close()
        _LOG.info("stopped in order")


_YOUNG_OBJECTS = 100_000


def spare_collections() -> None:
    """What stands now lives as long as the container: no collection looks at it again.

    And what is young is mostly the micro-batch at work, in which a search finds nothing: it comes
    less often. It may never be switched off (``SparkPipeline``).
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])
