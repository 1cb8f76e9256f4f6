"""An environment that travels: packed here, unpacked and joined to the Python of a node.

The whole way, with jobs on nodes that have nothing of ours, is in tests/cluster.
"""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from coordinator_server import TOKEN, Backend, Loop, Served, serving
from yarn_jobs import Job

from homeport.appmaster.environment.class_data import own_java
from homeport.appmaster.environment.job_python import job_python, published
from homeport.appmaster.environment.node import adopt
from homeport.appmaster.environment.pack import Packed, pack
from homeport.appmaster.yarn.hadoop_files import HadoopFiles, hadoop_files
from homeport.appmaster.yarn.job_package import zip_folder
from homeport.config.config import Config
from homeport.config.errors import ConfigError, HomeportError
from homeport.job_coordinator.access.served_access import ServedAccess, make_certificate
from homeport.job_coordinator.http.messages import Unfit
from homeport.job_coordinator.http.pinned_tls import (
    CERTIFICATE_FILE_NAME,
    KEY_FILE_NAME,
    server_context,
)

NODE = Path(adopt.__file__).parent
OWN = {"python": list(sys.version_info[:2]), "machine": platform.machine(), "glibc": [2, 17]}


def quiet(_line: str) -> None:
    """No progress."""


@pytest.fixture(scope="session")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Packed:
    """This environment, in a cache of its own."""
    return pack(tmp_path_factory.mktemp("cache"), None, frozenset(), quiet)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """An environment without packages, made for this machine."""
    folder = tmp_path / "tree"
    (folder / "bin").mkdir(parents=True)
    for name in ("adopt.py", "start"):
        (folder / name).write_text((NODE / name).read_text())
    (folder / "environment.json").write_text(json.dumps(OWN))
    return folder


def start(
    tree: Path, *arguments: str, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """``start`` with this environment alone; the interpreter of the tests is on PATH."""
    path = f"{Path(sys.executable).resolve().parent}:/usr/bin:/bin"
    return subprocess.run(
        ["/bin/bash", str(tree / "start"), *arguments],
        env={"PATH": path, **environment},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_packed_environment_runs_by_itself(packed: Packed, tmp_path: Path) -> None:
    """It has homeport and what that requires, and no tool of the tests; its commands start."""
    script = "import homeport.container.api, pyspark, sys; print(sys.prefix)"
    assert start(packed.tree, "-c", script).stdout.strip() == str(packed.tree)
    assert start(packed.tree, "-c", "import pytest").returncode == 1
    moved = tmp_path / "moved"
    packed.tree.rename(moved)
    try:
        done = subprocess.run(
            [str(moved / "bin" / "homeport"), "--help"], capture_output=True, text=True, check=True
        )
    finally:
        moved.rename(packed.tree)
    assert "Usage: homeport COMMAND" in done.stdout


def test_a_container_unpacks_what_yarn_has_brought(packed: Packed, tmp_path: Path) -> None:
    """The first on a host; several at once have the same, and later ones find it there."""
    cached, node = tmp_path / "filecache" / "10", tmp_path / "node"
    cached.mkdir(parents=True)
    node.mkdir()
    (node / "start").write_text((NODE / "start").read_text())
    os.link(packed.archive, cached / packed.archive.name)
    (node / "__environment").symlink_to(cached / packed.archive.name)
    command = ["/bin/bash", "start", "-c", "import homeport, sys; print(sys.prefix)"]
    running = [
        subprocess.Popen(command, cwd=node, stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    places = {child.communicate(timeout=300)[0].strip() for child in running}
    assert places == {f"{cached / packed.archive.name}.unpacked"}
    assert {child.returncode for child in running} == {0}
    assert sorted(p.suffix for p in cached.iterdir()) == [".gz", ".lock", ".unpacked"]


def test_packed_again_without_a_change_it_is_there(packed: Packed) -> None:
    """With the requirements of a job it is another one."""
    lines: list[str] = []
    cache = packed.archive.parents[1]
    assert pack(cache, None, frozenset(), lines.append) == packed
    assert lines == []


def test_the_requirements_of_a_job_are_installed(packed: Packed, tmp_path: Path) -> None:
    """Beside homeport's own, whose versions stay; what contradicts them is one line."""
    helper = tmp_path / "helper"
    helper.mkdir()
    (helper / "pyproject.toml").write_text(
        '[project]\nname = "helper"\nversion = "1.0"\n'
        '[build-system]\nrequires = []\nbuild-backend = "setuptools.build_meta"\n'
        '[tool.setuptools]\npy-modules = ["helper_module"]\n'
    )
    (helper / "helper_module.py").write_text("ANSWER = 42\n")
    job = tmp_path / "job"
    job.mkdir()
    wheel = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*wheel, "-w", str(job), str(helper)], check=True, capture_output=True)
    (job / "requirements.txt").write_text("./helper-1.0-py3-none-any.whl\n")
    cache = packed.archive.parents[1]
    made = pack(cache, job, frozenset(), quiet)
    assert made.identity != packed.identity
    assert start(made.tree, "-c", "import helper_module as h; print(h.ANSWER)").stdout == "42\n"
    (job / "requirements.txt").write_text("numpy==1.0\n")
    with pytest.raises(HomeportError, match=r"requirements\.txt cannot be installed \(.*numpy"):
        pack(cache, job, frozenset(), quiet)
    assert start(packed.tree, "-c", "import helper_module").returncode == 1


SPARK = """
import logging, pathlib
from homeport.container.spark.session import LocalSpark, SparkSettings
logging.basicConfig(level=logging.INFO)
pathlib.Path("lookup.txt").write_text("a\\nb\\n")
work = pathlib.Path("work").absolute()
count = lambda session: print("lines:", session.read.text("lookup.txt").count())
spark = LocalSpark(SparkSettings("test", 2, 512, work, {}, 1000), count)
spark.pipeline(lambda: None)
spark.stop()
"""


@pytest.mark.long
def test_sparks_class_data_serves_where_the_environment_is_unpacked(
    packed: Packed, tmp_path: Path
) -> None:
    """Its JVM leaves it aside where a jar is another one, and works as well.

    A path that a pipeline gives Spark is relative to the container's folder.
    """
    made = pack(packed.archive.parents[1], None, frozenset(), quiet, own_java(os.environ))
    assert made.identity != packed.identity
    tree = tmp_path / "elsewhere"
    tree.mkdir()
    subprocess.run(["/bin/tar", "-xzf", str(made.archive), "-C", str(tree)], check=True)
    java = {"JAVA_HOME": os.environ["JAVA_HOME"]}
    done = start(tree, "-c", SPARK, cwd=tmp_path, **java)
    assert "lines: 2" in done.stdout, done.stderr
    assert "class-data archive: used" in done.stderr
    os.utime(next(tree.glob("lib/*/site-packages/pyspark/jars/spark-core_*.jar")), (1, 1))
    done = start(tree, "-c", SPARK, cwd=tmp_path, **java)
    assert "lines: 2" in done.stdout, done.stderr
    assert "class-data archive: NOT used, it does not fit this JVM" in done.stderr


# ---------------------------------------------------------------------- a node that does not fit


def test_afterwards_it_is_a_virtual_environment_of_the_interpreter(tree: Path) -> None:
    """The second run changes nothing, and nothing half made is left."""
    for _ in range(2):
        done = start(tree, "-c", "import sys; print(sys.prefix)")
        assert (done.returncode, done.stdout.strip()) == (0, str(tree))
    assert sorted(p.name for p in tree.iterdir()) == [
        "adopt.py",
        "bin",
        "environment.json",
        "pyvenv.cfg",
        "start",
    ]
    assert [p.name for p in (tree / "bin").iterdir()] == ["python"]


@pytest.mark.parametrize(
    ("needed", "named"),
    [
        ({"python": [3, 9]}, "needs CPython 3.9 on"),
        ({"machine": "vax"}, "on vax with"),
        ({"glibc": [9, 99]}, "with glibc 9.99 or later; found CPython"),
    ],
)
def test_what_does_not_fit_is_one_line(tree: Path, needed: dict[str, object], named: str) -> None:
    """Host, what is needed, what was found, and the remedy; nothing is changed."""
    (tree / "environment.json").write_text(json.dumps(OWN | needed))
    done = start(tree, "-c", "pass", NM_HOST="nm2")
    assert done.returncode == adopt.EX_CONFIG
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: host nm2: the job's environment needs CPython ")
    assert named in line
    assert f"found CPython {platform.python_version()} (" in line
    assert line.endswith("or pack the environment on a machine like it (homeport pack)")
    assert not list((tree / "bin").iterdir())


@pytest.fixture
def served() -> Iterator[Served]:
    """The AM's server, which notes what it gets."""
    with closing(Loop()) as loop, serving(loop, Backend()) as made:
        yield made


def test_the_application_master_gets_the_reason(tree: Path, served: Served, tmp_path: Path) -> None:
    """Also where there is no Python at all."""
    (tmp_path / "homeport-token").write_text(TOKEN)
    (tree / "environment.json").write_text(json.dumps(OWN | {"python": [3, 9]}))
    variables = {"SAMZA_COORDINATOR_URL": served.url, "SKEIN_CONTAINER_ID": "h-0_7"}
    start(tree, "-c", "pass", cwd=tmp_path, **variables)
    bare = tmp_path / "bare"
    bare.mkdir()
    for tool in ("bash", "sed", "dirname", "readlink"):
        (bare / tool).symlink_to(Path("/usr/bin") / tool)
    done = start(tree, "-c", "pass", cwd=tmp_path, **variables, PATH=str(bare), NM_HOST="nm3")
    assert done.returncode == adopt.EX_CONFIG
    first, second = [m for m in served.backend.said if isinstance(m, Unfit)]
    assert (first.skein_id, second.skein_id) == ("h-0_7", "h-0_7")
    assert "needs CPython 3.9 on" in first.reason
    assert second.reason == (
        "host nm3: the job's environment needs CPython 3.9; found no python3 on "
        f"PATH={bare}: install python3.9 on the host"
    )
    assert done.stderr == f"error: {second.reason}\n"


def test_over_https_the_reason_goes_to_the_certificate_of_the_submission_alone(
    tree: Path, tmp_path: Path
) -> None:
    """The token goes to no other server."""
    (tmp_path / "homeport-token").write_text(TOKEN)
    (tree / "environment.json").write_text(json.dumps(OWN | {"python": [3, 9]}))
    certificate, key = make_certificate("travelling_1")
    (tmp_path / CERTIFICATE_FILE_NAME).write_bytes(certificate)
    (tmp_path / KEY_FILE_NAME).write_bytes(key)
    backend = Backend()
    access = ServedAccess(TOKEN, tls=server_context(tmp_path))
    with closing(Loop()) as loop, serving(loop, backend, access) as served:
        variables = {
            "SAMZA_COORDINATOR_URL": f"https://127.0.0.1:{served.port}/",
            "SKEIN_CONTAINER_ID": "h-0_7",
            "HOMEPORT_TOKEN_FILE": str(tmp_path / "homeport-token"),
        }
        assert start(tree, "-c", "pass", cwd=tmp_path, **variables).returncode == adopt.EX_CONFIG
        (tmp_path / CERTIFICATE_FILE_NAME).write_bytes(make_certificate("travelling_1")[0])
        assert start(tree, "-c", "pass", cwd=tmp_path, **variables).returncode == adopt.EX_CONFIG
    (message,) = [m for m in backend.said if isinstance(m, Unfit)]
    assert message.skein_id == "h-0_7"
    assert "needs CPython 3.9 on" in message.reason


# ---------------------------------------------------------------------- run-job


def test_bad_archives_are_one_line(tmp_path: Path) -> None:
    """Key, value, rule and remedy, before anything is changed."""
    (tmp_path / "text.tar.gz").write_text("no archive")
    (tmp_path / "text.zip").write_text("no archive")

    def refused(**values: str) -> str:
        config = Config({k.replace("_", "."): v for k, v in values.items()})
        cache = {"HOMEPORT_CACHE_DIR": str(tmp_path / "cache")}
        with pytest.raises(ConfigError) as error:
            job_python(config, cache, lambda: hadoop_files({}), quiet)
        return str(error.value)

    assert "there is no file /none.tar.gz" in refused(yarn_python_archive="/none.tar.gz")
    assert "it must be a .tar.gz" in refused(yarn_python_archive=str(tmp_path / "text.zip"))
    assert "cannot be unpacked" in refused(yarn_python_archive=str(tmp_path / "text.tar.gz"))
    both = refused(yarn_python_archive="/a.tar.gz", yarn_python_executable=sys.executable)
    assert "yarn.python.executable is set too" in both


@pytest.mark.long
def test_a_job_runs_in_the_environment_that_travels(
    make_job: Callable[[str], Job], packed: Packed, tmp_path: Path
) -> None:
    """The cluster's file system has it once, by its content, and the package by its URL.

    Containers run nothing of the submitter's.
    """
    job = make_job("travelling")
    job.values["yarn.python.archive"] = str(packed.archive)
    job.values["job.container.count"] = "1"
    with hadoop_files(job.environment) as files:
        package = f"{files.home()}/travelling.zip"
        files.put(zip_folder(job.package, tmp_path / "travelling.zip"), package)
    job.values["yarn.package.path"] = package
    job.produce(20)
    job.run()
    job.wait_until_running()
    pid = job.pids()["0"]
    line = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode()
    assert line.endswith(f"{packed.archive.name}.unpacked/bin/python")
    job.expects(20)
    job.kill()
    with hadoop_files(job.environment) as files:
        url = _uploaded(files, packed)
        before = files.facts(url)
        assert before is not None
        assert before.size == packed.archive.stat().st_size
        job.values["yarn.python.archive"] = url
        config = Config(job.values)
        python = job_python(config, job.environment, lambda: hadoop_files(job.environment), quiet)
        assert published(python, lambda: hadoop_files(job.environment), quiet) == python
        assert python.node.archive == url
        assert files.facts(url) == before
    assert dataclasses.replace(python, upload=None) == python


def _uploaded(files: HadoopFiles, packed: Packed) -> str:
    return f"{files.home()}/.homeport/environments/{packed.archive.name}"
