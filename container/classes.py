"""Loads the task, pipeline and serdes that a job names, or raises one line with the reason.

Used by the stream container and by the check that run-job makes before it writes anything.
"""

import inspect
import logging
import struct
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from homeport.config.errors import ConfigError, WireError, in_one_line
from homeport.config.loading.declared_job import DeclaredJob
from homeport.config.settings.input_serdes import InputSerde
from homeport.config.settings.serde_names import ConfiguredSerde, SchemaSerde
from homeport.config.settings.timers_section import require_lateness
from homeport.config.system_stream import SystemStream
from homeport.container.api import (
    AdjunctDataStoreManagerFactory,
    BatchTask,
    KeyValueExtractorFactory,
    StreamTask,
)
from homeport.container.callables import fault_of, is_coroutine, making_fault, method_fault
from homeport.container.serde.class_serde import UNFIT, class_serde, is_record_class, unfit
from homeport.container.serde.columns import Columns
from homeport.container.serde.registry_serde import Subject
from homeport.container.serde.schema_serde import schema_serde
from homeport.container.serde.serdes import Serde, SerdeFailedError, serde
from homeport.job_coordinator.user_code import user_object

TASK_CLASS = "task.class"
PIPELINE_CLASS = "task.pipeline.class"
MAX_CONCURRENCY = "task.max.concurrency"
MANAGER_FACTORY = "adstore.manager.factory"
_HOOKS = (
    ("process", "process_batch"),
    ("init", "window", "on_timer", "end_transaction", "end_of_stream", "close"),
)


class _Warnings(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@contextmanager
def warnings_of_job() -> Iterator[list[str]]:
    """Collect what homeport logs as a warning while it loads the code of a job."""
    found, logger = _Warnings(), logging.getLogger("homeport")
    logger.addHandler(found)
    try:
        yield found.lines
    finally:
        logger.removeHandler(found)


def load_task_class(
    name: str, streams: Collection[SystemStream], *, has_pipeline: bool
) -> type[BatchTask | StreamTask]:
    """Return the task class that ``module:Class`` names, or that of the job of that name.

    ``streams``, ``has_pipeline``: as of ``DeclaredJob.task_class``. ConfigError: it names neither.
    """
    found = user_object(TASK_CLASS, name)
    if isinstance(found, DeclaredJob):
        found = found.task_class(streams, has_pipeline=has_pipeline)
    return checked_task_class(name, found)


def checked_task_class(name: str, found: object) -> type[BatchTask | StreamTask]:
    """Return ``found``, for which ``name`` stands; ConfigError: it is no concrete task class."""
    task_class: type[BatchTask | StreamTask] = _concrete(
        TASK_CLASS, name, found, BatchTask, StreamTask
    )
    base = StreamTask if issubclass(task_class, StreamTask) else BatchTask
    may_wait = base is StreamTask and is_coroutine(task_class, "process")
    for hook in (hook for hooks in _HOOKS for hook in hooks if hasattr(base, hook)):
        fault = method_fault(task_class, base, hook, may_be_coroutine=may_wait)
        if fault is not None:
            remedy = fault.remedy
            if is_coroutine(task_class, hook):
                remedy = f"a BatchTask has none: {remedy}"
                remedy = "let process be one too" if base is StreamTask else remedy
            raise ConfigError(TASK_CLASS, name, f"its {hook} is {fault.what}", remedy)
    return task_class


def _concrete(key: str, name: str, found: object, *bases: type) -> Any:  # noqa: ANN401 - a class below one of them
    """Return ``found``, a class below one of ``bases`` that is not abstract."""
    if not (isinstance(found, type) and issubclass(found, bases)):
        wanted = " or ".join(base.__name__ for base in bases)
        rule = f"it must name a subclass of {wanted} of homeport.container.api"
        raise ConfigError(key, name, rule, f"this is {_described(found)}")
    if inspect.isabstract(found):
        missing = ", ".join(sorted(getattr(found, "__abstractmethods__", ())))
        raise ConfigError(key, name, "the class must define every method", f"define {missing}")
    fault = making_fault(found)
    if fault is not None:
        remedy = "give each parameter of __init__ a default"
        raise ConfigError(key, name, f"the class is {fault.what}", remedy)
    return found


def require_single_calls(
    task_class: type[BatchTask | StreamTask], limit: int, lateness_ms: int | None
) -> None:
    """Raise ConfigError where ``task.max.concurrency`` has no effect, or loses records of windows.

    ``lateness_ms``: of the job. ``windows_of_job``, an attribute that the class of a job in Python
    has, names those with neither a lateness nor a function of late records; others are known at
    ``init``.
    """
    if limit > 1 and not issubclass(task_class, StreamTask):
        rule = f"{task_class.__name__} is a BatchTask, which is called for a whole batch"
        remedy = "remove the key, or write a StreamTask"
        raise ConfigError(MAX_CONCURRENCY, str(limit), rule, remedy)
    for store in getattr(task_class, "windows_of_job", ()):
        require_lateness(store, limit, lateness_ms)


def load_function(name: str) -> Callable[..., Any]:
    """Return the pipeline function that ``module:function`` names; ConfigError: it names none."""
    found = user_object(PIPELINE_CLASS, name)
    if isinstance(found, DeclaredJob):
        found = found.pipeline_function()
    if not callable(found) or isinstance(found, type):
        rule = "it must name a function that returns a DataFrame"
        raise ConfigError(PIPELINE_CLASS, name, rule, f"this is {_described(found)}")
    # Its parameters are looked at where the streams are known.
    fault = fault_of(found, "pipeline", ())
    if fault is not None and not fault.remedy.startswith("write"):
        raise ConfigError(PIPELINE_CLASS, name, f"the function is {fault.what}", fault.remedy)
    function: Callable[..., Any] = found
    return function


def load_extractor_factory(key: str, name: str) -> Callable[[], KeyValueExtractorFactory]:
    """Return the maker of the factory of extractors that ``module:Name`` names.

    ConfigError: it cannot be imported, or is no concrete KeyValueExtractorFactory; its line has
    ``key``.
    """
    found: Callable[[], KeyValueExtractorFactory]
    found = _load_factory(key, name, KeyValueExtractorFactory)
    return found


def load_manager_factory(name: str) -> Callable[[], AdjunctDataStoreManagerFactory]:
    """Return the maker of the factory of managers that ``module:Name`` names.

    ConfigError: it cannot be imported, or is no concrete AdjunctDataStoreManagerFactory.
    """
    found: Callable[[], AdjunctDataStoreManagerFactory]
    found = _load_factory(MANAGER_FACTORY, name, AdjunctDataStoreManagerFactory)
    return found


def _load_factory(key: str, name: str, base: type) -> Any:  # noqa: ANN401 - a class below ``base``
    found = _concrete(key, name, user_object(key, name), base)
    methods: frozenset[str] = getattr(base, "__abstractmethods__", frozenset())
    (method,) = methods
    fault = method_fault(found, base, method)
    if fault is not None:
        raise ConfigError(key, name, f"its {method} is {fault.what}", fault.remedy)
    return found


def load_serde(key: str, name: ConfiguredSerde, topic: str = "") -> Serde:
    """Return the serde of ``name``; ConfigError, whose line names ``key``, where it cannot be had.

    ``topic``: the topic of a stream's serde, for a Schema Registry; ``key`` shows whether the serde
    is for keys. A class of the job's own is made without arguments; its methods ``to_bytes`` and
    ``from_bytes`` take one. Without these methods, a class whose fields have types is carried as
    JSON (``class_serde``).
    """
    if isinstance(name, SchemaSerde):
        return schema_serde(name, Subject(topic, is_key=key.endswith(".key.serde")))
    return _own_serde(key, name) if ":" in name else serde(name)


def with_classes(inputs: Sequence[InputSerde]) -> tuple[InputSerde, ...]:
    """Return the inputs with what shows once their serdes are loaded: which are of a class.

    ConfigError: a class cannot be loaded.
    """
    return tuple(
        replace(item, is_class=load_serde(item.key, item.serde).columns is not None)
        if isinstance(item.serde, str) and ":" in item.serde
        else item
        for item in inputs
    )


def load_columns(of: InputSerde) -> Columns:
    """Return how values with the serde ``of``, which has a schema, become a column.

    ConfigError: they cannot, or the serde cannot be had.
    """
    entry = of.serde
    columns = load_serde(of.key, of.serde, of.stream).columns
    try:
        if columns is None:
            raise ValueError("the registry's JSON Schema says no types of columns")
        return columns()
    except ValueError as error:
        key, value, what = of.key, str(entry), "give its fields types"
        if isinstance(entry, SchemaSerde):
            key, value, what = entry.schema_key, entry.file or entry.schema, "write a schema"
        rule = f"a pipeline or BatchTask needs columns: {error}"
        remedy = f"{what} that columns have, or read bytes: remove the stream's samza.msg.serde"
        raise ConfigError(key, value or None, rule, remedy) from None


_UNREADABLE = (WireError, ValueError, EOFError, RecursionError, struct.error, zlib.error)
"""Errors of an own serde for bytes that it cannot read; any other is a fault of the serde."""


def _own_serde(key: str, name: str) -> Serde:
    found = user_object(key, name)
    rule = "it must name a class with the methods to_bytes and from_bytes"
    if not isinstance(found, type):
        raise ConfigError(key, name, rule, f"this is {_described(found)}")
    if is_record_class(found):
        return _of_class(key, name, found)
    try:
        own = found()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - user code may raise anything
        rule = f"an object cannot be made of it: {in_one_line(error)}"
        raise ConfigError(key, name, rule, "let it be made without arguments") from None
    for method, parameter in (("to_bytes", "value"), ("from_bytes", "data")):
        fault = fault_of(getattr(own, method, None), method, [parameter], is_method=True)
        if fault is not None:
            raise ConfigError(key, name, rule, f"its {method} is {fault.what}: {fault.remedy}")
    return Serde(name, _own_to_bytes(name, own), _own_from_bytes(name, own), is_own=True)


def _of_class(key: str, name: str, record: type) -> Serde:
    try:
        return class_serde(name, record)
    except UNFIT as error:
        raise unfit(key, name, error) from None


def _own_to_bytes(name: str, own: Any) -> Callable[[Any], bytes]:  # noqa: ANN401 - the job's own
    def to_bytes(value: Any) -> bytes:  # noqa: ANN401 - a user's value
        with _no_exit(name):
            data = own.to_bytes(value)
        if not isinstance(data, bytes):
            raise TypeError(f"the serde {name!r} made {type(data).__name__}, not bytes")
        return data

    return to_bytes


def _own_from_bytes(name: str, own: Any) -> Callable[[bytes], Any]:  # noqa: ANN401 - as above
    def from_bytes(data: bytes) -> Any:  # noqa: ANN401 - a user's value
        try:
            with _no_exit(name):
                return own.from_bytes(data)
        except SerdeFailedError:
            raise
        except _UNREADABLE as error:
            said = in_one_line(error)
            raise WireError(f"not of the serde {name!r}: {data[:80]!r} ({said})") from error
        except Exception as error:  # user code may raise anything
            raise SerdeFailedError(
                f"the serde {name!r} failed on {data[:80]!r}: {in_one_line(error)}; correct it, or "
                "let it raise ValueError where the bytes are not of it"
            ) from error

    return from_bytes


@contextmanager
def _no_exit(name: str) -> Iterator[None]:
    """Turn an exit of the process that the serde's own code raises into its failure."""
    try:
        yield
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise SerdeFailedError(f"the serde {name!r} failed: {in_one_line(error)}") from error


def require_task_class(task_class: str | None) -> str:
    """Return the configured task class; raise ConfigError where there is none."""
    if task_class is None:
        rule = "a pipeline's rows need a task that keeps or sends them"
        raise ConfigError(TASK_CLASS, None, rule, "name a BatchTask or StreamTask, as module:Class")
    return task_class


def _described(found: object) -> str:
    if isinstance(found, type):
        bases = ", ".join(base.__name__ for base in found.__bases__)
        return f"the class {found.__name__}({bases})"
    return f"a {type(found).__name__}"
