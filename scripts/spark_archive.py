"""The class-data archive (AppCDS) that lets a Spark session of this environment start fast.

One archive per virtual environment, in ``<prefix>/share/homeport/spark.jsa``. A program that starts
Spark with it must also pass ``JVM_FLAGS``: the JVM silently ignores an archive that was made under
another collector. The JVM also ignores it when the jars on its class path are not those of the
dump; a stamp with their names, sizes and dates, the Java version and the flags says when to make it
again.

Made with ``spark.driver.extraJavaOptions``, not JDK_JAVA_OPTIONS, which Spark's launcher JVM would
read too. The dump is written when the JVM ends, which is after ``SparkSession.stop``.

Beside it, in ``spark.command``, stands what Spark's own start scripts made of it all: Java and its
arguments, one in each line, without those that differ from start to start. A program that reads
them does not need the scripts, which start a JVM only to compute them.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from local_setup import children

JVM_FLAGS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"
"""What every JVM that uses the archive runs with, as the dump did; the container's flags too."""

SPARK_CONF: Mapping[str, str] = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.localRelationThreshold": "0",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}
"""The settings of the stream container, so that the classes it needs are the classes archived."""

_MAIN_CLASS = "org.apache.spark.deploy.SparkSubmit"
_END_SECONDS = 180.0
_MAKE_SECONDS = 600.0
_TOP_LAYER = "shared objects file (top)"
"""How the JVM's log calls the source of a class that came from our archive."""


class ArchiveError(Exception):
    """The archive could not be made; the message says why and holds the end of the output."""


def archive_path(prefix: Path) -> Path:
    """Where the archive of the environment ``prefix`` is, if it was made."""
    return prefix / "share" / "homeport" / "spark.jsa"


def command_path(prefix: Path) -> Path:
    """Where the command of Spark's JVM in the environment ``prefix`` is, if it was made."""
    return archive_path(prefix).with_suffix(".command")


def ensure_spark_archive(progress: Callable[[str], None], prefix: Path | None = None) -> Path:
    """The archive of an environment, up to date; made now (half a minute) if it is not.

    Args:
        progress: called with what is done, only if something is done.
        prefix: the virtual environment; default is the one that runs this.

    Raises:
        ArchiveError: Spark could not be started or left no archive.
    """
    prefix = prefix or Path(sys.prefix)
    archive = archive_path(prefix)
    if is_current(prefix):
        return archive
    archive.parent.mkdir(parents=True, exist_ok=True)
    with archive.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_current(prefix):
            return archive
        progress("making the Spark class-data archive (once)")
        start = time.monotonic()
        stamp = archive.with_suffix(".stamp")
        stamp.unlink(missing_ok=True)
        wanted = _fingerprint(prefix)
        _make(prefix, archive)
        stamp.write_text(wanted, encoding="utf-8")
        progress(f"made the Spark class-data archive: {time.monotonic() - start:.1f} s")
    return archive


def is_current(prefix: Path) -> bool:
    """Whether archive and command of ``prefix`` are there and fit its jars and this Java."""
    archive = archive_path(prefix)
    are_there = archive.is_file() and command_path(prefix).is_file()
    return are_there and _text(archive.with_suffix(".stamp")) == _fingerprint(prefix)


def _fingerprint(prefix: Path) -> str:
    jars = sorted(prefix.glob("lib/python3.*/site-packages/pyspark/jars/*.jar"))
    if not jars:
        raise ArchiveError(f"{prefix} has no pyspark")
    digest = hashlib.sha256(JVM_FLAGS.encode())
    for jar in jars:
        facts = jar.stat()
        digest.update(f"{jar} {facts.st_size} {facts.st_mtime_ns}\n".encode())
    release = _java_home() / "release"
    digest.update(f"{release} {_text(release)}".encode())
    return digest.hexdigest() + "\n"


def _java_home() -> Path:
    """The Java that Spark will take: JAVA_HOME's, else the one on PATH."""
    named = os.environ.get("JAVA_HOME")
    home = Path(named) if named else Path(shutil.which("java") or "java").resolve().parent.parent
    return home.resolve()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _make(prefix: Path, archive: Path) -> None:
    partial = archive.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    try:
        run = _child(prefix, f"{JVM_FLAGS} -XX:ArchiveClassesAtExit={partial}")
        if not partial.is_file():
            raise ArchiveError("the JVM ended without writing the Spark class-data archive")
        command_path(prefix).write_text("\n".join(run.command) + "\n", encoding="utf-8")
        partial.replace(archive)
    finally:
        partial.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class _Run:
    """One start of a session: seconds until it stood, until its first batch was done; its JVM."""

    stood_s: float
    first_s: float
    command: tuple[str, ...]


def _child(prefix: Path, options: str) -> _Run:
    """A session is started in a process of its own, does its batches and ends.

    Raises:
        ArchiveError: it failed or did not end in time.
    """
    with tempfile.TemporaryDirectory(prefix="homeport-spark-") as scratch:
        # A JVM that is ended while it writes the archive does not tidy up after itself.
        run = f"--run={options} -Djava.io.tmpdir={scratch}"
        command = [str(prefix / "bin" / "python"), str(Path(__file__).resolve()), run]
        env = {**os.environ, "SPARK_LOCAL_DIRS": scratch, "SPARK_LOCAL_IP": "127.0.0.1"}
        log = Path(scratch, "output.log")
        try:
            with log.open("wb") as sink:
                code = children.run(
                    command, sink, env=env, cwd=Path(scratch), limit_seconds=_MAKE_SECONDS
                )
        except subprocess.TimeoutExpired as error:
            raise ArchiveError(f"Spark did not end within {_MAKE_SECONDS:.0f} s") from error
        output = _text(log)
    found = re.search(r"^run (\S+) (\S+) (\[.*\])$", output, re.MULTILINE)
    if code != 0 or found is None:
        end = "\n".join(output.splitlines()[-25:])
        raise ArchiveError(f"Spark failed with code {code}:\n{end}")
    lasting = _lasting(json.loads(found[3]), options, scratch)
    return _Run(float(found[1]), float(found[2]), lasting)


def _lasting(arguments: list[str], options: str, scratch: str) -> tuple[str, ...]:
    own = {*options.split(), f"-Djava.io.tmpdir={scratch}"}
    jvm = arguments[: arguments.index(_MAIN_CLASS)]
    return tuple(a for a in jvm if a not in own and not a.startswith("-Xmx"))


@contextmanager
def _session(options: str) -> Iterator[object]:
    """A Spark session with JVM ``options``; at the end its JVM has really gone."""
    from pyspark.core.context import SparkContext  # noqa: PLC0415 - only the child has pyspark
    from pyspark.sql import SparkSession  # noqa: PLC0415 - only the child has it

    builder = SparkSession.builder.master("local[2]").appName("archive")
    for key, value in SPARK_CONF.items():
        builder = builder.config(key, value)
    session = builder.config("spark.driver.extraJavaOptions", options).getOrCreate()
    try:
        yield session
    finally:
        gateway = SparkContext._gateway  # noqa: SLF001 - the only way to the JVM's process
        session.stop()
        if gateway is not None:
            gateway.shutdown()
            gateway.proc.stdin.close()
            gateway.proc.wait(_END_SECONDS)


def _run(options: str) -> None:
    """Start a session, do what a stream container does with its batches, print the seconds."""
    import pyarrow as pa  # noqa: PLC0415 - only the child has it
    from pyspark.sql import SparkSession  # noqa: PLC0415 - only the child has it
    from pyspark.sql import functions as f  # noqa: PLC0415 - only the child has it

    start = time.monotonic()
    with _session(options) as session:
        assert isinstance(session, SparkSession)  # noqa: S101 - for the type checker
        stood = time.monotonic() - start
        gateway = session.sparkContext._gateway  # noqa: SLF001 - the only way to the JVM's process
        assert gateway is not None  # noqa: S101 - for the type checker
        arguments = Path(f"/proc/{gateway.proc.pid}/cmdline").read_text(encoding="utf-8")
        values = [b'{"id": %d, "name": "n%d", "x": %d.5}' % (n, n, n) for n in range(1000)]
        rows = pa.table(
            {
                "task": [f"Partition {n % 4}" for n in range(1000)],
                "key": pa.array([b"k%d" % n for n in range(1000)], pa.binary()),
                "value": pa.array(values, pa.binary()),
                "partition": pa.array([n % 4 for n in range(1000)], pa.int32()),
                "offset": pa.array(range(1000), pa.int64()),
                "timestamp": pa.array(range(1000), pa.timestamp("ms", "UTC")),
            }
        )
        first = 0.0
        for _ in range(3):
            frame = session.createDataFrame(rows)
            parsed = frame.withColumn(
                "json", f.from_json(f.col("value").cast("string"), "id long, name string, x double")
            )
            kept = parsed.where("json.x > 10").select("*", "json.*").drop("json", "value")
            kept = kept.withColumn("total", f.coalesce(f.col("x"), f.lit(0.0)) * 2)
            if kept.toArrow().num_rows == 0:
                raise ArchiveError("the pipeline lost its rows")
            first = first or time.monotonic() - start
        counted = session.createDataFrame(rows).groupBy("task").agg(f.count("*"), f.max("offset"))
        counted.toArrow()
    print(f"run {stood:.2f} {first:.2f} {json.dumps(arguments.split(chr(0)))}")


def _measure(progress: Callable[[str], None], rounds: int) -> None:
    """Print session starts without and with the archive, and whether the JVM really used it."""
    archive = ensure_spark_archive(progress)
    prefix = Path(sys.prefix)
    with tempfile.TemporaryDirectory(prefix="homeport-spark-") as scratch:
        log = Path(scratch, "classes.log")
        logged = f"{JVM_FLAGS} -XX:SharedArchiveFile={archive} -Xlog:class+load:file={log}"
        _child(prefix, logged)
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    ours = sum(_TOP_LAYER in line for line in lines)
    print(f"classes loaded: {len(lines)}, of them from the archive: {ours}")
    for _ in range(rounds):
        for name, options in (
            ("JVM defaults", "-XX:-UsePerfData"),
            ("flags", JVM_FLAGS),
            ("flags and archive", f"{JVM_FLAGS} -XX:SharedArchiveFile={archive}"),
        ):
            run = _child(prefix, options)
            print(
                f"{name}: session {run.stood_s:.2f} s, first batch done {run.first_s:.2f} s",
                flush=True,
            )


def main() -> int:
    """Make the archive of the environment that runs this; exit code 0 if it is there."""
    parser = argparse.ArgumentParser(
        prog="scripts/spark_archive.py",
        description="Makes the class-data archive of this virtual environment, if it is not there "
        "or its jars have changed. Run by the set-up; start it with .venv/bin/python.",
    )
    parser.add_argument("--measure", type=int, metavar="N", help="N session starts of each kind")
    parser.add_argument("--run", metavar="OPTIONS", help=argparse.SUPPRESS)
    options = parser.parse_args()
    try:
        if options.run is not None:
            _run(options.run)
        elif options.measure:
            _measure(print, options.measure)
        else:
            print(ensure_spark_archive(print))
    except ArchiveError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
