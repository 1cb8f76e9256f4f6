"""Properties of the local Spark."""

from __future__ import annotations

from pathlib import Path

import javaproperties
import pytest

from homeport.container.spark.jvm import COMPILER_FLAGS, JVM_FLAGS
from homeport.container.spark.session import SparkSettings, properties, properties_file


def _settings(**own: str) -> SparkSettings:
    return SparkSettings("j-1", 2, 512, Path("/w"), own, 100_001)


def test_measured_settings_are_there() -> None:
    """A batch is cut into one part per core, rounded up."""
    found = properties(_settings(), Path("/a.jsa"))
    assert found["spark.master"] == "local[2]"
    assert found["spark.driver.memory"] == "512m"
    assert found["spark.driver.maxResultSize"] == "64m"
    assert found["spark.sql.execution.arrow.localRelationThreshold"] == "0"
    assert found["spark.sql.execution.arrow.maxRecordsPerBatch"] == "50001"
    assert found["spark.driver.extraJavaOptions"] == (
        f"{JVM_FLAGS} {COMPILER_FLAGS} -XX:+ExitOnOutOfMemoryError -Djava.io.tmpdir=/w "
        "-XX:SharedArchiveFile=/a.jsa"
    )


def test_the_jobs_own_properties_win() -> None:
    """JVM flags are added to ours, everything else replaces it."""
    own = {"spark.driver.extraJavaOptions": "-Dx=1", "spark.sql.session.timeZone": "CET"}
    found = properties(SparkSettings("j", 1, 1, Path("/w"), own, 1), None)
    assert found["spark.driver.extraJavaOptions"].endswith("-Djava.io.tmpdir=/w -Dx=1")
    assert "SharedArchiveFile" not in found["spark.driver.extraJavaOptions"]
    assert found["spark.sql.session.timeZone"] == "CET"


@pytest.mark.parametrize(
    ("own", "collectors"),
    [
        ("-XX:+UseParallelGC", ["-XX:+UseParallelGC"]),
        ("-Dx=1 -XX:+UseG1GC", ["-XX:+UseG1GC"]),
        ("-XX:+UseStringDeduplication", ["-XX:+UseSerialGC"]),
    ],
)
def test_a_jobs_own_collector_replaces_ours(own: str, collectors: list[str]) -> None:
    """A JVM with two of them ends at once: "conflicting collector combinations"."""
    options = properties(_settings(**{"spark.driver.extraJavaOptions": own}), None)
    found = options["spark.driver.extraJavaOptions"].split()
    assert [option for option in found if option.endswith("GC")] == collectors


def test_the_jvm_reads_its_options_from_a_file() -> None:
    """As Java reads properties, of any size; on a command line 128 kB of one would be too many."""
    own = {f"spark.my.{n}": "ü = \\ \n#" + "x" * 400 for n in range(1000)}
    found = properties(SparkSettings("j", 1, 1, Path("/w"), own, 1), None)
    assert javaproperties.loads(properties_file(found)) == found


def test_secrets_are_on_no_command_line_and_no_disk() -> None:
    """Everybody on a machine can read the arguments of its programs."""
    own = {"spark.hadoop.fs.s3a.secret.key": "hunter2", "spark.sql.ansi.enabled": "true"}
    found = properties(SparkSettings("j", 1, 1, Path("/w"), own, 1), None)
    text = properties_file(found)
    assert found["spark.hadoop.fs.s3a.secret.key"] == "hunter2"
    assert "spark.sql.ansi.enabled=true\n" in text
    assert "hunter2" not in text
    assert "hunter2" not in repr(SparkSettings("j", 1, 1, Path("/w"), own, 1))
