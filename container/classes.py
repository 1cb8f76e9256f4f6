"""Loading what a job names as task, pipeline and serdes, or one line why not.

Used by the stream container and by the check that run-job makes before it writes anything.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from homeport.config.errors import ConfigError, WireError, in_one_line
from homeport.config.settings.serde_names import AVRO
from homeport.container.api import BatchTask, StreamTask
from homeport.container.serde.avro_serde import avro_serde
from homeport.container.serde.serdes import Serde, SerdeFailedError, serde

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    Pipeline = Callable[[DataFrame], DataFrame]

TASK_CLASS = "task.class"
PIPELINE_CLASS = "task.pipeline.class"


def load_task_class(name: str) -> type[BatchTask | StreamTask]:
    """The task class that ``module:Class`` names.

    Raises:
        ConfigError: it cannot be imported, or is no concrete BatchTask or StreamTask.
    """
    found = _load(TASK_CLASS, name)
    if not (isinstance(found, type) and issubclass(found, BatchTask | StreamTask)):
        raise ConfigError(
            TASK_CLASS,
            name,
            "it must name a subclass of BatchTask or StreamTask of homeport.container.api",
            f"this is {_described(found)}",
        )
    if inspect.isabstract(found):
        missing = ", ".join(sorted(found.__abstractmethods__))
        raise ConfigError(
            TASK_CLASS, name, "the class must define every method", f"define {missing}"
        )
    return found


def load_pipeline(name: str) -> Pipeline:
    """The pipeline function that ``module:function`` names.

    Raises:
        ConfigError: it cannot be imported, or cannot be called with one DataFrame.
    """
    found = _load(PIPELINE_CLASS, name)
    rule = "it must name a function of one DataFrame that returns a DataFrame"
    if not callable(found) or isinstance(found, type):
        raise ConfigError(PIPELINE_CLASS, name, rule, f"this is {_described(found)}")
    try:
        inspect.signature(found).bind(None)
    except TypeError as error:
        raise ConfigError(PIPELINE_CLASS, name, rule, f"called with one: {error}") from None
    pipeline: Pipeline = found
    return pipeline


def load_serde(key: str, name: str) -> Serde:
    """The serde that ``name`` stands for, as ``config.serde_names`` gives it.

    An own one is an object of the class, made without arguments, with the methods ``to_bytes`` and
    ``from_bytes``, each of one argument.

    Raises:
        ConfigError: it cannot be had; the line names ``key``.
    """
    kind, _, schema = name.partition(" ")
    if kind == AVRO:
        return avro_serde(key, schema)
    return _own_serde(key, name) if ":" in name else serde(name)


def _own_serde(key: str, name: str) -> Serde:
    found = _load(key, name)
    rule = "it must name a class with the methods to_bytes and from_bytes"
    if not isinstance(found, type):
        raise ConfigError(key, name, rule, f"this is {_described(found)}")
    try:
        own = found()
    except BaseException as error:  # noqa: BLE001 - user code may raise anything
        raise ConfigError(
            key,
            name,
            f"an object cannot be made of it: {in_one_line(error)}",
            "let it be made without arguments",
        ) from None
    for method in ("to_bytes", "from_bytes"):
        try:
            inspect.signature(getattr(own, method)).bind(None)
        except (AttributeError, TypeError, ValueError) as error:
            raise ConfigError(key, name, rule, f"{method} of one argument: {error}") from None
    return Serde(name, _own_to_bytes(name, own), _own_from_bytes(name, own))


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
        except Exception as error:  # user code may raise anything
            said = in_one_line(error)
            raise WireError(f"not of the serde {name!r}: {data[:80]!r} ({said})") from error

    return from_bytes


@contextmanager
def _no_exit(name: str) -> Iterator[None]:
    """What the serde's own code raises to end a process is its failure instead."""
    try:
        yield
    except Exception:
        raise
    except BaseException as error:
        raise SerdeFailedError(f"the serde {name!r} failed: {in_one_line(error)}") from error


def require_task_class(task_class: str | None) -> str:
    """The configured task class; ConfigError where there is none."""
    if task_class is None:
        raise ConfigError(
            TASK_CLASS,
            None,
            "a pipeline's rows need a task that keeps or sends them",
            "name a BatchTask or StreamTask, as module:Class",
        )
    return task_class


def _load(key: str, name: str) -> Any:  # noqa: ANN401 - whatever the module holds under the name
    module_name, colon, attribute = name.partition(":")
    if not (module_name and colon and attribute):
        raise ConfigError(key, name, "it must have the form module:name", "write it so")
    try:
        module = importlib.import_module(module_name)
    except BaseException as error:  # noqa: BLE001 - user code runs at import and may raise anything
        raise ConfigError(
            key,
            name,
            f"the module cannot be imported: {in_one_line(error)}",
            "see that it is in yarn.package.path and imports by itself",
        ) from None
    try:
        return getattr(module, attribute)
    except AttributeError:
        raise ConfigError(
            key, name, f"the module has no {attribute!r}", "correct the name after the colon"
        ) from None


def _described(found: object) -> str:
    if isinstance(found, type):
        bases = ", ".join(base.__name__ for base in found.__bases__)
        return f"the class {found.__name__}({bases})"
    return f"a {type(found).__name__}"
