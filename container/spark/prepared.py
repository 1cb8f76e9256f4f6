"""The job's pipeline in a Spark of its own: its settings, its code, and its start."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from homeport.config.errors import ConfigError, HomeportError
from homeport.config.settings.adjunct_section import streams_of_tasks
from homeport.config.settings.input_serdes import InputSerde, input_serdes
from homeport.config.settings.memory_rule import MemoryShares
from homeport.config.settings.pipeline_section import PipelineConfig, PipelineKind
from homeport.config.settings.sections import ClusterManagerConfig, JobConfig, TaskConfig
from homeport.config.system_stream import SystemStream
from homeport.container.adjunct.frames import EntryColumns
from homeport.container.spark.faults import Named
from homeport.container.spark.frame_columns import (
    StoreSerdes,
    refuse_twins,
    store_columns,
    store_serdes,
    value_columns,
)
from homeport.container.spark.inputs import ALL, Given, stream_names
from homeport.container.spark.micro_batch import SparkPipeline
from homeport.container.spark.output_rows import Leaving, leaving_rows
from homeport.container.spark.plan_once import PlanOnce
from homeport.container.spark.session import LocalSpark, SparkSettings
from homeport.container.spark.sql_text import load_sql
from homeport.container.spark.work import Work, function_work, sql_work

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from homeport.config.config import Config

MAX_ROWS_SPARK = 100_000
"""Of a micro-batch where there is Spark, at most."""
_SMALLEST_RESULT_MB = 64
_RESULT_PART = 4


@dataclass(frozen=True)
class PipelineSettings:
    """Which pipeline runs in which Spark.

    ``name``: the value of its key. ``streams``: the job's inputs. ``leaving``: how its rows leave;
    None: a task gets them. ``plans_once``: whether Spark may run a plan again, see ``plan_once``.
    ``serdes``: the serdes of the inputs' values. ``stores``: the job's adjunct stores.
    ``natively``: whether JSON may be read before Spark.
    """

    kind: PipelineKind
    name: str
    unordered: bool
    spark: SparkSettings
    streams: tuple[SystemStream, ...]
    leaving: Leaving | None
    plans_once: bool
    serdes: tuple[InputSerde, ...] = ()
    stores: tuple[StoreSerdes, ...] = ()
    natively: bool = True

    @staticmethod
    def of(config: Config, work_dir: Path) -> PipelineSettings | None:
        """Read it from ``config``; return None where the job has no pipeline."""
        pipeline = PipelineConfig.of(config)
        if pipeline is None:
            return None
        job, task = JobConfig.of(config), TaskConfig.of(config)
        spark = SparkSettings(
            app_name=f"{job.name}-{job.id}",
            cores=ClusterManagerConfig.of(config).container_cpu_cores,
            heap_mb=task.memory.heap_mb,
            work_dir=work_dir,
            own=task.spark_conf,
            max_rows=MAX_ROWS_SPARK,
            result_mb=result_mb(task.memory),
        )
        return PipelineSettings(
            pipeline.kind,
            pipeline.value,
            pipeline.unordered,
            spark,
            streams_of_tasks(config),
            Leaving.of(config),
            pipeline.plans_once,
            input_serdes(config),
            store_serdes(config),
            task.input_native,
        )

    def serves(self, wanted: PipelineSettings) -> bool:
        """Return whether ``wanted`` is the same pipeline and Spark, apart from the work folder."""
        spark = replace(self.spark, work_dir=wanted.spark.work_dir)
        return replace(self, spark=spark) == wanted


def result_mb(memory: MemoryShares) -> int:
    """Return the most MB of rows that a pipeline may make of a batch, in the heap, then in Python.

    The rows of the largest batch (``batch_max_bytes``) fit four times.
    """
    return max(_SMALLEST_RESULT_MB, min(memory.heap_mb, memory.python_mb) // _RESULT_PART)


@dataclass(frozen=True)
class Loaded:
    """A pipeline whose code is loaded, and that has met no Spark.

    ``named``: its configuration, for messages. ``stores``: {adjunct store that the work may ask
    for: how its entries become rows; or why they cannot}.
    """

    settings: PipelineSettings
    work: Work
    named: Named
    stores: Mapping[str, EntryColumns | HomeportError]

    @staticmethod
    def of(settings: PipelineSettings) -> Loaded:
        """Load the pipeline that ``settings`` name.

        Raises:
            ConfigError: it cannot be loaded, or needs a store that has no columns.
        """
        streams = stream_names(settings.streams)
        refuse_twins(settings.stores, [*streams])
        work, remedy = _work(settings, streams)
        stores = store_columns([store for store in settings.stores if store.name in work.stores])
        for name, columns in stores.items():
            if name in work.needs and isinstance(columns, HomeportError):
                raise columns
        return Loaded(settings, work, Named(settings.kind.key.name, settings.name, remedy), stores)

    def run_in(
        self, session: SparkSession, ended: Callable[[], int | None] = lambda: None
    ) -> SparkPipeline:
        """Return the pipeline in that Spark, warmed up; ``ended``: as of SparkPipeline.

        Raises:
            ConfigError: the pipeline is invalid.
        """
        set_up_workers(session)
        leaving, takes = self.settings.leaving, self.work.takes
        columns = value_columns(self.settings.serdes, takes)
        types = {name: columns[stream].type for name, stream in takes.items() if stream in columns}
        given = Given(takes, types, self.stores)
        rows = None if leaving is None else partial(leaving_rows, leaving=leaving, named=self.named)
        settings = self.settings
        once = None
        if settings.plans_once:
            once = PlanOnce.connect(session, natively=settings.natively)
        pipeline = SparkPipeline(
            session,
            self.work.call,
            self.named,
            given=given,
            unordered=settings.unordered,
            leaving=rows,
            ended=ended,
            plan_once=once,
        )
        pipeline.warm_up()
        return pipeline


def set_up_workers(session: SparkSession) -> None:
    """Set the environment of the processes that run functions in Python."""
    environment = session.sparkContext.environment
    # They find the job's modules where this process does.
    environment["PYTHONPATH"] = os.pathsep.join(folder for folder in sys.path if folder)
    # They start in the folder of Spark's JVM, pyspark's own: its ``pandas`` is not pandas.
    environment["PYTHONSAFEPATH"] = "1"
    # Else a function sees times in the zone of its container's host.
    zone = session.conf.get("spark.sql.session.timeZone")
    environment["TZ"] = session.conf.get("spark.executorEnv.TZ", zone)


def _work(settings: PipelineSettings, streams: Mapping[str, SystemStream]) -> tuple[Work, str]:
    """Load the pipeline's work; return it, and the remedy where Spark refuses it."""
    stores = [store.name for store in settings.stores]
    if settings.kind is PipelineKind.FUNCTION:
        return function_work(settings.name, streams, stores), "correct the function"
    text = load_sql(settings.kind.key.name, settings.name)
    views = ", ".join(dict.fromkeys([ALL, *streams, *stores]))
    remedy = f"correct the statement; its tables are {views}"
    return sql_work(text, streams, stores), remedy


def start_pipeline(settings: PipelineSettings, rounds: int = 0) -> LocalSpark:
    """Start a Spark, warm up the pipeline in it, and exercise it for so many rounds.

    Raises:
        HomeportError: it cannot be started.
    """
    if importlib.util.find_spec("pyspark") is None:
        rule = "a pipeline needs pyspark in the containers' interpreter"
        remedy = "install homeport there with all that it requires"
        raise ConfigError(settings.kind.key.name, settings.name, rule, remedy)

    def ended() -> int | None:
        return spark.ended()

    def prepare(session: SparkSession) -> SparkPipeline:
        pipeline = Loaded.of(settings).run_in(session, ended)
        for _ in range(rounds):
            pipeline.exercise()
        return pipeline

    spark = LocalSpark(settings.spark, prepare)
    return spark
