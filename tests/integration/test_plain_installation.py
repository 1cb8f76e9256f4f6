"""homeport installed from its wheel, without extras, runs a job on YARN."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from data import FLIGHTS, WITHOUT_TAIL_NUMBER, expected_summaries
from flights_demo.common import reference
from flights_demo.job import EXAMPLE, DemoJob
from flights_demo.names import judge
from flights_demo.verdict import Reader, compare, next_offsets, outputs_of, skipped_flights
from installations import ROOT, Installation, closure, declared, link_extra
from new_jobs import await_value, commands, made, produce
from page_commands import PAGE, commands_of

from homeport.local_cluster.cluster import LocalCluster

OBSERVABILITY = ROOT / "docker" / "observability"
LIMIT_S = 180.0
ALL_MODULES = """
import importlib, importlib.util, pkgutil, sys, homeport
names = [m.name for m in pkgutil.walk_packages(homeport.__path__, "homeport.")]
for name in names:
    importlib.import_module(name)
print(len(names), all(p.startswith(sys.prefix) for p in homeport.__path__))
print(not any(map(importlib.util.find_spec, ("fastavro", "pytest"))))
"""


PIPELINE = """
import logging, tempfile
import pyarrow as pa
from pathlib import Path
from homeport.config.config import Config
from homeport.container.api import BATCH_SCHEMA
from homeport.container.spark import class_data
from homeport.testing.shared_spark import pipeline_of
logging.basicConfig(level=logging.INFO)
class_data.ensure(print) if MAKES else None
job = Config({
    "job.name": "whole", "task.inputs": "kafka.in", "job.default.system": "kafka",
    "systems.kafka.consumer.bootstrap.servers": "none:1",
    "task.pipeline.sql": "SELECT key, value FROM input", "task.pipeline.output": "kafka.out",
})
pipeline = pipeline_of(job)
row = {"task": "t", "system": "kafka", "stream": "in", "partition": 0, "offset": 1, "value": b"1"}
print(pipeline.run(pa.Table.from_pylist([{"timestamp": 0, **row}], BATCH_SCHEMA)).num_rows)
print("lasts" if pipeline._plan_once.has_plans else "each batch is planned")
"""
"""One row through a job's pipeline; ``MAKES``: as run-local does before it."""


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The wheel of this tree in an environment of its own, with what it declares, no extra."""
    return Installation(tmp_path_factory.mktemp("plain"))


@pytest.fixture
def reader(cluster: LocalCluster) -> Iterator[Reader]:
    """Reads the topics of the flights job."""
    made = Reader(cluster.bootstrap_servers)
    yield made
    made.close()


def test_the_installation_is_complete(installation: Installation) -> None:
    """Pip misses nothing, and every module imports, from the environment and nowhere else.

    The modules of an extra import too: they ask for its distribution where it is used.
    """
    assert installation.pip("check") == "No broken requirements found.\n"
    done = subprocess.run(
        [str(installation.python), "-I", "-c", ALL_MODULES],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    count, is_own, left_out = done.stdout.split()
    assert int(count) > 150
    assert (is_own, left_out) == ("True", "True")


def test_the_commands_of_the_page_make_a_job_whose_test_passes(
    installation: Installation, tmp_path: Path
) -> None:
    """Those of "Getting started" that need no cluster; the rest is in ``test_first_hour.py``."""
    alone = ("homeport --version", 'eval "$(homeport completion', "homeport new", "pytest")
    lines = [line for block in commands_of(PAGE) for line in block if line.startswith(alone)]
    assert len(lines) == len(alone)
    link_extra("testing", tmp_path / "extra")
    programs = tmp_path / "bin"
    programs.mkdir()
    pytest_program = programs / "pytest"
    pytest_program.write_text('#!/bin/sh\nexec python -m pytest "$@"\n', encoding="utf-8")
    pytest_program.chmod(0o755)
    done = subprocess.run(
        ["/bin/bash", "-euo", "pipefail", "-c", "\n".join(lines)],
        cwd=tmp_path,
        env={
            "HOME": str(tmp_path),
            "PATH": f"{programs}:{installation.python.parent}:/usr/bin:/bin",
            "PYTHONPATH": str(tmp_path / "extra"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


def _pipeline(
    installation: Installation, cache: Path, *, makes: bool = False
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(installation.python), "-I", "-c", PIPELINE.replace("MAKES", str(makes))],
        env={**os.environ, "HOMEPORT_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )


@pytest.mark.long
def test_a_plan_of_spark_lasts(installation: Installation, tmp_path: Path) -> None:
    """By the classes of the wheel, which are the same bytes whenever they are compiled.

    A wheel that was built without Java has none: its first start makes them in the cache.
    """
    (jar,) = installation.site.glob("homeport/container/spark/*.jar")
    done = _pipeline(installation, tmp_path)
    assert done.stdout.splitlines() == ["1", "lasts"], done.stderr
    assert list(tmp_path.iterdir()) == []
    kept = jar.rename(jar.with_suffix(".kept"))
    try:
        for is_first in (True, False):
            printed = _pipeline(installation, tmp_path)
            assert printed.stdout.splitlines() == ["1", "lasts"], printed.stderr
            assert ("compiling Spark's Java classes into " in printed.stderr) is is_first
            (made,) = (tmp_path / "spark").iterdir()
            assert (made.name, made.read_bytes()) == (jar.name, kept.read_bytes())
    finally:
        kept.rename(jar)


@pytest.mark.long
def test_sparks_class_data_archive_is_made_at_its_first_use(
    installation: Installation, tmp_path: Path
) -> None:
    """In the cache, with one line; later starts use it."""
    first = _pipeline(installation, tmp_path, makes=True)
    assert first.stdout.startswith("making Spark's class-data archive in "), first.stderr
    assert "class-data archive: used" in first.stderr
    second = _pipeline(installation, tmp_path, makes=True)
    assert second.stdout.splitlines() == ["1", "lasts"], second.stderr
    assert "class-data archive: used" in second.stderr


def test_the_wheel_has_what_its_pages_name(installation: Installation, tmp_path: Path) -> None:
    """Pages, check-history, the examples with all their files; no dead link in its metadata."""

    def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(installation.python.parent / program), *arguments]
        environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    for example, source in (("flights", EXAMPLE), ("observability", OBSERVABILITY)):
        assert run("homeport", "new", "--example", example).returncode == 0
        assert _contents(tmp_path / example) == _contents(source)
    (tmp_path / "node").mkdir()
    assert run("check-history", "node").stderr.startswith("error: no *.jsonl below ")
    assert run("homeport", "docs", "getting-started").stdout == PAGE.read_text(encoding="utf-8")
    (metadata,) = installation.site.glob("homeport-*.dist-info/METADATA")
    text = metadata.read_text(encoding="utf-8")
    assert "from homeport import Job" in text
    assert re.findall(r"\]\((?!https?://)[^)]*\)", text) == []


def _contents(folder: Path) -> dict[Path, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {p.relative_to(folder): p.read_bytes() for p in files if p.suffix != ".pyc"}


@pytest.mark.long
def test_the_flights_example_runs_by_its_readme(
    installation: Installation, kafka: str, tmp_path: Path
) -> None:
    """On this machine, to the end of the input: each plane has a summary."""
    new = [str(installation.python.parent / "homeport"), "new", "--example", "flights"]
    subprocess.run(new, cwd=tmp_path, check=True, capture_output=True)
    link_extra("demo", tmp_path / "extra")
    readme = (tmp_path / "flights" / "README.md").read_text(encoding="utf-8")
    lines = [line for line in readme.splitlines() if "producer.py -" in line or "run-local" in line]
    assert len(lines) == 2
    path = f"{installation.python.parent}:{os.environ['PATH']}"
    for line in lines:
        environment = {**os.environ, "PATH": path, "HOMEPORT_BOOTSTRAP_SERVERS": kafka}
        environment["PYTHONPATH"] = str(tmp_path / "extra")
        command = ["/bin/bash", "-c", line.replace("PYTHONPATH=", f"PYTHONPATH={tmp_path}/extra:")]
        subprocess.run(command, cwd=tmp_path / "flights", env=environment, check=True)
    reader = Reader(kafka)
    try:
        judged = judge(outputs_of(reader), reference())
    finally:
        reader.close()
    assert compare(judged.summaries, expected_summaries()) == []


RUNNER = """
import importlib.util, shutil, sys
from pathlib import Path
from homeport.testing import TestRunner
_, file, given, sent = sys.argv
with TestRunner(Path(file)) as runner:
    for amount in (5, 7):
        runner.send(given, key="ann", value={"amount": amount})
    runner.run()
    print([record.value["total"] for record in runner.output(sent)])
print(shutil.which("java"), importlib.util.find_spec("pyspark"), importlib.util.find_spec("py4j"))
"""


def test_a_job_of_tasks_needs_neither_pyspark_nor_java(kafka: str, tmp_path: Path) -> None:
    """Its test, and its processes on this machine: neither is there."""
    names = closure(declared()) - {"pyspark", "py4j"}
    lean = Installation(tmp_path / "lean", names=names)
    job = f"totals-{uuid.uuid4().hex[:6]}"
    folder = made(tmp_path, job)
    environment = {"HOME": str(tmp_path), "PATH": str(lean.python.parent)}
    environment["HOMEPORT_BOOTSTRAP_SERVERS"] = kafka

    def run(*command: str) -> str:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    local, *_ = commands(folder)
    homeport, *arguments = shlex.split(local)
    file = next(a.partition("=")[2] for a in arguments if a.startswith("--config-path="))
    printed = run(str(lean.python), "-I", "-c", RUNNER, file, f"{job}-in", f"{job}-out")
    assert printed.splitlines() == ["[5.0, 12.0]", "None None None"]
    produce(kafka, f"{job}-in", (5, 7))
    run(str(lean.python.parent / homeport), *arguments)
    await_value(kafka, f"{job}-out", {"total": 12.0})


def _run_producer(cluster: LocalCluster, *arguments: str) -> None:
    servers = f"--bootstrap-servers={cluster.bootstrap_servers}"
    command = [sys.executable, "producer.py", servers, *arguments]
    done = subprocess.run(command, cwd=EXAMPLE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.long
def test_the_flights_job_runs_on_a_plain_installation(
    cluster: LocalCluster, installation: Installation, reader: Reader
) -> None:
    """AM, launchers and containers with that interpreter: every plane's summary is right."""
    job = DemoJob(
        EXAMPLE,
        cluster.env(),
        cluster.bootstrap_servers,
        [f"yarn.python.executable={installation.python}"],
        python=str(installation.python),
    )
    _run_producer(cluster, "--no-flights")
    job.submit()
    try:
        _run_producer(cluster)
        for container in job.wait_until_running(lambda _: None):
            command = Path(f"/proc/{container['pid']}/cmdline").read_bytes()
            assert command.startswith(f"{installation.python}\0".encode())
        deadline = time.monotonic() + LIMIT_S
        while sum(next_offsets(reader).values()) < FLIGHTS:
            assert time.monotonic() < deadline, job.get("v1/status")
            time.sleep(1)  # committed checkpoints are polled
        judged = judge(outputs_of(reader), reference())
        assert compare(judged.summaries, expected_summaries()) == []
        assert judged.wrong == []
        assert skipped_flights(reader) == WITHOUT_TAIL_NUMBER
        assert job.get("v1/status")["failures"] == []
    finally:
        job.kill()
