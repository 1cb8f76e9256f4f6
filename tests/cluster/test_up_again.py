"""``docker/up`` on a cluster that does not fit any more: one line says what is amiss or is done."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator

import pytest
from clusters_in_containers import ContainersUnderTest
from docker_cluster.engine import DockerError

pytestmark = pytest.mark.long


HOSTS, NAME_SERVICE = "/etc/hosts", "/etc/resolv.conf"
BREAKS = {
    "10.9.9.9": f"{{ echo 10.9.9.9 kafka; grep -v kafka {HOSTS}; }} > /tmp/h; cat /tmp/h > {HOSTS}",
    # The engine's name service has the name too.
    "no address": f"grep -v kafka {HOSTS} > /tmp/h; cat /tmp/h > {HOSTS}; echo > {NAME_SERVICE}",
}
"""What is found then: the script that breaks names."""


@contextlib.contextmanager
def broken_names(cluster: ContainersUnderTest, service: str, script: str) -> Iterator[None]:
    """After the block the files of its container are as they were."""

    def run(command: str) -> str:
        return cluster.engine.run("exec", cluster.container(service), "sh", "-c", command)

    kept = {path: run(f"cat {path}") for path in (HOSTS, NAME_SERVICE)}
    try:
        run(script)
        yield
    finally:
        for path, text in kept.items():
            run(f"printf '%s' '{text}' > {path}")


@pytest.mark.parametrize("found", BREAKS)
def test_a_container_that_finds_another_elsewhere_is_named(
    cluster: ContainersUnderTest, found: str
) -> None:
    """With the name, and the address that it finds; the cluster stays as it is."""
    says = f"^nm2 finds kafka at {re.escape(found)}, and it is at 172"
    with broken_names(cluster, "nm2", BREAKS[found]), pytest.raises(DockerError, match=says):
        cluster.up(print)
    cluster.up(print)


def marked(cluster: ContainersUnderTest) -> bool:
    """Whether the state of nm1 has a mark that the test has put there."""
    return (cluster.state_dir("nm1") / "mark").exists()


def test_data_of_another_image_is_not_taken_over(cluster: ContainersUnderTest) -> None:
    """The cluster starts again without it; with the image that it has, it keeps it."""
    (cluster.state_dir("nm1") / "mark").touch()
    cluster.up(print)
    assert marked(cluster)
    record = cluster.log_dir / "cluster.json"
    values = json.loads(record.read_text())
    record.write_text(json.dumps(values | {"image": "homeport-cluster:older"}))
    lines: list[str] = []
    cluster.up(lines.append)
    assert "the image has changed: the cluster starts again, without its data" in lines
    assert not marked(cluster)
    assert cluster.silent_daemons() == []


def test_data_without_a_record_is_not_taken_over(cluster: ContainersUnderTest) -> None:
    """It would have another address, and another identity of Kafka."""
    (cluster.state_dir("nm1") / "mark").touch()
    (cluster.log_dir / "cluster.json").unlink()
    lines: list[str] = []
    cluster.up(lines.append)
    assert "an earlier cluster has lost its record: it is removed, with its data" in lines
    assert not marked(cluster)
    assert cluster.silent_daemons() == []
