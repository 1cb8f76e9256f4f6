"""The job's pipeline in a Spark of its own: what it takes, and its start."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from homeport.config.settings.sections import ClusterManagerConfig, JobConfig, TaskConfig
from homeport.container.classes import load_pipeline
from homeport.container.spark.micro_batch import SparkPipeline
from homeport.container.spark.session import LocalSpark, SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from homeport.config.config import Config

MAX_ROWS_SPARK = 100_000
"""Of a micro-batch where there is Spark, at most."""


@dataclass(frozen=True)
class PipelineSettings:
    """Which pipeline runs in which Spark; ``name``: the configured ``module:function``."""

    name: str
    unordered: bool
    spark: SparkSettings

    @staticmethod
    def of(config: Config, work_dir: Path) -> PipelineSettings | None:
        """What ``config`` says; None where the job has no pipeline."""
        job, task = JobConfig.of(config), TaskConfig.of(config)
        if task.pipeline_class is None:
            return None
        spark = SparkSettings(
            app_name=f"{job.name}-{job.id}",
            cores=ClusterManagerConfig.of(config).container_cpu_cores,
            heap_mb=task.memory.heap_mb,
            work_dir=work_dir,
            own=task.spark_conf,
            max_rows=MAX_ROWS_SPARK,
        )
        return PipelineSettings(task.pipeline_class, task.pipeline_unordered, spark)

    def serves(self, wanted: PipelineSettings) -> bool:
        """Whether it is the same pipeline in the same Spark, wherever that keeps its files."""
        spark = replace(self.spark, work_dir=wanted.spark.work_dir)
        return replace(self, spark=spark) == wanted


def start_pipeline(settings: PipelineSettings, rounds: int = 0) -> LocalSpark:
    """A Spark that starts, meets the pipeline, and is exercised for so many rounds.

    Raises:
        HomeportError: it cannot be started.
    """

    def prepare(session: SparkSession) -> SparkPipeline:
        function = load_pipeline(settings.name)
        pipeline = SparkPipeline(session, function, settings.name, unordered=settings.unordered)
        pipeline.warm_up()
        for _ in range(rounds):
            pipeline.exercise()
        return pipeline

    return LocalSpark(settings.spark, prepare)
