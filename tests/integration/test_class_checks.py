"""What run-job finds out about a job's code in a process of its own; needs no cluster."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Never

import pytest

from homeport.appmaster.environment.job_python import interpreter
from homeport.appmaster.yarn.job_package import prepared
from homeport.cli.yarn.preflight import check_classes, check_pipeline
from homeport.config.config import Config
from homeport.config.errors import ConfigError, HomeportError

TASK = """\
from homeport.container.api import BatchTask


class Task(BatchTask):
    def process_batch(self, table, collector):
        pass
"""
KEY = "task.spark.conf.spark.driver.extraJavaOptions"
PYTHON = interpreter(sys.executable)


def _no_cluster() -> Never:
    raise AssertionError("the package is on this machine")


def _config(**more: str) -> Config:
    given = {
        "job.name": "j",
        "job.default.system": "kafka",
        "systems.kafka.consumer.bootstrap.servers": "nowhere:1",
        "task.inputs": "kafka.in",
        "task.class": "own:Task",
    }
    return Config({**given, **more})


def test_code_that_can_be_used_is_taken(tmp_path: Path) -> None:
    """Whatever it prints while it is imported."""
    (tmp_path / "own.py").write_text(TASK + "print('no end of line', end='')\n")
    check_classes(_config(), PYTHON, tmp_path, print)


def test_a_warning_of_the_declaration_is_passed_on(tmp_path: Path) -> None:
    """Of the child's log, which ends with it."""
    (tmp_path / "own.py").write_text(
        "from homeport import Job\n"
        'job = Job("j")\n'
        'job.window("lost", value=int, size=5)\n'
        'job.each(job.input("in", key=str, value=dict))(repr)\n'
    )
    said: list[str] = []
    check_classes(_config(**{"task.class": "own:job"}), PYTHON, tmp_path, said.append)
    (line,) = said
    assert line.startswith("note: job.window = 'lost': no function gets its results")


FILE = """\
from homeport import Job
from {helper} import factor

job = Job("helped")
"""


@pytest.mark.parametrize("helper", ["myhelp", "mypackage.help"])
def test_a_module_beside_the_file_that_is_not_shipped_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, helper: str
) -> None:
    """Also where run-job runs in the folder of the file; each container would fail."""
    (tmp_path / "mypackage").mkdir()
    for name in ("myhelp.py", "mypackage/help.py"):
        (tmp_path / name).write_text("factor = 2\n")
    file = tmp_path / "help_job.py"
    file.write_text(FILE.format(helper=helper))
    monkeypatch.chdir(tmp_path)
    config = _config(**{"task.class": "help_job:job", "task.inputs": "kafka.in"})
    with prepared(file, _no_cluster) as package, pytest.raises(HomeportError) as refused:
        check_classes(config, PYTHON, package.import_path, print)
    assert str(refused.value) == (
        "--config-path = 'help_job.py': line 2 fails: ModuleNotFoundError: No module named "
        f"{helper.partition('.')[0]!r}; where it is your own, ship its folder: "
        'keys={"yarn.package.path": "."} in help_job.py (for homeport upgrade: --package=FOLDER); '
        "else install it for the job"
    )
    with prepared(tmp_path, _no_cluster) as package, pytest.raises(HomeportError) as refused:
        check_classes(config, PYTHON, package.import_path, print)
    assert "the job has no function for its records" in str(refused.value)


@pytest.mark.parametrize("end", ["os._exit(0)", "print('checked'); os._exit(0)"])
def test_code_that_ends_the_process_is_refused(tmp_path: Path, end: str) -> None:
    """Exit code 0 of the process that loads it proves nothing; its containers would fail."""
    (tmp_path / "own.py").write_text(f"import os\n{TASK}\n{end}\n")
    with pytest.raises(ConfigError, match=r"^yarn\.package\.path = .* let no module exit while it"):
        check_classes(_config(), PYTHON, tmp_path, print)


def test_a_manager_of_adjunct_stores_that_is_none_is_refused(tmp_path: Path) -> None:
    """Before the submission, in one line; where no input fills a store nothing loads it."""
    (tmp_path / "own.py").write_text(TASK)
    manager = {"adstore.manager.factory": "own:Task"}
    check_classes(_config(**manager), PYTHON, tmp_path, print)
    filled = {
        "task.inputs": "kafka.in,kafka.planes",
        "stores.planes.factory": "rocksdb",
        "stores.planes.key.serde": "string",
        "stores.planes.msg.serde": "string",
        "stores.planes.adstore.input": "kafka.planes",
    }
    with pytest.raises(HomeportError) as caught:
        check_classes(_config(**manager, **filled), PYTHON, tmp_path, print)
    assert str(caught.value) == (
        "adstore.manager.factory = 'own:Task': it must name a subclass of "
        "AdjunctDataStoreManagerFactory of homeport.container.api; this is the class "
        "Task(BatchTask)"
    )


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("-XX:+NoSuch", "Unrecognized VM option 'NoSuch'"),
        ("-XX:+UseParallelGC -XX:+UseG1GC", "collector"),
        ("-Dtitle='half", "No closing quotation"),
        ("-XX:+NoSuch -Dx.password=hunter2", "Unrecognized VM option 'NoSuch'"),
    ],
)
def test_options_that_java_does_not_take_are_refused(
    tmp_path: Path, options: str, reason: str
) -> None:
    """With them the JVM of each container would end at its start, time after time."""
    (tmp_path / "own.py").write_text(f"{TASK}\n\ndef pipeline(frame):\n    return frame\n")
    config = _config(**{"task.pipeline.class": "own:pipeline", KEY: options})
    with pytest.raises(HomeportError, match=rf"^{re.escape(KEY)} = .*Java must take") as refused:
        check_classes(config, PYTHON, tmp_path, print)
    assert reason in str(refused.value)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("options", ["-XX:+UseParallelGC", "-Dtitle='a b' -Xss1m"])
def test_options_that_java_takes_are_taken(tmp_path: Path, options: str) -> None:
    """A collector of the job's own too."""
    (tmp_path / "own.py").write_text(f"{TASK}\n\ndef pipeline(frame):\n    return frame\n")
    config = _config(**{"task.pipeline.class": "own:pipeline", KEY: options})
    check_classes(config, PYTHON, tmp_path, print)


def _checked(tmp_path: Path, **keys: str) -> list[str]:
    notes: list[str] = []
    check_pipeline(_config(**keys), PYTHON, tmp_path, notes.append)
    return notes


def test_a_statement_that_spark_refuses_is_refused_before_the_submission(tmp_path: Path) -> None:
    """In a Spark of run-job's own: one line, with Spark's reason and without a traceback."""
    line = (
        r"^task\.pipeline\.sql = 'SELECT task, nope FROM `in`': \[UNRESOLVED_COLUMN"
        r".*`nope` cannot be resolved.*; correct the statement; its tables are input, in$"
    )
    with pytest.raises(HomeportError, match=line):
        _checked(tmp_path, **{"task.pipeline.sql": "SELECT task, nope FROM `in`"})


def test_a_statement_that_fails_over_no_rows_is_one_line_too(tmp_path: Path) -> None:
    """Spark takes it, and it breaks when it runs."""
    keys = {
        "task.class": "",
        "task.pipeline.sql": "SELECT 1 / count(*) AS n FROM `in`",
        "task.pipeline.output": "kafka.out",
        "task.pipeline.unordered": "true",
    }
    line = r"^task\.pipeline\.sql = .*: failed over 0 rows .*\[DIVIDE_BY_ZERO\].*; correct the st"
    with pytest.raises(HomeportError, match=line):
        _checked(tmp_path, **keys)


@pytest.mark.long
def test_a_pipeline_that_spark_takes_is_taken(tmp_path: Path) -> None:
    """A function too, where the key wants it; else no Spark starts."""
    (tmp_path / "own.py").write_text("def pipeline(frame):\n    return frame.nothing()\n")
    assert _checked(tmp_path, **{"task.pipeline.sql": "SELECT value FROM `in`"}) == []
    keys = {"task.pipeline.class": "own:pipeline"}
    assert _checked(tmp_path, **keys) == []
    with pytest.raises(HomeportError, match=r"`nothing` is not supported.*; correct the function$"):
        _checked(tmp_path, **keys, **{"task.pipeline.check": "submission"})


def test_without_java_only_the_containers_find_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is shown; what needs no Spark is checked all the same."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    (message,) = _checked(tmp_path, **{"task.pipeline.sql": "SELECT nope FROM `in`"})
    assert message.startswith("note: the pipeline is not checked here, which has no Java")
    with pytest.raises(HomeportError, match=r"there is no file 'x\.sql' in the job's package"):
        _checked(tmp_path, **{"task.pipeline.sql": "file:x.sql"})
