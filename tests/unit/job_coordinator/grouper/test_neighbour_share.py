"""The line of run-job about the memory of mixed containers."""

from __future__ import annotations

import pytest

from homeport.config.config import Config
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.neighbour_share import neighbour_share
from homeport.job_coordinator.grouper.previous_assignment import NOTHING

BASE = {
    "job.name": "j",
    "job.default.system": "kafka",
    "job.container.mixed-roles": "true",
    "job.hotstandby.enabled": "true",
    "task.class": "m:C",
    "task.inputs": "kafka.in",
    "cluster-manager.container.memory.mb": "1600",
    "systems.kafka.consumer.bootstrap.servers": "a:1",
}


def _share(
    containers: int, tasks: int, lost: int | None = None, key: str = "job.id", value: str = "1"
) -> str | None:
    config = Config({**BASE, "job.container.count": str(containers), key: value})
    model = calculate_job_model(config, {SystemStream("kafka", "in"): tasks}, NOTHING)
    return neighbour_share(model) if lost is None else neighbour_share(model, lost)


def test_the_line_has_what_a_lost_host_gives_a_container_to_bear() -> None:
    """Of 200 MB of RocksDB active tasks have 150."""
    assert _share(5, 50) == (
        "cluster-manager.container.memory.mb = 1600: with mixed roles each of 5 containers has 10 "
        "tasks and 10 standbys, and, when 1 container is lost with a host, about 13 tasks and 13 "
        "standbys; RocksDB then has 11 MB for each task instead of 15; 2080 MB leave each task "
        "what it has now"
    )


@pytest.mark.parametrize(
    ("containers", "tasks", "lost", "replicas", "words"),
    [
        (5, 50, 2, "1", ("2 containers are lost", "about 17 tasks and 17 standbys", "2720 MB")),
        (5, 50, 9, "1", ("4 containers are lost", "about 50 tasks and 0 standbys", "8000 MB")),
        (3, 7, 1, "2", ("has 3 tasks and 5 standbys", "about 4 tasks and 4 standbys", "2134 MB")),
        (3, 3, 1, "1", ("has 1 task and 1 standby, and", "about 2 tasks and 2 standbys")),
        (2, 7, 1, "2", ("has 4 tasks and 4 standbys", "about 7 tasks and 0 standbys", "2800 MB")),
    ],
)
def test_no_place_has_a_task_twice(
    containers: int, tasks: int, lost: int, replicas: str, words: tuple[str, ...]
) -> None:
    """So there are no more replicas than places; one container is always left."""
    found = _share(containers, tasks, lost, "job.hotstandby.replicationcount", replicas) or ""
    assert [word for word in words if word not in found] == []


def test_other_jobs_have_no_such_line() -> None:
    """Of one role, without standbys, or with a container alone."""
    assert _share(5, 50, 1, "job.container.mixed-roles", "false") is None
    assert _share(5, 50, 1, "job.hotstandby.enabled", "false") is None
    assert _share(1, 4) is None
