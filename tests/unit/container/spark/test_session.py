"""Properties of the local Spark."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import javaproperties
import pytest

from homeport.container.spark import session
from homeport.container.spark.jvm import COMPILER_FLAGS, FIRST_HEAP, JVM_FLAGS
from homeport.container.spark.session import (
    LocalSpark,
    SparkError,
    SparkSettings,
    properties,
    properties_file,
)

LIMIT_S = 60.0


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
        f"{JVM_FLAGS} {COMPILER_FLAGS} {FIRST_HEAP} -XX:+ExitOnOutOfMemoryError "
        "-Djava.io.tmpdir=/w -XX:SharedArchiveFile=/a.jsa"
    )


def test_the_jobs_own_properties_win() -> None:
    """JVM flags are added to ours, everything else replaces it."""
    own = {"spark.driver.extraJavaOptions": "-Dx=1", "spark.sql.session.timeZone": "CET"}
    found = properties(_settings(**own), None)
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
    found = properties(_settings(**own), None)
    assert javaproperties.loads(properties_file(found)) == found


def test_secrets_are_on_no_command_line_and_no_disk() -> None:
    """Everybody on a machine can read the arguments of its programs."""
    own = {"spark.hadoop.fs.s3a.secret.key": "hunter2", "spark.sql.ansi.enabled": "true"}
    found = properties(_settings(**own), None)
    text = properties_file(found)
    assert found["spark.hadoop.fs.s3a.secret.key"] == "hunter2"
    assert "spark.sql.ansi.enabled=true\n" in text
    assert "hunter2" not in text
    assert "hunter2" not in repr(_settings(**own))


TASK = """
from pyspark.core.context import SparkContext
from pyspark.sql.functions import col
from homeport.container.api import BatchTask

class Own(BatchTask):
    def process_batch(self, table, collector):
        pass
"""
START = """
import sys, subprocess, threading
from pathlib import Path
from homeport.container.classes import load_task_class
from homeport.container.host.lease_memory import SpareKind
from homeport.container.incarnation.warm_up import _import_all
from homeport.container.spark.session import LocalSpark, SparkError, SparkSettings

assert "pyspark" not in sys.modules
LocalSpark._launch = lambda *_: subprocess.Popen([sys.executable], stdin=subprocess.PIPE)
LocalSpark._session = lambda *_: "session"
spare = threading.Thread(target=_import_all, args=[SpareKind.SPARK])
spare.start()
spark = LocalSpark(SparkSettings("j", 1, 1, Path("scratch"), {}, 1), lambda session: session)
own = load_task_class("own_task:Own", (), has_pipeline=False)
print(own.__name__, spark.pipeline(lambda: None), flush=True)
spare.join()
spark.stop()
"""


def test_a_task_may_import_pyspark_while_its_spark_starts(tmp_path: Path) -> None:
    """So may a spare: in two threads at once each import would fail, as pyspark's is circular."""
    (tmp_path / "own_task.py").write_text(TASK, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", START],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    assert (done.stdout, done.returncode) == ("Own session\n", 0), done.stderr
    assert "Error" not in done.stderr


class _Turns:
    """A lock that counts the threads that come for it, and their way to a JVM behind it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self.comers = 0
        self.most_inside = 0
        self.has_second = threading.Event()

    def __enter__(self) -> None:
        self.comers += 1
        if self.comers == 2:
            self.has_second.set()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def connect(self) -> tuple[int, str]:
        """The first one takes until the second one has come, in turn or not."""
        self._inside += 1
        self.most_inside = max(self.most_inside, self._inside)
        if self._inside == 2:
            self.has_second.set()
        assert self.has_second.wait(LIMIT_S)
        self._inside -= 1
        raise SparkError("its JVM ended")


def test_a_spark_connects_when_the_one_before_has_given_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A process has one in pyspark: a spare's that is of no use may still be about to connect."""
    turns = _Turns()
    monkeypatch.setattr(session, "_CONNECTING", turns)
    monkeypatch.setattr(LocalSpark, "_gateway", turns.connect)
    monkeypatch.setattr(
        LocalSpark, "_launch", lambda *_: subprocess.Popen([sys.executable], stdin=subprocess.PIPE)
    )

    def begin(name: str) -> LocalSpark:
        def unused(_: Any) -> Any:  # noqa: ANN401 - a session, which it never gets
            raise AssertionError

        return LocalSpark(SparkSettings(name, 1, 1, tmp_path / name, {}, 1), unused)

    first = begin("first")
    first.stop()
    second = begin("second")
    for spark in (first, second):
        with pytest.raises(SparkError, match="its JVM ended"):
            spark.pipeline(lambda: None)
    second.stop()
    assert (turns.comers, turns.most_inside) == (2, 1)
