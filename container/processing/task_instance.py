"""TaskInstance: the user's task object of one task, its context and its collector."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa

from homeport.config.errors import HomeportError, in_one_line
from homeport.container.api import BatchTask, KeyValueStore
from homeport.container.progress.transaction_plan import Send
from homeport.job_coordinator.model.ids import TaskName


class TaskFailedError(HomeportError):
    """User code raised; the container fails with it as the cause."""


class Outputs:
    """What the open transaction sends; implements ``homeport.container.api.MessageCollector``.

    ``sends``: what has not left yet. ``size_bytes``: of all sends of the open transaction.

    Args:
        systems: names of all declared systems.
        usable: those that outputs may go to: where they are part of the transaction, those on the
            same brokers.
        default_system: the system of a stream named without one.
    """

    def __init__(
        self, systems: Collection[str], usable: Collection[str], default_system: str | None
    ) -> None:
        self._systems = frozenset(systems)
        self._usable = frozenset(usable)
        self._default = default_system
        self._places: dict[str, tuple[str, str]] = {}
        self.sends: list[Send] = []
        self.size_bytes = 0

    def send(
        self,
        stream: str,
        value: bytes | None,
        key: bytes | None = None,
        *,
        partition: int | None = None,
        headers: dict[str, bytes] | None = None,
    ) -> None:
        """One record is to leave: with the transaction, or at once if it is no part of it.

        Raises:
            ValueError: the stream is on other brokers than the transaction, or no system is known.
            TypeError: key or value are not bytes.
        """
        place = self._places.get(stream)
        if place is None:
            place = self._places[stream] = self._place(stream)
        for part in (key, value):
            _require_bytes(stream, part)
        system, topic = place
        self.sends.append(Send(topic, key, value, partition, headers, system))
        self.size_bytes += len(value or b"") + len(key or b"")

    def take(self) -> list[Send]:
        """What has not left yet, which is now the caller's to send."""
        taken, self.sends = self.sends, []
        return taken

    def clear(self) -> None:
        """There is no open transaction."""
        self.sends = []
        self.size_bytes = 0

    def _place(self, stream: str) -> tuple[str, str]:
        # Topics may have dots in their names; only a declared system before the first one counts.
        system, dot, topic = stream.partition(".")
        if not (dot and system in self._systems):
            if self._default is None:
                raise ValueError(f"{stream!r} names no system, and job.default.system is not set")
            system, topic = self._default, stream
        if system not in self._usable:
            raise ValueError(
                f"{stream!r}: system {system} has other brokers than the job's checkpoints, "
                "and one transaction cannot reach both; with task.exactly.once=false outputs are "
                "no part of it"
            )
        return system, topic


def _require_bytes(stream: str, part: object) -> None:
    if part is not None and not isinstance(part, bytes):
        raise TypeError(
            f"a record for {stream} must have bytes or None as key and value, "
            f"not {type(part).__name__}"
        )


class Context:
    """Implements ``homeport.container.api.TaskContext``."""

    def __init__(
        self, task_name: TaskName, config: Mapping[str, str], stores: Mapping[str, KeyValueStore]
    ) -> None:
        self._task_name = task_name
        self._config = dict(config)
        self._stores = dict(stores)

    @property
    def task_name(self) -> str:
        """Name of the task."""
        return self._task_name

    @property
    def config(self) -> dict[str, str]:
        """The job's configuration; a copy."""
        return dict(self._config)

    def store(self, name: str) -> KeyValueStore:
        """The task's part of the store ``name``.

        Raises:
            KeyError: there is no such store; the message names those there are.
        """
        try:
            return self._stores[name]
        except KeyError:
            known = ", ".join(sorted(self._stores)) or "none"
            raise KeyError(f"no store {name!r} is configured; known: {known}") from None


class TaskInstance:
    """Calls the user's object and says whose fault an exception is."""

    def __init__(self, task_class: type[BatchTask], context: Context, outputs: Outputs) -> None:
        """The object is made and initialised.

        Raises:
            TaskFailedError: it raised.
        """
        self._name = context.task_name
        self._outputs = outputs
        try:
            self._task = task_class()
            self._task.init(context)
        except BaseException as error:  # user code may raise anything, SystemExit too
            raise self._failed("init", error) from error

    def process_batch(self, rows: pa.Table) -> None:
        """The task has seen ``rows``; TaskFailedError where it raised."""
        try:
            self._task.process_batch(rows, self._outputs)
        except BaseException as error:  # user code may raise anything, SystemExit too
            raise self._failed("process_batch", error) from error

    def end_transaction(self) -> None:
        """The task had its last chance to send; TaskFailedError where it raised."""
        try:
            self._task.end_transaction(self._outputs)
        except BaseException as error:  # user code may raise anything, SystemExit too
            raise self._failed("end_transaction", error) from error

    def close(self) -> None:
        """The task was closed; TaskFailedError where it raised."""
        try:
            self._task.close()
        except BaseException as error:  # user code may raise anything, SystemExit too
            raise self._failed("close", error) from error

    def window(self) -> None:
        """Nothing: a BatchTask has none."""

    def end_of_stream(self) -> None:
        """Nothing: a BatchTask cannot vote for an end."""

    def _failed(self, step: str, error: BaseException) -> TaskFailedError:
        return task_failed(self._name, step, error)


def task_failed(task_name: str, step: str, error: BaseException) -> TaskFailedError:
    """The failure of a task whose code raised ``error``, in one line."""
    return TaskFailedError(f"task {task_name!r} failed in {step}: {in_one_line(error)}")
