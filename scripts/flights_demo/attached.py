"""A cluster that is up, as the demo sees it from the cluster's client (``docker/demo``).

The client's environment says where everything is. What the client cannot do, as to cut a network,
it requests: a line on standard output, which begins with ``REQUEST``; the answer is a line on
standard input.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

from flights_demo.screen import DemoError
from homeport.appmaster.yarn.resource_manager_rest import ResourceManagerRest

REQUEST = "@request "
DONE = "done"
_STATE = Path("/state")
_SECRETS = Path("/secrets")


class AttachedCluster:
    """``DemoCluster`` for a client that has the state folders of all nodes below ``/state``."""

    def __init__(self) -> None:
        self._rest = ResourceManagerRest.from_environment(os.environ)
        self.nodes = tuple(sorted(folder.name for folder in _STATE.iterdir()))
        self.bootstrap_servers = os.environ["HOMEPORT_BOOTSTRAP_SERVERS"]

    def env(self) -> dict[str, str]:
        """Nothing: the client's own environment is what it needs."""
        return {}

    @property
    def rm_url(self) -> str:
        """Base of the ResourceManager's web service."""
        return self._rest.url

    def client_file(self, user: str) -> Path | None:
        """It is among the client's secrets, if the cluster has locks."""
        path = _SECRETS / f"{user}.client.properties"
        return path if path.exists() else None

    def job_file(self, example: Path) -> Path:
        """The example's; on a cluster with locks a file of its own, for this user alone."""
        own = example / f"{example.name}.properties"
        added = _SECRETS / f"{example.name}.job.properties"
        if not added.exists():
            return own
        merged = Path(tempfile.mkdtemp(prefix="homeport-demo-")) / own.name
        merged.write_text(f"{own.read_text()}\n{added.read_text()}", encoding="utf-8")
        return merged

    def status(self) -> dict[str, Any]:
        """Each host with its address."""
        nodes = [{"host": n, "address": socket.gethostbyname(n)} for n in self.nodes]
        return {"nodes": nodes}

    def state_dir(self, node: str) -> Path:
        """Where the node's volume is mounted."""
        return _STATE / node

    def fail_node(self, node: str) -> str:
        """The node is cut off from all others; what runs on it runs on."""
        _request("cut", node)
        return f"{node} is cut off from all others"

    def start_node(self, node: str) -> None:
        """The node hears and is heard again."""
        _request("heal", node)


def _request(what: str, node: str) -> None:
    print(f"{REQUEST}{json.dumps([what, node])}", flush=True)
    answer = sys.stdin.readline().strip()
    if answer != DONE:
        raise DemoError(f"{what} {node}: {answer or 'no answer'}")
