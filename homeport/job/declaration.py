"""Job: a job that Python declares, with its functions, in the place of a properties file."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.loading.declared_job import DeclaredJob
from homeport.config.system_stream import SystemStream, is_topic_name
from homeport.container.api import BatchTask, IncomingMessage, Scheduler, StreamTask, TaskContext
from homeport.job.declared_keys import DeclaredKeys
from homeport.job.functions import Functions, require_plain, task_class_of
from homeport.job.handles import Calls, Input, Output, Store
from homeport.job.kafka import Kafka
from homeport.job.python_types import serde_of

_SYSTEM = "kafka"
_PARTITIONS = "task.outputs.create.partitions"
_PACKAGE = "yarn.package.path"

K = TypeVar("K")
V = TypeVar("V")
_Function = TypeVar("_Function", bound=Callable[..., object])
_Batch = TypeVar("_Batch", bound=Callable[[Any], object])


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


class Job(DeclaredJob):
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
        kafka: str | Kafka | None = None,
        containers: int = 1,
        standbys: int = 0,
        keys: Mapping[str, object] | None = None,
    ) -> None:
        self.name = name
        names = sys._getframe(1).f_globals  # noqa: SLF001 - of the file that declares
        self._module: str = names.get("__name__", "__main__")
        file = names.get("__file__")
        self._file = Path(file).resolve() if file else None
        self._calls = Calls(name, ContextVar(f"call of {name}", default=None), [])
        self._functions = Functions()
        self._inputs = dict[str, Input[Any, Any]]()
        self._outputs = dict[str, Output[Any, Any]]()
        brokers = kafka if isinstance(kafka, Kafka) else Kafka(servers=kafka)
        self._keys = DeclaredKeys()
        self._keys |= {
            "job.name": name,
            "job.default.system": _SYSTEM,
            "job.container.count": containers,
            "job.host-affinity.enabled": True,
            f"systems.{_SYSTEM}.samza.factory": "kafka",
            f"systems.{_SYSTEM}.samza.offset.default": "oldest",
            **brokers.keys(_SYSTEM, Path() if self._file is None else self._file.parent),
        }
        if standbys:
            self._keys["job.hotstandby.enabled"] = True
            self._keys["job.hotstandby.replicationcount"] = standbys
        self._keys.give(keys or {})

    def __repr__(self) -> str:
        return f"Job({self.name!r})"

    # -- what a job reads, writes and keeps

    @overload
    def input(self, name: str) -> Input[bytes, bytes]: ...
    @overload
    def input(self, name: str, *, key: type[K]) -> Input[K, bytes]: ...
    @overload
    def input(self, name: str, *, value: type[V]) -> Input[bytes, V]: ...
    @overload
    def input(self, name: str, *, key: type[K], value: type[V]) -> Input[K, V]: ...
    def input(self, name: str, *, key: type = bytes, value: type = bytes) -> Input[Any, Any]:
        """Declare a topic that the job reads, with the types of its keys and values."""
        made: Input[Any, Any] = Input(self._stream("job.input", name, key, value), key, value)
        if name in self._inputs:
            raise ConfigError("job.input", name, "it is an input already", "declare it once")
        self._inputs[name] = made
        return made

    @overload
    def output(self, name: str, *, partitions: int | None = None) -> Output[bytes, bytes]: ...
    @overload
    def output(
        self, name: str, *, key: type[K], partitions: int | None = None
    ) -> Output[K, bytes]: ...
    @overload
    def output(
        self, name: str, *, value: type[V], partitions: int | None = None
    ) -> Output[bytes, V]: ...
    @overload
    def output(
        self, name: str, *, key: type[K], value: type[V], partitions: int | None = None
    ) -> Output[K, V]: ...
    def output(
        self, name: str, *, key: type = bytes, value: type = bytes, partitions: int | None = None
    ) -> Output[Any, Any]:
        """Declare a topic that the job writes.

        ``partitions``: run-job makes each output that is not there, with so many.
        """
        stream = self._stream("job.output", name, key, value)
        made: Output[Any, Any] = Output(stream, key, value, self._calls)
        if name in self._outputs:
            raise ConfigError("job.output", name, "it is an output already", "declare it once")
        self._outputs[name] = made
        if partitions is not None:
            found, text = self._keys.setdefault(_PARTITIONS, partitions), str(partitions)
            if found != text:
                rule = f"another output has {found}, and one number is for all"
                remedy = "give the same, or make one of them yourself"
                raise ConfigError(_PARTITIONS, text, rule, remedy)
        return made

    def store(
        self, name: str, *, key: type[K], value: type[V], changelog: str | None = None
    ) -> Store[K, V]:
        """Declare a store with the types of its keys and values.

        ``changelog``: its topic; default ``<job>-<store>-changelog``. It is settled once the job
        has state.
        """
        prefix = f"stores.{name}"
        if not name:
            raise ConfigError("job.store", name, "it is empty", "give the store a name")
        if f"{prefix}.factory" in self._keys:
            raise ConfigError("job.store", name, "there is such a store", "give another name")
        topic = f"{self.name}-{name}-changelog" if changelog is None else changelog
        self._keys |= {
            f"{prefix}.factory": "rocksdb",
            f"{prefix}.changelog": f"{_SYSTEM}.{topic}",
            f"{prefix}.key.serde": self._serde(f"the store {name}", "key", key),
            f"{prefix}.msg.serde": self._serde(f"the store {name}", "msg", value),
        }
        return Store(name, key, value, self._calls)

    def _stream(self, what: str, name: str, key: object, value: object) -> SystemStream:
        if not is_topic_name(name):
            rule = "a topic has letters, digits, '.', '_' and '-'"
            raise ConfigError(what, name, rule, "give the name of a topic, as in orders")
        at = f"{_streams(name)}.samza"
        for part, of_type in (("key", key), ("msg", value)):
            serde = self._serde(f"{what} {name}", part, of_type)
            found = self._keys.setdefault(f"{at}.{part}.serde", serde)
            if found != serde:
                rule = f"it is declared with other types, of the serde {found}"
                raise ConfigError(what, name, rule, "give the same types in both places")
        return SystemStream(_SYSTEM, name)

    def _serde(self, what: str, part: str, of_type: object) -> str:
        """Return the name of the serde; a class of the job's own gets an entry of its name."""
        is_key = part == "key"
        what = f"{'key' if is_key else 'value'} of {what}"
        module = self._file.stem if self._file is not None else "__main__"  # in a notebook
        serde = serde_of(what, of_type, module, is_key=is_key)
        if ":" not in serde:
            return serde
        name = serde.partition(":")[2]
        known = self._keys.setdefault(f"serializers.registry.{name}.class", serde)
        if known != serde:
            rule = f"it is {serde}, and {known} has that name too"
            raise ConfigError(what, name, rule, "give one of them another name")
        return name

    # -- its functions

    def each(self, stream: Input[K, V]) -> Each[K, V]:
        """Decorate the function for each record of ``stream``: key and value, in order.

        It may take the message too, or alone, and may be a coroutine.
        """
        self._require_own(stream)

        def add(function: Callable[..., object]) -> None:
            self._require_no("a function of batches", self._functions.batch)
            name = str(stream)
            self._require_no(f"a function for {name}", self._functions.each.get(name))
            self._functions.add_each(name, function)

        return Each(add)

    def batch(self, *streams: Input[Any, Any]) -> Callable[[_Batch], _Batch]:
        """Decorate the function for the records of all inputs, in Arrow tables of BATCH_SCHEMA."""

        def add(function: _Batch) -> _Batch:
            for stream in streams:
                self._require_own(stream)
            missing = {*self._inputs.values()} - {*streams}
            if missing or not streams:
                names = ", ".join(sorted(map(str, missing)))
                rule = "a function of batches gets the records of all inputs"
                raise ConfigError("job.batch", names or None, rule, "name them all")
            self._require_no("a function of batches", self._functions.batch)
            self._require_no("a function of records", next(iter(self._functions.each), None))
            self._require_no("a function of intervals", self._functions.every)
            require_plain("job.batch", function, 1)
            self._functions.batch = function
            return function

        return add

    def on_start(self, function: _Function) -> _Function:
        """Decorate a function that each task calls before its first record."""
        require_plain("job.on_start", function, 0)
        self._functions.start.append(function)
        return function

    def every(self, ms: int) -> Callable[[_Function], _Function]:
        """Decorate the function that each task calls every ``ms`` milliseconds.

        Functions of batches have no intervals: there ``job.scheduler`` and ``on_timer`` serve.
        """
        given: object = ms
        if not isinstance(given, int) or isinstance(given, bool) or given < 1:
            rule = "it must be a number of milliseconds, from 1 on"
            raise ConfigError("job.every", str(ms), rule, "write @job.every(ms=1000)")

        def add(function: _Function) -> _Function:
            self._require_no("such a function", self._functions.every)
            self._require_no("a function of batches", self._functions.batch)
            require_plain("job.every", function, 0)
            self._functions.every = function
            self._keys["task.window.ms"] = ms
            return function

        return add

    def on_timer(self, function: _Function) -> _Function:
        """Decorate the function for timers that are due; it takes the timer."""
        self._require_no("a function for timers", self._functions.timer)
        require_plain("job.on_timer", function, 1)
        self._functions.timer = function
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
        made = self._keys.texts(environment)
        made.setdefault("task.inputs", ",".join(f"{_SYSTEM}.{name}" for name in self._inputs))
        if self._outputs:
            made.setdefault("task.outputs", ",".join(f"{_SYSTEM}.{n}" for n in self._outputs))
        if variable:
            made.setdefault("task.class", f"{module}:{variable}")
        return Config({**made, **self._package()})

    def line_of(self, key: str) -> int | None:
        """Return the line of the file that gave ``key``; None where none did."""
        return self._keys.lines.get(key)

    def task_class(
        self, streams: Collection[SystemStream], *, has_pipeline: bool
    ) -> type[StreamTask | BatchTask]:
        """Return the class whose objects call the functions of the job."""
        made = task_class_of(self._functions, self._calls, has_pipeline=has_pipeline)
        if self._functions.batch is None and not has_pipeline:
            for stream in map(str, streams):
                if stream not in self._functions.each:
                    rule = "the job has no function for its records"
                    raise ConfigError("job.each", stream, rule, "write one, or remove the input")
        return made

    def _package(self) -> dict[str, str]:
        """Return the key of the job's package; a path in ``keys`` begins in the file's folder."""
        given = self._keys.given(_PACKAGE)
        if self._file is None or (given is not None and ":" in given):  # as in hdfs://cluster/x.zip
            return {}
        place = self._file if given is None else self._file.parent / Path(given).expanduser()
        return {_PACKAGE: str(place)}

    def _place(self) -> tuple[str, str]:
        """Return module and variable of the job, as containers import it; empty where unknown."""
        module = sys.modules.get(self._module)
        names = [] if module is None else [n for n, found in vars(module).items() if found is self]
        name = self._module
        if name == "__main__":  # a file that Python runs, or a notebook
            name = self._file.stem if self._file is not None else ""
        return (name, names[0]) if name and names else ("", "")

    def _require_own(self, stream: Input[Any, Any]) -> None:
        if not any(stream is own for own in self._inputs.values()):
            rule = f"it is not an input of the job {self.name!r}"
            raise ConfigError("job.each", str(stream), rule, "declare it by job.input")

    def _require_no(self, what: str, found: object) -> None:
        if found is not None:
            raise ConfigError("job", self.name, f"it has {what} already", "remove one of the two")


def _streams(name: str) -> str:
    return f"systems.{_SYSTEM}.streams.{name}"
