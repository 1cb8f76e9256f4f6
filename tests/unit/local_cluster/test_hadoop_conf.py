"""The Hadoop configuration that other parts rely on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from homeport.appmaster.yarn.host_affinity import NM_RECOVERY, ClusterFacts, warnings
from homeport.appmaster.yarn.scheduler import FAIR, Queue, Scheduler
from homeport.config.config import Config
from homeport.local_cluster.hadoop_conf import (
    HadoopSite,
    hosts_text,
    node_site,
    site_xml,
    yarn_site,
)
from homeport.local_cluster.layout import Layout
from homeport.local_cluster.net.addresses import Addresses

PORTS = {"client": 1, "scheduler": 2, "tracker": 3, "admin": 4, "web": 5}


@pytest.fixture
def site() -> HadoopSite:
    """A cluster of one node."""
    return HadoopSite(
        layout=Layout(Path("/cache"), "dev"),
        addresses=Addresses("127.70.3", {"nm1": "127.70.3.11"}, PORTS),
        cluster_id="abc",
        jars=Path("/cache/jars/hadoop-1"),
    )


def test_tools_find_the_rest_address_in_the_clients_file(site: HadoopSite) -> None:
    """yarn.resourcemanager.webapp.address is absolute."""
    assert yarn_site(site)["yarn.resourcemanager.webapp.address"] == "127.0.0.1:5"


def test_an_applications_own_settings_come_first_on_its_class_path(site: HadoopSite) -> None:
    """The class path begins with the working directory of the container."""
    expected = ".,/cache/clusters/dev/conf,/cache/jars/hadoop-1/*"
    assert yarn_site(site)["yarn.application.classpath"] == expected


def test_containers_know_their_cluster_node_and_state_folder(site: HadoopSite) -> None:
    """The environment that the NodeManager puts into every container."""
    assert str(node_site(site, "nm1")["yarn.nodemanager.admin-env"]).split(",") == [
        "MALLOC_ARENA_MAX=2",
        "LOGGED_STORE_BASE_DIR=/cache/clusters/dev/nodes/nm1/state",
        "HOMEPORT_HOSTS_FILE=/cache/clusters/dev/hosts",
        "HOMEPORT_CLUSTER_ID=abc",
        "HOMEPORT_NODE=nm1",
    ]


def test_hosts_file_has_the_machines_own_name(site: HadoopSite) -> None:
    """Without it an application master fails at its start."""
    expected = "127.0.0.1 localhost\n127.0.0.1 laptop\n127.70.3.11 nm1\n"
    assert hosts_text(site.addresses.nodes, "laptop") == expected


def test_xml_is_escaped_and_in_order() -> None:
    """Keys are sorted; markup in values stays text."""
    text = site_xml({"b": "<&>", "a": 1})
    assert text.index("<name>a</name><value>1</value>") < text.index("&lt;&amp;&gt;")


@pytest.mark.parametrize(("kept", "warned"), [(True, []), (False, [NM_RECOVERY])])
def test_run_job_has_no_warning_on_a_users_cluster(
    *, kept: bool, warned: list[str], site: HadoopSite
) -> None:
    """By the rules of run-job itself; tests of lost nodes do without the recovery of nodes."""
    site = replace(site, keeps_containers=kept)
    settings = {key: str(value) for key, value in yarn_site(site).items()}
    own = {key: str(value) for key, value in node_site(site, "nm1").items()}
    facts = ClusterFacts(
        scheduler=Scheduler(FAIR, (Queue("root.default", is_leaf=True),)),
        resource_manager=settings,
        node={**settings, **own},
        node_name="nm1",
    )
    job = Config({"job.name": "flights", "job.default.system": "kafka", "yarn.queue": "default"})
    assert [fault.key for fault in warnings(job, facts)] == warned
