"""A job on a real YARN cluster gets another environment, container by container, under load.

The environments are installations of this tree's wheel of other versions, in folders of their own.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from am_attempts import jvm_of, page_of
from clusters_under_test import LocalUnderTest
from failover_scenarios import Feed
from former_version import VersionedJob
from installations import Installation
from standby_jobs import hot_standby, pauses
from yarn_jobs import KEYS, parent_of, wait_for

from homeport.appmaster.environment.node import adopt
from homeport.appmaster.environment.tree import Machine

_WATCH_MS, _LONG_WATCH_MS = 1_000, 5_000
_RUNS = "    code, cause = _run_all("
"""The arguments of the runner, which runs an incarnation with its permit."""
_FAILS = "    orders.next_permit()\n    raise ValueError('a bug of this version')\n" + _RUNS


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The environment of the submission."""
    return _versioned(tmp_path_factory.mktemp("first"), "0.2.1")


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """A later one."""
    return _versioned(tmp_path_factory.mktemp("second"), "0.2.2")


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """One that imports, and whose containers fail."""
    made = _versioned(tmp_path_factory.mktemp("faulty"), "0.2.3")
    runner = made.site / "homeport/container/incarnation/container_runner.py"
    text = runner.read_text()
    assert text.count(_RUNS) == 1
    runner.write_text(text.replace(_RUNS, _FAILS))
    return made


def _versioned(folder: Path, version: str) -> Installation:
    """This tree's wheel, under another version."""
    made = Installation(folder)
    (metadata,) = made.site.glob("homeport-*.dist-info/METADATA")
    lines = metadata.read_text().splitlines()
    named = [f"Version: {version}" if line.startswith("Version: ") else line for line in lines]
    metadata.write_text("\n".join(named))
    return made


@pytest.fixture
def job(
    cluster: LocalUnderTest, tmp_path: Path, first: Installation, request: pytest.FixtureRequest
) -> Iterator[VersionedJob]:
    """Two containers with standbys run in the first environment; killed at the end.

    Each test has its own topics.
    """
    name = "-".join(request.node.name.split("_")[-2:])
    made = VersionedJob(cluster, tmp_path, f"environments-{name}")
    made.values |= {"job.container.count": "2", "task.commit.ms": "500", **hot_standby()}
    made.uses(first)
    made.begin(KEYS)
    yield made
    made.call("kill")


def _to(place: Path, watch_ms: int = _WATCH_MS) -> tuple[str, ...]:
    return "upgrade", f"--environment={place}", f"--watch-ms={watch_ms}"


def _archive(folder: Path, environment: Installation) -> Path:
    """An archive as of ``homeport pack``, whose packages are those of ``environment``."""
    tree = folder / "tree"
    packages = tree / "lib" / "python{}.{}".format(*sys.version_info[:2]) / "site-packages"
    packages.mkdir(parents=True)
    (tree / "bin").mkdir()
    (packages / "all.pth").write_text(f"{environment.site}\n")
    for name in ("adopt.py", "start"):
        shutil.copy(Path(adopt.__file__).parent / name, tree / name)
    machine = Machine.own()
    needs = {"python": machine.python, "machine": machine.machine, "glibc": machine.glibc}
    (tree / "environment.json").write_text(json.dumps(needs | {"identity": "second"}))
    made = folder / f"homeport-{folder.name}.tar.gz"
    with tarfile.open(made, "w:gz") as archive:
        archive.add(tree, ".")
    return made


def _given(job: VersionedJob) -> list[str]:
    found: list[str] = (job.get("v1/status")["upgrade"] or {}).get("given", [])
    return found


def _runs_in(job: VersionedJob, environment: Installation, version: str) -> None:
    """Driver, keeper, launchers and containers are processes of it, by YARN and by the kernel."""
    python = str(environment.python)
    wait_for(lambda: job.get("v1/status")["job"]["version"] == version, job)
    wait_for(lambda: {c["version"] for c in job.containers().values()} == {version}, job)
    pids = job.settled()
    processes = {f"container {name}": pid for name, pid in pids.items()}
    processes |= {f"launcher of {name}": parent_of(pid) for name, pid in pids.items()}
    for program in ("application_master", "lease_keeper"):
        wait_for(lambda name=program: _started_by(job.program(name)) == python, job)  # type: ignore[misc]  # a default binds the loop's value
    assert {name: _started_by(pid) for name, pid in processes.items()} == dict.fromkeys(
        processes, python
    )


def _started_by(pid: int | None) -> str:
    """The interpreter of a process, as it was started."""
    return "" if pid is None else Path(f"/proc/{pid}/cmdline").read_text().split("\0")[0]


def test_all_processes_of_a_job_change_their_environment_and_back(
    job: VersionedJob,
    first: Installation,
    second: Installation,
    faulty: Installation,
    announce: Callable[[str], None],
) -> None:
    """Counts are exact, over SIGKILL of a container and of the driver in the middle.

    A faulty environment goes back by itself, before the AM has it.
    """
    _runs_in(job, first, "0.2.1")
    homes = {name: c["host"] for name, c in job.containers().items()}
    feed = Feed(job)
    feed.go_on()
    try:
        bad = job.operator(*_to(faulty.python, _LONG_WATCH_MS), limit_s=300)
        assert bad.returncode == 1, bad.stdout
        assert "processor 0-0 failed with the new package" in bad.stderr
        assert "a bug of this version" in bad.stderr
        _runs_in(job, first, "0.2.1")
        with job.operating(*_to(second.python)) as tool:
            wait_for(lambda: len(_given(job)) == 2, job, every_s=0.05)
            job.kill_driver()
            wait_for(lambda: len(_given(job)) == 3, job, every_s=0.05)
            os.kill(job.settled()["1-0"], signal.SIGKILL)
            out, err = tool.communicate(timeout=300)
        assert tool.returncode == 0, out + err
        assert f"yarn.python.executable must name {second.python}" in err
        _runs_in(job, second, "0.2.2")
        undone = job.operator("upgrade", "--undo", limit_s=300)
        assert undone.returncode == 0, undone.stderr
        _runs_in(job, first, "0.2.1")
        assert {name: c["host"] for name, c in job.containers().items()} == homes
    finally:
        fed = feed.stop()
    job.produced.update(f"key {number % KEYS}" for number in range(fed))
    job.counts_all()
    for processor in ("0", "1"):
        announce(f"pauses of processor {processor}, s: {pauses(job, processor)}")
    job.end()


@pytest.mark.long
def test_the_next_attempt_of_the_am_has_the_environment_of_an_archive(
    job: VersionedJob, second: Installation, tmp_path: Path
) -> None:
    """YARN starts all in the submission's; each fetches the archive, once on its host."""
    archive = _archive(tmp_path, second)
    done = job.operator(*_to(archive), limit_s=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "yarn.python.archive must name viewfs:" in done.stderr
    attempt = job.attempt
    _runs_from(job, archive.name, "0.2.2")
    os.kill(jvm_of(job), signal.SIGKILL)
    job.url = page_of(job)
    wait_for(lambda: job.attempt > attempt, job)
    _runs_from(job, archive.name, "0.2.2")
    job.produce(KEYS, first=KEYS)
    job.counts_all()
    job.end()


def _runs_from(job: VersionedJob, archive: str, version: str) -> None:
    """The AM and each container say so, and their interpreters are in folders of YARN's."""
    wait_for(lambda: _named(job.get("v1/status")["job"]) == (archive, version), job)
    wait_for(lambda: {_named(c) for c in job.containers().values()} == {(archive, version)}, job)
    pids = job.settled()
    for pid in (*pids.values(), *map(parent_of, pids.values()), job.program("lease_keeper")):
        assert "/homeport-environments/" in _started_by(pid)


def _named(stated: dict[str, Any]) -> tuple[str, str]:
    return Path(stated["python"] or "").name, stated["version"]
