"""What the daemons in containers read, and what a user may set."""

from __future__ import annotations

import socket
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from docker_cluster import cluster, free_addresses, image, settings
from docker_cluster.engine import DockerError

from homeport.appmaster.yarn.host_affinity import ClusterFacts, warnings
from homeport.appmaster.yarn.scheduler import FAIR, Queue, Scheduler
from homeport.config.config import Config
from homeport.local_cluster import hadoop_conf


def values(path: Path) -> dict[str, str]:
    """The values of a Hadoop file."""
    root = ET.parse(path).getroot()  # noqa: S314 - written by the test
    return {p.findtext("name", ""): p.findtext("value", "") for p in root}


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    """All files, written."""
    settings.write(tmp_path / "conf")
    return tmp_path / "conf"


def test_yarn_behaves_as_on_the_local_cluster(conf: Path) -> None:
    """What is tried on one holds on the other; only addresses and paths differ."""
    found = values(conf / "yarn-site.xml")
    shared = {key: str(value) for key, value in hadoop_conf.behaviour().items()}
    own = {"yarn.nodemanager.env-whitelist"}
    assert {k: v for k, v in shared.items() if k not in own and found[k] != v} == {}
    assert found["yarn.application.classpath"].startswith(".,")
    assert found["yarn.nodemanager.admin-env.LOGGED_STORE_BASE_DIR"] == settings.STATE


@pytest.mark.parametrize("folder", [".", "secure"])
def test_run_job_has_no_warning(conf: Path, folder: str) -> None:
    """By its own rules; one file serves all daemons."""
    found = values(conf / folder / "yarn-site.xml")
    scheduler = Scheduler(FAIR, (Queue("root.default", is_leaf=True),))
    facts = ClusterFacts(scheduler, resource_manager=found, node=found, node_name="nm1")
    job = Config({"job.name": "flights", "job.default.system": "kafka", "yarn.queue": "default"})
    assert list(warnings(job, facts)) == []


def test_each_service_has_the_address_that_compose_gives_it() -> None:
    """The files of compose and the program do not drift apart."""
    folder = image.ROOT / "docker"
    names = (folder / "compose.yaml").read_text(encoding="utf-8")
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.yaml")))
    for service, number in cluster._NUMBERS.items():
        assert f'ipv4_address: "${{NET}}.{number}"' in text
        assert f'"{service}:${{NET}}.{number}"' in names


def test_a_port_that_the_user_names_is_taken_as_it_is() -> None:
    """One that is no port, or is taken, is one line; the others are any that are free."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        with pytest.raises(DockerError, match=f"HOMEPORT_DOCKER_RM_PORT = {number}: the port is"):
            free_addresses.free_ports({"HOMEPORT_DOCKER_RM_PORT": str(number)})
    with pytest.raises(DockerError, match="'x': it must be a port from 1 to 65535"):
        free_addresses.free_ports({"HOMEPORT_DOCKER_ZK_PORT": "x"})
    found = free_addresses.free_ports({"HOMEPORT_DOCKER_RM_PORT": str(number)})
    assert found["RM_PORT"] == number
    assert set(found) == set(free_addresses.PORTS)


def test_two_clones_have_clusters_of_their_own(tmp_path: Path) -> None:
    """The name comes from the folder; a record that is none is one line with the remedy."""
    one = cluster.DockerCluster(tmp_path / "one", tmp_path)
    two = cluster.DockerCluster(tmp_path / "two", tmp_path)
    assert one.name != two.name
    assert one.status() == {}
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "cluster.json").write_text('{"name": "x"}')
    with pytest.raises(DockerError, match=rf"is not the record .* begin with {two.name}"):
        two.status()
