"""A package reaches containers on a real YARN cluster, by https, and is forgotten afterwards."""

from __future__ import annotations

import urllib.error
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from yarn_jobs import TASK, Job, wait_for
from zipped import sha256_of, zipped

from homeport.config.access_tokens import digest_of
from homeport.config.config import Config
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.metadata.job_packages import JobPackageManager
from homeport.job_coordinator.metadata.upgrade import UpgradeManager
from homeport.job_coordinator.model.upgrade import UpgradeDirection, UpgradeOrder

READER = "a-readers-token"
NEW_CODE = TASK + '\nprint("the new code is imported", flush=True)\n'
PACKAGE = zipped({"probe_task.py": NEW_CODE, "data.txt": "x" * 300_000})
NAME = sha256_of(PACKAGE)


@contextmanager
def stream_of(job: Job) -> Iterator[CoordinatorStreamStore]:
    """The job's coordinator stream, read to its head."""
    with CoordinatorStreamStore.of(Config(job.values), source="test") as stream:
        stream.bootstrap()
        yield stream


@pytest.mark.long
def test_a_package_goes_through_the_stream_and_the_am_to_a_container(
    make_job: Callable[[str], Job], tmp_path: Path
) -> None:
    """It runs the new code, exactly; only the job's token shows it; a deployment forgets it."""
    job = make_job("package-travels")
    job.values |= {
        "job.container.count": "1",
        "cluster-manager.jobcoordinator.tls.enabled": "true",
        "cluster-manager.jobcoordinator.tokens.read": f"eve:{digest_of(READER.encode())}",
    }
    job.begin(1000)
    with stream_of(job) as stream:
        assert JobPackageManager(stream).write(PACKAGE) == NAME
        order = UpgradeOrder(
            str(uuid.uuid4()), job.application_id, NAME, 1000, UpgradeDirection.FORWARD, "test"
        )
        stream.write([UpgradeManager.order_message(order)])
    wait_for(lambda: NAME in [e["package"] for e in job.history("permit-received")], job)
    job.settled()
    job.produce(1000, first=1000)
    job.counts_all()
    certificate = job.written("yarn.am.certificate")
    assert CoordinatorClient(job.url, job.token, 10, certificate).package(NAME) == PACKAGE
    for token in (READER, None):
        with pytest.raises(urllib.error.HTTPError, match=r"40[13]"):
            job.get_text(f"v1/packages/{NAME}", token)
    job.judge_history()
    assert job.kill() == f"stopped {job.application_id} in order"
    with stream_of(job) as stream:
        assert JobPackageManager(stream).names() == (NAME,)
    archive = tmp_path / "new.zip"
    archive.write_bytes(PACKAGE)
    job.values["yarn.package.path"] = str(archive)  # as run-job requires
    job.run()
    job.settled()
    with stream_of(job) as stream:
        assert JobPackageManager(stream).messages_to_forget() == []
    assert [e["package"] for e in job.history("permit-received")] == [None, NAME, None]
    job.counts_all()
    job.kill()
