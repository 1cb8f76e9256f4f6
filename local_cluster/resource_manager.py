"""Read nodes and memory from the ResourceManager, and give nodes labels."""

import getpass
import json
import urllib.parse
import urllib.request
from collections.abc import Collection

from homeport.job_coordinator.http.direct import OPENER

_TIMEOUT_S = 3.0


def node_states(rm_url: str) -> dict[str, str] | None:
    """Return {node: YARN's word for its state (RUNNING, LOST...)}; None while nothing answers."""
    try:
        with OPENER.open(f"{rm_url}/ws/v1/cluster/nodes", timeout=_TIMEOUT_S) as reply:
            nodes = json.load(reply)["nodes"]
    except (OSError, ValueError, KeyError):
        return None
    return {node["nodeHostName"]: node["state"] for node in (nodes or {}).get("node", ())}


def memory_mb(rm_url: str, application: str) -> int:
    """Return the memory that the application has of YARN now, its AM's included.

    OSError, ValueError, KeyError: the ResourceManager does not answer, or does not know it.
    """
    url = f"{rm_url}/ws/v1/cluster/apps/{application}"
    with OPENER.open(url, timeout=_TIMEOUT_S) as reply:
        return int(json.load(reply)["app"]["allocatedMB"])


def label_nodes(rm_url: str, label: str, nodes: Collection[str]) -> None:
    """Give these nodes the label, which YARN does not lend to applications without it.

    OSError: the ResourceManager does not do it.
    """
    known = {"nodeLabelInfo": [{"name": label, "exclusivity": True}]}
    _post(f"{rm_url}/ws/v1/cluster/add-node-labels", known)
    labelled = [{"nodeId": f"{node}:0", "labels": [label]} for node in nodes]
    _post(f"{rm_url}/ws/v1/cluster/replace-node-to-labels", {"nodeToLabels": labelled})


def _post(url: str, body: object) -> None:
    """Send it as this user, which YARN lets administer it by default."""
    query = urllib.parse.urlencode({"user.name": getpass.getuser()})
    request = urllib.request.Request(  # noqa: S310 - the scheme is ours
        f"{url}?{query}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    OPENER.open(request, timeout=_TIMEOUT_S).close()
