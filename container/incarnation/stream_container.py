"""StreamContainer: one incarnation from its permit to its end."""

import functools
import gc
import logging
import time
from collections.abc import Callable, Collection, Mapping

from homeport.config.system_stream import SystemStream
from homeport.container.api import BatchTask, StreamTask
from homeport.container.host.late_pandas import choose_pandas
from homeport.container.incarnation import start_up
from homeport.container.incarnation.adjunct_start import adjunct_feed, head_looks, warn_of_compacted
from homeport.container.incarnation.changelog_trims import StoreTrim
from homeport.container.incarnation.context import Container, History, IncarnationContext
from homeport.container.incarnation.hanging_transactions import ending_what_hangs
from homeport.container.incarnation.live_tuning import LiveTuning
from homeport.container.incarnation.look_ahead import Beside, Looked, look, topics_of
from homeport.container.incarnation.loop_inputs import contexts_of, loop_settings, purge_of
from homeport.container.incarnation.restoring import restore_stores
from homeport.container.incarnation.standby_tasks import StandbyTasks
from homeport.container.incarnation.warm_up import GettingReady
from homeport.container.kafka.drain import Drain
from homeport.container.kafka.input_consumer import InputConsumer, Reading
from homeport.container.kafka.log_reader import LogReader
from homeport.container.kafka.plain_producer import PlainOutputs
from homeport.container.kafka.sending import partition_count, refused_record
from homeport.container.kafka.topic_watch import TopicWatch
from homeport.container.kafka.transactional_producer import TransactionalProducer
from homeport.container.processing.adjunct_feed import AdjunctFeed
from homeport.container.processing.call_watch import CallWatch, WatchedPipeline, WatchedTask
from homeport.container.processing.concurrent_tasks import calls_for
from homeport.container.processing.loop_dependencies import LoopDependencies, SideCalls, Task
from homeport.container.processing.run_loop import RunLoop
from homeport.container.processing.task_factory import (
    bad_records,
    make_tasks,
    outputs_of,
    task_class_of,
    typed_input,
)
from homeport.container.processing.task_instance import Context, Outputs, Requests
from homeport.container.progress.checkpoint import Change
from homeport.container.progress.input_position import InputPosition, lost_story
from homeport.container.reporting.adjunct_report import adjunct_states
from homeport.container.reporting.otlp_traces import traces_of
from homeport.container.reporting.process_figures import (
    CollectorClock,
    collections,
    held_inputs,
    input_path,
    memory,
    task_lags,
)
from homeport.container.reporting.traces import Traces
from homeport.container.reporting.work_report import WorkReport
from homeport.container.spark.micro_batch import SparkPipeline
from homeport.container.spark.prepared import PipelineSettings, start_pipeline
from homeport.container.spark.session import LocalSpark
from homeport.container.storage.kept_stores import KeptStores
from homeport.container.storage.task_store import Reached, passed
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition
from homeport.job_coordinator.model.outcomes import Restored

_LOG = logging.getLogger(__name__)

_LAST_CALL_S = 5.0
"""After that a process whose pipeline still works does not run another incarnation."""


def report_change(history: History, event: str, task_name: TaskName, change: Change) -> None:
    """Note in the history where an order or the configuration moves a task: no commit shows it."""
    place, first = change.ssp.name, change.first
    history(event, task=task_name, input=place, first=first, next=change.next_offset)


def report_trim(history: History, item: StoreTrim) -> None:
    """Note in log and history which records of a Samza job take no part in the state."""
    changes, trim = item.changes, item.trim
    _LOG.info(
        "store %s: back to offset %d of %s, where the last checkpoint has its state end: %d keys",
        changes.store_id,
        trim.offset,
        changes.changelog,
        len(trim.entries),
    )
    history(
        "changelog-trimmed",
        store=changes.store_id.store,
        task=changes.store_id.task_name,
        offset=trim.offset,
        keys=len(trim.entries),
        unsure=trim.unsure,
    )


def report_lost(history: History, ssp: SystemStreamPartition, position: InputPosition) -> None:
    """Note in log and history the offsets of the partition that are never read."""
    _LOG.error("%s", lost_story(ssp, position))
    history(
        "input-lost",
        input=ssp.name,
        first=position.offset - position.lost,
        next=position.offset,
        lost=position.lost,
    )


class StreamContainer(Container):
    """Runs a container's active tasks.

    ``standbys``: follow beside them, from its start to its end. ``reached``: gets each step of a
    transaction and of a flush when it is done. ``kept``: the process's.
    """

    def __init__(
        self,
        context: IncarnationContext,
        ready: GettingReady,
        standbys: StandbyTasks | None = None,
        reached: Reached | None = None,
        kept: KeptStores | None = None,
    ) -> None:
        super().__init__(context)
        self._job = context.job
        self._stop = context.stop
        self._history = context.history
        self._ready = ready
        self._standbys = standbys
        self._reached = reached or passed
        launcher = context.launcher
        self._report = WorkReport(launcher.announce, context.phases.elapsed_s, launcher.say_works)
        self._calls = CallWatch(self._job.task.callback_timeout_ms)
        self._contexts: Collection[Context] = ()
        self._spark: LocalSpark | None = None
        self._settings: PipelineSettings | None = None
        self._traces = self._new_traces()
        self._restored: dict[str, dict[str, Restored]] = {}
        self._storage = start_up.storage_of(context, kept)
        self._storage.close_others()
        self._tuning = LiveTuning(context)

    def run(self) -> bool:
        """As of ``Container``."""
        context, phase = self._context, self._context.phases.phase
        with phase("prepare"):
            self._start_spark()
            task_class = task_class_of(self._job.config)
        used = {name: self._job.systems[name] for name in self._job.used_systems}
        with (
            # They connect while others are fenced, and ask for nothing before that is done.
            context.clients.readers(used, self._stop.pause) as readers,
            Beside(self._stop.check) as beside,
            start_up.confirmed_stream(
                context, functools.partial(self._fence_and_look, beside, readers)
            ) as (stream, (producer, looked, is_seen)),
        ):
            topics = self._watched_topics(stream)
            positions = self._restore(stream, readers, looked)
            is_seen()
            self._begin(producer, positions)
            is_written = beside.begin(lambda: self._write_locality(stream))
            # It connects while Spark starts; nothing is taken from it before the locality stands.
            with phase("input"):
                source = self._source(positions)
            pipeline = self._pipeline()
            outputs = outputs_of(self._job, functools.partial(partition_count, self._job.systems))
            with phase("tasks"):
                contexts = contexts_of(self._job, self._storage, self._report)
                self._contexts = contexts.values()
                tasks, requests, calls = self._make_tasks(task_class, contexts, outputs)
                typed = typed_input(self._job, task_class, outputs, pipeline)
            self._stop.check()
            is_written()
        self._report_started()
        processed, job, is_plain = positions.processed(), self._job, not self._job.task.exactly_once
        parts = LoopDependencies(
            source,
            self._watched(pipeline),
            tasks,
            requests,
            outputs,
            self._storage,
            producer,
            processed,
            self._history,
            functools.partial(refused_record, self._job.transaction_system),
            topics,
            self._tuning.latest,
            PlainOutputs(job.systems, job.task.checkpoint_system) if is_plain else None,
            self._reached,
            self._report,
            typed=typed,
            timers={name: context.timers for name, context in contexts.items()},
            calls=calls,
            drain=Drain(self._job.systems, self._stop.pause),
            adjuncts=self._feed(outputs, processed, pipeline),
            traces=self._traces,
            purge=purge_of(self._job, time.monotonic),
        )
        return self._work(parts, is_stream_task=issubclass(task_class, StreamTask))

    def _report_started(self) -> None:
        start_up.report_started(self._context, self._restored)
        if self._standbys is not None:
            self._standbys.start()
        memory_mb = self._job.task.memory.warm_spare_mb
        self._context.launcher.want_spare(self._job.spare, memory_mb)

    def _fence_and_look(
        self, beside: Beside, readers: Mapping[str, LogReader], context: IncarnationContext
    ) -> tuple[TransactionalProducer, Callable[[], Looked], Callable[[], None]]:
        """Fence; return the producer, and what waits for the looks into Kafka that follow."""
        begin = beside.later if context.permit.model else beside.begin
        topics = begin(lambda: topics_of(self._job, readers))
        producer = start_up.fence_and_begin(context)
        looked = begin(lambda: look(self._job, readers, topics()))
        places = start_up.places_of(self._job, context.clients.written)
        return producer, looked, beside.begin(lambda: producer.look_ahead(places))

    def _feed(
        self, outputs: Outputs, processed: start_up.Offsets, pipeline: SparkPipeline | None
    ) -> AdjunctFeed | None:
        bad, stores = bad_records(self._job, outputs), pipeline.stores if pipeline else {}
        adjuncts = self._storage.adjuncts
        ends = head_looks(self._job, adjuncts, self._stop.pause)
        return adjunct_feed(self._job, adjuncts, bad, processed, stores, ends)

    def _make_tasks(
        self,
        task_class: type[BatchTask | StreamTask],
        contexts: Mapping[TaskName, Context],
        outputs: Outputs,
    ) -> tuple[Mapping[TaskName, Task], Requests, SideCalls | None]:
        def context_of(name: TaskName) -> Context:
            self._calls.tick()  # each init is a call of its own
            return contexts[name]

        with self._calls.calling("the init of a task", goes_on=True):
            limit = self._job.records.max_concurrency
            calls = calls_for(task_class, limit, self._stop.check, self._calls)
            tasks, requests = make_tasks(
                self._job, task_class, context_of, outputs, self._stop, self._calls, calls
            )
        watched = {name: WatchedTask(name, task, self._calls) for name, task in tasks.items()}
        return watched, requests, calls

    def _work(self, parts: LoopDependencies, *, is_stream_task: bool) -> bool:
        loop = RunLoop(parts, loop_settings(self._job, is_stream_task=is_stream_task), self._stop)
        spare_collections()
        collector = CollectorClock()
        self._report.add_figures(lambda: collections(collector, self._spark))
        collector.start()
        try:
            is_finished = loop.run()
            self._close(loop, parts)
        finally:
            collector.stop()
        return is_finished

    def _new_traces(self) -> Traces:
        own = self._context.permit.incarnation
        resource: dict[str, str | int] = {
            "service.name": self._job.job.name,
            "host.name": self._context.environment.host,
            "homeport.processor": own.processor_id,
            "homeport.epoch": own.epoch,
        }
        return traces_of(self._job.config, resource)

    def watch_calls(self, fail: Callable[[str], object]) -> None:
        """Give ``fail`` the cause where a call of the job hangs; it ends the process as it is."""
        # From the order to stop on, task.shutdown.ms bounds it.
        self._calls.begin(lambda cause: None if self._stop.is_set() else fail(cause))

    def kill_children(self) -> None:
        """End the JVM, if there is one."""
        if self._spark is not None:
            self._spark.stop()

    def _start_spark(self) -> None:
        context = self._context
        work_dir = context.environment.work_dir / f"spark-{context.permit.incarnation.epoch}"
        settings = PipelineSettings.of(self._job.config, work_dir)
        choose_pandas(is_needed=settings is not None)
        if settings is not None:
            self._settings = settings
            self._spark = self._ready.take(settings) or start_pipeline(settings)
        self._ready.stop()

    def _pipeline(self) -> SparkPipeline | None:
        if self._spark is None:
            return None
        with self._context.phases.phase("spark"):
            return self._spark.pipeline(self._stop.check)

    def _watched(self, pipeline: SparkPipeline | None) -> WatchedPipeline | None:
        if pipeline is None or self._settings is None:
            return None
        return WatchedPipeline(pipeline, self._settings.name, self._calls)

    def _watched_topics(self, stream: CoordinatorStreamStore) -> TopicWatch:
        """Return the watch of the topics, before anything is read of them: they hold the state."""
        stores = {s.changelog: s.name for s in self._job.stores if s.changelog is not None}
        task = self._job.task
        checkpoints = SystemStream(task.checkpoint_system, task.checkpoint_topic)
        inputs = {p.system_stream for t in self._job.tasks for p in t.system_stream_partitions}
        watch = TopicWatch(
            self._job.systems,
            stores,
            checkpoints if task.checkpoint_enabled else None,
            inputs,
            self._context.clients.topics,
        )
        with self._context.phases.phase("topics"):
            watch.begin(stream)
        return watch

    def _restore(
        self,
        stream: CoordinatorStreamStore,
        readers: Mapping[str, LogReader],
        looked: Callable[[], Looked],
    ) -> start_up.Positions:
        context, job, storage = self._context, self._job, self._storage
        with ending_what_hangs(job, stream, self._stop.pause):
            start_up.require_forms(stream, job, storage, context.environment.host)
            self._restored = restore_stores(context, storage, readers, looked)
            with context.phases.phase("checkpoint"):
                warn_of_compacted(job, readers)
                return start_up.read_positions(job, readers, stream, storage, looked())

    def _begin(self, producer: TransactionalProducer, positions: start_up.Positions) -> None:
        # Before the commit: a container that dies in between leaves a line too many, not too few.
        for task_name, change in positions.changes:
            report_change(self._history, "checkpoint-set", task_name, change)
        for task_name, reset in positions.resets:
            report_change(self._history, "input-reset", task_name, reset)
        for task_name, gone in positions.left:
            report_change(self._history, "input-left", task_name, gone)
        for ssp, position in positions.lost.items():
            self._lost(ssp, position)
        for trim in positions.trims:
            report_trim(self._history, trim)
        producer.expect_beyond(self._storage.positions())
        with self._context.phases.phase("begin"):
            start_up.commit_starts(
                self._job, producer, positions, self._stop.pause, self._storage.follow
            )

    def _source(self, positions: start_up.Positions) -> InputConsumer:
        adjuncts, kept = self._storage.adjuncts, self._context.clients
        source = InputConsumer(
            self._job.systems,
            positions.starts,
            kept.input_client,
            ends=positions.ends,
            reading=Reading(self._job.task.batch_max_bytes, self._job.task.input_native),
            lost=self._lost_in_work,
            stored=self._storage.stored_inputs,
            release=kept.give_back,
        )
        states = functools.partial(adjunct_states, adjuncts, source)
        self._report.report_adjuncts(states)
        self._report.add_figures(functools.partial(task_lags, self._job.tasks, source))
        self._report.add_figures(functools.partial(held_inputs, source))
        self._report.add_figures(functools.partial(input_path, source))
        self._report.add_figures(self._storage.figures)
        self._report.add_figures(lambda: memory(self._spark, self._job.task.memory))
        return source

    def _lost_in_work(self, ssp: SystemStreamPartition, position: InputPosition) -> None:
        """Do as ``_lost``; raise StoreError where the partition's store cannot go on."""
        if self._storage.adjuncts is not None:
            self._storage.adjuncts.lost(ssp, position)
        self._lost(ssp, position)

    def _lost(self, ssp: SystemStreamPartition, position: InputPosition) -> None:
        report_lost(self._history, ssp, position)
        self._report.lost(position.lost)

    def _write_locality(self, stream: CoordinatorStreamStore) -> None:
        # Of a standalone job the processors write down where the tasks are.
        if self._job.job.host_affinity_enabled and not self._context.permit.model:
            start_up.write_locality(self._context, stream)

    def _close(self, loop: RunLoop, parts: LoopDependencies) -> None:
        """End in order: what is committed in Kafka is on this disk, as OFFSET states."""
        if self._standbys is not None:
            self._standbys.close()
        if self._stop.is_to_rest:
            self._storage.stay(self._stop.kept)
        loop.flush()
        if not self._stop.is_to_rest:
            self.kill_children()
        for task in parts.tasks.values():
            task.close()
        for context in self._contexts:
            context.end()
        parts.outputs.end()
        self._traces.close()
        if parts.calls is not None:
            parts.calls.close()
        parts.source.close()
        if parts.adjuncts is not None:
            parts.adjuncts.close()
        self._storage.close()
        self._context.clients.written = parts.producer.topics
        parts.producer.close()
        if parts.plain is not None:
            parts.plain.close()
        # A pipeline that still runs goes on by itself, and its result is not used.
        self.is_over = self._calls.close(_LAST_CALL_S) and loop.is_over(_LAST_CALL_S)
        is_to_keep = self.is_over and self._stop.is_to_rest
        if is_to_keep and self._spark is not None and self._settings is not None:
            self._ready.keep(self._settings, self._spark)
            self._spark = None
        _LOG.info("stopped in order")


_YOUNG_OBJECTS = 100_000


def spare_collections() -> None:
    """Keep the present objects, which live as long as the container, out of all collections.

    Young objects mostly belong to the present micro-batch, in which a collection finds nothing:
    collections come less often, and may never be switched off (``SparkPipeline``).
    """
    if gc.get_threshold()[0] != _YOUNG_OBJECTS:  # else an earlier incarnation has done so
        gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])
