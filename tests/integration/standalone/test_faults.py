"""Faults of ZooKeeper, of a disk, and of names, on real servers."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from processors_in_memory import Processor, settings, shared, story
from standalone_jobs import StandaloneJob, on_zookeeper, standalone_job
from waiting import until
from zookeeper_server import ZooKeeperServer

from homeport.job_coordinator.standalone import nodes


def root_of(name: str, id_: str, base: str) -> str:
    """The node of the job."""
    return nodes.root_of(base, app=(name, id_), job=(name, id_), stage="1")


def test_jobs_and_processors_whose_names_look_alike_are_kept_apart(
    zookeeper: ZooKeeperServer,
) -> None:
    """Jobs on one root, and ids in one job, that differ in case, or in one sign."""
    base = f"/homeport-{uuid.uuid4().hex}"
    jobs = [("a-b", "1"), ("a", "b-1"), ("A-b", "1"), ("a%2Db", "1")]
    roots = [root_of(name, id_, base) for name, id_ in jobs]
    assert len(set(roots)) == len(jobs)
    own = settings(zookeeper.connect)
    names = ["one", "One", "one.", "one%2E"]
    alone = [Processor("one", own, root) for root in roots[1:]]
    many = [Processor(name, own, roots[0]) for name in names]
    try:
        until(lambda: shared(many), lambda: story(many))
        for processor in alone:
            until(lambda p=processor: shared([p]), lambda p=processor: story([p]))  # type: ignore[misc]  # a default
        assert [len(processor.held) for processor in many] == [1, 1, 1, 1]
        assert [processor.ended for processor in (*alone, *many)] == [None] * 7
    finally:
        for processor in (*alone, *many):
            processor.close()


@pytest.fixture
def job(kafka: str, tmp_path: Path, zookeeper: ZooKeeperServer) -> Iterator[StandaloneJob]:
    """A job whose sessions last 3 s."""
    with standalone_job(kafka, tmp_path, on_zookeeper(zookeeper.connect)) as made:
        yield made


@pytest.mark.long
def test_a_location_without_its_disk_gives_its_tasks_to_another_one(job: StandaloneJob) -> None:
    """Its processor ends with one line; elsewhere the changelogs are read: an exact result."""
    job.produce(20)
    one = job.processor("one")
    job.until(lambda: job.started_by("one") > 0)
    job.until_counted()
    two = job.processor("two", "there")
    job.until(lambda: job.started_by("two") > 0 and job.started_by("one") > 1)
    one.kill()
    one.wait(60)
    disk = job.folder / "stores-here"
    shutil.rmtree(disk)
    disk.write_text("no folder", encoding="utf-8")
    again = job.processor("one")
    job.produce(20)
    assert again.wait(60) == 1
    log_text = (job.folder / "one.log").read_text(encoding="utf-8").splitlines()
    assert log_text[-1].startswith("error: ")
    assert str(disk) in log_text[-1]
    job.until_counted()
    job.stop(two)
