"""Typed view of a job's pipeline: what it is, and where its rows go."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import TextKey, stream_named
from homeport.config.declarations.task_keys import PLAN_ONCE
from homeport.config.system_stream import SystemStream

AT_SUBMISSION = "submission"
SPARK_START_S = 180.0
"""A Spark that has not met its pipeline after so many seconds has failed."""
SQL_FILE = "file:"
"""Begins a pipeline of SQL that is in a file of the job's package."""


class PipelineKind(Enum):
    """A kind of pipeline: the key whose value is one."""

    FUNCTION = keys.TASK_PIPELINE_CLASS
    """``module:function``."""
    SQL = keys.TASK_PIPELINE_SQL
    """A statement, or the name of its file."""

    @property
    def key(self) -> TextKey:
        """Return the key of its pipelines."""
        return self.value

    @property
    def is_text(self) -> bool:
        """Return whether the configuration can hold all of a pipeline, for run-job to check."""
        return self is PipelineKind.SQL


def has_pipeline(config: Config) -> bool:
    """Return whether the job has one; its keys may be wrong."""
    return any(kind.key.is_set(config) for kind in PipelineKind)


@dataclass(frozen=True)
class PipelineConfig:
    """The pipeline of a job that has one.

    ``value``: what names it, as the configuration has it.
    ``unordered``: whether it may drop what gives its rows an order.
    ``output``: where its rows leave; None: a task gets them.
    ``is_checked_first``: whether run-job runs it over no rows before it submits the job.
    ``plans_once``: whether Spark may run a plan of it again.
    """

    kind: PipelineKind
    value: str
    unordered: bool
    output: SystemStream | None
    is_checked_first: bool
    plans_once: bool

    @property
    def key(self) -> str:
        """Return the name of the key that has it."""
        return self.kind.key.name

    @property
    def needs_package(self) -> bool:
        """Return whether the job has code or a file: all but text whose rows leave as they are."""
        return not self.kind.is_text or self.value.startswith(SQL_FILE) or self.output is None

    @staticmethod
    def of(config: Config) -> PipelineConfig | None:
        """Return the view of ``config``; None where the job has no pipeline.

        ConfigError: its keys contradict each other, or the output is no stream.
        """
        given = [(kind, text) for kind in PipelineKind if (text := kind.key.read(config))]
        output = _output(config)
        if len(given) > 1:
            (first, _), (second, text), *_ = given
            raise second.key.error(
                text, f"{first.key.name} names a pipeline too", "remove one of the two"
            )
        if not given:
            if output is not None:
                known = " or ".join(kind.key.name for kind in reversed(PipelineKind))
                rule = "the job has no pipeline, whose rows could leave"
                remedy = f"set {known}, or remove the key"
                raise keys.TASK_PIPELINE_OUTPUT.error(output, rule, remedy)
            return None
        ((kind, value),) = given
        check = keys.TASK_PIPELINE_CHECK.read(config)
        return PipelineConfig(
            kind=kind,
            value=value,
            unordered=keys.TASK_PIPELINE_UNORDERED.read(config),
            output=output,
            is_checked_first=kind.is_text if check is None else check == AT_SUBMISSION,
            plans_once=keys.TASK_PIPELINE_PLAN.read(config) == PLAN_ONCE,
        )


def _output(config: Config) -> SystemStream | None:
    key = keys.TASK_PIPELINE_OUTPUT
    text = key.read(config)
    if text is None:
        return None
    stream = stream_named(key.name, text, "totals")
    task_class = keys.TASK_CLASS.read(config)
    if task_class is not None:
        rule = f"the rows go to the task of {keys.TASK_CLASS.name}, which sends by itself"
        raise key.error(text, rule, "remove one of the two")
    return stream
