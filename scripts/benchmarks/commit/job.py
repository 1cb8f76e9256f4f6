"""Runs a container's loop over an input that is there already; prints JSON.

All of a container's data path, from the fetch of the input to the commit of the stores, on a real
broker and RocksDB, in this process. Without an AM, and without Spark.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.bed import scratch
from benchmarks.commit.tasks import PARTITIONS, STORE, Newest, Sums
from benchmarks.jobs import config_of, container_of, store_keys
from benchmarks.processes import peak_mb
from benchmarks.report import Spent
from homeport import BatchTask, StreamTask
from homeport.config.settings.tuning import Tuning
from homeport.container.container_job import ContainerJob
from homeport.container.host.stop_flag import StopFlag
from homeport.container.incarnation.loop_inputs import loop_settings
from homeport.container.incarnation.restoring import RestoreReport, restore_workers
from homeport.container.incarnation.start_up import Positions, read_positions
from homeport.container.incarnation.stream_container import spare_collections
from homeport.container.kafka.input_consumer import InputConsumer, Reading
from homeport.container.kafka.log_reader import KafkaChangelogReader, LogReader
from homeport.container.kafka.plain_producer import PlainOutputs
from homeport.container.kafka.topic_watch import TopicWatch
from homeport.container.kafka.transactional_producer import TransactionalProducer
from homeport.container.processing.call_watch import CallWatch
from homeport.container.processing.loop_dependencies import LoopDependencies, Pipeline
from homeport.container.processing.run_loop import RunLoop
from homeport.container.processing.task_factory import make_tasks, typed_input
from homeport.container.processing.task_instance import Context, Outputs
from homeport.container.storage.container_storage import ContainerStorage
from homeport.container.storage.typed_store import TypedStore
from homeport.job_coordinator.coordinator_stream.coordinator_stream import EmptyCoordinatorStream
from homeport.job_coordinator.model.ids import TaskName

_TASKS: Mapping[str, type[BatchTask]] = {"hot": Sums, "distinct": Newest}
_MIB = 1024 * 1024


def topic(name: str, kind: str) -> str:
    """The run's own topic of that kind."""
    return f"{name}-{kind}"


def job_of(servers: str, name: str, more: Mapping[str, str]) -> ContainerJob:
    """One container that has all tasks of the run; ``more``: further keys."""
    keys = {
        "task.class": "benchmarks.commit.tasks:Sums",
        "task.inputs": f"kafka.{topic(name, 'in')}",
        **store_keys(STORE, topic(name, STORE), "bytes"),
        **more,
    }
    return container_of(config_of(servers, keys, name), {topic(name, "in"): PARTITIONS})


class Watch:
    """Stops the loop when all of the input is committed; the loop's history.

    ``transactions``: that are committed.
    """

    def __init__(self, stop: StopFlag, records: int) -> None:
        self._stop = stop
        self._records = records
        self._ending: dict[str, int] = {}
        self._done: dict[str, int] = {}
        self.transactions = 0

    def event(self, event: str, **fields: Any) -> None:  # noqa: ANN401 - as the history's
        """One event."""
        if event == "transaction-ending":
            for spans in fields["offsets"].values():
                self._ending.update(
                    {p: s[-1] if isinstance(s, list) else s for p, s in spans.items()}
                )
        elif event == "transaction-committed":
            self.transactions += 1
            self._done.update(self._ending)
            if sum(offset + 1 for offset in self._done.values()) == self._records:
                self._stop.set()


class Run:
    """One container of ``job`` in this process; its state is in ``folder``."""

    def __init__(
        self,
        job: ContainerJob,
        task_class: type[BatchTask | StreamTask],
        folder: Path,
        rocksdb_mb: int,
    ) -> None:
        self._job = job
        grouper = job.job.ssp_grouper_factory
        roots = (folder / "logged", folder / "scratch")
        self._storage = ContainerStorage(*roots, job.stores, job.tasks, rocksdb_mb * _MIB, grouper)
        self._producer = TransactionalProducer(job.transaction_system, f"{job.job.name}.1")
        self._producer.initialise()
        self._storage.open()
        self._readers = {name: LogReader(s, StopFlag().pause) for name, s in job.systems.items()}
        listener = RestoreReport(lambda *_, **__: None, lambda _: None)
        workers = restore_workers(job, StopFlag().pause)
        self._storage.restore(KafkaChangelogReader(self._readers), listener, workers)
        self._outputs = Outputs(job.systems, job.output_systems, job.job.default_system)
        self._task_class = task_class
        self._plain = None
        if not job.task.exactly_once:
            self._plain = PlainOutputs(job.systems, job.task.checkpoint_system)

    def _context(self, task_name: TaskName) -> Context:
        store = self._job.stores[0]
        overlay = self._storage.overlay(store.name, task_name)
        typed = TypedStore(overlay, *self._job.serdes(store))
        return Context(task_name, self._job.config, {store.name: typed})

    def measure(self, records: int) -> dict[str, float]:
        """Runs until the input's first ``records`` are committed in Kafka and in the stores."""
        stop = StopFlag()
        watch = Watch(stop, records)
        positions = self.positions()
        spare_collections()
        # Within the time: the input begins to be fetched.
        spent = Spent()
        self.run(positions, stop, watch.event)
        return {**spent.found(), "transactions": watch.transactions}

    def positions(self) -> Positions:
        """Where the input is committed to."""
        return read_positions(self._job, self._readers, EmptyCoordinatorStream())

    def run(
        self,
        positions: Positions,
        stop: StopFlag,
        history: Callable[..., None],
        pipeline: Pipeline | None = None,
    ) -> None:
        """The loop from these positions, until ``stop`` is set."""
        typed = typed_input(self._job, self._task_class, self._outputs)
        tasks, requests = make_tasks(
            self._job, self._task_class, self._context, self._outputs, stop, CallWatch(None)
        )
        tuning = Tuning.of(self._job.config)
        settings = loop_settings(self._job, is_stream_task=issubclass(self._task_class, StreamTask))
        source = InputConsumer(
            self._job.systems,
            positions.starts,
            ends=positions.ends,
            reading=Reading(self._job.task.batch_max_bytes),
        )
        parts = LoopDependencies(
            source,
            pipeline,
            tasks,
            requests,
            self._outputs,
            self._storage,
            self._producer,
            positions.processed(),
            history,
            lambda _: None,
            TopicWatch(self._job.systems, {}, None, ()),
            lambda: tuning,
            self._plain,
            typed=typed,
        )
        loop = RunLoop(parts, settings, stop)
        loop.run()
        loop.flush()
        source.close()

    def close(self) -> None:
        """Close the stores: RocksDB's threads must not outlive the interpreter."""
        self._storage.close()


def main() -> None:
    """``SERVERS NAME KIND EXACTLY_ONCE ROCKSDB_MB``; a line of input per pass, of output too.

    A line of input has how many records the input has by then; a line of output what the pass took.
    """
    servers, name, kind, exactly_once, rocksdb_mb = sys.argv[1:]
    with scratch() as folder:
        job = job_of(servers, name, {"task.exactly.once": exactly_once})
        run = Run(job, _TASKS[kind], folder, int(rocksdb_mb))
        for line in sys.stdin:
            found = run.measure(int(line))
            state_mb = sum(f.stat().st_size for f in folder.rglob("*.sst")) / _MIB
            print(json.dumps({**found, "peak_mb": peak_mb(), "state_mb": state_mb}), flush=True)
        run.close()


if __name__ == "__main__":
    main()
