"""TestRunner: a whole job in the process of a test, with Kafka's part in memory."""

from __future__ import annotations

import math
import shutil
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from homeport.config.errors import HomeportError, in_one_line
from homeport.config.loading.declared_job import DeclaredJob
from homeport.config.settings.sections import repartitions
from homeport.config.system_stream import SystemStream
from homeport.container.api import HeaderPairs, Headers, KeyValueStore
from homeport.container.kafka.checkpoints import read_whole_checkpoints
from homeport.container.processing.task_factory import stream_serdes
from homeport.container.serde.serdes import Serde
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import TaskModel
from homeport.job_coordinator.model.outcomes import Restored
from homeport.job_coordinator.status.own_metrics import series_text
from homeport.testing.broker import Broker, Record, TestRunnerError, as_sent, settings_of
from homeport.testing.clients import MemoryLog
from homeport.testing.clock import ManualClock
from homeport.testing.frames import frame_of, last_of, records_of
from homeport.testing.job_under_test import JobUnderTest, TaskClass
from homeport.testing.memory_container import (
    InjectedCrash,
    MemoryContainer,
    Surroundings,
    new_folder,
)
from homeport.testing.shared_spark import pipeline_of

if TYPE_CHECKING:
    import pandas as pd

START_MS = 1_700_000_000_000
"""When the clock of a test begins, in ms since 1970."""
_MS_PER_S = 1000
_MOST_COMMITS = 1000
"""A chain of repartitions needs a commit for each of them: more is a circle without an end."""
Topics = Mapping[str, Mapping[str, str]]
"""{``system.stream``: properties of the topic, as Kafka's}."""


class TestRunner:
    """One job, all its tasks in one container, from its start to the end of a ``with``.

    ``send`` brings records, ``run`` and ``advance`` let the job work, and the views show what
    readers of committed records see. Nothing happens between these calls.

    Args:
        config: the job itself, its keys, or the path of its file.
        task: the task class, in place of ``task.class``.
        partitions: of each topic, or {``system.stream``: its partitions}; 1 by default.
        topics: {``system.stream``: properties} of the topics that exist beside the job's own, as on
            a broker that creates no topics; None: the first use of a topic creates it.
        folder: the folder of the stores' files; None: a temporary one, in memory if possible.
        batch_rows: the most rows of a micro-batch; None: as many as in production.
        overrides: keys that replace those of ``config``.
        allow_unknown_keys: accept keys that begin as Homeport's do and that no program reads.
        start_ms: the time of the beginning, in ms since 1970.

    Raises:
        ConfigError: the configuration breaks a rule.
    """

    __test__ = False  # pytest takes a class of this name for tests

    def __init__(  # noqa: PLR0913 - each is what a test may choose
        self,
        config: Mapping[str, str] | DeclaredJob | Path | str,
        *,
        task: TaskClass | None = None,
        partitions: int | Mapping[str, int] = 1,
        topics: Topics | None = None,
        folder: Path | None = None,
        batch_rows: int | None = None,
        overrides: Mapping[str, str] | None = None,
        allow_unknown_keys: bool = False,
        start_ms: int = START_MS,
    ) -> None:
        """Check the configuration; nothing runs yet."""
        self._checked = JobUnderTest.of(
            config, task, partitions, overrides or {}, allow_unknown_keys=allow_unknown_keys
        )
        self._job = self._checked.job
        self._clock = ManualClock(start_ms)
        self._is_own_folder = folder is None
        self._around = Surroundings(
            _brokers_of(self._checked, partitions, topics, lambda: self._clock.now_ms),
            folder or new_folder(),
            self._clock,
            batch_rows,
        )
        self._epoch = 0
        self._container: MemoryContainer | None = None
        self._why = "it has not been started: use it in a with statement, or start()"

    def __enter__(self) -> Self:
        """Start the first incarnation, with empty stores; initialise its tasks."""
        self._around.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            self.restart()
        except BaseException:  # whatever it was, nothing stays behind
            self._remove_folder()
            raise
        return self

    def start(self) -> Self:
        """Start without a ``with``, for a notebook; ``close``, or the process's end, ends it."""
        if self._is_own_folder:
            weakref.finalize(self, shutil.rmtree, self._around.folder, ignore_errors=True)
        return self.__enter__()

    def close(self) -> None:
        """Stop the container in order, and remove its files."""
        self.__exit__(None, None, None)

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        """Stop the container in order; kill it after an error in the test."""
        try:
            if kind is None:
                self.stop()
            else:
                self.crash()
        finally:
            self._why = "it is closed"
            self._remove_folder()

    def _remove_folder(self) -> None:
        if self._is_own_folder:
            shutil.rmtree(self._around.folder, ignore_errors=True)

    # -- what a test does

    def send(
        self,
        stream: str,
        *,
        key: Any = None,  # noqa: ANN401 - the type is the serde's
        value: Any = None,  # noqa: ANN401 - as above
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Mapping[str, bytes | None] | HeaderPairs | None = None,
    ) -> None:
        """Append a record to an input; key and value are encoded by the stream's serdes.

        None is null. Without a serde, give bytes. Without ``partition``, the key places the record
        as Kafka's clients do. ``timestamp``: in ms since 1970; None: the clock's. TestRunnerError:
        the job has no such input or partition, or bytes are needed. TypeError: the serde cannot
        carry the object.
        """
        found = self._input(stream)
        key_serde, msg_serde = stream_serdes(self._job, found.system, found.stream)
        self.send_bytes(
            stream,
            key=_encoded(stream, "key", key_serde, key),
            value=_encoded(stream, "msg", msg_serde, value),
            partition=partition,
            timestamp=timestamp,
            headers=headers,
        )

    def send_bytes(
        self,
        stream: str,
        *,
        key: bytes | None = None,
        value: bytes | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Mapping[str, bytes | None] | HeaderPairs | None = None,
    ) -> None:
        """Append a record as ``send`` does, but of bytes, also such that no serde would write."""
        found = self._input(stream)
        count = self._checked.partitions[found]
        if partition is not None and not 0 <= partition < count:
            raise TestRunnerError(
                f"{stream} has no partition {partition}, it has 0 to {count - 1}: name one of "
                "these, or make the runner with partitions=..."
            )
        try:
            self._around.brokers[found.system].append(
                found.stream, *as_sent(key, value, partition, headers, timestamp)
            )
        except (TypeError, ValueError) as error:
            raise TestRunnerError(f"a record for {stream}: {error}") from None

    def send_frame(self, stream: str, frame: object, *, key: str | None = None) -> int:
        """Append each row of a pandas DataFrame or an Arrow table to an input; return how many.

        The columns ``key``, ``value``, ``partition`` and ``timestamp`` are these parts of a record.
        Without a column ``value``, a dict of the other columns is the value. ``key``: another
        column that has the keys. NaN is null. TestRunnerError: there is no such column, or it is
        no frame; else as ``send``.
        """
        count = 0
        for count, record in enumerate(records_of(frame, key), start=1):  # noqa: B007 - of the rows
            self.send(stream, **record)
        return count

    def run(self) -> int:
        """Process and commit all input; return the number of records.

        The clock stands still: no window becomes due. Timers that are due are called.
        HomeportError: the container has failed, as it would in production. TestRunnerError: after
        1,000 commits, tasks still send to a repartition of their own.
        """
        container = self._running()
        before = container.records
        for _ in range(_MOST_COMMITS):
            with self._failing():
                is_finished = False
                while not is_finished and container.has_work():
                    is_finished = container.turn()
                is_finished = is_finished or container.commit()
            if is_finished:
                self._end("every task has voted for the end")
                break
            if not container.has_work():
                break
        else:
            raise TestRunnerError(
                f"tasks still send to a repartition of their own after {_MOST_COMMITS} commits: "
                "let a record end it, or use advance()"
            )
        return container.records - before

    def drain(self) -> None:
        """Process all input, and end the job, as --operation=drain does.

        TestRunnerError: an open transaction holds up its input: end that first; or the job has a
        repartition, and is never drained. HomeportError: the container has failed, as it would in
        production.
        """
        container = self._running()
        if repartitions(self._job.config):
            raise TestRunnerError("a job with a repartition is never drained: use run()")
        container.drain()
        with self._failing():
            is_finished = container.turn()
            while not is_finished and container.has_input():
                is_finished = container.turn()
            is_finished = is_finished or container.turn()
        if not is_finished:
            raise TestRunnerError("an open transaction holds up the input: end it before")
        self._end("it is drained: use restart()")

    def advance(self, ms: int) -> None:
        """Move the clock on by ``ms``; each window, timer, transaction and flush comes at its time.

        HomeportError: the container has failed, as it would in production.
        """
        container = self._running()
        end_ms = self._clock.now_ms + ms
        with self._failing():
            is_finished = container.turn()
            while not is_finished and self._clock.now_ms < end_ms:
                wait_ms = math.ceil(min(container.wait_s() * _MS_PER_S, ms) - 0.001)
                self._clock.move(min(max(1, wait_ms), end_ms - self._clock.now_ms))
                is_finished = container.turn()
        if is_finished:
            self._end("every task has voted for the end")

    @property
    def commit_steps(self) -> tuple[str, ...]:
        """Return the steps of a transaction and its flush, as ``crash_before`` takes them."""
        return self._running().commit_steps()

    def crash_before(self, step: str) -> None:
        """Run as ``run`` does, and die before the first step of that name, as by SIGKILL.

        TestRunnerError: there is no such step, or it did not come, and nothing has crashed.
        """
        container = self._running()
        if step not in container.commit_steps():
            known = ", ".join(container.commit_steps())
            raise TestRunnerError(f"no step {step!r}; known: {known}")
        container.crash.step = step
        try:
            self.run()
        except InjectedCrash:
            return
        finally:
            container.crash.step = None
        store = self._job.adjuncts.get(step.partition(" ")[2].partition("/")[0])
        what = "that makes the job write" if store is None else f"of {store.stream}, which fills it"
        raise TestRunnerError(f"the step {step!r} did not come: send a record {what}, before")

    def crash(self) -> None:
        """Kill the container as by SIGKILL: its files stay as they are."""
        self._kill("it has crashed: use restart()")

    def stop(self) -> None:
        """Stop the container in order, and drop the open transaction."""
        if self._container is not None:
            self._end("it has stopped: use restart()")

    def restart(self, *, same_host: bool = True) -> None:
        """Start the next incarnation, after an orderly stop if the last one still runs.

        It restores its stores from their files and changelogs, or from changelogs alone if it is
        not on the same host. Its input continues at its checkpoints. HomeportError: it cannot
        start, as in production.
        """
        if not self._around.folder.is_dir():
            raise TestRunnerError(f"the container does not run: {self._why}")
        self.stop()
        if not same_host:
            shutil.rmtree(self._around.state, ignore_errors=True)
        self._epoch += 1
        self._container = MemoryContainer(
            self._job,
            self._around,
            self._epoch,
            self._checked.task_class,
            pipeline_of(self._job.config),
        )

    # -- what a test reads

    @property
    def is_running(self) -> bool:
        """Return whether the container runs: it has not finished, stopped, failed or crashed."""
        return self._container is not None

    @property
    def now_ms(self) -> int:
        """Return the clock, in ms since 1970."""
        return self._clock.now_ms

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the warnings of run-job, one line each."""
        return self._checked.warnings

    def output(self, stream: str, *, committed: bool = True) -> list[Record]:
        """Return the records of a topic in the order in which they were written.

        The stream's serdes decode keys and values. Without a serde they are bytes; so are those of
        dead letters, which leave as they came. ``committed``: leave out records of open and aborted
        transactions. TestRunnerError: the job declares outputs, and has no such topic. WireError: a
        record is not of its serde.
        """
        found = self._topic(stream)
        serdes: tuple[Serde | None, Serde | None] = None, None
        if found != self._job.records.dead_letter:
            serdes = stream_serdes(self._job, found.system, found.stream)
        partitions = self._around.brokers[found.system].partitions(found.stream)
        every = [
            (stored.number, number, offset, stored)
            for number, partition in enumerate(partitions)
            for offset, stored in partition.read(0, committed=committed)
        ]
        return [
            Record(
                _decoded(serdes[0], stored.key),
                _decoded(serdes[1], stored.value),
                number,
                offset,
                stored.timestamp_ms,
                Headers.of(stored.headers or ()),
            )
            for _, number, offset, stored in sorted(every, key=lambda item: item[0])
        ]

    def frame(self, stream: str, *, committed: bool = True) -> pd.DataFrame:
        """Return the records of ``output`` as a DataFrame, a row each.

        Columns: ``key``, ``value`` or its fields if all values are dicts, ``partition``,
        ``offset``, ``timestamp``.
        """
        return frame_of(self.output(stream, committed=committed))

    def __repr__(self) -> str:
        job = self._job.job.name
        lines = [f"TestRunner of {job}: {'it runs' if self.is_running else self._why}"]
        task = self._job.task
        hidden = {store.changelog for store in self._job.stores}
        hidden.add(SystemStream(task.checkpoint_system, task.checkpoint_topic))
        # Systems of the same addresses share one broker.
        brokers = {id(broker): (system, broker) for system, broker in self._around.brokers.items()}
        for system, broker in brokers.values():
            streams = {SystemStream(system, topic) for topic in broker.topics} - hidden
            lines += [f"  {stream}: {self._last_of(str(stream))}" for stream in streams]
        return "\n".join([*lines[:1], *sorted(lines[1:])])

    def _last_of(self, stream: str) -> str:
        try:
            return last_of(self.output(stream))
        except Exception as error:  # noqa: BLE001 - a view of them fails nothing
            return f"they cannot be read: {in_one_line(error)}"

    def store(
        self, name: str, *, partition: int | None = None, task: str | None = None
    ) -> KeyValueStore:
        """Return one task's part of a store, as that task sees it; only read it.

        KeyError: there is no such store; the message names those that exist. TestRunnerError: no
        task, or more than one, fits.
        """
        return self._running().store(name, self._task(partition, task).task_name)

    def restored(
        self, name: str, *, partition: int | None = None, task: str | None = None
    ) -> Restored:
        """Return how the last start restored one task's store: ``kind`` and number of ``records``.

        KeyError: there is no such store, or it has no changelog. TestRunnerError: no task, or more
        than one, fits.
        """
        return self._running().restored[name][self._task(partition, task).task_name]

    def changelog(
        self, name: str, *, partition: int | None = None, task: str | None = None
    ) -> dict[Any, Any]:
        """Return {key: value} of a task's changelog, from its committed records.

        TestRunnerError: there is no such store, it has no changelog, or not exactly one task fits.
        """
        model = self._task(partition, task)
        store = next((s for s in self._job.stores if s.name == name), None)
        if store is None or store.changelog is None:
            known = ", ".join(s.name for s in self._job.stores if s.changelog) or "none"
            raise TestRunnerError(f"no store {name!r} has a changelog; known: {known}")
        key_serde, msg_serde = self._job.serdes(store)
        broker = self._around.brokers[store.changelog.system]
        entries: dict[Any, Any] = {}
        read = broker.partitions(store.changelog.stream)[model.changelog_partition].read(0)
        for _, stored in read:
            key = _decoded(key_serde, stored.key)
            entries.pop(key, None)
            if stored.value is not None:
                entries[key] = msg_serde.from_bytes(stored.value)
        return entries

    def metrics(self, name: str, /, **labels: str) -> float:
        """Return a metric of the job's own, added up over its tasks since the last start.

        Of a histogram ask for ``<name>_count`` or ``<name>_sum``. Without a label, the sum over all
        its values. TestRunnerError: there is no such metric; the message names those that exist.
        """
        own = self._running().own_metrics()
        found = [
            value
            for metric in own
            for sample, value in metric.samples()
            if sample == name and labels.items() <= dict(metric.labels).items()
        ]
        if not found:
            known = ", ".join(sorted({sample for each in own for sample, _ in each.samples()}))
            what = series_text(name, labels.items())
            raise TestRunnerError(f"no metric {what}; known: {known or 'none'}")
        return sum(found)

    def checkpoint(
        self, *, partition: int | None = None, task: str | None = None
    ) -> dict[str, int]:
        """Return {``system.stream.partition``: last processed offset} of a task; -1: none yet."""
        model, own = self._task(partition, task), self._job.task
        found = read_whole_checkpoints(
            MemoryLog(self._around.brokers[own.checkpoint_system]),
            own.checkpoint_topic,
            self._job.job.ssp_grouper_factory,
            {model.task_name},
            {},
        )
        return {ssp.name: o for own in found.values() for ssp, o in own.offsets.items()}

    @property
    def tasks(self) -> tuple[TaskName, ...]:
        """Return the names of the job's tasks."""
        return tuple(task.task_name for task in self._job.tasks)

    # -- inside

    def _task(self, partition: int | None, task: str | None) -> TaskModel:
        found = [
            model
            for model in self._job.tasks
            if (task is None or model.task_name == task)
            and (
                partition is None
                or any(ssp.partition == partition for ssp in model.system_stream_partitions)
            )
        ]
        if len(found) != 1:
            raise TestRunnerError(
                f"partition={partition}, task={task!r} mean {len(found)} tasks, not one; "
                f"there are {', '.join(map(repr, self.tasks))}"
            )
        return found[0]

    def _topic(self, name: str) -> SystemStream:
        stream, outputs = self._checked.stream(name), self._checked.outputs
        broker = self._around.brokers.get(stream.system)
        if broker is None:
            known = ", ".join(sorted(self._around.brokers))
            raise TestRunnerError(f"{name!r} is of no system of the job; known: {known}")
        if outputs and stream not in outputs and not broker.is_used(stream.stream):
            known = ", ".join(map(str, outputs))
            raise TestRunnerError(
                f"{str(stream)!r} is no output of the job, and has no record; known: {known}"
            )
        return stream

    def _input(self, name: str) -> SystemStream:
        stream = self._checked.stream(name)
        if stream not in self._checked.partitions:
            known = ", ".join(map(str, self._checked.partitions))
            raise TestRunnerError(f"{name!r} is no input of the job; known: {known}")
        return stream

    def _running(self) -> MemoryContainer:
        if self._container is None:
            raise TestRunnerError(f"the container does not run: {self._why}")
        return self._container

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except HomeportError as error:
            self._kill(f"it has failed ({error}): use restart()")
            raise
        except BaseException:  # whatever it was, the container is over
            self.crash()
            raise

    def _kill(self, why: str) -> None:
        if self._container is not None:
            container, self._container, self._why = self._container, None, why
            container.kill()

    def _end(self, why: str) -> None:
        container, self._container, self._why = self._running(), None, why
        container.close()


def _encoded(stream: str, part: str, serde: Serde | None, value: Any) -> bytes | None:  # noqa: ANN401 - a user's value
    if value is None or (serde is None and isinstance(value, bytes)):
        return value
    if serde is None:
        raise TestRunnerError(
            f"{stream} has no samza.{part}.serde, so a record has bytes there, "
            f"not {type(value).__name__}: give bytes, or configure the serde"
        )
    return serde.to_bytes(value)


def _decoded(serde: Serde | None, data: bytes | None) -> Any:  # noqa: ANN401 - a user's value
    return data if serde is None or data is None else serde.from_bytes(data)


def _brokers_of(
    checked: JobUnderTest,
    partitions: int | Mapping[str, int],
    topics: Topics | None,
    now_ms: Callable[[], int],
) -> dict[str, Broker]:
    """Return {system: its broker}; systems with the same addresses share one.

    Each has the topics of the job. ``topics``: as of ``TestRunner``; None: the first use of a topic
    creates it, as a broker with ``auto.create.topics.enable`` does. HomeportError: a test may not
    set a property.
    """
    general = partitions if isinstance(partitions, int) else 1
    job = checked.job
    by_address = {
        system.cluster: Broker(lambda _topic: general, now_ms) for system in job.systems.values()
    }
    brokers = {name: by_address[system.cluster] for name, system in job.systems.items()}
    counts = {} if isinstance(partitions, int) else partitions
    for name, count in counts.items():
        stream = checked.stream(name)
        brokers[stream.system].create(stream.stream, count)
    for stream, count in checked.partitions.items():
        brokers[stream.system].create(stream.stream, count)
    for name, settings in (topics or {}).items():
        stream = checked.stream(name)
        brokers[stream.system].set(stream.stream, settings_of(name, settings))
        brokers[stream.system].create(stream.stream, general)
    numbers = [task.changelog_partition for task in job.tasks]
    for store in job.stores:
        if store.changelog is not None:
            brokers[store.changelog.system].create(store.changelog.stream, max(numbers) + 1)
    brokers[job.task.checkpoint_system].create(job.task.checkpoint_topic, 1)
    if topics is not None:
        for broker in by_address.values():
            broker.makes_topics = False
    return brokers
