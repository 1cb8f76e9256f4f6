"""Loading what a job names as ``task.class`` and ``task.pipeline.class``, or one line why not.

Used by the stream container and by the check that run-job makes before it writes anything.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from homeport.config.errors import ConfigError
from homeport.container.api import BatchTask, StreamTask

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
    except Exception as error:  # noqa: BLE001 - user code runs at import and may raise anything
        raise ConfigError(
            key,
            name,
            f"the module cannot be imported: {type(error).__name__}: {_one_line(error)}",
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


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
