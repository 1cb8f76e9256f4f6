"""MemoryContainer: one incarnation of a job's only container, in this process, without Kafka.

It has the parts of ``StreamContainer``: the loop, transactions, tasks, serdes and stores are the
product's own. Only the clients of Kafka and the clock are others.
"""

import contextlib
import functools
import os
import shutil
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from confluent_kafka import Consumer

from homeport.config.errors import StoreError
from homeport.config.settings.sections import SystemConfig
from homeport.config.settings.tuning import Tuning
from homeport.container.adjunct.steps import AdjunctStep
from homeport.container.api import BatchTask, KeyValueStore, StreamTask
from homeport.container.container_job import ContainerJob
from homeport.container.host.executors import SameThread
from homeport.container.host.lease_memory import unheard
from homeport.container.host.stop_flag import StopFlag
from homeport.container.incarnation.adjunct_start import adjunct_feed, adjunct_storage
from homeport.container.incarnation.loop_inputs import contexts_of, loop_settings
from homeport.container.incarnation.restoring import RestoreReport
from homeport.container.incarnation.start_up import Positions, commit_starts, read_positions
from homeport.container.kafka.drain import Drain
from homeport.container.kafka.input_consumer import InputConsumer, Reading
from homeport.container.kafka.log_reader import KafkaChangelogReader
from homeport.container.processing.call_watch import CallWatch
from homeport.container.processing.concurrent_calls import LoopCalls, ThreadCalls
from homeport.container.processing.concurrent_tasks import calls_for
from homeport.container.processing.loop_dependencies import LoopDependencies
from homeport.container.processing.run_loop import RunLoop
from homeport.container.processing.task_factory import (
    bad_records,
    make_tasks,
    outputs_of,
    typed_input,
)
from homeport.container.processing.task_instance import Context
from homeport.container.progress.transaction_plan import (
    FlushStep,
    Step,
    StoreProgress,
    flush_plan,
    transaction_plan,
)
from homeport.container.reporting.work_report import WorkReport
from homeport.container.spark.micro_batch import SparkPipeline
from homeport.container.storage.container_storage import ContainerStorage
from homeport.container.storage.store_restore import StoreRestore
from homeport.job_coordinator.coordinator_stream.coordinator_stream import EmptyCoordinatorStream
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import Restored
from homeport.job_coordinator.status.own_metrics import OwnMetric
from homeport.testing.broker import Broker
from homeport.testing.clients import (
    MemoryConsumer,
    MemoryLog,
    MemoryOutputs,
    MemoryProducer,
    MemoryTopics,
    Refusals,
)
from homeport.testing.clock import ManualClock

ONLY = ProcessorId("0")
_MIB = 1024 * 1024


class InjectedCrash(BaseException):
    """The process dies here, as by SIGKILL: nothing of the product may catch it."""


@dataclass
class CrashPoint:
    """``step``: the name of the step before which the process dies; None: it lives."""

    step: str | None = None

    def begins(self, step: Step | FlushStep | AdjunctStep) -> None:
        """Die where that is the step."""
        if self.step == str(step):
            raise InjectedCrash(self.step)


@dataclass(frozen=True)
class Surroundings:
    """The parts that outlive an incarnation.

    ``brokers``: {system: its broker}. ``folder``: the files of the host. ``batch_rows``: the most
    rows of a micro-batch; None: the product's limit.
    """

    brokers: Mapping[str, Broker]
    folder: Path
    clock: ManualClock
    batch_rows: int | None

    @property
    def state(self) -> Path:
        """Return the folder of stores with a changelog."""
        return self.folder / "state"

    @property
    def scratch(self) -> Path:
        """Return the folder of stores without a changelog; the next incarnation does not get it."""
        return self.folder / "scratch"


class MemoryContainer:
    """Made by its start; ``close`` or ``kill`` ends it."""

    def __init__(
        self,
        job: ContainerJob,
        surroundings: Surroundings,
        epoch: int,
        task_class: type[BatchTask | StreamTask],
        pipeline: SparkPipeline | None,
    ) -> None:
        """Restore its stores and initialise its tasks; read no input yet.

        HomeportError: as in the product.
        """
        self._job = job
        self._around = surroundings
        self._incarnation = Incarnation(ONLY, epoch)
        self.crash = CrashPoint()
        self.contexts: dict[TaskName, Context] = {}
        self._consumers: list[MemoryConsumer] = []
        self._report = WorkReport()
        self._calls: ThreadCalls | LoopCalls | None = None
        self._storage = self._new_storage()
        try:
            self._parts = self._begin(task_class, pipeline)
        except BaseException:  # whatever it was, nothing stays behind
            self._close_calls()
            self._storage.close()
            raise
        settings = loop_settings(job, is_stream_task=issubclass(task_class, StreamTask))
        rows = surroundings.batch_rows or settings.max_rows
        # In one thread, so that each test runs as it did the last time.
        settings = replace(settings, max_rows=rows, overlaps=False)
        self._checkpoint_topic = settings.checkpoint_topic
        self._loop = RunLoop(self._parts, settings, never_stopped())
        self.turn, self.wait_s = self._loop.turn, self._loop.wait_s

    def _new_storage(self) -> ContainerStorage:
        job, around = self._job, self._around
        shutil.rmtree(around.scratch, ignore_errors=True)
        return ContainerStorage(
            logged_root=around.state,
            scratch_root=around.scratch,
            stores=job.stores,
            tasks=job.tasks,
            memory_bytes=job.task.memory.rocksdb_mb * _MIB,
            grouper=job.job.ssp_grouper_factory,
            clocks=around.clock.reading,
            adjuncts=adjunct_storage(
                job, ONLY, (around.state, around.scratch), around.clock.reading, SameThread()
            ),
        )

    def _begin(
        self, task_class: type[BatchTask | StreamTask], pipeline: SparkPipeline | None
    ) -> LoopDependencies:
        job, storage, brokers = self._job, self._storage, self._around.brokers
        system = job.task.checkpoint_system
        before = replace(self._incarnation, epoch=self._incarnation.epoch - 1)
        brokers[system].take_over(job.transactional_id(before))
        own = job.transaction_system
        producer = MemoryProducer(brokers[system], own, job.transactional_id(self._incarnation))
        storage.open()
        positions = self._restored(producer)
        outputs = outputs_of(job, lambda name, topic: brokers[name].partition_count(topic))
        self.contexts = contexts_of(job, storage, self._report, lambda: self._around.clock.now_ms)
        stop, watch = never_stopped(), CallWatch(None)
        calls = self._calls = calls_for(task_class, job.records.max_concurrency, stop.check)
        tasks, requests = make_tasks(
            job, task_class, self.contexts.__getitem__, outputs, stop, watch, calls
        )
        self._tuning = Tuning.of(job.config)
        drain = Drain(job.systems, stop.pause, lambda system, _: MemoryLog(brokers[system.name]))
        return LoopDependencies(
            InputConsumer(
                job.systems,
                positions.starts,
                self._consumer,
                ends=positions.ends,
                reading=Reading(job.task.batch_max_bytes),
                stored=storage.stored_inputs,
            ),
            pipeline,
            tasks,
            requests,
            outputs,
            storage,
            producer,
            positions.processed(),
            _no_history,
            Refusals(brokers[system], own).story,
            MemoryTopics(),
            lambda: self._tuning,
            None if job.task.exactly_once else MemoryOutputs(brokers, job.systems, system),
            report=self._report,
            on_step_begin=self.crash.begins,
            clock=self._around.clock.seconds,
            typed=typed_input(job, task_class, outputs, pipeline),
            timers={name: context.timers for name, context in self.contexts.items()},
            calls=calls,
            drain=drain,
            adjuncts=adjunct_feed(
                job,
                storage.adjuncts,
                bad_records(job, outputs),
                positions.processed(),
                pipeline.stores if pipeline else {},
            ),
        )

    def _restored(self, producer: MemoryProducer) -> Positions:
        job, pause = self._job, never_stopped().pause
        readers = {name: MemoryLog(self._around.brokers[name]) for name in job.used_systems}
        self.restored: dict[str, dict[str, Restored]] = self._storage.restore(
            KafkaChangelogReader(readers), RestoreReport(_no_history, unheard), _NoWorkers()
        )
        positions = read_positions(job, readers, EmptyCoordinatorStream(), self._storage)
        producer.expect_beyond(self._storage.positions())
        commit_starts(job, producer, positions, pause, self._storage.follow)
        return positions

    def _consumer(self, system: SystemConfig, properties: Mapping[str, Any]) -> Consumer:
        says_ends = bool(properties.get("enable.partition.eof"))
        broker = self._around.brokers[system.name]
        self._consumers.append(MemoryConsumer(broker, says_ends=says_ends))
        return cast("Consumer", self._consumers[-1])

    @property
    def records(self) -> int:
        """Return the number of records that it has read."""
        return sum(consumer.consumed for consumer in self._consumers)

    def has_input(self) -> bool:
        """Return whether records that it may read now are waiting."""
        self._parts.source.begin_released()
        return any(consumer.has_more() for consumer in self._consumers)

    def has_work(self) -> bool:
        """Return whether input waits, or a timer is due."""
        if self.has_input():
            return True
        return any(context.timers.wait_s() <= 0 for context in self.contexts.values())

    def drain(self) -> None:
        """Take the order to drain."""
        self._tuning = replace(self._tuning, drains=True)

    def commit(self) -> bool:
        """End the open transaction and flush the stores, as a task may request it.

        Return whether every task has voted for the end.
        """
        self._parts.requests.commit = True
        return self._loop.turn()

    def store(self, name: str, task_name: TaskName) -> KeyValueStore:
        """Return the task's own store; KeyError, naming the known ones, where there is none."""
        return self.contexts[task_name].store(name)

    def own_metrics(self) -> tuple[OwnMetric, ...]:
        """Return the metrics of the job's own as they are now."""
        return self._report.own_metrics.sampled()

    def commit_steps(self) -> tuple[str, ...]:
        """Return the names of all steps of a transaction and of the flush after it, in their order.

        The steps of adjunct stores in the last micro-batch of the transaction come first.
        """
        stores, logged = self._storage.ids()
        plan = transaction_plan(
            stores,
            logged,
            outputs_at_once=self._parts.plain is not None,
            checkpoints=self._checkpoint_topic is not None,
        )
        files = {store.name for store in self._job.stores if store.is_persistent}
        moved = StoreProgress(1, None, keeps_meta=True, is_meta_due=False)
        flushes = [s for i in logged if i.store in files for s in flush_plan(i, moved)]
        adjuncts = self._storage.adjuncts
        brought, kept = ((), ()) if adjuncts is None else adjuncts.steps()
        return tuple(str(step) for step in (*brought, *plan, *flushes, *kept))

    def close(self) -> None:
        """End in order: flush all that is committed, and drop the open transaction."""
        parts = self._parts
        try:
            self._loop.drop()
            self._loop.flush()
            for task in parts.tasks.values():
                task.close()
            parts.source.close()
        finally:
            self._close_calls()
            self._storage.close()

    def _close_calls(self) -> None:
        if self._calls is not None:
            self._calls.close()

    def kill(self) -> None:
        """End as by SIGKILL: files stay as they are; all that is only in memory is lost."""
        self._close_calls()
        state, kept = self._around.state, self._around.folder / "kept"
        if state.exists():
            _copy_of_one_moment(state, kept)
        with contextlib.suppress(StoreError):  # these files are thrown away
            self._storage.close()
        if state.exists():
            shutil.rmtree(state)
            kept.rename(state)


def new_folder() -> Path:
    """Return a new path for a folder; in memory if possible, where forced writes cost nothing."""
    memory = "/dev/shm"  # noqa: S108 - a folder of one's own is made in it
    root = memory if os.access(memory, os.W_OK) else tempfile.gettempdir()
    return Path(root) / f"homeport-test-{uuid.uuid4().hex}"


def _copy_of_one_moment(folder: Path, copy: Path) -> None:
    """Copy what ``folder`` holds at one moment.

    RocksDB compacts in the background, and deletes the files that it has merged. If a file came,
    changed or went meanwhile, all are copied again. Nothing is written now, so that this ends.
    """
    while True:
        before = _listed(folder)
        shutil.rmtree(copy, ignore_errors=True)
        try:
            shutil.copytree(folder, copy)
        except (shutil.Error, FileNotFoundError):
            if before == _listed(folder):
                raise
            continue
        if before == _listed(folder):
            return


def _listed(folder: Path) -> dict[Path, tuple[int, int]]:
    found: dict[Path, tuple[int, int]] = {}
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            found[path] = path.stat().st_size, path.stat().st_mtime_ns
    return found


class _NoWorkers:
    def run(self, restores: Sequence[StoreRestore]) -> None:
        names = ", ".join(restore.store.name for restore in restores)
        raise StoreError(f"{names}: more records to restore than a test may have: write fewer")


@functools.cache
def never_stopped() -> StopFlag:
    """Return one flag for all containers of the process: a flag keeps two descriptors."""
    return StopFlag()


def _no_history(_event: str, **_story: object) -> None:
    """Drop events: a test has no history."""
