"""Typed view of a job's pipeline: what it is, and where its rows go."""

from __future__ import annotations

from dataclasses import dataclass

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import stream_named
from homeport.config.declarations.task_keys import PLAN_ONCE
from homeport.config.errors import ConfigError
from homeport.config.system_stream import SystemStream

AT_SUBMISSION = "submission"
SPARK_START_S = 180.0
"""A Spark that has not met its pipeline after so many seconds has failed."""
SQL_FILE = "file:"
"""Begins a pipeline of SQL that is in a file of the job's package."""


def has_pipeline(config: Config) -> bool:
    """Whether the job has one; its keys may be wrong."""
    return any(k.is_set(config) for k in (keys.TASK_PIPELINE_CLASS, keys.TASK_PIPELINE_SQL))


@dataclass(frozen=True)
class PipelineConfig:
    """The pipeline of a job that has one.

    ``key``, ``value``: what names it, as the configuration has it.
    ``unordered``: whether it may drop what gives its rows an order.
    ``output``: where its rows leave; None: a task gets them.
    ``is_checked_first``: whether run-job runs it over no rows before it submits the job.
    ``plans_once``: whether Spark may run a plan of it again.
    """

    key: str
    value: str
    unordered: bool
    output: SystemStream | None
    is_checked_first: bool
    plans_once: bool

    @property
    def is_sql(self) -> bool:
        """Whether ``value`` is SQL, or the name of its file; else it is ``module:function``."""
        return self.key == keys.TASK_PIPELINE_SQL.name

    @property
    def needs_package(self) -> bool:
        """Whether its job has code or a file of its own: all but SQL whose rows leave as they are.

        That SQL stands in the configuration.
        """
        return not self.is_sql or self.value.startswith(SQL_FILE) or self.output is None

    @staticmethod
    def of(config: Config) -> PipelineConfig | None:
        """The view of ``config``; None where the job has no pipeline.

        Raises:
            ConfigError: its keys contradict each other, or the output is no stream.
        """
        function = keys.TASK_PIPELINE_CLASS.read(config)
        sql = keys.TASK_PIPELINE_SQL.read(config)
        output = _output(config)
        if function is not None and sql is not None:
            raise ConfigError(
                keys.TASK_PIPELINE_SQL.name,
                sql,
                f"{keys.TASK_PIPELINE_CLASS.name} names a pipeline too",
                "remove one of the two",
            )
        key = keys.TASK_PIPELINE_CLASS if sql is None else keys.TASK_PIPELINE_SQL
        value = function if sql is None else sql
        if value is None:
            if output is not None:
                raise ConfigError(
                    keys.TASK_PIPELINE_OUTPUT.name,
                    str(output),
                    "the job has no pipeline, whose rows could leave",
                    f"set {keys.TASK_PIPELINE_SQL.name} or {keys.TASK_PIPELINE_CLASS.name}, or "
                    "remove the key",
                )
            return None
        check = keys.TASK_PIPELINE_CHECK.read(config)
        return PipelineConfig(
            key=key.name,
            value=value,
            unordered=keys.TASK_PIPELINE_UNORDERED.read(config),
            output=output,
            is_checked_first=sql is not None if check is None else check == AT_SUBMISSION,
            plans_once=keys.TASK_PIPELINE_PLAN.read(config) == PLAN_ONCE,
        )


def _output(config: Config) -> SystemStream | None:
    key, text = keys.TASK_PIPELINE_OUTPUT.name, keys.TASK_PIPELINE_OUTPUT.read(config)
    if text is None:
        return None
    stream = stream_named(key, text, "totals")
    task_class = keys.TASK_CLASS.read(config)
    if task_class is not None:
        raise ConfigError(
            key,
            text,
            f"the rows go to the task of {keys.TASK_CLASS.name}, which sends by itself",
            "remove one of the two",
        )
    return stream
