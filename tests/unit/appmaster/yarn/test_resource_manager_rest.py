"""Where the ResourceManager is, from a Hadoop client configuration."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from homeport.appmaster.allocation.protocol.events import HostReport
from homeport.appmaster.yarn.resource_manager_rest import (
    ApplicationHosts,
    ResourceManagerRest,
    read_hadoop_files,
    resource_manager_urls,
    substituted,
)
from homeport.config.errors import UnavailableError
from homeport.job_coordinator.model.ids import Host

RM = "yarn.resourcemanager."


def write_site(folder: Path, values: dict[str, str], name: str = "yarn-site.xml") -> None:
    """``name`` in ``folder`` holds ``values``."""
    entries = "".join(
        f"<property><name>{k}</name><value>{v}</value></property>" for k, v in values.items()
    )
    (folder / name).write_text(f"<configuration>{entries}</configuration>")


@pytest.mark.parametrize(
    ("values", "urls"),
    [
        ({}, ()),
        ({RM + "webapp.address": "rm:18088"}, ("http://rm:18088",)),
        ({RM + "hostname": "rm"}, ("http://rm:8088",)),
        (
            {RM + "hostname": "rm", RM + "webapp.address": "${yarn.resourcemanager.hostname}:9"},
            ("http://rm:9",),
        ),
        ({RM + "webapp.address": "${unknown}:9", RM + "hostname": "rm"}, ("http://rm:8088",)),
        ({"yarn.http.policy": "HTTPS_ONLY", RM + "hostname": "rm"}, ("https://rm:8090",)),
        (
            {
                RM + "ha.rm-ids": "a, b",
                RM + "webapp.address.a": "rm1:8088",
                RM + "hostname.b": "rm2",
            },
            ("http://rm1:8088", "http://rm2:8088"),
        ),
    ],
)
def test_the_addresses_are_those_that_hadoop_would_use(
    values: dict[str, str], urls: tuple[str, ...]
) -> None:
    """Web address, else host name with the default port; all of them with high availability."""
    assert resource_manager_urls(values) == urls


def test_variables_are_replaced_until_none_is_left() -> None:
    """A value may name a key whose value names another; a circle ends."""
    values = {"a": "${b}x", "b": "y", "c": "${d}", "d": "${c}"}
    assert substituted(values, "${a}-${none}") == "yx-${none}"
    assert substituted(values, "${c}") in {"${c}", "${d}"}


def test_later_files_win_and_missing_ones_do_not_matter(tmp_path: Path) -> None:
    """core-site.xml is read first, yarn-site.xml over it."""
    write_site(tmp_path, {"a": "1", "b": "1"}, "core-site.xml")
    write_site(tmp_path, {"b": "2"})
    files = ("core-site.xml", "none.xml", "yarn-site.xml")
    assert read_hadoop_files(tmp_path, files) == {"a": "1", "b": "2"}


def test_a_folder_without_a_resource_manager_is_reported(tmp_path: Path) -> None:
    """No variable, no file, no address, no XML: one line each, which names the variable or file."""
    with pytest.raises(UnavailableError, match="HADOOP_CONF_DIR is not set"):
        ResourceManagerRest.from_environment({})
    with pytest.raises(UnavailableError, match=r"HADOOP_CONF_DIR = .* has no yarn-site\.xml"):
        ResourceManagerRest.from_environment({"HADOOP_CONF_DIR": str(tmp_path)})
    write_site(tmp_path, {"other": "key"})
    with pytest.raises(UnavailableError, match=r"webapp\.address"):
        ResourceManagerRest.from_folder(tmp_path)
    (tmp_path / "yarn-site.xml").write_text("not XML")
    with pytest.raises(UnavailableError, match="not a Hadoop configuration file"):
        ResourceManagerRest.from_folder(tmp_path)


_NODES = {
    "nodes": {
        "node": [
            {
                "nodeHostName": "NM2",
                "rack": "/default-rack",
                "state": "RUNNING",
                "availMemoryMB": 768,
                "usedMemoryMB": 1280,
                "availableVirtualCores": 61,
                "usedVirtualCores": 3,
                "totalResource": {"memory": 2048, "vCores": 64},
            },
            {
                "nodeHostName": "nm3",
                "rack": "/default-rack",
                "state": "LOST",
                "availMemoryMB": 0,
                "usedMemoryMB": 0,
                "totalResource": {"memory": 3072, "vCores": 64},
            },
            {
                "nodeHostName": "nm1",
                "state": "RUNNING",
                "availMemoryMB": 100,
                "usedMemoryMB": 28,
                "availableVirtualCores": 1,
                "usedVirtualCores": 1,
            },
            {"nodeHostName": "nm2", "state": "LOST", "totalResource": {"memory": 9, "vCores": 9}},
        ]
    }
}
"""As the ResourceManager of Hadoop 3.5.0 answers; older ones have no totals."""


class _Answers(ResourceManagerRest):
    """A ResourceManager with those nodes."""

    def _get(self, path: str) -> dict[str, Any]:
        assert path == "/ws/v1/cluster/nodes"
        return _NODES


def test_each_host_is_reported_once_with_what_it_has() -> None:
    """By name; a lost one has nothing free, but what it had is known; its successor counts."""
    assert _Answers(("http://rm",), "test").host_reports() == (
        HostReport(Host("nm1"), None, 128, 2, 100, 1),
        HostReport(Host("nm2"), "/default-rack", 2048, 64, 768, 61),
        HostReport(Host("nm3"), "/default-rack", 3072, 64, 0, 0, is_live=False),
    )


class _Labelled(ResourceManagerRest):
    """A CapacityScheduler whose queue ``streams`` has the nodes with a label by default."""

    kind = "capacityScheduler"

    def _get(self, path: str) -> dict[str, Any]:
        queue = {
            "queueType": "leaf",
            "queuePath": "root.streams",
            "defaultNodeLabelExpression": "state",
        }
        info = {"type": self.kind, "queuePath": "root", "queues": {"queue": [queue]}}
        nodes = [
            {"nodeHostName": "nm1", "state": "RUNNING", "nodeLabels": ["state"]},
            {"nodeHostName": "nm2", "state": "RUNNING"},
            {"nodeHostName": "nm3", "state": "RUNNING", "nodeLabels": ["lent"]},
        ]
        answers: dict[str, dict[str, Any]] = {
            "/ws/v1/cluster/scheduler": {"scheduler": {"schedulerInfo": info}},
            "/ws/v1/cluster/nodes": {"nodes": {"node": nodes}},
            "/ws/v1/cluster/get-node-labels": {
                "nodeLabelInfo": [
                    {"name": "state", "exclusivity": True},
                    {"name": "lent", "exclusivity": False},
                ]
            },
            "/conf": {"properties": [{"key": "a", "value": "1"}, {"key": "b"}]},
        }
        return answers[path]


@pytest.mark.parametrize(
    ("queue", "label", "hosts"),
    [
        ("streams", None, ["nm1"]),
        ("streams", "lent", ["nm3"]),
        ("default", None, ["nm2", "nm3"]),
        ("default", "state", ["nm1"]),
    ],
)
def test_an_application_has_the_hosts_of_its_label(
    queue: str, label: str | None, hosts: list[str]
) -> None:
    """Its own label, else its queue's; without one, the nodes that have none or are lent."""
    found = ApplicationHosts(_Labelled(("http://rm",), "test"), queue, label).host_reports()
    assert [report.host for report in found] == hosts


def test_under_another_scheduler_labels_mean_nothing() -> None:
    """The FairScheduler grants every node."""
    rest = _Labelled(("http://rm",), "test")
    rest.kind = "fairScheduler"
    found = ApplicationHosts(rest, "streams", None, "address of {}".format).host_reports()
    assert [report.host for report in found] == ["nm1", "nm2", "nm3"]
    assert {report.web for report in found} == {f"address of {n.report.web}" for n in rest.nodes()}


def test_settings_without_a_value_are_left_out() -> None:
    """Hadoop shows keys that are set to nothing."""
    assert _Labelled(("http://rm",), "test").settings() == {"a": "1"}


class _SomethingElse(BaseHTTPRequestHandler):
    """A web server that knows nothing of YARN."""

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, *_: object) -> None:
        """Not a word."""


def test_another_web_server_is_no_resource_manager() -> None:
    """Its 404 must not be read as a ResourceManager without nodes or applications."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _SomethingElse) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        rest = ResourceManagerRest((f"http://127.0.0.1:{server.server_port}",), "/conf")
        with pytest.raises(UnavailableError, match=r"is not a YARN ResourceManager.*HADOOP_CONF"):
            rest.require_reachable()
        server.shutdown()
