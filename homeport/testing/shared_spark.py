"""One Spark for all pipelines that the tests of a process run: its JVM starts once."""

from __future__ import annotations

import atexit
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from homeport.config.config import Config
from homeport.container.spark.faults import Named
from homeport.container.spark.inputs import ALL
from homeport.container.spark.micro_batch import SparkPipeline
from homeport.container.spark.prepared import Loaded, PipelineSettings
from homeport.container.spark.session import LocalSpark, SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class _Running:
    settings: SparkSettings
    spark: LocalSpark
    session: SparkSession

    def serves(self, settings: SparkSettings) -> bool:
        """Return whether the JVM runs, and has these settings."""
        return self.spark.is_alive() and replace(settings, work_dir=self.settings.work_dir) == (
            self.settings
        )


_running: list[_Running] = []
"""At most one: pyspark has one session in a process."""


def pipeline_of(config: Config) -> SparkPipeline | None:
    """Return the job's pipeline, which has had no rows so far; None: the job has none.

    A job with other properties of Spark, memory or cores than the one before gets a new JVM.
    ConfigError: the pipeline cannot be loaded, or is invalid. SparkError: Spark cannot be started.
    """
    wanted = PipelineSettings.of(config, Path())
    if wanted is None:
        return None
    loaded = Loaded.of(wanted)
    return loaded.run_in(_session(replace(wanted.spark, app_name="test")))


def stop() -> None:
    """Stop our JVM, if any."""
    while _running:
        _running.pop().spark.stop()


def _session(settings: SparkSettings) -> SparkSession:
    if not (_running and _running[0].serves(settings)):
        stop()
        _running.append(_started(settings))
    return _running[0].session


def _started(settings: SparkSettings) -> _Running:
    atexit.register(stop)
    settings = replace(settings, work_dir=Path(tempfile.mkdtemp(prefix="homeport-spark-")))
    sessions: list[SparkSession] = []

    def prepare(session: SparkSession) -> SparkPipeline:
        sessions.append(session)
        nothing = Named("none", "none")
        return SparkPipeline(session, lambda frames: frames[ALL], nothing, unordered=True)

    spark = LocalSpark(settings, prepare)
    try:
        spark.pipeline(lambda: None)
    except BaseException:  # whatever it was, nothing stays behind
        spark.stop()
        raise
    return _Running(settings, spark, sessions[0])
