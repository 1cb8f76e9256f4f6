"""Job: a job that Python declares, with its functions, in the place of a properties file."""

import logging
import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.loading.declared_job import DeclaredJob
from homeport.config.settings.sections import require_repartition_name
from homeport.config.system_stream import SystemStream
from homeport.container.api import BatchTask, IncomingMessage, Scheduler, StreamTask, TaskContext
from homeport.container.classes import checked_task_class
from homeport.job.declared_keys import DeclaredKeys
from homeport.job.functions import (
    Functions,
    none_of_job,
    require_methods,
    require_plain,
    task_class_of,
)
from homeport.job.handles import Calls, Input, Output, Reference, Repartition
from homeport.job.kafka import Env, Kafka, keys_of
from homeport.job.pipelines import FrameFunction, Rows
from homeport.job.schemas import Of
from homeport.job.stores import SYSTEM, Stores, number, whole

_LOG = logging.getLogger(__name__)
_PARTITIONS = "task.outputs.create.partitions"
_PACKAGE = "yarn.package.path"

K = TypeVar("K")
V = TypeVar("V")
_Function = TypeVar("_Function", bound=Callable[..., object])
_Batch = TypeVar("_Batch", bound=Callable[[Any], object])
_Task = TypeVar("_Task", StreamTask, BatchTask)
_Read = Input[Any, Any] | Repartition[Any, Any]


class Each(Generic[K, V]):
    """Decorates the function for the records of one input, whose types mypy compares."""

    def __init__(self, add: Callable[[Callable[..., object]], None]) -> None:
        self._add = add

    @overload
    def __call__(self, function: Callable[[K, V], object]) -> Callable[[K, V], object]: ...
    @overload
    def __call__(
        self, function: Callable[[K, V, IncomingMessage], object]
    ) -> Callable[[K, V, IncomingMessage], object]: ...
    @overload
    def __call__(
        self, function: Callable[[IncomingMessage], object]
    ) -> Callable[[IncomingMessage], object]: ...
    def __call__(self, function: Callable[..., object]) -> Callable[..., object]:
        """Call ``function`` for each record; return it as it is."""
        self._add(function)
        return function


class Job(Stores, DeclaredJob):
    """A stateful job over Kafka, in one Python file.

    The keys that a properties file would have follow from what is declared; ``keys`` adds others.

    Args:
        name: of the job, as in ``daily-totals``.
        kafka: HOST:PORT of the brokers, or a ``Kafka`` where they want a user or TLS; default
            ``$HOMEPORT_BOOTSTRAP_SERVERS``.
        containers: how many share the job's tasks.
        standbys: hot standbys of each container, on other hosts.
        keys: any other key of docs/configuration.md; they win over what is declared.

    Raises:
        ConfigError: (from every method, too) a name, type or key breaks a rule.
    """

    def __init__(
        self,
        name: str,
        *,
        kafka: str | Env | Kafka | None = None,
        containers: int = 1,
        standbys: int = 0,
        keys: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__()
        self.name = name
        names = sys._getframe(1).f_globals  # noqa: SLF001 - of the file that declares
        self._module: str = names.get("__name__", "__main__")
        file = names.get("__file__")
        self._file = Path(file).resolve() if file else None
        self._folder = Path() if self._file is None else self._file.parent
        self._calls = Calls(name, ContextVar(f"call of {name}", default=None), [])
        self._functions = Functions(job=name)
        self._inputs = dict[str, Input[Any, Any]]()
        self._outputs = dict[str, Output[Any, Any]]()
        brokers = kafka if isinstance(kafka, Kafka) else Kafka(servers=kafka)
        self._keys, self._given = DeclaredKeys(), DeclaredKeys()
        self._keys.update(
            {
                "job.name": name,
                "job.default.system": SYSTEM,
                "job.container.count": containers,
                "job.host-affinity.enabled": True,
                f"systems.{SYSTEM}.samza.factory": "kafka",
                f"systems.{SYSTEM}.samza.offset.default": "oldest",
                **keys_of(brokers, SYSTEM, self._folder),
            }
        )
        if standbys:
            self._keys["job.hotstandby.enabled"] = True
            self._keys["job.hotstandby.replicationcount"] = standbys
        given: object = keys or {}
        if not isinstance(given, Mapping):
            rule = f"they are a mapping, not {type(given).__name__}"
            raise ConfigError("Job.keys", str(given), rule, 'write {"task.commit.ms": 500}')
        wrong = [key for key in given if not issubclass(type(key), str)]
        if wrong:
            rule = f"a key is text, not {type(wrong[0]).__name__}"
            raise ConfigError("Job.keys", str(wrong[0]), rule, 'write {"task.commit.ms": 500}')
        self._given.update(given)

    def __repr__(self) -> str:
        return f"Job({self.name!r})"

    # -- what a job reads, writes and keeps

    # Overloads, as a TypeVar's default gives way to the type of the variable that takes the result.

    @overload
    def input(self, name: str) -> Input[bytes, bytes]: ...
    @overload
    def input(self, name: str, *, key: Of[K]) -> Input[K, bytes]: ...
    @overload
    def input(self, name: str, *, value: Of[V]) -> Input[bytes, V]: ...
    @overload
    def input(self, name: str, *, key: Of[K], value: Of[V]) -> Input[K, V]: ...
    @whole
    def input(self, name: str, *, key: Of[Any] = bytes, value: Of[Any] = bytes) -> Input[Any, Any]:
        """Declare a topic that the job reads, with the types of its keys and values."""
        made = Input(self._stream("job.input", name, key, value), key, value)
        if name in self._inputs:
            raise ConfigError("job.input", name, "it is an input already", "declare it once")
        self._inputs[name] = made
        return made

    @overload
    def output(self, name: str, *, partitions: int | None = None) -> Output[bytes, bytes]: ...
    @overload
    def output(
        self, name: str, *, key: Of[K], partitions: int | None = None
    ) -> Output[K, bytes]: ...
    @overload
    def output(
        self, name: str, *, value: Of[V], partitions: int | None = None
    ) -> Output[bytes, V]: ...
    @overload
    def output(
        self, name: str, *, key: Of[K], value: Of[V], partitions: int | None = None
    ) -> Output[K, V]: ...
    @whole
    def output(
        self,
        name: str,
        *,
        key: Of[Any] = bytes,
        value: Of[Any] = bytes,
        partitions: int | None = None,
    ) -> Output[Any, Any]:
        """Declare a topic that the job writes.

        ``partitions``: run-job makes each output that is not there, with so many.
        """
        stream = self._stream("job.output", name, key, value)
        if name in self._outputs:
            raise ConfigError("job.output", name, "it is an output already", "declare it once")
        if partitions is not None:
            found = self._keys.get(_PARTITIONS)
            if found is None:
                self._keys[_PARTITIONS] = partitions
            elif found != str(partitions):
                rule = f"another output has {found}, and one number is for all"
                remedy = "give the same, or make one of them yourself"
                raise ConfigError(_PARTITIONS, str(partitions), rule, remedy)
        made: Output[Any, Any] = Output(str(stream), self._calls, key, value)
        self._outputs[name] = made
        return made

    @overload
    def repartition(
        self, name: str, *, partitions: int | None = None
    ) -> Repartition[bytes, bytes]: ...
    @overload
    def repartition(
        self, name: str, *, key: Of[K], partitions: int | None = None
    ) -> Repartition[K, bytes]: ...
    @overload
    def repartition(
        self, name: str, *, value: Of[V], partitions: int | None = None
    ) -> Repartition[bytes, V]: ...
    @overload
    def repartition(
        self, name: str, *, key: Of[K], value: Of[V], partitions: int | None = None
    ) -> Repartition[K, V]: ...
    @whole
    def repartition(
        self,
        name: str,
        *,
        key: Of[Any] = bytes,
        value: Of[Any] = bytes,
        partitions: int | None = None,
    ) -> Repartition[Any, Any]:
        """Declare a topic of the job's own, by which it reads records under another key.

        Functions send to it as to an output, and ``each`` takes it as an input. The job makes the
        topic, and deletes what is committed.

        ``partitions``: of the topic; None: as many as the inputs have.
        """
        what, found = "job.repartition", self._functions.repartition
        self._functions.require_room("repartition")
        require_repartition_name(what, str(name), str(name))
        if name in found:
            raise ConfigError(what, name, "it is a repartition already", "declare it once")
        own = f"task.repartition.{name}"
        count = "partitions of job.repartition"
        self._keys[own] = "inputs" if partitions is None else number(count, partitions, least=1)
        self._keys[f"{own}.key.serde"] = self._serde(f"{what} {name}", "key", key)
        self._keys[f"{own}.msg.serde"] = self._serde(f"{what} {name}", "msg", value)
        found[name] = Repartition(name, self._calls, key, value)
        return found[name]

    # -- its functions

    @overload
    def each(self, stream: Input[K, V] | Repartition[K, V]) -> Each[K, V]: ...
    @overload
    def each(self, stream: Rows) -> Each[Any, Any]: ...
    def each(self, stream: _Read | Rows) -> Each[Any, Any]:
        """Decorate the function for each record of ``stream``: key and value, in order.

        It may take the message too, or alone, and may be a coroutine. Of rows of a pipeline, the
        key is their column ``key``, and the value a mapping of all columns.
        """
        self._require_own("job.each", stream)

        def add(function: Callable[..., object]) -> None:
            self._functions.add_each(str(stream), function)

        return Each(add)

    def batch(self, *streams: _Read | Rows) -> Callable[[_Batch], _Batch]:
        """Decorate the function for the records of all inputs, in Arrow tables of BATCH_SCHEMA.

        The rows of a pipeline come in tables of their columns.
        """
        self._require_all("job.batch", streams)

        def add(function: _Batch) -> _Batch:
            self._require_all("job.batch", streams)  # an input may have come since
            self._functions.add("batch", function, 1)
            return function

        return add

    def pipeline(
        self,
        *frames: Input[Any, Any] | Reference[Any, Any],
        output: Output[Any, Any] | None = None,
        unordered: bool = False,
    ) -> Callable[[FrameFunction], Rows]:
        """Decorate a PySpark function of frames of all inputs, and of references, in this order.

        It returns a frame, whose rows go to a function under ``@job.each`` or ``@job.batch``.

        Args:
            frames: what the function gets: a frame of each input's micro-batch, and of references.
            output: where the rows leave, in the place of such a function.
            unordered: whether rows may lack ``stream``, ``partition`` and ``offset``.
        """
        inputs = [each for each in frames if not isinstance(each, Reference)]

        def require() -> None:
            self._functions.require_room("pipeline")
            self._require_all("job.pipeline", inputs)

        require()

        def add(function: FrameFunction) -> Rows:
            require()  # an input may have come since
            require_plain("job.pipeline", function, len(frames))
            names = tuple(e.name if isinstance(e, Reference) else e.stream.stream for e in frames)
            return self._piped(Rows(names, function, "", output, unordered))

        return add

    def sql(
        self, text: str, *, output: Output[Any, Any] | None = None, unordered: bool = False
    ) -> Rows:
        """Return the rows of one query, whose tables are inputs and references by their names.

        ``output``, ``unordered``: as of ``pipeline``.
        """
        return self._piped(Rows((), None, text, output, unordered))

    @whole
    def _piped(self, rows: Rows) -> Rows:
        self._functions.require_room("pipeline")
        if rows.output is not None and rows.output not in self._outputs.values():
            raise none_of_job("job.pipeline", rows.output, "output", self.name)
        self._keys.update(rows.keys())
        self._functions.pipeline = rows
        return rows

    def task(self, own: type[_Task]) -> type[_Task]:
        """Decorate a StreamTask or BatchTask that takes the place of functions of records.

        Its methods may use the job's stores, outputs, references and windows.
        """
        made: object = own
        if not (isinstance(made, type) and issubclass(made, StreamTask | BatchTask)):
            rule = "it must be a subclass of StreamTask or BatchTask"
            raise ConfigError("job.task", str(getattr(own, "__name__", own)), rule, "derive it")
        self._functions.require_room("task")
        require_methods(own)
        self._functions.task = own
        return own

    def on_start(self, function: _Function) -> _Function:
        """Decorate a function that each task calls before its first record."""
        require_plain("job.on_start", function, 0)
        self._functions.on_start.append(function)
        return function

    def every(self, ms: int) -> Callable[[_Function], _Function]:
        """Decorate the function that each task calls every ``ms`` milliseconds.

        Functions of batches have no intervals: there ``job.scheduler`` and ``on_timer`` serve.
        """
        given: object = ms
        if not isinstance(given, int) or isinstance(given, bool) or given < 1:
            rule = "it must be a number of milliseconds, from 1 on"
            shown = str(getattr(ms, "__name__", ms))  # of the function, where it is written bare
            raise ConfigError("job.every", shown, rule, "write @job.every(ms=1000)")

        def add(function: _Function) -> _Function:
            self._functions.add("every", function, 0)
            self._keys["task.window.ms"] = ms
            return function

        return add

    def on_timer(self, function: _Function) -> _Function:
        """Decorate the function for timers that are due; it takes the timer."""
        self._functions.add("on_timer", function, 1)
        return function

    # -- what its functions may use

    @property
    def context(self) -> TaskContext:
        """Return the context of the task that is called."""
        return self._calls.current("the context").context

    @property
    def scheduler(self) -> Scheduler:
        """Return the timers of the task that is called."""
        return self._calls.current("the scheduler").context.scheduler

    def commit(self) -> None:
        """Ask for a commit of all tasks of the container, at the end of the micro-batch."""
        self._calls.current("commit").context.commit()

    def shutdown(self) -> None:
        """Vote for the end of the container; see ``TaskCoordinator.shutdown``."""
        self._calls.current("shutdown").context.shutdown()

    # -- what the commands take

    @property
    def config(self) -> Config:
        """Return the keys that a properties file for the job would have.

        Raises:
            ConfigError: a secret or a file that the job names is not there.
        """
        return self.config_of(os.environ)

    def config_of(self, environment: Mapping[str, str] | None) -> Config:
        """Return the keys that a properties file for the job would have."""
        module, variable = self._place()
        read = [*map(str, self._inputs.values()), *self._read]
        given = self._given.texts(environment)
        made = self._keys.texts(environment, without=self._given) | given
        made.setdefault("task.inputs", ",".join(read))
        if self._broadcast:
            made.setdefault("task.broadcast.inputs", ",".join(self._broadcast))
        if self._outputs:
            made.setdefault("task.outputs", ",".join(map(str, self._outputs.values())))
        if variable:
            place, rows = f"{module}:{variable}", self._functions.pipeline
            if rows is not None and rows.function is not None:
                made.setdefault("task.pipeline.class", place)
            if rows is None or rows.output is None:
                made.setdefault("task.class", place)
        package = given.get(_PACKAGE)
        if self._file is not None and (package is None or ":" not in package):  # hdfs://host/x.zip
            own = self._file if package is None else self._folder / Path(package).expanduser()
            made[_PACKAGE] = str(own)
        return Config(made)

    def line_of(self, key: str) -> int | None:
        """Return the line of the file that gave ``key``; None where none did."""
        return self._given.lines.get(key, self._keys.lines.get(key))

    def task_class(
        self, streams: Collection[SystemStream], *, has_pipeline: bool
    ) -> type[StreamTask | BatchTask]:
        """Return the class whose objects call the functions of the job.

        A window without a function for what closes is logged: code may read it by ``at``.
        """
        functions = self._functions.of_streams(streams)
        for window in functions.windows.values():
            if "closed" not in window.spec.handlers:
                _LOG.warning(
                    "job.window = %r: no function gets its results, which are lost unless at(...) "
                    "reads them; write one under @job.closed",
                    window.name,
                )
        if functions.task is not None:
            checked_task_class(f"{self._place()[0]}:{functions.task.__name__}", functions.task)
        made = task_class_of(functions, self._calls, has_pipeline=has_pipeline)
        if functions.batch is None and functions.task is None and not has_pipeline:
            for stream in map(str, streams):
                if stream not in functions.each:
                    rule = "the job has no function for its records"
                    raise ConfigError("job.each", stream, rule, "write one, or remove the input")
        return made

    def pipeline_function(self) -> Callable[..., object]:
        """Return the function of the job's pipeline, of frames by their names."""
        if self._functions.pipeline is None or self._functions.pipeline.function is None:
            rule = f"the job {self.name!r} has no pipeline in Python"
            raise ConfigError("task.pipeline.class", None, rule, "write one under @job.pipeline")
        return self._functions.pipeline.of_frames

    def _place(self) -> tuple[str, str]:
        """Return module and variable of the job, as containers import it; empty where unknown."""
        module = sys.modules.get(self._module)
        names = [] if module is None else [n for n, found in vars(module).items() if found is self]
        name = self._module
        if name == "__main__" and self._file is not None:  # Python runs the file; else a notebook
            name = self._file.stem
        return (name, names[0]) if name and names else ("", "")

    def _require_own(self, what: str, stream: object) -> None:
        """Require what a function may get: an input, or rows of the pipeline where there is one."""
        rows = self._functions.pipeline
        if rows is not None and stream is rows:
            if rows.output is not None:
                rule = f"its rows leave to {rows.output}"
                raise ConfigError(what, str(stream), rule, "remove the function, or output=")
            return
        if not any(stream is own for own in self._all_read()):
            raise none_of_job(what, stream, "input", self.name)
        if rows is not None:
            rule = "its records go to the pipeline"
            raise ConfigError(what, str(stream), rule, f"give {rows}, the pipeline's rows")

    def _all_read(self) -> tuple[_Read, ...]:
        return (*self._inputs.values(), *self._functions.repartition.values())

    def _require_all(self, what: str, streams: Sequence[_Read | Rows]) -> None:
        for stream in streams:
            self._require_own(what, stream)
        missing = {*self._all_read()} - {*streams} if self._functions.pipeline is None else set()
        if missing or not streams:
            names = ", ".join(sorted(map(str, missing)))
            kind = "a pipeline" if what == "job.pipeline" else "a function of batches"
            rule = f"{kind} gets the records of all inputs"
            raise ConfigError(what, names or None, rule, "name them all")
