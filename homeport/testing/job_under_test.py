"""JobUnderTest: a configuration, checked as run-job checks it, for one container in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.unknown_keys import require_known
from homeport.config.loading.declared_job import DeclaredJob
from homeport.config.loading.loader import load
from homeport.config.settings.adjunct_section import streams_of_tasks
from homeport.config.settings.pipeline_section import has_pipeline
from homeport.config.settings.sections import repartitions
from homeport.config.settings.used_systems import declared_outputs, used_systems
from homeport.config.settings.validation import validate
from homeport.config.system_stream import SystemStream
from homeport.container.api import BatchTask, StreamTask
from homeport.container.classes import checked_task_class, require_single_calls, warnings_of_job
from homeport.container.container_job import ContainerJob
from homeport.container.processing.task_factory import task_class_of
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model, input_streams
from homeport.job_coordinator.grouper.previous_assignment import NOTHING
from homeport.job_coordinator.grouper.validation import uneven_inputs
from homeport.job_coordinator.kafka.repartition_topics import internal_topics, with_repartitions
from homeport.testing.memory_container import ONLY

_NO_BROKER = "none:9092"
"""The address of brokers that no client connects to."""

TaskClass = type[BatchTask | StreamTask]


@dataclass(frozen=True)
class JobUnderTest:
    """``partitions``: {input: its number of partitions}. ``warnings``: those of run-job.

    ``outputs``: of task and pipeline, with that of dead letters; empty where none is declared.
    """

    job: ContainerJob
    task_class: TaskClass
    partitions: Mapping[SystemStream, int]
    outputs: tuple[SystemStream, ...]
    warnings: tuple[str, ...]

    @staticmethod
    def of(
        config: Mapping[str, str] | DeclaredJob | Path | str,
        task: TaskClass | None,
        partitions: int | Mapping[str, int],
        overrides: Mapping[str, str],
        *,
        allow_unknown_keys: bool = False,
    ) -> JobUnderTest:
        """Return the job of ``config``, with all its tasks in one container and without standbys.

        A job name, the default system and brokers are added where they are missing. ConfigError:
        the first fault, in the product's one line.
        """
        values: Mapping[str, str]
        if isinstance(config, DeclaredJob):
            values = config.config_of(None)
        else:
            values = config if isinstance(config, Mapping) else load(str(config))
        given = {**values, **overrides}
        whole = _completed(given)
        of_code: list[str] = []
        leaves = keys.TASK_PIPELINE_OUTPUT.is_set(whole)
        if isinstance(config, DeclaredJob) and task is None and not leaves:
            with warnings_of_job() as of_code:
                task = config.task_class(streams_of_tasks(whole), has_pipeline=has_pipeline(whole))
        if task is not None:
            made: object = task  # a test may give an object by mistake
            kind = made if isinstance(made, type) else type(made)
            given[keys.TASK_CLASS.name] = f"{kind.__module__}:{kind.__name__}"
            checked_task_class(given[keys.TASK_CLASS.name], task)
        checked = _completed(given)
        if not allow_unknown_keys:
            require_known(checked)
        warnings = (*validate(checked), *of_code)
        checked = checked.merged(
            {keys.JOB_CONTAINER_COUNT.name: "1", keys.JOB_HOT_STANDBY_ENABLED.name: "false"}
        )
        own = internal_topics(checked)
        named = {s: _count(partitions, str(s)) for s in input_streams(checked) if s not in own}
        counts = with_repartitions(checked, named)
        uneven = uneven_inputs(checked, counts)
        if uneven is not None:
            warnings = *warnings, uneven
        job = ContainerJob.of(calculate_job_model(checked, counts, NOTHING), ONLY)
        found = task_class_of(checked) if task is None else task
        lateness_ms = keys.TASK_WATERMARK_LATENESS_MS.find(checked)
        require_single_calls(found, job.records.max_concurrency, lateness_ms)
        declared = {stream: key for key, stream in declared_outputs(checked)}
        outputs = (
            () if {*declared.values()} <= {keys.TASK_DEAD_LETTER_STREAM.name} else (*declared,)
        )
        return JobUnderTest(job, found, counts, outputs, warnings)

    def stream(self, name: str) -> SystemStream:
        """Return the stream of that name, as a task's collector resolves it."""
        for own in repartitions(self.job.config):
            if own.name == name:
                return own.stream
        system, dot, topic = name.partition(".")
        if dot and system in self.job.systems:
            return SystemStream(system, topic)
        return SystemStream(self.job.job.default_system or "", name)


def _completed(given: Mapping[str, str]) -> Config:
    values = {keys.JOB_NAME.name: "test", **given}
    inputs = [SystemStream.parse(part) for part in values.get("task.inputs", "").split(",")]
    systems = [stream.system for stream in inputs if stream is not None]
    default = keys.JOB_DEFAULT_SYSTEM.read(Config(values))
    values.setdefault(keys.JOB_DEFAULT_SYSTEM.name, [*systems, "kafka"][0])
    for system in {*systems, *used_systems(Config(values))}:
        is_given = any(key.startswith(f"systems.{system}.") for key in values)
        if default not in (None, system) and not is_given:
            continue  # a topic's name may have been taken for a system: the rules refuse it
        addresses = [
            f"systems.{system}.{role}.bootstrap.servers" for role in ("consumer", "producer")
        ]
        if not any(values.get(address) for address in addresses):
            values[addresses[0]] = _NO_BROKER
    return Config(values)


def _count(partitions: int | Mapping[str, int], stream: str) -> int:
    return partitions if isinstance(partitions, int) else partitions.get(stream, 1)
