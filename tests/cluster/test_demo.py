"""The demonstration on a cluster in containers, as its user runs it."""

from __future__ import annotations

from pathlib import Path

import pytest
from demo_in_containers import verdicts_of
from docker_cluster import engine
from docker_cluster.cluster import DockerCluster

from local_setup.environment import cache_dir

BUILD = Path(__file__).resolve().parents[2] / "build"


@pytest.mark.long
def test_a_host_without_our_packages_is_cut_off_and_the_result_is_exact(containers: str) -> None:
    """Hosts have Java and Python alone: homeport comes with the job.

    A host with an active container is cut off in mid-run: the container ends by its lease, and its
    standby takes its place. Afterwards nothing of the cluster is left.
    """
    del containers
    texts, _ = verdicts_of("--fail-host")
    for part in (
        "cut off, ended by its lease after",
        "took its standby's place and read only the changelog's tail",
        "planes are exactly right (0 differ)",
        "the history of all nodes is sound",
    ):
        assert part in texts
    found = engine.find(cache_dir())
    if found is not None:
        # Of the demo's own: a cluster of another clone may be up.
        project = f"com.docker.compose.project={DockerCluster(BUILD / 'docker-demo').name}"
        listed = found.run("ps", "-aq", "--filter", f"label={project}")
        assert listed.strip() == ""
