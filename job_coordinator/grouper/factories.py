"""The grouper that a configuration names: one of ours, or a class that the job brings.

PURE but for one thing: a class of the job's own is imported, so it must be on the import path.
"""

import inspect
from typing import TypeVar

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError, in_one_line
from homeport.config.java_names import is_user_class
from homeport.config.settings.sections import JobConfig
from homeport.job_coordinator.grouper.ssp_grouper import SystemStreamPartitionGrouper
from homeport.job_coordinator.grouper.task_name_grouper import TaskNameGrouper
from homeport.job_coordinator.user_code import user_object

_Grouper = TypeVar("_Grouper", SystemStreamPartitionGrouper, TaskNameGrouper)

OWN_GROUPER_REMEDY = "correct the grouper"


def ssp_grouper(config: Config) -> SystemStreamPartitionGrouper:
    """Return the grouper of ``job.systemstreampartition.grouper.factory``; ConfigError as below."""
    name = JobConfig.of(config).ssp_grouper_factory
    key = keys.JOB_SSP_GROUPER_FACTORY.name
    base = SystemStreamPartitionGrouper
    return _made(key, name, base, config)  # type: ignore[type-abstract]  # subclasses are made, never it


def task_name_grouper(config: Config) -> TaskNameGrouper:
    """Return the grouper of ``task.name.grouper.factory``; ConfigError as below."""
    name = JobConfig.of(config).task_name_grouper_factory
    key = keys.TASK_NAME_GROUPER_FACTORY.name
    base = TaskNameGrouper
    return _made(key, name, base, config)  # type: ignore[type-abstract]  # subclasses are made, never it


def has_own_grouper(config: Config) -> bool:
    """Return whether the job brings a grouper: its package must then be on the import path."""
    job = JobConfig.of(config)
    return is_user_class(job.ssp_grouper_factory) or is_user_class(job.task_name_grouper_factory)


def _made(key: str, name: str, base: type[_Grouper], config: Config) -> _Grouper:
    found = user_object(key, name if is_user_class(name) else _our_class(name, base))
    if not (isinstance(found, type) and issubclass(found, base)) or inspect.isabstract(found):
        rule = f"it must name a subclass of {base.__name__} of {base.__module__} that defines group"
        raise ConfigError(key, name, rule, OWN_GROUPER_REMEDY)
    try:
        return found(config)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - the job's own code may raise anything
        raise own_fault(key, name, error) from None


def _our_class(java_name: str, base: type) -> str:
    """Return ``module:Class`` of our grouper, which has the name of Samza's factory.

    ``org.apache.samza...SingleContainerGrouperFactory`` is ``SingleContainer``, beside its base.
    """
    name = java_name.rpartition(".")[2].removesuffix("Factory").removesuffix("Grouper")
    return f"{base.__module__}:{name}"


def own_fault(key: str, name: str, error: BaseException) -> ConfigError:
    """Return what a grouper of the job's own has raised, as one line that names it."""
    if isinstance(error, ConfigError):
        return error
    return ConfigError(
        key, name, f"the grouper has failed: {in_one_line(error)}", OWN_GROUPER_REMEDY
    )
