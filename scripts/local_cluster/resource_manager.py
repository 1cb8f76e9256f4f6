"""What the ResourceManager says about its nodes."""

from __future__ import annotations

import json
import urllib.request

_TIMEOUT_S = 3.0
# A proxy from the environment must not be asked for a loopback address.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def node_states(rm_url: str) -> dict[str, str] | None:
    """Node name to YARN's word for its state (RUNNING, LOST...); None while nothing answers."""
    try:
        with _OPENER.open(f"{rm_url}/ws/v1/cluster/nodes", timeout=_TIMEOUT_S) as reply:
            nodes = json.load(reply)["nodes"]
    except (OSError, ValueError, KeyError):
        return None
    return {node["nodeHostName"]: node["state"] for node in (nodes or {}).get("node", ())}
