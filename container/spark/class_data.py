"""Makes the files that let Spark's JVM start fast.

``python -m homeport.container.spark.class_data FOLDER``: afterwards the folder has the JVM's
command and its class-data archive (``jvm``). They fit only this Java and the jars of this pyspark
with their dates, in any folder. ``ensure`` makes them in the cache folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from homeport.config.errors import HomeportError, StoreError
from homeport.container.api import BATCH_SCHEMA
from homeport.container.spark import java_classes
from homeport.container.spark.faults import Named
from homeport.container.spark.inputs import ALL
from homeport.container.spark.jvm import (
    ARCHIVE_NAME,
    COMMAND_NAME,
    PORTABLE_JAVA,
    environments_folder,
    made_folder,
    spark_and_java,
)
from homeport.container.spark.micro_batch import SparkPipeline
from homeport.container.spark.plan_once import PlanOnce
from homeport.container.spark.session import LocalSpark, SparkSettings
from homeport.job_coordinator.file_locks import exclusive
from homeport.job_coordinator.own_folders import cache_folder, make_own_folder
from homeport.job_coordinator.parent_death import ending_with_us, run_child

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LAUNCHER = "org.apache.spark.launcher.Main"
_MAIN_CLASS = "org.apache.spark.deploy.SparkSubmit"
_FIRST_JAR = "slf4j-api-*.jar"
"""Spark's scripts put it first."""
_HEAP_MB = 512
_LIMIT_S = 600.0


def ensure(say: Callable[[str], None]) -> None:
    """Make command and archive in ``made_folder`` where they are missing, in another process.

    Without them Spark only starts later: a failure is a warning. It is not tried again while its
    log is there. Nothing is made where the cache can have no folder for them: without pyspark, a
    home, or a Java with its release. ``say``: gets a line for people.
    """
    folder = made_folder()
    log = folder.with_suffix(".log")
    if (folder / ARCHIVE_NAME).is_file() or log.is_file() or folder == environments_folder():
        return
    cache = cache_folder(os.environ)
    try:
        make_own_folder(folder, cache)
        with exclusive(cache / "spark" / ".lock", lambda: say("waiting for another command")):
            if (folder / ARCHIVE_NAME).is_file():
                return
            say(f"making Spark's class-data archive in {folder} (a minute, once)")
            with log.open("wb") as sink:
                if run_child(_command(folder), _LIMIT_S, log=sink).returncode == 0:
                    log.unlink()
                    return
            reason: object = f"{log} has the reason; remove that file to try again"
    except (OSError, StoreError, subprocess.TimeoutExpired) as error:
        reason = error
    say(f"warning: without class-data archive Spark starts slowly: {reason}")


def _command(folder: Path) -> list[str]:
    return [sys.executable, "-m", "homeport.container.spark.class_data", str(folder)]


def make(folder: Path) -> None:
    """Make command and archive in ``folder``, each whole.

    Raises:
        HomeportError: there is no Java, or Spark does not start or end as it should.
    """
    home, java = spark_and_java()
    lines = [PORTABLE_JAVA, "-cp", _class_path(home), *_arguments(java, home)]
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".partial-", dir=folder) as name:
        made = Path(name)
        (made / COMMAND_NAME).write_text("\n".join(lines) + "\n", encoding="utf-8")
        archive = made / "archive"
        _dump(made, archive)
        archive.replace(folder / ARCHIVE_NAME)
        (made / COMMAND_NAME).replace(folder / COMMAND_NAME)


def _class_path(home: Path) -> str:
    """Return the class path in a fixed order: the folder's differs from disk to disk."""
    jars = sorted(home.glob("jars/*.jar"))
    first = sorted(home.glob(f"jars/{_FIRST_JAR}"))
    rest = [jar for jar in jars if jar not in first]
    return ":".join(jar.relative_to(home).as_posix() for jar in [*first, *rest])


def _arguments(java: str, home: Path) -> list[str]:
    command = [java, "-cp", f"{home}/jars/*", _LAUNCHER, _MAIN_CLASS, "pyspark-shell"]
    # Without the version, the launcher looks for Spark's sources; the class path is not used.
    said = {"SPARK_HOME": str(home), "SPARK_CONNECT_MODE": "0", "SPARK_SCALA_VERSION": "2.13"}
    environment = {**os.environ, **said}
    done = run_child(command, _LIMIT_S, environment=environment)
    found = done.stdout.rpartition(b"\n")[2].decode().split("\0")
    if done.returncode != 0 or _MAIN_CLASS not in found:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()[:1]
        raise HomeportError(f"Spark does not say how it starts: {' '.join(lines)}")
    kept = found[1 : found.index(_MAIN_CLASS)]
    at = kept.index("-cp")
    return [a for a in kept[:at] + kept[at + 2 :] if not a.startswith("-Xmx")]


def _dump(made: Path, archive: Path) -> None:
    """Exercise a session as a container does, so that its JVM writes the archive at its end."""
    own = {"spark.driver.extraJavaOptions": f"-XX:ArchiveClassesAtExit={archive}"}
    settings = SparkSettings("class-data", 2, _HEAP_MB, made / "work", own, 1000)
    # While a JVM writes its archive, for a minute, it ignores the end of its input.
    spark = LocalSpark(settings, _exercised, made, first=ending_with_us())
    try:
        spark.pipeline(lambda: None)
        spark.end_in_order(_LIMIT_S)
    finally:
        spark.stop()
    if not archive.is_file():
        raise HomeportError("the JVM ended without an archive: see its lines above")


def _exercised(session: SparkSession) -> SparkPipeline:
    from pyspark.sql import functions as f  # noqa: PLC0415 - pyspark is imported when it runs

    rest = {"system": "s", "stream": "s", "partition": 0, "timestamp": 0}
    rows = [
        {"task": "t", "value": f'{{"id": {n}, "name": "n", "x": {n}.5}}'.encode(), "offset": n}
        for n in range(1000)
    ]
    table = pa.Table.from_pylist([{**rest, **row} for row in rows], BATCH_SCHEMA)
    named = Named("class-data", "typical")
    for once in (None, PlanOnce.connect(session)):
        pipeline = SparkPipeline(
            session, lambda frames: _typical(frames[ALL]), named, unordered=False, plan_once=once
        )
        pipeline.warm_up()
        pipeline.exercise()
        pipeline.run(table)
    frame = session.createDataFrame(table)
    frame.groupBy("task").agg(f.count("*"), f.max("offset")).toArrow()
    return pipeline


def _typical(frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f  # noqa: PLC0415 - pyspark is imported when it runs

    form = "id long, name string, x double"
    parsed = frame.withColumn("json", f.from_json(f.col("value").cast("string"), form))
    kept = parsed.where("json is null or json.x > 10").select("*", "json.*").drop("json")
    return kept.withColumn("total", f.coalesce(f.col("x"), f.lit(0.0)) * 2)


if __name__ == "__main__":
    sys.exit(java_classes.main(make))
